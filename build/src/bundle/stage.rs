//! esbuild names a package's root module after the package's folder. Most folders are called like their package. Where one is
//! not (an alias, a linked workspace), its name would show in the bundle; then the bundle's inputs are laid out anew, each package
//! in a folder of its own name, with links for what it imports: the layout that pnpm makes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::id::PackName;

use super::confine::split_package;
use super::metafile::{Import, Metafile};
use super::origin::{Origins, file_of_key};
use super::places::joined;
use crate::fault::{Fault, reason};

/// A copy of a bundle's inputs. It goes when this does.
pub(super) struct Stage {
    _folder: tempfile::TempDir,
    /// The pack's folder in it.
    pub(super) pack_dir: Utf8PathBuf,
}

impl Stage {
    /// The folder that holds all of it.
    pub(super) fn base(&self) -> &Path {
        let pack_dir = self.pack_dir.as_std_path();
        pack_dir.parent().unwrap_or(pack_dir)
    }
}

/// The inputs of a bundle laid out anew; None where that changes nothing, or where a package has a name that no folder can have.
pub(super) fn stage(pack_dir: &Utf8Path, metafile: &Metafile, origins: &mut Origins) -> Result<Option<Stage>, Fault> {
    let files: Vec<&Utf8Path> = metafile
        .inputs
        .keys()
        .filter_map(|key| Some(file_of_key(key)?.0))
        .collect();
    if !files.iter().any(|file| shows_folder(file, pack_dir, origins)) {
        return Ok(None);
    }
    let fault = |error| Fault::new(format!("the inputs of a bundle cannot be copied: {}", reason(&error)));
    let folder = tempfile::Builder::new().prefix("packferry-").tempdir().map_err(fault)?;
    let base = folder.path().canonicalize().map_err(fault)?;
    let Ok(base) = Utf8PathBuf::from_path_buf(base) else {
        return Ok(None);
    };
    let Some(layout) = Layout::new(pack_dir, &base, &files, origins) else {
        return Ok(None);
    };
    layout.link_imports(metafile, origins).map_err(fault)?;
    layout.copy_files(&files, metafile, origins).map_err(fault)?;
    Ok(Some(Stage {
        pack_dir: layout.pack.folder,
        _folder: folder,
    }))
}

/// Whether esbuild names what is in `file` after a folder that is not called like its package. It leaves the pack's folder and
/// those above out of names.
fn shows_folder(file: &Utf8Path, pack_dir: &Utf8Path, origins: &mut Origins) -> bool {
    let package = origins.package_of(file);
    let is_root_module = file.file_stem() == Some("index") && file.parent() == Some(&package.root);
    let own_name = package.name.as_deref().and_then(|name| name.rsplit('/').next());
    is_root_module && !pack_dir.starts_with(&package.root) && own_name != package.root.file_name()
}

/// Where a package lies in a stage.
struct Place {
    folder: Utf8PathBuf,
    /// Where its imports are looked up.
    modules: Utf8PathBuf,
    name: String,
}

/// Where all packages of a bundle lie in a stage.
struct Layout {
    pack_dir: Utf8PathBuf,
    pack: Place,
    /// By their folders outside the stage. The pack is among them only as a package that something imports.
    packages: BTreeMap<Utf8PathBuf, Place>,
}

impl Layout {
    fn new(pack_dir: &Utf8Path, base: &Utf8Path, files: &[&Utf8Path], origins: &mut Origins) -> Option<Self> {
        let folder = base.join("pack");
        let modules = folder.join("node_modules");
        let pack = Place {
            folder,
            modules,
            name: String::new(),
        };
        let mut packages = BTreeMap::new();
        for file in files {
            let package = origins.package_of(file);
            let name = package.name.filter(|name| is_folder_name(name))?;
            let number = packages.len();
            packages.entry(package.root).or_insert_with_key(|root| {
                if root == pack_dir {
                    return Place {
                        folder: pack.folder.clone(),
                        modules: pack.modules.clone(),
                        name,
                    };
                }
                let modules = base.join(number.to_string()).join("node_modules");
                Place {
                    folder: modules.join(&name),
                    modules,
                    name,
                }
            });
        }
        Some(Self {
            pack_dir: pack_dir.to_owned(),
            pack,
            packages,
        })
    }

    /// Where the importer behind a key of the metafile lies; the synthetic entry is the pack's.
    fn importer(&self, key: &str, origins: &mut Origins) -> Option<&Place> {
        match file_of_key(key) {
            Some((file, _)) => self.packages.get(&origins.package_of(file).root),
            None => Some(&self.pack),
        }
    }

    fn link_imports(&self, metafile: &Metafile, origins: &mut Origins) -> io::Result<()> {
        std::fs::create_dir_all(&self.pack.folder)?;
        for (key, input) in &metafile.inputs {
            let Some(importer) = self.importer(key, origins) else {
                continue;
            };
            for (import, file) in bundled_imports(&input.imports) {
                let root = origins.package_of(file).root;
                let Some(target) = self.packages.get(&root) else {
                    continue;
                };
                match import.name() {
                    name if name.starts_with('.') => {}
                    // An alias of the importer's own may mean its target by either name.
                    name if name.starts_with('#') => {
                        link(importer, &target.name, target)?;
                        link(importer, root.file_name().unwrap_or_default(), target)?;
                    }
                    name => link(importer, split_package(name).0, target)?,
                }
            }
        }
        Ok(())
    }

    /// Copies the inputs, and every package.json that their resolution may have read.
    fn copy_files(&self, files: &[&Utf8Path], metafile: &Metafile, origins: &mut Origins) -> io::Result<()> {
        let package_json = |folder: &Utf8Path| folder.join("package.json");
        let mut copied: BTreeSet<Utf8PathBuf> = BTreeSet::from([package_json(&self.pack_dir)]);
        for file in files {
            copied.insert((*file).to_owned());
            copied.extend(file.ancestors().skip(1).map(package_json));
        }
        for (key, input) in &metafile.inputs {
            let folder = file_of_key(key)
                .and_then(|(file, _)| file.parent())
                .unwrap_or(&self.pack_dir);
            for (import, file) in bundled_imports(&input.imports) {
                copied.insert(package_json(&match import.name() {
                    name if name.starts_with('.') => joined(folder, name),
                    name => joined(&origins.package_of(file).root, split_package(name).1),
                }));
            }
        }
        for file in copied.iter().filter(|file| file.is_file()) {
            let root = origins.package_of(file).root;
            let place = if root == self.pack_dir {
                Some(&self.pack)
            } else {
                self.packages.get(&root)
            };
            if let (Some(place), Ok(path)) = (place, file.strip_prefix(&root)) {
                let there = place.folder.join(path);
                std::fs::create_dir_all(there.parent().unwrap_or(&place.folder))?;
                std::fs::copy(file, there)?;
            }
        }
        Ok(())
    }
}

fn is_folder_name(name: &str) -> bool {
    let mut parts = name.trim_start_matches('@').split('/');
    PackName::parse(name).is_ok() && parts.all(|part| !matches!(part, "." | ".." | "node_modules"))
}

/// The imports that lead to files of the bundle, with those files.
fn bundled_imports(imports: &[Import]) -> impl Iterator<Item = (&Import, &Utf8Path)> {
    let inside = imports.iter().filter(|import| !import.external);
    inside.filter_map(|import| Some((import, file_of_key(&import.path)?.0)))
}

fn link(importer: &Place, name: &str, target: &Place) -> io::Result<()> {
    let link = importer.modules.join(name);
    if link == target.folder || link.symlink_metadata().is_ok() {
        return Ok(());
    }
    std::fs::create_dir_all(link.parent().unwrap_or(&importer.modules))?;
    symlink(&target.folder, &link)
}

#[cfg(unix)]
fn symlink(target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Utf8Path, link: &Utf8Path) -> io::Result<()> {
    std::os::windows::fs::symlink_dir(target, link)
}
