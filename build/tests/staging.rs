//! Staged trees: what `packferry stage` copies and when it refuses, what a tree builds to without npm and without a bundler, and what
//! `packferry verify-bundle` finds in one that was tampered with.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use packferry::release::Release;
use packferry::staging::{StagedEntry, StagedFile, StagingList};
use packferry_core::digest::BlobDigest;
use packferry_core::id::FileId;
use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};
use tempfile::TempDir;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// How a run ended, and what it printed.
struct Run {
    status: i32,
    out: String,
    err: String,
}

impl Run {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}{}", self.out, self.err))
    }
}

fn run(directory: &Path, arguments: &[&str], bundler: bool) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_packferry"));
    command
        .args(arguments)
        .current_dir(directory)
        .env_remove("PACKFERRY_PACK_PATHS")
        .env("PACKFERRY_CACHE", directory.join("cache"));
    if !bundler {
        // A run that looks for the bundler ends with this fault.
        command.env("PACKFERRY_ESBUILD", "/no/bundler");
    }
    let output = command.output().unwrap();
    Run {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `packferry` in `directory`, and fails where it does not end with `status`.
fn packferry(directory: &Path, arguments: &[&str], status: i32) -> Run {
    let run = run(directory, arguments, true);
    assert_eq!(run.status, status, "{arguments:?}: {}{}", run.out, run.err);
    run
}

/// The same where there is no bundler.
fn without_bundler(directory: &Path, arguments: &[&str], status: i32) -> Run {
    let run = run(directory, arguments, false);
    assert_eq!(run.status, status, "{arguments:?}: {}{}", run.out, run.err);
    run
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &there);
        } else {
            fs::copy(entry.path(), there).unwrap();
        }
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Every file below `folder`, with its bytes.
fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                files.insert(name, fs::read(path).unwrap());
            }
        }
    }
    files
}

fn codes(report: &Value) -> BTreeSet<&str> {
    let rows = report["diagnostics"].as_array().unwrap();
    rows.iter().map(|row| row["code"].as_str().unwrap()).collect()
}

fn messages(report: &Value) -> String {
    let rows = report["diagnostics"].as_array().unwrap();
    rows.iter()
        .map(|row| format!("{}\n", row["message"].as_str().unwrap()))
        .collect()
}

/// A root with an authored pack, and a pack over a library that `node_modules` has, beside one that is refused.
fn installed() -> TempDir {
    let top = tempfile::tempdir().unwrap();
    let path = |name: &str| top.path().join("node_modules").join(name);
    let package = |name: &str, version: &str, nodetool: Value| {
        let package = json!({ "name": name, "version": version, "files": ["sandbox"], "nodetool": nodetool });
        let text = format!("  {}\n\n", serde_json::to_string_pretty(&package).unwrap());
        write(&path(name).join("package.json"), &text);
    };
    let skill = "---\nname: shapes\ndescription: Shapes.\n---\nUse them.\n";
    let modules = json!([
        { "name": ".", "kind": "js", "file": "./sandbox/index.js" },
        { "name": "area", "kind": "js", "file": "sandbox/area.js" },
    ]);
    let internal = json!(["sandbox/lib/round.js", "sandbox/lib/unreached.js"]);
    package(
        "@acme/shapes",
        "1.2.0",
        json!({ "sandboxModules": modules, "internal": internal }),
    );
    write(&path("@acme/shapes/SKILL.md"), skill);
    write(&path("@acme/shapes/sandbox/index.js"), "export * from './area.js';\r\n");
    write(
        &path("@acme/shapes/sandbox/area.js"),
        "import { round } from './lib/round.js';\nexport const area = (a, b) => round(a * b);\n",
    );
    write(
        &path("@acme/shapes/sandbox/lib/round.js"),
        "export const round = Math.round;\n",
    );
    write(&path("@acme/shapes/sandbox/lib/unreached.js"), "export {};\n");
    write(&path("@acme/shapes/sandbox/undeclared.js"), "export {};\n");
    write(&path("@acme/shapes/node_modules/dep/index.js"), "");
    let modules = json!([
        { "name": ".", "kind": "js", "npm": "adder" },
        { "name": "refused", "kind": "js", "npm": "timer" },
    ]);
    package("sums", "0.1.0", json!({ "sandboxModules": modules }));
    write(&path("adder/package.json"), r#"{"name":"adder","version":"3.0.0"}"#);
    write(&path("adder/index.js"), "export const add = (a, b) => a + b;\n");
    write(&path("timer/package.json"), r#"{"name":"timer","version":"1.0.0"}"#);
    write(
        &path("timer/index.js"),
        "export const wait = () => setTimeout(() => {}, 1);\n",
    );
    top
}

/// That root, and what it was staged to, in `app`.
fn staged() -> TempDir {
    let top = installed();
    packferry(top.path(), &["stage", "node_modules", "--out", "app"], 0);
    top
}

/// A copy of the staged application, in another place.
fn moved(staged: &TempDir) -> TempDir {
    let top = tempfile::tempdir().unwrap();
    copy(&staged.path().join("app"), &top.path().join("moved/app"));
    top
}

fn tree(top: &TempDir) -> PathBuf {
    top.path().join("moved/app/_sandbox")
}

/// A table of `fixtures/staging.json`.
fn table(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(format!("{REPOSITORY}/fixtures/staging.json")).unwrap();
    let mut tables: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(tables[name].take()).unwrap()
}

fn texts(value: &Value) -> BTreeSet<&str> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// Does to what lies in `folder` what the steps of a row say. `BUNDLE` is the first bundle that a tree's list names.
fn change(top: &TempDir, folder: &Path, row: &Value) {
    for step in row["steps"].as_array().unwrap() {
        let text = |at: usize| step[at].as_str().unwrap();
        let path = |at: usize| match text(at) {
            "" => folder.to_owned(),
            "BUNDLE" => folder.join(bundle_of(folder)),
            path => folder.join(path),
        };
        match text(0) {
            "remove" => remove(&path(1)),
            "write" => write(&path(1), text(2)),
            "copy" => copy(&path(1), &path(2)),
            "folder" => fs::create_dir(path(1)).unwrap(),
            "link" => symlink(text(2), path(1)).unwrap(),
            "away" => move_behind_a_link(&path(1), &top.path().join("aside")),
            "pipe" => pipe(&path(1)),
            "grow" => File::options()
                .write(true)
                .open(path(1))
                .unwrap()
                .set_len(step[2].as_u64().unwrap())
                .unwrap(),
            "replace" => replace(&path(1), text(2), text(3)),
            "relist" => relist(folder, path(1).strip_prefix(folder).unwrap().to_str().unwrap()),
            "unlist" => edit_list(folder, |list| {
                list.files.retain(|file| !file.path.as_str().starts_with(text(1)))
            }),
            "twice" => edit_list(folder, |list| match text(1) {
                "files" => list.files.insert(0, list.files[0].clone()),
                _ => list.npm.insert(0, list.npm[0].clone()),
            }),
            "no-rows" => edit_list(folder, |list| list.npm.clear()),
            "row" => edit_list(folder, |list| list.npm[0] = with(&list.npm[0], &step[1])),
            "add-row" => edit_list(folder, |list| {
                list.npm.push(with(&list.npm[0], &step[1]));
                list.npm.sort_by(|a, b| a.specifier.cmp(&b.specifier));
            }),
            "bundle" => rebundle(folder, text(1)),
            other => panic!("{other}"),
        }
    }
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
}

/// Leaves a link to what lay at `path`, which is as readable as before.
fn move_behind_a_link(path: &Path, aside: &Path) {
    fs::rename(path, aside).unwrap();
    symlink(aside, path).unwrap();
}

/// A row with other values under these keys.
fn with(row: &StagedEntry, changes: &Value) -> StagedEntry {
    let mut row = serde_json::to_value(row).unwrap();
    row.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    serde_json::from_value(row).unwrap()
}

fn edit_list(tree: &Path, edit: impl FnOnce(&mut StagingList)) {
    let path = tree.join("staging.json");
    let mut list = StagingList::parse(&fs::read(&path).unwrap()).unwrap();
    edit(&mut list);
    fs::write(path, list.to_json()).unwrap();
}

/// Lists `path` with the digest that it has now.
fn relist(tree: &Path, path: &str) {
    let sha256 = BlobDigest::of(&fs::read(tree.join(path)).unwrap());
    edit_list(tree, |list| {
        let path = FileId::parse(path).unwrap();
        list.files.retain(|file| file.path != path);
        list.files.push(StagedFile { path, sha256 });
        list.files.sort_by(|a, b| a.path.cmp(&b.path));
    });
}

fn replace(path: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(old), "{text}");
    fs::write(path, text.replacen(old, new, 1)).unwrap();
}

#[test]
fn a_tree_has_what_is_declared_and_nothing_else() {
    let staged = staged();
    let (root, tree) = (staged.path().join("node_modules"), staged.path().join("app/_sandbox"));
    let mut files = files_of(&tree);
    let list = StagingList::parse(&files.remove("staging.json").unwrap()).unwrap();
    let listed: BTreeMap<String, BlobDigest> = list
        .files
        .iter()
        .map(|file| (file.path.to_string(), file.sha256))
        .collect();
    let digests: BTreeMap<String, BlobDigest> = files
        .iter()
        .map(|(path, bytes)| (path.clone(), BlobDigest::of(bytes)))
        .collect();
    assert_eq!(listed, digests, "every file is listed with its digest");
    let [row] = list.npm.as_slice() else {
        panic!("{:?}", list.npm)
    };
    let row = serde_json::to_value(row).unwrap();
    let bundle = format!(".npm/{}.mjs", row["source"].as_str().unwrap());
    let mut expected: BTreeSet<&str> = [
        "@acme/shapes/SKILL.md",
        "@acme/shapes/package.json",
        "@acme/shapes/sandbox/area.js",
        "@acme/shapes/sandbox/index.js",
        "@acme/shapes/sandbox/lib/round.js",
        "@acme/shapes/sandbox/lib/unreached.js",
        "manifest.json",
        "sums/package.json",
    ]
    .into();
    for path in &expected {
        if *path != "manifest.json" {
            assert_eq!(files[*path], fs::read(root.join(path)).unwrap(), "{path} is unchanged");
        }
    }
    expected.insert(&bundle);
    assert_eq!(files.keys().map(String::as_str).collect::<BTreeSet<_>>(), expected);
    assert_eq!(
        (&row["specifier"], &row["npm"], &row["npmVersion"], &row["bundler"]),
        (&json!("sums"), &json!("adder"), &json!("3.0.0"), &json!("esbuild"))
    );
}

#[test]
fn a_tree_builds_to_the_same_digests_without_npm_and_without_a_bundler() {
    let staged = staged();
    let top = moved(&staged);
    packferry(staged.path(), &["build", "node_modules", "--out", "release"], 0);
    let released = fs::read_to_string(staged.path().join("release/manifest.json")).unwrap();
    assert_eq!(fs::read_to_string(tree(&top).join("manifest.json")).unwrap(), released);
    let run = without_bundler(
        top.path(),
        &["build", "moved/app/_sandbox", "--out", "release", "--json"],
        0,
    );
    assert!(codes(&run.json()).contains("npm-module-not-staged"), "{}", run.out);
    // Why an entry is refused is known only where its package is installed; everything else is the same.
    let built = fs::read_to_string(top.path().join("release/manifest.json")).unwrap();
    assert_eq!(
        built.replace("npm-module-not-staged", "npm-module-forbidden-global"),
        released
    );

    // The starter packs: no entry is refused, so the manifest is the same to the last byte.
    let packs = format!("{REPOSITORY}/packs");
    packferry(top.path(), &["stage", &packs, "--out", "starter"], 0);
    fs::rename(top.path().join("starter"), top.path().join("elsewhere")).unwrap();
    without_bundler(top.path(), &["verify-bundle", "elsewhere"], 0);
    without_bundler(top.path(), &["build", "elsewhere/_sandbox", "--out", "release"], 0);
    let committed = fs::read(format!("{REPOSITORY}/manifests/starter/manifest.json")).unwrap();
    assert_eq!(
        fs::read(top.path().join("elsewhere/_sandbox/manifest.json")).unwrap(),
        committed
    );
    assert_eq!(fs::read(top.path().join("release/manifest.json")).unwrap(), committed);
    packferry(top.path(), &["verify-bundle", "elsewhere", "--against", &packs], 0);
}

/// The packs of a release's manifest, without the reasons of what is unavailable.
fn packs_of(manifest: &Path) -> Value {
    let mut manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    for pack in manifest["packs"].as_array_mut().unwrap() {
        for row in pack["unavailable"].as_array_mut().unwrap() {
            row["code"].take();
        }
    }
    manifest
}

#[test]
fn reference_packs_of_every_kind_build_to_the_same_digests() {
    let top = tempfile::tempdir().unwrap();
    let path = |name: &str| format!("{REPOSITORY}/{name}");
    let (good, registry) = (path("fixtures/good-packs"), path("examples/nodetool.packferry.toml"));
    let config = ["--json", "--config", &registry];
    let scope = format!("{good}/@nodetool-ai");
    let report = packferry(top.path(), &[&["check", &good, &scope], &config[..]].concat(), 1).json();
    let packs = report["packs"].as_array().unwrap().iter();
    let packs: Vec<&str> = packs.map(|pack| pack["directory"].as_str().unwrap()).collect();
    assert!(packs.len() > 10, "{packs:?}");
    packferry(
        top.path(),
        &[&["build", "--out", "release"], &config[..], &packs].concat(),
        0,
    );
    packferry(
        top.path(),
        &[&["stage", "--out", "app"], &config[..], &packs].concat(),
        0,
    );
    let release = top.path().join("release/manifest.json");
    assert_eq!(
        fs::read(&release).unwrap(),
        fs::read(top.path().join("app/_sandbox/manifest.json")).unwrap()
    );
    fs::rename(top.path().join("app"), top.path().join("moved")).unwrap();
    without_bundler(top.path(), &[&["verify-bundle", "moved"], &config[..]].concat(), 0);
    without_bundler(
        top.path(),
        &[&["build", "moved/_sandbox", "--out", "again"], &config[..]].concat(),
        0,
    );
    assert_eq!(packs_of(&top.path().join("again/manifest.json")), packs_of(&release));
}

#[test]
fn a_tree_is_a_root_for_every_command() {
    let staged = staged();
    let top = moved(&staged);
    let check = without_bundler(top.path(), &["check", "moved/app/_sandbox", "--json"], 0).json();
    let modules = |pack: &Value| pack["modules"].as_array().unwrap().len();
    let packs = check["packs"].as_array().unwrap();
    assert_eq!(packs.iter().map(modules).collect::<Vec<_>>(), [2, 1]);
    write(
        &top.path().join("script.js"),
        "import { area } from '@acme/shapes';\nimport { add } from 'sums';\nreturn [area(1.4, 2), add(1, 2)];",
    );
    let run = without_bundler(top.path(), &["run", "script.js", "--packs", "moved/app/_sandbox"], 0);
    assert_eq!(run.out, "[3,3]\n");
    let plan = ["publish", "moved/app/_sandbox", "--bulk", "plan", "--first", "--json"];
    let planned = without_bundler(top.path(), &plan, 0).json();
    without_bundler(top.path(), &["build", "moved/app/_sandbox", "--out", "release"], 0);
    let release = Release::read(top.path().join("release").as_path().try_into().unwrap()).unwrap();
    assert_eq!(planned["manifest"], release.digest.to_string());
    // What is left of a damaged tree is published only if that is asked for, and nothing never.
    let damaged = top.path().join("damaged/_sandbox");
    copy(&tree(&top), &damaged);
    fs::remove_file(damaged.join(bundle_of(&damaged))).unwrap();
    let plan = ["publish", "damaged/_sandbox", "--bulk", "plan", "--first"];
    let refused = without_bundler(top.path(), &plan, 2);
    assert!(
        refused
            .err
            .contains("withheld from this release: sums (npm-module-damaged)"),
        "{}",
        refused.err
    );
    without_bundler(top.path(), &[&plan[..], &["--allow-withheld"]].concat(), 0);
    fs::remove_dir_all(damaged.join("sums")).unwrap();
    fs::remove_dir_all(damaged.join("@acme")).unwrap();
    let empty = without_bundler(top.path(), &plan, 2);
    assert!(
        empty.err.contains("there is no pack in damaged/_sandbox"),
        "{}",
        empty.err
    );
    // Staged again, from the tree.
    without_bundler(top.path(), &["stage", "moved/app/_sandbox", "--out", "again"], 0);
    let mut again = files_of(&top.path().join("again/_sandbox"));
    let mut files = files_of(&tree(&top));
    for documents in [&mut again, &mut files] {
        documents.remove("manifest.json");
        documents.remove("staging.json");
    }
    assert_eq!(again, files);
}

#[test]
fn an_installed_pack_shadows_a_staged_one_without_a_word() {
    let staged = staged();
    let top = moved(&staged);
    copy(&staged.path().join("node_modules"), &top.path().join("node_modules"));
    let tree = tree(&top);
    replace(&top.path().join("node_modules/sums/package.json"), "0.1.0", "0.2.0");
    // Not even a broken one is looked at.
    replace(&tree.join("@acme/shapes/package.json"), "area.js", "gone.js");
    for roots in [
        ["node_modules", "moved/app/_sandbox"],
        ["moved/app/_sandbox", "node_modules"],
    ] {
        let report = packferry(top.path(), &["check", roots[0], roots[1], "--json"], 0).json();
        let versions: Vec<&Value> = report["packs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pack| &pack["version"])
            .collect();
        assert_eq!(versions, ["1.2.0", "0.2.0"]);
        assert_eq!(codes(&report), ["npm-module-forbidden-global", "skill-missing"].into());
    }
    copy(&tree, &top.path().join("other/_sandbox"));
    let report = packferry(
        top.path(),
        &["check", "moved/app/_sandbox", "other/_sandbox", "--json"],
        1,
    )
    .json();
    assert!(
        codes(&report).contains("duplicate-pack"),
        "two staged copies are equals: {report}"
    );
}

fn pipe(path: &Path) {
    if path.exists() {
        fs::remove_file(path).unwrap();
    }
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn bundle_of(tree: &Path) -> String {
    let list = StagingList::parse(&fs::read(tree.join("staging.json")).unwrap()).unwrap();
    format!(".npm/{}.mjs", list.npm[0].source)
}

/// Puts another bundle into the place of the first, and into the list.
fn rebundle(tree: &Path, source: &str) {
    let old = bundle_of(tree);
    fs::remove_file(tree.join(&old)).unwrap();
    edit_list(tree, |list| {
        list.files.retain(|file| file.path.as_str() != old);
        list.npm[0].source = BlobDigest::of(source.as_bytes());
    });
    let new = bundle_of(tree);
    fs::write(tree.join(&new), source).unwrap();
    relist(tree, &new);
}

#[test]
fn tampering_is_found() {
    let staged = staged();
    for row in table("tampering") {
        let top = moved(&staged);
        change(&top, &tree(&top), &row);
        let codes_expected = texts(&row["codes"]);
        let status = i32::from(!codes_expected.is_empty());
        let report = without_bundler(top.path(), &["verify-bundle", "moved/app", "--json"], status).json();
        assert_eq!(report["sound"], status == 0, "{row}");
        assert_eq!(report["manifest"].is_string(), status == 0, "{row}");
        assert_eq!(codes(&report), codes_expected, "{row}: {report}");
        let shown = without_bundler(top.path(), &["verify-bundle", "moved/app"], status);
        assert!(
            !shown.err.contains('\u{1b}') && !shown.out.contains('\u{1b}'),
            "{row}: {}",
            shown.err
        );
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let staged = staged();
    let top = moved(&staged);
    for (path, bytes) in files_of(&tree(&top)) {
        for at in [0, bytes.len() / 2, bytes.len() - 1] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            fs::write(tree(&top).join(&path), flipped).unwrap();
            let report = without_bundler(top.path(), &["verify-bundle", "moved/app", "--json"], 1).json();
            if path != "staging.json" {
                let rows = report["diagnostics"].as_array().unwrap();
                assert_eq!(codes(&report), ["staged-file-changed"].into(), "{path}");
                assert_eq!((rows.len(), &rows[0]["file"]), (1, &json!(path)));
            }
        }
        fs::write(tree(&top).join(&path), bytes).unwrap();
    }
    without_bundler(top.path(), &["verify-bundle", "moved/app"], 0);
}

#[test]
fn a_tree_is_held_against_what_is_installed() {
    let staged = staged();
    for row in table("against") {
        let top = moved(&staged);
        let root = top.path().join("node_modules");
        copy(&staged.path().join("node_modules"), &root);
        change(&top, &root, &row);
        let expected = texts(&row["codes"]);
        let status = i32::from(!expected.is_empty());
        let arguments = ["verify-bundle", "moved/app", "--against", "node_modules", "--json"];
        let report = packferry(top.path(), &arguments, status).json();
        assert_eq!(codes(&report), expected, "{row}: {report}");
        for word in texts(&row["words"]) {
            assert!(messages(&report).contains(word), "{row}: {report}");
        }
    }
    let top = moved(&staged);
    fs::create_dir(top.path().join("none")).unwrap();
    let run = packferry(top.path(), &["verify-bundle", "moved/app", "--against", "none"], 2);
    assert!(
        run.err
            .starts_with("packferry: none holds no pack that moved/app/_sandbox could be held against"),
        "{}",
        run.err
    );
    let stage = ["stage", "moved/app/_sandbox", "none", "--out", "more"];
    let run = packferry(top.path(), &stage, 2);
    assert!(
        run.err.contains("packferry: none holds no pack, so nothing was staged"),
        "{}",
        run.err
    );
    for path in ["gone", "moved/app/_sandbox/manifest.json"] {
        let run = packferry(top.path(), &["verify-bundle", path], 2);
        assert!(run.err.contains(path) && run.out.is_empty(), "{}", run.err);
    }
}

#[test]
fn a_failed_run_leaves_the_old_tree() {
    let staged = staged();
    for row in table("refusals") {
        let top = installed();
        copy(&staged.path().join("app"), &top.path().join("app"));
        write(&top.path().join("app/main.js"), "mine");
        change(&top, top.path(), &row);
        let before = files_of(&top.path().join("app"));
        let status = i32::try_from(row["status"].as_i64().unwrap()).unwrap();
        let run = packferry(top.path(), &["stage", "node_modules", "--out", "app"], status);
        let said = format!("{}{}", run.err, run.out);
        for word in texts(&row["words"]) {
            assert!(said.contains(word), "{row}: {said}");
        }
        assert_eq!(files_of(&top.path().join("app")), before, "{row}");
    }
}

#[test]
fn staging_touches_nothing_but_its_tree() {
    let top = installed();
    let app = top.path().join("app");
    write(&app.join("main.js"), "mine");
    write(
        &app.join(".packferry-staging/left/behind.js"),
        "by a run that was killed",
    );
    symlink("../node_modules", app.join("link")).unwrap();
    packferry(top.path(), &["stage", "node_modules", "--out", "app"], 0);
    replace(&top.path().join("node_modules/sums/package.json"), "0.1.0", "0.2.0");
    fs::remove_dir_all(top.path().join("node_modules/@acme")).unwrap();
    let report = packferry(top.path(), &["stage", "node_modules", "--out", "app", "--json"], 0).json();
    assert_eq!(
        (&report["staged"]["packs"], &report["staged"]["files"]),
        (&json!(1), &json!(4))
    );
    let names = |folder: &Path| -> BTreeSet<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    assert_eq!(names(&app), ["_sandbox", "link", "main.js"].map(str::to_owned).into());
    assert_eq!(
        names(&app.join("_sandbox")),
        [".npm", "manifest.json", "staging.json", "sums"]
            .map(str::to_owned)
            .into()
    );
    packferry(top.path(), &["verify-bundle", "app", "--against", "node_modules"], 0);
    let lock = File::open(&app).unwrap();
    lock.lock().unwrap();
    for arguments in [
        &["stage", "node_modules", "--out", "app"][..],
        &["verify-bundle", "app"],
    ] {
        packferry(top.path(), arguments, 2);
    }
}

/// Two trees take turns in one place, and whoever reads there always finds one of them.
#[test]
fn a_reader_sees_one_tree_or_the_other() {
    let top = installed();
    packferry(top.path(), &["stage", "node_modules/@acme/shapes", "--out", "app"], 0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !done.load(Ordering::Relaxed) {
                let list = fs::read(top.path().join("app/_sandbox/staging.json")).unwrap();
                seen.insert(StagingList::parse(&list).unwrap().files.len());
            }
            seen
        });
        for round in 0..6 {
            let root = if round % 2 == 0 {
                "node_modules/sums"
            } else {
                "node_modules/@acme/shapes"
            };
            packferry(top.path(), &["stage", root, "--out", "app"], 0);
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(reader.join().unwrap(), [3, 7].into());
    });
}

#[test]
fn a_large_manifest_has_its_shards_beside_it() {
    let top = tempfile::tempdir().unwrap();
    for n in 0..150 {
        let modules = json!([{ "name": ".", "kind": "js", "file": "index.js" }]);
        let package = json!({ "name": format!("pack-{n}"), "nodetool": { "sandboxModules": modules } });
        let folder = top.path().join(format!("packs/pack-{n}"));
        write(&folder.join("package.json"), &package.to_string());
        write(&folder.join("index.js"), &format!("export const n = {n};\n"));
    }
    packferry(top.path(), &["stage", "packs", "--out", "app"], 0);
    let staged = top.path().join("app/_sandbox");
    let root: Value = serde_json::from_slice(&fs::read(staged.join("manifest.json")).unwrap()).unwrap();
    let shards: Vec<&str> = root["shards"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["sha256"].as_str().unwrap())
        .collect();
    assert!(shards.len() > 1, "{root}");
    packferry(top.path(), &["verify-bundle", "app"], 0);
    packferry(top.path(), &["build", "app/_sandbox", "--out", "release"], 0);
    assert_eq!(
        fs::read(top.path().join("release/manifest.json")).unwrap(),
        fs::read(staged.join("manifest.json")).unwrap()
    );
    fs::remove_file(staged.join(shards[0])).unwrap();
    let report = packferry(top.path(), &["verify-bundle", "app", "--json"], 1).json();
    assert_eq!(codes(&report), ["staged-file-missing"].into());
    edit_list(&staged, |list| {
        list.files.retain(|file| file.path.as_str() != shards[0])
    });
    let report = packferry(top.path(), &["verify-bundle", "app", "--json"], 1).json();
    assert_eq!(codes(&report), ["staged-manifest"].into());
}

#[test]
fn host_modules_want_the_same_registry() {
    let top = tempfile::tempdir().unwrap();
    let modules = json!([{ "name": ".", "kind": "host", "host": "csv" }]);
    let package = json!({ "name": "@acme/csv", "nodetool": { "sandboxModules": modules } });
    write(&top.path().join("packs/csv/package.json"), &package.to_string());
    write(
        &top.path().join("packferry.toml"),
        "[[host]]\nid = \"csv\"\nowner = \"@acme/csv\"\nexports = [\"parse\"]\n",
    );
    packferry(
        top.path(),
        &["stage", "packs", "--out", "app", "--config", "packferry.toml"],
        0,
    );
    packferry(top.path(), &["verify-bundle", "app", "--config", "packferry.toml"], 0);
    let report = packferry(top.path(), &["verify-bundle", "app", "--json"], 1).json();
    assert_eq!(codes(&report), ["host-not-registered", "staged-manifest"].into());
    assert!(messages(&report).contains("@acme/csv"), "{report}");
}

/// What a build makes of an npm entry of a staged pack.
#[test]
fn a_bundle_is_taken_only_through_its_row_and_judged_again() {
    let staged = staged();
    for row in table("bundles") {
        let top = moved(&staged);
        change(&top, &tree(&top), &row);
        let status = i32::try_from(row["status"].as_i64().unwrap()).unwrap();
        let arguments = ["build", "moved/app/_sandbox", "--out", "release", "--json"];
        let report = without_bundler(top.path(), &arguments, status).json();
        let about_it = |found: &&Value| {
            found["message"]
                .as_str()
                .unwrap()
                .starts_with("sums: npm module adder:")
        };
        let found = report["diagnostics"].as_array().unwrap().iter().find(about_it);
        assert_eq!(
            found.map_or(&Value::Null, |found| &found["code"]),
            &row["code"],
            "{row}: {report}"
        );
    }
}

/// A list and bundles in a pack's own folder count for nothing, however the pack is named on the command line.
#[test]
fn a_pack_cannot_supply_its_own_bundles() {
    let staged = staged();
    let top = moved(&staged);
    let pack = tree(&top).join("sums");
    fs::copy(tree(&top).join("staging.json"), pack.join("staging.json")).unwrap();
    copy(&tree(&top).join(".npm"), &pack.join(".npm"));
    copy(&pack, &top.path().join("root/sums"));
    for root in ["root", "root/sums"] {
        let report = packferry(top.path(), &["build", root, "--out", "release", "--json"], 0).json();
        assert_eq!(report["modules"], 0, "{root}: {report}");
        assert!(codes(&report).contains("npm-module-unresolved"), "{root}: {report}");
    }
}
