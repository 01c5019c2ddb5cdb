//! The module that the runtime calls: hands requests to Rust, and survives its panics.
//!
//! A panic ends in a trap, and after a trap nothing in the WebAssembly instance can be relied on: the
//! request that caused it would never be answered, nor would the others that the instance was working
//! on. So they are all answered here, with 500, and the next request gets a new instance. What a request
//! means is decided in Rust, never here.

import * as worker from "./index.js";

const BODY = JSON.stringify({
  type: "about:blank",
  title: "Internal Server Error",
  status: 500,
  code: "internal",
  detail: "The worker failed and was restarted.",
});
/** What stands on every answer, as in headers.rs; tests/entry.test.mjs holds the two together. */
const HEADERS = {
  "Content-Type": "application/problem+json",
  "Cache-Control": "no-store",
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers":
    "Content-Type, ETag, X-Content-Digest, X-Content-Sha256, Unencoded-Digest, X-Sandbox-Pack, " +
    "X-Sandbox-Pack-Version, X-Sandbox-File-Id, X-Sandbox-Internal, X-Sandbox-Module-Dependencies, " +
    "X-Sandbox-Wasm-Contract, X-Sandbox-Host-Module, X-Packferry-Manifest, Cache-Control, Server-Timing, Retry-After",
  "Cross-Origin-Resource-Policy": "cross-origin",
  "X-Content-Type-Options": "nosniff",
  "Content-Security-Policy": "default-src 'none'; sandbox",
};

/** Per request in flight, the function that answers it with 500. */
const inFlight = new Set();
let broken = false;

/** Gives up the instance and whatever it was doing. */
function abandon() {
  broken = true;
  for (const fail of inFlight) {
    fail();
  }
  inFlight.clear();
}

// The panic hook of the `worker` crate sets this flag; the trap follows.
Object.defineProperty(worker.__worker_init_state(), "criticalError", {
  get: () => broken,
  set: (value) => value && abandon(),
});

/** Whether an error is a trap: a panic, memory that ran out, a stack that overflowed. */
const isTrap = (error) => error instanceof WebAssembly.RuntimeError || error instanceof RangeError;

// Traps without a panic in a task of the instance.
addEventListener("error", ({ error }) => {
  if (isTrap(error)) {
    abandon();
  }
});

function start(request, env, context) {
  if (broken) {
    worker.__wbg_reset_state();
    broken = false;
  }
  try {
    return worker.fetch(request, env, context);
  } catch (error) {
    console.error(error);
    abandon();
    return undefined;
  }
}

/** The answer that the instance has ready, if it has one: no promise is made for it, which would cost as much again. */
function known(request) {
  const head = request.method === "HEAD";
  if (broken || (!head && request.method !== "GET")) {
    return undefined;
  }
  try {
    return worker.warm(request.url, request.headers.get("If-None-Match"), head);
  } catch (error) {
    // The long way is open still, if need be with a new instance.
    console.error(error);
    if (isTrap(error)) {
      abandon();
    }
    return undefined;
  }
}

/** The answer that the instance has to work out; 500 where it fails. */
function answer(request, env, context) {
  return new Promise((resolve, reject) => {
    const fail = () => {
      const body = request.method === "HEAD" ? null : BODY;
      resolve(new Response(body, { status: 500, headers: HEADERS }));
    };
    inFlight.add(fail);
    const response = start(request, env, context);
    response?.then(resolve, reject).finally(() => inFlight.delete(fail));
  });
}

export default {
  fetch(request, env, context) {
    return known(request) ?? answer(request, env, context);
  },
};
