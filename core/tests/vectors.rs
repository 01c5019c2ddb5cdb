//! The reference implementation's payloads and digests, checked natively and on wasm32 by the same rows.

#![expect(clippy::unwrap_used, reason = "tests")]

use packferry_core::canonical;
use packferry_core::closure::{self, InvalidClosure};
use packferry_core::digest::GraphDigest;
use packferry_core::payload::{GraphPayload, PackPayload};
use packferry_core::record::{GraphRecord, InvalidRecord};
use serde_json::Value;

const PAYLOADS: &str = include_str!("../../fixtures/digest-payloads.json");

fn rows() -> Vec<Value> {
    let document: Value = serde_json::from_str(PAYLOADS).unwrap();
    document["payloads"].as_array().unwrap().clone()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}

/// Payloads that this code reads: all but those of NodeTool's own npm entries, which have another shape on purpose.
fn graph_rows() -> Vec<Value> {
    rows()
        .into_iter()
        .filter(|row| matches!(text(row, "kind"), "js" | "wasm" | "host"))
        .collect()
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn every_graph_payload_reads_back_and_has_its_digest() {
    let rows = graph_rows();
    assert!(rows.len() > 30, "{} rows", rows.len());
    for row in rows {
        let payload = GraphPayload::parse(text(&row, "payload")).unwrap();
        assert_eq!(payload.to_json(), text(&row, "payload"));
        assert_eq!(payload.digest().to_string(), text(&row, "digest"));
        assert_eq!(payload.specifier().as_str(), text(&row, "specifier"));
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn every_pack_payload_without_npm_entries_reads_back_and_has_its_digest() {
    let mut read = 0;
    for row in rows().iter().filter(|row| text(row, "kind") == "pack") {
        let payload: PackPayload = canonical::from_json(text(row, "payload")).unwrap();
        assert_eq!(payload.digest().to_string(), text(row, "digest"));
        read += 1;
    }
    assert!(read > 15, "{read} rows");
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn records_read_back_and_refuse_every_other_graph() {
    for row in graph_rows() {
        let payload = GraphPayload::parse(text(&row, "payload")).unwrap();
        let record = GraphRecord::new(payload, |id| id.as_str().len() as u64).unwrap();
        let json = record.to_json();
        assert_eq!(GraphRecord::parse(&json, record.digest()), Ok(record.clone()));
        let other = GraphDigest::of(b"other");
        assert_eq!(
            GraphRecord::parse(&json, other),
            Err(InvalidRecord::OtherGraph(record.digest()))
        );
    }
}

/// The record of a graph of two files, to be tampered with.
fn geo() -> GraphRecord {
    let row = graph_rows()
        .into_iter()
        .find(|row| text(row, "specifier") == "@acme/geo")
        .unwrap();
    GraphRecord::new(GraphPayload::parse(text(&row, "payload")).unwrap(), |_| 3).unwrap()
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn tampered_records_are_refused() {
    let record = geo();
    let json = record.to_json();
    let first = record.files()[0].sha256.to_string();
    // (what, text in the record, its replacement, how many times)
    let cases = [
        ("another kind", r#""kind":"js","sha256""#, r#""kind":"wasm","sha256""#),
        (
            "another blob",
            &format!(r#""sha256":"{first}""#),
            &format!(r#""sha256":"{}""#, "0".repeat(64)),
        ),
        (
            "another entry",
            r#""entry":"sandbox/geo.js""#,
            r#""entry":"sandbox/internal/round.js""#,
        ),
        ("no entry", r#""entry":"sandbox/geo.js""#, r#""entry":"gone.js""#),
        (
            "no dependency",
            r#""size":3,"dependencies":["sandbox/internal/round.js"]"#,
            r#""size":3,"dependencies":[]"#,
        ),
        ("another version", r#"{"version":1"#, r#"{"version":2"#),
        ("an unknown key", r#"{"version":1"#, r#"{"x":1,"version":1"#),
        ("white space", r#"{"version":1"#, r#"{ "version":1"#),
        ("a negative size", r#""size":3"#, r#""size":-3"#),
        ("a huge size", r#""size":3"#, r#""size":99999999999999999999"#),
        ("a changed payload", r#"@acme/geo"#, r#"@acme/neo"#),
    ];
    for (what, from, to) in cases {
        let tampered = json.replacen(from, to, 1);
        assert_ne!(tampered, json, "{what}");
        assert!(GraphRecord::parse(&tampered, record.digest()).is_err(), "{what}");
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn self_consistent_payloads_that_no_build_writes_are_refused() {
    let row = |specifier: &str| {
        let row = graph_rows()
            .into_iter()
            .find(|row| text(row, "specifier") == specifier)
            .unwrap();
        text(&row, "payload").to_owned()
    };
    let (geo, math, csv) = (
        row("@acme/geo"),
        row("@acme/wasm-math/math"),
        row("@nodetool-ai/sandbox-csv"),
    );
    let cases = [
        (
            "a specifier of another pack",
            &geo,
            r#""specifier":"@acme/geo""#,
            r#""specifier":"@evil/geo""#,
        ),
        (
            "a specifier of another module",
            &geo,
            r#""specifier":"@acme/geo""#,
            r#""specifier":"@acme/geo/x""#,
        ),
        (
            "another file than declared",
            &geo,
            r#""file":"sandbox/geo.js""#,
            r#""file":"sandbox/other.js""#,
        ),
        (
            "an entry outside the graph",
            &geo,
            r#""moduleId":"sandbox/geo.js""#,
            r#""moduleId":"sandbox/x.js""#,
        ),
        (
            "a path out of the pack",
            &geo,
            r#""id":"sandbox/geo.js""#,
            r#""id":"../geo.js""#,
        ),
        (
            "an unknown kind",
            &geo,
            r#""kind":"js","declaration""#,
            r#""kind":"ts","declaration""#,
        ),
        (
            "a facade of other exports",
            &math,
            r#"function scale("#,
            r#"function evil("#,
        ),
        (
            "a facade with more code",
            &math,
            r#"import { __call }"#,
            r#"evil(); import { __call }"#,
        ),
        (
            "another facade version",
            &math,
            r#""facadeVersion":1"#,
            r#""facadeVersion":2"#,
        ),
        (
            "exports out of order",
            &math,
            r#""exports":["add","bump""#,
            r#""exports":["bump","add""#,
        ),
        (
            "host exports out of order",
            &csv,
            r#""exports":["parse","stringify"]"#,
            r#""exports":["stringify","parse"]"#,
        ),
        (
            "a host id and another module id",
            &csv,
            r#""hostId":"csv""#,
            r#""hostId":"xml""#,
        ),
    ];
    for (what, payload, from, to) in cases {
        let changed = payload.replacen(from, to, 1);
        assert_ne!(&changed, payload, "{what}");
        assert!(GraphPayload::parse(&changed).is_err(), "{what}");
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn closures_read_back_and_every_damage_is_found() {
    let record = geo();
    let bodies: [&[u8]; 2] = [b"abc", b"def"];
    let frame = closure::encode(&record, bodies).unwrap();
    let (read, parts) = closure::decode(&frame, record.digest()).unwrap();
    assert_eq!((read, parts), (record.clone(), bodies.to_vec()));
    for end in 0..frame.len() {
        assert!(closure::decode(&frame[..end], record.digest()).is_err(), "cut at {end}");
    }
    let mut longer = frame.clone();
    longer.push(0);
    assert_eq!(closure::decode(&longer, record.digest()), Err(InvalidClosure::Frame));
    let mut huge = frame;
    huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(closure::decode(&huge, record.digest()), Err(InvalidClosure::Frame));
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn contracts_are_derived_from_the_payload() {
    let row = graph_rows()
        .into_iter()
        .find(|row| text(row, "specifier") == "@acme/wasm-math/math")
        .unwrap();
    let Ok(payload) = GraphPayload::parse(text(&row, "payload")) else {
        panic!("no payload")
    };
    assert_eq!(
        canonical::to_json(&payload.wasm_contract()),
        r#"{"memoryPagesMax":8,"exports":[{"wasm":"scale","as":"scale"},{"wasm":"add","as":"add"},{"wasm":"noop","as":"noop"},{"wasm":"bump","as":"bump"}],"limits":{"callTimeoutMs":250,"callsPerInvocation":16}}"#
    );
}
