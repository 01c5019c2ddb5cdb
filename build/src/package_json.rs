//! Stage 2: from a pack directory to its declared manifest. Reads package.json and nothing else.

use std::sync::Arc;

use packferry_core::id::PackName;
use packferry_core::payload::Declaration;

use crate::discover::PackDir;

/// A pack whose package.json was read and whose manifest satisfies the schema (pack contract, section 1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPack {
    /// Where it lies.
    pub dir: PackDir,
    /// Its name.
    pub name: PackName,
    /// `version`, present iff it is a string.
    pub version: Option<String>,
    /// The `internal` strings, in manifest order.
    pub internal: Vec<String>,
    /// The declared modules, in manifest order; WASM exports in manifest order, too.
    pub modules: Vec<Declaration>,
    /// The text of package.json, for later diagnostics' excerpts.
    pub text: Arc<str>,
}
