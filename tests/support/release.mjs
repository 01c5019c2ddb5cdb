//! From packs to a published release, through the real command: what most end-to-end tests begin with.

import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { packferry } from "./command.mjs";
import { FIXTURES } from "./project.mjs";

/** The reference packs, as they lie in the repository. */
export const GOOD_PACKS = join(FIXTURES, "good-packs");

/** Copies some of the reference packs into `folder`, which is then a root like any `node_modules`. */
export function copyPacks(folder, names) {
  for (const name of names) {
    cpSync(join(GOOD_PACKS, name), join(folder, name), { recursive: true, verbatimSymlinks: true });
  }
  return folder;
}

/** Writes a pack of JavaScript files into `folder`: `modules` and `internal` are of its manifest. */
export function writePack(folder, { name, version, modules, internal = [], files }) {
  const root = join(folder, name);
  const manifest = {
    name,
    version,
    nodetool: {
      apiVersion: 1,
      sandboxModules: Object.entries(modules).map(([module, file]) => ({ name: module, kind: "js", file })),
      internal,
    },
  };
  const all = { "package.json": JSON.stringify(manifest, null, 2), ...files };
  for (const [file, text] of Object.entries(all)) {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), text);
  }
  return root;
}

/** Builds the packs of `roots` into `folder`; `withheld` says whether some are at fault. */
export async function build(roots, folder, { withheld = false, args = [], ...options } = {}) {
  await packferry(["build", ...roots, "--out", folder, ...args], { expect: withheld ? 1 : 0, ...options });
  return folder;
}

/** Publishes the release of `folder` into the local KV of `state`. */
export function publish(folder, state, { args = [], ...options } = {}) {
  return packferry(["publish", folder, "--local", "--persist-to", state, ...args], options);
}

/** A release's report. */
export function report(folder) {
  return JSON.parse(readFileSync(join(folder, "report.json"), "utf8"));
}
