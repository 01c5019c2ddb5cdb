//! Which files esbuild may open: those below the folders where Node would look for packages, as long as they are regular and not
//! out of all proportion. A pipe would keep it waiting, a device would fill its memory, and what else the machine holds is not its
//! business. Walks directories and opens nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{FileType, Metadata};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use packferry_core::limits::PACK_LIMITS;

/// Bytes of a file that esbuild may read. A bundle is refused at a sixteenth of this.
const FILE_BYTES: u64 = 16 << 20;
/// Files and folders of one tree that are looked at.
const ENTRIES: usize = 1_000_000;
/// Files of one tree that may not be read; beyond it the tree may not be read at all.
const REFUSED: usize = 1_000;
/// Trees that one pack may reach, linked packages included.
const TREES: usize = 10_000;

/// What a tree holds besides regular files of bearable size.
#[derive(Debug, Default)]
struct Tree {
    /// What may not be read, and why.
    refused: BTreeMap<PathBuf, Refusal>,
    /// The real folders of packages that are linked from here.
    linked: BTreeSet<PathBuf>,
}

/// Why a file may not be read.
#[derive(Debug, Clone)]
pub(super) struct Refusal {
    /// What it is.
    pub(super) what: String,
    /// Whether it is only too large.
    pub(super) is_large: bool,
}

impl Refusal {
    fn of(what: &str) -> Self {
        Self {
            what: what.to_owned(),
            is_large: false,
        }
    }
}

/// Trees that were looked at. A build looks at each once.
#[derive(Debug, Clone, Default)]
pub(super) struct Surveys {
    trees: Arc<Mutex<HashMap<PathBuf, Arc<Tree>>>>,
}

/// What a bundler that starts in one folder may read.
#[derive(Debug, Clone, Default)]
pub(super) struct Readable {
    /// Folders with everything below, and single files.
    pub(super) paths: Vec<PathBuf>,
    /// What lies below a folder where packages are looked for and may not be read, and why.
    pub(super) refused: BTreeMap<PathBuf, Refusal>,
}

impl Surveys {
    /// What may be read for a pack in `folder`, a real path.
    pub(super) fn readable_from(&self, folder: &Path) -> Readable {
        let mut readable = Readable::default();
        let mut trees: BTreeSet<PathBuf> = BTreeSet::new();
        let mut open: Vec<PathBuf> = vec![folder.to_owned()];
        while let Some(folder) = open.pop() {
            for tree in searched(&folder) {
                if trees.len() >= TREES || tree.ancestors().any(|above| trees.contains(above)) {
                    continue;
                }
                let surveyed = self.tree(&tree);
                readable.refused.extend(surveyed.refused.clone());
                readable.paths.extend(sane_parts(&tree, &surveyed.refused));
                open.extend(surveyed.linked.iter().cloned());
                trees.insert(tree);
            }
            let documents = folder.ancestors().skip(1).map(|above| above.join("package.json"));
            readable
                .paths
                .extend(documents.filter(|document| is_document(document)));
        }
        readable
    }

    fn tree(&self, root: &Path) -> Arc<Tree> {
        let known = |trees: &HashMap<PathBuf, Arc<Tree>>| trees.get(root).map(Arc::clone);
        if let Some(tree) = self.trees.lock().ok().and_then(|trees| known(&trees)) {
            return tree;
        }
        let tree = Arc::new(survey(root));
        if let Ok(mut trees) = self.trees.lock() {
            trees.insert(root.to_owned(), Arc::clone(&tree));
        }
        tree
    }
}

/// A folder, and every real `node_modules` that Node looks into from there.
fn searched(folder: &Path) -> Vec<PathBuf> {
    let above = folder.ancestors().skip(1);
    let modules = above.filter_map(|above| above.join("node_modules").canonicalize().ok());
    std::iter::once(folder.to_owned()).chain(modules).collect()
}

fn is_document(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|found| found.is_file() && found.len() <= PACK_LIMITS.package_json_bytes)
}

fn survey(root: &Path) -> Tree {
    let mut tree = Tree::default();
    let mut open = vec![root.to_owned()];
    let mut entries = 0;
    while let Some(folder) = open.pop() {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            entries += 1;
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else {
                continue;
            };
            if metadata.is_dir() {
                open.push(path);
            } else if metadata.is_symlink() {
                tree.linked.extend(linked_package(&path));
            } else if let Some(what) = refusal(&metadata) {
                tree.refused.insert(path, what);
            }
        }
        if entries > ENTRIES || tree.refused.len() > REFUSED {
            let what = if entries > ENTRIES {
                format!("a folder of more than {ENTRIES} files")
            } else {
                format!("a folder with more than {REFUSED} files that are not regular or too large")
            };
            tree.refused = BTreeMap::from([(root.to_owned(), Refusal::of(&what))]);
            break;
        }
    }
    tree
}

/// The real folder of a package, where a link in a `node_modules`, or in a scope there, leads to one.
fn linked_package(link: &Path) -> Option<PathBuf> {
    let folder = link.parent()?;
    let is_scope = folder.file_name()?.to_str()?.starts_with('@');
    let modules = if is_scope { folder.parent()? } else { folder };
    let target = (modules.file_name()? == "node_modules").then(|| link.canonicalize().ok())??;
    is_document(&target.join("package.json")).then_some(target)
}

/// What a file is, where it may not be read.
fn refusal(metadata: &Metadata) -> Option<Refusal> {
    let kind: FileType = metadata.file_type();
    if kind.is_fifo() {
        return Some(Refusal::of("a named pipe"));
    }
    if kind.is_char_device() || kind.is_block_device() {
        return Some(Refusal::of("a device"));
    }
    if !kind.is_file() {
        return Some(Refusal::of("no regular file"));
    }
    let bytes = metadata.len();
    (bytes > FILE_BYTES).then(|| Refusal {
        what: format!("a file of {bytes} bytes, where {FILE_BYTES} are read"),
        is_large: true,
    })
}

/// `folder`, or, where something below is refused, what of it is not.
fn sane_parts(folder: &Path, refused: &BTreeMap<PathBuf, Refusal>) -> Vec<PathBuf> {
    let mut parts = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if refused.contains_key(&path) {
            continue;
        }
        let mut below =
            refused.range::<Path, _>((std::ops::Bound::Excluded(path.as_path()), std::ops::Bound::Unbounded));
        if !below.next().is_some_and(|(first, _)| first.starts_with(&path)) {
            parts.push(path);
            continue;
        }
        let entries = path.read_dir().into_iter().flatten().flatten();
        open.extend(
            entries
                .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_symlink()))
                .map(|entry| entry.path()),
        );
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Makes folders, files, links (`path -> target`) and pipes (`path |`) below a folder.
    fn tree(rows: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        for row in rows {
            let (path, target) = row.split_once(" -> ").unwrap_or((row, ""));
            let path = root.join(path.trim_end_matches(" |"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            if row.ends_with(" |") {
                let status = std::process::Command::new("mkfifo").arg(&path).status();
                assert!(status.unwrap().success());
            } else if target.is_empty() {
                fs::write(&path, "{}").unwrap();
            } else {
                symlink(target, &path).unwrap();
            }
        }
        (top, root)
    }

    /// What it is about, what there is, what may be read, and what is refused.
    type Case = (
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
        &'static [&'static str],
    );

    fn names(paths: impl Iterator<Item = PathBuf>, root: &Path) -> Vec<String> {
        let below = paths.filter_map(|path| Some(path.strip_prefix(root).ok()?.to_str()?.to_owned()));
        let mut names: Vec<String> = below.collect();
        names.sort();
        names
    }

    #[test]
    fn what_may_be_read_from_a_pack() {
        let cases: [Case; 6] = [
            (
                "folders as a whole",
                &[
                    "p/package.json",
                    "p/node_modules/l/i.js",
                    "node_modules/m/i.js",
                    "other/i.js",
                ],
                &["node_modules", "p"],
                &[],
            ),
            (
                "documents above",
                &["a/p/i.js", "a/package.json", "a/secret"],
                &["a/p", "a/package.json"],
                &[],
            ),
            (
                "what is beside a pipe",
                &[
                    "p/i.js",
                    "node_modules/l/a/b.js",
                    "node_modules/l/a/pipe |",
                    "node_modules/m/i.js",
                ],
                &["node_modules/l/a/b.js", "node_modules/m", "p"],
                &["node_modules/l/a/pipe"],
            ),
            (
                "linked packages, and what they see",
                &[
                    "a/p/i.js",
                    "a/node_modules/@s/l -> ../../../b/l",
                    "b/l/package.json",
                    "b/node_modules/m/i.js",
                ],
                &["a/node_modules", "a/p", "b/l", "b/node_modules"],
                &[],
            ),
            (
                "no other links",
                &["p/i.js", "p/l -> ..", "p/node_modules/l -> /", "p/d -> /dev/zero"],
                &["p"],
                &[],
            ),
            ("a pipe as a document", &["a/p/i.js", "a/package.json |"], &["a/p"], &[]),
        ];
        for (what, rows, paths, refused) in cases {
            let (_top, root) = tree(rows);
            let pack = if root.join("p").is_dir() {
                root.join("p")
            } else {
                root.join("a/p")
            };
            let readable = Surveys::default().readable_from(&pack);
            assert_eq!(names(readable.paths.into_iter(), &root), paths, "{what}");
            assert_eq!(names(readable.refused.into_keys(), &root), refused, "{what}");
        }
    }

    #[test]
    fn files_out_of_proportion_are_not_read() {
        let (_top, root) = tree(&["p/i.js", "p/limit.js", "p/large.js"]);
        let resize = |name: &str, bytes| {
            fs::File::create(root.join("p").join(name))
                .unwrap()
                .set_len(bytes)
                .unwrap()
        };
        resize("limit.js", FILE_BYTES);
        resize("large.js", FILE_BYTES + 1);
        let readable = Surveys::default().readable_from(&root.join("p"));
        assert_eq!(names(readable.paths.into_iter(), &root), ["p/i.js", "p/limit.js"]);
        let refusal = readable.refused.into_values().next().unwrap();
        assert_eq!(refusal.what, "a file of 16777217 bytes, where 16777216 are read");
        assert!(refusal.is_large);
    }
}
