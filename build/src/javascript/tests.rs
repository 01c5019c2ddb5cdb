//! What is found in files, and where.

use proptest::prelude::*;

use super::{ImportKind, Inspection, inspect};

/// Findings as `‹text at the place›: ‹message›`, one a line.
fn findings(source: &str) -> String {
    let lines = inspect(source.as_bytes()).findings.into_iter().map(|finding| {
        let place = &source[finding.span.clone()];
        format!("{place}: {}", finding.kind)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn calls_that_are_not_allowed() {
    let dynamic = |place: &str| format!("{place}: dynamic import() is not allowed");
    let require = "require: require() is not allowed";
    let cases = [
        ("import('./a.js')", dynamic("import('./a.js')")),
        ("() => import(a, { with: {} })", dynamic("import(a, { with: {} })")),
        (
            "import(import('a'))",
            format!("{}\n{}", dynamic("import(import('a'))"), dynamic("import('a')")),
        ),
        ("require('a')", require.into()),
        ("(require)('a')", require.into()),
        ("require?.('a')", require.into()),
        ("require()('a')", require.into()),
        ("class A { static { require } b = require() }", require.into()),
        ("function require() {} require()", require.into()),
        ("(require => require())()", require.into()),
        ("`${require()}`", require.into()),
        (
            "require(); import('a')",
            format!("{require}\n{}", dynamic("import('a')")),
        ),
        // What only looks like it.
        (
            "a.require(); a.require?.(); new require(); require; require``; (0, require)()",
            String::new(),
        ),
        (
            "({ require() {} }).import; import.meta.url; '// import(1)'; /import(1)/",
            String::new(),
        ),
        (
            "/* require() */ class A { require() {} static import() {} #import; }",
            String::new(),
        ),
    ];
    for (source, expected) in cases {
        assert_eq!(findings(source), expected, "{source}");
    }
}

#[test]
fn removed_globals_at_the_top_level() {
    // Each source, and the names and lines that are warned of.
    let cases = [
        ("setTimeout(() => {}, 0)", "setTimeout 1"),
        (
            "\n\nclearTimeout; 1\nsetInterval(clearInterval)",
            "clearTimeout 3, setInterval 4, clearInterval 4",
        ),
        (
            "setImmediate; clearImmediate; eval('1'); new Function('')",
            "setImmediate 1, clearImmediate 1, eval 1, Function 1",
        ),
        ("Buffer.from(''); process.env; env.A", "Buffer 1, process 1, env 1"),
        (
            "new Headers; new Request(''); new Response; performance.now()",
            "Headers 1, Request 1, Response 1, performance 1",
        ),
        ("`a\r\nb`; /*\r\n*/ process", "process 3"),
        ("/*\r\n\r\n*/ process", "process 3"),
        ("export default process", "process 1"),
        ("export const { a = process } = {}", "process 1"),
        (
            "process = 1; [env] = []; for (eval.a of b);",
            "process 1, env 1, eval 1",
        ),
        // Evaluated with the module.
        ("class A extends Buffer {}", "Buffer 1"),
        (
            "class A { static a = process; static { env } [performance] = 1; [Buffer]() {} }",
            "process 1, env 1, performance 1, Buffer 1",
        ),
        (
            "(function () { process })(); (() => env)(); (async () => { await eval })()",
            "process 1, env 1, eval 1",
        ),
        (
            "(function () { process }).call(this); (() => (() => env)())()",
            "process 1, env 1",
        ),
        ("if (a) { for (;;) { process } }", "process 1"),
        ("(() => {})(process)", "process 1"),
        (
            "const a = { b: process, [env]: 1, Headers }",
            "process 1, env 1, Headers 1",
        ),
        ("await performance; `${Buffer}`", "performance 1, Buffer 1"),
        // Evaluated later, if at all.
        (
            "function f() { setTimeout() } const g = () => process, h = { m() { env }, get a() { return eval } }",
            "",
        ),
        ("class A { a = process; b() { env } constructor(c = Buffer) {} }", ""),
        ("(() => { function f() { process } return () => env })()", ""),
        ("(function* () { process })()", ""),
        ("export default function () { process }", ""),
        // Bound, or no reference.
        ("import { process } from './a.js'; process; const env = 1; env", ""),
        ("process; var process; { let env; env }", ""),
        (
            "a.process; ({ process: 1, env() {} }); class A { Buffer = 1; static eval() {} } env: for (;;) break env",
            "",
        ),
        ("globalThis.process", ""),
        // Looked for first.
        ("typeof process; typeof (env)", ""),
        (
            "const a = typeof process !== 'undefined' && process.env ? process.env : env",
            "env 1",
        ),
        (
            "if (typeof Buffer === 'function') Buffer.from(''); else Buffer; Buffer",
            "Buffer 1",
        ),
        ("typeof process === 'object' || process; typeof env ?? env", ""),
        ("process && typeof process", "process 1"),
        ("typeof process.env", "process 1"),
        ("if (typeof env) { (() => { process; env })() }", "process 1"),
    ];
    for (source, expected) in cases {
        let found = inspect(source.as_bytes()).findings;
        let found: Vec<String> = found
            .iter()
            .map(|finding| {
                let name = &source[finding.span.clone()];
                let message = finding.kind.to_string();
                let line = message
                    .strip_prefix("line ")
                    .and_then(|rest| rest.split(' ').next())
                    .unwrap_or(&message);
                assert!(
                    message.contains(&format!(" uses {name} at the top level")) && !finding.is_offence(),
                    "{message}"
                );
                format!("{name} {line}")
            })
            .collect();
        assert_eq!(found.join(", "), expected, "{source}");
    }
}

#[test]
fn bytes_that_are_no_module_text() {
    let cases: [(&[u8], &str); 12] = [
        (b"a\xff", "1..2 invalid JavaScript: no UTF-8 at byte 1"),
        (b"'\xed\xa0\x80'", "1..2 invalid JavaScript: no UTF-8 at byte 1"),
        (b"/* \xc3", "3..4 invalid JavaScript: no UTF-8 at byte 3"),
        (b"\xff\xfea\0", "0..1 invalid JavaScript: no UTF-8 at byte 0"),
        (b"a; // \0", "6..7 invalid JavaScript: a NUL character at byte 6"),
        (
            b"#!/usr/bin/env node\n1",
            "0..2 invalid JavaScript: a hashbang at byte 0",
        ),
        (b"", ""),
        (b"\xef\xbb\xbfexport {}", ""),
        (b"a;\r\nb\rc", ""),
        ("'\u{2028}'; a\u{2029}b".as_bytes(), ""),
        ("const 変数 = '\u{10ffff}'".as_bytes(), ""),
        (b"\xef\xbb\xbf#!a", "4..5 invalid JavaScript: Invalid Character `!`"),
    ];
    for (bytes, expected) in cases {
        let found = inspect(bytes).findings;
        let found: Vec<String> = found
            .iter()
            .map(|finding| format!("{:?} {}", finding.span, finding.kind))
            .collect();
        assert_eq!(found.join("\n"), expected, "{bytes:?}");
    }
}

#[test]
fn imports_and_exports() {
    let source = "import './a.js'; import b, { c as d } from \"./b.js\";
        export * from './c.js'; export { default, e as 'f g' } from './d.js'; export * as h from './e.js';
        import * as n from '@nodetool-ai/sandbox-nodetool/x' with { type: 'json' };
        export const { i, j: [k, ...l] } = {}, m = 1; export function o() {} export class P {}
        export { b as q, d }; import './a.js'; import 'caf\\u00e9'";
    let Inspection {
        findings,
        imports,
        exports,
    } = inspect(source.as_bytes());
    let exports: Vec<String> = exports
        .into_iter()
        .map(|export| match export.origin {
            Some((source, there)) => format!("{}<{source}:{there}", export.name),
            None => export.name,
        })
        .collect();
    assert_eq!(
        exports.join(", "),
        "default<./d.js:default, f g<./d.js:e, h, i, k, l, m, o, P, q<./b.js:default, d<./b.js:c"
    );
    let imports: Vec<String> = imports
        .iter()
        .map(|import| {
            let place = &source[import.span.clone()];
            assert!(place.starts_with(['\'', '"']), "{place}");
            let kind = match import.kind {
                ImportKind::Import => "import",
                ImportKind::ReExport => "export",
                ImportKind::Star => "star",
            };
            let capability = if import.is_capability() { " capability" } else { "" };
            format!("{kind} {}{capability}", import.source)
        })
        .collect();
    let expected = "import ./a.js, import ./b.js, star ./c.js, export ./d.js, export ./e.js, \
        import @nodetool-ai/sandbox-nodetool/x capability, import ./a.js, import café";
    assert_eq!(imports.join(", "), expected);
    assert_eq!(findings, []);
}

#[test]
fn only_the_capability_and_what_is_below_it_is_the_capability() {
    let is_capability = |source: &str| {
        let inspection = inspect(format!("import '{source}'").as_bytes());
        inspection.imports.iter().all(super::Import::is_capability)
    };
    assert!(is_capability("@nodetool-ai/sandbox-nodetool") && is_capability("@nodetool-ai/sandbox-nodetool/"));
    assert!(!is_capability("@nodetool-ai/sandbox-nodetool2") && !is_capability("./@nodetool-ai/sandbox-nodetool"));
}

/// Fragments that make syntax interesting when they meet.
const FRAGMENTS: [&str; 64] = [
    "a",
    "await ",
    "async ",
    "yield ",
    "let ",
    "const ",
    "static ",
    "get ",
    "of ",
    "from ",
    "using ",
    "import ",
    "import(",
    "import.meta",
    "export ",
    "default ",
    "class ",
    "extends ",
    "super",
    "this",
    "new ",
    "function ",
    "function* ",
    "=>",
    "...",
    "?.",
    "??",
    "**",
    "=",
    "+=",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ";",
    ",",
    ":",
    "?",
    "!",
    "++",
    "-",
    ".",
    "/",
    "/a(?<b>c)/v",
    "`",
    "${",
    "'s'",
    "\"\\u0061\"",
    "1n",
    "#x",
    " in ",
    "typeof ",
    "return ",
    "if(",
    "else ",
    "for(",
    "label:",
    "break ",
    "\n",
    "//",
    "<!--",
    "é\u{2028}\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_is_inspected_has_places_in_order(parts in prop::collection::vec(prop::sample::select(&FRAGMENTS[..]), 0..40)) {
        let source = parts.concat();
        let Inspection { findings, imports, .. } = inspect(source.as_bytes());
        let mut last = 0;
        for finding in &findings {
            prop_assert!(source.get(finding.span.clone()).is_some(), "{finding:?}");
            prop_assert!(last <= finding.span.start);
            last = finding.span.start;
        }
        for import in &imports {
            prop_assert!(source[import.span.clone()].starts_with(['\'', '"']));
        }
    }

    #[test]
    fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for finding in inspect(&bytes).findings {
            prop_assert!(bytes.get(finding.span).is_some());
        }
    }
}
