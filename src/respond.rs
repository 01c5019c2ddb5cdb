//! From a delivery, a refusal, a fault or corruption to status, headers and body. The only place with status codes.

use std::fmt::Display;

use http::header::{self, HeaderName};
use http::{HeaderMap, Response, StatusCode};
use packferry_core::canonical;
use packferry_core::closure::CLOSURE_CONTENT_TYPE;
use packferry_core::digest::BlobDigest;
use packferry_core::key::StorageKey;
use serde::Serialize;

use crate::config::Config;
use crate::headers::{self, Caching, Headers, Unsendable};
use crate::lookup::Authorized;
use crate::memory::Closure;
use crate::problem::{Corruption, Fault, Problem, Refusal};
use crate::route::Topic;
use crate::store::Body;

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<B> {
    /// None.
    Nothing,
    /// Text of ours.
    Text(String),
    /// Stored bytes.
    Stored(B),
}

impl<B: Body> Content<B> {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Text(text) => text.len(),
            Self::Stored(body) => body.len(),
        }
    }
}

/// An answer.
pub type Answer<B> = Response<Content<B>>;

/// An answer whose body has not been fetched: what a conditional request is decided on.
#[derive(Debug)]
pub(crate) struct Dressed {
    headers: Headers,
    tag: String,
}

/// The headers of a whole answer, and how many bytes they promise.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) headers: HeaderMap,
    pub(crate) length: u64,
}

impl Dressed {
    fn new(mut headers: Headers, tag: &impl Display) -> Result<Self, Unsendable> {
        let tag = headers::entity_tag(tag);
        headers.set(header::ETAG, &tag)?;
        headers.set_static(header::ACCEPT_RANGES, "none");
        Ok(Self { headers, tag })
    }

    /// What stands before a body of so many bytes.
    pub(crate) fn whole(&self, length: u64) -> Whole {
        let mut headers = self.headers.clone().into_map();
        headers.insert(header::CONTENT_LENGTH, length.into());
        Whole { headers, length }
    }

    /// Whether the client has what it asks for.
    pub(crate) fn is_known(&self, if_none_match: Option<&str>) -> bool {
        if_none_match.is_some_and(|header| headers::matches_none(header, &self.tag))
    }

    /// The answer to a client that has it: every header of the whole answer that is not about its bytes, and no body.
    pub(crate) fn not_modified<B: Body>(self) -> Answer<B> {
        answer(StatusCode::NOT_MODIFIED, self.headers, Content::Nothing)
    }

    /// The whole answer.
    pub(crate) fn with_body<B: Body>(self, content: Content<B>) -> Answer<B> {
        answer(StatusCode::OK, self.headers, content)
    }
}

fn answer<B: Body>(status: StatusCode, set: Headers, content: Content<B>) -> Answer<B> {
    let mut map = set.into_map();
    match status {
        StatusCode::NOT_MODIFIED => headers::leave_out_of_not_modified(&mut map),
        StatusCode::NO_CONTENT => {}
        _ => {
            map.insert(header::CONTENT_LENGTH, content.len().into());
        }
    }
    let mut answer = Response::new(content);
    *answer.status_mut() = status;
    *answer.headers_mut() = map;
    answer
}

/// Drops the body, for HEAD: status and headers are those of GET.
pub(crate) fn without_body<B>(answer: Answer<B>) -> Answer<B> {
    answer.map(|_| Content::Nothing)
}

/// The headers of a file's delivery.
pub(crate) fn module(config: &Config, authorized: &Authorized) -> Result<Dressed, Problem> {
    let found = &authorized.found;
    let dress = || {
        let mut headers = graph_headers(config, authorized)?;
        headers.set_static(header::CONTENT_TYPE, found.kind.content_type());
        set_body_digest(&mut headers, &found.sha256)?;
        headers.set(headers::X_SANDBOX_FILE_ID, found.file.as_str())?;
        headers.set_static(headers::X_SANDBOX_INTERNAL, if found.internal { "1" } else { "0" });
        let dependencies = headers::ascii_json(&found.dependency_ids());
        headers.set(headers::X_SANDBOX_MODULE_DEPENDENCIES, &dependencies)?;
        if let Some(contract) = &found.wasm_contract {
            headers.set(headers::X_SANDBOX_WASM_CONTRACT, &headers::ascii_json(contract))?;
        }
        if let Some(host) = &found.host_id {
            headers.set(headers::X_SANDBOX_HOST_MODULE, host)?;
        }
        Dressed::new(headers, &found.graph)
    };
    dress().map_err(|error| unsendable(authorized, &error))
}

/// The headers of a closure's delivery.
pub(crate) fn closure<B>(config: &Config, authorized: &Authorized, closure: &Closure<B>) -> Result<Dressed, Problem> {
    let dress = || {
        let mut headers = graph_headers(config, authorized)?;
        headers.set_static(header::CONTENT_TYPE, CLOSURE_CONTENT_TYPE);
        set_body_digest(&mut headers, &closure.sha256)?;
        Dressed::new(headers, &authorized.found.graph)
    };
    dress().map_err(|error| unsendable(authorized, &error))
}

/// What files and closures of a graph have in common.
fn graph_headers(config: &Config, authorized: &Authorized) -> Result<Headers, Unsendable> {
    let found = &authorized.found;
    let caching = if found.is_pinned() {
        Caching::Immutable
    } else {
        Caching::Fresh(config.named_max_age)
    };
    let mut headers = Headers::new(caching, authorized.permit.is_private());
    headers.set(headers::X_CONTENT_DIGEST, &found.graph.to_string())?;
    headers.set(headers::X_SANDBOX_PACK, &found.pack)?;
    if let Some(version) = &found.version {
        headers.set(headers::X_SANDBOX_PACK_VERSION, version)?;
    }
    if let Some(manifest) = &found.manifest {
        headers.set(headers::X_PACKFERRY_MANIFEST, &manifest.to_string())?;
    }
    if config.cache_tags {
        headers.set(headers::CACHE_TAG, &format!("{},{}", found.pack, found.graph))?;
    }
    Ok(headers)
}

fn set_body_digest(headers: &mut Headers, sha256: &BlobDigest) -> Result<(), Unsendable> {
    headers.set(headers::X_CONTENT_SHA256, &sha256.to_string())?;
    headers.set(headers::UNENCODED_DIGEST, &headers::unencoded_digest(sha256.as_bytes()))
}

/// What cannot be sent should never have been stored: the build refuses it.
fn unsendable(authorized: &Authorized, error: &Unsendable) -> Problem {
    let found = &authorized.found;
    let key = found
        .manifest
        .map_or(StorageKey::Graph(found.graph), StorageKey::Manifest);
    corrupt(key, error)
}

fn corrupt(key: StorageKey, error: &Unsendable) -> Problem {
    let cause = error.to_string();
    Corruption { key, cause }.into()
}

const JSON: &str = "application/json";

/// The headers of a page of the index.
pub(crate) fn index(fingerprint: &BlobDigest, private: bool) -> Result<Dressed, Problem> {
    let mut headers = Headers::new(Caching::Fresh(0), private);
    headers.set_static(header::CONTENT_TYPE, JSON);
    dress_own(headers, fingerprint)
}

/// The headers of a manifest's root or a shard: immutable, named by the SHA-256 of the body.
pub(crate) fn object(sha256: &BlobDigest, private: bool) -> Result<Dressed, Problem> {
    let mut headers = Headers::new(Caching::Immutable, private);
    headers.set_static(header::CONTENT_TYPE, JSON);
    with_digest(headers, sha256)
}

/// The headers of a channel's envelope.
pub(crate) fn channel(sha256: &BlobDigest) -> Result<Dressed, Problem> {
    let mut headers = Headers::new(Caching::Fresh(0), false);
    headers.set_static(header::CONTENT_TYPE, JSON);
    with_digest(headers, sha256)
}

fn with_digest(mut headers: Headers, sha256: &BlobDigest) -> Result<Dressed, Problem> {
    let set = set_body_digest(&mut headers, sha256);
    set.map_err(|error| corrupt(StorageKey::Blob(*sha256), &error))?;
    dress_own(headers, sha256)
}

fn dress_own(headers: Headers, tag: &BlobDigest) -> Result<Dressed, Problem> {
    Dressed::new(headers, tag).map_err(|error| corrupt(StorageKey::Blob(*tag), &error))
}

/// The answer to a preflight.
pub(crate) fn preflight<B: Body>() -> Answer<B> {
    let headers = Headers::new(Caching::NoStore, false).with_preflight();
    answer(StatusCode::NO_CONTENT, headers, Content::Nothing)
}

/// An answer of JSON that nobody may keep.
pub(crate) fn fleeting_json<B: Body>(json: String) -> Answer<B> {
    let mut headers = Headers::new(Caching::NoStore, false);
    headers.set_static(header::CONTENT_TYPE, JSON);
    answer(StatusCode::OK, headers, Content::Text(json))
}

/// What a kind of problem looks like from outside.
struct Shape {
    status: StatusCode,
    code: &'static str,
    /// What follows the topic in the sentence.
    predicate: &'static str,
    /// Seconds after which another try makes sense.
    retry_after: Option<usize>,
    /// Whether somebody else would have been told something else.
    private: bool,
}

/// The body of a problem (RFC 9457).
#[derive(Serialize)]
struct ProblemDocument<'a> {
    r#type: &'static str,
    title: &'static str,
    status: u16,
    code: &'static str,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

/// Seconds after which storage is worth another try.
const RETRY_AFTER: usize = 5;

/// Every problem, its status, its code, and the sentence that its topic begins.
fn shape(problem: &Problem) -> Shape {
    let row = |status, code, predicate| Shape {
        status,
        code,
        predicate,
        retry_after: None,
        private: false,
    };
    let passing = |code, predicate| Shape {
        retry_after: Some(RETRY_AFTER),
        ..row(StatusCode::SERVICE_UNAVAILABLE, code, predicate)
    };
    match problem {
        Problem::Refusal(refusal) => match refusal {
            Refusal::InvalidId => row(StatusCode::BAD_REQUEST, "invalid-id", "cannot be decoded"),
            Refusal::Forbidden(forbidden) => Shape {
                private: forbidden.private,
                ..row(StatusCode::FORBIDDEN, "forbidden", "is not available to this client")
            },
            Refusal::NotFound(absence) => Shape {
                private: absence.private,
                ..row(StatusCode::NOT_FOUND, "not-found", "is not installed")
            },
            Refusal::Unavailable(absence) => Shape {
                private: absence.private,
                ..row(StatusCode::NOT_FOUND, "unavailable", "is not available for delivery")
            },
            Refusal::MethodNotAllowed => row(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "is not allowed"),
            Refusal::NoRoute => row(StatusCode::NOT_FOUND, "not-found", "leads nowhere"),
        },
        Problem::Fault(fault) => match fault {
            Fault::Incomplete(_) | Fault::Configuration(_) | Fault::Channel { .. } => {
                passing("storage-incomplete", "is not completely stored")
            }
            Fault::Unavailable { .. } => passing("storage-unavailable", "could not be read from storage"),
            Fault::Policy(_) => passing(
                "policy-unavailable",
                "is withheld while the access policy cannot be read",
            ),
        },
        Problem::Corruption(_) => row(
            StatusCode::BAD_GATEWAY,
            "corrupt",
            "does not match its digest in storage",
        ),
    }
}

/// The answer to a request that gets no delivery.
pub(crate) fn problem<B: Body>(problem: &Problem, topic: &Topic) -> Answer<B> {
    let shape = shape(problem);
    let reason = match problem {
        Problem::Refusal(Refusal::Forbidden(forbidden)) => forbidden.reason.as_deref(),
        _ => None,
    };
    let topic = match topic {
        Topic::Module(id) => format!("Sandbox module {id}"),
        Topic::Other(topic) => topic.clone(),
    };
    let document = ProblemDocument {
        r#type: "about:blank",
        title: shape.status.canonical_reason().unwrap_or_default(),
        status: shape.status.as_u16(),
        code: shape.code,
        detail: format!("{topic} {}.", shape.predicate),
        reason,
    };
    let mut headers = Headers::new(Caching::NoStore, shape.private);
    headers.set_static(header::CONTENT_TYPE, "application/problem+json");
    if let Some(seconds) = shape.retry_after {
        headers.set_number(header::RETRY_AFTER, seconds);
    }
    if shape.status == StatusCode::METHOD_NOT_ALLOWED {
        headers.set_static(header::ALLOW, headers::ALLOWED_METHODS);
    }
    answer(shape.status, headers, Content::Text(canonical::to_json(&document)))
}

/// Adds Server-Timing, which says nothing that anything depends on.
pub(crate) fn note_timing(headers: &mut HeaderMap, timing: &str) {
    const NAME: HeaderName = headers::SERVER_TIMING;
    if let Ok(value) = timing.parse() {
        headers.insert(NAME, value);
    }
}
