//! The starter packs through `wrangler dev` over HTTP, as the README shows it: the answer to its curl, a conditional
//! request, pinned ids, and a publish while it runs.

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { CACHING, MODULES, sha256 } from "./support/contract.mjs";
import { ROOT, STARTER_PACKS, requireStarterPacks, requireWorker, scratch } from "./support/project.mjs";
import { build, publish } from "./support/release.mjs";
import { startWrangler } from "./support/wrangler.mjs";

const PATIENCE = 180_000;
/** A module that a bundled npm entry is. */
const EXAMPLE = "@packferry%2Fyaml";

const folder = scratch("wrangler");
const [release, state] = [join(folder, "release"), join(folder, "state")];
let server;

before(
  async () => {
    requireWorker();
    requireStarterPacks();
    await build([STARTER_PACKS], release);
    await publish(release, state);
    server = await startWrangler(state, { timeout: PATIENCE });
  },
  { timeout: PATIENCE },
);
after(() => server?.close());

test("the README's curl is answered as the README shows it", { timeout: 30_000 }, async () => {
  const lines = readFileSync(join(ROOT, "README.md"), "utf8").split("\n").map((line) => line.trim());
  const at = lines.findIndex((line) => line.startsWith("$ curl -i localhost:8787/"));
  const shown = lines.slice(at + 2, lines.indexOf("…", at));
  assert.ok(at > 0 && shown.length > 3, "the README shows a curl, the status line, headers, and …");
  const answer = await server.get(lines[at].slice("$ curl -i localhost:8787".length));
  assert.equal(answer.status, 200);
  const meaning = { "<graph digest>": answer.headers.get("x-content-digest"), "<SHA-256 of this body>": sha256(answer.body) };
  for (const line of shown) {
    const [, name, value] = /^([A-Za-z0-9-]+): (.*)$/.exec(line);
    const expected = value.replace(/<[^>]+>/g, (placeholder) => meaning[placeholder]);
    assert.equal(answer.headers.get(name), expected, name);
  }
});

test("headers, body, 304 and HEAD", { timeout: 30_000 }, async () => {
  const answer = await server.get(MODULES + EXAMPLE);
  assert.equal(answer.status, 200);
  const header = (name) => answer.headers.get(name);
  assert.equal(header("content-type"), "text/javascript; charset=utf-8");
  assert.equal(header("x-content-sha256"), sha256(answer.body));
  assert.equal(header("x-sandbox-pack"), "@packferry/yaml");
  assert.equal(header("x-sandbox-file-id"), "npm:js-yaml");
  assert.equal(header("cache-control"), CACHING.named);
  assert.equal(header("etag"), `"${header("x-content-digest")}"`);
  assert.equal(header("access-control-allow-origin"), "*");
  assert.equal(header("x-content-type-options"), "nosniff");
  assert.equal(header("x-packferry-manifest"), sha256(readFileSync(join(release, "manifest.json"))));

  for (const method of ["GET", "HEAD"]) {
    const conditional = await server.get(MODULES + EXAMPLE, { "If-None-Match": header("etag") }, method);
    assert.equal(conditional.status, 304, method);
    assert.equal(conditional.headers.get("etag"), header("etag"));
  }
  const head = await server.get(MODULES + EXAMPLE, {}, "HEAD");
  assert.equal(head.status, 200);
  assert.equal(head.headers.get("x-content-sha256"), header("x-content-sha256"));
});

test("a proxy's compression leaves entity tag and digests usable", { timeout: 30_000 }, async () => {
  const plain = await server.get(MODULES + EXAMPLE);
  const weak = await server.get(MODULES + EXAMPLE, { "If-None-Match": `W/${plain.headers.get("etag")}` });
  assert.equal(weak.status, 304);
});

test("the pinned ids of the multi-file pack answer immutable", { timeout: 30_000 }, async () => {
  for (const entry of ["slug", "similarity"]) {
    const root = await server.get(`${MODULES}@packferry%2Ftext%2F${entry}`);
    const [id, ...others] = JSON.parse(root.headers.get("x-sandbox-module-dependencies"));
    assert.deepEqual(others, []);
    assert.ok(id.startsWith(`${root.headers.get("x-content-digest")}::`));
    const pinned = await server.get(MODULES + encodeURIComponent(id));
    assert.equal(pinned.status, 200);
    assert.equal(pinned.headers.get("cache-control"), CACHING.pinned);
    assert.equal(pinned.headers.get("x-content-sha256"), sha256(pinned.body));
    assert.equal(pinned.headers.get("x-sandbox-internal"), "1");
    assert.equal(pinned.headers.get("x-packferry-manifest"), null);
    const source = join(STARTER_PACKS, "text", pinned.headers.get("x-sandbox-file-id"));
    assert.ok(pinned.body.equals(readFileSync(source)));
  }
});

test("raw characters in a path, through wrangler's proxy", { timeout: 30_000 }, async () => {
  for (const path of ["<", ">", "^", "<script>", "%zz", "%3Cscript%3E"]) {
    const { status, headers } = await server.get(MODULES + path);
    assert.ok(status === 400 || status === 404, `${path}: ${status}`);
    assert.equal(headers.get("content-type"), "application/problem+json", path);
    assert.equal(headers.get("access-control-allow-origin"), "*", path);
  }
});

test("a publish is seen while it runs, and what was pinned stays", { timeout: PATIENCE }, async () => {
  const named = `${MODULES}@packferry%2Ftext%2Fslug`;
  const before = await server.get(named);
  const pinned = MODULES + before.headers.get("x-content-digest");

  const packs = join(folder, "packs");
  cpSync(join(STARTER_PACKS, "text"), join(packs, "text"), { recursive: true });
  const file = join(packs, "text", before.headers.get("x-sandbox-file-id"));
  writeFileSync(file, `${readFileSync(file, "utf8")}export const upgraded = true;\n`);
  await build([packs], release);
  await publish(release, state);

  const after = await server.get(named, { "If-None-Match": before.headers.get("etag") });
  assert.equal(after.status, 200);
  assert.notEqual(after.headers.get("etag"), before.headers.get("etag"));
  assert.ok(after.body.toString().endsWith("export const upgraded = true;\n"));
  assert.equal((await server.get(MODULES + EXAMPLE)).status, 404, "the new release has one pack");
  const old = await server.get(pinned);
  assert.equal(old.status, 200);
  assert.ok(old.body.equals(before.body));
  assert.equal(old.headers.get("cache-control"), CACHING.pinned);
});
