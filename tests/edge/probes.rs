//! Raw requests to the reference implementation's route, and where ours answers otherwise, on purpose.

use serde_json::Value;

use crate::release::good_packs;
use crate::visit::{Ask, edge, get, visit};

const PROBES: &str = include_str!("../../fixtures/route-probes.json");

/// Why an answer may differ.
enum Expected {
    /// The reference's status.
    Same,
    /// Another one, for this reason.
    Status(u16, &'static str),
    /// The probe says nothing about us, for this reason.
    Skip(&'static str),
}

use Expected::{Same, Skip, Status};

/// Every probe that is not answered with the reference's status.
fn expected(name: &str) -> Expected {
    match name {
        "wasm contract with a latin-1 name"
        | "wasm contract with a greek name"
        | "entry whose dependency has a latin-1 id"
        | "file id with latin-1 char"
        | "file id with non-latin-1 char"
        | "entry whose dependency has a non-latin-1 id"
        | "unicode body, ascii id"
        | "empty body module"
        | "invalid utf-8 body"
        | "non-latin-1 version" => Status(404, "the build refuses the pack"),
        "file id with latin-1 char sent as a raw latin-1 byte" => Skip("the runtime encodes or refuses raw bytes"),
        "dot segments (not normalised)" | "dot-dot segments" => Skip("the runtime resolves dot segments first"),
        "no trailing slash, no id" => Status(200, "the index"),
        "encoded NUL" => Status(400, "control characters cannot be decoded"),
        "id of 7000 chars" | "id of 9000 chars" => Status(400, "ids end at 512 bytes"),
        "PUT" => Status(405, "other methods"),
        "OPTIONS plain" | "OPTIONS preflight allowed origin" => Status(204, "preflight"),
        "If-None-Match list" | "If-None-Match *" => Status(304, "lists and * are understood"),
        _ => Same,
    }
}

fn status_of(probe: &Value) -> u16 {
    let line = probe["statusLine"].as_str().unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn every_probe_has_the_references_status_or_a_reason() {
    let edge = edge(&[("CHANNEL", "stable")]);
    good_packs().publish(&edge.store, 1);
    let probes: Vec<Value> = serde_json::from_str(PROBES).unwrap();
    assert!(probes.len() > 60);
    for probe in &probes {
        let name = probe["name"].as_str().unwrap();
        let (status, reason) = match expected(name) {
            Same => (status_of(probe), "as the reference"),
            Status(status, reason) => {
                assert_ne!(status, status_of(probe), "{name} differs for no reason");
                (status, reason)
            }
            Skip(reason) => {
                println!("{name}: not asked, {reason}");
                continue;
            }
        };
        let path = probe["path"].as_str().unwrap();
        // The fixture abbreviates what is long.
        let path = match path.split_once('…') {
            Some((beginning, _)) => beginning.to_owned() + &"a".repeat(6_900),
            None => path.to_owned(),
        };
        let seen = visit(
            &edge,
            Ask {
                method: probe["method"].as_str().unwrap(),
                if_none_match: probe["requestHeaders"]["If-None-Match"].as_str(),
                ..get(&path)
            },
        );
        assert_eq!(seen.status, status, "{name}: {reason}");
        if status == 404 && status_of(probe) == 404 && !seen.body.is_empty() {
            let wanted: Value = serde_json::from_str(probe["body"].as_str().unwrap()).unwrap();
            assert_eq!(seen.json()["detail"], wanted["detail"], "{name}");
        }
    }
}
