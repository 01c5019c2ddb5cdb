//! The operator's `packferry.toml`: which host modules there are, whose they are, and what they export. Packs have no say in it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use packferry_core::contract::{is_declarable, is_identifier};
use packferry_core::id::PackName;
use serde::Deserialize;

use crate::fault::Fault;
use crate::package_json::is_host_id;

/// A host module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostModule {
    /// The pack that may declare it.
    pub owner: PackName,
    /// Its exports, in the order of its facade.
    pub exports: Vec<String>,
}

/// The host modules of a deployment, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registry(BTreeMap<String, HostModule>);

/// The file's shape.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    host: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    owner: PackName,
    exports: Vec<String>,
}

impl Registry {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// A fault of the file: the operator's, never a pack's.
    pub fn read(path: &Path) -> Result<Self, Fault> {
        let text = std::fs::read_to_string(path).map_err(|error| Fault::reading(path.display(), &error))?;
        Self::parse(&text).map_err(|reason| {
            Fault::new(format!("{}: {reason}", path.display()))
                .hint("Each host module is a [[host]] table with id, owner (a package name) and exports (identifiers, in facade order).")
        })
    }

    /// Reads the text of a `packferry.toml`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut modules = BTreeMap::new();
        for row in document.host {
            check_row(&row)?;
            let module = HostModule {
                owner: row.owner,
                exports: row.exports,
            };
            if modules.insert(row.id.clone(), module).is_some() {
                return Err(format!("the host module {:?} is listed twice", row.id));
            }
        }
        Ok(Self(modules))
    }

    /// The host module of that id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&HostModule> {
        self.0.get(id)
    }
}

fn check_row(row: &Row) -> Result<(), String> {
    let id = &row.id;
    if !is_host_id(id) {
        return Err(format!(
            "{id:?} is no host module id: 1 to 64 of a-z 0-9 -, a letter first"
        ));
    }
    if row.exports.is_empty() {
        return Err(format!("the host module {id:?} has no exports"));
    }
    let mut seen = HashSet::new();
    for name in &row.exports {
        if !is_identifier(name) {
            return Err(format!(
                "the host module {id:?} exports {name:?}, which is no identifier"
            ));
        }
        if !is_declarable(name) {
            return Err(format!(
                "the host module {id:?} exports {name:?}, which no facade can declare"
            ));
        }
        if !seen.insert(name) {
            return Err(format!("the host module {id:?} exports {name:?} twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_read_strictly() {
        let row = |id: &str, owner: &str, exports: &str| {
            format!("[[host]]\nid = {id:?}\nowner = {owner:?}\nexports = {exports}\n")
        };
        let csv = row("csv", "@a/csv", r#"["stringify", "parse"]"#);
        let cases: &[(&str, String, Result<usize, &str>)] = &[
            ("empty", String::new(), Ok(0)),
            ("one", csv.clone(), Ok(1)),
            ("two", csv.clone() + &row("constructor", "p", r#"["x"]"#), Ok(2)),
            ("twice", csv.clone() + &csv, Err("twice")),
            ("bad id", row("CSV", "p", r#"["x"]"#), Err("no host module id")),
            ("bad owner", row("csv", "a/b", r#"["x"]"#), Err("not a package name")),
            ("nothing exported", row("csv", "p", "[]"), Err("no exports")),
            ("no identifier", row("csv", "p", r#"["a-b"]"#), Err("no identifier")),
            ("reserved word", row("csv", "p", r#"["delete"]"#), Err("no identifier")),
            (
                "undeclarable",
                row("csv", "p", r#"["__call"]"#),
                Err("no facade can declare"),
            ),
            ("export twice", row("csv", "p", r#"["x", "x"]"#), Err("twice")),
            ("unknown key", csv.clone() + "version = 1\n", Err("unknown field")),
            (
                "unknown table",
                csv.replace("[[host]]", "[[hosts]]"),
                Err("unknown field"),
            ),
            ("missing key", "[[host]]\nid = \"csv\"".into(), Err("missing field")),
            ("not TOML", "[[host".into(), Err("TOML")),
        ];
        for (what, text, expected) in cases {
            match (Registry::parse(text), expected) {
                (Ok(registry), Ok(count)) => assert_eq!(registry.0.len(), *count, "{what}"),
                (Err(reason), Err(part)) => assert!(reason.contains(part), "{what}: {reason}"),
                (outcome, _) => panic!("{what}: {outcome:?}"),
            }
        }
        let registry = Registry::parse(&csv).unwrap();
        assert_eq!(registry.get("csv").unwrap().exports, ["stringify", "parse"]);
        assert_eq!(registry.get("constructor"), None);
    }
}
