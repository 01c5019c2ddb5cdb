//! What a bundle rests on: questions about the disk, with the answers that held when it was made. As long as all of them still hold,
//! the bundler would read the same bytes and find the same files, and so make the same bundle.
//!
//! The questions ask for more than the bundler looks at: a package in which nothing was added or taken away is one in which every
//! import leads where it led. Times of files are never asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::BlobDigest;
use serde::{Deserialize, Serialize};

use super::confine::package_name;
use super::metafile::Metafile;
use super::origin::{Origins, file_of_key};
use crate::pack_files::{Unread, read_document};

/// Bytes of a file that a bundle may rest on, and files and folders of a package. What has more is bundled every time.
const FILE_BYTES: u64 = 64 << 20;
const PACKAGE_ENTRIES: usize = 100_000;

/// What `require` and `import` may leave out at the end of a path, as esbuild tries it.
const EXTENSIONS: [&str; 6] = [".tsx", ".ts", ".jsx", ".js", ".css", ".json"];

/// Files whose contents decide how imports in their folder are resolved, and those below.
const RESOLUTION_FILES: [&str; 3] = ["package.json", "tsconfig.json", "jsconfig.json"];

/// Files of Yarn, which esbuild resolves by instead, where one stands in a folder above.
const PLUG_AND_PLAY: [&str; 3] = [".pnp.data.json", ".pnp.cjs", ".pnp.js"];

/// A question about the disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Question {
    /// Whether there is a file, and what is in it.
    File(Utf8PathBuf),
    /// The name of everything in a package's folder but what is installed there, and what is in its package.json files.
    Package(Utf8PathBuf),
    /// Where the `node_modules` of a folder leads under a package's name.
    Installed(Utf8PathBuf, String),
}

/// What an outcome rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grounds(Vec<(Question, BlobDigest)>);

impl Grounds {
    /// Of an outcome that rests on nothing on the disk.
    pub(super) fn none() -> Self {
        Self(Vec::new())
    }

    /// Asks `questions`. None where one of them has no answer.
    pub(super) fn ask(questions: &BTreeSet<Question>) -> Option<Self> {
        let answers = questions
            .iter()
            .map(|question| Some((question.clone(), question.answer()?)));
        answers.collect::<Option<_>>().map(Self)
    }

    /// Whether all answers are still the same.
    #[must_use]
    pub fn hold(&self) -> bool {
        self.0
            .iter()
            .all(|(question, answer)| question.answer().as_ref() == Some(answer))
    }

    /// Whether these are the answers to `questions`.
    pub(super) fn answer(&self, questions: &BTreeSet<Question>) -> bool {
        self.0.iter().map(|(question, _)| question).eq(questions)
    }
}

impl Question {
    /// The answer's digest. None where it cannot be told, or not within bounds.
    fn answer(&self) -> Option<BlobDigest> {
        let text = match self {
            Self::File(path) => contents(path)?,
            Self::Package(root) => listing(root).ok().flatten()?,
            Self::Installed(folder, name) => installed(folder, name).ok()?,
        };
        Some(BlobDigest::of(text.as_bytes()))
    }
}

/// What there is at `path`.
fn contents(path: &Utf8Path) -> Option<String> {
    match read_document(path.as_std_path(), FILE_BYTES) {
        Ok(bytes) => Some(format!("file {}", BlobDigest::of(&bytes))),
        Err(Unread::Missing) => Some("nothing".to_owned()),
        Err(Unread::NotRegular) => Some("no file".to_owned()),
        Err(Unread::Escapes | Unread::Symlink | Unread::TooLarge { .. } | Unread::Failed(_)) => None,
    }
}

/// Everything below `root` by name and kind. None where that is too much, or where a link leads to a folder, whose contents would
/// have to be asked for, too.
fn listing(root: &Utf8Path) -> io::Result<Option<String>> {
    let mut found: BTreeMap<Utf8PathBuf, String> = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir_utf8()? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.into_path());
            let name = path.file_name().unwrap_or_default();
            let what = if kind.is_symlink() {
                match path.canonicalize_utf8() {
                    Ok(target) if target.is_dir() && name != "node_modules" => return Ok(None),
                    Ok(target) => format!("link {target}"),
                    Err(_) => "link".to_owned(),
                }
            } else if kind.is_dir() {
                if name != "node_modules" {
                    open.push(path.clone());
                }
                "folder".to_owned()
            } else {
                "file".to_owned()
            };
            let what = if RESOLUTION_FILES.contains(&name) {
                let Some(contents) = contents(&path) else {
                    return Ok(None);
                };
                format!("{what} {contents}")
            } else {
                what
            };
            found.insert(path, what);
            if found.len() > PACKAGE_ENTRIES {
                return Ok(None);
            }
        }
    }
    let lines = found.iter().map(|(path, what)| format!("{path:?} {what:?}\n"));
    Ok(Some(lines.collect()))
}

/// What an import of the package `name` may find in the `node_modules` of `folder`: it, or a file called like it.
fn installed(folder: &Utf8Path, name: &str) -> io::Result<String> {
    let modules = folder.join("node_modules");
    let mut text = String::new();
    for extension in [""].iter().chain(&EXTENSIONS) {
        let path = modules.join(format!("{name}{extension}"));
        match path.symlink_metadata() {
            Ok(found) => {
                let target = path.canonicalize_utf8().unwrap_or_default();
                text.push_str(&format!("{path:?} {:?} {target:?}\n", found.file_type()));
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

/// The questions that decide the bundle of `metafile`, made for the pack in `pack_dir`. None where esbuild resolves imports in a way
/// that is not asked about.
pub(super) fn questions(pack_dir: &Utf8Path, metafile: &Metafile, origins: &mut Origins) -> Option<BTreeSet<Question>> {
    let mut asked = Asked::default();
    asked.file(pack_dir.join("package.json"));
    for (key, input) in &metafile.inputs {
        let file = file_of_key(key).map(|(file, _)| file);
        if let Some(file) = file {
            asked.input(file, origins)?;
        }
        let from = file.and_then(Utf8Path::parent).unwrap_or(pack_dir);
        for import in &input.imports {
            if let Some((target, _)) = file_of_key(&import.path) {
                asked.package(origins.package_of(target).root);
            }
            match import.name() {
                // Outside its package, a path that leads nowhere is one that nothing is asked about.
                name if import.external && name.starts_with(['.', '/']) => {
                    let root = file.map_or_else(|| pack_dir.to_owned(), |file| origins.package_of(file).root);
                    if !super::places::joined(from, name).starts_with(root) {
                        return None;
                    }
                }
                name if name.starts_with(['.', '/']) => {}
                name if name.starts_with('#') => {
                    let root = file.map_or_else(|| pack_dir.to_owned(), |file| origins.package_of(file).root);
                    for name in imported_by_alias(&root) {
                        asked.bare(from, &name);
                    }
                }
                name => asked.bare(from, package_name(name)),
            }
        }
    }
    asked.finish(pack_dir)
}

/// Questions under collection.
#[derive(Default)]
struct Asked {
    questions: BTreeSet<Question>,
    packages: BTreeSet<Utf8PathBuf>,
    bare: BTreeSet<(Utf8PathBuf, String)>,
}

impl Asked {
    fn file(&mut self, path: Utf8PathBuf) {
        self.questions.insert(Question::File(path));
    }

    fn package(&mut self, root: Utf8PathBuf) {
        self.packages.insert(root);
    }

    /// A file of the bundle, its package, and the source maps that it may name: messages give lines by them. None where it cannot
    /// be read.
    fn input(&mut self, file: &Utf8Path, origins: &mut Origins) -> Option<()> {
        self.file(file.to_owned());
        self.package(origins.package_of(file).root);
        let bytes = read_document(file.as_std_path(), FILE_BYTES).ok()?;
        for map in source_maps(&String::from_utf8_lossy(&bytes), file) {
            self.file(map);
        }
        Some(())
    }

    /// An import of the package `name` from `folder`: looked for in `node_modules` there and in every folder above.
    fn bare(&mut self, folder: &Utf8Path, name: &str) {
        self.bare.insert((folder.to_owned(), name.to_owned()));
    }

    fn finish(mut self, pack_dir: &Utf8Path) -> Option<BTreeSet<Question>> {
        for (folder, name) in std::mem::take(&mut self.bare) {
            for folder in folder.ancestors() {
                let installed = folder.join("node_modules").join(&name);
                // What is found and passed over, for it lacks what is imported, may get it later.
                if let Ok(root) = installed.canonicalize_utf8()
                    && root.is_dir()
                {
                    self.packages.insert(root);
                }
                self.questions
                    .insert(Question::Installed(folder.to_owned(), name.clone()));
            }
        }
        let mut folders: BTreeSet<Utf8PathBuf> = pack_dir.ancestors().map(Utf8Path::to_owned).collect();
        for root in &self.packages {
            folders.extend(root.ancestors().map(Utf8Path::to_owned));
            self.questions.insert(Question::Package(root.clone()));
            // A package without a package.json is under the nearest one above.
            for folder in root.ancestors() {
                let package_json = folder.join("package.json");
                let is_there = package_json.is_file();
                self.questions.insert(Question::File(package_json));
                if is_there {
                    break;
                }
            }
        }
        for path in folders
            .iter()
            .flat_map(|folder| PLUG_AND_PLAY.map(|name| folder.join(name)))
        {
            if path.exists() {
                return None;
            }
            self.questions.insert(Question::File(path));
        }
        Some(self.questions)
    }
}

/// The packages that a package's own `imports` may name.
fn imported_by_alias(root: &Utf8Path) -> BTreeSet<String> {
    let bytes = read_document(root.join("package.json").as_std_path(), FILE_BYTES).unwrap_or_default();
    let document: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut names = BTreeSet::new();
    let mut open: Vec<&serde_json::Value> = document.get("imports").into_iter().collect();
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(target) if !target.starts_with(['.', '/', '#']) => {
                names.insert(package_name(target).to_owned());
            }
            serde_json::Value::Array(values) => open.extend(values),
            serde_json::Value::Object(values) => open.extend(values.values()),
            _ => {}
        }
    }
    names
}

/// The files that a module may name as its source map, wherever in it: more than those that esbuild takes.
fn source_maps(text: &str, file: &Utf8Path) -> Vec<Utf8PathBuf> {
    const MARK: &str = "sourceMappingURL=";
    let folder = file.parent().unwrap_or(file);
    let named = text.match_indices(MARK).filter_map(|(at, _)| {
        let rest = text.get(at + MARK.len()..)?;
        let url = rest.split(|c: char| c.is_whitespace() || c == '*').next()?;
        let url = url.strip_prefix("file://").unwrap_or(url);
        let path = url.split(['?', '#']).next()?;
        let is_path = !path.is_empty() && !path.contains('\0') && !url.starts_with("data:");
        is_path.then(|| path.to_owned())
    });
    let paths = named.flat_map(|path| [decoded(&path), path]);
    paths.map(|path| super::places::joined(folder, &path)).collect()
}

/// `path` with its `%xx` put back.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let escape = after.get(..2).filter(|_| *first == b'%').and_then(|digits| {
            let mut byte = [0];
            hex::decode_to_slice(digits, &mut byte).ok().map(|()| byte[0])
        });
        bytes.push(escape.unwrap_or(*first));
        rest = if escape.is_some() {
            after.get(2..).unwrap_or_default()
        } else {
            after
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
