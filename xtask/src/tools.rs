//! Running foreign programs: the pinned tools of node_modules, and cargo. Knows where they lie and what
//! to do when one is missing; what they are told is the caller's.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the repository, where node_modules and dist lie.
pub(crate) fn root() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .context("xtask has no parent folder")
}

/// esbuild's binary for this machine; it runs without Node.
pub(crate) fn esbuild(root: &Path) -> Result<PathBuf> {
    let platform = match (std::env::consts::OS, std::env::consts::ARCH) {
        ("linux", "x86_64") => "linux-x64",
        ("linux", "aarch64") => "linux-arm64",
        ("macos", "x86_64") => "darwin-x64",
        ("macos", "aarch64") => "darwin-arm64",
        (system, machine) => bail!("esbuild is not pinned for {system} on {machine}"),
    };
    installed(root, &format!("node_modules/@esbuild/{platform}/bin/esbuild"))
}

/// Binaryen's optimiser: a JavaScript program, for `node`.
pub(crate) fn wasm_opt(root: &Path) -> Result<PathBuf> {
    installed(root, "node_modules/binaryen/bin/wasm-opt")
}

fn installed(root: &Path, name: &str) -> Result<PathBuf> {
    let path = root.join(name);
    if !path.is_file() {
        bail!("{name} is missing. Run: npm ci");
    }
    Ok(path)
}

/// Runs a program to its end; anything but success is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = Path::new(command.get_program()).display().to_string();
    let status = command.status().with_context(|| format!("{name} cannot be started"))?;
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    Ok(())
}
