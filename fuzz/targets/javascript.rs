//! Whatever bytes a JavaScript file has, it is inspected without a panic, and every finding has a place in it. As a bundle it is
//! scanned without a panic, and is no module iff it is none as a file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry::javascript::{FindingKind, inspect};
use packferry::scan::{Verdict, scan};

fuzz_target!(|bytes: &[u8]| {
    let inspection = inspect(bytes);
    for finding in &inspection.findings {
        assert!(bytes.get(finding.span.clone()).is_some(), "{finding:?}");
    }
    for import in &inspection.imports {
        assert!(matches!(bytes.get(import.span.start), Some(b'\'' | b'"')), "{import:?}");
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let is_module = !inspection.findings.iter().any(|finding| {
        matches!(
            finding.kind,
            FindingKind::Syntax(_) | FindingKind::Nul(_) | FindingKind::Hashbang | FindingKind::NestedTooDeeply
        )
    });
    match scan(text) {
        Verdict::TooDeep => assert!(!is_module),
        Verdict::Rejected(finding) => {
            assert!(is_module || finding.what.starts_with("is not") || finding.what.starts_with("holds"));
            assert!(finding.offset <= text.len());
        }
        Verdict::Forbidden(findings) => {
            assert!(is_module);
            for finding in findings {
                assert!(text.get(finding.offset..).is_some_and(|rest| !rest.is_empty()), "{finding:?}");
            }
        }
        Verdict::Accepted(_) => assert!(is_module),
    }
});
