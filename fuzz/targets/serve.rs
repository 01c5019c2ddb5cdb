//! Any request, over storage of which any value may be anything: an answer of the table, with every header.

#![no_main]

use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;
use packferry_core::channel::{Envelope, Pointer};
use packferry_core::digest::{BlobDigest, GraphDigest, ManifestDigest};
use packferry_core::key::StorageKey;
use packferry_core::manifest::Root;
use packferry_worker::config::Config;
use packferry_worker::fetch::Edge;
use packferry_worker::respond::Content;
use packferry_worker::serve::{Request, serve};
use packferry_worker::store::MemoryStore;

const STATUSES: [u16; 9] = [200, 204, 304, 400, 403, 404, 405, 502, 503];
const EVERYWHERE: [&str; 6] = [
    "access-control-allow-origin",
    "access-control-expose-headers",
    "cross-origin-resource-policy",
    "x-content-type-options",
    "content-security-policy",
    "cache-control",
];

// Method, target, headers, a manifest's root, a record and a policy, one a line.
fuzz_target!(|text: &str| {
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (method, target, authorization, tag, root, record, policy) =
        (line(), line(), line(), line(), line(), line(), line());
    let edge = edge(root, record, policy);
    let url = format!("https://edge.example{target}");
    let request = Request {
        method,
        url: &url,
        authorization: Some(authorization),
        if_none_match: Some(tag),
    };
    for _ in 0..2 {
        let (answer, _) = block_on(serve(&edge, &request));
        assert!(STATUSES.contains(&answer.status().as_u16()), "{}", answer.status());
        for name in EVERYWHERE {
            assert!(answer.headers().contains_key(name), "{name}");
        }
        if let (Content::Stored(body), Some(sha256)) = (answer.body(), answer.headers().get("x-content-sha256")) {
            assert_eq!(sha256.to_str().ok(), Some(BlobDigest::of(body).to_string().as_str()));
        }
    }
});

/// An edge whose channel points to `root`, whatever that is. Every blob that it names is there, and empty.
fn edge(root: &str, record: &str, policy: &str) -> Edge<MemoryStore> {
    let store = MemoryStore::default();
    let manifest = ManifestDigest::of(root.as_bytes());
    let envelope = Envelope::unsigned(&Pointer {
        version: 1,
        channel: "stable".to_owned(),
        sequence: 1,
        manifest,
        published_at: "2026-01-02T03:04:05Z".to_owned(),
        expires: None,
    });
    store.put(&StorageKey::Channel("stable".to_owned()), envelope.to_json());
    store.put(&StorageKey::Manifest(manifest), root);
    store.put(&StorageKey::Policy("main".to_owned()), policy);
    store.put(&StorageKey::Graph(GraphDigest::from_bytes([0xaa; 32])), record);
    if let Ok(Root::Packs(packs)) = Root::parse(root) {
        for module in packs.iter().flat_map(|pack| &pack.modules) {
            store.put(&StorageKey::Blob(module.sha256), "");
        }
    }
    let guarded = !policy.is_empty();
    let var = |name: &str| match name {
        "CHANNEL" => Some("stable".to_owned()),
        "POLICY" if guarded => Some("main".to_owned()),
        _ => None,
    };
    Edge::new(Config::read(var), store)
}
