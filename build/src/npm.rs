//! Stage 4: npm entries become bundles, or are skipped with a reason. A skip is no fault of the pack; two entries over one admitted
//! package, or bundles that take the pack over its cap, are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use packferry_core::canonical;
use packferry_core::digest::BlobDigest;
use packferry_core::id::Specifier;
use packferry_core::limits::PACK_LIMITS;

use crate::bundle::{
    BUNDLER_VERSION, Bundled, Bundler, OPTIONS_JSON, Proven, Skip, judge_again, named_binary, options_digest,
};
use crate::bundled::{AdmittedBundle, BundledPack, BundlerIdentity, NpmOutcome};
use crate::cache::{Cache, Key, Kind};
use crate::diagnostics::{
    Diagnostic, NPM_MODULE_DUPLICATE, NPM_MODULE_NOT_JUDGED, NPM_MODULE_PROBE_FAILED, NPM_MODULE_WARNING,
    PACK_TOO_LARGE, Rule, Severity,
};
use crate::excerpt::Position;
use crate::fault::Fault;
use crate::judge::Judge;
use crate::package_json::PACKAGE_JSON;
use crate::probe::{Probe, ProbeRefusal};
use crate::validate::{EntrySource, ValidPack};

/// The bundler and the probe, looked for when the first npm entry needs them: a release without npm entries needs no bundler, and none
/// whose entries are all known from an earlier build.
pub struct LazyBundler<'a> {
    bundler: Mutex<Option<Arc<Bundler>>>,
    cache: &'a Cache,
    /// Bundles are only read: no line of a pack runs, and without a bundler entries go unjudged.
    only_reads: bool,
}

fn program() -> Result<PathBuf, Fault> {
    std::env::current_exe().map_err(|error| Fault::reading("the packferry executable", &error))
}

impl<'a> LazyBundler<'a> {
    /// A bundler whose bundles are scanned and probed. What it finds out is kept in `cache`.
    #[must_use]
    pub fn new(cache: &'a Cache) -> Self {
        Self {
            bundler: Mutex::default(),
            cache,
            only_reads: false,
        }
    }

    /// A bundler whose bundles are scanned but never run. Where there is no bundler, an entry is skipped with a warning.
    #[must_use]
    pub fn that_only_reads(cache: &'a Cache) -> Self {
        Self {
            only_reads: true,
            ..Self::new(cache)
        }
    }

    /// Where what is found out is kept.
    #[must_use]
    pub fn cache(&self) -> &'a Cache {
        self.cache
    }

    /// The bundle of the module `specifier` over the npm package `name`, with what made it.
    fn bundle(
        &self,
        pack: &ValidPack,
        specifier: &Specifier,
        name: &str,
    ) -> Result<Result<(Bundled, BundlerIdentity), Skip>, Fault> {
        let (bundled, made_by) = match &pack.dir.staged {
            Some(tree) => {
                let (row, source) = match tree.bundle(specifier, name) {
                    Ok(found) => found,
                    Err(skip) => return Ok(Err(skip)),
                };
                (self.take(source, row.npm_version.clone())?, row.bundler())
            }
            None => (self.make(pack, name)?, identity()),
        };
        let bundled = match bundled {
            Ok(bundled) => bundled,
            Err(skip) => return Ok(Err(skip)),
        };
        let refusal = match self.only_reads {
            true => None,
            false => self.probe(pack, name, &bundled)?,
        };
        Ok(match refusal {
            None => Ok((bundled, made_by)),
            Some(reason) => Err(Skip {
                rule: &NPM_MODULE_PROBE_FAILED,
                reason,
            }),
        })
    }

    /// A staged tree's own bundle, judged as if it had been made now. Asks neither npm nor the bundler.
    fn take(&self, source: String, npm_version: Option<String>) -> Result<Result<Bundled, Skip>, Fault> {
        let key = Key::new(
            Kind::Bundle,
            &[
                b"staged",
                source.as_bytes(),
                canonical::to_json(&npm_version).as_bytes(),
            ],
        );
        self.known_or(&key, || judge_again(&Judge::new(&program()?), source, npm_version))
    }

    /// What bundling gives, or gave as long as what that rests on holds.
    fn make(&self, pack: &ValidPack, name: &str) -> Result<Result<Bundled, Skip>, Fault> {
        let made = self.known_or(&bundle_key(pack, name), || {
            let bundler = self.get()?;
            if self.cache.keeps() {
                return bundler.bundle_and_prove(&pack.dir.real, name);
            }
            let outcome = bundler.bundle(&pack.dir.real, name)?;
            Ok(Proven { outcome, grounds: None })
        });
        match made {
            Err(fault) if self.only_reads => Ok(Err(Skip {
                rule: &NPM_MODULE_NOT_JUDGED,
                reason: fault.to_string(),
            })),
            made => made,
        }
    }

    fn known_or(
        &self,
        key: &Key,
        make: impl FnOnce() -> Result<Proven, Fault>,
    ) -> Result<Result<Bundled, Skip>, Fault> {
        if let Some(known) = self.cache.get(key).filter(Proven::holds) {
            return Ok(known.outcome);
        }
        let proven = make()?;
        if proven.grounds.is_some() {
            self.cache.put(key, &proven);
        }
        Ok(proven.outcome)
    }

    /// Why the guest refuses a bundle, if it does; as it said before, where it did.
    fn probe(&self, pack: &ValidPack, name: &str, bundled: &Bundled) -> Result<Option<String>, Fault> {
        // Where a refusal names a line, the library's files decide which.
        let parts = [
            canonical::to_json(&bundled.exports),
            canonical::to_json(&bundled.inputs),
        ];
        let [exports, inputs] = parts.each_ref().map(String::as_bytes);
        let key = Key::new(Kind::Probe, &[bundled.source.as_bytes(), exports, inputs]);
        if let Some(known) = self.cache.get::<Option<String>>(&key) {
            return Ok(known);
        }
        let probed = Probe::new(&program()?).probe(&bundled.source, &bundled.exports)?;
        let Err(refused) = probed else {
            self.cache.put(&key, &None::<String>);
            return Ok(None);
        };
        let place = self.place_of(pack, name, bundled, &refused)?;
        let reason = match place {
            Some(place) => format!("{} ({place}).", refused.message.trim_end_matches('.')),
            None => refused.message,
        };
        if refused.settled {
            self.cache.put(&key, &Some(&reason));
        }
        Ok(Some(reason))
    }

    /// Where a bundle failed: in its library, or in the bundle, where that was staged without its library.
    fn place_of(
        &self,
        pack: &ValidPack,
        name: &str,
        bundled: &Bundled,
        refused: &ProbeRefusal,
    ) -> Result<Option<String>, Fault> {
        let Some(innermost) = refused.stack.first() else {
            return Ok(None);
        };
        match &pack.dir.staged {
            None => self
                .get()?
                .place_in_library(&pack.dir.real, name, &bundled.source, &refused.stack),
            Some(_) => {
                let line = Position::of(&bundled.source, *innermost).line;
                Ok(Some(format!("line {line} of the bundle")))
            }
        }
    }

    fn get(&self) -> Result<Arc<Bundler>, Fault> {
        let mut slot = self.bundler.lock().map_err(|_| Fault::new("a build thread failed"))?;
        if let Some(bundler) = &*slot {
            return Ok(Arc::clone(bundler));
        }
        let found = Arc::new(Bundler::locate(&program()?)?);
        *slot = Some(Arc::clone(&found));
        Ok(found)
    }
}

/// Under which key the cache has what was made of a package. What that rests on is in the entry.
fn bundle_key(pack: &ValidPack, name: &str) -> Key {
    let binary = named_binary().map(|digest| digest.to_string()).unwrap_or_default();
    let parts = [
        BUNDLER_VERSION.as_bytes(),
        OPTIONS_JSON.as_bytes(),
        binary.as_bytes(),
        pack.dir.real.as_os_str().as_bytes(),
        name.as_bytes(),
    ];
    Key::new(Kind::Bundle, &parts)
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
pub fn bundle_entries(
    pack: ValidPack,
    bundler: &LazyBundler<'_>,
) -> Result<(Option<BundledPack>, Vec<Diagnostic>), Fault> {
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
        diagnostics.push(found(pack, name, &NPM_MODULE_WARNING, warning));
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
    diagnostics.push(found(pack, name, skip.rule, &skip.reason));
    NpmOutcome::Skipped(skip.rule.code)
}

/// What was found out about the package `name`, placed where package.json declares the first entry over it.
fn found(pack: &ValidPack, name: &str, rule: &'static Rule, reason: &str) -> Diagnostic {
    let message = format!("{}: npm module {name}: {reason}", pack.name);
    Diagnostic::new(rule, message).at(PACKAGE_JSON, places(pack, name).next(), Some(&pack.package_json))
}

/// Where package.json declares entries over the package `name`.
fn places(pack: &ValidPack, name: &str) -> impl Iterator<Item = Range<usize>> {
    let entries = pack.modules.iter().filter(move |module| match &module.source {
        EntrySource::Npm(npm) => npm == name,
        EntrySource::File(_) | EntrySource::Host(_) | EntrySource::UnregisteredHost => false,
    });
    entries.map(|module| module.place.clone())
}

/// Two delivered modules of one pack would share a file id.
fn check_duplicates(pack: &ValidPack, npm: &BTreeMap<String, NpmOutcome>) -> Vec<Diagnostic> {
    let admitted = npm
        .iter()
        .filter(|(_, outcome)| matches!(outcome, NpmOutcome::Admitted(_)));
    let twice = admitted.filter_map(|(name, _)| Some((name, places(pack, name).nth(1)?)));
    twice
        .map(|(name, place)| {
            let message = format!("{}: duplicate npm module {name}", pack.name);
            Diagnostic::new(&NPM_MODULE_DUPLICATE, message).at(PACKAGE_JSON, Some(place), Some(&pack.package_json))
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
    let total = total_bytes(pack, npm);
    (total > cap).then(|| {
        let message = format!(
            "{}: sandbox files exceed the {cap} byte pack cap: with bundles they have {total}",
            pack.name
        );
        Diagnostic::new(&PACK_TOO_LARGE, message).at(PACKAGE_JSON, None, None)
    })
}
