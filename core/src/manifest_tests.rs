//! Properties of the manifest: order, shards, look-up.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

/// A pack entry of about `padding` bytes.
fn pack(name: &str, salt: u64, padding: usize) -> PackEntry {
    PackEntry {
        name: PackName::parse(name).unwrap(),
        version: Some(format!("1.0.{salt}")),
        description: (padding > 0).then(|| "x".repeat(padding)),
        digest: PackDigest::of(&salt.to_le_bytes()),
        modules: Vec::new(),
        files: Vec::new(),
        unavailable: Vec::new(),
    }
}

fn read_back(written: &WrittenManifest, name: &str) -> Option<PackEntry> {
    let root = Root::parse(&written.root).unwrap();
    match root.locate(name) {
        Location::Here(pack) => Some(pack.clone()),
        Location::Absent => None,
        Location::Shard(digest) => {
            let (_, text) = written.shards.iter().find(|(shard, _)| *shard == digest).unwrap();
            assert_eq!(ShardDigest::of(text.as_bytes()), digest);
            find_pack(&parse_packs(text).unwrap(), name).cloned()
        }
    }
}

#[test]
fn a_small_release_is_one_document() {
    let written = write(vec![pack("b", 1, 0), pack("a", 2, 0)]);
    assert!(written.shards.is_empty());
    assert_eq!(read_back(&written, "a"), Some(pack("a", 2, 0)));
    assert_eq!(read_back(&written, "c"), None);
    assert_eq!(write(Vec::new()).root, WRAPPER);
}

#[test]
fn the_bound_is_inclusive() {
    let overhead = write(vec![pack("a", 1, 1)]).root.len() - 1;
    let fits = write(vec![pack("a", 1, SHARD_BYTES - overhead)]);
    assert_eq!((fits.root.len(), fits.shards.len()), (SHARD_BYTES, 0));
    let over = write(vec![pack("a", 1, SHARD_BYTES - overhead + 1)]);
    assert_eq!(over.shards.len(), 1, "an entry over the bound is a shard of its own");
    assert_eq!(over.shards[0].1.len(), SHARD_BYTES + 1);
}

#[test]
fn hostile_documents_are_refused() {
    let good = write(vec![pack("b", 1, 0), pack("a", 2, 0)]).root;
    let twice = good.replacen("\"name\":\"b\"", "\"name\":\"a\"", 1);
    let cases = [
        "",
        "{}",
        "[]",
        "{\"version\":2,\"packs\":[]}",
        "{\"version\":1,\"packs\":[],\"shards\":[]}",
        &twice,
    ];
    for text in cases {
        assert!(Root::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn order_never_matters_and_every_name_is_found(
        rows in prop::collection::btree_map("@?[a-z]{1,3}(/[a-z0-9]{1,4})?", (0u64..9, 0usize..6000), 1..120),
        seed in any::<u64>(),
    ) {
        let packs: Vec<PackEntry> = rows
            .iter()
            .filter(|(name, _)| PackName::parse(name).is_ok())
            .map(|(name, (salt, padding))| pack(name, *salt, *padding))
            .collect();
        let written = write(packs.clone());
        let mut shuffled = packs.clone();
        shuffled.sort_by_key(|p| PackDigest::of(format!("{seed}{}", p.name).as_bytes()));
        prop_assert_eq!(&write(shuffled), &written);
        for p in &packs {
            let found = read_back(&written, p.name.as_str());
            prop_assert_eq!(found.as_ref(), Some(p));
        }
        prop_assert_eq!(read_back(&written, "~absent"), None);
        for (_, text) in &written.shards {
            let single = parse_packs(text).unwrap().len() == 1;
            prop_assert!(text.len() <= SHARD_BYTES || single);
        }
    }

    #[test]
    fn one_changed_pack_moves_at_most_a_few_shards(at in 0usize..600, padding in 0usize..3000) {
        let base: Vec<PackEntry> = (0..600).map(|i| pack(&format!("p{i:03}"), 1, 900)).collect();
        let mut changed = base.clone();
        changed[at] = pack(&format!("p{at:03}"), 2, padding);
        let before: HashSet<ShardDigest> = write(base).shards.into_iter().map(|(digest, _)| digest).collect();
        let after = write(changed);
        prop_assert!(before.len() > 10);
        let moved = after.shards.iter().filter(|(digest, _)| !before.contains(digest)).count();
        prop_assert!((1..=3).contains(&moved), "{} shards moved", moved);
    }
}
