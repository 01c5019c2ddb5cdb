//! Stage 4's result: a pack whose npm entries were bundled and judged. The bundler itself is `bundle.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use packferry_core::digest::BlobDigest;

use crate::validate::ValidPack;

/// Names the bundler in the digest payloads of npm entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundlerIdentity {
    /// The bundler's version.
    pub version: String,
    /// SHA-256 of its options.
    pub options_digest: BlobDigest,
}

/// An npm package, bundled and admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedBundle {
    /// The bundle, as it is delivered.
    pub bytes: Arc<[u8]>,
    /// SHA-256 of the bundle.
    pub sha256: BlobDigest,
    /// The resolved package's version, where it has one.
    pub npm_version: Option<String>,
    /// The names it exports, sorted by UTF-16 code units.
    pub exports: Vec<String>,
    /// What bundled it: this program's bundler, or, in a staged tree, the one that the tree was staged with.
    pub bundler: BundlerIdentity,
}

/// What became of an npm package that a pack declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NpmOutcome {
    /// It is delivered.
    Admitted(AdmittedBundle),
    /// It is not; the skip code says why.
    Skipped(&'static str),
}

/// A valid pack with the outcomes of its npm packages, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledPack {
    /// The pack.
    pub pack: ValidPack,
    /// One outcome for each npm package that a module of the pack declares.
    pub npm: BTreeMap<String, NpmOutcome>,
}
