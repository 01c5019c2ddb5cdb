//! Why a package is not delivered, in words.

use camino::Utf8Path;
use packferry_core::limits::PACK_LIMITS;

use super::Skip;
use super::builtins::is_builtin;
use super::esbuild::ENTRY_NAME;
use super::log;
use super::metafile::Metafile;
use super::origin::Origins;
use super::places::{Places, line_in_library};
use super::survey::Readable;
use crate::diagnostics::{self, Rule};
use crate::fault::Fault;
use crate::judge::Judge;
use crate::library_lines::Wanted;
use crate::scan::{Accepted, Finding};
use crate::text::{LINE_CHARS, printable};

/// Why a bundle stops half-way.
pub(super) enum Stop {
    Skip(Skip),
    Fault(Fault),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub(super) fn skip(rule: &'static Rule, reason: &str) -> Stop {
    let reason = on_one_line(reason);
    Stop::Skip(Skip { rule, reason })
}

/// A sentence on one line, fit for a terminal: names, versions and paths are a stranger's.
pub(super) fn on_one_line(text: &str) -> String {
    printable(&text.replace('\n', "\u{fffd}"), LINE_CHARS)
}

pub(super) fn broken(how: &str) -> Stop {
    skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, &format!("The bundler {how}."))
}

pub(super) fn escapes(importer: &str, says: &str, origins: &mut Origins) -> Stop {
    let place = origins.label(importer);
    let reason = format!("It imports {says:?}, which leads out of its package ({place}).");
    skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, &reason)
}

/// The skip for a file that esbuild was not let read, if a log names one.
pub(super) fn blocked(log: &str, readable: &Readable, origins: &mut Origins) -> Option<Stop> {
    let refused = readable.refused.iter();
    let named = refused.filter_map(|(path, refusal)| Some((path.to_str()?, refusal)));
    let (path, refusal) = named
        .filter(|(path, _)| log.contains(path))
        .max_by_key(|(path, _)| path.len())?;
    let label = origins.label_of_file(Utf8Path::new(path));
    let rule = if refusal.is_large {
        &diagnostics::NPM_MODULE_TOO_LARGE
    } else {
        &diagnostics::NPM_MODULE_BUNDLE_FAILED
    };
    Some(skip(rule, &format!("It imports {label}, which is {}.", refusal.what)))
}

pub(super) fn too_large(size: &str) -> Stop {
    let reason = format!("The bundle has {size}; {} bytes are allowed.", PACK_LIMITS.npm_bytes);
    skip(&diagnostics::NPM_MODULE_TOO_LARGE, &reason)
}

pub(super) fn rejected(what: &str) -> Stop {
    skip(&diagnostics::NPM_MODULE_SCAN_REJECTED, &format!("The bundle {what}."))
}

pub(super) fn forbidden(named: &[String]) -> Stop {
    let reason = format!("It uses what the guest lacks: {}.", named.join(", "));
    skip(&diagnostics::NPM_MODULE_FORBIDDEN_GLOBAL, &reason)
}

fn builtin_import(name: &str, place: &str) -> Stop {
    let reason = match place.starts_with(ENTRY_NAME) {
        true => format!("{name:?} is the name of a Node builtin, which every import of it means."),
        false => format!("It imports {name:?}, which is a Node builtin ({place})."),
    };
    skip(&diagnostics::NPM_MODULE_BUILTIN_IMPORT, &reason)
}

/// The skip for an import that leads nowhere, if a log has one. Builtins come first, then what stands first by its place.
pub(super) fn unresolved(log: &str, pack_dir: &Utf8Path, npm: &str, origins: &mut Origins) -> Option<Stop> {
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
    let reason = match *name == npm && place.starts_with(ENTRY_NAME) {
        false => format!("It imports {name:?}, which leads nowhere ({place})."),
        true if is_installed(pack_dir, npm) => format!(
            "The package {npm:?} is installed and has no entry: neither \"exports\" with the conditions import, module and \
             default nor \"module\", \"main\" or index.js leads to a file."
        ),
        true => format!("The package {npm:?} is not installed."),
    };
    Some(skip(&diagnostics::NPM_MODULE_UNRESOLVED, &reason))
}

/// Whether an import of `npm` from the pack's folder finds a folder of that name.
fn is_installed(pack_dir: &Utf8Path, npm: &str) -> bool {
    let mut folders = pack_dir.ancestors();
    folders.any(|folder| folder.join("node_modules").join(npm).is_dir())
}

pub(super) fn failed(log: &str, origins: &mut Origins) -> Stop {
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
    skip(&diagnostics::NPM_MODULE_BUNDLE_FAILED, &reason)
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

/// Refuses a bundle for the first of its imports of Node builtins, by the importer's label.
pub(super) fn refuse_builtins(metafile: &Metafile, judge: &Judge, origins: &mut Origins) -> Result<(), Stop> {
    let imports = metafile.builtin_imports();
    let first = imports
        .map(|(importer, name)| (origins.label(importer), name, importer))
        .min();
    let Some((label, name, importer)) = first else {
        return Ok(());
    };
    let place = match line_in_library(importer, Wanted::Import(name.to_owned()), judge)? {
        Some(line) => format!("{label}:{line}"),
        None => label,
    };
    Err(builtin_import(name, &place))
}

/// What may not work of a bundle that is admitted, a sentence each. `named` puts each global in quotes with its place.
pub(super) fn warnings(
    accepted: &Accepted,
    mut named: impl FnMut(&[Finding]) -> Result<Vec<String>, Stop>,
) -> Result<Vec<String>, Stop> {
    let detected = named(&accepted.detected)?;
    let detected = detected
        .into_iter()
        .map(|named| format!("It looks for {named} and will not find it in the guest."));
    let mut warnings: Vec<String> = detected.collect();
    let others = [
        (&accepted.wanted, "uses what not every guest has"),
        (
            &accepted.undeclared,
            "assigns to what nothing declares, which throws in a module",
        ),
    ];
    for (findings, what) in others {
        if !findings.is_empty() {
            warnings.push(format!("It {what}: {}.", named(findings)?.join(", ")));
        }
    }
    if accepted.exports.is_empty() {
        warnings.push("It exports nothing.".to_owned());
    }
    Ok(warnings.iter().map(|warning| on_one_line(warning)).collect())
}

/// Each global in quotes with its place.
pub(super) fn named_globals(findings: &[Finding], places: &mut Places<'_>) -> Result<Vec<String>, Stop> {
    let named = findings.iter().map(|finding| {
        let place = places.describe(finding.offset, Some(&Wanted::Global(finding.what.clone())))?;
        Ok(format!("{:?} ({place})", finding.what))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_sentences_on_one_line() {
        assert_eq!(on_one_line("a\u{1b}[31m\nb é"), "a\u{fffd}[31m\u{fffd}b é");
        assert_eq!(on_one_line(&"x".repeat(3_000)).chars().count(), 2_001);
    }
}
