//! One run: fetched records become a resolution, and the guest runs the code with it. Used by the page and by its worker.

import { createCatalog } from "@packferry/client";
import { GuestError, runInGuest } from "@packferry/client/guest";

/** The engine is compiled once; each run gets an instance of its own. */
let engine;
const compiled = () => (engine ??= WebAssembly.compileStreaming(fetch(new URL("./emscripten-module.wasm", import.meta.url))));

/** Runs `code`; what it comes to is plain data, errors of the guest included. */
export async function outcomeOf({ code, declarations, records }, signal) {
  const { modules, statuses } = createCatalog(records).resolveForExecution(declarations);
  const wasmModule = await compiled();
  const started = performance.now();
  const outcome = await runInGuest(code, { modules }, { wasmModule, ...(signal && { signal }) }).catch((error) => {
    if (!(error instanceof GuestError)) throw error;
    const { message, packName, guestStack, output } = error;
    return { failure: { message, packName, stack: guestStack }, output, outputDropped: 0 };
  });
  return { ...outcome, statuses, milliseconds: performance.now() - started };
}
