//! Runs the `packferry` command for tests.

use std::path::Path;
use std::process::Command;

/// How a run ended, and what it printed.
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `packferry` in `directory`.
pub(crate) fn packferry(directory: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_packferry"));
    let output = command
        .args(arguments)
        .current_dir(directory)
        .env_remove("PACKFERRY_PACK_PATHS")
        .output()
        .unwrap();
    Run {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
