//! Which Rust toolchain compiles for wasm32: the default one where it has the target's standard library,
//! else the one that scripts/wasm-toolchain.sh links. Installs nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools;

/// The target of the worker and of the core's portable tests.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The name that scripts/wasm-toolchain.sh gives the toolchain it builds.
const LINKED: &str = "packferry-wasm";

/// A toolchain that compiles for wasm32.
pub(crate) struct Toolchain {
    /// The name for rustup, where it is not the default toolchain.
    linked: Option<&'static str>,
}

/// The toolchain to use, or what to do to get one.
pub(crate) fn require() -> Result<Toolchain> {
    for linked in [None, Some(LINKED)] {
        let toolchain = Toolchain { linked };
        if toolchain.has_standard_library() {
            return Ok(toolchain);
        }
    }
    bail!("no toolchain compiles for {TARGET}. Run: make wasm-toolchain")
}

impl Toolchain {
    /// The name for RUSTUP_TOOLCHAIN: empty for the default toolchain.
    pub(crate) fn name(&self) -> &'static str {
        self.linked.unwrap_or_default()
    }

    /// The folder below target/ where its output for the target lies.
    pub(crate) fn target_directory(&self, root: &Path) -> PathBuf {
        let target = root.join("target");
        // Another compiler in the same folder makes cargo check everything anew at every change.
        self.linked.map_or(target.clone(), |name| target.join(name))
    }

    /// `cargo COMMAND` for the target.
    pub(crate) fn cargo(&self, root: &Path, command: &str) -> Command {
        let mut cargo = self.command("cargo");
        cargo
            .current_dir(root)
            .arg(command)
            .args(["--target", TARGET])
            .arg("--target-dir")
            .arg(self.target_directory(root));
        cargo
    }

    /// Runs `cargo COMMAND ARGUMENT...` for the target, with this very program to run tests.
    pub(crate) fn run_cargo(&self, command: &str, arguments: &[OsString]) -> Result<()> {
        if command == "clippy" && self.linked.is_some() {
            println!("skipped: clippy for {TARGET}, which the linked toolchain {LINKED} lacks");
            return Ok(());
        }
        let this = std::env::current_exe().context("xtask does not know where it lies")?;
        let mut runner = this.into_os_string();
        runner.push(" wbg-test");
        tools::run(
            self.cargo(&tools::root()?, command)
                .args(arguments)
                .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner),
        )
    }

    /// Asks the compiler where the standard library would be, and looks.
    fn has_standard_library(&self) -> bool {
        let Ok(output) = self
            .command("rustc")
            .args(["--print", "target-libdir", "--target", TARGET])
            .output()
        else {
            return false;
        };
        let folder = String::from_utf8_lossy(&output.stdout);
        let Ok(files) = std::fs::read_dir(folder.trim()) else {
            return false;
        };
        files.flatten().any(|file| {
            let name = file.file_name();
            let name = name.to_string_lossy();
            name.starts_with("libstd-") && name.ends_with(".rlib")
        })
    }

    /// A program of this toolchain. `cargo xtask` hands its own toolchain down; it is not for wasm32.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        if let Some(name) = self.linked {
            command.env("RUSTUP_TOOLCHAIN", name);
        }
        command
    }
}
