//! Private and blocked packs on every route: who gets what, and under which headers.

use packferry_core::digest::TokenDigest;
use packferry_core::key::StorageKey;
use packferry_core::policy::{Block, Pattern, Policy, Token};

use crate::release::Release;
use crate::visit::{Ask, Seen, TestEdge, edge, get, module_path, visit};

const CACHE_MILLISECONDS: u64 = 30_000;

/// A token's text of the right form, ending in `name`.
fn token(name: &str) -> String {
    format!("{name:A>43}")
}

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn grant(name: &str, grants: &[&str], expires: Option<&str>) -> Token {
    Token {
        name: name.to_owned(),
        sha256: TokenDigest::of(token(name).as_bytes()),
        grants: grants.iter().map(|grant| pattern(grant)).collect(),
        expires: expires.map(str::to_owned),
    }
}

fn block(pack: &str, version: Option<&str>, reason: Option<&str>) -> Block {
    Block {
        pack: Some(pattern(pack)),
        version: version.map(str::to_owned),
        graph: None,
        reason: reason.map(str::to_owned),
    }
}

fn release() -> Release {
    let mut release = Release::default();
    for name in ["@acme/one", "@acme/two", "bad", "flawed", "open", "secret"] {
        let source = format!("export const f = '{name}';");
        let files: [(&str, &[&str], &str); 2] = [("i.js", &["h.js"], &source), ("h.js", &[], "export {};")];
        release.add_js_pack(name, Some("1.0.0"), &[(".", "i.js"), ("more", "h.js")], &files);
    }
    release
}

fn policy() -> Policy {
    Policy::new(
        vec![pattern("@acme/*"), pattern("secret")],
        vec![
            block("bad", None, Some("malware")),
            block("flawed", Some("1.0.0"), None),
        ],
        vec![
            grant("acme", &["@acme/*"], None),
            grant("one", &["@acme/one"], None),
            grant("all", &["*"], None),
            grant("old", &["*"], Some("2020-01-01T00:00:00Z")),
        ],
    )
}

fn policy_key() -> StorageKey {
    StorageKey::Policy("main".to_owned())
}

fn set_policy(edge: &TestEdge, policy: &Policy) {
    edge.store.put(&policy_key(), serde_json::to_string(policy).unwrap());
}

fn guarded() -> (TestEdge, Release) {
    let edge = edge(&[("CHANNEL", "stable"), ("POLICY", "main"), ("NAMED_MAX_AGE", "60")]);
    let release = release();
    release.publish(&edge.store, 1);
    set_policy(&edge, &policy());
    (edge, release)
}

fn graph(release: &Release, pack: &str) -> String {
    release.pack(pack).modules.first().unwrap().graph_digest.to_string()
}

fn visit_as(edge: &TestEdge, requester: Option<&str>, path: &str) -> Seen {
    let header = requester.map(|name| format!("Bearer {}", token(name)));
    visit(
        edge,
        Ask {
            authorization: header.as_deref(),
            ..get(path)
        },
    )
}

/// What a visitor sees of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Public,
    Private,
    Forbidden,
    Blocked(Option<&'static str>),
}

use Sight::{Blocked, Forbidden, Private, Public};

fn check(seen: &Seen, sight: Sight, pinned: bool, context: &str) {
    let expected = match (sight, pinned) {
        (Public, true) => (200, "public, max-age=31536000, immutable", None),
        (Public, false) => (200, "public, max-age=60", None),
        (Private, true) => (200, "private, max-age=31536000, immutable", Some("Authorization")),
        (Private, false) => (200, "private, no-cache", Some("Authorization")),
        (Forbidden, _) => (403, "no-store", Some("Authorization")),
        (Blocked(_), _) => (403, "no-store", None),
    };
    let found = (seen.status, seen.header("cache-control").unwrap(), seen.header("vary"));
    assert_eq!(found, expected, "{context}");
    if expected.0 == 403 {
        let reason = match sight {
            Blocked(reason) => reason,
            _ => None,
        };
        let document = seen.json();
        assert_eq!(document["code"], "forbidden", "{context}");
        assert_eq!(
            document.get("reason").and_then(|reason| reason.as_str()),
            reason,
            "{context}"
        );
        assert!(
            document["detail"]
                .as_str()
                .unwrap()
                .ends_with("is not available to this client.")
        );
    }
}

#[test]
fn every_requester_on_every_pack_by_every_kind_of_id() {
    let rows = [
        (None, "open", Public),
        (Some("acme"), "open", Public),
        (Some("unknown"), "open", Public),
        (None, "@acme/one", Forbidden),
        (Some("unknown"), "@acme/one", Forbidden),
        (Some("old"), "@acme/one", Forbidden),
        (Some("acme"), "@acme/one", Private),
        (Some("one"), "@acme/one", Private),
        (Some("one"), "@acme/two", Forbidden),
        (Some("acme"), "secret", Forbidden),
        (Some("all"), "secret", Private),
        (None, "bad", Blocked(Some("malware"))),
        (Some("all"), "bad", Blocked(Some("malware"))),
        (None, "flawed", Blocked(None)),
    ];
    let (warm, release) = guarded();
    for _ in 0..2 {
        for (requester, pack, sight) in rows {
            let graph = graph(&release, pack);
            let paths = [
                (module_path(pack), false),
                (module_path(&format!("{pack}::h.js")), false),
                (module_path(&graph), true),
                (module_path(&format!("{graph}::h.js")), true),
                (format!("/api/sandbox-closures/{pack}"), false),
                (format!("/api/sandbox-closures/{graph}"), true),
            ];
            for (path, pinned) in paths {
                let context = format!("{requester:?} {path}");
                check(&visit_as(&warm, requester, &path), sight, pinned, &context);
                let cold = guarded().0;
                check(&visit_as(&cold, requester, &path), sight, pinned, &context);
            }
        }
    }
}

#[test]
fn a_known_tag_opens_no_door() {
    let (edge, release) = guarded();
    let tag = format!("\"{}\"", graph(&release, "@acme/one"));
    for id in ["@acme/one".to_owned(), graph(&release, "@acme/one")] {
        let path = module_path(&id);
        let request = Ask {
            if_none_match: Some(&tag),
            ..get(&path)
        };
        assert_eq!(visit(&edge, request).status, 403);
        let bearer = format!("Bearer {}", token("acme"));
        let seen = visit(
            &edge,
            Ask {
                authorization: Some(&bearer),
                ..request
            },
        );
        assert_eq!((seen.status, seen.header("vary")), (304, Some("Authorization")));
    }
}

#[test]
fn what_is_absent_under_a_private_pattern_looks_like_what_is_there() {
    let (edge, _) = guarded();
    let paths = ["@acme/absent", "@acme/one/absent", "@acme/one::absent.js"].map(module_path);
    for path in paths {
        let outside = visit(&edge, get(&path));
        assert_eq!(
            (
                outside.status,
                outside.reads.iter().any(|key| key.starts_with("manifest/"))
            ),
            (403, false)
        );
        let inside = visit_as(&edge, Some("acme"), &path);
        assert_eq!((inside.status, inside.header("vary")), (404, Some("Authorization")));
    }
}

#[test]
fn the_index_shows_what_may_be_fetched() {
    let rows = [
        (None, vec!["open", "open/more"]),
        (Some("unknown"), vec!["open", "open/more"]),
        (Some("one"), vec!["@acme/one", "@acme/one/more", "open", "open/more"]),
        (
            Some("all"),
            vec![
                "@acme/one",
                "@acme/one/more",
                "@acme/two",
                "@acme/two/more",
                "open",
                "open/more",
                "secret",
                "secret/more",
            ],
        ),
    ];
    let (edge, _) = guarded();
    let mut tags = Vec::new();
    for (requester, specifiers) in rows {
        let seen = visit_as(&edge, requester, "/api/sandbox-modules");
        let page = seen.json();
        let shown: Vec<&str> = page["modules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["specifier"].as_str().unwrap())
            .collect();
        assert_eq!(shown, specifiers, "{requester:?}");
        assert_eq!(seen.header("cache-control"), Some("private, no-cache"));
        assert_eq!(seen.header("vary"), Some("Authorization"));
        tags.push(seen.header("etag").unwrap().to_owned());
    }
    assert_eq!(tags[0], tags[1], "nobody and an unknown token are the same");
    tags.remove(0);
    tags.dedup();
    assert_eq!(tags.len(), 3, "each set of grants has its own tag");
}

#[test]
fn catalogs_are_for_those_who_may_see_everything() {
    let (edge, release) = guarded();
    let manifest = release.write(&edge.store);
    let path = format!("/api/manifests/{manifest}");
    for (requester, status) in [(None, 403), (Some("acme"), 403), (Some("old"), 403), (Some("all"), 200)] {
        let seen = visit_as(&edge, requester, &path);
        assert_eq!(
            (seen.status, seen.header("vary")),
            (status, Some("Authorization")),
            "{requester:?}"
        );
    }
    // Blocks alone close no catalog, and channels and health are open to all.
    set_policy(
        &edge,
        &Policy::new(Vec::new(), vec![block("bad", None, None)], Vec::new()),
    );
    edge.store.wait(CACHE_MILLISECONDS);
    let seen = visit(&edge, get(&path));
    let caching = seen.header("cache-control").unwrap();
    assert_eq!(
        (seen.status, caching, seen.header("vary")),
        (200, "public, max-age=31536000, immutable", None)
    );
    assert_eq!(visit(&edge, get("/api/channels/stable")).status, 200);
}

#[test]
fn a_block_takes_effect_within_the_cache_time_on_warm_answers_too() {
    let (edge, release) = guarded();
    let graph = graph(&release, "open");
    let paths = [
        module_path("open"),
        module_path(&graph),
        format!("/api/sandbox-closures/{graph}"),
    ];
    for path in &paths {
        assert_eq!(visit(&edge, get(path)).status, 200);
    }
    let by_graph = Block {
        pack: None,
        version: None,
        graph: Some(graph.parse().unwrap()),
        reason: Some("withdrawn".to_owned()),
    };
    set_policy(&edge, &Policy::new(Vec::new(), vec![by_graph], Vec::new()));
    for path in &paths {
        assert_eq!(visit(&edge, get(path)).status, 200, "within the cache time");
    }
    edge.store.wait(CACHE_MILLISECONDS);
    for path in &paths {
        let seen = visit(&edge, get(path));
        assert_eq!(
            (seen.status, &seen.json()["reason"]),
            (403, &"withdrawn".into()),
            "{path}"
        );
    }
    let index = visit(&edge, get("/api/sandbox-modules?prefix=open")).json();
    assert_eq!(index["modules"][0]["specifier"], "open/more", "the graph alone is gone");
}

#[test]
fn a_policy_that_cannot_be_had_closes_everything_it_guards() {
    type Break = (&'static str, fn(&TestEdge));
    let breaks: [Break; 4] = [
        ("missing", |edge| edge.store.remove(&policy_key())),
        ("malformed", |edge| edge.store.put(&policy_key(), "{\"version\":1}")),
        ("no text", |edge| edge.store.put(&policy_key(), [0xff])),
        ("of another version", |edge| {
            edge.store
                .put(&policy_key(), r#"{"version":9,"private":[],"blocked":[],"tokens":[]}"#);
        }),
    ];
    for (what, break_policy) in breaks {
        let (edge, release) = guarded();
        let graph = graph(&release, "open");
        let manifest = release.write(&edge.store);
        let guarded_paths = [
            module_path("open"),
            module_path(&graph),
            format!("/api/sandbox-closures/{graph}"),
            "/api/sandbox-modules".to_owned(),
            format!("/api/manifests/{manifest}"),
        ];
        for path in &guarded_paths[..4] {
            assert_eq!(visit(&edge, get(path)).status, 200);
        }
        break_policy(&edge);
        edge.store.wait(CACHE_MILLISECONDS);
        for path in &guarded_paths {
            let seen = visit_as(&edge, Some("all"), path);
            assert_eq!(seen.problem(), (503, "policy-unavailable".to_owned()), "{what} {path}");
            assert!(seen.line.is_some_and(|line| !line.contains(&token("all"))));
        }
        assert_eq!(
            visit(&edge, get("/healthz")).json()["problem"],
            "the policy cannot be had",
            "{what}"
        );
        set_policy(&edge, &policy());
        assert_eq!(
            visit(&edge, get(&guarded_paths[0])).status,
            200,
            "{what}: at once when it is back"
        );
        assert_eq!(visit(&edge, get("/healthz")).json()["status"], "ok", "{what}");
    }
}

#[test]
fn a_policy_costs_one_read_when_cold_and_none_when_warm() {
    let graph = graph(&release(), "open");
    for (path, reads) in [(module_path("open"), 4), (module_path(&graph), 3)] {
        let (edge, _) = guarded();
        assert_eq!(visit(&edge, get(&path)).reads.len(), reads);
        assert_eq!(visit(&edge, get(&path)).reads.len(), 0);
        edge.store.wait(CACHE_MILLISECONDS);
        assert!(visit(&edge, get(&path)).reads.contains(&"policy/main".to_owned()));
    }
}

#[test]
fn an_invalid_policy_name_does_not_open_the_door() {
    let edge = edge(&[("CHANNEL", "stable"), ("POLICY", "no/name")]);
    release().publish(&edge.store, 1);
    let seen = visit(&edge, get("/api/sandbox-modules/open"));
    assert_eq!(seen.problem(), (503, "policy-unavailable".to_owned()));
}
