//! Rules that need files: packs as rows, all judged by one `packferry check`, each with the codes it must come out with.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod command;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use command::packferry;
use serde_json::{Value, json};

/// A pack: its module rows, its internal files, its files, and the codes of its findings (SKILL.md aside).
struct Case {
    what: &'static str,
    nodetool: Value,
    files: Vec<(String, Vec<u8>)>,
    codes: Vec<&'static str>,
}

fn case(what: &'static str, nodetool: Value, files: &[(&str, &str)], codes: &[&'static str]) -> Case {
    Case {
        what,
        nodetool,
        files: files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_owned()))
            .collect(),
        codes: codes.to_vec(),
    }
}

/// The manifest of a pack whose root is `index.js`, with internal files.
fn internal(files: &[&str]) -> Value {
    json!({ "sandboxModules": [{ "name": ".", "kind": "js", "file": "index.js" }], "internal": files })
}

fn wasm(file: &str, pages: u64, exports: &Value) -> Value {
    json!({ "sandboxModules": [{ "name": ".", "kind": "wasm", "file": file, "memoryPagesMax": pages, "exports": exports }] })
}

fn write(top: &Path, cases: &[Case]) {
    for (n, case) in cases.iter().enumerate() {
        let dir = top.join(format!("{n}"));
        fs::create_dir(&dir).unwrap();
        let package = json!({ "name": format!("@case/p{n}"), "version": "1.0.0", "nodetool": case.nodetool });
        fs::write(dir.join("package.json"), package.to_string()).unwrap();
        for (path, bytes) in &case.files {
            let path = dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
}

/// Judges `cases` in one run, and gives what else that found.
fn check(cases: &[Case]) -> Value {
    let top = tempfile::tempdir().unwrap();
    write(top.path(), cases);
    let run = packferry(top.path(), &["check", "--json", "."]);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for row in report["diagnostics"].as_array().unwrap() {
        let n = row["directory"]
            .as_str()
            .unwrap()
            .trim_start_matches("./")
            .parse()
            .unwrap();
        if !row["code"].as_str().unwrap().starts_with("skill-") {
            found
                .entry(n)
                .or_default()
                .push(row["code"].as_str().unwrap().to_owned());
        }
    }
    let served = report["packs"].as_array().unwrap();
    for (n, case) in cases.iter().enumerate() {
        let mut codes = found.remove(&n).unwrap_or_default();
        codes.sort();
        let mut expected = case.codes.clone();
        expected.sort_unstable();
        assert_eq!(codes, expected, "{}", case.what);
        let is_served = served.iter().any(|pack| pack["name"] == format!("@case/p{n}"));
        let warnings = [
            "javascript-removed-global",
            "import-platform",
            "import-backslash",
            "export-not-loadable",
            "host-not-registered",
        ];
        let good = expected.iter().all(|code| warnings.contains(code));
        assert_eq!(is_served, good, "{}: a pack is served whole or not at all", case.what);
    }
    report
}

#[test]
fn imports_of_files() {
    let two = internal(&["lib/a.js"]);
    check(&[
        case(
            "declared",
            two.clone(),
            &[
                ("index.js", "import './lib/a.js'"),
                ("lib/a.js", "import '../index.js?'.length"),
            ],
            &["javascript-invalid"],
        ),
        case(
            "up and down",
            two.clone(),
            &[
                ("index.js", "export * from './lib/../lib/./a.js'"),
                ("lib/a.js", "export const x = 1"),
            ],
            &[],
        ),
        case(
            "backslashes, which NodeTool takes and the guest denies",
            two.clone(),
            &[
                ("index.js", "import './lib\\\\a.js'; export * from '.\\\\lib/a.js'"),
                ("lib/a.js", "export const x = 1"),
            ],
            &["import-backslash"; 2],
        ),
        case(
            "every form is checked",
            two.clone(),
            &[
                (
                    "index.js",
                    "import a from 'a'; import * as b from 'b'; export { c } from 'c'; export * from 'd'; export * as e from 'e'; import 'f'; import {} from 'g'",
                ),
                ("lib/a.js", ""),
            ],
            &["import-outside"; 7],
        ),
        case(
            "a file that nothing imports is inspected",
            two.clone(),
            &[("index.js", ""), ("lib/a.js", "import 'x'; require('y')")],
            &["import-outside", "javascript-require"],
        ),
        case(
            "present but not declared",
            internal(&[]),
            &[("index.js", "import './b.js'"), ("b.js", "")],
            &["import-undeclared"],
        ),
        case(
            "declared and missing: said once",
            two.clone(),
            &[("index.js", "import './lib/a.js'")],
            &["file-missing"],
        ),
        case(
            "text that looks like an import",
            internal(&[]),
            &[(
                "index.js",
                "// import 'x'\nconst s = \"import('x')\"; const o = { require() {} }; o.require(s)",
            )],
            &[],
        ),
        case(
            "an entry imports an entry",
            json!({ "sandboxModules": [
            { "name": "a", "kind": "js", "file": "a.js" }, { "name": "b", "kind": "js", "file": "b.js" }] }),
            &[("a.js", "import './b.js'"), ("b.js", "")],
            &[],
        ),
        case(
            "entries in a circle",
            json!({ "sandboxModules": [
            { "name": "a", "kind": "js", "file": "a.js" }, { "name": "b", "kind": "js", "file": "b.js" }] }),
            &[("a.js", "import './b.js'"), ("b.js", "export * from './a.js'")],
            &["import-cycle"],
        ),
        case(
            "two circles",
            internal(&["a.js", "b.js", "c.js"]),
            &[
                ("index.js", "import './a.js'"),
                ("a.js", "import './b.js'"),
                ("b.js", "import './a.js'"),
                ("c.js", "export {} from './c.js'"),
            ],
            &["import-cycle", "import-cycle"],
        ),
        case(
            "the platform capability",
            internal(&[]),
            &[(
                "index.js",
                "import '@nodetool-ai/sandbox-nodetool'; import '@nodetool-ai/sandbox-nodetool/x'",
            )],
            &["import-platform", "import-platform"],
        ),
        case(
            "a neighbour of the capability",
            internal(&[]),
            &[("index.js", "import '@nodetool-ai/sandbox-nodetools'")],
            &["import-outside"],
        ),
        case(
            "any extension may be a public module's",
            json!({ "sandboxModules": [{ "name": ".", "kind": "js", "file": "mod.txt" }] }),
            &[("mod.txt", "export default 1")],
            &[],
        ),
        case(
            "WASM imported by JavaScript",
            json!({ "sandboxModules": [
            { "name": ".", "kind": "js", "file": "index.js" },
            { "name": "w", "kind": "wasm", "file": "w.wasm", "memoryPagesMax": 0, "exports": ["f"] }] }),
            &[("index.js", "import './w.wasm'"), ("w.wasm", "")],
            &["import-not-js", "wasm-invalid"],
        ),
        case(
            "a global of another world at the top level",
            internal(&[]),
            &[("index.js", "setTimeout(() => 1)")],
            &["javascript-removed-global"],
        ),
    ]);
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let nodetool = json!({
        "apiVersion": 2,
        "sandboxModules": [
            { "name": "..", "kind": "js", "file": "named-badly.js" },
            { "name": "both", "kind": "js", "file": "both.js", "npm": "x" },
            { "name": "w", "kind": "wasm", "file": "w.wasm", "memoryPagesMax": 5000, "exports": ["f"] },
            { "name": "v", "kind": "wasm", "file": "v.wasm", "memoryPagesMax": 1, "exports": ["f", "f"] },
            { "name": "gone", "kind": "js", "file": "gone.js" },
            { "name": "dir", "kind": "js", "file": "dir" },
            { "name": "é", "kind": "js", "file": "é.js" },
        ],
        "internal": ["i.js", "../x.js", 3],
    });
    let files = [
        // Files of modules that are declared badly are still files of the pack: importing one is no second fault.
        ("named-badly.js", "import './both.js'; import './w.wasm'; import 'bare'"),
        ("both.js", "require('x')"),
        ("w.wasm", ""),
        ("v.wasm", ""),
        ("dir/x.js", ""),
        ("é.js", "import('x')"),
        ("i.js", "import './gone.js'; import './nowhere.js'"),
    ];
    check(&[case(
        "all of it",
        nodetool,
        &files,
        &[
            "api-version",
            "module-name",
            "module-source",
            "memory-pages",
            "duplicate-export",
            "duplicate-export",
            "file-missing",
            "file-unreadable",
            "module-name",
            "file-id-not-deliverable",
            "file-path",
            "manifest-shape",
            "import-not-js",
            "import-outside",
            "javascript-require",
            "javascript-dynamic-import",
            "import-undeclared",
            "wasm-invalid",
        ],
    )]);
}

#[test]
fn sizes_at_their_limits() {
    let script = |bytes: usize| " ".repeat(bytes).into_bytes();
    let full = 262_144;
    let many = |count: usize, more: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("f{n}.js")).collect();
        let mut files: Vec<(String, Vec<u8>)> = names.iter().map(|name| (name.clone(), script(full))).collect();
        files.push(("index.js".into(), script(full + more)));
        (
            json!({ "sandboxModules": [{ "name": ".", "kind": "js", "file": "index.js" }], "internal": names }),
            files,
        )
    };
    let sized = |what, bytes, codes: &[&'static str]| Case {
        what,
        nodetool: internal(&[]),
        files: vec![("index.js".into(), script(bytes))],
        codes: codes.to_vec(),
    };
    let binary = |what, bytes: usize, codes: &[&'static str]| Case {
        what,
        nodetool: wasm("w.wasm", 0, &json!(["f"])),
        files: vec![("w.wasm".into(), wasm_of(bytes))],
        codes: codes.to_vec(),
    };
    let (exact, exact_files) = many(31, 0);
    let (over, mut over_files) = many(31, 0);
    over_files.push(("one.js".into(), script(1)));
    let mut over_internal = over.clone();
    over_internal["internal"].as_array_mut().unwrap().push(json!("one.js"));
    check(&[
        sized("an empty file", 0, &[]),
        sized("JavaScript at the limit", full, &[]),
        sized("JavaScript over it", full + 1, &["file-too-large"]),
        binary("WASM at the limit", 4_194_304, &[]),
        binary("WASM over it", 4_194_305, &["file-too-large"]),
        Case {
            what: "a pack at the limit",
            nodetool: exact,
            files: exact_files,
            codes: vec![],
        },
        Case {
            what: "a pack over it",
            nodetool: over_internal,
            files: over_files,
            codes: vec!["pack-too-large"],
        },
    ]);
}

/// A module that exports `f`, made `bytes` long by a custom section.
/// Modules that all reach 16 files of the limit: 4,202,496 bytes for each of them, 255 of them within the limit of 1 GiB.
#[test]
fn graphs_at_their_limit() {
    let shared: Vec<String> = (0..16).map(|n| format!("{n}.js")).collect();
    let shared: Vec<&str> = shared.iter().map(String::as_str).collect();
    let all: String = shared.iter().map(|name| format!("import './{name}';")).collect();
    let with = |what, modules: usize, codes| {
        let entries: Vec<String> = (0..modules).map(|n| format!("m{n}")).collect();
        let rows: Vec<Value> = entries
            .iter()
            .map(|name| json!({ "name": name, "kind": "js", "file": name }))
            .collect();
        let mut files: Vec<(String, Vec<u8>)> = shared
            .iter()
            .map(|name| ((*name).to_owned(), vec![b' '; 262_144]))
            .collect();
        files.extend(entries.into_iter().map(|name| (name, all.clone().into_bytes())));
        Case {
            what,
            nodetool: json!({ "sandboxModules": rows, "internal": shared }),
            files,
            codes,
        }
    };
    check(&[
        with("255 modules", 255, vec![]),
        with("256 modules", 256, vec!["graphs-too-large"]),
    ]);
}

fn wasm_of(bytes: usize) -> Vec<u8> {
    let mut module = wat::parse_str(r#"(module (func (export "f")))"#).unwrap();
    let content = bytes - module.len() - 1 - 4;
    module.push(0);
    // The length as LEB128 of four bytes, then an empty name.
    module.extend((0..4).map(|n| ((content >> (7 * n)) & 0x7f) as u8 | if n < 3 { 0x80 } else { 0 }));
    module.resize(bytes, 0);
    module
}

#[test]
fn what_has_to_fit_the_wire() {
    let deep = |bytes: usize| {
        let file = format!("{}/{}.js", "d".repeat(200), "f".repeat(bytes - 204));
        let nodetool = json!({ "sandboxModules": [{ "name": ".", "kind": "js", "file": file }] });
        (nodetool, vec![(file, Vec::new())])
    };
    let (longest, longest_files) = deep(446);
    let (longer, longer_files) = deep(447);
    let named =
        |bytes: usize| json!({ "sandboxModules": [{ "name": "m".repeat(bytes), "kind": "js", "file": "index.js" }] });
    // 71 imports of ids of 100 bytes make a header of exactly 12,000.
    let importing = |last: usize| {
        let names: Vec<String> = (0..71)
            .map(|n| format!("{n:0>width$}.js", width = if n == 70 { last - 3 } else { 97 }))
            .collect();
        let text: String = names.iter().map(|name| format!("import './{name}';")).collect();
        let mut files: Vec<(String, Vec<u8>)> = names.iter().map(|name| (name.clone(), Vec::new())).collect();
        files.push(("index.js".into(), text.into_bytes()));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        (internal(&names), files)
    };
    let (header, header_files) = importing(100);
    let (header_over, header_over_files) = importing(101);
    let exporting = |bytes: usize| {
        let name = "n".repeat(bytes - r#"{"memoryPagesMax":0,"exports":[{"wasm":"","as":"f"}]}"#.len());
        let binary = wat::parse_str(format!(r#"(module (func (export "{name}")))"#)).unwrap();
        (
            wasm("w.wasm", 0, &json!([{ "wasm": name, "as": "f" }])),
            vec![("w.wasm".to_owned(), binary)],
        )
    };
    let (contract, contract_files) = exporting(12_000);
    let (contract_over, contract_over_files) = exporting(12_001);
    check(&[
        Case {
            what: "a file id of 446 bytes",
            nodetool: longest,
            files: longest_files,
            codes: vec![],
        },
        Case {
            what: "one more",
            nodetool: longer,
            files: longer_files,
            codes: vec!["module-id-too-long"],
        },
        case("a specifier of 512 bytes", named(503), &[("index.js", "")], &[]),
        case("one more", named(504), &[("index.js", "")], &["module-id-too-long"]),
        Case {
            what: "a header of 12,000 bytes",
            nodetool: header,
            files: header_files,
            codes: vec![],
        },
        Case {
            what: "one more",
            nodetool: header_over,
            files: header_over_files,
            codes: vec!["dependencies-too-long"],
        },
        Case {
            what: "a contract of 12,000 bytes",
            nodetool: contract,
            files: contract_files,
            codes: vec![],
        },
        Case {
            what: "one more",
            nodetool: contract_over,
            files: contract_over_files,
            codes: vec!["contract-too-long"],
        },
        case(
            "spaces and commas inside",
            internal(&["d/ a, b .js"]),
            &[("index.js", "import './d/ a, b .js'"), ("d/ a, b .js", "")],
            &[],
        ),
        case(
            "a space before",
            internal(&[" a.js"]),
            &[("index.js", ""), (" a.js", "")],
            &["file-id-not-deliverable"],
        ),
        case(
            "a space behind",
            json!({ "sandboxModules": [{ "name": ".", "kind": "js", "file": "a " }] }),
            &[("a ", "")],
            &["file-id-not-deliverable"],
        ),
        case(
            "no ASCII",
            internal(&["ä.js"]),
            &[("index.js", ""), ("ä.js", "")],
            &["file-id-not-deliverable"],
        ),
    ]);
}

#[test]
fn binaries_and_hosts() {
    let good = wat::parse_str(r#"(module (memory (export "m") 1 2) (func (export "f") (param i32 f64) (result f32) f32.const 0) (func (export "g")))"#).unwrap();
    let binary = |what, pages, exports: Value, codes: &[&'static str]| Case {
        what,
        nodetool: wasm("w.wasm", pages, &exports),
        files: vec![("w.wasm".into(), good.clone())],
        codes: codes.to_vec(),
    };
    let host = |what, id: &str, codes: &[&'static str]| {
        case(
            what,
            json!({ "sandboxModules": [{ "name": ".", "kind": "host", "host": id }] }),
            &[],
            codes,
        )
    };
    check(&[
        binary(
            "memory at its maximum; an export that is not declared",
            2,
            json!(["f"]),
            &[],
        ),
        binary("memory over it", 1, json!(["f"]), &["wasm-memory-too-large"]),
        binary(
            "several faults of one binary",
            1,
            json!(["m", "gone", { "wasm": "g", "as": "h" }]),
            &["wasm-memory-too-large", "wasm-export-kind", "wasm-export-missing"],
        ),
        host("no registry", "csv", &["host-not-registered"]),
        host("no registry, any id", "constructor", &["host-not-registered"]),
    ]);
}

/// A file may be called what the graph of a host entry calls its facade; its owner is the module that reaches it all the same.
#[test]
fn a_file_that_is_called_like_a_host_entry() {
    let top = tempfile::tempdir().unwrap();
    let modules =
        json!([{ "name": "a", "kind": "host", "host": "clock" }, { "name": "b", "kind": "js", "file": "host:clock" }]);
    let package = json!({ "name": "@a/clock", "nodetool": { "sandboxModules": modules } });
    fs::write(top.path().join("package.json"), package.to_string()).unwrap();
    fs::write(top.path().join("host:clock"), "").unwrap();
    let registry = "[[host]]\nid = \"clock\"\nowner = \"@a/clock\"\nexports = [\"now\"]\n";
    fs::write(top.path().join("packferry.toml"), registry).unwrap();
    let run = packferry(top.path(), &["check", "--json", "--config", "packferry.toml", "."]);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let pack = &report["packs"][0];
    assert_eq!(pack["modules"][1]["specifier"], "@a/clock/b");
    let graph = pack["modules"][1]["pinnedId"].as_str().unwrap();
    assert_eq!(pack["files"][0]["pinnedId"], format!("{graph}::host:clock"));
    assert_eq!(pack["files"].as_array().unwrap().len(), 1);
}

#[test]
fn hosts_with_a_registry() {
    let top = tempfile::tempdir().unwrap();
    let pack = |dir: &str, name: &str, host: &str| {
        let package = json!({ "name": name, "nodetool": { "sandboxModules": [{ "name": ".", "kind": "host", "host": host }, { "name": "again", "kind": "host", "host": host }] } });
        fs::create_dir(top.path().join(dir)).unwrap();
        fs::write(top.path().join(dir).join("package.json"), package.to_string()).unwrap();
    };
    fs::write(
        top.path().join("packferry.toml"),
        "[[host]]\nid = \"clock\"\nowner = \"@a/clock\"\nexports = [\"now\", \"later\"]\n",
    )
    .unwrap();
    pack("owner", "@a/clock", "clock");
    pack("other", "@b/clock", "clock");
    pack("case", "@A/clock", "clock");
    pack("unknown", "u", "constructor");
    let run = packferry(top.path(), &["check", "--json", "--config", "packferry.toml", "."]);
    assert_eq!(run.status, 1);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    let found: Vec<(&str, &str)> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["severity"] == "error")
        .map(|row| (row["pack"].as_str().unwrap(), row["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("@A/clock", "host-wrong-pack"),
            ("@A/clock", "host-wrong-pack"),
            ("@b/clock", "host-wrong-pack"),
            ("@b/clock", "host-wrong-pack"),
            ("u", "host-unknown"),
            ("u", "host-unknown"),
        ]
    );
    assert_eq!(report["packs"][0]["modules"][0]["exports"], json!(["later", "now"]));
    fs::write(top.path().join("packferry.toml"), "[[host]]\nid = 1\n").unwrap();
    let run = packferry(top.path(), &["check", "--config", "packferry.toml", "."]);
    assert!(
        run.status == 2 && run.err.contains("packferry.toml") && run.err.contains("[[host]]"),
        "{}",
        run.err
    );
}
