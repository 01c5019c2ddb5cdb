//! `packferry check` as its users run it: the packs of the fixtures, exit statuses, reports for people and for programs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures");
const REGISTRY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/nodetool.packferry.toml");

/// How a run ended, and what it printed.
struct Run {
    status: i32,
    out: String,
    err: String,
}

fn packferry(directory: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_packferry"));
    let output = command
        .args(arguments)
        .current_dir(directory)
        .env_remove("PACKFERRY_PACK_PATHS")
        .output()
        .unwrap();
    Run {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The report of `check --json` over `paths`, which exits with `status`.
fn check(paths: &[&str], registry: bool, status: i32) -> Value {
    let mut arguments = vec!["check", "--json"];
    if registry {
        arguments.extend(["--config", REGISTRY]);
    }
    arguments.extend(paths);
    let run = packferry(Path::new(FIXTURES), &arguments);
    assert_eq!(run.status, status, "{paths:?}: {}{}", run.out, run.err);
    let report: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["clean"], status == 0);
    report
}

fn fixture(name: &str) -> Value {
    serde_json::from_slice(&fs::read(Path::new(FIXTURES).join(name)).unwrap()).unwrap()
}

fn diagnostics<'a>(report: &'a Value, severity: &str) -> Vec<&'a Value> {
    let rows = report["diagnostics"].as_array().unwrap().iter();
    rows.filter(|row| row["severity"] == severity).collect()
}

fn codes(report: &Value, severity: &str) -> BTreeSet<String> {
    let text = |row: &&Value| row["code"].as_str().unwrap().to_owned();
    diagnostics(report, severity).iter().map(text).collect()
}

#[test]
fn bad_packs_come_out_as_nodetool_judges_them() {
    let verdicts = fixture("bad-pack-verdicts.json");
    let verdicts: BTreeMap<&str, &Value> = verdicts["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["id"].as_str().unwrap(), row))
        .collect();
    for case in fixture("bad-packs.json")["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let path = format!("bad-packs/{id}");
        match case["outcome"].as_str().unwrap() {
            "ignored" => {
                let report = check(&[&path], true, 0);
                assert_eq!(
                    codes(&report, "warning"),
                    BTreeSet::from(["no-pack".to_owned()]),
                    "{id}"
                );
            }
            "error" => {
                let verdict = verdicts[id];
                let report = check(&[&path], true, 1);
                assert_eq!(
                    codes(&report, "error"),
                    BTreeSet::from([verdict["code"].as_str().unwrap().to_owned()]),
                    "{id}"
                );
                let message = diagnostics(&report, "error")[0]["message"].as_str().unwrap().to_owned();
                for name in verdict["names"].as_array().unwrap() {
                    assert!(message.contains(name.as_str().unwrap()), "{id}: {message}");
                }
                assert_eq!(report["packs"].as_array().unwrap().len(), 0, "{id}: withheld whole");
            }
            _ => assert!(id.starts_with('_'), "{id}"),
        }
    }
}

#[test]
fn a_name_that_is_found_twice_is_dropped() {
    let report = check(&["bad-packs/_dup-roots/near", "bad-packs/_dup-roots/far"], true, 1);
    let errors = diagnostics(&report, "error");
    assert_eq!(errors.len(), 2);
    for row in errors {
        assert_eq!(
            (&row["code"], &row["pack"]),
            (&"duplicate-pack".into(), &"@bad/dup".into())
        );
        let message = row["message"].as_str().unwrap();
        for place in [
            "bad-packs/_dup-roots/near/@bad/dup",
            "bad-packs/_dup-roots/far/@bad/dup",
        ] {
            assert!(message.contains(place), "{message}");
        }
    }
    assert_eq!(report["packs"].as_array().unwrap().len(), 0);
    check(&["bad-packs/_dup-roots/near", "bad-packs/_dup-roots/near"], true, 0);
}

#[test]
fn without_a_registry_host_entries_are_skipped() {
    for id in ["host-unknown", "host-wrong-pack"] {
        let report = check(&[&format!("bad-packs/{id}")], false, 0);
        assert_eq!(
            codes(&report, "skipped"),
            BTreeSet::from(["host-not-registered".to_owned()]),
            "{id}"
        );
        assert_eq!(report["packs"][0]["unavailable"][0]["code"], "host-not-registered");
    }
}

/// The good packs, with NodeTool's digests, but for those that the contract's table refuses.
#[test]
fn good_packs_come_out_with_the_reference_digests() {
    let report = check(&["good-packs", "good-packs/@nodetool-ai"], true, 1);
    let refused = |code: &str| {
        let rows = diagnostics(&report, "error")
            .into_iter()
            .filter(|row| row["code"] == code);
        rows.map(|row| row["pack"].as_str().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    let expected = [
        ("javascript-not-utf8", &["@acme/bytes"][..]),
        ("javascript-nul", &["@acme/bytes"]),
        ("javascript-hashbang", &["@acme/hashbang"]),
        ("file-id-not-deliverable", &["@acme/latin1-ids", "@acme/unicode-ids"]),
        ("version-not-deliverable", &["@acme/unicode-version"]),
        ("export-name", &["@acme/wasm-unicode-name"]),
    ];
    for (code, packs) in expected {
        assert_eq!(
            refused(code),
            packs.iter().map(|pack| (*pack).to_owned()).collect(),
            "{code}"
        );
    }
    let refused: BTreeSet<&str> = expected.iter().flat_map(|(_, packs)| packs.iter().copied()).collect();
    assert_eq!(codes(&report, "error").len(), expected.len());
    let served: BTreeMap<&str, &Value> = report["packs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pack| (pack["name"].as_str().unwrap(), pack))
        .collect();
    let vectors = fixture("vectors.json");
    let mut compared = 0;
    for pack in vectors["packs"].as_array().unwrap() {
        let name = pack["name"].as_str().unwrap();
        assert_eq!(served.contains_key(name), !refused.contains(name), "{name}");
        let Some(ours) = served.get(name) else { continue };
        // Digests of npm entries differ on purpose.
        let modules = pack["modules"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|module| module["npm"].is_null());
        for module in modules {
            let mut rows = ours["modules"].as_array().unwrap().iter();
            let of_ours = rows.find(|row| row["specifier"] == module["specifier"]).unwrap();
            assert_eq!(of_ours["pinnedId"], module["graphDigest"], "{}", module["specifier"]);
            assert_eq!(of_ours["sha256"], module["bodySha256"], "{}", module["specifier"]);
            compared += 1;
        }
        if !name.contains("npm") {
            assert_eq!(ours["digest"], pack["packDigest"], "{name}");
        }
    }
    assert!(compared >= 20, "{compared}");
    let skills = [
        ("@acme/geo", None),
        ("@acme/bad-skill", Some("skill-invalid")),
        ("@acme/caps", Some("skill-missing")),
    ];
    for (pack, code) in skills {
        let found = diagnostics(&report, "warning")
            .into_iter()
            .find(|row| row["pack"] == pack);
        assert_eq!(found.and_then(|row| row["code"].as_str()), code, "{pack}");
    }
    assert_eq!(served["@acme/geo"]["description"], "Rough distance helpers");
}
