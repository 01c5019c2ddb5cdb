//! `packferry watch`: rebuilds, checks and republishes locally on every save. A broken save leaves the last good release answering.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::manifest::PackEntry;

use crate::cache::{Access, Cache};
use crate::cli::WatchArgs;
use crate::commands;
use crate::fault::Fault;
use crate::local_kv::LocalKv;
use crate::pipeline;
use crate::progress::Progress;
use crate::publish::publish;
use crate::release::Release;
use crate::report;

/// How often the files are looked at. Polling works on every file system, network folders and containers included.
const INTERVAL: Duration = Duration::from_millis(300);
/// How many files are looked at: a guard against watching a whole disk.
const FILES: usize = 50_000;

/// What follows a broken save.
const WAITING: &str = "Not published; the last good release goes on answering. Waiting for the next save.";

/// Builds and publishes `args.roots` now and after every change, until it is interrupted.
///
/// # Errors
/// A [`Fault`] of ours or of the command line, until the first release answers; never for a pack at fault.
pub fn watch(args: &WatchArgs) -> Result<(), Fault> {
    let mut kv = LocalKv::open(args.persist_to.as_deref())?;
    let cache = commands::cache(args.cache, Access::Full);
    commands::print_trouble(&cache);
    let mut seen = snapshot(&args.roots, &args.out)?;
    let mut served = Served::new();
    publish_if_good(args, &cache, &mut kv, &mut served)?;
    loop {
        while snapshot(&args.roots, &args.out)? == seen {
            std::thread::sleep(INTERVAL);
        }
        // A save is often several writes; take them together.
        std::thread::sleep(INTERVAL / 3);
        seen = snapshot(&args.roots, &args.out)?;
        // A folder that is gone for a moment, as when a branch is switched, is as good as a broken save.
        if let Err(fault) = publish_if_good(args, &cache, &mut kv, &mut served) {
            report::print_fault(&fault);
            report::print_line(WAITING);
        }
    }
}

/// Specifier to graph digest.
type Served = BTreeMap<String, String>;

/// Publishes what is there, unless it is broken; `served` is what answers.
fn publish_if_good(args: &WatchArgs, cache: &Cache, kv: &mut LocalKv, served: &mut Served) -> Result<(), Fault> {
    let progress = Progress::new(true);
    let outcome = pipeline::build(
        &commands::roots(&args.roots)?,
        args.config.as_deref(),
        &args.out,
        cache,
        &progress,
    )?;
    report::print_findings(&outcome.findings);
    if !outcome.report.withheld.is_empty() {
        report::print_line(WAITING);
        return Ok(());
    }
    if outcome.packs == 0 && !served.is_empty() {
        report::print_line("No pack is left there.");
        report::print_line(WAITING);
        return Ok(());
    }
    let release = Release::read(&args.out)?;
    publish(&release, &args.channel, kv, &progress)?;
    let now = digests(&release.packs);
    for (specifier, digest) in now
        .iter()
        .filter(|(specifier, digest)| served.get(*specifier) != Some(digest))
    {
        report::print_line(&format!("{specifier}  {digest}"));
    }
    for specifier in served.keys().filter(|specifier| !now.contains_key(*specifier)) {
        report::print_line(&format!("{specifier}  gone"));
    }
    *served = now;
    Ok(())
}

fn digests(packs: &[PackEntry]) -> Served {
    let modules = packs.iter().flat_map(|pack| &pack.modules);
    modules
        .map(|module| (module.specifier.to_string(), module.graph_digest.to_string()))
        .collect()
}

/// Path, length and time of change of every file under `paths`, installed dependencies and the release `out` left out.
fn snapshot(paths: &[Utf8PathBuf], out: &Utf8Path) -> Result<BTreeSet<(PathBuf, u64, Option<SystemTime>)>, Fault> {
    let out = out.as_std_path().canonicalize().ok();
    let mut files = BTreeSet::new();
    let mut open: Vec<PathBuf> = paths.iter().map(|path| path.as_std_path().to_owned()).collect();
    while let Some(folder) = open.pop() {
        // What vanishes between two looks is a change, not a fault.
        let Ok(entries) = folder.read_dir() else { continue };
        for entry in entries.flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let hidden = name
                .to_str()
                .is_some_and(|name| name.starts_with('.') || name == "node_modules");
            if kind.is_dir() && out.is_some() && entry.path().canonicalize().ok() == out {
                continue;
            }
            if kind.is_dir() && !hidden {
                open.push(entry.path());
            } else if let Ok(found) = entry.metadata() {
                files.insert((entry.path(), found.len(), found.modified().ok()));
            }
        }
        if files.len() > FILES {
            return Err(Fault::new(format!("more than {FILES} files to watch")).hint("Name the pack's own directory."));
        }
    }
    Ok(files)
}
