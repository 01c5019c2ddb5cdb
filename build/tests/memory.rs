//! The memory that a pack can make a command take, its child processes included: at most 256 MB, whether the pack is accepted or
//! refused. Sampled while the command runs.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const LIMIT_BYTES: u64 = 256_000_000;

/// A process and all processes that it started.
fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next).copied() {
        let threads = fs::read_dir(format!("/proc/{process}/task"))
            .into_iter()
            .flatten()
            .flatten();
        for thread in threads {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        }
        next += 1;
    }
    found
}

/// Bytes of memory of a process, pages that it shares counted in part.
fn bytes(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1_024
}

/// The most that a command and its children had at once, as far as it was seen.
fn peak(mut command: Child) -> u64 {
    let mut most = 0;
    while command.try_wait().unwrap().is_none() {
        most = most.max(tree(command.id()).into_iter().map(bytes).sum());
        thread::sleep(Duration::from_millis(2));
    }
    most
}

/// A pack with one module, and further files.
fn check(what: &str, module: Value, files: &[(&str, Vec<u8>)], command: &[&str]) {
    let top = tempfile::tempdir().unwrap();
    let pack = top.path().join("pack");
    for (path, content) in files {
        let path = pack.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let package = json!({ "name": "p", "nodetool": { "sandboxModules": [module] } });
    fs::write(pack.join("package.json"), package.to_string()).unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_packferry"))
        .args(command)
        .current_dir(top.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let most = peak(child);
    assert!(most > 1_000_000, "{what}: nothing was seen");
    assert!(most <= LIMIT_BYTES, "{what}: {most} bytes");
}

const CHECK: &[&str] = &["check", "pack"];
const BUILD: &[&str] = &["build", "pack", "--out", "release"];

#[test]
fn javascript_of_the_limit() {
    let module = json!({ "name": ".", "kind": "js", "file": "a.js" });
    for part in ["((", "[[", "a=>", "a:", "()=>a;", "@a "] {
        let text = part.repeat(262_144 / part.len());
        check(part, module.clone(), &[("a.js", text.into_bytes())], CHECK);
    }
}

#[test]
fn wasm_of_the_limit() {
    let module = json!({ "name": ".", "kind": "wasm", "file": "a.wasm", "memoryPagesMax": 16, "exports": ["f"] });
    let functions = format!("(module (func (export \"f\")){})", "(func)".repeat(200_000));
    let blocks = format!(
        "(module (func (export \"f\") {}{}))",
        "block ".repeat(200_000),
        "end ".repeat(200_000)
    );
    for (what, text) in [("functions", functions), ("blocks", blocks)] {
        let binary = wat::parse_str(text).unwrap();
        assert!(binary.len() <= 4_194_304);
        check(what, module.clone(), &[("a.wasm", binary)], CHECK);
    }
}

#[test]
fn libraries_beyond_the_limit() {
    let module = json!({ "name": ".", "kind": "js", "npm": "lib" });
    let (package, library) = ("node_modules/lib/package.json", "node_modules/lib/index.js");
    for (what, text) in [
        ("many statements", format!("export let a;{}", "a=[];".repeat(2_000_000))),
        (
            "a bundle of the limit",
            format!("export let a;{}", "a=[];".repeat(100_000)),
        ),
        (
            "a heap that is filled",
            "const a = []; for (;;) a.push(new Array(1000).fill(a)); export default a;".to_owned(),
        ),
    ] {
        let name = json!({ "name": "lib", "version": "1.0.0" }).to_string();
        check(
            what,
            module.clone(),
            &[(package, name.into_bytes()), (library, text.into_bytes())],
            BUILD,
        );
    }
}
