//! Asking the edge, and looking at its answers.

use std::rc::Rc;

use futures::executor::block_on;
use packferry_worker::config::Config;
use packferry_worker::fetch::Edge;
use packferry_worker::headers::leave_out_of_not_modified;
use packferry_worker::respond::Content;
use packferry_worker::serve::{Request, serve};
use packferry_worker::store::MemoryStore;
use packferry_worker::warm;
use serde_json::Value;

pub(crate) type TestEdge = Edge<MemoryStore>;

/// An edge over empty storage, with these vars.
pub(crate) fn edge(vars: &[(&str, &str)]) -> TestEdge {
    let var = |name: &str| {
        let row = vars.iter().find(|(var, _)| *var == name);
        row.map(|(_, value)| (*value).to_owned())
    };
    let store = MemoryStore::default();
    store.wait(1_800_000_000_000);
    Edge::new(Config::read(var), store)
}

/// An answer, flattened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Reads of storage that it took.
    pub(crate) reads: Vec<String>,
    /// The log's line, if there was one.
    pub(crate) line: Option<String>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let row = self.headers.iter().find(|(header, _)| header == name);
        row.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Status and problem code.
    pub(crate) fn problem(&self) -> (u16, String) {
        let code = self.json()["code"].as_str().unwrap().to_owned();
        (self.status, code)
    }
}

/// A request's method, target and headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) authorization: Option<&'a str>,
    pub(crate) if_none_match: Option<&'a str>,
}

pub(crate) const fn get(target: &str) -> Ask<'_> {
    Ask {
        method: "GET",
        target,
        authorization: None,
        if_none_match: None,
    }
}

pub(crate) async fn ask(edge: &TestEdge, ask: Ask<'_>) -> Seen {
    let url = format!("https://edge.example{}", ask.target);
    let request = Request {
        method: ask.method,
        url: &url,
        authorization: ask.authorization,
        if_none_match: ask.if_none_match,
    };
    let warm = warm(edge, &request);
    let (answer, line) = serve(edge, &request).await;
    let (parts, content) = answer.into_parts();
    let seen = Seen {
        status: parts.status.as_u16(),
        headers: pairs(&parts.headers),
        body: bytes(content),
        reads: edge.store.take_reads(),
        line: line.map(|line| line.json),
    };
    if let Some(warm) = warm {
        assert_eq!(
            warm, seen,
            "what is given from memory is what the whole way gives: {ask:?}"
        );
    }
    seen
}

/// What the entry module would be given before anything else.
fn warm(edge: &TestEdge, request: &Request<'_>) -> Option<Seen> {
    if !matches!(request.method, "GET" | "HEAD") {
        return None;
    }
    let hit = warm::answer(edge, request.url, request.if_none_match)?;
    let mut headers = hit.finished.headers.clone();
    let mut status = hit.finished.status;
    if hit.not_modified {
        status = http::StatusCode::NOT_MODIFIED;
        leave_out_of_not_modified(&mut headers);
    }
    let body = bytes(hit.content);
    Some(Seen {
        status: status.as_u16(),
        headers: pairs(&headers),
        body: if request.method == "HEAD" { Vec::new() } else { body },
        reads: Vec::new(),
        line: None,
    })
}

fn pairs(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let pair =
        |(name, value): (&http::HeaderName, &http::HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
    let mut pairs: Vec<_> = headers.iter().map(pair).collect();
    pairs.sort();
    pairs
}

fn bytes(content: Content<Rc<[u8]>>) -> Vec<u8> {
    match content {
        Content::Nothing => Vec::new(),
        Content::Text(text) => text.into_bytes(),
        Content::Stored(body) => body.to_vec(),
    }
}

pub(crate) fn visit(edge: &TestEdge, request: Ask<'_>) -> Seen {
    block_on(ask(edge, request))
}

/// The path of a module id, as a client writes it.
pub(crate) fn module_path(id: &str) -> String {
    let mut path = "/api/sandbox-modules/".to_owned();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}
