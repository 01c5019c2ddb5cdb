//! npm entries: one package becomes one ECMAScript module, bundled by the pinned esbuild binary, without a path of the machine
//! in it, scanned for what the guest lacks. The only place that knows esbuild.

mod again;
mod binary;
mod builtins;
mod confine;
mod confined;
mod esbuild;
mod grounds;
mod log;
mod metafile;
mod origin;
mod places;
mod reasons;
mod stage;
mod survey;

use std::collections::BTreeSet;
use std::env;
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::digest::BlobDigest;
use packferry_core::limits::PACK_LIMITS;
use serde::{Deserialize, Serialize};

pub use self::again::judge_again;
pub use self::confined::become_bundler_if_asked;
use self::esbuild::{Esbuild, Output, Run};
pub use self::grounds::Grounds;
use self::grounds::{Question, questions};
use self::metafile::Metafile;
use self::origin::{Origins, file_of_key};
use self::places::Places;
use self::reasons::{
    Stop, blocked, broken, escapes, failed, forbidden, named_globals, refuse_builtins, rejected, skip, too_large,
    unresolved, warnings,
};
use self::stage::{Stage, stage};
use self::survey::{Readable, Surveys};
use crate::bundle_paths::Rewritten;
use crate::diagnostics::{self, Rule};
use crate::fault::Fault;
use crate::judge::{Judge, Judgement};
use crate::library_lines::Wanted;
use crate::scan::{Accepted, Verdict};

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

/// SHA-256 of the binary that the operator names in place of the pinned one, if one is named and can be read: part of what decides a
/// bundle.
#[must_use]
pub fn named_binary() -> Option<BlobDigest> {
    let bytes = std::fs::read(env::var_os(binary::OVERRIDE)?).ok()?;
    Some(BlobDigest::of(&bytes))
}

/// A package that was bundled and may be delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundled {
    /// The module, as it is delivered.
    pub source: String,
    /// The resolved package's version, where it has one.
    pub npm_version: Option<String>,
    /// The names it exports, sorted by UTF-16 code units.
    pub exports: Vec<String>,
    /// What may not work in the guest, a sentence each.
    pub warnings: Vec<String>,
    /// The files that went into it, sorted by path; none of a bundle that was staged.
    pub inputs: Vec<BundleInput>,
}

/// A file that went into a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleInput {
    /// Its real path.
    pub path: Utf8PathBuf,
    /// SHA-256 of its bytes.
    pub sha256: BlobDigest,
}

/// A package that is not delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    /// The rule that it breaks.
    #[serde(with = "crate::diagnostics::by_code")]
    pub rule: &'static Rule,
    /// Why: a sentence that names the library's file and line where they are known, and no path of the machine.
    pub reason: String,
}

/// What became of a package, and what that rests on.
#[derive(Debug, Serialize, Deserialize)]
pub struct Proven {
    /// What became of it.
    pub outcome: Result<Bundled, Skip>,
    /// What it rests on. None where that is not known, or where the outcome may be another one with the same files.
    pub grounds: Option<Grounds>,
}

impl Proven {
    /// Whether bundling would give the same again.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.grounds.as_ref().is_some_and(Grounds::hold)
    }
}

/// The pinned bundler.
#[derive(Debug, Clone)]
pub struct Bundler {
    esbuild: Esbuild,
    surveys: Surveys,
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
            esbuild: Esbuild::new(binary::locate()?, program)?,
            surveys: Surveys::default(),
            judge: Judge::new(program),
        })
    }

    /// Bundles the package `npm` as the pack in `pack_dir` resolves it, takes the paths out, and scans the result.
    ///
    /// # Errors
    ///
    /// A fault where esbuild cannot be run or its output cannot be read. What is wrong with the package is a [`Skip`].
    pub fn bundle(&self, pack_dir: &Path, npm: &str) -> Result<Result<Bundled, Skip>, Fault> {
        self.bundle_on(&mut Course::default(), pack_dir, npm)
    }

    /// Bundles `npm` as [`Bundler::bundle`] does, and says what the outcome rests on: questions about the disk are asked before and
    /// after, and what they were about must not have changed in between.
    ///
    /// # Errors
    ///
    /// As [`Bundler::bundle`].
    pub fn bundle_and_prove(&self, pack_dir: &Path, npm: &str) -> Result<Proven, Fault> {
        let asked = self.survey(pack_dir, npm)?;
        let before = asked.as_ref().and_then(Grounds::ask);
        let mut course = Course::default();
        let outcome = self.bundle_on(&mut course, pack_dir, npm)?;
        let seen = match (&before, course.questions) {
            (None, _) => None,
            (Some(_), None) => self.survey(pack_dir, npm)?,
            (Some(_), seen) => seen,
        };
        let grounds = before.filter(|before| {
            let complete = seen.is_some_and(|seen| before.answer(&seen));
            complete && !course.unsettled && before.hold()
        });
        Ok(Proven { outcome, grounds })
    }

    /// The questions that decide what bundling `npm` gives; None where that cannot be found out.
    fn survey(&self, pack_dir: &Path, npm: &str) -> Result<Option<BTreeSet<Question>>, Fault> {
        let mut course = Course::default();
        let made = real_path(pack_dir).and_then(|real| {
            let readable = self.surveys.readable_from(real.as_std_path());
            let made = self.run(&real, &readable, npm, &[], &mut course)?;
            Ok((real, made))
        });
        let made = match (made, real_path(pack_dir)) {
            (Err(Stop::Fault(fault)), _) => return Err(fault),
            (Ok((real, made)), _) => Some((real, made.metafile)),
            // The bundler says what it read only where it does not fail: without what it fails on, it reads the same.
            (Err(Stop::Skip(_)), Ok(real)) => self.without_failures(&real, npm, &course.log)?.map(|read| (real, read)),
            (Err(Stop::Skip(_)), Err(_)) => None,
        };
        Ok(made.and_then(|(real, metafile)| questions(&real, &metafile, &mut course.origins)))
    }

    /// What the bundler reads of a package that it fails on, where it fails because imports lead nowhere: these are left out.
    fn without_failures(&self, pack_dir: &Utf8Path, npm: &str, log: &str) -> Result<Option<Metafile>, Fault> {
        let Some(left_out) = log::failing_imports(log) else {
            return Ok(None);
        };
        let entry = format!("export * from {};\n", serde_json::Value::from(npm));
        let readable = self.surveys.readable_from(pack_dir.as_std_path());
        let run = self.esbuild.run(pack_dir.as_std_path(), &readable, &entry, &left_out)?;
        let Run::Done(output) = run else {
            return Ok(None);
        };
        let Ok(Made { mut metafile, output }) = Made::of(output) else {
            return Ok(None);
        };
        metafile.complete_external_paths(output.folder());
        // What is left out by a package's name is left out under all paths in it.
        let complete = metafile.external_imports().all(|name| left_out.contains(name));
        Ok(complete.then_some(metafile))
    }

    fn bundle_on(&self, course: &mut Course, pack_dir: &Path, npm: &str) -> Result<Result<Bundled, Skip>, Fault> {
        match self.try_bundle(course, pack_dir, npm) {
            Ok(bundled) => Ok(Ok(bundled)),
            Err(Stop::Skip(skip)) => Ok(Err(skip)),
            Err(Stop::Fault(fault)) => Err(fault),
        }
    }

    fn try_bundle(&self, course: &mut Course, pack_dir: &Path, npm: &str) -> Result<Bundled, Stop> {
        let made = self.make(course, pack_dir, npm)?;
        let mut places = Places::new(&made.last, &made.rewritten, &self.judge, &mut course.origins);
        let accepted = accepted(made.verdict, &mut places)?;
        Ok(Bundled {
            warnings: warnings(&accepted, |findings| named_globals(findings, &mut places))?,
            npm_version: made.npm_version,
            inputs: made.inputs,
            exports: accepted.exports,
            source: made.rewritten.source,
        })
    }

    /// Where in the library the first of these offsets in its bundle `source` is that the bundler did not write: `‹file›:‹line›`.
    /// Bundles once more. None where none is, or where that gives another bundle.
    ///
    /// # Errors
    ///
    /// As [`Bundler::bundle`].
    pub fn place_in_library(
        &self,
        pack_dir: &Path,
        npm: &str,
        source: &str,
        offsets: &[usize],
    ) -> Result<Option<String>, Fault> {
        let mut course = Course::default();
        let described = self.make(&mut course, pack_dir, npm).and_then(|made| {
            let mut places = Places::new(&made.last, &made.rewritten, &self.judge, &mut course.origins);
            let mut offsets = offsets.iter().filter(|offset| places.is_in_library(**offset));
            let first = offsets.next().filter(|_| made.rewritten.source == source);
            first.map(|offset| places.describe(*offset, None)).transpose()
        });
        match described {
            Ok(place) => Ok(place),
            Err(Stop::Skip(_)) => Ok(None),
            Err(Stop::Fault(fault)) => Err(fault),
        }
    }

    /// Bundles, and reads the bundle.
    fn make(&self, course: &mut Course, pack_dir: &Path, npm: &str) -> Result<Read, Stop> {
        let pack_dir = real_path(pack_dir)?;
        let readable = self.surveys.readable_from(pack_dir.as_std_path());
        let first = self.run(&pack_dir, &readable, npm, &[], course)?;
        course.questions = questions(&pack_dir, &first.metafile, &mut course.origins);
        refuse_builtins(&first.metafile, &self.judge, &mut course.origins)?;
        if let Some((importer, says)) = confine::escape(&first.metafile, &pack_dir) {
            return Err(escapes(importer, says, &mut course.origins));
        }
        let npm_version = resolved_version(&first.metafile, &mut course.origins);
        let inputs = inputs(&first.metafile)?;
        let names = self.commonjs_names(&first, course)?;
        let stage = stage(&pack_dir, &first.metafile, &mut course.origins)?;
        let last = match &stage {
            Some(stage) => {
                let readable = self.surveys.readable_from(stage.base());
                self.run(&stage.pack_dir, &readable, npm, &names, course)?
            }
            None if names.is_empty() => first,
            None => self.run(&pack_dir, &readable, npm, &names, course)?,
        };
        let (rewritten, verdict) = self.judge(&last, course)?;
        Ok(Read {
            npm_version,
            inputs,
            last,
            rewritten,
            verdict,
            _stage: stage,
        })
    }

    /// Bundles all names of a package and its default export; without the latter where that is what fails. The names of a
    /// CommonJS package have to be given.
    fn run(
        &self,
        pack_dir: &Utf8Path,
        readable: &Readable,
        npm: &str,
        commonjs_names: &[String],
        course: &mut Course,
    ) -> Result<Made, Stop> {
        let package = serde_json::Value::from(npm);
        let (with_default, names) = match commonjs_names.join(", ").as_str() {
            "" => (
                format!("export * from {package};\nexport {{ default }} from {package};\n"),
                format!("export * from {package};\n"),
            ),
            names => (
                format!("export {{ default, {names} }} from {package};\n"),
                format!("export {{ {names} }} from {package};\n"),
            ),
        };
        let origins = &mut course.origins;
        match self
            .esbuild
            .run(pack_dir.as_std_path(), readable, &with_default, &BTreeSet::new())?
        {
            Run::Done(output) => return Made::of(output),
            Run::Failed(log) => {
                if let Some(stop) = blocked(&log, readable, origins) {
                    course.unsettled = true;
                    return Err(stop);
                }
                if let Some(stop) = unresolved(&log, pack_dir, npm, origins) {
                    course.log = log;
                    return Err(stop);
                }
            }
            Run::Broken(how) => {
                course.unsettled = true;
                return Err(broken(how));
            }
        }
        match self
            .esbuild
            .run(pack_dir.as_std_path(), readable, &names, &BTreeSet::new())?
        {
            Run::Done(output) => Made::of(output),
            Run::Failed(log) => {
                let stop = unresolved(&log, pack_dir, npm, origins).unwrap_or_else(|| failed(&log, origins));
                course.log = log;
                Err(stop)
            }
            Run::Broken(how) => {
                course.unsettled = true;
                Err(broken(how))
            }
        }
    }

    /// What a package gives besides its default export, where it is CommonJS: a bundle states its names, and `export *` finds
    /// those of ECMAScript modules only.
    fn commonjs_names(&self, made: &Made, course: &mut Course) -> Result<Vec<String>, Stop> {
        let (Some(key), Some(source)) = (made.metafile.commonjs_entry(), made.output.bundle()?) else {
            return Ok(Vec::new());
        };
        let names = self.judge.commonjs_names(source, key.to_owned())?;
        course.unsettled |= names.is_none();
        Ok(names.unwrap_or_default())
    }

    /// Takes the paths out and scans.
    fn judge(&self, made: &Made, course: &mut Course) -> Result<(Rewritten, Verdict), Stop> {
        let over = format!("over {} bytes", PACK_LIMITS.npm_bytes);
        let source = made.output.bundle()?.ok_or_else(|| too_large(&over))?;
        let keys = made.metafile.inputs.keys();
        let labels = keys.map(|key| (key.clone(), course.origins.label(key)));
        match self.judge.judge(source, labels.collect())? {
            Judgement::Read(rewritten, verdict) => Ok((rewritten, verdict)),
            Judgement::TooLarge(length) => Err(too_large(&format!("{length} bytes"))),
            Judgement::Unreadable(why) => Err(rejected(&why)),
            Judgement::Missing(why) => {
                course.unsettled = true;
                Err(rejected(&why))
            }
        }
    }
}

fn real_path(pack_dir: &Path) -> Result<Utf8PathBuf, Stop> {
    let real = pack_dir
        .canonicalize()
        .map_err(|error| Fault::reading("a pack's folder", &error))?;
    Utf8PathBuf::from_path_buf(real).map_err(|_| {
        let reason = "The path of the pack's folder is not UTF-8.";
        skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, reason)
    })
}

/// What is learnt on the way to a bundle.
#[derive(Default)]
struct Course {
    origins: Origins,
    /// The questions that decide what comes of it, once the bundler said what it read.
    questions: Option<BTreeSet<Question>>,
    /// Whether a process broke down or took too long: another time it may not.
    unsettled: bool,
    /// What the bundler printed when it failed.
    log: String,
}

/// A bundle as esbuild made it.
struct Made {
    output: Output,
    metafile: Metafile,
}

impl Made {
    fn of(output: Output) -> Result<Self, Stop> {
        let text = output.metafile()?.ok_or_else(|| too_large("too many modules"))?;
        let metafile = serde_json::from_str(&text)
            .map_err(|error| Fault::new(format!("esbuild's metafile does not parse: {error}")))?;
        Ok(Self { output, metafile })
    }
}

/// A bundle that was made and read.
struct Read {
    npm_version: Option<String>,
    inputs: Vec<BundleInput>,
    last: Made,
    rewritten: Rewritten,
    verdict: Verdict,
    /// Its places are told from the files there.
    _stage: Option<Stage>,
}

/// The end of a sentence about a bundle.
const TOO_DEEP: &str = "is nested too deeply";

fn accepted(verdict: Verdict, places: &mut Places<'_>) -> Result<Accepted, Stop> {
    match verdict {
        Verdict::Accepted(accepted) => Ok(accepted),
        Verdict::TooDeep => Err(rejected(TOO_DEEP)),
        Verdict::Rejected(finding) => {
            let place = places.describe(finding.offset, Some(&Wanted::DynamicImport))?;
            Err(rejected(&format!("{} ({place})", finding.what)))
        }
        Verdict::Forbidden(findings) => Err(forbidden(&named_globals(&findings, places)?)),
    }
}

/// The version of the package that the synthetic entry imports.
fn resolved_version(metafile: &Metafile, origins: &mut Origins) -> Option<String> {
    let (file, _) = file_of_key(metafile.package_entry()?)?;
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
        let bytes = std::fs::read(path).map_err(|error| Fault::reading("a bundled file again", &error))?;
        Ok(BundleInput {
            path: path.to_owned(),
            sha256: BlobDigest::of(&bytes),
        })
    });
    hashed.collect()
}
