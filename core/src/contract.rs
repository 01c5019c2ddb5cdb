//! What a call into a WASM or host module looks like: the call contract, and the facades that stand for the module in
//! the guest (pack contract, sections 7 and 8).

use serde::{Deserialize, Serialize};

use crate::canonical;

/// Version of the WASM facade's text, a part of the graph digest.
pub const WASM_FACADE_VERSION: u64 = 1;
/// Version of the host facade's text, a part of the graph digest.
pub const HOST_FACADE_VERSION: u64 = 2;

/// One exported function of a WASM module: its name in the binary and its name for importers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportPair {
    /// The export's name in the binary.
    pub wasm: String,
    /// The identifier that importers see.
    #[serde(rename = "as")]
    pub alias: String,
}

/// Optional bounds of a WASM module's calls, in schema order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CallLimits {
    /// Milliseconds one call may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_timeout_ms: Option<u64>,
    /// Calls at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_concurrency: Option<u64>,
    /// Calls in one invocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_invocation: Option<u64>,
    /// Milliseconds all calls of an invocation may take together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_clock_ms: Option<u64>,
}

/// The call contract of a WASM entry, the value of `X-Sandbox-Wasm-Contract`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WasmContract {
    /// Pages (64 KiB) that the module's memory may reach.
    pub memory_pages_max: u64,
    /// The callable exports, in manifest order.
    pub exports: Vec<ExportPair>,
    /// Present only where the manifest had it, possibly empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<CallLimits>,
}

/// The facade of a WASM entry: one async function an export, in manifest order.
#[must_use]
pub fn wasm_facade<'a>(specifier: &str, aliases: impl IntoIterator<Item = &'a str>) -> String {
    facade("nodetool:wasm-bridge", specifier, aliases) + "\n"
}

/// The facade of a host entry: as a WASM one over another bridge, with a default export of all names.
#[must_use]
pub fn host_facade(specifier: &str, exports: &[&str]) -> String {
    facade_with_default("nodetool:host-bridge", specifier, exports)
}

/// The facade of a module of the platform: as a host one over another bridge. It is in no digest.
#[must_use]
pub fn capability_facade(specifier: &str, exports: &[&str]) -> String {
    facade_with_default("nodetool:capability-bridge", specifier, exports)
}

fn facade_with_default(bridge: &str, specifier: &str, exports: &[&str]) -> String {
    let functions = facade(bridge, specifier, exports.iter().copied());
    format!("{functions}\nexport default {{ {} }};\n", exports.join(", "))
}

fn facade<'a>(bridge: &str, specifier: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let specifier = canonical::to_json(&specifier);
    let mut text = format!("import {{ __call }} from \"{bridge}\";");
    for name in names {
        let quoted = canonical::to_json(&name);
        text.push_str(&format!(
            "\nexport async function {name}(...args) {{\n  return __call({specifier}, {quoted}, args);\n}}"
        ));
    }
    text
}

/// Whether `text` may name an export (pack contract, section 1): an ASCII identifier that is no reserved word.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    let starts = bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'$'));
    starts && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')) && !RESERVED_WORDS.contains(&text)
}

/// Whether a generated facade can declare a function of that name: strict code forbids `eval` and `arguments`, and `__call` is what
/// the facade imports. NodeTool accepts all three, and no guest loads what comes of it.
#[must_use]
pub fn is_declarable(name: &str) -> bool {
    !matches!(name, "eval" | "arguments" | "__call")
}

/// Words that no export may be named by. `arguments`, `eval`, `async`, `of` and `undefined` are allowed.
const RESERVED_WORDS: [&str; 46] = [
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "let",
    "new",
    "null",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
    "with",
    "yield",
    "enum",
    "implements",
    "interface",
    "package",
    "private",
    "protected",
    "public",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers() {
        for good in [
            "a",
            "_",
            "$",
            "a1",
            "arguments",
            "eval",
            "async",
            "of",
            "undefined",
            "Await",
        ] {
            assert!(is_identifier(good), "{good}");
            assert_eq!(is_declarable(good), !matches!(good, "arguments" | "eval"), "{good}");
        }
        assert!(!is_declarable("__call"));
        for bad in ["", "1a", "a-b", "é", "await", "public", "yield", "a b"] {
            assert!(!is_identifier(bad), "{bad}");
        }
    }

    #[test]
    fn contracts_keep_key_order_and_empty_limits() {
        let exports = vec![ExportPair {
            wasm: "a".into(),
            alias: "b".into(),
        }];
        let contract = |limits| WasmContract {
            memory_pages_max: 8,
            exports: exports.clone(),
            limits,
        };
        let cases = [
            (None, r#"{"memoryPagesMax":8,"exports":[{"wasm":"a","as":"b"}]}"#),
            (
                Some(CallLimits::default()),
                r#"{"memoryPagesMax":8,"exports":[{"wasm":"a","as":"b"}],"limits":{}}"#,
            ),
            (
                Some(CallLimits {
                    wall_clock_ms: Some(1),
                    call_timeout_ms: Some(250),
                    ..CallLimits::default()
                }),
                r#"{"memoryPagesMax":8,"exports":[{"wasm":"a","as":"b"}],"limits":{"callTimeoutMs":250,"wallClockMs":1}}"#,
            ),
        ];
        for (limits, json) in cases {
            assert_eq!(canonical::to_json(&contract(limits.clone())), json);
            assert_eq!(canonical::from_json(json), Ok(contract(limits)));
        }
    }
}
