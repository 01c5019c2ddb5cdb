//! The process that becomes esbuild. It gives up what esbuild has no need of, then esbuild takes its place: memory, processor time,
//! and, where the system is Linux, every file but those that may be read.

use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use camino::{Utf8Path, Utf8PathBuf};
use serde::{Deserialize, Serialize};

use crate::bounds::{Resource, bound};

/// The first argument of a process that becomes esbuild; the file of its rights and esbuild's own arguments follow.
pub(super) const ARGUMENT: &str = "become-bundler";

/// Exit code of a process that could not become esbuild. esbuild itself ends with 0, 1 or 2.
pub(super) const FAULT: i32 = 120;

/// Bytes of memory that esbuild may ask for, and that it makes do with before it collects its garbage. A bundle of the limit needs
/// a third of it.
const MEMORY_BYTES: u64 = 192 << 20;
const COLLECTED_FROM: &str = "96MiB";

/// Seconds of processor time.
const PROCESSOR_SECONDS: u64 = 60;

/// Bytes of a file that esbuild may write; more than are read of any.
const FILE_BYTES: u64 = 64 << 20;

/// What esbuild may do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Rights {
    /// The binary.
    pub(super) binary: Utf8PathBuf,
    /// Folders, with everything below, and files that may be read.
    pub(super) read: Vec<Utf8PathBuf>,
    /// The folder that may be written into.
    pub(super) write: Utf8PathBuf,
}

/// Becomes esbuild, where this process is asked to: `main` calls it before anything else. Comes back only where that fails.
#[must_use]
pub fn become_bundler_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != ARGUMENT {
        return None;
    }
    let rights = arguments.next()?;
    if let Err(error) = become_bundler(Path::new(&rights), arguments) {
        eprintln!("{error}");
    }
    Some(ExitCode::from(FAULT as u8))
}

fn become_bundler(rights: &Path, arguments: impl Iterator<Item = OsString>) -> Result<(), Box<dyn Error>> {
    let rights: Rights = serde_json::from_reader(io::BufReader::new(File::open(rights)?))?;
    bound(Resource::Core, 0)?;
    bound(Resource::Cpu, PROCESSOR_SECONDS)?;
    bound(Resource::Fsize, FILE_BYTES)?;
    // A script that the user named starts programs of its own; what they need nobody here knows.
    if !is_script(&rights.binary)? {
        bound(Resource::Data, MEMORY_BYTES)?;
        restrict(&rights)?;
    }
    let mut command = Command::new(&rights.binary);
    Err(command.args(arguments).env("GOMEMLIMIT", COLLECTED_FROM).exec().into())
}

fn is_script(binary: &Utf8Path) -> io::Result<bool> {
    let mut start = [0; 2];
    let read = File::open(binary)?.read(&mut start)?;
    Ok(start.get(..read) == Some(b"#!"))
}

/// Gives up every file but those in `rights`. A kernel that knows no such thing leaves the other bounds.
#[cfg(target_os = "linux")]
fn restrict(rights: &Rights) -> Result<(), Box<dyn Error>> {
    use landlock::{ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr};
    let everything = AccessFs::from_all(ABI::V1);
    let mut rules = Ruleset::default()
        .handle_access(everything)?
        .create()?
        // Names of files are no secret, and esbuild looks for a node_modules in every folder above.
        .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::ReadDir))?
        .add_rule(PathBeneath::new(
            PathFd::new(&rights.binary)?,
            AccessFs::Execute | AccessFs::ReadFile,
        ))?
        .add_rule(PathBeneath::new(PathFd::new(&rights.write)?, everything))?;
    for path in &rights.read {
        // What has gone since is not read.
        if let Ok(path) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(path, AccessFs::ReadFile))?;
        }
    }
    rules.restrict_self()?;
    Ok(())
}

/// Elsewhere the other bounds must do.
#[cfg(not(target_os = "linux"))]
fn restrict(_: &Rights) -> Result<(), Box<dyn Error>> {
    Ok(())
}
