//! The manifest: the immutable document that lists one release, in one piece or in shards (design: "Manifest"; wire contract,
//! "Manifest and shards"). Writer and reader of both forms.
//!
//! Where a shard begins depends on content alone, so one changed pack changes one shard, seldom two or three.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::canonical::{self, NotCanonical};
use crate::contract::WasmContract;
use crate::digest::{BlobDigest, GraphDigest, ManifestDigest, PackDigest, ShardDigest};
use crate::id::{FileId, PackName, Specifier};
use crate::limits::SHARD_BYTES;
use crate::order::by_utf16;
use crate::payload::{FileKind, is_sorted};
use crate::record::DeliveredKind;

/// One pack of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackEntry {
    /// The pack.
    pub name: PackName,
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its description, from SKILL.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The pack digest.
    pub digest: PackDigest,
    /// What is delivered, sorted by specifier.
    pub modules: Vec<ModuleEntry>,
    /// Every authored file that a module reaches, sorted by id.
    pub files: Vec<FileEntry>,
    /// Declared modules that are not delivered, sorted by specifier.
    pub unavailable: Vec<Unavailable>,
}

/// A module, with what its delivery needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ModuleEntry {
    /// The module.
    pub specifier: Specifier,
    /// Its kind; a bundled npm entry is `js`.
    pub kind: DeliveredKind,
    /// Its graph.
    pub graph_digest: GraphDigest,
    /// Its file.
    pub file_id: FileId,
    /// SHA-256 of its file.
    pub sha256: BlobDigest,
    /// Length of its file in bytes.
    pub size: u64,
    /// The files it imports, sorted.
    pub dependencies: Vec<FileId>,
    /// The names it exports, sorted.
    pub exports: Vec<String>,
    /// The call contract of a WASM entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wasm_contract: Option<WasmContract>,
    /// The host module's id of a host entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// The npm package of an npm entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm: Option<String>,
}

/// An authored file, with what the delivery of `<pack>::<file id>` needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FileEntry {
    /// The file.
    pub id: FileId,
    /// Its kind.
    pub kind: FileKind,
    /// SHA-256 of its bytes.
    pub sha256: BlobDigest,
    /// Its length in bytes.
    pub size: u64,
    /// Whether package.json lists it as internal.
    pub internal: bool,
    /// The graph that owns it.
    pub graph_digest: GraphDigest,
    /// The files it imports, sorted.
    pub dependencies: Vec<FileId>,
}

/// A declared module that is not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unavailable {
    /// The module.
    pub specifier: Specifier,
    /// Why: `host-not-registered`, or a skip code of an npm entry.
    pub code: String,
}

impl PackEntry {
    /// The module with this specifier.
    #[must_use]
    pub fn module(&self, specifier: &str) -> Option<&ModuleEntry> {
        find(&self.modules, specifier, |module| module.specifier.as_str())
    }

    /// The file with this id.
    #[must_use]
    pub fn file(&self, id: &str) -> Option<&FileEntry> {
        find(&self.files, id, |file| file.id.as_str())
    }

    /// Whether the module is declared but not delivered.
    #[must_use]
    pub fn is_unavailable(&self, specifier: &str) -> bool {
        find(&self.unavailable, specifier, |row| row.specifier.as_str()).is_some()
    }
}

fn find<'a, T>(sorted: &'a [T], name: &str, name_of: impl Fn(&T) -> &str) -> Option<&'a T> {
    let at = sorted.binary_search_by(|item| by_utf16(name_of(item), name)).ok()?;
    sorted.get(at)
}

/// A shard, as the root lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardRow {
    /// Name of its first pack.
    pub first: PackName,
    /// Its digest.
    pub sha256: ShardDigest,
}

/// A manifest's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Root {
    /// The whole release in one piece.
    Packs(Vec<PackEntry>),
    /// Where the release's shards are.
    Shards(Vec<ShardRow>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PacksDocument {
    version: u64,
    packs: Vec<PackEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShardsDocument {
    version: u64,
    shards: Vec<ShardRow>,
}

/// Why a document is no root or no shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidManifest {
    /// Not of the document's shape, or not canonical.
    #[error(transparent)]
    Document(#[from] NotCanonical),
    /// Another version than this code reads.
    #[error("manifest version {0} is not known")]
    Version(u64),
    /// Something is out of order or occurs twice.
    #[error("the order of its {0}")]
    Order(&'static str),
}

impl Root {
    /// Parses a root's bytes.
    ///
    /// # Errors
    /// [`InvalidManifest`].
    pub fn parse(text: &str) -> Result<Self, InvalidManifest> {
        if !text.starts_with("{\"version\":1,\"shards\":") {
            return parse_packs(text).map(Self::Packs);
        }
        let document: ShardsDocument = canonical::from_json(text)?;
        check_version(document.version)?;
        if !is_sorted(document.shards.iter().map(|row| row.first.as_str())) {
            return Err(InvalidManifest::Order("shards"));
        }
        Ok(Self::Shards(document.shards))
    }

    /// Where pack `name` stands, if the release has it.
    #[must_use]
    pub fn locate(&self, name: &str) -> Location<'_> {
        match self {
            Self::Packs(packs) => find_pack(packs, name).map_or(Location::Absent, Location::Here),
            Self::Shards(rows) => {
                let after = rows.partition_point(|row| by_utf16(row.first.as_str(), name).is_le());
                let row = after.checked_sub(1).and_then(|at| rows.get(at));
                row.map_or(Location::Absent, |row| Location::Shard(row.sha256))
            }
        }
    }
}

/// Answer of [`Root::locate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location<'a> {
    /// The root itself has the pack.
    Here(&'a PackEntry),
    /// This shard has the pack, if any has.
    Shard(ShardDigest),
    /// The release does not have it.
    Absent,
}

/// Parses a shard's bytes: pack entries in order of name.
///
/// # Errors
/// [`InvalidManifest`].
pub fn parse_packs(text: &str) -> Result<Vec<PackEntry>, InvalidManifest> {
    let document: PacksDocument = canonical::from_json(text)?;
    check_version(document.version)?;
    if !is_sorted(document.packs.iter().map(|pack| pack.name.as_str())) {
        return Err(InvalidManifest::Order("packs"));
    }
    for pack in &document.packs {
        let sorted = is_sorted(pack.modules.iter().map(|module| module.specifier.as_str()))
            && is_sorted(pack.files.iter().map(|file| file.id.as_str()))
            && is_sorted(pack.unavailable.iter().map(|row| row.specifier.as_str()));
        if !sorted {
            return Err(InvalidManifest::Order("modules or files"));
        }
    }
    Ok(document.packs)
}

fn check_version(version: u64) -> Result<(), InvalidManifest> {
    if version == 1 {
        Ok(())
    } else {
        Err(InvalidManifest::Version(version))
    }
}

/// The pack named `name`, of entries in order of name.
#[must_use]
pub fn find_pack<'a>(packs: &'a [PackEntry], name: &str) -> Option<&'a PackEntry> {
    find(packs, name, |pack| pack.name.as_str())
}

/// A release's manifest, written: the root and the shards it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenManifest {
    /// Digest of the root.
    pub digest: ManifestDigest,
    /// The root's exact bytes.
    pub root: String,
    /// The shards' exact bytes, in order of name; none where the root holds the packs itself.
    pub shards: Vec<(ShardDigest, String)>,
}

const WRAPPER: &str = "{\"version\":1,\"packs\":[]}";

/// Writes the manifest of `packs`, in whatever order they come. No two may have one name.
#[must_use]
pub fn write(mut packs: Vec<PackEntry>) -> WrittenManifest {
    packs.sort_by(|a, b| by_utf16(a.name.as_str(), b.name.as_str()));
    let whole: Vec<(PackName, String)> = packs
        .into_iter()
        .map(|pack| (pack.name.clone(), canonical::to_json(&pack)))
        .collect();
    let length = |entries: &[(PackName, String)]| {
        let commas = entries.len().saturating_sub(1);
        WRAPPER.len() + commas + entries.iter().map(|(_, json)| json.len()).sum::<usize>()
    };
    if length(&whole) <= SHARD_BYTES {
        let root = packs_json(whole.iter().map(|(_, json)| json.as_str()));
        return WrittenManifest {
            digest: ManifestDigest::of(root.as_bytes()),
            root,
            shards: Vec::new(),
        };
    }
    let mut rows = Vec::new();
    let mut shards = Vec::new();
    let mut rest = whole.as_slice();
    while let Some((first, _)) = rest.first() {
        let (shard, after) = rest.split_at(shard_length(rest));
        let text = packs_json(shard.iter().map(|(_, json)| json.as_str()));
        let sha256 = ShardDigest::of(text.as_bytes());
        rows.push(ShardRow {
            first: first.clone(),
            sha256,
        });
        shards.push((sha256, text));
        rest = after;
    }
    let root = canonical::to_json(&ShardsDocument {
        version: 1,
        shards: rows,
    });
    WrittenManifest {
        digest: ManifestDigest::of(root.as_bytes()),
        root,
        shards,
    }
}

/// How many of `entries` the shard takes that begins with the first of them: up to the next pack that begins a shard by its
/// name, or the one that would take the shard over its bound. At least one.
fn shard_length(entries: &[(PackName, String)]) -> usize {
    let mut bytes = WRAPPER.len();
    for (at, (name, json)) in entries.iter().enumerate() {
        let comma = usize::from(at > 0);
        if at > 0 && (begins_shard(name) || bytes + comma + json.len() > SHARD_BYTES) {
            return at;
        }
        bytes += comma + json.len();
    }
    entries.len()
}

/// Whether a shard begins at this pack wherever it lies: its name's SHA-256 starts with five zero bits.
fn begins_shard(name: &PackName) -> bool {
    Sha256::digest(name.as_str().as_bytes())
        .first()
        .is_some_and(|byte| *byte < 0b1000)
}

fn packs_json<'a>(packs: impl Iterator<Item = &'a str>) -> String {
    format!("{{\"version\":1,\"packs\":[{}]}}", packs.collect::<Vec<_>>().join(","))
}

#[cfg(all(test, not(target_arch = "wasm32")))]
#[path = "manifest_tests.rs"]
mod tests;
