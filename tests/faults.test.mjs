//! Storage that lacks something or holds something else than its key names: nothing unverified leaves, and what has
//! been answering goes on.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { CACHING, MODULES, checkHeaders, checkProblem, notInstalled, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, publish, writePack } from "./support/release.mjs";
import { openStorage } from "./support/storage.mjs";

const PATIENCE = 120_000;
const folder = scratch("faults");
const [packs, state, release] = ["packs", "state", "release"].map((name) => join(folder, name));
const BODY = 'import { part } from "./part.js";\nexport const whole = [part];\n';

let storage;
/** What the release consists of: ids to ask for and keys to damage. */
let ids;
let keys;

before(
  async () => {
    writePack(packs, {
      name: "@example/whole",
      version: "1.0.0",
      modules: { ".": "index.js" },
      internal: ["part.js"],
      files: { "index.js": BODY, "part.js": "export const part = 1;\n" },
    });
    await build([packs], release);
    await publish(release, state);
    storage = openStorage(state);
    const root = readFileSync(join(release, "manifest.json"));
    const [{ graphDigest, sha256: blob }] = JSON.parse(root).packs[0].modules;
    ids = { named: "@example/whole", pinned: graphDigest };
    keys = {
      blob: `blob/${blob}`,
      graph: `graph/${graphDigest}`,
      manifest: `manifest/${sha256(root)}`,
      channel: "channel/stable",
    };
  },
  { timeout: PATIENCE },
);
after(() => storage?.close());

const ask = (edge, id) => edge.get(MODULES + encodeURIComponent(id));

/** A pointer to the release's manifest, or to another. */
function envelope(changes) {
  const pointer = {
    version: 1,
    channel: "stable",
    sequence: 1,
    manifest: keys.manifest.slice("manifest/".length),
    publishedAt: "2026-01-01T00:00:00Z",
    ...changes,
  };
  return JSON.stringify({
    payloadType: "application/vnd.packferry.channel+json",
    payload: Buffer.from(JSON.stringify(pointer)).toString("base64"),
    signatures: [],
  });
}

/** Replaces a value by one of `change`, or removes it; gives the function that puts the old one back. */
async function damage(key, change) {
  const old = await storage.get(key);
  assert.notEqual(old, null, key);
  const value = change === null ? null : change(old);
  await (value === null ? storage.delete(key) : storage.put(key, value));
  return () => storage.put(key, old);
}

const flip = (bytes) => Buffer.from(bytes.map((byte, at) => (at === bytes.length - 2 ? byte ^ 1 : byte)));
const nothing = () => Buffer.alloc(0);
const corrupt = { code: "corrupt" };
const incomplete = { code: "storage-incomplete" };

/**
 * What is damaged, how, and what an isolate that starts afterwards answers for the named and the pinned id; `null`
 * stands for the module.
 */
const DAMAGES = [
  ["a blob with a flipped bit", "blob", flip, { named: corrupt, pinned: corrupt }],
  ["an empty blob", "blob", nothing, { named: corrupt, pinned: corrupt }],
  ["a missing blob", "blob", null, { named: incomplete, pinned: incomplete }],
  ["a graph record with a flipped bit", "graph", flip, { named: null, pinned: corrupt }],
  ["a graph record that is no JSON", "graph", () => "no JSON", { named: null, pinned: corrupt }],
  ["a missing graph record", "graph", null, { named: null, pinned: "not-found" }],
  ["a manifest with a flipped bit", "manifest", flip, { named: corrupt, pinned: null }],
  ["a missing manifest", "manifest", null, { named: incomplete, pinned: null }],
  ["a channel that is no envelope", "channel", () => "{}", { named: incomplete, pinned: null }],
  ["the envelope of another channel", "channel", () => envelope({ channel: "beta" }), { named: incomplete, pinned: null }],
  ["a missing channel", "channel", null, { named: incomplete, pinned: null }],
];

for (const [what, key, change, expected] of DAMAGES) {
  test(what, { timeout: 30_000 }, async (context) => {
    const mend = await damage(keys[key], change);
    const edge = await startEdge({ state });
    context.after(() => edge.close());
    for (const [kind, problem] of Object.entries(expected)) {
      const answer = await ask(edge, ids[kind]);
      if (problem === null) {
        assert.equal(answer.body.toString(), BODY, kind);
        continue;
      }
      checkProblem(answer, problem === "not-found" ? notInstalled(ids[kind]) : problem, kind);
      if (problem === incomplete) {
        checkHeaders(answer, { "retry-after": "5" }, kind);
      }
    }
    await mend();
    const mended = await ask(edge, ids.named);
    assert.equal(mended.status, 200, `mended: ${mended.body}`);
    checkHeaders(mended, { "cache-control": CACHING.named }, "mended");
  });
}

/** Pointers that a worker with a good release does not follow. */
const NOT_FOLLOWED = [
  ["to a manifest that is not there", () => envelope({ sequence: 9, manifest: "0".repeat(64) })],
  ["with a lower sequence", () => envelope({ sequence: 0 })],
  ["with the same sequence and another payload", () => envelope({ publishedAt: "2027-01-01T00:00:00Z" })],
  ["that is no envelope", () => "no JSON"],
];

for (const [what, change] of NOT_FOLLOWED) {
  test(`the last good release goes on under a channel ${what}`, { timeout: 30_000 }, async (context) => {
    const edge = await startEdge({ state });
    context.after(() => edge.close());
    assert.equal((await ask(edge, ids.named)).status, 200);
    const healthy = JSON.parse((await edge.get("/healthz")).body);
    assert.deepEqual([healthy.status, healthy.sequence], ["ok", 1]);
    const mend = await damage(keys.channel, change);
    context.after(mend);
    for (const id of Object.values(ids)) {
      assert.equal((await ask(edge, id)).body.toString(), BODY, id);
    }
    const health = await edge.get("/healthz");
    assert.equal(health.status, 200);
    const { status, manifest, problem } = JSON.parse(health.body);
    assert.equal(status, "degraded");
    assert.equal(manifest, healthy.manifest);
    assert.ok(problem?.length > 0, "it says what is wrong");
  });
}

test("what is wrong is in the worker's log, and no place of this machine", { timeout: 30_000 }, async (context) => {
  const mend = await damage(keys.blob, flip);
  context.after(mend);
  const edge = await startEdge({ state });
  context.after(() => edge.close());
  const answer = await ask(edge, ids.named);
  assert.match(edge.log(), new RegExp(keys.blob), "the log names the object");
  assert.ok(!edge.log().includes(folder));
  assert.ok(!answer.body.includes(keys.blob), "the answer does not");
});

test("MANIFEST in place of a channel: the deploy is the release", { timeout: 30_000 }, async (context) => {
  const mend = await damage(keys.channel, null);
  context.after(mend);
  const edge = await startEdge({ state, vars: { MANIFEST: keys.manifest.slice("manifest/".length) } });
  context.after(() => edge.close());
  const answer = await ask(edge, ids.named);
  assert.equal(answer.body.toString(), BODY);
  assert.equal((await edge.get("/api/channels/stable")).status, 404);
});
