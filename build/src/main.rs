//! The `packferry` command. Exit status: 0 done, 1 a pack is at fault, 2 our fault or wrong usage.

use std::process::ExitCode;

use clap::Parser;
use packferry::cli::{Cli, Command, PolicyCommand};
use packferry::fault::Fault;
use packferry::{bundle, commands, guest_process, javascript, judge, report, run, watch};

/// How a command ended, as an exit status.
#[derive(Clone, Copy)]
enum Exit {
    Done = 0,
    PackAtFault = 1,
    Fault = 2,
}

fn main() -> ExitCode {
    // Untrusted text is read in processes of our own, which are this program again.
    let asked = judge::answer_if_asked()
        .or_else(guest_process::answer_if_asked)
        .or_else(javascript::answer_if_asked)
        .or_else(bundle::become_bundler_if_asked);
    if let Some(status) = asked {
        return status;
    }
    // clap itself exits with 2 on wrong usage and with 0 for --help.
    let done = dispatch(Cli::parse());
    let exit = match done.and_then(|done| report::lost_output().map_or(Ok(done), Err)) {
        Ok(true) => Exit::Done,
        Ok(false) => Exit::PackAtFault,
        Err(fault) => {
            report::print_fault(&fault);
            Exit::Fault
        }
    };
    ExitCode::from(exit as u8)
}

/// Runs the command; answers whether every pack was in order.
fn dispatch(cli: Cli) -> Result<bool, Fault> {
    match cli.command {
        Command::Check(args) => commands::check(&args),
        Command::Build(args) => commands::build(&args),
        Command::Publish(args) => commands::publish(&args),
        Command::Watch(args) => watch::watch(&args).map(|()| true),
        Command::Stage(args) => commands::stage(&args),
        Command::VerifyBundle(args) => commands::verify_bundle(&args),
        Command::Run(args) => run::run_file(&args),
        Command::Policy(PolicyCommand::Push(args)) => commands::policy_push(&args),
        Command::Policy(PolicyCommand::Token(args)) => commands::policy_token(&args),
    }
}
