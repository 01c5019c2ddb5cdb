//! What can be found in a JavaScript file, each with its rule and its message.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::diagnostics::{
    JS_DYNAMIC_IMPORT, JS_HASHBANG, JS_NESTED_TOO_DEEPLY, JS_NOT_UTF8, JS_NUL, JS_REMOVED_GLOBAL, JS_REQUIRE,
    JS_SYNTAX, Rule, Severity,
};

/// A finding and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Byte offsets in the file.
    pub span: Range<usize>,
}

/// What was found. Its text is the message, to stand behind `‹pack›/‹file id›: `.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FindingKind {
    /// Bytes that are no UTF-8, from this offset on.
    NotUtf8(usize),
    /// A NUL character at this offset.
    Nul(usize),
    /// `#!` at the beginning.
    Hashbang,
    /// A syntax error: the parser's sentence.
    Syntax(String),
    /// No parser of bounded stack, memory and time can read it.
    NestedTooDeeply,
    /// `import()`.
    DynamicImport,
    /// `require()`.
    Require,
    /// A global that the guest deletes, used on a line when the module is evaluated.
    RemovedGlobal(String, usize),
}

impl Finding {
    /// Whether the pack is withheld for it.
    #[must_use]
    pub fn is_offence(&self) -> bool {
        self.kind.rule().severity == Severity::Error
    }
}

impl FindingKind {
    /// The rule it is about.
    #[must_use]
    pub fn rule(&self) -> &'static Rule {
        match self {
            Self::NotUtf8(_) => &JS_NOT_UTF8,
            Self::Nul(_) => &JS_NUL,
            Self::Hashbang => &JS_HASHBANG,
            Self::Syntax(_) => &JS_SYNTAX,
            Self::NestedTooDeeply => &JS_NESTED_TOO_DEEPLY,
            Self::DynamicImport => &JS_DYNAMIC_IMPORT,
            Self::Require => &JS_REQUIRE,
            Self::RemovedGlobal(..) => &JS_REMOVED_GLOBAL,
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUtf8(offset) => write!(f, "invalid JavaScript: no UTF-8 at byte {offset}"),
            Self::Nul(offset) => write!(f, "invalid JavaScript: a NUL character at byte {offset}"),
            Self::Hashbang => f.write_str("invalid JavaScript: a hashbang at byte 0"),
            Self::Syntax(sentence) => write!(f, "invalid JavaScript: {sentence}"),
            Self::NestedTooDeeply => f.write_str("invalid JavaScript: nested too deeply"),
            Self::DynamicImport => f.write_str("dynamic import() is not allowed"),
            Self::Require => f.write_str("require() is not allowed"),
            Self::RemovedGlobal(name, line) => {
                write!(
                    f,
                    "line {line} uses {name} at the top level, and the guest has no {name}"
                )
            }
        }
    }
}
