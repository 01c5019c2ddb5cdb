//! NodeTool's client (nodetool-client.mjs) against the worker: it gets every module of every starter pack and of every
//! reference pack, sees an upgrade between two runs, and notices whatever is changed on the way.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { NodeToolClient } from "./nodetool-client.mjs";
import { CACHING, MODULES, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { DIFFERENCES, VECTORS } from "./support/nodetool.mjs";
import { STARTER_PACKS, requireStarterPacks, scratch } from "./support/project.mjs";
import { GOOD_PACKS, build, publish, writePack } from "./support/release.mjs";

/** Milliseconds for a test that builds, publishes and serves. */
const PATIENCE = 120_000;

/** A worker over a local KV that any number of releases may be published to. */
async function open(context) {
  const folder = scratch("walk");
  const state = join(folder, "state");
  let built = 0;
  const edge = await startEdge({ state });
  context.after(() => edge.close());
  return {
    edge,
    async publish(roots, options = {}) {
      built += 1;
      const release = await build(roots, join(folder, `release-${built}`), options);
      await publish(release, state, { args: options.withheld ? ["--allow-withheld"] : [] });
    },
  };
}

/** The index, by specifier. */
async function index(edge) {
  const { modules, next } = JSON.parse((await edge.get("/api/sandbox-modules")).body);
  assert.equal(next, undefined);
  return new Map(modules.map((module) => [module.specifier, module]));
}

/** Checks that a client of its own gets the whole graph of a specifier, as the index describes it. */
async function checkWalk(edge, specifier, listed) {
  const client = new NodeToolClient(edge.fetch);
  const records = await client.prefetch([specifier]);
  const { modules, statuses } = client.resolve([specifier], records);
  assert.deepEqual(statuses, [], specifier);
  const [{ graph, ...root }] = modules;
  assert.equal(root.digest, listed.graphDigest, specifier);
  assert.equal(root.kind, listed.kind, specifier);
  assert.equal(graph.length, listed.files, `${specifier}: as many files as the index says`);
  assert.equal(records.size, listed.files, `${specifier}: nothing is fetched twice or for nothing`);
  assert.ok(graph.every((record) => record.digest === root.digest), `${specifier}: all of one graph`);
  // What a client may keep for ever it has from the walk: asked again, nothing but the root is fetched.
  const asked = [];
  const counting = new NodeToolClient((path, options) => (asked.push(path), edge.fetch(path, options)));
  await counting.prefetch([specifier]);
  await counting.prefetch([specifier]);
  assert.equal(asked.length, listed.files + 1, `${specifier}: the second run asks for the root alone`);
  return { root, graph };
}

/** The starter packs' package.json files. */
function starterManifests() {
  const folders = readdirSync(STARTER_PACKS, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders
    .filter(({ name }) => name !== "node_modules")
    .map(({ name }) => ({ folder: name, ...JSON.parse(readFileSync(join(STARTER_PACKS, name, "package.json"), "utf8")) }));
}

/** The names that a bundled entry exports, by evaluating it. */
async function exportsOf(source) {
  const url = `data:text/javascript;base64,${Buffer.from(source).toString("base64")}`;
  return Object.keys(await import(url)).sort();
}

test("every module of every starter pack", { timeout: PATIENCE }, async (context) => {
  requireStarterPacks();
  const { edge, publish: put } = await open(context);
  await put([STARTER_PACKS]);
  const listed = await index(edge);
  const manifests = starterManifests();
  const declared = manifests.flatMap(({ name, folder, nodetool }) =>
    nodetool.sandboxModules.map((module) => ({
      ...module,
      folder,
      specifier: module.name === "." ? name : `${name}/${module.name}`,
    })),
  );
  assert.deepEqual([...listed.keys()].sort(), declared.map(({ specifier }) => specifier).sort());
  for (const { specifier, npm, file, kind, folder, exports } of declared) {
    await context.test(specifier, async () => {
      const { root, graph } = await checkWalk(edge, specifier, listed.get(specifier));
      for (const { fileId, sha256: digest } of graph.filter(() => npm === undefined)) {
        assert.equal(digest, sha256(readFileSync(join(STARTER_PACKS, folder, fileId))), `${fileId}: as in the pack`);
      }
      if (kind === "wasm") {
        assert.deepEqual(root.wasm.exports, exports.map((name) => (name.as ? name : { wasm: name, as: name })));
        const names = WebAssembly.Module.exports(new WebAssembly.Module(root.bytes)).map(({ name }) => name);
        assert.ok(root.wasm.exports.every(({ wasm }) => names.includes(wasm)));
      } else if (npm !== undefined) {
        assert.deepEqual(await exportsOf(root.source), listed.get(specifier).exports.toSorted());
      } else {
        assert.equal(root.fileId, file);
      }
    });
  }
});

test("every module of every reference pack", { timeout: PATIENCE }, async (context) => {
  const { edge, publish: put } = await open(context);
  await put([GOOD_PACKS], { withheld: true });
  const listed = await index(edge);
  const answered = ({ dir, modules }) =>
    modules.filter(({ moduleId, refusal }) => {
      const difference = DIFFERENCES.packs[dir] ?? DIFFERENCES.modules[moduleId];
      return difference === undefined ? refusal === undefined : difference.answer === "npm";
    });
  const delivered = VECTORS.packs.flatMap(answered);
  assert.deepEqual([...listed.keys()].sort(), delivered.map(({ specifier }) => specifier).sort());
  for (const row of delivered) {
    await context.test(row.specifier, async () => {
      const { root, graph } = await checkWalk(edge, row.specifier, listed.get(row.specifier));
      assert.equal(root.fileId, row.fileId);
      if (row.npm === undefined) {
        assert.equal(root.digest, row.graphDigest);
        const files = VECTORS.packs.flatMap((pack) => pack.files);
        const digest = new Map(files.map((file) => [file.moduleId, file.bodySha256]));
        graph.forEach((record) => assert.equal(record.sha256, digest.get(`${record.packName}::${record.fileId}`)));
      }
    });
  }
});

/** Two versions of a pack with a helper; the helper changes, the entries do not. */
const GREETING = (version, text) => ({
  name: "@example/greeting",
  version,
  modules: { ".": "index.js", loud: "loud.js" },
  internal: ["lib/text.js"],
  files: {
    "index.js": 'import { text } from "./lib/text.js";\nexport const greet = () => text;\n',
    "loud.js": 'import { text } from "./lib/text.js";\nexport const shout = () => `${text}!`;\n',
    "lib/text.js": `export const text = ${JSON.stringify(text)};\n`,
  },
});
const STEADY = {
  name: "@example/steady",
  version: "1.0.0",
  modules: { ".": "index.js" },
  files: { "index.js": "export const steady = true;\n" },
};

test("an upgrade between two runs", { timeout: PATIENCE }, async (context) => {
  const { edge, publish: put } = await open(context);
  const packs = join(scratch("upgrade"), "node_modules");
  const specifiers = ["@example/greeting", "@example/greeting/loud", "@example/steady"];
  const client = new NodeToolClient(edge.fetch);
  const get = (id, headers) => edge.get(MODULES + encodeURIComponent(id), { headers });

  writePack(packs, STEADY);
  writePack(packs, GREETING("1.0.0", "hello"));
  await put([packs]);
  const before = await client.prefetch(specifiers);
  const oldRoot = await get("@example/greeting");
  const oldIds = [...before.keys(), ...specifiers.slice(0, 2).map((specifier) => before.get(specifier).digest)].filter(
    (id) => /^[0-9a-f]{64}/.test(id),
  );
  assert.equal(oldIds.length, 4, "two helpers and two graphs");
  const oldAnswers = new Map();
  for (const id of oldIds) {
    oldAnswers.set(id, await get(id));
  }
  // A walk that has begun: its root is known, its dependency not yet.
  const begun = JSON.parse(oldRoot.headers.get("x-sandbox-module-dependencies"));

  writePack(packs, GREETING("1.1.0", "good day"));
  await put([packs]);

  await context.test("a named id gives the new graph and a changed ETag", async () => {
    for (const specifier of specifiers.slice(0, 2)) {
      const old = before.get(specifier);
      const answer = await get(specifier, { "If-None-Match": `"${old.digest}"` });
      assert.equal(answer.status, 200);
      assert.notEqual(answer.headers.get("etag"), `"${old.digest}"`);
      assert.equal(answer.headers.get("x-sandbox-pack-version"), "1.1.0");
    }
    const helper = await get("@example/greeting::lib/text.js");
    assert.equal(helper.body.toString(), 'export const text = "good day";\n');
    assert.notEqual(helper.headers.get("x-packferry-manifest"), oldRoot.headers.get("x-packferry-manifest"));
  });

  await context.test("a pack that did not change is not sent again", async () => {
    const { status } = await get("@example/steady", { "If-None-Match": `"${before.get("@example/steady").digest}"` });
    assert.equal(status, 304);
  });

  await context.test("the old pinned ids give the old bytes, for ever", async () => {
    for (const [id, old] of oldAnswers) {
      const answer = await get(id);
      assert.equal(answer.status, 200, id);
      assert.ok(answer.body.equals(old.body), id);
      const lasting = ({ headers }) => [...headers].filter(([name]) => name !== "server-timing" && name !== "date");
      assert.deepEqual(lasting(answer), lasting(old), id);
      assert.equal(answer.headers.get("cache-control"), CACHING.pinned, id);
      assert.equal(answer.headers.get("x-sandbox-pack-version"), "1.0.0", id);
    }
  });

  await context.test("a walk that began before ends in the version it began with", async () => {
    assert.equal(begun.length, 1);
    assert.equal((await get(begun[0])).body.toString(), 'export const text = "hello";\n');
  });

  await context.test("the client's second run has the new version whole, and asks for no more than it must", async () => {
    const asked = [];
    const recording = new NodeToolClient(async (path, options) => {
      const response = await edge.fetch(path, options);
      asked.push([decodeURIComponent(path.slice(MODULES.length)).replace(/^[0-9a-f]{64}/, "…"), response.status]);
      return response;
    });
    await recording.prefetch(specifiers);
    asked.length = 0;
    writePack(packs, GREETING("1.2.0", "welcome"));
    await put([packs]);
    const after = await recording.prefetch(specifiers);
    assert.deepEqual(asked, [
      ["@example/greeting", 200],
      ["…::lib/text.js", 200],
      ["@example/greeting/loud", 200],
      ["…::lib/text.js", 200],
      ["@example/steady", 304],
    ]);
    const { modules, statuses } = recording.resolve(specifiers, after);
    assert.deepEqual(statuses, []);
    assert.deepEqual(
      modules.map(({ packVersion }) => packVersion),
      ["1.2.0", "1.2.0", "1.0.0"],
    );
    const helpers = modules.flatMap(({ graph }) => graph).filter(({ fileId }) => fileId === "lib/text.js");
    assert.deepEqual(new Set(helpers.map(({ source }) => source)), new Set(['export const text = "welcome";\n']));
  });

  await context.test("going back to the first version gives its digests again", async () => {
    writePack(packs, GREETING("1.0.0", "hello"));
    await put([packs]);
    for (const specifier of specifiers) {
      const { status } = await get(specifier, { "If-None-Match": `"${before.get(specifier).digest}"` });
      assert.equal(status, 304, specifier);
    }
  });
});

/** Changes to an answer on its way, and what the client says to them. `<id>` is the id of the answer that was changed. */
const ON_THE_WAY = [
  ["the body", { body: (bytes) => Buffer.concat([bytes, Buffer.from("\n")]) }, /failed its content check/],
  ["the announced hash", { headers: { "x-content-sha256": "0".repeat(64) } }, /the server announced 0{64} and delivered/],
  ["the announced hash, in upper case", { upper: "x-content-sha256" }, /failed its content check/],
  ["a required header", { headers: { "x-sandbox-file-id": "" } }, /was delivered without its content headers\./],
  ["the status, not found", { status: 404 }, /is not available on this server\./],
  ["the status, forbidden", { status: 403 }, /is not available to this client\./],
  ["the status, failing", { status: 503 }, /could not be fetched \(HTTP 503\)\./],
  ["the status, to nobody's condition", { status: 304 }, /could not be fetched \(HTTP 304\)\./],
  ["the contract", { headers: { "x-sandbox-wasm-contract": "{" } }, /an unreadable WASM call contract\./, "wasm"],
  ["the contract's shape", { headers: { "x-sandbox-wasm-contract": "{}" } }, /the schema refuses\./, "wasm"],
];
const CHANGED = { js: ["@acme/geo", "::sandbox/internal/round.js"], wasm: ["@acme/wasm-math/math", ""] };

test("what is changed on the way is noticed", { timeout: PATIENCE }, async (context) => {
  const { edge, publish: put } = await open(context);
  await put([GOOD_PACKS], { withheld: true });
  for (const [what, change, message, kind = "js"] of ON_THE_WAY) {
    await context.test(what, async () => {
      const [specifier, suffix] = CHANGED[kind];
      let changed;
      const client = new NodeToolClient(async (path, options) => {
        const response = await edge.fetch(path, options);
        const id = decodeURIComponent(path.slice(MODULES.length));
        if (!id.endsWith(suffix)) {
          return response;
        }
        changed = id;
        return tamper(response, change);
      });
      await assert.rejects(client.prefetch([specifier]), (error) => {
        assert.match(error.message, message);
        assert.ok(error.message.startsWith(`Sandbox module ${changed} `), error.message);
        return true;
      });
    });
  }
});

async function tamper(response, { body = (bytes) => bytes, headers = {}, upper, status = response.status }) {
  const bytes = body(Buffer.from(await response.arrayBuffer()));
  const changed = new Headers([...response.headers, ...Object.entries(headers)]);
  Object.entries(headers).forEach(([name, value]) => changed.set(name, value));
  if (upper !== undefined) {
    changed.set(upper, changed.get(upper).toUpperCase());
  }
  return { status, headers: changed, arrayBuffer: async () => bytes };
}
