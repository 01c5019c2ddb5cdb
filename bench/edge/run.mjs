//! Measures the edge in workerd beside a minimal JavaScript worker, kv-asset-handler and Fastify, and writes the table of
//! bench/README.md. Needs what `make worker` and `cargo build -p packferry` build, `npm ci` in this folder, and wrk.
//!
//!     node bench/edge/run.mjs [--rounds 7] [--seconds 2] [--dry]

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { get as httpGet } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";

import { writePacks } from "./packs.mjs";
import { startNode, startWorkerd } from "./servers.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "..", "..");
const WORKERD = join(ROOT, "node_modules", "workerd", "bin", "workerd");
const ESBUILD = join(ROOT, "node_modules", ".bin", "esbuild");
const PACKFERRY = process.env.PACKFERRY ?? join(ROOT, "target", "debug", "packferry");
const PORT = 9100;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "2" },
    dry: { type: "boolean", default: false },
  },
});
const ROUNDS = Number(options.rounds);

const PATHS = {
  eight: "/api/sandbox-modules/%40bench%2Feight",
  mega: "/api/sandbox-modules/%40bench%2Fmega",
  closure: "/api/sandbox-closures/%40bench%2Fhundred",
  absent: "/api/sandbox-modules/absent",
};
/** What is asked for, and of whom beside us and the base. */
const CASES = [
  { name: "8 KB module", path: PATHS.eight, others: ["kv-asset-handler", "fastify"] },
  { name: "304", path: PATHS.eight, conditional: true, others: ["fastify"] },
  { name: "404", path: PATHS.absent, others: ["kv-asset-handler", "fastify"] },
  { name: "1 MB WASM", path: PATHS.mega, others: ["kv-asset-handler", "fastify"] },
  { name: "closure of 100 files", path: PATHS.closure, others: ["fastify"] },
];

const folder = mkdtempSync(join(tmpdir(), "packferry-bench-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

const release = prepareRelease();
const answers = await recordAnswers();
prepareOthers();
const rows = await measureAll();
const cold = await measureColdStarts();
report(rows, cold);
process.exit(0);

/** Builds the packs and lays everything that workerd embeds into one folder. */
function prepareRelease() {
  writePacks(join(folder, "packs"));
  execFileSync(PACKFERRY, ["build", join(folder, "packs"), "--out", join(folder, "release")], { stdio: "inherit" });
  const values = {};
  const objects = join(folder, "release", "objects");
  for (const kind of readdirSync(objects)) {
    for (const digest of readdirSync(join(objects, kind))) {
      values[`${kind}/${digest}`] = readFileSync(join(objects, kind, digest)).toString("base64");
    }
  }
  const { manifest } = JSON.parse(readFileSync(join(folder, "release", "report.json"), "utf8"));
  values[`manifest/${manifest}`] = readFileSync(join(folder, "release", "manifest.json")).toString("base64");
  values["channel/bench"] = Buffer.from(envelope(manifest)).toString("base64");
  for (const file of ["index.js", "index_bg.wasm"]) {
    cpSync(join(ROOT, "dist", "worker", file), join(folder, file));
  }
  for (const file of readdirSync(join(HERE, "workers"))) {
    cpSync(join(HERE, "workers", file), join(folder, file));
  }
  writeValues(values);
  return values;
}

function envelope(manifest) {
  const pointer = { version: 1, channel: "bench", sequence: 1, manifest, publishedAt: "2026-01-01T00:00:00Z" };
  return JSON.stringify({
    payloadType: "application/vnd.packferry.channel+json",
    payload: Buffer.from(JSON.stringify(pointer)).toString("base64"),
    signatures: [],
  });
}

function writeValues(values) {
  writeFileSync(join(folder, "values.json"), JSON.stringify(values));
}

/** What our worker answers to each path: the others send the same. */
async function recordAnswers() {
  const ours = await startOurs();
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

/** kv-asset-handler finds the same bytes in the same KV, under the last part of the path. */
function prepareOthers() {
  const key = (path) => `blob/${new Map(answers[path].headers).get("x-content-sha256")}`;
  const name = (path) => decodeURIComponent(path.slice(1));
  const assets = { [name(PATHS.eight)]: key(PATHS.eight), [name(PATHS.mega)]: key(PATHS.mega) };
  writeFileSync(join(folder, "assets.json"), JSON.stringify(assets));
  const bundle = ["--bundle", "--format=esm", "--external:assets.json", "--log-level=warning"];
  const source = join(HERE, "workers", "asset-handler.js");
  execFileSync(ESBUILD, [...bundle, source, `--outfile=${join(folder, "asset-handler.js")}`, "--allow-overwrite"], {
    cwd: HERE,
    stdio: "inherit",
  });
  writeValues({ ...release, first: release[key(PATHS.eight)] });
}

function startOurs(vars = {}) {
  return startWorkerd({
    workerd: WORKERD,
    folder,
    name: "packferry",
    port: PORT,
    modules: ['(name = "index.js", esModule = embed "index.js")', '(name = "index_bg.wasm", wasm = embed "index_bg.wasm")'],
    vars: { CHANNEL: "bench", POINTER_CACHE_SECONDS: "3600", ...vars },
  });
}

function startScript(name, script, data, port) {
  const modules = [`(name = "${script}", esModule = embed "${script}")`];
  if (data !== undefined) {
    modules.push(`(name = "${data}", json = embed "${data}")`);
  }
  return startWorkerd({ workerd: WORKERD, folder, name, port, modules });
}

async function measureAll() {
  const servers = {
    packferry: await startOurs(),
    minimal: await startScript("minimal", "minimal.js", "answers.json", PORT + 1),
    "kv-asset-handler": await startScript("kv-asset-handler", "asset-handler.js", "assets.json", PORT + 2),
    fastify: await startNode(join(HERE, "fastify.mjs"), [join(folder, "answers.json")], "fastify", PORT + 3),
  };
  const measured = [];
  for (const { name, path, conditional, others } of CASES) {
    const tag = conditional ? new Map(answers[path].headers).get("etag") : undefined;
    const names = ["packferry", "minimal", ...others];
    const runs = Object.fromEntries(names.map((server) => [server, []]));
    for (const server of names) {
      await check(servers[server], path, tag, conditional ? 304 : answers[path].status);
      load(servers[server], path, tag);
    }
    // Alternating rounds, so that whatever else the machine does meets all alike.
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const server of names) {
        runs[server].push(load(servers[server], path, tag));
      }
    }
    measured.push({ name, runs });
    console.log(name, JSON.stringify(Object.fromEntries(names.map((server) => [server, median(runs[server].map((run) => run.rate))]))));
  }
  const memory = servers.packferry.memory();
  for (const server of Object.values(servers)) {
    await server.stop();
  }
  return { measured, memory };
}

async function check(server, path, tag, status) {
  const { status: answered, body } = await get(server.url(path), tag ? { "If-None-Match": tag } : {});
  const expected = status === 200 ? Buffer.from(answers[path].body, "base64") : undefined;
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
    times.packferry.push(await once(() => startOurs(), PATHS.eight));
    times.minimal.push(await once(() => startScript("minimal-kv", "minimal-kv.js", undefined, PORT + 1), "/"));
  }
  return { packferry: median(times.packferry), minimal: median(times.minimal) };
}

/** A GET over a connection of its own: between two of them wrk runs for seconds, and a kept one would have been closed. */
function get(url, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = httpGet(url, { headers, agent: false }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }));
    });
    request.on("error", reject);
  });
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

/** Median over the rounds of the ratio to the base in the same round. */
function ratio(runs, server, of, to = "minimal") {
  return median(runs[server].map((run, round) => run[of] / runs[to][round][of]));
}

function report({ measured, memory }, cold) {
  const two = (number) => number.toFixed(2);
  const cell = (runs, server) =>
    runs[server] === undefined ? "" : `${two(ratio(runs, server, "rate"))} / ${two(ratio(runs, server, "cpu"))}`;
  const lines = [
    "| requests/s / CPU a request, beside the minimal worker | Packferry | kv-asset-handler | Fastify | minimal: requests/s, CPU |",
    "|---|---|---|---|---|",
  ];
  for (const { name, runs } of measured) {
    const base = `${Math.round(median(runs.minimal.map((run) => run.rate)))}, ${Math.round(median(runs.minimal.map((run) => run.cpu)))} µs`;
    lines.push(`| ${name} | ${cell(runs, "packferry")} | ${cell(runs, "kv-asset-handler")} | ${cell(runs, "fastify")} | ${base} |`);
  }
  const wasm = readFileSync(join(folder, "index_bg.wasm"));
  lines.push(
    "",
    "| | Packferry | minimal | |",
    "|---|---|---|---|",
    `| process start to first answer, cold | ${Math.round(cold.packferry)} ms | ${Math.round(cold.minimal)} ms, with one read of KV | ${two(cold.packferry / cold.minimal)} |`,
    `| WebAssembly | ${wasm.length} bytes, ${gzipSync(wasm, { level: 9 }).length} gzipped | | |`,
    `| memory of workerd after all of it | ${Math.round(memory / 1e6)} MB | | |`,
  );
  console.log(lines.join("\n"));
  if (!options.dry) {
    writeTable(lines.join("\n"));
    mkdirSync(join(HERE, "results"), { recursive: true });
    writeFileSync(join(HERE, "results", "last.json"), `${JSON.stringify({ measured, cold, memory }, null, 1)}\n`);
  }
}

function writeTable(table) {
  const file = join(ROOT, "bench", "README.md");
  const [begin, end] = ["<!-- edge: written by bench/edge/run.mjs -->", "<!-- edge: end -->"];
  const text = readFileSync(file, "utf8");
  const before = text.slice(0, text.indexOf(begin) + begin.length);
  writeFileSync(file, `${before}\n${table}\n${text.slice(text.indexOf(end))}`);
}
