//! The WASM files of a pack, each held against its declaration.

use std::collections::BTreeMap;

use packferry_core::id::{FileId, Specifier};
use packferry_core::payload::Declaration;

use super::ValidFile;
use crate::diagnostics::Diagnostic;
use crate::package_json::RawPack;
use crate::wasm;

pub(super) fn inspect_all(raw: &mut RawPack, files: &BTreeMap<FileId, ValidFile>) {
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
        for fault in wasm::inspect(&file.bytes, declaration) {
            let place = fault
                .offset
                .and_then(|offset| usize::try_from(offset).ok())
                .map(|offset| offset..offset);
            let message = format!("{name}: {}", fault.message);
            findings.push(Diagnostic::new(fault.rule, message).at(declared.id.as_str(), place, None));
        }
    }
    raw.findings.extend(findings);
}
