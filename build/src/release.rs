//! Stage 6: a release on disk. `manifest.json`, `report.json` and `objects/<kind>/<digest>`; written objects first and manifest last,
//! read back with every digest checked.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::canonical;
use packferry_core::closure;
use packferry_core::digest::{BlobDigest, ManifestDigest, ShardDigest};
use packferry_core::key::StorageKey;
use packferry_core::manifest::{PackEntry, Root, WrittenManifest, parse_packs};
use packferry_core::record::GraphRecord;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, reason};
use crate::link::LinkedGraph;

/// `report.json`: what a build left out. Canonical; holds no path and no time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuildReport {
    /// Always 1.
    pub version: u64,
    /// The manifest that the report is about.
    pub manifest: ManifestDigest,
    /// Packs at fault, by name; nameless ones first.
    pub withheld: Vec<WithheldPack>,
    /// Declared modules that are not delivered, in the manifest's order.
    pub unavailable: Vec<UnavailableModule>,
}

/// A pack that is not in the release.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithheldPack {
    /// Its name, if it has a valid one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// The codes of its faults, sorted, each once.
    pub codes: Vec<String>,
}

/// A module that is declared but not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnavailableModule {
    /// The module.
    pub specifier: String,
    /// Why.
    pub code: String,
}

/// How many objects a build wrote, and how many lay there already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ObjectCount {
    /// Written now.
    pub written: usize,
    /// Already there with the same bytes.
    pub unchanged: usize,
}

/// Writes a release into a directory. Objects of the release that lay there before stay valid until [`ReleaseWriter::finish`].
pub struct ReleaseWriter {
    dir: Utf8PathBuf,
    /// Holds the directory's lock as long as the writer lives.
    _lock: File,
    kept: Mutex<HashSet<String>>,
    written: AtomicUsize,
    unchanged: AtomicUsize,
}

const KINDS: [&str; 4] = ["blob", "graph", "closure", "shard"];

impl ReleaseWriter {
    /// Opens `dir`, creating it where it is missing.
    ///
    /// # Errors
    /// A [`Fault`] where the directory cannot be made or another build writes into it.
    pub fn open(dir: &Utf8Path) -> Result<Self, Fault> {
        for kind in KINDS {
            let folder = dir.join("objects").join(kind);
            fs::create_dir_all(&folder).map_err(|error| Fault::writing(dir, &error))?;
        }
        let lock = File::open(dir).map_err(|error| Fault::reading(dir, &error))?;
        lock.try_lock().map_err(|_| {
            Fault::new(format!("another build is writing into {dir}")).hint("Wait for it, or choose another --out.")
        })?;
        Ok(Self {
            dir: dir.to_owned(),
            _lock: lock,
            kept: Mutex::new(HashSet::new()),
            written: AtomicUsize::new(0),
            unchanged: AtomicUsize::new(0),
        })
    }

    /// Writes blobs, graph record and closure of `graph`.
    ///
    /// # Errors
    /// A [`Fault`] where the disk refuses.
    pub fn write_graph(&self, graph: &LinkedGraph) -> Result<(), Fault> {
        for (file, body) in graph.record.files().iter().zip(&graph.bodies) {
            self.write_object(&StorageKey::Blob(file.sha256), &[body])?;
        }
        let digest = graph.record.digest();
        let json = graph.record.to_json();
        self.write_object(&StorageKey::Graph(digest), &[json.as_bytes()])?;
        let head = closure::head(&json).ok_or_else(|| {
            Fault::new(format!(
                "the graph record of {} is too long",
                graph.record.payload().specifier()
            ))
        })?;
        let mut frame: Vec<&[u8]> = vec![&head, json.as_bytes()];
        frame.extend(graph.bodies.iter().map(AsRef::as_ref));
        self.write_object(&StorageKey::Closure(digest), &frame)
    }

    /// Writes the shards, the report and, last, the manifest; then removes objects that the release does not have.
    ///
    /// # Errors
    /// A [`Fault`] where the disk refuses; until the manifest is written, the earlier release stands.
    pub fn finish(self, manifest: &WrittenManifest, report: &BuildReport) -> Result<ObjectCount, Fault> {
        for (digest, text) in &manifest.shards {
            self.write_object(&StorageKey::Shard(*digest), &[text.as_bytes()])?;
        }
        self.write_file("report.json", &[canonical::to_json(report).as_bytes()])?;
        self.write_file("manifest.json", &[manifest.root.as_bytes()])?;
        self.prune()
            .map_err(|error| Fault::new(format!("cannot remove old objects of {}: {}", self.dir, reason(&error))))?;
        Ok(ObjectCount {
            written: self.written.into_inner(),
            unchanged: self.unchanged.into_inner(),
        })
    }

    fn write_object(&self, key: &StorageKey, parts: &[&[u8]]) -> Result<(), Fault> {
        let name = format!("objects/{key}");
        let first = self
            .kept
            .lock()
            .map_err(|_| Fault::new("a build thread failed"))?
            .insert(name.clone());
        if !first {
            return Ok(());
        }
        if self.write_file(&name, parts)? {
            self.written.fetch_add(1, Ordering::Relaxed);
        } else {
            self.unchanged.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes a file of `parts`, end to end, whole or not at all. False where it had these very bytes already.
    fn write_file(&self, name: &str, parts: &[&[u8]]) -> Result<bool, Fault> {
        let path = self.dir.join(name);
        if holds(&path, parts).unwrap_or(false) {
            return Ok(false);
        }
        write_parts(&path, parts).map_err(|error| Fault::writing(path, &error))?;
        Ok(true)
    }

    fn prune(&self) -> io::Result<()> {
        let Ok(kept) = self.kept.lock() else { return Ok(()) };
        for kind in KINDS {
            for found in fs::read_dir(self.dir.join("objects").join(kind))? {
                let found = found?;
                let name = found.file_name();
                let keep = name
                    .to_str()
                    .is_some_and(|name| kept.contains(&format!("objects/{kind}/{name}")));
                if !keep && found.file_type()?.is_file() {
                    fs::remove_file(found.path())?;
                }
            }
        }
        Ok(())
    }
}

/// Bytes of a file that are compared at a time.
const PIECE: usize = 64 << 10;

thread_local! {
    /// Where what is compared is read to: a build in which nothing changed compares everything.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; PIECE]);
}

/// Whether the file at `path` has the bytes of `parts`, end to end.
fn holds(path: &Utf8Path, parts: &[&[u8]]) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if !found.is_file() || found.len() != length as u64 {
        return Ok(false);
    }
    READ.with_borrow_mut(|piece| {
        for wanted in parts.iter().flat_map(|part| part.chunks(PIECE)) {
            let read = piece.get_mut(..wanted.len()).ok_or(io::ErrorKind::InvalidInput)?;
            file.read_exact(read)?;
            if read != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Writes `bytes` to a temporary file beside `path` and renames it: readers see the old file or the new one.
///
/// # Errors
/// What the file system says.
pub fn write_atomically(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    write_parts(path, &[bytes])
}

fn write_parts(path: &Utf8Path, parts: &[&[u8]]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_str().is_empty())
        .unwrap_or(Utf8Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".packferry-")
        .permissions(file_mode())
        .tempfile_in(folder)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Ordinary permissions, less the process's umask; temporary files are private by default.
#[cfg(unix)]
fn file_mode() -> fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    fs::Permissions::from_mode(0o644)
}

/// A release on disk, its manifest read and checked.
#[derive(Debug)]
pub struct Release {
    dir: Utf8PathBuf,
    /// Digest of the manifest.
    pub digest: ManifestDigest,
    /// The manifest's exact bytes.
    pub root: String,
    /// What the build left out.
    pub report: BuildReport,
    /// The digests of its shards, in order of name.
    pub shards: Vec<ShardDigest>,
    /// All its packs, in order of name.
    pub packs: Vec<PackEntry>,
}

impl Release {
    /// Reads the release in `dir`.
    ///
    /// # Errors
    /// A [`Fault`] where `dir` holds no release, its report is of another manifest, or a shard is missing or damaged.
    pub fn read(dir: &Utf8Path) -> Result<Self, Fault> {
        let root = read_text(&dir.join("manifest.json"))
            .map_err(|error| error.hint(format!("Build a release first: packferry build ROOT... --out {dir}")))?;
        let digest = ManifestDigest::of(root.as_bytes());
        let report = read_text(&dir.join("report.json"))?;
        let report: BuildReport =
            canonical::from_json(&report).map_err(|error| damaged(&dir.join("report.json"), &error))?;
        if report.version != 1 || report.manifest != digest {
            return Err(
                Fault::new(format!("{dir}/report.json is not the report of {dir}/manifest.json"))
                    .hint("Build the release again: a build writes both."),
            );
        }
        let parsed = Root::parse(&root).map_err(|error| damaged(&dir.join("manifest.json"), &error))?;
        let mut release = Self {
            dir: dir.to_owned(),
            digest,
            root,
            report,
            shards: Vec::new(),
            packs: Vec::new(),
        };
        match parsed {
            Root::Packs(packs) => release.packs = packs,
            Root::Shards(rows) => {
                for row in rows {
                    let text = release.object(&StorageKey::Shard(row.sha256))?;
                    let path = release
                        .dir
                        .join("objects")
                        .join(StorageKey::Shard(row.sha256).to_string());
                    let text = String::from_utf8(text).map_err(|error| damaged(&path, &error))?;
                    release
                        .packs
                        .extend(parse_packs(&text).map_err(|error| damaged(&path, &error))?);
                    release.shards.push(row.sha256);
                }
            }
        }
        Ok(release)
    }

    /// Reads an immutable object of the release and proves it against its digest.
    ///
    /// # Errors
    /// A [`Fault`] where it is missing or damaged.
    pub fn object(&self, key: &StorageKey) -> Result<Vec<u8>, Fault> {
        if matches!(key, StorageKey::Manifest(digest) if *digest == self.digest) {
            return Ok(self.root.clone().into_bytes());
        }
        let path = self.dir.join("objects").join(key.to_string());
        let bytes = fs::read(&path).map_err(|error| {
            Fault::reading(&path, &error).hint("Build the release again; objects are not committed.")
        })?;
        check_object(key, &bytes).map_err(|error| damaged(&path, &error))?;
        Ok(bytes)
    }
}

/// Proves the bytes of an immutable object against the digest in its key.
///
/// # Errors
/// What is wrong with them.
pub fn check_object(key: &StorageKey, bytes: &[u8]) -> Result<(), String> {
    let text = || std::str::from_utf8(bytes).map_err(|error| error.to_string());
    let same = |holds: bool| {
        if holds {
            Ok(())
        } else {
            Err("its SHA-256 is not the one that names it".to_owned())
        }
    };
    match key {
        StorageKey::Blob(digest) => same(BlobDigest::of(bytes) == *digest),
        StorageKey::Shard(digest) => same(ShardDigest::of(bytes) == *digest),
        StorageKey::Manifest(digest) => same(ManifestDigest::of(bytes) == *digest),
        StorageKey::Graph(digest) => GraphRecord::parse(text()?, *digest)
            .map(|_| ())
            .map_err(|error| error.to_string()),
        StorageKey::Closure(digest) => {
            let (record, bodies) = closure::decode(bytes, *digest).map_err(|error| error.to_string())?;
            same(
                record
                    .files()
                    .iter()
                    .zip(bodies)
                    .all(|(file, body)| BlobDigest::of(body) == file.sha256),
            )
        }
        StorageKey::Channel(_) | StorageKey::Policy(_) => Err("it has no digest".to_owned()),
    }
}

fn read_text(path: &Utf8Path) -> Result<String, Fault> {
    fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))
}

fn damaged(path: &Utf8Path, error: &dyn std::fmt::Display) -> Fault {
    Fault::new(format!("{path} is damaged: {error}")).hint("Build the release again.")
}
