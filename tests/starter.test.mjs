//! The committed manifest of the starter release is what the starter packs build to.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";

import { ROOT } from "../scripts/state-dir.mjs";
import { scratch } from "./support/project.mjs";
import { build } from "./support/release.mjs";

test("the starter packs build to the committed manifest", { timeout: 60_000 }, async () => {
  const out = join(scratch("starter"), "release");
  await build([join(ROOT, "packs")], out);
  const committed = readFileSync(join(ROOT, "manifests", "starter", "manifest.json"), "utf8");
  assert.equal(readFileSync(join(out, "manifest.json"), "utf8"), committed, "Build them and review the new manifest: make starter");
});
