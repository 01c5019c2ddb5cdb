//! Whatever bytes a package.json has, it is judged without a panic, every finding has a place in it, and nothing that a terminal
//! would obey is in what a person is shown.

#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use packferry::discover::{PackDir, Standing};
use packferry::finding::Subject;
use packferry::package_json::{Outcome, parse};
use packferry::report::rendered;

fuzz_target!(|bytes: &[u8]| {
    let dir = PackDir {
        shown: "pack".into(),
        real: PathBuf::from("/pack"),
        named: true,
        standing: Standing::Installed,
        staged: None,
    };
    let findings = match parse(&dir, bytes) {
        Outcome::NotAPack => return,
        Outcome::Refused { findings, .. } => findings,
        Outcome::Pack(pack) => pack.findings.into_vec(),
    };
    let about = Subject {
        pack: None,
        shown: "pack".into(),
    };
    for finding in about.findings(findings) {
        let place = finding.diagnostic.location.as_ref();
        if let Some((text, span)) = place.and_then(|place| Some((place.text.as_ref()?, place.span.as_ref()?))) {
            assert!(text.get(span.clone()).is_some(), "{finding:?}");
        }
        finding.to_json();
        let shown = rendered(&finding, false);
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    }
});
