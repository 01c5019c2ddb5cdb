//! What of a pack has to fit the wire: module ids, and the two headers that grow with it (pack contract, table of differences).

use std::collections::BTreeMap;
use std::ops::Range;

use packferry_core::canonical;
use packferry_core::contract::WasmContract;
use packferry_core::id::{FileId, Specifier};
use packferry_core::limits::PACK_LIMITS;
use packferry_core::payload::{Declaration, ExportDeclaration};

use super::ValidFile;
use crate::diagnostics::{
    CONTRACT_TOO_LONG, DEPENDENCIES_TOO_LONG, Diagnostic, FILE_ID_NOT_DELIVERABLE, MODULE_ID_TOO_LONG, Rule,
};
use crate::package_json::{RawPack, quoted};

/// Hexadecimal digits of a graph digest.
const DIGEST_CHARS: usize = 64;

type Fault = (&'static Rule, Range<usize>, String);

fn add(raw: &mut RawPack, faults: Vec<Fault>) {
    for (rule, place, message) in faults {
        let message = format!("{}: {message}", raw.label);
        raw.find(rule, place, message);
    }
}

/// Checks every id that a request could name: `<specifier>`, `<pack>::<file>` and `<graph digest>::<file>`.
pub(super) fn check_ids(raw: &mut RawPack) {
    let public = raw
        .modules
        .iter()
        .filter_map(|module| module.file.as_ref().map(|(file, _)| file));
    let files = raw.internal.iter().chain(public);
    let mut faults: Vec<Fault> = Vec::new();
    for file in files {
        faults.extend(check_file_is_deliverable(&file.id, &file.text, file.span.clone()));
        faults.extend(check_file_id_length(raw, &file.id, file.span.clone()));
    }
    for module in &raw.modules {
        let (Some(pack), Some(declaration)) = (&raw.name, &module.declaration) else {
            continue;
        };
        let specifier = Specifier::new(pack, declaration.name());
        faults.extend(check_length(
            specifier.as_str(),
            specifier.as_str().len(),
            module.span.clone(),
        ));
        let generated = match declaration {
            Declaration::Npm(npm) => FileId::npm(&npm.npm),
            Declaration::Host(host) => FileId::host(&host.host),
            Declaration::Js(_) | Declaration::Wasm(_) => continue,
        };
        faults.extend(check_file_id_length(raw, &generated, module.span.clone()));
    }
    add(raw, faults);
}

fn check_file_is_deliverable(id: &FileId, text: &str, place: Range<usize>) -> Option<Fault> {
    if id.is_deliverable() {
        return None;
    }
    let message = format!(
        "the file name {} cannot be delivered: a header carries printable ASCII without outer spaces",
        quoted(text)
    );
    Some((&FILE_ID_NOT_DELIVERABLE, place, message))
}

fn check_file_id_length(raw: &RawPack, id: &FileId, place: Range<usize>) -> Option<Fault> {
    let pack = raw.name.as_ref().map_or(0, |name| name.as_str().len());
    let longest = pack.max(DIGEST_CHARS) + "::".len() + id.as_str().len();
    check_length(id.as_str(), longest, place)
}

fn check_length(what: &str, bytes: usize, place: Range<usize>) -> Option<Fault> {
    let limit = PACK_LIMITS.module_id_bytes;
    let message = || {
        format!(
            "the module id of {} has {bytes} bytes, and the limit is {limit}",
            quoted(what)
        )
    };
    (bytes > limit).then(|| (&MODULE_ID_TOO_LONG, place, message()))
}

/// Checks the header that lists what a file imports, as pinned ids.
pub(super) fn check_dependencies(raw: &mut RawPack, files: &BTreeMap<FileId, ValidFile>) {
    let limit = PACK_LIMITS.header_bytes;
    let digest = "0".repeat(DIGEST_CHARS);
    for (id, file) in files {
        let pinned: Vec<String> = file.dependencies.iter().map(|id| format!("{digest}::{id}")).collect();
        let bytes = canonical::to_json(&pinned).len();
        if bytes > limit {
            let message = format!(
                "{}/{id}: the header that lists its {} imports has {bytes} bytes, and the limit is {limit}",
                raw.label,
                pinned.len()
            );
            raw.findings
                .push(Diagnostic::new(&DEPENDENCIES_TOO_LONG, message).at(id.as_str(), None, None));
        }
    }
}

/// Checks the header that states a WASM module's call contract.
pub(super) fn check_contracts(raw: &mut RawPack) {
    let limit = PACK_LIMITS.header_bytes;
    let mut faults: Vec<Fault> = Vec::new();
    for module in &raw.modules {
        let Some(Declaration::Wasm(declaration)) = &module.declaration else {
            continue;
        };
        let contract = WasmContract {
            memory_pages_max: declaration.memory_pages_max,
            exports: declaration.exports.iter().map(ExportDeclaration::pair).collect(),
            limits: declaration.limits.clone(),
        };
        let bytes = canonical::to_json(&contract).len();
        if bytes > limit {
            let message = format!(
                "the header that states the call contract of module {} has {bytes} bytes, and the limit is {limit}",
                declaration.name
            );
            faults.push((&CONTRACT_TOO_LONG, module.span.clone(), message));
        }
    }
    add(raw, faults);
}
