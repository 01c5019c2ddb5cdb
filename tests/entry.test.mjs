//! The entry module of the worker (src/entry.js) in workerd, around a worker that fails on request:
//! every request is answered, and the next one finds a worker that works.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Log, LogLevel, Miniflare } from "miniflare";

/** What stands on every answer, whatever its status. */
const EVERYWHERE = [
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
  "Content-Security-Policy",
  "Cross-Origin-Resource-Policy",
  "X-Content-Type-Options",
];

function worker(name) {
  return new Miniflare({
    cf: false,
    log: new Log(LogLevel.NONE),
    // workerd reports every trap; here they are wanted.
    handleRuntimeStdio: (out, err) => [out, err].forEach((stream) => stream.resume()),
    compatibilityDate: "2026-04-01",
    modules: true,
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    scriptPath: fileURLToPath(new URL(`../dist/${name}/index.js`, import.meta.url)),
    kvNamespaces: ["KV"],
  });
}

async function get(miniflare, path, options) {
  const response = await miniflare.dispatchFetch(`http://worker${path}`, options);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

let panicking;
before(() => {
  panicking = worker("panicking-worker");
});
after(() => panicking.dispose());

for (const path of ["/panic", "/panic-later", "/panic-in-callback", "/trap", "/overflow"]) {
  test(`${path} is a 500 for all in flight, and the next request gets a new instance`, { timeout: 30_000 }, async () => {
    await get(panicking, "/");
    assert.ok(Number((await get(panicking, "/")).body) > 1, "the instance has a past");
    const slow = get(panicking, "/slow");
    const failed = await get(panicking, path);
    assert.equal(failed.status, 500);
    assert.equal(JSON.parse(failed.body).code, "internal");
    assert.equal(failed.headers.get("Content-Type"), "application/problem+json");
    assert.equal(failed.headers.get("Cache-Control"), "no-store");
    assert.equal((await slow).status, 500);
    const next = [await get(panicking, "/"), await get(panicking, "/")];
    assert.deepEqual(next.map(({ body }) => body), ["1", "2"], "the new instance starts over");
    // What the old instance was waiting for comes meanwhile, and does no harm.
    assert.equal((await get(panicking, "/slow")).body, "3");
    assert.equal((await get(panicking, "/")).body, "4");
  });
}

test("what is ready is answered at once", { timeout: 30_000 }, async () => {
  assert.equal((await get(panicking, "/warm")).body, "warm");
  const other = await get(panicking, "/warm", { method: "POST", body: "x" });
  assert.match(other.body, /^[0-9]+$/, "only GET and HEAD are asked for");
});

for (const path of ["/panic-when-warm", "/trap-when-warm"]) {
  test(`${path} is answered by a new instance, and a 500 for all others in flight`, { timeout: 30_000 }, async () => {
    await get(panicking, "/");
    assert.ok(Number((await get(panicking, "/")).body) > 1, "the instance has a past");
    const slow = get(panicking, "/slow");
    const first = await get(panicking, path);
    assert.deepEqual([first.status, first.body], [200, "1"]);
    assert.equal((await slow).status, 500);
    assert.equal((await get(panicking, "/")).body, "2");
  });
}

test("HEAD is answered without a body", { timeout: 30_000 }, async () => {
  const failed = await get(panicking, "/panic", { method: "HEAD" });
  assert.equal(failed.status, 500);
  assert.equal(failed.body, "");
});

test("an error is no panic: the instance stays", { timeout: 30_000 }, async () => {
  const answered = Number((await get(panicking, "/")).body);
  assert.equal((await get(panicking, "/error")).status, 500);
  assert.equal(Number((await get(panicking, "/")).body), answered + 1);
});

test("a failure has the headers that every answer of the real worker has", { timeout: 30_000 }, async () => {
  const real = worker("worker");
  try {
    const failed = await get(panicking, "/panic");
    const refused = await get(real, "/no-such-route");
    assert.equal(refused.status, 404);
    for (const name of EVERYWHERE) {
      assert.ok(refused.headers.get(name), `${name} is on a refusal`);
      assert.equal(failed.headers.get(name), refused.headers.get(name), name);
    }
  } finally {
    await real.dispose();
  }
});
