//! A library cannot bring a file from outside its package into a bundle, whichever way it names it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use packferry::bundle::Bundler;

/// Bundles the library `lib` of a pack; the code of the skip, if it is one.
fn check(what: &str, package_json: &str, index: &str, skipped: Option<&str>) {
    let top = tempfile::tempdir().unwrap();
    let secret = top.path().join("secret.json");
    fs::write(&secret, "{\"token\":\"secret\"}").unwrap();
    let pack = top.path().join("pack");
    let library = pack.join("node_modules/lib");
    fs::create_dir_all(&library).unwrap();
    fs::create_dir_all(pack.join("node_modules/other")).unwrap();
    fs::write(
        pack.join("node_modules/other/package.json"),
        "{\"name\":\"other\",\"version\":\"1.0.0\"}",
    )
    .unwrap();
    fs::write(pack.join("node_modules/other/index.js"), "export const other = 1;").unwrap();
    fs::write(library.join("package.json"), package_json).unwrap();
    fs::write(library.join("inside.js"), "export const inside = 1;").unwrap();
    symlink(&secret, library.join("link.json")).unwrap();
    fs::write(
        library.join("index.js"),
        index.replace("SECRET", secret.to_str().unwrap()),
    )
    .unwrap();
    let bundler = Bundler::locate(Path::new(env!("CARGO_BIN_EXE_packferry"))).unwrap();
    let found = bundler.bundle(&pack, "lib").unwrap();
    assert_eq!(found.err().map(|skip| skip.rule.code), skipped, "{what}");
}

#[test]
fn bundles_hold_files_of_packages_only() {
    let plain = "{\"name\":\"lib\",\"version\":\"1.0.0\"}";
    let failed = Some("npm-module-bundle-failed");
    let cases = [
        ("its own file", plain, "export * from './inside.js';", None),
        ("another package", plain, "export * from 'other';", None),
        (
            "itself by name",
            "{\"name\":\"lib\",\"exports\":{\".\":\"./index.js\",\"./i\":\"./inside.js\"}}",
            "export * from 'lib/i';",
            None,
        ),
        (
            "an absolute path",
            plain,
            "import s from 'SECRET'; export const t = s;",
            failed,
        ),
        (
            "a path upwards",
            plain,
            "import s from '../../../secret.json'; export const t = s;",
            failed,
        ),
        (
            "a path into another package",
            plain,
            "export * from '../other/index.js';",
            failed,
        ),
        (
            "a link",
            plain,
            "import s from './link.json'; export const t = s;",
            failed,
        ),
        (
            "an entry outside",
            "{\"name\":\"lib\",\"main\":\"../../../secret.json\"}",
            "",
            failed,
        ),
    ];
    for (what, package_json, index, skipped) in cases {
        check(what, package_json, index, skipped);
    }
}
