//! Whatever a staged tree has for a list, what is read of it is written as it was read, leads nowhere but into the tree, and is found.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packferry::staging::{StagingList, pack_of};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(list) = StagingList::parse(bytes) {
        assert_eq!(list.to_json().as_bytes(), bytes);
        for file in &list.files {
            let path = file.path.as_str();
            assert!(!path.starts_with('/') && !path.split('/').any(|segment| matches!(segment, "" | "." | "..")));
            assert!(list.has_file(path));
            for (end, _) in path.match_indices('/') {
                assert!(list.has_folder(&path[..end]));
            }
            assert!(pack_of(path).is_none_or(|pack| path[pack.len()..].starts_with('/')));
        }
        for row in &list.npm {
            assert_eq!(list.entry(&row.specifier), Some(row));
        }
    }
});
