//! Small packs and releases for tests that begin after validation.

use std::collections::BTreeMap;
use std::path::Path;

use packferry::bundled::BundledPack;
use packferry::discover::{PackDir, Standing};
use packferry::fault::Fault;
use packferry::link::link;
use packferry::release::{BuildReport, Release, ReleaseWriter};
use packferry::validate::{EntrySource, ExportNames, ValidFile, ValidModule, ValidPack};
use packferry_core::digest::BlobDigest;
use packferry_core::id::{FileId, ModuleName, PackName, Specifier};
use packferry_core::manifest;
use packferry_core::payload::{Declaration, FileKind, JsDeclaration, JsKind};

/// A pack of one module with one file.
pub(crate) fn pack(name: &str, version: &str, source: &str) -> BundledPack {
    let name = PackName::parse(name).unwrap();
    let root = ModuleName::parse(".").unwrap();
    let id = FileId::parse("index.js").unwrap();
    let specifier = Specifier::new(&name, &root);
    let file = ValidFile {
        kind: FileKind::Js,
        bytes: source.as_bytes().into(),
        sha256: BlobDigest::of(source.as_bytes()),
        internal: false,
        specifier: Some(specifier.clone()),
        dependencies: Vec::new(),
        exports: ExportNames::default(),
    };
    let declaration = Declaration::Js(JsDeclaration {
        name: root,
        kind: JsKind::Js,
        file: "index.js".into(),
    });
    BundledPack {
        pack: ValidPack {
            dir: PackDir {
                shown: "pack".into(),
                real: "pack".into(),
                named: true,
                standing: Standing::Installed,
                staged: None,
            },
            name,
            version: Some(version.into()),
            description: None,
            internal: Vec::new(),
            modules: vec![ValidModule {
                specifier,
                declaration,
                source: EntrySource::File(id.clone()),
                place: 0..0,
            }],
            files: BTreeMap::from([(id, file)]),
            package_json: "{}".into(),
            skill: None,
        },
        npm: BTreeMap::new(),
    }
}

/// Links `packs`, writes their release into `dir` and reads it back.
pub(crate) fn write_release(dir: &Path, packs: &[BundledPack]) -> Release {
    let dir = dir.try_into().unwrap();
    let writer = ReleaseWriter::open(dir).unwrap();
    let mut entries = Vec::new();
    for pack in packs {
        let entry: Result<_, Fault> = link(pack, |graph| writer.write_graph(&graph));
        entries.push(entry.unwrap());
    }
    let manifest = manifest::write(entries);
    let report = BuildReport {
        version: 1,
        manifest: manifest.digest,
        withheld: Vec::new(),
        unavailable: Vec::new(),
    };
    writer.finish(&manifest, &report).unwrap();
    Release::read(dir).unwrap()
}
