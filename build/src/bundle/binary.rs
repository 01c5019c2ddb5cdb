//! Finding the pinned esbuild binary. What is found by searching runs only if its bytes are the pinned ones: a folder of
//! installed packs may be among those searched, and nothing from a pack may run at build time.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use super::BUNDLER_VERSION;
use crate::fault::Fault;

/// Names the binary, for whoever does not install it with npm. Trusted; only its version is checked.
pub(super) const OVERRIDE: &str = "PACKFERRY_ESBUILD";

/// A platform's package of esbuild, with the SHA-256 of its executable.
struct Build {
    os: &'static str,
    arch: &'static str,
    file: &'static str,
    sha256: &'static str,
}

/// The executables of `@esbuild/*` 0.28.2. On other platforms the operator names one.
const BUILDS: &[Build] = &[
    Build {
        os: "linux",
        arch: "x86_64",
        file: "node_modules/@esbuild/linux-x64/bin/esbuild",
        sha256: "e1698a3d5c6c0798fee4fd3b5cc816651f460c63d390a7a26ea4beb0b1884100",
    },
    Build {
        os: "linux",
        arch: "aarch64",
        file: "node_modules/@esbuild/linux-arm64/bin/esbuild",
        sha256: "90bd269553d258e80b19e3ccab4f98f0831f87442a2f056510ce24fd1b425fc2",
    },
    Build {
        os: "macos",
        arch: "x86_64",
        file: "node_modules/@esbuild/darwin-x64/bin/esbuild",
        sha256: "7fe5c9c905fff0a05d92db98929434ab4d3b6dd92d7a7688922db74380c75df3",
    },
    Build {
        os: "macos",
        arch: "aarch64",
        file: "node_modules/@esbuild/darwin-arm64/bin/esbuild",
        sha256: "10b6243df618d374bb2d5c9cfbe7052e1405f6aa4e53a6164f11a91b9f2e1384",
    },
    Build {
        os: "windows",
        arch: "x86_64",
        file: "node_modules/@esbuild/win32-x64/esbuild.exe",
        sha256: "c7bee37877d0aa6a046e52783fa0a2cf1a9ce5579d68bb3083bda99d4bff18ef",
    },
    Build {
        os: "windows",
        arch: "aarch64",
        file: "node_modules/@esbuild/win32-arm64/esbuild.exe",
        sha256: "530fb3933af14eefe85dfd06502f826e6ef60fdf4e75228ea67c696db312ecb1",
    },
];

/// The binary that `PACKFERRY_ESBUILD` names, else the first with the pinned bytes in a `node_modules` of the working
/// directory, of the executable's directory, or of a directory above either.
pub(super) fn locate() -> Result<PathBuf, Fault> {
    if let Some(named) = env::var_os(OVERRIDE) {
        let named = PathBuf::from(named);
        check_version(&named)?;
        return Ok(named);
    }
    let executable = env::current_exe().ok();
    let starts = [
        env::current_dir().ok(),
        executable.and_then(|path| path.parent().map(Path::to_path_buf)),
    ];
    let build = BUILDS
        .iter()
        .find(|build| build.os == env::consts::OS && build.arch == env::consts::ARCH)
        .ok_or_else(missing)?;
    search(build, starts.iter().flatten()).ok_or_else(missing)
}

fn search<'a>(build: &Build, starts: impl Iterator<Item = &'a PathBuf>) -> Option<PathBuf> {
    starts
        .flat_map(|start| start.ancestors())
        .map(|folder| folder.join(build.file))
        .filter(|candidate| candidate.is_file())
        .find(|candidate| {
            std::fs::read(candidate).is_ok_and(|bytes| hex::encode(Sha256::digest(&bytes)) == build.sha256)
        })
}

fn missing() -> Fault {
    Fault::new(format!("esbuild {BUNDLER_VERSION} was not found")).hint(format!(
        "Run `npm install --no-save --ignore-scripts esbuild@{BUNDLER_VERSION}` in the working directory, \
         or name its binary in {OVERRIDE}."
    ))
}

fn check_version(named: &Path) -> Result<(), Fault> {
    let output = Command::new(named)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Fault::new(format!("the binary that {OVERRIDE} names does not start: {error}")))?;
    let version = String::from_utf8_lossy(&output.stdout);
    if version.trim() == BUNDLER_VERSION {
        return Ok(());
    }
    let found: String = version.trim().chars().take(40).collect();
    Err(Fault::new(format!(
        "the binary that {OVERRIDE} names is not esbuild {BUNDLER_VERSION} but {found:?}"
    ))
    .hint("Releases are reproducible with the pinned version only."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_with_other_bytes_is_passed_over() {
        let pinned = b"#!/bin/sh\n";
        let sha256 = hex::encode(Sha256::digest(pinned)).leak();
        let build = Build {
            os: "",
            arch: "",
            file: "node_modules/@esbuild/any/bin/esbuild",
            sha256,
        };
        let root = tempfile::tempdir().unwrap();
        let start = root.path().join("mirror/packs");
        let install = |folder: &Path, bytes: &[u8]| {
            let file = folder.join(build.file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, bytes).unwrap();
        };
        install(&start, b"#!/bin/sh\necho hostile\n");
        assert_eq!(search(&build, [&start].into_iter()), None);
        install(root.path(), pinned);
        assert_eq!(search(&build, [&start].into_iter()), Some(root.path().join(build.file)));
    }
}
