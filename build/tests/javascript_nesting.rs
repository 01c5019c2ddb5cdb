//! Deep nesting of every kind (`fixtures/syntax/nesting.json`): what acorn takes on Node's stack is taken, and what would overflow
//! a parser's stack, fill its memory or keep it busy is that file's fault alone.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use packferry::javascript::{FindingKind, Inspection, Inspector};
use serde::Deserialize;

/// Bytes of an authored file.
const LIMIT: usize = 262_144;

/// A file of so many openings, a middle, and as many closings.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nest {
    name: String,
    open: String,
    middle: String,
    close: String,
    /// Levels that are taken, more than acorn takes. 0 where no file of the kind is valid, or good for anything.
    taken: usize,
}

impl Nest {
    fn source(&self, levels: usize) -> String {
        let (open, close) = (self.open.repeat(levels), self.close.repeat(levels));
        format!("{open}{}{close}", self.middle)
    }

    /// As deep as a file can be.
    fn deepest(&self) -> String {
        self.source((LIMIT - self.middle.len()) / (self.open.len() + self.close.len()))
    }
}

fn nests() -> Vec<Nest> {
    serde_json::from_str(include_str!("../../fixtures/syntax/nesting.json")).unwrap()
}

fn inspector() -> Inspector {
    Inspector::new(Path::new(env!("CARGO_BIN_EXE_packferry")))
}

fn names(inspection: &Inspection) -> Vec<&str> {
    inspection.exports.iter().map(|export| export.name.as_str()).collect()
}

/// Whether the file is refused for its depth.
fn is_too_deep(inspection: &Inspection) -> bool {
    let kinds: Vec<&FindingKind> = inspection.findings.iter().map(|finding| &finding.kind).collect();
    kinds == [&FindingKind::NestedTooDeeply]
}

#[test]
fn what_acorn_takes_is_taken() {
    let inspector = inspector();
    for nest in nests().iter().filter(|nest| nest.taken > 0) {
        let inspection = inspector
            .inspect(nest.source(nest.taken).as_bytes())
            .unwrap()
            .inspection;
        assert_eq!(inspection.findings, [], "{}", nest.name);
    }
}

#[test]
fn the_deepest_file_of_every_kind_is_refused_and_no_other() {
    let inspector = inspector();
    for nest in nests() {
        let source = nest.deepest();
        assert!(source.len() <= LIMIT);
        let refused = inspector.inspect(source.as_bytes()).unwrap().inspection;
        if nest.taken == 0 {
            let offences = refused.findings.iter().filter(|finding| finding.is_offence());
            assert_ne!(offences.count(), 0, "{}", nest.name);
        } else {
            assert!(is_too_deep(&refused), "{}: {:?}", nest.name, refused.findings);
        }
        let good = inspector.inspect(b"export const a = 1").unwrap().inspection;
        assert_eq!(names(&good), ["a"], "{}", nest.name);
    }
}

#[test]
fn flat_files_of_the_limit_are_taken() {
    let inspector = inspector();
    for part in [
        "a;",
        "1,",
        "{}",
        "a\n",
        "'a';",
        "let{}=a;",
        "()=>a;",
        "a=[];",
        "if(a){}else{}",
        "/a/;",
        "`${a}`;",
        "// a\n",
        "(a=1);",
    ] {
        let mut source = part.repeat(LIMIT / part.len());
        if part == "1," {
            source.push('1');
            source.truncate(LIMIT - 1);
        }
        let inspection = inspector.inspect(source.as_bytes()).unwrap().inspection;
        assert_eq!(inspection.findings, [], "{part}");
    }
}

#[test]
fn files_are_inspected_at_the_same_time() {
    let inspector = inspector();
    let deep = "(".repeat(100_000);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (inspector, deep) = (&inspector, &deep);
                scope.spawn(move || {
                    for count in 0..4 {
                        let source = format!("export const a{thread}{count} = 1");
                        let good = inspector.inspect(source.as_bytes()).unwrap().inspection;
                        assert_eq!(names(&good), [format!("a{thread}{count}")]);
                        assert!(is_too_deep(&inspector.inspect(deep.as_bytes()).unwrap().inspection));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_program_that_is_no_inspector_is_our_fault() {
    for program in ["/bin/true", "/bin/no-such-program"] {
        let error = Inspector::new(Path::new(program)).inspect(b"1").unwrap_err();
        assert!(
            error.to_string().starts_with("JavaScript cannot be inspected: "),
            "{error}"
        );
    }
}
