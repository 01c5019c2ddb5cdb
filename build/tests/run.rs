//! `packferry run` below the command line: which modules a script gets, and what it reports.

#![expect(clippy::unwrap_used, reason = "tests")]

mod sample;

use std::path::Path;

use packferry::guest_process::{GuestProcess, ScriptOutcome};
use packferry::run::{failure_text, read_script, run};
use packferry_core::id::Specifier;
use packferry_core::manifest::Unavailable;
use serde_json::{Value, json};

/// Result or failure of `code` over two packs, one of which throws when it is asked to; faults as text, too.
fn check(code: &str, packages: &[&str], expected: Result<Value, &str>) {
    let dir = tempfile::tempdir().unwrap();
    let packs = [
        sample::pack(
            "@acme/geo",
            "1.0.0",
            "export const far = (a, b) => (b - a) * 111;\nexport const fail = () => { null.x; };\n",
        ),
        sample::pack("plain", "1.0.0", "import \"@acme/geo\";\nexport const one = 1;\n"),
    ];
    let mut release = sample::write_release(dir.path(), &packs);
    release.packs[0].unavailable.push(Unavailable {
        specifier: Specifier::parse("@acme/geo/npm").unwrap(),
        code: "npm-module-probe-failed".to_owned(),
    });
    let packages: Vec<String> = packages.iter().map(|name| (*name).to_owned()).collect();
    let guest = GuestProcess::new(Path::new(env!("CARGO_BIN_EXE_packferry")));
    let found = match run(code, &release, &packages, &guest) {
        Ok(ScriptOutcome { result, .. }) => result.map_err(|failure| failure_text(&failure)),
        Err(fault) => Err(fault.to_string()),
    };
    let same = match (&found, &expected) {
        (Ok(found), Ok(expected)) => found == expected,
        (Err(found), Err(expected)) => found.starts_with(expected),
        _ => false,
    };
    assert!(same, "{code}: {found:?}, not {expected:?}");
}

#[test]
fn scripts_get_what_they_declare_or_import() {
    let far = "import { far } from '@acme/geo';\nreturn { far: far(1, 3) };";
    check(far, &[], Ok(json!({ "far": 222 })));
    check(far, &["@acme/geo"], Ok(json!({ "far": 222 })));
    check(far, &["@acme/geo", "@acme/geo"], Ok(json!({ "far": 222 })));
    check("return 1;", &["@acme/geo"], Ok(json!(1)));
    check("return;", &[], Ok(json!(null)));
    check(
        far,
        &["plain"],
        Err("Error: \"@acme/geo\" is not a sandbox package this run serves"),
    );
    check(
        "import 'nope';",
        &[],
        Err("Error: \"nope\" is not a sandbox package this run serves"),
    );
    check("return 1;", &["nope"], Err("Sandbox module nope is not installed."));
    check(
        "return 1;",
        &["@acme/geo/npm"],
        Err("Sandbox module @acme/geo/npm is not available (npm-module-probe-failed)."),
    );
    check(
        "import '@acme/geo/npm';",
        &[],
        Err("Sandbox module @acme/geo/npm is not available (npm-module-probe-failed)."),
    );
}

#[test]
fn failures_name_the_pack() {
    check(
        "import { fail } from '@acme/geo';\nfail();",
        &[],
        Err("@acme/geo: TypeError: cannot read property"),
    );
    check(
        "import { one } from 'plain';\nreturn one;",
        &[],
        Err("plain: Error: \"@acme/geo\" is not a sandbox package"),
    );
    check(
        "import { one } from 'plain';\nreturn one;",
        &["plain", "@acme/geo"],
        Ok(json!(1)),
    );
    check("null.x;", &[], Err("TypeError: cannot read property"));
    check("return (", &[], Err("SyntaxError: "));
    check("for (;;);", &[], Err("interrupted: the code ran longer than 5000 ms"));
}

#[test]
fn scripts_are_read_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let path = camino::Utf8Path::from_path(dir.path()).unwrap().join("script.js");
    assert!(read_script(&path).unwrap_err().to_string().contains("script.js"));
    std::fs::write(&path, " ".repeat(262_144)).unwrap();
    assert_eq!(read_script(&path).unwrap().len(), 262_144);
    std::fs::write(&path, " ".repeat(262_145)).unwrap();
    assert!(
        read_script(&path)
            .unwrap_err()
            .to_string()
            .ends_with("a script may have 262144 bytes")
    );
    std::fs::write(&path, [0xff]).unwrap();
    assert!(read_script(&path).unwrap_err().to_string().ends_with("it is not UTF-8"));
}
