//! Private and blocked packs in workerd: who gets what under which headers, warm and cold, without a restart.

import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";

import { packferry, wrangler } from "./support/command.mjs";
import { MODULES, checkHeaders } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, publish, writePack } from "./support/release.mjs";
import { openStorage } from "./support/storage.mjs";

const PATIENCE = 120_000;
const folder = scratch("policy");
const [packs, state, release] = ["packs", "state", "release"].map((name) => join(folder, name));
const NAMES = ["@acme/one", "@acme/two", "open"];

const newToken = () => randomBytes(32).toString("base64url");
const row = (token, grants, expires) => ({
  name: grants.join(),
  sha256: createHash("sha256").update(token).digest("hex"),
  grants,
  ...(expires && { expires }),
});
const tokens = { one: newToken(), acme: newToken(), all: newToken(), expired: newToken(), unknown: newToken() };
const POLICY = {
  version: 1,
  private: ["@acme/*"],
  blocked: [],
  tokens: [
    row(tokens.one, ["@acme/one"]),
    row(tokens.acme, ["@acme/*"]),
    row(tokens.all, ["*"]),
    row(tokens.expired, ["*"], "2020-01-01T00:00:00Z"),
  ],
};

let storage;
let edge;
let graphs;
let manifest;

before(
  async () => {
    for (const name of NAMES) {
      const files = { "index.js": `import "./part.js";\nexport const name = "${name}";\n`, "part.js": `export const of = "${name}";\n` };
      writePack(packs, { name, version: "1.0.0", modules: { ".": "index.js" }, internal: ["part.js"], files });
    }
    await build([packs], release);
    await publish(release, state);
    const root = readFileSync(join(release, "manifest.json"));
    manifest = createHash("sha256").update(root).digest("hex");
    const modules = JSON.parse(root).packs.flatMap((pack) => pack.modules);
    graphs = Object.fromEntries(modules.map(({ specifier, graphDigest }) => [specifier, graphDigest]));
    storage = openStorage(state);
    await setPolicy(POLICY);
    edge = await startEdge({ state, vars: { POLICY: "main" } });
  },
  { timeout: PATIENCE },
);
beforeEach(() => setPolicy(POLICY));
after(async () => {
  await edge?.close();
  await storage?.close();
});

const setPolicy = (policy) => storage.put("policy/main", JSON.stringify(policy));

function ask(path, requester, headers = {}) {
  const authorization = requester && { Authorization: `Bearer ${tokens[requester]}` };
  return edge.get(path, { headers: { ...headers, ...authorization } });
}

/** Every way to the code of a pack, and whether it is pinned. */
const ways = (pack) => [
  [MODULES + encodeURIComponent(pack), false],
  [MODULES + encodeURIComponent(`${pack}::part.js`), false],
  [MODULES + graphs[pack], true],
  [MODULES + encodeURIComponent(`${graphs[pack]}::part.js`), true],
  [`/api/sandbox-closures/${encodeURIComponent(pack)}`, false],
  [`/api/sandbox-closures/${graphs[pack]}`, true],
];

const PUBLIC = { true: "public, max-age=31536000, immutable", false: "no-cache" };
const PRIVATE = { true: "private, max-age=31536000, immutable", false: "private, no-cache" };

/** Requester, pack, and what it is to them. */
const ROWS = [
  [undefined, "open", "public"],
  ["all", "open", "public"],
  ["unknown", "open", "public"],
  [undefined, "@acme/one", "closed"],
  ["unknown", "@acme/one", "closed"],
  ["expired", "@acme/one", "closed"],
  ["one", "@acme/one", "private"],
  ["one", "@acme/two", "closed"],
  ["acme", "@acme/two", "private"],
  ["all", "@acme/two", "private"],
];

test("what everyone gets, in turns, so that nobody ever sees another's answer", { timeout: PATIENCE }, async () => {
  for (const turn of [1, 2]) {
    for (const [requester, pack, sight] of ROWS) {
      for (const [path, pinned] of ways(pack)) {
        const what = `${requester} ${path}, turn ${turn}`;
        const answer = await ask(path, requester);
        if (sight === "closed") {
          assert.equal(answer.status, 403, what);
          checkHeaders(answer, { "cache-control": "no-store", vary: "Authorization" }, what);
          assert.equal(JSON.parse(answer.body).code, "forbidden", what);
        } else {
          assert.equal(answer.status, 200, what);
          const caching = sight === "public" ? PUBLIC : PRIVATE;
          checkHeaders(answer, { "cache-control": caching[pinned], vary: sight === "public" ? null : "Authorization" }, what);
        }
      }
    }
  }
});

test("a known tag opens no door", { timeout: 30_000 }, async () => {
  for (const [path] of ways("@acme/one")) {
    const tag = { "If-None-Match": `"${graphs["@acme/one"]}"` };
    assert.equal((await ask(path, undefined, tag)).status, 403, path);
    const known = await ask(path, "one", tag);
    assert.equal(known.status, 304, path);
    checkHeaders(known, { vary: "Authorization" }, path);
  }
});

test("the index and the catalog show what a requester may fetch", { timeout: 30_000 }, async () => {
  const shown = [
    [undefined, ["open"], 403],
    ["one", ["@acme/one", "open"], 403],
    ["acme", NAMES, 200],
    ["all", NAMES, 200],
  ];
  const tags = new Set();
  for (const [requester, specifiers, catalog] of shown) {
    const index = await ask("/api/sandbox-modules", requester);
    assert.deepEqual(JSON.parse(index.body).modules.map(({ specifier }) => specifier), specifiers, requester);
    checkHeaders(index, { "cache-control": "private, no-cache", vary: "Authorization" }, requester);
    tags.add(index.headers.get("etag"));
    assert.equal((await ask(`/api/manifests/${manifest}`, requester)).status, catalog, requester);
  }
  assert.equal(tags.size, shown.length, "each set of grants has its own tag");
});

test("a block and a revoked token hold at once, for what was warm, too", { timeout: 30_000 }, async () => {
  for (const [path] of ways("open")) {
    assert.equal((await ask(path)).status, 200, path);
  }
  assert.equal((await ask(MODULES + graphs["@acme/one"], "one")).status, 200);
  const blocked = [{ pack: "open", version: "1.0.0", reason: "It was withdrawn." }];
  await setPolicy({ ...POLICY, blocked, tokens: POLICY.tokens.slice(1) });
  for (const [path] of ways("open")) {
    for (const requester of [undefined, "all"]) {
      const answer = await ask(path, requester);
      assert.deepEqual([answer.status, JSON.parse(answer.body).reason], [403, "It was withdrawn."], path);
    }
  }
  assert.equal((await ask(MODULES + graphs["@acme/one"], "one")).status, 403, "revoked");
});

/** Policy files with a mistake in them, and what is said of it. */
const MISTAKES = [
  ['privat = ["@acme/*"]', /line 1, column 1[\s\S]*unknown field `privat`/],
  ['private = ["@acme/*"]\n[[blocked]]\nreason = "x"', /line 2: .*neither a pack nor a graph/],
  ['private = ["*/x"]', /line 1[\s\S]*no pattern/],
  [`[[tokens]]\nname = "a"\nsha256 = "${"ab".repeat(32)}"\ngrants = ["*"]\nexpires = "tomorrow"`, /line 1: the expiry of token "a"/],
  ['[[tokens]]\nname = "a"', /line 1[\s\S]*sha256/],
];

test("a policy file is pushed whole or not at all, into local KV or into a file for wrangler", { timeout: PATIENCE }, async () => {
  const [file, bulk] = [join(folder, "policy.toml"), join(folder, "policy.json")];
  const push = (args, options) => packferry(["policy", "push", file, "--name", "main", ...args], options);
  const local = ["--local", "--persist-to", state];
  const before = await storage.get("policy/main");
  for (const [text, says] of MISTAKES) {
    writeFileSync(file, text);
    for (const target of [local, ["--bulk", bulk]]) {
      const { stderr } = await push(target, { expect: 2 });
      assert.match(stderr, says);
      assert.ok(stderr.includes(file), "it names the file");
    }
    assert.ok((await storage.get("policy/main")).equals(before), text);
    assert.ok(!existsSync(bulk));
  }
  writeFileSync(file, 'private = ["@acme/*"]\n[[blocked]]\npack = "open"\nreason = "It was withdrawn."\n');
  await push([], { expect: 2 });
  await push([...local, "--bulk", bulk], { expect: 2 });
  await push(local);
  const pushed = await storage.get("policy/main");
  assert.deepEqual(JSON.parse(pushed).blocked, [{ pack: "open", reason: "It was withdrawn." }]);
  assert.equal((await ask(MODULES + "open")).status, 403);
  await setPolicy(POLICY);
  await push(["--bulk", bulk]);
  await wrangler(["kv", "bulk", "put", bulk, "--binding", "KV", "--local", "--persist-to", state]);
  assert.ok((await storage.get("policy/main")).equals(pushed), "both ways lead to the same bytes");
});

test("a new token opens what it grants, once it is pushed, and nothing after its row is gone", { timeout: PATIENCE }, async () => {
  const file = join(folder, "tokens.toml");
  writeFileSync(file, 'private = ["@acme/*"]\n');
  const args = ["policy", "token", "ci", "--grant", "@acme/one", "--expires", "90d", "--file", file, "--json"];
  const { token } = JSON.parse((await packferry(args)).stdout);
  const withToken = { Authorization: `Bearer ${token}` };
  const status = async (pack) => (await edge.get(MODULES + encodeURIComponent(pack), { headers: withToken })).status;
  assert.equal(await status("@acme/one"), 403, "not yet");
  const push = () => packferry(["policy", "push", file, "--name", "main", "--local", "--persist-to", state]);
  await push();
  assert.deepEqual([await status("@acme/one"), await status("@acme/two")], [200, 403]);
  assert.ok(!readFileSync(file, "utf8").includes(token), "only its hash is in the file");
  await packferry(args, { expect: 2 });
  writeFileSync(file, 'private = ["@acme/*"]\n');
  await push();
  assert.equal(await status("@acme/one"), 403, "revoked");
});

test("a policy that cannot be had closes everything it guards", { timeout: 30_000 }, async () => {
  for (const text of [null, "", "{}", '{"version":2,"private":[],"blocked":[],"tokens":[]}']) {
    await (text === null ? storage.delete("policy/main") : storage.put("policy/main", text));
    for (const [path] of [...ways("open"), ["/api/sandbox-modules"], [`/api/manifests/${manifest}`]]) {
      const answer = await ask(path, "all");
      assert.deepEqual([answer.status, JSON.parse(answer.body).code], [503, "policy-unavailable"], `${text} ${path}`);
    }
    assert.equal((await ask("/api/channels/stable")).status, 200);
    assert.equal(JSON.parse((await ask("/healthz")).body).status, "degraded");
  }
  assert.ok(Object.values(tokens).every((token) => !edge.log().includes(token)), "no token is in the log");
});
