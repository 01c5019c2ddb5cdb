//! The guest in Node: every case of `fixtures/guest/`, and what the cases cannot say.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { HARDEN } from "../src/guest/harden.js";
import { GuestError, runInGuest } from "../src/guest/node.js";
import { repository } from "./cases.js";
import { difference, echoHost } from "./guest-cases.js";
import { cases, resolutionOf } from "./guest-fixture.js";

for (const expected of cases) {
  const runs: [string, string[]][] = [[expected.name, expected.declared]];
  if (expected.alsoUndeclared) runs.push([`${expected.name}, nothing declared`, []]);
  for (const [name, declared] of runs) {
    void test(`case ${name}`, async () => {
      const run = runInGuest(expected.code, await resolutionOf(declared), { ...expected.limits, hosts: echoHost });
      const outcome = await run.then(
        ({ value }) => ({ value }),
        (error: unknown) => {
          assert(error instanceof GuestError, String(error));
          return { error: error.message };
        },
      );
      assert.equal(difference(expected, outcome), undefined);
    });
  }
}

void test("the globals are hardened by the same text as in the native guest", () => {
  assert.equal(`${HARDEN}\n`, readFileSync(repository("guest/src/engine/harden.js"), "utf8"));
});
