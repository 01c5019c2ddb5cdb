//! `packferry check`: every pack judged as a build judges it, and what of the good ones would be served. Writes no release and runs no
//! line of a pack.

use std::collections::HashSet;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::id::FileId;
use packferry_core::limits::PACK_LIMITS;
use packferry_core::manifest::{FileEntry, ModuleEntry, PackEntry};
use packferry_core::payload::FileKind;
use packferry_core::record::DeliveredKind;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::diagnostics::{NO_PACK, Severity};
use crate::discover::Roots;
use crate::fault::Fault;
use crate::finding::Finding;
use crate::npm::LazyBundler;
use crate::pipeline::judge;
use crate::progress::Progress;
use crate::text::counted;

/// A pack without an error.
#[derive(Debug)]
pub struct CheckedPack {
    shown: Utf8PathBuf,
    bytes: u64,
    entry: PackEntry,
}

/// What a check found.
#[derive(Debug)]
pub struct Checked {
    packs: Vec<CheckedPack>,
    /// Everything that was found, pack by pack.
    pub findings: Vec<Finding>,
}

/// Checks the packs under `roots`.
///
/// # Errors
/// A [`Fault`] of ours or of the command line.
pub fn check(roots: &Roots, config: Option<&Utf8Path>, cache: &Cache, progress: &Progress) -> Result<Checked, Fault> {
    let bar = |packs| progress.bar("checking", packs);
    let judged = judge(roots, config, LazyBundler::that_only_reads(cache), bar, |ready| {
        let entry = ready.link(|_| Ok(()))?;
        Ok(CheckedPack {
            shown: ready.shown,
            bytes: ready.bytes,
            entry,
        })
    })?;
    Ok(Checked {
        packs: judged.packs,
        findings: judged.findings,
    })
}

impl Checked {
    /// Whether no pack is at fault, and every path that was named holds one.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.count(Severity::Error) == 0 && self.without_packs().next().is_none()
    }

    /// Whether a pack is at fault.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// The paths of the command line that hold no pack.
    pub fn without_packs(&self) -> impl Iterator<Item = &Utf8Path> {
        let empty = self
            .findings
            .iter()
            .filter(|finding| finding.diagnostic.rule.code == NO_PACK.code);
        empty.map(|finding| finding.about.shown.as_path())
    }

    fn count(&self, severity: Severity) -> usize {
        let rules = self.findings.iter().map(|finding| finding.diagnostic.rule);
        rules.filter(|rule| rule.severity == severity).count()
    }

    /// What would be served, and a last line that sums up.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.packs.iter().flat_map(CheckedPack::lines).collect();
        let modules: usize = self.packs.iter().map(|pack| pack.entry.modules.len()).sum();
        lines.push(format!(
            "{} with {} would be served; {}, {} skipped, {}",
            counted(self.packs.len() as u64, "pack"),
            counted(modules as u64, "module"),
            counted(self.count(Severity::Error) as u64, "error"),
            self.count(Severity::Skipped),
            counted(self.count(Severity::Warning) as u64, "warning"),
        ));
        lines
    }

    /// The report of `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "version": 1,
            "clean": self.is_clean(),
            "packs": self.packs.iter().map(CheckedPack::to_json).collect::<Vec<_>>(),
            "diagnostics": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }
}

impl CheckedPack {
    fn lines(&self) -> Vec<String> {
        let PackEntry {
            name, version, digest, ..
        } = &self.entry;
        let version = version
            .as_ref()
            .map(|version| format!(" {version}"))
            .unwrap_or_default();
        let mut lines = vec![
            format!("{name}{version} in {}", self.shown),
            format!("  {}  {digest}", against(self.bytes, Some(PACK_LIMITS.pack_bytes))),
        ];
        let rows = self
            .entry
            .modules
            .iter()
            .map(module_row)
            .chain(self.files().map(|file| self.file_row(file)));
        lines.extend(aligned(&rows.collect::<Vec<_>>()));
        let unavailable = self.entry.unavailable.iter();
        lines.extend(unavailable.map(|row| format!("  {}  unavailable: {}", row.specifier, row.code)));
        lines
    }

    /// The files that are no module's own.
    fn files(&self) -> impl Iterator<Item = &FileEntry> {
        let entries: HashSet<&FileId> = self.entry.modules.iter().map(|module| &module.file_id).collect();
        self.entry.files.iter().filter(move |file| !entries.contains(&file.id))
    }

    fn file_row(&self, file: &FileEntry) -> [String; 4] {
        [
            format!("{}::{}", self.entry.name, file.id),
            "internal".to_owned(),
            against(file.size, Some(limit_of(file.kind))),
            file.sha256.to_string(),
        ]
    }

    fn to_json(&self) -> Value {
        let PackEntry {
            name,
            version,
            description,
            digest,
            ..
        } = &self.entry;
        let modules = self.entry.modules.iter().map(|module| {
            json!({
                "specifier": module.specifier, "kind": module.kind, "id": format!("{name}::{}", module.file_id),
                "pinnedId": module.graph_digest, "sha256": module.sha256, "size": module.size, "limit": limit(module),
                "dependencies": module.dependencies, "exports": module.exports, "npm": module.npm, "hostId": module.host_id,
            })
        });
        let files = self.entry.files.iter().map(|file| {
            json!({
                "id": format!("{name}::{}", file.id), "pinnedId": format!("{}::{}", file.graph_digest, file.id), "kind": file.kind,
                "internal": file.internal, "sha256": file.sha256, "size": file.size, "limit": limit_of(file.kind),
            })
        });
        json!({
            "name": name, "version": version, "description": description, "directory": self.shown.as_str(), "digest": digest,
            "size": self.bytes, "limit": PACK_LIMITS.pack_bytes,
            "modules": modules.collect::<Vec<_>>(), "files": files.collect::<Vec<_>>(), "unavailable": self.entry.unavailable,
        })
    }
}

fn module_row(module: &ModuleEntry) -> [String; 4] {
    let kind = match module.kind {
        DeliveredKind::Js => "js",
        DeliveredKind::Wasm => "wasm",
        DeliveredKind::Host => "host",
    };
    [
        module.specifier.to_string(),
        format!("{kind}  {}", module.file_id),
        against(module.size, limit(module)),
        module.graph_digest.to_string(),
    ]
}

fn limit_of(kind: FileKind) -> u64 {
    match kind {
        FileKind::Js => PACK_LIMITS.js_bytes,
        FileKind::Wasm => PACK_LIMITS.wasm_bytes,
    }
}

/// The bytes that a module's file may have; a facade has no limit of its own.
fn limit(module: &ModuleEntry) -> Option<u64> {
    match module.kind {
        DeliveredKind::Js if module.npm.is_some() => Some(PACK_LIMITS.npm_bytes),
        DeliveredKind::Js => Some(PACK_LIMITS.js_bytes),
        DeliveredKind::Wasm => Some(PACK_LIMITS.wasm_bytes),
        DeliveredKind::Host => None,
    }
}

fn against(bytes: u64, limit: Option<u64>) -> String {
    match limit {
        Some(limit) => format!("{bytes} of {limit} bytes"),
        None => counted(bytes, "byte"),
    }
}

/// Rows with their columns under each other.
fn aligned<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
