//! Reads of storage, counted: what a cold request takes at most, and that a warm one takes none.

use futures::executor::block_on;
use futures::future::join_all;
use packferry_core::key::StorageKey;
use packferry_core::limits::SHARD_BYTES;
use packferry_worker::store::StoreFault;

use crate::release::{Release, channel_key};
use crate::visit::{TestEdge, ask, edge, get, module_path, visit};

/// A release large enough for shards, with `p` among its packs.
fn sharded() -> Release {
    let mut release = Release::default();
    let files: [(&str, &[&str], &str); 2] = [("i.js", &["h.js"], "import './h.js';"), ("h.js", &[], "export {};")];
    for n in 0..150 {
        release.add_js_pack(&format!("filler-{n}"), Some("1.0.0"), &[(".", "i.js")], &files);
    }
    release.add_js_pack("p", Some("1.0.0"), &[(".", "i.js")], &files);
    release
}

fn published() -> (TestEdge, String) {
    let edge = edge(&[("CHANNEL", "stable")]);
    let release = sharded();
    release.publish(&edge.store, 1);
    let graph = release.pack("p").modules.first().unwrap().graph_digest.to_string();
    (edge, graph)
}

#[test]
fn cold_and_warm() {
    let graph = published().1;
    let cases = [
        (module_path("p"), vec!["channel", "manifest", "shard", "blob"]),
        (module_path("p::h.js"), vec!["channel", "manifest", "shard", "blob"]),
        (
            "/api/sandbox-closures/p".to_owned(),
            vec!["channel", "manifest", "shard", "closure"],
        ),
        (module_path(&graph), vec!["graph", "blob"]),
        (module_path(&format!("{graph}::h.js")), vec!["graph", "blob"]),
        (format!("/api/sandbox-closures/{graph}"), vec!["graph", "closure"]),
        ("/api/channels/stable".to_owned(), vec!["channel"]),
        (module_path("~absent"), vec!["channel", "manifest", "shard"]),
        (module_path("!"), vec!["channel", "manifest"]),
        (module_path(&"0".repeat(64)), vec!["graph", "graph"]),
        ("/healthz".to_owned(), vec!["channel", "manifest"]),
        (
            "/api/sandbox-modules?prefix=p&limit=1".to_owned(),
            vec!["channel", "manifest", "shard"],
        ),
    ];
    for (path, kinds) in cases {
        let (edge, _) = published();
        let cold = visit(&edge, get(&path));
        let read: Vec<&str> = cold.reads.iter().map(|key| key.split('/').next().unwrap()).collect();
        assert_eq!(read, kinds, "{path}");
        let timing = cold.header("server-timing").unwrap();
        assert!(
            timing.contains(&format!("kv;desc=\"{}\"", kinds.len())),
            "{path}: {timing}"
        );
        assert!(
            cold.line
                .is_some_and(|line| line.contains(&format!("\"reads\":{}", kinds.len()))),
            "{path}"
        );
        let warm = visit(&edge, get(&path));
        assert_eq!(
            (warm.reads, warm.status, warm.line),
            (vec![], cold.status, None),
            "{path}"
        );
        assert_eq!(warm.body, cold.body, "{path}");
    }
}

#[test]
fn deliveries_and_absences_are_ready_before_anything_is_asked() {
    let (edge, graph) = published();
    let ready = |path: &str, tag: Option<&str>| {
        let url = format!("https://edge.example{path}");
        packferry_worker::warm::answer(&edge, &url, tag).map(|hit| hit.finished.status.as_u16())
    };
    let cases = [
        (module_path("p"), Some(200), 30_000),
        (module_path("p::h.js"), Some(200), 30_000),
        (module_path(&graph), Some(200), u64::MAX),
        ("/api/sandbox-closures/p".to_owned(), Some(200), 30_000),
        (format!("/api/sandbox-closures/{graph}"), Some(200), u64::MAX),
        (module_path("absent"), Some(404), 30_000),
        ("/api/sandbox-modules".to_owned(), None, 0),
        ("/nowhere".to_owned(), None, 0),
    ];
    for (path, _, _) in &cases {
        assert_eq!(ready(path, None), None, "{path}");
        visit(&edge, get(path));
    }
    for (path, status, _) in &cases {
        assert_eq!(ready(path, None), *status, "{path}");
        assert_eq!(ready(&format!("{path}?query"), Some("*")), *status, "{path}");
    }
    edge.store.wait(30_000);
    for (path, status, lasts) in &cases {
        let expected = status.filter(|_| *lasts > 30_000);
        assert_eq!(ready(path, None), expected, "{path}");
    }
}

#[test]
fn after_the_cache_time_only_the_channel_is_read_and_for_pinned_ids_nothing() {
    let (edge, graph) = published();
    let paths = [module_path("p"), module_path(&graph)];
    for path in &paths {
        visit(&edge, get(path));
    }
    edge.store.wait(365 * 24 * 3_600_000);
    assert!(visit(&edge, get(&paths[1])).reads.is_empty());
    assert_eq!(visit(&edge, get(&paths[0])).reads, ["channel/stable"]);
}

#[test]
fn a_not_modified_answer_reads_no_body() {
    let (edge, graph) = published();
    let tag = format!("\"{graph}\"");
    let path = module_path("p");
    let request = crate::visit::Ask {
        if_none_match: Some(&tag),
        ..get(&path)
    };
    let seen = visit(&edge, request);
    assert_eq!((seen.status, seen.reads.len()), (304, 3));
}

#[test]
fn a_miss_is_looked_at_twice_then_remembered_for_seconds() {
    let (edge, _) = published();
    let path = module_path(&"0".repeat(64));
    assert_eq!(visit(&edge, get(&path)).reads.len(), 2);
    assert_eq!(visit(&edge, get(&path)).reads.len(), 0);
    edge.store.wait(5_000);
    assert_eq!(visit(&edge, get(&path)).reads.len(), 2);
}

#[test]
fn requests_that_miss_together_fetch_once() {
    let (edge, graph) = published();
    for path in [module_path("p"), module_path(&graph)] {
        let requests = (0..50).map(|_| ask(&edge, get(&path)));
        let answers = block_on(join_all(requests));
        assert!(answers.iter().all(|seen| seen.status == 200));
        let reads: usize = answers.iter().map(|seen| seen.reads.len()).sum();
        assert!(reads <= 4, "{reads} reads for {path}");
    }
}

#[test]
fn requests_that_fail_together_share_how_the_fetch_ended() {
    use StoreFault::{Bytes, Missing, Throws};
    let unknown = module_path(&"0".repeat(64));
    let graph = published().1;
    let record = StorageKey::Graph(graph.parse().unwrap());
    let policy = StorageKey::Policy("main".to_owned());
    let other = || Bytes(b"x".to_vec());
    // What is asked for, what is wrong, the status, and the reads that one request takes.
    let cases = [
        (unknown, None, "", 404, 2),
        (module_path(&graph), Some((record.clone(), Throws)), "", 503, 1),
        (module_path(&graph), Some((record.clone(), Missing)), "", 404, 2),
        (module_path(&graph), Some((record, other())), "", 502, 2),
        (module_path("p"), Some((channel_key(), Throws)), "", 503, 1),
        (module_path("p"), Some((channel_key(), Missing)), "", 503, 1),
        (module_path("p"), Some((channel_key(), other())), "", 503, 1),
        (module_path("p"), None, "main", 503, 1),
        (module_path("p"), Some((policy.clone(), Throws)), "main", 503, 1),
        (module_path("p"), Some((policy, other())), "main", 503, 1),
    ];
    for (path, fault, policy, status, alone) in cases {
        let mut edge = edge(&[("CHANNEL", "stable"), ("POLICY", policy)]);
        edge.store = published().0.store;
        if let Some((key, fault)) = &fault {
            edge.store.break_reads(key, vec![fault.clone(); 500]);
        }
        let answers = block_on(join_all((0..50).map(|_| ask(&edge, get(&path)))));
        let context = format!("{path}: {fault:?} {policy}");
        assert!(answers.iter().all(|seen| seen.status == status), "{context}");
        let reads: usize = answers.iter().map(|seen| seen.reads.len()).sum();
        assert!(reads >= alone && reads <= 3 * alone, "{context}: {reads} reads");
    }
}

#[test]
fn a_flood_of_unknown_ids_costs_its_reads_and_pushes_nothing_out() {
    let (edge, graph) = published();
    let kept = [
        module_path("p"),
        module_path(&graph),
        format!("/api/sandbox-closures/{graph}"),
    ];
    for path in &kept {
        visit(&edge, get(path));
    }
    for n in 0..5_000 {
        let pinned = module_path(&format!("{n:064x}"));
        assert_eq!(visit(&edge, get(&pinned)).reads.len(), 2, "{pinned}");
        let named = module_path(&format!("p/{n}"));
        assert_eq!(visit(&edge, get(&named)).reads.len(), 0, "{named}");
    }
    for path in &kept {
        let url = format!("https://edge.example{path}");
        assert!(packferry_worker::warm::answer(&edge, &url, None).is_some(), "{path}");
    }
    assert_eq!(
        visit(&edge, get(&module_path(&format!("{:064x}", 4_999)))).reads.len(),
        0
    );
    assert_eq!(
        visit(&edge, get(&module_path(&format!("{:064x}", 0)))).reads.len(),
        2,
        "the bound holds"
    );
}

#[test]
fn a_slow_fetch_is_taken_over_now_and_then_and_not_by_all_at_once() {
    let (edge, graph) = published();
    let path = module_path(&graph);
    let record = StorageKey::Graph(graph.parse().unwrap());
    edge.store.break_reads(&record, vec![StoreFault::Slow(2_500); 50]);
    let answers = block_on(join_all((0..50).map(|_| ask(&edge, get(&path)))));
    assert!(answers.iter().all(|seen| seen.status == 200));
    let reads: usize = answers.iter().map(|seen| seen.reads.len()).sum();
    assert!(reads <= 6, "{reads} reads");
}

#[test]
fn a_fetch_that_never_ends_holds_nobody_up_for_long() {
    let (edge, _) = published();
    let path = module_path("p");
    let mut stuck = Box::pin(ask(&edge, get(&path)));
    // One step into the first read, then the client goes away without the future being dropped.
    let waker = futures::task::noop_waker();
    assert!(
        stuck
            .as_mut()
            .poll(&mut std::task::Context::from_waker(&waker))
            .is_pending()
    );
    let begun = packferry_worker::store::Store::now(&edge.store);
    let seen = visit(&edge, get(&path));
    assert_eq!(seen.status, 200);
    let waited = packferry_worker::store::Store::now(&edge.store) - begun;
    assert!(waited <= 1_100, "{waited} ms");
}

#[test]
fn memory_keeps_to_its_budget() {
    let mut release = Release::default();
    let large = "x".repeat(40_000);
    for n in 0..20 {
        let source = format!("{large}{n}");
        release.add_js_pack(&format!("p{n}"), None, &[(".", "i.js")], &[("i.js", &[], &source)]);
    }
    let small = edge(&[("CHANNEL", "stable"), ("CACHE_BYTES", "400000")]);
    release.publish(&small.store, 1);
    for _ in 0..2 {
        for n in 0..20 {
            assert_eq!(visit(&small, get(&module_path(&format!("p{n}")))).status, 200);
        }
    }
    assert_eq!(visit(&small, get(&module_path("p19"))).reads.len(), 0);
    let again = visit(&small, get(&module_path("p0"))).reads;
    assert!(
        again.iter().any(|key| key.starts_with("blob/")),
        "the oldest was forgotten: {again:?}"
    );
}

#[test]
fn the_release_is_sharded() {
    let (edge, _) = published();
    let release = sharded();
    let written = packferry_core::manifest::write(release.packs);
    assert!(written.shards.len() > 1 && written.root.len() < SHARD_BYTES);
    // The channel is not content-addressed and is read with the least cache time only.
    assert!(!channel_key().is_immutable() && StorageKey::Manifest(written.digest).is_immutable());
    assert_eq!(
        visit(&edge, get(&format!("/api/shards/{}", written.shards[0].0))).status,
        200
    );
}
