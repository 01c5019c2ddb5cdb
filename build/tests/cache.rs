//! What a build keeps for the next one: nothing is done twice, nothing old is used, and nothing goes wrong with it.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use packferry_core::digest::BlobDigest;
use proptest::prelude::*;
use serde_json::{Value, json};

const PACKFERRY: &str = env!("CARGO_BIN_EXE_packferry");

/// Folders of a test: packs with their libraries, a cache, a bundler that counts its runs, and the releases.
struct Tree(tempfile::TempDir);

/// What a command gave, without the count of objects that lay there already.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: Option<i32>,
    report: Value,
    /// The files of the release, with their digests.
    release: BTreeMap<PathBuf, BlobDigest>,
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Every file below `folder` with its digest.
fn digests(folder: &Path) -> BTreeMap<PathBuf, BlobDigest> {
    let digest = |(path, bytes): (PathBuf, Vec<u8>)| (path, BlobDigest::of(&bytes));
    files(folder).into_iter().map(digest).collect()
}

/// Every file below `folder` with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// The pinned esbuild of the repository.
fn esbuild() -> PathBuf {
    let platforms = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node_modules/@esbuild");
    let mut binaries = fs::read_dir(platforms)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("bin/esbuild"));
    binaries.find(|path| path.is_file()).unwrap().canonicalize().unwrap()
}

impl Tree {
    /// Packs of every kind: JavaScript, one at fault, WASM, an npm library with a dependency, and libraries that are skipped.
    fn new() -> Self {
        // On the file system of the executable, so that a second name can be given to it.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let tree = Self(folder);
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || echo run >>'{}'\nexec '{}' \"$@\"\n",
            tree.path("runs").display(),
            esbuild().display()
        );
        write(&tree.path("esbuild"), script);
        fs::set_permissions(tree.path("esbuild"), fs::Permissions::from_mode(0o755)).unwrap();
        let pack = |name: &str, internal: &[&str], modules: Value| {
            let manifest = json!({ "name": name, "version": "1.0.0", "nodetool": { "internal": internal, "sandboxModules": modules } });
            write(&tree.pack(name).join("package.json"), manifest.to_string());
        };
        pack(
            "@t/js",
            &["lib/a.js"],
            json!([{ "name": ".", "kind": "js", "file": "index.js" }]),
        );
        write(&tree.pack("@t/js").join("index.js"), "export * from './lib/a.js';\n");
        write(&tree.pack("@t/js").join("lib/a.js"), "export const a = setTimeout;\n");
        write(
            &tree.pack("@t/js").join("SKILL.md"),
            "---\nname: js\ndescription: One\n---\nText.\n",
        );
        pack(
            "@t/bad",
            &["b.js"],
            json!([{ "name": ".", "kind": "js", "file": "index.js" }]),
        );
        write(
            &tree.pack("@t/bad").join("index.js"),
            "import './gone.js';\nexport const é = require('x');\n",
        );
        write(&tree.pack("@t/bad").join("b.js"), "let = ;\n");
        let wasm = json!([{ "name": "w", "kind": "wasm", "file": "w.wasm", "memoryPagesMax": 1, "exports": ["f"] }]);
        pack("@t/wasm", &[], wasm);
        write(
            &tree.pack("@t/wasm").join("w.wasm"),
            wat::parse_str("(module (func (export \"f\")))").unwrap(),
        );
        pack("@t/npm", &[], json!([{ "name": ".", "kind": "js", "npm": "lib" }]));
        let skipped = json!([
            { "name": "fs", "kind": "js", "npm": "uses-fs" },
            { "name": "gone", "kind": "js", "npm": "not-installed" },
            { "name": "half", "kind": "js", "npm": "half" },
            { "name": "throws", "kind": "js", "npm": "throws" },
        ]);
        pack("@t/skips", &[], skipped);
        tree.library("lib", "export { part } from './part';\nexport { dep } from 'dep';\n");
        write(&tree.modules().join("lib/part.js"), "export const part = 1;\n");
        tree.library("dep", "export const dep = 1;\n");
        tree.library("uses-fs", "import 'fs';\nexport {};\n");
        tree.library("half", "import './missing';\nexport {};\n");
        tree.library("throws", "throw new Error('no');\nexport {};\n");
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn modules(&self) -> PathBuf {
        self.path("project/node_modules")
    }

    fn pack(&self, name: &str) -> PathBuf {
        self.modules().join(name)
    }

    fn library(&self, name: &str, index: &str) {
        let folder = self.modules().join(name);
        write(
            &folder.join("package.json"),
            json!({ "name": name, "version": "1.0.0" }).to_string(),
        );
        write(&folder.join("index.js"), index);
    }

    /// How often the bundler ran.
    fn runs(&self) -> usize {
        fs::read_to_string(self.path("runs"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PACKFERRY);
        command
            .args(arguments)
            .current_dir(self.path("project"))
            .env("PACKFERRY_CACHE", self.path("cache"))
            .env("PACKFERRY_ESBUILD", self.path("esbuild"));
        command
    }

    fn build(&self, out: &str, options: &[&str]) -> Outcome {
        let arguments = [&["build", "node_modules", "--json", "--out", out], options].concat();
        self.finish(self.command(&arguments), out)
    }

    fn finish(&self, mut command: Command, out: &str) -> Outcome {
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(err, "");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["objects"] = Value::Null;
        Outcome {
            status: output.status.code(),
            report,
            release: digests(&self.path("project").join(out)),
        }
    }

    /// Builds with what is kept and without, and compares.
    fn check_against_clean(&self, what: &str) {
        let incremental = self.build("incremental", &[]);
        fs::remove_dir_all(self.path("project/clean")).ok();
        let clean = self.build("clean", &["--no-cache"]);
        assert_eq!(incremental, clean, "{what}");
        // Excerpts are made for people only.
        let for_people = |options: &[&str]| {
            let arguments = [&["check", "node_modules"], options].concat();
            self.command(&arguments).output().unwrap()
        };
        assert_eq!(for_people(&[]), for_people(&["--no-cache"]), "{what}");
    }

    /// `command`, by an executable that is gone once it runs: it cannot start itself again.
    fn without_children(&self, arguments: &[&str]) -> Command {
        fs::hard_link(PACKFERRY, self.path("packferry")).unwrap();
        let mut command = self.command(&[]);
        let rest = "exec 3<\"$0\"; rm \"$0\"; exec /proc/self/fd/3 \"$@\"";
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", rest]).arg(self.path("packferry")).args(arguments);
        shell.current_dir(self.path("project"));
        for (name, value) in command.get_envs() {
            shell.env(name, value.unwrap());
        }
        command = shell;
        command
    }
}

#[test]
fn nothing_is_done_twice() {
    let tree = Tree::new();
    let first = tree.build("out", &[]);
    let skipped = first.report["unavailable"].as_array().unwrap();
    let codes: Vec<_> = skipped.iter().map(|row| row["code"].as_str().unwrap()).collect();
    assert_eq!(
        codes,
        [
            "npm-module-builtin-import",
            "npm-module-unresolved",
            "npm-module-unresolved",
            "npm-module-probe-failed"
        ]
    );
    let runs = tree.runs();
    assert!(runs > 0);
    let build = ["build", "node_modules", "--json", "--out", "out"];
    let again = tree.finish(tree.without_children(&build), "out");
    assert_eq!(again, first);
    assert_eq!(tree.runs(), runs);

    // A command that only reads uses what is kept, too, and leaves it alone.
    let before = files(&tree.path("cache"));
    let checked = tree
        .without_children(&["check", "node_modules", "--json"])
        .output()
        .unwrap();
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert_eq!((files(&tree.path("cache")) == before, tree.runs()), (true, runs));
    write(
        &tree.path("project/script.js"),
        "import { part } from '@t/npm';\nreturn part;\n",
    );
    let ran = tree
        .command(&["run", "script.js", "--packs", "node_modules"])
        .output()
        .unwrap();
    assert_eq!((ran.stdout.as_slice(), tree.runs()), (&b"1\n"[..], runs));

    // Without what is kept, an executable that is gone cannot build: the test can fail.
    let cold = [&build[..], &["--no-cache"]].concat();
    assert_eq!(tree.without_children(&cold).status().unwrap().code(), Some(2));
}

/// What is done to a tree.
type Edit = (&'static str, fn(&Tree));

/// Changes that move what an import means or what it leads to, each in a file that no bundle has had in it but the first ones.
const EDITS: &[Edit] = &[
    ("a module of the library changes, its length and time do not", |tree| {
        let path = tree.modules().join("lib/part.js");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        write(&path, "export const part = 2;\n");
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }),
    ("a file comes that wins over the one imported", |tree| {
        write(&tree.modules().join("lib/part.jsx"), "export const part = 3;\n");
    }),
    ("package.json names another entry", |tree| {
        write(&tree.modules().join("dep/other.js"), "export const dep = 4;\n");
        write(
            &tree.modules().join("dep/package.json"),
            r#"{"name":"dep","version":"2.0.0","main":"other.js"}"#,
        );
    }),
    ("a nearer copy of the dependency is installed", |tree| {
        write(
            &tree.modules().join("lib/node_modules/dep/index.js"),
            "export const dep = 5;\n",
        );
    }),
    ("a copy of the library is installed in the pack", |tree| {
        write(
            &tree.pack("@t/npm").join("node_modules/lib/index.js"),
            "export const mine = 6;\n",
        );
    }),
    ("and gone again", |tree| {
        fs::remove_dir_all(tree.pack("@t/npm").join("node_modules")).unwrap()
    }),
    ("a file in node_modules is called like the dependency", |tree| {
        fs::remove_dir_all(tree.modules().join("lib/node_modules/dep")).unwrap();
        write(
            &tree.modules().join("lib/node_modules/dep.js"),
            "export const dep = 7;\n",
        );
    }),
    ("a link in its place leads to another version", |tree| {
        fs::remove_dir_all(tree.modules().join("lib/node_modules")).unwrap();
        fs::rename(tree.modules().join("dep"), tree.path("dep-2")).unwrap();
        write(&tree.path("dep-3/package.json"), r#"{"name":"dep","version":"3.0.0"}"#);
        write(&tree.path("dep-3/index.js"), "export const dep = 8;\n");
        symlink(tree.path("dep-2"), tree.modules().join("dep")).unwrap();
    }),
    ("the link is turned", |tree| {
        fs::remove_file(tree.modules().join("dep")).unwrap();
        symlink(tree.path("dep-3"), tree.modules().join("dep")).unwrap();
    }),
    ("a package in a folder above comes to be used", |tree| {
        fs::remove_file(tree.modules().join("dep")).unwrap();
        write(&tree.path("node_modules/dep/index.js"), "export const dep = 9;\n");
    }),
    ("the dependency is gone", |tree| {
        fs::remove_dir_all(tree.path("node_modules/dep")).unwrap()
    }),
    ("it is there again, with a default export", |tree| {
        tree.library("dep", "export const dep = 10;\nexport default 10;\n");
    }),
    ("what was missing is there", |tree| {
        write(&tree.modules().join("half/missing/index.js"), "export {};\n");
        tree.library("not-installed", "export const now = 1;\n");
    }),
    ("a library imports a builtin no more", |tree| {
        tree.library("uses-fs", "export const fs = 1;\n")
    }),
    ("a library throws no more", |tree| {
        tree.library("throws", "export const ok = 1;\n")
    }),
    ("a library comes to throw something else", |tree| {
        tree.library("throws", "throw new Error('never');\n")
    }),
    ("the source map of a library moves a line", |tree| {
        tree.library(
            "half",
            "export const x = 1;\nexport const y = setTimeout;\n//# sourceMappingURL=half.map\n",
        );
        let map = r#"{"version":3,"sources":["half.ts"],"names":[],"mappings":"AAAA;AACA"}"#;
        write(&tree.modules().join("half/half.map"), map);
    }),
    ("and another one", |tree| {
        let map = r#"{"version":3,"sources":["half.ts"],"names":[],"mappings":"AAAA;AAUA"}"#;
        write(&tree.modules().join("half/half.map"), map);
    }),
];

#[test]
fn nothing_old_is_used() {
    let tree = Tree::new();
    tree.check_against_clean("a new tree");
    for (what, edit) in EDITS {
        let before = tree.build("incremental", &[]);
        edit(&tree);
        tree.check_against_clean(what);
        assert_ne!(tree.build("incremental", &[]), before, "{what}: an edit that shows");
    }
}

#[test]
fn damaged_entries_are_made_again() {
    let tree = Tree::new();
    let first = tree.build("out", &[]);
    let whole = files(&tree.path("cache"));
    assert!(whole.len() > 8, "{}", whole.len());
    type Damage = fn(&mut Vec<u8>);
    let damages: [Damage; 4] = [
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| *bytes.last_mut().unwrap() ^= 1,
        |bytes| bytes.rotate_left(1),
    ];
    for damage in damages {
        for (name, bytes) in &whole {
            let mut bytes = bytes.clone();
            damage(&mut bytes);
            write(&tree.path("cache").join(name), bytes);
        }
        let runs = tree.runs();
        assert_eq!(tree.build("out", &[]), first);
        assert!(tree.runs() > runs);
        assert_eq!(files(&tree.path("cache")), whole);
    }
}

#[test]
fn a_cache_that_cannot_be_had_is_told_once_and_fails_nothing() {
    let tree = Tree::new();
    let expected = tree.build("out", &["--no-cache"]);
    assert!(!tree.path("cache").exists());
    write(&tree.path("file"), "");
    let arguments = ["build", "node_modules", "--json", "--out", "out"];
    let mut command = tree.command(&arguments);
    let output = command
        .env("PACKFERRY_CACHE", tree.path("file/cache"))
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.starts_with("Nothing is kept for the next build: ") && told.lines().count() == 1,
        "{told}"
    );
    assert_eq!(
        (output.status.code(), digests(&tree.path("project/out"))),
        (expected.status, expected.release)
    );
}

#[test]
fn two_builds_at_once_do_not_disturb_each_other() {
    let tree = Tree::new();
    let (first, second) = std::thread::scope(|scope| {
        let first = scope.spawn(|| tree.build("first", &[]));
        let second = tree.build("second", &[]);
        (first.join().unwrap(), second)
    });
    assert_eq!(first, second);
    assert_eq!(tree.build("first", &[]), second);
}

/// Contents for the files that are changed at random.
const TEXTS: [&str; 6] = [
    "export const a = 1;\n",
    "export const a = 2, part = 2, dep = 2;\nexport default a;\n",
    "import './lib/a.js';\nexport const a = document.title;\n",
    "export * from './gone.js';\n",
    "let = ;\n",
    "\0",
];

/// The files that are changed at random, in the packs' root.
const FILES: [&str; 12] = [
    "@t/js/index.js",
    "@t/js/lib/a.js",
    "@t/js/SKILL.md",
    "@t/bad/index.js",
    "@t/bad/b.js",
    "@t/wasm/w.wasm",
    "lib/index.js",
    "lib/part.js",
    "lib/part/index.js",
    "lib/node_modules/dep/index.js",
    "dep/index.js",
    "dep/package.json",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_incremental_build_is_a_clean_build(
        edits in prop::collection::vec((prop::sample::select(&FILES[..]), prop::option::weighted(0.8, 0..TEXTS.len())), 8)
    ) {
        let tree = Tree::new();
        tree.build("incremental", &[]);
        for (at, (file, text)) in edits.iter().enumerate() {
            let path = tree.modules().join(file);
            match text {
                Some(text) => write(&path, TEXTS[*text]),
                None => { fs::remove_file(&path).ok(); }
            }
            tree.check_against_clean(&format!("edit {at} of {edits:?}"));
        }
    }
}
