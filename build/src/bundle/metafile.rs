//! Reads esbuild's metafile: which files went into a bundle, and what they import.

use std::collections::BTreeMap;
use std::path::Path;

use camino::Utf8Path;
use serde::Deserialize;

use super::builtins::is_builtin;
use super::origin::is_synthetic_entry;
use super::places::joined;

/// What esbuild says about a run.
#[derive(Debug, Deserialize)]
pub(super) struct Metafile {
    /// The modules, the synthetic entry included, by the key that stands in the bundle for them.
    pub(super) inputs: BTreeMap<String, Input>,
}

/// A module that went into a bundle.
#[derive(Debug, Deserialize)]
pub(super) struct Input {
    /// Its imports.
    pub(super) imports: Vec<Import>,
    /// `esm` or `cjs`, for JavaScript.
    pub(super) format: Option<String>,
}

/// An import of a module.
#[derive(Debug, Deserialize)]
pub(super) struct Import {
    /// The key of what it leads to; what the source says where that is outside the bundle.
    pub(super) path: String,
    /// What the source says, where the import leads into the bundle.
    pub(super) original: Option<String>,
    /// Whether it leads outside the bundle.
    #[serde(default)]
    pub(super) external: bool,
}

impl Metafile {
    /// The key of the module that the synthetic entry imports: the package's own entry.
    pub(super) fn package_entry(&self) -> Option<&str> {
        let (_, entry) = self.inputs.iter().find(|(key, _)| is_synthetic_entry(key))?;
        Some(&entry.imports.first()?.path)
    }

    /// The key of the package's own entry, where that is CommonJS.
    pub(super) fn commonjs_entry(&self) -> Option<&str> {
        let key = self.package_entry()?;
        let format = self.inputs.get(key)?.format.as_deref();
        (format == Some("cjs")).then_some(key)
    }

    /// Makes the paths of files outside the bundle whole: esbuild gives them as seen from `folder`, where it writes to.
    pub(super) fn complete_external_paths(&mut self, folder: &Path) {
        let Some(folder) = Utf8Path::from_path(folder) else {
            return;
        };
        let imports = self.inputs.values_mut().flat_map(|input| &mut input.imports);
        for import in imports.filter(|import| import.external && import.path.starts_with('.')) {
            import.path = joined(folder, &import.path).into_string();
        }
    }

    /// What the imports say that lead outside the bundle.
    pub(super) fn external_imports(&self) -> impl Iterator<Item = &str> {
        let imports = self.inputs.values().flat_map(|input| &input.imports);
        imports.filter(|import| import.external).map(Import::name)
    }

    /// The imports of Node builtins, with the importer's key: also those that are caught at run time, and those that an
    /// installed package of the same name would answer.
    pub(super) fn builtin_imports(&self) -> impl Iterator<Item = (&str, &str)> {
        self.inputs.iter().flat_map(|(importer, input)| {
            let names = input.imports.iter().map(Import::name);
            names
                .filter(|name| is_builtin(name))
                .map(move |name| (importer.as_str(), name))
        })
    }
}

impl Import {
    /// What the source says.
    pub(super) fn name(&self) -> &str {
        match &self.original {
            Some(original) if !self.external => original,
            _ => &self.path,
        }
    }
}
