//! File strings and imports, one a line: what is read as a file's id stays in the pack and reads as itself, and an import leads to
//! a declared file or nowhere.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use packferry::imports::resolve;
use packferry::package_json::file_id;
use packferry_core::id::FileId;
use packferry_core::payload::FileKind;

fuzz_target!(|text: &str| {
    let mut declared = BTreeMap::new();
    for id in text.lines().filter_map(|line| file_id(line).ok()) {
        assert_eq!(FileId::parse(id.as_str()).as_ref(), Ok(&id));
        assert!(!id.as_str().split('/').any(|segment| matches!(segment, "" | "." | "..")));
        let kind = if id.as_str().ends_with(".wasm") { FileKind::Wasm } else { FileKind::Js };
        declared.insert(id, kind);
    }
    for importer in declared.keys() {
        for source in text.lines() {
            match resolve(importer, source, &declared) {
                Ok(id) => assert_eq!(declared.get(&id), Some(&FileKind::Js)),
                Err(astray) => assert!(astray.sentence(source).len() < 2_000),
            }
        }
    }
});
