//! Writes docs/libraries.md: tries every library of docs/libraries.json as the only module of a pack, and records what
//! `packferry build` says about it. Installs them in a folder of their own; needs the network, and is no part of `make test`.

import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

import { ROOT } from "./state-dir.mjs";

const PACKFERRY = process.env.PACKFERRY ?? join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "debug", "packferry");
const PACKS = join(ROOT, "packs");

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));

/** The name of the pack that tries a library. */
const packName = (library) => `@try/${library.replace("@", "").replaceAll(/[/.]/g, "-")}`;

/** Installs the libraries in `folder`, and writes one pack for each. */
function writePacks(folder, libraries) {
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, dependencies: libraries }));
  cpSync(join(PACKS, ".npmrc"), join(folder, ".npmrc"));
  execFileSync("npm", ["install", "--ignore-scripts", "--no-package-lock"], { cwd: folder, stdio: "inherit" });
  for (const [library, version] of Object.entries(libraries)) {
    const root = join(folder, "packs", packName(library));
    const manifest = {
      name: packName(library),
      version: "0.0.0",
      dependencies: { [library]: version },
      nodetool: { apiVersion: 1, sandboxModules: [{ name: ".", kind: "js", npm: library }] },
    };
    mkdirSync(root, { recursive: true });
    writeFileSync(join(root, "package.json"), JSON.stringify(manifest));
    writeFileSync(join(root, "SKILL.md"), "---\nname: trial\ndescription: Tries a library.\n---\n\nTries a library.\n");
  }
}

/** What a build says about the packs in `folder`. */
function diagnostics(folder) {
  const args = ["build", "packs", "--out", "release", "--json"];
  const built = spawnSync(PACKFERRY, args, { cwd: folder, encoding: "utf8", timeout: 300_000, maxBuffer: 64 << 20 });
  if (built.status !== 0) {
    throw new Error(`packferry build ended with ${built.status ?? built.signal}\n${built.stderr}`);
  }
  return JSON.parse(built.stdout).diagnostics;
}

/** The starter pack of each library that has one. */
function starterPacks() {
  const packs = new Map();
  for (const { name } of readdirSync(PACKS, { withFileTypes: true }).filter((entry) => entry.isDirectory())) {
    if (name !== "node_modules") {
      for (const library of Object.keys(readJson(join(PACKS, name, "package.json")).dependencies ?? {})) {
        packs.set(library, `[\`@packferry/${name}\`](../packs/${name})`);
      }
    }
  }
  return packs;
}

/** The rows of one half of the table; a message's subject is in the row already. */
function rows(libraries, found) {
  const packs = starterPacks();
  return Object.entries(libraries).map(([library, version]) => {
    const of = found.filter(({ pack }) => pack === packName(library));
    const skipped = of.some(({ severity }) => severity === "skipped");
    const why = of
      .map(({ code, message }) => `\`${code}\`: ${message.replace(/^.*?: npm module [^:]+: /, "").replaceAll("|", "\\|").replaceAll("\n", " ")}`)
      .join("<br>");
    return { skipped, text: `| ${library} | ${version} | ${packs.get(library) ?? ""} | ${why} |` };
  });
}

/** The page. */
function page(all) {
  const half = (skipped) => all.filter((row) => row.skipped === skipped).map((row) => row.text);
  const head = (notes) => [`| library | version | starter pack | ${notes} |`, "|---|---|---|---|"];
  return [
    "# Libraries that were tried",
    "",
    "Each was built as the only module of a pack: bundled, scanned for what the guest lacks, and loaded in the native guest.",
    "That it loads does not say that all of it works there: the libraries with a starter pack have an example that is tested.",
    "Written by `node scripts/libraries.mjs` from the build's report; the list is [libraries.json](libraries.json).",
    "",
    `## Admitted (${half(false).length})`,
    "",
    "A warning names what a library looks for or uses and a guest may lack: the functions that need it do less there, or fail.",
    "",
    ...head("warnings"),
    ...half(false),
    "",
    `## Skipped (${half(true).length})`,
    "",
    ...head("why"),
    ...half(true),
    "",
  ].join("\n");
}

const libraries = readJson(join(ROOT, "docs", "libraries.json"));
const folder = mkdtempSync(join(tmpdir(), "packferry-libraries-"));
try {
  writePacks(folder, libraries);
  writeFileSync(join(ROOT, "docs", "libraries.md"), page(rows(libraries, diagnostics(folder))));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
