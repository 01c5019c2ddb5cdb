//! `packferry check` as its users run it: the packs of the fixtures, exit statuses, reports for people and for programs.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod command;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use command::{Run, packferry};
use serde_json::{Value, json};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures");
const REGISTRY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/nodetool.packferry.toml");

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
                // NodeTool passes it over; who names it made a mistake.
                let report = check(&[&path], true, 2);
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
    let about_npm = report["diagnostics"].as_array().unwrap().iter();
    let places: BTreeSet<(&str, Option<u64>)> = about_npm
        .filter(|row| row["code"].as_str().unwrap().starts_with("npm-") && row["pack"] == "@acme/npm-refused")
        .map(|row| (row["file"].as_str().unwrap(), row["start"]["line"].as_u64()))
        .collect();
    let lines = [10, 15, 25, 30].map(|line| ("package.json", Some(line)));
    assert_eq!(
        places,
        lines.into(),
        "where the entries are declared, but for the one that only a run refuses"
    );
    let skills = [
        ("@acme/geo", None),
        ("@acme/bad-skill", Some("skill-invalid")),
        ("@acme/caps", Some("skill-missing")),
    ];
    for (pack, code) in skills {
        let of_pack = diagnostics(&report, "warning")
            .into_iter()
            .filter(|row| row["pack"] == pack);
        let mut skill = of_pack
            .filter_map(|row| row["code"].as_str())
            .filter(|code| code.starts_with("skill-"));
        assert_eq!(skill.next(), code, "{pack}");
    }
    assert_eq!(served["@acme/geo"]["description"], "Rough distance helpers");
}

/// A pack of one JavaScript file.
fn write_pack(dir: &Path, name: &str, text: &str) {
    fs::create_dir_all(dir).unwrap();
    let package =
        json!({ "name": name, "nodetool": { "sandboxModules": [{ "name": ".", "kind": "js", "file": "index.js" }] } });
    fs::write(dir.join("package.json"), package.to_string()).unwrap();
    fs::write(dir.join("index.js"), text).unwrap();
}

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.out).unwrap()
}

/// A package.json of 100 MB: a fault where it was asked for, a remark on the way; never read. One over the limit is read as far as
/// it takes to tell a pack.
#[test]
fn a_huge_package_json() {
    let top = tempfile::tempdir().unwrap();
    let huge = top.path().join("packs/huge");
    fs::create_dir_all(&huge).unwrap();
    fs::File::create(huge.join("package.json"))
        .unwrap()
        .set_len(100 << 20)
        .unwrap();
    write_pack(&top.path().join("packs/good"), "good", "");
    let run = packferry(top.path(), &["check", "--json", "packs"]);
    assert_eq!(
        (run.status, codes(&report(&run), "warning")),
        (
            0,
            ["package-json-passed-over", "skill-missing"].map(String::from).into()
        )
    );
    for path in ["packs/huge", "packs/huge/"] {
        let run = packferry(top.path(), &["check", "--json", path]);
        assert_eq!(
            (run.status, codes(&report(&run), "error")),
            (1, ["package-json-too-large".to_owned()].into())
        );
    }
    let padded = |bytes: usize| {
        let text =
            json!({ "name": "p", "nodetool": { "sandboxModules": [{ "name": ".", "kind": "js", "file": "i.js" }] } })
                .to_string();
        fs::write(
            huge.join("package.json"),
            text.clone() + &" ".repeat(bytes - text.len()),
        )
        .unwrap();
        fs::write(huge.join("i.js"), "").unwrap();
        packferry(top.path(), &["check", "--json", "packs/huge"]).status
    };
    assert_eq!((padded(1 << 20), padded((1 << 20) + 1)), (0, 1));
    let met = |text: &str| {
        fs::write(huge.join("package.json"), format!("{text}{}", " ".repeat(1 << 20))).unwrap();
        let run = packferry(top.path(), &["check", "--json", "packs"]);
        (run.status, codes(&report(&run), "error"))
    };
    let pack = r#"{"name": "p", "nodetool": {"sandboxModules": [{"name": ".", "kind": "js", "file": "i.js"}]}}"#;
    assert_eq!(met(pack), (1, ["package-json-too-large".to_owned()].into()));
    assert_eq!(met(r#"{"name": "p"}"#), (0, BTreeSet::new()));
    assert_eq!(met(r#"{"name": "p""#), (1, ["package-json-invalid".to_owned()].into()));
}

#[test]
fn an_installed_pack_shadows_a_staged_one() {
    let top = tempfile::tempdir().unwrap();
    let served = |run: &Run| {
        let packs = report(run)["packs"].as_array().unwrap().clone();
        packs
            .iter()
            .map(|pack| pack["directory"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    write_pack(&top.path().join("_sandbox/@a/p"), "@a/p", "export const staged = 1;");
    write_pack(
        &top.path().join("node_modules/@a/p"),
        "@a/p",
        "export const installed = 1;",
    );
    let arguments = ["check", "--json", "_sandbox", "node_modules"];
    let run = packferry(top.path(), &arguments);
    assert_eq!((run.status, served(&run)), (0, vec!["node_modules/@a/p".to_owned()]));
    // An installed pack at fault is told; the staged one answers meanwhile, as NodeTool does it.
    fs::write(top.path().join("node_modules/@a/p/index.js"), "import('x')").unwrap();
    let run = packferry(top.path(), &arguments);
    assert_eq!((run.status, served(&run)), (1, vec!["_sandbox/@a/p".to_owned()]));
    // Two of equal standing drop the name.
    fs::remove_dir_all(top.path().join("node_modules")).unwrap();
    write_pack(&top.path().join("_sandbox/@b/q"), "@a/p", "");
    let run = packferry(top.path(), &arguments[..3]);
    assert_eq!((run.status, served(&run)), (1, vec![]));
    assert_eq!(codes(&report(&run), "error"), ["duplicate-pack".to_owned()].into());
}

/// What may not be read: a fault of a pack, a remark about a directory. Run by somebody whom permissions bind.
#[test]
fn permissions() {
    let top = tempfile::tempdir().unwrap();
    // The command has to be where anybody can reach it.
    let program = top.path().join("packferry");
    fs::copy(env!("CARGO_BIN_EXE_packferry"), &program).unwrap();
    for (dir, locked, mode) in [
        ("file", "packs/file/index.js", 0o000),
        ("package", "packs/package/package.json", 0o000),
        ("closed", "packs/closed", 0o000),
        ("search-only", "packs/search-only", 0o711),
        ("@scope/p", "packs/@scope", 0o000),
    ] {
        write_pack(&top.path().join("packs").join(dir), &dir.replace("@scope/", "@s/"), "");
        fs::set_permissions(top.path().join(locked), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    let output = command
        .args(["check", "--json", "packs"])
        .current_dir(top.path())
        .output()
        .unwrap();
    for locked in ["packs/closed", "packs/@scope"] {
        fs::set_permissions(top.path().join(locked), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found: BTreeSet<(String, String)> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["directory"].as_str().unwrap().to_owned(),
                row["code"].as_str().unwrap().to_owned(),
            )
        })
        .filter(|(_, code)| code != "skill-missing")
        .collect();
    let expected = [
        ("packs/@scope", "unreadable-directory"),
        ("packs/closed", "unreadable-directory"),
        ("packs/file", "file-unreadable"),
        ("packs/package", "package-json-invalid"),
    ];
    assert_eq!(
        found,
        expected.map(|(dir, code)| (dir.to_owned(), code.to_owned())).into()
    );
    assert_eq!(report["packs"][0]["name"], "search-only");
}

/// What a person reads, byte for byte.
#[test]
fn reports_for_people() {
    let paths = [
        "js-import-escape",
        "js-cycle-internal",
        "manifest-unknown-key",
        "pkg-invalid-json",
        "wasm-multi-value",
        "host-unknown",
        "pkg-no-nodetool",
    ];
    let paths: Vec<String> = paths.iter().map(|id| format!("bad-packs/{id}")).collect();
    let mut arguments = vec!["check", "good-packs/@acme/geo", "good-packs/@acme/wasm-math"];
    arguments.extend(paths.iter().map(String::as_str));
    let run = packferry(Path::new(FIXTURES), &arguments);
    assert_eq!(run.status, 1);
    insta::assert_snapshot!("findings", run.err);
    insta::assert_snapshot!("served", run.out);
}

#[test]
fn wrong_usage_is_no_fault_of_a_pack() {
    let top = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["check", "gone"][..], "cannot read gone: it does not exist"),
        (&["check"], "no node_modules"),
        (
            &["check", "--config", "gone.toml", "."],
            "cannot read gone.toml: it does not exist",
        ),
        (&["check", "--config", ".", "."], "cannot read .: it is a directory"),
        (&["check", "--no-such-flag"], "--no-such-flag"),
    ] {
        let run = packferry(top.path(), arguments);
        assert!(
            run.status == 2 && run.err.contains(said) && run.out.is_empty(),
            "{arguments:?}: {}",
            run.err
        );
    }
}

#[test]
fn a_path_without_a_pack_is_wrong_usage_where_no_pack_is_at_fault() {
    let top = tempfile::tempdir().unwrap();
    fs::create_dir(top.path().join("empty")).unwrap();
    write_pack(&top.path().join("good"), "good", "");
    write_pack(&top.path().join("bad"), "bad", "import('x')");
    for (paths, status) in [
        (&["good"][..], 0),
        (&["empty"], 2),
        (&["good", "empty"], 2),
        (&["bad", "empty"], 1),
    ] {
        let run = packferry(top.path(), &[&["check"], paths].concat());
        assert_eq!(run.status, status, "{paths:?}");
        let said = "packferry: empty holds no pack to check";
        assert_eq!(run.err.contains(said), status == 2, "{paths:?}: {}", run.err);
    }
}

/// Paths are shown as they were given, and below the working directory without it.
#[test]
fn paths_are_shown_as_they_were_given() {
    let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_pack(&top.path().join("packs/good"), "good", "");
    let absolute = top.path().join("packs");
    let absolute = absolute.to_str().unwrap();
    for (here, given, shown) in [
        (top.path(), "packs", "packs/good".to_owned()),
        (top.path(), absolute, "packs/good".to_owned()),
        (elsewhere.path(), absolute, format!("{absolute}/good")),
        (&top.path().join("packs/good"), "..", "../good".to_owned()),
    ] {
        let run = packferry(here, &["check", "--json", given]);
        assert_eq!(report(&run)["packs"][0]["directory"], shown, "{given}");
    }
}

/// Nothing that a terminal obeys and no line without an end, whatever a pack says about itself.
#[test]
fn what_packs_say_is_cut_and_harmless() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("p\u{1b}[31m");
    write_pack(&dir, "p", "");
    let long = "x".repeat(100_000);
    let rows = [
        ("version", format!("{long}\u{1b}[31m")),
        ("name", long.clone()),
        ("name", "\u{9b}31m".to_owned()),
    ];
    for (key, value) in rows {
        let mut package =
            json!({ "name": "p", "nodetool": { "sandboxModules": [{ "name": ".", "kind": "js", "file": long }] } });
        package[key] = value.into();
        fs::write(dir.join("package.json"), package.to_string()).unwrap();
        for arguments in [&["check", "."][..], &["check", "--json", "."]] {
            let run = packferry(top.path(), arguments);
            assert_eq!(run.status, 1, "{}", run.err);
            for text in [&run.out, &run.err] {
                assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{key}: {text:?}");
            }
            assert!(run.err.lines().all(|line| line.chars().count() < 2_100), "{key}");
        }
    }
}

/// What is printed is the outcome of a command: where it is lost, the command is not done.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_fault() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs/text");
    let mut command = Command::new(env!("CARGO_BIN_EXE_packferry"));
    let ended = command.arg("check").arg(pack).stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(
        said.contains("standard output cannot be written: the disk is full"),
        "{said}"
    );
}
