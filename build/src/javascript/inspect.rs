//! Inspects one file, on the stack of the thread in hand.

use oxc_allocator::Allocator;
use oxc_ast::ast::{IdentifierReference, Program, Statement, StringLiteral};
use oxc_semantic::Scoping;
use oxc_syntax::module_record::{ExportExportName, ExportImportName, ImportImportName, ModuleRecord, NameSpan};

use super::finding::{Finding, FindingKind};
use super::parse::{parse, resolve};
use super::walk::{Walked, walk};
use super::{Export, Import, ImportKind, Inspection};

/// Levels of a module's tree. No parser that NodeTool's packs meet takes as many, and the stack that files are parsed on holds
/// them with room to spare, so that the answer depends on the file alone.
const LEVELS: usize = 16_384;

/// Inspects a file on the stack of this thread. A hostile one overflows it, or takes minutes: for files that nobody trusts there
/// is [`super::Inspector`].
#[must_use]
pub fn inspect(bytes: &[u8]) -> Inspection {
    match text(bytes) {
        Ok(text) => inspect_text(text).unwrap_or_else(|mut errors| {
            errors.sort_by_key(|error| error.span.start);
            Inspection::of(errors)
        }),
        Err(finding) => Inspection::of(vec![finding]),
    }
}

/// What keeps a text from being a module that a guest can be given, if anything does. As recursive as [`inspect`].
#[must_use]
pub fn syntax_error(source: &str) -> Option<Finding> {
    let read = text(source.as_bytes()).map_err(|finding| vec![finding]);
    let errors = read.and_then(inspect_text).err()?;
    errors.into_iter().min_by_key(|error| error.span.start)
}

/// The text of a file that a guest can be given as it is.
pub(super) fn text(bytes: &[u8]) -> Result<&str, Finding> {
    let finding = |kind, start, end| Finding { kind, span: start..end };
    let text = str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        let length = error.error_len().unwrap_or(bytes.len() - start);
        finding(FindingKind::NotUtf8(start), start, start + length)
    })?;
    if let Some(nul) = text.find('\0') {
        return Err(finding(FindingKind::Nul(nul), nul, nul + 1));
    }
    if text.starts_with("#!") {
        return Err(finding(FindingKind::Hashbang, 0, 2));
    }
    Ok(text)
}

fn inspect_text(text: &str) -> Result<Inspection, Vec<Finding>> {
    let allocator = Allocator::default();
    let parsed = parse(&allocator, text)?;
    let walked = walk(&parsed.program);
    if walked.depth > LEVELS {
        return Err(vec![Finding {
            kind: FindingKind::NestedTooDeeply,
            span: 0..0,
        }]);
    }
    let (scoping, mut errors) = resolve(&parsed.program, walked.stats, &walked.acorn.tolerated);
    errors.extend_from_slice(&walked.acorn.refused);
    if !errors.is_empty() {
        return Err(errors);
    }
    let imports = imports(&parsed.program);
    let mut findings = walked_findings(walked, &scoping, text);
    findings.sort_by_key(|finding| finding.span.start);
    Ok(Inspection {
        findings,
        imports,
        exports: exports(&parsed.module_record),
    })
}

fn walked_findings(walked: Walked<'_>, scoping: &Scoping, text: &str) -> Vec<Finding> {
    let mut findings = walked.findings;
    let (mut line, mut seen) = (1, 0);
    for reference in walked.removed {
        if !is_free(reference, scoping) {
            continue;
        }
        let span = reference.span.start as usize..reference.span.end as usize;
        line += text.get(seen..span.start).map_or(0, |text| text.matches('\n').count());
        seen = span.start;
        let kind = FindingKind::RemovedGlobal(reference.name.to_string(), line);
        findings.push(Finding { kind, span });
    }
    findings
}

fn is_free(reference: &IdentifierReference<'_>, scoping: &Scoping) -> bool {
    let id = reference.reference_id.get();
    id.is_some_and(|id| scoping.get_reference(id).symbol_id().is_none())
}

fn imports(program: &Program<'_>) -> Vec<Import> {
    let import = |source: &StringLiteral<'_>, kind| Import {
        source: source.value.to_string(),
        span: source.span.start as usize..source.span.end as usize,
        kind,
    };
    let statements = program.body.iter();
    statements
        .filter_map(|statement| match statement {
            Statement::ImportDeclaration(statement) => Some(import(&statement.source, ImportKind::Import)),
            Statement::ExportFromDeclaration(statement) => Some(import(&statement.source, ImportKind::ReExport)),
            Statement::ExportAllDeclaration(statement) => {
                let named = statement.exported.is_some();
                let kind = if named { ImportKind::ReExport } else { ImportKind::Star };
                Some(import(&statement.source, kind))
            }
            _ => None,
        })
        .collect()
}

fn exports(record: &ModuleRecord<'_>) -> Vec<Export> {
    let entries = record.local_export_entries.iter();
    let entries = entries.chain(&record.indirect_export_entries);
    let mut exports: Vec<(u32, Export)> = entries
        .filter_map(|entry| {
            let (place, name) = match &entry.export_name {
                ExportExportName::Name(name) => (name.span.start, name.name.to_string()),
                ExportExportName::Default(span) => (span.start, "default".to_owned()),
                ExportExportName::Null => return None,
            };
            let origin = match (&entry.module_request, &entry.import_name) {
                (Some(source), ExportImportName::Name(there)) => {
                    Some((source.name.to_string(), imported_name(record, there)))
                }
                _ => None,
            };
            Some((place, Export { name, origin }))
        })
        .collect();
    exports.sort_by_key(|(place, _)| *place);
    exports.into_iter().map(|(_, export)| export).collect()
}

/// The name of an export in the file that it comes from. For an import of the default that is exported again, the record holds the
/// local name in its place; the import tells.
fn imported_name(record: &ModuleRecord<'_>, name: &NameSpan<'_>) -> String {
    let is_default = record.import_entries.iter().any(|import| {
        matches!(import.import_name, ImportImportName::Default(_)) && import.local_name.span == name.span
    });
    if is_default {
        "default".to_owned()
    } else {
        name.name.to_string()
    }
}
