//! Whatever text a SKILL.md has, what is read of it is what the index may show: a short name, and a description of one line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry::skill::parse;

fuzz_target!(|text: &str| {
    if let Ok(skill) = parse(text) {
        assert!((1..=64).contains(&skill.name.len()));
        assert!((1..=1_024).contains(&skill.description.encode_utf16().count()));
        assert!(!skill.description.contains(['\n', '\r']));
    }
});
