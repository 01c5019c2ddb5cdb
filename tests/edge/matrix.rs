//! Which headers stand on which answer: every status, every method, and no header more or less.

use packferry_core::key::StorageKey;
use packferry_core::policy::{Pattern, Policy};

use crate::release::{channel_key, good_packs};
use crate::visit::{Ask, Seen, TestEdge, edge, get, visit};

/// On every answer, whatever its status.
const EVERYWHERE: [(&str, &str); 5] = [
    ("access-control-allow-origin", "*"),
    ("access-control-expose-headers", EXPOSED),
    ("cross-origin-resource-policy", "cross-origin"),
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; sandbox"),
];

const EXPOSED: &str = "Content-Type, ETag, X-Content-Digest, X-Content-Sha256, Unencoded-Digest, X-Sandbox-Pack, \
    X-Sandbox-Pack-Version, X-Sandbox-File-Id, X-Sandbox-Internal, X-Sandbox-Module-Dependencies, \
    X-Sandbox-Wasm-Contract, X-Sandbox-Host-Module, X-Packferry-Manifest, Cache-Control, Server-Timing, Retry-After";

const DIGESTS: &str = "etag accept-ranges x-content-sha256 unencoded-digest";
const GRAPH: &str = "x-content-digest x-sandbox-pack x-sandbox-pack-version";
const FILE: &str = "x-sandbox-file-id x-sandbox-internal x-sandbox-module-dependencies";

/// A request, the status, Cache-Control and Content-Type of its answer, and what else it has.
struct Row {
    method: &'static str,
    target: String,
    condition: Option<&'static str>,
    status: u16,
    caching: &'static str,
    kind: Option<&'static str>,
    more: String,
}

fn row(target: impl Into<String>, status: u16, caching: &'static str, kind: &'static str, more: String) -> Row {
    Row {
        method: "GET",
        target: target.into(),
        condition: None,
        status,
        caching,
        kind: Some(kind),
        more,
    }
}

const NAMED: &str = "no-cache";
const PINNED: &str = "public, max-age=31536000, immutable";
const NONE: &str = "no-store";
const JS: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";
const CLOSURE: &str = "application/vnd.packferry.closure";

fn rows(edge: &TestEdge) -> Vec<Row> {
    let release = good_packs();
    let manifest = release.publish(&edge.store, 1);
    let graph = |pack: &str| release.pack(pack).modules.first().unwrap().graph_digest;
    let geo = graph("@acme/geo");
    let broken = release.pack("units").modules.first().unwrap();
    edge.store.put(&StorageKey::Blob(broken.sha256), "other bytes");
    edge.store.remove(&StorageKey::Blob(
        release.pack("@acme/caps").modules.first().unwrap().sha256,
    ));
    edge.store.put(
        &StorageKey::Policy("main".to_owned()),
        serde_json::to_string(&Policy::new(
            vec![Pattern::parse("@private/*").unwrap()],
            Vec::new(),
            Vec::new(),
        ))
        .unwrap(),
    );
    let module = |target: &str| format!("/api/sandbox-modules/{target}");
    let named = format!("{DIGESTS} {GRAPH} {FILE} x-packferry-manifest");
    let pinned = format!("{DIGESTS} {GRAPH} {FILE}");
    let csv = release
        .pack("@nodetool-ai/sandbox-csv")
        .modules
        .first()
        .unwrap()
        .graph_digest;
    vec![
        row(module("@acme/geo"), 200, NAMED, JS, named.clone()),
        row(module("@acme/geo::sandbox/geo.js"), 200, NAMED, JS, named.clone()),
        row(
            module("@acme/wasm-math/math"),
            200,
            NAMED,
            "application/wasm",
            format!("{named} x-sandbox-wasm-contract"),
        ),
        row(
            module("@acme/wasm-math::sandbox/math.wasm"),
            200,
            NAMED,
            "application/wasm",
            named.clone(),
        ),
        row(
            module("@nodetool-ai/sandbox-csv"),
            200,
            NAMED,
            JS,
            format!("{named} x-sandbox-host-module"),
        ),
        row(
            module(&csv.to_string()),
            200,
            PINNED,
            JS,
            format!("{pinned} x-sandbox-host-module"),
        ),
        row(
            module(&format!("{csv}::host:csv")),
            200,
            PINNED,
            JS,
            format!("{pinned} x-sandbox-host-module"),
        ),
        row(module(&geo.to_string()), 200, PINNED, JS, pinned),
        row(
            format!("/api/sandbox-closures/{geo}"),
            200,
            PINNED,
            CLOSURE,
            format!("{DIGESTS} {GRAPH}"),
        ),
        row(
            "/api/sandbox-closures/@acme/geo",
            200,
            NAMED,
            CLOSURE,
            format!("{DIGESTS} {GRAPH} x-packferry-manifest"),
        ),
        row(
            "/api/sandbox-modules",
            200,
            "private, no-cache",
            JSON,
            "etag accept-ranges vary".to_owned(),
        ),
        row("/api/channels/stable", 200, NAMED, JSON, DIGESTS.to_owned()),
        row("/healthz", 200, NONE, JSON, String::new()),
        row(module("%"), 400, NONE, PROBLEM, String::new()),
        row(module("@private/x"), 403, NONE, PROBLEM, "vary".to_owned()),
        row(
            format!("/api/manifests/{manifest}"),
            403,
            NONE,
            PROBLEM,
            "vary".to_owned(),
        ),
        row(module("absent"), 404, NONE, PROBLEM, String::new()),
        row("/nowhere", 404, NONE, PROBLEM, String::new()),
        row(module("units"), 502, NONE, PROBLEM, String::new()),
        row(module("@acme/caps"), 503, NONE, PROBLEM, "retry-after".to_owned()),
    ]
}

fn check(seen: &Seen, row: &Row) {
    let context = format!("{} {} {:?}", row.method, row.target, row.condition);
    assert_eq!(seen.status, row.status, "{context}");
    for (name, value) in EVERYWHERE {
        assert_eq!(seen.header(name), Some(value), "{context}: {name}");
    }
    assert_eq!(seen.header("cache-control"), Some(row.caching), "{context}");
    assert_eq!(seen.header("content-type"), row.kind, "{context}");
    let mut expected: Vec<&str> = EVERYWHERE.iter().map(|(name, _)| *name).collect();
    expected.extend(["cache-control", "server-timing"]);
    let about_bytes = |name: &str| row.status == 304 && name == "unencoded-digest";
    expected.extend(row.more.split_whitespace().filter(|name| !about_bytes(name)));
    expected.extend(row.kind.map(|_| "content-type"));
    if !matches!(row.status, 204 | 304) {
        expected.push("content-length");
    }
    let mut found: Vec<&str> = seen.headers.iter().map(|(name, _)| name.as_str()).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "{context}");
    assert!(
        seen.headers
            .iter()
            .all(|(_, value)| value.bytes().all(|b| (0x20..=0x7e).contains(&b)))
    );
}

fn ask(edge: &TestEdge, row: &Row) -> Seen {
    visit(
        edge,
        Ask {
            method: row.method,
            if_none_match: row.condition,
            ..get(&row.target)
        },
    )
}

#[test]
fn every_status_by_every_method_has_its_headers_and_no_others() {
    let edge = edge(&[("CHANNEL", "stable"), ("POLICY", "main")]);
    for mut row in rows(&edge) {
        let whole = ask(&edge, &row);
        check(&whole, &row);
        assert_eq!(
            whole.header("content-length"),
            Some(whole.body.len().to_string().as_str()),
            "{}",
            row.target
        );

        row.method = "HEAD";
        let head = ask(&edge, &row);
        check(&head, &row);
        assert_eq!(
            (head.body.len(), head.header("content-length")),
            (0, whole.header("content-length"))
        );

        // A client that has a file is told so without its bytes being read: what is wrong with them is not seen then.
        let conditions: &[&str] = if matches!(row.status, 502 | 503) {
            &["\"no such tag\""]
        } else {
            &["*", "\"no such tag\""]
        };
        for condition in conditions.iter().copied() {
            row.condition = Some(condition);
            let changes = condition == "*" && whole.header("etag").is_some();
            let status = if changes { 304 } else { row.status };
            for method in ["GET", "HEAD"] {
                let conditional = Row {
                    method,
                    status,
                    more: row.more.clone(),
                    target: row.target.clone(),
                    ..row
                };
                let seen = ask(&edge, &conditional);
                check(&seen, &conditional);
                assert!(seen.body.is_empty() || !changes && method == "GET");
            }
        }

        row.condition = None;
        for (method, status) in [
            ("OPTIONS", 204),
            ("POST", 405),
            ("PUT", 405),
            ("DELETE", 405),
            ("PATCH", 405),
            ("get", 405),
        ] {
            let preflight = "allow access-control-allow-methods access-control-allow-headers access-control-max-age";
            let other = Row {
                method,
                status,
                caching: NONE,
                kind: (status == 405).then_some(PROBLEM),
                more: if status == 405 { "allow" } else { preflight }.to_owned(),
                target: row.target.clone(),
                condition: None,
            };
            let seen = ask(&edge, &other);
            check(&seen, &other);
            assert_eq!(seen.header("allow"), Some("GET, HEAD, OPTIONS"));
            assert!(seen.reads.is_empty());
        }
    }
}

#[test]
fn cache_tags_and_max_age_are_the_operators_to_set() {
    let vars = [("CHANNEL", "stable"), ("CACHE_TAGS", "1"), ("NAMED_MAX_AGE", "60")];
    let edge = edge(&vars);
    let release = good_packs();
    release.publish(&edge.store, 1);
    let graph = release.pack("@acme/geo").modules.first().unwrap().graph_digest;
    for (target, caching) in [
        ("@acme/geo", "public, max-age=60"),
        (graph.to_string().as_str(), PINNED),
    ] {
        let seen = visit(&edge, get(&format!("/api/sandbox-modules/{target}")));
        assert_eq!(
            seen.header("cache-tag"),
            Some(format!("@acme/geo,{graph}").as_str()),
            "{target}"
        );
        assert_eq!(seen.header("cache-control"), Some(caching), "{target}");
    }
    assert_eq!(
        visit(&edge, get("/api/sandbox-modules")).header("cache-control"),
        Some("no-cache")
    );
    assert!(edge.store.take_reads().is_empty() && channel_key().to_string() == "channel/stable");
}
