//! Stage 3: from a declared manifest to a pack whose every authored file was read, inspected and accepted. What is looked at, in
//! this order, is in `validate/`; a fault stops nothing but what depends on it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use packferry_core::digest::BlobDigest;
use packferry_core::id::{FileId, PackName, Specifier};
use packferry_core::payload::{Declaration, FileKind};

use crate::diagnostics::{Diagnostic, FILE_UNREADABLE};
use crate::discover::PackDir;
use crate::fault::Fault;
use crate::inspections::{Inspections, Inspectors};
use crate::pack_files::PackRoot;
use crate::package_json::RawPack;
use crate::registry::Registry;
use crate::skill::{self, SkillFile};

mod files;
mod graphs;
mod hosts;
mod scripts;
mod wasm_files;
mod wire;

/// A file of a pack, accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidFile {
    /// Its kind.
    pub kind: FileKind,
    /// Its bytes, as on disk and as delivered.
    pub bytes: Arc<[u8]>,
    /// SHA-256 of the bytes.
    pub sha256: BlobDigest,
    /// Whether package.json lists it as internal.
    pub internal: bool,
    /// The module that it is the entry of, if it is one.
    pub specifier: Option<Specifier>,
    /// The files it imports, without duplicates, sorted by UTF-16 code units.
    pub dependencies: Vec<FileId>,
    /// What it exports; empty for WASM.
    pub exports: ExportNames,
}

/// What a JavaScript file exports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExportNames {
    /// Names it states itself, `default` included, `export * as x` included.
    pub named: Vec<NamedExport>,
    /// Files of the pack whose names it re-exports by `export * from`.
    pub stars: Vec<FileId>,
}

/// A name that a JavaScript file exports by stating it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedExport {
    /// The name.
    pub name: String,
    /// Where it comes from, if another file of the pack declares it: the file and its name there (`export { a as b } from`, or
    /// an import that is exported again). None for a binding of this file, and for a namespace.
    pub origin: Option<(FileId, String)>,
}

/// What stands behind a declared module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntrySource {
    /// An authored file of [`ValidPack::files`].
    File(FileId),
    /// An npm package, to be bundled.
    Npm(String),
    /// A registered host module with its exports in the registry's order.
    Host(Vec<String>),
    /// A host module, and no registry to look it up in.
    UnregisteredHost,
}

/// A declared module, accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidModule {
    /// Its specifier.
    pub specifier: Specifier,
    /// As package.json declares it, exports in manifest order.
    pub declaration: Declaration,
    /// What stands behind it.
    pub source: EntrySource,
    /// Where package.json declares it.
    pub place: Range<usize>,
}

/// A pack that keeps every rule about authored files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidPack {
    /// Where it lies: the bundler resolves npm entries from here.
    pub dir: PackDir,
    /// Its name.
    pub name: PackName,
    /// Its version, present iff package.json's is a string.
    pub version: Option<String>,
    /// Its description, from SKILL.md.
    pub description: Option<String>,
    /// The `internal` strings, in manifest order.
    pub internal: Vec<String>,
    /// Its modules, in manifest order.
    pub modules: Vec<ValidModule>,
    /// All authored files, public and internal, reached or not.
    pub files: BTreeMap<FileId, ValidFile>,
    /// The exact text of package.json.
    pub package_json: Arc<str>,
    /// The bytes of SKILL.md, where there is one that could be read, whatever it says.
    pub skill: Option<Arc<[u8]>>,
}

/// What the rules are applied with.
#[derive(Clone, Copy)]
pub struct Rulebook<'a> {
    /// Inspect files.
    pub inspectors: Inspectors<'a>,
    /// The operator's host modules; None where there is no registry.
    pub registry: Option<&'a Registry>,
}

/// Judges a pack by every rule about what it authored. The pack is there iff no finding is an error.
///
/// # Errors
/// A [`Fault`] of ours.
pub fn validate(mut raw: RawPack, rules: Rulebook<'_>) -> Result<(Option<ValidPack>, Vec<Diagnostic>), Fault> {
    let real = raw.dir.real.clone();
    let root = match PackRoot::open(&real) {
        Ok(root) => root,
        Err(_) => {
            let message = format!("{}: the pack's directory cannot be read", raw.label);
            raw.findings.push(Diagnostic::new(&FILE_UNREADABLE, message));
            return Ok((None, raw.findings.into_vec()));
        }
    };
    let mut files = files::read_all(&mut raw, &root);
    wire::check_ids(&mut raw);
    let mut inspections = Inspections::of_pack(rules.inspectors, &raw.text);
    scripts::inspect_all(&mut raw, &mut files, &mut inspections)?;
    wasm_files::inspect_all(&mut raw, &files, &mut inspections);
    inspections.keep();
    wire::check_dependencies(&mut raw, &files);
    wire::check_contracts(&mut raw);
    hosts::check_all(&mut raw, rules.registry);
    graphs::check_sizes(&mut raw, &files);
    let skill = skill::read(&root, &raw.label, &mut raw.findings);
    Ok(accept(raw, files, skill, rules.registry))
}

fn accept(
    raw: RawPack,
    files: BTreeMap<FileId, ValidFile>,
    skill: SkillFile,
    registry: Option<&Registry>,
) -> (Option<ValidPack>, Vec<Diagnostic>) {
    let withheld = raw.findings.has_errors();
    let modules = raw.modules.iter().filter_map(|module| {
        let declaration = module.declaration.clone()?;
        Some(ValidModule {
            specifier: Specifier::new(raw.name.as_ref()?, declaration.name()),
            source: match &declaration {
                Declaration::Js(_) | Declaration::Wasm(_) => EntrySource::File(module.file.as_ref()?.0.id.clone()),
                Declaration::Npm(npm) => EntrySource::Npm(npm.npm.clone()),
                Declaration::Host(host) => hosts::source(&host.host, registry),
            },
            declaration,
            place: module.span.clone(),
        })
    });
    let modules: Vec<ValidModule> = modules.collect();
    let pack = raw.name.filter(|_| !withheld).map(|name| ValidPack {
        dir: raw.dir,
        name,
        version: raw.version,
        description: skill.says.map(|skill| skill.description),
        internal: raw.internal.into_iter().map(|file| file.text).collect(),
        modules,
        files,
        package_json: raw.text,
        skill: skill.bytes,
    });
    (pack, raw.findings.into_vec())
}
