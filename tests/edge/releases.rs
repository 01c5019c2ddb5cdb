//! Which release answers: upgrades, pinned releases, and what goes on when a new one cannot be taken.

use packferry_core::digest::ManifestDigest;
use packferry_core::key::StorageKey;

use crate::release::{Release, channel_key, envelope};
use crate::visit::{Seen, TestEdge, edge, get, module_path, visit};

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

#[test]
fn what_cannot_be_taken_leaves_the_last_good_release() {
    for (what, publish, says) in BAD {
        let edge = edge(&[("CHANNEL", "stable")]);
        version("1.0.0").publish(&edge.store, 5);
        assert_eq!(answering(&edge).as_deref(), Some("1.0.0"), "{what}");
        assert_eq!(health(&edge)["status"], "ok", "{what}");

        publish(&edge);
        edge.store.wait(CACHE_MILLISECONDS);
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
fn without_a_good_release_module_routes_are_503_until_there_is_one() {
    for (what, publish, _) in BAD {
        let edge = edge(&[("CHANNEL", "stable")]);
        publish(&edge);
        if matches!(what, "a lower sequence" | "the same sequence again") {
            continue;
        }
        let status = if what.starts_with("a manifest of") {
            (502, "corrupt".to_owned())
        } else {
            (503, "storage-incomplete".to_owned())
        };
        let seen = named(&edge);
        assert_eq!(seen.problem(), status, "{what}");
        assert_eq!(seen.header("retry-after").is_some(), status.0 == 503, "{what}");
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
