//! The normaliser: which module an import means, and which imports are denied (pack contract, section 15). Pure. The engine
//! asks it for every import, also of modules that it has loaded already, so nothing gets past it.

use std::fmt;

use crate::table::{Bridge, ModuleTable, Source};

/// How far a run has come. There is no earlier phase here: this guest's engine imports nothing of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The static imports of the entry and of everything it reaches are being resolved.
    Linking,
    /// The whole static graph is linked: whatever is imported from now on is imported dynamically.
    Locked,
}

/// An import that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Denial {
    /// A bridge, asked for by something else than its facades.
    Private(Bridge),
    /// A relative name that no file of the pack has.
    NotAFile { name: String, pack: String },
    /// Any other name that was not declared.
    NotServed(String),
    /// A dynamic import.
    Dynamic(String),
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Private(bridge) => write!(
                f,
                "\"{}\" is private to the sandbox's generated {} facades and cannot be imported",
                bridge.specifier(),
                bridge.facades()
            ),
            Self::NotAFile { name, pack } => write!(f, "\"{name}\" is not a file of the {pack} sandbox package"),
            Self::NotServed(name) => write!(
                f,
                "\"{name}\" is not a sandbox package this run serves — only an installed pack the code imports resolves"
            ),
            Self::Dynamic(name) => write!(
                f,
                "dynamic import() is not allowed in the sandbox (requested \"{name}\")"
            ),
        }
    }
}

/// The guest id that `name` means in the module `base`. A bridge's id is its specifier.
pub(crate) fn resolve(table: &ModuleTable, phase: Phase, base: &str, name: &str) -> Result<String, Denial> {
    if phase == Phase::Locked {
        return Err(Denial::Dynamic(name.to_owned()));
    }
    let importer = table.file(base);
    if let Some(bridge) = Bridge::ALL.into_iter().find(|bridge| bridge.specifier() == name) {
        return match importer.map(|file| &file.source) {
            Some(Source::Facade(own, _)) if *own == bridge => Ok(name.to_owned()),
            _ => Err(Denial::Private(bridge)),
        };
    }
    if let Some(id) = table.declared(name) {
        return Ok(id.to_owned());
    }
    match importer {
        Some(file) if name.starts_with('.') => relative(table, base, name).ok_or_else(|| Denial::NotAFile {
            name: name.to_owned(),
            pack: file.pack.clone(),
        }),
        _ => Err(Denial::NotServed(name.to_owned())),
    }
}

/// The file that a relative name means: as it is, with `.js`, or the `index.js` of that folder. `..` at the top stays there.
/// Nothing is decoded: escapes, queries and fragments are parts of a name that no file has.
fn relative(table: &ModuleTable, base: &str, name: &str) -> Option<String> {
    let (folder, file) = base.split_once('|')?;
    let mut segments: Vec<&str> = file.split('/').collect();
    segments.pop();
    for segment in name.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            other => segments.push(other),
        }
    }
    let path = segments.join("/");
    ["", ".js", "/index.js"]
        .into_iter()
        .map(|suffix| format!("{folder}|{path}{suffix}"))
        .find(|id| table.file(id).is_some())
}
