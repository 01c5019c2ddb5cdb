//! Where things lie in the repository, and what must have been built before an end-to-end test can run.
//! Builds nothing itself: `make test` does.

import { existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

/** The repository's root. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The data that tests share. */
export const FIXTURES = join(ROOT, "fixtures");
/** The starter packs. */
export const STARTER_PACKS = join(ROOT, "packs");
/** The folder of the built worker. */
export const WORKER = join(ROOT, "dist", "worker");
/** The wrangler that package.json pins. */
export const WRANGLER = join(ROOT, "node_modules", "wrangler", "bin", "wrangler.js");

/** The `packferry` command: `PACKFERRY`, or what cargo built last in its usual place. */
export const PACKFERRY =
  process.env.PACKFERRY ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "debug", "packferry");

/** Fails with the command to run where a file is missing that the tests need. */
function require(file, command) {
  if (!existsSync(file)) {
    throw new Error(`${file} is missing. Run: ${command} (make test does all of it)`);
  }
}

/** Fails where the worker has not been built. */
export function requireWorker() {
  require(join(WORKER, "index.js"), "cargo xtask build-worker");
}

/** Fails where the command line has not been built. */
export function requirePackferry() {
  require(PACKFERRY, "cargo build -p packferry");
}

/** Fails where the starter packs are not installed. */
export function requireStarterPacks() {
  require(join(STARTER_PACKS, "node_modules"), "make setup");
}

/** A new folder outside the repository, gone when the process ends. Its path has no symbolic link. */
export function scratch(name) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), `packferry-${name}-`)));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}
