//! What each command does: read arguments, call the library, print the outcome.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::slice;

use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::channel::{Pointer, check_name};
use serde_json::{Value, json};

use crate::built::{Built, is_release};
use crate::bulk;
use crate::cache::{Access, Cache};
use crate::check;
use crate::cli::{
    BuildArgs, CacheArgs, CheckArgs, PolicyPushArgs, PolicyTokenArgs, PublishArgs, StageArgs, VerifyBundleArgs,
};
use crate::discover::Roots;
use crate::fault::{Fault, reason};
use crate::finding::Finding;
use crate::local_kv::LocalKv;
use crate::pipeline;
use crate::policy_file;
use crate::progress::Progress;
use crate::publish::{self, Plan, Target, envelope_of, next_sequence, pointer};
use crate::release::Release;
use crate::report;
use crate::stage;
use crate::staging::STAGING_LIST;
use crate::text::counted;
use crate::verify_bundle;

/// `packferry check`. True where every pack was in order.
///
/// # Errors
/// A [`Fault`] of ours or of the command line; a path that holds no pack is one, where no pack is at fault.
pub fn check(args: &CheckArgs) -> Result<bool, Fault> {
    let cache = cache(args.cache, Access::ReadOnly);
    let checked = check::check(
        &roots(&args.paths)?,
        args.config.as_deref(),
        &cache,
        &Progress::new(args.json),
    )?;
    if args.json {
        report::print_json(&checked.to_json());
    } else {
        report::print_findings(&checked.findings);
        for line in checked.lines() {
            report::print_line(&line);
        }
    }
    match checked.without_packs().next() {
        Some(path) if !checked.has_errors() => Err(Fault::new(format!("{path} holds no pack to check"))),
        _ => Ok(!checked.has_errors()),
    }
}

/// Prints what a command did: a report for programs, or what was found and a line that sums it up.
fn print_outcome(json: bool, report: impl FnOnce() -> Value, findings: &[Finding], summary: impl FnOnce() -> String) {
    if json {
        report::print_json(&report());
    } else {
        report::print_findings(findings);
        report::print_line(&summary());
    }
}

/// `packferry build`. True where every pack was in order.
///
/// # Errors
/// A [`Fault`] of ours or of the command line.
pub fn build(args: &BuildArgs) -> Result<bool, Fault> {
    let cache = cache(args.cache, Access::Full);
    let outcome = pipeline::build(
        &roots(&args.roots)?,
        args.config.as_deref(),
        &args.out,
        &cache,
        &Progress::new(args.json),
    )?;
    print_trouble(&cache);
    print_outcome(
        args.json,
        || outcome.to_json(),
        &outcome.findings,
        || outcome.summary(&args.out),
    );
    Ok(outcome.report.withheld.is_empty())
}

/// `packferry stage`. True where every pack was in order, and was staged.
///
/// # Errors
/// A [`Fault`] of ours or of the command line.
pub fn stage(args: &StageArgs) -> Result<bool, Fault> {
    let roots = roots(&args.roots)?;
    let cache = cache(args.cache, Access::Full);
    let progress = Progress::new(args.json);
    let outcome = stage::stage(&roots, args.config.as_deref(), &args.out, &cache, &progress)?;
    print_trouble(&cache);
    print_outcome(
        args.json,
        || outcome.to_json(),
        &outcome.findings,
        || outcome.summary(&args.out),
    );
    Ok(outcome.staged.is_some())
}

/// `packferry verify-bundle`. True where the staged tree is whole, unchanged and up to date.
///
/// # Errors
/// A [`Fault`] of ours or of the command line.
pub fn verify_bundle(args: &VerifyBundleArgs) -> Result<bool, Fault> {
    let against = match args.against.as_slice() {
        [] => None,
        paths => Some(roots(paths)?),
    };
    let progress = Progress::new(args.json);
    let verified = verify_bundle::verify(&args.dist, against.as_ref(), args.config.as_deref(), &progress)?;
    print_outcome(
        args.json,
        || verified.to_json(),
        &verified.findings,
        || verified.summary(&args.dist),
    );
    Ok(verified.is_sound())
}

/// The cache that a command was asked to use.
#[must_use]
pub fn cache(args: CacheArgs, access: Access) -> Cache {
    if args.no_cache {
        Cache::none()
    } else {
        Cache::of_user(access)
    }
}

/// Says why nothing is kept, where that is not what was asked for.
pub fn print_trouble(cache: &Cache) {
    if let Some(trouble) = cache.trouble() {
        report::print_note(trouble);
    }
}

/// The search roots of a command: its arguments, or else what the environment and the working directory give.
///
/// # Errors
/// A [`Fault`] where there is nothing to search.
pub fn roots(arguments: &[Utf8PathBuf]) -> Result<Roots, Fault> {
    let here = std::env::current_dir()
        .map_err(|error| Fault::new(format!("the working directory is gone: {}", reason(&error))))?;
    let arguments: Vec<PathBuf> = arguments.iter().map(|path| path.as_std_path().to_owned()).collect();
    Roots::resolve(&arguments, std::env::var_os("PACKFERRY_PACK_PATHS").as_deref(), &here)
}

/// `packferry publish`. Always true: packs at fault in a staged tree that is built first are withheld, which stops it elsewhere.
///
/// # Errors
/// A [`Fault`] of ours or of the command line.
pub fn publish(args: &PublishArgs) -> Result<bool, Fault> {
    check_name(&args.channel).map_err(|error| Fault::new(format!("{:?}: {error}", args.channel)))?;
    let built = release_or_tree(args)?;
    let release = &built.release;
    refuse_withheld(release, args)?;
    if args.dry_run {
        print_plan(release, args);
        return Ok(true);
    }
    match &args.bulk {
        Some(dir) => publish_bulk(release, dir, args)?,
        None => publish_local(release, args)?,
    }
    Ok(true)
}

/// The release to publish, built first where a staged tree is named.
fn release_or_tree(args: &PublishArgs) -> Result<Built, Fault> {
    if is_release(&args.dir) || !args.dir.join(STAGING_LIST).is_file() {
        return Built::read(&args.dir);
    }
    let access = if args.dry_run { Access::ReadOnly } else { Access::Full };
    let cache = cache(args.cache, access);
    let built = Built::of(
        slice::from_ref(&args.dir),
        args.config.as_deref(),
        &cache,
        &Progress::new(args.json),
    )?;
    print_trouble(&cache);
    if !args.json {
        report::print_findings(&built.findings);
    }
    if built.release.packs.is_empty() && built.release.report.withheld.is_empty() {
        let fault = Fault::new(format!("there is no pack in {}, so nothing was published", args.dir));
        return Err(fault.hint("Verify the tree: packferry verify-bundle DIST."));
    }
    Ok(built)
}

fn refuse_withheld(release: &Release, args: &PublishArgs) -> Result<(), Fault> {
    if release.report.withheld.is_empty() || args.allow_withheld {
        return Ok(());
    }
    let names: Vec<String> = release
        .report
        .withheld
        .iter()
        .map(|row| {
            format!(
                "{} ({})",
                row.pack.as_deref().unwrap_or("a pack without a name"),
                row.codes.join(", ")
            )
        })
        .collect();
    Err(
        Fault::new(format!("packs were withheld from this release: {}", names.join("; ")))
            .hint("Mend them and build again, or publish without them: --allow-withheld."),
    )
}

fn print_plan(release: &Release, args: &PublishArgs) {
    let plan = Plan::of(release);
    let keys: Vec<String> = plan.phases.iter().flatten().map(ToString::to_string).collect();
    if args.json {
        report::print_json(&json!({ "manifest": release.digest, "channel": args.channel, "keys": keys }));
        return;
    }
    for key in &keys {
        report::print_line(key);
    }
    report::print_line(&format!("channel/{} -> {}", args.channel, release.digest));
}

fn publish_local(release: &Release, args: &PublishArgs) -> Result<(), Fault> {
    let mut kv = LocalKv::open(args.persist_to.as_deref())?;
    let done = publish::publish(release, &args.channel, &mut kv, &Progress::new(args.json))?;
    if args.json {
        report::print_json(&json!({
            "manifest": release.digest, "channel": args.channel, "sequence": done.sequence,
            "written": done.written, "unchanged": done.unchanged, "already": done.already,
        }));
        return Ok(());
    }
    let verb = if done.already {
        "already answers with"
    } else {
        "now answers with"
    };
    report::print_line(&format!(
        "Channel {} {verb} manifest {} (sequence {}; {} written, {} unchanged)",
        args.channel,
        release.digest,
        done.sequence,
        counted(done.written as u64, "object"),
        done.unchanged
    ));
    Ok(())
}

fn publish_bulk(release: &Release, dir: &Utf8Path, args: &PublishArgs) -> Result<(), Fault> {
    let sequence = match (&args.after, args.first) {
        (Some(file), _) => {
            let pointer = read_envelope(file, &args.channel)?;
            next_sequence(Some(&pointer))?
        }
        (None, true) => 1,
        (None, false) => return Err(ask_for_sequence(&args.channel)),
    };
    let files = bulk::write(release, &pointer(release, &args.channel, sequence), dir)?;
    if args.json {
        report::print_json(&json!({
            "manifest": release.digest, "channel": args.channel, "sequence": sequence,
            "files": files.iter().map(|file| file.as_str()).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    report::print_line(&format!(
        "Wrote sequence {sequence} of channel {} as {}. Put them in this order, each only after the one before:",
        args.channel,
        counted(files.len() as u64, "file")
    ));
    for file in &files {
        report::print_line(&format!("  npx wrangler kv bulk put {file} --binding KV --remote"));
    }
    Ok(())
}

/// The pointer in an envelope that was read into `file`.
fn read_envelope(file: &Utf8Path, channel: &str) -> Result<Pointer, Fault> {
    // An envelope is a few hundred bytes; what is longer is none.
    const BOUND: u64 = 65_536;
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(fs::File::open(file)?, BOUND), &mut bytes)?;
        Ok(bytes)
    };
    let value = read().map_err(|error| Fault::reading(file, &error))?;
    envelope_of(&value, channel).map_err(|error| {
        Fault::new(format!("{file} is not the envelope of the channel {channel}: {error}"))
            .hint(how_to_read_the_channel(channel))
    })
}

fn ask_for_sequence(channel: &str) -> Fault {
    Fault::new("--bulk needs the channel's present sequence").hint(how_to_read_the_channel(channel))
}

fn how_to_read_the_channel(channel: &str) -> String {
    format!(
        "npx wrangler kv key get channel/{channel} --binding KV --remote > {channel}.json, then --after {channel}.json. \
         Where the channel does not exist yet: --first."
    )
}

/// `packferry policy push`.
///
/// # Errors
/// A [`Fault`] of ours or of the policy file.
pub fn policy_push(args: &PolicyPushArgs) -> Result<bool, Fault> {
    let policy = policy_file::read(&args.file)?;
    let (key, value) = policy_file::entry(&policy, &args.name)?;
    if let Some(file) = &args.bulk {
        bulk::write_one(file, &key, &value)?;
    } else {
        LocalKv::open(args.persist_to.as_deref())?.put(&[(key, value)])?;
    }
    if args.json {
        report::print_json(&json!({ "policy": args.name, "bulk": args.bulk.as_ref().map(|file| file.as_str()) }));
        return Ok(true);
    }
    report::print_line(&match &args.bulk {
        Some(file) => format!(
            "Wrote policy {}. Put it: npx wrangler kv bulk put {file} --binding KV --remote",
            args.name
        ),
        None => format!("Policy {} is in local KV.", args.name),
    });
    report::print_line(&policy_file::summary(&policy));
    report::print_line(&format!(
        "A worker whose var POLICY is \"{}\" follows it within its pointer cache time, and KV's own.",
        args.name
    ));
    Ok(true)
}

/// `packferry policy token`.
///
/// # Errors
/// A [`Fault`] of ours, of the policy file or of the arguments.
pub fn policy_token(args: &PolicyTokenArgs) -> Result<bool, Fault> {
    let expires = args.expires.as_deref().map(policy_file::expiry).transpose()?;
    let token = policy_file::new_token()?;
    policy_file::add_token(&args.file, &args.name, &token, &args.grants, expires.as_deref())?;
    if args.json {
        let report = json!({ "name": args.name, "token": token, "grants": args.grants, "expires": expires, "file": args.file.as_str() });
        report::print_json(&report);
        return Ok(true);
    }
    report::print_line(&token);
    report::print_note(&format!(
        "This is the only time that the token is shown. Its hash is in {}; it opens once that is pushed: packferry policy push {} --local, or --bulk FILE",
        args.file, args.file
    ));
    Ok(true)
}
