//! Runs the esbuild binary: its arguments, its environment, its bounds. What it printed and wrote is read elsewhere.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use camino::Utf8PathBuf;

use super::confined::{self, Rights};
use super::survey::Readable;
use crate::child::{self, ChildLimits};
use crate::fault::{Fault, reason};

/// The name that esbuild knows the synthetic entry by.
pub(super) const ENTRY_NAME: &str = "nodetool-sandbox-entry.js";

/// A library of thousands of faulty files is judged by the first messages.
const LIMITS: ChildLimits = ChildLimits {
    seconds: 60,
    output_bytes: 1 << 20,
};

/// Bytes of each file it writes that are read. A bundle is refused at a sixteenth of this, paths rewritten.
const OUTPUT_BYTES: u64 = 16 << 20;

/// What became of a run.
pub(super) enum Run {
    /// It wrote its files.
    Done(Output),
    /// It gave up; what it printed.
    Failed(String),
    /// It died or was stopped after the time it gets; why, as the end of a sentence.
    Broken(&'static str),
}

/// Where a run left its files. They go when this does.
pub(super) struct Output {
    folder: tempfile::TempDir,
}

impl Output {
    fn new() -> Result<Self, Fault> {
        let folder = tempfile::Builder::new()
            .prefix("packferry-")
            .tempdir()
            .map_err(|error| Fault::writing("a temporary folder", &error))?;
        Ok(Self { folder })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The bundle; None where it is longer than any that could be admitted.
    pub(super) fn bundle(&self) -> Result<Option<String>, Fault> {
        read(&self.file("bundle.js"))
    }

    /// The metafile; None where it is out of all proportion.
    pub(super) fn metafile(&self) -> Result<Option<String>, Fault> {
        read(&self.file("meta.json"))
    }

    /// The source map; None where it is out of all proportion.
    pub(super) fn source_map(&self) -> Result<Option<String>, Fault> {
        read(&self.file("bundle.js.map"))
    }

    /// The folder that the sources of the source map are relative to.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn read(path: &Path) -> Result<Option<String>, Fault> {
    let mut text = String::new();
    let length = std::fs::File::open(path).and_then(|file| file.take(OUTPUT_BYTES + 1).read_to_string(&mut text));
    match length {
        Ok(length) if length as u64 <= OUTPUT_BYTES => Ok(Some(text)),
        Ok(_) => Ok(None),
        // A character that the bound cuts in two is no UTF-8 either.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(Fault::reading("what esbuild wrote", &error)),
    }
}

/// The binary, and the program that becomes it.
#[derive(Debug, Clone)]
pub(super) struct Esbuild {
    binary: Utf8PathBuf,
    program: PathBuf,
}

impl Esbuild {
    /// The esbuild at `binary`; `program` is the `packferry` executable.
    pub(super) fn new(binary: PathBuf, program: &Path) -> Result<Self, Fault> {
        let binary = std::path::absolute(binary).unwrap_or_default();
        let binary = Utf8PathBuf::from_path_buf(binary).map_err(|_| Fault::new("the path of esbuild is not UTF-8"))?;
        Ok(Self {
            binary,
            program: program.to_owned(),
        })
    }

    /// Bundles `entry`, which esbuild takes for a module in `folder`, without the packages and files in `left_out`. It reads what is
    /// `readable`, and writes where we look.
    pub(super) fn run(
        &self,
        folder: &Path,
        readable: &Readable,
        entry: &str,
        left_out: &BTreeSet<String>,
    ) -> Result<Run, Fault> {
        let output = Output::new()?;
        let mut command = Command::new(&self.program);
        command
            .arg(confined::ARGUMENT)
            .arg(self.write_rights(&output, readable)?)
            .args([
                "--bundle",
                "--format=esm",
                "--platform=neutral",
                "--conditions=import,module,default",
                "--main-fields=module,main",
                "--target=es2022",
                "--tree-shaking=true",
                "--charset=utf8",
                "--legal-comments=none",
                "--tsconfig-raw={}",
                "--loader=js",
                "--sourcemap=external",
                "--sources-content=false",
                "--abs-paths=code,log,metafile",
                "--log-level=warning",
                "--log-limit=0",
                "--color=false",
            ])
            .args(left_out.iter().map(|path| format!("--external:{path}")))
            .arg(format!("--sourcefile={ENTRY_NAME}"))
            .arg(prefixed("--outfile=", &output.file("bundle.js")))
            .arg(prefixed("--metafile=", &output.file("meta.json")))
            .current_dir(folder);
        let ended = child::run(&mut command, entry.as_bytes(), LIMITS)
            .map_err(|error| Fault::new(format!("esbuild cannot be run: {}", reason(&error))))?;
        let log = String::from_utf8_lossy(&ended.stderr);
        Ok(match ended.status.map(|status| status.code()) {
            None => Run::Broken("took longer than 60 seconds"),
            Some(Some(0)) => Run::Done(output),
            Some(Some(1)) => Run::Failed(log.into_owned()),
            Some(Some(confined::FAULT)) => {
                return Err(Fault::new(format!("esbuild cannot be run: {}", log.trim_end())));
            }
            // What the bundler's runtime says before it gives up.
            Some(_) if log.contains("SIGXCPU") => Run::Broken("took more processor time than it is given"),
            Some(_) => Run::Broken("crashed: it may need more memory than it is given"),
        })
    }

    /// The file that says what esbuild may do.
    fn write_rights(&self, output: &Output, readable: &Readable) -> Result<PathBuf, Fault> {
        let fault = |error: &dyn Display| Fault::new(format!("the rights of esbuild cannot be written: {error}"));
        let utf8 = |path: &PathBuf| Utf8PathBuf::from_path_buf(path.clone()).ok();
        let write = utf8(&output.folder().to_owned()).ok_or_else(|| fault(&"the temporary folder is not UTF-8"))?;
        let rights = Rights {
            binary: self.binary.clone(),
            read: readable.paths.iter().filter_map(utf8).collect(),
            write,
        };
        let file = output.file("rights.json");
        let json = serde_json::to_vec(&rights).map_err(|error| fault(&error))?;
        std::fs::write(&file, json).map_err(|error| fault(&reason(&error)))?;
        Ok(file)
    }
}

fn prefixed(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(path);
    argument
}
