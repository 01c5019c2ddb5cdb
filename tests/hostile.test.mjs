//! Requests that no well-behaved client sends, byte for byte over a socket of workerd: each gets an answer of ours or is refused by
//! the runtime before us, no header is ever injected, and the worker goes on.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";

import { MODULES, checkProblem } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, copyPacks, publish } from "./support/release.mjs";

const GEO = `${MODULES}@acme%2Fgeo`;
let edge;
let good;

before(
  async () => {
    const folder = scratch("hostile");
    const [packs, release, state] = ["packs", "release", "state"].map((name) => join(folder, name));
    copyPacks(packs, ["@acme/geo", "units"]);
    await build([packs], release);
    await publish(release, state);
    edge = await startEdge({ state });
    good = await edge.get(GEO);
    assert.equal(good.status, 200);
  },
  { timeout: 120_000 },
);
after(() => edge?.close());
afterEach(async () => {
  const answer = await edge.get(GEO);
  assert.ok(answer.status === 200 && answer.body.equals(good.body), "the worker goes on");
});

const tag = () => good.headers.get("etag");

/** Entity tags, and what they are answered with. */
const CONDITIONS = [
  ["4,000 tags, none of them ours", () => '"x", '.repeat(4_000), 200],
  ["4,000 tags, ours last", () => `${'"x", '.repeat(4_000)}${tag()}`, 304],
  ["a weak tag among commas", () => `,,, ,W/${tag()},,`, 304],
  ["*", () => "*", 304],
  ["* in a list", () => '"x", *', 200],
  ["ours without quotes", () => tag().slice(1, -1), 200],
  ["an open quote", () => `"x, ${tag()}`, 200],
  ["20,000 quotes", () => '"'.repeat(20_000), 200],
  ["bytes beyond ASCII", () => `"\u00ff\u00fe", ${tag()}`, 304],
];
for (const [what, header, status] of CONDITIONS) {
  test(`If-None-Match: ${what}`, { timeout: 30_000 }, async () => {
    const answer = await edge.raw({ path: GEO, headers: { "If-None-Match": header() } });
    assert.equal(answer.status, status);
    assert.equal(answer.headers.get("etag"), tag());
  });
}

/** Queries of the index, and the specifiers or the code that they are answered with. */
const ALL = ["@acme/geo", "@acme/geo/extra", "units"];
const QUERIES = [
  ["limit=-1", ALL],
  ["limit=1e9", ALL],
  ["limit=0", ALL.slice(0, 1)],
  ["limit=2&limit=1", ALL.slice(0, 1)],
  ["limit=1&limit=NaN", ALL],
  ["after=@acme/absent", ALL],
  ["after=@acme/geo/zzz", ALL.slice(2)],
  ["after=~", []],
  ["prefix=@acme&prefix=units", ALL.slice(2)],
  ["prefix=%40ACME", []],
  ["prefix=%", "invalid-id"],
  ["prefix=%e2%82", "invalid-id"],
  [`prefix=${"a".repeat(16_000)}`, "invalid-id"],
  [`${"&limit=1".repeat(2_000)}&limit=3`, ALL],
];
for (const [query, expected] of QUERIES) {
  test(`index: ${query.slice(0, 40)}`, { timeout: 30_000 }, async () => {
    const answer = await edge.raw({ path: `/api/sandbox-modules?${query}` });
    if (typeof expected === "string") {
      checkProblem(answer, { code: expected }, query);
    } else {
      assert.deepEqual(JSON.parse(answer.body).modules.map(({ specifier }) => specifier), expected);
    }
  });
}

/** Requests, and what may come of them: a status of ours, or `runtime` where the runtime refuses or drops them before us. */
const REQUESTS = [
  ["a token of 16 KB", { path: GEO, headers: { Authorization: `Bearer ${"A".repeat(16_000)}` } }, [200]],
  ["a token beyond ASCII", { path: GEO, headers: { Authorization: "Bearer \u00e9" } }, [200]],
  ["two schemes", { path: GEO, headers: { Authorization: "Bearer Basic Bearer" } }, [200]],
  ["Range", { path: GEO, headers: { Range: "bytes=0-1" } }, [200]],
  ["Expect", { path: GEO, headers: { Expect: "100-continue" } }, [200]],
  ["an origin with a line end in it", { path: GEO, headers: { Origin: "https://a.example\\r\\nX-Injected: 1" } }, [200]],
  ["a body on a GET", { path: GEO, headers: { "Content-Length": "0" } }, [200]],
  ["16 KB of path", { path: `${MODULES}${"a".repeat(16_000)}` }, [400]],
  ["16 KB of escapes", { path: `${MODULES}${"%61".repeat(5_400)}` }, [400]],
  ["2,000 slashes", { path: `${MODULES}${"/".repeat(2_000)}` }, [400]],
  ["two colons a thousand times", { path: `${MODULES}${"::".repeat(1_000)}` }, [400]],
  ["an escaped line end", { path: `${MODULES}a%0d%0aX-Injected:%201` }, [400]],
  ["an escaped null", { path: `${MODULES}%00` }, [400]],
  ["another case", { path: GEO.replace("sandbox", "SANDBOX") }, [404]],
  ["an absolute target", { path: `http://other.example${GEO}` }, [200, "runtime"]],
  ["TRACE", { method: "TRACE", path: GEO }, [405, "runtime"]],
  ["CONNECT", { method: "CONNECT", path: GEO }, [405, "runtime"]],
  ["PROPFIND", { method: "PROPFIND", path: GEO }, [405, "runtime"]],
  ["a method that nobody has", { method: "BREW", path: GEO }, [405, "runtime"]],
  ["a method in small letters", { method: "get", path: GEO }, [405, "runtime"]],
  ["OPTIONS of everything", { method: "OPTIONS", path: "*" }, [204, "runtime"]],
  ["a folded header", { path: GEO, headers: { "X-Folded": "a\r\n b" } }, [200, "runtime"]],
  ["a header without a colon", { path: `${GEO} HTTP/1.1\r\nnonsense\r\nX: ` }, ["runtime"]],
  ["a space in the target, where the runtime ends it", { path: `${GEO} /x` }, [200, 400, 404, "runtime"]],
];
for (const [what, request, allowed] of REQUESTS) {
  test(what, { timeout: 30_000 }, async () => {
    let answer;
    try {
      answer = await edge.raw(request);
    } catch (error) {
      assert.ok(allowed.includes("runtime"), `dropped: ${error.message}`);
      return;
    }
    assert.equal(answer.headers.get("x-injected"), null);
    const ours = answer.headers.get("content-security-policy") !== null;
    assert.ok(allowed.includes(ours ? answer.status : "runtime"), `${answer.status}, ${ours ? "ours" : "the runtime's"}`);
    if (answer.status === 200) {
      assert.ok(answer.body.equals(good.body));
    }
  });
}
