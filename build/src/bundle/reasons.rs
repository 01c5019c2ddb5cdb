//! Why a package is not delivered, in words.

use camino::Utf8Path;
use packferry_core::limits::PACK_LIMITS;

use super::Skip;
use super::builtins::is_builtin;
use super::esbuild::ENTRY_NAME;
use super::log;
use super::metafile::Metafile;
use super::origin::Origins;
use super::places::Places;
use crate::diagnostics::{self, Rule};
use crate::fault::Fault;
use crate::scan::Finding;
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
    let reason = format!("It imports {name:?}, which is a Node builtin ({place}).");
    skip(&diagnostics::NPM_MODULE_BUILTIN_IMPORT, &reason)
}

/// The skip for an import that leads nowhere, if a log has one. Builtins come first, then what stands first by its place.
pub(super) fn unresolved(log: &str, npm: &str, origins: &mut Origins) -> Option<Stop> {
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
    Some(skip(&diagnostics::NPM_MODULE_UNRESOLVED, &reason))
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

pub(super) fn refuse_builtins(metafile: &Metafile, origins: &mut Origins) -> Result<(), Stop> {
    let imports = metafile.builtin_imports();
    let first = imports.map(|(importer, name)| (origins.label(importer), name)).min();
    first.map_or(Ok(()), |(importer, name)| Err(builtin_import(name, &importer)))
}

/// Each global in quotes with its place.
pub(super) fn named_globals(findings: &[Finding], places: &mut Places<'_>) -> Result<Vec<String>, Stop> {
    let named = findings.iter().map(|finding| {
        let place = places.describe(finding.offset)?;
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
