//! Measures the build over a generated corpus beside acorn in Node, which parses and hashes the same files, and beside reading and
//! hashing alone; writes the table of bench/README.md. Needs `cargo build --release -p packferry` and `npm ci`.
//!
//!     node bench/build/run.mjs [--packs 1000] [--dry]

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { parse, version as acornVersion } from "acorn";

import { writePacks } from "./packs.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PACKFERRY = process.env.PACKFERRY ?? join(ROOT, "target", "release", "packferry");

const { values: options } = parseArgs({
  options: { packs: { type: "string", default: "1000" }, dry: { type: "boolean", default: false } },
});

/** Seconds that `work` takes. */
function seconds(work) {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e9;
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

function hashOnly(files) {
  const processes = String(availableParallelism());
  execFileSync("xargs", ["-0", "-P", processes, "-n", "200", "sha256sum"], {
    input: files.join("\0"),
    stdio: ["pipe", "ignore", "inherit"],
    maxBuffer: 1 << 26,
  });
}

function packferry(...words) {
  execFileSync(PACKFERRY, words, { stdio: ["ignore", "ignore", "pipe"], maxBuffer: 1 << 26 });
}

function main() {
  const directory = mkdtempSync(join(tmpdir(), "packferry-bench-"));
  try {
    const packs = Number(options.packs);
    const [root, out] = [join(directory, "node_modules"), join(directory, "release")];
    writePacks(root, packs);
    const files = scripts(root);
    const megabytes = files.reduce((sum, file) => sum + statSync(file).size, 0) / 1e6;
    // Once over everything, so that every column reads from the page cache.
    hashOnly(files);
    const rows = [
      [`acorn ${acornVersion} in Node: read, hash, parse`, seconds(() => acorn(files))],
      ["sha256sum: read and hash", seconds(() => hashOnly(files))],
      ["packferry check: read, hash, inspect", seconds(() => packferry("check", root, "--json"))],
      ["packferry build: and write the release", seconds(() => packferry("build", root, "--out", out))],
      ["packferry build, again: nothing changed", seconds(() => packferry("build", root, "--out", out))],
    ];
    const [base] = rows[0].slice(1);
    const line = ([name, time]) =>
      `| ${name} | ${time.toFixed(2)} | ${Math.round(packs / time)} | ${(megabytes / time).toFixed(1)} | ${(base / time).toFixed(1)} |`;
    const table = [
      `${packs} packs, ${files.length} files, ${megabytes.toFixed(0)} MB, ${availableParallelism()} cores.`,
      "",
      "| | seconds | packs/s | MB/s | beside acorn |",
      "|---|---|---|---|---|",
      ...rows.map(line),
    ].join("\n");
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

main();
