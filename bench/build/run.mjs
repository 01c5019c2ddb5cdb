//! Measures the build over a generated corpus beside acorn in Node, which parses and hashes the same files, and beside reading and
//! hashing alone; the search through a folder of packages that are not packs; and a pack whose graphs are large. Writes the table of bench/README.md. Needs
//! `cargo build --release -p packferry` and `npm ci`.
//!
//!     node bench/build/run.mjs [--packs 1000] [--packages 50000] [--rounds 5] [--dry]

import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";

import { parse, version as acornVersion } from "acorn";

import { writeChain, writePackages, writePacks } from "./packs.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RELEASE = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release");
const PACKFERRY = process.env.PACKFERRY ?? join(RELEASE, "packferry");

const { values: options } = parseArgs({
  options: {
    packs: { type: "string", default: "1000" },
    packages: { type: "string", default: "50000" },
    rounds: { type: "string", default: "5" },
    dry: { type: "boolean", default: false },
  },
});

/** Seconds that `work` takes. */
async function seconds(work) {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)];
}

function scripts(root) {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" });
  return files.filter((file) => file.endsWith(".js")).map((file) => join(root, file));
}

/** What NodeTool does to a file before it looks at what it imports. */
function acorn(files) {
  for (const file of files) {
    const bytes = readFileSync(file);
    createHash("sha256").update(bytes).digest("hex");
    parse(bytes.toString("utf8"), { ecmaVersion: "latest", sourceType: "module" });
  }
}

/** Threads that read and hash, one a core. They are there before they are measured. */
class Hashers {
  workers = Array.from({ length: availableParallelism() }, () => new Worker(new URL("hash.mjs", import.meta.url)));

  /** Reads and hashes `files`, each thread its share. */
  async run(files) {
    const shares = this.workers.map((worker, at) => {
      worker.postMessage(files.filter((_, index) => index % this.workers.length === at));
      return once(worker, "message");
    });
    await Promise.all(shares);
  }

  async stop() {
    await Promise.all(this.workers.map((worker) => worker.terminate()));
  }
}

/** Runs packferry with a cache of its own; what it prints is of no interest, but a fault is. */
function packferry(cache, ...words) {
  const { status, stderr, error } = spawnSync(PACKFERRY, words, {
    env: { ...process.env, PACKFERRY_CACHE: cache },
    stdio: ["ignore", "ignore", "pipe"],
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw error ?? new Error(`packferry ${words.join(" ")} exits with ${status}: ${stderr}`);
}

/** The rows of the table: what is measured, how it is made ready, how it is run, and how often. */
function rows(directory, root, files, hashers, rounds) {
  const [out, cache] = [join(directory, "release"), join(directory, "cache")];
  const gone = (...paths) => paths.forEach((path) => rmSync(path, { recursive: true, force: true }));
  const single = Math.min(rounds, 1);
  return [
    { name: `acorn ${acornVersion} in Node: read, hash, parse`, rounds: single, run: () => acorn(files) },
    { name: "read and hash", rounds, run: () => hashers.run(files) },
    { name: "packferry check: read, hash, inspect", rounds, run: () => packferry(cache, "check", root, "--json", "--no-cache") },
    {
      name: "packferry build: and write the release",
      rounds,
      ready: () => gone(out, cache),
      run: () => packferry(cache, "build", root, "--out", out),
    },
    { name: "packferry build, again: nothing changed", rounds, run: () => packferry(cache, "build", root, "--out", out) },
    { name: "packferry check, again: nothing changed", rounds, run: () => packferry(cache, "check", root, "--json") },
  ];
}

async function corpusTable(directory) {
  const packs = Number(options.packs);
  const root = join(directory, "node_modules");
  writePacks(root, packs);
  const files = scripts(root);
  const megabytes = files.reduce((sum, file) => sum + statSync(file).size, 0) / 1e6;
  const hashers = new Hashers();
  const measured = rows(directory, root, files, hashers, Number(options.rounds));
  // Once over everything, so that every row reads from the page cache.
  await hashers.run(files);
  const times = measured.map(() => []);
  for (let round = 0; round < Number(options.rounds); round += 1) {
    for (const [at, row] of measured.entries()) {
      if (round >= row.rounds) continue;
      row.ready?.();
      times[at].push(await seconds(row.run));
    }
  }
  await hashers.stop();
  const [acornTime, hashTime] = times.map(median);
  const lines = measured.map(({ name }, at) => {
    const time = median(times[at]);
    const cells = [time.toFixed(2), Math.round(packs / time), (megabytes / time).toFixed(1), (acornTime / time).toFixed(1), (time / hashTime).toFixed(2)];
    return `| ${name} | ${cells.join(" | ")} |`;
  });
  return [
    `${packs} packs, ${files.length} files, ${megabytes.toFixed(0)} MB, ${availableParallelism()} cores; medians of ${options.rounds} rounds, one after the other in turn (acorn: one).`,
    "",
    "| | seconds | packs/s | MB/s | times acorn's speed | times as long as reading and hashing |",
    "|---|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

async function searchTable(directory) {
  const packages = Number(options.packages);
  const root = join(directory, "packages");
  writePackages(root, packages);
  // With a pack among them: a search that finds none is a fault of the command line.
  writePacks(root, 1);
  const check = () => packferry(join(directory, "cache"), "check", root, "--json");
  check();
  const times = [];
  for (let round = 0; round < Number(options.rounds); round += 1) times.push(await seconds(check));
  const time = median(times);
  return `A folder of ${packages} packages that are not packs, and one that is, is searched in ${time.toFixed(2)} seconds (${Math.round(packages / time)} packages/s).`;
}

/** Near the largest that is accepted: the graphs of a pack have at most a gibibyte together. */
const CHAIN = 1380;

async function chainTable(directory) {
  const pack = join(directory, "chain");
  writeChain(pack, CHAIN);
  const times = [];
  const check = () => packferry(join(directory, "cache"), "check", pack, "--json", "--no-cache");
  for (let round = 0; round < Number(options.rounds); round += 1) times.push(await seconds(check));
  const time = median(times);
  return `A pack of ${CHAIN} modules, each over the same chain of ${CHAIN} files, whose graphs list ${(CHAIN * CHAIN) / 1e6} million files, is checked in ${time.toFixed(2)} seconds.`;
}

async function main() {
  const directory = mkdtempSync(join(tmpdir(), "packferry-bench-"));
  try {
    const table = [await corpusTable(directory), await searchTable(directory), await chainTable(directory)].join("\n\n");
    console.log(table);
    if (!options.dry) writeTable(table);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function writeTable(table) {
  const file = join(ROOT, "bench", "README.md");
  const [begin, end] = ["<!-- build: written by bench/build/run.mjs -->", "<!-- build: end -->"];
  const text = readFileSync(file, "utf8");
  const before = text.slice(0, text.indexOf(begin) + begin.length);
  writeFileSync(file, `${before}\n${table}\n${text.slice(text.indexOf(end))}`);
}

await main();
