//! Judges a bundle by its text: what it exports, what it still imports, and which globals that the guest lacks it refers to
//! (pack contract, section 9). Knows nothing of files; places are byte offsets in the
//! bundle. Recursive: it runs where a stack may overflow (`judge.rs`).

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, UnaryOperator};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::{AstNodes, NodeId, Semantic, SemanticBuilder};
use oxc_span::{GetSpan, SourceType, Span};
use oxc_syntax::module_record::{ExportExportName, ModuleRecord};
use packferry_core::order::by_utf16;
use serde::{Deserialize, Serialize};

use crate::javascript::{self, FindingKind, syntax_error};

/// What the guest does not have, or has deleted.
const MISSING_GLOBALS: &[&str] = &[
    "Buffer",
    "Function",
    "HTMLElement",
    "WebAssembly",
    "XMLHttpRequest",
    "__dirname",
    "__filename",
    "alert",
    "clearImmediate",
    "clearInterval",
    "clearTimeout",
    "customElements",
    "document",
    "eval",
    "exports",
    "frames",
    "importScripts",
    "indexedDB",
    "localStorage",
    "location",
    "module",
    "navigator",
    "parent",
    "process",
    "queueMicrotask",
    "require",
    "self",
    "sessionStorage",
    "setImmediate",
    "setInterval",
    "setTimeout",
    "top",
    "window",
];

/// What a bundle may refer to freely: what the language defines on the global object, what that inherits, and `console`, as far as
/// every guest has it (the engines of the native guest and of the one in browsers are not of one version). Sorted.
const GUEST_GLOBALS: &[&str] = &[
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DOMException",
    "DataView",
    "Date",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "InternalError",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "SharedArrayBuffer",
    "String",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "URIError",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "__proto__",
    "console",
    "constructor",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "globalThis",
    "hasOwnProperty",
    "isFinite",
    "isNaN",
    "isPrototypeOf",
    "parseFloat",
    "parseInt",
    "propertyIsEnumerable",
    "toLocaleString",
    "toString",
    "undefined",
    "unescape",
    "valueOf",
];

/// What engines, browsers or Node give beyond [`GUEST_GLOBALS`] and [`MISSING_GLOBALS`]: a guest has it where its host provides it.
/// Sorted.
const PLATFORM_GLOBALS: &[&str] = &[
    "AbortController",
    "AbortSignal",
    "AsyncDisposableStack",
    "Atomics",
    "Blob",
    "BroadcastChannel",
    "ByteLengthQueuingStrategy",
    "CSS",
    "CompressionStream",
    "CountQueuingStrategy",
    "Crypto",
    "CryptoKey",
    "CustomEvent",
    "DOMParser",
    "DecompressionStream",
    "DisposableStack",
    "Document",
    "DocumentFragment",
    "Element",
    "Event",
    "EventSource",
    "EventTarget",
    "File",
    "FileList",
    "FileReader",
    "FormData",
    "Headers",
    "Image",
    "ImageData",
    "Intl",
    "MessageChannel",
    "MessageEvent",
    "MessagePort",
    "MutationObserver",
    "Node",
    "NodeFilter",
    "Notification",
    "OffscreenCanvas",
    "Path2D",
    "ReadableStream",
    "Request",
    "ResizeObserver",
    "Response",
    "SVGElement",
    "SharedWorker",
    "Storage",
    "SubtleCrypto",
    "SuppressedError",
    "Temporal",
    "Text",
    "TextDecoder",
    "TextDecoderStream",
    "TextEncoder",
    "TextEncoderStream",
    "TransformStream",
    "URL",
    "URLSearchParams",
    "WebSocket",
    "Worker",
    "WritableStream",
    "XMLSerializer",
    "atob",
    "btoa",
    "cancelAnimationFrame",
    "cancelIdleCallback",
    "confirm",
    "crypto",
    "fetch",
    "getComputedStyle",
    "global",
    "history",
    "matchMedia",
    "performance",
    "postMessage",
    "prompt",
    "requestAnimationFrame",
    "requestIdleCallback",
    "screen",
    "structuredClone",
];

/// How many findings of a kind that keeps no bundle out are told.
const MOST_TOLD: usize = 8;

/// A finding, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was found: a global's name, or the end of a sentence about the bundle.
    pub what: String,
    /// Byte offset in the bundle.
    pub offset: usize,
}

/// What a bundle was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// It is nested so deeply that a parser gives up.
    TooDeep,
    /// It is no self-contained module.
    Rejected(Finding),
    /// It refers to globals that the guest lacks, each with its first place, in order of place.
    Forbidden(Vec<Finding>),
    /// It may run.
    Accepted(Accepted),
}

/// A bundle that may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// The names it exports, sorted by UTF-16 code units.
    pub exports: Vec<String>,
    /// Globals that the guest lacks and that the bundle looks for before it uses them, each with its first place, in order of
    /// place.
    pub detected: Vec<Finding>,
    /// Globals that it uses plainly and that not every guest has (`TextEncoder`, `Intl`), each with its first place, in order of
    /// place; at most eight. They keep no bundle out: a guest's host may provide them, and much of a library may do without.
    pub wanted: Vec<Finding>,
    /// Names that it assigns to and that nothing declares, each with its first place, in order of place; at most eight. A script
    /// makes globals of them, a module throws.
    pub undeclared: Vec<Finding>,
}

/// Judges the module `source`.
#[must_use]
pub fn scan(source: &str) -> Verdict {
    if let Some(error) = syntax_error(source) {
        return rejected(&error);
    }
    let allocator = Allocator::default();
    // Without nodes for parentheses, `typeof (x)` is `typeof x`.
    let options = ParseOptions {
        preserve_parens: false,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&allocator, source, SourceType::mjs())
        .with_options(options)
        .parse();
    if let Some(rejected) = remaining_import(&parsed.module_record) {
        return Verdict::Rejected(rejected);
    }
    let semantic = SemanticBuilder::new()
        .with_build_nodes(true)
        .build(&parsed.program)
        .semantic;
    let globals = missing_globals(&semantic);
    if !globals.hard.is_empty() {
        return Verdict::Forbidden(globals.hard);
    }
    Verdict::Accepted(Accepted {
        exports: exported_names(&parsed.module_record),
        detected: globals.detected,
        wanted: globals.wanted,
        undeclared: globals.undeclared,
    })
}

/// What is refused in an authored file is refused in a bundle: the guest reads both alike.
fn rejected(error: &javascript::Finding) -> Verdict {
    let what = match error.kind {
        FindingKind::NestedTooDeeply => return Verdict::TooDeep,
        FindingKind::Nul(_) => "holds a NUL character",
        _ => "is not a JavaScript module",
    };
    Verdict::Rejected(Finding {
        what: what.to_owned(),
        offset: error.span.start,
    })
}

fn remaining_import(record: &ModuleRecord<'_>) -> Option<Finding> {
    let found = |what: &str, offset: u32| Finding {
        what: what.to_owned(),
        offset: offset as usize,
    };
    let dynamic = record.dynamic_imports.iter().map(|import| import.span.start).min();
    if let Some(offset) = dynamic {
        return Some(found("imports dynamically", offset));
    }
    let requests = record.requested_modules.iter();
    let requests = requests.flat_map(|(name, places)| {
        places
            .iter()
            .map(move |place| (place.statement_span.start, name.as_str()))
    });
    let (offset, name) = requests.min()?;
    Some(found(&format!("still imports {name:?}"), offset))
}

fn exported_names(record: &ModuleRecord<'_>) -> Vec<String> {
    let entries = record.local_export_entries.iter();
    let mut names: Vec<String> = entries
        .filter_map(|entry| match &entry.export_name {
            ExportExportName::Name(name) => Some(name.name.to_string()),
            ExportExportName::Default(_) => Some("default".to_owned()),
            ExportExportName::Null => None,
        })
        .collect();
    names.sort_by(|a, b| by_utf16(a, b));
    names
}

/// Globals that a guest lacks, as [`Verdict`] has them.
#[derive(Default)]
struct MissingGlobals {
    /// Of [`MISSING_GLOBALS`], referred to plainly.
    hard: Vec<Finding>,
    /// Of [`MISSING_GLOBALS`], only looked for.
    detected: Vec<Finding>,
    wanted: Vec<Finding>,
    undeclared: Vec<Finding>,
}

fn missing_globals(semantic: &Semantic<'_>) -> MissingGlobals {
    let mut found = MissingGlobals::default();
    for name in semantic.scoping().root_unresolved_references().keys() {
        let is_among = |globals: &[&str]| globals.binary_search(&name.as_str()).is_ok();
        if is_among(GUEST_GLOBALS) {
            continue;
        }
        let finding = |span: Span| Finding {
            what: name.to_string(),
            offset: span.start as usize,
        };
        if !is_among(MISSING_GLOBALS) && !is_among(PLATFORM_GLOBALS) {
            found
                .undeclared
                .extend(first_assignment(semantic, name.as_str()).map(finding));
            continue;
        }
        match first_reference(semantic, name.as_str()) {
            Some(Reference::Plain(span)) if is_among(MISSING_GLOBALS) => found.hard.push(finding(span)),
            Some(Reference::Plain(span)) => found.wanted.push(finding(span)),
            Some(Reference::Guarded(span)) if is_among(MISSING_GLOBALS) => found.detected.push(finding(span)),
            _ => {}
        }
    }
    for finding in &mut found.detected {
        finding.offset = first_use(semantic, finding);
    }
    let all = [
        &mut found.hard,
        &mut found.detected,
        &mut found.wanted,
        &mut found.undeclared,
    ];
    for findings in all {
        findings.sort_by_key(|finding| finding.offset);
    }
    found.wanted.truncate(MOST_TOLD);
    found.undeclared.truncate(MOST_TOLD);
    found
}

/// The first place where the global `name` is assigned to.
fn first_assignment(semantic: &Semantic<'_>, name: &str) -> Option<Span> {
    let scoping = semantic.scoping();
    let references = scoping.root_unresolved_references().get(name)?;
    let written = references
        .iter()
        .map(|reference| scoping.get_reference(*reference))
        .filter(|reference| reference.is_write())
        .map(|reference| semantic.reference_span(reference));
    written.min_by_key(|span| span.start)
}

/// How a global is referred to.
pub(crate) enum Reference {
    /// Plainly; the first such place.
    Plain(Span),
    /// Nowhere plainly; the first place.
    Guarded(Span),
}

/// The first reference to the global `name` that no test guards, else the first of all.
pub(crate) fn first_reference(semantic: &Semantic<'_>, name: &str) -> Option<Reference> {
    let scoping = semantic.scoping();
    let references = scoping.root_unresolved_references().get(name)?;
    let mut places: Vec<(Span, NodeId)> = references
        .iter()
        .map(|reference| scoping.get_reference(*reference))
        .map(|reference| (semantic.reference_span(reference), reference.node_id()))
        .collect();
    places.sort_by_key(|(span, _)| span.start);
    let mut guards = Guards::of(semantic.nodes(), &places);
    let plain = places.iter().find(|(_, node)| !guards.cover(*node));
    let plain = plain.map(|(span, _)| Reference::Plain(*span));
    plain.or_else(|| places.first().map(|(span, _)| Reference::Guarded(*span)))
}

/// Where a detected global is first wanted: what libraries do by `require`, esbuild has them do by a helper that looks for it.
fn first_use(semantic: &Semantic<'_>, finding: &Finding) -> usize {
    let scoping = semantic.scoping();
    let helper = scoping.get_root_binding("__require".into());
    let Some(helper) = helper.filter(|_| finding.what == "require") else {
        return finding.offset;
    };
    let declared = semantic.nodes().kind(scoping.symbol_declaration(helper)).span();
    let (start, end) = (declared.start as usize, declared.end as usize);
    if !(start..end).contains(&finding.offset) {
        return finding.offset;
    }
    let uses = scoping.get_resolved_references(helper);
    let uses = uses.map(|reference| semantic.reference_span(reference).start as usize);
    uses.min().unwrap_or(finding.offset)
}

/// Where a bundle tests for one global before it uses it.
struct Guards<'n, 'a> {
    nodes: &'n AstNodes<'a>,
    /// Offsets of `typeof ‹name›`, in order.
    tests: Vec<u32>,
    /// Whether a reference anywhere below a node is covered: what is known so far. Keeps many references below one deep
    /// expression from being quadratic work.
    known: HashMap<NodeId, bool>,
}

impl<'n, 'a> Guards<'n, 'a> {
    fn of(nodes: &'n AstNodes<'a>, places: &[(Span, NodeId)]) -> Self {
        let tests = places.iter().filter(|(_, node)| is_typeof(nodes.parent_kind(*node)));
        Self {
            nodes,
            tests: tests.map(|(span, _)| span.start).collect(),
            known: HashMap::new(),
        }
    }

    /// Whether the reference at `node` is the operand of `typeof`, or stands where a test with `typeof` of the same name leads.
    fn cover(&mut self, node: NodeId) -> bool {
        if is_typeof(self.nodes.parent_kind(node)) {
            return true;
        }
        let mut path = Vec::new();
        let mut child = node;
        let covered = loop {
            if let Some(known) = self.known.get(&child) {
                break *known;
            }
            path.push(child);
            let parent = self.nodes.parent_id(child);
            if parent == child {
                break false;
            }
            if self.leads_to(self.nodes.kind(parent), self.nodes.kind(child).span()) {
                break true;
            }
            child = parent;
        };
        self.known.extend(path.into_iter().map(|node| (node, covered)));
        covered
    }

    /// Whether `parent` tests for the name and leads to its part `child` by the outcome.
    fn leads_to(&self, parent: AstKind<'a>, child: Span) -> bool {
        let test = match parent {
            AstKind::IfStatement(statement) => statement.test.span(),
            AstKind::ConditionalExpression(expression) => expression.test.span(),
            AstKind::LogicalExpression(expression) => expression.left.span(),
            _ => return false,
        };
        let first = self.tests.partition_point(|offset| *offset < test.start);
        child.start >= test.end && self.tests.get(first).is_some_and(|offset| *offset < test.end)
    }
}

fn is_typeof(kind: AstKind<'_>) -> bool {
    matches!(kind, AstKind::UnaryExpression(unary)
        if unary.operator == UnaryOperator::Typeof && matches!(unary.argument, Expression::Identifier(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict in short: `rejected: ‹what›`, `forbidden: ‹names›` or `accepted: ‹exports› detected: ‹names›`.
    fn verdict(source: &str) -> String {
        let names = |findings: Vec<Finding>| {
            let at_their_place = |finding: &Finding| source[finding.offset..].starts_with(&finding.what);
            assert!(findings.iter().all(at_their_place), "{findings:?} in {source}");
            findings
                .into_iter()
                .map(|finding| finding.what)
                .collect::<Vec<_>>()
                .join(" ")
        };
        match scan(source) {
            Verdict::TooDeep => "too deep".to_owned(),
            Verdict::Rejected(finding) => format!("rejected: {}", finding.what),
            Verdict::Forbidden(findings) => format!("forbidden: {}", names(findings)),
            Verdict::Accepted(accepted) => {
                let exports = accepted.exports.join(" ");
                format!("accepted: {exports} detected: {}", names(accepted.detected))
            }
        }
    }

    #[test]
    fn verdicts() {
        let cases = [
            // What is no self-contained module.
            ("export const a = ;", "rejected: is not a JavaScript module"),
            ("return 1", "rejected: is not a JavaScript module"),
            ("with (a) b", "rejected: is not a JavaScript module"),
            ("a ?? (b) && c", "rejected: is not a JavaScript module"),
            ("/(?<n>a)(?:b|(?<n>c))/", "rejected: is not a JavaScript module"),
            ("export default @a class {}", "rejected: is not a JavaScript module"),
            ("/\u{0}/", "rejected: holds a NUL character"),
            ("import('a')", "rejected: imports dynamically"),
            ("() => import(a)", "rejected: imports dynamically"),
            ("import 'a'", "rejected: still imports \"a\""),
            ("export { a } from 'b'", "rejected: still imports \"b\""),
            ("export * from 'b'", "rejected: still imports \"b\""),
            ("export * as a from 'b'; import 'c'", "rejected: still imports \"b\""),
            // What a bundle exports, by UTF-16 code units.
            (
                "var a; export { a, a as default, a as B, a as 'x y' }",
                "accepted: B a default x y detected: ",
            ),
            (
                "export default 1; export const { a, b: [c] } = d",
                "accepted: a c default detected: ",
            ),
            (
                "var a; export { a as '\u{ff61}', a as '\u{10000}' }",
                "accepted: \u{10000} \u{ff61} detected: ",
            ),
            // Plain references.
            ("process.env", "forbidden: process"),
            ("f(window, () => document.body)", "forbidden: window document"),
            ("setTimeout(f); process; setTimeout(g)", "forbidden: setTimeout process"),
            ("eval('1')", "forbidden: eval"),
            ("a instanceof Function", "forbidden: Function"),
            ("({ process })", "forbidden: process"),
            ("process = 1", "forbidden: process"),
            ("[top] = [1]", "forbidden: top"),
            ("`${location}`", "forbidden: location"),
            ("class A extends HTMLElement {}", "forbidden: HTMLElement"),
            ("self[`a`]?.b", "forbidden: self"),
            ("{ let process } process", "forbidden: process"),
            ("(process => 1)(process)", "forbidden: process"),
            // What is no reference to a global.
            ("a.process; a?.window", "accepted:  detected: "),
            ("({ process: 1, document() {}, 'window': 2 })", "accepted:  detected: "),
            ("(process) => process.env", "accepted:  detected: "),
            (
                "var require; function f() { return require('a') }",
                "accepted:  detected: ",
            ),
            ("f(); function f() { module } var module", "accepted:  detected: "),
            ("globalThis.process.env", "accepted:  detected: "),
            (
                "class A { process = 1; static window() {} #eval }",
                "accepted:  detected: ",
            ),
            ("process: for (;;) break process", "accepted:  detected: "),
            ("'process' /* window */; /eval/", "accepted:  detected: "),
            ("fetch(URL, console, globalThis, crypto)", "accepted:  detected: "),
            // What is looked for first.
            ("typeof process", "accepted:  detected: process"),
            ("typeof (process)", "accepted:  detected: process"),
            ("typeof process.env", "forbidden: process"),
            (
                "if (typeof process === 'object') process.a; else process.b",
                "accepted:  detected: process",
            ),
            (
                "if (a || typeof process < 'u') { f(() => process) }",
                "accepted:  detected: process",
            ),
            ("if (typeof process) {} process", "forbidden: process"),
            ("if (typeof process && process.a) {}", "accepted:  detected: process"),
            ("if (process.a && typeof process) {}", "forbidden: process"),
            (
                "typeof self !== 'undefined' ? self : typeof window !== 'undefined' ? window : 0",
                "accepted:  detected: self window",
            ),
            ("typeof self !== 'undefined' ? window : 0", "forbidden: window"),
            ("typeof a ? 0 : process", "forbidden: process"),
            (
                "typeof process || process; typeof top ?? top",
                "accepted:  detected: process top",
            ),
            ("process && typeof process", "forbidden: process"),
            ("while (typeof process) process", "forbidden: process"),
            (
                "((process) => { if (typeof process) 1 })(); if (typeof process) process",
                "accepted:  detected: process",
            ),
            ("((window) => { if (typeof window) 1 })(window)", "forbidden: window"),
            // The helper through which esbuild has a library do what it does by `require`.
            (
                "var __require = (typeof require !== 'undefined' ? require : 0); a",
                "accepted:  detected: require",
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(verdict(source), expected, "{source}");
        }
    }

    #[test]
    fn every_missing_global_is_found() {
        assert!(MISSING_GLOBALS.is_sorted());
        for name in MISSING_GLOBALS {
            assert_eq!(verdict(&format!("0, {name}")), format!("forbidden: {name}"));
        }
    }

    /// What an accepted bundle is warned for: `‹names it wants› | ‹names it assigns to›`.
    fn warned(source: &str) -> String {
        let Verdict::Accepted(accepted) = scan(source) else {
            unreachable!("{source}")
        };
        let names = [accepted.wanted, accepted.undeclared].map(|findings| {
            let names: Vec<String> = findings.into_iter().map(|finding| finding.what).collect();
            names.join(" ")
        });
        names.join(" | ")
    }

    #[test]
    fn what_not_every_guest_has_is_told() {
        let cases = [
            (
                "new TextEncoder().encode(1); crypto.subtle; new TextEncoder()",
                "TextEncoder crypto | ",
            ),
            ("() => new Intl.NumberFormat()", "Intl | "),
            ("typeof URL === 'function' ? new URL('a:b') : typeof Blob", " | "),
            ("typeof URL; URL.parse('a')", "URL | "),
            ("var URL; URL.parse; globalThis.crypto; a: for (;;) break a", " | "),
            (
                "Math.max(Object, hasOwnProperty, undefined, console, Float16Array)",
                " | ",
            ),
            (
                "unknown; unknown.property = 1; function f() { return arguments.length }",
                " | ",
            ),
            ("leaked = 1; for (i in {}) i++; [a, { b }] = c", " | leaked i a b"),
            ("if (typeof leaked === 'undefined') leaked = 1", " | leaked"),
            ("Promise = URL = 1", "URL | "),
            ("a = b = c = d = e = f = g = h = i = 1", " | a b c d e f g h"),
        ];
        for (source, expected) in cases {
            assert_eq!(warned(source), expected, "{source}");
        }
    }

    #[test]
    fn the_lists_of_globals_agree_with_the_guest() {
        assert!(GUEST_GLOBALS.is_sorted());
        assert!(PLATFORM_GLOBALS.is_sorted());
        for name in GUEST_GLOBALS {
            assert_eq!(warned(&format!("0, {name}")), " | ");
            assert!(MISSING_GLOBALS.binary_search(name).is_err(), "{name}");
        }
        for name in PLATFORM_GLOBALS {
            assert_eq!(warned(&format!("0, {name}")), format!("{name} | "));
        }
        // Every guest is asked for them by this case.
        let cases = include_str!("../../fixtures/guest/cases.json");
        let cases: serde_json::Value = serde_json::from_str(cases).unwrap();
        let mut cases = cases["cases"].as_array().unwrap().iter();
        let case = cases.find(|case| case["name"] == "globals-of-the-language").unwrap();
        let names = format!("const names = {:?};\n", GUEST_GLOBALS);
        assert!(case["code"].as_str().unwrap().starts_with(&names), "{names}");
    }

    #[test]
    fn many_references_below_one_deep_expression_are_no_quadratic_work() {
        let chain = "process && ".repeat(15_000);
        let check = move || {
            let covered = format!("typeof process && ({chain} process)");
            assert_eq!(verdict(&covered), "accepted:  detected: process");
            assert_eq!(verdict(&format!("({chain} 1)")), "forbidden: process");
        };
        let deep = std::thread::Builder::new().stack_size(256 << 20);
        deep.spawn(check).unwrap().join().unwrap();
    }
}
