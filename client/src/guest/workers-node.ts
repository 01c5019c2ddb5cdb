//! Worker threads of Node.

import { Worker } from "node:worker_threads";

import type { CallReply } from "./wasm-worker.js";
import type { StartWorker } from "./workers.js";

/** Starts a thread. It has no environment, and does not keep the process alive. */
export const startNodeWorker: StartWorker = (onReply, onError) => {
  const worker = new Worker(new URL("./wasm-worker-node.js", import.meta.url), { env: {}, execArgv: [] });
  worker.on("message", (reply: CallReply) => onReply(reply));
  worker.on("error", onError);
  worker.unref(); // after the listeners: they would hold the process again
  return {
    post: (request) => worker.postMessage(request),
    terminate: () => void worker.terminate(),
  };
};
