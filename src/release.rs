//! Which release answers: the channel is read when its cache time is over, what it points to is adopted once it could be
//! read and checked, and until then the last good one goes on.

use std::cell::RefCell;
use std::rc::Rc;

use packferry_core::channel::{Envelope, Pointer};
use packferry_core::digest::ManifestDigest;
use packferry_core::key::StorageKey;
use packferry_core::manifest::{Location, PackEntry, Root, find_pack};
use packferry_core::time::format_time;

use crate::config::Source;
use crate::fetch::{Edge, Reader, text};
use crate::memory::Slot;
use crate::problem::{Fault, Problem};
use crate::store::{CacheTime, Store};

/// A release that was read and checked.
#[derive(Debug)]
pub(crate) struct Release {
    /// Its manifest.
    pub(crate) manifest: ManifestDigest,
    /// The manifest's root.
    pub(crate) root: Rc<Root>,
    /// The channel's sequence that led to it.
    pub(crate) sequence: Option<u64>,
}

/// The channel's newest envelope that was taken.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    /// Its exact bytes.
    pub(crate) envelope: Rc<str>,
    payload: String,
    pointer: Pointer,
}

/// What this isolate knows of releases, and how it is.
#[derive(Debug)]
pub(crate) struct Releases {
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// When the channel is read again.
    check_at: u64,
    taken: Option<Taken>,
    current: Option<Rc<Release>>,
    /// When a release that could not be adopted is tried again.
    retry_at: u64,
    channel_problem: Option<Problem>,
    release_problem: Option<Problem>,
    storage_fails: bool,
    policy_fails: bool,
    degraded: bool,
    since: u64,
}

/// How the worker is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) current: Option<(ManifestDigest, Option<u64>)>,
    pub(crate) degraded: bool,
    pub(crate) since: u64,
    pub(crate) storage_fails: bool,
    pub(crate) problem: Option<String>,
}

impl Releases {
    pub(crate) fn new(now: u64) -> Self {
        Self {
            state: RefCell::new(State {
                check_at: 0,
                taken: None,
                current: None,
                retry_at: 0,
                channel_problem: None,
                release_problem: None,
                storage_fails: false,
                policy_fails: false,
                degraded: false,
                since: now,
            }),
        }
    }

    /// Notes whether storage answered its last read.
    pub(crate) fn note_storage(&self, well: bool, now: u64) {
        self.change(now, |state| state.storage_fails = !well);
    }

    /// Notes whether the policy could be had.
    pub(crate) fn note_policy(&self, well: bool, now: u64) {
        self.change(now, |state| state.policy_fails = !well);
    }

    /// How the worker is.
    pub(crate) fn condition(&self) -> Condition {
        let state = self.state.borrow();
        let problem = state.channel_problem.as_ref().or(state.release_problem.as_ref());
        let policy = state.policy_fails.then(|| "the policy cannot be had".to_owned());
        Condition {
            current: state
                .current
                .as_ref()
                .map(|release| (release.manifest, release.sequence)),
            degraded: state.is_degraded(),
            since: state.since,
            storage_fails: state.storage_fails,
            problem: problem.map(public_sentence).or(policy),
        }
    }

    fn change<T>(&self, now: u64, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.borrow_mut();
        let result = change(&mut state);
        let degraded = state.is_degraded();
        if degraded != state.degraded {
            state.degraded = degraded;
            state.since = now;
        }
        result
    }
}

/// A problem as everyone may read it: what storage said of a failure stays in the log.
pub(crate) fn public_sentence(problem: &Problem) -> String {
    match problem {
        Problem::Fault(Fault::Unavailable { key, .. }) => format!("storage failed to read {key}"),
        other => other.to_string(),
    }
}

impl State {
    fn is_degraded(&self) -> bool {
        self.channel_problem.is_some() || self.release_problem.is_some() || self.storage_fails || self.policy_fails
    }
}

impl<S: Store> Edge<S> {
    /// Whether `manifest` is what answers named ids just now, without anything being read or tried.
    pub(crate) fn is_answering(&self, manifest: ManifestDigest) -> bool {
        let state = self.releases.state.borrow();
        let current = state
            .current
            .as_ref()
            .is_some_and(|release| release.manifest == manifest);
        current
            && match &self.config.source {
                Source::Nothing(_) => false,
                Source::Manifest(_) => true,
                Source::Channel(_) => {
                    let now = self.store.now();
                    let newest = state
                        .taken
                        .as_ref()
                        .is_some_and(|taken| taken.pointer.manifest == manifest);
                    now < state.check_at && (newest || now < state.retry_at)
                }
            }
    }
}

/// Milliseconds for which a request that reads the channel again may hold off others that have a release to answer from.
const CLAIM_MILLISECONDS: u64 = 2_000;
/// Bytes of an envelope: storage need not be trusted, and a pointer with some signatures is small.
const ENVELOPE_BYTES: usize = 65_536;

impl<S: Store> Reader<'_, S> {
    /// What `pick` takes from pack `name`, of the release that answers; the pack may be absent.
    pub(crate) async fn pack<T>(
        &self,
        name: &str,
        pick: impl Fn(&Release, Option<&PackEntry>) -> T,
    ) -> Result<T, Problem> {
        let load = async |root: &Rc<Root>| self.pack_in(root, name).await;
        let (release, place) = self.release(load).await?;
        Ok(pick(&release, place.entry(name)))
    }

    /// The release that answers, with what `load` reads of it. A new one is adopted only once its root and that were read
    /// and checked; until then the last good one answers.
    pub(crate) async fn release<T>(
        &self,
        load: impl AsyncFn(&Rc<Root>) -> Result<T, Problem>,
    ) -> Result<(Rc<Release>, T), Problem> {
        let candidate = self.candidate().await?;
        let releases = &self.edge.releases;
        let current = releases.state.borrow().current.clone();
        let now = self.edge.store.now();
        if let Some((manifest, sequence)) = candidate
            && (current.is_none() || releases.state.borrow().retry_at <= now)
        {
            match self.try_release(manifest, sequence, &load).await {
                Ok((release, loaded)) => {
                    self.adopt(&release);
                    return Ok((release, loaded));
                }
                Err(problem) => {
                    self.note_rejected(&problem);
                    if current.is_none() {
                        return Err(problem);
                    }
                }
            }
        }
        let release = current.ok_or_else(|| self.no_release())?;
        let loaded = load(&release.root).await?;
        Ok((release, loaded))
    }

    async fn try_release<T>(
        &self,
        manifest: ManifestDigest,
        sequence: Option<u64>,
        load: &impl AsyncFn(&Rc<Root>) -> Result<T, Problem>,
    ) -> Result<(Rc<Release>, T), Problem> {
        let root = self.root(manifest).await?;
        let loaded = load(&root).await?;
        let release = Release {
            manifest,
            root,
            sequence,
        };
        Ok((Rc::new(release), loaded))
    }

    /// Makes `release` the one that answers, unless a newer one was adopted meanwhile.
    fn adopt(&self, release: &Rc<Release>) {
        self.edge.releases.change(self.edge.store.now(), |state| {
            let newer = state
                .current
                .as_ref()
                .is_some_and(|current| current.sequence > release.sequence);
            if !newer {
                state.current = Some(Rc::clone(release));
                state.release_problem = None;
            }
        });
    }

    fn note_rejected(&self, problem: &Problem) {
        self.trace.note_trouble(problem);
        let now = self.edge.store.now();
        self.edge.releases.change(now, |state| {
            state.retry_at = now + self.pointer_cache_milliseconds();
            state.release_problem = Some(problem.clone());
        });
    }

    /// Why there is no release.
    pub(crate) fn no_release(&self) -> Problem {
        let problem = self.edge.releases.state.borrow().channel_problem.clone();
        problem.unwrap_or_else(|| Fault::Configuration("no release was taken").into())
    }

    fn pointer_cache_milliseconds(&self) -> u64 {
        u64::from(self.edge.config.pointer_cache_seconds) * 1000
    }

    /// The release that should answer, where it is not the one that does.
    async fn candidate(&self) -> Result<Option<(ManifestDigest, Option<u64>)>, Problem> {
        let wanted = match &self.edge.config.source {
            Source::Nothing(why) => return Err(Fault::Configuration(why).into()),
            Source::Manifest(manifest) => Some((*manifest, None)),
            Source::Channel(name) => {
                let taken = self.channel(name).await;
                taken.map(|taken| (taken.pointer.manifest, Some(taken.pointer.sequence)))
            }
        };
        let state = self.edge.releases.state.borrow();
        let current = state
            .current
            .as_ref()
            .map(|release| (release.manifest, release.sequence));
        Ok(wanted.filter(|wanted| Some(*wanted) != current))
    }

    /// The newest envelope of channel `name` that was taken: read again when the cache time is over. Where it cannot be, that
    /// is noted and the last one goes on.
    pub(crate) async fn channel(&self, name: &str) -> Option<Taken> {
        let releases = &self.edge.releases;
        let known = || releases.state.borrow().taken.clone();
        if known().is_none() {
            let slot = Slot::Bytes(StorageKey::Channel(name.to_owned()));
            let looked = self.once(&slot, known, async || {
                self.look_at_channel(name).await;
                Ok(known())
            });
            // What went wrong is noted.
            return looked.await.ok().flatten();
        }
        if releases.state.borrow().check_at <= self.edge.store.now() {
            // Others go on with what is known while this request looks.
            releases.state.borrow_mut().check_at = self.edge.store.now() + CLAIM_MILLISECONDS;
            self.look_at_channel(name).await;
        }
        known()
    }

    /// Reads the channel, and takes what it says or notes why not.
    async fn look_at_channel(&self, name: &str) {
        let read = self.read_channel(name).await;
        let now = self.edge.store.now();
        self.edge.releases.change(now, |state| {
            state.channel_problem = read.and_then(|taken| state.take(name, taken)).err();
            if let Some(problem) = &state.channel_problem {
                self.trace.note_trouble(problem);
            }
            if state.taken.is_some() {
                state.check_at = now + self.pointer_cache_milliseconds();
            }
        });
    }

    async fn read_channel(&self, name: &str) -> Result<Taken, Problem> {
        let key = StorageKey::Channel(name.to_owned());
        let bytes = self.read(&key, CacheTime::Least).await?;
        let bytes = bytes.ok_or(Fault::Incomplete(key))?;
        let refuse = |cause: String| Fault::Channel {
            channel: name.to_owned(),
            cause,
        };
        let document = text(&bytes, ENVELOPE_BYTES).map_err(refuse)?;
        let (envelope, pointer) = Envelope::parse(&document, name).map_err(|error| refuse(error.to_string()))?;
        let now = format_time(self.edge.store.now() / 1000);
        let trusted = self.edge.config.trusted_keys.check(&envelope, &pointer, &now);
        trusted.map_err(|error| refuse(error.to_string()))?;
        Ok(Taken {
            envelope: document.into(),
            payload: envelope.payload,
            pointer,
        })
    }
}

impl State {
    /// Takes a newer envelope. A channel never goes backwards, and never says two things under one sequence.
    fn take(&mut self, channel: &str, new: Taken) -> Result<(), Problem> {
        let refuse = |cause: &str| {
            Err(Fault::Channel {
                channel: channel.to_owned(),
                cause: cause.to_owned(),
            }
            .into())
        };
        match &self.taken {
            Some(seen) if new.pointer.sequence < seen.pointer.sequence => {
                refuse("its sequence is lower than the last one seen")
            }
            Some(seen) if new.pointer.sequence == seen.pointer.sequence && new.payload != seen.payload => {
                refuse("its sequence is the last one seen, its payload is another")
            }
            _ => {
                let moved = self.taken.as_ref().is_none_or(|seen| seen.pointer != new.pointer);
                if moved {
                    self.retry_at = 0;
                }
                self.taken = Some(new);
                Ok(())
            }
        }
    }
}

/// Where a pack stands in a release that was read.
#[derive(Debug)]
pub(crate) enum Place {
    Root(Rc<Root>),
    Shard(Rc<Vec<PackEntry>>),
    Absent,
}

impl Place {
    fn entry(&self, name: &str) -> Option<&PackEntry> {
        match self {
            Self::Root(root) => match root.locate(name) {
                Location::Here(pack) => Some(pack),
                Location::Shard(_) | Location::Absent => None,
            },
            Self::Shard(packs) => find_pack(packs, name),
            Self::Absent => None,
        }
    }
}

impl<S: Store> Reader<'_, S> {
    async fn pack_in(&self, root: &Rc<Root>, name: &str) -> Result<Place, Problem> {
        Ok(match root.locate(name) {
            Location::Here(_) => Place::Root(Rc::clone(root)),
            Location::Shard(shard) => Place::Shard(self.packs(shard).await?),
            Location::Absent => Place::Absent,
        })
    }
}
