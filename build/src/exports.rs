//! Which names importers of a file see: ECMAScript's GetExportedNames and ResolveExport over the files of a pack
//! (tc39.es/ecma262, "Source Text Module Records"). The graph is acyclic, which an earlier stage has proven.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use packferry_core::id::FileId;

use crate::validate::{ValidFile, ValidPack};

/// How many names the files of a pack may hand on to each other, all together: a hostile pack can make that quadratic in its size. No
/// real pack comes near it; where it is used up, names are listed without asking whether two files give the same one.
const NAME_BUDGET: usize = 1_000_000;

/// Where a name leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Binding<'a> {
    /// The declaration of a name in a file.
    Of(&'a FileId, &'a str),
    /// Two files give the name, and neither comes first: importing it is a syntax error, so it is no export.
    Ambiguous,
}

type Names<'a> = BTreeMap<&'a str, Binding<'a>>;

/// The names that the files of a pack export, found out once for each file.
pub struct ExportTable<'a> {
    pack: &'a ValidPack,
    known: HashMap<&'a FileId, Rc<Names<'a>>>,
    budget: usize,
}

impl<'a> ExportTable<'a> {
    /// Those of the files of `pack`.
    #[must_use]
    pub fn of(pack: &'a ValidPack) -> Self {
        Self {
            pack,
            known: HashMap::new(),
            budget: NAME_BUDGET,
        }
    }

    /// The names that importers of `entry` see, sorted by code point.
    pub fn of_entry(&mut self, entry: &FileId) -> Vec<String> {
        for (id, file) in self.post_order(entry) {
            let handed_on = self.handed_on(file);
            let Some(left) = self.budget.checked_sub(handed_on) else {
                return self.listed(entry);
            };
            self.budget = left;
            let names = self.names_of(id, file);
            self.known.insert(id, Rc::new(names));
        }
        let Some(names) = self.known.get(entry) else {
            return Vec::new();
        };
        let bound = names.iter().filter(|(_, binding)| **binding != Binding::Ambiguous);
        bound.map(|(name, _)| (*name).to_owned()).collect()
    }

    /// At most how many names a file has, its own and those of its stars.
    fn handed_on(&self, file: &ValidFile) -> usize {
        let stars = file.exports.stars.iter().filter_map(|star| self.known.get(star));
        stars.map(|names| names.len()).sum::<usize>() + file.exports.named.len()
    }

    fn names_of(&self, id: &'a FileId, file: &'a ValidFile) -> Names<'a> {
        let mut names = Names::new();
        for star in &file.exports.stars {
            let Some(starred) = self.known.get(star) else { continue };
            for (name, binding) in starred.iter().filter(|(name, _)| **name != "default") {
                let first = *names.entry(name).or_insert(*binding);
                if first != *binding {
                    names.insert(name, Binding::Ambiguous);
                }
            }
        }
        for export in &file.exports.named {
            let origin = export
                .origin
                .as_ref()
                .and_then(|(from, name)| self.known.get(from)?.get(name.as_str()).copied());
            names.insert(&export.name, origin.unwrap_or(Binding::Of(id, &export.name)));
        }
        names
    }

    /// The names of `entry` and of all files behind its stars.
    fn listed(&self, entry: &FileId) -> Vec<String> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        let mut seen: HashSet<&FileId> = HashSet::new();
        let mut open = vec![entry];
        while let Some(id) = open.pop() {
            let Some((id, file)) = self.pack.files.get_key_value(id).filter(|(id, _)| seen.insert(*id)) else {
                continue;
            };
            let own = file.exports.named.iter().map(|export| export.name.as_str());
            names.extend(own.filter(|name| id == entry || *name != "default"));
            open.extend(&file.exports.stars);
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// The files that `entry` takes names from and that are not known yet, itself included, each after those it takes from. Iterative: chains may be long.
    fn post_order(&self, entry: &FileId) -> Vec<(&'a FileId, &'a ValidFile)> {
        let pack = self.pack;
        let mut order = Vec::new();
        let mut seen: HashSet<&FileId> = HashSet::new();
        let mut stack: Vec<(&FileId, bool)> = vec![(entry, false)];
        while let Some((id, leave)) = stack.pop() {
            let Some((id, file)) = pack.files.get_key_value(id) else {
                continue;
            };
            if leave {
                order.push((id, file));
            } else if !self.known.contains_key(id) && seen.insert(id) {
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
            assert_eq!(ExportTable::of(&pack(rows)).of_entry(&id("e")), *names, "{what}");
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
        assert_eq!(ExportTable::of(&chain).of_entry(&id("f0")), ["x"]);
    }

    #[test]
    fn where_names_are_too_many_all_are_listed() {
        let mut chain = pack(&[]);
        let base = pack(&[("e", &[], &[])]).files.remove(&id("e")).unwrap();
        let files = 2_000;
        assert!(files * files / 2 > NAME_BUDGET);
        for n in 0..files {
            let mut file = base.clone();
            let name = |name: String| NamedExport { name, origin: None };
            file.exports.named = vec![name(format!("n{n:04}")), name("default".into())];
            file.exports.stars = vec![id(&format!("f{}", n + 1))];
            chain.files.insert(id(&format!("f{n}")), file);
        }
        let all: Vec<String> = (0..files).map(|n| format!("n{n:04}")).collect();
        let expected: Vec<String> = std::iter::once("default".to_owned()).chain(all).collect();
        let mut names = ExportTable::of(&chain);
        assert_eq!(names.of_entry(&id("f0")), expected);
        assert_eq!(names.of_entry(&id("f1999")), ["default", "n1999"]);
    }
}
