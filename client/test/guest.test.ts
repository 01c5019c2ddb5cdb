//! The guest in Node: every case of `fixtures/guest/`, and what the cases cannot say.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";

import { HARDEN } from "../src/guest/harden.js";
import { GuestError, runInGuest } from "../src/guest/node.js";
import { repository } from "./cases.js";
import { difference, echoHost, mediaPlatform, runsOf } from "./guest-cases.js";
import { cases, resolutionOf } from "./guest-fixture.js";
import { GuestReport } from "./guest-report.js";

const report = new GuestReport("node");
after(() => report.write());

for (const expected of cases) {
  for (const { name, declared } of runsOf(expected)) {
    void test(`case ${name}`, async () => {
      const platform = expected.platform ? mediaPlatform : {};
      const run = runInGuest(expected.code, await resolutionOf(declared), { ...expected.limits, hosts: echoHost, platform });
      const outcome = await run.then(
        ({ value }) => ({ value }),
        (error: unknown) => {
          assert(error instanceof GuestError, String(error));
          return { error: error.message };
        },
      );
      const found = difference(expected, outcome);
      report.add(name, found);
      assert.equal(found, undefined);
    });
  }
}

void test("the globals are hardened by the same text as in the native guest", () => {
  assert.equal(`${HARDEN}\n`, readFileSync(repository("guest/src/engine/harden.js"), "utf8"));
});
