//! Inspects authored JavaScript (pack contract, section 6): whether it is a module, what it imports and exports, and what in it
//! the guest will not run. Reads no file and resolves no import; places are byte offsets in the file.
//!
//! `inspector.rs` inspects in child processes, whose stacks may overflow; `inspect.rs` inspects; `parse.rs` sets oxc up;
//! `walk.rs` is the one pass over the tree; `acorn.rs` and `regexp.rs` close what differs between oxc's verdict and
//! acorn's.

mod acorn;
mod finding;
mod inspect;
mod inspector;
mod parse;
mod regexp;
#[cfg(test)]
mod tests;
mod walk;

use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use finding::{Finding, FindingKind};
pub use inspect::{inspect, syntax_error};
pub use inspector::{Inspected, Inspector, answer_if_asked};

/// The platform capability, which a host may register in its guest.
const CAPABILITY: &str = "@nodetool-ai/sandbox-nodetool";

/// Bytes of the stack that files are parsed on. A level of nesting takes at most 2 KB in an optimized build and twice that in any
/// other.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 128 << 20 } else { 48 << 20 };

/// How an import was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImportKind {
    /// `import`, with or without names.
    Import,
    /// `export { … } from` or `export * as … from`.
    ReExport,
    /// `export * from`.
    Star,
}

/// A static import or re-export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The specifier: the string's value.
    pub source: String,
    /// Where the string stands, quotes included.
    pub span: Range<usize>,
    /// How it was written.
    pub kind: ImportKind,
}

impl Import {
    /// Whether it names the platform capability, which is no dependency.
    #[must_use]
    pub fn is_capability(&self) -> bool {
        let rest = self.source.strip_prefix(CAPABILITY);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// What was found in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// Offences and warnings, in order of place. Where the file is no JavaScript module, there is nothing else.
    pub findings: Vec<Finding>,
    /// Imports and re-exports, in order of place.
    pub imports: Vec<Import>,
    /// The names it exports itself, in order of place; `default` and `export * as x` included.
    pub exports: Vec<Export>,
}

/// A name that a file exports by stating it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The name.
    pub name: String,
    /// The specifier it is imported from and its name there, also where an import is exported by a statement of its own.
    pub origin: Option<(String, String)>,
}

impl Inspection {
    fn of(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            ..Self::default()
        }
    }
}
