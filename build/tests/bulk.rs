//! The bulk plan: order, encoding, and what it refuses to replace.

#![expect(clippy::unwrap_used, reason = "tests")]

mod sample;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use camino::Utf8Path;
use packferry::bulk;
use packferry::publish::{Plan, pointer};
use packferry_core::channel::Envelope;
use packferry_core::key::StorageKey;
use sample::{pack, write_release};
use serde_json::Value;

fn pairs(file: &Utf8Path) -> Vec<(String, Vec<u8>)> {
    let rows: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let pair = |row: &Value| {
        assert_eq!(row["base64"], true);
        (
            row["key"].as_str().unwrap().to_owned(),
            STANDARD.decode(row["value"].as_str().unwrap()).unwrap(),
        )
    };
    rows.as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn the_files_hold_the_whole_plan_in_order() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let release = write_release(
        from.path(),
        &[pack("a", "1.0.0", "export const a = 1;"), pack("b", "1.0.0", "")],
    );
    let to: &Utf8Path = to.path().try_into().unwrap();
    let files = bulk::write(&release, &pointer(&release, "stable", 7), to).unwrap();
    let names: Vec<&str> = files.iter().filter_map(|file| file.file_name()).collect();
    assert_eq!(names, ["0001-objects.json", "0002-manifest.json", "0003-channel.json"]);
    let mut found: Vec<(String, Vec<u8>)> = files.iter().flat_map(|file| pairs(file)).collect();
    let (key, envelope) = found.pop().unwrap();
    assert_eq!(key, "channel/stable");
    let (_, pointer) = Envelope::parse(std::str::from_utf8(&envelope).unwrap(), "stable").unwrap();
    assert_eq!((pointer.sequence, pointer.manifest), (7, release.digest));
    let planned: Vec<StorageKey> = Plan::of(&release).phases.into_iter().flatten().collect();
    let wanted: Vec<(String, Vec<u8>)> = planned
        .iter()
        .map(|key| (key.to_string(), release.object(key).unwrap()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn many_objects_take_several_files_within_the_bounds() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Three objects of over 30 MB in base64 do not fit into one file of 100 MB.
    let packs = ["a", "b"].map(|name| pack(name, "1.0.0", &name.repeat(24 << 20)));
    let release = write_release(from.path(), &packs);
    let to: &Utf8Path = to.path().try_into().unwrap();
    let files = bulk::write(&release, &pointer(&release, "stable", 1), to).unwrap();
    assert_eq!(files.len(), 4, "two files of objects, manifest, channel");
    for file in &files {
        assert!(file.metadata().unwrap().len() <= 100_000_000, "{file}");
    }
}

#[test]
fn an_earlier_plan_is_replaced_and_nothing_else() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let release = write_release(from.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    let to: &Utf8Path = to.path().try_into().unwrap();
    std::fs::write(to.join("0009-objects.json"), "old").unwrap();
    bulk::write(&release, &pointer(&release, "stable", 1), to).unwrap();
    assert!(!to.join("0009-objects.json").exists());
    std::fs::write(to.join("notes.txt"), "mine").unwrap();
    let fault = bulk::write(&release, &pointer(&release, "stable", 1), to).unwrap_err();
    assert!(fault.to_string().contains("notes.txt"), "{fault}");
    assert_eq!(std::fs::read_to_string(to.join("notes.txt")).unwrap(), "mine");
}
