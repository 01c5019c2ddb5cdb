//! What an isolate remembers: checked objects, within a budget of bytes; ids known to be absent, for seconds and within a
//! bound; who is fetching what just now, and how that ended. Nothing here is fetched or checked.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::rc::Rc;

use packferry_core::digest::BlobDigest;
use packferry_core::key::StorageKey;
use packferry_core::manifest::{PackEntry, Root};
use packferry_core::record::GraphRecord;

use crate::problem::Problem;
use crate::store::Body;

/// In which form an object is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// Parsed.
    Parsed(StorageKey),
    /// As bytes to send.
    Bytes(StorageKey),
}

/// A graph's closure, checked.
#[derive(Debug)]
pub(crate) struct Closure<B> {
    /// The whole body.
    pub(crate) body: B,
    /// SHA-256 of the whole body.
    pub(crate) sha256: BlobDigest,
}

/// A checked object. Cheap to clone.
#[derive(Debug)]
pub(crate) enum Object<B> {
    /// Bytes that are what their key's digest names.
    Body(B),
    /// A graph record.
    Record(Rc<GraphRecord>),
    /// A manifest's root.
    Root(Rc<Root>),
    /// A shard's packs.
    Packs(Rc<Vec<PackEntry>>),
    /// A closure.
    Closure(Rc<Closure<B>>),
}

impl<B: Clone> Clone for Object<B> {
    fn clone(&self) -> Self {
        match self {
            Self::Body(body) => Self::Body(body.clone()),
            Self::Record(record) => Self::Record(Rc::clone(record)),
            Self::Root(root) => Self::Root(Rc::clone(root)),
            Self::Packs(packs) => Self::Packs(Rc::clone(packs)),
            Self::Closure(closure) => Self::Closure(Rc::clone(closure)),
        }
    }
}

/// Bytes that an entry takes beside its content, roughly.
const ENTRY_BYTES: usize = 256;
/// How much more memory parsed JSON takes than its text, roughly.
const PARSED_FACTOR: usize = 3;

impl<B: Body> Object<B> {
    /// What the object, read from `length` bytes, takes of the budget.
    #[must_use]
    pub(crate) fn weight(&self, length: usize) -> usize {
        let content = match self {
            Self::Body(_) | Self::Closure(_) => length,
            Self::Record(_) | Self::Root(_) | Self::Packs(_) => length.saturating_mul(PARSED_FACTOR),
        };
        content.saturating_add(ENTRY_BYTES)
    }
}

/// A map that forgets what was used longest ago when its values weigh more than its budget.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    budget: usize,
    weight: usize,
    tick: u64,
    entries: HashMap<K, Entry<V>>,
    by_use: BTreeMap<u64, K>,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<K: Hash + Eq + Clone, V: Clone> Lru<K, V> {
    /// An empty map with a budget.
    #[must_use]
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            budget,
            weight: 0,
            tick: 0,
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    /// The value of `key`, which counts as used.
    pub(crate) fn get<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.tick += 1;
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.by_use.remove(&entry.used) {
            self.by_use.insert(self.tick, key);
        }
        entry.used = self.tick;
        Some(entry.value.clone())
    }

    /// Remembers a value; one heavier than a quarter of the budget is not, so that it cannot push out everything else.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) {
        self.remove(&key);
        if weight > self.budget / 4 {
            return;
        }
        while self.weight + weight > self.budget {
            let Some((_, oldest)) = self.by_use.pop_first() else {
                break;
            };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.weight -= entry.weight;
            }
        }
        self.tick += 1;
        self.weight += weight;
        self.by_use.insert(self.tick, key.clone());
        let used = self.tick;
        self.entries.insert(key, Entry { value, weight, used });
    }

    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.weight -= entry.weight;
            self.by_use.remove(&entry.used);
        }
    }
}

/// Keys known to be absent: for [`ABSENT_MILLISECONDS`], and no more than [`ABSENT_KEYS`] of them, so that a flood of
/// invented ids takes no memory.
#[derive(Debug, Default)]
struct Absent {
    until: HashMap<StorageKey, u64>,
    order: VecDeque<StorageKey>,
}

const ABSENT_MILLISECONDS: u64 = 5_000;
const ABSENT_KEYS: usize = 1_024;

impl Absent {
    fn contains(&self, key: &StorageKey, now: u64) -> bool {
        self.until.get(key).is_some_and(|until| now < *until)
    }

    fn insert(&mut self, key: StorageKey, now: u64) {
        if self.until.insert(key.clone(), now + ABSENT_MILLISECONDS).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > ABSENT_KEYS {
            if let Some(oldest) = self.order.pop_front() {
                self.until.remove(&oldest);
            }
        }
    }
}

/// How a fetch ended that gave no object: with a problem, or because storage lacks it.
pub(crate) type Ending = Option<Problem>;

/// The last fetches that gave no object, for those who were waiting for them: each would find the same, one after the other.
#[derive(Debug)]
struct Endings {
    count: u64,
    last: Lru<Slot, (u64, Ending)>,
}

/// Fetches whose ending is known.
const ENDINGS: usize = 256;

/// Everything an isolate remembers of objects. Never borrowed across an await.
#[derive(Debug)]
pub(crate) struct Memory<B> {
    objects: RefCell<Lru<Slot, Object<B>>>,
    absent: RefCell<Absent>,
    in_flight: RefCell<HashMap<Slot, u64>>,
    endings: RefCell<Endings>,
}

/// How long a fetch is left alone before somebody else takes it over. A request that was cancelled never says so: its mark goes
/// by age.
const PATIENCE_MILLISECONDS: u64 = 1_000;
/// Marks beyond which those of cancelled requests are swept up.
const MARKS: usize = 1_024;

impl<B: Body> Memory<B> {
    /// An empty memory.
    #[must_use]
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            objects: RefCell::new(Lru::new(budget)),
            absent: RefCell::default(),
            in_flight: RefCell::default(),
            endings: RefCell::new(Endings {
                count: 0,
                last: Lru::new(ENDINGS),
            }),
        }
    }

    /// A remembered object.
    #[must_use]
    pub(crate) fn get(&self, slot: &Slot) -> Option<Object<B>> {
        self.objects.borrow_mut().get(slot)
    }

    /// Remembers an object that was read from `length` bytes.
    pub(crate) fn insert(&self, slot: Slot, object: Object<B>, length: usize) {
        let weight = object.weight(length);
        self.objects.borrow_mut().insert(slot, object, weight);
    }

    /// Whether `key` was absent a moment ago.
    #[must_use]
    pub(crate) fn is_absent(&self, key: &StorageKey, now: u64) -> bool {
        self.absent.borrow().contains(key, now)
    }

    /// Remembers that `key` is absent.
    pub(crate) fn note_absent(&self, key: StorageKey, now: u64) {
        self.absent.borrow_mut().insert(key, now);
    }

    /// How many fetches have given no object so far.
    #[must_use]
    pub(crate) fn endings(&self) -> u64 {
        self.endings.borrow().count
    }

    /// How the last fetch of `slot` ended, if it gave no object and was none of the first `before`.
    #[must_use]
    pub(crate) fn ending_since(&self, slot: &Slot, before: u64) -> Option<Ending> {
        let (count, ending) = self.endings.borrow_mut().last.get(slot)?;
        (count > before).then_some(ending)
    }

    /// Marks that the caller fetches `slot`, unless somebody else is doing so: then none.
    pub(crate) fn begin(&self, slot: &Slot, now: u64) -> Option<Turn<'_, B>> {
        let mut in_flight = self.in_flight.borrow_mut();
        let fresh = |since: &u64| now.saturating_sub(*since) < PATIENCE_MILLISECONDS;
        if in_flight.get(slot).is_some_and(fresh) {
            return None;
        }
        if in_flight.len() >= MARKS {
            in_flight.retain(|_, since| fresh(since));
        }
        in_flight.insert(slot.clone(), now);
        let slot = slot.clone();
        Some(Turn {
            memory: self,
            slot,
            since: now,
        })
    }
}

/// The caller's turn to fetch; others wait until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a, B> {
    memory: &'a Memory<B>,
    slot: Slot,
    since: u64,
}

impl<B> Turn<'_, B> {
    /// Ends the turn without an object. One that was taken over meanwhile says nothing: the other may find more.
    pub(crate) fn end(self, ending: Ending) {
        if self.memory.in_flight.borrow().get(&self.slot) == Some(&self.since) {
            let mut endings = self.memory.endings.borrow_mut();
            endings.count += 1;
            let count = endings.count;
            endings.last.insert(self.slot.clone(), (count, ending), 1);
        }
    }
}

impl<B> Drop for Turn<'_, B> {
    fn drop(&mut self) {
        let mut in_flight = self.memory.in_flight.borrow_mut();
        if in_flight.get(&self.slot) == Some(&self.since) {
            in_flight.remove(&self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_the_budget_holds() {
        let mut lru = Lru::new(100);
        for key in 0..4 {
            lru.insert(key, key, 25);
        }
        assert_eq!(lru.get(&0), Some(0));
        lru.insert(4, 4, 20);
        assert_eq!((lru.get(&1), lru.get(&0), lru.get(&4)), (None, Some(0), Some(4)));
        lru.insert(5, 5, 26);
        assert_eq!(
            (lru.get(&5), lru.weight),
            (None, 95),
            "what is too heavy is not remembered"
        );
        lru.insert(4, 40, 5);
        assert_eq!((lru.get(&4), lru.weight), (Some(40), 80), "a key weighs once");
    }

    #[test]
    fn absence_is_remembered_for_seconds_and_within_a_bound() {
        let key = |n: usize| StorageKey::Channel(n.to_string());
        let mut absent = Absent::default();
        absent.insert(key(0), 0);
        assert!(absent.contains(&key(0), ABSENT_MILLISECONDS - 1) && !absent.contains(&key(0), ABSENT_MILLISECONDS));
        for n in 0..10_000 {
            absent.insert(key(n), 1);
        }
        assert!(absent.contains(&key(9_999), 2) && !absent.contains(&key(0), 2));
        assert_eq!((absent.until.len(), absent.order.len()), (ABSENT_KEYS, ABSENT_KEYS));
    }

    #[test]
    fn a_turn_ends_with_its_guard_or_by_age() {
        let memory: Memory<Rc<[u8]>> = Memory::new(0);
        let slot = Slot::Bytes(StorageKey::Channel("a".to_owned()));
        let first = memory.begin(&slot, 0);
        assert!(first.is_some() && memory.begin(&slot, PATIENCE_MILLISECONDS - 1).is_none());
        let second = memory.begin(&slot, PATIENCE_MILLISECONDS);
        assert!(second.is_some());
        drop(first);
        assert!(
            memory.begin(&slot, PATIENCE_MILLISECONDS).is_none(),
            "the old guard leaves the new mark"
        );
        drop(second);
        assert!(memory.begin(&slot, PATIENCE_MILLISECONDS).is_some());
    }

    #[test]
    fn an_ending_is_for_those_who_waited_and_not_of_a_turn_that_was_taken_over() {
        let memory: Memory<Rc<[u8]>> = Memory::new(0);
        let slot = Slot::Bytes(StorageKey::Channel("a".to_owned()));
        let before = memory.endings();
        let first = memory.begin(&slot, 0).unwrap();
        let second = memory.begin(&slot, PATIENCE_MILLISECONDS).unwrap();
        first.end(None);
        assert_eq!(memory.ending_since(&slot, before), None);
        second.end(None);
        assert_eq!(memory.ending_since(&slot, before), Some(None));
        assert_eq!(
            memory.ending_since(&slot, memory.endings()),
            None,
            "who comes later looks itself"
        );
        for n in 0..1_000 {
            let other = Slot::Bytes(StorageKey::Channel(n.to_string()));
            memory.begin(&other, 0).unwrap().end(None);
        }
        assert_eq!(memory.endings.borrow().last.entries.len(), ENDINGS);
    }
}
