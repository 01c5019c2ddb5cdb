//! The three kinds of no. A *refusal* is the requester's or the pack's affair and is shown; a *fault* is ours, is logged and
//! passes; *corruption* is storage contradicting what a digest names, and is loud. Statuses and codes are in `respond.rs`.

use packferry_core::digest::ManifestDigest;
use packferry_core::id::InvalidModuleId;
use packferry_core::key::StorageKey;
use packferry_core::policy::Forbidden;

use crate::store::StoreFailure;

/// Nothing is wrong with us: the answer is no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The id in the path cannot be decoded.
    #[error("the id cannot be decoded")]
    InvalidId,
    /// The policy says no.
    #[error("{0}")]
    Forbidden(Forbidden),
    /// There is no such thing.
    #[error("there is no such thing")]
    NotFound(Absence),
    /// Declared, but not delivered.
    #[error("it is declared and not deliverable")]
    Unavailable(Absence),
    /// Another method than GET, HEAD and OPTIONS.
    #[error("the method is not allowed")]
    MethodNotAllowed,
    /// A path that no route has.
    #[error("no route has this path")]
    NoRoute,
}

/// What an answer that there is nothing rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Absence {
    /// Whether somebody else would have been told something else.
    pub private: bool,
    /// The release in which a named id was looked up; none for other things.
    pub manifest: Option<ManifestDigest>,
}

impl Absence {
    /// Of something that no release lists.
    #[must_use]
    pub fn outside_releases(private: bool) -> Self {
        Self {
            private,
            manifest: None,
        }
    }
}

/// Storage or its operator owes us something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Storage lacks what the configuration, a manifest or a record names, also after a second look.
    #[error("storage lacks {0}")]
    Incomplete(StorageKey),
    /// The configuration names no release, or names it wrongly.
    #[error("{0}")]
    Configuration(&'static str),
    /// Storage holds a channel that cannot be taken, and no release was taken before.
    #[error("channel {channel} cannot be taken: {cause}")]
    Channel {
        /// Its name.
        channel: String,
        /// Why not.
        cause: String,
    },
    /// Storage did not answer.
    #[error("storage failed to read {key}: {cause}")]
    Unavailable {
        /// What was read.
        key: StorageKey,
        /// What storage said.
        cause: StoreFailure,
    },
    /// A policy is configured and cannot be had; nothing is delivered without it.
    #[error("the policy cannot be had: {0}")]
    Policy(String),
}

/// Storage holds something else than what a digest names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} is corrupt: {cause}")]
pub struct Corruption {
    /// What was read.
    pub key: StorageKey,
    /// How it contradicts its name.
    pub cause: String,
}

/// Why a request gets no delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The answer is no.
    #[error("{0}")]
    Refusal(#[from] Refusal),
    /// Something is missing or does not answer.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// Something is wrong.
    #[error("{0}")]
    Corruption(#[from] Corruption),
}

impl From<Forbidden> for Problem {
    fn from(forbidden: Forbidden) -> Self {
        Refusal::Forbidden(forbidden).into()
    }
}

impl From<InvalidModuleId> for Problem {
    fn from(_: InvalidModuleId) -> Self {
        Refusal::InvalidId.into()
    }
}
