//! The JavaScript files of a pack: inspected one by one, then held against each other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use packferry_core::id::FileId;
use packferry_core::order::by_utf16;
use packferry_core::payload::FileKind;

use super::{ExportNames, NamedExport, ValidFile};
use crate::cycles::{Imports, cycles};
use crate::diagnostics::{Diagnostic, IMPORT_BACKSLASH, IMPORT_CYCLE, IMPORT_PLATFORM, Rule};
use crate::fault::Fault;
use crate::imports::{is_denied_in_guest, resolve};
use crate::inspections::Inspections;
use crate::javascript::{ImportKind, Inspection};
use crate::package_json::{RawPack, quoted};

/// How many files of a circle a message names.
const NAMED: usize = 8;

/// Inspects every JavaScript file, reached or not, and fills in what it imports and exports.
pub(super) fn inspect_all(
    raw: &mut RawPack,
    files: &mut BTreeMap<FileId, ValidFile>,
    inspections: &mut Inspections<'_>,
) -> Result<(), Fault> {
    let declared = declared(raw);
    let mut places: BTreeMap<FileId, Vec<(FileId, Range<usize>)>> = BTreeMap::new();
    for (id, file) in files.iter_mut().filter(|(_, file)| file.kind == FileKind::Js) {
        let inspection = inspections.javascript(&file.bytes, file.sha256)?;
        let mut script = Script {
            raw,
            id,
            bytes: &file.bytes,
            text: None,
        };
        for finding in &inspection.findings {
            script.find(finding.kind.rule(), finding.span.clone(), &finding.kind.to_string());
        }
        let imports = script.resolve_imports(&inspection, &declared);
        file.dependencies = sorted_targets(&imports);
        file.exports = exports(&inspection, id, &declared);
        places.insert(id.clone(), imports);
    }
    check_cycles(raw, files, &places);
    Ok(())
}

/// What each declared file is; the first declaration counts.
fn declared(raw: &RawPack) -> BTreeMap<FileId, FileKind> {
    let internal = raw.internal.iter().map(|file| (file, FileKind::Js));
    let public = raw
        .modules
        .iter()
        .filter_map(|module| module.file.as_ref().map(|(file, kind)| (file, *kind)));
    let mut declared = BTreeMap::new();
    for (file, kind) in internal.chain(public) {
        declared.entry(file.id.clone()).or_insert(kind);
    }
    declared
}

/// A file under inspection.
struct Script<'s> {
    raw: &'s mut RawPack,
    id: &'s FileId,
    bytes: &'s [u8],
    /// The file as text, made when the first finding needs it.
    text: Option<Arc<str>>,
}

impl Script<'_> {
    fn find(&mut self, rule: &'static Rule, place: Range<usize>, sentence: &str) {
        let text = self
            .text
            .get_or_insert_with(|| Arc::from(String::from_utf8_lossy(self.bytes).as_ref()));
        let message = format!("{}/{}: {sentence}", self.raw.label, self.id);
        let diagnostic = Diagnostic::new(rule, message).at(self.id.as_str(), Some(place), Some(text));
        self.raw.findings.push(diagnostic);
    }

    /// The files that the imports lead to, with the imports' places.
    fn resolve_imports(
        &mut self,
        inspection: &Inspection,
        declared: &BTreeMap<FileId, FileKind>,
    ) -> Vec<(FileId, Range<usize>)> {
        let mut targets = Vec::new();
        for import in &inspection.imports {
            if import.is_capability() {
                let sentence = format!("import of {}, which only some hosts register", quoted(&import.source));
                self.find(&IMPORT_PLATFORM, import.span.clone(), &sentence);
                continue;
            }
            match resolve(self.id, &import.source, declared) {
                Ok(target) => {
                    if is_denied_in_guest(&import.source) {
                        let sentence = format!("the guest will deny the import {}", quoted(&import.source));
                        self.find(&IMPORT_BACKSLASH, import.span.clone(), &sentence);
                    }
                    targets.push((target, import.span.clone()));
                }
                Err(astray) => self.find(astray.rule(), import.span.clone(), &astray.sentence(&import.source)),
            }
        }
        targets
    }
}

fn sorted_targets(imports: &[(FileId, Range<usize>)]) -> Vec<FileId> {
    let mut targets: Vec<FileId> = imports.iter().map(|(target, _)| target.clone()).collect();
    targets.sort_by(|a, b| by_utf16(a.as_str(), b.as_str()));
    targets.dedup();
    targets
}

fn exports(inspection: &Inspection, id: &FileId, declared: &BTreeMap<FileId, FileKind>) -> ExportNames {
    let file = |source: &str| resolve(id, source, declared).ok();
    let stars = inspection
        .imports
        .iter()
        .filter(|import| import.kind == ImportKind::Star);
    let named = inspection.exports.iter().map(|export| NamedExport {
        name: export.name.clone(),
        origin: export
            .origin
            .as_ref()
            .and_then(|(source, name)| Some((file(source)?, name.clone()))),
    });
    ExportNames {
        named: named.collect(),
        stars: stars.filter_map(|import| file(&import.source)).collect(),
    }
}

fn check_cycles(
    raw: &mut RawPack,
    files: &BTreeMap<FileId, ValidFile>,
    places: &BTreeMap<FileId, Vec<(FileId, Range<usize>)>>,
) {
    let imports: Imports<'_> = files
        .iter()
        .map(|(id, file)| (id, file.dependencies.iter().collect()))
        .collect();
    for circle in cycles(&imports) {
        let Some(first) = circle.first() else { continue };
        let next = circle.get(1).unwrap_or(first);
        let imports = places.get(*first).into_iter().flatten();
        let place = imports
            .clone()
            .find(|(target, _)| target == *next)
            .map(|(_, place)| place.clone());
        let bytes = files
            .get(*first)
            .map(|file| Arc::clone(&file.bytes))
            .unwrap_or_default();
        let sentence = format!("internal module cycle includes {}", shown(&circle));
        let mut script = Script {
            raw,
            id: first,
            bytes: &bytes,
            text: None,
        };
        script.find(&IMPORT_CYCLE, place.unwrap_or_default(), &sentence);
    }
}

/// `a.js → b.js → a.js`, cut where the circle is long.
fn shown(circle: &[&FileId]) -> String {
    let mut names: Vec<&str> = circle.iter().take(NAMED).map(|id| id.as_str()).collect();
    if circle.len() > NAMED {
        names.push("…");
    }
    names.extend(circle.first().map(|first| first.as_str()));
    names.join(" → ")
}
