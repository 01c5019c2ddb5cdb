//! `wrangler dev` over the state that `packferry publish --local` writes, quiet and offline, with a word
//! on what to try once it answers. Builds and publishes nothing: `make dev` does. With `--pack PATH` it also
//! runs `packferry watch`, which builds and publishes PATH after every save.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";

import { ROOT, stateDirectory } from "./state-dir.mjs";

/** How long the worker may take until it answers, in milliseconds. */
const PATIENCE = 60_000;
/** A module of the starter packs, to show. */
const EXAMPLE = "@packferry%2Fyaml";

const { values: options } = parseArgs({
  options: { port: { type: "string", default: "8787" }, pack: { type: "string" } },
});
const port = Number(options.port);
if (!Number.isInteger(port) || port < 1 || port > 65_535) {
  fail(`The port must be a number from 1 to 65535, not "${options.port}".`);
}
if (!existsSync(join(ROOT, "node_modules", "wrangler"))) {
  fail("wrangler is missing. Run: make setup");
}
if (!(await isFree(port))) {
  fail(`Port ${port} is taken. Stop what listens there, or choose another: make dev PORT=${port + 1}`);
}

console.log(`==> Starting wrangler dev on port ${port} (about 5 seconds)`);
const wrangler = join(ROOT, "node_modules", "wrangler", "bin", "wrangler.js");
const state = stateDirectory();
// Whoever edits a pack wants to see the next answer, not that of half a minute ago.
const pointers = options.pack ? ["--var", "POINTER_CACHE_SECONDS:0"] : [];
const child = spawn(
  process.execPath,
  [wrangler, "dev", "--port", String(port), "--persist-to", state, ...pointers],
  {
    cwd: ROOT,
    stdio: "inherit",
    env: { CLOUDFLARE_CF_FETCH_ENABLED: "false", WRANGLER_SEND_METRICS: "false", ...process.env },
  },
);
// A terminal sends Ctrl-C to wrangler as well; a second one would cut its farewell short.
process.on("SIGINT", () => setTimeout(() => child.kill(), 3000));
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("close", (status, signal) => process.exit(signal ? 0 : status));

if (await answers(`http://localhost:${port}/healthz`)) {
  const base = `http://localhost:${port}/api/sandbox-modules`;
  const what = options.pack ?? "the starter packs";
  const example = options.pack ? "<specifier>, with %2F for a slash in it" : EXAMPLE;
  console.log(`
==> Packferry serves ${what}. Ctrl-C ends it. Try, in another terminal:

    curl ${base}
    curl -i ${base}/${example}
`);
  if (options.pack) {
    watch(options.pack, state);
  }
} else {
  console.error(`error: The worker did not answer within ${PATIENCE / 1000} seconds; see the lines above.`);
  child.kill();
}

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(1);
}

/** Builds and publishes the pack, or the packs, in `path` now and after every save, as long as wrangler runs. */
function watch(path, state) {
  const watcher = spawn(
    join(ROOT, "target", "debug", "packferry"),
    ["watch", path, "--out", join(ROOT, ".packferry", "watch"), "--persist-to", state],
    { stdio: ["ignore", "inherit", "inherit"] },
  );
  child.on("close", () => watcher.kill());
  watcher.on("close", (status) => {
    if (status) {
      child.kill();
    }
  });
}

/** Whether a server could listen on the port. */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "localhost", () => probe.close(() => resolve(true)));
  });
}

/** Waits until the address answers, whatever it says. */
async function answers(url) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(200)) {
    try {
      await (await fetch(url, { signal: AbortSignal.timeout(5000) })).arrayBuffer();
      return true;
    } catch {
      // Not yet.
    }
  }
  return false;
}
