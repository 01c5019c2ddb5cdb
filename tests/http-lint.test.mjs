//! REDbot's checks over every route and every kind of answer, and digest fields read by a parser of structured fields that is not
//! ours: tests/http-lint/lint.py, in the Python environment that scripts/setup.sh makes.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { start } from "./support/command.mjs";
import { MODULES, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { ROOT, scratch } from "./support/project.mjs";
import { build, copyPacks, publish, writePack } from "./support/release.mjs";
import { openStorage } from "./support/storage.mjs";

const PYTHON = join(ROOT, ".packferry", "http-lint", "bin", "python3");
const skip = !existsSync(PYTHON) && "there is no Python environment: scripts/setup.sh tests found no Python 3.11 with venv";

const folder = scratch("http-lint");
const [packs, state, release] = ["packs", "state", "release"].map((name) => join(folder, name));
const token = randomBytes(32).toString("base64url");
const POLICY = {
  version: 1,
  private: ["@example/private"],
  blocked: [{ pack: "@example/blocked", reason: "It was withdrawn." }],
  tokens: [{ name: "reader", sha256: createHash("sha256").update(token).digest("hex"), grants: ["@example/private"] }],
};

let storage;
let edge;
let probes;

before(
  async () => {
    if (skip) {
      return;
    }
    for (const name of ["open", "private", "blocked", "broken", "incomplete"]) {
      const files = { "index.js": `import "./part.js";\nexport const name = "${name}";\n`, "part.js": `export const of = "${name}";\n` };
      writePack(packs, { name: `@example/${name}`, version: "1.0.0", modules: { ".": "index.js" }, internal: ["part.js"], files });
    }
    copyPacks(packs, ["@acme/wasm-math"]);
    await build([packs], release);
    await publish(release, state);
    storage = openStorage(state);
    const root = readFileSync(join(release, "manifest.json"));
    const modules = JSON.parse(root).packs.flatMap((pack) => pack.modules);
    const of = (specifier) => modules.find((module) => module.specifier === specifier);
    await storage.put("policy/main", JSON.stringify(POLICY));
    await storage.put(`blob/${of("@example/broken").sha256}`, "other bytes");
    await storage.delete(`blob/${of("@example/incomplete").sha256}`);
    edge = await startEdge({ state, vars: { POLICY: "main" } });
    probes = everyProbe(of, modules.find((module) => module.kind === "wasm"), sha256(root));
  },
  { timeout: 120_000 },
);
after(async () => {
  await edge?.close();
  await storage?.close();
});

/** Every route, by every method, with every status that it can have. */
function everyProbe(of, wasm, manifest) {
  const module = (id) => MODULES + encodeURIComponent(id);
  const closure = (id) => `/api/sandbox-closures/${encodeURIComponent(id)}`;
  const open = of("@example/open").graphDigest;
  const reader = { Authorization: `Bearer ${token}` };
  const row = (method, path, status, headers = {}, digest = false) => ({ method, path, status, headers, digest });
  const deliveries = [
    [module("@example/open"), open],
    [module("@example/open::part.js"), open],
    [module(open), open],
    [module(`${open}::part.js`), open],
    [module(wasm.specifier), wasm.graphDigest],
    [closure("@example/open"), open],
    [closure(open), open],
    [module("@example/private"), of("@example/private").graphDigest],
    [module(of("@example/private").graphDigest), of("@example/private").graphDigest],
    [closure(of("@example/private").graphDigest), of("@example/private").graphDigest],
    [`/api/manifests/${manifest}`, manifest],
  ].flatMap(([path, tag]) => [
    row("GET", path, 200, reader, true),
    row("HEAD", path, 200, reader, true),
    row("GET", path, 304, { ...reader, "If-None-Match": `"${tag}"` }),
  ]);
  const refusals = [
    [module("%zz").replaceAll("%25", "%"), 400],
    [module("@example/private"), 403],
    [module("@example/blocked"), 403],
    [module("absent"), 404],
    [module("0".repeat(64)), 404],
    [closure("absent"), 404],
    [`/api/manifests/${"0".repeat(64)}`, 403],
    [`/api/shards/${"0".repeat(64)}`, 403],
    ["/api/channels/absent", 404],
    ["/nowhere", 404],
    [module("@example/broken"), 502],
    [module("@example/incomplete"), 503],
  ].flatMap(([path, status]) => [row("GET", path, status), row("HEAD", path, status)]);
  const preflight = { Origin: "https://app.example", "Access-Control-Request-Method": "GET" };
  const others = [
    row("GET", "/api/sandbox-modules", 200),
    row("GET", "/api/sandbox-modules", 200, reader),
    row("GET", "/api/sandbox-modules?prefix=%40example&limit=1", 200),
    row("GET", "/api/channels/stable", 200, {}, true),
    row("GET", "/healthz", 200),
    row("GET", `/api/shards/${"0".repeat(64)}`, 404, reader),
    row("OPTIONS", module("@example/open"), 204, preflight),
    row("POST", module("@example/open"), 405),
    row("DELETE", "/healthz", 405),
  ];
  return [...deliveries, ...refusals, ...others];
}

test("nothing is found that is not explained", { skip, timeout: 120_000 }, async () => {
  const lint = start(PYTHON, [join(ROOT, "tests", "http-lint", "lint.py"), edge.url], {
    input: JSON.stringify(probes),
    timeout: 100_000,
  });
  const { status, stdout, stderr } = await lint.ended;
  assert.equal(status, 0, stdout + stderr);
});
