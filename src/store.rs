//! What a request needs from outside: storage, a hash, a clock and a pause. One trait, and its in-memory double for tests;
//! Workers KV is in `kv.rs`. No caching and no checking here.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::Poll;

use packferry_core::digest::BlobDigest;
use packferry_core::key::StorageKey;

/// How long storage may answer from its own cache at this location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTime {
    /// A year: the key is content-addressed, so what it names cannot change. Its absence can, and KV caches that too.
    Forever,
    /// The least that KV takes, 30 seconds: for pointers, and to look again before a miss is believed.
    Least,
}

/// Storage or the runtime did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFailure(pub String);

/// A value as it was read, where the runtime keeps it: copied into memory of ours only to be parsed.
pub trait Bytes {
    /// Their number.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of those in `range`; fewer where it reaches past the end.
    fn copy(&self, range: Range<usize>) -> Vec<u8>;
}

/// Checked bytes, in the form in which the runtime sends them. Cheap to clone.
pub trait Body: Clone {
    /// Their number.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Storage, and what else of the runtime a request needs. One thread: futures need not be `Send`.
#[expect(
    async_fn_in_trait,
    reason = "an isolate has one thread, so nobody needs a Send bound"
)]
pub trait Store {
    /// A value as it was read.
    type Bytes: Bytes;
    /// A value as it is kept and sent.
    type Body: Body;
    /// What the runtime makes of a finished answer, once.
    type Dress: Default;

    /// Reads a value; none where the key does not exist.
    async fn read(&self, key: &StorageKey, cache: CacheTime) -> Result<Option<Self::Bytes>, StoreFailure>;

    /// Hashes those of `bytes` that lie in `range`.
    async fn sha256(&self, bytes: &Self::Bytes, range: Range<usize>) -> Result<[u8; 32], StoreFailure>;

    /// Turns checked bytes into what is kept.
    fn keep(&self, bytes: Self::Bytes) -> Result<Self::Body, StoreFailure>;

    /// Lets other requests go on for some milliseconds.
    async fn pause(&self, milliseconds: u32);

    /// Milliseconds since 1970. In a Worker it moves only with I/O.
    fn now(&self) -> u64;
}

impl Bytes for Rc<[u8]> {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    fn copy(&self, range: Range<usize>) -> Vec<u8> {
        let end = range.end.min(<[u8]>::len(self));
        self.get(range.start..end).unwrap_or_default().to_vec()
    }
}

impl Body for Rc<[u8]> {
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }
}

/// What [`MemoryStore`] does instead of answering a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreFault {
    /// The key does not exist.
    Missing,
    /// Storage fails.
    Throws,
    /// It answers, after so many milliseconds.
    Slow(u32),
    /// It answers with other bytes.
    Bytes(Vec<u8>),
    /// It answers with only the first bytes of the value.
    Truncated(usize),
    /// It answers with the last byte changed.
    Flipped,
}

/// Storage in memory, for tests: counts reads, and follows a script of faults for each key.
#[derive(Debug, Default, Clone)]
pub struct MemoryStore {
    values: RefCell<BTreeMap<String, Rc<[u8]>>>,
    script: RefCell<BTreeMap<String, VecDeque<StoreFault>>>,
    reads: RefCell<Vec<String>>,
    clock: Cell<u64>,
}

impl MemoryStore {
    /// Sets a value.
    pub fn put(&self, key: &StorageKey, value: impl Into<Vec<u8>>) {
        self.values.borrow_mut().insert(key.to_string(), Rc::from(value.into()));
    }

    /// Removes a value.
    pub fn remove(&self, key: &StorageKey) {
        self.values.borrow_mut().remove(&key.to_string());
    }

    /// Makes the next reads of `key` meet these faults, one each.
    pub fn break_reads(&self, key: &StorageKey, faults: impl IntoIterator<Item = StoreFault>) {
        self.script
            .borrow_mut()
            .insert(key.to_string(), faults.into_iter().collect());
    }

    /// The keys read since the last call, in order.
    pub fn take_reads(&self) -> Vec<String> {
        self.reads.take()
    }

    /// Moves the clock on.
    pub fn wait(&self, milliseconds: u64) {
        self.clock.set(self.clock.get() + milliseconds);
    }
}

impl Store for MemoryStore {
    type Bytes = Rc<[u8]>;
    type Body = Rc<[u8]>;
    type Dress = ();

    async fn read(&self, key: &StorageKey, _cache: CacheTime) -> Result<Option<Rc<[u8]>>, StoreFailure> {
        let key = key.to_string();
        self.reads.borrow_mut().push(key.clone());
        let fault = self.script.borrow_mut().get_mut(&key).and_then(VecDeque::pop_front);
        yield_once().await;
        let value = || self.values.borrow().get(&key).cloned();
        match fault {
            None => Ok(value()),
            Some(StoreFault::Missing) => Ok(None),
            Some(StoreFault::Throws) => Err(StoreFailure("storage did not answer".to_owned())),
            Some(StoreFault::Slow(milliseconds)) => {
                self.pause(milliseconds).await;
                Ok(value())
            }
            Some(StoreFault::Bytes(bytes)) => Ok(Some(bytes.into())),
            Some(StoreFault::Truncated(length)) => Ok(value().map(|bytes| Rc::from(bytes.copy(0..length)))),
            Some(StoreFault::Flipped) => Ok(value().map(|bytes| {
                let mut bytes = bytes.to_vec();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
                Rc::from(bytes)
            })),
        }
    }

    async fn sha256(&self, bytes: &Rc<[u8]>, range: Range<usize>) -> Result<[u8; 32], StoreFailure> {
        yield_once().await;
        Ok(*BlobDigest::of(&bytes.copy(range)).as_bytes())
    }

    fn keep(&self, bytes: Rc<[u8]>) -> Result<Rc<[u8]>, StoreFailure> {
        Ok(bytes)
    }

    async fn pause(&self, milliseconds: u32) {
        let until = self.clock.get() + u64::from(milliseconds);
        yield_once().await;
        // Tasks that pause at the same time wake at the same time.
        self.clock.set(self.clock.get().max(until));
    }

    fn now(&self) -> u64 {
        self.clock.get()
    }
}

/// Lets the executor run other tasks, as every real I/O does.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
