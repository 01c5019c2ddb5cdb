//! Authorization and retrieval, one operation: what a module id means, whether the requester may have it, and its checked
//! bytes. No other code hands out a file's bytes.

use std::ops::Range;
use std::rc::Rc;

use packferry_core::closure;
use packferry_core::contract::WasmContract;
use packferry_core::digest::{BlobDigest, GraphDigest, ManifestDigest};
use packferry_core::id::{FileId, ModuleId};
use packferry_core::key::StorageKey;
use packferry_core::manifest::{FileEntry, ModuleEntry, PackEntry};
use packferry_core::policy::{Permit, Subject};
use packferry_core::record::{DeliveredKind, GraphRecord, RecordFile};

use crate::config::Source;
use crate::fetch::{Checked, DOCUMENT_BYTES, Reader};
use crate::guard::Gate;
use crate::memory::{Closure, Object, Slot};
use crate::problem::{Absence, Corruption, Fault, Problem, Refusal};
use crate::store::{Body, Bytes, Store};

/// What a module id means, before policy and without bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) pack: String,
    pub(crate) version: Option<String>,
    pub(crate) graph: GraphDigest,
    pub(crate) file: FileId,
    pub(crate) kind: DeliveredKind,
    pub(crate) sha256: BlobDigest,
    pub(crate) size: u64,
    pub(crate) internal: bool,
    pub(crate) dependencies: Vec<FileId>,
    pub(crate) wasm_contract: Option<WasmContract>,
    pub(crate) host_id: Option<String>,
    /// The manifest that answered a named id; none for a pinned one.
    pub(crate) manifest: Option<ManifestDigest>,
}

/// What a named id turned out to be in the release that was asked.
enum Named {
    Found(Box<Found>),
    NotFound(ManifestDigest),
    Unavailable(ManifestDigest),
}

/// A found thing that the policy lets the requester have.
#[derive(Debug)]
pub(crate) struct Authorized {
    pub(crate) found: Found,
    pub(crate) permit: Permit,
}

impl<S: Store> Reader<'_, S> {
    /// Decides on a delivery:
    ///
    /// 1. For a named id the policy speaks first, on the pack's name alone: under a private pattern the answer is the same
    ///    whether the module exists or not.
    /// 2. The id is looked up: a named one in the release that answers, a pinned one in its graph's record.
    /// 3. The policy speaks on what was found: pack, version and graph.
    ///
    /// What comes out is the only way to [`Reader::retrieve`] and [`Reader::retrieve_closure`].
    pub(crate) async fn authorize_delivery(&self, id: &ModuleId, gate: &Gate) -> Result<Authorized, Problem> {
        if let Source::Nothing(why) = self.edge.config.source {
            return Err(Fault::Configuration(why).into());
        }
        let found = match id {
            ModuleId::Specifier(_) | ModuleId::File { .. } => {
                let pack = id.pack().unwrap_or_default();
                let permit = gate.delivery(&Subject::named(pack))?;
                self.named(id, pack, permit).await?
            }
            ModuleId::Graph(graph) => self.pinned(*graph, None, gate).await?,
            ModuleId::GraphFile { graph, file } => self.pinned(*graph, Some(file), gate).await?,
        };
        let permit = gate.delivery(&found.subject())?;
        Ok(Authorized { found, permit })
    }

    /// The checked bytes of what was authorized.
    pub(crate) async fn retrieve(&self, authorized: &Authorized) -> Result<S::Body, Problem> {
        let found = &authorized.found;
        let key = StorageKey::Blob(found.sha256);
        let body = self.blob(found.sha256).await?;
        let body = body.ok_or_else(|| Fault::Incomplete(key.clone()))?;
        if u64::try_from(body.len()) != Ok(found.size) {
            let cause = format!("it has {} bytes, and {} are promised", body.len(), found.size);
            return Err(Corruption { key, cause }.into());
        }
        Ok(body)
    }

    async fn named(&self, id: &ModuleId, pack: &str, permit: Permit) -> Result<Found, Problem> {
        let private = permit.is_private();
        let named = self.pack(pack, |release, entry| match entry {
            Some(entry) => find_named(entry, id, release.manifest),
            None => Named::NotFound(release.manifest),
        });
        let absence = |manifest| Absence {
            private,
            manifest: Some(manifest),
        };
        match named.await? {
            Named::Found(found) => Ok(*found),
            Named::NotFound(manifest) => Err(Refusal::NotFound(absence(manifest)).into()),
            Named::Unavailable(manifest) => Err(Refusal::Unavailable(absence(manifest)).into()),
        }
    }

    async fn pinned(&self, graph: GraphDigest, file: Option<&String>, gate: &Gate) -> Result<Found, Problem> {
        let key = StorageKey::Graph(graph);
        let absent = || Problem::from(Refusal::NotFound(Absence::default()));
        if self.edge.memory.is_absent(&key, self.edge.store.now()) {
            return Err(absent());
        }
        let Some(record) = self.record(graph).await? else {
            self.edge.memory.note_absent(key, self.edge.store.now());
            return Err(absent());
        };
        let file = match file {
            None => record.entry(),
            Some(id) => record.file(id),
        };
        // Whether a private graph has a file is for those to know who may fetch it.
        let permit = gate.delivery(&record_subject(&record))?;
        let private = permit.is_private();
        let file = file.ok_or(Refusal::NotFound(Absence::outside_releases(private)))?;
        Ok(find_pinned(&record, file))
    }

    /// The checked closure of the graph that was authorized.
    pub(crate) async fn retrieve_closure(&self, authorized: &Authorized) -> Result<Rc<Closure<S::Body>>, Problem> {
        let graph = authorized.found.graph;
        match self.closure(graph).await? {
            Some(closure) => Ok(closure),
            None => Err(Fault::Incomplete(StorageKey::Closure(graph)).into()),
        }
    }

    async fn closure(&self, graph: GraphDigest) -> Result<Option<Rc<Closure<S::Body>>>, Problem> {
        let key = StorageKey::Closure(graph);
        let check = async |bytes: S::Bytes| self.check_closure(&key, graph, bytes).await;
        let object = self.object(Slot::Bytes(key.clone()), &key, check).await?;
        Ok(object.and_then(|object| match object {
            Object::Closure(closure) => Some(closure),
            _ => None,
        }))
    }

    async fn check_closure(&self, key: &StorageKey, graph: GraphDigest, bytes: S::Bytes) -> Checked<Object<S::Body>> {
        let copy = |range: Range<usize>| {
            let bounded = range.len() <= DOCUMENT_BYTES;
            if bounded { bytes.copy(range) } else { Vec::new() }
        };
        let layout = match closure::layout(bytes.len(), copy, graph) {
            Ok(layout) => layout,
            Err(error) => return Ok(Err(error.to_string())),
        };
        for (file, range) in layout.record.files().iter().zip(layout.bodies) {
            let found = self.sha256(key, &bytes, range).await?;
            if found != *file.sha256.as_bytes() {
                return Ok(Err(format!("the bytes of {} are others", file.id)));
            }
        }
        let sha256 = BlobDigest::from_bytes(self.sha256(key, &bytes, 0..bytes.len()).await?);
        let body = self.keep(key, bytes)?;
        Ok(Ok(Object::Closure(Rc::new(Closure { body, sha256 }))))
    }
}

impl Found {
    /// What the policy decides on.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            pack: &self.pack,
            version: self.version.as_deref(),
            graph: Some(self.graph),
        }
    }

    /// Whether it was asked for by a pinned id.
    pub(crate) fn is_pinned(&self) -> bool {
        self.manifest.is_none()
    }

    /// The pinned ids of what it imports.
    pub(crate) fn dependency_ids(&self) -> Vec<String> {
        let pinned = |file: &FileId| format!("{}::{file}", self.graph);
        self.dependencies.iter().map(pinned).collect()
    }
}

fn find_named(pack: &PackEntry, id: &ModuleId, manifest: ManifestDigest) -> Named {
    let found = match id {
        ModuleId::Specifier(specifier) if pack.is_unavailable(specifier) => return Named::Unavailable(manifest),
        ModuleId::Specifier(specifier) => pack.module(specifier).map(|module| of_module(pack, module, manifest)),
        ModuleId::File { file, .. } => pack.file(file).map(|file| of_file(pack, file, manifest)),
        ModuleId::Graph(_) | ModuleId::GraphFile { .. } => None,
    };
    found.map_or(Named::NotFound(manifest), |found| Named::Found(Box::new(found)))
}

fn of_module(pack: &PackEntry, module: &ModuleEntry, manifest: ManifestDigest) -> Found {
    Found {
        pack: pack.name.to_string(),
        version: pack.version.clone(),
        graph: module.graph_digest,
        file: module.file_id.clone(),
        kind: module.kind,
        sha256: module.sha256,
        size: module.size,
        internal: false,
        dependencies: module.dependencies.clone(),
        wasm_contract: module.wasm_contract.clone(),
        host_id: module.host_id.clone(),
        manifest: Some(manifest),
    }
}

fn of_file(pack: &PackEntry, file: &FileEntry, manifest: ManifestDigest) -> Found {
    Found {
        pack: pack.name.to_string(),
        version: pack.version.clone(),
        graph: file.graph_digest,
        file: file.id.clone(),
        kind: file.kind.into(),
        sha256: file.sha256,
        size: file.size,
        internal: file.internal,
        dependencies: file.dependencies.clone(),
        wasm_contract: None,
        host_id: None,
        manifest: Some(manifest),
    }
}

fn record_subject(record: &GraphRecord) -> Subject<'_> {
    Subject {
        pack: record.payload().pack().as_str(),
        version: record.payload().version(),
        graph: Some(record.digest()),
    }
}

/// A file of a graph. Everything follows from the graph: what a pinned id answers can never change.
fn find_pinned(record: &GraphRecord, file: &RecordFile) -> Found {
    let payload = record.payload();
    let is_entry = file.id == *payload.entry();
    Found {
        pack: payload.pack().to_string(),
        version: payload.version().map(str::to_owned),
        graph: record.digest(),
        file: file.id.clone(),
        kind: file.kind,
        sha256: file.sha256,
        size: file.size,
        internal: !is_entry,
        dependencies: file.dependencies.clone(),
        wasm_contract: payload.wasm_contract().filter(|_| is_entry),
        host_id: payload.host_id().filter(|_| is_entry).map(str::to_owned),
        manifest: None,
    }
}
