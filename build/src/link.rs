//! Stage 5: from accepted files to graphs. Computes reachability, owners, digests and export names, and gives the graphs to write,
//! one at a time, and the pack's entry in the manifest. Pure: no I/O, nothing can be refused any more.

use std::collections::HashMap;
use std::sync::Arc;

use packferry_core::contract::{HOST_FACADE_VERSION, WASM_FACADE_VERSION, host_facade, wasm_facade};
use packferry_core::digest::GraphDigest;
use packferry_core::id::{FileId, Specifier};
use packferry_core::manifest::{FileEntry, ModuleEntry, PackEntry, Unavailable};
use packferry_core::order::{by_owner, by_utf16};
use packferry_core::payload::{
    BundlerName, CompiledEntry, Declaration, ExportDeclaration, GraphEntry, GraphPayload, HostPayload, JsDeclaration,
    JsKind, JsPayload, NpmDeclaration, NpmPayload, PackFile, PackManifest, PackPayload, WasmDeclaration, WasmKind,
    WasmPayload,
};
use packferry_core::record::{GraphRecord, InvalidRecord};

use crate::bundled::{AdmittedBundle, BundledPack, NpmOutcome};
use crate::diagnostics::HOST_NOT_REGISTERED;
use crate::exports::ExportTable;
use crate::validate::{EntrySource, ValidFile, ValidModule, ValidPack};

/// A graph, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedGraph {
    /// Its record.
    pub record: GraphRecord,
    /// The bytes of its files, in the record's order.
    pub bodies: Vec<Arc<[u8]>>,
}

/// Links `bundled`: hands each graph to `take`, one after the other, and gives the pack's entry in the manifest. A pack may have
/// thousands of graphs over the same thousands of files, so no two are held at once.
///
/// # Errors
/// [`InvalidRecord`] where an earlier stage let a graph through that is not closed or not acyclic: our fault, not the pack's. What
/// `take` says.
pub fn link<E: From<InvalidRecord>>(
    bundled: &BundledPack,
    mut take: impl FnMut(LinkedGraph) -> Result<(), E>,
) -> Result<PackEntry, E> {
    let pack = &bundled.pack;
    let files = Files::of(pack);
    let mut names = ExportTable::of(pack);
    let mut modules = Vec::new();
    let mut unavailable = Vec::new();
    for module in &pack.modules {
        match graph_of(bundled, &files, &mut names, module)? {
            Linked::Delivered(delivered) => {
                let (entry, graph) = *delivered;
                modules.push(entry);
                take(graph)?;
            }
            Linked::Unavailable(code) => {
                unavailable.push(Unavailable {
                    specifier: module.specifier.clone(),
                    code: code.to_owned(),
                });
            }
        }
    }
    modules.sort_by(|a, b| by_utf16(a.specifier.as_str(), b.specifier.as_str()));
    unavailable.sort_by(|a, b| by_utf16(a.specifier.as_str(), b.specifier.as_str()));
    Ok(PackEntry {
        name: pack.name.clone(),
        version: pack.version.clone(),
        description: pack.description.clone(),
        digest: pack_payload(bundled).digest(),
        files: owned_files(&files, &modules),
        modules,
        unavailable,
    })
}

enum Linked {
    Delivered(Box<(ModuleEntry, LinkedGraph)>),
    Unavailable(&'static str),
}

fn graph_of<'a>(
    bundled: &'a BundledPack,
    files: &Files<'a>,
    names: &mut ExportTable<'a>,
    module: &'a ValidModule,
) -> Result<Linked, InvalidRecord> {
    let pack = &bundled.pack;
    match (&module.source, &module.declaration) {
        (EntrySource::File(id), Declaration::Js(declaration)) => {
            let exports = names.of_entry(id);
            finish(js_payload(pack, files, module, id, declaration), exports, |id| {
                body_of(pack, id)
            })
        }
        (EntrySource::File(id), Declaration::Wasm(declaration)) => {
            let exports = declaration
                .exports
                .iter()
                .map(|export| export.alias().to_owned())
                .collect();
            finish(wasm_payload(pack, files, module, id, declaration), exports, |id| {
                body_of(pack, id)
            })
        }
        (EntrySource::Npm(npm), Declaration::Npm(declaration)) => match bundled.npm.get(npm) {
            Some(NpmOutcome::Admitted(bundle)) => {
                let payload = npm_payload(pack, module, declaration, bundle);
                finish(payload, bundle.exports.clone(), |_| Some(Arc::clone(&bundle.bytes)))
            }
            Some(NpmOutcome::Skipped(code)) => Ok(Linked::Unavailable(code)),
            None => Err(InvalidRecord::Contradiction("an npm entry that was never bundled")),
        },
        (EntrySource::Host(names), Declaration::Host(declaration)) => {
            let payload = host_payload(pack, module, &declaration.host, names);
            let facade: Arc<[u8]> = payload.facade.as_bytes().into();
            finish(GraphPayload::Host(payload), names.clone(), |_| {
                Some(Arc::clone(&facade))
            })
        }
        (EntrySource::UnregisteredHost, _) => Ok(Linked::Unavailable(HOST_NOT_REGISTERED.code)),
        (EntrySource::File(_) | EntrySource::Npm(_) | EntrySource::Host(_), _) => {
            Err(InvalidRecord::Contradiction("a declaration and its source"))
        }
    }
}

/// Makes record, bodies and manifest entry of a payload.
fn finish(
    payload: GraphPayload,
    mut exports: Vec<String>,
    body: impl Fn(&FileId) -> Option<Arc<[u8]>>,
) -> Result<Linked, InvalidRecord> {
    let size = |id: &FileId| body(id).map_or(0, |bytes| bytes.len() as u64);
    let record = GraphRecord::new(payload, size)?;
    let bodies = record.files().iter().filter_map(|file| body(&file.id)).collect();
    let file = record
        .entry()
        .ok_or(InvalidRecord::Contradiction("an entry that is no file"))?;
    exports.sort_by(|a, b| by_utf16(a, b));
    exports.dedup();
    let payload = record.payload();
    let entry = ModuleEntry {
        specifier: payload.specifier().clone(),
        kind: file.kind,
        graph_digest: record.digest(),
        file_id: file.id.clone(),
        sha256: file.sha256,
        size: file.size,
        dependencies: file.dependencies.clone(),
        exports,
        wasm_contract: payload.wasm_contract(),
        host_id: payload.host_id().map(str::to_owned),
        npm: match payload {
            GraphPayload::Npm(npm) => Some(npm.npm.clone()),
            GraphPayload::Js(_) | GraphPayload::Wasm(_) | GraphPayload::Host(_) => None,
        },
    };
    Ok(Linked::Delivered(Box::new((entry, LinkedGraph { record, bodies }))))
}

fn body_of(pack: &ValidPack, id: &FileId) -> Option<Arc<[u8]>> {
    pack.files.get(id).map(|file| Arc::clone(&file.bytes))
}

fn js_payload(
    pack: &ValidPack,
    files: &Files<'_>,
    module: &ValidModule,
    id: &FileId,
    declaration: &JsDeclaration,
) -> GraphPayload {
    GraphPayload::Js(JsPayload {
        package_name: pack.name.clone(),
        package_version: pack.version.clone(),
        specifier: module.specifier.clone(),
        module_id: id.clone(),
        kind: JsKind::Js,
        declaration: declaration.clone(),
        entries: graph_entries(files, id),
    })
}

fn wasm_payload(
    pack: &ValidPack,
    files: &Files<'_>,
    module: &ValidModule,
    id: &FileId,
    declaration: &WasmDeclaration,
) -> GraphPayload {
    GraphPayload::Wasm(WasmPayload {
        package_name: pack.name.clone(),
        package_version: pack.version.clone(),
        specifier: module.specifier.clone(),
        module_id: id.clone(),
        kind: WasmKind::Wasm,
        declaration: sorted_exports(declaration),
        entries: graph_entries(files, id),
        facade_version: WASM_FACADE_VERSION,
        facade: wasm_facade(
            module.specifier.as_str(),
            declaration.exports.iter().map(ExportDeclaration::alias),
        ),
    })
}

fn host_payload(pack: &ValidPack, module: &ValidModule, host: &str, names: &[String]) -> HostPayload {
    let in_facade: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut exports = names.to_vec();
    exports.sort_by(|a, b| by_utf16(a, b));
    HostPayload {
        package_name: pack.name.clone(),
        package_version: pack.version.clone(),
        specifier: module.specifier.clone(),
        module_id: FileId::host(host),
        host_id: host.to_owned(),
        exports,
        facade_version: HOST_FACADE_VERSION,
        facade: host_facade(module.specifier.as_str(), &in_facade),
    }
}

fn npm_payload(
    pack: &ValidPack,
    module: &ValidModule,
    declaration: &NpmDeclaration,
    bundle: &AdmittedBundle,
) -> GraphPayload {
    GraphPayload::Npm(NpmPayload {
        package_name: pack.name.clone(),
        package_version: pack.version.clone(),
        specifier: module.specifier.clone(),
        module_id: FileId::npm(&declaration.npm),
        npm: declaration.npm.clone(),
        npm_version: bundle.npm_version.clone(),
        declaration: declaration.clone(),
        bundler: BundlerName::Esbuild,
        bundler_version: bundle.bundler.version.clone(),
        options_digest: bundle.bundler.options_digest,
        source: bundle.sha256,
    })
}

/// The pack payload's form of a WASM declaration: exports sorted by their names in the binary.
fn sorted_exports(declaration: &WasmDeclaration) -> WasmDeclaration {
    let mut sorted = declaration.clone();
    sorted.exports.sort_by(|a, b| by_utf16(a.wasm(), b.wasm()));
    sorted
}

/// The files of a pack by number, in the order in which digests list them.
pub struct Files<'a> {
    files: Vec<(&'a FileId, &'a ValidFile)>,
    numbers: HashMap<&'a FileId, usize>,
    /// The numbers of the files that each file imports.
    imports: Vec<Vec<usize>>,
}

impl<'a> Files<'a> {
    /// Those of `pack`.
    #[must_use]
    pub fn of(pack: &'a ValidPack) -> Self {
        let mut files: Vec<(&FileId, &ValidFile)> = pack.files.iter().collect();
        files.sort_by(|a, b| by_utf16(a.0.as_str(), b.0.as_str()));
        let numbers: HashMap<&FileId, usize> = files.iter().enumerate().map(|(at, (id, _))| (*id, at)).collect();
        let imports = files
            .iter()
            .map(|(_, file)| {
                file.dependencies
                    .iter()
                    .filter_map(|id| numbers.get(id).copied())
                    .collect()
            })
            .collect();
        Self {
            files,
            numbers,
            imports,
        }
    }

    /// All of them, by number.
    pub fn all(&self) -> impl Iterator<Item = (&'a FileId, &'a ValidFile)> {
        self.files.iter().copied()
    }

    /// The numbers of the files that `entry` reaches, itself included.
    #[must_use]
    pub fn reached(&self, entry: &FileId) -> Vec<usize> {
        self.mark(entry, &mut vec![false; self.files.len()])
    }

    /// Marks what `entry` reaches, itself included, and gives the numbers of what had no mark. What is behind a mark is marked.
    fn mark(&self, entry: &FileId, marks: &mut [bool]) -> Vec<usize> {
        let mut open: Vec<usize> = self.numbers.get(entry).copied().into_iter().collect();
        let mut marked = Vec::new();
        while let Some(at) = open.pop() {
            match marks.get_mut(at) {
                Some(mark) if !*mark => *mark = true,
                _ => continue,
            }
            marked.push(at);
            open.extend(self.imports.get(at).into_iter().flatten());
        }
        marked.sort_unstable();
        marked
    }

    fn at(&self, numbers: Vec<usize>) -> impl Iterator<Item = (&'a FileId, &'a ValidFile)> {
        numbers.into_iter().filter_map(|at| self.files.get(at).copied())
    }
}

/// Every file reachable from `entry`, itself included, sorted by id.
fn graph_entries(files: &Files<'_>, entry: &FileId) -> Vec<GraphEntry> {
    let entries = files.at(files.reached(entry)).map(|(id, file)| GraphEntry {
        id: id.clone(),
        kind: file.kind,
        dependencies: file.dependencies.clone(),
        bytes: file.sha256,
    });
    entries.collect()
}

/// The files that a module reaches, each under the graph of the first module that reaches it (pack contract, section 12). An
/// npm or host entry reaches none, also where an authored file is called `npm:x` or `host:x`.
fn owned_files(files: &Files<'_>, modules: &[ModuleEntry]) -> Vec<FileEntry> {
    let mut entries: Vec<(&Specifier, &FileId, GraphDigest)> = modules
        .iter()
        .filter(|module| module.npm.is_none() && module.host_id.is_none())
        .map(|module| (&module.specifier, &module.file_id, module.graph_digest))
        .collect();
    entries.sort_by(|a, b| by_owner(a.0.as_str(), b.0.as_str()));
    let mut owned = vec![false; files.files.len()];
    let mut rows: Vec<FileEntry> = Vec::new();
    for (_, entry, graph_digest) in entries {
        let first = files.at(files.mark(entry, &mut owned));
        rows.extend(first.map(|(id, file)| FileEntry {
            id: id.clone(),
            kind: file.kind,
            sha256: file.sha256,
            size: file.bytes.len() as u64,
            internal: file.internal,
            graph_digest,
            dependencies: file.dependencies.clone(),
        }));
    }
    rows.sort_by(|a, b| by_utf16(a.id.as_str(), b.id.as_str()));
    rows
}

fn pack_payload(bundled: &BundledPack) -> PackPayload {
    let pack = &bundled.pack;
    let mut internal = pack.internal.clone();
    internal.sort_by(|a, b| by_utf16(a, b));
    let mut sandbox_modules: Vec<Declaration> = pack
        .modules
        .iter()
        .map(|module| match &module.declaration {
            Declaration::Wasm(declaration) => Declaration::Wasm(sorted_exports(declaration)),
            other => other.clone(),
        })
        .collect();
    sandbox_modules.sort_by(|a, b| by_utf16(a.name().as_str(), b.name().as_str()));
    let mut entries: Vec<PackFile> = pack.files.iter().map(|(id, file)| pack_file(id, file)).collect();
    let mut compiled = Vec::new();
    for module in &pack.modules {
        let EntrySource::Npm(npm) = &module.source else {
            continue;
        };
        let Some(NpmOutcome::Admitted(bundle)) = bundled.npm.get(npm) else {
            continue;
        };
        entries.push(PackFile {
            id: FileId::npm(npm),
            kind: packferry_core::payload::FileKind::Js,
            specifier: Some(module.specifier.clone()),
            dependencies: Vec::new(),
            internal: false,
            bytes: bundle.sha256,
        });
        compiled.push(CompiledEntry {
            id: FileId::npm(npm),
            npm_version: bundle.npm_version.clone(),
            bundler: BundlerName::Esbuild,
            bundler_version: bundle.bundler.version.clone(),
            options_digest: bundle.bundler.options_digest,
        });
    }
    entries.sort_by(|a, b| by_utf16(a.id.as_str(), b.id.as_str()));
    compiled.sort_by(|a, b| by_utf16(a.id.as_str(), b.id.as_str()));
    PackPayload {
        package_name: pack.name.clone(),
        package_version: pack.version.clone(),
        manifest: PackManifest {
            api_version: 1,
            internal,
            sandbox_modules,
        },
        entries,
        compiled,
    }
}

fn pack_file(id: &FileId, file: &ValidFile) -> PackFile {
    let dependencies = if file.specifier.is_some() {
        file.dependencies.clone()
    } else {
        Vec::new()
    };
    PackFile {
        id: id.clone(),
        kind: file.kind,
        specifier: file.specifier.clone(),
        dependencies,
        internal: file.internal,
        bytes: file.sha256,
    }
}
