//! The worker as it is measured: the release that it serves, how it is started, how it is asked, and where tables go.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { get as httpGet } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

import { writePacks } from "./packs.mjs";
import { startWorkerd } from "./servers.mjs";

export const HERE = fileURLToPath(new URL(".", import.meta.url));
export const ROOT = join(HERE, "..", "..");
const PACKFERRY = process.env.PACKFERRY ?? join(ROOT, "target", "debug", "packferry");

/** What is asked for. */
export const PATHS = {
  eight: "/api/sandbox-modules/%40bench%2Feight",
  mega: "/api/sandbox-modules/%40bench%2Fmega",
  closure: "/api/sandbox-closures/%40bench%2Fhundred",
  absent: "/api/sandbox-modules/absent",
};

/** A new folder for what workerd embeds, gone when the process ends. */
export function makeFolder() {
  const folder = mkdtempSync(join(tmpdir(), "packferry-bench-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Builds the packs and lays everything that workerd embeds into `folder`. Gives what is in KV, in base64 by key. */
export function prepareRelease(folder) {
  writePacks(join(folder, "packs"));
  const build = ["build", join(folder, "packs"), "--out", join(folder, "release")];
  execFileSync(PACKFERRY, build, { stdio: ["ignore", "ignore", "inherit"] });
  const values = {};
  const objects = join(folder, "release", "objects");
  for (const kind of readdirSync(objects)) {
    for (const digest of readdirSync(join(objects, kind))) {
      values[`${kind}/${digest}`] = readFileSync(join(objects, kind, digest)).toString("base64");
    }
  }
  const { manifest } = JSON.parse(readFileSync(join(folder, "release", "report.json"), "utf8"));
  values[`manifest/${manifest}`] = readFileSync(join(folder, "release", "manifest.json")).toString("base64");
  values["channel/bench"] = Buffer.from(envelope("bench", 1, manifest)).toString("base64");
  for (const file of ["index.js", "index_bg.wasm"]) {
    cpSync(join(ROOT, "dist", "worker", file), join(folder, file));
  }
  for (const file of readdirSync(join(HERE, "workers"))) {
    cpSync(join(HERE, "workers", file), join(folder, file));
  }
  writeValues(folder, values);
  return values;
}

/** An unsigned envelope. */
export function envelope(channel, sequence, manifest) {
  const pointer = { version: 1, channel, sequence, manifest, publishedAt: "2026-01-01T00:00:00Z" };
  return JSON.stringify({
    payloadType: "application/vnd.packferry.channel+json",
    payload: Buffer.from(JSON.stringify(pointer)).toString("base64"),
    signatures: [],
  });
}

/** Makes `values` what KV in memory holds. */
export function writeValues(folder, values) {
  writeFileSync(join(folder, "values.json"), JSON.stringify(values));
}

/** Starts the worker. */
export function startOurs({ folder, port, args }) {
  return startWorkerd({
    folder,
    name: "packferry",
    port,
    modules: ['(name = "index.js", esModule = embed "index.js")', '(name = "index_bg.wasm", wasm = embed "index_bg.wasm")'],
    vars: { CHANNEL: "bench", POINTER_CACHE_SECONDS: "3600" },
    args,
  });
}

/** A GET over a connection of its own: between two of them wrk runs for seconds, and a kept one would have been closed. */
export function get(url, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = httpGet(url, { headers, agent: false }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) }));
    });
    request.on("error", reject);
  });
}

/** Writes `table` into bench/README.md, between the marks of `name`. */
export function writeTable(name, table) {
  const file = join(ROOT, "bench", "README.md");
  const text = readFileSync(file, "utf8");
  const begin = text.indexOf("\n", text.indexOf(`<!-- ${name}: written by `)) + 1;
  writeFileSync(file, `${text.slice(0, begin)}${table}\n${text.slice(text.indexOf(`<!-- ${name}: end -->`))}`);
}
