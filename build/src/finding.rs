//! Diagnostics with the packs they are about, as a person and as a program read them.

use camino::Utf8PathBuf;
use serde_json::{Value, json};

use crate::diagnostics::{Diagnostic, Location, Severity};
use crate::excerpt::Position;

/// The pack that something was found about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Its name, if it has a valid one.
    pub pack: Option<String>,
    /// Where it lies, as the user would name it; for the terminal only.
    pub shown: Utf8PathBuf,
}

impl Subject {
    /// The findings that `diagnostics` are about this pack.
    #[must_use]
    pub fn findings(&self, diagnostics: Vec<Diagnostic>) -> Vec<Finding> {
        let finding = |diagnostic| Finding {
            about: self.clone(),
            diagnostic,
        };
        diagnostics.into_iter().map(finding).collect()
    }
}

/// A diagnostic and the pack it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The pack.
    pub about: Subject,
    /// What was found.
    pub diagnostic: Diagnostic,
}

impl Finding {
    /// Whether it withholds the pack.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.diagnostic.rule.severity == Severity::Error
    }

    /// The finding as a row of `--json`: `span` counts bytes, lines and columns count from 1, columns in characters.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let diagnostic = &self.diagnostic;
        let location = diagnostic.location.as_ref();
        json!({
            "pack": self.about.pack,
            "directory": self.about.shown.as_str(),
            "severity": diagnostic.rule.severity,
            "code": diagnostic.rule.code,
            "message": diagnostic.message,
            "hint": diagnostic.rule.hint,
            "file": location.map(|location| &location.file),
            "span": location.and_then(|location| location.span.as_ref()).map(|span| [span.start, span.end]),
            "start": location.and_then(|location| position(location, |span| span.start)),
            "end": location.and_then(|location| position(location, |span| span.end)),
            "export": location.and_then(|location| location.export.as_ref()),
        })
    }
}

fn position(location: &Location, end: impl Fn(&std::ops::Range<usize>) -> usize) -> Option<Value> {
    let (text, span) = (location.text.as_ref()?, location.span.as_ref()?);
    let Position { line, column, .. } = Position::of(text, end(span));
    Some(json!({ "line": line, "column": column }))
}
