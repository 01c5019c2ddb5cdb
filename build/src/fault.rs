//! What goes wrong on our side or in the user's command, as opposed to in a pack: exit status 2. A sentence, and what to do.

use std::fmt;
use std::io;

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

    /// A fault of a file, or of a directory, that cannot be read.
    #[must_use]
    pub fn reading(path: impl fmt::Display, error: &io::Error) -> Self {
        let fault = Self::new(format!("cannot read {path}: {}", reason(error)));
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => fault.hint("See that the path is spelled right."),
            io::ErrorKind::IsADirectory => fault.hint("Name a file."),
            io::ErrorKind::PermissionDenied => fault.hint("Grant read permission."),
            _ => fault,
        }
    }

    /// A fault of a file, or of a directory, that cannot be made or written.
    #[must_use]
    pub fn writing(path: impl fmt::Display, error: &io::Error) -> Self {
        let fault = Self::new(match error.kind() {
            io::ErrorKind::NotFound => format!("cannot write {path}: nothing can be made there"),
            _ => format!("cannot write {path}: {}", reason(error)),
        });
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => fault.hint("Make room on the disk."),
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                fault.hint("A file stands where a directory is needed: choose another path.")
            }
            _ => fault.hint("Choose a directory in which you may make files."),
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

/// What `error` says, as the end of a sentence, without a path and without the system's number.
#[must_use]
pub fn reason(error: &io::Error) -> String {
    let words = match error.kind() {
        io::ErrorKind::NotFound => "it does not exist",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::IsADirectory => "it is a directory",
        io::ErrorKind::NotADirectory => "a part of its path is no directory",
        io::ErrorKind::AlreadyExists => "something else is there",
        io::ErrorKind::InvalidFilename => "its name is too long",
        io::ErrorKind::StorageFull => "the disk is full",
        io::ErrorKind::QuotaExceeded => "your share of the disk is full",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::InvalidData => "it is not UTF-8",
        _ => {
            let text = error.to_string();
            return match text.split_once(" (os error") {
                Some((words, _)) => words.to_lowercase(),
                None => text,
            };
        }
    };
    words.to_owned()
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_the_system_is_told() {
        let cases = [
            (2, "it does not exist"),
            (13, "permission denied"),
            (20, "a part of its path is no directory"),
            (21, "it is a directory"),
            (28, "the disk is full"),
            (30, "the file system is read-only"),
            (36, "its name is too long"),
            (40, "too many levels of symbolic links"),
        ];
        for (number, words) in cases {
            assert_eq!(reason(&io::Error::from_raw_os_error(number)), words);
        }
        let fault = Fault::writing("out", &io::Error::from_raw_os_error(2));
        assert_eq!(fault.to_string(), "cannot write out: nothing can be made there");
        assert_eq!(fault.help(), Some("Choose a directory in which you may make files."));
    }
}
