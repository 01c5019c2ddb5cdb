//! `wrangler dev` with the repository's configuration, on a port and a state of its own.

import { createServer } from "node:net";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";

import { start } from "./command.mjs";
import { WRANGLER } from "./project.mjs";
import { rawRequest } from "./raw.mjs";

/** A port that is free now. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

/** Starts it over the KV of `state`, and gives it once it answers; it ends after `timeout` milliseconds. */
export async function startWrangler(state, { timeout }) {
  const port = await freePort();
  const options = ["--ip", "127.0.0.1", "--port", String(port), "--inspector-port", "0", "--persist-to", state];
  const vars = ["--var", "POINTER_CACHE_SECONDS:0"];
  const wrangler = start(process.execPath, [WRANGLER, "dev", ...options, ...vars], { timeout });
  const url = `http://127.0.0.1:${port}`;
  let ended = false;
  wrangler.ended.catch(() => {}).finally(() => (ended = true));
  while (!(await isHealthy(url))) {
    if (ended) {
      throw new Error(`wrangler dev ended:\n${wrangler.output.stdout}${wrangler.output.stderr}`);
    }
    await sleep(200);
  }
  return {
    port,
    url,
    get: (path, headers = {}, method = "GET") => rawRequest(url, { method, path, headers }),
    async close() {
      wrangler.kill("SIGTERM");
      await Promise.race([wrangler.ended, sleep(3000)]);
      wrangler.kill();
    },
  };
}

async function isHealthy(url) {
  try {
    return (await rawRequest(url, { path: "/healthz" })).status === 200;
  } catch {
    return false;
  }
}
