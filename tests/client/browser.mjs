//! A real Chromium on pages of this repository: found or installed, started, and given a page from an origin of its own.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join } from "node:path";
import process from "node:process";

import { ROOT, scratch } from "../support/project.mjs";

/** Where the client package and its tools lie. */
export const CLIENT = join(ROOT, "client");

const CANDIDATES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm", ".html": "text/html; charset=utf-8" };
/** As strict as a policy can be for a page that runs the guest. */
const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src *";

/** Fails with the command to run where the client is not installed or not built. */
export function requireClient() {
  for (const file of ["node_modules/playwright-core", "dist/index.js", "build/test/guest-fixture.js"]) {
    if (!existsSync(join(CLIENT, file))) {
      throw new Error(`client/${file} is missing. Run: cd client && npm ci --ignore-scripts && npm run build:test`);
    }
  }
}

/** Path of a Chromium: `CHROMIUM`, one that is installed, or Debian's, installed here where that can be done. */
export function findBrowser() {
  const candidates = process.env.CHROMIUM ? [process.env.CHROMIUM] : CANDIDATES;
  const found = () => candidates.find((path) => existsSync(path));
  if (!found() && process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    try {
      const install = ["install", "--yes", "--no-install-recommends", "chromium"];
      execFileSync("apt-get", install, { timeout: 300_000, stdio: "ignore" });
    } catch {
      // Whoever asks is told that there is none.
    }
  }
  return found();
}

/** What a test says that cannot have a browser. */
export const NO_BROWSER =
  "SKIPPED, NOT PASSED: there is no Chromium. Install Debian's package chromium, or name one in CHROMIUM, and run this again.";

/** Starts the browser; `args` are flags beside the usual ones. */
export function launch(executablePath, args = []) {
  const { chromium } = createRequire(join(CLIENT, "package.json"))("playwright-core");
  return chromium.launch({ executablePath, args: [...FLAGS, ...args] });
}

/** Bundles pages over the client into a folder of their own. */
export async function bundled(...entryPoints) {
  const { bundle } = await import(join(CLIENT, "scripts", "bundle.mjs"));
  const folder = scratch("pages");
  await bundle(entryPoints, folder);
  return folder;
}

/** Serves the files of `folder` and, as `/`, a page that loads `script`; the same as `/sandboxed`, as a document of no origin. */
export async function servePages(folder, script) {
  const page = `<!doctype html><title>test</title><script type="module" src="${script}"></script>`;
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    const type = TYPES[extname(pathname)] ?? TYPES[".html"];
    try {
      const sandboxed = pathname === "/sandboxed";
      const body = pathname === "/" || sandboxed ? page : readFileSync(join(folder, pathname));
      const policy = sandboxed ? `${POLICY}; sandbox allow-scripts` : POLICY;
      response.writeHead(200, { "Content-Type": type, "Content-Security-Policy": policy, "Access-Control-Allow-Origin": "*" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => stopped(server) };
}

/** Ends a server with its connections. */
export function stopped(server) {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
}
