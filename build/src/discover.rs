//! Stage 1: from search roots to pack directories. Opens nothing but directories and package.json's existence.

use std::path::PathBuf;

use camino::Utf8PathBuf;

/// A directory that may hold a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackDir {
    /// As the user would name it, for messages on the terminal only.
    pub shown: Utf8PathBuf,
    /// The real path; every file of the pack lies under it.
    pub real: PathBuf,
    /// Whether the user named this very directory, rather than a root that holds it.
    pub named: bool,
}
