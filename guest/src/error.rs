//! How a run ends when it does not end well.

use std::fmt;

/// Which bound or rule ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestErrorKind {
    /// The code threw, a module did, or an import was denied.
    Thrown,
    /// It ran longer than it may.
    Deadline,
    /// It used more memory than it may.
    Memory,
    /// Its promise can never settle: no job is left that could do it.
    Unsettled,
    /// What it returned is no JSON, or too much of it.
    Result,
    /// The guest could not be set up: not the code's fault.
    Fault,
}

/// Why a run has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestError {
    /// Which bound or rule.
    pub kind: GuestErrorKind,
    /// `<name>: <message>` of what was thrown, or a sentence about the bound.
    pub message: String,
    /// The guest's stack, one frame a line; empty where there is none.
    pub stack: String,
    /// The pack whose file threw or asked for a denied import, where it was one of a pack.
    pub pack: Option<String>,
}

impl GuestError {
    pub(crate) fn new(kind: GuestErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            stack: String::new(),
            pack: None,
        }
    }
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for GuestError {}
