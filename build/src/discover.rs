//! Stage 1: from search roots to pack directories. Opens nothing but directories, and asks whether package.json exists;
//! what it says is the next stage's business.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use camino::Utf8PathBuf;
use rayon::prelude::*;

use crate::diagnostics::{Diagnostic, NO_PACK, STAGING_LIST_INVALID, UNREADABLE_DIRECTORY};
use crate::fault::{Fault, reason};
use crate::package_json;
use crate::staging::{BUNDLES, STAGED_TREE, STAGING_LIST, StagedTree};

/// A directory that may hold a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackDir {
    /// As the user would name it, for messages on the terminal only.
    pub shown: Utf8PathBuf,
    /// The real path; every file of the pack lies under it.
    pub real: PathBuf,
    /// Whether the user named this very directory, rather than a root that holds it.
    pub named: bool,
    /// Whether another pack of the same name shadows it.
    pub standing: Standing,
    /// The staged tree that it lies in, where that has a list: its npm entries come from there.
    pub staged: Option<Arc<StagedTree>>,
}

/// Where a pack comes from: an installed copy shadows a staged one of the same name, silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// From any ordinary root.
    Installed,
    /// From a staged tree: a root named `_sandbox`, or one that has a staging list. Searched last.
    Staged,
}

/// Children of a root that package managers keep for themselves.
const SKIPPED: [&str; 2] = [".bin", ".cache"];

/// Where to search, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots(Vec<Root>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Root {
    path: PathBuf,
    shown: Utf8PathBuf,
    /// Given on the command line: it has to be there, and it may be a pack itself.
    named: bool,
}

impl Roots {
    /// The roots of a run: those of the command line; without any, those of `environment` (the value of
    /// `PACKFERRY_PACK_PATHS`: paths divided by `,`, `;` or `:`); without any, every `node_modules` from
    /// `working_directory` upwards.
    ///
    /// # Errors
    /// A path of the command line that is no directory, or nothing to search at all.
    pub fn resolve(
        arguments: &[PathBuf],
        environment: Option<&OsStr>,
        working_directory: &Path,
    ) -> Result<Self, Fault> {
        if !arguments.is_empty() {
            let named = arguments.iter().map(|path| named_root(path, working_directory));
            return Ok(Self(named.collect::<Result<_, _>>()?));
        }
        let unnamed = |shown: Utf8PathBuf, path: &Path| Root {
            shown,
            path: working_directory.join(path),
            named: false,
        };
        let listed = environment.map(split_paths).unwrap_or_default();
        let listed: Vec<Root> = listed
            .iter()
            .map(|path| unnamed(shown_as_given(path, working_directory), path))
            .collect();
        if !listed.is_empty() {
            return Ok(Self(listed));
        }
        let upwards: Vec<Root> = working_directory
            .ancestors()
            .map(|ancestor| ancestor.join("node_modules"))
            .filter(|path| path.is_dir())
            .map(|path| unnamed(shown(&path, working_directory), &path))
            .collect();
        if upwards.is_empty() {
            let fault = Fault::new("there is no node_modules directory here or above, and no path was given");
            return Err(fault.hint("Name a pack, or a directory that holds packs, or set PACKFERRY_PACK_PATHS."));
        }
        Ok(Self(upwards))
    }
}

impl fmt::Display for Roots {
    /// The roots as the user would name them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: Vec<&str> = self.0.iter().map(|root| root.shown.as_str()).collect();
        f.write_str(&shown.join(", "))
    }
}

fn named_root(path: &Path, working_directory: &Path) -> Result<Root, Fault> {
    let shown = shown_as_given(path, working_directory);
    let path = working_directory.join(path);
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(Root {
            path,
            shown,
            named: true,
        }),
        Ok(_) => Err(Fault::new(format!("{shown} is no directory")).hint("Name the pack's directory.")),
        Err(error) => Err(Fault::reading(shown, &error)),
    }
}

fn split_paths(list: &OsStr) -> Vec<PathBuf> {
    list.as_bytes()
        .split(|b| matches!(b, b',' | b';' | b':'))
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect()
}

/// How messages name a path that the user gave: relative to the working directory where it lies below, else as it was given.
fn shown_as_given(path: &Path, working_directory: &Path) -> Utf8PathBuf {
    if path.is_absolute() && !path.starts_with(working_directory) {
        return Utf8PathBuf::from(path.to_string_lossy().into_owned());
    }
    shown(path, working_directory)
}

/// How messages name `path`: relative to the working directory.
fn shown(path: &Path, working_directory: &Path) -> Utf8PathBuf {
    let relative = if path.is_absolute() {
        relative_to(path, working_directory)
    } else {
        path.to_owned()
    };
    if relative.as_os_str().is_empty() {
        return Utf8PathBuf::from(".");
    }
    Utf8PathBuf::from(relative.to_string_lossy().into_owned())
}

fn relative_to(path: &Path, base: &Path) -> PathBuf {
    let mut path_parts = path.components().peekable();
    let mut base_parts = base.components().peekable();
    while path_parts.peek().is_some() && path_parts.peek() == base_parts.peek() {
        path_parts.next();
        base_parts.next();
    }
    let upwards = base_parts.map(|_| Component::ParentDir);
    upwards.chain(path_parts).collect()
}

/// A directory that was met on the way, and what is wrong with it.
pub type Encounter = (Utf8PathBuf, Diagnostic);

/// What the search roots hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovered {
    /// Directories with a package.json, in search order, each real directory once.
    pub dirs: Vec<PackDir>,
    /// Directories that could not be looked into.
    pub encounters: Vec<Encounter>,
    /// What each path of the command line holds: how it is shown, and the real directories under it.
    named: Vec<(Utf8PathBuf, Vec<PathBuf>)>,
}

impl Discovered {
    /// The paths of the command line under which none of `packs`, real directories, lies.
    #[must_use]
    pub fn without_packs(&self, packs: &HashSet<&Path>) -> Vec<Encounter> {
        let is_empty = |dirs: &[PathBuf]| !dirs.iter().any(|dir| packs.contains(dir.as_path()));
        let empty = self.named.iter().filter(|(_, dirs)| is_empty(dirs));
        let message = "there is no pack here: no package.json with nodetool.sandboxModules";
        empty
            .map(|(shown, _)| (shown.clone(), Diagnostic::new(&NO_PACK, message)))
            .collect()
    }
}

/// Searches the roots: their children, and the children of their scopes. A root of the command line that is itself a pack
/// is that pack and nothing else.
#[must_use]
pub fn discover(roots: &Roots) -> Discovered {
    let mut found = Discovered::default();
    for root in &roots.0 {
        let before = found.dirs.len();
        if root.named && is_pack(root) {
            let dir = pack_dir(&root.path, root.shown.clone(), true, &Holder::INSTALLED);
            found.dirs.extend(dir);
        } else {
            search_root(root, &mut found);
        }
        if root.named {
            let dirs = found.dirs.iter().skip(before).map(|dir| dir.real.clone()).collect();
            found.named.push((root.shown.clone(), dirs));
        }
    }
    found.dirs.sort_by_key(|dir| dir.standing);
    found.dirs = each_once(found.dirs);
    found
}

/// Whether a root of the command line is to be taken as a pack: its package.json says so, or is at fault. A workspace's
/// root has a package.json, too, and is a root all the same.
fn is_pack(root: &Root) -> bool {
    pack_dir(&root.path, root.shown.clone(), true, &Holder::INSTALLED)
        .is_some_and(|dir| !matches!(package_json::read(&dir), package_json::Outcome::NotAPack))
}

/// What a root's packs have of it.
struct Holder {
    standing: Standing,
    tree: Option<Arc<StagedTree>>,
}

impl Holder {
    /// What holds ordinary packs.
    const INSTALLED: Self = Self {
        standing: Standing::Installed,
        tree: None,
    };

    /// A staged tree is told by its name or its list. One whose list cannot be used is still one: its packs are judged, and have
    /// no bundles.
    fn of(root: &Root, encounters: &mut Vec<Encounter>) -> Self {
        let tree = StagedTree::read(&root.path).map(|read| {
            read.unwrap_or_else(|(message, without_bundles)| {
                let finding = Diagnostic::new(&STAGING_LIST_INVALID, message).at(STAGING_LIST, None, None);
                encounters.push((root.shown.clone(), finding));
                without_bundles
            })
        });
        let is_staged = tree.is_some() || root.path.file_name() == Some(OsStr::new(STAGED_TREE));
        Self {
            standing: if is_staged {
                Standing::Staged
            } else {
                Standing::Installed
            },
            tree: tree.map(Arc::new),
        }
    }
}

fn search_root(root: &Root, found: &mut Discovered) {
    let holder = Holder::of(root, &mut found.encounters);
    let mut candidates = Vec::new();
    for name in list(&root.path, &root.shown, &mut found.encounters) {
        if holder.standing == Standing::Staged && name == BUNDLES {
            continue;
        }
        let path = root.path.join(&name);
        let shown = root.shown.join(&*name.to_string_lossy());
        if name.as_bytes().starts_with(b"@") {
            // A link may lead to a file, or nowhere.
            if !path.is_dir() {
                continue;
            }
            for inner in list(&path, &shown, &mut found.encounters) {
                candidates.push((path.join(&inner), shown.join(&*inner.to_string_lossy())));
            }
        } else {
            candidates.push((path, shown));
        }
    }
    let looked_at: Vec<(Option<PackDir>, Option<Encounter>)> = candidates
        .into_par_iter()
        .map(|(path, shown)| look_at(&path, shown, &holder))
        .collect();
    for (dir, encounter) in looked_at {
        found.dirs.extend(dir);
        found.encounters.extend(encounter);
    }
}

/// The directories of a root or scope, links to directories included, by name.
fn list(path: &Path, shown: &Utf8PathBuf, encounters: &mut Vec<Encounter>) -> Vec<std::ffi::OsString> {
    let entries = match path.read_dir() {
        Ok(entries) => entries,
        Err(error) => {
            encounters.push(unreadable(shown.clone(), &error));
            return Vec::new();
        }
    };
    let mut names = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => {
                let may_be_directory = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
                let name = entry.file_name();
                if may_be_directory && !SKIPPED.iter().any(|skipped| name == *skipped) {
                    names.push(name);
                }
            }
            Err(error) => encounters.push(unreadable(shown.clone(), &error)),
        }
    }
    names.sort();
    names
}

fn unreadable(shown: Utf8PathBuf, error: &io::Error) -> Encounter {
    let message = format!("the directory cannot be read: {}", reason(error));
    (shown, Diagnostic::new(&UNREADABLE_DIRECTORY, message))
}

fn look_at(path: &Path, shown: Utf8PathBuf, holder: &Holder) -> (Option<PackDir>, Option<Encounter>) {
    match path.join("package.json").metadata() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => (None, Some(unreadable(shown, &error))),
        _ => (pack_dir(path, shown, false, holder), None),
    }
}

/// The directory, if it has a package.json that is a regular file or a link to one.
fn pack_dir(path: &Path, shown: Utf8PathBuf, named: bool, holder: &Holder) -> Option<PackDir> {
    if !path.join("package.json").metadata().ok()?.is_file() {
        return None;
    }
    Some(PackDir {
        shown,
        real: path.canonicalize().ok()?,
        named,
        standing: holder.standing,
        staged: holder.tree.clone(),
    })
}

/// Drops directories that were met before under another name: pnpm's links, workspaces, a root given twice.
fn each_once(dirs: Vec<PackDir>) -> Vec<PackDir> {
    let mut positions: HashMap<PathBuf, usize> = HashMap::new();
    let mut kept: Vec<PackDir> = Vec::new();
    for dir in dirs {
        match positions.get(&dir.real).and_then(|position| kept.get_mut(*position)) {
            Some(first) => first.named |= dir.named,
            None => {
                positions.insert(dir.real.clone(), kept.len());
                kept.push(dir);
            }
        }
    }
    kept
}
