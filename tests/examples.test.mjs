//! The example of every starter pack returns in the guest what it returns in Node with the library that the pack names.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import test, { before } from "node:test";

import { packferry } from "./support/command.mjs";
import { runInNode } from "./support/example.mjs";
import { STARTER_PACKS, requireStarterPacks, scratch } from "./support/project.mjs";
import { build } from "./support/release.mjs";

requireStarterPacks();

/** The starter packs by folder. */
const PACKS = readdirSync(STARTER_PACKS)
  .filter((folder) => folder !== "node_modules" && existsSync(join(STARTER_PACKS, folder, "package.json")))
  .map((folder) => {
    const root = join(STARTER_PACKS, folder);
    return { folder, root, manifest: JSON.parse(readFileSync(join(root, "package.json"), "utf8")) };
  });

/** The fewest libraries that the catalogue may hold. */
const LIBRARIES_MIN = 20;

let release;
before(async () => {
  release = await build([STARTER_PACKS], join(scratch("examples"), "release"));
});

test(`there are ${LIBRARIES_MIN} libraries or more, each pinned to one version`, () => {
  const pins = PACKS.flatMap(({ manifest }) => Object.entries(manifest.dependencies ?? {}));
  const libraries = new Set(pins.map(([library]) => library));
  assert.ok(libraries.size >= LIBRARIES_MIN, `there are ${libraries.size}`);
  assert.deepEqual(pins.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)), []);
});

for (const { folder, root, manifest } of PACKS) {
  test(`${manifest.name}: the example gives the same in the guest and in Node`, { timeout: 60_000 }, async () => {
    const example = join(root, "example.js");
    const code = readFileSync(example, "utf8");
    for (const { name } of manifest.nodetool.sandboxModules) {
      const specifier = name === "." ? manifest.name : `${manifest.name}/${name}`;
      assert.ok(code.includes(`from "${specifier}"`), `${folder}/example.js does not import ${specifier}`);
    }
    assert.ok(!manifest.files.includes("example.js"), "the example is not published");

    const expected = await runInNode(code, root, manifest);
    assert.ok(Object.keys(expected).length > 0, `${folder}/example.js returns nothing`);
    const { stdout } = await packferry(["run", example, "--packs", release, "--json"]);
    assert.deepEqual(JSON.parse(stdout).value, expected);
  });
}
