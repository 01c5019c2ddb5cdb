//! Reading through the isolate's memory: every object is checked against its digest before it is remembered or returned, a
//! miss or a mismatch is looked at once more before it is believed, and requests that miss one key together fetch it once.

use std::rc::Rc;

use packferry_core::digest::{BlobDigest, GraphDigest, ManifestDigest, ShardDigest};
use packferry_core::key::StorageKey;
use packferry_core::manifest::{PackEntry, Root, parse_packs};
use packferry_core::record::GraphRecord;

use crate::config::Config;
use crate::guard::PolicyCache;
use crate::memory::{Memory, Object, Slot};
use crate::problem::{Corruption, Fault, Problem};
use crate::release::Releases;
use crate::store::{Bytes, CacheTime, Store, StoreFailure};
use crate::trace::Trace;
use crate::warm::Warm;

/// A worker: its configuration, its storage, and what this isolate remembers.
pub struct Edge<S: Store> {
    /// The configuration.
    pub config: Config,
    /// Storage.
    pub store: S,
    pub(crate) memory: Memory<S::Body>,
    pub(crate) releases: Releases,
    pub(crate) policy: PolicyCache,
    pub(crate) warm: Warm<S::Dress>,
}

impl<S: Store> Edge<S> {
    /// A worker that remembers nothing yet.
    pub fn new(config: Config, store: S) -> Self {
        Self {
            memory: Memory::new(config.cache_bytes),
            releases: Releases::new(store.now()),
            policy: PolicyCache::default(),
            warm: Warm::new(config.cache_bytes / 4),
            config,
            store,
        }
    }
}

/// One request's way to storage, with what it has cost so far.
pub struct Reader<'a, S: Store> {
    pub(crate) edge: &'a Edge<S>,
    pub(crate) trace: &'a Trace,
}

impl<S: Store> Clone for Reader<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Store> Copy for Reader<'_, S> {}

/// How bytes contradict the digest that names them.
pub(crate) type Contradiction = String;
/// What checking bytes gives: an object, a contradiction, or no answer because the runtime failed.
pub(crate) type Checked<T> = Result<Result<T, Contradiction>, Problem>;

/// Milliseconds between looks at whether somebody else has fetched what we want: at first, and at most.
const PAUSES: (u32, u32) = (5, 50);
/// Milliseconds for which a request waits for others to fetch what it wants before it does so itself.
const WAIT_MILLISECONDS: u32 = 5_000;

impl<'a, S: Store> Reader<'a, S> {
    /// The way to `edge` for one request.
    pub fn new(edge: &'a Edge<S>, trace: &'a Trace) -> Self {
        Self { edge, trace }
    }

    /// A file's bytes, checked. None where storage lacks them.
    pub(crate) async fn blob(&self, digest: BlobDigest) -> Result<Option<S::Body>, Problem> {
        self.bytes(StorageKey::Blob(digest), digest.as_bytes()).await
    }

    /// Exact bytes of an object whose key is the SHA-256 of its value.
    pub(crate) async fn bytes(&self, key: StorageKey, digest: &[u8; 32]) -> Result<Option<S::Body>, Problem> {
        let check = async |bytes: S::Bytes| match self.check_digest(&key, &bytes, digest).await? {
            Ok(()) => Ok(Ok(Object::Body(self.keep(&key, bytes)?))),
            Err(contradiction) => Ok(Err(contradiction)),
        };
        let object = self.object(Slot::Bytes(key.clone()), &key, check).await?;
        Ok(object.and_then(|object| match object {
            Object::Body(body) => Some(body),
            _ => None,
        }))
    }

    /// A graph's record. None where storage lacks it.
    pub(crate) async fn record(&self, graph: GraphDigest) -> Result<Option<Rc<GraphRecord>>, Problem> {
        let key = StorageKey::Graph(graph);
        let check = async |bytes: S::Bytes| {
            let record = text(&bytes, DOCUMENT_BYTES)
                .and_then(|text| GraphRecord::parse(&text, graph).map_err(|error| error.to_string()));
            Ok(record.map(|record| Object::Record(Rc::new(record))))
        };
        let object = self.object(Slot::Parsed(key.clone()), &key, check).await?;
        Ok(object.and_then(|object| match object {
            Object::Record(record) => Some(record),
            _ => None,
        }))
    }

    /// A manifest's root.
    pub(crate) async fn root(&self, manifest: ManifestDigest) -> Result<Rc<Root>, Problem> {
        let key = StorageKey::Manifest(manifest);
        let check = async |bytes: S::Bytes| {
            let checked = self.check_digest(&key, &bytes, manifest.as_bytes()).await?;
            let root = checked.and_then(|()| text(&bytes, DOCUMENT_BYTES));
            let root = root.and_then(|text| Root::parse(&text).map_err(|error| error.to_string()));
            Ok(root.map(|root| Object::Root(Rc::new(root))))
        };
        match self.object(Slot::Parsed(key.clone()), &key, check).await? {
            Some(Object::Root(root)) => Ok(root),
            _ => Err(Fault::Incomplete(key).into()),
        }
    }

    /// A shard's packs.
    pub(crate) async fn packs(&self, shard: ShardDigest) -> Result<Rc<Vec<PackEntry>>, Problem> {
        let key = StorageKey::Shard(shard);
        let check = async |bytes: S::Bytes| {
            let checked = self.check_digest(&key, &bytes, shard.as_bytes()).await?;
            let packs = checked.and_then(|()| text(&bytes, DOCUMENT_BYTES));
            let packs = packs.and_then(|text| parse_packs(&text).map_err(|error| error.to_string()));
            Ok(packs.map(|packs| Object::Packs(Rc::new(packs))))
        };
        match self.object(Slot::Parsed(key.clone()), &key, check).await? {
            Some(Object::Packs(packs)) => Ok(packs),
            _ => Err(Fault::Incomplete(key).into()),
        }
    }

    /// An object from memory, else from storage and then remembered. None where storage lacks it.
    pub(crate) async fn object(
        &self,
        slot: Slot,
        key: &StorageKey,
        check: impl AsyncFn(S::Bytes) -> Checked<Object<S::Body>>,
    ) -> Result<Option<Object<S::Body>>, Problem> {
        let memory = &self.edge.memory;
        let fetch = async || {
            let found = self.read_checked(key, check).await?;
            Ok(found.map(|(object, length)| {
                memory.insert(slot.clone(), object.clone(), length);
                object
            }))
        };
        self.once(&slot, || memory.get(&slot), fetch).await
    }

    /// What is `known`, else what `fetch` gives and makes known: of requests that want it together, one fetches it, and the
    /// others wait until it is known, or share how the fetch ended. Their future is never awaited, since it belongs to another
    /// request and may have been dropped with it: a fetch that takes long is taken over by one of those who wait, and in the end
    /// all go on alone.
    pub(crate) async fn once<T>(
        &self,
        slot: &Slot,
        known: impl Fn() -> Option<T>,
        fetch: impl AsyncFnOnce() -> Result<Option<T>, Problem>,
    ) -> Result<Option<T>, Problem> {
        let memory = &self.edge.memory;
        let before = memory.endings();
        let (mut pause, longest) = PAUSES;
        let mut waited = 0;
        let turn = loop {
            if let Some(known) = known() {
                return Ok(Some(known));
            }
            if let Some(ending) = memory.ending_since(slot, before) {
                return ending.map_or(Ok(None), Err);
            }
            if waited >= WAIT_MILLISECONDS {
                break None;
            }
            if let Some(turn) = memory.begin(slot, self.edge.store.now()) {
                break Some(turn);
            }
            self.edge.store.pause(pause).await;
            waited += pause;
            pause = longest.min(pause * 2);
        };
        let result = fetch().await;
        match (&result, turn) {
            (Ok(None), Some(turn)) => turn.end(None),
            (Err(problem), Some(turn)) => turn.end(Some(problem.clone())),
            (Ok(Some(_)), _) | (_, None) => {}
        }
        result
    }

    /// Reads and checks a content-addressed value. A miss may be one that KV remembers, and damage may lie in its cache only:
    /// both are looked at once more, with the least cache time, before they are believed.
    async fn read_checked<T>(
        &self,
        key: &StorageKey,
        check: impl AsyncFn(S::Bytes) -> Checked<T>,
    ) -> Result<Option<(T, usize)>, Problem> {
        let mut contradiction = None;
        for cache in [CacheTime::Forever, CacheTime::Least] {
            let Some(bytes) = self.read(key, cache).await? else {
                continue;
            };
            let length = bytes.len();
            match check(bytes).await? {
                Ok(object) => return Ok(Some((object, length))),
                Err(cause) => contradiction = Some(cause),
            }
        }
        match contradiction {
            Some(cause) => Err(Corruption {
                key: key.clone(),
                cause,
            }
            .into()),
            None => Ok(None),
        }
    }

    /// Reads a value as it is, and notes what that took and whether storage is well.
    pub(crate) async fn read(&self, key: &StorageKey, cache: CacheTime) -> Result<Option<S::Bytes>, Problem> {
        let begun = self.edge.store.now();
        let read = self.edge.store.read(key, cache).await;
        let now = self.edge.store.now();
        self.trace.note_read(now.saturating_sub(begun));
        self.edge.releases.note_storage(read.is_ok(), now);
        read.map_err(|cause| unavailable(key, cause))
    }

    /// Turns checked bytes into what is kept.
    pub(crate) fn keep(&self, key: &StorageKey, bytes: S::Bytes) -> Result<S::Body, Problem> {
        self.edge.store.keep(bytes).map_err(|cause| unavailable(key, cause))
    }

    /// Checks all `bytes` against the digest that names them.
    pub(crate) async fn check_digest(&self, key: &StorageKey, bytes: &S::Bytes, digest: &[u8; 32]) -> Checked<()> {
        let found = self.sha256(key, bytes, 0..bytes.len()).await?;
        Ok(if found == *digest {
            Ok(())
        } else {
            Err(format!("its bytes are those of {}", BlobDigest::from_bytes(found)))
        })
    }

    /// Hashes a part of `bytes`, which were read from `key`.
    pub(crate) async fn sha256(
        &self,
        key: &StorageKey,
        bytes: &S::Bytes,
        range: std::ops::Range<usize>,
    ) -> Result<[u8; 32], Problem> {
        let begun = self.edge.store.now();
        let found = self.edge.store.sha256(bytes, range).await;
        self.trace.note_check(self.edge.store.now().saturating_sub(begun));
        found.map_err(|cause| unavailable(key, cause))
    }
}

fn unavailable(key: &StorageKey, cause: StoreFailure) -> Problem {
    let key = key.clone();
    Fault::Unavailable { key, cause }.into()
}

/// Bytes of a document that is parsed: an isolate has 128 MB, and storage need not be trusted. What the build writes is far
/// below.
pub(crate) const DOCUMENT_BYTES: usize = 8 << 20;

/// The bytes as text, at most `limit` of them.
pub(crate) fn text(bytes: &impl Bytes, limit: usize) -> Result<String, Contradiction> {
    if bytes.len() > limit {
        return Err(format!("it has {} bytes, and {limit} are the most", bytes.len()));
    }
    String::from_utf8(bytes.copy(0..bytes.len())).map_err(|_| "it is not UTF-8".to_owned())
}
