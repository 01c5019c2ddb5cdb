//! Measures the edge in workerd beside a minimal JavaScript worker, kv-asset-handler, Cloudflare's asset-worker and Fastify, and
//! writes the tables of bench/README.md. Needs what `make worker` and `cargo build -p packferry` build, `npm ci` in this folder, and wrk.
//!
//!     node bench/edge/run.mjs [--rounds 15] [--seconds 1] [--dry]

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

import { HERE, PATHS, ROOT, get, makeFolder, prepareRelease, startOurs, writeTable, writeValues } from "./ours.mjs";
import { startNode, startWorkerd } from "./servers.mjs";

const ESBUILD = join(ROOT, "node_modules", ".bin", "esbuild");
const PORT = 9100;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "15" },
    seconds: { type: "string", default: "1" },
    dry: { type: "boolean", default: false },
  },
});
const ROUNDS = Number(options.rounds);

/** Where asset-worker has them: it would redirect to its own spelling of the paths above. */
const ASSETS = { [PATHS.eight]: "/eight.js", [PATHS.mega]: "/mega.wasm" };
/** What is asked for, and of whom beside us and the base. */
const CASES = [
  { name: "8 KB module", path: PATHS.eight, others: ["kv-asset-handler", "asset-worker", "fastify"] },
  { name: "304", path: PATHS.eight, conditional: true, others: ["fastify"] },
  { name: "404", path: PATHS.absent, others: ["kv-asset-handler", "asset-worker", "fastify"] },
  { name: "1 MB WASM", path: PATHS.mega, others: ["kv-asset-handler", "asset-worker", "fastify"] },
  { name: "closure of 100 files", path: PATHS.closure, others: ["fastify"] },
];

const folder = makeFolder();

const release = prepareRelease(folder);
const answers = await recordAnswers();
prepareOthers();
const measured = await measureAll();
const caches = await measureCaches();
const cold = await measureColdStarts();
report(measured, caches, cold);
process.exit(0);

/** What our worker answers to each path: the others send the same. */
async function recordAnswers() {
  const ours = await startOurs({ folder, port: PORT });
  const recorded = {};
  for (const path of Object.values(PATHS)) {
    // The second answer is the one from memory.
    await get(ours.url(path));
    const { status, headers, body } = await get(ours.url(path));
    const lasting = Object.entries(headers).filter(([name]) => !["transfer-encoding", "connection", "date"].includes(name));
    recorded[path] = { status, headers: lasting, body: body.toString("base64") };
  }
  await ours.stop();
  writeFileSync(join(folder, "answers.json"), JSON.stringify(recorded));
  return recorded;
}

/** The others find the same bytes in the same KV: kv-asset-handler under the last part of the path, asset-worker under a hash. */
function prepareOthers() {
  const key = (path) => `blob/${new Map(answers[path].headers).get("x-content-sha256")}`;
  const cloudflares = prepareAssetWorker([PATHS.eight, PATHS.mega].map((path) => [path, release[key(path)]]));
  const name = (path) => decodeURIComponent(path.slice(1));
  const assets = { [name(PATHS.eight)]: key(PATHS.eight), [name(PATHS.mega)]: key(PATHS.mega) };
  writeFileSync(join(folder, "assets.json"), JSON.stringify(assets));
  const bundle = ["--bundle", "--format=esm", "--external:assets.json", "--log-level=warning"];
  const source = join(HERE, "workers", "asset-handler.js");
  execFileSync(ESBUILD, [...bundle, source, `--outfile=${join(folder, "asset-handler.js")}`, "--allow-overwrite"], {
    cwd: HERE,
    stdio: "inherit",
  });
  writeValues(folder, { ...release, ...cloudflares, first: release[key(PATHS.eight)] });
}

/** The files of Cloudflare's asset-worker, which Miniflare brings: its manifest of hashes, and the values that it names. */
function prepareAssetWorker(files) {
  const miniflare = createRequire(join(ROOT, "package.json")).resolve("miniflare");
  cpSync(join(dirname(miniflare), "workers", "assets", "assets.worker.js"), join(folder, "asset-worker.js"));
  const hash = (text) => createHash("sha256").update(text).digest().subarray(0, 16);
  const rows = files.map(([path, value]) => ({ path: hash(ASSETS[path]), content: hash(value), value }));
  rows.sort((a, b) => Buffer.compare(a.path, b.path));
  // A header of 20 bytes; then rows of 16 for the path, 16 for the content, and 8 that are reserved.
  const manifest = Buffer.concat([Buffer.alloc(20), ...rows.flatMap(({ path, content }) => [path, content, Buffer.alloc(8)])]);
  writeFileSync(join(folder, "manifest.bin"), manifest);
  return Object.fromEntries(rows.map(({ content, value }) => [content.toString("hex"), value]));
}

function startAssetWorker() {
  const config = JSON.stringify({ html_handling: "none", not_found_handling: "none" });
  return startWorkerd({
    folder,
    name: "asset-worker",
    port: PORT + 4,
    modules: ['(name = "asset-worker.js", esModule = embed "asset-worker.js")'],
    namespace: "ASSETS_KV_NAMESPACE",
    bindings: ['(name = "ASSETS_MANIFEST", data = embed "manifest.bin")', `(name = "CONFIG", json = ${JSON.stringify(config)})`],
    settings: ['compatibilityFlags = ["nodejs_compat"]'],
  });
}

function startScript(name, script, data, port) {
  const modules = [`(name = "${script}", esModule = embed "${script}")`];
  if (data !== undefined) {
    modules.push(`(name = "${data}", json = embed "${data}")`);
  }
  return startWorkerd({ folder, name, port, modules });
}

async function measureAll() {
  const servers = {
    packferry: await startOurs({ folder, port: PORT }),
    minimal: await startScript("minimal", "minimal.js", "answers.json", PORT + 1),
    "kv-asset-handler": await startScript("kv-asset-handler", "asset-handler.js", "assets.json", PORT + 2),
    "asset-worker": await startAssetWorker(),
    fastify: await startNode(join(HERE, "fastify.mjs"), [join(folder, "answers.json")], "fastify", PORT + 3),
  };
  const measured = [];
  for (const { name, path, conditional, others } of CASES) {
    const tag = conditional ? new Map(answers[path].headers).get("etag") : undefined;
    const names = ["packferry", "minimal", ...others];
    const at = (server) => (server === "asset-worker" ? (ASSETS[path] ?? path) : path);
    const runs = Object.fromEntries(names.map((server) => [server, []]));
    for (const server of names) {
      await check(servers[server], at(server), tag, conditional ? { status: 304 } : answers[path]);
      load(servers[server], at(server), tag);
    }
    // Alternating rounds, so that whatever else the machine does meets all alike.
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const server of names) {
        runs[server].push(load(servers[server], at(server), tag));
      }
    }
    const memory = [servers.packferry.memory(), servers.minimal.memory()];
    measured.push({ name, runs, memory });
    console.log(name, JSON.stringify(Object.fromEntries(names.map((server) => [server, quartile(runs, server, "rate")]))));
  }
  for (const server of Object.values(servers)) {
    await server.stop();
  }
  return measured;
}

/** One read of KV beside one hit of the Cache API, both answered by the same worker in memory. */
async function measureCaches() {
  const settings = ['cacheApiOutbound = "kv"'];
  const modules = ['(name = "read.js", esModule = embed "read.js")'];
  const server = await startWorkerd({ folder, name: "read", port: PORT, modules, settings });
  const runs = { kv: [], cache: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [from, list] of Object.entries(runs)) {
      const run = load(server, `/${from}`);
      // The first round warms up.
      if (round > 0) {
        list.push(run);
      }
    }
  }
  await server.stop();
  return { rate: ratio(runs, "cache", "rate", "kv"), cpu: ratio(runs, "cache", "cpu", "kv") };
}

async function check(server, path, tag, { status, body: whole }) {
  const { status: answered, body } = await get(server.url(path), tag ? { "If-None-Match": tag } : {});
  const expected = status === 200 ? Buffer.from(whole, "base64") : undefined;
  if (answered !== status || (expected && !body.equals(expected))) {
    throw new Error(`${server.name} answers ${path} with ${answered} and ${body.length} bytes`);
  }
}

/** One run of wrk: requests a second, CPU microseconds a request, and its percentiles. */
function load(server, path, tag) {
  const before = server.cpu();
  const headers = tag ? ["--header", `If-None-Match: ${tag}`] : [];
  const output = execFileSync(
    "wrk",
    ["-t1", "-c16", `-d${options.seconds}s`, "--latency", ...headers, server.url(path)],
    { encoding: "utf8" },
  );
  const number = (pattern) => Number(pattern.exec(output)[1]);
  const requests = number(/(\d+) requests in/);
  return { rate: number(/Requests\/sec:\s+([\d.]+)/), cpu: ((server.cpu() - before) / requests) * 1e6 };
}

/** Milliseconds from the start of the process to the first whole answer, beside the base with one read of KV. */
async function measureColdStarts() {
  const times = { packferry: [], minimal: [] };
  const once = async (start, path) => {
    const begun = performance.now();
    const server = await start();
    await get(server.url(path));
    const elapsed = performance.now() - begun;
    await server.stop();
    return elapsed;
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    times.packferry.push(await once(() => startOurs({ folder, port: PORT }), PATHS.eight));
    times.minimal.push(await once(() => startScript("minimal-kv", "minimal-kv.js", undefined, PORT + 1), "/"));
  }
  return { packferry: lowQuartile(times.packferry), minimal: lowQuartile(times.minimal) };
}

function lowQuartile(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 4)];
}

/** The better quartile of the rounds: what else the machine does makes a round worse, never better. */
function quartile(runs, server, of) {
  const values = runs[server].map((run) => run[of]);
  return of === "rate" ? -lowQuartile(values.map((value) => -value)) : lowQuartile(values);
}

function ratio(runs, server, of, to = "minimal") {
  return quartile(runs, server, of) / quartile(runs, to, of);
}

function report(measured, caches, cold) {
  const two = (number) => number.toFixed(2);
  const cell = (runs, server) =>
    runs[server] === undefined ? "" : `${two(ratio(runs, server, "rate"))} / ${two(ratio(runs, server, "cpu"))}`;
  const lines = [
    "| requests/s / CPU a request, beside the minimal worker | Packferry | kv-asset-handler | asset-worker | Fastify | minimal: requests/s, CPU | memory after it: Packferry, minimal |",
    "|---|---|---|---|---|---|---|",
  ];
  for (const { name, runs, memory } of measured) {
    const base = `${Math.round(quartile(runs, "minimal", "rate"))}, ${Math.round(quartile(runs, "minimal", "cpu"))} µs`;
    const others = ["packferry", "kv-asset-handler", "asset-worker", "fastify"].map((server) => cell(runs, server));
    const megabytes = memory.map((bytes) => `${Math.round(bytes / 1e6)} MB`).join(", ");
    lines.push(`| ${name} | ${others.join(" | ")} | ${base} | ${megabytes} |`);
  }
  const wasm = readFileSync(join(folder, "index_bg.wasm"));
  lines.push(
    "",
    "| | Packferry | minimal | |",
    "|---|---|---|---|",
    `| process start to first answer, cold | ${Math.round(cold.packferry)} ms | ${Math.round(cold.minimal)} ms, with one read of KV | ${two(cold.packferry / cold.minimal)} |`,
    `| WebAssembly | ${wasm.length} bytes, ${gzipSync(wasm, { level: 9 }).length} gzipped | | |`,
    "",
    "| | requests/s | CPU a request |",
    "|---|---|---|",
    `| a hit of the Cache API, beside a read of KV | ${two(caches.rate)} | ${two(caches.cpu)} |`,
  );
  console.log(lines.join("\n"));
  if (!options.dry) {
    writeTable("edge", lines.join("\n"));
    mkdirSync(join(HERE, "results"), { recursive: true });
    writeFileSync(join(HERE, "results", "last.json"), `${JSON.stringify({ measured, caches, cold }, null, 1)}\n`);
  }
}
