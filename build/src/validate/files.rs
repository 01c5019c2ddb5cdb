//! The declared files of a pack: found, opened, within their caps, read. Never more than the pack's cap is held.

use std::collections::BTreeMap;
use std::ops::Range;

use packferry_core::digest::BlobDigest;
use packferry_core::id::{FileId, Specifier};
use packferry_core::limits::PACK_LIMITS;
use packferry_core::payload::FileKind;

use super::{ExportNames, ValidFile};
use crate::diagnostics::{
    Diagnostic, FILE_ESCAPES, FILE_MISSING, FILE_SYMLINK, FILE_TOO_LARGE, FILE_UNREADABLE, PACK_TOO_LARGE, Rule,
};
use crate::pack_files::{PackRoot, Unread};
use crate::package_json::{PACKAGE_JSON, RawPack};

/// A declared file.
struct Declared {
    id: FileId,
    place: Range<usize>,
    kind: FileKind,
    internal: bool,
    specifier: Option<Specifier>,
}

/// Reads every file that the pack declares well, each once, until the pack's cap is reached; beyond it, files are only looked
/// at. Dependencies and exports are still empty.
pub(super) fn read_all(raw: &mut RawPack, root: &PackRoot<'_>) -> BTreeMap<FileId, ValidFile> {
    let mut files = BTreeMap::new();
    let mut total = 0;
    let mut count = 0;
    for file in declared(raw) {
        if files.contains_key(&file.id) {
            // Declared twice: a finding was made where package.json was read.
            continue;
        }
        let read = root.open_file(&file.id, limit(file.kind)).and_then(|opened| {
            total += opened.bytes();
            count += 1;
            if total <= PACK_LIMITS.pack_bytes {
                opened.read().map(Some)
            } else {
                Ok(None)
            }
        });
        match read {
            Ok(Some(bytes)) => {
                let file_id = file.id.clone();
                files.insert(file_id, accepted(file, bytes));
            }
            Ok(None) => {}
            Err(unread) => {
                let (rule, message) = fault(&file, unread);
                let message = format!("{}: {message}", raw.label);
                raw.find(rule, file.place, message);
            }
        }
    }
    check_total(raw, total, count);
    files
}

/// The files in the order of the contract: internal ones, then those of modules.
fn declared(raw: &RawPack) -> Vec<Declared> {
    let internal = raw.internal.iter().map(|file| Declared {
        id: file.id.clone(),
        place: file.span.clone(),
        kind: FileKind::Js,
        internal: true,
        specifier: None,
    });
    let public = raw.modules.iter().filter_map(|module| {
        let (file, kind) = module.file.as_ref()?;
        let declaration = module.declaration.as_ref();
        Some(Declared {
            id: file.id.clone(),
            place: file.span.clone(),
            kind: *kind,
            internal: false,
            specifier: raw
                .name
                .as_ref()
                .zip(declaration)
                .map(|(pack, declaration)| Specifier::new(pack, declaration.name())),
        })
    });
    internal.chain(public).collect()
}

fn limit(kind: FileKind) -> u64 {
    match kind {
        FileKind::Js => PACK_LIMITS.js_bytes,
        FileKind::Wasm => PACK_LIMITS.wasm_bytes,
    }
}

fn accepted(file: Declared, bytes: Vec<u8>) -> ValidFile {
    ValidFile {
        kind: file.kind,
        sha256: BlobDigest::of(&bytes),
        bytes: bytes.into(),
        internal: file.internal,
        specifier: file.specifier,
        dependencies: Vec::new(),
        exports: ExportNames::default(),
    }
}

fn fault(file: &Declared, unread: Unread) -> (&'static Rule, String) {
    let id = &file.id;
    match unread {
        Unread::Missing => (&FILE_MISSING, format!("sandbox path does not exist: {id}")),
        Unread::Escapes => (&FILE_ESCAPES, format!("{id}: file escapes the package directory")),
        Unread::Symlink => (
            &FILE_SYMLINK,
            format!("{id}: symlinks are not allowed in sandbox modules"),
        ),
        Unread::NotRegular => (
            &FILE_UNREADABLE,
            format!("cannot read sandbox file: {id} is not a regular file"),
        ),
        Unread::Failed(reason) => (&FILE_UNREADABLE, format!("cannot read sandbox file: {id}: {reason}")),
        Unread::TooLarge { bytes } => {
            let kind = match file.kind {
                FileKind::Js => "js",
                FileKind::Wasm => "wasm",
            };
            let limit = limit(file.kind);
            (
                &FILE_TOO_LARGE,
                format!("{id}: {kind} module cap exceeds the {limit} byte limit: it has {bytes} bytes"),
            )
        }
    }
}

fn check_total(raw: &mut RawPack, total: u64, count: usize) {
    let cap = PACK_LIMITS.pack_bytes;
    if total > cap {
        let message = format!(
            "{}: sandbox files exceed the {cap} byte pack cap: {count} files have {total} bytes (what is beyond the cap was not inspected)",
            raw.label
        );
        raw.findings
            .push(Diagnostic::new(&PACK_TOO_LARGE, message).at(PACKAGE_JSON, None, None));
    }
}
