//! `packferry run`: a script in the native guest, with modules of a release declared. The headless way to see what an import does.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use camino::Utf8Path;
use packferry_core::closure;
use packferry_core::digest::GraphDigest;
use packferry_core::id::Specifier;
use packferry_core::key::StorageKey;
use packferry_guest::{Graph, Limits, imported_names};
use serde_json::{Value, json};

use crate::built::{Built, is_release};
use crate::cache::Access;
use crate::cli::RunArgs;
use crate::commands;
use crate::fault::Fault;
use crate::finding::Finding;
use crate::guest_process::{Failure, GuestProcess, ScriptOutcome};
use crate::progress::Progress;
use crate::release::Release;
use crate::report;

/// What a release says about a specifier.
enum Found {
    /// It is delivered.
    Module(GraphDigest),
    /// It is declared and not delivered; the reason's code.
    Unavailable(String),
    /// No pack declares it.
    Missing,
}

/// `packferry run`: runs a file and prints what it returns as JSON. False where the script fails.
///
/// # Errors
/// A [`Fault`] of ours or of the command line.
pub fn run_file(args: &RunArgs) -> Result<bool, Fault> {
    let code = read_script(&args.file)?;
    let program = std::env::current_exe();
    let program = program.map_err(|error| Fault::reading("the packferry executable", &error))?;
    let built = built(args, &wanted(&code, &args.package))?;
    let outcome = run(&code, &built.release, &args.package, &GuestProcess::new(&program))?;
    if let Err(failure) = &outcome.result
        && failure.fault
    {
        return Err(Fault::new(failure.message.clone()));
    }
    if args.json {
        report::print_json(&to_json(&outcome));
        return Ok(outcome.result.is_ok());
    }
    report::print_script_output(&outcome.output, outcome.output_dropped);
    match &outcome.result {
        Ok(value) => report::print_json(value),
        Err(failure) => report::print_script_failure(&args.file, &failure_text(failure), &failure.stack),
    }
    Ok(outcome.result.is_ok())
}

/// The report of `--json`.
fn to_json(outcome: &ScriptOutcome) -> Value {
    let mut report = json!({ "output": outcome.output, "outputDropped": outcome.output_dropped });
    match &outcome.result {
        Ok(value) => report["value"] = value.clone(),
        Err(failure) => {
            report["error"] = json!({ "message": failure.message, "pack": failure.pack, "stack": failure.stack });
        }
    }
    report
}

/// The release that `--packs` names, or one built from the packs there. Findings about packs that the run wants are shown.
fn built(args: &RunArgs, wanted: &[String]) -> Result<Built, Fault> {
    if let [dir] = args.packs.as_slice()
        && is_release(dir)
    {
        return Built::read(dir);
    }
    let cache = commands::cache(args.cache, Access::Full);
    let built = Built::of(&args.packs, args.config.as_deref(), &cache, &Progress::new(args.json))?;
    commands::print_trouble(&cache);
    let wanted: Vec<Specifier> = wanted.iter().filter_map(|name| Specifier::parse(name).ok()).collect();
    let concerns = |finding: &&Finding| {
        wanted
            .iter()
            .any(|name| finding.about.pack.as_deref() == Some(name.pack()))
    };
    report::print_findings(built.findings.iter().filter(concerns));
    Ok(built)
}

/// The specifiers that a run asks for.
fn wanted(code: &str, packages: &[String]) -> Vec<String> {
    if packages.is_empty() {
        imported_names(code).unwrap_or_default()
    } else {
        packages.to_vec()
    }
}

/// Runs `code` in a guest of its own process. Declares `packages`, or, where none is given, those modules of the release that the
/// code imports by name.
///
/// # Errors
/// A [`Fault`] where a package of `packages` is not delivered, the release is damaged, or the guest cannot be run.
pub fn run(code: &str, release: &Release, packages: &[String], guest: &GuestProcess) -> Result<ScriptOutcome, Fault> {
    let graphs = match packages {
        [] => imported(code, release)?,
        packages => packages
            .iter()
            .map(|name| declared(name, release))
            .collect::<Result<_, _>>()?,
    };
    guest.run(code, &graphs)
}

/// Reads a script.
///
/// # Errors
/// A [`Fault`] where it cannot be read, is too long, or is no UTF-8.
pub fn read_script(path: &Utf8Path) -> Result<String, Fault> {
    let most = Limits::default().script_bytes;
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| Fault::reading(path, &error))?;
    if bytes.len() > most {
        return Err(Fault::new(format!("cannot run {path}: a script may have {most} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Fault::new(format!("cannot run {path}: it is not UTF-8")))
}

/// The sentence for a script that failed: what happened, and in which pack.
#[must_use]
pub fn failure_text(failure: &Failure) -> String {
    match &failure.pack {
        Some(pack) => format!("{pack}: {}", failure.message),
        None => failure.message.clone(),
    }
}

fn imported(code: &str, release: &Release) -> Result<Vec<Graph>, Fault> {
    // Code that does not parse declares nothing: the guest says what is wrong with it.
    let names = imported_names(code).unwrap_or_default();
    let mut graphs = Vec::new();
    for name in &names {
        match find(name, release) {
            Found::Module(digest) => graphs.push(read_graph(digest, release)?),
            Found::Unavailable(code) => return Err(unavailable(name, &code)),
            Found::Missing => {}
        }
    }
    Ok(graphs)
}

fn declared(name: &str, release: &Release) -> Result<Graph, Fault> {
    match find(name, release) {
        Found::Module(digest) => read_graph(digest, release),
        Found::Unavailable(code) => Err(unavailable(name, &code)),
        Found::Missing => Err(Fault::new(format!("Sandbox module {name} is not installed."))
            .hint("A module is named by its pack, or by the pack and its own name: @scope/pack/module.")),
    }
}

fn unavailable(name: &str, code: &str) -> Fault {
    Fault::new(format!("Sandbox module {name} is not available ({code})."))
        .hint("The build's report says more about it.")
}

fn find(name: &str, release: &Release) -> Found {
    for pack in &release.packs {
        if let Some(module) = pack.modules.iter().find(|module| module.specifier.as_str() == name) {
            return Found::Module(module.graph_digest);
        }
        if let Some(row) = pack.unavailable.iter().find(|row| row.specifier.as_str() == name) {
            return Found::Unavailable(row.code.clone());
        }
    }
    Found::Missing
}

fn read_graph(digest: GraphDigest, release: &Release) -> Result<Graph, Fault> {
    let frame = release.object(&StorageKey::Closure(digest))?;
    let damaged = |error: &dyn std::fmt::Display| Fault::new(format!("closure {digest} is damaged: {error}"));
    let (record, bodies) = closure::decode(&frame, digest).map_err(|error| damaged(&error))?;
    Graph::new(record, bodies.into_iter().map(Arc::from).collect()).map_err(|error| damaged(&error))
}
