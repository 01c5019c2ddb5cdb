//! A release for a command that takes one: as it lies there, or built from packs for this one run.

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::cache::Cache;
use crate::commands;
use crate::fault::Fault;
use crate::finding::Finding;
use crate::pipeline;
use crate::progress::Progress;
use crate::release::Release;

/// A release, and the folder that it lies in where it was made for one run.
#[derive(Debug)]
pub struct Built {
    /// The release.
    pub release: Release,
    /// What building it found.
    pub findings: Vec<Finding>,
    _folder: Option<TempDir>,
}

impl Built {
    /// The release in `dir`.
    ///
    /// # Errors
    /// A [`Fault`] where there is none, or it is damaged.
    pub fn read(dir: &Utf8Path) -> Result<Self, Fault> {
        Ok(Self {
            release: Release::read(dir)?,
            findings: Vec::new(),
            _folder: None,
        })
    }

    /// A release of the packs under `roots`, in a folder that goes away with it.
    ///
    /// # Errors
    /// A [`Fault`] of ours or of the command line. Packs at fault are no error: they are withheld and reported.
    pub fn of(
        roots: &[Utf8PathBuf],
        config: Option<&Utf8Path>,
        cache: &Cache,
        progress: &Progress,
    ) -> Result<Self, Fault> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| Fault::writing("a temporary folder", &error))?;
        let out =
            Utf8Path::from_path(folder.path()).ok_or_else(|| Fault::new("the temporary folder's path is not UTF-8"))?;
        let outcome = pipeline::build(&commands::roots(roots)?, config, out, cache, progress)?;
        Ok(Self {
            release: Release::read(out)?,
            findings: outcome.findings,
            _folder: Some(folder),
        })
    }
}

/// Whether `dir` holds a release, rather than packs.
#[must_use]
pub fn is_release(dir: &Utf8Path) -> bool {
    ["manifest.json", "report.json"]
        .iter()
        .all(|name| dir.join(name).is_file())
}
