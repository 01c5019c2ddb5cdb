//! Whatever bytes a WASM file has, it is judged without a panic, and every fault has a place in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry::wasm::inspect;
use packferry_core::payload::WasmDeclaration;

fuzz_target!(|bytes: &[u8]| {
    let declaration =
        r#"{"name":".","kind":"wasm","file":"w.wasm","memoryPagesMax":16,"exports":["f",{"wasm":"memory","as":"m"}]}"#;
    let Ok(declaration) = serde_json::from_str::<WasmDeclaration>(declaration) else {
        unreachable!("the declaration is a valid one");
    };
    for fault in inspect(bytes, &declaration) {
        assert!(
            fault.offset.is_none_or(|offset| offset <= bytes.len() as u64),
            "{fault:?}"
        );
    }
});
