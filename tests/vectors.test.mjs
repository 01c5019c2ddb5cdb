//! NodeTool's reference answers (fixtures/vectors.json) against the worker, over a release built from the same
//! packs: every module and file, by its named and its pinned ids, with GET, HEAD and If-None-Match. Where we answer
//! something else on purpose, fixtures/vector-differences.json says what and why.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { before, after, test } from "node:test";

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
import { DIFFERENCES, VECTORS, ours } from "./support/nodetool.mjs";
import { scratch } from "./support/project.mjs";
import { GOOD_PACKS, build, publish, report, writePack } from "./support/release.mjs";

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

/** Checks the row of an authored module or file that both deliver. */
async function checkRow(served, pack, row, entries) {
  const isEntry = row.specifier !== undefined;
  const delivery = {
    kind: row.kind,
    graphDigest: row.graphDigest,
    fileId: row.fileId,
    pack: pack.name,
    version: pack.version,
    dependencies: row.dependencies.map((id) => id.slice(id.indexOf("::") + 2)),
    body: readFileSync(join(GOOD_PACKS, pack.dir, row.fileId)),
  };
  const full = await checkId(served, row.moduleId, {
    ...delivery,
    internal: row.internal ?? false,
    wasmContract: row.wasm,
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

test("the good modules of withheld packs, without the bad ones", { timeout: 120_000 }, async (context) => {
  const root = join(scratch("trimmed"), "packs");
  const rows = TRIMMED.flatMap(({ dir, modules }) => {
    const pack = VECTORS.packs.find((candidate) => candidate.dir === dir);
    const kept = pack.modules.filter(({ specifier }) => modules.includes(specifier.split("/").at(-1)));
    assert.equal(kept.length, modules.length);
    const files = Object.fromEntries(kept.map(({ fileId }) => [fileId, readFileSync(join(GOOD_PACKS, dir, fileId))]));
    const declared = Object.fromEntries(kept.map(({ specifier, fileId }) => [specifier.split("/").at(-1), fileId]));
    writePack(root, { name: pack.name, version: pack.version, modules: declared, files });
    return rowsOf({ ...pack, modules: kept, files: pack.files.filter(({ fileId }) => fileId in files) });
  });
  const trimmed = await serve([root], {});
  context.after(() => trimmed.edge.close());
  for (const { pack, row, entries } of rows) {
    await context.test(row.moduleId, () => checkRow(trimmed, pack, row, entries));
  }
});
