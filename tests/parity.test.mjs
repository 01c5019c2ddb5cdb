//! The page on parity says what the reports say, and is not made of reports that are not of these cases.

import assert from "node:assert/strict";
import test from "node:test";

import { render } from "../scripts/parity.mjs";

const CASES = {
  cases: [
    { name: "returns", value: { a: "|" } },
    { name: "denies", error: ["`x`", "no"], alsoUndeclared: true },
    { name: "tells", valueContains: ["part"] },
  ],
};
const RUNS = { returns: null, denies: null, "denies, nothing declared": null, tells: null };
const RUNTIMES = ["native", "node", "chromium-page", "chromium-worker"];
const reports = (changed = {}) =>
  Object.fromEntries(RUNTIMES.map((runtime) => [runtime, { fixture: "f", runs: RUNS, ...changed[runtime] }]));

test("a row for each case, a mark for each run", () => {
  const page = render(CASES, "f", reports());
  assert.match(page, /3 cases, 4 runs in each runtime; 0 of 16 differ/);
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  assert.deepEqual(rows, [
    '| `returns` | `{"a":"\\|"}` | ✓ | ✓ | ✓ | ✓ |',
    "| `denies` | fails: `` `x` ``, `no` | ✓ ✓ | ✓ ✓ | ✓ ✓ | ✓ ✓ |",
    "| `tells` | text with `part` | ✓ | ✓ | ✓ | ✓ |",
  ]);
});

test("what differs is shown and counted", () => {
  const page = render(CASES, "f", reports({ node: { runs: { ...RUNS, tells: '{"value":"other"}' } } }));
  assert.match(page, /1 of 16 differ/);
  assert.match(page, /\| `tells` \| text with `part` \| ✓ \| ✗ `\{"value":"other"\}` \| ✓ \| ✓ \|/);
});

for (const [what, changed] of [
  ["other cases", { fixture: "g" }],
  ["fewer cases", { runs: { returns: null } }],
]) {
  test(`a report of ${what} is refused, with the command that makes another`, () => {
    const message = "target/parity/native.json is not of these cases. Run: cargo test -p packferry-guest --test cases";
    assert.throws(() => render(CASES, "f", reports({ native: changed })), { message });
  });
}
