//! The `packferry` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    packferry::judge::answer_if_asked()
        .or_else(packferry::guest_process::answer_if_asked)
        .unwrap_or(ExitCode::SUCCESS)
}
