//! The WASM files of a pack, each held against its declaration.

use std::collections::BTreeMap;

use packferry_core::id::{FileId, Specifier};
use packferry_core::payload::Declaration;

use super::ValidFile;
use crate::diagnostics::Diagnostic;
use crate::inspections::Inspections;
use crate::package_json::RawPack;

pub(super) fn inspect_all(raw: &mut RawPack, files: &BTreeMap<FileId, ValidFile>, inspections: &mut Inspections<'_>) {
    let mut findings = Vec::new();
    for module in &raw.modules {
        let (Some(Declaration::Wasm(declaration)), Some((declared, _))) = (&module.declaration, &module.file) else {
            continue;
        };
        let Some(file) = files.get(&declared.id) else { continue };
        let name = match &raw.name {
            Some(pack) => Specifier::new(pack, &declaration.name).to_string(),
            None => format!("{}/{}", raw.label, declaration.name),
        };
        for fault in inspections.wasm(&file.bytes, file.sha256, declaration) {
            // Some of the validator's messages have lines.
            let sentence: Vec<&str> = fault.message.split_whitespace().collect();
            let message = format!("{name}: {}", sentence.join(" "));
            let offset = fault.offset.and_then(|offset| usize::try_from(offset).ok());
            let diagnostic = Diagnostic::new(fault.rule, message);
            findings.push(diagnostic.in_binary(declared.id.as_str(), offset, fault.export));
        }
    }
    raw.findings.extend(findings);
}
