//! `packferry stage`: the packs under some roots beside an application, with all that a build of them needs and nothing else. The tree
//! is written apart and exchanged in one step: readers see the old one or the new one, whole.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::sync::{Arc, Mutex};

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::{BlobDigest, ManifestDigest};
use packferry_core::id::{FileId, PackName};
use packferry_core::manifest::{self, PackEntry, WrittenManifest};
use packferry_core::order::by_utf16;
use packferry_core::payload::BundlerName;
use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};

use crate::bundled::{BundledPack, NpmOutcome};
use crate::cache::Cache;
use crate::diagnostics::{Diagnostic, NO_PACK, STAGED_CASE};
use crate::discover::Roots;
use crate::fault::{Fault, reason};
use crate::finding::{Finding, Subject};
use crate::npm::LazyBundler;
use crate::package_json::PACKAGE_JSON;
use crate::pipeline::{Judged, Ready, judge};
use crate::progress::Progress;
use crate::skill::SKILL_MD;
use crate::staging::{
    DOCUMENT_BYTES, MANIFEST, STAGED_TREE, STAGING_LIST, StagedEntry, StagedFile, StagingList, bundle_path, pack_of,
    shard_path,
};
use crate::text::counted;
use crate::validate::EntrySource;

/// What a run of `packferry stage` did.
#[derive(Debug)]
pub struct StageOutcome {
    /// What was staged; None where a pack is at fault, and the old tree stands.
    pub staged: Option<Staged>,
    /// Everything that was found, pack by pack.
    pub findings: Vec<Finding>,
}

/// A tree that was staged.
#[derive(Debug)]
pub struct Staged {
    /// The manifest's digest: that of a release built from the same roots.
    pub manifest: ManifestDigest,
    /// How many packs it has.
    pub packs: usize,
    /// How many modules are delivered.
    pub modules: usize,
    /// How many modules are declared but not delivered.
    pub unavailable: usize,
    /// How many files it has, its list among them.
    pub files: usize,
}

impl StageOutcome {
    /// One line for a person.
    #[must_use]
    pub fn summary(&self, out: &Utf8Path) -> String {
        let tree = out.join(STAGED_TREE);
        let Some(staged) = &self.staged else {
            return format!("Nothing was staged into {tree}: every pack has to be in order");
        };
        let unavailable = match staged.unavailable {
            0 => String::new(),
            count => format!("; {} unavailable", counted(count as u64, "module")),
        };
        format!(
            "Staged {} with {} into {tree}: manifest {} ({}{unavailable})",
            counted(staged.packs as u64, "pack"),
            counted(staged.modules as u64, "module"),
            staged.manifest,
            counted(staged.files as u64, "file")
        )
    }

    /// The report of `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let staged = self.staged.as_ref().map(|staged| {
            json!({
                "manifest": staged.manifest, "packs": staged.packs, "modules": staged.modules,
                "unavailable": staged.unavailable, "files": staged.files,
            })
        });
        json!({
            "version": 1,
            "staged": staged,
            "diagnostics": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }

    fn errors(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_error())
    }
}

/// Stages the packs under `roots` in `out`, as `_sandbox`.
///
/// # Errors
/// A [`Fault`] of ours or of the command line: also where there is no pack at all. The old tree then stands.
pub fn stage(
    roots: &Roots,
    config: Option<&Utf8Path>,
    out: &Utf8Path,
    cache: &Cache,
    progress: &Progress,
) -> Result<StageOutcome, Fault> {
    let tree = NewTree::open(out)?;
    let bar = |packs| progress.bar("staging", packs);
    let judged = judge(roots, config, LazyBundler::new(cache), bar, |ready| {
        tree.write_pack(&ready)?;
        Share::of(&ready)
    })?;
    cache.trim();
    if let Some(path) = root_without_pack(roots, &judged) {
        let fault = Fault::new(format!("{path} holds no pack, so nothing was staged"));
        return Err(fault.hint("A pack is a directory with a package.json that lists nodetool.sandboxModules."));
    }
    let mut outcome = StageOutcome {
        staged: None,
        findings: judged.findings,
    };
    if outcome.errors().next().is_some() {
        return Ok(outcome);
    }
    let documents = Documents::of(&judged.packs)?;
    outcome.findings.extend(case_findings(&documents.list, &judged.packs));
    if outcome.errors().next().is_some() {
        return Ok(outcome);
    }
    tree.write_documents(&documents)?;
    tree.swap_in()?;
    let entries = || judged.packs.iter().map(|share| &share.entry);
    outcome.staged = Some(Staged {
        manifest: documents.manifest.digest,
        packs: judged.packs.len(),
        modules: entries().map(|pack| pack.modules.len()).sum(),
        unavailable: entries().map(|pack| pack.unavailable.len()).sum(),
        files: documents.list.files.len() + 1,
    });
    Ok(outcome)
}

/// The root that holds no pack, or all of them where there is none at all; not where a pack at fault says more. Staging goes by the paths
/// that it was given, so one of them misspelt is no small thing.
#[must_use]
pub fn root_without_pack<T>(roots: &Roots, judged: &Judged<T>) -> Option<String> {
    if judged.findings.iter().any(Finding::is_error) {
        return None;
    }
    let empty = judged
        .findings
        .iter()
        .find(|finding| finding.diagnostic.rule.code == NO_PACK.code);
    empty
        .map(|finding| finding.about.shown.to_string())
        .or_else(|| judged.packs.is_empty().then(|| roots.to_string()))
}

/// What a staged tree says of one pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Where the pack lies, as the user would name it.
    pub shown: Utf8PathBuf,
    /// Its entry in the manifest.
    pub entry: PackEntry,
    /// Its files, by their paths in the tree.
    pub files: BTreeMap<FileId, BlobDigest>,
    /// Its npm entries that are delivered.
    pub npm: Vec<StagedEntry>,
}

impl Share {
    /// The share of a pack that went through all stages.
    ///
    /// # Errors
    /// A [`Fault`] of ours: every name was checked before.
    pub fn of(ready: &Ready) -> Result<Self, Fault> {
        let digests = contents(ready)?
            .into_iter()
            .map(|(path, bytes)| (path, BlobDigest::of(bytes)));
        Ok(Self {
            shown: ready.shown.clone(),
            entry: ready.link(|_| Ok(()))?,
            files: digests.collect(),
            npm: bundles(ready).map(|(row, _)| row).collect(),
        })
    }
}

/// The files of a pack that are staged, by their paths in the tree: package.json, what it declares, and SKILL.md.
fn contents(ready: &Ready) -> Result<BTreeMap<FileId, &[u8]>, Fault> {
    let pack = &ready.bundled.pack;
    let mut files = BTreeMap::from([(path_of(&pack.name, PACKAGE_JSON)?, pack.package_json.as_bytes())]);
    for (id, file) in &pack.files {
        files.insert(path_of(&pack.name, id.as_str())?, &file.bytes);
    }
    if let Some(skill) = &pack.skill {
        files.insert(path_of(&pack.name, SKILL_MD)?, skill);
    }
    Ok(files)
}

fn path_of(pack: &PackName, file: &str) -> Result<FileId, Fault> {
    path(&format!("{pack}/{file}"))
}

fn path(text: &str) -> Result<FileId, Fault> {
    FileId::parse(text).map_err(|error| Fault::new(format!("{text:?} cannot be staged: {error}")))
}

/// The npm entries of a pack that are delivered, each with its bundle.
fn bundles(ready: &Ready) -> impl Iterator<Item = (StagedEntry, &Arc<[u8]>)> {
    let BundledPack { pack, npm } = &ready.bundled;
    pack.modules.iter().filter_map(|module| {
        let EntrySource::Npm(name) = &module.source else {
            return None;
        };
        let Some(NpmOutcome::Admitted(bundle)) = npm.get(name) else {
            return None;
        };
        let row = StagedEntry {
            specifier: module.specifier.clone(),
            npm: name.clone(),
            npm_version: bundle.npm_version.clone(),
            bundler: BundlerName::Esbuild,
            bundler_version: bundle.bundler.version.clone(),
            options_digest: bundle.bundler.options_digest,
            source: bundle.sha256,
        };
        Some((row, &bundle.bytes))
    })
}

/// The documents of a staged tree: a pure function of its packs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Documents {
    /// The manifest.
    pub manifest: WrittenManifest,
    /// The list.
    pub list: StagingList,
}

impl Documents {
    /// The documents of the tree of `packs`.
    ///
    /// # Errors
    /// A [`Fault`] of ours: every name was checked before.
    pub fn of(packs: &[Share]) -> Result<Self, Fault> {
        let manifest = manifest::write(packs.iter().map(|share| share.entry.clone()).collect());
        let mut files: BTreeMap<FileId, BlobDigest> = packs.iter().flat_map(|share| share.files.clone()).collect();
        let mut npm: Vec<StagedEntry> = packs.iter().flat_map(|share| share.npm.clone()).collect();
        for row in &npm {
            files.insert(path(&bundle_path(row.source))?, row.source);
        }
        files.insert(path(MANIFEST)?, BlobDigest::of(manifest.root.as_bytes()));
        for (digest, text) in &manifest.shards {
            files.insert(path(&shard_path(*digest))?, BlobDigest::of(text.as_bytes()));
        }
        let mut files: Vec<StagedFile> = files
            .into_iter()
            .map(|(path, sha256)| StagedFile { path, sha256 })
            .collect();
        files.sort_by(|a, b| by_utf16(a.path.as_str(), b.path.as_str()));
        npm.sort_by(|a, b| by_utf16(a.specifier.as_str(), b.specifier.as_str()));
        let list = StagingList { version: 1, files, npm };
        Ok(Self { manifest, list })
    }
}

/// Paths that are one where the case of letters does not count, as on the file systems of many desktops.
fn case_findings(list: &StagingList, packs: &[Share]) -> Vec<Finding> {
    let shown: HashMap<&str, &Utf8PathBuf> = packs
        .iter()
        .map(|share| (share.entry.name.as_str(), &share.shown))
        .collect();
    let paths = list.files.iter().map(|file| file.path.as_str()).chain([STAGING_LIST]);
    let finding = |(first, second): (&str, &str)| {
        let pack = pack_of(second).or_else(|| pack_of(first))?;
        let message = match (pack_of(first), pack_of(second)) {
            (Some(a), Some(b)) if a != b && a.eq_ignore_ascii_case(b) => {
                format!("{b}: the pack's name differs only in case from that of {a}")
            }
            _ => format!("{pack}: {first} and {second} differ only in case"),
        };
        let about = Subject {
            pack: Some(pack.to_owned()),
            shown: (*shown.get(pack)?).clone(),
        };
        let diagnostic = Diagnostic::new(&STAGED_CASE, message);
        Some(Finding { about, diagnostic })
    };
    differing_in_case(paths).into_iter().filter_map(finding).collect()
}

/// Pairs of `paths` that share a folder or a name but for the case of letters, one pair for each such place. The paths are ASCII.
fn differing_in_case<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<(&'a str, &'a str)> {
    let mut places: HashMap<String, (&str, &str)> = HashMap::new();
    let mut told = HashSet::new();
    let mut pairs = Vec::new();
    for path in paths {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for place in ends.filter_map(|end| path.get(..end)) {
            let (first, its_path) = *places.entry(place.to_ascii_lowercase()).or_insert((place, path));
            if first != place {
                if told.insert(place) {
                    pairs.push((its_path, path));
                }
                break;
            }
        }
    }
    pairs
}

/// A tree in the making, beside the place that it will take. What is left of it goes away with it.
struct NewTree {
    folder: Utf8PathBuf,
    /// The place that it will take.
    place: Utf8PathBuf,
    /// Holds the lock of the folder that both are in, as long as the tree is in the making.
    _lock: File,
    bundles: Mutex<HashSet<BlobDigest>>,
}

/// The name of a tree in the making. A run that was killed leaves it behind, and the next one removes it.
const NEW_TREE: &str = ".packferry-staging";

impl NewTree {
    /// Begins a tree in `out`, creating that where it is missing.
    fn open(out: &Utf8Path) -> Result<Self, Fault> {
        fs::create_dir_all(out).map_err(|error| Fault::writing(out, &error))?;
        let lock = File::open(out).map_err(|error| Fault::reading(out, &error))?;
        lock.try_lock()
            .map_err(|_| Fault::new(format!("another run stages into {out}, or verifies it")).hint("Wait for it."))?;
        let place = out.join(STAGED_TREE);
        check_replaceable(&place)?;
        let folder = out.join(NEW_TREE);
        remove(&folder).map_err(|error| Fault::new(format!("cannot remove {folder}: {}", reason(&error))))?;
        fs::create_dir(&folder).map_err(|error| Fault::writing(&folder, &error))?;
        Ok(Self {
            folder,
            place,
            _lock: lock,
            bundles: Mutex::default(),
        })
    }

    fn write_pack(&self, ready: &Ready) -> Result<(), Fault> {
        for (path, bytes) in contents(ready)? {
            self.write(path.as_str(), bytes)?;
        }
        for (row, bytes) in bundles(ready) {
            let mut written = self.bundles.lock().map_err(|_| Fault::new("a build thread failed"))?;
            if written.insert(row.source) {
                self.write(&bundle_path(row.source), bytes)?;
            }
        }
        Ok(())
    }

    fn write_documents(&self, documents: &Documents) -> Result<(), Fault> {
        for (digest, text) in &documents.manifest.shards {
            self.write(&shard_path(*digest), text.as_bytes())?;
        }
        let list = documents.list.to_json();
        for (name, text) in [(MANIFEST, &documents.manifest.root), (STAGING_LIST, &list)] {
            if text.len() as u64 > DOCUMENT_BYTES {
                let fault = Fault::new(format!(
                    "{name} would have {} bytes, more than is read again",
                    text.len()
                ));
                return Err(fault.hint("Stage fewer packs into one folder."));
            }
            self.write(name, text.as_bytes())?;
        }
        Ok(())
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), Fault> {
        let path = self.folder.join(path);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, bytes))
            .map_err(|error| Fault::writing(&path, &error))
    }

    /// Puts the tree into its place; the one that was there is removed.
    fn swap_in(self) -> Result<(), Fault> {
        let (new, place) = (self.folder.as_std_path(), self.place.as_std_path());
        let swapped = if place.exists() {
            rustix::fs::renameat_with(CWD, new, CWD, place, RenameFlags::EXCHANGE)
        } else {
            rustix::fs::rename(new, place)
        };
        swapped.map_err(|error| {
            let message = format!(
                "cannot put the new tree in the place of {}: {}",
                self.place,
                reason(&error.into())
            );
            Fault::new(message)
                .hint("Not every file system exchanges two folders: remove the old tree and stage again.")
        })?;
        remove(&self.folder).map_err(|error| {
            Fault::new(format!(
                "the tree is staged, but the old one, {}, cannot be removed: {}",
                self.folder,
                reason(&error)
            ))
        })
    }
}

impl Drop for NewTree {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next run.
        let _ = remove(&self.folder);
    }
}

fn remove(folder: &Utf8Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Whether what lies at `place` may be replaced: an earlier tree, an empty folder, nothing.
fn check_replaceable(place: &Utf8Path) -> Result<(), Fault> {
    let foreign = |what: &str| {
        Fault::new(format!("{place} {what}, and staging would replace it"))
            .hint("Remove it, or stage into another folder.")
    };
    let cannot = |error: io::Error| Fault::reading(place, &error);
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot(error)),
        Ok(found) if !found.is_dir() => Err(foreign("is not a folder")),
        Ok(_) => {
            let has_list = place.join(STAGING_LIST).exists();
            let is_empty = || fs::read_dir(place).map(|mut entries| entries.next().is_none());
            match has_list || is_empty().map_err(cannot)? {
                true => Ok(()),
                false => Err(foreign("was not made by packferry stage")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_differ_in_case() {
        type Pairs<'a> = &'a [(&'a str, &'a str)];
        let cases: &[(&str, &[&str], Pairs<'_>)] = &[
            ("nothing", &[], &[]),
            (
                "different names",
                &["@a/x/package.json", "@a/y/package.json", "x/package.json"],
                &[],
            ),
            (
                "packs, once for all their files",
                &[
                    "@a/X/index.js",
                    "@a/X/package.json",
                    "@a/x/index.js",
                    "@a/x/package.json",
                ],
                &[("@a/X/index.js", "@a/x/index.js")],
            ),
            (
                "scopes",
                &["@A/x/package.json", "@a/y/package.json"],
                &[("@A/x/package.json", "@a/y/package.json")],
            ),
            ("files", &["p/A.js", "p/a.js"], &[("p/A.js", "p/a.js")]),
            (
                "folders of a pack",
                &["p/Lib/a.js", "p/lib/b.js"],
                &[("p/Lib/a.js", "p/lib/b.js")],
            ),
            (
                "a file and a folder",
                &["p/LIB", "p/lib/b.js"],
                &[("p/LIB", "p/lib/b.js")],
            ),
            (
                "SKILL.md and a module",
                &["p/SKILL.md", "p/skill.md"],
                &[("p/SKILL.md", "p/skill.md")],
            ),
            (
                "the tree's own files",
                &[
                    "Staging.json/package.json",
                    ".NPM/package.json",
                    ".npm/0.mjs",
                    "staging.json",
                ],
                &[
                    (".NPM/package.json", ".npm/0.mjs"),
                    ("Staging.json/package.json", "staging.json"),
                ],
            ),
            ("three", &["X", "x", "x", "X"], &[("X", "x")]),
        ];
        for (what, paths, expected) in cases {
            assert_eq!(differing_in_case(paths.iter().copied()), *expected, "{what}");
        }
    }
}
