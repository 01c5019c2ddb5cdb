//! Whatever bytes a JavaScript file has, it is inspected without a panic, and every finding has a place in it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry::javascript::inspect;

fuzz_target!(|bytes: &[u8]| {
    let inspection = inspect(bytes);
    for finding in &inspection.findings {
        assert!(bytes.get(finding.span.clone()).is_some(), "{finding:?}");
    }
    for import in &inspection.imports {
        assert!(matches!(bytes.get(import.span.start), Some(b'\'' | b'"')), "{import:?}");
    }
});
