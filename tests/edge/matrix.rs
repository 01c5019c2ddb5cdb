//! Which headers stand on which answer: every status, every method, and no header more or less.

use packferry_core::digest::TokenDigest;
use packferry_core::key::StorageKey;
use packferry_core::policy::{Block, Pattern, Policy, Token};

use crate::release::{Release, channel_key, good_packs};
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
    authorization: Option<String>,
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
        authorization: None,
        condition: None,
        status,
        caching,
        kind: Some(kind),
        more,
    }
}

impl Row {
    /// The same, asked for by who may see everything.
    fn by_reader(self) -> Self {
        let authorization = Some(format!("Bearer {}", reader_token()));
        Self { authorization, ..self }
    }
}

fn reader_token() -> String {
    "R".repeat(43)
}

/// The good packs, and a private and a blocked one.
fn release() -> Release {
    let mut release = good_packs();
    for name in ["@private/p", "withdrawn"] {
        release.add_js_pack(name, Some("1.0.0"), &[(".", "i.js")], &[("i.js", &[], "export {};")]);
    }
    release.packs.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
    release
}

fn policy() -> Policy {
    let pattern = |text| Pattern::parse(text).unwrap();
    let block = Block {
        pack: Some(pattern("withdrawn")),
        version: None,
        graph: None,
        reason: Some("CVE".to_owned()),
    };
    let reader = Token {
        name: "reader".to_owned(),
        sha256: TokenDigest::of(reader_token().as_bytes()),
        grants: vec![pattern("@private/*")],
        expires: None,
    };
    Policy::new(vec![pattern("@private/*")], vec![block], vec![reader])
}

const NAMED: &str = "no-cache";
const PINNED: &str = "public, max-age=31536000, immutable";
const PRIVATE_NAMED: &str = "private, no-cache";
const PRIVATE_PINNED: &str = "private, max-age=31536000, immutable";
const NONE: &str = "no-store";
const JS: &str = "text/javascript; charset=utf-8";
const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";
const CLOSURE: &str = "application/vnd.packferry.closure";

fn rows(edge: &TestEdge) -> Vec<Row> {
    let release = release();
    let manifest = release.publish(&edge.store, 1);
    let graph = |pack: &str| release.pack(pack).modules.first().unwrap().graph_digest;
    let (geo, private, withdrawn) = (graph("@acme/geo"), graph("@private/p"), graph("withdrawn"));
    let broken = release.pack("units").modules.first().unwrap();
    edge.store.put(&StorageKey::Blob(broken.sha256), "other bytes");
    edge.store.remove(&StorageKey::Blob(
        release.pack("@acme/caps").modules.first().unwrap().sha256,
    ));
    let policy = serde_json::to_string(&policy()).unwrap();
    edge.store.put(&StorageKey::Policy("main".to_owned()), policy);
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
        row(module(&geo.to_string()), 200, PINNED, JS, pinned.clone()),
        row(module("@private/p"), 200, PRIVATE_NAMED, JS, format!("{named} vary")).by_reader(),
        row(
            module(&private.to_string()),
            200,
            PRIVATE_PINNED,
            JS,
            format!("{pinned} vary"),
        )
        .by_reader(),
        row(
            format!("/api/sandbox-closures/{private}"),
            200,
            PRIVATE_PINNED,
            CLOSURE,
            format!("{DIGESTS} {GRAPH} vary"),
        )
        .by_reader(),
        row(
            format!("/api/manifests/{manifest}"),
            200,
            PRIVATE_PINNED,
            JSON,
            format!("{DIGESTS} vary"),
        )
        .by_reader(),
        row(module("@private/absent"), 404, NONE, PROBLEM, "vary".to_owned()).by_reader(),
        row(format!("/api/shards/{geo}"), 404, NONE, PROBLEM, "vary".to_owned()).by_reader(),
        row(module("withdrawn"), 403, NONE, PROBLEM, String::new()),
        row(module(&withdrawn.to_string()), 403, NONE, PROBLEM, String::new()).by_reader(),
        row(module(&private.to_string()), 403, NONE, PROBLEM, "vary".to_owned()),
        row(module("@acme/npm-table"), 404, NONE, PROBLEM, String::new()),
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
            PRIVATE_NAMED,
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
            authorization: row.authorization.as_deref(),
            if_none_match: row.condition,
            ..get(&row.target)
        },
    )
}

/// Rows of a worker without a policy, to which a release with shards is published.
fn open_rows(edge: &TestEdge) -> Vec<Row> {
    let mut release = Release::default();
    for n in 0..200 {
        let source = format!("export const f = {n};");
        release.add_js_pack(&format!("p{n:03}"), None, &[(".", "i.js")], &[("i.js", &[], &source)]);
    }
    let manifest = release.publish(&edge.store, 1);
    let (shard, _) = packferry_core::manifest::write(release.packs).shards.swap_remove(0);
    let own = "etag accept-ranges";
    vec![
        row(
            format!("/api/manifests/{manifest}"),
            200,
            PINNED,
            JSON,
            DIGESTS.to_owned(),
        ),
        row(format!("/api/shards/{shard}"), 200, PINNED, JSON, DIGESTS.to_owned()),
        row("/api/sandbox-modules?limit=3", 200, NAMED, JSON, own.to_owned()),
        row(format!("/api/manifests/{shard}"), 404, NONE, PROBLEM, String::new()),
    ]
}

#[test]
fn every_status_by_every_method_has_its_headers_and_no_others() {
    let guarded = edge(&[("CHANNEL", "stable"), ("POLICY", "main")]);
    check_rows(&guarded, rows(&guarded));
    let open = edge(&[("CHANNEL", "stable")]);
    check_rows(&open, open_rows(&open));
    let unguarded = edge(&[("CHANNEL", "stable"), ("POLICY", "missing")]);
    let closed = row("/api/sandbox-modules/p", 503, NONE, PROBLEM, "retry-after".to_owned());
    check_rows(&unguarded, vec![closed]);
}

fn check_rows(edge: &TestEdge, rows: Vec<Row>) {
    for mut row in rows {
        let whole = ask(edge, &row);
        check(&whole, &row);
        assert_eq!(
            whole.header("content-length"),
            Some(whole.body.len().to_string().as_str()),
            "{}",
            row.target
        );

        row.method = "HEAD";
        let head = ask(edge, &row);
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
                    authorization: row.authorization.clone(),
                    ..row
                };
                let seen = ask(edge, &conditional);
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
                authorization: row.authorization.clone(),
                condition: None,
            };
            let seen = ask(edge, &other);
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
