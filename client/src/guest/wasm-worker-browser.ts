//! The worker of browsers in which WASM calls run.

import { type CallRequest, callWasm } from "./wasm-worker.js";

// The global scope of a worker; the library's types are those of pages.
const scope = globalThis as unknown as {
  onmessage: (event: MessageEvent<CallRequest>) => void;
  postMessage: (message: unknown) => void;
};
scope.onmessage = ({ data }) => scope.postMessage(callWasm(data));
scope.postMessage("ready");
