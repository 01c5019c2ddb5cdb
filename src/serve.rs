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
use crate::lookup::Authorized;
use crate::memory::Slot;
use crate::problem::{Absence, Fault, Problem, Refusal};
use crate::respond::{self, Answer, Content, Dressed};
use crate::route::{self, IndexQuery, Route};
use crate::store::{Body, Store};
use crate::trace::Trace;
use crate::warm::Grounds;

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
            let result = answer(edge, &trace, request, &asked.route).await;
            let answer = result.map_err(|problem| {
                let refusal = respond::problem(&problem, &asked.route.topic());
                keep_absence(edge, request, &asked.route, &problem, &refusal);
                (problem, refusal)
            });
            (asked.head, asked.route.name(), asked.route.topic(), answer)
        }
        Err(no) => {
            let problem = Problem::from(no.refusal);
            let refusal = respond::problem(&problem, &no.topic);
            (no.head, "none", no.topic, Err((problem, refusal)))
        }
    };
    let outcome = Outcome::of(result.as_ref().err().map(|(problem, _)| problem));
    let mut answer = result.unwrap_or_else(|(_, refusal)| refusal);
    respond::note_timing(answer.headers_mut(), &trace.server_timing(name));
    let (status, taken) = (answer.status().as_u16(), edge.store.now().saturating_sub(begun));
    let line = Line::new(name, &topic, &outcome, status, &trace, taken);
    let answer = if head { respond::without_body(answer) } else { answer };
    (answer, line)
}

/// Keeps the answer that a named id is absent, where it is the same for everyone.
fn keep_absence<S: Store>(
    edge: &Edge<S>,
    request: &Request<'_>,
    route: &Route,
    problem: &Problem,
    refusal: &Answer<S::Body>,
) {
    let Problem::Refusal(Refusal::NotFound(absence) | Refusal::Unavailable(absence)) = problem else {
        return;
    };
    if let (Route::Module(id) | Route::Closure(id), Some(manifest)) = (route, absence.manifest)
        && let Some(pack) = id.pack()
        && !absence.private
    {
        let timing = Trace::warm_timing(route.name());
        edge.warm
            .keep_refusal(request.url, &timing, refusal, Grounds::absence(pack, manifest));
    }
}

async fn answer<S: Store>(
    edge: &Edge<S>,
    trace: &Trace,
    request: &Request<'_>,
    route: &Route,
) -> Result<Answer<S::Body>, Problem> {
    let reader = Reader::new(edge, trace);
    let requester = access::requester(request.authorization);
    let timing = Trace::warm_timing(route.name());
    let visit = Visit {
        reader,
        request,
        timing,
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
    request: &'a Request<'a>,
    /// Server-Timing of an answer that is given again from memory.
    timing: String,
}

impl<S: Store> Visit<'_, S> {
    async fn module(&self, id: &ModuleId, gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let authorized = self.reader.authorize_delivery(id, gate).await?;
        let dressed = respond::module(&self.reader.edge.config, &authorized)?;
        let slot = Slot::Bytes(StorageKey::Blob(authorized.found.sha256));
        self.keep(&authorized, &dressed, authorized.found.size, slot);
        if dressed.is_known(self.request.if_none_match) {
            return Ok(dressed.not_modified());
        }
        let body = self.reader.retrieve(&authorized).await?;
        Ok(dressed.with_body(Content::Stored(body)))
    }

    async fn closure(&self, id: &ModuleId, gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let authorized = self.reader.authorize_delivery(id, gate).await?;
        let closure = self.reader.retrieve_closure(&authorized).await?;
        let dressed = respond::closure(&self.reader.edge.config, &authorized, &closure)?;
        let slot = Slot::Bytes(StorageKey::Closure(authorized.found.graph));
        self.keep(&authorized, &dressed, closure.body.len() as u64, slot);
        if dressed.is_known(self.request.if_none_match) {
            return Ok(dressed.not_modified());
        }
        Ok(dressed.with_body(Content::Stored(closure.body.clone())))
    }

    /// Keeps the finished answer, where it is the same for everyone.
    fn keep(&self, authorized: &Authorized, dressed: &Dressed, length: u64, slot: Slot) {
        if !authorized.permit.is_private() {
            let grounds = Grounds::delivery(&authorized.found);
            let warm = &self.reader.edge.warm;
            warm.keep_delivery(self.request.url, &self.timing, dressed.whole(length), grounds, slot);
        }
    }

    async fn index(&self, query: &IndexQuery, gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let (release, ()) = self.reader.release(async |_| Ok(())).await?;
        let dressed = respond::index(&index::fingerprint(&release, gate, query), gate.is_private())?;
        if dressed.is_known(self.request.if_none_match) {
            return Ok(dressed.not_modified());
        }
        let page = self.reader.index(&release, gate, query).await?;
        Ok(dressed.with_body(Content::Text(page)))
    }

    /// A manifest's root or a shard, which are public or for those who may see everything.
    async fn object(&self, key: StorageKey, digest: [u8; 32], gate: &Gate) -> Result<Answer<S::Body>, Problem> {
        let permit = gate.catalog()?;
        let private = permit.is_private();
        let absent = || Problem::from(Refusal::NotFound(Absence::outside_releases(private)));
        if self.reader.edge.memory.is_absent(&key, self.reader.edge.store.now()) {
            return Err(absent());
        }
        let Some(body) = self.reader.bytes(key.clone(), &digest).await? else {
            self.reader.edge.memory.note_absent(key, self.reader.edge.store.now());
            return Err(absent());
        };
        let dressed = respond::object(&BlobDigest::from_bytes(digest), private)?;
        if dressed.is_known(self.request.if_none_match) {
            return Ok(dressed.not_modified());
        }
        Ok(dressed.with_body(Content::Stored(body)))
    }

    /// The envelope of the channel that this worker serves: the newest that was taken.
    async fn channel(&self, name: &str) -> Result<Answer<S::Body>, Problem> {
        match &self.reader.edge.config.source {
            Source::Channel(ours) if ours == name => {}
            Source::Nothing(why) => return Err(Fault::Configuration(why).into()),
            Source::Channel(_) | Source::Manifest(_) => {
                return Err(Refusal::NotFound(Absence::default()).into());
            }
        }
        let taken = self.reader.channel(name).await;
        let envelope = taken.ok_or_else(|| self.reader.no_release())?.envelope;
        let dressed = respond::channel(&BlobDigest::of(envelope.as_bytes()))?;
        if dressed.is_known(self.request.if_none_match) {
            return Ok(dressed.not_modified());
        }
        Ok(dressed.with_body(Content::Text(envelope.to_string())))
    }
}
