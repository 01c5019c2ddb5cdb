//! Where a bundled module comes from, said without a path of the machine: `‹package›@‹version›/‹path in that package›`.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::limits::PACK_LIMITS;
use serde_json::Value;

use super::esbuild::ENTRY_NAME;
use crate::pack_files::read_document;

/// An installed package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Package {
    /// Its folder; a real path.
    pub(super) root: Utf8PathBuf,
    /// What package.json calls it, else its folder in `node_modules`.
    pub(super) name: Option<String>,
    /// `version`, where it is a string.
    pub(super) version: Option<String>,
}

/// Finds the packages of files; reads each package.json once.
#[derive(Default)]
pub(super) struct Origins {
    identities: HashMap<Utf8PathBuf, Option<Identity>>,
}

/// What package.json says about who a package is.
#[derive(Clone)]
struct Identity {
    name: Option<String>,
    version: Option<String>,
}

/// Whether a key of the metafile is the synthetic entry's.
pub(super) fn is_synthetic_entry(key: &str) -> bool {
    let path = Utf8Path::new(key);
    path.file_name() == Some(ENTRY_NAME) && !path.is_file()
}

/// The file behind a key of the metafile, and what esbuild adds to its path: a query, a fragment, import attributes.
pub(super) fn file_of_key(key: &str) -> Option<(&Utf8Path, &str)> {
    let path = key.strip_prefix("(disabled):").unwrap_or(key);
    if !Utf8Path::new(path).is_absolute() {
        return None;
    }
    let mut end = path.len();
    loop {
        let (file, suffix) = path.split_at_checked(end)?;
        if Utf8Path::new(file).is_file() {
            return Some((Utf8Path::new(file), suffix));
        }
        end = file.rfind([' ', '?', '#'])?;
    }
}

impl Origins {
    /// How the module of a metafile's key is named in a bundle and in messages.
    pub(super) fn label(&mut self, key: &str) -> String {
        if is_synthetic_entry(key) {
            return ENTRY_NAME.to_owned();
        }
        let Some((file, suffix)) = file_of_key(key) else {
            // A data URL stands for itself. A path that no file answers to is not told.
            return if key.starts_with('<') {
                key.to_owned()
            } else {
                "(unknown)".to_owned()
            };
        };
        let disabled = if key.starts_with("(disabled):") {
            "(disabled):"
        } else {
            ""
        };
        format!("{disabled}{}{suffix}", self.label_of_file(file))
    }

    /// How a file is named in messages, whatever is there.
    pub(super) fn label_of_file(&mut self, file: &Utf8Path) -> String {
        let package = self.package_of(file);
        let path = file.strip_prefix(&package.root).unwrap_or(file);
        let path = path.as_str().replace('\\', "/");
        match (&package.name, &package.version) {
            (Some(name), Some(version)) => format!("{name}@{version}/{path}"),
            (Some(name), None) => format!("{name}/{path}"),
            (None, _) => format!("(unnamed)/{path}"),
        }
    }

    /// The package that `file`, a real path, belongs to: in a `node_modules` its folder there, elsewhere (linked packages) the
    /// nearest folder above whose package.json has a name.
    pub(super) fn package_of(&mut self, file: &Utf8Path) -> Package {
        if let Some((root, folder_name)) = installed_root(file) {
            let identity = self.identity(&root);
            let (name, version) = identity.map_or((None, None), |found| (found.name, found.version));
            let name = name.or(Some(folder_name));
            return Package { root, name, version };
        }
        let folder = file.parent().unwrap_or(file);
        let above = if folder.file_name() == Some("node_modules") {
            None
        } else {
            Some(folder)
        };
        for root in above.into_iter().flat_map(Utf8Path::ancestors) {
            if let Some(Identity {
                name: Some(name),
                version,
            }) = self.identity(root)
            {
                return Package {
                    root: root.to_owned(),
                    name: Some(name),
                    version,
                };
            }
        }
        Package {
            root: folder.to_owned(),
            name: None,
            version: None,
        }
    }

    fn identity(&mut self, root: &Utf8Path) -> Option<Identity> {
        if let Some(known) = self.identities.get(root) {
            return known.clone();
        }
        let identity = read_identity(&root.join("package.json"));
        self.identities.insert(root.to_owned(), identity.clone());
        identity
    }
}

/// The folder below the last `node_modules` of a path, and its name: one component, two for a scoped package.
fn installed_root(file: &Utf8Path) -> Option<(Utf8PathBuf, String)> {
    let folder = file.parent()?;
    let modules = folder
        .ancestors()
        .find(|folder| folder.file_name() == Some("node_modules"))?;
    let mut below = folder.strip_prefix(modules).ok()?.components();
    let first = below.next()?.as_str();
    let name = match below.next() {
        Some(second) if first.starts_with('@') => format!("{first}/{second}"),
        _ => first.to_owned(),
    };
    Some((modules.join(&name), name))
}

fn read_identity(package_json: &Utf8Path) -> Option<Identity> {
    let bytes = read_document(package_json.as_std_path(), PACK_LIMITS.package_json_bytes).ok()?;
    let document: Value = serde_json::from_slice(&bytes).ok()?;
    let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Identity {
        name: text("name"),
        version: text("version"),
    })
}
