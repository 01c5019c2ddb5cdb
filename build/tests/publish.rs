//! Publishing: order of writes, unchanged keys, sequences, and a run that is killed anywhere.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod sample;

use std::collections::{BTreeMap, BTreeSet};

use packferry::fault::Fault;
use packferry::progress::Progress;
use packferry::publish::{Plan, Target, publish};
use packferry::release::{Release, check_object};
use packferry_core::channel::{Envelope, Pointer};
use packferry_core::manifest::Root;
use sample::{pack, write_release};

/// A store in memory that can die after a number of writes.
#[derive(Default)]
struct MemoryStore {
    values: BTreeMap<String, Vec<u8>>,
    log: Vec<String>,
    writes_left: Option<usize>,
}

impl Target for MemoryStore {
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.values.get(key).cloned())
    }

    fn missing(&mut self, keys: &[String]) -> Result<BTreeSet<String>, Fault> {
        Ok(keys
            .iter()
            .filter(|key| !self.values.contains_key(*key))
            .cloned()
            .collect())
    }

    fn put(&mut self, entries: &[(String, Vec<u8>)]) -> Result<(), Fault> {
        for (key, value) in entries {
            match &mut self.writes_left {
                Some(0) => return Err(Fault::new("killed")),
                Some(left) => *left -= 1,
                None => {}
            }
            self.values.insert(key.clone(), value.clone());
            self.log.push(key.clone());
        }
        Ok(())
    }
}

impl MemoryStore {
    fn pointer(&self) -> Option<Pointer> {
        let envelope = self.values.get("channel/stable")?;
        Some(
            Envelope::parse(std::str::from_utf8(envelope).unwrap(), "stable")
                .unwrap()
                .1,
        )
    }

    /// Asserts that what the channel names is there whole.
    fn assert_whole(&self) {
        let Some(pointer) = self.pointer() else { return };
        let root = &self.values[&format!("manifest/{}", pointer.manifest)];
        let Root::Packs(packs) = Root::parse(std::str::from_utf8(root).unwrap()).unwrap() else {
            return;
        };
        for module in packs.iter().flat_map(|pack| &pack.modules) {
            for key in [
                format!("blob/{}", module.sha256),
                format!("graph/{}", module.graph_digest),
                format!("closure/{}", module.graph_digest),
            ] {
                assert!(self.values.contains_key(&key), "{key}");
            }
        }
    }
}

fn go(release: &Release, store: &mut MemoryStore) -> Result<packferry::publish::Published, Fault> {
    publish(release, "stable", store, &Progress::new(true))
}

#[test]
fn objects_come_first_and_the_channel_last() {
    let dir = tempfile::tempdir().unwrap();
    let release = write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    let mut store = MemoryStore::default();
    let done = go(&release, &mut store).unwrap();
    assert_eq!((done.sequence, done.unchanged, done.already), (1, 0, false));
    let kinds: Vec<&str> = store.log.iter().map(|key| key.split('/').next().unwrap()).collect();
    assert_eq!(kinds, ["blob", "graph", "closure", "manifest", "channel"]);
    for phase in Plan::of(&release).phases.iter().flatten() {
        assert_eq!(check_object(phase, &store.values[&phase.to_string()]), Ok(()));
    }
}

#[test]
fn publishing_again_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let release = write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    let mut store = MemoryStore::default();
    go(&release, &mut store).unwrap();
    let writes = store.log.len();
    let again = go(&release, &mut store).unwrap();
    assert_eq!((again.written, again.sequence, again.already), (0, 1, true));
    assert_eq!(store.log.len(), writes);
}

#[test]
fn an_upgrade_writes_only_what_changed_and_keeps_what_was() {
    let dir = tempfile::tempdir().unwrap();
    let other = pack("b", "1.0.0", "export const b = 1;");
    let mut store = MemoryStore::default();
    go(
        &write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;"), other.clone()]),
        &mut store,
    )
    .unwrap();
    let before: BTreeSet<String> = store.values.keys().cloned().collect();
    store.log.clear();
    let done = go(
        &write_release(dir.path(), &[pack("a", "1.1.0", "export const a = 2;"), other]),
        &mut store,
    )
    .unwrap();
    assert_eq!(done.sequence, 2);
    let kinds: Vec<&str> = store.log.iter().map(|key| key.split('/').next().unwrap()).collect();
    assert_eq!(kinds, ["blob", "graph", "closure", "manifest", "channel"]);
    assert!(before.iter().all(|key| store.values.contains_key(key)));
}

#[test]
fn killed_anywhere_the_old_release_is_whole_and_a_second_run_finishes() {
    let dir = tempfile::tempdir().unwrap();
    let old = [pack("a", "1.0.0", "export const a = 1;")];
    let new = [
        pack("a", "2.0.0", "export const a = 2;"),
        pack("b", "1.0.0", "export const b = 1;"),
    ];
    let mut writes = 0;
    loop {
        let mut store = MemoryStore::default();
        go(&write_release(dir.path(), &old), &mut store).unwrap();
        let first = store.pointer().unwrap();
        let release = write_release(dir.path(), &new);
        store.writes_left = Some(writes);
        if go(&release, &mut store).is_ok() {
            break;
        }
        assert_eq!(store.pointer(), Some(first), "after {writes} writes");
        store.assert_whole();
        store.writes_left = None;
        go(&release, &mut store).unwrap();
        assert_eq!(store.pointer().unwrap().manifest, release.digest);
        store.assert_whole();
        writes += 1;
    }
    assert!(writes > 5, "{writes}");
}

#[test]
fn a_channel_that_cannot_be_read_is_never_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let release = write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    let mut store = MemoryStore::default();
    store.values.insert("channel/stable".into(), b"?".to_vec());
    let fault = go(&release, &mut store).unwrap_err();
    assert!(fault.to_string().contains("channel/stable"), "{fault}");
    assert_eq!(store.log, Vec::<String>::new());
}

#[test]
fn a_damaged_object_is_found_before_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let release = write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    for key in Plan::of(&release)
        .phases
        .iter()
        .flatten()
        .filter(|key| !key.to_string().starts_with("manifest"))
    {
        let path = dir.path().join("objects").join(key.to_string());
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        let last = bad.len() - 1;
        bad[last] ^= 1;
        std::fs::write(&path, bad).unwrap();
        let mut store = MemoryStore::default();
        let fault = go(&release, &mut store).unwrap_err();
        assert!(fault.to_string().contains("is damaged"), "{key}: {fault}");
        assert_eq!(store.pointer(), None);
        std::fs::write(&path, good).unwrap();
    }
}

#[test]
fn a_report_of_another_manifest_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    let report = std::fs::read(dir.path().join("report.json")).unwrap();
    write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 2;")]);
    std::fs::write(dir.path().join("report.json"), report).unwrap();
    let fault = Release::read(dir.path().try_into().unwrap()).unwrap_err();
    assert!(
        fault.to_string().contains("report.json is not the report of"),
        "{fault}"
    );
}

#[test]
fn a_new_release_takes_the_old_one_s_objects_away() {
    let dir = tempfile::tempdir().unwrap();
    let first = write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 1;")]);
    let second = write_release(dir.path(), &[pack("a", "1.0.0", "export const a = 2;")]);
    let there = |release: &Release| {
        Plan::of(release).phases[..4]
            .iter()
            .flatten()
            .filter(|key| release.object(key).is_ok())
            .count()
    };
    assert_eq!((there(&first), there(&second)), (0, 3));
}
