//! Bundles pages over this package for a browser: the entries, the worker for WASM calls and the engine's WASM, in one folder.
//! What an application's own bundler does.

import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const engine = createRequire(import.meta.url).resolve("@jitl/quickjs-ng-wasmfile-release-sync/wasm");

/** Bundles `entryPoints` (paths) into the folder `outdir`. They may import `@packferry/client` wherever they lie. */
export async function bundle(entryPoints, outdir) {
  mkdirSync(outdir, { recursive: true });
  await build({
    absWorkingDir: root,
    entryPoints: [...entryPoints, "dist/guest/wasm-worker-browser.js"],
    entryNames: "[name]",
    outdir,
    bundle: true,
    splitting: true,
    format: "esm",
    target: "es2022",
    minify: true,
    legalComments: "none",
    plugins: [{ name: "packferry-client", setup: resolveOwnName }],
    logLevel: "warning",
  });
  copyFileSync(engine, `${outdir}/emscripten-module.wasm`);
}

/** Finds this package by its name for files outside it, which have not installed it. */
function resolveOwnName(bundling) {
  bundling.onResolve({ filter: /^@packferry\/client/ }, ({ path, kind, pluginData }) =>
    pluginData === "own" ? undefined : bundling.resolve(path, { resolveDir: root, kind, pluginData: "own" }),
  );
}
