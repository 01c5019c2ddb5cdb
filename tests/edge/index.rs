//! The index: rows, prefixes, pages, and the shards that a page reads.

use packferry_core::key::StorageKey;
use packferry_core::manifest;
use packferry_core::policy::{Pattern, Policy};
use serde_json::{Value, json};

use crate::release::{Release, good_packs};
use crate::visit::{Ask, TestEdge, edge, get, visit};

fn specifiers(page: &Value) -> Vec<String> {
    let rows = page["modules"].as_array().unwrap().iter();
    rows.map(|row| row["specifier"].as_str().unwrap().to_owned()).collect()
}

/// Small and large packs, so that a release of them has shards.
fn sharded() -> (TestEdge, Vec<String>) {
    let mut release = Release::default();
    let files: [(&str, &[&str], &str); 2] = [("i.js", &["h.js"], "import './h.js';"), ("h.js", &[], "export {};")];
    let mut all = Vec::new();
    for scope in ["@a/", "@b/", ""] {
        for n in 0..60 {
            let name = format!("{scope}p{n:02}");
            release.add_js_pack(
                &name,
                Some("1.0.0"),
                &[(".", "i.js"), ("x", "i.js"), ("y", "i.js")],
                &files,
            );
            all.extend([name.clone(), format!("{name}/x"), format!("{name}/y")]);
        }
    }
    let edge = edge(&[("CHANNEL", "stable")]);
    release.publish(&edge.store, 1);
    assert!(manifest::write(release.packs).shards.len() > 4);
    (edge, all)
}

#[test]
fn rows_say_what_a_client_needs() {
    let edge = edge(&[("CHANNEL", "stable")]);
    let manifest = good_packs().publish(&edge.store, 1);
    let seen = visit(&edge, get("/api/sandbox-modules?prefix=@acme/geo/"));
    let geo = "38d112655a04be6b4abe2b594fbf48938402737e510691ad29d89edb4b118b8b";
    let page = visit(&edge, get("/api/sandbox-modules?prefix=%40acme%2Fgeo")).json();
    assert_eq!(page["manifest"], manifest.to_string());
    assert_eq!(
        page["modules"][0],
        json!({
            "specifier": "@acme/geo",
            "pack": "@acme/geo",
            "version": "1.2.0",
            "kind": "js",
            "graphDigest": geo,
            "pinnedId": geo,
            "exports": [],
            "size": 105 + 55,
            "files": 2,
        })
    );
    assert_eq!(specifiers(&page), ["@acme/geo", "@acme/geo/extra"]);
    assert_eq!(specifiers(&seen.json()), ["@acme/geo/extra"]);
    assert_eq!(page.get("next"), None);
    let all = specifiers(&visit(&edge, get("/api/sandbox-modules")).json());
    assert!(
        !all.iter().any(|specifier| specifier == "@acme/npm-table"),
        "unavailable modules are not listed"
    );
    assert!(all.iter().any(|specifier| specifier == "@nodetool-ai/sandbox-csv"));
}

#[test]
fn pages_add_up_to_everything_whatever_their_size() {
    let (edge, all) = sharded();
    for limit in [1, 7, 60, 179, 180, 181, 1000] {
        let mut after = String::new();
        let mut seen = Vec::new();
        loop {
            let page = visit(&edge, get(&format!("/api/sandbox-modules?limit={limit}&after={after}"))).json();
            let shown = specifiers(&page);
            assert!(shown.len() <= limit);
            seen.extend(shown);
            match page.get("next") {
                Some(next) => after = next.as_str().unwrap().to_owned(),
                None => break,
            }
        }
        assert_eq!(seen, all, "limit {limit}");
    }
}

#[test]
fn prefixes_select_by_specifier() {
    let (edge, all) = sharded();
    for prefix in [
        "", "@", "@a", "@a/", "@a/p0", "@a/p07", "@a/p07/", "@a/p07/x", "@b/p5", "p", "p1", "p12/y", "~", "@a/zz", "q",
    ] {
        let expected: Vec<&String> = all.iter().filter(|specifier| specifier.starts_with(prefix)).collect();
        let page = visit(&edge, get(&format!("/api/sandbox-modules?prefix={prefix}"))).json();
        assert_eq!(specifiers(&page).iter().collect::<Vec<_>>(), expected, "{prefix}");
        for after in ["@a/p07/x", "@b", "p30", "@a/p0", "zz", "!"] {
            let order = |specifier: &str| specifier > after;
            let expected: Vec<&&String> = expected.iter().filter(|specifier| order(specifier)).collect();
            let target = format!("/api/sandbox-modules?prefix={prefix}&after={after}");
            let page = visit(&edge, get(&target)).json();
            assert_eq!(
                specifiers(&page).iter().collect::<Vec<_>>(),
                expected.into_iter().copied().collect::<Vec<_>>(),
                "{target}"
            );
        }
    }
}

#[test]
fn only_the_shards_that_a_page_shows_are_read() {
    for (query, shards) in [
        ("?limit=1", 1),
        ("?prefix=@b/p30&limit=9", 1),
        ("?prefix=p59", 1),
        ("?after=zzz", 1),
        ("?prefix=@b/p30/x", 1),
    ] {
        let (edge, _) = sharded();
        let reads = visit(&edge, get(&format!("/api/sandbox-modules{query}"))).reads;
        let read = reads.iter().filter(|key| key.starts_with("shard/")).count();
        assert!(read <= shards + 1 && read >= shards, "{query}: {reads:?}");
    }
}

#[test]
fn shards_that_nobody_may_see_into_are_not_read() {
    let (store, all) = {
        let (edge, all) = sharded();
        (edge.store, all)
    };
    let mut edge = edge(&[("CHANNEL", "stable"), ("POLICY", "main")]);
    edge.store = store;
    let private = ["@*"].map(|text| Pattern::parse(text).unwrap()).to_vec();
    let policy = serde_json::to_string(&Policy::new(private, Vec::new(), Vec::new())).unwrap();
    edge.store.put(&StorageKey::Policy("main".to_owned()), policy);
    let seen = visit(&edge, get("/api/sandbox-modules"));
    let expected: Vec<&String> = all.iter().filter(|specifier| !specifier.starts_with('@')).collect();
    assert_eq!(specifiers(&seen.json()).iter().collect::<Vec<_>>(), expected);
    let read = seen.reads.iter().filter(|key| key.starts_with("shard/")).count();
    let (open, _) = sharded();
    let everything = visit(&open, get("/api/sandbox-modules")).reads;
    let shards = everything.iter().filter(|key| key.starts_with("shard/")).count();
    assert!(read < shards / 2, "{read} of {shards} shards were read");
}

#[test]
fn the_tag_follows_the_release_and_the_query() {
    let (edge, _) = sharded();
    let tag = |target: &str| visit(&edge, get(target)).header("etag").unwrap().to_owned();
    let whole = tag("/api/sandbox-modules");
    assert_eq!(whole, tag("/api/sandbox-modules/?unknown=1&limit=1000"));
    for other in ["?prefix=p", "?after=p", "?limit=7"] {
        assert_ne!(whole, tag(&format!("/api/sandbox-modules{other}")), "{other}");
    }
    let request = Ask {
        if_none_match: Some(&whole),
        ..get("/api/sandbox-modules")
    };
    let seen = visit(&edge, request);
    assert_eq!((seen.status, seen.body.len()), (304, 0));
    Release::default().publish(&edge.store, 2);
    edge.store.wait(30_000);
    let seen = visit(&edge, request);
    assert_eq!(
        (seen.status, seen.json()["modules"].as_array().map(Vec::len)),
        (200, Some(0))
    );
}
