//! Ten minutes of wrk against workerd over a mix of ids, valid, unknown and hostile, while releases are published: samples are
//! verified to the byte, every answer has an expected status, and memory is written down. Needs what run.mjs needs; its figures are
//! in docs/testing.md.
//!
//!     node bench/edge/soak.mjs [--minutes 10]

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { envelope, get } from "./ours.mjs";
import { writePacks } from "./packs.mjs";
import { startWorkerd } from "./servers.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PACKFERRY = process.env.PACKFERRY ?? join(ROOT, "target", "debug", "packferry");
const PORT = 9110;
const PUBLISH_SECONDS = 15;
const VERSIONS = ["1.0.0", "2.0.0", "3.0.0"];

const { values: options } = parseArgs({ options: { minutes: { type: "string", default: "10" } } });
const SECONDS = Math.round(Number(options.minutes) * 60);

const folder = mkdtempSync(join(tmpdir(), "packferry-soak-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

const values = new Map();
const releases = VERSIONS.map(build);
const modules = releases.flatMap(({ packs }) => packs.flatMap((pack) => pack.modules));
const reads = { count: 0 };
let sequence = 0;

const kv = createServer((request, response) => {
  reads.count += 1;
  const value = values.get(decodeURIComponent(request.url.slice(1).split("?")[0]));
  response.writeHead(value === undefined ? 404 : 200).end(value);
}).listen(PORT + 1, "127.0.0.1");

publish();
for (const file of ["index.js", "index_bg.wasm"]) {
  cpSync(join(ROOT, "dist", "worker", file), join(folder, file));
}
const edge = await startWorkerd({
  folder,
  name: "packferry",
  port: PORT,
  modules: ['(name = "index.js", esModule = embed "index.js")', '(name = "index_bg.wasm", wasm = embed "index_bg.wasm")'],
  vars: { CHANNEL: "soak", POINTER_CACHE_SECONDS: "5", CACHE_BYTES: "8000000" },
  kv: `(name = "kv", external = (address = "127.0.0.1:${PORT + 1}", http = ()))`,
});

/** What is asked for, with the statuses that it may get. */
const targets = [
  ...modules.flatMap(({ specifier, graphDigest, fileId }) => [
    [`/api/sandbox-modules/${encodeURIComponent(specifier)}`, [200]],
    [`/api/sandbox-modules/${graphDigest}`, [200]],
    [`/api/sandbox-modules/${graphDigest}::${encodeURIComponent(fileId)}`, [200]],
    [`/api/sandbox-closures/${graphDigest}`, [200]],
  ]),
  ["/api/sandbox-modules?limit=2", [200]],
  ["/api/channels/soak", [200]],
  ["/healthz", [200]],
  ["/api/sandbox-modules/%zz", [400]],
  ["/api/sandbox-modules/<script>^", [404]],
  [`/api/sandbox-modules/${"a".repeat(4000)}`, [400]],
  [`/api/sandbox-modules/${"%61".repeat(200)}`, [404, 400]],
  ["/api/sandbox-modules/@bench%2Fabsent", [404]],
  ["/nowhere", [404]],
];
/** Ids that nobody has, new ones all the time. */
const invented = () => [`/api/sandbox-modules/${createHash("sha256").update(String(Math.random())).digest("hex")}`, [404]];

const load = startLoad();
const counts = { samples: 0, published: 0 };
const memory = [];
const begun = Date.now();
let nextPublish = begun + PUBLISH_SECONDS * 1000;
let nextReading = begun;
while (Date.now() - begun < SECONDS * 1000) {
  await sample(Math.random() < 0.2 ? invented() : targets[Math.floor(Math.random() * targets.length)]);
  if (Date.now() >= nextPublish) {
    publish();
    counts.published += 1;
    nextPublish += PUBLISH_SECONDS * 1000;
  }
  if (Date.now() >= nextReading) {
    memory.push(Math.round(edge.memory() / 1e6));
    nextReading += 10_000;
  }
  await pause(5);
}
const output = await load;
report(output);
process.exit(0);

/** Builds a release in which every pack has this version, and stores its objects. */
function build(version) {
  const packs = join(folder, `packs-${version}`);
  writePacks(packs, version);
  const out = join(folder, `release-${version}`);
  execFileSync(PACKFERRY, ["build", packs, "--out", out], { stdio: ["ignore", "ignore", "inherit"] });
  for (const kind of readdirSync(join(out, "objects"))) {
    for (const digest of readdirSync(join(out, "objects", kind))) {
      values.set(`${kind}/${digest}`, readFileSync(join(out, "objects", kind, digest)));
    }
  }
  const root = readFileSync(join(out, "manifest.json"));
  const manifest = createHash("sha256").update(root).digest("hex");
  values.set(`manifest/${manifest}`, root);
  return { manifest, packs: JSON.parse(root).packs };
}

/** Points the channel to the next release. */
function publish() {
  sequence += 1;
  const { manifest } = releases[sequence % releases.length];
  values.set("channel/soak", Buffer.from(envelope("soak", sequence, manifest)));
}

/** wrk over all targets, each connection in its own random order. */
async function startLoad() {
  const paths = [...targets.map(([path]) => path), ...Array.from({ length: 50 }, () => invented()[0])];
  const script = join(folder, "mix.lua");
  const list = paths.map((path) => `  ${JSON.stringify(path)},`).join("\n");
  writeFileSync(
    script,
    `local paths = {\n${list}\n}
function init() math.randomseed(7) end
function request() return wrk.format("GET", paths[math.random(#paths)]) end
statuses = {}
function response(status) statuses[status] = (statuses[status] or 0) + 1 end
local loader
function setup(thread) loader = thread end
function done() for status, count in pairs(loader:get("statuses")) do print("status " .. status .. " " .. count) end end
`,
  );
  const child = spawn("wrk", ["-t1", "-c16", `-d${SECONDS}s`, "--latency", "-s", script, edge.url("/")]);
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk) => (text += chunk));
  await new Promise((resolve) => child.once("close", resolve));
  return text;
}

/** Asks once, and checks status and bytes. */
async function sample([path, statuses]) {
  const { status, headers, body } = await get(edge.url(path));
  counts.samples += 1;
  if (!statuses.includes(status)) {
    throw new Error(`${path}: ${status} ${body}`);
  }
  const announced = headers["x-content-sha256"];
  if (announced !== undefined && createHash("sha256").update(body).digest("hex") !== announced) {
    throw new Error(`${path}: a body that is not what its header says`);
  }
  const stored = values.get(`blob/${announced}`) ?? values.get(`closure/${headers["x-content-digest"]}`);
  if (path.includes("/sandbox-modules/") && status === 200 && !stored?.equals(body)) {
    throw new Error(`${path}: a body that no release has`);
  }
}

function report(output) {
  const number = (pattern) => pattern.exec(output)?.[1] ?? "none";
  const third = Math.ceil(memory.length / 3);
  const mean = (list) => Math.round(list.reduce((sum, value) => sum + value, 0) / list.length);
  const statuses = Object.fromEntries([...output.matchAll(/^status (\d+) (\d+)$/gm)].map(([, status, count]) => [status, Number(count)]));
  const unexpected = Object.keys(statuses).filter((status) => !["200", "400", "404"].includes(status));
  if (unexpected.length > 0) {
    throw new Error(`statuses that nothing is answered with: ${JSON.stringify(statuses)}`);
  }
  console.log(
    [
      `statuses: ${JSON.stringify(statuses)}`,
      `seconds ${SECONDS}, requests ${number(/(\d+) requests in/)}, a second ${number(/Requests\/sec:\s+([\d.]+)/)}`,
      `socket errors: ${number(/Socket errors: (.*)/)}`,
      `p50 ${number(/^\s+50%\s+(\S+)/m)}, p99 ${number(/^\s+99%\s+(\S+)/m)}`,
      `samples verified ${counts.samples}, releases published ${counts.published}, reads of KV ${reads.count}`,
      `memory of workerd in MB, first, middle and last third: ${[0, 1, 2].map((n) => mean(memory.slice(n * third, (n + 1) * third))).join(", ")}; most ${Math.max(...memory)}`,
    ].join("\n"),
  );
}
