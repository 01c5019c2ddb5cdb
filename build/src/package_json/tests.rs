//! Cases of package.json: its text, and the codes with the text that each one points at.

use packferry_core::canonical;
use packferry_core::payload::Declaration;
use proptest::prelude::*;

use super::*;
use crate::discover::Standing;

fn dir(named: bool) -> PackDir {
    PackDir {
        shown: "packs/folder".into(),
        real: "/nowhere/packs/folder".into(),
        named,
        standing: Standing::Installed,
        staged: None,
    }
}

/// Codes with what they point at, in the order of finding; `not a pack` for silence.
fn verdict(bytes: &[u8]) -> Vec<(&'static str, String)> {
    let findings = match parse(&dir(true), bytes) {
        Outcome::NotAPack => return vec![("not a pack", String::new())],
        Outcome::Refused { findings, .. } => findings,
        Outcome::Pack(pack) => pack.findings.into_vec(),
    };
    let pointed = |finding: &Diagnostic| {
        let location = finding.location.as_ref()?;
        let text = location.text.as_ref()?;
        location.span.clone().and_then(|span| text.get(span)).map(str::to_owned)
    };
    findings
        .iter()
        .map(|finding| (finding.rule.code, pointed(finding).unwrap_or_default()))
        .collect()
}

fn check(what: &str, text: &str, expected: &[(&str, &str)]) {
    let found = verdict(text.as_bytes());
    let found: Vec<(&str, &str)> = found.iter().map(|(code, text)| (*code, text.as_str())).collect();
    assert_eq!(found, expected, "{what}: {text}");
}

fn package(nodetool: &str) -> String {
    format!(r#"{{"name": "@a/p", "version": "1.0.0", "nodetool": {nodetool}}}"#)
}

fn with_module(module: &str) -> String {
    package(&format!(r#"{{"sandboxModules": [{module}]}}"#))
}

/// A module with one key replaced.
fn js(key: &str, value: &str) -> String {
    let keys = [("name", r#"".""#), ("kind", r#""js""#), ("file", r#""a.js""#)];
    with_module(&object(&keys, key, value))
}

fn wasm(key: &str, value: &str) -> String {
    let keys = [
        ("name", r#"".""#),
        ("kind", r#""wasm""#),
        ("file", r#""a.wasm""#),
        ("memoryPagesMax", "8"),
        ("exports", r#"["f"]"#),
    ];
    with_module(&object(&keys, key, value))
}

fn object(keys: &[(&str, &str)], key: &str, value: &str) -> String {
    let mut members: Vec<(&str, &str)> = keys.iter().filter(|(known, _)| *known != key).copied().collect();
    members.push((key, value));
    let members: Vec<String> = members
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| format!("{key:?}: {value}"))
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// Codes with what they point at.
type Expected<'a> = &'a [(&'a str, &'a str)];

const GOOD: Expected<'_> = &[];
const NOT_A_PACK: Expected<'_> = &[("not a pack", "")];

#[test]
fn what_is_a_pack() {
    let cases: &[(&str, &str, Expected<'_>)] = &[
        ("no nodetool", r#"{"name": "p"}"#, NOT_A_PACK),
        ("nodetool null", r#"{"name": "p", "nodetool": null}"#, NOT_A_PACK),
        (
            "nodetool an array",
            r#"{"name": "p", "nodetool": [{"sandboxModules": 1}]}"#,
            NOT_A_PACK,
        ),
        ("nodetool a string", r#"{"name": "p", "nodetool": "x"}"#, NOT_A_PACK),
        ("no modules", r#"{"nodetool": {"nodes": []}}"#, NOT_A_PACK),
        (
            "empty list",
            r#"{"name": "p", "nodetool": {"sandboxModules": []}}"#,
            NOT_A_PACK,
        ),
        (
            "empty list, odd name",
            r#"{"name": "a b", "nodetool": {"sandboxModules": []}}"#,
            NOT_A_PACK,
        ),
        (
            "empty list, odd version",
            r#"{"name": "p", "version": "é", "nodetool": {"sandboxModules": []}}"#,
            NOT_A_PACK,
        ),
        (
            "empty list, half a pair",
            r#"{"name": "p", "x": "\ud800", "nodetool": {"sandboxModules": []}}"#,
            NOT_A_PACK,
        ),
        ("half a pair, no pack", r#"{"x": "\ud800"}"#, NOT_A_PACK),
        (
            "empty list, no name",
            r#"{"nodetool": {"sandboxModules": []}}"#,
            &[("pack-name-missing", "{")],
        ),
        (
            "empty list, api 2",
            r#"{"name": "p", "nodetool": {"apiVersion": 2, "sandboxModules": []}}"#,
            &[("api-version", "2")],
        ),
        (
            "empty list, internal files that no pack may have",
            &package(r#"{"sandboxModules": [], "internal": ["i.mjs", "a.js", "./a.js", "a//b.js", "."]}"#),
            NOT_A_PACK,
        ),
        (
            "empty list, internal strings that no manifest may have",
            &package(r#"{"sandboxModules": [], "internal": ["../a.js", "a.js", "a.js", 1]}"#),
            &[
                ("file-path", r#""../a.js""#),
                ("duplicate-internal", r#""a.js""#),
                ("manifest-shape", "1"),
            ],
        ),
        (
            "modules null",
            &package(r#"{"sandboxModules": null}"#),
            &[("manifest-shape", "null")],
        ),
        (
            "modules an object",
            &package(r#"{"sandboxModules": {"0": 1}}"#),
            &[("manifest-shape", "{")],
        ),
        ("an array", "[]", &[("package-json-invalid", "[")]),
        ("a string", "\"x\"", &[("package-json-invalid", "\"")]),
        ("not JSON", "{ nodetool: 1 }", &[("package-json-invalid", "")]),
        ("byte order mark", "\u{feff}{}", &[("package-json-invalid", "")]),
        ("empty", "", &[("package-json-invalid", "")]),
        (
            "other keys are not looked at",
            &package(
                r#"{"nodes": 3, "register": null, "sandboxModules": [{"name": ".", "kind": "js", "file": "a.js"}]}"#,
            ),
            GOOD,
        ),
        (
            "the last of two keys counts",
            r#"{"name": "@a/p", "nodetool": {"sandboxModules": 1}, "nodetool": {"sandboxModules": [], "sandboxModules": [{"name": "x", "name": ".", "kind": "js", "file": "a.js"}]}}"#,
            GOOD,
        ),
        (
            "an escaped key is the key",
            &package(r#"{"sandbox\u004dodules": [{"n\u0061me": ".", "kind": "\u006as", "file": "a.js"}]}"#),
            GOOD,
        ),
        (
            "odd numbers elsewhere",
            r#"{"x": 1e999, "y": -0, "z": 123456789012345678901234567890, "name": "p", "nodetool": {"n": 1E400, "sandboxModules": [{"name": ".", "kind": "js", "file": "a.js"}]}}"#,
            GOOD,
        ),
    ];
    for (what, text, expected) in cases {
        check(what, text, expected);
    }
    let deep = format!(
        r#"{{"x": {}{}, "name": "p", "nodetool": {{"sandboxModules": [{{"name": ".", "kind": "js", "file": "a.js"}}]}}}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(verdict(deep.as_bytes()), []);
}

#[test]
fn names_and_versions() {
    let named = |name: &str| {
        format!(
            r#"{{"name": {name}, "nodetool": {{"sandboxModules": [{{"name": ".", "kind": "js", "file": "a.js"}}]}}}}"#
        )
    };
    let digest = "0123456789abcdef".repeat(4);
    let good = [
        "p",
        "@a/p",
        "Mixed_Case.pack~1",
        "@A/B",
        "...",
        "@.../...",
        "-",
        ".x",
        "manifest.json5",
    ];
    for name in good.iter().map(|name| (*name).to_owned()).chain([
        digest.to_uppercase(),
        digest[1..].to_owned(),
        format!("@a/{digest}"),
    ]) {
        check(&name, &named(&format!("{name:?}")), GOOD);
    }
    for name in [
        r#""""#,
        r#""a b""#,
        r#""a/b""#,
        r#""@a/b/c""#,
        r#""@a""#,
        r#""é""#,
        r#""a\n""#,
    ] {
        check(name, &named(name), &[("pack-name-invalid", name)]);
    }
    for name in [
        ".",
        "..",
        "@./a",
        "@../a",
        "@a/.",
        "@a/..",
        "node_modules",
        ".npm",
        ".bin",
        ".cache",
        "manifest.json",
        "staging.json",
        &digest,
    ] {
        let name = format!("{name:?}");
        check(&name, &named(&name), &[("pack-name-reserved", name.as_str())]);
    }
    for name in ["1", "null", "{}", "[\"p\"]"] {
        let found = verdict(named(name).as_bytes());
        assert_eq!(found, [("pack-name-missing", name.to_owned())]);
    }
    let versioned = |version: &str| {
        format!(
            r#"{{"name": "p", "version": {version}, "nodetool": {{"sandboxModules": [{{"name": ".", "kind": "js", "file": "a.js"}}]}}}}"#
        )
    };
    for version in [r#""""#, r#""1.0.0""#, r#""a b, c""#, "1", "null", "{}"] {
        check(version, &versioned(version), GOOD);
    }
    for version in [
        r#""1.0.0-β""#,
        r#""é""#,
        r#"" 1""#,
        r#""1 ""#,
        r#""1\n""#,
        r#""\u007f""#,
    ] {
        check(version, &versioned(version), &[("version-not-deliverable", version)]);
    }
    let long = |characters: usize| format!("\"{}\"", "1".repeat(characters));
    check("the longest version", &versioned(&long(256)), GOOD);
    for characters in [257, 100_000] {
        let version = long(characters);
        check(
            "a long version",
            &versioned(&version),
            &[("version-not-deliverable", &version)],
        );
    }
}

#[test]
fn text_that_is_not_unicode() {
    let pair = js("name", r#"".""#).replace("1.0.0", r"\ud83d\ude00");
    check(
        "a pair is a character, but no version",
        &pair,
        &[("version-not-deliverable", r#""\ud83d\ude00""#)],
    );
    let elsewhere = js("name", r#"".""#).replacen('{', r#"{"x": {"\udead": 1}, "#, 1);
    check(
        "half a pair anywhere",
        &elsewhere,
        &[("package-json-not-unicode", r"\udead")],
    );
    let in_file = js("file", r#""\ud800.js""#);
    check(
        "half a pair in a file string",
        &in_file,
        &[("package-json-not-unicode", r"\ud800")],
    );
    let mut latin1 = js("name", r#"".""#)
        .replacen('{', r#"{"author": "Ren", "#, 1)
        .into_bytes();
    let at = latin1.windows(4).position(|w| w == b"Ren\"").unwrap() + 3;
    latin1.insert(at, 0xe9);
    assert_eq!(verdict(&latin1), [("package-json-not-unicode", String::new())]);
    assert_eq!(verdict(b"{\"author\": \"Ren\xe9\"}"), [("not a pack", String::new())]);
}

#[test]
fn api_versions() {
    let api = |version: &str| {
        package(&format!(
            r#"{{"apiVersion": {version}, "sandboxModules": [{{"name": ".", "kind": "js", "file": "a.js"}}]}}"#
        ))
    };
    for version in ["1", "1.0", "1e0", "10E-1", "0.1e1", "1.00000000000000000001"] {
        check(version, &api(version), GOOD);
    }
    for version in ["2", "\"1\"", "null", "0", "1.5", "-1", "true", "[1]"] {
        let pointed = version;
        check(version, &api(version), &[("api-version", pointed)]);
    }
}

#[test]
fn modules_in_general() {
    let cases: &[(&str, String, Expected<'_>)] = &[
        ("not an object", with_module("3"), &[("manifest-shape", "3")]),
        ("null", with_module("null"), &[("manifest-shape", "null")]),
        (
            "empty",
            with_module("{}"),
            &[("manifest-shape", "{"), ("module-kind", "{")],
        ),
        ("no kind", js("kind", ""), &[("module-kind", "{")]),
        ("unknown kind", js("kind", r#""JS""#), &[("module-kind", r#""JS""#)]),
        ("kind a number", js("kind", "1"), &[("module-kind", "1")]),
        ("kind null", js("kind", "null"), &[("module-kind", "null")]),
        (
            "unknown key",
            js("description", "1"),
            &[("manifest-unknown-key", r#""description""#)],
        ),
        (
            "a key of another kind",
            js("limits", "{}"),
            &[("manifest-unknown-key", r#""limits""#)],
        ),
        (
            "__proto__ is a key",
            js("__proto__", "{}"),
            &[("manifest-unknown-key", r#""__proto__""#)],
        ),
        ("no name", js("name", ""), &[("manifest-shape", "{")]),
        ("name null", js("name", "null"), &[("manifest-shape", "null")]),
        ("no file and no npm", js("file", ""), &[("module-source", "{")]),
        ("both", js("npm", r#""x""#), &[("module-source", "{")]),
        (
            "both, one null",
            js("npm", "null"),
            &[("manifest-shape", "null"), ("module-source", "{")],
        ),
        ("file null", js("file", "null"), &[("manifest-shape", "null")]),
        (
            "host without host",
            with_module(r#"{"name": ".", "kind": "host"}"#),
            &[("manifest-shape", "{")],
        ),
        (
            "host with file",
            with_module(r#"{"name": ".", "kind": "host", "host": "csv", "file": "a.js"}"#),
            &[("manifest-unknown-key", r#""file""#)],
        ),
        (
            "all at once",
            with_module(r#"{"name": "..", "kind": "js", "file": "/x", "x": 1}, {"name": "a", "kind": "wasm"}"#),
            &[
                ("module-name", r#""..""#),
                ("manifest-unknown-key", r#""x""#),
                ("file-path", r#""/x""#),
                ("manifest-shape", "{"),
                ("manifest-shape", "{"),
                ("manifest-shape", "{"),
            ],
        ),
    ];
    for (what, text, expected) in cases {
        check(what, text, expected);
    }
}

#[test]
fn module_names_files_and_packages() {
    for name in [".", "...", ".x", "-d", "Sub.Path-1_x", "node_modules2"] {
        check(name, &js("name", &format!("{name:?}")), GOOD);
    }
    for name in [
        r#""""#,
        r#""..""#,
        r#""node_modules""#,
        r#""a/b""#,
        r#""a b""#,
        r#""é""#,
        r#""a~""#,
        r#""a\n""#,
    ] {
        check(name, &js("name", name), &[("module-name", name)]);
    }
    for file in [
        "a.js",
        "./s/./a.js",
        "s/..two.js",
        "s/x./y.js",
        "100%.js",
        "a%20b.js",
        "%2",
        "c::d.js",
        "a b,c.js",
        "q?x#y.js",
        "...",
        "é.js",
    ] {
        check(file, &js("file", &format!("{file:?}")), GOOD);
    }
    let bad = [
        r#""""#,
        r#"".""#,
        r#""./.""#,
        r#""..""#,
        r#""/a.js""#,
        r#""../a.js""#,
        r#""a/../b.js""#,
        r#""a/..""#,
        r#""a\\b.js""#,
        r#""..\\a.js""#,
        r#""a//b.js""#,
        r#""a/""#,
        r#""./""#,
        r#""a\u0000.js""#,
        r#""a\n.js""#,
        r#""a\u007f.js""#,
        r#""a\u001f.js""#,
        r#""%2e/a.js""#,
        r#""%2E%2e/a.js""#,
        r#""a%2fb.js""#,
        r#""a%5Cb.js""#,
    ];
    for file in bad {
        check(file, &js("file", file), &[("file-path", file)]);
        let internal = package(&format!(
            r#"{{"sandboxModules": [{{"name": ".", "kind": "js", "file": "m.js"}}], "internal": [{file}]}}"#
        ));
        check(file, &internal, &[("file-path", file)]);
    }
    let npm = |npm: &str| with_module(&format!(r#"{{"name": ".", "kind": "js", "npm": {npm}}}"#));
    for name in ["x", "@a/x", "Lib.js", "~", "...", "@a/.."] {
        check(name, &npm(&format!("{name:?}")), GOOD);
    }
    for name in [
        r#""""#,
        r#"".""#,
        r#""..""#,
        r#""x/y""#,
        r#""@a""#,
        r#""@a/b/c""#,
        r#""x@1""#,
        r#""%2e""#,
        r#""a b""#,
        r#""x\n""#,
        r#""é""#,
    ] {
        check(name, &npm(name), &[("npm-name", name)]);
    }
    let host = |host: &str| with_module(&format!(r#"{{"name": ".", "kind": "host", "host": {host}}}"#));
    for id in ["a", "csv", "a-1-", "constructor", &"a".repeat(64)] {
        check(id, &host(&format!("{id:?}")), GOOD);
    }
    for id in [
        r#""""#.to_owned(),
        r#""1a""#.into(),
        r#""-a""#.into(),
        r#""A""#.into(),
        r#""a_b""#.into(),
        r#""é""#.into(),
        format!("{:?}", "a".repeat(65)),
    ] {
        check(&id, &host(&id), &[("host-id", id.as_str())]);
    }
}

#[test]
fn wasm_modules() {
    for pages in ["0", "8", "4096", "4.0", "1e3", "-0", "4096.00000000000000001"] {
        check(pages, &wasm("memoryPagesMax", pages), GOOD);
    }
    for pages in ["-1", "4097", "1.5", "1e400", "null", "\"8\"", "true"] {
        check(pages, &wasm("memoryPagesMax", pages), &[("memory-pages", pages)]);
    }
    for missing in ["file", "memoryPagesMax", "exports"] {
        check(missing, &wasm(missing, ""), &[("manifest-shape", "{")]);
    }
    for exports in [
        r#"["f", "g"]"#,
        r#"["async", "of", "undefined", "$_1", "_call"]"#,
        r#"[{"wasm": "a b", "as": "f"}]"#,
        r#"["f", {"wasm": "g", "as": "h"}]"#,
        r#"[{"as": "f", "wasm": "\"\\"}]"#,
    ] {
        check(exports, &wasm("exports", exports), GOOD);
    }
    let cases: &[(&str, &[(&str, &str)])] = &[
        ("[]", &[("exports-empty", "[]")]),
        ("{}", &[("manifest-shape", "{")]),
        ("null", &[("manifest-shape", "null")]),
        ("[1]", &[("manifest-shape", "1")]),
        ("[null]", &[("manifest-shape", "null")]),
        (r#"[""]"#, &[("export-identifier", r#""""#)]),
        (r#"["1a"]"#, &[("export-identifier", r#""1a""#)]),
        (r#"["a-b"]"#, &[("export-identifier", r#""a-b""#)]),
        (r#"["é"]"#, &[("export-identifier", r#""é""#)]),
        (
            r#"["arguments", {"wasm": "f", "as": "eval"}, "__call"]"#,
            &[
                ("export-not-loadable", r#""arguments""#),
                ("export-not-loadable", r#""eval""#),
                ("export-not-loadable", r#""__call""#),
            ],
        ),
        (r#"["default"]"#, &[("export-identifier", r#""default""#)]),
        (
            r#"["f", "f"]"#,
            &[("duplicate-export", r#""f""#), ("duplicate-export", r#""f""#)],
        ),
        (
            r#"["f", {"wasm": "g", "as": "f"}]"#,
            &[("duplicate-export", r#"{"wasm": "g", "as": "f"}"#)],
        ),
        (
            r#"["f", {"wasm": "f", "as": "g"}]"#,
            &[("duplicate-export", r#"{"wasm": "f", "as": "g"}"#)],
        ),
        (r#"[{"wasm": "f"}]"#, &[("manifest-shape", "{")]),
        (r#"[{"as": "f"}]"#, &[("manifest-shape", "{")]),
        (
            r#"[{"wasm": "f", "as": "f", "x": 1}]"#,
            &[("manifest-unknown-key", r#""x""#)],
        ),
        (r#"[{"wasm": "", "as": "f"}]"#, &[("export-name", r#""""#)]),
        (
            r#"[{"wasm": "a\u0000", "as": "f"}]"#,
            &[("export-name", r#""a\u0000""#)],
        ),
        (
            r#"[{"wasm": "a\u007f", "as": "f"}]"#,
            &[("export-name", r#""a\u007f""#)],
        ),
        (r#"[{"wasm": "π", "as": "pi"}]"#, &[("export-name", r#""π""#)]),
        (r#"[{"wasm": 1, "as": "f"}]"#, &[("manifest-shape", "1")]),
        (
            r#"[{"wasm": "f", "as": "public"}]"#,
            &[("export-identifier", r#""public""#)],
        ),
        (
            r#"[{"wasm": "", "as": "1"}, 2]"#,
            &[
                ("export-name", r#""""#),
                ("export-identifier", r#""1""#),
                ("manifest-shape", "2"),
            ],
        ),
    ];
    for (exports, expected) in cases {
        check(exports, &wasm("exports", exports), expected);
    }
}

#[test]
fn call_limits() {
    for limits in [
        "{}",
        r#"{"callTimeoutMs": 5000, "callConcurrency": 2, "callsPerInvocation": 256, "wallClockMs": 30000}"#,
        r#"{"wallClockMs": 1, "callTimeoutMs": 2.5e2}"#,
    ] {
        check(limits, &wasm("limits", limits), GOOD);
    }
    for limits in ["null", "1", "\"x\""] {
        check(limits, &wasm("limits", limits), &[("manifest-shape", limits)]);
    }
    check("an array", &wasm("limits", "[]"), &[("manifest-shape", "[")]);
    check(
        "unknown",
        &wasm("limits", r#"{"poolSize": 1}"#),
        &[("manifest-unknown-key", r#""poolSize""#)],
    );
    for (key, ceiling) in [
        ("callTimeoutMs", 5000),
        ("callConcurrency", 2),
        ("callsPerInvocation", 256),
        ("wallClockMs", 30000),
    ] {
        for value in ["0", "-1", "1.5", "null", "\"1\"", "1e999", &(ceiling + 1).to_string()] {
            check(
                value,
                &wasm("limits", &format!(r#"{{"{key}": {value}}}"#)),
                &[("call-limit", value)],
            );
        }
    }
}

#[test]
fn what_parts_must_not_share() {
    let manifest = |modules: &[(&str, &str)], internal: &str| {
        let modules: Vec<String> = modules
            .iter()
            .map(|(name, file)| format!(r#"{{"name": {name:?}, "kind": "js", "file": {file:?}}}"#))
            .collect();
        package(&format!(
            r#"{{"sandboxModules": [{}], "internal": {internal}}}"#,
            modules.join(", ")
        ))
    };
    let one: &[(&str, &str)] = &[(".", "a.js")];
    let cases: &[(&str, String, Expected<'_>)] = &[
        (
            "fine",
            manifest(&[(".", "a.js"), ("A", "b.js"), ("a", "A.js")], r#"["i.js", "I.js"]"#),
            GOOD,
        ),
        (
            "one name twice",
            manifest(&[(".", "a.js"), (".", "b.js")], "[]"),
            &[("duplicate-module", r#"".""#)],
        ),
        (
            "one file twice",
            manifest(&[(".", "a.js"), ("b", "a.js")], "[]"),
            &[("duplicate-file", r#""a.js""#)],
        ),
        (
            "one id twice",
            manifest(&[(".", "a.js"), ("b", "./a.js")], "[]"),
            &[("duplicate-file", r#""./a.js""#)],
        ),
        (
            "internal twice",
            manifest(one, r#"["i.js", "i.js"]"#),
            &[("duplicate-internal", r#""i.js""#)],
        ),
        (
            "internal id twice",
            manifest(one, r#"["i.js", "./i.js", "i.js/."]"#),
            &[("duplicate-file", r#""./i.js""#), ("duplicate-file", r#""i.js/.""#)],
        ),
        (
            "internal is public",
            manifest(one, r#"["a.js"]"#),
            &[("internal-is-public", r#""a.js""#)],
        ),
        (
            "internal id is public",
            manifest(one, r#"["./a.js"]"#),
            &[("internal-is-public", r#""./a.js""#)],
        ),
        (
            "internal no .js",
            manifest(one, r#"["i.mjs"]"#),
            &[("internal-not-js", r#""i.mjs""#)],
        ),
        (
            "internal .JS",
            manifest(one, r#"["i.JS"]"#),
            &[("internal-not-js", r#""i.JS""#)],
        ),
        ("internal .js alone", manifest(one, r#"[".js"]"#), GOOD),
        (
            "internal no string",
            manifest(one, r#"[1, null]"#),
            &[("manifest-shape", "1"), ("manifest-shape", "null")],
        ),
        (
            "internal no array",
            manifest(one, r#""i.js""#),
            &[("manifest-shape", r#""i.js""#)],
        ),
        ("internal null", manifest(one, "null"), &[("manifest-shape", "null")]),
    ];
    for (what, text, expected) in cases {
        check(what, text, expected);
    }
}

/// What goes into digests: schema order of keys, JavaScript's numbers, raw file strings.
#[test]
fn declarations_come_out_in_schema_order() {
    let text = with_module(
        r#"{"limits": {"wallClockMs": 1e3, "callTimeoutMs": 250.0}, "exports": [{"as": "b", "wasm": "a"}, "f"], "memoryPagesMax": 4.0, "file": "./w.wasm", "kind": "wasm", "name": "m"},
           {"npm": "x", "kind": "js", "name": "n"}, {"file": "./a.js", "kind": "js", "name": "."}, {"host": "csv", "kind": "host", "name": "h"}"#,
    );
    let Outcome::Pack(pack) = parse(&dir(true), text.as_bytes()) else {
        panic!("{:?}", verdict(text.as_bytes()));
    };
    let declarations: Vec<Declaration> = pack
        .modules
        .into_iter()
        .map(|module| module.declaration.unwrap())
        .collect();
    assert_eq!(
        canonical::to_json(&declarations),
        concat!(
            r#"[{"name":"m","kind":"wasm","file":"./w.wasm","memoryPagesMax":4,"limits":{"callTimeoutMs":250,"wallClockMs":1000},"#,
            r#""exports":[{"wasm":"a","as":"b"},"f"]},{"name":"n","kind":"js","npm":"x"},{"name":".","kind":"js","file":"./a.js"},"#,
            r#"{"name":"h","kind":"host","host":"csv"}]"#
        )
    );
    assert_eq!((pack.label.as_str(), pack.version.as_deref()), ("@a/p", Some("1.0.0")));
}

#[test]
fn messages_show_nothing_raw_and_stay_short() {
    let text = js("file", &format!(r#""\u001b[31m\u202e/../{}""#, "x".repeat(100_000)));
    let Outcome::Pack(pack) = parse(&dir(true), text.as_bytes()) else {
        panic!("a pack")
    };
    let message = &pack.findings.into_vec()[0].message;
    assert!(
        message.len() < 300 && !message.contains(['\u{1b}', '\u{202e}']),
        "{message}"
    );
}

#[test]
fn a_flood_of_faults_is_cut() {
    let modules = vec!["0"; 100_000].join(",");
    let found = verdict(with_module(&modules).as_bytes());
    assert!(found.len() <= 201, "{}", found.len());
    assert_eq!(found.last().map(|(code, _)| *code), Some("more-findings"));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = verdict(&bytes);
    }

    #[test]
    fn no_manifest_panics(parts in prop::collection::vec(prop::sample::select(PARTS), 0..40)) {
        let _ = verdict(package(&parts.concat()).as_bytes());
        let _ = verdict(with_module(&parts.concat()).as_bytes());
    }

    #[test]
    fn file_strings_give_ids_or_reasons(text in "[a./\\\\%2eEfF5cC\u{0}\u{7f}é]{0,12}") {
        match file_id(&text) {
            Ok(id) => {
                prop_assert_eq!(FileId::normalize(&text), Ok(id.clone()));
                prop_assert_eq!(FileId::parse(id.as_str()), Ok(id));
            }
            Err(reason) => prop_assert!(!reason.is_empty()),
        }
    }
}

/// What manifests are made of.
const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"sandboxModules\"",
    "\"internal\"",
    "\"name\"",
    "\"kind\"",
    "\"js\"",
    "\"wasm\"",
    "\"host\"",
    "\"file\"",
    "\"npm\"",
    "\"exports\"",
    "\"limits\"",
    "\"as\"",
    "\".\"",
    "\"a.js\"",
    "\"\\ud800\"",
    "1",
    "1e999",
    "null",
    "é",
];
