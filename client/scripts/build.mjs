//! Builds dist/: one ES module for each source file, and the type declarations. No bundling: that is the application's.

import { execFileSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = readdirSync(`${root}src`, { recursive: true }).filter((name) => name.endsWith(".ts"));

rmSync(`${root}dist`, { recursive: true, force: true });
execFileSync(`${root}node_modules/.bin/tsc`, ["--emitDeclarationOnly"], { cwd: root, stdio: "inherit" });
await build({
  absWorkingDir: root,
  entryPoints: sources.map((name) => `src/${name}`),
  outdir: "dist",
  format: "esm",
  target: "es2022",
  // `//!` would count as a licence and stay in every bundle.
  legalComments: "none",
});
