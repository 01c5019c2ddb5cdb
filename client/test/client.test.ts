//! The client against servers on loopback: what it asks for, what it proves, what it keeps, and what its errors say.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { generateKeyPairSync, sign } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { type ClientOptions, createCatalog, createCatalogClient, memoryCache, PackferryError, type Progress } from "../src/index.js";
import { directoryCache } from "../src/node/index.js";
import { preAuthenticationEncoding } from "../src/channel.js";
import { sha256 } from "./cases.js";
import { type Edge, type Graph, graphOf, type Reply, startEdge } from "./edge.js";

const helper = (n: number): Record<string, string> => ({ "helper.js": `export const n = ${n};\n` });
const geo = (version: string, n: number): Graph =>
  graphOf("@acme/geo", version, { "geo.js": `import { n } from "./helper.js";\nexport const area = () => n;\n`, ...helper(n) });
const extra = (version: string, n: number): Graph =>
  graphOf("@acme/geo/extra", version, { "extra.js": `import { n } from "./helper.js";\nexport default n;\n`, ...helper(n) });
const [geo1, geo2, extra1, extra2] = [geo("1.0.0", 1), geo("2.0.0", 2), extra("1.0.0", 1), extra("2.0.0", 2)];

const paths = (edge: Edge): string[] => edge.requests.splice(0).map(({ path }) => path.replace("/api/", ""));
const text = (bytes: Uint8Array | undefined): string => new TextDecoder().decode(bytes);

interface World {
  edge: Edge;
  client: (options?: Partial<ClientOptions>) => ReturnType<typeof createCatalogClient>;
}

/** A test with a server of its own. */
function edgeTest(name: string, run: (world: World) => Promise<void>, options?: { walkOnly: boolean }): void {
  void test(name, async () => {
    const edge = await startEdge(options);
    try {
      edge.publish(geo1, extra1);
      await run({ edge, client: (more) => createCatalogClient({ baseUrl: edge.url, cache: memoryCache(), ...more }) });
    } finally {
      await edge[Symbol.asyncDispose]();
    }
  });
}

/** Asserts a `PackferryError` about the pack. */
async function fails(outcome: Promise<unknown>, code: string, message: RegExp): Promise<void> {
  await assert.rejects(outcome, (error) => {
    assert(error instanceof PackferryError, String(error));
    assert.equal(error.code, code);
    assert.match(error.message, message);
    if (error.specifier !== undefined) assert.equal(error.packName, "@acme/geo");
    return true;
  });
}

edgeTest("closures come in one request each, and as plain data", async ({ edge, client }) => {
  const records = await client().prefetch(["@acme/geo", "@acme/geo/extra", "@acme/geo"]);
  assert.deepEqual(paths(edge).sort(), ["sandbox-closures/@acme/geo", "sandbox-closures/@acme/geo/extra"]);
  assert.deepEqual(structuredClone(records), records);
  const [first] = records;
  assert.equal(first?.contentDigest, geo1.digest);
  assert.equal(first.proven, true);
  assert.equal(first.pinned, false);
  assert.deepEqual(first.files.map(({ id, dependencies }) => [id, dependencies]), [["geo.js", ["helper.js"]], ["helper.js", []]]);
  assert.equal(text(first.files[1]?.bytes), helper(1)["helper.js"]);
});

edgeTest("closures are fetched at the same time", async ({ edge, client }) => {
  // No request is answered before both have come.
  let both = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (both = resolve));
  edge.tamper = async (reply) => {
    if (edge.requests.length === 2) both();
    await arrived;
    return reply;
  };
  await client().prefetch(["@acme/geo", "@acme/geo/extra"], { signal: AbortSignal.timeout(20_000) });
  assert.equal(edge.requests.length, 2);
});

edgeTest("a second prefetch revalidates and downloads nothing", async ({ edge, client }) => {
  const both = client();
  await both.prefetch(["@acme/geo"]);
  edge.requests.length = 0;
  const [record] = await both.prefetch(["@acme/geo"]);
  assert.equal(record?.contentDigest, geo1.digest);
  assert.deepEqual(edge.requests.map(({ ifNoneMatch }) => ifNoneMatch), [`"${geo1.digest}"`]);
  edge.publish(geo2);
  const [upgraded] = await both.prefetch(["@acme/geo"]);
  assert.equal(upgraded?.packVersion, "2.0.0");
});

edgeTest("records may be changed or given away without harm to the cache", async ({ client }) => {
  const one = client();
  const [record] = await one.prefetch(["@acme/geo"]);
  for (const file of record?.files ?? []) structuredClone(file.bytes, { transfer: [file.bytes.buffer] });
  const [again] = await one.prefetch(["@acme/geo"]);
  assert.equal(text(again?.files[1]?.bytes), helper(1)["helper.js"]);
});

edgeTest("pinned declarations get the saved graph after an upgrade, and later without a network", async ({ edge, client }) => {
  edge.publish(geo2);
  const one = client();
  const declarations = [{ specifier: "@acme/geo", contentDigest: geo1.digest, resolvedPackVersion: "1.0.0" }];
  const [compared] = await one.prefetch(declarations);
  assert.equal(compared?.contentDigest, geo2.digest);
  const statuses = createCatalog([compared]).resolveForExecution(declarations).statuses;
  assert.deepEqual(statuses.map(({ code }) => code), ["version-mismatch", "content-digest-mismatch"]);
  const [pinned] = await one.prefetch(declarations, { pin: true });
  assert.equal(pinned?.contentDigest, geo1.digest);
  assert.equal(pinned.pinned, true);
  assert.match(createCatalog([pinned]).diagnostics()[0]?.message ?? "", new RegExp(`pinned to the graph it was saved with, ${geo1.digest}`));
  edge.requests.length = 0;
  edge.tamper = () => ({ status: 500 });
  assert.equal((await one.prefetch(declarations, { pin: true }))[0]?.contentDigest, geo1.digest);
  assert.deepEqual(edge.requests, []);
});

const flipped = (body: Reply["body"], at: number): Uint8Array => {
  const bytes = new Uint8Array(Buffer.from(body ?? ""));
  const index = at < 0 ? bytes.length + at : at;
  bytes[index] = (bytes[index] ?? 0) ^ 1;
  return bytes;
};
const withHeaders = (reply: Reply, headers: Record<string, string>): Reply => ({ ...reply, headers: { ...reply.headers, ...headers } });

const lies: [what: string, tamper: (reply: Reply) => Reply, code: string, message: RegExp][] = [
  ["a changed body", (reply) => ({ ...reply, body: flipped(reply.body, -2) }), "mismatch", /announced/],
  ["a changed body whose hash was fixed", (reply) => { const body = flipped(reply.body, -2); return withHeaders({ ...reply, body }, { "X-Content-Sha256": sha256(body) }); }, "mismatch", /SHA-256 of helper.js/],
  ["another graph's closure", () => ({ status: 200, headers: { "Content-Type": "application/vnd.packferry.closure" }, body: extra1.closure }), "mismatch", /graph of @acme\/geo\/extra/],
  ["another digest promised", (reply) => withHeaders(reply, { "X-Content-Digest": extra1.digest }), "mismatch", /graph digest is/],
  ["a call contract that the payload does not have", (reply) => withHeaders(reply, { "X-Sandbox-Wasm-Contract": "{}" }), "mismatch", /call contract/],
  ["a 304 to an unconditional request", (reply) => ({ ...reply, status: 304, body: "" }), "http", /HTTP 304/],
  ["no such module", () => ({ status: 404, headers: { "Content-Type": "application/problem+json" } }), "not-available", /Sandbox module @acme\/geo is not available on this server\./],
  ["a refusal", () => ({ status: 403, headers: { "Content-Type": "application/problem+json" } }), "forbidden", /Sandbox module @acme\/geo is not available to this client\./],
  ["corruption", () => ({ status: 502, headers: { "Content-Type": "application/problem+json" } }), "http", /HTTP 502/],
  ["a redirect", () => ({ status: 302, headers: { Location: "/elsewhere" } }), "network", /could not be fetched/],
  ["too large a body", (reply) => ({ ...reply, body: new Uint8Array((16 << 20) + 1) }), "network", /too large/],
];

for (const [what, lie, code, message] of lies) {
  edgeTest(`refused and not kept: ${what}`, async ({ edge, client }) => {
    const one = client();
    edge.tamper = (reply) => lie(reply);
    await fails(one.prefetch(["@acme/geo"]), code, message);
    edge.tamper = () => undefined;
    edge.requests.length = 0;
    assert.equal((await one.prefetch(["@acme/geo"]))[0]?.contentDigest, geo1.digest);
    assert.deepEqual(edge.requests.map(({ ifNoneMatch }) => ifNoneMatch), [undefined]);
  });
}

edgeTest("busy storage is asked again, with a pause", async ({ edge, client }) => {
  let busy = 2;
  edge.tamper = () => (busy-- > 0 ? { status: 503, headers: { "Retry-After": "0" } } : undefined);
  const started = performance.now();
  await client().prefetch(["@acme/geo"]);
  assert.equal(edge.requests.length, 3);
  assert(performance.now() - started >= 700, "250 ms, then 500 ms");
});

edgeTest("busy for ever is an error after four tries", async ({ edge, client }) => {
  edge.tamper = () => ({ status: 503, headers: { "Retry-After": "0.01" } });
  await fails(client().prefetch(["@acme/geo"]), "http", /HTTP 503/);
  assert.equal(edge.requests.length, 4);
});

edgeTest("an abort ends a prefetch, also while it waits", async ({ edge, client }) => {
  edge.tamper = () => ({ status: 503, headers: { "Retry-After": "5" } });
  const stop = new AbortController();
  const outcome = client().prefetch(["@acme/geo"], { signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 300);
  // The pause would end later than this.
  let late = false;
  const timer = setTimeout(() => (late = true), 4500);
  await assert.rejects(outcome, /enough/);
  clearTimeout(timer);
  assert(!late && edge.requests.length <= 1);
  await assert.rejects(client().prefetch(["@acme/geo"], { signal: AbortSignal.abort(new Error("no")) }), /no/);
});

edgeTest("progress is told in bytes", async ({ client }) => {
  const seen: Progress[] = [];
  await client().prefetch(["@acme/geo", "@acme/geo/extra"], { onProgress: (progress) => seen.push(progress) });
  const bytes = geo1.closure.length + extra1.closure.length;
  assert.deepEqual(seen.at(-1), { loaded: bytes, total: bytes });
  assert(seen.every(({ loaded, total }, at) => loaded <= total && loaded >= (seen[at - 1]?.loaded ?? 0)));
});

edgeTest("one module that fails fails all", async ({ client }) => {
  await fails(client().prefetch(["@acme/geo", "@acme/geo/none"]), "not-available", /@acme\/geo\/none/);
});

void test("declarations are read strictly", async () => {
  const client = createCatalogClient({ baseUrl: "http://127.0.0.1:9" });
  for (const nothing of [undefined, null, "", []]) assert.deepEqual(await client.prefetch(nothing), []);
  const bad = ["a", {}, { specifier: "a/b/c" }, { specifier: "a", contentDigest: "x" }, { specifier: "a", resolvedPackVersion: "" }, { specifier: "a", x: 1 }, 1, null];
  await fails(client.prefetch("a"), "usage", /not a list/);
  for (const item of bad.slice(1)) await fails(client.prefetch([item]), "usage", /Not a declaration/);
});

// The mirrors.

const dead = { url: "http://127.0.0.1:9" };

void test("a mirror that nothing can check is refused at creation", () => {
  const usage = { name: "PackferryError", code: "usage" };
  assert.throws(() => createCatalogClient({ baseUrl: "http://a.test", mirrors: [{ url: "http://b.test" }] }), usage);
  assert.throws(() => createCatalogClient({ mirrors: [{ url: "http://b.test" }] }), usage);
  assert.throws(() => createCatalogClient({}), usage);
  createCatalogClient({ baseUrl: "http://a.test", mirrors: [{ url: "http://a.test/" }] });
  createCatalogClient({ mirrors: [{ url: "http://b.test" }], pin: true });
  createCatalogClient({ mirrors: [{ url: "http://b.test" }], trustedKeys: [] });
});

edgeTest("mirrors are asked in order after network errors and mismatches; each token goes to its own origin", async ({ edge }) => {
  const other = await startEdge();
  try {
    other.publish(geo1);
    edge.tamper = (reply) => ({ ...reply, body: flipped(reply.body, -2) });
    const client = createCatalogClient({
      baseUrl: dead.url,
      token: "base",
      mirrors: [{ url: edge.url, token: "first" }, { url: other.url }],
      pin: true,
      cache: memoryCache(),
    });
    const [record] = await client.prefetch([{ specifier: "@acme/geo", contentDigest: geo1.digest }]);
    assert.equal(record?.contentDigest, geo1.digest);
    assert.deepEqual(edge.requests.map(({ authorization }) => authorization), ["Bearer first"]);
    assert.deepEqual(other.requests.map(({ authorization }) => authorization), [undefined]);
    edge.requests.length = 0;
    await fails(client.prefetch(["@acme/geo"]), "network", /@acme\/geo could not be fetched from http:\/\/127\.0\.0\.1:9: /);
    assert.deepEqual(edge.requests, [], "mirrors are not asked what a name means");
    const mirrorsOnly = createCatalogClient({ mirrors: [{ url: other.url }], pin: true, cache: memoryCache() });
    await fails(mirrorsOnly.prefetch(["@acme/geo"]), "usage", /needs a contentDigest/);
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

edgeTest("a refusal is an answer: no mirror is asked to better it", async ({ edge }) => {
  const other = await startEdge();
  try {
    other.publish(geo1);
    edge.tamper = () => ({ status: 403, headers: { "Content-Type": "application/problem+json" } });
    const client = createCatalogClient({ baseUrl: edge.url, mirrors: [{ url: other.url }], pin: true, cache: memoryCache() });
    await fails(client.prefetch([{ specifier: "@acme/geo", contentDigest: geo1.digest }]), "forbidden", /not available to this client/);
    assert.deepEqual(other.requests, []);
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

// The walk, against a server without closures.

const walkOnly = { walkOnly: true };

edgeTest("without closures the modules are walked, unproven", async ({ edge, client }) => {
  const [record] = await client().prefetch(["@acme/geo"]);
  assert.equal(record?.proven, false);
  assert.equal(record.contentDigest, geo1.digest);
  assert.equal(record.packVersion, "1.0.0");
  assert.deepEqual(record.files.map(({ id }) => id), ["geo.js", "helper.js"]);
  assert.deepEqual(paths(edge), ["sandbox-closures/@acme/geo", "sandbox-modules/@acme/geo", "sandbox-modules/@acme/geo::helper.js", "sandbox-modules/@acme/geo"]);
  assert.equal(createCatalog([record]).diagnostics()[0]?.code, "unproven");
}, walkOnly);

edgeTest("a walked module is revalidated by its root alone", async ({ edge, client }) => {
  const one = client();
  const [record] = await one.prefetch(["@acme/geo"]);
  edge.requests.length = 0;
  assert.deepEqual(await one.prefetch(["@acme/geo"]), [record]);
  assert.deepEqual(edge.requests.map(({ path, ifNoneMatch }) => [path, ifNoneMatch]).at(-1), ["/api/sandbox-modules/@acme/geo", `"${geo1.digest}"`]);
  assert.equal(edge.requests.length, 2);
}, walkOnly);

edgeTest("a publish in the middle of a walk mixes nothing", async ({ edge, client }) => {
  edge.tamper = (_, path) => {
    if (path.endsWith("::helper.js")) edge.publish(geo2);
    return undefined;
  };
  // The helper that arrives is still the first one, as the server had begun to answer; the walk starts again all the same.
  const [record] = await client().prefetch(["@acme/geo"]);
  assert.equal(record?.packVersion, "2.0.0");
  assert.equal(text(record.files[1]?.bytes), helper(2)["helper.js"]);
}, walkOnly);

edgeTest("what changes again and again is refused", async ({ edge, client }) => {
  let n = 3;
  edge.tamper = (_, path) => {
    if (path.endsWith("::helper.js")) edge.publish(geo("3.0.0", n++));
    return undefined;
  };
  await fails(client().prefetch(["@acme/geo"]), "mismatch", /again and again/);
}, walkOnly);

edgeTest("a walk proves nothing, so it is an error with pins", async ({ client }) => {
  await fails(client().prefetch([{ specifier: "@acme/geo", contentDigest: geo1.digest }], { pin: true }), "unproven", /no closures/);
  await fails(client().prefetch(["@acme/geo"], { pin: true }), "unproven", /no closures/);
}, walkOnly);

const walkLies: [what: string, path: RegExp, tamper: (reply: Reply) => Reply, code: string, message: RegExp][] = [
  ["a changed body", /helper/, (reply) => ({ ...reply, body: flipped(reply.body, 3) }), "mismatch", /announced/],
  ["no digest", /geo$/, (reply) => withHeaders(reply, { "X-Content-Digest": "" }), "mismatch", /without its content headers/],
  ["no hash", /geo$/, (reply) => withHeaders(reply, { "X-Content-Sha256": "" }), "mismatch", /without its content headers/],
  ["no file id", /geo$/, (reply) => withHeaders(reply, { "X-Sandbox-File-Id": "" }), "mismatch", /without its content headers/],
  ["a file id out of the pack", /geo$/, (reply) => withHeaders(reply, { "X-Sandbox-File-Id": "../x" }), "mismatch", /without its content headers/],
  ["another file", /helper/, (reply) => withHeaders(reply, { "X-Sandbox-File-Id": "other.js" }), "mismatch", /not the file that was asked for/],
  ["a file of another pack", /helper/, (reply) => withHeaders(reply, { "X-Sandbox-Pack": "@evil/geo" }), "mismatch", /not the file that was asked for/],
  ["a cycle", /helper/, (reply) => withHeaders(reply, { "X-Sandbox-Module-Dependencies": '["@acme/geo::geo.js"]' }), "mismatch", /imports itself/],
  ["dependencies that are no list", /geo$/, (reply) => withHeaders(reply, { "X-Sandbox-Module-Dependencies": "{}" }), "mismatch", /shape/],
  ["an unreadable contract", /geo$/, (reply) => withHeaders(reply, { "X-Sandbox-Wasm-Contract": "{" }), "mismatch", /JSON/],
  ["a contract with a reserved word", /geo$/, (reply) => withHeaders(reply, { "X-Sandbox-Wasm-Contract": '{"memoryPagesMax":1,"exports":[{"wasm":"a","as":"await"}]}' }), "mismatch", /contract/],
  ["a host module that is not ours", /geo$/, (reply) => withHeaders(reply, { "X-Sandbox-Host-Module": "csv" }), "mismatch", /not registered/],
  ["a missing file", /helper/, () => ({ status: 404 }), "not-available", /@acme\/geo is not available on this server/],
];

for (const [what, at, lie, code, message] of walkLies) {
  edgeTest(`a walk refuses ${what}`, async ({ edge, client }) => {
    edge.tamper = (reply, path) => (/modules/.test(path) && at.test(path) ? lie(reply) : undefined);
    await fails(client().prefetch(["@acme/geo"]), code, message);
  }, walkOnly);
}

// The chain of trust.

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const rawKey = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
const trustedKeys = [rawKey.toString("base64")];
const TYPE = "application/vnd.packferry.channel+json";

/** Publishes a signed release of `graphs` on `edge`. */
function release(edge: Edge, sequence: number, graphs: Graph[], options: { sharded?: boolean; signed?: boolean; expires?: string; channel?: string } = {}): void {
  edge.publish(...graphs);
  const moduleOf = (graph: Graph): object => ({
    specifier: graph.specifier,
    kind: "js",
    graphDigest: graph.digest,
    fileId: graph.moduleId,
    sha256: sha256(graph.files.get(graph.moduleId)?.bytes ?? ""),
    size: 1,
    dependencies: [],
    exports: [],
  });
  const pack = { name: "@acme/geo", digest: "0".repeat(64), modules: graphs.map(moduleOf), files: [], unavailable: [] };
  const packs = JSON.stringify({ version: 1, packs: [pack] });
  edge.objects.set(`/api/shards/${sha256(packs)}`, packs);
  const root = options.sharded ? JSON.stringify({ version: 1, shards: [{ first: "@a/a", sha256: sha256(packs) }] }) : packs;
  edge.objects.set(`/api/manifests/${sha256(root)}`, root);
  edge.manifest = sha256(root);
  const payload = JSON.stringify({
    version: 1,
    channel: options.channel ?? "stable",
    sequence,
    manifest: sha256(root),
    publishedAt: "2026-01-01T00:00:00Z",
    expires: options.expires,
  });
  const signature = { keyid: sha256(rawKey), sig: sign(null, preAuthenticationEncoding(TYPE, payload), privateKey).toString("base64") };
  const signatures = options.signed === false ? [] : [signature];
  edge.objects.set("/api/channels/stable", JSON.stringify({ payloadType: TYPE, payload: Buffer.from(payload).toString("base64"), signatures }));
}

for (const sharded of [false, true]) {
  edgeTest(`with trusted keys every digest follows from the channel (${sharded ? "sharded" : "whole"})`, async ({ edge, client }) => {
    release(edge, 1, [geo1, extra1], { sharded });
    const one = client({ trustedKeys });
    const records = await one.prefetch(["@acme/geo", "@acme/geo/extra"]);
    assert.deepEqual(records.map(({ contentDigest }) => contentDigest), [geo1.digest, extra1.digest]);
    const asked = paths(edge);
    assert.equal(asked[0], "channels/stable");
    assert.equal(asked.length, sharded ? 5 : 4);
    assert.deepEqual(asked.slice(-2).sort(), [`sandbox-closures/${geo1.digest}`, `sandbox-closures/${extra1.digest}`].sort());
    await one.prefetch(["@acme/geo"]);
    assert.deepEqual(paths(edge), ["channels/stable"], "warm, one round trip");
    release(edge, 2, [geo2], { sharded });
    assert.equal((await one.prefetch(["@acme/geo"]))[0]?.contentDigest, geo2.digest);
  });
}

const breaches: [what: string, run: (edge: Edge) => void, code: string, message: RegExp][] = [
  ["unsigned", (edge) => release(edge, 2, [geo1], { signed: false }), "mismatch", /no trusted key/],
  ["expired", (edge) => release(edge, 2, [geo1], { expires: "2020-01-01T00:00:00Z" }), "mismatch", /expired/],
  ["older than the last one seen", (edge) => release(edge, 0, [geo1]), "mismatch", /not above 1/],
  ["the same sequence for another release", (edge) => release(edge, 1, [geo2]), "mismatch", /not above 1/],
  ["of another channel", (edge) => release(edge, 2, [geo1], { channel: "beta" }), "mismatch", /channel beta/],
  ["with a changed manifest", (edge) => { release(edge, 2, [geo2]); for (const [path, body] of edge.objects) if (path.includes("manifests")) edge.objects.set(path, body.replace("1", "2")); }, "mismatch", /SHA-256 is not its name/],
  ["without the module", (edge) => release(edge, 2, []), "not-available", /@acme\/geo is not available/],
  ["gone", (edge) => edge.objects.clear(), "not-available", /Channel stable is not available/],
];

for (const [what, breach, code, message] of breaches) {
  edgeTest(`with trusted keys a channel is refused that is ${what}`, async ({ edge, client }) => {
    release(edge, 1, [geo1]);
    const cache = memoryCache();
    await client({ trustedKeys, cache }).prefetch(["@acme/geo"]);
    breach(edge);
    await fails(client({ trustedKeys, cache }).prefetch(["@acme/geo"]), code, message);
  });
}

edgeTest("with trusted keys a mirror answers for the dead base, and a stale mirror does not", async ({ edge }) => {
  const fresh = await startEdge();
  try {
    const cache = memoryCache();
    release(fresh, 2, [geo2]);
    release(edge, 1, [geo1]);
    const client = createCatalogClient({ baseUrl: dead.url, mirrors: [{ url: fresh.url }], trustedKeys, cache });
    await client.prefetch(["@acme/geo"]);
    const stale = createCatalogClient({ baseUrl: dead.url, mirrors: [{ url: edge.url }, { url: fresh.url }], trustedKeys, cache });
    assert.equal((await stale.prefetch(["@acme/geo"]))[0]?.contentDigest, geo2.digest);
  } finally {
    await fresh[Symbol.asyncDispose]();
  }
});

edgeTest("with trusted keys a walk is an error, and pins need no channel", async ({ edge, client }) => {
  release(edge, 1, [geo1]);
  await fails(client({ trustedKeys }).prefetch(["@acme/geo"]), "unproven", /no closures/);
}, walkOnly);

edgeTest("pinned modules need no channel", async ({ edge, client }) => {
  await client({ trustedKeys, pin: true }).prefetch([{ specifier: "@acme/geo", contentDigest: geo1.digest }]);
  assert.deepEqual(paths(edge), [`sandbox-closures/${geo1.digest}`]);
});

// A publish in the middle of a prefetch.

/** Fetches two modules of a pack; after the first is answered, and before the second is asked for, `meanwhile` happens. */
async function interrupted(edge: Edge, client: World["client"], meanwhile: () => void, options: Partial<ClientOptions> = {}): Promise<(string | undefined)[]> {
  let answered = (): void => undefined;
  const first = new Promise<void>((resolve) => (answered = resolve));
  let calls = 0;
  const gated: typeof fetch = async (...request) => {
    const call = calls++;
    if (call === 1) {
      await first;
      meanwhile();
    }
    const response = await fetch(...request);
    if (call === 0) answered();
    return response;
  };
  edge.requests.length = 0;
  const records = await client({ ...options, fetch: gated }).prefetch(["@acme/geo", "@acme/geo/extra"]);
  return records.map(({ packVersion }) => packVersion);
}

for (const sharded of [false, true]) {
  edgeTest(`a publish in the middle of a prefetch mixes no versions (${sharded ? "sharded" : "whole"})`, async ({ edge, client }) => {
    release(edge, 1, [geo1, extra1], { sharded });
    const versions = await interrupted(edge, client, () => release(edge, 2, [geo2, extra2], { sharded }));
    assert.deepEqual(versions, ["2.0.0", "2.0.0"]);
    const asked = paths(edge);
    assert.deepEqual(asked.slice(0, 2), ["sandbox-closures/@acme/geo", "sandbox-closures/@acme/geo/extra"]);
    assert.deepEqual(asked.slice(2).map((path) => path.split("/")[0]), ["manifests", ...(sharded ? ["shards"] : []), "sandbox-closures"]);
    assert.equal(asked.at(-1), `sandbox-closures/${geo2.digest}`, "the other one is held already");
  });
}

edgeTest("a publish that leaves the pack as it is costs a look at the manifest", async ({ edge, client }) => {
  release(edge, 1, [geo1, extra1]);
  const other = graphOf("@acme/geo/other", "1.0.0", { "other.js": "" });
  assert.deepEqual(await interrupted(edge, client, () => release(edge, 2, [geo1, extra1, other])), ["1.0.0", "1.0.0"]);
  assert.equal(paths(edge).length, 3);
});

edgeTest("where the manifest is not to be had, a publish in the middle is an error", async ({ edge, client }) => {
  release(edge, 1, [geo1, extra1]);
  edge.tamper = (_, path) => (path.startsWith("/api/manifests/") ? { status: 403 } : undefined);
  const outcome = interrupted(edge, client, () => release(edge, 2, [geo2, extra2]));
  await fails(outcome, "forbidden", /The manifest that answers now is not available to this client/);
});

// Caches.

edgeTest("a directory keeps closures over processes; damaged ones are fetched again", async ({ edge, client }) => {
  const directory = mkdtempSync(join(tmpdir(), "packferry-client-"));
  try {
    const fresh = (): ReturnType<typeof client> => client({ cache: directoryCache(directory) });
    await fresh().prefetch(["@acme/geo"]);
    edge.requests.length = 0;
    await fresh().prefetch(["@acme/geo"]);
    assert.deepEqual(edge.requests.map(({ ifNoneMatch }) => ifNoneMatch), [`"${geo1.digest}"`]);
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      writeFileSync(path, flipped(readFileSync(path), -1));
    }
    edge.requests.length = 0;
    const [record] = await fresh().prefetch(["@acme/geo"]);
    assert.equal(text(record?.files[1]?.bytes), helper(1)["helper.js"]);
    assert.deepEqual(edge.requests.map(({ ifNoneMatch }) => ifNoneMatch), [undefined]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

edgeTest("a cache that fails is a miss", async ({ client }) => {
  const broken = { get: () => Promise.reject(new Error("unreadable")), put: () => Promise.reject(new Error("full")) };
  assert.equal((await client({ cache: broken }).prefetch(["@acme/geo"])).length, 1);
});

void test("caches keep to their bytes and drop what was used longest ago", async () => {
  const directory = mkdtempSync(join(tmpdir(), "packferry-client-"));
  try {
    for (const cache of [memoryCache(250), directoryCache(directory, 250)]) {
      const put = async (key: string): Promise<void> => {
        await cache.put(key, new Uint8Array(100));
        // Times in a directory are those of files: make them differ.
        for (const name of readdirSync(directory)) {
          const path = join(directory, name);
          const used = new Date(statSync(path).mtimeMs - 10_000);
          utimesSync(path, used, used);
        }
      };
      await put("a");
      await put("b");
      await cache.get("a");
      await put("c");
      const held = await Promise.all(["a", "b", "c"].map(async (key) => (await cache.get(key))?.length));
      assert.deepEqual(held, [100, undefined, 100]);
      await cache.put("a", new Uint8Array(10));
      assert.equal((await cache.get("a"))?.length, 10);
      await cache.put("huge", new Uint8Array(251));
      assert.equal(await cache.get("huge"), undefined);
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
});

void test("without crypto.subtle the error says why and what to do, before anything is asked", async () => {
  const original = Object.getOwnPropertyDescriptor(globalThis, "crypto");
  Object.defineProperty(globalThis, "crypto", { value: {}, configurable: true });
  try {
    let asked = 0;
    const client = createCatalogClient({ baseUrl: "http://lan.test", fetch: () => Promise.reject(new Error(String(asked++))) });
    await fails(client.prefetch(["@acme/geo"]), "insecure-context", /crypto\.subtle.*https and localhost.*serve this page there/);
    assert.equal(asked, 0);
  } finally {
    if (original) Object.defineProperty(globalThis, "crypto", original);
  }
});
