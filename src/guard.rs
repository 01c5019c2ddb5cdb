//! The policy in force: read from storage, kept for the pointer's cache time, and closed where it cannot be had. What it
//! decides is the core's `policy.rs`.

use std::cell::RefCell;
use std::rc::Rc;

use packferry_core::digest::BlobDigest;
use packferry_core::key::StorageKey;
use packferry_core::policy::{self, Permit, Policy, Requester, Subject};
use packferry_core::time::format_time;

use crate::config::PolicySource;
use crate::fetch::{DOCUMENT_BYTES, Edge, Reader, text};
use crate::memory::Slot;
use crate::problem::{Fault, Problem};
use crate::store::{CacheTime, Store};

/// The policy that this isolate last read.
#[derive(Debug, Default)]
pub(crate) struct PolicyCache {
    last: RefCell<Option<Last>>,
}

impl PolicyCache {
    fn fresh(&self, now: u64) -> Option<Rc<InForce>> {
        let last = self.last.borrow();
        let last = last.as_ref().filter(|last| now < last.until)?;
        Some(Rc::clone(&last.in_force))
    }
}

#[derive(Debug)]
struct Last {
    until: u64,
    in_force: Rc<InForce>,
}

/// A policy, with the digest of its document.
#[derive(Debug, Default)]
pub(crate) struct InForce {
    policy: Policy,
    /// None where no policy is configured.
    pub(crate) digest: Option<BlobDigest>,
}

/// The gate of one request: its requester before the policy in force, at one moment.
#[derive(Debug)]
pub(crate) struct Gate {
    in_force: Rc<InForce>,
    requester: Requester,
    now: String,
}

impl Gate {
    /// Decides on one delivery.
    pub(crate) fn delivery(&self, subject: &Subject<'_>) -> Result<Permit, Problem> {
        policy::authorize_delivery(&self.in_force.policy, self.requester, subject, &self.now).map_err(Problem::from)
    }

    /// Decides on manifests and shards.
    pub(crate) fn catalog(&self) -> Result<Permit, Problem> {
        policy::authorize_catalog(&self.in_force.policy, self.requester, &self.now).map_err(Problem::from)
    }

    /// Whether what a requester may see differs from requester to requester.
    pub(crate) fn is_private(&self) -> bool {
        self.in_force.policy.has_private_packs()
    }

    /// Whether the requester may see no pack from `first` up to, but without, `end`.
    pub(crate) fn hides_all(&self, first: &str, end: &str) -> bool {
        let policy = &self.in_force.policy;
        policy.hides_all(&policy.grants(self.requester, &self.now), first, end)
    }

    /// What the index depends on beside the release: the policy, and the requester's grants.
    pub(crate) fn fingerprint(&self) -> String {
        let policy = self
            .in_force
            .digest
            .map(|digest| digest.to_string())
            .unwrap_or_default();
        let grants = self.in_force.policy.grants(self.requester, &self.now);
        let grants: Vec<&str> = grants.iter().map(|grant| grant.as_str()).collect();
        format!("{policy}\n{}", grants.join(","))
    }
}

impl<S: Store> Edge<S> {
    /// Whether `subject` is for everyone, by a policy in force that needs no reading now.
    pub(crate) fn is_public(&self, subject: &Subject<'_>) -> bool {
        match &self.config.policy {
            PolicySource::Open => true,
            PolicySource::Invalid => false,
            PolicySource::Named(_) => self.policy.fresh(self.store.now()).is_some_and(|in_force| {
                // Time matters to tokens only, and what nobody needs a token for needs no time.
                let permit = policy::authorize_delivery(&in_force.policy, Requester::Anonymous, subject, "");
                permit.is_ok_and(|permit| !permit.is_private())
            }),
        }
    }
}

impl<S: Store> Reader<'_, S> {
    /// The gate for `requester`, by the policy in force.
    pub(crate) async fn gate(&self, requester: Requester) -> Result<Gate, Problem> {
        let in_force = match &self.edge.config.policy {
            PolicySource::Open => Rc::default(),
            PolicySource::Named(name) => self.policy(name).await?,
            PolicySource::Invalid => return Err(Fault::Policy("POLICY is no policy's name".to_owned()).into()),
        };
        Ok(Gate {
            in_force,
            requester,
            now: format_time(self.edge.store.now() / 1000),
        })
    }

    /// The policy `name`: kept for the cache time, and asked for again by every request while it cannot be had. A policy that
    /// was good a moment ago does not go on: what was blocked since would be let out.
    async fn policy(&self, name: &str) -> Result<Rc<InForce>, Problem> {
        let key = StorageKey::Policy(name.to_owned());
        let fresh = || self.edge.policy.fresh(self.edge.store.now());
        let load = async || {
            let now = self.edge.store.now();
            let loaded = self.load_policy(&key).await;
            let well = matches!(loaded, Ok(Some(_)));
            self.edge.releases.note_policy(well, self.edge.store.now());
            let in_force = loaded?.map(Rc::new);
            if let Some(in_force) = &in_force {
                *self.edge.policy.last.borrow_mut() = Some(Last {
                    until: now + u64::from(self.edge.config.pointer_cache_seconds) * 1000,
                    in_force: Rc::clone(in_force),
                });
            }
            Ok(in_force)
        };
        let in_force = self.once(&Slot::Bytes(key.clone()), fresh, load).await?;
        in_force.ok_or_else(|| Fault::Policy(format!("storage lacks {key}")).into())
    }

    async fn load_policy(&self, key: &StorageKey) -> Result<Option<InForce>, Problem> {
        let closed = |cause: String| Problem::from(Fault::Policy(cause));
        let read = self.read(key, CacheTime::Least).await;
        let Some(bytes) = read.map_err(|problem| closed(problem.to_string()))? else {
            return Ok(None);
        };
        let document = text(&bytes, DOCUMENT_BYTES).map_err(closed)?;
        Ok(Some(InForce {
            policy: Policy::parse(&document).map_err(|error| closed(error.to_string()))?,
            digest: Some(BlobDigest::of(document.as_bytes())),
        }))
    }
}
