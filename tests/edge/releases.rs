//! Which release answers: upgrades, pinned releases, and what goes on when a new one cannot be taken.

use std::task::Context;

use futures::executor::block_on;
use futures::task::noop_waker_ref;
use packferry_core::digest::ManifestDigest;
use packferry_core::key::StorageKey;

use crate::release::{Release, channel_key, envelope};
use crate::visit::{Seen, TestEdge, ask, edge, get, module_path, visit};

const CACHE_MILLISECONDS: u64 = 30_000;

/// A pack `p` of this version, whose entry imports a helper.
fn version(version: &str) -> Release {
    let entry = format!("import {{ h }} from './h.js'; export const f = () => h + '{version}';");
    let helper = format!("export const h = 'helper of {version}';");
    let mut release = Release::default();
    let files: [(&str, &[&str], &str); 2] = [("i.js", &["h.js"], &entry), ("h.js", &[], &helper)];
    release.add_js_pack("p", Some(version), &[(".", "i.js")], &files);
    release
}

fn named(edge: &TestEdge) -> Seen {
    visit(edge, get("/api/sandbox-modules/p"))
}

/// The version that answers `p`.
fn answering(edge: &TestEdge) -> Option<String> {
    named(edge).header("x-sandbox-pack-version").map(str::to_owned)
}

fn health(edge: &TestEdge) -> serde_json::Value {
    visit(edge, get("/healthz")).json()
}

#[test]
fn an_upgrade_moves_named_ids_and_no_pinned_one() {
    let edge = edge(&[("CHANNEL", "stable")]);
    version("1.0.0").publish(&edge.store, 1);
    let old = named(&edge);
    let old_graph = old.header("x-content-digest").unwrap().to_owned();
    let old_helper = format!("{old_graph}::h.js");
    let helper_bytes = visit(&edge, get(&module_path(&old_helper))).body;

    version("2.0.0").publish(&edge.store, 2);
    assert_eq!(answering(&edge).as_deref(), Some("1.0.0"), "within the cache time");
    edge.store.wait(CACHE_MILLISECONDS);
    let new = named(&edge);
    assert_eq!(new.header("x-sandbox-pack-version"), Some("2.0.0"));
    assert_ne!(new.header("etag"), old.header("etag"));
    assert_ne!(new.body, old.body);
    let pinned = [
        (old_graph.clone(), &old.body),
        (format!("{old_graph}::i.js"), &old.body),
        (old_helper, &helper_bytes),
    ];
    for (id, body) in pinned {
        let seen = visit(&edge, get(&module_path(&id)));
        assert_eq!((seen.status, &seen.body), (200, body), "{id}");
        assert_eq!(
            seen.header("cache-control"),
            Some("public, max-age=31536000, immutable")
        );
    }
    assert_ne!(visit(&edge, get("/api/sandbox-modules/p::h.js")).body, helper_bytes);
}

/// Packs enough for shards, and a new one where it is wanted.
fn sharded(with_new: bool) -> Release {
    let mut release = Release::default();
    for n in 0..200 {
        let source = format!("export const f = {n};");
        release.add_js_pack(
            &format!("pack-{n:03}"),
            Some("1.0.0"),
            &[(".", "i.js")],
            &[("i.js", &[], &source)],
        );
    }
    if with_new {
        release.add_js_pack(
            "pack-000-new",
            Some("1.0.0"),
            &[(".", "i.js")],
            &[("i.js", &[], "export {};")],
        );
        release.packs.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
    }
    release
}

#[test]
fn a_module_that_a_release_adds_is_not_absent_because_a_request_was_on_its_way_before() {
    let edge = edge(&[("CHANNEL", "stable")]);
    sharded(false).publish(&edge.store, 1);
    assert_eq!(visit(&edge, get(&module_path("pack-199"))).status, 200);

    // Looks into the old release, and waits for its shard.
    let path = module_path("pack-000-new");
    let mut early = Box::pin(ask(&edge, get(&path)));
    let mut context = Context::from_waker(noop_waker_ref());
    assert!(early.as_mut().poll(&mut context).is_pending());

    sharded(true).publish(&edge.store, 2);
    edge.store.wait(CACHE_MILLISECONDS);
    assert_eq!(visit(&edge, get(&module_path("pack-199"))).status, 200);
    assert_eq!(health(&edge)["sequence"], 2, "the new release was adopted meanwhile");

    assert_eq!(block_on(early).status, 404);
    assert_eq!(visit(&edge, get(&path)).status, 200);
}

#[test]
fn a_pinned_release_wins_over_the_channel() {
    let store = edge(&[]).store;
    let first = version("1.0.0").publish(&store, 1).to_string();
    version("2.0.0").publish(&store, 2);
    let mut edge = edge(&[("CHANNEL", "stable"), ("MANIFEST", &first)]);
    edge.store = store;
    assert_eq!(answering(&edge).as_deref(), Some("1.0.0"));
    assert_eq!(named(&edge).header("x-packferry-manifest"), Some(first.as_str()));
    let report = health(&edge);
    assert_eq!(report["manifest"], first.as_str());
    assert!(report.get("channel").is_none() && report.get("sequence").is_none());
    assert_eq!(
        visit(&edge, get("/api/channels/stable")).problem(),
        (404, "not-found".to_owned())
    );
}

/// A way to publish something that no reader should take, and what `/healthz` says of it.
type Bad = (&'static str, fn(&TestEdge), &'static str);

const BAD: [Bad; 9] = [
    (
        "a lower sequence",
        |edge| point(edge, "stable", 4, "2.0.0"),
        "its sequence is lower",
    ),
    (
        "the same sequence again",
        |edge| point(edge, "stable", 5, "2.0.0"),
        "its payload is another",
    ),
    (
        "another channel's pointer",
        |edge| point(edge, "beta", 6, "2.0.0"),
        "it is that of channel beta",
    ),
    ("no JSON", |edge| edge.store.put(&channel_key(), "{"), "cannot be taken"),
    (
        "no text",
        |edge| edge.store.put(&channel_key(), [0xff]),
        "it is not UTF-8",
    ),
    (
        "nothing",
        |edge| edge.store.remove(&channel_key()),
        "storage lacks channel/stable",
    ),
    (
        "a manifest that is missing",
        |edge| {
            edge.store
                .put(&channel_key(), envelope("stable", 6, ManifestDigest::of(b"missing")));
        },
        "storage lacks manifest/",
    ),
    (
        "a manifest of other bytes",
        |edge| {
            let manifest = version("2.0.0").publish(&edge.store, 6);
            edge.store
                .put(&StorageKey::Manifest(manifest), "{\"version\":1,\"packs\":[]}");
        },
        "its bytes are those of",
    ),
    (
        "a manifest of another version",
        |edge| {
            let text = "{\"version\":2,\"packs\":[]}";
            let manifest = ManifestDigest::of(text.as_bytes());
            edge.store.put(&StorageKey::Manifest(manifest), text);
            edge.store.put(&channel_key(), envelope("stable", 6, manifest));
        },
        "manifest version 2 is not known",
    ),
];

fn point(edge: &TestEdge, channel: &str, sequence: u64, to: &str) {
    let manifest = version(to).write(&edge.store);
    edge.store.put(&channel_key(), envelope(channel, sequence, manifest));
}

/// Every route to release 1.0.0, and whether it needs a channel.
fn routes() -> Vec<(String, bool)> {
    let release = version("1.0.0");
    let graph = release.pack("p").modules.first().unwrap().graph_digest;
    let manifest = packferry_core::manifest::write(release.packs.clone()).digest;
    vec![
        (module_path("p"), true),
        (module_path("p::h.js"), true),
        ("/api/sandbox-closures/p".to_owned(), true),
        ("/api/sandbox-modules".to_owned(), true),
        (module_path(&graph.to_string()), false),
        (module_path(&format!("{graph}::h.js")), false),
        (format!("/api/sandbox-closures/{graph}"), false),
        (format!("/api/manifests/{manifest}"), false),
    ]
}

#[test]
fn what_cannot_be_taken_leaves_the_last_good_release() {
    for (what, publish, says) in BAD {
        let edge = edge(&[("CHANNEL", "stable")]);
        version("1.0.0").publish(&edge.store, 5);
        assert_eq!(answering(&edge).as_deref(), Some("1.0.0"), "{what}");
        assert_eq!(health(&edge)["status"], "ok", "{what}");
        let good: Vec<Seen> = routes().iter().map(|(path, _)| visit(&edge, get(path))).collect();

        publish(&edge);
        edge.store.wait(CACHE_MILLISECONDS);
        let line = named(&edge).line.unwrap();
        assert!(
            line.contains("\"status\":200") && line.contains(says),
            "{what}: the log tells: {line}"
        );
        for ((path, _), good) in routes().iter().zip(good) {
            let seen = visit(&edge, get(path));
            assert_eq!((seen.status, seen.body), (200, good.body), "{what}: {path}");
        }
        assert_eq!(visit(&edge, get("/api/channels/stable")).status, 200, "{what}");
        assert_eq!(answering(&edge).as_deref(), Some("1.0.0"), "{what}");
        assert!(
            named(&edge).reads.is_empty(),
            "{what}: within the cache time nothing is tried again"
        );
        let report = health(&edge);
        assert_eq!(
            (&report["status"], &report["sequence"]),
            (&"degraded".into(), &5.into()),
            "{what}"
        );
        let problem = report["problem"].as_str().unwrap();
        assert!(problem.contains(says), "{what}: {problem}");

        version("3.0.0").publish(&edge.store, 7);
        edge.store.wait(CACHE_MILLISECONDS);
        assert_eq!(
            answering(&edge).as_deref(),
            Some("3.0.0"),
            "{what}: a good release mends it"
        );
        let report = health(&edge);
        assert_eq!(
            (&report["status"], report.get("problem")),
            (&"ok".into(), None),
            "{what}"
        );
    }
}

#[test]
fn without_a_good_release_what_needs_one_is_503_until_there_is_one() {
    for (what, publish, _) in BAD {
        let edge = edge(&[("CHANNEL", "stable")]);
        version("1.0.0").write(&edge.store);
        publish(&edge);
        if matches!(what, "a lower sequence" | "the same sequence again") {
            continue;
        }
        let status = if what.starts_with("a manifest of") {
            (502, "corrupt".to_owned())
        } else {
            (503, "storage-incomplete".to_owned())
        };
        for (path, needs_channel) in routes() {
            let seen = visit(&edge, get(&path));
            if needs_channel {
                assert_eq!(seen.problem(), status, "{what}: {path}");
                assert_eq!(seen.header("retry-after").is_some(), status.0 == 503, "{what}: {path}");
            } else {
                assert_eq!(seen.status, 200, "{what}: {path}");
            }
        }
        let channel = visit(&edge, get("/api/channels/stable"));
        assert_eq!(
            channel.status,
            if what.starts_with("a manifest") { 200 } else { 503 },
            "{what}"
        );
        let report = health(&edge);
        assert_eq!(
            (&report["status"], report.get("manifest")),
            (&"degraded".into(), None),
            "{what}"
        );

        version("1.0.0").publish(&edge.store, 9);
        edge.store.wait(CACHE_MILLISECONDS);
        assert_eq!(answering(&edge).as_deref(), Some("1.0.0"), "{what}");
        assert_eq!(health(&edge)["status"], "ok", "{what}");
    }
}

#[test]
fn a_worker_without_a_source_answers_503_and_says_why() {
    let cases = [
        (vec![], "neither CHANNEL nor MANIFEST is set"),
        (vec![("CHANNEL", "no/name")], "CHANNEL is no channel's name"),
        (vec![("MANIFEST", "abc")], "MANIFEST is no digest"),
    ];
    for (vars, problem) in cases {
        let edge = edge(&vars);
        let pinned = module_path(&"ab".repeat(32));
        for path in [
            "/api/sandbox-modules/p",
            "/api/sandbox-modules",
            "/api/sandbox-closures/p",
            &pinned,
        ] {
            let seen = visit(&edge, get(path));
            assert_eq!(seen.problem(), (503, "storage-incomplete".to_owned()), "{path}");
            assert!(seen.reads.is_empty(), "{path}");
        }
        let report = health(&edge);
        assert_eq!(
            (&report["status"], &report["problem"]),
            (&"degraded".into(), &problem.into())
        );
    }
}
