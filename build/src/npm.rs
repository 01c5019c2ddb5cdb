//! Stage 4: npm entries become bundles, or are skipped with a reason. A skip is no fault of the pack; two entries over one admitted
//! package, or bundles that take the pack over its cap, are.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use packferry_core::digest::BlobDigest;
use packferry_core::id::Specifier;
use packferry_core::limits::PACK_LIMITS;

use crate::bundle::{BUNDLER_VERSION, Bundled, Bundler, Skip, judge_again, options_digest};
use crate::bundled::{AdmittedBundle, BundledPack, BundlerIdentity, NpmOutcome};
use crate::diagnostics::{
    Diagnostic, NPM_MODULE_DUPLICATE, NPM_MODULE_NOT_JUDGED, NPM_MODULE_PROBE_FAILED, NPM_MODULE_WARNING,
    PACK_TOO_LARGE, Severity,
};
use crate::fault::Fault;
use crate::judge::Judge;
use crate::probe::Probe;
use crate::staging::StagedTree;
use crate::validate::{EntrySource, ValidPack};

/// The bundler and the probe, looked for when the first npm entry needs them: a release without npm entries needs no bundler.
#[derive(Default)]
pub struct LazyBundler {
    tools: Mutex<Option<Arc<Tools>>>,
    /// Bundles are only read: no line of a pack runs, and without a bundler entries go unjudged.
    only_reads: bool,
}

struct Tools {
    bundler: Bundler,
    probe: Option<Probe>,
}

impl Tools {
    /// Bundles, scans and probes.
    fn bundle(&self, pack: &ValidPack, name: &str) -> Result<Result<Bundled, Skip>, Fault> {
        let bundled = match self.bundler.bundle(&pack.dir.real, name)? {
            Ok(bundled) => bundled,
            Err(skip) => return Ok(Err(skip)),
        };
        match &self.probe {
            Some(probe) => probed(bundled, probe),
            None => Ok(Ok(bundled)),
        }
    }
}

/// The bundle, if it is admitted.
fn probed(bundled: Bundled, probe: &Probe) -> Result<Result<Bundled, Skip>, Fault> {
    let probed = probe.probe(&bundled.source, &bundled.exports)?;
    Ok(probed.map(|()| bundled).map_err(|refusal| Skip {
        rule: &NPM_MODULE_PROBE_FAILED,
        reason: refusal.message,
    }))
}

fn program() -> Result<PathBuf, Fault> {
    std::env::current_exe().map_err(|error| Fault::new(format!("the packferry executable cannot be found: {error}")))
}

impl LazyBundler {
    /// A bundler whose bundles are scanned but never run. Where there is no bundler, an entry is skipped with a warning.
    #[must_use]
    pub fn that_only_reads() -> Self {
        Self {
            only_reads: true,
            ..Self::default()
        }
    }

    /// The bundle of the module `specifier` over the npm package `name`, with what made it.
    fn bundle(
        &self,
        pack: &ValidPack,
        specifier: &Specifier,
        name: &str,
    ) -> Result<Result<(Bundled, BundlerIdentity), Skip>, Fault> {
        match &pack.dir.staged {
            Some(tree) => self.take(tree, specifier, name),
            None => Ok(self.make(pack, name)?.map(|bundled| (bundled, identity()))),
        }
    }

    /// A staged tree's own bundle, judged as if it had been made now. Asks neither npm nor the bundler.
    fn take(
        &self,
        tree: &StagedTree,
        specifier: &Specifier,
        name: &str,
    ) -> Result<Result<(Bundled, BundlerIdentity), Skip>, Fault> {
        let (row, source) = match tree.bundle(specifier, name) {
            Ok(found) => found,
            Err(skip) => return Ok(Err(skip)),
        };
        let program = program()?;
        let judged = judge_again(&Judge::new(&program), source, row.npm_version.clone())?;
        let judged = match judged {
            Ok(bundled) if !self.only_reads => probed(bundled, &Probe::new(&program))?,
            judged => judged,
        };
        Ok(judged.map(|bundled| (bundled, row.bundler())))
    }

    fn make(&self, pack: &ValidPack, name: &str) -> Result<Result<Bundled, Skip>, Fault> {
        match self.get() {
            Ok(tools) => tools.bundle(pack, name),
            Err(fault) if self.only_reads => Ok(Err(Skip {
                rule: &NPM_MODULE_NOT_JUDGED,
                reason: fault.to_string(),
            })),
            Err(fault) => Err(fault),
        }
    }

    fn get(&self) -> Result<Arc<Tools>, Fault> {
        let mut slot = self.tools.lock().map_err(|_| Fault::new("a build thread failed"))?;
        if let Some(tools) = &*slot {
            return Ok(Arc::clone(tools));
        }
        let program = program()?;
        let found = Arc::new(Tools {
            bundler: Bundler::locate(&program)?,
            probe: (!self.only_reads).then(|| Probe::new(&program)),
        });
        *slot = Some(Arc::clone(&found));
        Ok(found)
    }
}

/// What digest payloads say about the bundler of this program.
#[must_use]
pub fn identity() -> BundlerIdentity {
    BundlerIdentity {
        version: BUNDLER_VERSION.to_owned(),
        options_digest: options_digest(),
    }
}

/// Bundles the npm packages that `pack` declares, or takes their bundles from its staged tree, and probes them. None where the pack
/// is at fault.
///
/// # Errors
/// A [`Fault`] where the bundler is missing or does not run.
pub fn bundle_entries(pack: ValidPack, bundler: &LazyBundler) -> Result<(Option<BundledPack>, Vec<Diagnostic>), Fault> {
    let mut npm = BTreeMap::new();
    let mut diagnostics = Vec::new();
    for (specifier, name) in npm_entries(&pack) {
        if npm.contains_key(name) {
            continue;
        }
        let outcome = match bundler.bundle(&pack, specifier, name)? {
            Ok((bundled, made_by)) => admit(&pack, name, bundled, made_by, &mut diagnostics),
            Err(skip) => skipped(&pack, name, &skip, &mut diagnostics),
        };
        npm.insert(name.to_owned(), outcome);
    }
    let faults = check_duplicates(&pack, &npm)
        .into_iter()
        .chain(check_total(&pack, &npm));
    diagnostics.extend(faults);
    let good = diagnostics.iter().all(|found| found.rule.severity != Severity::Error);
    Ok((good.then_some(BundledPack { pack, npm }), diagnostics))
}

/// The npm entries of a pack: each module with the npm package behind it.
fn npm_entries(pack: &ValidPack) -> impl Iterator<Item = (&Specifier, &str)> {
    pack.modules.iter().filter_map(|module| match &module.source {
        EntrySource::Npm(name) => Some((&module.specifier, name.as_str())),
        EntrySource::File(_) | EntrySource::Host(_) | EntrySource::UnregisteredHost => None,
    })
}

fn admit(
    pack: &ValidPack,
    name: &str,
    bundled: Bundled,
    bundler: BundlerIdentity,
    diagnostics: &mut Vec<Diagnostic>,
) -> NpmOutcome {
    for warning in &bundled.warnings {
        diagnostics.push(Diagnostic::new(
            &NPM_MODULE_WARNING,
            format!("{}: npm module {name}: {warning}", pack.name),
        ));
    }
    let bytes: Arc<[u8]> = bundled.source.into_bytes().into();
    NpmOutcome::Admitted(AdmittedBundle {
        sha256: BlobDigest::of(&bytes),
        bytes,
        npm_version: bundled.npm_version,
        exports: bundled.exports,
        bundler,
    })
}

fn skipped(pack: &ValidPack, name: &str, skip: &Skip, diagnostics: &mut Vec<Diagnostic>) -> NpmOutcome {
    diagnostics.push(Diagnostic::new(
        skip.rule,
        format!("{}: npm module {name}: {}", pack.name, skip.reason),
    ));
    NpmOutcome::Skipped(skip.rule.code)
}

/// Two delivered modules of one pack would share a file id.
fn check_duplicates(pack: &ValidPack, npm: &BTreeMap<String, NpmOutcome>) -> Vec<Diagnostic> {
    let twice = npm.iter().filter(|(name, outcome)| {
        matches!(outcome, NpmOutcome::Admitted(_)) && npm_entries(pack).filter(|(_, other)| other == name).count() > 1
    });
    twice
        .map(|(name, _)| {
            Diagnostic::new(
                &NPM_MODULE_DUPLICATE,
                format!("{}: duplicate npm module {name}", pack.name),
            )
        })
        .collect()
}

/// Bytes of all files of a pack, its admitted bundles included.
#[must_use]
pub fn total_bytes(pack: &ValidPack, npm: &BTreeMap<String, NpmOutcome>) -> u64 {
    let authored: u64 = pack.files.values().map(|file| file.bytes.len() as u64).sum();
    let bundles = npm.values().filter_map(|outcome| match outcome {
        NpmOutcome::Admitted(bundle) => Some(bundle.bytes.len() as u64),
        NpmOutcome::Skipped(_) => None,
    });
    authored + bundles.sum::<u64>()
}

fn check_total(pack: &ValidPack, npm: &BTreeMap<String, NpmOutcome>) -> Option<Diagnostic> {
    let cap = PACK_LIMITS.pack_bytes;
    (total_bytes(pack, npm) > cap).then(|| {
        Diagnostic::new(
            &PACK_TOO_LARGE,
            format!("{}: sandbox files exceed the {cap} byte pack cap", pack.name),
        )
    })
}
