//! The path of a pack, top to bottom: discover, read, validate, bundle, link, write. Packs go through it independently of each other
//! and in parallel; what is written does not depend on their order.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::ManifestDigest;
use packferry_core::id::PackName;
use packferry_core::manifest::{self, PackEntry};
use packferry_core::order::by_utf16;
use packferry_core::record::InvalidRecord;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::bundled::BundledPack;
use crate::cache::Cache;
use crate::diagnostics::{DUPLICATE_PACK, Diagnostic};
use crate::discover::{Discovered, Roots, discover};
use crate::fault::Fault;
use crate::finding::{Finding, Subject};
use crate::fit;
use crate::inspections::Inspectors;
use crate::javascript::Inspector;
use crate::link::{LinkedGraph, link};
use crate::npm::{self, LazyBundler};
use crate::package_json::{self, Outcome, RawPack};
use crate::progress::{Bar, Progress};
use crate::registry::Registry;
use crate::release::{BuildReport, ObjectCount, ReleaseWriter, UnavailableModule, WithheldPack};
use crate::release_place;
use crate::text::counted;
use crate::validate::{Rulebook, ValidPack, validate};

/// What a build did.
#[derive(Debug)]
pub struct BuildOutcome {
    /// The manifest's digest.
    pub manifest: ManifestDigest,
    /// How many packs and modules the release has.
    pub packs: usize,
    /// Modules that are delivered.
    pub modules: usize,
    /// Objects on disk.
    pub objects: ObjectCount,
    /// What was left out.
    pub report: BuildReport,
    /// Everything that was found, pack by pack.
    pub findings: Vec<Finding>,
}

impl BuildOutcome {
    /// One line for a person.
    #[must_use]
    pub fn summary(&self, out: &Utf8Path) -> String {
        let left_out = match (self.report.withheld.len(), self.report.unavailable.len()) {
            (0, 0) => String::new(),
            (withheld, unavailable) => format!(
                "; {} withheld, {} unavailable",
                counted(withheld as u64, "pack"),
                counted(unavailable as u64, "module")
            ),
        };
        format!(
            "Built {} with {} into {out}: manifest {} ({} written, {} unchanged{left_out})",
            counted(self.packs as u64, "pack"),
            counted(self.modules as u64, "module"),
            self.manifest,
            counted(self.objects.written as u64, "object"),
            self.objects.unchanged
        )
    }

    /// The report of `--json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "manifest": self.manifest,
            "packs": self.packs,
            "modules": self.modules,
            "objects": self.objects,
            "withheld": self.report.withheld,
            "unavailable": self.report.unavailable,
            "diagnostics": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
        })
    }
}

/// Builds the packs under `roots` into a release in `out`. What `cache` has of an earlier build is not found out again.
///
/// # Errors
/// A [`Fault`] of ours or of the command line. Packs at fault are no error: they are withheld and reported.
pub fn build(
    roots: &Roots,
    config: Option<&Utf8Path>,
    out: &Utf8Path,
    cache: &Cache,
    progress: &Progress,
) -> Result<BuildOutcome, Fault> {
    let in_pack = release_place::check(out)?;
    let writer = ReleaseWriter::open(out)?;
    let bar = |packs| progress.bar("building", packs);
    let mut judged = judge(roots, config, LazyBundler::new(cache), bar, |ready| {
        ready.link(|graph| writer.write_graph(&graph))
    })?;
    judged.findings.splice(0..0, in_pack);
    cache.trim();
    finish(judged.packs, judged.findings, writer)
}

/// A pack that went through all stages but the last, ready to be linked, and so written or shown.
#[derive(Debug)]
pub struct Ready {
    /// Where it lies, as the user would name it.
    pub shown: Utf8PathBuf,
    /// Bytes of all its files, reached or not, bundled npm entries included.
    pub bytes: u64,
    /// What it authored, and its bundles.
    pub bundled: BundledPack,
}

impl Ready {
    /// The last stage before writing: hands the pack's graphs to `take`, one after the other, and gives its entry in the manifest.
    ///
    /// # Errors
    /// A [`Fault`] of ours, or of `take`.
    pub fn link(&self, take: impl FnMut(LinkedGraph) -> Result<(), Fault>) -> Result<PackEntry, Fault> {
        link(&self.bundled, take)
    }
}

impl From<InvalidRecord> for Fault {
    fn from(error: InvalidRecord) -> Self {
        Self::new(format!("linking a pack failed: {error}"))
    }
}

/// What became of the packs under some roots.
#[derive(Debug)]
pub struct Judged<T> {
    /// What was made of each good pack, in order of name.
    pub packs: Vec<T>,
    /// Everything that was found, pack by pack.
    pub findings: Vec<Finding>,
}

/// Takes the packs under `roots` through the stages and hands each good one to `apply`, which links it.
///
/// # Errors
/// A [`Fault`] of ours, of the command line, or of `apply`.
pub fn judge<T: Send>(
    roots: &Roots,
    config: Option<&Utf8Path>,
    bundler: LazyBundler<'_>,
    bar: impl FnOnce(usize) -> Bar,
    apply: impl Fn(Ready) -> Result<T, Fault> + Sync,
) -> Result<Judged<T>, Fault> {
    let registry = config.map(|path| Registry::read(path.as_std_path())).transpose()?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Fault::reading("the packferry executable", &error))?;
    let inspector = Inspector::new(&program);
    let line = Line {
        rules: Rulebook {
            inspectors: Inspectors {
                javascript: &inspector,
                cache: bundler.cache(),
            },
            registry: registry.as_ref(),
        },
        bundler,
    };
    let found = read_all(discover(roots));
    let bar = bar(found.packs.len());
    let outcomes: Vec<(Option<T>, Vec<Finding>)> = found
        .packs
        .into_par_iter()
        .map(|candidates| {
            let (ready, findings) = line.run(candidates)?;
            let applied = ready.map(&apply).transpose()?;
            bar.advance(1);
            Ok((applied, findings))
        })
        .collect::<Result<_, Fault>>()?;
    bar.finish();
    let mut judged = Judged {
        packs: Vec::new(),
        findings: found.findings,
    };
    for (pack, findings) in outcomes {
        judged.packs.extend(pack);
        judged.findings.extend(findings);
    }
    Ok(judged)
}

/// What package.json files say: packs by name, and what cannot be one.
struct Read {
    /// All candidates for one name together; a nameless one stands alone.
    packs: Vec<Vec<RawPack>>,
    findings: Vec<Finding>,
}

fn read_all(discovered: Discovered) -> Read {
    let outcomes: Vec<Outcome> = discovered.dirs.par_iter().map(package_json::read).collect();
    let dirs = discovered.dirs.iter().zip(&outcomes);
    let packs: HashSet<&Path> = dirs
        .filter(|(_, outcome)| **outcome != Outcome::NotAPack)
        .map(|(dir, _)| dir.real.as_path())
        .collect();
    let empty_roots = discovered.without_packs(&packs);
    let encounters = discovered.encounters.into_iter().chain(empty_roots);
    let mut findings: Vec<Finding> = encounters
        .map(|(shown, diagnostic)| Finding {
            about: Subject { pack: None, shown },
            diagnostic,
        })
        .collect();
    let mut named: BTreeMap<PackName, Vec<RawPack>> = BTreeMap::new();
    let mut nameless = Vec::new();
    for (dir, outcome) in discovered.dirs.into_iter().zip(outcomes) {
        match outcome {
            Outcome::NotAPack => {}
            Outcome::Refused {
                name,
                findings: refused,
            } => {
                let about = Subject {
                    pack: name,
                    shown: dir.shown,
                };
                findings.extend(about.findings(refused));
            }
            Outcome::Pack(raw) => match &raw.name {
                Some(name) => named.entry(name.clone()).or_default().push(*raw),
                None => nameless.push(vec![*raw]),
            },
        }
    }
    let packs = named.into_values().chain(nameless).collect();
    Read { packs, findings }
}

/// What the stages of one pack need.
struct Line<'a> {
    rules: Rulebook<'a>,
    bundler: LazyBundler<'a>,
}

impl Line<'_> {
    /// The stages after reading: validate, choose among candidates of one name, bundle.
    fn run(&self, candidates: Vec<RawPack>) -> Result<(Option<Ready>, Vec<Finding>), Fault> {
        let mut findings = Vec::new();
        let mut valid = Vec::new();
        for raw in candidates {
            if is_shadowed(&raw, &valid) {
                continue;
            }
            let about = Subject {
                pack: raw.name.as_ref().map(PackName::to_string),
                shown: raw.dir.shown.clone(),
            };
            let (pack, diagnostics) = validate(raw, self.rules)?;
            let found = about.findings(diagnostics);
            match pack {
                Some(pack) => valid.push((pack, found)),
                None => findings.extend(found),
            }
        }
        let Some((pack, found)) = choose(valid, &mut findings) else {
            return Ok((None, findings));
        };
        findings.extend(found);
        let about = Subject {
            pack: Some(pack.name.to_string()),
            shown: pack.dir.shown.clone(),
        };
        let (bundled, diagnostics) = npm::bundle_entries(pack, &self.bundler)?;
        findings.extend(about.findings(diagnostics));
        let Some(bundled) = bundled else {
            return Ok((None, findings));
        };
        let too_large = fit::check(&bundled);
        if !too_large.is_empty() {
            findings.extend(about.findings(too_large));
            return Ok((None, findings));
        }
        let bytes = npm::total_bytes(&bundled.pack, &bundled.npm);
        let ready = Ready {
            shown: about.shown,
            bytes,
            bundled,
        };
        Ok((Some(ready), findings))
    }
}

type Candidate = (ValidPack, Vec<Finding>);

/// Whether a good pack of the same name stands before this one, which is then not even looked at.
fn is_shadowed(raw: &RawPack, valid: &[Candidate]) -> bool {
    valid.iter().any(|(pack, _)| pack.dir.standing < raw.dir.standing)
}

/// The one pack that answers to its name. An installed copy shadows a staged one without a word; two of equal standing drop the
/// name.
fn choose(valid: Vec<Candidate>, findings: &mut Vec<Finding>) -> Option<Candidate> {
    let standing = valid.iter().map(|(pack, _)| pack.dir.standing).min()?;
    let mut equals: Vec<Candidate> = valid
        .into_iter()
        .filter(|(pack, _)| pack.dir.standing == standing)
        .collect();
    if equals.len() == 1 {
        return equals.pop();
    }
    let places: Vec<String> = equals.iter().map(|(pack, _)| pack.dir.shown.to_string()).collect();
    for (pack, _) in equals {
        let message = format!("{}: the name is taken more than once: {}", pack.name, places.join(", "));
        findings.push(Finding {
            about: Subject {
                pack: Some(pack.name.to_string()),
                shown: pack.dir.shown,
            },
            diagnostic: Diagnostic::new(&DUPLICATE_PACK, message),
        });
    }
    None
}

fn finish(entries: Vec<PackEntry>, findings: Vec<Finding>, writer: ReleaseWriter) -> Result<BuildOutcome, Fault> {
    let unavailable = |pack: &PackEntry| -> Vec<UnavailableModule> {
        let row = |row: &manifest::Unavailable| UnavailableModule {
            specifier: row.specifier.to_string(),
            code: row.code.clone(),
        };
        pack.unavailable.iter().map(row).collect()
    };
    let mut entries = entries;
    entries.sort_by(|a, b| by_utf16(a.name.as_str(), b.name.as_str()));
    let unavailable = entries.iter().flat_map(unavailable).collect();
    let (packs, modules) = (entries.len(), entries.iter().map(|pack| pack.modules.len()).sum());
    let written = manifest::write(entries);
    let report = BuildReport {
        version: 1,
        manifest: written.digest,
        withheld: withheld(&findings),
        unavailable,
    };
    let objects = writer.finish(&written, &report)?;
    Ok(BuildOutcome {
        manifest: written.digest,
        packs,
        modules,
        objects,
        report,
        findings,
    })
}

/// The packs at fault, by name, each with the codes of its errors; a nameless one stands for itself.
fn withheld(findings: &[Finding]) -> Vec<WithheldPack> {
    let mut codes: BTreeMap<(Option<&str>, &Utf8Path), BTreeSet<&str>> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| finding.is_error()) {
        // Directories of one name are one pack in the report; without a name each directory is its own.
        let place = if finding.about.pack.is_some() {
            Utf8Path::new("")
        } else {
            finding.about.shown.as_path()
        };
        codes
            .entry((finding.about.pack.as_deref(), place))
            .or_default()
            .insert(finding.diagnostic.rule.code);
    }
    let mut rows: Vec<WithheldPack> = codes
        .into_iter()
        .map(|((pack, _), codes)| WithheldPack {
            pack: pack.map(str::to_owned),
            codes: codes.into_iter().map(str::to_owned).collect(),
        })
        .collect();
    rows.sort();
    rows
}
