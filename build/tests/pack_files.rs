//! Files of packs on a real file system: what is opened, what is not, and what stays out of reach while links are swapped.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use packferry::pack_files::{Opened, PackRoot, Unread, read_document};
use packferry_core::id::FileId;
use tempfile::TempDir;

const LIMIT: u64 = 10;

fn read(root: &PackRoot<'_>, id: &str) -> Result<Vec<u8>, Unread> {
    root.open_file(&FileId::parse(id).unwrap(), LIMIT)
        .and_then(Opened::read)
}

/// A pack with a file of each kind, beside a file that is none of its business.
fn pack() -> (TempDir, std::path::PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let pack = top.path().canonicalize().unwrap().join("pack");
    fs::create_dir_all(pack.join("s/t")).unwrap();
    fs::create_dir_all(top.path().join("pack-too")).unwrap();
    for (path, text) in [
        ("pack/a.js", "a"),
        ("pack/s/t/b.js", "b"),
        ("pack/ten.js", "0123456789"),
        ("pack/eleven.js", "0123456789x"),
        ("pack/empty.js", ""),
        ("outside.js", "secret"),
        ("pack-too/c.js", "secret"),
    ] {
        fs::write(top.path().join(path), text).unwrap();
    }
    for (link, target) in [
        ("in.js", "a.js"),
        ("out.js", "../outside.js"),
        ("dangling.js", "gone.js"),
        ("loop.js", "loop.js"),
        ("dir", "s"),
        ("up", ".."),
        ("neighbour", "../pack-too"),
        ("s/back.js", "../a.js"),
    ] {
        symlink(target, pack.join(link)).unwrap();
    }
    (top, pack)
}

#[test]
fn files_and_what_is_none() {
    let (_top, pack) = pack();
    let _socket = UnixListener::bind(pack.join("socket")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(pack.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let root = PackRoot::open(&pack).unwrap();
    let cases: &[(&str, Result<&str, Unread>)] = &[
        ("a.js", Ok("a")),
        ("s/t/b.js", Ok("b")),
        ("ten.js", Ok("0123456789")),
        ("empty.js", Ok("")),
        ("eleven.js", Err(Unread::TooLarge { bytes: 11 })),
        ("gone.js", Err(Unread::Missing)),
        ("gone/a.js", Err(Unread::Missing)),
        ("a.js/b.js", Err(Unread::Missing)),
        ("s", Err(Unread::NotRegular)),
        ("s/t", Err(Unread::NotRegular)),
        ("socket", Err(Unread::NotRegular)),
        ("pipe", Err(Unread::NotRegular)),
        ("in.js", Err(Unread::Symlink)),
        ("s/back.js", Err(Unread::Symlink)),
        ("dir", Err(Unread::Symlink)),
        ("dir/t/b.js", Err(Unread::Symlink)),
        ("up/pack/a.js", Err(Unread::Symlink)),
        ("loop.js", Err(Unread::Missing)),
        ("dangling.js", Err(Unread::Missing)),
        ("dir/gone.js", Err(Unread::Missing)),
        ("out.js", Err(Unread::Escapes)),
        ("up/outside.js", Err(Unread::Escapes)),
        ("neighbour/c.js", Err(Unread::Escapes)),
    ];
    for (id, expected) in cases {
        let expected = expected.clone().map(|text| text.as_bytes().to_owned());
        assert_eq!(read(&root, id), expected, "{id}");
    }
    let long = "x".repeat(300);
    assert_eq!(read(&root, &long), Err(Unread::Missing));
}

#[test]
fn documents_may_be_links_but_not_pipes() {
    let (_top, pack) = pack();
    assert!(
        Command::new("mkfifo")
            .arg(pack.join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let cases = [
        ("a.js", Ok(b"a".to_vec())),
        ("in.js", Ok(b"a".to_vec())),
        ("eleven.js", Err(Unread::TooLarge { bytes: 11 })),
        ("pipe", Err(Unread::NotRegular)),
        ("s", Err(Unread::NotRegular)),
        ("gone", Err(Unread::Missing)),
    ];
    for (name, expected) in cases {
        assert_eq!(read_document(&pack.join(name), LIMIT), expected, "{name}");
    }
}

#[test]
fn a_directory_that_is_replaced_is_still_the_one_that_was_opened() {
    let (top, pack) = pack();
    let root = PackRoot::open(&pack).unwrap();
    fs::rename(&pack, top.path().join("moved")).unwrap();
    symlink("pack-too", &pack).unwrap();
    assert_eq!(read(&root, "a.js"), Ok(b"a".to_vec()));
    assert_eq!(read(&root, "c.js"), Err(Unread::Missing));
}

/// Swaps a file, and a directory on the way to one, for links out of the pack while they are read.
#[test]
fn links_that_are_swapped_in_are_never_followed() {
    let (_top, pack) = pack();
    let root = PackRoot::open(&pack).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                replace(&pack, "a.js", "../outside.js", |path| fs::write(path, "a").unwrap());
                replace(&pack, "s", "../pack-too", |path| {
                    fs::create_dir(path).unwrap();
                    fs::write(path.join("c.js"), "a").unwrap();
                });
            }
        });
        let mut leaked = Vec::new();
        for _ in 0..3_000 {
            let read = ["a.js", "s/c.js"].map(|id| read(&root, id));
            leaked.extend(read.into_iter().flatten().filter(|bytes| bytes == b"secret"));
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(leaked.len(), 0, "reads of what lies outside");
    });
}

/// Puts a link to `target` in the place of `name`, then what `make` makes.
fn replace(pack: &Path, name: &str, target: &str, make: impl Fn(&Path)) {
    let (place, next, old) = (pack.join(name), pack.join(".next"), pack.join(".old"));
    let swap = || {
        fs::rename(&place, &old).unwrap();
        fs::rename(&next, &place).unwrap();
        if old.is_dir() && !old.is_symlink() {
            fs::remove_dir_all(&old).unwrap()
        } else {
            fs::remove_file(&old).unwrap()
        }
    };
    symlink(target, &next).unwrap();
    swap();
    make(&next);
    swap();
}
