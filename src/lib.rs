//! The Packferry worker: module ids in, verified bytes out.
//!
//! A request is read in this order, top to bottom: `serve.rs` (its steps), `route.rs` (what it asks for), `access.rs` (who
//! asks), `lookup.rs` (authorization and retrieval, one operation; through `guard.rs`, `release.rs` and `fetch.rs`),
//! `respond.rs` and `headers.rs` (the answer), `warm.rs` (the same answer again). `store.rs` is what all of it needs from
//! outside. Everything here runs natively but `app.rs` and `kv.rs`, which alone know the runtime.

pub mod access;
pub mod config;
pub mod fetch;
mod guard;
pub mod headers;
mod health;
mod index;
pub mod log;
mod lookup;
mod memory;
pub mod problem;
mod release;
pub mod respond;
pub mod route;
pub mod serve;
pub mod store;
pub mod trace;
pub mod warm;

#[cfg(target_arch = "wasm32")]
mod app;
#[cfg(target_arch = "wasm32")]
mod kv;

/// Answers a request: the environment makes the worker, `serve` answers, and here its errors end.
#[cfg(target_arch = "wasm32")]
#[worker::event(fetch)]
async fn fetch(
    request: worker::web_sys::Request,
    env: worker::Env,
    _context: worker::Context,
) -> worker::Result<worker::web_sys::Response> {
    let edge = app::edge(&env);
    let incoming = app::Incoming::read(&request);
    let (answer, line) = serve::serve(&edge, &incoming.as_request()).await;
    match line {
        Some(line) if line.alarming => worker::console_error!("{}", line.json),
        Some(line) => worker::console_log!("{}", line.json),
        None => {}
    }
    app::response(answer).map_err(worker::Error::from)
}

/// The answer to a GET or HEAD that this isolate has finished before and that still holds; else nothing, and `fetch` is to be
/// asked. The entry module calls it first: no promise, no task, no objects but the response.
#[cfg(target_arch = "wasm32")]
#[worker::wasm_bindgen::prelude::wasm_bindgen(wasm_bindgen = worker::wasm_bindgen)]
pub fn warm(
    url: &str,
    if_none_match: Option<String>,
    head: bool,
) -> Result<Option<worker::web_sys::Response>, worker::wasm_bindgen::JsValue> {
    app::warm_response(url, if_none_match.as_deref(), head)
}
