//! How large the graphs of a pack become. Every module has a graph of its own with all files that it reaches, so a small pack whose
//! modules share large files, or many, would fill memory and disk.

use std::collections::BTreeMap;

use packferry_core::id::FileId;
use packferry_core::limits::PACK_LIMITS;

use super::ValidFile;
use crate::diagnostics::{Diagnostic, GRAPHS_TOO_LARGE};
use crate::package_json::{PACKAGE_JSON, RawPack};

/// What it takes to list a file in a graph, beside its bytes.
const LISTING: u64 = 512;
/// What it takes to list a name that a file exports.
const NAME: u64 = 256;

/// Checks the graphs of all modules together. Only of a pack that is good so far: others have none.
pub(super) fn check_sizes(raw: &mut RawPack, files: &BTreeMap<FileId, ValidFile>) {
    let limit = PACK_LIMITS.graphs_bytes;
    if raw.findings.has_errors() || !exceeds(raw, files, limit) {
        return;
    }
    let message = format!(
        "{}: the graphs of its {} modules have more than {limit} bytes together",
        raw.label,
        raw.modules.len()
    );
    let diagnostic = Diagnostic::new(&GRAPHS_TOO_LARGE, message).at(PACKAGE_JSON, None, None);
    raw.findings.push(diagnostic);
}

/// Whether the graphs of `raw` are larger than `limit`; counts no further than that.
fn exceeds(raw: &RawPack, files: &BTreeMap<FileId, ValidFile>, limit: u64) -> bool {
    let mut total = 0;
    for (entry, _) in raw.modules.iter().filter_map(|module| module.file.as_ref()) {
        let mut reached: BTreeMap<&FileId, &ValidFile> = BTreeMap::new();
        let mut open = vec![&entry.id];
        while let Some((id, file)) = open.pop().and_then(|id| files.get_key_value(id)) {
            if reached.insert(id, file).is_none() {
                total += file.bytes.len() as u64 + LISTING + NAME * file.exports.named.len() as u64;
                open.extend(&file.dependencies);
            }
            if total > limit {
                return true;
            }
        }
    }
    false
}
