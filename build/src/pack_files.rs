//! Reading files of packs: opened first, then checked through the open handle, so that nothing swapped in between is ever
//! read. Inside a pack no link is followed at any step of a path, so no file outside it is opened.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use packferry_core::id::FileId;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::fault::reason;

/// Why bytes were not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// There is nothing at the path, or a link to nothing, or to itself.
    Missing,
    /// A link on the way leads out of the pack.
    Escapes,
    /// A link on the way, though inside the pack.
    Symlink,
    /// A directory, or some other thing that has no contents.
    NotRegular,
    /// More bytes than asked for; none were read.
    TooLarge {
        /// How many there are.
        bytes: u64,
    },
    /// The system refused, with its reason.
    Failed(String),
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => Self::Missing,
            _ => Self::Failed(reason(&error)),
        }
    }
}

impl From<Errno> for Unread {
    fn from(errno: Errno) -> Self {
        io::Error::from(errno).into()
    }
}

/// Opens without waiting for a writer, should it be a pipe, and without becoming anybody's terminal.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);
/// To pass through a directory, the right to search it is enough.
#[cfg(target_os = "linux")]
const SEARCH: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const SEARCH: OFlags = OFlags::RDONLY;
/// A step of a path that must be a directory.
const STEP: OFlags = SEARCH
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::DIRECTORY);

/// Reads the regular file at `path`, or behind the link there: for package.json, which alone may be a link.
///
/// # Errors
/// [`Unread`].
pub fn read_document(path: &Path, limit: u64) -> Result<Vec<u8>, Unread> {
    let file = rustix::fs::open(path, READ, Mode::empty())?;
    Opened::of(file, limit)?.read()
}

/// The directory of a pack, held open: whatever its path comes to mean, files are read from this directory.
#[derive(Debug)]
pub struct PackRoot<'a> {
    handle: OwnedFd,
    real: &'a Path,
}

impl<'a> PackRoot<'a> {
    /// Opens the directory at the real path of a pack.
    ///
    /// # Errors
    /// [`Unread`], if it went away or cannot be searched.
    pub fn open(real: &'a Path) -> Result<Self, Unread> {
        let handle = rustix::fs::open(real, STEP, Mode::empty())?;
        Ok(Self { handle, real })
    }

    /// Opens a file of the pack that has at most `limit` bytes.
    ///
    /// # Errors
    /// [`Unread`].
    pub fn open_file(&self, id: &FileId, limit: u64) -> Result<Opened, Unread> {
        match self.walk(id.as_str(), READ) {
            Ok(handle) => Opened::of(handle, limit),
            // What a link at the end, or a step that is no directory gives; which it was decides the message only.
            Err(Errno::LOOP | Errno::NOTDIR | Errno::MLINK) => Err(self.obstacle(id.as_str())),
            // A socket.
            Err(Errno::NXIO) => Err(Unread::NotRegular),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Tells `each` the name of everything in the directory at `path`, in no order; the root itself is at `.`.
    ///
    /// # Errors
    /// [`Unread`], also where the directory is none.
    pub fn list(&self, path: &str, mut each: impl FnMut(&OsStr)) -> Result<(), Unread> {
        let handle = match self.walk(path, READ | OFlags::DIRECTORY) {
            Ok(handle) => handle,
            Err(Errno::LOOP | Errno::MLINK) => return Err(Unread::Symlink),
            Err(errno) => return Err(errno.into()),
        };
        for entry in Dir::read_from(handle)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                each(name);
            }
        }
        Ok(())
    }

    /// Whether the path of a file ends in a link, to whatever it may lead.
    #[must_use]
    pub fn is_link(&self, id: &FileId) -> bool {
        self.real.join(id.as_str()).is_symlink()
    }

    /// Opens `path`, step by step, from the held directory.
    fn walk(&self, path: &str, how: OFlags) -> Result<OwnedFd, Errno> {
        let Some((directories, name)) = path.rsplit_once('/') else {
            return rustix::fs::openat(&self.handle, path, how | OFlags::NOFOLLOW, Mode::empty());
        };
        let mut directories = directories.split('/');
        let first = directories.next().unwrap_or_default();
        let mut directory = rustix::fs::openat(&self.handle, first, STEP, Mode::empty())?;
        for step in directories {
            directory = rustix::fs::openat(&directory, step, STEP, Mode::empty())?;
        }
        rustix::fs::openat(&directory, name, how | OFlags::NOFOLLOW, Mode::empty())
    }

    /// What stood in the way of `path`, told by where it leads. Opens nothing.
    fn obstacle(&self, path: &str) -> Unread {
        match self.real.join(path).canonicalize() {
            Ok(target) if target.starts_with(self.real) => Unread::Symlink,
            Ok(_) => Unread::Escapes,
            // Links in a circle lead nowhere.
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Unread::Missing,
            Err(error) => error.into(),
        }
    }
}

/// A regular file, open, and no larger than was asked for.
#[derive(Debug)]
pub struct Opened {
    file: File,
    bytes: u64,
    limit: u64,
}

impl Opened {
    fn of(handle: OwnedFd, limit: u64) -> Result<Self, Unread> {
        let file = File::from(handle);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(Unread::NotRegular);
        }
        let bytes = metadata.len();
        if bytes > limit {
            return Err(Unread::TooLarge { bytes });
        }
        Ok(Self { file, bytes, limit })
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`Unread`], also where it has grown over the limit since it was opened.
    pub fn read(self) -> Result<Vec<u8>, Unread> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes).unwrap_or_default());
        let read = self.file.take(self.limit + 1).read_to_end(&mut bytes)? as u64;
        if read > self.limit {
            return Err(Unread::TooLarge { bytes: read });
        }
        Ok(bytes)
    }
}
