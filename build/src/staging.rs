//! What lies where in a staged tree, and its list, `staging.json`: every staged file with its digest, and a row for each npm entry.
//! Strictly read, and never trusted: a bundle is what its digest says, from a regular file, or it is none.

use std::path::{Path, PathBuf};

use packferry_core::canonical;
use packferry_core::digest::{BlobDigest, ShardDigest};
use packferry_core::id::{FileId, Specifier, is_header_text};
use packferry_core::limits::PACK_LIMITS;
use packferry_core::order::by_utf16;
use packferry_core::payload::BundlerName;
use serde::{Deserialize, Serialize};

use crate::bundle::Skip;
use crate::bundled::BundlerIdentity;
use crate::diagnostics::{NPM_MODULE_DAMAGED, NPM_MODULE_NOT_STAGED};
use crate::pack_files::{Opened, PackRoot, Unread};

/// The folder of a staged tree, beside an application.
pub const STAGED_TREE: &str = "_sandbox";
/// The list, in that folder.
pub const STAGING_LIST: &str = "staging.json";
/// The release's manifest root, in that folder; a shard lies beside it, named by its digest.
pub const MANIFEST: &str = "manifest.json";
/// The bundles of npm entries, in that folder: `<SHA-256>.mjs`.
pub const BUNDLES: &str = ".npm";

/// Bytes of a staging list or a manifest: more than a hundred thousand files. Keeps a hostile tree from exhausting memory.
pub const DOCUMENT_BYTES: u64 = 32 << 20;
/// Bytes of a path in the tree. A module id has at most 512, so no pack of a release has a longer one.
const PATH_BYTES: usize = 1_024;

/// `staging.json`. Canonical; holds no path outside the tree and no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagingList {
    /// Always 1.
    pub version: u64,
    /// Every file of the tree but the list itself, sorted by path.
    pub files: Vec<StagedFile>,
    /// The npm entries that are delivered, sorted by specifier.
    pub npm: Vec<StagedEntry>,
}

/// A file of a staged tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StagedFile {
    /// Its path in the tree; normalized, as file ids are in a pack.
    pub path: FileId,
    /// SHA-256 of its bytes.
    pub sha256: BlobDigest,
}

/// What the digest payload of an npm entry says, so that it is the same without npm and without the bundler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct StagedEntry {
    /// The module.
    pub specifier: Specifier,
    /// The npm package's name.
    pub npm: String,
    /// The resolved package's version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm_version: Option<String>,
    /// Always `esbuild`.
    pub bundler: BundlerName,
    /// The bundler's version.
    pub bundler_version: String,
    /// SHA-256 of the bundler's options.
    pub options_digest: BlobDigest,
    /// SHA-256 of the bundle, which names its file.
    pub source: BlobDigest,
}

impl StagedEntry {
    /// What bundled it.
    #[must_use]
    pub fn bundler(&self) -> BundlerIdentity {
        BundlerIdentity {
            version: self.bundler_version.clone(),
            options_digest: self.options_digest,
        }
    }
}

/// The path of a bundle in a staged tree.
#[must_use]
pub fn bundle_path(source: BlobDigest) -> String {
    format!("{BUNDLES}/{source}.mjs")
}

/// The path of a shard in a staged tree: no pack can be named like a digest.
#[must_use]
pub fn shard_path(shard: ShardDigest) -> String {
    shard.to_string()
}

/// The pack whose folder the file at `path` lies in, if it is a pack's.
#[must_use]
pub fn pack_of(path: &str) -> Option<&str> {
    let scope = if path.starts_with('@') { path.find('/')? + 1 } else { 0 };
    let end = scope + path.get(scope..)?.find('/')?;
    path.get(..end).filter(|pack| *pack != BUNDLES)
}

impl StagingList {
    /// Parses a list strictly.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
        let list: Self = canonical::from_json(text).map_err(|error| format!("is {error}"))?;
        if list.version != 1 {
            return Err(format!("is of version {}, which is not known", list.version));
        }
        if !list
            .files
            .is_sorted_by(|a, b| by_utf16(a.path.as_str(), b.path.as_str()).is_lt())
        {
            return Err("lists files out of order, or one twice".to_owned());
        }
        if !list
            .npm
            .is_sorted_by(|a, b| by_utf16(a.specifier.as_str(), b.specifier.as_str()).is_lt())
        {
            return Err("lists npm entries out of order, or one twice".to_owned());
        }
        if list.files.iter().any(|file| file.path.as_str().len() > PATH_BYTES) {
            return Err("lists a path that is too long".to_owned());
        }
        let texts = |row: &StagedEntry| is_header_text(&row.bundler_version) && !row.bundler_version.is_empty();
        if !list.npm.iter().all(texts) {
            return Err("names a bundler's version that is none".to_owned());
        }
        Ok(list)
    }

    /// Its canonical JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        canonical::to_json(self)
    }

    /// Whether the file at `path` is listed.
    #[must_use]
    pub fn has_file(&self, path: &str) -> bool {
        let order = |file: &StagedFile| by_utf16(file.path.as_str(), path);
        self.files.binary_search_by(order).is_ok()
    }

    /// Whether a file is listed that lies in the folder at `path`, or deeper.
    #[must_use]
    pub fn has_folder(&self, path: &str) -> bool {
        let inside = format!("{path}/");
        let next = self
            .files
            .partition_point(|file| by_utf16(file.path.as_str(), &inside).is_lt());
        self.files
            .get(next)
            .is_some_and(|file| file.path.as_str().starts_with(&inside))
    }

    /// The row of a module.
    #[must_use]
    pub fn entry(&self, module: &Specifier) -> Option<&StagedEntry> {
        let order = |row: &StagedEntry| by_utf16(row.specifier.as_str(), module.as_str());
        self.npm.get(self.npm.binary_search_by(order).ok()?)
    }
}

/// A staged tree that has a list: the only place that bundles of npm entries are taken from instead of being made.
#[derive(Debug, PartialEq, Eq)]
pub struct StagedTree {
    /// Its real path.
    real: PathBuf,
    list: StagingList,
}

impl StagedTree {
    /// Reads the list of the tree at `root`; None where it has none. The root itself may be a link.
    ///
    /// # Errors
    /// Why there is a list that cannot be used, as a sentence, and a tree without npm entries in its place.
    #[must_use]
    pub fn read(root: &Path) -> Option<Result<Self, (String, Self)>> {
        let real = root.canonicalize().ok()?;
        let read = read_document(&PackRoot::open(&real).ok()?, STAGING_LIST);
        let parsed = match read {
            Err(Unread::Missing) => return None,
            Err(unread) => Err(described(&unread)),
            Ok(bytes) => StagingList::parse(&bytes),
        };
        Some(match parsed {
            Ok(list) => Ok(Self { real, list }),
            Err(reason) => {
                let list = StagingList {
                    version: 1,
                    files: Vec::new(),
                    npm: Vec::new(),
                };
                Err((format!("{STAGING_LIST} {reason}"), Self { real, list }))
            }
        })
    }

    /// The bundle that the tree holds for the npm entry `module` over the package `npm`, with its row. Decides what a staged pack
    /// may have in a bundle's place: nothing but a regular file that its row names and whose digest is the row's.
    ///
    /// # Errors
    /// A [`Skip`], where there is no row; where there is one, the rule is an error of the pack.
    pub fn bundle(&self, module: &Specifier, npm: &str) -> Result<(&StagedEntry, String), Skip> {
        let row = self.list.entry(module).filter(|row| row.npm == npm);
        let row = row.ok_or_else(|| Skip {
            rule: &NPM_MODULE_NOT_STAGED,
            reason: format!("{STAGING_LIST} has no row for it."),
        })?;
        let damaged = |reason: &str| Skip {
            rule: &NPM_MODULE_DAMAGED,
            reason: format!("Its bundle {} {reason}.", bundle_path(row.source)),
        };
        let read = |path: String| -> Result<Vec<u8>, Unread> {
            let path = FileId::parse(&path).map_err(|_| Unread::Missing)?;
            PackRoot::open(&self.real)?
                .open_file(&path, PACK_LIMITS.npm_bytes)?
                .read()
        };
        let bytes = read(bundle_path(row.source)).map_err(|unread| damaged(&described(&unread)))?;
        if BlobDigest::of(&bytes) != row.source {
            return Err(damaged("is not the one that its digest names"));
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged("is not UTF-8"))?;
        Ok((row, text))
    }
}

/// Reads a document of the tree at `root`: a regular file of at most [`DOCUMENT_BYTES`].
///
/// # Errors
/// [`Unread`].
pub fn read_document(root: &PackRoot<'_>, name: &str) -> Result<Vec<u8>, Unread> {
    let path = FileId::parse(name).map_err(|_| Unread::Missing)?;
    root.open_file(&path, DOCUMENT_BYTES).and_then(Opened::read)
}

/// Why a file of a staged tree was not read, as the end of a sentence that begins with its path.
#[must_use]
pub fn described(unread: &Unread) -> String {
    match unread {
        Unread::Missing => "is missing".to_owned(),
        Unread::Escapes | Unread::Symlink => "is reached through a symbolic link".to_owned(),
        Unread::NotRegular => "is not a regular file".to_owned(),
        Unread::TooLarge { bytes } => format!("has {bytes} bytes, which is too many"),
        Unread::Failed(reason) => format!("cannot be read: {reason}"),
    }
}
