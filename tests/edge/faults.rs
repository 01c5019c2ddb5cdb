//! Every fault of storage on every key that a route reads: never a wrong byte, never a hang, the right code, and recovery.

use packferry_core::digest::{GraphDigest, ManifestDigest};
use packferry_core::key::StorageKey;
use packferry_core::manifest;
use packferry_worker::store::{MemoryStore, Store, StoreFault};

use crate::release::{Release, channel_key};
use crate::visit::{TestEdge, edge, get, module_path, visit};

fn release() -> Release {
    let files: [(&str, &[&str], &str); 2] = [("i.js", &["h.js"], "import './h.js';"), ("h.js", &[], "export {};")];
    let mut release = Release::default();
    for n in 0..150 {
        release.add_js_pack(&format!("filler-{n}"), Some("1.0.0"), &[(".", "i.js")], &files);
    }
    release.add_js_pack("p", Some("1.0.0"), &[(".", "i.js")], &files);
    release
}

/// The keys behind `p`.
struct Keys {
    graph: GraphDigest,
    manifest: ManifestDigest,
    shard: StorageKey,
    record: StorageKey,
    closure: StorageKey,
    root: StorageKey,
    blob: StorageKey,
}

fn keys(release: &Release) -> Keys {
    let module = release.pack("p").modules.first().unwrap();
    let written = manifest::write(release.packs.clone());
    let holds = |text: &str| text.contains("\"name\":\"p\"");
    let (shard, _) = written.shards.iter().find(|(_, text)| holds(text)).unwrap();
    Keys {
        graph: module.graph_digest,
        manifest: written.digest,
        shard: StorageKey::Shard(*shard),
        record: StorageKey::Graph(module.graph_digest),
        closure: StorageKey::Closure(module.graph_digest),
        root: StorageKey::Manifest(written.digest),
        blob: StorageKey::Blob(module.sha256),
    }
}

/// What a route should answer.
type Expected = (u16, Option<&'static str>);

const FINE: Expected = (200, None);
const CORRUPT: Expected = (502, Some("corrupt"));
const INCOMPLETE: Expected = (503, Some("storage-incomplete"));
const UNAVAILABLE: Expected = (503, Some("storage-unavailable"));
const CLOSED: Expected = (503, Some("policy-unavailable"));
const NOT_FOUND: Expected = (404, Some("not-found"));

/// A fault's script, with what it does to a content-addressed key that something names, and to a channel.
struct Row {
    what: &'static str,
    script: Vec<StoreFault>,
    named: Expected,
    channel: Expected,
}

impl Row {
    /// What it does to the policy, which is read once like a channel, and without which nothing is answered.
    fn policy(&self) -> Expected {
        if self.channel == FINE { FINE } else { CLOSED }
    }
}

fn rows() -> Vec<Row> {
    use StoreFault::{Bytes, Flipped, Missing, Slow, Throws, Truncated};
    let row = |what, script, named, channel| Row {
        what,
        script,
        named,
        channel,
    };
    let other_record = release()
        .objects
        .values()
        .find(|(key, _)| matches!(key, StorageKey::Graph(_)))
        .unwrap()
        .1
        .clone();
    let other = || Bytes(other_record.clone());
    let deep = || Bytes("[".repeat(100_000).into_bytes());
    let vast = || Bytes(vec![b'a'; 9 << 20]);
    vec![
        row("missing once", vec![Missing], FINE, INCOMPLETE),
        row("missing", vec![Missing, Missing], INCOMPLETE, INCOMPLETE),
        row("throws", vec![Throws], UNAVAILABLE, UNAVAILABLE),
        row("missing, then throws", vec![Missing, Throws], UNAVAILABLE, INCOMPLETE),
        row("slow", vec![Slow(20_000)], FINE, FINE),
        row("other bytes once", vec![Bytes(b"x".to_vec())], FINE, INCOMPLETE),
        row("other bytes", vec![Bytes(b"x".to_vec()); 2], CORRUPT, INCOMPLETE),
        row(
            "other bytes, then missing",
            vec![Bytes(b"x".to_vec()), Missing],
            CORRUPT,
            INCOMPLETE,
        ),
        row("nothing", vec![Bytes(Vec::new()); 2], CORRUPT, INCOMPLETE),
        row("no text", vec![Bytes(vec![0xff; 40]); 2], CORRUPT, INCOMPLETE),
        row("truncated", vec![Truncated(10); 2], CORRUPT, INCOMPLETE),
        row("flipped", vec![Flipped; 2], CORRUPT, INCOMPLETE),
        row("flipped once", vec![Flipped], FINE, INCOMPLETE),
        row("another record", vec![other(), other()], CORRUPT, INCOMPLETE),
        row("deep JSON", vec![deep(), deep()], CORRUPT, INCOMPLETE),
        row("vast", vec![vast(), vast()], CORRUPT, INCOMPLETE),
    ]
}

/// A route, the keys it reads when cold, and which of them nothing names: there a miss is an answer.
fn routes(keys: &Keys) -> Vec<(String, Vec<StorageKey>, Option<StorageKey>)> {
    let graph = keys.graph;
    let named = |last: &StorageKey| vec![channel_key(), keys.root.clone(), keys.shard.clone(), last.clone()];
    let pinned = |last: &StorageKey| vec![keys.record.clone(), last.clone()];
    let own = |key: &StorageKey| (vec![key.clone()], Some(key.clone()));
    let mut routes = vec![
        (module_path("p"), named(&keys.blob), None),
        (module_path("p::i.js"), named(&keys.blob), None),
        ("/api/sandbox-closures/p".to_owned(), named(&keys.closure), None),
        (
            module_path(&graph.to_string()),
            pinned(&keys.blob),
            Some(keys.record.clone()),
        ),
        (
            module_path(&format!("{graph}::i.js")),
            pinned(&keys.blob),
            Some(keys.record.clone()),
        ),
        (
            format!("/api/sandbox-closures/{graph}"),
            pinned(&keys.closure),
            Some(keys.record.clone()),
        ),
        ("/api/sandbox-modules?prefix=p".to_owned(), named(&keys.shard), None),
        ("/api/channels/stable".to_owned(), vec![channel_key()], None),
    ];
    for (key, path) in [
        (&keys.root, format!("/api/manifests/{}", keys.manifest)),
        (&keys.shard, format!("/api/{}", keys.shard).replace("shard/", "shards/")),
    ] {
        let (reads, unnamed) = own(key);
        routes.push((path, reads, unnamed));
    }
    routes
}

/// An edge that remembers nothing, over a copy of storage that holds the release.
fn published(store: &MemoryStore) -> TestEdge {
    let mut edge = edge(&[("CHANNEL", "stable")]);
    edge.store = store.clone();
    edge
}

/// The same under a policy that closes nothing that is asked for.
fn guarded(store: &MemoryStore) -> TestEdge {
    let mut edge = edge(&[("CHANNEL", "stable"), ("POLICY", "main")]);
    edge.store = store.clone();
    let blocked = r#"{"version":1,"private":[],"blocked":[{"pack":"other"}],"tokens":[]}"#;
    edge.store.put(&policy_key(), blocked);
    edge
}

fn policy_key() -> StorageKey {
    StorageKey::Policy("main".to_owned())
}

fn storage(release: &Release) -> MemoryStore {
    let store = edge(&[]).store;
    release.publish(&store, 1);
    store
}

#[test]
fn every_fault_on_every_key_of_every_route() {
    let release = release();
    let keys = keys(&release);
    let store = storage(&release);
    let rows = rows();
    let mut tried = 0;
    for (path, reads, unnamed) in routes(&keys) {
        let good = visit(&published(&store), get(&path));
        assert_eq!(good.status, 200, "{path}");
        for key in reads {
            for row in &rows {
                let missing = row.named == INCOMPLETE && unnamed.as_ref() == Some(&key);
                let expected = match &key {
                    StorageKey::Channel(_) => row.channel,
                    _ if missing => NOT_FOUND,
                    _ => row.named,
                };
                let edge = published(&store);
                edge.store.break_reads(&key, row.script.clone());
                let context = format!("{path}: {key} {}", row.what);
                check(&edge, &path, expected, &good.body, &context);
                edge.store.break_reads(&key, []);
                check_recovery(&edge, &path, expected, &good.body, &context);
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried} rows");
}

#[test]
fn every_fault_on_the_policy_closes_every_route_that_it_guards() {
    let release = release();
    let keys = keys(&release);
    let store = storage(&release);
    for (path, reads, _) in routes(&keys) {
        let good = visit(&published(&store), get(&path)).body;
        for row in rows() {
            let edge = guarded(&store);
            edge.store.break_reads(&policy_key(), row.script.clone());
            let context = format!("{path}: policy {}", row.what);
            let expected = if reads == [channel_key()] { FINE } else { row.policy() };
            check(&edge, &path, expected, &good, &context);
            edge.store.break_reads(&policy_key(), []);
            check_recovery(&edge, &path, expected, &good, &context);
        }
    }
}

#[test]
fn no_fault_keeps_the_report_on_health_from_being_given() {
    let release = release();
    let keys = keys(&release);
    let store = storage(&release);
    for key in [channel_key(), keys.root] {
        for row in rows() {
            let edge = published(&store);
            edge.store.break_reads(&key, row.script.clone());
            let context = format!("/healthz: {key} {}", row.what);
            let seen = visit(&edge, get("/healthz"));
            assert_eq!(
                (seen.status, seen.header("cache-control")),
                (200, Some("no-store")),
                "{context}"
            );
            let effect = if key == channel_key() { row.channel } else { row.named };
            let report = seen.json();
            let status = if effect == FINE { "ok" } else { "degraded" };
            assert_eq!(report["status"], status, "{context}: {report}");
            assert_eq!(report.get("problem").is_some(), effect != FINE, "{context}: {report}");
            let failing = matches!(effect, UNAVAILABLE);
            assert_eq!(
                report["storage"],
                if failing { "failing" } else { "ok" },
                "{context}: {report}"
            );
            edge.store.break_reads(&key, []);
            edge.store.wait(30_000);
            assert_eq!(
                visit(&edge, get("/healthz")).json()["status"],
                "ok",
                "{context}: recovery"
            );
        }
    }
}

fn check(edge: &TestEdge, path: &str, expected: Expected, good: &[u8], context: &str) {
    let begun = edge.store.now();
    let seen = visit(edge, get(path));
    assert!(edge.store.now() - begun <= 25_000, "{context}: it hung");
    match expected {
        (200, _) => assert_eq!((seen.status, seen.body.as_slice()), (200, good), "{context}"),
        (status, code) => {
            assert_eq!((seen.status, seen.json()["code"].as_str()), (status, code), "{context}");
            assert_eq!(seen.header("cache-control"), Some("no-store"), "{context}");
            assert_eq!(seen.header("retry-after").is_some(), status == 503, "{context}");
            let loud = seen.line.is_some_and(|line| line.contains("\"cause\":"));
            assert!(loud, "{context}: the log says why");
        }
    }
}

fn check_recovery(edge: &TestEdge, path: &str, expected: Expected, good: &[u8], context: &str) {
    // An absence is remembered for seconds; everything else is over with the fault.
    if expected == NOT_FOUND {
        edge.store.wait(5_000);
    }
    let after = visit(edge, get(path));
    assert_eq!(
        (after.status, after.body.as_slice()),
        (200, good),
        "{context}: recovery"
    );
}

#[test]
fn memory_outlives_storage() {
    let release = release();
    let keys = keys(&release);
    let edge = published(&storage(&release));
    let routes = routes(&keys);
    let good: Vec<_> = routes.iter().map(|(path, ..)| visit(&edge, get(path)).body).collect();
    let broken = [
        channel_key(),
        keys.root,
        keys.shard,
        keys.record,
        keys.closure,
        keys.blob,
    ];
    for key in &broken {
        edge.store.break_reads(key, vec![StoreFault::Throws; 100]);
    }
    edge.store.wait(30_000);
    for ((path, ..), body) in routes.iter().zip(good) {
        let seen = visit(&edge, get(path));
        assert_eq!((seen.status, seen.body), (200, body), "{path}");
    }
    let report = visit(&edge, get("/healthz")).json();
    assert_eq!(
        (&report["status"], &report["storage"]),
        (&"degraded".into(), &"failing".into())
    );
    assert_eq!(report["problem"], "storage failed to read channel/stable");
}

#[test]
fn a_record_that_contradicts_its_blob_is_corrupt() {
    let release = release();
    let keys = keys(&release);
    let edge = published(&storage(&release));
    let record = release.objects[&keys.record.to_string()].1.clone();
    let size = format!("\"size\":{}", "import './h.js';".len());
    let lying = String::from_utf8(record).unwrap().replacen(&size, "\"size\":1", 1);
    edge.store.put(&keys.record, lying);
    for _ in 0..2 {
        let seen = visit(&edge, get(&module_path(&keys.graph.to_string())));
        assert_eq!(seen.problem(), (502, "corrupt".to_owned()));
    }
}

#[test]
fn a_manifest_that_lies_about_a_size_is_corrupt_though_the_bytes_are_remembered() {
    let mut release = release();
    let graph = keys(&release).graph.to_string();
    let pack = release.packs.iter_mut().find(|pack| pack.name.as_str() == "p").unwrap();
    pack.modules.first_mut().unwrap().size += 1;
    let edge = published(&storage(&release));
    assert_eq!(visit(&edge, get(&module_path(&graph))).status, 200);
    for _ in 0..3 {
        let seen = visit(&edge, get(&module_path("p")));
        assert_eq!(seen.problem(), (502, "corrupt".to_owned()));
    }
}
