//! Runs `fixtures/guest/cases.json` in the native guest. Its README fixes the format; Node and the browser run the same file.

mod fixture;

use std::collections::BTreeSet;
use std::sync::Arc;

use packferry_guest::{Graph, HostCall, HostDispatcher, Run};
use serde_json::{Value, json};

use fixture::{Case, Cases, Expectation};

/// The host module `echo` of the README.
struct Echo;

impl HostDispatcher for Echo {
    fn call(&self, call: HostCall<'_>) -> Result<Value, String> {
        match (call.host, call.pack, call.export) {
            ("echo", "@acme/echo", "echo") => Ok(json!({ "host": call.host, "arguments": call.arguments })),
            ("echo", "@acme/echo", "fail") => Err("the host refuses".to_owned()),
            _ => Err(format!("no such host function: {call:?}")),
        }
    }
}

/// What went wrong with a case, if anything did.
fn check(cases: &Cases, case: &Case, declared: &[String]) -> Result<(), String> {
    let mut run = Run::new(declared.iter().map(|name| cases.graph(name)).collect());
    run.limits = case.limits.applied();
    run.host = Arc::new(Echo);
    let result = run.evaluate(&case.code);
    let has_all = |text: &str, parts: &[String]| parts.iter().all(|part| text.contains(part.as_str()));
    let met = match (&case.expectation(), &result) {
        (Expectation::Value(value), Ok(result)) => *value == result,
        (Expectation::ValueContains(parts), Ok(Value::String(text))) => has_all(text, parts),
        (Expectation::Error(parts), Err(error)) => has_all(&error.message, parts),
        _ => false,
    };
    if met {
        Ok(())
    } else {
        Err(format!("{}: {result:?}", case.name))
    }
}

#[test]
fn every_case_holds() {
    let cases = Cases::read();
    let mut failures = Vec::new();
    for case in &cases.cases {
        failures.extend(check(&cases, case, &case.declared).err());
        if case.also_undeclared {
            failures.extend(
                check(&cases, case, &[])
                    .err()
                    .map(|failure| format!("undeclared {failure}")),
            );
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
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
