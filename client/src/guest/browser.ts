//! The guest half in browsers, on pages and in workers: `@packferry/client/guest`.

import { guestWith } from "./run.js";
import { startWebWorker } from "./workers-browser.js";

export * from "./index.js";

/** Runs code in a guest; WASM calls run in web workers. */
export const runInGuest = guestWith(startWebWorker);
