//! Serves this page: bundles it over the client, starts the worker where none answers, says the URL.
//!
//!     node examples/browser/serve.mjs [--port 8788] [--edge-port 8787]

import { spawn } from "node:child_process";
import { cpSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { bundle } from "../../client/scripts/bundle.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "..", "..");

const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".wasm": "application/wasm" };
/** As strict as a page that runs the guest can be. It may ask any server for modules: what arrives is proven, not believed. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; img-src 'self' data:; connect-src *";

/** Bundles the page into `folder`. */
export async function bundlePage(folder) {
  await bundle([join(HERE, "app.js"), join(HERE, "worker.js")], folder);
  for (const file of ["index.html", "style.css", "icon.svg"]) {
    cpSync(join(HERE, file), join(folder, file));
  }
}

/** Serves the files of `folder`; gives the server once it listens. */
export function servePage(folder, port = 0) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    const file = pathname === "/" ? "index.html" : normalize(pathname);
    try {
      const body = readFileSync(join(folder, file));
      const headers = { "Content-Type": TYPES[extname(file)] ?? "text/plain", "Content-Security-Policy": POLICY, "Cache-Control": "no-cache" };
      response.writeHead(200, headers).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "localhost", () => resolve(server));
  });
}

const answers = async (url) => {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(5000) })).ok;
  } catch {
    return false;
  }
};

/** Starts the worker with `make dev`, unless one answers there already; returns once it answers. */
async function startEdge(port) {
  const health = `http://localhost:${port}/healthz`;
  if (await answers(health)) {
    console.log(`==> Using the worker that answers on port ${port}`);
    return;
  }
  const child = spawn("make", ["dev", `PORT=${port}`], { cwd: ROOT, stdio: "inherit" });
  child.on("close", (status) => process.exit(status ?? 0));
  for (const signal of ["SIGTERM", "SIGHUP"]) {
    process.on(signal, () => child.kill(signal));
  }
  // A terminal sends Ctrl-C to it as well.
  process.on("SIGINT", () => {});
  while (!(await answers(health))) {
    await sleep(200);
  }
}

async function main() {
  const { values } = parseArgs({ options: { port: { type: "string", default: "8788" }, "edge-port": { type: "string", default: "8787" } } });
  const folder = join(ROOT, "dist", "example");
  await bundlePage(folder);
  await startEdge(values["edge-port"]);
  await servePage(folder, Number(values.port));
  const server = values["edge-port"] === "8787" ? "" : `?server=http://localhost:${values["edge-port"]}`;
  console.log(`\n==> The example page: http://localhost:${values.port}/${server}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    await main();
  } catch (error) {
    console.error(error.code === "EADDRINUSE" ? `error: Port ${error.port} is taken. Choose another: make example EXAMPLE_PORT=${error.port + 1}` : `error: ${error.message}`);
    process.exit(1);
  }
}
