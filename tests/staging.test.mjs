//! A staged tree from `packferry stage` to the edge: the starter packs, staged, moved, verified, tampered with, and served.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";

import { packferry, start } from "./support/command.mjs";
import { MODULES, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { PACKFERRY, ROOT, STARTER_PACKS, requireStarterPacks, requireWorker, scratch } from "./support/project.mjs";
import { publish } from "./support/release.mjs";

const PATIENCE = 180_000;
const folder = scratch("staging");
/** There is no bundler on the machine that a tree is moved to, and nothing that an earlier build kept. */
const ELSEWHERE = { env: { PACKFERRY_ESBUILD: "/no/bundler", PACKFERRY_CACHE: join(folder, "cache") } };
const app = join(folder, "moved", "app");
const tree = join(app, "_sandbox");

before(
  async () => {
    requireStarterPacks();
    await packferry(["stage", STARTER_PACKS, "--out", join(folder, "app")]);
    mkdirSync(join(folder, "moved"));
    renameSync(join(folder, "app"), app);
  },
  { timeout: PATIENCE },
);

/** What `verify-bundle` says of an application's folder. */
async function verify(dist, ...args) {
  const { status, stdout } = await start(PACKFERRY, ["verify-bundle", dist, "--json", ...args], ELSEWHERE).ended;
  const { sound, manifest, diagnostics } = JSON.parse(stdout);
  assert.equal(status, sound ? 0 : 1);
  return { sound, manifest, found: diagnostics.map(({ code, file }) => (file ? `${code} ${file}` : code)) };
}

const flip = (path) => {
  const bytes = readFileSync(path);
  bytes[bytes.length >> 1] ^= 4;
  writeFileSync(path, bytes);
};
const edit = (path, from, to) => {
  const text = readFileSync(path, "utf8");
  assert.ok(text.includes(from), `${path} has ${from}`);
  writeFileSync(path, text.replace(from, to));
};
const bundleIn = (dist) => join(".npm", readdirSync(join(dist, "_sandbox", ".npm"))[0]);

/** What is done to a copy of the tree, and what is then found. */
const TAMPERINGS = {
  "a flipped bit in a module": [(at) => flip(at("@packferry/text/sandbox/slug.js")), "staged-file-changed @packferry/text/sandbox/slug.js"],
  "a flipped bit in a binary": [(at) => flip(at("@packferry/noise/sandbox/noise.wasm")), "staged-file-changed @packferry/noise/sandbox/noise.wasm"],
  "a flipped bit in a package.json": [(at) => flip(at("@packferry/yaml/package.json")), "staged-file-changed @packferry/yaml/package.json"],
  "a missing file": [(at) => rmSync(at("@packferry/text/sandbox/internal/fold.js")), "staged-file-missing @packferry/text/sandbox/internal/fold.js"],
  "an extra file": [(at) => writeFileSync(at("@packferry/text/index.js"), ""), "staged-file-extra @packferry/text/index.js"],
  "an extra bundle": [(at) => writeFileSync(at(".npm/extra.mjs"), ""), "staged-file-extra .npm/extra.mjs"],
  "a link to the same file": [
    (at) => {
      renameSync(at("@packferry/text/SKILL.md"), at("../SKILL.md"));
      symlinkSync("../../../SKILL.md", at("@packferry/text/SKILL.md"));
    },
    "staged-file-irregular @packferry/text/SKILL.md",
  ],
  "an edited manifest": [(at) => edit(at("manifest.json"), "@packferry/yaml", "@packferry/yawl"), "staged-file-changed manifest.json"],
  "an edited list": [(at) => edit(at("staging.json"), '"version":1', '"version": 1'), "staging-list-invalid staging.json"],
  "a row of another version": [(at) => edit(at("staging.json"), '"npmVersion":"', '"npmVersion":"9'), /^staged-manifest/],
};

test("a tree that was moved is sound, and no tampering is missed", { timeout: PATIENCE }, async (context) => {
  const committed = readFileSync(join(ROOT, "manifests", "starter", "manifest.json"));
  assert.deepEqual(readFileSync(join(tree, "manifest.json")), committed);
  assert.deepEqual(await verify(app), { sound: true, manifest: sha256(committed), found: [] });
  for (const [what, [tamper, expected]] of Object.entries(TAMPERINGS)) {
    await context.test(what, async () => {
      const copy = join(folder, what.replaceAll(" ", "-"));
      cpSync(app, copy, { recursive: true });
      tamper((path) => join(copy, "_sandbox", path));
      const { found } = await verify(copy);
      assert.equal(found.length, 1, found.join("\n"));
      expected instanceof RegExp ? assert.match(found[0], expected) : assert.equal(found[0], expected);
      rmSync(copy, { recursive: true });
    });
  }
});

test("a pack that changed since is stale", { timeout: PATIENCE }, async () => {
  const root = join(folder, "installed");
  for (const name of ["text", "noise"]) {
    cpSync(join(STARTER_PACKS, name), join(root, name), { recursive: true });
  }
  assert.deepEqual((await verify(app, "--against", root)).found, []);
  edit(join(root, "text", "sandbox", "slug.js"), "\n", "\n\n");
  assert.deepEqual((await verify(app, "--against", root)).found, ["staged-pack-stale"]);
});

test("the edge serves what was staged, byte for byte", { timeout: PATIENCE }, async (context) => {
  requireWorker();
  const state = join(folder, "state");
  const edge = await startEdge({ state });
  context.after(() => edge.close());
  await publish(tree, state, ELSEWHERE);
  const { packs } = JSON.parse(readFileSync(join(tree, "manifest.json")));
  const modules = packs.flatMap((pack) => pack.modules.map((module) => ({ pack: pack.name, ...module })));
  assert.ok(modules.length > 25 && modules.some(({ npm }) => npm) && modules.some(({ kind }) => kind === "wasm"));
  for (const { pack, specifier, graphDigest, fileId, npm, sha256: digest } of modules) {
    const answer = await edge.get(MODULES + encodeURIComponent(specifier));
    assert.equal(answer.status, 200, specifier);
    assert.equal(answer.headers.get("X-Content-Digest"), graphDigest, specifier);
    const file = npm ? join(".npm", `${digest}.mjs`) : join(pack, fileId);
    assert.deepEqual(answer.body, readFileSync(join(tree, file)), specifier);
  }
});

test("what is damaged is not published", { timeout: PATIENCE }, async () => {
  const copy = join(folder, "damaged");
  cpSync(app, copy, { recursive: true });
  flip(join(copy, "_sandbox", bundleIn(copy)));
  const { stderr } = await publish(join(copy, "_sandbox"), join(folder, "state"), { expect: 2, ...ELSEWHERE });
  assert.match(stderr, /npm-module-damaged/);
  assert.match(stderr, /packs were withheld from this release: @packferry\/[a-z0-9]+ \(npm-module-damaged\)/);
});
