//! Judges a WASM binary against its declaration (pack contract, section 7). Reads no file; places are byte offsets in the binary.

use std::collections::HashMap;

use packferry_core::limits::PACK_LIMITS;
use packferry_core::payload::WasmDeclaration;
use serde::{Deserialize, Serialize};
use wasmparser::types::Types;
use wasmparser::{
    CompositeInnerType, Error, Export, ExternalKind, FuncType, MemoryType, Parser, Payload, ValType, Validator,
    WasmFeatures,
};

use crate::diagnostics::{
    Rule, WASM_EXPORT_KIND, WASM_EXPORT_MISSING, WASM_EXPORT_SIGNATURE, WASM_IMPORT, WASM_INVALID,
    WASM_MEMORY_TOO_LARGE, WASM_MEMORY_UNBOUNDED,
};

/// What a binary may be made of, whatever engine runs it. Vectors, references and shared memories parse so that the call contract
/// can refuse them by name.
const FEATURES: WasmFeatures = WasmFeatures::empty()
    .union(WasmFeatures::FLOATS)
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::GC_TYPES)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::THREADS);

/// A fault of a binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WasmFault {
    /// The rule that it breaks.
    #[serde(with = "crate::diagnostics::by_code")]
    pub rule: &'static Rule,
    /// The message, to stand behind `‹pack›/‹specifier›: `.
    pub message: String,
    /// Where, if it has a place.
    pub offset: Option<u64>,
    /// The export that it is about, by its name in the binary.
    pub export: Option<String>,
}

impl WasmFault {
    fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            offset: None,
            export: None,
        }
    }

    fn of_export(rule: &'static Rule, name: &str, message: &str) -> Self {
        Self {
            export: Some(name.to_owned()),
            ..Self::new(rule, format!("export {name} {message}"))
        }
    }

    fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }
}

/// All faults of a binary: those of imports and memories in order of place, then those of its exports in order of declaration.
#[must_use]
pub fn inspect(bytes: &[u8], declaration: &WasmDeclaration) -> Vec<WasmFault> {
    let validated = Validator::new_with_features(FEATURES).validate_all(bytes);
    let outline = validated.and_then(|types| Ok((types, Outline::read(bytes)?)));
    let (types, outline) = match outline {
        Ok(outline) => outline,
        Err(error) => {
            let (what, offset) = match (check_form(bytes), error.message()) {
                (Some(what), _) => (what, 0),
                (None, "unexpected end-of-file") => ("it, or a part of it, ends early", error.offset()),
                (None, message) => (message, error.offset()),
            };
            return vec![WasmFault::new(&WASM_INVALID, format!("invalid WASM binary: {what}")).at(offset)];
        }
    };
    let mut faults: Vec<WasmFault> = check_imports(&outline).into_iter().collect();
    faults.extend(
        outline
            .memories
            .iter()
            .filter_map(|memory| check_memory(*memory, declaration)),
    );
    for declared in &declaration.exports {
        check_export(declared.wasm(), &outline, &types, &mut faults);
    }
    faults
}

/// What a file is that does not begin as a core module does.
fn check_form(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: &[u8] = b"\0asm";
    const CORE: &[u8] = &[1, 0, 0, 0];
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        let text = bytes.trim_ascii_start();
        return Some(match bytes {
            [] => "the file is empty",
            _ if MAGIC.starts_with(bytes) => "it ends within its first four bytes",
            _ if text.starts_with(b"(module") || text.starts_with(b"(;") || text.starts_with(b";;") => {
                "it is WebAssembly in text form; assemble it, for example with wat2wasm"
            }
            _ => "it does not begin with the four bytes of a WASM file",
        });
    };
    match rest {
        _ if rest.starts_with(CORE) => None,
        // The second half of the version says what layer it is of.
        [_, _, 1, 0, ..] => Some("it is a component, and only core modules are called"),
        _ if rest.len() < CORE.len() => Some("it ends within its version"),
        _ => Some("it is of a version that is not 1"),
    }
}

/// What the call contract asks about in a binary, each with its place.
#[derive(Default)]
struct Outline<'a> {
    first_import: Option<u64>,
    memories: Vec<(u64, MemoryType)>,
    exports: HashMap<&'a str, (u64, Export<'a>)>,
}

impl<'a> Outline<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut outline = Self::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload? {
                Payload::ImportSection(section) if section.count() > 0 => {
                    outline.first_import = Some(section.range().start)
                }
                Payload::MemorySection(section) => {
                    for memory in section.into_iter_with_offsets() {
                        outline.memories.push(memory?);
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section.into_iter_with_offsets() {
                        let (offset, export) = export?;
                        outline.exports.insert(export.name, (offset, export));
                    }
                }
                _ => {}
            }
        }
        Ok(outline)
    }
}

fn check_imports(outline: &Outline<'_>) -> Option<WasmFault> {
    let offset = outline.first_import?;
    Some(WasmFault::new(&WASM_IMPORT, "WASM imports are not allowed").at(offset))
}

fn check_memory((offset, memory): (u64, MemoryType), declaration: &WasmDeclaration) -> Option<WasmFault> {
    let Some(maximum) = memory.maximum.filter(|_| !memory.shared) else {
        let message = "every WASM memory must be unshared and declare a maximum";
        return Some(WasmFault::new(&WASM_MEMORY_UNBOUNDED, message).at(offset));
    };
    let ceiling = declaration.memory_pages_max.min(PACK_LIMITS.wasm_memory_pages);
    let message = format!(
        "memory maximum exceeds the declared or host ceiling: it is {maximum} pages, and {ceiling} are allowed"
    );
    (maximum > ceiling).then(|| WasmFault::new(&WASM_MEMORY_TOO_LARGE, message).at(offset))
}

fn check_export(name: &str, outline: &Outline<'_>, types: &Types, faults: &mut Vec<WasmFault>) {
    let Some((offset, export)) = outline.exports.get(name) else {
        faults.push(WasmFault::of_export(
            &WASM_EXPORT_MISSING,
            name,
            "is missing from the binary",
        ));
        return;
    };
    let kind = match export.kind {
        ExternalKind::Memory => "memory",
        ExternalKind::Table => "table",
        ExternalKind::Global => "global",
        ExternalKind::Tag => "tag",
        ExternalKind::Func | ExternalKind::FuncExact => {
            let messages = signature(types, export).map(signature_faults).unwrap_or_default();
            let messages = messages.iter();
            faults.extend(
                messages.map(|message| WasmFault::of_export(&WASM_EXPORT_SIGNATURE, name, message).at(*offset)),
            );
            return;
        }
    };
    let message = format!("is a {kind}, not a function");
    faults.push(WasmFault::of_export(&WASM_EXPORT_KIND, name, &message).at(*offset));
}

fn signature<'t>(types: &'t Types, export: &Export<'_>) -> Option<&'t FuncType> {
    let types = types.as_ref();
    let id = types.core_function_at(export.index);
    match &types.get(id)?.composite_type.inner {
        CompositeInnerType::Func(signature) => Some(signature),
        CompositeInnerType::Array(_) | CompositeInnerType::Struct(_) | CompositeInnerType::Cont(_) => None,
    }
}

/// What the scalar contract does not allow in a signature.
fn signature_faults(signature: &FuncType) -> Vec<String> {
    let (parameters, results) = (signature.params(), signature.results());
    let arity = PACK_LIMITS.wasm_arity;
    let mut faults = Vec::new();
    if parameters.len() > arity {
        let count = parameters.len();
        faults.push(format!(
            "takes {count} parameters, above the {arity} the scalar contract allows"
        ));
    }
    if results.len() > 1 {
        let count = results.len();
        faults.push(format!(
            "returns {count} values (multi-value), and the scalar contract allows at most one"
        ));
    }
    for (index, parameter) in parameters.iter().enumerate().take(arity) {
        let what = not_scalar(*parameter);
        faults.extend(what.map(|what| format!("takes parameter {index} that {what}")));
    }
    if let [result] = results {
        let what = not_scalar(*result);
        faults.extend(what.map(|what| format!("returns a value that {what}")));
    }
    faults
}

/// What is wrong with a value type that is no scalar.
fn not_scalar(value: ValType) -> Option<String> {
    match value {
        ValType::I32 | ValType::F32 | ValType::F64 => None,
        ValType::I64 => Some("uses i64, which maps to bigint rather than number".to_owned()),
        ValType::V128 => Some("uses v128, a vector type".to_owned()),
        ValType::Ref(reference) => Some(format!("uses the reference type {reference}")),
    }
}
