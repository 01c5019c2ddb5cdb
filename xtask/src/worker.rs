//! The build of a worker, from Rust to what wrangler loads: compile, bind, optimise, bundle, deliver.
//! The steps are one list in `build`; a build of what was built already ends after the first.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};
use wasm_bindgen_cli::wasm_bindgen;

use crate::toolchain::{self, TARGET, Toolchain};
use crate::tools;

/// The entry module around what wasm-bindgen generates; the workers all share it.
const ENTRY: &str = "src/entry.js";
/// The cargo profile of a worker.
const PROFILE: &str = "worker";
/// The finished module.
const SCRIPT: &str = "index.js";
/// The finished WebAssembly.
const WASM: &str = "index_bg.wasm";
/// Names the inputs that the finished files were made from.
const STAMP: &str = "inputs.sha256";

/// What wasm-bindgen is told. The last two make the instance replaceable after a panic.
const BIND: [&str; 9] = [
    "--target",
    "module",
    "--out-name",
    "index",
    "--no-typescript",
    "--remove-producers-section",
    "--experimental-reset-state-function",
    "--force-enable-abort-handler",
    "--out-dir",
];

/// What wasm-opt is told: the features are those that rustc and wasm-bindgen emit, named one by one, so
/// that a newer Binaryen never writes an encoding that workerd cannot read.
const OPTIMISE: [&str; 8] = [
    "-Os",
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-bulk-memory",
    "--enable-multivalue",
    "--enable-reference-types",
    "--enable-exception-handling",
];

/// What esbuild is told: one module, with the WebAssembly and the runtime's own modules left as imports.
const BUNDLE: [&str; 6] = [
    "--bundle",
    "--minify",
    "--format=esm",
    "--external:./index_bg.wasm",
    "--external:cloudflare:*",
    "--log-level=warning",
];

/// Builds `package` into `out_dir`.
pub(crate) fn build(package: &str, out_dir: &Path) -> Result<()> {
    let root = tools::root()?;
    let out_dir = root.join(out_dir);
    let compiled = compile(&toolchain::require()?, &root, package)?;
    let inputs = digest_inputs(&root, &compiled)?;
    if is_current(&out_dir, &inputs) {
        println!("{package} is up to date in {}", shown(&root, &out_dir));
        return Ok(());
    }

    let staging = staging_directory(&out_dir)?;
    bind(&compiled, staging.path())?;
    optimise(&root, staging.path())?;
    bundle(&root, staging.path())?;
    check_paths(&root, &staging.path().join(WASM))?;
    fs::write(staging.path().join(STAMP), &inputs)?;
    deliver(staging.path(), &out_dir)?;
    report(package, &root, &out_dir)
}

/// Compiles the crate and gives its WebAssembly. Paths of this machine are cut: the messages of panics
/// hold the paths of sources.
fn compile(toolchain: &Toolchain, root: &Path, package: &str) -> Result<PathBuf> {
    let flags = remapped_paths(root)?
        .iter()
        .map(|(from, to)| format!("'--remap-path-prefix={}={to}'", from.display()))
        .collect::<Vec<_>>()
        .join(",");
    tools::run(
        toolchain
            .cargo(root, "build")
            .args(["--quiet", "--lib", "--package", package])
            .args(["--profile", PROFILE])
            .arg("--config")
            .arg(format!("target.{TARGET}.rustflags=[{flags}]")),
    )?;
    let file = format!("{}.wasm", package.replace('-', "_"));
    let folder = toolchain.target_directory(root).join(TARGET);
    Ok(folder.join(PROFILE).join(file))
}

/// Folders of this machine whose names the compiler would write into the worker, and what stands there
/// instead.
fn remapped_paths(root: &Path) -> Result<Vec<(PathBuf, &'static str)>> {
    let mut folders = vec![(root.to_path_buf(), "packferry")];
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = std::env::home_dir();
    if let Some(cargo) = cargo_home.or_else(|| home.map(|home| home.join(".cargo"))) {
        folders.push((cargo, "cargo"));
    }
    for (folder, _) in &folders {
        if folder.to_str().is_none_or(|name| name.contains('\'')) {
            bail!("{} cannot be part of a compiler flag", folder.display());
        }
    }
    Ok(folders)
}

/// A digest of all that the finished files depend on. This program is part of it, for it holds
/// wasm-bindgen and the flags; it is large, so its time and size stand for its bytes.
fn digest_inputs(root: &Path, compiled: &Path) -> Result<String> {
    let this = fs::metadata(std::env::current_exe()?)?;
    let built = this.modified()?.duration_since(UNIX_EPOCH)?;
    let mut digest = Sha256::new();
    digest.update(this.len().to_le_bytes());
    digest.update(built.as_nanos().to_le_bytes());
    for file in [compiled, &root.join(ENTRY), &root.join("package-lock.json")] {
        let bytes = fs::read(file).with_context(|| format!("{} is missing", file.display()))?;
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    }
    Ok(hex::encode(digest.finalize()))
}

fn is_current(out_dir: &Path, inputs: &str) -> bool {
    let complete = [SCRIPT, WASM].iter().all(|name| out_dir.join(name).is_file());
    complete && fs::read_to_string(out_dir.join(STAMP)).is_ok_and(|stamp| stamp == inputs)
}

/// A new folder beside the output, which goes away with its value.
fn staging_directory(out_dir: &Path) -> Result<tempfile::TempDir> {
    let parent = out_dir.parent().context("the output folder has no parent")?;
    fs::create_dir_all(parent)?;
    Ok(tempfile::Builder::new().prefix(".worker-").tempdir_in(parent)?)
}

/// Generates the JavaScript side of the WebAssembly.
fn bind(compiled: &Path, staging: &Path) -> Result<()> {
    let mut arguments = vec!["wasm-bindgen".into(), compiled.as_os_str().to_owned()];
    arguments.extend(BIND.map(Into::into));
    arguments.push(staging.as_os_str().to_owned());
    wasm_bindgen::run_cli_with_args(arguments).context("wasm-bindgen failed")
}

/// Makes the WebAssembly small; names of functions and debug information go.
fn optimise(root: &Path, staging: &Path) -> Result<()> {
    let wasm = staging.join(WASM);
    tools::run(
        Command::new("node")
            .arg(tools::wasm_opt(root)?)
            .arg(&wasm)
            .arg("-o")
            .arg(&wasm)
            .args(OPTIMISE),
    )
}

/// Joins entry, bindings and snippets into one module.
fn bundle(root: &Path, staging: &Path) -> Result<()> {
    fs::copy(root.join(ENTRY), staging.join("entry.js"))?;
    let bundled = staging.join("bundled.js");
    tools::run(
        Command::new(tools::esbuild(root)?)
            .current_dir(staging)
            .args(BUNDLE)
            .arg("--outfile=bundled.js")
            .arg("entry.js"),
    )?;
    // workerd does not know the syntax of source-phase imports; to it a .wasm import is the module anyway.
    let script = fs::read_to_string(&bundled)?.replace("import source ", "import ");
    fs::write(staging.join(SCRIPT), script)?;
    Ok(())
}

/// Refuses a worker that would tell where it was built.
fn check_paths(root: &Path, wasm: &Path) -> Result<()> {
    let bytes = fs::read(wasm)?;
    for (folder, _) in remapped_paths(root)? {
        let name = folder.as_os_str().as_encoded_bytes();
        if bytes.windows(name.len()).any(|window| window == name) {
            bail!("the worker holds a path of this machine: {}", folder.display());
        }
    }
    Ok(())
}

/// Puts the finished files in place of the old ones. Two builds may end at once: they take turns.
fn deliver(staging: &Path, out_dir: &Path) -> Result<()> {
    let parent = out_dir.parent().context("the output folder has no parent")?;
    let lock = File::create(parent.join(".lock"))?;
    lock.lock()?;
    fs::create_dir_all(out_dir)?;
    // The stamp goes first and comes last, so that a build that was killed here is not taken for done.
    let stamp = out_dir.join(STAMP);
    if stamp.exists() {
        fs::remove_file(&stamp)?;
    }
    for name in [WASM, SCRIPT, STAMP] {
        fs::rename(staging.join(name), out_dir.join(name))?;
    }
    Ok(())
}

/// Prints the sizes, which the platform limits and the project records.
fn report(package: &str, root: &Path, out_dir: &Path) -> Result<()> {
    let wasm = fs::read(out_dir.join(WASM))?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&wasm)?;
    println!(
        "{package} is built in {}: {WASM} has {} bytes, {} gzipped",
        shown(root, out_dir),
        wasm.len(),
        encoder.finish()?.len(),
    );
    Ok(())
}

fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
