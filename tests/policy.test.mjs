//! A policy as an operator sets it: packs made private, a token, a block, and what each requester then gets.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { packferry } from "./support/command.mjs";
import { startEdge } from "./support/edge.mjs";
import { scratch } from "./support/project.mjs";
import { build, copyPacks, publish } from "./support/release.mjs";

const GEO = "/api/sandbox-modules/@acme%2Fgeo";
const UNITS = "/api/sandbox-modules/units";

test("private packs, tokens and blocks", { timeout: 120_000 }, async (context) => {
  const folder = scratch("policy");
  const state = join(folder, "state");
  const file = join(folder, "policy.toml");
  const packs = copyPacks(join(folder, "packs"), ["@acme/geo", "units"]);
  await publish(await build([packs], join(folder, "release")), state);
  const push = () => packferry(["policy", "push", file, "--name", "test", "--local", "--persist-to", state]);

  writeFileSync(file, 'private = ["@acme/*"]\n');
  const made = await packferry(["policy", "token", "ci", "--grant", "@acme/*", "--expires", "1d", "--file", file]);
  const token = made.stdout.trim();
  const edge = await startEdge({ state, vars: { POLICY: "test" } });
  context.after(() => edge.close());
  const get = (path, bearer) => edge.get(path, { headers: bearer ? { Authorization: `Bearer ${bearer}` } : {} });

  await context.test("a policy that is not there closes everything", async () => {
    const answer = await get(UNITS);
    assert.deepEqual([answer.status, JSON.parse(answer.body).code], [503, "policy-unavailable"]);
  });

  await push();
  const graph = (await get(GEO, token)).headers.get("x-content-digest");
  // What is asked for, by whom, and the status.
  const rows = [
    [GEO, null, 403],
    [GEO, token, 200],
    [GEO, token.slice(1), 403],
    [GEO, `${token}x`, 403],
    ["/api/sandbox-modules/@acme%2Fabsent", null, 403],
    ["/api/sandbox-modules/@acme%2Fabsent", token, 404],
    [`/api/sandbox-modules/${graph}`, null, 403],
    [`/api/sandbox-modules/${graph}`, token, 200],
    ["/api/sandbox-closures/@acme%2Fgeo", null, 403],
    ["/api/sandbox-closures/@acme%2Fgeo", token, 200],
    [UNITS, null, 200],
    [UNITS, "nonsense", 200],
  ];
  for (const [path, bearer, status] of rows) {
    await context.test(`${path} by ${bearer === null ? "nobody" : "a bearer"} is ${status}`, async () => {
      const answer = await get(path, bearer);
      assert.equal(answer.status, status, answer.body.toString());
      if (status === 200 && path !== UNITS) {
        assert.match(answer.headers.get("cache-control"), /^private/);
        assert.match(answer.headers.get("vary"), /authorization/i);
      }
    });
  }

  await context.test("the index shows what a requester may fetch", async () => {
    const specifiers = async (bearer) =>
      JSON.parse((await get("/api/sandbox-modules", bearer)).body).modules.map((module) => module.specifier);
    assert.deepEqual(await specifiers(null), ["units"]);
    assert.deepEqual(await specifiers(token), ["@acme/geo", "@acme/geo/extra", "units"]);
  });

  await context.test("a block holds for everyone, without a deploy, and before a condition", async () => {
    const etag = (await get(GEO, token)).headers.get("etag");
    writeFileSync(file, '[[blocked]]\npack = "@acme/geo"\nversion = "1.2.0"\nreason = "It is wrong at the poles."\n');
    await push();
    for (const path of [GEO, `/api/sandbox-modules/${graph}`, "/api/sandbox-closures/@acme%2Fgeo"]) {
      const answer = await edge.get(path, { headers: { Authorization: `Bearer ${token}`, "If-None-Match": etag } });
      assert.deepEqual([answer.status, JSON.parse(answer.body).reason], [403, "It is wrong at the poles."]);
    }
    assert.equal((await get(UNITS)).status, 200);
  });
});
