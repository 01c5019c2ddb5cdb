//! Nothing here is switched on for some: no flag, no rollout setting, no refusal of browsers. Searches the tree for them, knows every
//! setting of the worker by name, and asks the worker as browsers and as others.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { run } from "./support/command.mjs";
import { startEdge } from "./support/edge.mjs";
import { ROOT, scratch } from "./support/project.mjs";
import { build, copyPacks, publish } from "./support/release.mjs";

const isClone = existsSync(join(ROOT, ".git"));
const NO_CLONE = "not a clone: git does not say which files are the tree's";

/** What is searched: code, configuration and documents, not the data that tests share, nor this list of what is not there. */
const APART = /^(fixtures|fuzz\/seeds|manifests)\/|(^|\/)(package-lock\.json|Cargo\.lock)$|^tests\/open-to-all\.test\.mjs$|^docs\/libraries\.|\.(png|wasm)$/;

/** What a flag, a rollout or a refusal of browsers would be called. */
const SUSPECTS = [
  ["a feature flag", /feature[-_ ]?(flag|toggle|switch|gate)|\bFEATURE_|\bfeatureEnabled|\bkill[-_ ]?switch\b/i],
  ["a feature of a crate of ours", /cfg\(feature|^\[features\]/m],
  ["a rollout", /roll(ed|ing)?[-_ ]?out|\bcanary\b|staged release|percent(age)? of (users|requests|clients)/i],
  ["an experiment", /\bexperiment(s|al)?\b/i],
  ["looking at who asks", /user[-_]?agent|navigator\.(vendor|platform|brave)|sec-(fetch|ch-ua)|client[-_ ]hints/i],
  ["a refusal of browsers", /browsers? (is|are) not (supported|allowed|served)|unsupported[-_ ]browser|not available (to|in) browsers|block[-_ ]?browsers|is_?browser\b/i],
];

/** Findings that are something else, each with what it is. */
const INNOCENT = [
  ["xtask/src/worker.rs", "--experimental-reset-state-function", "wasm-bindgen's option for the worker's recovery from panics"],
  ["bench/README.md", "--experimental-websocket", "Node's option for a client of WebSockets"],
  ["bench/edge/profile.mjs", "--experimental-websocket", "the same"],
  ["tests/release.test.mjs", "kill-switch.mjs", "a module of the tests that kills a publisher half-way"],
  ["tests/release.test.mjs", "KILL_SWITCH", "its path"],
];

/** The worker's settings (wire contract, "Routes"): each changes how it serves all, none whom. */
const SETTINGS = [
  "CACHE_BYTES",
  "CACHE_TAGS",
  "CHANNEL",
  "MANIFEST",
  "NAMED_MAX_AGE",
  "POINTER_CACHE_SECONDS",
  "POLICY",
  "TRUSTED_KEYS",
];

test("no flag, no rollout setting, no refusal of browsers in the tree", { skip: isClone ? false : NO_CLONE }, async () => {
  const { stdout } = await run("git", ["ls-files", "-z"]);
  const files = stdout.split("\0").filter((file) => file !== "" && !APART.test(file) && existsSync(join(ROOT, file)));
  assert.ok(files.length > 300, `${files.length} files are searched`);
  const found = [];
  for (const file of files) {
    const innocent = INNOCENT.filter(([where]) => where === file).map(([, text]) => text);
    const text = innocent.reduce((rest, known) => rest.replaceAll(known, ""), readFileSync(join(ROOT, file), "utf8"));
    for (const [what, pattern] of SUSPECTS) {
      const match = pattern.exec(text);
      if (match) {
        found.push(`${file}:${text.slice(0, match.index).split("\n").length}: ${what}: ${match[0]}`);
      }
    }
  }
  assert.deepEqual(found, []);
});

test("what would be found is found", () => {
  const lines = ["if flags.FEATURE_BROWSER {", "#[cfg(feature = \"x\")]", "ROLLOUT_PERCENT = 5", "// experimental", 'header("User-Agent")', "Browsers are not supported"];
  assert.deepEqual(
    SUSPECTS.map(([, pattern], at) => pattern.test(lines[at])),
    SUSPECTS.map(() => true),
  );
  for (const [file, text] of INNOCENT) {
    assert.ok(readFileSync(join(ROOT, file), "utf8").includes(text), `${file} has ${text} no more: take it off the list`);
  }
});

test("the worker reads the settings that are documented, and no other", () => {
  const read = readFileSync(join(ROOT, "src", "config.rs"), "utf8").split("#[cfg(test)]")[0];
  const names = [...read.matchAll(/\b(?:var|number)\("([A-Z_]+)"\)/g)].map(([, name]) => name);
  assert.deepEqual([...new Set(names)].sort(), SETTINGS);
  const documented = [...readFileSync(join(ROOT, "wrangler.toml"), "utf8").matchAll(/^# ([A-Z_]{4,}) {2,}/gm)].map(([, name]) => name);
  assert.deepEqual(documented.sort(), SETTINGS);
});

/** Who asks: the headers by which a server could tell. */
const REQUESTERS = {
  "Chromium, from another origin": {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
    Origin: "https://app.example",
    Referer: "https://app.example/",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "cross-site",
    "Sec-CH-UA": '"Chromium";v="156"',
  },
  "Firefox, a link followed": {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    Accept: "text/html,application/xhtml+xml",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
  },
  "Safari on a phone": { "User-Agent": "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1", Origin: "null" },
  "curl": { "User-Agent": "curl/8.0", Accept: "*/*" },
  "a crawler": { "User-Agent": "Googlebot/2.1" },
};

test("browsers and others get the same answers", { timeout: 120_000 }, async (context) => {
  const folder = scratch("open");
  const state = join(folder, "state");
  await publish(await build([copyPacks(join(folder, "packs"), ["@acme/geo"])], join(folder, "release")), state);
  const edge = await startEdge({ state });
  context.after(() => edge.close());
  const named = await edge.get("/api/sandbox-modules/@acme%2Fgeo");
  const paths = [
    "/api/sandbox-modules/@acme%2Fgeo",
    `/api/sandbox-modules/${named.headers.get("x-content-digest")}`,
    "/api/sandbox-closures/@acme%2Fgeo",
    "/api/sandbox-modules",
    "/api/sandbox-modules/@acme%2Fabsent",
    `/api/manifests/${named.headers.get("x-packferry-manifest")}`,
    "/api/channels/stable",
  ];
  const shown = ({ status, headers, body }) => ({
    status,
    headers: [...headers].filter(([name]) => name !== "server-timing" && name !== "date"),
    body: body.toString("latin1"),
  });
  for (const path of paths) {
    const plain = shown(await edge.get(path));
    for (const [who, headers] of Object.entries(REQUESTERS)) {
      await context.test(`${path.replace(/[0-9a-f]{64}/, "…")}, ${who}`, async () => {
        assert.deepEqual(shown(await edge.get(path, { headers })), plain);
      });
    }
  }
});
