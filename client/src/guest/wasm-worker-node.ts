//! The worker thread of Node in which WASM calls run.

import { parentPort } from "node:worker_threads";

import { type CallRequest, callWasm } from "./wasm-worker.js";

parentPort?.on("message", (request: CallRequest) => parentPort?.postMessage(callWasm(request)));
parentPort?.postMessage("ready");
