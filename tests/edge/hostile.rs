//! Hostile input: whatever a client sends gets an answer of the table, with every header; whatever storage holds is checked.

use packferry_core::key::StorageKey;
use proptest::prelude::*;

use crate::release::{Release, channel_key, envelope, good_packs};
use crate::visit::{Ask, TestEdge, edge, get, module_path, visit};

/// Statuses that the worker has.
const STATUSES: [u16; 9] = [200, 204, 304, 400, 403, 404, 405, 502, 503];

fn check(edge: &TestEdge, ask: Ask<'_>) {
    let seen = visit(edge, ask);
    assert!(STATUSES.contains(&seen.status), "{ask:?}: {}", seen.status);
    for name in [
        "access-control-allow-origin",
        "x-content-type-options",
        "content-security-policy",
        "cache-control",
    ] {
        assert!(seen.header(name).is_some(), "{ask:?}: {name}");
    }
    assert!(
        seen.headers
            .iter()
            .all(|(_, value)| value.bytes().all(|b| (0x20..=0x7e).contains(&b))),
        "{ask:?}"
    );
}

fn published() -> TestEdge {
    let edge = edge(&[("CHANNEL", "stable")]);
    good_packs().publish(&edge.store, 1);
    edge
}

#[test]
fn odd_paths() {
    let edge = published();
    let long = "a".repeat(16 << 10);
    let escaped = "%61".repeat(8 << 10);
    let many = "::".repeat(4 << 10);
    let cases = [
        ("<script>", 404),
        ("a>b^c", 404),
        ("a\"b", 404),
        ("é", 404),
        ("\u{10ffff}", 404),
        ("a%00", 400),
        ("a\u{0}", 400),
        ("a\nb", 400),
        ("%ff", 400),
        (&long, 400),
        (&escaped, 400),
        (&many, 400),
    ];
    for (id, status) in cases {
        let path = format!("/api/sandbox-modules/{id}");
        assert_eq!(visit(&edge, get(&path)).status, status, "{id}");
        check(&edge, get(&path));
    }
}

#[test]
fn odd_index_queries() {
    let edge = published();
    let all = visit(&edge, get("/api/sandbox-modules")).json()["modules"]
        .as_array()
        .unwrap()
        .len();
    let long = format!("prefix={}", "a".repeat(1_600));
    let many = format!("{}limit=2", "limit=1&".repeat(5_000));
    let some = |rows| (200, Some(rows));
    let cases = [
        ("limit=-1", some(all)),
        ("limit=1e9", some(all)),
        ("limit=99999999999999999999999", some(all)),
        ("limit=+2", some(2)),
        ("limit=%32", some(all)),
        ("limit=", some(all)),
        ("limit=0", some(1)),
        ("limit=3&limit=2", some(2)),
        (&many, some(2)),
        ("after=zzz%7E", some(0)),
        ("after=@", some(all)),
        ("after=@acme/geo&after=", some(all)),
        ("prefix=units&prefix=@acme/geo", some(2)),
        ("prefix=@acme%2Fgeo", some(2)),
        ("prefix=@acme%252Fgeo", some(0)),
        ("prefix=%F0%9F%98%80", some(0)),
        ("prefix=a+b", some(0)),
        ("PREFIX=zzz&Limit=1", some(all)),
        ("&&&===&=&", some(all)),
        ("prefix=%", (400, None)),
        ("prefix=%4", (400, None)),
        ("prefix=%zz", (400, None)),
        ("prefix=%ff", (400, None)),
        ("after=%c3%28", (400, None)),
        ("prefix=%00", some(0)),
        (&long, (400, None)),
    ];
    for (query, expected) in cases {
        let path = format!("/api/sandbox-modules?{query}");
        let seen = visit(&edge, get(&path));
        let rows = (seen.status == 200).then(|| seen.json()["modules"].as_array().unwrap().len());
        assert_eq!((seen.status, rows), expected, "{query}");
        check(&edge, get(&path));
    }
}

#[test]
fn thousands_of_entity_tags() {
    let edge = published();
    let graph = visit(&edge, get("/api/sandbox-modules/units"));
    let tag = graph.header("etag").unwrap();
    let many = "\"x\", ".repeat(50_000);
    for (header, status) in [
        (many.clone(), 200),
        (format!("{many}W/{tag}"), 304),
        ("\"".repeat(100_000), 200),
    ] {
        let ask = Ask {
            if_none_match: Some(&header),
            ..get("/api/sandbox-modules/units")
        };
        assert_eq!(visit(&edge, ask).status, status);
    }
}

#[test]
fn packs_that_no_header_can_carry_are_corrupt() {
    let cases: [(&str, Option<&str>, &str); 5] = [
        ("p", Some("1\r\nX: y"), "i.js"),
        ("p", Some("1.0.0-é"), "i.js"),
        ("p", Some(" 1"), "i.js"),
        ("p", None, "é.js"),
        ("p", None, "i.js "),
    ];
    for (name, version, file) in cases {
        let mut release = Release::default();
        release.add_js_pack(name, version, &[(".", file)], &[(file, &[], "export {};")]);
        let edge = edge(&[("CHANNEL", "stable")]);
        release.publish(&edge.store, 1);
        let graph = release.pack(name).modules.first().unwrap().graph_digest.to_string();
        for path in [module_path(name), module_path(&graph)] {
            assert_eq!(
                visit(&edge, get(&path)).problem(),
                (502, "corrupt".to_owned()),
                "{version:?} {file}"
            );
        }
    }
    let long: Vec<String> = (0..150).map(|n| format!("{n:03}{}.js", "x".repeat(60))).collect();
    let imports: Vec<&str> = long.iter().map(String::as_str).collect();
    let mut files: Vec<(&str, &[&str], &str)> = imports.iter().map(|id| (*id, &[] as &[&str], "export {};")).collect();
    files.push(("i.js", &imports, "import all;"));
    let mut release = Release::default();
    release.add_js_pack("p", None, &[(".", "i.js")], &files);
    let edge = edge(&[("CHANNEL", "stable")]);
    release.publish(&edge.store, 1);
    assert_eq!(
        visit(&edge, get("/api/sandbox-modules/p")).problem(),
        (502, "corrupt".to_owned())
    );
}

/// Texts near what clients and storage say.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/api/sandbox-modules/".to_owned()),
        Just("/api/sandbox-closures/".to_owned()),
        Just("/api/manifests/".to_owned()),
        Just("/api/channels/stable".to_owned()),
        Just("38d112655a04be6b4abe2b594fbf48938402737e510691ad29d89edb4b118b8b".to_owned()),
        Just("@acme/geo".to_owned()),
        Just("sandbox/geo.js".to_owned()),
        Just("Bearer ".to_owned()),
        "[-/:%?#&=@*\",\\\\ 0-9a-fW]{0,6}",
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_request_has_an_answer(method in "GET|HEAD|OPTIONS|[A-Z]{0,5}", target in text(), first in text(), second in text()) {
        thread_local! {
            static EDGE: TestEdge = published();
        }
        EDGE.with(|edge| {
            check(edge, Ask { method: &method, target: &target, authorization: Some(&first), if_none_match: Some(&second) });
        });
    }

    #[test]
    fn any_stored_bytes_have_an_answer(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        which in any::<prop::sample::Index>(),
    ) {
        let release = good_packs();
        let edge = edge(&[("CHANNEL", "stable")]);
        let manifest = release.publish(&edge.store, 1);
        let root = packferry_core::manifest::write(release.packs.clone()).root.into_bytes();
        let mut objects: Vec<(StorageKey, Vec<u8>)> = release.objects.values().cloned().collect();
        objects.push((StorageKey::Manifest(manifest), root));
        objects.push((channel_key(), envelope("stable", 1, manifest).into_bytes()));
        let (key, mut bytes) = objects[which.index(objects.len())].clone();
        for (at, byte) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        edge.store.put(&key, bytes);
        for pack in &release.packs {
            for module in &pack.modules {
                for id in [module.specifier.to_string(), module.graph_digest.to_string()] {
                    let path = module_path(&id);
                    let seen = visit(&edge, get(&path));
                    let body = packferry_core::digest::BlobDigest::of(&seen.body);
                    assert!(seen.status != 200 || body == module.sha256, "a wrong byte of {id}");
                    check(&edge, get(&path));
                }
            }
        }
    }
}
