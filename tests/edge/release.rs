//! Releases to test with, made with the core's own functions: the good packs of `fixtures/`, and packs written in a line.

use std::collections::BTreeMap;
use std::path::Path;

use packferry_core::channel::{Envelope, Pointer};
use packferry_core::closure;
use packferry_core::digest::{BlobDigest, ManifestDigest, PackDigest};
use packferry_core::id::{FileId, ModuleName, PackName, Specifier};
use packferry_core::key::StorageKey;
use packferry_core::manifest::{self, FileEntry, ModuleEntry, PackEntry, Unavailable};
use packferry_core::payload::{FileKind, GraphEntry, GraphPayload, JsDeclaration, JsKind, JsPayload};
use packferry_core::record::{DeliveredKind, GraphRecord, RecordFile};
use packferry_worker::store::MemoryStore;
use serde_json::Value;

/// Packs, with the objects they need.
#[derive(Debug, Clone, Default)]
pub(crate) struct Release {
    pub(crate) packs: Vec<PackEntry>,
    pub(crate) objects: BTreeMap<String, (StorageKey, Vec<u8>)>,
}

impl Release {
    /// Writes every object and the manifest, and gives the manifest's digest.
    pub(crate) fn write(&self, store: &MemoryStore) -> ManifestDigest {
        for (key, value) in self.objects.values() {
            store.put(key, value.clone());
        }
        let written = manifest::write(self.packs.clone());
        for (shard, text) in &written.shards {
            store.put(&StorageKey::Shard(*shard), text.clone());
        }
        store.put(&StorageKey::Manifest(written.digest), written.root);
        written.digest
    }

    /// Writes everything, and points channel `stable` to it.
    pub(crate) fn publish(&self, store: &MemoryStore, sequence: u64) -> ManifestDigest {
        let manifest = self.write(store);
        store.put(&channel_key(), envelope("stable", sequence, manifest));
        manifest
    }

    pub(crate) fn pack(&self, name: &str) -> &PackEntry {
        self.packs.iter().find(|pack| pack.name.as_str() == name).unwrap()
    }

    fn put(&mut self, key: StorageKey, value: Vec<u8>) {
        self.objects.insert(key.to_string(), (key, value));
    }

    /// Adds a graph's objects.
    fn add_graph(&mut self, payload: GraphPayload, bodies: &BTreeMap<String, Vec<u8>>) -> GraphRecord {
        let size = |id: &FileId| u64::try_from(bodies[id.as_str()].len()).unwrap();
        let record = GraphRecord::new(payload, size).unwrap();
        let files: Vec<&[u8]> = record
            .files()
            .iter()
            .map(|file| bodies[file.id.as_str()].as_slice())
            .collect();
        let frame = closure::encode(&record, files.iter().copied()).unwrap();
        for (file, body) in record.files().iter().zip(files) {
            assert_eq!(BlobDigest::of(body), file.sha256, "{}", file.id);
            self.put(StorageKey::Blob(file.sha256), body.to_vec());
        }
        self.put(StorageKey::Closure(record.digest()), frame);
        self.put(StorageKey::Graph(record.digest()), record.to_json().into_bytes());
        record
    }

    /// Adds a pack of JavaScript modules: `(module, file)` of each, and `(file, imported files, source)` of each file.
    pub(crate) fn add_js_pack(
        &mut self,
        name: &str,
        version: Option<&str>,
        modules: &[(&str, &str)],
        files: &[(&str, &[&str], &str)],
    ) {
        let pack = PackName::parse(name).unwrap();
        let bodies: BTreeMap<String, Vec<u8>> = files
            .iter()
            .map(|(id, _, source)| ((*id).to_owned(), source.as_bytes().to_vec()))
            .collect();
        let mut entry = PackEntry {
            name: pack.clone(),
            version: version.map(str::to_owned),
            description: None,
            digest: PackDigest::of(format!("{name} {version:?}").as_bytes()),
            modules: Vec::new(),
            files: Vec::new(),
            unavailable: Vec::new(),
        };
        for (module, file) in modules {
            let module = ModuleName::parse(module).unwrap();
            let payload = GraphPayload::Js(JsPayload {
                package_name: pack.clone(),
                package_version: entry.version.clone(),
                specifier: Specifier::new(&pack, &module),
                module_id: FileId::parse(file).unwrap(),
                kind: JsKind::Js,
                declaration: JsDeclaration {
                    name: module,
                    kind: JsKind::Js,
                    file: (*file).to_owned(),
                },
                entries: reachable(file, files),
            });
            let record = self.add_graph(payload, &bodies);
            entry.modules.push(module_entry(&record, &["f"]));
            add_files(&mut entry, &record, &[]);
        }
        sort(&mut entry);
        self.packs.push(entry);
    }
}

fn reachable(file: &str, files: &[(&str, &[&str], &str)]) -> Vec<GraphEntry> {
    let mut entries = BTreeMap::new();
    let mut open = vec![file];
    while let Some(id) = open.pop() {
        let (_, imports, source) = files.iter().find(|(file, _, _)| *file == id).unwrap();
        let entry = GraphEntry {
            id: FileId::parse(id).unwrap(),
            kind: FileKind::Js,
            dependencies: imports.iter().map(|id| FileId::parse(id).unwrap()).collect(),
            bytes: BlobDigest::of(source.as_bytes()),
        };
        if entries.insert(id, entry).is_none() {
            open.extend(*imports);
        }
    }
    entries.into_values().collect()
}

fn module_entry(record: &GraphRecord, exports: &[&str]) -> ModuleEntry {
    let entry = record.entry().unwrap();
    ModuleEntry {
        specifier: record.payload().specifier().clone(),
        kind: entry.kind,
        graph_digest: record.digest(),
        file_id: entry.id.clone(),
        sha256: entry.sha256,
        size: entry.size,
        dependencies: entry.dependencies.clone(),
        exports: exports.iter().map(|name| (*name).to_owned()).collect(),
        wasm_contract: record.payload().wasm_contract(),
        host_id: record.payload().host_id().map(str::to_owned),
        npm: None,
    }
}

/// Adds the authored files of a graph that no earlier module owns.
fn add_files(pack: &mut PackEntry, record: &GraphRecord, internal: &[&str]) {
    for file in record.files() {
        let known = pack.files.iter().any(|known| known.id == file.id);
        if !known && file.kind != DeliveredKind::Host {
            pack.files.push(file_entry(record, file, internal));
        }
    }
}

fn file_entry(record: &GraphRecord, file: &RecordFile, internal: &[&str]) -> FileEntry {
    FileEntry {
        id: file.id.clone(),
        kind: if file.kind == DeliveredKind::Wasm {
            FileKind::Wasm
        } else {
            FileKind::Js
        },
        sha256: file.sha256,
        size: file.size,
        internal: internal.contains(&file.id.as_str()),
        graph_digest: record.digest(),
        dependencies: file.dependencies.clone(),
    }
}

fn sort(pack: &mut PackEntry) {
    pack.modules
        .sort_by(|a, b| a.specifier.as_str().cmp(b.specifier.as_str()));
    pack.files.sort_by(|a, b| a.id.as_str().cmp(b.id.as_str()));
}

pub(crate) fn channel_key() -> StorageKey {
    StorageKey::Channel("stable".to_owned())
}

/// An unsigned envelope.
pub(crate) fn envelope(channel: &str, sequence: u64, manifest: ManifestDigest) -> String {
    Envelope::unsigned(&Pointer {
        version: 1,
        channel: channel.to_owned(),
        sequence,
        manifest,
        published_at: "2026-01-02T03:04:05Z".to_owned(),
        expires: None,
    })
    .to_json()
}

const VECTORS: &str = include_str!("../../fixtures/vectors.json");
const PAYLOADS: &str = include_str!("../../fixtures/digest-payloads.json");

/// Good packs that the build refuses, by the pack contract's table of differences.
pub(crate) const REFUSED: [&str; 6] = [
    "@acme/bytes",
    "@acme/hashbang",
    "@acme/latin1-ids",
    "@acme/unicode-ids",
    "@acme/unicode-version",
    "@acme/wasm-unicode-name",
];

/// The reference implementation's answers for the good packs that build.
pub(crate) fn vectors() -> Vec<Value> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let packs = vectors["packs"].as_array().unwrap().iter();
    let builds = |pack: &&Value| !REFUSED.contains(&pack["name"].as_str().unwrap());
    packs.filter(builds).cloned().collect()
}

/// The release of the good packs. Their npm entries are unavailable, as the reference implementation has them.
pub(crate) fn good_packs() -> Release {
    let payloads: Value = serde_json::from_str(PAYLOADS).unwrap();
    let rows = payloads["payloads"].as_array().unwrap();
    let payload = |digest: &Value| {
        let row = rows.iter().find(|row| row["digest"] == *digest).unwrap();
        GraphPayload::parse(row["payload"].as_str().unwrap()).unwrap()
    };
    let mut release = Release::default();
    for vector in vectors() {
        let internal: Vec<&str> = vector["internal"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_str().unwrap())
            .collect();
        let text = |key: &str| vector[key].as_str().map(str::to_owned);
        let mut pack = PackEntry {
            name: PackName::parse(&text("name").unwrap()).unwrap(),
            version: text("version"),
            description: None,
            digest: text("packDigest").unwrap().parse().unwrap(),
            modules: Vec::new(),
            files: Vec::new(),
            unavailable: Vec::new(),
        };
        let mut owners = BTreeMap::new();
        for module in vector["modules"].as_array().unwrap() {
            if module.get("npm").is_some() {
                pack.unavailable.push(Unavailable {
                    specifier: Specifier::parse(module["specifier"].as_str().unwrap()).unwrap(),
                    code: "npm-module-bundle-failed".to_owned(),
                });
                continue;
            }
            let payload = payload(&module["graphDigest"]);
            let bodies = bodies(vector["dir"].as_str().unwrap(), &payload);
            let record = release.add_graph(payload, &bodies);
            pack.modules.push(module_entry(&record, &[]));
            owners.insert(record.digest().to_string(), record);
        }
        // The owner of a file is the vectors' affair: that rule is the build's.
        for file in vector["files"].as_array().unwrap() {
            if let Some(record) = file["graphDigest"].as_str().and_then(|owner| owners.get(owner)) {
                let of_record = record.file(file["fileId"].as_str().unwrap()).unwrap();
                pack.files.push(file_entry(record, of_record, &internal));
            }
        }
        pack.unavailable
            .sort_by(|a, b| a.specifier.as_str().cmp(b.specifier.as_str()));
        sort(&mut pack);
        release.packs.push(pack);
    }
    release
}

/// The bytes of a graph's files: those on disk, or the facade of a host module.
fn bodies(directory: &str, payload: &GraphPayload) -> BTreeMap<String, Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures/good-packs")
        .join(directory);
    let entries = match payload {
        GraphPayload::Js(payload) => &payload.entries,
        GraphPayload::Wasm(payload) => &payload.entries,
        GraphPayload::Host(host) => {
            return BTreeMap::from([(host.module_id.to_string(), host.facade.clone().into_bytes())]);
        }
        GraphPayload::Npm(_) => return BTreeMap::new(),
    };
    let read = |id: &FileId| (id.to_string(), std::fs::read(root.join(id.as_str())).unwrap());
    entries.iter().map(|entry| read(&entry.id)).collect()
}
