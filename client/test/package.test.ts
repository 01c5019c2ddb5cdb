//! What is published: its size, what it imports, what is in it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** Minified and gzipped bytes of what `code` loads; `later` are modules that are loaded only when they are needed. */
async function gzipped(code: string, later: string[] = []): Promise<number> {
  const { outputFiles } = await build({
    stdin: { contents: code, resolveDir: `${root}dist` },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: later,
  });
  return gzipSync(outputFiles[0]?.contents ?? "", { level: 9 }).length;
}

void test("the fetching half is at most 6 KB", async (context) => {
  // The chain of trust comes with `trustedKeys`, the walk with a server that has no closures.
  const later = ["./release.js", "./walk.js"];
  const half = await gzipped('export { createCatalogClient } from "./index.js";', later);
  context.diagnostic(`fetching half: ${half} bytes gzipped`);
  context.diagnostic(`with catalog and declarations: ${await gzipped('export * from "./index.js";', later)}`);
  context.diagnostic(`and with all that is loaded later: ${await gzipped('export * from "./index.js";')}`);
  assert(half <= 6 * 1024, `${half} bytes`);
});

void test("the fetching half imports nothing but itself, and nothing of Node", async () => {
  const { metafile } = await build({ entryPoints: [`${root}dist/index.js`], bundle: true, write: false, format: "esm", metafile: true, logLevel: "silent" });
  for (const [input, { imports }] of Object.entries(metafile.inputs)) {
    assert(!input.includes("node_modules"), input);
    for (const { path } of imports) assert(!isBuiltin(path), `${input} imports ${path}`);
  }
});

interface Manifest {
  exports: Record<string, Record<string, string>>;
  dependencies?: object;
}

void test("every export is there, with its types; there are no dependencies", () => {
  const manifest = JSON.parse(readFileSync(`${root}package.json`, "utf8")) as Manifest;
  assert.equal(manifest.dependencies, undefined);
  for (const targets of Object.values(manifest.exports)) for (const path of Object.values(targets)) assert(existsSync(root + path), path);
});

void test("only what users need is published", () => {
  const output = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root, encoding: "utf8" });
  const [report] = JSON.parse(output) as { files: { path: string }[] }[];
  const paths = report?.files.map(({ path }) => path) ?? [];
  assert(paths.length > 10);
  for (const path of paths) assert.match(path, /^(dist\/[\w/-]+\.(js|d\.ts)|package\.json|README\.md|LICENSE)$/);
});
