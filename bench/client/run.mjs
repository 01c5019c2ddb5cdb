//! Measures how long a client takes until a module and all that it imports are verified, in Chromium and in Node, beside a walk like
//! NodeTool's; writes the tables of bench/README.md. Needs what `make worker`, `cargo build -p packferry` and, in client/,
//! `npm ci --ignore-scripts && npm run build:test` build, and a Chromium.
//!
//!     node bench/client/run.mjs [--rounds 5] [--dry]

import { cpSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";

import { CLIENT, findBrowser, launch, requireClient } from "../../tests/client/browser.mjs";
import { startEdge } from "../../tests/support/edge.mjs";
import { ROOT, scratch } from "../../tests/support/project.mjs";
import { build, publish, writePack } from "../../tests/support/release.mjs";
import { openLine } from "./line.mjs";

const { values: options } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, dry: { type: "boolean", default: false } },
});

const FILES = [1, 10, 100];
const LATENCIES = [0, 50, 150];
const KINDS = ["walk", "packferry"];
/** What is measured, in this order, with one client: nothing is there; the same client again; after its page or process began anew. */
const STATES = ["cold", "warm", "reload"];
/** Characters of a file, about. */
const FILE_SIZE = 1500;

const specifierOf = (files) => `@bench/files-${files}`;

/** Writes a pack whose one module reaches `count` files, each of which imports up to two. */
function writeGraph(folder, count) {
  const filler = `// ${"x".repeat(FILE_SIZE)}\n`;
  const files = {};
  for (let at = 0; at < count; at++) {
    const children = [2 * at + 1, 2 * at + 2].filter((child) => child < count);
    const imports = children.map((child) => `import { sum as s${child} } from "./f${child}.js";\n`);
    files[`f${at}.js`] = `${imports.join("")}${filler}export const sum = () => 1${children.map((child) => ` + s${child}()`).join("")};\n`;
  }
  const [entry, ...internal] = Object.keys(files);
  writePack(folder, { name: specifierOf(count), version: "1.0.0", modules: { ".": entry }, internal, files });
}

/** The bundle of the page and, for Node, of the clients. */
async function bundled() {
  const { bundle } = await import(join(CLIENT, "scripts", "bundle.mjs"));
  const folder = scratch("bench-page");
  await bundle([join(ROOT, "bench", "client", "page.js"), join(ROOT, "bench", "client", "clients.js")], folder);
  cpSync(join(folder, "clients.js"), join(folder, "clients.mjs"));
  return folder;
}

/** Clients in Chromium: a profile of its own for each, in which a page may be loaded again. */
async function inChromium(browser, line, kind, specifier) {
  const profile = await browser.newContext();
  const page = await profile.newPage();
  const load = async () => {
    await page.goto(line.origin);
    await page.waitForFunction(() => globalThis.bench !== undefined);
    await page.evaluate(([client, module]) => globalThis.bench.open(client, module), [kind, specifier]);
  };
  await load();
  return { prefetch: () => page.evaluate(() => globalThis.bench.prefetch()), reload: load, close: () => profile.close() };
}

/** Clients in Node, in this process; a new one over the same directory stands for a process that comes later. */
async function inNode({ makeClient, timed, directoryCache, caches }, line, kind, specifier) {
  const directory = mkdtempSync(join(caches, "cache-"));
  const make = () => makeClient(kind, { origin: line.origin, specifier, cache: directoryCache(directory) });
  let client = make();
  return { prefetch: () => timed(client), reload: async () => void (client = make()), close: async () => undefined };
}

/** One client through all states; gives what each cost. */
async function round(open, line, kind, files) {
  const client = await open(line, kind, specifierOf(files));
  const costs = {};
  for (const state of STATES) {
    if (state === "reload") {
      await client.reload();
    }
    line.taken();
    const { milliseconds, files: found } = await client.prefetch();
    if (found !== files) {
      throw new Error(`${kind} found ${found} of ${files} files`);
    }
    costs[state] = { milliseconds, ...line.taken() };
  }
  await client.close();
  return costs;
}

/** All rounds of one runtime: rows of {files, latency, walk, packferry}, the clients taking turns. */
async function measure(open, line) {
  const rows = [];
  for (const latency of LATENCIES) {
    for (const files of FILES) {
      const costs = { walk: [], packferry: [] };
      line.latency = latency;
      // The first round of each is not counted: it warms the edge.
      for (let at = 0; at <= Number(options.rounds); at++) {
        for (const kind of KINDS) {
          costs[kind].push(await round(open, line, kind, files));
        }
      }
      rows.push({ files, latency, walk: medians(costs.walk.slice(1)), packferry: medians(costs.packferry.slice(1)) });
      process.stderr.write(".");
    }
  }
  process.stderr.write("\n");
  return rows;
}

/** Per state the medians of time, requests and bytes. */
function medians(rounds) {
  const middle = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];
  const of = (state, what) => middle(rounds.map((costs) => costs[state][what]));
  return Object.fromEntries(STATES.map((state) => [state, { milliseconds: of(state, "milliseconds"), requests: of(state, "requests"), bytes: of(state, "bytes") }]));
}

const time = (milliseconds) => (milliseconds < 10 ? milliseconds.toFixed(1) : String(Math.round(milliseconds)));
const kilobytes = (bytes) => (bytes === 0 ? "0" : (bytes / 1024).toFixed(1));
const beside = (value, { walk, packferry }) => `${value(walk)} / ${value(packferry)}`;

function table(name, rows) {
  const line = ({ files, latency, ...clients }) => {
    const ratio = clients.walk.cold.milliseconds / clients.packferry.cold.milliseconds;
    const cells = [
      `${files}`,
      `${latency} ms`,
      beside((client) => time(client.cold.milliseconds), clients),
      `**${ratio >= 10 ? Math.round(ratio) : ratio.toFixed(1)}x**`,
      beside((client) => String(client.cold.requests), clients),
      beside((client) => kilobytes(client.cold.bytes), clients),
      beside((client) => `${time(client.warm.milliseconds)} (${client.warm.requests})`, clients),
      beside((client) => `${time(client.reload.milliseconds)} (${client.reload.requests})`, clients),
    ];
    return `| ${cells.join(" | ")} |`;
  };
  const heads = ["files", "latency", "cold, ms", "faster", "requests", "KB", "warm, ms (requests)", "began anew, ms (requests)"];
  return [`| ${name}: ${heads[0]} | ${heads.slice(1).join(" | ")} |`, `|${"---|".repeat(heads.length)}`, ...rows.map(line)].join("\n");
}

function writeTables(text) {
  const file = join(ROOT, "bench", "README.md");
  const [begin, end] = ["<!-- client: written by bench/client/run.mjs -->", "<!-- client: end -->"];
  const page = readFileSync(file, "utf8");
  writeFileSync(file, `${page.slice(0, page.indexOf(begin) + begin.length)}\n${text}\n${page.slice(page.indexOf(end))}`);
}

async function main() {
  requireClient();
  const folder = scratch("bench-client");
  FILES.forEach((count) => writeGraph(join(folder, "packs"), count));
  await publish(await build([join(folder, "packs")], join(folder, "release")), join(folder, "state"));
  // As it is deployed: the channel is read again every half minute.
  const edge = await startEdge({ state: join(folder, "state"), vars: { POINTER_CACHE_SECONDS: "30" } });
  const pages = await bundled();
  const line = await openLine(edge.url, pages);
  const browser = await launch(findBrowser());
  const clients = await import(join(pages, "clients.mjs"));
  const { directoryCache } = await import(join(CLIENT, "dist", "node", "index.js"));
  const version = `Chromium ${browser.version().split(".")[0]}`;
  const chromium = await measure((...client) => inChromium(browser, ...client), line);
  const node = await measure((...client) => inNode({ ...clients, directoryCache, caches: folder }, ...client), line);
  await browser.close();
  await line.close();
  await edge.close();
  const text = [
    `Medians of ${options.rounds} rounds in which the clients take turns; ${availableParallelism()} cores.`,
    table(version, chromium),
    table(`Node ${process.versions.node.split(".")[0]}`, node),
  ].join("\n\n");
  console.log(text);
  if (!options.dry) {
    writeTables(text);
  }
}

await main();
