//! The entry module of the worker (src/entry.js) in workerd, around a worker that fails on request:
//! every request is answered, and the next one finds a worker that works.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Log, LogLevel, Miniflare } from "miniflare";

const WORKER = fileURLToPath(new URL("../dist/panicking-worker/index.js", import.meta.url));

let miniflare;
before(async () => {
  miniflare = new Miniflare({
    cf: false,
    log: new Log(LogLevel.NONE),
    handleRuntimeStdio: (out, err) => [out, err].forEach((stream) => stream.resume()),
    compatibilityDate: "2026-04-01",
    modules: true,
    modulesRules: [{ type: "CompiledWasm", include: ["**/*.wasm"] }],
    scriptPath: WORKER,
  });
  await miniflare.ready;
});
after(() => miniflare.dispose());

async function get(path, options) {
  const response = await miniflare.dispatchFetch(`http://worker${path}`, options);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

for (const path of ["/panic", "/panic-later", "/trap", "/overflow"]) {
  test(`${path} is a 500 for all in flight, and the next request gets a new instance`, { timeout: 20_000 }, async () => {
    await get("/");
    assert.ok(Number((await get("/")).body) > 1, "the instance has a past");
    const slow = get("/slow");
    const failed = await get(path);
    assert.equal(failed.status, 500);
    assert.equal(JSON.parse(failed.body).code, "internal");
    assert.equal(failed.headers.get("Content-Type"), "application/problem+json");
    assert.equal(failed.headers.get("Cache-Control"), "no-store");
    assert.equal(failed.headers.get("Access-Control-Allow-Origin"), "*");
    assert.equal((await slow).status, 500);
    assert.deepEqual(
      [(await get("/")).body, (await get("/")).body],
      ["1", "2"],
      "the new instance starts over",
    );
    // What the old instance was waiting for comes too late to do harm.
    assert.equal((await get("/slow")).body, "3");
    assert.equal((await get("/")).body, "4");
  });
}

test("HEAD is answered without a body", { timeout: 20_000 }, async () => {
  const failed = await get("/panic", { method: "HEAD" });
  assert.equal(failed.status, 500);
  assert.equal(failed.body, "");
});

test("an error is no panic: the instance stays", { timeout: 20_000 }, async () => {
  const before = Number((await get("/")).body);
  assert.equal((await get("/error")).status, 500);
  assert.equal(Number((await get("/")).body), before + 1);
});
