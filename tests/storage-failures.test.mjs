//! KV that throws, is slow, says nothing, or holds other bytes: every fault on every key of every route, in workerd.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { MODULES, checkProblem, sha256 } from "./support/contract.mjs";
import { startEdge, startFleet } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, publish, writePack } from "./support/release.mjs";
import { openStorage } from "./support/storage.mjs";

const PATIENCE = 120_000;
const NAME = "@example/whole";
const folder = scratch("storage-failures");
const [packs, state, release] = ["packs", "state", "release"].map((name) => join(folder, name));

/** Keys of what the release consists of, and by route its path and the keys that it reads when the isolate remembers nothing. */
let keys;
let routes;

before(
  async () => {
    // Modules enough for a manifest with shards.
    const others = Array.from({ length: 200 }, (_, n) => `entry-${n}`);
    const modules = Object.fromEntries([[".", "index.js"], ...others.map((name) => [name, `${name}.js`])]);
    const files = Object.fromEntries(Object.values(modules).map((file) => [file, 'import "./part.js";\n']));
    files["part.js"] = "export const part = 1;\n";
    writePack(packs, { name: NAME, version: "1.0.0", modules, internal: ["part.js"], files });
    await build([packs], release);
    await publish(release, state);
    const storage = openStorage(state);
    await storage.put("policy/main", '{"version":1,"private":[],"blocked":[{"pack":"other"}],"tokens":[]}');
    await storage.close();
    const root = readFileSync(join(release, "manifest.json"));
    const [{ sha256: shard }] = JSON.parse(root).shards;
    const [pack] = JSON.parse(readFileSync(join(release, "objects", "shard", shard))).packs;
    const { graphDigest, sha256: blob } = pack.modules.find(({ specifier }) => specifier === NAME);
    keys = {
      policy: "policy/main",
      channel: "channel/stable",
      manifest: `manifest/${sha256(root)}`,
      shard: `shard/${shard}`,
      graph: `graph/${graphDigest}`,
      closure: `closure/${graphDigest}`,
      blob: `blob/${blob}`,
    };
    const module = (id) => MODULES + encodeURIComponent(id);
    const named = ["policy", "channel", "manifest", "shard"];
    routes = {
      specifier: [module(NAME), [...named, "blob"]],
      "named file": [module(`${NAME}::index.js`), [...named, "blob"]],
      "closure of a specifier": [`/api/sandbox-closures/${encodeURIComponent(NAME)}`, [...named, "closure"]],
      digest: [module(graphDigest), ["policy", "graph", "blob"]],
      "pinned file": [module(`${graphDigest}::index.js`), ["policy", "graph", "blob"]],
      "closure of a digest": [`/api/sandbox-closures/${graphDigest}`, ["policy", "graph", "closure"]],
      index: ["/api/sandbox-modules?limit=1", named],
      manifest: [`/api/manifests/${sha256(root)}`, ["policy", "manifest"]],
      shard: [`/api/shards/${shard}`, ["policy", "shard"]],
      channel: ["/api/channels/stable", ["channel"]],
      health: ["/healthz", ["channel", "manifest"]],
    };
  },
  { timeout: PATIENCE },
);

/**
 * A fault, and what it does to a content-addressed key, to the channel and to the policy; the last two are looked at once.
 * `null` stands for the answer that there would be without it.
 */
const FAULTS = [
  ["throw", "storage-unavailable", "storage-unavailable"],
  ["throw once", "storage-unavailable", "storage-unavailable"],
  ["late", "storage-unavailable", "storage-unavailable"],
  ["slow", null, null],
  ["null once", null, "storage-incomplete"],
  ["null", "storage-incomplete", "storage-incomplete"],
  ["other once", null, "storage-incomplete"],
  ["other", "corrupt", "storage-incomplete"],
  ["nothing", "corrupt", "storage-incomplete"],
  ["truncated", "corrupt", "storage-incomplete"],
  ["flipped", "corrupt", "storage-incomplete"],
];

/** What a route answers under a fault on a key that it reads. */
function expected(route, key, [fault, content, channel]) {
  if (key === "policy") {
    return channel && "policy-unavailable";
  }
  if (key === "channel") {
    return channel;
  }
  // What nothing names but the request itself is not incomplete without it: there is none.
  const asked = { digest: "graph", "pinned file": "graph", "closure of a digest": "graph", manifest: "manifest", shard: "shard" };
  return fault === "null" && asked[route] === key ? "not-found" : content;
}

for (const row of FAULTS) {
  const [fault] = row;
  test(`${fault}: on every key of every route`, { timeout: PATIENCE }, async (context) => {
    const cases = Object.entries(routes).flatMap(([route, [path, read]]) => read.map((key) => ({ route, path, key })));
    const edges = await startFleet({ state, vars: { POLICY: "main" }, count: cases.length + 1 });
    context.after(() => edges.close());
    const good = {};
    for (const [route, [path]] of Object.entries(routes)) {
      good[route] = await edges.get(cases.length, path);
      assert.equal(good[route].status, 200, route);
    }
    // One key is broken at a time; every edge that reads it is asked.
    for (const broken of Object.keys(keys)) {
      await edges.faults.put(keys[broken], fault);
      const asked = cases.map((one, n) => ({ ...one, n })).filter(({ key }) => key === broken);
      const answers = await Promise.all(asked.map(({ n, path }) => edges.get(n, path)));
      await edges.faults.delete(keys[broken]);
      for (const [at, { n, route, path, key }] of asked.entries()) {
        const what = `${fault}: ${key} of ${route}`;
        const problem = expected(route, key, row);
        check(answers[at], route, problem, good[route], what);
        if (problem !== "not-found") {
          const after = await edges.get(n, path);
          assert.equal(after.status, 200, `${what}: it is over with the fault`);
          assert.ok(route === "health" || after.body.equals(good[route].body), what);
        }
      }
    }
  });
}

/** Checks the answer of a route under a fault. */
function check(answer, route, problem, good, what) {
  if (route === "health") {
    assert.deepEqual([answer.status, JSON.parse(answer.body).status], [200, problem === null ? "ok" : "degraded"], what);
  } else if (problem === null) {
    assert.deepEqual([answer.status, answer.body.equals(good.body)], [200, true], what);
  } else {
    checkProblem(answer, { code: problem }, what);
    assert.equal(answer.headers.get("retry-after"), answer.status === 503 ? "5" : null, what);
  }
}

/** An edge over a KV that will fail as told, and that is whole again when the test is over. */
async function start(context, vars) {
  const edge = await startEdge({ state, vars, faulty: true });
  context.after(async () => {
    await Promise.all(Object.values(keys).map((key) => edge.faults.delete(key)));
    await edge.close();
  });
  return edge;
}

test("a KV that never answers is given up, on every route", { timeout: PATIENCE }, async (context) => {
  const paths = Object.entries(routes).filter(([route]) => route !== "health");
  const edges = await startFleet({ state, count: paths.length });
  context.after(() => edges.close());
  await Promise.all(Object.values(keys).map((key) => edges.faults.put(key, "never")));
  const answers = await Promise.all(paths.map(([, [path]], n) => edges.get(n, path)));
  await Promise.all(Object.values(keys).map((key) => edges.faults.delete(key)));
  for (const [n, [route, [path]]] of paths.entries()) {
    checkProblem(answers[n], { code: "storage-unavailable" }, route);
    assert.equal((await edges.get(n, path)).status, 200, `${route}: it is over with the fault`);
  }
});

test("what was answered goes on without storage", { timeout: 30_000 }, async (context) => {
  const edge = await start(context);
  const paths = Object.entries(routes).filter(([route]) => route !== "health");
  const good = {};
  for (const [route, [path]] of paths) {
    good[route] = (await edge.get(path)).body;
  }
  await Promise.all(Object.values(keys).map((key) => edge.faults.put(key, "throw")));
  for (const [route, [path]] of paths) {
    assert.ok((await edge.get(path)).body.equals(good[route]), route);
  }
  const { status, storage, problem } = JSON.parse((await edge.get("/healthz")).body);
  assert.deepEqual([status, storage, problem], ["degraded", "failing", "storage failed to read channel/stable"]);
});

test("many requests at once read a slow key a few times at most", { timeout: 30_000 }, async (context) => {
  const edge = await start(context);
  for (const key of [keys.graph, keys.blob]) {
    await edge.faults.put(key, "slow");
  }
  const [path] = routes.digest;
  const answers = await Promise.all(Array.from({ length: 20 }, () => edge.get(path)));
  assert.ok(answers.every(({ status }) => status === 200));
  const reads = answers.map(({ headers }) => Number(/\bkv;desc="(\d+)"/.exec(headers.get("server-timing"))[1]));
  const total = reads.reduce((sum, count) => sum + count, 0);
  assert.ok(total >= 2 && total <= 8, `${total} reads for 20 requests`);
});
