//! `packferry watch`, which `make dev PACK=path` runs: every save is answered, a broken one leaves the last good release.

import assert from "node:assert/strict";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";

import { start } from "./support/command.mjs";
import { startEdge } from "./support/edge.mjs";
import { PACKFERRY, requirePackferry, scratch } from "./support/project.mjs";
import { writePack } from "./support/release.mjs";

const PATIENCE = 90_000;

/** Waits until `holds` does. */
async function until(what, holds) {
  for (const end = Date.now() + PATIENCE / 3; Date.now() < end; await sleep(100)) {
    if (await holds()) {
      return;
    }
  }
  assert.fail(`${what} did not come`);
}

test("every save is answered, and a broken one leaves the last good release", { timeout: PATIENCE }, async (context) => {
  requirePackferry();
  const folder = scratch("watch");
  const state = join(folder, "state");
  const pack = writePack(folder, {
    name: "units",
    version: "1.0.0",
    modules: { ".": "index.js" },
    files: { "index.js": "export const one = 1;\n" },
  });
  const file = join(pack, "index.js");
  const watcher = start(PACKFERRY, ["watch", pack, "--out", join(folder, "release"), "--persist-to", state], {
    timeout: PATIENCE,
  });
  context.after(() => watcher.kill());
  const digests = () => [...watcher.output.stdout.matchAll(/^units {2}([0-9a-f]{64})$/gm)].map((match) => match[1]);
  await until("the first digest", () => digests().length === 1);

  const edge = await startEdge({ state });
  context.after(() => edge.close());
  const answer = async () => (await edge.get("/api/sandbox-modules/units")).body.toString();
  assert.equal(await answer(), "export const one = 1;\n");

  writeFileSync(file, "export const one = 2;\n");
  await until("the second digest", () => digests().length === 2);
  await until("the second answer", async () => (await answer()) === "export const one = 2;\n");
  const pinned = await edge.get(`/api/sandbox-modules/${digests()[0]}`);
  assert.equal(pinned.body.toString(), "export const one = 1;\n");

  writeFileSync(file, "export const one = ;\n");
  await until("the diagnostic", () => watcher.output.stderr.includes("units/index.js: invalid JavaScript"));
  await until("word of the last good release", () => watcher.output.stdout.includes("Not published"));
  assert.equal(await answer(), "export const one = 2;\n");

  const word = () => watcher.output.stdout.split("Not published").length - 1;
  const declaration = readFileSync(join(pack, "package.json"), "utf8");
  writeFileSync(join(pack, "package.json"), declaration.replace('"nodetool"', '"nodeTool"'));
  await until("word of a pack that is none", () => word() === 2);
  renameSync(pack, `${pack}-away`);
  await until("word of a pack that is away", () => word() >= 3);
  assert.equal(await answer(), "export const one = 2;\n");
  renameSync(`${pack}-away`, pack);
  writeFileSync(join(pack, "package.json"), declaration);

  writeFileSync(file, "export const one = 3;\n");
  await until("the third digest", () => digests().length === 3);
  await until("the third answer", async () => (await answer()) === "export const one = 3;\n");
});
