//! `packferry verify-bundle`: proves a staged tree. Nothing in it is believed: first every file is held against the list, then the packs
//! are judged like any others, then the list and the manifest against what staging these packs would write, then all of it against
//! the installed packs. Each step wants the one before it to have found nothing, so what was tampered with is never parsed or run.
//! Everything is found out anew: a cache is not believed either.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;

use camino::Utf8Path;
use packferry_core::digest::{BlobDigest, ManifestDigest};
use packferry_core::id::{FileId, PackName};
use packferry_core::manifest::{PackEntry, Root, find_pack, parse_packs};
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::cache::Cache;
use crate::commands;
use crate::diagnostics::{
    Diagnostic, Findings, HOST_NOT_REGISTERED, NPM_MODULE_NOT_STAGED, RULES, Rule, STAGED_FILE_CHANGED,
    STAGED_FILE_EXTRA, STAGED_FILE_IRREGULAR, STAGED_FILE_MISSING, STAGED_MANIFEST, STAGED_PACK_MISSING,
    STAGED_PACK_STALE, STAGED_TREE_MISSING, STAGING_LIST_INVALID, Severity,
};
use crate::discover::Roots;
use crate::fault::{Fault, reason};
use crate::finding::{Finding, Subject};
use crate::npm::LazyBundler;
use crate::pack_files::{Opened, PackRoot, Unread};
use crate::package_json::quoted;
use crate::pipeline::judge;
use crate::progress::Progress;
use crate::stage::{Documents, Share, root_without_pack};
use crate::staging::{
    BUNDLES, DOCUMENT_BYTES, MANIFEST, STAGED_TREE, STAGING_LIST, StagedEntry, StagedFile, StagingList, described,
    pack_of, read_document, shard_path,
};
use crate::text::counted;

/// What a verification found.
#[derive(Debug, Default)]
pub struct Verified {
    /// The manifest's digest; None where the tree is not as it was staged.
    pub manifest: Option<ManifestDigest>,
    /// How many packs the tree has, as far as its list could be read.
    pub packs: usize,
    /// How many files the list names, itself among them.
    pub files: usize,
    /// Everything that was found; each is an error, or tells why there is one.
    pub findings: Vec<Finding>,
}

impl Verified {
    /// Whether the tree is whole, sound and up to date.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    /// One line for a person.
    #[must_use]
    pub fn summary(&self, dist: &Utf8Path) -> String {
        let tree = dist.join(STAGED_TREE);
        match (&self.manifest, self.findings.len()) {
            (Some(manifest), 0) => format!(
                "{tree} is as it was staged: {}, {}, manifest {manifest}",
                counted(self.packs as u64, "pack"),
                counted(self.files as u64, "file")
            ),
            (_, count) => format!("{tree} is not as it should be: {}", counted(count as u64, "finding")),
        }
    }

    /// The report of `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "version": 1,
            "sound": self.is_sound(),
            "manifest": self.manifest,
            "packs": self.packs,
            "files": self.files,
            "diagnostics": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Verifies the staged tree in `dist`, and that it has what lies under `against`.
///
/// # Errors
/// A [`Fault`] of ours or of the command line. What is wrong with the tree is a finding.
pub fn verify(
    dist: &Utf8Path,
    against: Option<&Roots>,
    config: Option<&Utf8Path>,
    progress: &Progress,
) -> Result<Verified, Fault> {
    let _lock = lock(dist)?;
    let tree = dist.join(STAGED_TREE);
    let mut verified = Verified::default();
    let (list, found) = match read_tree(&tree) {
        Ok(read) => read,
        Err(finding) => {
            verified.findings = placed(&tree, vec![finding]);
            return Ok(verified);
        }
    };
    verified.files = list.files.len() + 1;
    verified.packs = files_by_pack(&list).len();
    verified.findings = placed(&tree, found.into_vec());
    if verified.is_sound() {
        judge_tree(&tree, &list, config, progress, &mut verified)?;
    }
    if let Some(roots) = against.filter(|_| verified.is_sound()) {
        verified.findings = compare(&tree, &list, roots, config, progress)?;
    }
    Ok(verified)
}

/// Keeps `packferry stage` out of `dist` for as long as the file lives. Where the medium knows no locks, nothing stages there either.
fn lock(dist: &Utf8Path) -> Result<File, Fault> {
    let folder = File::open(dist).and_then(|folder| Ok((folder.metadata()?.is_dir(), folder)));
    match folder {
        Ok((true, folder)) => match folder.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                Err(Fault::new(format!("packferry stage is writing into {dist}")).hint("Wait for it."))
            }
            Ok(()) | Err(TryLockError::Error(_)) => Ok(folder),
        },
        Ok((false, _)) => Err(Fault::new(format!("{dist} is no directory"))
            .hint("Name the folder that packferry stage was given as --out.")),
        Err(error) => Err(Fault::reading(dist, &error)),
    }
}

/// The list of the tree, and what does not agree with it: each file that it names was held against its digest, and nothing else lies
/// there.
fn read_tree(tree: &Utf8Path) -> Result<(StagingList, Findings), Diagnostic> {
    let missing = |what: String| Diagnostic::new(&STAGED_TREE_MISSING, format!("{STAGED_TREE} {what}"));
    let real = real_path(tree).map_err(missing)?;
    let root = PackRoot::open(&real).map_err(|unread| missing(described(&unread)))?;
    let read = read_document(&root, STAGING_LIST).map_err(|unread| described(&unread));
    let list = read.and_then(|bytes| StagingList::parse(&bytes));
    let list = list.map_err(|what| about(&STAGING_LIST_INVALID, STAGING_LIST, &what))?;
    let mut found = Findings::default();
    let files: Vec<Option<Diagnostic>> = list.files.par_iter().map(|file| check_file(&root, file)).collect();
    found.extend(files.into_iter().flatten());
    check_nothing_else(&root, &list, &mut found);
    Ok((list, found))
}

/// The real path of a tree that is a folder and no link to one; else what is wrong, as the end of a sentence.
fn real_path(tree: &Utf8Path) -> Result<PathBuf, String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "is missing".to_owned(),
        _ => format!("cannot be read: {}", reason(&error)),
    };
    if !fs::symlink_metadata(tree).map_err(unreadable)?.is_dir() {
        return Err("is not a folder".to_owned());
    }
    tree.as_std_path().canonicalize().map_err(unreadable)
}

/// A file is there, is a file, and has the bytes that were staged.
fn check_file(root: &PackRoot<'_>, file: &StagedFile) -> Option<Diagnostic> {
    let path = &file.path;
    match root.open_file(path, DOCUMENT_BYTES).and_then(Opened::read) {
        Ok(bytes) if BlobDigest::of(&bytes) == file.sha256 => None,
        Ok(_) => Some(about(
            &STAGED_FILE_CHANGED,
            path.as_str(),
            "does not have the bytes that were staged",
        )),
        Err(Unread::Missing) if !root.is_link(path) => Some(about(&STAGED_FILE_MISSING, path.as_str(), "is missing")),
        Err(Unread::Missing) => Some(about(&STAGED_FILE_IRREGULAR, path.as_str(), "is a symbolic link")),
        Err(unread @ Unread::TooLarge { .. }) => Some(about(&STAGED_FILE_CHANGED, path.as_str(), &described(&unread))),
        Err(unread) => Some(about(&STAGED_FILE_IRREGULAR, path.as_str(), &described(&unread))),
    }
}

/// What else lies in the folders of listed files, and in no others: an unlisted folder is told as such, and never opened.
fn check_nothing_else(root: &PackRoot<'_>, list: &StagingList, found: &mut Findings) {
    let mut extra = BTreeSet::new();
    let mut open = vec![".".to_owned()];
    while let Some(folder) = open.pop() {
        let listed = root.list(&folder, |name| {
            let name = name.to_string_lossy();
            let path = match folder.as_str() {
                "." => name.into_owned(),
                folder => format!("{folder}/{name}"),
            };
            if list.has_folder(&path) {
                open.push(path);
            } else if !list.has_file(&path) && path != STAGING_LIST && extra.insert(path) && extra.len() > EXTRA_NAMED {
                extra.pop_last();
            }
        });
        match listed {
            // A file in a folder's place is told of by the files that the folder should have.
            Ok(()) | Err(Unread::Missing) => {}
            Err(unread) => found.push(about(&STAGED_FILE_IRREGULAR, &folder, &described(&unread))),
        }
    }
    found.extend(
        extra
            .iter()
            .map(|path| about(&STAGED_FILE_EXTRA, path, "was not staged")),
    );
}

/// How many extra files are told of. A hostile tree could have any number.
const EXTRA_NAMED: usize = 200;

/// A finding about what lies at `path` in the tree; `what` ends the sentence.
fn about(rule: &'static Rule, path: &str, what: &str) -> Diagnostic {
    let message = match pack_of(path) {
        Some(pack) => {
            let file = path.get(pack.len() + 1..).unwrap_or_default();
            format!("{pack}: {} {what}", on_one_line(file))
        }
        None => format!("{} {what}", on_one_line(path)),
    };
    let finding = Diagnostic::new(rule, message);
    if on_one_line(path) == path {
        finding.at(path, None, None)
    } else {
        finding
    }
}

/// The path as it stands, if that is on one line, else quoted.
fn on_one_line(path: &str) -> Cow<'_, str> {
    if path.contains(char::is_control) {
        Cow::Owned(quoted(path))
    } else {
        Cow::Borrowed(path)
    }
}

/// Findings of the tree with the packs that they are about.
fn placed(tree: &Utf8Path, found: Vec<Diagnostic>) -> Vec<Finding> {
    let finding = |diagnostic: Diagnostic| {
        let file = diagnostic.location.as_ref().map(|location| location.file.as_str());
        let pack = file.and_then(pack_of).filter(|pack| PackName::parse(pack).is_ok());
        Finding {
            about: Subject {
                pack: pack.map(str::to_owned),
                shown: tree.to_owned(),
            },
            diagnostic,
        }
    };
    found.into_iter().map(finding).collect()
}

/// Judges the packs of the tree as a build does, then list and manifest by what was made of the packs.
fn judge_tree(
    tree: &Utf8Path,
    list: &StagingList,
    config: Option<&Utf8Path>,
    progress: &Progress,
    verified: &mut Verified,
) -> Result<(), Fault> {
    let bar = |packs| progress.bar("verifying", packs);
    let roots = commands::roots(&[tree.to_owned()])?;
    let judged = judge(&roots, config, LazyBundler::new(&Cache::none()), bar, |ready| {
        Share::of(&ready)
    })?;
    let (errors, others): (Vec<Finding>, Vec<Finding>) = judged.findings.into_iter().partition(Finding::is_error);
    verified.findings = errors;
    if verified.is_sound() {
        verified.manifest = check_documents(tree, list, judged.packs, &mut verified.findings)?;
    }
    if !verified.is_sound() {
        // An entry that is skipped now, and was not when it was staged, tells why the manifest is another.
        verified.findings.extend(others.into_iter().filter(is_skip));
    }
    Ok(())
}

/// Whether a module is skipped for another reason than that it was skipped when it was staged.
fn is_skip(finding: &Finding) -> bool {
    let rule = finding.diagnostic.rule;
    rule.severity == Severity::Skipped && rule.code != NPM_MODULE_NOT_STAGED.code
}

/// Holds list and manifest against those of the packs that were judged. Gives the manifest's digest where they are the same.
fn check_documents(
    tree: &Utf8Path,
    list: &StagingList,
    mut packs: Vec<Share>,
    findings: &mut Vec<Finding>,
) -> Result<Option<ManifestDigest>, Fault> {
    let mut found = Findings::default();
    let mut manifest = Vec::new();
    match read_manifest(tree) {
        Ok(entries) => manifest = entries,
        Err(why) => found.push(about(&STAGED_MANIFEST, MANIFEST, &why)),
    }
    for share in &mut packs {
        let staged = find_pack(&manifest, share.entry.name.as_str());
        adopt_reasons(&mut share.entry, staged);
    }
    let expected = Documents::of(&packs)?;
    if expected.list == *list {
        return Ok(Some(expected.manifest.digest));
    }
    check_listed(list, &expected.list, &mut found);
    check_entries(&manifest, &packs, &mut found);
    if !found.has_errors() {
        found.push(about(&STAGED_MANIFEST, STAGING_LIST, "is not the list of these packs"));
    }
    findings.extend(placed(tree, found.into_vec()));
    Ok(None)
}

/// Files and rows of the list that no pack of the tree has.
fn check_listed(list: &StagingList, expected: &StagingList, found: &mut Findings) {
    let is_manifest = |path: &str| pack_of(path).is_none() && !path.starts_with(BUNDLES);
    let extra = list.files.iter().map(|file| file.path.as_str());
    let extra = extra.filter(|path| !expected.has_file(path) && !is_manifest(path));
    found.extend(extra.map(|path| about(&STAGED_FILE_EXTRA, path, "is listed, and no staged pack has it")));
    let rows = list
        .npm
        .iter()
        .filter(|row| expected.entry(&row.specifier) != Some(row));
    found.extend(rows.map(|row| {
        let what = format!("has a row for {}, which no staged pack delivers", row.specifier);
        about(&STAGING_LIST_INVALID, STAGING_LIST, &what)
    }));
}

/// Packs of which the manifest says something else than their files.
fn check_entries(manifest: &[PackEntry], packs: &[Share], found: &mut Findings) {
    for share in packs {
        let name = &share.entry.name;
        let what = match find_pack(manifest, name.as_str()) {
            Some(entry) if *entry == share.entry => continue,
            Some(_) => format!("says something else of {name} than its staged files"),
            None => format!("does not have {name}, which is staged"),
        };
        found.push(about(&STAGED_MANIFEST, MANIFEST, &what));
    }
    let staged: HashSet<&PackName> = packs.iter().map(|share| &share.entry.name).collect();
    for entry in manifest {
        if !staged.contains(&entry.name) {
            let what = format!("has {}, which is not staged", entry.name);
            found.push(about(&STAGED_MANIFEST, MANIFEST, &what));
        }
    }
}

/// Why an npm entry was refused is known where its package is installed; in the tree it only has no bundle.
fn adopt_reasons(entry: &mut PackEntry, staged: Option<&PackEntry>) {
    for row in &mut entry.unavailable {
        let reason = staged.and_then(|pack| pack.unavailable.iter().find(|other| other.specifier == row.specifier));
        if let Some(reason) = reason.filter(|reason| is_reason(&reason.code))
            && row.code == NPM_MODULE_NOT_STAGED.code
        {
            row.code.clone_from(&reason.code);
        }
    }
}

/// Whether an npm entry can be skipped with this code.
fn is_reason(code: &str) -> bool {
    let rules = RULES.iter().flat_map(|(_, rules)| *rules);
    rules
        .filter(|rule| rule.severity == Severity::Skipped && rule.code != HOST_NOT_REGISTERED.code)
        .any(|rule| rule.code == code)
}

/// Bytes of all shards of a manifest together. Keeps a hostile tree from exhausting memory.
const SHARDS_BYTES: usize = 128 << 20;

/// The packs that the tree's manifest has; else why it cannot be read, as the end of a sentence.
fn read_manifest(tree: &Utf8Path) -> Result<Vec<PackEntry>, String> {
    let real = real_path(tree)?;
    let root = PackRoot::open(&real).map_err(|unread| described(&unread))?;
    let text = |name: &str| {
        let bytes = read_document(&root, name).map_err(|unread| described(&unread))?;
        String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())
    };
    let parsed = Root::parse(&text(MANIFEST)?).map_err(|error| format!("is no manifest: {error}"))?;
    match parsed {
        Root::Packs(packs) => Ok(packs),
        Root::Shards(rows) => {
            let mut packs = Vec::new();
            let mut left = SHARDS_BYTES;
            for row in rows {
                let shard = text(&shard_path(row.sha256)).map_err(|why| format!("names a shard that {why}"))?;
                left = left
                    .checked_sub(shard.len())
                    .ok_or("has too many bytes in its shards")?;
                packs.extend(parse_packs(&shard).map_err(|error| format!("names a shard that is none: {error}"))?);
            }
            Ok(packs)
        }
    }
}

/// The files of each pack in the list.
fn files_by_pack(list: &StagingList) -> BTreeMap<&str, BTreeMap<&FileId, BlobDigest>> {
    let mut packs: BTreeMap<&str, BTreeMap<&FileId, BlobDigest>> = BTreeMap::new();
    for file in &list.files {
        if let Some(pack) = pack_of(file.path.as_str()) {
            packs.entry(pack).or_default().insert(&file.path, file.sha256);
        }
    }
    packs
}

/// Holds a sound tree against the packs under `roots`: what staging them now would change.
fn compare(
    tree: &Utf8Path,
    list: &StagingList,
    roots: &Roots,
    config: Option<&Utf8Path>,
    progress: &Progress,
) -> Result<Vec<Finding>, Fault> {
    let bar = |packs| progress.bar("comparing", packs);
    let judged = judge(roots, config, LazyBundler::new(&Cache::none()), bar, |ready| {
        Share::of(&ready)
    })?;
    if let Some(path) = root_without_pack(roots, &judged) {
        let fault = Fault::new(format!("{path} holds no pack that {tree} could be held against"));
        return Err(fault.hint("Name the roots that were staged."));
    }
    let mut findings: Vec<Finding> = judged.findings.into_iter().filter(Finding::is_error).collect();
    let staged = files_by_pack(list);
    for share in judged.packs {
        let name = &share.entry.name;
        let diagnostic = match staged.get(name.as_str()) {
            None => Some(Diagnostic::new(
                &STAGED_PACK_MISSING,
                format!("{name}: the pack is not staged in {tree}"),
            )),
            Some(files) => stale(&share, files, list),
        };
        findings.extend(diagnostic.map(|diagnostic| Finding {
            about: Subject {
                pack: Some(name.to_string()),
                shown: share.shown.clone(),
            },
            diagnostic,
        }));
    }
    Ok(findings)
}

/// How many differences a finding names before it only counts.
const DIFFERENCES_NAMED: usize = 3;

fn stale(share: &Share, staged: &BTreeMap<&FileId, BlobDigest>, list: &StagingList) -> Option<Diagnostic> {
    let name = &share.entry.name;
    let file = |path: &FileId| {
        path.as_str()
            .get(name.as_str().len() + 1..)
            .unwrap_or_default()
            .to_owned()
    };
    let mut differences = Vec::new();
    for (path, sha256) in &share.files {
        match staged.get(path) {
            Some(other) if other == sha256 => {}
            Some(_) => differences.push(format!("{} differs", file(path))),
            None => differences.push(format!("{} is not staged", file(path))),
        }
    }
    let gone = staged.keys().filter(|path| !share.files.contains_key(**path));
    differences.extend(gone.map(|path| format!("{} is staged, and no longer there", file(path))));
    differences.extend(
        share
            .npm
            .iter()
            .filter_map(|row| npm_difference(row, list.entry(&row.specifier))),
    );
    let gone = list.npm.iter().filter(|row| row.specifier.pack() == name.as_str());
    let gone = gone.filter(|row| !share.npm.iter().any(|other| other.specifier == row.specifier));
    differences.extend(gone.map(|row| format!("the bundle of {} is no longer admitted", row.npm)));
    let named = differences
        .iter()
        .take(DIFFERENCES_NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let more = match differences.len().saturating_sub(DIFFERENCES_NAMED) {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    let message = format!("{name}: the staged pack is not the installed one: {named}{more}");
    (!differences.is_empty()).then(|| Diagnostic::new(&STAGED_PACK_STALE, message))
}

fn npm_difference(installed: &StagedEntry, staged: Option<&StagedEntry>) -> Option<String> {
    let npm = &installed.npm;
    match staged {
        None => Some(format!("the bundle of {npm} is not staged")),
        Some(staged) if staged == installed => None,
        Some(staged) if staged.npm_version != installed.npm_version => {
            let version = |row: &StagedEntry| row.npm_version.as_deref().map_or("no version".to_owned(), quoted);
            Some(format!(
                "{npm} is staged as {}, and installed as {}",
                version(staged),
                version(installed)
            ))
        }
        Some(_) => Some(format!("the bundle of {npm} differs")),
    }
}
