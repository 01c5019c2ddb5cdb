//! Everything about a stored object in one enum: its key, and whether its content can ever change.

use std::fmt;

use crate::digest::{BlobDigest, GraphDigest, ManifestDigest, ShardDigest};

/// The key of an object in KV.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StorageKey {
    /// A file's bytes as they are delivered.
    Blob(BlobDigest),
    /// A graph record.
    Graph(GraphDigest),
    /// A graph record and all files of the graph in one framed body.
    Closure(GraphDigest),
    /// A manifest's root.
    Manifest(ManifestDigest),
    /// A run of pack entries.
    Shard(ShardDigest),
    /// A channel's envelope.
    Channel(String),
    /// A policy document.
    Policy(String),
}

impl StorageKey {
    /// Whether the key is content-addressed: what it names can never change, so any copy may be cached for ever.
    #[must_use]
    pub fn is_immutable(&self) -> bool {
        !matches!(self, Self::Channel(_) | Self::Policy(_))
    }
}

impl fmt::Display for StorageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blob(digest) => write!(f, "blob/{digest}"),
            Self::Graph(digest) => write!(f, "graph/{digest}"),
            Self::Closure(digest) => write!(f, "closure/{digest}"),
            Self::Manifest(digest) => write!(f, "manifest/{digest}"),
            Self::Shard(digest) => write!(f, "shard/{digest}"),
            Self::Channel(name) => write!(f, "channel/{name}"),
            Self::Policy(name) => write!(f, "policy/{name}"),
        }
    }
}
