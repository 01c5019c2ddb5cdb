//! Web workers of browsers.

import type { CallReply } from "./wasm-worker.js";
import type { StartWorker } from "./workers.js";

/** Starts a web worker from a file beside this one, in the form that bundlers know. */
export const startWebWorker: StartWorker = (onReply, onError) => {
  const worker = new Worker(new URL("./wasm-worker-browser.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }: MessageEvent<CallReply>) => onReply(data);
  worker.onerror = ({ message }) => onError(new Error(message || "its script could not be loaded"));
  return {
    post: (request) => worker.postMessage(request),
    terminate: () => worker.terminate(),
  };
};
