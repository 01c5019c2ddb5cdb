//! One request, top to bottom.

use packferry_core::digest::BlobDigest;
use packferry_core::id::ModuleId;
use packferry_core::key::StorageKey;

use crate::access;
use crate::config::Source;
use crate::fetch::{Edge, Reader};
use crate::guard::Gate;
use crate::health;
use crate::index;
use crate::log::{Line, Outcome};
use crate::problem::{Fault, Problem, Refusal};
use crate::respond::{self, Answer, Content};
use crate::route::{self, IndexQuery, Route};
use crate::store::Store;
use crate::trace::Trace;

/// What of a request matters.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its URL, as the runtime gives it.
    pub url: &'a str,
    /// Its Authorization header.
    pub authorization: Option<&'a str>,
    /// Its If-None-Match header.
    pub if_none_match: Option<&'a str>,
}

/// Answers a request, and says what to log of it. Total: every input has an answer.
///
/// 1. Route: method and URL name what is asked for; else 400, 404 or 405.
/// 2. Identify: the Authorization header names a requester, or nobody.
/// 3. Permit and look up (`lookup.rs`): policy, release, entry; else 403, 404, 502 or 503.
/// 4. Condition: a client that has it gets 304, decided only after the policy.
/// 5. Retrieve: the checked bytes; else 502 or 503.
/// 6. Respond: headers were set in step 3; HEAD loses its body last.
pub async fn serve<S: Store>(edge: &Edge<S>, request: &Request<'_>) -> (Answer<S::Body>, Option<Line>) {
    let begun = edge.store.now();
    let trace = Trace::default();
    let (head, name, topic, result) = match route::parse(request.method, request.url) {
        Ok(asked) => {
            let topic = asked.route.topic();
            let result = answer(edge, &trace, request, &asked.route).await;
            (asked.head, asked.route.name(), topic, result)
        }
        Err(no) => (no.head, "none", no.topic, Err(no.refusal.into())),
    };
    let outcome = Outcome::of(&result);
    let mut answer = result.unwrap_or_else(|problem| respond::problem(&problem, &topic));
    respond::note_timing(answer.headers_mut(), &trace.server_timing(name));
    let line = Line::new(name, &topic, &outcome, &trace, edge.store.now().saturating_sub(begun));
    let answer = if head { respond::without_body(answer) } else { answer };
    (answer, line)
}

async fn answer<S: Store>(
    edge: &Edge<S>,
    trace: &Trace,
    request: &Request<'_>,
    route: &Route,
) -> Result<Answer<S::Body>, Problem> {
    let reader = Reader::new(edge, trace);
    let requester = access::requester(request.authorization);
    let visit = Visit {
        reader,
        if_none_match: request.if_none_match,
    };
    match route {
        Route::Preflight => Ok(respond::preflight()),
        Route::Health => Ok(respond::fleeting_json(health::report(&reader).await)),
        Route::Module(id) => visit.module(id, &reader.gate(requester).await?).await,
        Route::Closure(id) => visit.closure(id, &reader.gate(requester).await?).await,
        Route::Index(query) => visit.index(query, &reader.gate(requester).await?).await,
        Route::Manifest(digest) => {
            let (key, digest) = (StorageKey::Manifest(*digest), *digest.as_bytes());
            visit.object(key, digest, &reader.gate(requester).await?).await
        }
        Route::Shard(digest) => {
            let (key, digest) = (StorageKey::Shard(*digest), *digest.as_bytes());
            visit.object(key, digest, &reader.gate(requester).await?).await
        }
        Route::Channel(name) => visit.channel(name).await,
    }
}

/// A request on its way through one of the routes.
struct Visit<'a, S: Store> {
    reader: Reader<'a, S>,
    if_none_match: Option<&'a str>,
}

impl<S: Store> Visit<'_, S> {
    async fn module(&self, id: &ModuleId, gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let authorized = self.reader.authorize_delivery(id, gate).await?;
        let dressed = respond::module(&self.reader.edge.config, &authorized)?;
        if dressed.is_known(self.if_none_match) {
            return Ok(dressed.not_modified());
        }
        let body = self.reader.retrieve(&authorized).await?;
        Ok(dressed.with_body(Content::Stored(body)))
    }

    async fn closure(&self, id: &ModuleId, gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let authorized = self.reader.authorize_delivery(id, gate).await?;
        let closure = self.reader.retrieve_closure(&authorized).await?;
        let dressed = respond::closure(&self.reader.edge.config, &authorized, &closure)?;
        if dressed.is_known(self.if_none_match) {
            return Ok(dressed.not_modified());
        }
        Ok(dressed.with_body(Content::Stored(closure.body.clone())))
    }

    async fn index(&self, query: &IndexQuery, gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let (release, ()) = self.reader.release(async |_| Ok(())).await?;
        let dressed = respond::index(&index::fingerprint(&release, gate, query), gate.is_private())?;
        if dressed.is_known(self.if_none_match) {
            return Ok(dressed.not_modified());
        }
        let page = self.reader.index(&release, gate, query).await?;
        Ok(dressed.with_body(Content::Text(page)))
    }

    /// A manifest's root or a shard, which are public or for those who may see everything.
    async fn object(&self, key: StorageKey, digest: [u8; 32], gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let permit = gate.catalog()?;
        let private = permit.is_private();
        if self.reader.edge.memory.is_absent(&key, self.reader.edge.store.now()) {
            return Err(Refusal::NotFound { private }.into());
        }
        let Some(body) = self.reader.bytes(key.clone(), &digest).await? else {
            self.reader.edge.memory.note_absent(key, self.reader.edge.store.now());
            return Err(Refusal::NotFound { private }.into());
        };
        let dressed = respond::object(&BlobDigest::from_bytes(digest), private)?;
        if dressed.is_known(self.if_none_match) {
            return Ok(dressed.not_modified());
        }
        Ok(dressed.with_body(Content::Stored(body)))
    }
    /// The envelope of the channel that this worker serves: the newest that was taken.
    async fn channel(&self, name: &str) -> Result<Answer<S::Body>, Problem> {
        match &self.reader.edge.config.source {
            Source::Channel(ours) if ours == name => {}
            Source::Nothing(why) => return Err(Fault::Configuration(why).into()),
            Source::Channel(_) | Source::Manifest(_) => return Err(Refusal::NotFound { private: false }.into()),
        }
        let taken = self.reader.channel(name).await;
        let envelope = taken.ok_or_else(|| self.reader.no_release())?.envelope;
        let dressed = respond::channel(&BlobDigest::of(envelope.as_bytes()))?;
        if dressed.is_known(self.if_none_match) {
            return Ok(dressed.not_modified());
        }
        Ok(dressed.with_body(Content::Text(envelope.to_string())))
    }
}
