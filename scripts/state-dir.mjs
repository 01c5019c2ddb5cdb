//! Where local state lives: one folder per wrangler version, because an older workerd crashes on state
//! that a newer one wrote. Used by the Makefile (run as a script it prints the folder) and by
//! local-kv.mjs. Reads nothing but wrangler's own package.json.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** The folder for `wrangler dev --persist-to`, absolute. */
export function stateDirectory() {
  const manifest = join(ROOT, "node_modules", "wrangler", "package.json");
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  return join(ROOT, ".wrangler", `state-${version}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(stateDirectory());
}
