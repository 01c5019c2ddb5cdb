//! A thread that reads and hashes the files that it is told of: what a build over them takes at least.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { parentPort } from "node:worker_threads";

parentPort.on("message", (files) => {
  for (const file of files) createHash("sha256").update(readFileSync(file)).digest();
  parentPort.postMessage("done");
});
