//! What a build keeps for the next one: answers of steps that take long, each under a key that names everything that decides it, in a
//! folder of the user's. Nothing depends on it: what is missing, damaged or refused by the system is made again.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::BlobDigest;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::reason;
use crate::release::write_atomically;

/// Names the folder, in place of the user's.
const OVERRIDE: &str = "PACKFERRY_CACHE";

/// The code that gave an answer: other code may give another.
const CODE: &str = env!("PACKFERRY_CODE");

/// Bytes that all entries may have together; beyond it, those go that were not used for the longest time.
const BYTES: u64 = 512 << 20;

/// Bytes that are read of an entry.
const ENTRY_BYTES: u64 = 64 << 20;

/// What an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// What bundling and reading an npm package gave.
    Bundle,
    /// What the guest said about a bundle.
    Probe,
    /// What stands in the files of a pack.
    Inspections,
}

const KINDS: [Kind; 3] = [Kind::Bundle, Kind::Probe, Kind::Inspections];

impl Kind {
    fn folder(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Probe => "probe",
            Self::Inspections => "inspections",
        }
    }
}

/// Names an answer by everything that decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    kind: Kind,
    digest: BlobDigest,
}

impl Key {
    /// The key of what is decided by `parts` and by this program.
    #[must_use]
    pub fn new(kind: Kind, parts: &[&[u8]]) -> Self {
        let mut text = Vec::new();
        for part in [kind.folder().as_bytes(), CODE.as_bytes()].iter().chain(parts) {
            // With its length before it, no part can be taken for two.
            text.extend_from_slice(&(part.len() as u64).to_le_bytes());
            text.extend_from_slice(part);
        }
        Self {
            kind,
            digest: BlobDigest::of(&text),
        }
    }
}

/// What may be done with entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// They are read and written.
    Full,
    /// They are read, and nothing on the disk changes.
    ReadOnly,
}

/// The folder of entries, or none.
#[derive(Debug, Default)]
pub struct Cache {
    folder: Option<Utf8PathBuf>,
    writes: bool,
    has_grown: AtomicBool,
    trouble: OnceLock<String>,
}

impl Cache {
    /// A cache that keeps nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The cache of the user: in `PACKFERRY_CACHE`, else in `$XDG_CACHE_HOME/packferry` or `~/.cache/packferry`. Where no folder can be had
    /// it keeps nothing, and [`Cache::trouble`] says why.
    #[must_use]
    pub fn of_user(access: Access) -> Self {
        match folder_of_user(|name| env::var_os(name)) {
            Some(folder) => Self::in_folder(folder, access),
            None => Self::broken("neither HOME nor XDG_CACHE_HOME names a folder".to_owned()),
        }
    }

    /// The cache in `folder`.
    #[must_use]
    pub fn in_folder(folder: PathBuf, access: Access) -> Self {
        let Ok(folder) = Utf8PathBuf::from_path_buf(folder) else {
            return Self::broken("its folder's path is not UTF-8".to_owned());
        };
        match open(&folder, access) {
            Ok(true) => Self {
                folder: Some(folder),
                writes: access == Access::Full,
                ..Self::default()
            },
            Ok(false) => Self::none(),
            Err(why) => Self::broken(format!("{folder}: {why}")),
        }
    }

    fn broken(why: String) -> Self {
        let cache = Self::none();
        cache.note(why);
        cache
    }

    fn note(&self, why: String) {
        // The first trouble is told; those after it mostly have the same cause.
        self.trouble
            .get_or_init(|| format!("Nothing is kept for the next build: {why}."));
    }

    /// Why answers are not kept, as a sentence, where that is not what was asked for.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.get().map(String::as_str)
    }

    /// Whether what is put is kept.
    #[must_use]
    pub fn keeps(&self) -> bool {
        self.folder.is_some() && self.writes
    }

    /// The answer under `key`, if it is there and is what was written.
    #[must_use]
    pub fn get<T: DeserializeOwned>(&self, key: &Key) -> Option<T> {
        let mut file = File::open(self.path(key)?).ok()?;
        let length = file.metadata().ok()?.len().min(ENTRY_BYTES);
        let mut entry = Vec::with_capacity(usize::try_from(length).ok()? + 1);
        file.by_ref().take(ENTRY_BYTES).read_to_end(&mut entry).ok()?;
        let (seal, body) = entry.split_at_checked(SEAL_BYTES)?;
        if seal != seal_of(key, body).as_bytes() {
            return None;
        }
        if self.writes {
            touch(&file);
        }
        serde_json::from_slice(body).ok()
    }

    /// Keeps `answer` under `key`.
    pub fn put<T: Serialize>(&self, key: &Key, answer: &T) {
        let Some(path) = self.path(key).filter(|_| self.writes) else {
            return;
        };
        let Ok(body) = serde_json::to_vec(answer) else { return };
        let mut entry = seal_of(key, &body).into_bytes();
        entry.extend_from_slice(&body);
        match write_atomically(&path, &entry) {
            Ok(()) => self.has_grown.store(true, Ordering::Relaxed),
            Err(error) => self.note(format!("an entry cannot be written: {}", reason(&error))),
        }
    }

    /// Removes the entries that were not used for the longest time, as many as are too many. Looks only where something was written.
    pub fn trim(&self) {
        if self.has_grown.swap(false, Ordering::Relaxed)
            && let Some(folder) = &self.folder
        {
            trim(folder, BYTES);
        }
    }

    fn path(&self, key: &Key) -> Option<Utf8PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(key.kind.folder()).join(key.digest.to_string()))
    }
}

/// Bytes of an entry's head: the digest of its key and body.
const SEAL_BYTES: usize = 64;

fn seal_of(key: &Key, body: &[u8]) -> String {
    BlobDigest::of(&[key.digest.as_bytes(), body].concat()).to_string()
}

/// Where a user's cache is, as the environment says (XDG Base Directory Specification: a relative path there is none).
fn folder_of_user(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| path(name).filter(|path| path.is_absolute());
    path(OVERRIDE)
        .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("packferry")))
        .or_else(|| Some(absolute("HOME")?.join(".cache/packferry")))
}

/// Makes the folder fit for use. False where there is none yet and nothing may be written.
fn open(folder: &Utf8Path, access: Access) -> Result<bool, String> {
    if access == Access::Full {
        for kind in KINDS {
            let made = DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder.join(kind.folder()));
            made.map_err(|error| reason(&error))?;
        }
    }
    let found = match fs::metadata(folder) {
        Ok(found) => found,
        Err(_) if access == Access::ReadOnly => return Ok(false),
        Err(error) => return Err(reason(&error)),
    };
    let user = rustix::process::geteuid().as_raw();
    match is_private(user, found.uid(), found.mode()) {
        true => Ok(true),
        false => Err("others can write there".to_owned()),
    }
}

/// Whether only `user` writes into a folder of `owner` with `mode`: entries decide what is published.
fn is_private(user: u32, owner: u32, mode: u32) -> bool {
    user == owner && mode & 0o022 == 0
}

/// Notes that an entry was used. Its time says only which goes first.
fn touch(file: &File) {
    let omit = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    };
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: omit,
        last_modification: now,
    };
    futimens(file, &times).ok();
}

fn trim(folder: &Utf8Path, most: u64) {
    let mut entries: Vec<((i64, i64), u64, PathBuf)> = KINDS
        .iter()
        .filter_map(|kind| fs::read_dir(folder.join(kind.folder())).ok())
        .flat_map(Iterator::flatten)
        .filter_map(|entry| {
            let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(((found.mtime(), found.mtime_nsec()), found.len(), entry.path()))
        })
        .collect();
    let mut bytes: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    entries.sort();
    for (_, length, path) in entries {
        if bytes <= most {
            return;
        }
        // Another build may have been faster.
        if remove(&path).is_ok() {
            bytes -= length;
        }
    }
}

fn remove(path: &std::path::Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn cache(folder: &tempfile::TempDir, access: Access) -> Cache {
        Cache::in_folder(folder.path().join("packferry"), access)
    }

    fn key(text: &str) -> Key {
        Key::new(Kind::Probe, &[text.as_bytes()])
    }

    #[test]
    fn answers_come_back_and_damaged_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(&folder, Access::Full);
        cache.put(&key("a"), &vec!["x", "y"]);
        assert_eq!(cache.get(&key("a")), Some(vec!["x".to_owned(), "y".to_owned()]));
        assert_eq!(cache.get::<Vec<String>>(&key("b")), None);
        let path = cache.path(&key("a")).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert_eq!(cache.get::<Vec<String>>(&key("a")), None, "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.get::<Vec<String>>(&key("a")), None, "cut at {at}");
        }
        // The entry of another key, put in this one's place.
        cache.put(&key("b"), &vec!["z"]);
        fs::copy(cache.path(&key("b")).unwrap(), &path).unwrap();
        assert_eq!(cache.get::<Vec<String>>(&key("a")), None);
        cache.put(&key("a"), &vec!["x"]);
        assert_eq!(cache.get(&key("a")), Some(vec!["x".to_owned()]));
        assert_eq!(cache.trouble(), None);
    }

    #[test]
    fn keys_tell_parts_apart() {
        let keys = [
            Key::new(Kind::Probe, &[b"ab", b"c"]),
            Key::new(Kind::Probe, &[b"a", b"bc"]),
            Key::new(Kind::Probe, &[b"abc"]),
            Key::new(Kind::Bundle, &[b"abc"]),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(keys.iter().skip(at + 1).all(|other| other.digest != key.digest), "{at}");
        }
    }

    #[test]
    fn reading_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let reader = cache(&folder, Access::ReadOnly);
        reader.put(&key("a"), &1);
        assert_eq!((reader.get::<u32>(&key("a")), reader.trouble()), (None, None));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        cache(&folder, Access::Full).put(&key("a"), &1);
        let reader = cache(&folder, Access::ReadOnly);
        reader.put(&key("a"), &2);
        assert_eq!(reader.get(&key("a")), Some(1));
    }

    /// Variables of the environment, and the folder that comes of them.
    type Row = (&'static [(&'static str, &'static str)], Option<&'static str>);

    #[test]
    fn the_folder_is_the_users() {
        let rows: &[Row] = &[
            (
                &[
                    ("PACKFERRY_CACHE", "here"),
                    ("XDG_CACHE_HOME", "/cache"),
                    ("HOME", "/home/a"),
                ],
                Some("here"),
            ),
            (
                &[
                    ("PACKFERRY_CACHE", ""),
                    ("XDG_CACHE_HOME", "/cache"),
                    ("HOME", "/home/a"),
                ],
                Some("/cache/packferry"),
            ),
            (
                &[("XDG_CACHE_HOME", "cache"), ("HOME", "/home/a")],
                Some("/home/a/.cache/packferry"),
            ),
            (&[("HOME", "/home/a")], Some("/home/a/.cache/packferry")),
            (&[("HOME", "")], None),
            (&[], None),
        ];
        for (variables, folder) in rows {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(folder_of_user(variable), folder.map(PathBuf::from), "{variables:?}");
        }
    }

    #[test]
    fn only_a_private_folder_is_used() {
        let rows = [
            ((1, 1, 0o700), true),
            ((1, 1, 0o755), true),
            ((1, 2, 0o700), false),
            ((0, 1, 0o755), false),
            ((1, 1, 0o720), false),
            ((1, 1, 0o702), false),
            ((1, 1, 0o1777), false),
        ];
        for ((user, owner, mode), expected) in rows {
            assert_eq!(is_private(user, owner, mode), expected, "{user} {owner} {mode:o}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let shared = Cache::in_folder(folder.path().to_owned(), Access::Full);
        shared.put(&key("a"), &1);
        assert_eq!(shared.get::<u32>(&key("a")), None);
        assert!(
            shared
                .trouble()
                .is_some_and(|why| why.ends_with("others can write there."))
        );
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_fault() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let cache = Cache::in_folder(file.join("packferry"), Access::Full);
        cache.put(&key("a"), &1);
        assert_eq!(cache.get::<u32>(&key("a")), None);
        assert!(cache.trouble().is_some());
    }

    #[test]
    fn the_entries_used_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(&folder, Access::Full);
        for name in ["a", "b", "c"] {
            cache.put(&key(name), &name);
        }
        let at = |name: &str, seconds| {
            let file = File::options().write(true).open(cache.path(&key(name)).unwrap());
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            file.unwrap().set_modified(time).unwrap();
        };
        at("a", 1);
        at("b", 2);
        at("c", 3);
        assert_eq!(cache.get(&key("a")), Some("a".to_owned()));
        let entry = fs::metadata(cache.path(&key("a")).unwrap()).unwrap().len();
        trim(cache.folder.as_ref().unwrap(), 2 * entry);
        let left = ["a", "b", "c"].map(|name| cache.get::<String>(&key(name)).is_some());
        assert_eq!(left, [true, false, true]);
    }
}
