//! A library cannot bring a file from outside its package into a bundle, whichever way it names it.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

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

/// A pack over the libraries `bad`, whose files `make` makes, and `good`: how the two come out.
fn beside(make: impl Fn(&Path)) -> [Option<(&'static str, String)>; 2] {
    let top = tempfile::tempdir().unwrap();
    let pack = top.path().join("pack");
    for library in ["bad", "good"] {
        let folder = pack.join("node_modules").join(library);
        fs::create_dir_all(&folder).unwrap();
        let package = format!("{{\"name\":\"{library}\",\"version\":\"1.0.0\"}}");
        fs::write(folder.join("package.json"), package).unwrap();
        fs::write(folder.join("index.js"), "export * from './file.js';").unwrap();
    }
    fs::write(pack.join("node_modules/good/file.js"), "export const a = 1;").unwrap();
    make(&pack.join("node_modules/bad"));
    let bundler = Bundler::locate(Path::new(env!("CARGO_BIN_EXE_packferry"))).unwrap();
    ["bad", "good"].map(|library| {
        let skip = bundler.bundle(&pack, library).unwrap().err();
        skip.map(|skip| (skip.rule.code, skip.reason))
    })
}

fn pipe(path: &Path) {
    fs::remove_file(path).ok();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// What would keep the bundler waiting, or fill its memory, is never opened, and named. Another library is none the worse for it.
#[cfg(target_os = "linux")]
#[test]
fn what_is_no_regular_file_is_not_opened() {
    type Make = fn(&Path);
    let cases: [(&str, Make, &str); 6] = [
        (
            "a pipe",
            |bad| pipe(&bad.join("file.js")),
            "It imports bad@1.0.0/file.js, which is a named pipe.",
        ),
        (
            "a pipe as package.json",
            |bad| pipe(&bad.join("package.json")),
            "It imports bad/package.json, which is a named pipe.",
        ),
        (
            "a link to a device",
            |bad| symlink("/dev/zero", bad.join("file.js")).unwrap(),
            "The bundler fails: ",
        ),
        (
            "a device by its path",
            |bad| fs::write(bad.join("file.js"), "export * from '/dev/zero';").unwrap(),
            "The bundler fails: ",
        ),
        (
            "a file of a gigabyte, with holes",
            |bad| fs::File::create(bad.join("file.js")).unwrap().set_len(1 << 30).unwrap(),
            "It imports bad@1.0.0/file.js, which is a file of 1073741824 bytes, where 16777216 are read.",
        ),
        (
            "a file that takes a parser more memory than there is",
            |bad| {
                fs::write(
                    bad.join("file.js"),
                    format!("export const a = [{}];", "a,".repeat(8_000_000)),
                )
                .unwrap()
            },
            "The bundler crashed: it may need more memory than it is given.",
        ),
    ];
    for (what, make, says) in cases {
        let [bad, good] = beside(make);
        let (code, reason) = bad.unwrap_or_default();
        let expected = if what.contains("gigabyte") {
            "npm-module-too-large"
        } else {
            "npm-module-bundle-failed"
        };
        assert_eq!(code, expected, "{what}");
        assert!(reason.starts_with(says), "{what}: {reason}");
        assert!(!reason.contains("/dev/") || what.contains("device"), "{what}: {reason}");
        assert_eq!(good, None, "{what}");
    }
}
