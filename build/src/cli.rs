//! The command line: what can be asked, and nothing about how it is done.

use camino::Utf8PathBuf;
use clap::{ArgGroup, Args, Parser, Subcommand};

/// Turn installed packs into verified modules at the edge.
#[derive(Debug, Parser)]
#[command(name = "packferry", version, disable_help_subcommand = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge packs as a build does, and show what would be served.
    Check(CheckArgs),
    /// Build an immutable release from packs.
    Build(BuildArgs),
    /// Publish a release on a channel.
    Publish(PublishArgs),
    /// Build and publish locally after every save.
    Watch(WatchArgs),
    /// Copy packs beside an application, complete, so that they build there without npm.
    Stage(StageArgs),
    /// Prove that a staged tree is whole, unchanged and up to date.
    VerifyBundle(VerifyBundleArgs),
    /// Run a script in the guest and print what it returns.
    Run(RunArgs),
    /// Say who may fetch what.
    #[command(subcommand)]
    Policy(PolicyCommand),
}

/// Whether what an earlier build found out is used again.
#[derive(Debug, Clone, Copy, Args)]
pub struct CacheArgs {
    /// Find everything out again, and keep nothing. Kept is in PACKFERRY_CACHE, else in $XDG_CACHE_HOME/packferry or ~/.cache/packferry.
    #[arg(long)]
    pub no_cache: bool,
}

/// Arguments of `packferry check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Single pack directories, or folders like node_modules. None: PACKFERRY_PACK_PATHS, then every node_modules upwards.
    pub paths: Vec<Utf8PathBuf>,
    /// Registry of host modules (packferry.toml).
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// Print a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Arguments of `packferry build`.
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// Folders like node_modules, or single pack directories. None: PACKFERRY_PACK_PATHS, then every node_modules upwards.
    pub roots: Vec<Utf8PathBuf>,
    /// Where the release goes.
    #[arg(long)]
    pub out: Utf8PathBuf,
    /// Registry of host modules (packferry.toml).
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// Print a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Arguments of `packferry publish`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["local", "bulk"])))]
pub struct PublishArgs {
    /// The release, as `packferry build --out` wrote it; or a staged tree, which is built first.
    pub dir: Utf8PathBuf,
    /// Write into the KV that `wrangler dev` uses on this machine.
    #[arg(long)]
    pub local: bool,
    /// Write ordered files for `wrangler kv bulk put --remote` into this directory.
    #[arg(long, value_name = "DIR")]
    pub bulk: Option<Utf8PathBuf>,
    /// The channel to move.
    #[arg(long, default_value = "stable")]
    pub channel: String,
    /// Publish although packs were withheld from the release.
    #[arg(long)]
    pub allow_withheld: bool,
    /// Registry of host modules (packferry.toml), where a staged tree is built first.
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// With --bulk: the channel's present envelope, as wrangler printed it.
    #[arg(long, value_name = "FILE", requires = "bulk", conflicts_with = "first")]
    pub after: Option<Utf8PathBuf>,
    /// With --bulk: the channel has no envelope yet.
    #[arg(long, requires = "bulk")]
    pub first: bool,
    /// With --local: the folder of the local state, if it is not the project's.
    #[arg(long, value_name = "DIR", requires = "local")]
    pub persist_to: Option<Utf8PathBuf>,
    /// Print what would be written, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Arguments of `packferry watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Pack directories, or folders that hold packs.
    #[arg(required = true)]
    pub roots: Vec<Utf8PathBuf>,
    /// Where the release goes.
    #[arg(long)]
    pub out: Utf8PathBuf,
    /// Registry of host modules (packferry.toml).
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// The channel to move.
    #[arg(long, default_value = "stable")]
    pub channel: String,
    /// The folder of the local state, if it is not the project's.
    #[arg(long, value_name = "DIR")]
    pub persist_to: Option<Utf8PathBuf>,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Arguments of `packferry stage`.
#[derive(Debug, Args)]
pub struct StageArgs {
    /// Folders like node_modules, or single pack directories.
    #[arg(required = true)]
    pub roots: Vec<Utf8PathBuf>,
    /// The application's folder: the packs go into _sandbox in it, which is replaced as a whole.
    #[arg(long, value_name = "DIST")]
    pub out: Utf8PathBuf,
    /// Registry of host modules (packferry.toml).
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// Print a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// Arguments of `packferry verify-bundle`.
#[derive(Debug, Args)]
pub struct VerifyBundleArgs {
    /// The application's folder, which holds _sandbox.
    pub dist: Utf8PathBuf,
    /// Every pack under these folders has to be staged as it lies there.
    #[arg(long, value_name = "ROOT", num_args = 1..)]
    pub against: Vec<Utf8PathBuf>,
    /// Registry of host modules (packferry.toml) that the packs were staged with.
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// Print a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `packferry run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The script: static imports, and statements that may await and return.
    pub file: Utf8PathBuf,
    /// A release, or pack directories and folders that hold packs, which are built first.
    #[arg(long, required = true, value_name = "ROOT|RELEASE")]
    pub packs: Vec<Utf8PathBuf>,
    /// Declare this module, and none but those named so. Without it, whatever the script imports is declared.
    #[arg(long, value_name = "SPECIFIER")]
    pub package: Vec<String>,
    /// Registry of host modules (packferry.toml), where packs are built first.
    #[arg(long)]
    pub config: Option<Utf8PathBuf>,
    /// Print a report as JSON on standard output: the value or the error, and what the script wrote.
    #[arg(long)]
    pub json: bool,
    /// The cache.
    #[command(flatten)]
    pub cache: CacheArgs,
}

/// The commands about policies.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// Write a policy file into KV.
    Push(PolicyPushArgs),
    /// Make a token, print it once, and add its hash to the policy file.
    Token(PolicyTokenArgs),
}

/// Arguments of `packferry policy push`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("policy_target").required(true).args(["local", "bulk"])))]
pub struct PolicyPushArgs {
    /// The policy file.
    pub file: Utf8PathBuf,
    /// The policy's name: the value of the worker's var POLICY.
    #[arg(long, default_value = "default")]
    pub name: String,
    /// Write into the KV that `wrangler dev` uses on this machine.
    #[arg(long)]
    pub local: bool,
    /// Write a file for `wrangler kv bulk put --remote` here.
    #[arg(long, value_name = "FILE")]
    pub bulk: Option<Utf8PathBuf>,
    /// With --local: the folder of the local state, if it is not the project's.
    #[arg(long, value_name = "DIR", requires = "local")]
    pub persist_to: Option<Utf8PathBuf>,
    /// Print a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `packferry policy token`.
#[derive(Debug, Args)]
pub struct PolicyTokenArgs {
    /// Your name for the token.
    pub name: String,
    /// A pack name, or a prefix and a final `*`, that the token opens. May be given more than once.
    #[arg(long = "grant", value_name = "PATTERN", required = true)]
    pub grants: Vec<String>,
    /// How long it is good for, such as 90d.
    #[arg(long, value_name = "LENGTH")]
    pub expires: Option<String>,
    /// The policy file; made where there is none.
    #[arg(long, default_value = "policy.toml")]
    pub file: Utf8PathBuf,
    /// Print the token and a report as JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
