//! The `packferry` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    packferry::judge::answer_if_asked().unwrap_or(ExitCode::SUCCESS)
}
