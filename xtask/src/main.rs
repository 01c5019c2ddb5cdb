//! What plain cargo commands do not do: build the worker, and run cargo for wasm32.
//!
//! This file is the list of commands. `toolchain.rs` knows which toolchain compiles for wasm32,
//! `worker.rs` is the build of the worker, step by step, `tools.rs` runs foreign programs.

mod toolchain;
mod tools;
mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use wasm_bindgen_cli::wasm_bindgen_test_runner;

/// Builds the worker and runs cargo for wasm32.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Builds a worker crate into a folder that wrangler and Miniflare load as it is.
    BuildWorker {
        /// The package to build.
        #[arg(long, default_value = "packferry-worker")]
        package: String,
        /// Where index.js and index_bg.wasm go, from the root of the repository.
        #[arg(long, default_value = "dist/worker")]
        out_dir: PathBuf,
    },
    /// Runs `cargo COMMAND --target wasm32-unknown-unknown ARGUMENT...` with a toolchain that can.
    Wasm {
        /// build, check, clippy or test.
        command: String,
        /// Whatever cargo takes after it.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Prints the toolchain that compiles for wasm32: nothing if it is the default one.
    WasmToolchain,
    /// Runs one compiled wasm32 test: cargo calls this, as .cargo/config.toml says.
    WbgTest {
        /// The test, and what its harness takes.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::BuildWorker { package, out_dir } => worker::build(&package, &out_dir),
        Command::Wasm { command, arguments } => toolchain::require()?.run_cargo(&command, &arguments),
        Command::WasmToolchain => {
            println!("{}", toolchain::require()?.name());
            Ok(())
        }
        Command::WbgTest { arguments } => {
            let program = OsString::from("wasm-bindgen-test-runner");
            wasm_bindgen_test_runner::run_cli_with_args(std::iter::once(program).chain(arguments))
        }
    }
}
