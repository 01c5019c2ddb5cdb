//! Runs `fixtures/guest/cases.json` in the native guest. Its README fixes the format; Node and the browser run the same file.

mod fixture;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::{fs, io};

use packferry_core::digest::BlobDigest;
use packferry_guest::{Graph, HostCall, HostDispatcher, PlatformCall, PlatformModule, Run};
use serde_json::{Map, Value, json};

use fixture::{Case, Cases, Expectation};

/// The host module `echo` and the platform module of the README.
struct Embedder;

impl HostDispatcher for Embedder {
    fn call(&self, call: HostCall<'_>) -> Result<Value, String> {
        match (call.host, call.pack, call.export) {
            ("echo", "@acme/echo", "echo") => Ok(json!({ "host": call.host, "arguments": call.arguments })),
            ("echo", "@acme/echo", "fail") => Err("the host refuses".to_owned()),
            _ => Err(format!("no such host function: {call:?}")),
        }
    }

    fn call_platform(&self, call: PlatformCall<'_>) -> Result<Value, String> {
        match call.export {
            "read" => Ok(json!({ "platform": call.specifier, "arguments": call.arguments })),
            _ => Err("the platform refuses".to_owned()),
        }
    }
}

const PLATFORM: &str = "@nodetool-ai/sandbox-nodetool/media";

/// What went wrong with a case, if anything did.
fn check(cases: &Cases, case: &Case, declared: &[String]) -> Result<(), String> {
    let mut run = Run::new(declared.iter().map(|name| cases.graph(name)).collect());
    run.limits = case.limits.applied();
    run.host = Arc::new(Embedder);
    if case.platform {
        let media = PlatformModule::new(PLATFORM, &["read", "fail"]);
        run.platform = vec![media.map_err(|error| error.to_string())?];
    }
    let result = run.evaluate(&case.code);
    let has_all = |text: &str, parts: &[String]| parts.iter().all(|part| text.contains(part.as_str()));
    let met = match (&case.expectation(), &result) {
        (Expectation::Value(value), Ok(result)) => *value == result,
        (Expectation::ValueContains(parts), Ok(Value::String(text))) => has_all(text, parts),
        (Expectation::Error(parts), Err(error)) => has_all(&error.message, parts),
        _ => false,
    };
    if met { Ok(()) } else { Err(format!("{result:?}")) }
}

#[test]
fn every_case_holds() {
    let _ = fs::remove_file(REPORTS.to_owned() + REPORT);
    let cases = Cases::read();
    let mut runs = Map::new();
    for case in &cases.cases {
        let found = check(&cases, case, &case.declared);
        runs.insert(case.name.clone(), json!(found.err()));
        if case.also_undeclared {
            let found = check(&cases, case, &[]);
            runs.insert(format!("{}, nothing declared", case.name), json!(found.err()));
        }
    }
    write_report(&runs).unwrap();
    let failures: Vec<_> = runs.iter().filter(|(_, found)| !found.is_null()).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Where the runtimes report for `docs/parity.md`.
const REPORTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/parity");
const REPORT: &str = "/native.json";

/// Writes what the runs came to: by name, how the outcome differs from the expected one, if it does.
fn write_report(runs: &Map<String, Value>) -> io::Result<()> {
    let fixture = BlobDigest::of(fixture::CASES.as_bytes());
    let report = json!({ "fixture": fixture.to_string(), "runs": runs });
    fs::create_dir_all(REPORTS)?;
    fs::write(REPORTS.to_owned() + REPORT, report.to_string())
}

#[test]
fn exports_of_the_platform_are_identifiers() {
    for name in ["a-b", "await", "x(){}; evil; function y", ""] {
        let error = PlatformModule::new(PLATFORM, &["read", name]).unwrap_err();
        assert_eq!(error.to_string(), format!("a platform module cannot export {name:?}"));
    }
}

#[test]
fn cases_are_well_formed() {
    let cases = Cases::read();
    let names: BTreeSet<&str> = cases.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.cases.len());
}

#[test]
fn bodies_are_proven() {
    let graph = Cases::read().graph("geo");
    let (record, bodies) = (graph.record(), graph.bodies());
    assert!(Graph::new(record.clone(), bodies.to_vec()).is_ok());
    let mut forged = bodies.to_vec();
    forged[1] = Arc::from(*b"export {};");
    let cases = [
        (
            forged,
            "@acme/geo: the bytes of sandbox/internal/round.js are not those that the graph record names",
        ),
        (
            bodies[..1].to_vec(),
            "the graph of @acme/geo has 2 files, and 1 bodies were given",
        ),
    ];
    for (bodies, message) in cases {
        let error = Graph::new(record.clone(), bodies).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
