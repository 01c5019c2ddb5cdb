//! npm entries: one package becomes one ECMAScript module, bundled by the pinned esbuild binary, without a path of the machine
//! in it, scanned for what the guest lacks. The only place that knows esbuild.

mod binary;
mod builtins;
mod esbuild;
mod log;
mod metafile;
mod origin;
mod places;
mod stage;

use std::path::{Path, PathBuf};

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::BlobDigest;
use packferry_core::limits::PACK_LIMITS;

use self::builtins::is_builtin;
use self::esbuild::{ENTRY_NAME, Output, Run};
use self::metafile::Metafile;
use self::origin::{Origins, file_of_key};
use self::places::Places;
use self::stage::stage;
use crate::bundle_paths::Rewritten;
use crate::diagnostics::{self, Rule};
use crate::fault::Fault;
use crate::judge::{Judge, Judgement};
use crate::scan::{Finding, Verdict};

/// The bundler's name in digest payloads.
pub const BUNDLER: &str = "esbuild";

/// The bundler's version; no other is run.
pub const BUNDLER_VERSION: &str = "0.28.2";

/// The options that a bundle depends on, as digest payloads name them (pack contract, section 9): the SHA-256 of this text is
/// `optionsDigest`.
pub const OPTIONS_JSON: &str = r#"{"conditions":["import","module","default"],"mainFields":["module","main"],"target":"es2022","format":"esm","platform":"neutral","bundle":true,"minify":false,"maxBytes":1048576}"#;

/// SHA-256 of [`OPTIONS_JSON`].
#[must_use]
pub fn options_digest() -> BlobDigest {
    BlobDigest::of(OPTIONS_JSON.as_bytes())
}

/// A package that was bundled and may be delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundled {
    /// The module, as it is delivered.
    pub source: String,
    /// The resolved package's version, where it has one.
    pub npm_version: Option<String>,
    /// The names it exports, sorted by UTF-16 code units.
    pub exports: Vec<String>,
    /// What may not work in the guest, a sentence each.
    pub warnings: Vec<String>,
    /// The files that went into it, sorted by path.
    pub inputs: Vec<BundleInput>,
}

/// A file that went into a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleInput {
    /// Its real path.
    pub path: Utf8PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: BlobDigest,
}

/// A package that is not delivered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// The rule that it breaks.
    pub rule: &'static Rule,
    /// Why: a sentence that names the library's file and line where they are known, and no path of the machine.
    pub reason: String,
}

/// Why a bundle stops half-way.
enum Stop {
    Skip(Skip),
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn skip(rule: &'static Rule, reason: impl Into<String>) -> Stop {
    Stop::Skip(Skip {
        rule,
        reason: reason.into(),
    })
}

/// The pinned bundler.
#[derive(Debug, Clone)]
pub struct Bundler {
    binary: PathBuf,
    judge: Judge,
}

impl Bundler {
    /// Finds the pinned esbuild. `program` is the `packferry` executable, which judges in processes of its own.
    ///
    /// # Errors
    ///
    /// A fault that says what to install where it is not found.
    pub fn locate(program: &Path) -> Result<Self, Fault> {
        Ok(Self {
            binary: binary::locate()?,
            judge: Judge::new(program),
        })
    }

    /// Bundles the package `npm` as the pack in `pack_dir` resolves it, takes the paths out, and scans the result.
    ///
    /// # Errors
    ///
    /// A fault where esbuild cannot be run or its output cannot be read. What is wrong with the package is a [`Skip`].
    pub fn bundle(&self, pack_dir: &Path, npm: &str) -> Result<Result<Bundled, Skip>, Fault> {
        match self.try_bundle(pack_dir, npm) {
            Ok(bundled) => Ok(Ok(bundled)),
            Err(Stop::Skip(skip)) => Ok(Err(skip)),
            Err(Stop::Fault(fault)) => Err(fault),
        }
    }

    fn try_bundle(&self, pack_dir: &Path, npm: &str) -> Result<Bundled, Stop> {
        let mut origins = Origins::default();
        let pack_dir = real_path(pack_dir)?;
        let output = self.run(&pack_dir, npm, &mut origins)?;
        let metafile = read_metafile(&output)?;
        refuse_builtins(&metafile, &mut origins)?;
        let (npm_version, inputs) = (resolved_version(&metafile, &mut origins), inputs(&metafile)?);
        let stage = stage(&pack_dir, &metafile, &mut origins)?;
        let (output, metafile) = match &stage {
            Some(stage) => {
                let output = self.run(&stage.pack_dir, npm, &mut origins)?;
                let metafile = read_metafile(&output)?;
                (output, metafile)
            }
            None => (output, metafile),
        };
        let (rewritten, verdict) = self.judge(&output, &metafile, &mut origins)?;
        let mut places = Places::new(&output, &rewritten, &mut origins);
        let accepted = match verdict {
            Verdict::Accepted(accepted) => accepted,
            Verdict::Rejected(finding) => {
                let place = places.describe(finding.offset)?;
                return Err(rejected(&format!("{} ({place})", finding.what)));
            }
            Verdict::Forbidden(findings) => {
                let named = named_globals(&findings, &mut places)?.join(", ");
                let reason = format!("It uses what the guest lacks: {named}.");
                return Err(skip(&diagnostics::NPM_MODULE_FORBIDDEN_GLOBAL, reason));
            }
        };
        let detected = named_globals(&accepted.detected, &mut places)?;
        let warnings = detected
            .iter()
            .map(|named| format!("It looks for {named} and will not find it in the guest."))
            .collect();
        Ok(Bundled {
            npm_version,
            inputs,
            exports: accepted.exports,
            source: rewritten.source,
            warnings,
        })
    }

    /// Bundles with the default export, and without it where that is what fails.
    fn run(&self, pack_dir: &Utf8Path, npm: &str, origins: &mut Origins) -> Result<Output, Stop> {
        let name = serde_json::Value::from(npm);
        let names = format!("export * from {name};\n");
        let with_default = format!("{names}export {{ default }} from {name};\n");
        match esbuild::run(&self.binary, pack_dir.as_std_path(), &with_default)? {
            Run::Done(output) => return Ok(output),
            Run::Failed(log) => {
                if let Some(stop) = unresolved(&log, npm, origins) {
                    return Err(stop);
                }
            }
            Run::Broken(how) => return Err(broken(how)),
        }
        match esbuild::run(&self.binary, pack_dir.as_std_path(), &names)? {
            Run::Done(output) => Ok(output),
            Run::Failed(log) => Err(unresolved(&log, npm, origins).unwrap_or_else(|| failed(&log, origins))),
            Run::Broken(how) => Err(broken(how)),
        }
    }

    /// Takes the paths out and scans.
    fn judge(&self, output: &Output, metafile: &Metafile, origins: &mut Origins) -> Result<(Rewritten, Verdict), Stop> {
        let over = format!("over {} bytes", PACK_LIMITS.npm_bytes);
        let source = output.bundle()?.ok_or_else(|| too_large(&over))?;
        let labels = metafile.inputs.keys().map(|key| (key.clone(), origins.label(key)));
        match self.judge.judge(source, labels.collect())? {
            Judgement::Read(rewritten, verdict) => Ok((rewritten, verdict)),
            Judgement::TooLarge(length) => Err(too_large(&format!("{length} bytes"))),
            Judgement::Unreadable(why) => Err(rejected(&why)),
        }
    }
}

fn real_path(pack_dir: &Path) -> Result<Utf8PathBuf, Stop> {
    let real = pack_dir
        .canonicalize()
        .map_err(|error| Fault::new(format!("a pack's folder cannot be opened: {error}")))?;
    Utf8PathBuf::from_path_buf(real).map_err(|_| {
        let reason = "The path of the pack's folder is not UTF-8.";
        skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, reason)
    })
}

fn broken(how: &str) -> Stop {
    skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, format!("The bundler {how}."))
}

fn too_large(size: &str) -> Stop {
    let reason = format!("The bundle has {size}; {} are allowed.", PACK_LIMITS.npm_bytes);
    skip(&diagnostics::NPM_MODULE_TOO_LARGE, reason)
}

fn rejected(what: &str) -> Stop {
    skip(&diagnostics::NPM_MODULE_SCAN_REJECTED, format!("The bundle {what}."))
}

fn builtin_import(name: &str, place: &str) -> Stop {
    let reason = format!("It imports {name:?}, which is a Node builtin ({place}).");
    skip(&diagnostics::NPM_MODULE_BUILTIN_IMPORT, reason)
}

/// The skip for an import that leads nowhere, if a log has one. Builtins come first, then what stands first by its place.
fn unresolved(log: &str, npm: &str, origins: &mut Origins) -> Option<Stop> {
    let errors = log::errors(log);
    let mut found: Vec<_> = errors
        .iter()
        .filter_map(|error| Some((error.unresolved()?, describe_place(error.place, origins))))
        .map(|(name, place)| (!is_builtin(name), place, name))
        .collect();
    found.sort_unstable();
    let (_, place, name) = found.first()?;
    if is_builtin(name) {
        return Some(builtin_import(name, place));
    }
    let reason = if *name == npm && place.starts_with(ENTRY_NAME) {
        format!("The package {npm:?} is not installed, or has no entry to import.")
    } else {
        format!("It imports {name:?}, which leads nowhere ({place}).")
    };
    Some(skip(&diagnostics::NPM_MODULE_UNRESOLVED, reason))
}

fn failed(log: &str, origins: &mut Origins) -> Stop {
    let errors = log::errors(log);
    let mut described: Vec<String> = errors
        .iter()
        .map(|error| {
            let text = without_paths_of_the_machine(error.text, origins);
            format!("{text} ({})", describe_place(error.place, origins))
        })
        .collect();
    described.sort_unstable();
    let reason = match described.first() {
        Some(first) => format!("The bundler fails: {first}."),
        None => "The bundler fails and does not say why.".to_owned(),
    };
    skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, reason)
}

fn describe_place(place: Option<(&str, u32)>, origins: &mut Origins) -> String {
    match place {
        Some((file, line)) => format!("{}:{line}", origins.label(file)),
        None => "no place given".to_owned(),
    }
}

/// The bundler's sentence, with labels for the paths of the machine: they stand in quotes, or behind a colon at the end.
fn without_paths_of_the_machine(text: &str, origins: &mut Origins) -> String {
    let label = |part: &str, origins: &mut Origins| match Utf8Path::new(part).is_absolute() {
        true => origins.label(part),
        false => part.to_owned(),
    };
    if let Some((before, last)) = text.rsplit_once(": ") {
        return format!("{before}: {}", label(last, origins));
    }
    let parts = text.split('"').map(|part| label(part, origins));
    parts.collect::<Vec<_>>().join("\"")
}

fn read_metafile(output: &Output) -> Result<Metafile, Stop> {
    let text = output.metafile()?.ok_or_else(|| too_large("too many modules"))?;
    let metafile = serde_json::from_str(&text);
    Ok(metafile.map_err(|error| Fault::new(format!("esbuild's metafile does not parse: {error}")))?)
}

fn refuse_builtins(metafile: &Metafile, origins: &mut Origins) -> Result<(), Stop> {
    let imports = metafile.builtin_imports();
    let first = imports.map(|(importer, name)| (origins.label(importer), name)).min();
    first.map_or(Ok(()), |(importer, name)| Err(builtin_import(name, &importer)))
}

/// Each global in quotes with its place.
fn named_globals(findings: &[Finding], places: &mut Places<'_>) -> Result<Vec<String>, Stop> {
    let named = findings.iter().map(|finding| {
        let place = places.describe(finding.offset)?;
        Ok(format!("{:?} ({place})", finding.what))
    });
    named.collect()
}

/// The version of the package that the synthetic entry imports.
fn resolved_version(metafile: &Metafile, origins: &mut Origins) -> Option<String> {
    let (_, entry) = metafile.inputs.iter().find(|(key, _)| key.ends_with(ENTRY_NAME))?;
    let (file, _) = file_of_key(&entry.imports.first()?.path)?;
    origins.package_of(file).version
}

fn inputs(metafile: &Metafile) -> Result<Vec<BundleInput>, Stop> {
    let mut files: Vec<&Utf8Path> = metafile
        .inputs
        .keys()
        .filter_map(|key| Some(file_of_key(key)?.0))
        .collect();
    files.sort_unstable();
    files.dedup();
    let hashed = files.into_iter().map(|path| {
        let bytes =
            std::fs::read(path).map_err(|error| Fault::new(format!("a bundled file cannot be read again: {error}")))?;
        Ok(BundleInput {
            path: path.to_owned(),
            sha256: BlobDigest::of(&bytes),
        })
    });
    hashed.collect()
}
