//! `packferry run` as a user types it: exit status, standard output, standard error.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn packs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs")
}

/// Exit status, standard output and standard error of a run of `code`, the machine's folders taken out.
fn run(code: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script.js");
    std::fs::write(&script, code).unwrap();
    let packferry = Command::new(env!("CARGO_BIN_EXE_packferry"))
        .arg("run")
        .arg(&script)
        .args(arguments)
        .current_dir(packs())
        .output()
        .unwrap();
    let folder = format!("{}/", dir.path().display());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace(&folder, "");
    (packferry.status.code(), text(packferry.stdout), text(packferry.stderr))
}

#[test]
fn modules_of_roots_run() {
    let code = "import { slug } from '@packferry/text/slug';\nimport { noise } from '@packferry/noise';\n\
                console.log('so far');\nreturn [slug('Crème Brûlée'), await noise(0.5, 0.25, 1)];";
    let (status, out, err) = run(code, &["--packs", "text", "--packs", "noise"]);
    assert_eq!((status, err.as_str()), (Some(0), "so far\n"));
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value[0], "creme-brulee");
    assert!(value[1].as_f64().is_some_and(|noise| noise.abs() <= 1.0), "{out}");
}

#[test]
fn modules_of_a_release_run() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let mut build = Command::new(env!("CARGO_BIN_EXE_packferry"));
    let built = build
        .args(["build", "text", "--out", out])
        .current_dir(packs())
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    let (status, out, err) = run(
        "import { slug } from '@packferry/text/slug';\nreturn { slug: slug('a b') };",
        &["--packs", out, "--package", "@packferry/text/slug"],
    );
    assert_eq!(
        (status, out.as_str(), err.as_str()),
        (Some(0), "{\"slug\":\"a-b\"}\n", "")
    );
}

#[test]
fn failures_are_told_apart() {
    let text = ["--packs", "text"];
    let (status, out, err) = run("import '@packferry/text/nope';", &text);
    assert_eq!((status, out.as_str()), (Some(1), ""));
    assert!(
        err.starts_with("script.js: Error: \"@packferry/text/nope\" is not a sandbox package"),
        "{err}"
    );

    let (status, _, err) = run(
        "import { slug } from '@packferry/text/slug';\n\nslug(Object.create(null));",
        &text,
    );
    assert_eq!(status, Some(1));
    assert!(err.starts_with("script.js: @packferry/text: TypeError: "), "{err}");
    assert!(err.contains("nodetool-sandbox:@packferry/text|sandbox/"), "{err}");
    assert!(err.contains("(script:3:"), "{err}");

    let (status, _, err) = run("return 1;", &["--packs", "text", "--package", "@packferry/nope"]);
    assert_eq!(status, Some(2));
    assert!(
        err.starts_with("packferry: Sandbox module @packferry/nope is not installed.\n"),
        "{err}"
    );

    let (status, _, err) = run("return 1;", &[]);
    assert_eq!(status, Some(2));
    assert!(err.contains("--packs"), "{err}");
}

#[test]
fn reports_are_json() {
    let json = ["--packs", "text", "--json"];
    let (status, out, err) = run("console.log('a', 'b');\nreturn [1];", &json);
    let report = r#"{"output":["a b"],"outputDropped":0,"value":[1]}"#;
    assert_eq!((status, out.trim_end(), err.as_str()), (Some(0), report, ""));
    let (status, out, _) = run(
        "import { slug } from '@packferry/text/slug';\nslug(Object.create(null));",
        &json,
    );
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((status, &report["error"]["pack"]), (Some(1), &"@packferry/text".into()));
}

#[test]
fn a_pack_at_fault_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let manifest = r#"{"name":"broken","nodetool":{"sandboxModules":[{"name":".","kind":"js","file":"index.js"}]}}"#;
    std::fs::write(dir.path().join("package.json"), manifest).unwrap();
    std::fs::write(dir.path().join("index.js"), "import 'fs';\n").unwrap();
    let (status, _, err) = run("import 'broken';", &["--packs", dir.path().to_str().unwrap()]);
    assert_eq!(status, Some(1));
    assert!(err.contains("import outside the pack: \"fs\""), "{err}");
    assert!(
        err.contains("\"broken\" is not a sandbox package this run serves"),
        "{err}"
    );
}

/// Numbers come back to the last bit.
#[test]
fn numbers_are_the_guests() {
    for number in [
        "0.44140004436035557",
        "5e-324",
        "1.7976931348623157e308",
        "0.1",
        "-1e-7",
        "9007199254740993",
    ] {
        let (status, out, err) = run(&format!("return {number};"), &["--packs", "text"]);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{number}");
        let same = out.trim().parse::<f64>().unwrap().to_bits() == number.parse::<f64>().unwrap().to_bits();
        assert!(same, "{number}: {out}");
    }
    assert_eq!(
        run("return 0.44140004436035557;", &["--packs", "text"]).1,
        "0.44140004436035557\n"
    );
}

#[test]
fn scripts_that_cannot_be_read() {
    for (script, says, help) in [
        (
            "nope.js",
            "cannot read nope.js: it does not exist",
            "See that the path is spelled right.",
        ),
        ("text", "cannot read text: it is a directory", "Name a file."),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_packferry"))
            .args(["run", script, "--packs", "text"])
            .current_dir(packs())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), err),
            (Some(2), format!("packferry: {says}\n  help: {help}\n"))
        );
    }
}
