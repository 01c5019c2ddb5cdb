//! Who may fetch what: the policy document, and the one pure decision that every delivery passes (wire contract,
//! "Policy"). Reading the document, the token and the clock is the caller's.

use serde::{Deserialize, Serialize};

use crate::digest::{GraphDigest, TokenDigest};
use crate::id::PackName;
use crate::time::is_time;

/// Why a policy document is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPolicy {
    /// Not JSON, or not of the document's shape.
    #[error("not a policy document: {0}")]
    Shape(String),
    /// Another version than this code reads.
    #[error("policy version {0} is not known")]
    Version(u64),
    /// Neither a pack's name nor a prefix with a final `*`.
    #[error("{0:?} is no pattern: a pack name, or a prefix followed by one final *")]
    Pattern(String),
    /// A time that is not RFC 3339 in UTC with seconds.
    #[error("the expiry of token {0:?} is not written like 2027-01-31T12:00:00Z (RFC 3339, UTC, seconds)")]
    Time(String),
}

/// An exact pack name, or a prefix followed by one final `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

impl Pattern {
    /// Parses `text`. A prefix may hold what pack names hold: nothing else could ever match.
    ///
    /// # Errors
    /// [`InvalidPolicy::Pattern`].
    pub fn parse(text: &str) -> Result<Self, InvalidPolicy> {
        let legal = match text.strip_suffix('*') {
            Some(prefix) => prefix
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'@' | b'/' | b'.' | b'_' | b'~' | b'-')),
            None => PackName::parse(text).is_ok(),
        };
        if legal {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPolicy::Pattern(text.to_owned()))
        }
    }

    /// Whether the pattern names `pack`.
    #[must_use]
    pub fn matches(&self, pack: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(prefix) => pack.starts_with(prefix),
            None => self.0 == pack,
        }
    }

    /// Whether a grant of this pattern reaches everything that `other` names: it is equal, or ends in `*` and its prefix
    /// begins `other`.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self == other
            || self
                .0
                .strip_suffix('*')
                .is_some_and(|prefix| other.0.starts_with(prefix))
    }

    /// Whether the pattern names anything from `first` up to, but without, `end`, in the order of names, which are ASCII.
    fn reaches_into(&self, first: &str, end: &str) -> bool {
        let begin = self.0.strip_suffix('*').unwrap_or(&self.0);
        self.matches(first) || (first <= begin && begin < end)
    }

    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pattern {
    type Error = InvalidPolicy;
    fn try_from(text: String) -> Result<Self, InvalidPolicy> {
        Self::parse(&text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0
    }
}

/// What nobody may fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Packs of any name that the pattern names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pack: Option<Pattern>,
    /// Only this version of them; the empty string is the empty version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The graph with this digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<GraphDigest>,
    /// The operator's reason, shown to everyone who is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Block {
    /// Whether every condition of the block holds for `subject`. One without a condition blocks nothing; the parser
    /// refuses it.
    fn applies(&self, subject: &Subject<'_>) -> bool {
        let pack = self.pack.as_ref().is_none_or(|pattern| pattern.matches(subject.pack));
        let version = self.version.is_none() || self.version.as_deref() == subject.version;
        let graph = self.graph.is_none() || self.graph == subject.graph;
        pack && version && graph && (self.pack.is_some() || self.graph.is_some())
    }
}

/// A token's hash, and what its bearer may fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// The operator's name for it.
    pub name: String,
    /// SHA-256 of the token's text.
    pub sha256: TokenDigest,
    /// The packs it opens.
    pub grants: Vec<Pattern>,
    /// When it stops: RFC 3339, UTC, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A policy. The default one lets everyone fetch everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    version: u64,
    private: Vec<Pattern>,
    blocked: Vec<Block>,
    tokens: Vec<Token>,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requester {
    /// Nobody that is known.
    Anonymous,
    /// The bearer of a well-formed token, known or not.
    Bearer(TokenDigest),
}

/// What is asked for, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The pack's name.
    pub pack: &'a str,
    /// Its version, where it has one.
    pub version: Option<&'a str>,
    /// The graph that the file is delivered as a part of.
    pub graph: Option<GraphDigest>,
}

impl<'a> Subject<'a> {
    /// What a named id says before anything was looked up.
    #[must_use]
    pub fn named(pack: &'a str) -> Self {
        Self {
            pack,
            version: None,
            graph: None,
        }
    }
}

/// Proof that the policy let a requester have something. Only the decisions below make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permit {
    private: bool,
}

impl Permit {
    /// Whether the answer depends on who asks, so that no shared cache may keep it.
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.private
    }
}

/// The policy says no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Forbidden {
    /// Whether another requester might be let in.
    pub private: bool,
    /// Whether it is a block, of which only who has a grant learns.
    pub blocked: bool,
    /// The operator's reason for a block.
    pub reason: Option<String>,
}

impl Forbidden {
    fn sentence(&self) -> String {
        match (self.blocked, &self.reason) {
            (true, Some(reason)) => format!("it is blocked: {reason}"),
            (true, None) => "it is blocked".to_owned(),
            (false, _) => "it is private, and the requester has no grant for it".to_owned(),
        }
    }
}

impl Policy {
    /// A policy of these parts.
    #[must_use]
    pub fn new(private: Vec<Pattern>, blocked: Vec<Block>, tokens: Vec<Token>) -> Self {
        Self {
            version: 1,
            private,
            blocked,
            tokens,
        }
    }

    /// Parses the document that KV holds.
    ///
    /// # Errors
    /// [`InvalidPolicy`].
    pub fn parse(text: &str) -> Result<Self, InvalidPolicy> {
        let policy: Self = serde_json::from_str(text).map_err(|error| InvalidPolicy::Shape(error.to_string()))?;
        if policy.version != 1 {
            return Err(InvalidPolicy::Version(policy.version));
        }
        let empty = |block: &Block| block.pack.is_none() && block.graph.is_none();
        if policy.blocked.iter().any(empty) {
            return Err(InvalidPolicy::Shape("a block of neither a pack nor a graph".to_owned()));
        }
        for token in &policy.tokens {
            if !token.expires.as_deref().is_none_or(is_time) {
                return Err(InvalidPolicy::Time(token.name.clone()));
            }
        }
        Ok(policy)
    }

    /// How many private patterns, blocks and tokens it has.
    #[must_use]
    pub fn counts(&self) -> [usize; 3] {
        [self.private.len(), self.blocked.len(), self.tokens.len()]
    }

    /// Whether any pack is private: then the index depends on the requester.
    #[must_use]
    pub fn has_private_packs(&self) -> bool {
        !self.private.is_empty()
    }

    /// Whether every pack from `first` up to, but without, `end` is private and closed to who has `grants`: decided from the
    /// names alone, so that nothing has to be read to find out.
    #[must_use]
    pub fn hides_all(&self, grants: &[&Pattern], first: &str, end: &str) -> bool {
        let spans = |pattern: &Pattern| pattern.0.ends_with('*') && pattern.matches(first) && pattern.matches(end);
        self.private.iter().any(spans) && !grants.iter().any(|grant| grant.reaches_into(first, end))
    }

    /// What `requester` may fetch beyond what is public, at `now` (RFC 3339, UTC, seconds).
    ///
    /// Every token is compared, and each comparison looks at all bytes, so that timing tells nothing about the hashes.
    #[must_use]
    pub fn grants(&self, requester: Requester, now: &str) -> Vec<&Pattern> {
        let Requester::Bearer(digest) = requester else {
            return Vec::new();
        };
        let mut found = None;
        for token in &self.tokens {
            if equal_in_constant_time(token.sha256.as_bytes(), digest.as_bytes()) {
                found = Some(token);
            }
        }
        match found {
            Some(token) if token.expires.as_deref().is_none_or(|expires| now < expires) => {
                token.grants.iter().collect()
            }
            Some(_) | None => Vec::new(),
        }
    }
}

fn equal_in_constant_time(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b));
    std::hint::black_box(difference) == 0
}

/// Decides whether `requester` may have `subject` at `now` (RFC 3339, UTC, seconds). Asked with what a named id says
/// before it is looked up, and again with what was found before a body is read.
///
/// A private pack needs a grant; only who has it learns of blocks.
///
/// # Errors
/// [`Forbidden`].
pub fn authorize_delivery(
    policy: &Policy,
    requester: Requester,
    subject: &Subject<'_>,
    now: &str,
) -> Result<Permit, Forbidden> {
    let private = policy.private.iter().any(|pattern| pattern.matches(subject.pack));
    let granted = || {
        policy
            .grants(requester, now)
            .iter()
            .any(|grant| grant.matches(subject.pack))
    };
    if private && !granted() {
        return Err(Forbidden {
            private,
            blocked: false,
            reason: None,
        });
    }
    match policy.blocked.iter().find(|block| block.applies(subject)) {
        Some(block) => Err(Forbidden {
            private,
            blocked: true,
            reason: block.reason.clone(),
        }),
        None => Ok(Permit { private }),
    }
}

/// Decides whether `requester` may read manifests and shards, which list every pack: as soon as any is private, only with
/// grants that cover all private patterns.
///
/// # Errors
/// [`Forbidden`].
pub fn authorize_catalog(policy: &Policy, requester: Requester, now: &str) -> Result<Permit, Forbidden> {
    let private = policy.has_private_packs();
    let grants = policy.grants(requester, now);
    let covered = |pattern: &Pattern| grants.iter().any(|grant| grant.covers(pattern));
    if policy.private.iter().all(covered) {
        Ok(Permit { private })
    } else {
        Err(Forbidden {
            private,
            blocked: false,
            reason: None,
        })
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
