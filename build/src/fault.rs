//! What goes wrong on our side or in the user's command, as opposed to in a pack: exit status 2. A sentence, and what to do.

use std::fmt;

/// A fault of the environment, of the command line, or of Packferry itself.
#[derive(Debug)]
pub struct Fault {
    message: String,
    hint: Option<String>,
}

impl Fault {
    /// A fault described by one sentence.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do about it, if something is known.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
