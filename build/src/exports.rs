//! Which names importers of a file see: ECMAScript's GetExportedNames and ResolveExport over the files of a pack
//! (tc39.es/ecma262, "Source Text Module Records"). The graph is acyclic, which an earlier stage has proven.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use packferry_core::id::FileId;

use crate::validate::{ValidFile, ValidPack};

/// How many names all files together may hand on before ambiguity is no longer looked into: a hostile pack can make that
/// quadratic in its size. No real pack comes near it; beyond it, ambiguous names are listed too.
const NAME_BUDGET: usize = 4_000_000;

/// Where a name leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding<'a> {
    /// The declaration of a name in a file.
    Of(&'a FileId, &'a str),
    /// Two files give the name, and neither comes first: importing it is a syntax error, so it is no export.
    Ambiguous,
}

type Names<'a> = BTreeMap<&'a str, Binding<'a>>;

/// The names that importers of `entry` see, sorted by code point.
#[must_use]
pub fn exported_names(pack: &ValidPack, entry: &FileId) -> Vec<String> {
    let mut known: HashMap<&FileId, Rc<Names<'_>>> = HashMap::new();
    let mut budget = NAME_BUDGET;
    for (id, file) in post_order(pack, entry) {
        let names = names_of(id, file, &known, &mut budget);
        known.insert(id, Rc::new(names));
    }
    let Some(names) = known.get(entry) else {
        return Vec::new();
    };
    let bound = names.iter().filter(|(_, binding)| **binding != Binding::Ambiguous);
    bound.map(|(name, _)| (*name).to_owned()).collect()
}

fn names_of<'a>(
    id: &'a FileId,
    file: &'a ValidFile,
    known: &HashMap<&'a FileId, Rc<Names<'a>>>,
    budget: &mut usize,
) -> Names<'a> {
    let mut names = Names::new();
    for star in &file.exports.stars {
        let Some(starred) = known.get(star) else { continue };
        for (name, binding) in starred.iter().filter(|(name, _)| **name != "default") {
            let first = *names.entry(name).or_insert(*binding);
            if first != *binding && *budget > 0 {
                names.insert(name, Binding::Ambiguous);
            }
        }
        *budget = budget.saturating_sub(starred.len());
    }
    for export in &file.exports.named {
        let origin = export
            .origin
            .as_ref()
            .and_then(|(from, name)| known.get(from)?.get(name.as_str()).copied());
        names.insert(&export.name, origin.unwrap_or(Binding::Of(id, &export.name)));
    }
    names
}

/// The files that `entry` takes names from, itself included, each after those it takes from. Iterative: chains may be long.
fn post_order<'a>(pack: &'a ValidPack, entry: &FileId) -> Vec<(&'a FileId, &'a ValidFile)> {
    let mut order = Vec::new();
    let mut seen: HashSet<&FileId> = HashSet::new();
    let mut stack: Vec<(&FileId, bool)> = vec![(entry, false)];
    while let Some((id, leave)) = stack.pop() {
        let Some((id, file)) = pack.files.get_key_value(id) else {
            continue;
        };
        if leave {
            order.push((id, file));
        } else if seen.insert(id) {
            stack.push((id, true));
            let origins = file
                .exports
                .named
                .iter()
                .filter_map(|export| export.origin.as_ref().map(|(from, _)| from));
            stack.extend(file.exports.stars.iter().chain(origins).map(|next| (next, false)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use packferry_core::digest::BlobDigest;
    use packferry_core::id::PackName;
    use packferry_core::payload::FileKind;

    use super::*;
    use crate::discover::{PackDir, Standing};
    use crate::validate::{ExportNames, NamedExport};

    /// One file: its id, its own names (`name` or `name<file:name`), and what it re-exports by `export *`.
    type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

    fn id(text: &str) -> FileId {
        FileId::parse(text).unwrap()
    }

    fn named(text: &str) -> NamedExport {
        match text.split_once('<') {
            None => NamedExport {
                name: text.into(),
                origin: None,
            },
            Some((name, origin)) => {
                let (file, there) = origin.split_once(':').unwrap();
                NamedExport {
                    name: name.into(),
                    origin: Some((id(file), there.into())),
                }
            }
        }
    }

    fn pack(rows: &[Row]) -> ValidPack {
        let file = |(name, own, stars): &Row| {
            let exports = ExportNames {
                named: own.iter().map(|text| named(text)).collect(),
                stars: stars.iter().map(|text| id(text)).collect(),
            };
            let file = ValidFile {
                kind: FileKind::Js,
                bytes: [].into(),
                sha256: BlobDigest::of(b""),
                internal: true,
                specifier: None,
                dependencies: Vec::new(),
                exports,
            };
            (id(name), file)
        };
        ValidPack {
            dir: PackDir {
                shown: "p".into(),
                real: "p".into(),
                named: true,
                standing: Standing::Installed,
                staged: None,
            },
            name: PackName::parse("p").unwrap(),
            version: None,
            description: None,
            internal: Vec::new(),
            modules: Vec::new(),
            files: rows.iter().map(file).collect::<BTreeMap<_, _>>(),
            package_json: "{}".into(),
            skill: None,
        }
    }

    #[test]
    fn names_follow_the_language() {
        let cases: &[(&str, &[Row], &[&str])] = &[
            ("own names", &[("e", &["b", "default"], &[])], &["b", "default"]),
            (
                "a star leaves default behind",
                &[("e", &[], &["a"]), ("a", &["default", "x"], &[])],
                &["x"],
            ),
            (
                "two declarations are ambiguous",
                &[("e", &[], &["a", "b"]), ("a", &["x"], &[]), ("b", &["x"], &[])],
                &[],
            ),
            (
                "its own name wins",
                &[("e", &["x"], &["a", "b"]), ("a", &["x"], &[]), ("b", &["x"], &[])],
                &["x"],
            ),
            (
                "a nearer name hides a farther one",
                &[("e", &[], &["a"]), ("a", &["x"], &["b"]), ("b", &["x"], &[])],
                &["x"],
            ),
            (
                "one declaration on two ways is one",
                &[
                    ("e", &[], &["a", "b"]),
                    ("a", &["x<c:x"], &[]),
                    ("b", &[], &["c"]),
                    ("c", &["x"], &[]),
                ],
                &["x"],
            ),
            (
                "ambiguity is handed on",
                &[
                    ("e", &[], &["d"]),
                    ("d", &[], &["a", "b"]),
                    ("a", &["x", "y"], &[]),
                    ("b", &["x"], &[]),
                ],
                &["y"],
            ),
            (
                "a renamed export is its origin",
                &[
                    ("e", &[], &["a", "b"]),
                    ("a", &["x<c:z"], &[]),
                    ("b", &["x<c:z"], &[]),
                    ("c", &["z"], &[]),
                ],
                &["x"],
            ),
            ("a star of nothing", &[("e", &["x"], &["gone"])], &["x"]),
        ];
        for (what, rows, names) in cases {
            assert_eq!(exported_names(&pack(rows), &id("e")), *names, "{what}");
        }
    }

    #[test]
    fn a_long_chain_takes_no_stack() {
        let mut chain = pack(&[]);
        let names: Vec<String> = (0..50_000).map(|n| format!("f{n}")).collect();
        let base = pack(&[("e", &[], &[])]).files.remove(&id("e")).unwrap();
        for pair in names.windows(2) {
            let mut file = base.clone();
            file.exports.stars = vec![id(&pair[1])];
            chain.files.insert(id(&pair[0]), file);
        }
        let mut last = base;
        last.exports.named = vec![named("x")];
        chain.files.insert(id("f49999"), last);
        assert_eq!(exported_names(&chain, &id("f0")), ["x"]);
    }
}
