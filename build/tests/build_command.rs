//! `packferry build` as a user types it: what it says of the release, and where it writes none.

#![expect(clippy::unwrap_used, reason = "tests")]

mod command;

use std::fs;
use std::path::Path;

use command::packferry;
use serde_json::{Value, json};

/// A pack of one JavaScript file in `dir`.
fn write_pack(dir: &Path, name: &str) {
    fs::create_dir_all(dir).unwrap();
    let package =
        json!({ "name": name, "nodetool": { "sandboxModules": [{ "name": ".", "kind": "js", "file": "index.js" }] } });
    fs::write(dir.join("package.json"), package.to_string()).unwrap();
    fs::write(dir.join("index.js"), "export const a = 1;").unwrap();
}

#[test]
fn one_pack_is_one_pack() {
    let top = tempfile::tempdir().unwrap();
    write_pack(&top.path().join("packs/a"), "a");
    let run = packferry(top.path(), &["build", "packs", "--out", "release"]);
    assert!(
        run.out
            .starts_with("Built 1 pack with 1 module into release: manifest "),
        "{}",
        run.out
    );
    write_pack(&top.path().join("packs/b"), "b");
    let run = packferry(top.path(), &["build", "packs", "--out", "release"]);
    assert!(
        run.out
            .starts_with("Built 2 packs with 2 modules into release: manifest "),
        "{}",
        run.out
    );
}

#[test]
fn a_release_inside_of_a_pack_is_warned_of() {
    let top = tempfile::tempdir().unwrap();
    write_pack(&top.path().join("packs/a"), "a");
    for (out, warned) in [
        ("packs/a/release", true),
        ("packs/a/dist/release", true),
        ("packs/release", false),
        ("release", false),
    ] {
        let run = packferry(top.path(), &["build", "packs/a", "--out", out, "--json"]);
        assert_eq!(run.status, 0, "{out}: {}", run.err);
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let mut rows = report["diagnostics"].as_array().unwrap().iter();
        assert_eq!(rows.any(|row| row["code"] == "release-in-pack"), warned, "{out}");
    }
}

/// What the system says in its own words, and with numbers, is said in ours.
#[test]
fn places_that_take_no_release() {
    let top = tempfile::tempdir().unwrap();
    write_pack(&top.path().join("packs/a"), "a");
    fs::write(top.path().join("file"), "").unwrap();
    for (out, says) in [
        (
            "packs/a",
            "packs/a is a package's directory, and no place for a release",
        ),
        ("/proc/x", "cannot write /proc/x: nothing can be made there"),
        ("file", "cannot write file: "),
        ("file/x", "cannot write file/x: a part of its path is no directory"),
    ] {
        let run = packferry(top.path(), &["build", "packs", "--out", out]);
        assert_eq!(run.status, 2, "{out}: {}", run.err);
        assert!(
            run.err.contains(says) && run.err.contains("help: "),
            "{out}: {}",
            run.err
        );
        assert!(!run.err.contains("os error"), "{out}: {}", run.err);
    }
    assert!(!top.path().join("packs/a/objects").exists());
}
