//! Packs that are as large as their authors could make them: bounded memory, whatever they declare.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

/// Kilobytes that a run may have.
const MEMORY_KB: u32 = 256 << 10;

fn check(pack: &Path) -> Output {
    let bounded = format!("ulimit -d {MEMORY_KB}; exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args([
        "-c",
        &bounded,
        env!("CARGO_BIN_EXE_packferry"),
        "check",
        "--no-cache",
        "--json",
    ]);
    command.arg(pack).output().unwrap()
}

/// A pack of `modules` modules, each over one and the same chain of `files` files.
fn pack_over_a_chain(modules: usize, files: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let mut declared = Vec::new();
    for module in 0..modules {
        write(&format!("m{module}.js"), "import './c0.js';\n");
        declared.push(json!({ "name": format!("m{module}"), "kind": "js", "file": format!("m{module}.js") }));
    }
    let mut internal = Vec::new();
    for file in 0..files {
        let mut text = String::new();
        if file + 1 < files {
            writeln!(text, "import './c{}.js';", file + 1).unwrap();
        }
        write(&format!("c{file}.js"), &text);
        internal.push(format!("c{file}.js"));
    }
    let manifest = json!({ "name": "@t/chain", "nodetool": { "internal": internal, "sandboxModules": declared } });
    write("package.json", &manifest.to_string());
    folder
}

#[test]
fn graphs_over_the_same_files_are_held_one_at_a_time() {
    let pack = pack_over_a_chain(1_300, 1_300);
    let output = check(pack.path());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let modules = report["packs"][0]["modules"].as_array().map(Vec::len);
    assert_eq!((output.status.code(), modules), (Some(0), Some(1_300)), "{output:?}");
}

/// Codes of the errors that are found about a pack, each once.
fn errors(pack: &Path) -> Vec<String> {
    let output = check(pack);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let rows = report["diagnostics"].as_array().unwrap_or_else(|| panic!("{output:?}"));
    let errors = rows.iter().filter(|row| row["severity"] == "error");
    let mut codes: Vec<String> = errors.map(|row| row["code"].as_str().unwrap().to_owned()).collect();
    codes.dedup();
    codes
}

#[test]
fn names_times_modules_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let names = (0..20_000).map(|n| format!("n{n}")).collect::<Vec<_>>().join(",");
    write("names.js", &format!("export let {names};\n"));
    let mut declared = Vec::new();
    for module in 0..200 {
        write(&format!("m{module}.js"), "export * from './names.js';\n");
        declared.push(json!({ "name": format!("m{module}"), "kind": "js", "file": format!("m{module}.js") }));
    }
    let manifest = json!({ "name": "@t/names", "nodetool": { "internal": ["names.js"], "sandboxModules": declared } });
    write("package.json", &manifest.to_string());
    assert_eq!(errors(folder.path()), ["manifest-entry-too-large"]);
}
