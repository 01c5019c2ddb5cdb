//! Finished answers, given again from memory without a future: what makes a warm request cost what it costs to send.
//!
//! An answer is kept under the path that was asked for, with what it rests on: the release for a named id, and what the
//! policy let through. It is given only while that still holds; else the request takes the whole way through `serve.rs`.
//! Only answers that are the same for everyone are kept, so no requester can matter.

use std::cell::RefCell;
use std::rc::Rc;

use http::{HeaderMap, StatusCode, header};
use packferry_core::digest::{GraphDigest, ManifestDigest};
use packferry_core::policy::Subject;

use crate::fetch::Edge;
use crate::headers;
use crate::lookup::Found;
use crate::memory::{Lru, Object, Slot};
use crate::respond::{self, Answer, Content, Whole};
use crate::route;
use crate::store::{Body, Store};

/// What an answer rests on.
#[derive(Debug)]
pub(crate) struct Grounds {
    /// The release that answered a named id.
    manifest: Option<ManifestDigest>,
    pack: String,
    version: Option<String>,
    graph: Option<GraphDigest>,
}

impl Grounds {
    /// Of a delivery.
    pub(crate) fn delivery(found: &Found) -> Self {
        Self {
            manifest: found.manifest,
            pack: found.pack.clone(),
            version: found.version.clone(),
            graph: Some(found.graph),
        }
    }

    /// Of the absence of a named id.
    pub(crate) fn absence(pack: &str, manifest: ManifestDigest) -> Self {
        Self {
            manifest: Some(manifest),
            pack: pack.to_owned(),
            version: None,
            graph: None,
        }
    }

    fn hold<S: Store>(&self, edge: &Edge<S>) -> bool {
        let subject = Subject {
            pack: &self.pack,
            version: self.version.as_deref(),
            graph: self.graph,
        };
        let released = self.manifest.is_none_or(|manifest| edge.is_answering(manifest));
        released && edge.is_public(&subject)
    }
}

/// Where a finished answer's body is.
#[derive(Debug)]
enum Kept {
    /// In the memory of objects, for as long as that has it. The headers promise so many bytes.
    Slot(Slot, u64),
    /// Here.
    Text(String),
}

/// A finished answer.
#[derive(Debug)]
pub struct Finished<D> {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// What the runtime made of them.
    pub dress: D,
    tag: Option<String>,
    grounds: Grounds,
    kept: Kept,
}

/// The finished answers of an isolate.
#[derive(Debug)]
pub(crate) struct Warm<D> {
    deliveries: RefCell<Lru<Rc<str>, Rc<Finished<D>>>>,
    /// Kept apart, so that a flood of invented ids pushes out no delivery.
    refusals: RefCell<Lru<Rc<str>, Rc<Finished<D>>>>,
}

/// Bytes that the headers of an answer take here and in the runtime, roughly.
const ANSWER_BYTES: usize = 4_096;
/// Bytes for refusals.
const REFUSAL_BYTES: usize = 1 << 20;

impl<D: Default> Warm<D> {
    /// None yet; deliveries within a budget, their bodies not counted.
    pub(crate) fn new(budget: usize) -> Self {
        Self {
            deliveries: RefCell::new(Lru::new(budget)),
            refusals: RefCell::new(Lru::new(REFUSAL_BYTES)),
        }
    }

    /// Keeps the answer to a GET of `url` that has these headers, and whose body memory may hold in `slot`.
    pub(crate) fn keep_delivery(&self, url: &str, timing: &str, whole: Whole, grounds: Grounds, slot: Slot) {
        let kept = Kept::Slot(slot, whole.length);
        let finished = Finished::new(StatusCode::OK, timing, whole.headers, grounds, kept);
        insert(&self.deliveries, url, finished);
    }

    /// Keeps the refusal `answer` to a GET of `url`.
    pub(crate) fn keep_refusal<B>(&self, url: &str, timing: &str, answer: &Answer<B>, grounds: Grounds) {
        if let Content::Text(text) = answer.body() {
            let kept = Kept::Text(text.clone());
            let finished = Finished::new(answer.status(), timing, answer.headers().clone(), grounds, kept);
            insert(&self.refusals, url, finished);
        }
    }

    fn get(&self, path: &str) -> Option<Rc<Finished<D>>> {
        let delivery = self.deliveries.borrow_mut().get(path);
        delivery.or_else(|| self.refusals.borrow_mut().get(path))
    }
}

fn insert<D>(kept: &RefCell<Lru<Rc<str>, Rc<Finished<D>>>>, url: &str, finished: Finished<D>) {
    let path: Rc<str> = route::path(url).into();
    let weight = ANSWER_BYTES + path.len();
    kept.borrow_mut().insert(path, Rc::new(finished), weight);
}

impl<D: Default> Finished<D> {
    fn new(status: StatusCode, timing: &str, mut headers: HeaderMap, grounds: Grounds, kept: Kept) -> Self {
        respond::note_timing(&mut headers, timing);
        let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok());
        Self {
            status,
            tag: tag.map(str::to_owned),
            headers,
            dress: D::default(),
            grounds,
            kept,
        }
    }
}

/// A finished answer that holds for a request.
pub struct Hit<S: Store> {
    /// The answer.
    pub finished: Rc<Finished<S::Dress>>,
    /// Its body; nothing where the client has it.
    pub content: Content<S::Body>,
    /// Whether the client has it: then the status is 304, and the headers lack what `leave_out_of_not_modified` takes.
    pub not_modified: bool,
}

/// The finished answer to a GET or HEAD of `url`, if there is one that still holds.
pub fn answer<S: Store>(edge: &Edge<S>, url: &str, if_none_match: Option<&str>) -> Option<Hit<S>> {
    let finished = edge.warm.get(route::path(url))?;
    if !finished.grounds.hold(edge) {
        return None;
    }
    let known = |tag: &String| if_none_match.is_some_and(|header| headers::matches_none(header, tag));
    let not_modified = finished.tag.as_ref().is_some_and(known);
    let content = match &finished.kept {
        _ if not_modified => Content::Nothing,
        Kept::Text(text) => Content::Text(text.clone()),
        Kept::Slot(slot, length) => {
            let body = match edge.memory.get(slot)? {
                Object::Body(body) => body,
                Object::Closure(closure) => closure.body.clone(),
                Object::Record(_) | Object::Root(_) | Object::Packs(_) => return None,
            };
            // Bytes of another length are corruption, which the whole way reports.
            Content::Stored(Some(body).filter(|body| u64::try_from(body.len()) == Ok(*length))?)
        }
    };
    Some(Hit {
        finished,
        content,
        not_modified,
    })
}
