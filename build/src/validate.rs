//! Stage 3: from a declared manifest to a pack whose every authored file was read, inspected and accepted.

use std::collections::BTreeMap;
use std::sync::Arc;

use packferry_core::digest::BlobDigest;
use packferry_core::id::{FileId, PackName, Specifier};
use packferry_core::payload::{Declaration, FileKind};

use crate::discover::PackDir;

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
}
