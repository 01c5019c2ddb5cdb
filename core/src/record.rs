//! The graph record: everything the edge needs to answer a pinned id, and everything anyone needs to check a graph
//! without rebuilding it (wire contract, "Graph record"). A pure function of the digest payload and the files' bytes.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::canonical::{self, NotCanonical};
use crate::digest::{BlobDigest, GraphDigest};
use crate::id::FileId;
use crate::payload::{FileKind, GraphPayload, InvalidPayload};

/// Kind of a delivered file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveredKind {
    /// JavaScript source, a bundled npm entry included.
    Js,
    /// A WASM binary.
    Wasm,
    /// The facade of a host module.
    Host,
}

impl DeliveredKind {
    /// The `Content-Type` of a file of this kind.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Js | Self::Host => "text/javascript; charset=utf-8",
            Self::Wasm => "application/wasm",
        }
    }
}

impl From<FileKind> for DeliveredKind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Js => Self::Js,
            FileKind::Wasm => Self::Wasm,
        }
    }
}

/// A file of a graph, as its record lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordFile {
    /// The file.
    pub id: FileId,
    /// Its kind.
    pub kind: DeliveredKind,
    /// SHA-256 of its bytes.
    pub sha256: BlobDigest,
    /// Its length in bytes.
    pub size: u64,
    /// The files it imports, sorted.
    pub dependencies: Vec<FileId>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u64,
    payload: String,
    files: Vec<RecordFile>,
    entry: FileId,
}

/// The document as it is written, without a copy of what it holds.
#[derive(Serialize)]
struct Written<'a> {
    version: u64,
    payload: &'a str,
    files: &'a [RecordFile],
    entry: &'a FileId,
}

/// Why a record is not that of the graph it was read for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    /// Not a record's shape, or not canonical.
    #[error(transparent)]
    Document(#[from] NotCanonical),
    /// Its payload is not one.
    #[error(transparent)]
    Payload(#[from] InvalidPayload),
    /// Another version than this code reads.
    #[error("record version {0} is not known")]
    Version(u64),
    /// Its payload is that of another graph.
    #[error("the payload is that of graph {0}")]
    OtherGraph(GraphDigest),
    /// Beside the payload it says something else than the payload.
    #[error("the record contradicts its payload: {0}")]
    Contradiction(&'static str),
}

/// A graph record whose every statement was checked against its payload, and its payload against the graph digest. Only
/// the files' sizes and the bytes of blobs are left to check, when they are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphRecord {
    digest: GraphDigest,
    payload: GraphPayload,
    files: Vec<RecordFile>,
}

impl GraphRecord {
    /// Makes the record of `payload`. `size` gives the length of a file, asked for once a file in the record's order.
    ///
    /// # Errors
    /// [`InvalidRecord::Contradiction`] where the graph is not closed, acyclic and reachable from its entry.
    pub fn new(payload: GraphPayload, size: impl Fn(&FileId) -> u64) -> Result<Self, InvalidRecord> {
        let files = files_of(&payload, size);
        check_graph(&files, payload.entry())?;
        Ok(Self {
            digest: payload.digest(),
            payload,
            files,
        })
    }

    /// Parses `text`, the record that was stored or sent for `wanted`, and checks it.
    ///
    /// # Errors
    /// [`InvalidRecord`].
    pub fn parse(text: &str, wanted: GraphDigest) -> Result<Self, InvalidRecord> {
        let document: Document = canonical::from_json(text)?;
        if document.version != 1 {
            return Err(InvalidRecord::Version(document.version));
        }
        let digest = GraphDigest::of(document.payload.as_bytes());
        if digest != wanted {
            return Err(InvalidRecord::OtherGraph(digest));
        }
        let payload = GraphPayload::parse(&document.payload)?;
        let sizes: HashMap<&FileId, u64> = document.files.iter().map(|file| (&file.id, file.size)).collect();
        let files = files_of(&payload, |id| sizes.get(id).copied().unwrap_or_default());
        if document.files != files {
            return Err(InvalidRecord::Contradiction("its files"));
        }
        if document.entry != *payload.entry() {
            return Err(InvalidRecord::Contradiction("its entry"));
        }
        check_graph(&files, payload.entry())?;
        Ok(Self { digest, payload, files })
    }

    /// The record's canonical JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        canonical::to_json(&Written {
            version: 1,
            payload: &self.payload.to_json(),
            files: &self.files,
            entry: self.payload.entry(),
        })
    }

    /// The graph digest.
    #[must_use]
    pub fn digest(&self) -> GraphDigest {
        self.digest
    }

    /// The digest payload.
    #[must_use]
    pub fn payload(&self) -> &GraphPayload {
        &self.payload
    }

    /// The files, in the payload's order.
    #[must_use]
    pub fn files(&self) -> &[RecordFile] {
        &self.files
    }

    /// The file with id `id`.
    #[must_use]
    pub fn file(&self, id: &str) -> Option<&RecordFile> {
        self.files.iter().find(|file| file.id.as_str() == id)
    }

    /// The entry's file.
    #[must_use]
    pub fn entry(&self) -> Option<&RecordFile> {
        self.file(self.payload.entry().as_str())
    }
}

fn files_of(payload: &GraphPayload, size: impl Fn(&FileId) -> u64) -> Vec<RecordFile> {
    let one = |kind, sha256| {
        let id = payload.entry().clone();
        let size = size(&id);
        vec![RecordFile {
            id,
            kind,
            sha256,
            size,
            dependencies: Vec::new(),
        }]
    };
    let entries = match payload {
        GraphPayload::Js(payload) => &payload.entries,
        GraphPayload::Wasm(payload) => &payload.entries,
        GraphPayload::Host(host) => return one(DeliveredKind::Host, BlobDigest::of(host.facade.as_bytes())),
        GraphPayload::Npm(npm) => return one(DeliveredKind::Js, npm.source),
    };
    let file = |entry: &crate::payload::GraphEntry| RecordFile {
        id: entry.id.clone(),
        kind: entry.kind.into(),
        sha256: entry.bytes,
        size: size(&entry.id),
        dependencies: entry.dependencies.clone(),
    };
    entries.iter().map(file).collect()
}

/// Checks that every dependency is a file of the graph, that there is no cycle, and that the entry reaches every file.
/// Iterative: a hostile record may be deep.
fn check_graph(files: &[RecordFile], entry: &FileId) -> Result<(), InvalidRecord> {
    let index: HashMap<&FileId, usize> = files.iter().enumerate().map(|(i, file)| (&file.id, i)).collect();
    if index.len() != files.len() {
        return Err(InvalidRecord::Contradiction("a file listed twice"));
    }
    let start = *index
        .get(entry)
        .ok_or(InvalidRecord::Contradiction("an entry that is no file"))?;
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        Unseen,
        Open,
        Done,
    }
    let mut marks = vec![Mark::Unseen; files.len()];
    let mut stack = vec![(start, false)];
    while let Some((at, leave)) = stack.pop() {
        let (Some(mark), Some(file)) = (marks.get_mut(at), files.get(at)) else {
            continue;
        };
        if leave {
            *mark = Mark::Done;
            continue;
        }
        if *mark != Mark::Unseen {
            continue;
        }
        *mark = Mark::Open;
        stack.push((at, true));
        for dependency in &file.dependencies {
            let next = *index
                .get(dependency)
                .ok_or(InvalidRecord::Contradiction("a dependency outside the graph"))?;
            match marks.get(next) {
                Some(Mark::Unseen) => stack.push((next, false)),
                Some(Mark::Open) => return Err(InvalidRecord::Contradiction("a cycle")),
                Some(Mark::Done) | None => {}
            }
        }
    }
    if marks.contains(&Mark::Unseen) {
        return Err(InvalidRecord::Contradiction("a file that the entry does not reach"));
    }
    Ok(())
}
