//! Whether what becomes of a pack can be stored and read again: its graphs as values of Workers KV, its entry in the manifest by a
//! worker. Few bytes of package.json are enough for a product of modules and files, or of modules and names, that cannot.

use packferry_core::canonical;
use packferry_core::id::FileId;
use packferry_core::limits::PACK_LIMITS;
use packferry_core::payload::GraphEntry;
use packferry_core::record::RecordFile;

use crate::bundled::BundledPack;
use crate::diagnostics::{CLOSURE_TOO_LARGE, Diagnostic, Findings, MANIFEST_ENTRY_TOO_LARGE};
use crate::exports::ExportTable;
use crate::link::Files;
use crate::validate::{EntrySource, ValidFile, ValidPack};

/// Bytes of a closure that are not about its files: names, versions and the declaration, all of which have bounds.
const REST_OF_CLOSURE: u64 = 16 << 10;

/// Bytes of a module or a file in the manifest beside its names and dependencies.
const ROW: u64 = 512;

/// What of `bundled` is too large.
#[must_use]
pub fn check(bundled: &BundledPack) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    check_graphs(&bundled.pack, &mut findings);
    findings.extend(check_entry(&bundled.pack));
    findings.into_vec()
}

/// The files of modules, as a closure has them: in its record's payload, in its record, and whole.
fn check_graphs(pack: &ValidPack, findings: &mut Findings) {
    let limit = PACK_LIMITS.closure_bytes - REST_OF_CLOSURE;
    let files = Files::of(pack);
    let bytes: Vec<u64> = files.all().map(|(id, file)| closure_bytes(id, file)).collect();
    if bytes.iter().sum::<u64>() <= limit {
        return;
    }
    for module in &pack.modules {
        let EntrySource::File(entry) = &module.source else {
            continue;
        };
        let reached = files.reached(entry).into_iter();
        let total: u64 = reached.filter_map(|at| bytes.get(at)).sum();
        if total > limit {
            let message = format!(
                "{}: the closure of {} has {total} bytes, and {limit} are allowed",
                pack.name, module.specifier
            );
            findings.push(Diagnostic::new(&CLOSURE_TOO_LARGE, message));
        }
    }
}

fn closure_bytes(id: &FileId, file: &ValidFile) -> u64 {
    let entry = GraphEntry {
        id: id.clone(),
        kind: file.kind,
        dependencies: file.dependencies.clone(),
        bytes: file.sha256,
    };
    let row = RecordFile {
        id: id.clone(),
        kind: file.kind.into(),
        sha256: file.sha256,
        size: file.bytes.len() as u64,
        dependencies: file.dependencies.clone(),
    };
    // The payload stands in the record as a string.
    let in_payload = canonical::to_json(&canonical::to_json(&entry)).len() - 1;
    (in_payload + canonical::to_json(&row).len() + 1 + file.bytes.len()) as u64
}

/// The pack's entry in the manifest, which lists for every module what it exports.
fn check_entry(pack: &ValidPack) -> Option<Diagnostic> {
    let limit = PACK_LIMITS.manifest_entry_bytes;
    let listed = |names: &mut dyn Iterator<Item = &str>| names.map(|name| name.len() as u64 + 3).sum::<u64>();
    let files = pack.files.values();
    let rows = (pack.modules.len() + pack.files.len()) as u64 * ROW
        + files
            .clone()
            .map(|file| listed(&mut file.dependencies.iter().map(|id| id.as_str())))
            .sum::<u64>();
    let all_names: u64 = files
        .map(|file| listed(&mut file.exports.named.iter().map(|name| name.name.as_str())))
        .sum();
    let mut bytes = rows;
    if rows + all_names * pack.modules.len() as u64 > limit {
        let mut table = ExportTable::of(pack);
        for module in &pack.modules {
            if let EntrySource::File(entry) = &module.source
                && bytes <= limit
            {
                bytes += listed(&mut table.of_entry(entry).iter().map(String::as_str));
            }
        }
    }
    let message = || format!("{}: its entry in the manifest has over {limit} bytes", pack.name);
    (bytes > limit).then(|| Diagnostic::new(&MANIFEST_ENTRY_TOO_LARGE, message()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use packferry_core::digest::BlobDigest;
    use packferry_core::id::{ModuleName, PackName, Specifier};
    use packferry_core::payload::{Declaration, FileKind, JsDeclaration, JsKind};

    use super::*;
    use crate::discover::{PackDir, Standing};
    use crate::validate::{ExportNames, ValidModule};

    /// A pack of one module, `0.js`, which imports `imported` files; each of these has `bytes` bytes.
    fn pack(imported: usize, bytes: usize) -> ValidPack {
        let id = |n: usize| FileId::parse(&format!("{n}.js")).unwrap();
        let body: std::sync::Arc<[u8]> = vec![b' '; bytes].into();
        let file = |n: usize| ValidFile {
            kind: FileKind::Js,
            bytes: if n == 0 {
                [].into()
            } else {
                std::sync::Arc::clone(&body)
            },
            sha256: BlobDigest::of(b""),
            internal: n > 0,
            specifier: None,
            dependencies: if n == 0 {
                (1..=imported).map(id).collect()
            } else {
                Vec::new()
            },
            exports: ExportNames::default(),
        };
        let (name, root) = (PackName::parse("p").unwrap(), ModuleName::parse(".").unwrap());
        let declaration = JsDeclaration {
            name: root.clone(),
            kind: JsKind::Js,
            file: "0.js".into(),
        };
        ValidPack {
            dir: PackDir {
                shown: "p".into(),
                real: "p".into(),
                named: true,
                standing: Standing::Installed,
                staged: None,
            },
            version: None,
            description: None,
            internal: Vec::new(),
            modules: vec![ValidModule {
                specifier: Specifier::new(&name, &root),
                declaration: Declaration::Js(declaration),
                source: EntrySource::File(id(0)),
                place: 0..0,
            }],
            name,
            files: (0..=imported).map(|n| (id(n), file(n))).collect::<BTreeMap<_, _>>(),
            package_json: "{}".into(),
            skill: None,
        }
    }

    fn codes(pack: &ValidPack) -> Vec<&'static str> {
        let mut findings = Findings::default();
        check_graphs(pack, &mut findings);
        findings.into_vec().iter().map(|found| found.rule.code).collect()
    }

    #[test]
    fn a_graph_that_storage_does_not_take_is_refused() {
        assert_eq!(codes(&pack(10, 1 << 20)), [""; 0]);
        assert_eq!(codes(&pack(25, 1 << 20)), ["closure-too-large"]);
        // Rows of the record count, too.
        assert_eq!(codes(&pack(80_000, 0)), [""; 0]);
        assert_eq!(codes(&pack(120_000, 0)), ["closure-too-large"]);
    }

    #[test]
    fn a_closure_is_counted_as_it_is_written() {
        let pack = pack(100, 10);
        let counted: u64 = Files::of(&pack).all().map(|(id, file)| closure_bytes(id, file)).sum();
        let bundled = BundledPack {
            pack,
            npm: BTreeMap::new(),
        };
        let mut written = 0;
        let linked: Result<_, crate::fault::Fault> = crate::link::link(&bundled, |graph| {
            let bodies = graph.bodies.iter().map(AsRef::as_ref);
            written = packferry_core::closure::encode(&graph.record, bodies).map_or(0, |frame| frame.len() as u64);
            Ok(())
        });
        assert!(linked.is_ok());
        assert!(
            (counted..counted + REST_OF_CLOSURE).contains(&written),
            "{counted} {written}"
        );
    }
}
