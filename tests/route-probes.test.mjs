//! Raw requests to NodeTool's route (fixtures/route-probes.json) against the worker, byte for byte over a socket of
//! workerd, and paths with characters that URLs may not hold. Where we answer a probe differently on purpose,
//! fixtures/route-probe-differences.json says what and why.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { MODULES, checkHeaders, checkProblem, notInstalled, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { PROBES, PROBE_DIFFERENCES, ours } from "./support/nodetool.mjs";
import { FIXTURES, scratch } from "./support/project.mjs";
import { GOOD_PACKS, build, publish } from "./support/release.mjs";

const RAW_PATHS = JSON.parse(readFileSync(join(FIXTURES, "route-raw-paths.json"), "utf8")).rows;

let edge;
let manifest;
before(
  async () => {
    const folder = scratch("probes");
    const [release, state] = [join(folder, "release"), join(folder, "state")];
    await build([GOOD_PACKS], release, { withheld: true });
    await publish(release, state, { args: ["--allow-withheld"] });
    manifest = sha256(readFileSync(join(release, "manifest.json")));
    edge = await startEdge({ state });
  },
  { timeout: 120_000 },
);
after(() => edge?.close());

/** A path whose end the fixture writes as `x…(n chars)`: its last character repeated up to that length. */
function whole(path) {
  const elided = /^(.*)…\((\d+) chars\)$/su.exec(path);
  return elided === null ? path : elided[1].padEnd(Number(elided[2]), elided[1].at(-1));
}

function send({ method, path, requestHeaders = {} }) {
  // The one probe that has a body is the one that says what kind of body it is.
  const body = "Content-Type" in requestHeaders ? "a body that nobody asked for" : "";
  return edge.raw({ method, path: whole(path), headers: requestHeaders, body });
}

/** NodeTool's answer in a probe: status and headers by lower-case name, without those of the connection. */
function recorded(probe) {
  const pairs = probe.headers.map((line) => [
    line.slice(0, line.indexOf(":")).toLowerCase(),
    line.slice(line.indexOf(":") + 1).trim(),
  ]);
  const headers = Object.fromEntries(pairs.filter(([name]) => name !== "connection"));
  return { status: Number(probe.statusLine.split(" ")[1]), headers, body: probe.body };
}

/** Checks that the answer is a delivery or a 304 like NodeTool's. */
function checkLike(answer, theirs, { method, name }) {
  assert.equal(answer.status, theirs.status, name);
  const { "content-length": length, ...headers } = ours(theirs.headers);
  checkHeaders(answer, headers, name);
  if (theirs.status === 200 && method !== "HEAD") {
    assert.equal(answer.headers.get("content-length"), length, name);
  }
  assert.equal(answer.body.toString("utf8"), theirs.body, `${name}: the body`);
}

/** The id that NodeTool read out of a refused request: its sentence says it. */
function checkRefusal(answer, theirs, { method, name }) {
  if (method === "HEAD") {
    assert.equal(answer.status, theirs.status, name);
    checkHeaders(answer, { "content-type": "application/problem+json", "cache-control": "no-store" }, name);
  } else if (theirs.status === 400) {
    checkProblem(answer, { code: "invalid-id", detail: "The module id cannot be decoded." }, name);
  } else {
    const { detail } = JSON.parse(theirs.body);
    const code = detail.endsWith("is not installed.") ? "not-found" : "unavailable";
    checkProblem(answer, { code, detail }, name);
  }
}

/** Checks an answer that differs from NodeTool's on purpose. */
function checkDifferent(answer, expected, probe) {
  const { name } = probe;
  assert.equal(answer.status, expected.status, name);
  if (expected.as !== undefined) {
    checkLike(answer, recorded(PROBES.find((row) => row.name === expected.as)), probe);
  } else if (expected.code === "not-found") {
    const id = expected.id ?? decodeURIComponent(probe.path.slice(MODULES.length));
    checkProblem(answer, notInstalled(id), name);
  } else if (expected.code !== undefined) {
    checkProblem(answer, expected, name);
  } else if (expected.fileId !== undefined) {
    checkHeaders(answer, { "x-sandbox-file-id": expected.fileId, "x-content-sha256": sha256(answer.body) }, name);
  } else if (expected.index) {
    assert.equal(JSON.parse(answer.body).manifest, manifest, name);
  } else {
    checkPreflight(answer, name);
  }
  if (expected.status === 405) {
    checkHeaders(answer, { allow: "GET, HEAD, OPTIONS" }, name);
  }
}

function checkPreflight(answer, name) {
  const expected = {
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, HEAD, OPTIONS",
    "access-control-allow-headers": "Authorization, If-None-Match",
    "access-control-max-age": "86400",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; sandbox",
    "cross-origin-resource-policy": "cross-origin",
  };
  checkHeaders(answer, expected, name);
  assert.ok(answer.headers.has("cache-control"), `${name}: Cache-Control is explicit`);
  assert.equal(answer.body.length, 0, name);
}

for (const probe of PROBES) {
  test(probe.name, { timeout: 30_000 }, async () => {
    const answer = await send(probe);
    const theirs = recorded(probe);
    const difference = PROBE_DIFFERENCES.rows[probe.name];
    if (difference !== undefined) {
      checkDifferent(answer, difference, probe);
    } else if (theirs.status < 400) {
      checkLike(answer, theirs, probe);
    } else {
      checkRefusal(answer, theirs, probe);
    }
  });
}

test("every difference is that of a probe, differs, and says why", () => {
  const probes = new Map(PROBES.map((probe) => [probe.name, probe]));
  assert.equal(probes.size, PROBES.length, "names are unique");
  for (const [name, { status, why }] of Object.entries(PROBE_DIFFERENCES.rows)) {
    assert.ok(probes.has(name), `no probe is called ${name}`);
    assert.notEqual(recorded(probes.get(name)).status, status, name);
    assert.ok(why?.endsWith("."), name);
  }
});

for (const { name, path, statuses } of RAW_PATHS) {
  for (const method of ["GET", "HEAD"]) {
    test(`raw path: ${name}, ${method}`, { timeout: 30_000 }, async () => {
      const answer = await edge.raw({ method, path: whole(path) });
      assert.ok(statuses.includes(answer.status), `${answer.status}, not one of ${statuses}`);
      assert.equal(answer.headers.get("x-injected"), null);
      if (method === "HEAD") {
        checkHeaders(answer, { "content-type": "application/problem+json", "access-control-allow-origin": "*" }, name);
      } else {
        checkProblem(answer, { code: answer.status === 400 ? "invalid-id" : "not-found" }, name);
      }
    });
  }
}
