//! What acorn takes is taken, and what it refuses is refused: over the cases of `fixtures/syntax` and those of the package
//! test262-parser-tests. acorn's verdicts are kept in `fixtures/syntax/acorn.json`.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use packferry::javascript::{FindingKind, inspect};
use serde::Deserialize;

/// What acorn takes and oxc refuses, none of which a tool writes: its parser gives up before a check can set it right.
const REFUSED_BY_OXC: [&str; 17] = [
    // A call of a function named `async`, taken for an arrow function.
    "async(...a)",
    "async (...a, )",
    "async (...a, b)",
    "async()\n{}\n/a/",
    "function f() { return async()\n{}\n/a/ }",
    "x = async()\n{ a }",
    // `<` and `!--` at the beginning of a line, taken for an HTML comment.
    "a\n<!-- b",
    "a\n<!--b\n+c",
    // `in` in a function in the head of a loop.
    "for (() => { a in b }; ;);",
    "for (a => { \"b\" in c };;);",
    // Numbers of repetitions beyond 2^53, or beyond 2^64.
    "/a{9007199254740993,9007199254740992}/",
    "/a{99999999999999999999}/",
    // An escape in the name of a group that is referred to, or in `static`.
    "/(?<a\\u0062>.)\\k<ab>/",
    "class C { st\\u0061tic \nm() {} }",
    // No ECMAScript, though acorn takes it.
    "[...a, b = c] = d",
    "/(?<a>)[\\k]/",
    // A variable named `using`, awaited.
    "for (await using ; ;);",
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Golden {
    #[serde(rename = "acorn")]
    _version: String,
    /// By theme, a sign for each case.
    cases: BTreeMap<String, String>,
    /// By folder, the files that are refused.
    test262_parser_tests: BTreeMap<String, BTreeSet<String>>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../fixtures/syntax/acorn.json")).unwrap()
}

/// The first syntax error of a source, if it has one.
fn syntax_error(source: &str) -> Option<String> {
    let mut findings = inspect(source.as_bytes()).findings.into_iter();
    findings.find_map(|finding| match finding.kind {
        FindingKind::Syntax(sentence) => Some(sentence),
        _ => None,
    })
}

/// What is wrong about the verdict on a source, if anything is.
fn differs(source: &str, accepted: bool) -> Option<String> {
    let error = syntax_error(source);
    (error.is_none() != accepted).then(|| format!("{source:?}: acorn takes it: {accepted}; we: {error:?}"))
}

#[test]
fn verdicts_on_our_cases_are_acorns() {
    let cases: BTreeMap<String, Vec<String>> =
        serde_json::from_str(include_str!("../../fixtures/syntax/cases.json")).unwrap();
    let golden = golden().cases;
    assert!(cases.keys().eq(golden.keys()), "run node scripts/acorn-verdicts.mjs");
    let mut wrong = Vec::new();
    for (theme, sources) in &cases {
        let signs = &golden[theme];
        assert_eq!(sources.len(), signs.len(), "run node scripts/acorn-verdicts.mjs");
        for (source, sign) in sources.iter().zip(signs.chars()) {
            // A hashbang is refused for the guest's sake, and is no matter of syntax.
            if source.starts_with("#!") {
                continue;
            }
            let excused = REFUSED_BY_OXC.contains(&source.as_str());
            wrong.extend(differs(source, sign == '+' && !excused));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn verdicts_on_test262_parser_tests_are_acorns() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/test262-parser-tests");
    assert!(root.is_dir(), "test262-parser-tests is not installed: run make setup");
    let mut wrong = Vec::new();
    let mut count = 0;
    for (folder, refused) in golden().test262_parser_tests {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap().to_owned();
            let source = String::from_utf8(fs::read(&path).unwrap()).unwrap_or_else(|_| panic!("{name} is no UTF-8"));
            wrong.extend(differs(&source, !refused.contains(&name)).map(|what| format!("{folder}/{name} {what}")));
            count += 1;
        }
    }
    assert!(count > 5_000, "{count} files");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
