//! A worker that fails in every way a Rust worker can, when asked to: what tests/entry.test.mjs sends
//! requests to. Built by `cargo xtask build-worker` around the entry module of the real one; never
//! deployed. It exists on wasm32 alone.

#![cfg(target_arch = "wasm32")]

use std::cell::Cell;
use std::time::Duration;

use worker::js_sys::Promise;
use worker::wasm_bindgen::JsValue;
use worker::wasm_bindgen::closure::Closure;
use worker::wasm_bindgen::prelude::wasm_bindgen;
use worker::web_sys;
use worker::{Context, Delay, Env, HttpRequest, Result, event};

thread_local! {
    /// Requests that this instance has answered: starts over with a new instance.
    static ANSWERED: Cell<u32> = const { Cell::new(0) };
}

/// Answers with the number of requests that this instance has answered, unless the path names a failure.
#[event(fetch)]
#[expect(clippy::panic, reason = "this is what the worker is for")]
async fn fetch(request: HttpRequest, _env: Env, _context: Context) -> Result<http::Response<String>> {
    match request.uri().path() {
        "/panic" => panic!("asked to"),
        "/panic-later" => {
            Delay::from(Duration::from_millis(50)).await;
            panic!("asked to, later");
        }
        "/panic-in-callback" => {
            let callback = Closure::once(|_: JsValue| panic!("asked to, by the runtime"));
            let _called = Promise::resolve(&JsValue::NULL).then(&callback);
            Delay::from(Duration::from_secs(10)).await;
        }
        "/trap" => core::arch::wasm32::unreachable(),
        "/overflow" => descend(0),
        "/slow" => Delay::from(Duration::from_millis(500)).await,
        "/error" => return Err("asked to".into()),
        _ => {}
    }
    let answered = ANSWERED.get() + 1;
    ANSWERED.set(answered);
    Ok(http::Response::new(answered.to_string()))
}

/// The entry module's first question: answers only where the path says so, unless it names a failure.
#[wasm_bindgen(wasm_bindgen = worker::wasm_bindgen)]
#[expect(clippy::panic, reason = "this is what the worker is for")]
pub fn warm(url: &str, _if_none_match: Option<String>, _head: bool) -> Option<web_sys::Response> {
    if url.ends_with("/panic-when-warm") {
        panic!("asked to, without a promise");
    }
    if url.ends_with("/trap-when-warm") {
        core::arch::wasm32::unreachable();
    }
    let warm = url.ends_with("/warm");
    warm.then(|| web_sys::Response::new_with_opt_str(Some("warm")).ok())
        .flatten()
}

/// Recurses until the stack is full.
#[expect(unconditional_recursion, reason = "the stack has to overflow")]
fn descend(depth: u64) {
    let frame = [depth; 64];
    descend(std::hint::black_box(frame)[63] + 1);
    std::hint::black_box(frame);
}
