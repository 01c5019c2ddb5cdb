//! The only reader of bindings, and the only place where the runtime's requests and responses are touched.

use std::cell::OnceCell;
use std::rc::Rc;

use http::{HeaderMap, StatusCode};
use worker::Env;
use worker::js_sys::Array;
use worker::wasm_bindgen::JsValue;
use worker::web_sys::{Blob, Headers, Request, Response, ResponseInit};

use crate::config::Config;
use crate::fetch::Edge;
use crate::headers::leave_out_of_not_modified;
use crate::kv::{Kv, KvBody};
use crate::respond::{Answer, Content};
use crate::warm;

thread_local! {
    /// This isolate's worker: one deploy, so one configuration.
    static EDGE: OnceCell<Rc<Edge<Kv>>> = const { OnceCell::new() };
}

/// This isolate's worker, made by its first request.
pub(crate) fn edge(env: &Env) -> Rc<Edge<Kv>> {
    EDGE.with(|edge| {
        let make = || {
            let config = Config::read(|name| env.var(name).ok().map(|value| value.to_string()));
            Rc::new(Edge::new(config, Kv(env.kv("KV").ok())))
        };
        Rc::clone(edge.get_or_init(make))
    })
}

/// What of a request matters, in strings of ours.
pub(crate) struct Incoming {
    method: String,
    url: String,
    authorization: Option<String>,
    if_none_match: Option<String>,
}

impl Incoming {
    /// Reads a request. The URL is taken as text: no URL type takes every path that a client can send.
    pub(crate) fn read(request: &Request) -> Self {
        let headers = request.headers();
        let header = |name| headers.get(name).ok().flatten();
        Self {
            method: request.method(),
            url: request.url(),
            authorization: header("authorization"),
            if_none_match: header("if-none-match"),
        }
    }

    /// The request to serve.
    pub(crate) fn as_request(&self) -> crate::serve::Request<'_> {
        crate::serve::Request {
            method: &self.method,
            url: &self.url,
            authorization: self.authorization.as_deref(),
            if_none_match: self.if_none_match.as_deref(),
        }
    }
}

/// The runtime's response to `answer`.
pub(crate) fn response(answer: Answer<KvBody>) -> Result<Response, JsValue> {
    let (parts, content) = answer.into_parts();
    send(content, &init(parts.status, &parts.headers)?)
}

/// The finished answer to a GET or HEAD of `url`, if this isolate has one that still holds. What can be made once is kept as
/// objects of the runtime: making them anew would cost as much as all the rest.
pub(crate) fn warm_response(url: &str, if_none_match: Option<&str>, head: bool) -> Result<Option<Response>, JsValue> {
    EDGE.with(|edge| {
        let Some(hit) = edge.get().and_then(|edge| warm::answer(edge, url, if_none_match)) else {
            return Ok(None);
        };
        let finished = &hit.finished;
        let init = if hit.not_modified {
            remembered(&finished.dress.not_modified, || {
                let mut headers = finished.headers.clone();
                leave_out_of_not_modified(&mut headers);
                init(StatusCode::NOT_MODIFIED, &headers)
            })
        } else {
            remembered(&finished.dress.whole, || init(finished.status, &finished.headers))
        };
        let response = match hit.content {
            _ if head => send(Content::Nothing, init?),
            Content::Text(text) => {
                let blob = remembered(&finished.dress.text, || text_blob(&text))?;
                Response::new_with_opt_blob_and_init(Some(blob), init?)
            }
            content => send(content, init?),
        };
        response.map(Some)
    })
}

fn remembered<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T, JsValue>) -> Result<&T, JsValue> {
    match cell.get() {
        Some(value) => Ok(value),
        None => {
            let value = make()?;
            Ok(cell.get_or_init(|| value))
        }
    }
}

fn text_blob(text: &str) -> Result<Blob, JsValue> {
    Blob::new_with_str_sequence(&Array::of1(&JsValue::from_str(text)))
}

fn send(content: Content<KvBody>, init: &ResponseInit) -> Result<Response, JsValue> {
    match content {
        Content::Nothing => Response::new_with_opt_str_and_init(None, init),
        Content::Text(text) => Response::new_with_opt_str_and_init(Some(&text), init),
        Content::Stored(body) => Response::new_with_opt_blob_and_init(Some(&body.blob), init),
    }
}

fn init(status: StatusCode, map: &HeaderMap) -> Result<ResponseInit, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in map {
        // Every value was checked to be printable ASCII when it was set.
        headers.append(name.as_str(), value.to_str().unwrap_or_default())?;
    }
    let init = ResponseInit::new();
    init.set_status(status.as_u16());
    init.set_headers(&headers);
    Ok(init)
}
