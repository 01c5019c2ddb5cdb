//! Channels of an edge with trusted keys: what is not signed, badly signed or expired is never taken.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use packferry_core::channel::{Envelope, PAYLOAD_TYPE, Pointer, Signature, pre_authentication_encoding};
use packferry_core::time::format_time;
use packferry_core::trust::key_id;
use packferry_worker::store::Store;

use crate::release::{Release, channel_key};
use crate::visit::{TestEdge, edge, get, visit};

fn release(version: &str) -> Release {
    let mut release = Release::default();
    release.add_js_pack("p", Some(version), &[(".", "i.js")], &[("i.js", &[], version)]);
    release
}

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

/// Publishes `version` under `sequence`, signed by `signer`, good for so many seconds.
fn publish(edge: &TestEdge, version: &str, sequence: u64, signer: Option<&SigningKey>, seconds: Option<u64>) {
    let now = edge.store.now() / 1000;
    let mut envelope = Envelope::unsigned(&Pointer {
        version: 1,
        channel: "stable".to_owned(),
        sequence,
        manifest: release(version).write(&edge.store),
        published_at: format_time(now),
        expires: seconds.map(|seconds| format_time(now + seconds)),
    });
    let payload = STANDARD.decode(&envelope.payload).unwrap();
    let sign = |key: &SigningKey| Signature {
        keyid: key_id(key.verifying_key().as_bytes()),
        sig: STANDARD.encode(
            key.sign(&pre_authentication_encoding(PAYLOAD_TYPE, &payload))
                .to_bytes(),
        ),
    };
    envelope.signatures = signer.map(sign).into_iter().collect();
    edge.store.put(&channel_key(), envelope.to_json());
}

fn guarded() -> TestEdge {
    let keys = [key(1), key(2)].map(|key| STANDARD.encode(key.verifying_key().as_bytes()));
    edge(&[("CHANNEL", "stable"), ("TRUSTED_KEYS", &keys.join(","))])
}

fn answering(edge: &TestEdge) -> (u16, Option<String>) {
    let seen = visit(edge, get("/api/sandbox-modules/p"));
    (seen.status, seen.header("x-sandbox-pack-version").map(str::to_owned))
}

#[test]
fn only_a_trusted_signature_moves_the_channel() {
    let first = (200, Some("1.0.0".to_owned()));
    let second = (200, Some("2.0.0".to_owned()));
    let cases = [
        ("signed", Some(key(1)), None, true, ""),
        ("signed by the other trusted key", Some(key(2)), None, true, ""),
        ("signed, and not expired", Some(key(1)), Some(60), true, ""),
        ("unsigned", None, None, false, "it is not signed"),
        (
            "signed by a stranger",
            Some(key(3)),
            None,
            false,
            "no trusted key signed it",
        ),
        ("expired", Some(key(1)), Some(0), false, "it has expired"),
    ];
    for (what, signer, seconds, taken, says) in cases {
        let edge = guarded();
        publish(&edge, "1.0.0", 1, Some(&key(1)), None);
        assert_eq!(answering(&edge), first, "{what}");
        edge.store.wait(30_000);
        publish(&edge, "2.0.0", 2, signer.as_ref(), seconds);
        let expected = if taken { &second } else { &first };
        assert_eq!(&answering(&edge), expected, "{what}");
        let report = visit(&edge, get("/healthz")).json();
        assert_eq!(report["status"], if taken { "ok" } else { "degraded" }, "{what}");
        assert!(
            report["problem"].as_str().unwrap_or_default().contains(says),
            "{what}: {report}"
        );

        let cold = guarded();
        publish(&cold, "2.0.0", 2, signer.as_ref(), seconds);
        assert_eq!(
            answering(&cold),
            if taken { second.clone() } else { (503, None) },
            "{what}"
        );
        let graph = release("2.0.0").pack("p").modules.first().unwrap().graph_digest;
        for (path, needs_channel) in [
            ("/api/channels/stable".to_owned(), true),
            ("/api/sandbox-closures/p".to_owned(), true),
            ("/api/sandbox-modules".to_owned(), true),
            (format!("/api/sandbox-modules/{graph}"), false),
            (format!("/api/sandbox-closures/{graph}"), false),
            ("/healthz".to_owned(), false),
        ] {
            let status = if taken || !needs_channel { 200 } else { 503 };
            assert_eq!(visit(&cold, get(&path)).status, status, "{what}: {path}");
        }
    }
}

#[test]
fn what_was_taken_goes_on_after_it_has_expired() {
    let edge = guarded();
    publish(&edge, "1.0.0", 1, Some(&key(1)), Some(40));
    assert_eq!(answering(&edge).0, 200);
    edge.store.wait(60_000);
    assert_eq!(answering(&edge), (200, Some("1.0.0".to_owned())));
    assert_eq!(visit(&edge, get("/healthz")).json()["status"], "degraded");
}
