//! Circles of imports. Everything is iterative: a pack may hold a chain of a hundred thousand files.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use packferry_core::id::FileId;

/// Which files each file imports.
pub type Imports<'a> = BTreeMap<&'a FileId, Vec<&'a FileId>>;

/// One circle for each group of files that reach each other: a shortest one through the group's first file by id, beginning
/// there. A file that imports itself is a circle of one.
#[must_use]
pub fn cycles<'a>(imports: &Imports<'a>) -> Vec<Vec<&'a FileId>> {
    let mut found: Vec<Vec<&FileId>> = knots(imports)
        .into_iter()
        .filter_map(|knot| shortest_circle(imports, &knot))
        .collect();
    found.sort();
    found
}

/// Groups of files that reach each other (Tarjan's strongly connected components), those of one file left to the next step.
fn knots<'a>(imports: &Imports<'a>) -> Vec<HashSet<&'a FileId>> {
    let mut walk = Walk {
        imports,
        numbers: HashMap::new(),
        lowest: HashMap::new(),
        open: Vec::new(),
        is_open: HashSet::new(),
        knots: Vec::new(),
    };
    for file in imports.keys() {
        if !walk.numbers.contains_key(file) {
            walk.from(file);
        }
    }
    walk.knots
}

struct Walk<'w, 'a> {
    imports: &'w Imports<'a>,
    numbers: HashMap<&'a FileId, usize>,
    lowest: HashMap<&'a FileId, usize>,
    open: Vec<&'a FileId>,
    is_open: HashSet<&'a FileId>,
    knots: Vec<HashSet<&'a FileId>>,
}

impl<'a> Walk<'_, 'a> {
    fn from(&mut self, start: &'a FileId) {
        let mut stack = vec![self.enter(start)];
        while let Some((file, next)) = stack.last_mut() {
            let file = *file;
            let imported = self.imports.get(file).and_then(|imports| imports.get(*next)).copied();
            *next += 1;
            match imported {
                Some(imported) if !self.numbers.contains_key(imported) => stack.push(self.enter(imported)),
                Some(imported) if self.is_open.contains(imported) => {
                    let number = self.numbers.get(imported).copied().unwrap_or_default();
                    self.lower(file, number);
                }
                Some(_) => {}
                None => {
                    stack.pop();
                    let low = self.leave(file);
                    if let Some((parent, _)) = stack.last() {
                        self.lower(parent, low);
                    }
                }
            }
        }
    }

    fn enter(&mut self, file: &'a FileId) -> (&'a FileId, usize) {
        let number = self.numbers.len();
        self.numbers.insert(file, number);
        self.lowest.insert(file, number);
        self.open.push(file);
        self.is_open.insert(file);
        (file, 0)
    }

    fn lower(&mut self, file: &'a FileId, number: usize) {
        self.lowest.entry(file).and_modify(|low| *low = (*low).min(number));
    }

    /// Closes the group that `file` heads, if it heads one; gives the lowest number that it reaches.
    fn leave(&mut self, file: &'a FileId) -> usize {
        let low = self.lowest.get(file).copied().unwrap_or_default();
        if self.numbers.get(file) == Some(&low) {
            let head = self.open.iter().rposition(|open| *open == file).unwrap_or_default();
            let knot: HashSet<&FileId> = self.open.drain(head..).collect();
            for file in &knot {
                self.is_open.remove(file);
            }
            self.knots.push(knot);
        }
        low
    }
}

/// The shortest way from the first file of `knot` back to itself.
fn shortest_circle<'a>(imports: &Imports<'a>, knot: &HashSet<&'a FileId>) -> Option<Vec<&'a FileId>> {
    let start = *knot.iter().min()?;
    let mut came_from: HashMap<&FileId, &FileId> = HashMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(file) = open.pop_front() {
        for imported in imports.get(file)?.iter().filter(|imported| knot.contains(*imported)) {
            if *imported == start {
                let mut circle = vec![file];
                while let Some(previous) = came_from.get(circle.last()?) {
                    circle.push(previous);
                }
                circle.reverse();
                return Some(circle);
            }
            if !came_from.contains_key(imported) {
                came_from.insert(imported, file);
                open.push_back(imported);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> FileId {
        FileId::parse(text).unwrap()
    }

    /// The cycles of `edges`, each file named by what stands before the arrow.
    fn found(edges: &[(&str, &[&str])]) -> Vec<String> {
        let ids: Vec<(FileId, Vec<FileId>)> = edges
            .iter()
            .map(|(file, to)| (id(file), to.iter().map(|to| id(to)).collect()))
            .collect();
        let imports: Imports<'_> = ids.iter().map(|(file, to)| (file, to.iter().collect())).collect();
        let text = |circle: Vec<&FileId>| circle.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ");
        cycles(&imports).into_iter().map(text).collect()
    }

    #[test]
    fn every_knot_is_told_once() {
        assert_eq!(found(&[("a", &["b"]), ("b", &["c"]), ("c", &[])]), [""; 0]);
        assert_eq!(
            found(&[("a", &["b", "c"]), ("b", &["d"]), ("c", &["d"]), ("d", &[])]),
            [""; 0]
        );
        assert_eq!(found(&[("a", &["a"])]), ["a"]);
        assert_eq!(found(&[("e", &["b"]), ("b", &["a"]), ("a", &["b"])]), ["a b"]);
        assert_eq!(
            found(&[
                ("a", &["b"]),
                ("b", &["a", "c"]),
                ("c", &["d"]),
                ("d", &["c", "d"]),
                ("x", &["a"])
            ]),
            ["a b", "c d"]
        );
        assert_eq!(
            found(&[("a", &["b"]), ("b", &["c", "d"]), ("c", &["a"]), ("d", &["b"])]),
            ["a b c"]
        );
        assert_eq!(found(&[("a", &["gone"]), ("b", &["gone"])]), [""; 0]);
    }

    #[test]
    fn long_ways_take_no_stack() {
        let ids: Vec<FileId> = (0..100_000).map(|n| id(&format!("f{n}"))).collect();
        let next = ids.iter().cycle().skip(1);
        let mut imports: Imports<'_> = ids.iter().zip(next).map(|(file, next)| (file, vec![next])).collect();
        assert_eq!(cycles(&imports)[0].len(), ids.len());
        imports.insert(&ids[99_999], Vec::new());
        assert_eq!(cycles(&imports), Vec::<Vec<&FileId>>::new());
    }

    proptest! {
        #[test]
        fn circles_are_circles_and_none_is_missed(edges in prop::collection::vec((0..8_usize, 0..8_usize), 0..20)) {
            let ids: Vec<FileId> = (0..8).map(|n| id(&format!("f{n}"))).collect();
            let mut imports: Imports<'_> = ids.iter().map(|id| (id, Vec::new())).collect();
            for (from, to) in &edges {
                imports.get_mut(&ids[*from]).unwrap().push(&ids[*to]);
            }
            let found = cycles(&imports);
            for circle in &found {
                for (file, next) in circle.iter().zip(circle.iter().cycle().skip(1)) {
                    prop_assert!(imports[file].contains(next));
                }
            }
            // Without the files of the circles' groups the rest must sort topologically; remove leaves until none is left.
            let mut rest = imports.clone();
            while let Some(leaf) = rest.iter().find(|(_, to)| to.iter().all(|to| !rest.contains_key(to))).map(|(file, _)| *file) {
                rest.remove(leaf);
            }
            prop_assert_eq!(rest.is_empty(), found.is_empty());
        }
    }
}
