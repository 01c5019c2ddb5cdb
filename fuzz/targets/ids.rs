//! Ids from paths: no text panics, what is read prints as it was asked for, and reading it again gives the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry_core::id::{FileId, ModuleId, PackName, Specifier};

fuzz_target!(|text: &str| {
    if let Ok(id) = ModuleId::from_path(text) {
        let printed = id.to_string();
        assert!(printed.len() <= 512 && !printed.chars().any(char::is_control));
        assert_eq!(ModuleId::split(printed), id);
    }
    if let Ok(file) = FileId::normalize(text) {
        assert_eq!(FileId::parse(file.as_str()).as_ref(), Ok(&file));
        assert!(!file.as_str().split('/').any(|segment| matches!(segment, "" | "." | "..")));
    }
    if let Ok(specifier) = Specifier::parse(text) {
        assert!(PackName::parse(specifier.pack()).is_ok());
    }
});
