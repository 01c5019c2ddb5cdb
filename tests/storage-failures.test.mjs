//! KV that throws, is slow, or says that nothing is there: every fault on every key that a request reads, in workerd.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { MODULES, checkProblem, notInstalled, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, publish, writePack } from "./support/release.mjs";

const PATIENCE = 120_000;
const folder = scratch("storage-failures");
const [packs, state, release] = ["packs", "state", "release"].map((name) => join(folder, name));

/** Paths to ask for and keys to break. */
let paths;
let keys;

before(
  async () => {
    const files = { "index.js": "export const whole = 1;\n" };
    writePack(packs, { name: "@example/whole", version: "1.0.0", modules: { ".": "index.js" }, files });
    await build([packs], release);
    await publish(release, state);
    const root = readFileSync(join(release, "manifest.json"));
    const [{ graphDigest, sha256: blob }] = JSON.parse(root).packs[0].modules;
    paths = {
      named: `${MODULES}${encodeURIComponent("@example/whole")}`,
      pinned: MODULES + graphDigest,
      closure: `/api/sandbox-closures/${graphDigest}`,
      index: "/api/sandbox-modules",
    };
    keys = {
      channel: "channel/stable",
      manifest: `manifest/${sha256(root)}`,
      graph: `graph/${graphDigest}`,
      closure: `closure/${graphDigest}`,
      blob: `blob/${blob}`,
    };
  },
  { timeout: PATIENCE },
);

/** Per path, the keys that it reads when the isolate remembers nothing. */
const READS = {
  named: ["channel", "manifest", "blob"],
  pinned: ["graph", "blob"],
  closure: ["graph", "closure"],
  index: ["channel", "manifest"],
};

const unavailable = { code: "storage-unavailable" };
const incomplete = { code: "storage-incomplete" };

/** A fault, and what it does; only a channel is not looked at twice. */
const FAULTS = [
  ["throw", () => unavailable],
  ["throw once", () => unavailable],
  ["slow", () => null],
  ["null once", (key) => (key === "channel" ? incomplete : null)],
  ["null", (key, path) => (key === "graph" ? notInstalled(path.slice(path.lastIndexOf("/") + 1)) : incomplete)],
];

/** An edge over a KV that will fail as told, and that is whole again when the test is over. */
async function start(context, vars) {
  const edge = await startEdge({ state, vars, faulty: true });
  context.after(async () => {
    await Promise.all(Object.values(keys).map((key) => edge.faults.delete(key)));
    await edge.close();
  });
  return edge;
}

for (const [fault, effect] of FAULTS) {
  for (const [name, read] of Object.entries(READS)) {
    for (const key of read) {
      test(`${fault}: ${key} of the ${name}`, { timeout: 30_000 }, async (context) => {
        const edge = await start(context);
        await edge.faults.put(keys[key], fault);
        const path = paths[name];
        const answer = await edge.get(path);
        const problem = effect(key, path);
        if (problem === null) {
          assert.equal(answer.status, 200, answer.body.toString());
        } else {
          checkProblem(answer, problem, path);
          assert.equal(answer.headers.get("retry-after"), answer.status === 503 ? "5" : null);
        }
        await edge.faults.delete(keys[key]);
        if (problem?.code !== "not-found") {
          assert.equal((await edge.get(path)).status, 200, "it is over with the fault");
        }
      });
    }
  }
}

test("what was answered goes on without storage", { timeout: 30_000 }, async (context) => {
  const edge = await start(context);
  const good = {};
  for (const [name, path] of Object.entries(paths)) {
    good[name] = (await edge.get(path)).body;
  }
  await Promise.all(Object.values(keys).map((key) => edge.faults.put(key, "throw")));
  for (const [name, path] of Object.entries(paths)) {
    assert.ok((await edge.get(path)).body.equals(good[name]), name);
  }
  const { status, storage, problem } = JSON.parse((await edge.get("/healthz")).body);
  assert.deepEqual([status, storage, problem], ["degraded", "failing", "storage failed to read channel/stable"]);
});

test("many requests at once read a slow key a few times at most", { timeout: 30_000 }, async (context) => {
  const edge = await start(context);
  for (const key of [keys.graph, keys.blob]) {
    await edge.faults.put(key, "slow");
  }
  const answers = await Promise.all(Array.from({ length: 20 }, () => edge.get(paths.pinned)));
  assert.ok(answers.every(({ status }) => status === 200));
  const reads = answers.map(({ headers }) => Number(/\bkv;desc="(\d+)"/.exec(headers.get("server-timing"))[1]));
  const total = reads.reduce((sum, count) => sum + count, 0);
  assert.ok(total >= 2 && total <= 8, `${total} reads for 20 requests`);
});
