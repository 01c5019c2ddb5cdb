//! Search roots on a real file system: which directories are found, in which order, under which names.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use packferry::discover::{Discovered, PackDir, Roots, Standing, discover};
use packferry::package_json::{Outcome, read};
use rayon::prelude::*;
use tempfile::TempDir;

const PACK: &str = r#"{"name": "p", "nodetool": {"sandboxModules": [{"name": ".", "kind": "js", "file": "a.js"}]}}"#;
const NO_PACK: &str = r#"{"name": "p"}"#;

/// A tree: `path` makes a directory with a pack's package.json, `path=` one without a pack's, `path/` one without any,
/// `path->target` a link.
fn tree(entries: &[&str]) -> TempDir {
    let top = tempfile::tempdir().unwrap();
    for entry in entries {
        if let Some((link, target)) = entry.split_once("->") {
            let link = top.path().join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(target, link).unwrap();
            continue;
        }
        let (path, text) = match (entry.strip_suffix('='), entry.strip_suffix('/')) {
            (Some(path), _) => (path, Some(NO_PACK)),
            (_, Some(path)) => (path, None),
            _ => (*entry, Some(PACK)),
        };
        let path = top.path().join(path);
        fs::create_dir_all(&path).unwrap();
        if let Some(text) = text {
            fs::write(path.join("package.json"), text).unwrap();
        }
    }
    top
}

fn search(top: &Path, arguments: &[&str], environment: Option<&str>, working_directory: &str) -> Discovered {
    let arguments: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
    let roots = Roots::resolve(&arguments, environment.map(OsStr::new), &top.join(working_directory)).unwrap();
    discover(&roots)
}

fn shown(found: &Discovered) -> Vec<&str> {
    found.dirs.iter().map(|dir| dir.shown.as_str()).collect()
}

fn check(what: &str, entries: &[&str], arguments: &[&str], expected: &[&str]) {
    let top = tree(entries);
    let found = search(top.path(), arguments, None, "");
    assert_eq!(shown(&found), expected, "{what}");
    assert_eq!(found.encounters, [], "{what}");
}

#[test]
fn roots_of_the_command_line() {
    check(
        "children, by name",
        &["r/b", "r/a", "r/C="],
        &["r"],
        &["r/C", "r/a", "r/b"],
    );
    check(
        "scopes are opened one level deeper",
        &["r/@s/a", "r/@s", "r/@s/x/y"],
        &["r"],
        &["r/@s/a"],
    );
    check(
        "a scope by itself",
        &["r/@s/a", "r/@s/b"],
        &["r/@s"],
        &["r/@s/a", "r/@s/b"],
    );
    check("no deeper", &["r/x/y", "r/x/node_modules/z"], &["r"], &[]);
    check(
        "what package managers keep",
        &["r/.bin", "r/.cache", "r/@s/.bin", "r/.pnpm/", "r/.x"],
        &["r"],
        &["r/.x"],
    );
    check("roots in order", &["b/x", "a/x"], &["b", "a"], &["b/x", "a/x"]);
    check("a pack is itself and nothing else", &["r", "r/a"], &["r"], &["r"]);
    check(
        "a workspace's root is a root",
        &["r=", "r/a", "r/node_modules/p->../a"],
        &["r"],
        &["r/a"],
    );
    check("a root given twice", &["r/a"], &["r", "./r", "r/a"], &["r/a"]);
    check(
        "links to packs",
        &["store/x", "r/a->../store/x", "r/@s/b->../../store/x", "r/z->../gone"],
        &["r"],
        &["r/@s/b"],
    );
    check(
        "a link to a scope",
        &["store/@s/a", "r/@t->../store/@s"],
        &["r"],
        &["r/@t/a"],
    );
    check(
        "pnpm's layout",
        &[
            "r/.pnpm/a@1/node_modules/a",
            "r/.pnpm/a@1/node_modules/dep",
            "r/a->.pnpm/a@1/node_modules/a",
            "r/.pnpm/node_modules/dep->../a@1/node_modules/dep",
        ],
        &["r"],
        &["r/a"],
    );
    check(
        "workspaces, linked",
        &[
            "packages/a",
            "packages/b",
            "node_modules/a->../packages/a",
            "node_modules/@s/b->../../packages/b",
        ],
        &["node_modules"],
        &["node_modules/@s/b", "node_modules/a"],
    );
    check("a link to itself", &["r/a->a", "r/b"], &["r"], &["r/b"]);
    check("a scope that went away", &["r/@s->gone", "r/b"], &["r"], &["r/b"]);
    check(
        "the staged tree comes last",
        &["_sandbox/a", "r/b"],
        &["_sandbox", "r"],
        &["r/b", "_sandbox/a"],
    );
}

#[test]
fn a_named_pack_is_known_to_be_named() {
    let top = tree(&["r/a", "r/b"]);
    let found = search(top.path(), &["r", "r/b"], None, "");
    let named: Vec<bool> = found.dirs.iter().map(|dir| dir.named).collect();
    assert_eq!(named, [false, true]);
}

#[test]
fn a_staged_tree_is_told_by_name_or_list() {
    let top = tree(&["_sandbox/a", "r/b", "list/c"]);
    fs::write(top.path().join("list/staging.json"), "{}").unwrap();
    let found = search(top.path(), &["_sandbox", "list", "r"], None, "");
    let standing: Vec<(&str, Standing)> = found
        .dirs
        .iter()
        .map(|dir| (dir.shown.as_str(), dir.standing))
        .collect();
    assert_eq!(
        standing,
        [
            ("r/b", Standing::Installed),
            ("_sandbox/a", Standing::Staged),
            ("list/c", Standing::Staged)
        ]
    );
}

#[test]
fn a_package_json_is_a_file_or_a_link_to_one() {
    let top = tree(&["r/a/", "r/b/", "r/c/", "r/d/"]);
    fs::create_dir(top.path().join("r/a/package.json")).unwrap();
    fs::write(top.path().join("shared.json"), PACK).unwrap();
    symlink("../../shared.json", top.path().join("r/b/package.json")).unwrap();
    symlink("gone.json", top.path().join("r/c/package.json")).unwrap();
    fs::write(top.path().join("r/@file"), "").unwrap();
    fs::write(top.path().join("r/file"), "").unwrap();
    assert_eq!(shown(&search(top.path(), &["r"], None, "")), ["r/b"]);
}

#[test]
fn without_arguments() {
    let top = tree(&["node_modules/a", "x/node_modules/@s/b", "x/y/", "e1/c", "e2/d", "e3/e"]);
    assert_eq!(
        shown(&search(top.path(), &[], None, "x/y"))[..2],
        ["../node_modules/@s/b", "../../node_modules/a"],
        "node_modules upwards"
    );
    let listed = search(top.path(), &[], Some(",e1;e2:gone,,e3;"), "");
    assert_eq!(shown(&listed), ["e1/c", "e2/d", "e3/e"], "PACKFERRY_PACK_PATHS");
    let missing: Vec<&str> = listed.encounters.iter().map(|(dir, _)| dir.as_str()).collect();
    assert_eq!(missing, ["gone"]);
    let absolute = top.path().join("e2");
    let found = search(&top.path().join("e1"), &[], absolute.to_str(), "");
    let expected = absolute.join("d");
    assert_eq!(
        shown(&found),
        [expected.to_str().unwrap()],
        "an absolute path is shown as it was given"
    );
    assert_eq!(
        shown(&search(top.path(), &["e3"], Some("e1"), "")),
        ["e3/e"],
        "arguments come before the environment"
    );
}

#[test]
fn what_cannot_be_searched() {
    let top = tree(&["r/a"]);
    let resolve =
        |path: &str| Roots::resolve(&[PathBuf::from(path)], None, top.path()).map_err(|fault| fault.to_string());
    assert_eq!(resolve("gone").unwrap_err(), "cannot read gone: it does not exist");
    assert_eq!(
        resolve("r/a/package.json").unwrap_err(),
        "r/a/package.json is no directory"
    );
    let alone = Roots::resolve(&[], None, Path::new("/")).map_err(|fault| fault.help().map(str::to_owned));
    assert!(alone.unwrap_err().unwrap().contains("PACKFERRY_PACK_PATHS"));
}

#[test]
fn fifty_thousand_packages_that_are_no_packs() {
    // In memory where there is such a place: a disk takes a minute to make and remove them.
    let memory = Path::new("/dev/shm");
    let top = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }
    .unwrap();
    for n in 0..50_000 {
        let dir = top.path().join(format!("p{n}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("package.json"), NO_PACK).unwrap();
    }
    let found = search(top.path(), &["."], None, "");
    let packs = found
        .dirs
        .par_iter()
        .filter(|dir| read(dir) != Outcome::NotAPack)
        .count();
    assert_eq!((found.dirs.len(), packs), (50_000, 0));
}

/// Two directories of one pack are two directories: which of them counts is judged later.
#[test]
fn two_directories_with_one_name_are_both_found() {
    let found: Vec<PackDir> = search(tree(&["r/a", "r/b"]).path(), &["r"], None, "").dirs;
    assert_eq!(found.len(), 2);
}
