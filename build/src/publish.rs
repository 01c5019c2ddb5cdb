//! Stage 7: a release becomes what a channel answers with. A plan is data, made once and applied to a target: blobs, graphs,
//! closures, shards, manifest, channel, each confirmed before the next. A run that is killed anywhere leaves the old release
//! whole; running it again finishes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use packferry_core::channel::{Envelope, InvalidEnvelope, Pointer, check_name};
use packferry_core::key::StorageKey;

use crate::fault::Fault;
use crate::progress::Progress;
use crate::release::Release;

/// Where a release is published to.
pub trait Target {
    /// The value of `key`, if it has one.
    ///
    /// # Errors
    /// A [`Fault`] where the target does not answer.
    fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault>;

    /// Which of `keys` have no value.
    ///
    /// # Errors
    /// A [`Fault`] where the target does not answer.
    fn missing(&mut self, keys: &[String]) -> Result<BTreeSet<String>, Fault>;

    /// Writes `entries` and returns when all of them are confirmed.
    ///
    /// # Errors
    /// A [`Fault`] where one of them is not; some may have been written.
    fn put(&mut self, entries: &[(String, Vec<u8>)]) -> Result<(), Fault>;
}

/// The immutable objects of a release in the order in which they are written. One inner list a phase: every object of a phase is
/// confirmed before the next phase begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Blobs, graphs, closures, shards, manifest.
    pub phases: Vec<Vec<StorageKey>>,
}

impl Plan {
    /// Plans the writes of `release`.
    #[must_use]
    pub fn of(release: &Release) -> Self {
        let modules = || release.packs.iter().flat_map(|pack| &pack.modules);
        let files = release.packs.iter().flat_map(|pack| &pack.files);
        let blobs: BTreeSet<_> = modules()
            .map(|m| m.sha256)
            .chain(files.map(|file| file.sha256))
            .collect();
        let graphs: BTreeSet<_> = modules().map(|m| m.graph_digest).collect();
        Self {
            phases: vec![
                blobs.into_iter().map(StorageKey::Blob).collect(),
                graphs.iter().copied().map(StorageKey::Graph).collect(),
                graphs.iter().copied().map(StorageKey::Closure).collect(),
                release.shards.iter().copied().map(StorageKey::Shard).collect(),
                vec![StorageKey::Manifest(release.digest)],
            ],
        }
    }

    /// How many objects the plan names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.phases.iter().map(Vec::len).sum()
    }

    /// Whether the plan names no object; it never does, as there is always a manifest.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a publish did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Objects written now.
    pub written: usize,
    /// Objects that the target had already.
    pub unchanged: usize,
    /// The channel's sequence.
    pub sequence: u64,
    /// Whether the channel named this manifest before.
    pub already: bool,
}

/// Bytes and number of entries in one write: large enough to be quick, small enough to bound memory.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_ENTRIES: usize = 500;
/// Keys in one question about what is missing.
const ASK_KEYS: usize = 10_000;

/// Publishes `release` on `channel` of `target`. Keys that the target has are not written again.
///
/// # Errors
/// A [`Fault`]; readers then still see the old release whole.
pub fn publish(
    release: &Release,
    channel: &str,
    target: &mut dyn Target,
    progress: &Progress,
) -> Result<Published, Fault> {
    check_name(channel).map_err(|error| Fault::new(format!("{channel:?} is no channel: {error}")))?;
    let plan = Plan::of(release);
    let current = current_pointer(target, channel)?;
    let bar = progress.bar("publishing", plan.len());
    let mut written = 0;
    for phase in &plan.phases {
        written += write_phase(release, phase, target, &bar)?;
    }
    bar.finish();
    let unchanged = plan.len() - written;
    if let Some(current) = current.as_ref().filter(|current| current.manifest == release.digest) {
        return Ok(Published {
            written,
            unchanged,
            sequence: current.sequence,
            already: true,
        });
    }
    let sequence = next_sequence(current.as_ref())?;
    let envelope = Envelope::unsigned(&pointer(release, channel, sequence));
    let key = StorageKey::Channel(channel.to_owned()).to_string();
    target.put(&[(key, envelope.to_json().into_bytes())])?;
    Ok(Published {
        written,
        unchanged,
        sequence,
        already: false,
    })
}

/// The pointer of `channel` to `release`, as of now.
#[must_use]
pub fn pointer(release: &Release, channel: &str, sequence: u64) -> Pointer {
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    Pointer {
        version: 1,
        channel: channel.to_owned(),
        sequence,
        manifest: release.digest,
        published_at: now,
        expires: None,
    }
}

/// The sequence after that of `current`.
///
/// # Errors
/// A [`Fault`] where there is none.
pub fn next_sequence(current: Option<&Pointer>) -> Result<u64, Fault> {
    // JavaScript readers hold sequences in doubles.
    const LAST: u64 = (1 << 53) - 1;
    let sequence = current.map_or(0, |pointer| pointer.sequence);
    if sequence < LAST {
        Ok(sequence + 1)
    } else {
        Err(Fault::new(format!("the channel's sequence {sequence} cannot grow")).hint("Publish on another channel."))
    }
}

fn current_pointer(target: &mut dyn Target, channel: &str) -> Result<Option<Pointer>, Fault> {
    let key = StorageKey::Channel(channel.to_owned()).to_string();
    let Some(value) = target.get(&key)? else {
        return Ok(None);
    };
    // Without its sequence, guessing could send the channel backwards.
    let pointer = envelope_of(&value, channel).map_err(|error| {
        Fault::new(format!(
            "channel/{channel} holds something that is not its envelope: {error}"
        ))
        .hint(format!(
            "Its sequence is unknown, and a lower one than the last is ignored by whoever saw that. Put back what a worker that answers still gives: \
             curl http://ADDRESS/api/channels/{channel} > {channel}.json, then npx wrangler kv key put channel/{channel} --path {channel}.json \
             --binding KV, with the options that name this KV. Only where nothing serves the channel, delete the key and publish again."
        ))
    })?;
    Ok(Some(pointer))
}

/// The pointer in an envelope of `channel`, as a store holds it or a file that was read from one.
///
/// # Errors
/// Why it is none.
pub fn envelope_of(value: &[u8], channel: &str) -> Result<Pointer, InvalidEnvelope> {
    let text = String::from_utf8_lossy(value);
    Envelope::parse(text.trim_end(), channel).map(|(_, pointer)| pointer)
}

/// Writes what the target lacks of one phase; answers how many objects that were.
fn write_phase(
    release: &Release,
    phase: &[StorageKey],
    target: &mut dyn Target,
    bar: &crate::progress::Bar,
) -> Result<usize, Fault> {
    let keys: Vec<String> = phase.iter().map(StorageKey::to_string).collect();
    let mut missing = BTreeSet::new();
    for some in keys.chunks(ASK_KEYS) {
        missing.extend(target.missing(some)?);
    }
    bar.advance(keys.len() - missing.len());
    let mut batch = Vec::new();
    let mut bytes = 0;
    for (key, name) in phase.iter().zip(keys).filter(|(_, name)| missing.contains(name)) {
        let value = release.object(key)?;
        if !batch.is_empty() && (bytes + value.len() > BATCH_BYTES || batch.len() == BATCH_ENTRIES) {
            target.put(&batch)?;
            bar.advance(batch.len());
            batch.clear();
            bytes = 0;
        }
        bytes += value.len();
        batch.push((name, value));
    }
    if !batch.is_empty() {
        target.put(&batch)?;
        bar.advance(batch.len());
    }
    Ok(missing.len())
}
