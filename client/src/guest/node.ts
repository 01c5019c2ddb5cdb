//! The guest half in Node: `@packferry/client/guest`.

import { guestWith } from "./run.js";
import { startNodeWorker } from "./workers-node.js";

export * from "./index.js";

/** Runs code in a guest; WASM calls run in worker threads. */
export const runInGuest = guestWith(startNodeWorker);
