//! Reads the errors that esbuild prints.

use std::collections::BTreeSet;

use camino::Utf8Path;

use super::places::joined;

/// An error, with the place that esbuild gives for it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogError<'a> {
    /// What is wrong.
    pub(super) text: &'a str,
    /// The file, as the metafile names it, and the line.
    pub(super) place: Option<(&'a str, u32)>,
}

impl<'a> LogError<'a> {
    /// What was imported, where the error is that an import leads nowhere.
    pub(super) fn unresolved(&self) -> Option<&'a str> {
        self.text.strip_prefix("Could not resolve \"")?.strip_suffix('"')
    }
}

/// The errors of a log, in its order. An error is a marked line, then an empty line and an indented place.
pub(super) fn errors(log: &str) -> Vec<LogError<'_>> {
    let mut lines = log.lines().peekable();
    let mut errors = Vec::new();
    while let Some(line) = lines.next() {
        let Some((_, text)) = line.split_once("[ERROR] ").filter(|(mark, _)| mark.len() <= 4) else {
            continue;
        };
        if lines.peek().is_some_and(|line| line.is_empty()) {
            lines.next();
        }
        let place = lines.peek().and_then(|line| parse_place(line));
        errors.push(LogError { text, place });
    }
    errors
}

/// What the imports lead to that a log says the bundler fails on: names of packages, and whole paths of files. None where it fails on
/// something else, too.
pub(super) fn failing_imports(log: &str) -> Option<BTreeSet<String>> {
    let errors = errors(log);
    let failing = errors.iter().map(|error| {
        let name = error.unresolved()?;
        if !name.starts_with('.') {
            return Some(name.to_owned());
        }
        let (importer, _) = error.place?;
        Some(joined(Utf8Path::new(importer).parent()?, name).into_string())
    });
    let failing: Option<BTreeSet<String>> = failing.collect();
    failing.filter(|failing| !failing.is_empty())
}

/// `    ‹file›:‹line›:‹column›:`
fn parse_place(line: &str) -> Option<(&str, u32)> {
    let place = line.strip_prefix("    ")?.strip_suffix(':')?;
    let (place, _column) = place.rsplit_once(':')?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_read_with_their_places() {
        let log = "▲ [WARNING] Duplicate key \"a\"\n\n    /p/a.js:1:2:\n\n\
                   ✘ [ERROR] Could not resolve \"fs\"\n\n    /p/node_modules/x/a:b.js:12:3:\n      12 │ import \"fs\"\n\n  \
                   A note:\n\n    /p/note.js:1:1:\n\n\
                   X [ERROR] Something else\n";
        let found = errors(log);
        let expected = [
            LogError {
                text: "Could not resolve \"fs\"",
                place: Some(("/p/node_modules/x/a:b.js", 12)),
            },
            LogError {
                text: "Something else",
                place: None,
            },
        ];
        assert_eq!(found, expected);
        let unresolved: Vec<_> = found.iter().map(LogError::unresolved).collect();
        assert_eq!(unresolved, [Some("fs"), None]);
        assert_eq!(failing_imports(log), None);
    }

    #[test]
    fn imports_that_fail_are_named_as_they_can_be_left_out() {
        let log = "✘ [ERROR] Could not resolve \"fs\"\n\n    /p/x/a.js:12:3:\n\n\
                   ✘ [ERROR] Could not resolve \"../gone\"\n\n    /p/x/lib/b.js:1:1:\n";
        let expected = ["/p/x/gone", "fs"].map(str::to_owned);
        assert_eq!(failing_imports(log), Some(BTreeSet::from(expected)));
        assert_eq!(failing_imports(""), None);
    }
}
