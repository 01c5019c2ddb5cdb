//! Every module and file of the good packs, as the reference implementation answers it, with the differences that the pack
//! contract lists.

use packferry_core::digest::BlobDigest;
use serde_json::Value;

use crate::release::{good_packs, vectors};
use crate::visit::{Ask, Seen, TestEdge, edge, get, module_path, visit};

/// Headers that are the reference implementation's to the byte.
const SAME: [&str; 8] = [
    "x-content-digest",
    "x-content-sha256",
    "x-sandbox-pack",
    "x-sandbox-pack-version",
    "x-sandbox-file-id",
    "x-sandbox-internal",
    "x-sandbox-wasm-contract",
    "etag",
];

fn check_row(edge: &TestEdge, row: &Value, manifest: &str) {
    let id = row["moduleId"].as_str().unwrap();
    let wanted = &row["route"]["headers"];
    let seen = visit(edge, get(&module_path(id)));
    assert_eq!(u64::from(seen.status), row["route"]["status"].as_u64().unwrap(), "{id}");
    if seen.status == 404 {
        return;
    }
    for name in SAME {
        assert_eq!(seen.header(name), wanted[name].as_str(), "{id}: {name}");
    }
    assert_eq!(
        seen.header("x-sandbox-host-module"),
        wanted["x-sandbox-host-module"].as_str(),
        "{id}"
    );
    assert_eq!(
        BlobDigest::of(&seen.body).to_string(),
        row["bodySha256"].as_str().unwrap(),
        "{id}"
    );
    assert_eq!(
        seen.header("content-length"),
        Some(seen.body.len().to_string().as_str()),
        "{id}"
    );
    assert_eq!(seen.header("cache-control"), Some("no-cache"), "{id}");
    assert_eq!(seen.header("x-packferry-manifest"), Some(manifest), "{id}");
    let charset = match wanted["content-type"].as_str().unwrap() {
        "text/javascript" => "text/javascript; charset=utf-8",
        other => other,
    };
    assert_eq!(seen.header("content-type"), Some(charset), "{id}");
    check_dependencies(edge, &seen, wanted["x-sandbox-module-dependencies"].as_str().unwrap());
    check_conditional(edge, id, &seen);
    check_pinned(edge, row, &seen);
}

/// Dependencies are the same files, named by pinned ids, and each of them is delivered.
fn check_dependencies(edge: &TestEdge, seen: &Seen, wanted: &str) {
    let graph = seen.header("x-content-digest").unwrap();
    let pack = seen.header("x-sandbox-pack").unwrap();
    let ids: Vec<String> = serde_json::from_str(seen.header("x-sandbox-module-dependencies").unwrap()).unwrap();
    let named: Vec<String> = ids.iter().map(|id| id.replacen(graph, pack, 1)).collect();
    let wanted: Vec<String> = serde_json::from_str(wanted).unwrap();
    assert_eq!(named, wanted);
    for id in ids {
        let dependency = visit(edge, get(&module_path(&id)));
        assert_eq!(
            (dependency.status, dependency.header("x-content-digest")),
            (200, Some(graph)),
            "{id}"
        );
    }
}

/// 304 has every header of the 200 but Content-Length, Unencoded-Digest (both about bytes that it lacks) and the timing, and no body; HEAD has all of them.
fn check_conditional(edge: &TestEdge, id: &str, whole: &Seen) {
    let path = module_path(id);
    let unchanged = |seen: &Seen, without: &[&str]| -> Vec<(String, String)> {
        let kept = seen
            .headers
            .iter()
            .filter(|(name, _)| !without.contains(&name.as_str()));
        kept.cloned().collect()
    };
    let conditional = Ask {
        if_none_match: whole.header("etag"),
        ..get(&path)
    };
    let seen = visit(edge, conditional);
    assert_eq!((seen.status, seen.body.len()), (304, 0), "{id}");
    let without = ["content-length", "unencoded-digest", "server-timing"];
    assert_eq!(unchanged(&seen, &without), unchanged(whole, &without), "{id}");
    assert_eq!(seen.header("content-length"), None, "{id}");
    assert_eq!(seen.header("unencoded-digest"), None, "{id}");
    let head = visit(
        edge,
        Ask {
            method: "HEAD",
            ..get(&path)
        },
    );
    assert_eq!((head.status, head.body.len()), (200, 0), "{id}");
    assert_eq!(
        unchanged(&head, &["server-timing"]),
        unchanged(whole, &["server-timing"]),
        "{id}"
    );
}

/// The pinned id of the same file gives the same bytes, for ever.
fn check_pinned(edge: &TestEdge, row: &Value, named: &Seen) {
    let graph = named.header("x-content-digest").unwrap();
    let file = named.header("x-sandbox-file-id").unwrap();
    let is_entry = row.get("specifier").is_some();
    let mut ids = vec![format!("{graph}::{file}")];
    if is_entry {
        ids.push(graph.to_owned());
    }
    for id in ids {
        let pinned = visit(edge, get(&module_path(&id)));
        assert_eq!((pinned.status, &pinned.body), (200, &named.body), "{id}");
        assert_eq!(
            pinned.header("cache-control"),
            Some("public, max-age=31536000, immutable"),
            "{id}"
        );
        assert_eq!(pinned.header("x-packferry-manifest"), None, "{id}");
        if is_entry {
            assert_eq!(pinned.header("x-sandbox-internal"), Some("0"), "{id}");
            for name in [
                "x-sandbox-wasm-contract",
                "x-sandbox-host-module",
                "etag",
                "x-sandbox-pack-version",
            ] {
                assert_eq!(pinned.header(name), named.header(name), "{id}: {name}");
            }
        }
    }
}

#[test]
fn every_module_and_file_is_answered_as_the_reference_does() {
    let edge = edge(&[("CHANNEL", "stable")]);
    let manifest = good_packs().publish(&edge.store, 1).to_string();
    let mut rows = 0;
    for vector in vectors() {
        let modules = vector["modules"].as_array().unwrap().iter();
        for row in modules.chain(vector["files"].as_array().unwrap()) {
            if row.get("route").is_some() {
                check_row(&edge, row, &manifest);
                rows += 1;
            }
        }
    }
    assert!(rows > 60, "{rows} rows");
}

#[test]
fn an_internal_file_is_internal_by_either_id() {
    let edge = edge(&[("CHANNEL", "stable")]);
    good_packs().publish(&edge.store, 1);
    let graph = visit(&edge, get("/api/sandbox-modules/@acme/geo"));
    let graph = graph.header("etag").unwrap().trim_matches('"').to_owned();
    let cases = [
        ("@acme/geo::sandbox/internal/round.js".to_owned(), "1"),
        ("@acme/geo::sandbox/geo.js".to_owned(), "0"),
        (format!("{graph}::sandbox/internal/round.js"), "1"),
        (format!("{graph}::sandbox/geo.js"), "0"),
        (graph, "0"),
    ];
    for (id, internal) in cases {
        let seen = visit(&edge, get(&module_path(&id)));
        assert_eq!(seen.header("x-sandbox-internal"), Some(internal), "{id}");
    }
}
