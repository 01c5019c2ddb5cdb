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
