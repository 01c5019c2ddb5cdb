//! NodeTool's reference answers (fixtures/vectors.json) against the worker, over a release built from the same
//! packs: every module and file, by its named and its pinned ids, with GET, HEAD and If-None-Match. Where we answer
//! something else on purpose, fixtures/vector-differences.json says what and why.

import assert from "node:assert/strict";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import {
  MODULES,
  checkDelivery,
  checkHead,
  checkHeaders,
  checkNotModified,
  checkProblem,
  notAvailable,
  notInstalled,
  sha256,
} from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { DIFFERENCES, PAYLOADS, VECTORS, ours } from "./support/nodetool.mjs";
import { scratch } from "./support/project.mjs";
import { GOOD_PACKS, build, copyPacks, publish, report, writePack } from "./support/release.mjs";

/** A release that is published and served: its folder, its manifest's digest and the worker. */
async function serve(roots, options) {
  const folder = scratch("vectors");
  const [release, state] = [join(folder, "release"), join(folder, "state")];
  await build(roots, release, options);
  await publish(release, state, { args: options.withheld ? ["--allow-withheld"] : [] });
  const manifest = sha256(readFileSync(join(release, "manifest.json")));
  return { release, manifest, edge: await startEdge({ state }) };
}

/** The request for a module id, as NodeTool's client writes it. */
function ask(served, id, options) {
  return served.edge.get(MODULES + encodeURIComponent(id), options);
}

/** Asks for one id in every way and checks every answer. Gives the body. */
async function checkId(served, id, delivery) {
  const full = await ask(served, id);
  checkDelivery(full, { ...delivery, manifest: served.manifest }, id);
  checkHead(await ask(served, id, { method: "HEAD" }), full, `HEAD ${id}`);
  const conditional = { "If-None-Match": full.headers.get("etag") };
  checkNotModified(await ask(served, id, { headers: conditional }), full, `If-None-Match, ${id}`);
  checkNotModified(await ask(served, id, { method: "HEAD", headers: conditional }), full, `HEAD, If-None-Match, ${id}`);
  return full;
}

/** The bytes of a file: as they lie on disk, or the facade that a host entry's digest covers. */
function bodyOf(pack, { kind, fileId, specifier }) {
  if (kind !== "host") {
    return readFileSync(join(GOOD_PACKS, pack.dir, fileId));
  }
  const { payload } = PAYLOADS.find((row) => row.specifier === specifier);
  return Buffer.from(JSON.parse(payload).facade);
}

/** Checks the row of a module or file that both deliver. */
async function checkRow(served, pack, row, entries) {
  const isEntry = row.specifier !== undefined;
  const delivery = {
    kind: row.kind,
    graphDigest: row.graphDigest,
    fileId: row.fileId,
    pack: pack.name,
    version: pack.version,
    dependencies: row.dependencies.map((id) => id.slice(id.indexOf("::") + 2)),
    body: bodyOf(pack, row),
  };
  const full = await checkId(served, row.moduleId, {
    ...delivery,
    internal: row.internal ?? false,
    wasmContract: row.wasm,
    hostId: row.hostId,
  });
  assert.equal(sha256(full.body), row.bodySha256, `${row.moduleId}: NodeTool's bytes`);
  checkHeaders(full, ours(row.route.headers), `${row.moduleId}: NodeTool's headers`);

  const entry = entries.get(row.graphDigest);
  const isPinnedEntry = entry.fileId === row.fileId;
  const pinned = {
    ...delivery,
    pinned: true,
    internal: !isPinnedEntry,
    wasmContract: isPinnedEntry ? entry.wasm : undefined,
    hostId: entry.hostId,
  };
  await checkId(served, `${row.graphDigest}::${row.fileId}`, pinned);
  if (isEntry) {
    await checkId(served, row.graphDigest, pinned);
  }
}

/** Checks a bundled npm entry, which NodeTool does not deliver: its answers agree with its own graph record. */
async function checkNpm(served, pack, row) {
  const full = await ask(served, row.moduleId);
  const graphDigest = full.headers.get("x-content-digest");
  const record = JSON.parse(readFileSync(join(served.release, "objects", "graph", graphDigest), "utf8"));
  assert.equal(sha256(record.payload), graphDigest, `${row.moduleId}: the digest is that of the payload`);
  const payload = JSON.parse(record.payload);
  assert.equal(payload.source, sha256(full.body), `${row.moduleId}: the payload names the bundle`);
  assert.notEqual(graphDigest, row.graphDigest, `${row.moduleId}: no placeholder's digest`);
  const delivery = {
    kind: "js",
    graphDigest,
    fileId: row.fileId,
    pack: pack.name,
    version: pack.version,
    dependencies: [],
    internal: false,
    body: full.body,
  };
  await checkId(served, row.moduleId, delivery);
  for (const id of [graphDigest, `${graphDigest}::${row.fileId}`]) {
    await checkId(served, id, { ...delivery, pinned: true });
  }
  const byFile = `${pack.name}::${row.fileId}`;
  checkProblem(await ask(served, byFile), notInstalled(byFile), byFile);
}

/** Checks one row of the vectors by what the differences, or else NodeTool, say of it. */
async function check(served, pack, row, entries) {
  const difference = DIFFERENCES.packs[pack.dir] ?? DIFFERENCES.modules[row.moduleId];
  const answer = difference?.answer ?? row.refusal?.reason ?? "delivered";
  const refusals = { "not-found": notInstalled, unavailable: notAvailable };
  if (answer === "delivered") {
    await checkRow(served, pack, row, entries);
  } else if (answer === "npm") {
    await checkNpm(served, pack, row);
  } else {
    const refusal = refusals[answer](row.moduleId);
    const problem = checkProblem(await ask(served, row.moduleId), refusal, row.moduleId);
    if (row.route.status === 404 && row.refusal?.reason === answer) {
      assert.equal(problem.detail, JSON.parse(row.route.body).detail, `${row.moduleId}: NodeTool's sentence`);
    }
  }
}

function rowsOf(pack) {
  const entries = new Map(pack.modules.map((module) => [module.graphDigest, module]));
  return [...pack.modules, ...pack.files].map((row) => ({ pack, row, entries }));
}

let served;
before(async () => (served = await serve([GOOD_PACKS], { withheld: true })), { timeout: 120_000 });
after(() => served?.edge.close());

for (const { pack, row, entries } of VECTORS.packs.flatMap(rowsOf)) {
  test(row.moduleId, { timeout: 30_000 }, () => check(served, pack, row, entries));
}

test("the report names what the differences name", () => {
  const { withheld, unavailable, manifest, version } = report(served.release);
  assert.equal(version, 1);
  assert.equal(manifest, served.manifest);
  const packs = withheld.map((row) => row.pack).sort();
  assert.deepEqual(packs, Object.keys(DIFFERENCES.packs).sort());
  assert.ok(withheld.every(({ codes }) => codes.length > 0));
  const expected = Object.entries(DIFFERENCES.modules).filter(([, { reported }]) => reported !== undefined);
  const codes = Object.fromEntries(unavailable.map(({ specifier, code }) => [specifier, code]));
  assert.deepEqual(codes, Object.fromEntries(expected.map(([id, { reported }]) => [id, reported])));
});

test("every pack of the fixtures has its row, and every difference is used", () => {
  const names = (folder) => readdirSync(join(GOOD_PACKS, folder)).map((name) => join(folder, name));
  const folders = names("").flatMap((name) => (name.startsWith("@") ? names(name) : [name]));
  const noPacks = ["empty-list", "not-a-pack"];
  assert.deepEqual(VECTORS.packs.map(({ dir }) => dir).sort(), folders.filter((dir) => !noPacks.includes(dir)).sort());
  const ids = new Set(VECTORS.packs.flatMap(({ dir, modules }) => [dir, ...modules.map((module) => module.moduleId)]));
  const differences = [...Object.keys(DIFFERENCES.packs), ...Object.keys(DIFFERENCES.modules)];
  assert.deepEqual(differences.filter((id) => !ids.has(id)), []);
});

/** What is good in two of the withheld packs, as packs of their own: their graphs are the same ones. */
const TRIMMED = [
  { dir: "@acme/bytes", modules: ["bom", "crlf", "empty", "ls"] },
  { dir: "@acme/unicode-ids", modules: ["ok"] },
];
/** A host entry, and the operator's word on it. */
const HOST = "@nodetool-ai/sandbox-csv";
const REGISTRY = `[[host]]\nid = "csv"\nowner = "${HOST}"\nexports = ["parse", "stringify"]\n`;

/** Writes a pack of some modules of another, and gives the rows that are about them. */
function trim(root, { dir, modules }) {
  const pack = VECTORS.packs.find((candidate) => candidate.dir === dir);
  const nameOf = ({ specifier }) => specifier.split("/").at(-1);
  const kept = pack.modules.filter((module) => modules.includes(nameOf(module)));
  assert.equal(kept.length, modules.length, dir);
  const files = Object.fromEntries(kept.map(({ fileId }) => [fileId, readFileSync(join(GOOD_PACKS, dir, fileId))]));
  const declared = Object.fromEntries(kept.map((module) => [nameOf(module), module.fileId]));
  writePack(root, { name: pack.name, version: pack.version, modules: declared, files });
  return rowsOf({ ...pack, modules: kept, files: pack.files.filter(({ fileId }) => fileId in files) });
}

test("withheld packs without their bad modules, and a registered host entry", { timeout: 120_000 }, async (context) => {
  const folder = scratch("trimmed");
  const [root, registry] = [join(folder, "packs"), join(folder, "packferry.toml")];
  const rows = TRIMMED.flatMap((pack) => trim(root, pack));
  copyPacks(root, [HOST]);
  writeFileSync(registry, REGISTRY);
  rows.push(...rowsOf(VECTORS.packs.find(({ dir }) => dir === HOST)));
  const trimmed = await serve([root], { args: ["--config", registry] });
  context.after(() => trimmed.edge.close());
  for (const { pack, row, entries } of rows) {
    await context.test(row.moduleId, () => checkRow(trimmed, pack, row, entries));
  }
  const byFile = `${HOST}::host:csv`;
  await context.test(byFile, async () => checkProblem(await ask(trimmed, byFile), notInstalled(byFile), byFile));
});
