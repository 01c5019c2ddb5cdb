//! The WASM contract, by the cases of `fixtures/wasm`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use packferry::wasm::{WasmFault, inspect};
use packferry_core::payload::WasmDeclaration;
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

const INVALID: &str = "invalid WASM binary";

/// A binary, what package.json declares of it, and the faults that come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Case {
    name: String,
    /// The binary: WebAssembly text, hexadecimal bytes, or plain text.
    wat: Option<String>,
    hex: Option<String>,
    text: Option<String>,
    /// Hexadecimal bytes to stand behind it.
    then: Option<String>,
    memory_pages_max: u64,
    exports: Value,
    /// Messages; of an invalid binary, how its message begins.
    faults: Vec<String>,
}

impl Case {
    fn binary(&self) -> Vec<u8> {
        let unhex = |text: &String| hex::decode(text.replace(' ', "")).unwrap();
        let mut bytes = match (&self.wat, &self.hex, &self.text) {
            (Some(wat), None, None) => wat::parse_str(wat).unwrap_or_else(|error| panic!("{}: {error}", self.name)),
            (None, Some(hex), None) => unhex(hex),
            (None, None, Some(text)) => text.clone().into_bytes(),
            _ => panic!("{}: a case has one binary", self.name),
        };
        bytes.extend(self.then.iter().flat_map(unhex));
        bytes
    }

    fn declaration(&self) -> WasmDeclaration {
        declaration(self.memory_pages_max, &self.exports)
    }
}

fn declaration(memory_pages_max: u64, exports: &Value) -> WasmDeclaration {
    let declaration = json!({
        "name": ".", "kind": "wasm", "file": "w.wasm", "memoryPagesMax": memory_pages_max, "exports": exports,
    });
    serde_json::from_value(declaration).unwrap()
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../fixtures/wasm/cases.json")).unwrap()
}

fn check_place(case: &Case, bytes: &[u8], fault: &WasmFault) {
    let in_file = fault.offset.is_none_or(|offset| offset <= bytes.len() as u64);
    assert!(in_file, "{}: {fault:?}", case.name);
    let placed = fault.offset.is_some() || fault.message.ends_with("is missing from the binary");
    assert!(placed, "{}: {fault:?}", case.name);
    let named = fault.export.as_ref();
    let named = named.map(|name| fault.message.starts_with(&format!("export {name} ")));
    assert_eq!(named.is_some(), fault.message.starts_with("export "), "{}", case.name);
    assert_ne!(named, Some(false), "{}", case.name);
}

#[test]
fn every_case_has_exactly_its_faults() {
    for case in cases() {
        let bytes = case.binary();
        let faults = inspect(&bytes, &case.declaration());
        let messages: Vec<String> = faults
            .iter()
            .map(|fault| match fault.message.strip_prefix(INVALID) {
                Some(reason) if reason.len() > 2 => INVALID.to_owned(),
                _ => fault.message.clone(),
            })
            .collect();
        assert_eq!(messages, case.faults, "{}: {faults:?}", case.name);
        for fault in &faults {
            check_place(&case, &bytes, fault);
        }
    }
}

#[test]
fn places_are_those_of_the_sections_entries() {
    let bytes = wat::parse_str(r#"(module (func (export "f")) (memory (export "memory") 1))"#).unwrap();
    let faults = inspect(&bytes, &declaration(1, &json!(["memory", "f"])));
    let at = |fault: &WasmFault| bytes[fault.offset.unwrap() as usize..].to_vec();
    // A memory without a maximum: flags 0, one page.
    assert!(at(&faults[0]).starts_with(&[0, 1]));
    // An export's entry begins with the length of its name.
    assert!(at(&faults[1]).starts_with(b"\x06memory"));
}

#[test]
fn a_binary_cut_off_anywhere_is_no_panic() {
    for case in cases() {
        let bytes = case.binary();
        for length in 0..bytes.len() {
            let faults = inspect(&bytes[..length], &case.declaration());
            assert!(faults.iter().all(|fault| !fault.message.is_empty()), "{}", case.name);
        }
    }
}

proptest! {
    #[test]
    fn a_binary_with_changed_bytes_is_no_panic(
        case in prop::sample::select(cases()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = case.binary();
        prop_assume!(!bytes.is_empty());
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        for fault in inspect(&bytes, &case.declaration()) {
            prop_assert!(fault.offset.is_none_or(|offset| offset <= bytes.len() as u64), "{fault:?}");
        }
    }
}

#[test]
fn what_is_no_core_module_is_called_what_it_is() {
    let component = wat::parse_str("(component)").unwrap();
    let module = wat::parse_str(r#"(module (func (export "f")))"#).unwrap();
    let cases: [(&[u8], &str); 10] = [
        (b"", "the file is empty"),
        (b"\0as", "it ends within its first four bytes"),
        (b"\0asm\x01\0", "it ends within its version"),
        (b"\0asm\x02\0\0\0", "it is of a version that is not 1"),
        (&component, "it is a component, and only core modules are called"),
        (
            b"\n(module)",
            "it is WebAssembly in text form; assemble it, for example with wat2wasm",
        ),
        (
            b";; a",
            "it is WebAssembly in text form; assemble it, for example with wat2wasm",
        ),
        (
            b"export const f = 1;",
            "it does not begin with the four bytes of a WASM file",
        ),
        (b"\0\0\0\0", "it does not begin with the four bytes of a WASM file"),
        (module.split_last().unwrap().1, "it, or a part of it, ends early"),
    ];
    for (bytes, what) in cases {
        let faults = inspect(bytes, &declaration(1, &json!(["f"])));
        let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
        assert_eq!(messages, [format!("{INVALID}: {what}")]);
    }
}
