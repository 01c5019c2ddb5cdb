//! A release as ordered files for `wrangler kv bulk put --remote`: objects first, then the manifest, then the channel. The same plan
//! as `publish.rs` applies, written for an operator's own login.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::{Utf8Path, Utf8PathBuf};
use packferry_core::channel::{Envelope, Pointer};
use packferry_core::key::StorageKey;

use crate::fault::Fault;
use crate::publish::Plan;
use crate::release::{Release, write_atomically};

/// Workers KV's bounds on one bulk write (developers.cloudflare.com/kv/api/write-key-value-pairs).
const FILE_PAIRS: usize = 10_000;
const FILE_BYTES: usize = 100_000_000;

/// Writes the plan of `release`, with `pointer` as the channel's new value, into `dir`. Answers the files in the order in which
/// they must be put.
///
/// # Errors
/// A [`Fault`] where `dir` holds files that are not of an earlier such plan, or an object is missing or damaged.
pub fn write(release: &Release, pointer: &Pointer, dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Fault> {
    let written_by_us = earlier_files(dir)?;
    let disk = |error: std::io::Error| Fault::writing(dir, &error);
    fs::create_dir_all(dir).map_err(disk)?;
    for path in written_by_us {
        fs::remove_file(path).map_err(disk)?;
    }
    let plan = Plan::of(release);
    let (manifest, objects) = plan
        .phases
        .split_last()
        .ok_or_else(|| Fault::new("the plan is empty"))?;
    let mut files = Files {
        dir: dir.to_owned(),
        written: Vec::new(),
    };
    let mut open = OpenFile::default();
    for key in objects.iter().flatten() {
        let pair = pair(&key.to_string(), &release.object(key)?);
        if !open.takes(&pair) {
            files.write("objects", std::mem::take(&mut open))?;
        }
        open.push(&pair);
    }
    if open.pairs > 0 {
        files.write("objects", open)?;
    }
    for key in manifest {
        files.write_one("manifest", &pair(&key.to_string(), &release.object(key)?))?;
    }
    let key = StorageKey::Channel(pointer.channel.clone()).to_string();
    files.write_one("channel", &pair(&key, Envelope::unsigned(pointer).to_json().as_bytes()))?;
    Ok(files.written)
}

/// Writes `file`, which puts one value.
///
/// # Errors
/// A [`Fault`] where it cannot be written.
pub fn write_one(file: &Utf8Path, key: &str, value: &[u8]) -> Result<(), Fault> {
    let text = format!("[\n{}\n]\n", pair(key, value));
    write_atomically(file, text.as_bytes()).map_err(|error| Fault::writing(file, &error))
}

fn pair(key: &str, value: &[u8]) -> String {
    let row = serde_json::json!({ "key": key, "value": STANDARD.encode(value), "base64": true });
    row.to_string()
}

/// A JSON list that grows up to the bounds of one bulk write.
#[derive(Default)]
struct OpenFile {
    pairs: usize,
    text: String,
}

impl OpenFile {
    fn takes(&self, pair: &str) -> bool {
        self.pairs == 0 || (self.pairs < FILE_PAIRS && self.text.len() + pair.len() + 4 <= FILE_BYTES)
    }

    fn push(&mut self, pair: &str) {
        self.text.push_str(if self.pairs == 0 { "[\n" } else { ",\n" });
        self.text.push_str(pair);
        self.pairs += 1;
    }
}

struct Files {
    dir: Utf8PathBuf,
    written: Vec<Utf8PathBuf>,
}

impl Files {
    fn write_one(&mut self, kind: &str, pair: &str) -> Result<(), Fault> {
        let mut file = OpenFile::default();
        file.push(pair);
        self.write(kind, file)
    }

    fn write(&mut self, kind: &str, mut file: OpenFile) -> Result<(), Fault> {
        file.text.push_str("\n]\n");
        let path = self.dir.join(format!("{:04}-{kind}.json", self.written.len() + 1));
        write_atomically(&path, file.text.as_bytes()).map_err(|error| Fault::writing(&path, &error))?;
        self.written.push(path);
        Ok(())
    }
}

/// The files of an earlier plan in `dir`, which this one replaces.
fn earlier_files(dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Fault> {
    let Ok(entries) = dir.read_dir_utf8() else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| Fault::reading(dir, &error))?;
        if !is_plan_file(entry.file_name()) {
            return Err(
                Fault::new(format!("{dir} holds {}, which no bulk plan wrote", entry.file_name()))
                    .hint("Choose an empty or a new directory for --bulk."),
            );
        }
        files.push(entry.into_path());
    }
    Ok(files)
}

fn is_plan_file(name: &str) -> bool {
    let Some((number, kind)) = name.split_once('-') else {
        return false;
    };
    number.len() >= 4
        && number.bytes().all(|b| b.is_ascii_digit())
        && matches!(kind, "objects.json" | "manifest.json" | "channel.json")
}
