//! The path of a pack, top to bottom: discover, read, validate, bundle, link, write. Packs go through it independently of each other
//! and in parallel; what is written does not depend on their order.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::ManifestDigest;
use packferry_core::id::PackName;
use packferry_core::manifest::{self, PackEntry};
use packferry_core::order::by_utf16;
use rayon::prelude::*;
use serde_json::{Value, json};

use crate::diagnostics::{DUPLICATE_PACK, Diagnostic, Severity};
use crate::discover::{Discovered, PackDir, Roots, discover};
use crate::fault::Fault;
use crate::javascript::Inspector;
use crate::link::link;
use crate::npm::{self, LazyBundler};
use crate::package_json::{self, Outcome, RawPack};
use crate::progress::Progress;
use crate::registry::Registry;
use crate::release::{BuildReport, ObjectCount, ReleaseWriter, UnavailableModule, WithheldPack};
use crate::validate::{Rulebook, ValidPack, validate};

/// A diagnostic and the pack it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The pack's name, if it has a valid one.
    pub pack: Option<String>,
    /// Where the pack lies, as the user would name it; for the terminal only.
    pub shown: Utf8PathBuf,
    /// What was found.
    pub diagnostic: Diagnostic,
}

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
            (withheld, unavailable) => format!("; {withheld} packs withheld, {unavailable} modules unavailable"),
        };
        format!(
            "Built {} packs with {} modules into {out}: manifest {} ({} objects written, {} unchanged{left_out})",
            self.packs, self.modules, self.manifest, self.objects.written, self.objects.unchanged
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

/// Builds the packs under `roots` into a release in `out`.
///
/// # Errors
/// A [`Fault`] of ours or of the command line. Packs at fault are no error: they are withheld and reported.
pub fn build(
    roots: &Roots,
    config: Option<&Utf8Path>,
    out: &Utf8Path,
    progress: &Progress,
) -> Result<BuildOutcome, Fault> {
    let registry = config.map(|path| Registry::read(path.as_std_path())).transpose()?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Fault::new(format!("the packferry executable cannot be found: {error}")))?;
    let inspector = Inspector::new(&program);
    let writer = ReleaseWriter::open(out)?;
    let line = Line {
        rules: Rulebook {
            inspector: &inspector,
            registry: registry.as_ref(),
        },
        bundler: LazyBundler::default(),
        writer: &writer,
    };
    let found = read_all(discover(roots));
    let bar = progress.bar("building", found.packs.len());
    let built: Vec<Built> = found
        .packs
        .into_par_iter()
        .map(|candidates| {
            let built = line.build(candidates);
            bar.advance(1);
            built
        })
        .collect::<Result<_, Fault>>()?;
    bar.finish();
    let mut findings = found.findings;
    let mut entries = Vec::new();
    for pack in built {
        findings.extend(pack.findings);
        entries.extend(pack.entry);
    }
    finish(entries, findings, writer)
}

/// What package.json files say: packs by name, and what cannot be one.
struct Read {
    /// All candidates for one name together; a nameless one stands alone.
    packs: Vec<Vec<RawPack>>,
    findings: Vec<Finding>,
}

fn read_all(discovered: Discovered) -> Read {
    let mut findings: Vec<Finding> = discovered
        .encounters
        .into_iter()
        .map(|(shown, diagnostic)| Finding {
            pack: None,
            shown,
            diagnostic,
        })
        .collect();
    let outcomes: Vec<(PackDir, Outcome)> = discovered
        .dirs
        .into_par_iter()
        .map(|dir| {
            let outcome = package_json::read(&dir);
            (dir, outcome)
        })
        .collect();
    let mut named: BTreeMap<PackName, Vec<RawPack>> = BTreeMap::new();
    let mut packs = Vec::new();
    for (dir, outcome) in outcomes {
        match outcome {
            Outcome::NotAPack => {}
            Outcome::Refused {
                name,
                findings: refused,
            } => {
                findings.extend(refused.into_iter().map(|diagnostic| Finding {
                    pack: name.clone(),
                    shown: dir.shown.clone(),
                    diagnostic,
                }));
            }
            Outcome::Pack(raw) => match &raw.name {
                Some(name) => named.entry(name.clone()).or_default().push(*raw),
                None => packs.push(vec![*raw]),
            },
        }
    }
    packs.extend(named.into_values());
    Read { packs, findings }
}

/// What became of one name.
#[derive(Default)]
struct Built {
    entry: Option<PackEntry>,
    findings: Vec<Finding>,
}

/// What the stages of one pack need.
struct Line<'a> {
    rules: Rulebook<'a>,
    bundler: LazyBundler,
    writer: &'a ReleaseWriter,
}

impl Line<'_> {
    /// The stages after reading: validate, choose among candidates of one name, bundle, link, write.
    fn build(&self, candidates: Vec<RawPack>) -> Result<Built, Fault> {
        let mut built = Built::default();
        let mut valid = Vec::new();
        for raw in candidates {
            let dir = raw.dir.clone();
            let name = raw.name.as_ref().map(PackName::to_string);
            let (pack, diagnostics) = validate(raw, self.rules)?;
            let findings = diagnostics.into_iter();
            let found = findings.map(|diagnostic| Finding {
                pack: name.clone(),
                shown: dir.shown.clone(),
                diagnostic,
            });
            match pack {
                Some(pack) => valid.push((pack, found.collect())),
                None => built.findings.extend(found),
            }
        }
        let Some((pack, found)) = choose(valid, &mut built.findings) else {
            return Ok(built);
        };
        let (name, shown) = (pack.name.to_string(), pack.dir.shown.clone());
        built.findings.extend(found);
        let (bundled, diagnostics) = npm::bundle_entries(pack, &self.bundler)?;
        built.findings.extend(diagnostics.into_iter().map(|diagnostic| Finding {
            pack: Some(name.clone()),
            shown: shown.clone(),
            diagnostic,
        }));
        let Some(bundled) = bundled else { return Ok(built) };
        let linked =
            link(&bundled, &npm::identity()).map_err(|error| Fault::new(format!("linking {name} failed: {error}")))?;
        self.writer.write_pack(&linked)?;
        built.entry = Some(linked.entry);
        Ok(built)
    }
}

type Judged = (ValidPack, Vec<Finding>);

/// The one pack that answers to its name. An installed copy shadows a staged one without a word; two of equal standing drop the
/// name.
fn choose(valid: Vec<Judged>, findings: &mut Vec<Finding>) -> Option<Judged> {
    let standing = valid.iter().map(|(pack, _)| pack.dir.standing).min()?;
    let mut equals: Vec<Judged> = valid
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
            pack: Some(pack.name.to_string()),
            shown: pack.dir.shown,
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
    for finding in findings
        .iter()
        .filter(|finding| finding.diagnostic.rule.severity == Severity::Error)
    {
        // Directories of one name are one pack in the report; without a name each directory is its own.
        let place = if finding.pack.is_some() {
            Utf8Path::new("")
        } else {
            finding.shown.as_path()
        };
        codes
            .entry((finding.pack.as_deref(), place))
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

impl Finding {
    /// The finding as a row of `--json`; offsets are bytes.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let diagnostic = &self.diagnostic;
        let location = diagnostic.location.as_ref();
        json!({
            "pack": self.pack,
            "directory": self.shown.as_str(),
            "severity": diagnostic.rule.severity,
            "code": diagnostic.rule.code,
            "message": diagnostic.message,
            "hint": diagnostic.rule.hint,
            "file": location.map(|location| &location.file),
            "span": location.and_then(|location| location.span.as_ref()).map(|span| [span.start, span.end]),
        })
    }
}
