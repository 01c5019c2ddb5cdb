//! What a run is given: a module's graph record with the bytes of its files, proven against each other.

use std::sync::Arc;

use packferry_core::digest::BlobDigest;
use packferry_core::id::FileId;
use packferry_core::record::{GraphRecord, RecordFile};

/// The graph of one declared module. The record is proven by its type, the bodies here.
#[derive(Debug, Clone)]
pub struct Graph {
    record: GraphRecord,
    bodies: Vec<Arc<[u8]>>,
}

/// The bodies are not those that the record names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGraph {
    /// Another number of bodies than files.
    #[error("the graph of {specifier} has {files} files, and {bodies} bodies were given")]
    Count {
        /// The module.
        specifier: String,
        /// Files of the record.
        files: usize,
        /// Bodies given.
        bodies: usize,
    },
    /// A body that its file's SHA-256 does not name.
    #[error("{specifier}: the bytes of {file} are not those that the graph record names")]
    Body {
        /// The module.
        specifier: String,
        /// The file.
        file: FileId,
    },
}

impl Graph {
    /// Joins `record` with `bodies`, the bytes of its files in its order.
    ///
    /// # Errors
    /// [`InvalidGraph`].
    pub fn new(record: GraphRecord, bodies: Vec<Arc<[u8]>>) -> Result<Self, InvalidGraph> {
        let specifier = || record.payload().specifier().to_string();
        if record.files().len() != bodies.len() {
            return Err(InvalidGraph::Count {
                specifier: specifier(),
                files: record.files().len(),
                bodies: bodies.len(),
            });
        }
        for (file, body) in record.files().iter().zip(&bodies) {
            if BlobDigest::of(body) != file.sha256 {
                return Err(InvalidGraph::Body {
                    specifier: specifier(),
                    file: file.id.clone(),
                });
            }
        }
        Ok(Self { record, bodies })
    }

    /// The graph's record.
    #[must_use]
    pub fn record(&self) -> &GraphRecord {
        &self.record
    }

    /// The bytes of the files, in the record's order.
    #[must_use]
    pub fn bodies(&self) -> &[Arc<[u8]>] {
        &self.bodies
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&RecordFile, &Arc<[u8]>)> {
        self.record.files().iter().zip(&self.bodies)
    }
}
