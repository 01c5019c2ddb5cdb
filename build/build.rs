//! Tells the program which code it was compiled from: what a build keeps for the next one is of no use to other code.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What decides how the program judges: its own sources, those of the crates beside it, and the versions of everything else.
const SOURCES: [&str; 4] = ["src", "../core/src", "../guest/src", "../Cargo.lock"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let bytes = fs::read(&file)?;
        hash.update(format!("{} {}\n", file.display(), bytes.len()));
        hash.update(&bytes);
    }
    // Stacks are larger without optimization, and targets differ in what they overflow on.
    for name in ["TARGET", "PROFILE", "OPT_LEVEL"] {
        hash.update(format!("{name} {}\n", std::env::var(name).unwrap_or_default()));
    }
    println!("cargo::rustc-env=PACKFERRY_CODE={}", hex::encode(hash.finalize()));
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else {
        files.push(path.to_owned());
    }
    Ok(())
}
