//! A catalog that is too large for one document: found by name, listed and upgraded through shards, with no more reads
//! of storage than the design allows.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { MODULES, checkProblem, notInstalled } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, publish, writePack } from "./support/release.mjs";

const PATIENCE = 120_000;
const COUNT = 160;
/** Names whose order by UTF-16 code units is not that of their letters. */
const NAMES = Array.from({ length: COUNT }, (_, at) => `${["@Many/P", "@many/p", "many_", "Many-"][at % 4]}${at}`);

const pack = (name, value) => ({
  name,
  version: "1.0.0",
  modules: { ".": "index.js" },
  internal: ["value.js"],
  files: {
    "index.js": `import { value } from "./value.js";\nexport const of = ${JSON.stringify(name)};\nexport { value };\n`,
    "value.js": `export const value = ${JSON.stringify(value)};\n`,
  },
});

const folder = scratch("shards");
const [packs, state, release] = ["packs", "state", "release"].map((name) => join(folder, name));

before(
  async () => {
    NAMES.forEach((name) => writePack(packs, pack(name, name)));
    await build([packs], release);
    await publish(release, state);
  },
  { timeout: PATIENCE },
);

const objects = (dir) => new Set(readdirSync(join(dir, "objects"), { recursive: true }).filter((path) => /[0-9a-f]{64}$/.test(path)));
const ask = (edge, id) => edge.get(MODULES + encodeURIComponent(id));

/** How often storage was read for an answer: the answer says so itself. */
function readsOf({ headers }) {
  return Number(/\bkv;desc="(\d+)"/.exec(headers.get("server-timing"))?.[1] ?? NaN);
}

test("the manifest is a root with shards, each within the bound", () => {
  const { shards } = JSON.parse(readFileSync(join(release, "manifest.json"), "utf8"));
  assert.ok(shards.length >= 3, `${shards.length} shards`);
  const firsts = shards.map(({ first }) => first);
  assert.deepEqual(firsts, [...firsts].sort(), "in order of name, by UTF-16 code units");
  const all = shards.flatMap(({ first, sha256 }) => {
    const text = readFileSync(join(release, "objects", "shard", sha256));
    assert.ok(text.length <= 65_536, `${sha256}: ${text.length} bytes`);
    const names = JSON.parse(text).packs.map(({ name }) => name);
    assert.equal(names[0], first);
    return names;
  });
  assert.deepEqual(all, [...NAMES].sort());
});

test("every name is found, and those between and around them are not", { timeout: PATIENCE }, async (context) => {
  const edge = await startEdge({ state });
  context.after(() => edge.close());
  for (const name of NAMES) {
    const answer = await ask(edge, name);
    assert.equal(answer.status, 200, name);
    assert.match(answer.body.toString(), new RegExp(`of = "${name}"`));
  }
  for (const name of ["!", "0", "@Many/P", "@many/p~", "@many", "Many-", "many_9999", "zzz", "~"]) {
    checkProblem(await ask(edge, name), notInstalled(name), name);
  }
  const { modules, next } = JSON.parse((await edge.get("/api/sandbox-modules")).body);
  assert.equal(next, undefined);
  assert.deepEqual(modules.map(({ specifier }) => specifier), [...NAMES].sort());
  assert.ok(modules.every(({ files }) => files === 2));
});

test("cold and warm answers read storage no more often than allowed", { timeout: PATIENCE }, async (context) => {
  const edge = await startEdge({ state, vars: { POINTER_CACHE_SECONDS: "60" } });
  context.after(() => edge.close());
  const name = NAMES[COUNT / 2];
  const cold = await ask(edge, name);
  assert.ok(readsOf(cold) >= 1 && readsOf(cold) <= 4, `cold named: ${readsOf(cold)} reads`);
  assert.equal(readsOf(await ask(edge, name)), 0, "warm named");
  const [helper] = JSON.parse(cold.headers.get("x-sandbox-module-dependencies"));
  const pinned = await ask(edge, helper);
  assert.ok(readsOf(pinned) >= 1 && readsOf(pinned) <= 2, `cold pinned: ${readsOf(pinned)} reads`);
  assert.equal(readsOf(await ask(edge, helper)), 0, "warm pinned");
});

test("one changed pack writes what changed", { timeout: PATIENCE }, async (context) => {
  const edge = await startEdge({ state });
  context.after(() => edge.close());
  const name = NAMES[COUNT / 2];
  const upgraded = join(folder, "upgraded");
  writePack(packs, pack(name, "something new"));
  await build([packs], upgraded);
  const [old, now] = [objects(release), objects(upgraded)];
  const written = [...now].filter((path) => !old.has(path));
  const kinds = written.map((path) => path.split("/")[0]).sort();
  assert.deepEqual(kinds, ["blob", "closure", "graph", "shard"]);
  await publish(upgraded, state);
  const answer = await ask(edge, `${name}::value.js`);
  assert.equal(answer.body.toString(), 'export const value = "something new";\n');
  assert.equal((await ask(edge, NAMES[0])).status, 200);
});
