//! npm entries through the pinned esbuild: what is admitted and what is skipped, why, and that no layout on disk shows in a bundle.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use packferry::bundle::{Bundled, Bundler, Skip};
use packferry::probe::Probe;
use serde_json::{Value, json};

static BUNDLER: LazyLock<Bundler> =
    LazyLock::new(|| Bundler::locate(Path::new(env!("CARGO_BIN_EXE_packferry"))).unwrap());

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/npm")
}

fn bundle(pack_dir: &Path, npm: &str) -> Result<Bundled, Skip> {
    BUNDLER.bundle(pack_dir, npm).unwrap()
}

/// Runs one row of `cases.json`.
fn check(row: &Value) {
    let case = row["case"].as_str().unwrap();
    let outcome = bundle(&fixtures().join("cases").join(case), row["npm"].as_str().unwrap());
    let mut found = json!({ "case": case, "npm": row["npm"] });
    match &outcome {
        Ok(bundled) => {
            let mut admitted = json!({ "exports": bundled.exports });
            if let Some(version) = &bundled.npm_version {
                admitted["version"] = json!(version);
            }
            if !bundled.warnings.is_empty() {
                admitted["warnings"] = json!(bundled.warnings);
            }
            if let Some(contains) = row["admitted"]["contains"].as_array() {
                let stands = |text: &&Value| bundled.source.contains(text.as_str().unwrap());
                admitted["contains"] = contains.iter().filter(stands).cloned().collect();
            }
            found["admitted"] = admitted;
        }
        Err(skip) => found["skipped"] = json!({ "code": skip.rule.code, "reason": skip.reason }),
    }
    let bundled = outcome.map(|bundled| bundled.source).unwrap_or_default();
    assert_eq!(&found, row, "{bundled}");
}

#[test]
fn packages_are_admitted_or_skipped_with_their_reason() {
    let text = std::fs::read_to_string(fixtures().join("cases.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    let folders = std::fs::read_dir(fixtures().join("cases")).unwrap().count();
    assert_eq!(rows.len(), folders, "every folder has its row");
    rows.iter().for_each(check);
}

/// A pack in a fresh folder over one library of one module.
fn pack_over(module: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("node_modules/lib");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("package.json"), r#"{"name":"lib","version":"1.0.0"}"#).unwrap();
    std::fs::write(library.join("index.js"), module).unwrap();
    folder
}

#[test]
fn a_bundle_of_the_limit_is_admitted_and_one_byte_more_is_not() {
    let module = |length: usize| format!("export const a = \"{}\";\n", "x".repeat(length));
    let overhead = bundle(pack_over(&module(0)).path(), "lib").unwrap().source.len();
    let limit = 1_048_576;
    let admitted = bundle(pack_over(&module(limit - overhead)).path(), "lib").unwrap();
    assert_eq!(admitted.source.len(), limit);
    for length in [limit - overhead + 1, 32 << 20] {
        let skip = bundle(pack_over(&module(length)).path(), "lib").unwrap_err();
        assert_eq!(skip.rule.code, "npm-module-too-large", "{length}");
    }
}

#[test]
fn a_file_longer_than_a_bundle_is_not_read_for_a_line() {
    let module = |length: usize| format!("/*{}*/ export {{ default }} from \"events\";\n", "x".repeat(length));
    let overhead = module(0).len();
    for (length, place) in [(1_048_576, "index.js:1)."), (1_048_577, "index.js).")] {
        let pack = pack_over(&module(length - overhead));
        let events = pack.path().join("node_modules/events");
        std::fs::create_dir(&events).unwrap();
        std::fs::write(events.join("index.js"), "module.exports = class {};").unwrap();
        let skip = bundle(pack.path(), "lib").unwrap_err();
        assert!(skip.reason.ends_with(place), "{length}: {}", skip.reason);
    }
}

#[test]
fn a_failure_in_the_guest_has_its_place_in_the_library() {
    let cases = [
        (
            "export const a = 1;\n\nnew Intl.NumberFormat();\n",
            "lib@1.0.0/index.js:3",
        ),
        (
            "const f = () => {\n  null.a;\n};\nexport const a = f();\n",
            "lib@1.0.0/index.js:2",
        ),
        (
            "exports.a = 1;\nfunction f(name) {\n  return require(name);\n}\nf('fs');\n",
            "lib@1.0.0/index.js:3",
        ),
        ("exports.a = 1;\n\nleaked = 1;\n", "lib@1.0.0/index.js:3"),
        ("export const a = 1;\nthrow { stack: 'at f (x:1:1)' };\n", ""),
    ];
    let probe = Probe::new(Path::new(env!("CARGO_BIN_EXE_packferry")));
    for (module, expected) in cases {
        let pack = pack_over(module);
        let bundled = bundle(pack.path(), "lib").unwrap();
        let refused = probe.probe(&bundled.source, &bundled.exports).unwrap().unwrap_err();
        let place = BUNDLER.place_in_library(pack.path(), "lib", &bundled.source, &refused.stack);
        assert_eq!(place.unwrap().unwrap_or_default(), expected, "{module}");
        let elsewhere = BUNDLER.place_in_library(pack.path(), "lib", "other", &refused.stack);
        assert_eq!(elsewhere.unwrap(), None, "{module}");
    }
}

#[test]
fn the_starter_packs_are_admitted() {
    let packs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packs");
    let rows = [
        (
            "dates",
            "date-fns",
            "4.4.0",
            "addBusinessDays",
            &["It uses what not every guest has: \"Intl\" (date-fns@4.4.0/intlFormat.js:111)."][..],
        ),
        (
            "decimal",
            "decimal.js",
            "10.6.0",
            "Decimal",
            &["It uses what not every guest has: \"crypto\" (decimal.js@10.6.0/decimal.mjs:4686)."],
        ),
        ("markdown", "marked", "18.2.1", "marked", &[]),
        ("qr", "uqr", "0.1.3", "renderSVG", &[]),
        ("statistics", "simple-statistics", "7.12.1", "linearRegression", &[]),
        (
            "yaml",
            "js-yaml",
            "5.5.0",
            "load",
            &[
                "It uses what not every guest has: \"atob\" (js-yaml@5.5.0/dist/js-yaml.mjs:476, from src/tag/scalar/binary.ts:10), \
                 \"btoa\" (js-yaml@5.5.0/dist/js-yaml.mjs:484, from src/tag/scalar/binary.ts:23).",
            ],
        ),
    ];
    for (pack, npm, version, name, warnings) in rows {
        let bundled = bundle(&packs.join(pack), npm)
            .unwrap_or_else(|skip| unreachable!("{pack}: {skip:?} (is packs/ installed?)"));
        assert_eq!(bundled.npm_version.as_deref(), Some(version), "{npm}");
        assert!(bundled.exports.iter().any(|export| export == name), "{npm}");
        assert_eq!(bundled.warnings, warnings, "{npm}");
        let start = format!("{npm}@{version}/");
        assert!(bundled.source.contains(&format!("// {start}")), "{npm}");
        let machine = packs.canonicalize().unwrap();
        assert!(!bundled.source.contains(machine.to_str().unwrap()), "{npm}");
    }
}

#[test]
fn a_bundle_that_is_nested_without_end_is_skipped() {
    let nested = format!("export default (a) => {}a;\n", "a + ".repeat(200_000));
    let skipped = bundle(pack_over(&nested).path(), "lib").err();
    let found = skipped.map(|skip| (skip.rule.code, skip.reason));
    let reason = "The bundle is nested too deeply.".to_owned();
    assert_eq!(found, Some(("npm-module-scan-rejected", reason)));
}

/// Where a layout has the pack, its libraries (the fixture's folder, the folder in the layout) and its links (the link, what it
/// leads to, as seen from the link's folder).
struct OnDisk {
    name: &'static str,
    pack: &'static str,
    libraries: &'static [(&'static str, &'static str)],
    links: &'static [(&'static str, &'static str)],
}

const LAYOUTS: &[OnDisk] = &[
    OnDisk {
        name: "hoisted",
        pack: "a/b/c/node_modules/@acme/layouts",
        libraries: &[
            ("alpha", "a/b/c/node_modules/alpha"),
            ("beta", "a/b/c/node_modules/legacy-beta"),
            ("gamma", "a/b/c/node_modules/gamma"),
            ("delta", "a/b/c/node_modules/@acme/delta"),
        ],
        links: &[],
    },
    OnDisk {
        name: "nested",
        pack: "pack",
        libraries: &[
            ("alpha", "pack/node_modules/alpha"),
            ("beta", "pack/node_modules/alpha/node_modules/legacy-beta"),
            ("gamma", "pack/node_modules/alpha/node_modules/gamma"),
            ("delta", "pack/node_modules/alpha/node_modules/@acme/delta"),
        ],
        links: &[],
    },
    OnDisk {
        name: "pnpm",
        pack: "packages/layouts",
        libraries: &[
            ("alpha", "node_modules/.pnpm/alpha@1.0.0/node_modules/alpha"),
            ("beta", "node_modules/.pnpm/beta@1.2.0/node_modules/beta"),
            ("gamma", "node_modules/.pnpm/gamma@2.0.0/node_modules/gamma"),
            ("delta", "node_modules/.pnpm/@acme+delta@0.4.0/node_modules/@acme/delta"),
        ],
        links: &[
            (
                "packages/layouts/node_modules/alpha",
                "../../../node_modules/.pnpm/alpha@1.0.0/node_modules/alpha",
            ),
            (
                "node_modules/.pnpm/alpha@1.0.0/node_modules/legacy-beta",
                "../../beta@1.2.0/node_modules/beta",
            ),
            (
                "node_modules/.pnpm/alpha@1.0.0/node_modules/gamma",
                "../../gamma@2.0.0/node_modules/gamma",
            ),
            (
                "node_modules/.pnpm/alpha@1.0.0/node_modules/@acme/delta",
                "../../../@acme+delta@0.4.0/node_modules/@acme/delta",
            ),
            (
                "node_modules/.pnpm/beta@1.2.0/node_modules/gamma",
                "../../gamma@2.0.0/node_modules/gamma",
            ),
            (
                "node_modules/.pnpm/beta@1.2.0/node_modules/@acme/delta",
                "../../../@acme+delta@0.4.0/node_modules/@acme/delta",
            ),
        ],
    },
    OnDisk {
        name: "linked",
        pack: "packs/one",
        libraries: &[
            ("alpha", "libraries/first letter"),
            ("beta", "libraries/second letter"),
            ("gamma", "node_modules/gamma"),
            ("delta", "libraries/fourth letter"),
        ],
        links: &[
            ("node_modules/alpha", "../libraries/first letter"),
            ("node_modules/legacy-beta", "../libraries/second letter"),
            ("node_modules/@acme/delta", "../../libraries/fourth letter"),
        ],
    },
];

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &there);
        } else {
            std::fs::copy(entry.path(), there).unwrap();
        }
    }
}

fn lay_out(layout: &OnDisk) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let library = |name: &str| fixtures().join("libraries").join(name);
    copy(&library("pack"), &folder.path().join(layout.pack));
    for (name, there) in layout.libraries {
        copy(&library(name), &folder.path().join(there));
    }
    for (link, target) in layout.links {
        let link = folder.path().join(link);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
    }
    folder
}

#[test]
fn no_layout_on_disk_shows_in_a_bundle() {
    let expected = std::fs::read_to_string(fixtures().join("libraries/bundle.js")).unwrap();
    for layout in LAYOUTS {
        let folder = lay_out(layout);
        let bundled = bundle(&folder.path().join(layout.pack), "alpha").unwrap();
        assert_eq!(bundled.source, expected, "{}", layout.name);
        assert_eq!(bundled.exports, ["all", "default", "late"], "{}", layout.name);
        assert_eq!(bundled.npm_version.as_deref(), Some("1.0.0"), "{}", layout.name);
        assert_eq!(bundled.inputs.len(), 6, "{}", layout.name);
    }
}
