//! The command line from packs to storage: builds that are the same bytes wherever they run, the plan for wrangler's
//! bulk writes, exit statuses, and a publish that is killed.

import assert from "node:assert/strict";
import { chmodSync, cpSync, mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { packferry, start, wrangler } from "./support/command.mjs";
import { MODULES, checkProblem, sha256 } from "./support/contract.mjs";
import { startEdge } from "./support/edge.mjs";
import { PACKFERRY, requirePackferry, scratch } from "./support/project.mjs";
import { GOOD_PACKS, build, copyPacks, publish, report, writePack } from "./support/release.mjs";

const PATIENCE = 120_000;
const KILL_SWITCH = fileURLToPath(new URL("support/kill-switch.mjs", import.meta.url));

/** Every file below a folder, by its path in it. */
function filesOf(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = entries.map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return new Map(paths.sort().map((path) => [path, readFileSync(join(folder, path))]));
}

/** Digests of every file below a folder. */
function fingerprint(folder) {
  return Object.fromEntries([...filesOf(folder)].map(([path, bytes]) => [path, sha256(bytes)]));
}

/** A pack of one file. */
const single = (name, text) => ({ name, version: "1.0.0", modules: { ".": "index.js" }, files: { "index.js": text } });

const answers = async (edge, id) => (await edge.get(MODULES + encodeURIComponent(id))).body.toString();

test("builds in two places, two orders and two environments are the same bytes", { timeout: PATIENCE }, async () => {
  requirePackferry();
  const names = readdirSync(join(GOOD_PACKS, "@acme")).map((name) => `@acme/${name}`);
  const first = names.filter((_, at) => at % 2 === 0);
  const second = [...names.filter((_, at) => at % 2 === 1), "@nodetool-ai", "Mixed_Case.pack~1", "units", "empty-list"];
  const places = [
    {
      folder: "a",
      order: (list) => list,
      shell: "umask 022",
      env: { TZ: "UTC", LC_ALL: "C", LANG: "C" },
    },
    {
      folder: join("another place", "far", "from the first", "node_modules", "x"),
      order: (list) => list.toReversed(),
      shell: "umask 077",
      env: { TZ: "Pacific/Kiritimati", LC_ALL: "da_DK.UTF-8", LANG: "tr_TR.UTF-8", SOURCE_DATE_EPOCH: "1" },
    },
  ];
  const built = [];
  for (const { folder, order, shell, env } of places) {
    const place = join(scratch("reproducible"), folder);
    const roots = [first, second].map((list, at) => copyPacks(join(place, `root-${at}`), order(list)));
    const args = ["build", ...order(roots), "--out", join(place, "release")];
    const ended = await start("sh", ["-c", `${shell}; exec "$0" "$@"`, PACKFERRY, ...args], { cwd: place, env }).ended;
    assert.equal(ended.status, 1, ended.stderr);
    built.push(fingerprint(join(place, "release")));
  }
  assert.ok(Object.keys(built[0]).length > 70, "there is something to compare");
  assert.deepEqual(built[0], built[1]);
});

test("nothing of a release names a place, a time or a user", { timeout: PATIENCE }, async () => {
  const folder = scratch("paths");
  const release = await build([GOOD_PACKS], join(folder, "release"), { withheld: true });
  const forbidden = [folder, GOOD_PACKS, process.cwd(), process.env.HOME].filter((text) => text && text.length > 1);
  for (const [path, bytes] of filesOf(release)) {
    forbidden.forEach((text) => assert.ok(!bytes.includes(text), `${path} holds ${text}`));
  }
  const { manifest } = report(release);
  assert.equal(manifest, sha256(readFileSync(join(release, "manifest.json"))));
});

test("the bulk plan: order, bounds, bytes, and a worker that answers from it", { timeout: PATIENCE }, async (context) => {
  const folder = scratch("bulk");
  const [release, bulk, state] = ["release", "bulk", "state"].map((name) => join(folder, name));
  const packs = copyPacks(join(folder, "packs"), ["@acme/geo", "@acme/wasm-math", "@acme/npm-table", "units"]);
  await build([packs], release);
  await packferry(["publish", release, "--bulk", bulk, "--first"]);
  const files = readdirSync(bulk).sort();

  await context.test("files in the order of their names: objects, manifest, channel", () => {
    const kinds = files.map((name) => /^\d{4}-([a-z]+)\.json$/.exec(name)?.[1]);
    assert.deepEqual(kinds, ["objects", "manifest", "channel"]);
  });
  const rows = files.flatMap((name) => checkBulkFile(join(bulk, name)));

  await context.test("values are the objects of the release, each once, in the order of dependence", () => {
    const objects = new Map([...filesOf(join(release, "objects"))]);
    objects.set(`manifest/${report(release).manifest}`, readFileSync(join(release, "manifest.json")));
    const planned = rows.filter(({ key }) => !key.startsWith("channel/"));
    assert.deepEqual(planned.map(({ key }) => key).sort(), [...objects.keys()].sort());
    planned.forEach(({ key, value }) => assert.ok(Buffer.from(value, "base64").equals(objects.get(key)), key));
    const rank = ["blob", "graph", "closure", "shard", "manifest", "channel"];
    const ranks = rows.map(({ key }) => rank.indexOf(key.split("/")[0]));
    assert.deepEqual(ranks, [...ranks].sort(), "blobs, graphs, closures, shards, manifest, channel");
  });

  await context.test("the channel is the first of its name", () => {
    const { key, value } = rows.at(-1);
    assert.equal(key, "channel/stable");
    const { version, channel, sequence, manifest } = pointerOf(Buffer.from(value, "base64"));
    assert.deepEqual({ version, channel, sequence, manifest }, {
      version: 1,
      channel: "stable",
      sequence: 1,
      manifest: report(release).manifest,
    });
  });

  await context.test("put in order, the worker answers after the last and not before", async (step) => {
    const edge = await startEdge({ state });
    step.after(() => edge.close());
    for (const name of files) {
      const before = await edge.get(`${MODULES}units`);
      checkProblem(before, { code: "storage-incomplete" }, `before ${name}`);
      await wrangler(["kv", "bulk", "put", join(bulk, name), "--binding", "KV", "--local", "--persist-to", state]);
    }
    const expected = readFileSync(join(packs, "units", "index.js"), "utf8");
    assert.equal(await answers(edge, "units"), expected);
  });

  await context.test("--after takes what wrangler printed, and the sequence is the next", async () => {
    const got = ["kv", "key", "get", "channel/stable", "--binding", "KV", "--local", "--persist-to", state];
    const { stdout } = await wrangler(got);
    const printed = join(folder, "channel.json");
    writeFileSync(printed, stdout);
    const next = join(folder, "bulk-2");
    await packferry(["publish", release, "--bulk", next, "--after", printed]);
    const [row] = JSON.parse(readFileSync(join(next, "0003-channel.json"), "utf8"));
    assert.equal(pointerOf(Buffer.from(row.value, "base64")).sequence, 2);
  });

  const wrong = join(folder, "wrong.json");
  writeFileSync(wrong, "{}");
  const unusable = [
    ["neither --after nor --first", [], /wrangler kv key get channel\/stable .*--remote/],
    ["both", ["--first", "--after", wrong], /cannot be used with/],
    ["a file that is no envelope", ["--after", wrong], /wrong\.json is not the envelope of the channel stable[^]*wrangler kv key get channel\/stable [^]*--first/],
    ["a file that is not there", ["--after", join(folder, "absent.json")], /absent\.json/],
  ];
  for (const [what, args, message] of unusable) {
    await context.test(`exit status 2: ${what}`, async () => {
      const { stderr } = await packferry(["publish", release, "--bulk", join(folder, "none"), ...args], { expect: 2 });
      assert.match(stderr, message);
    });
  }
});

/** Checks one bulk file against what Workers KV takes at once; gives its rows. */
function checkBulkFile(path) {
  assert.ok(statSync(path).size <= 100_000_000, `${path}: at most 100 MB`);
  const rows = JSON.parse(readFileSync(path, "utf8"));
  assert.ok(rows.length > 0 && rows.length <= 10_000, `${path}: 1 to 10,000 pairs`);
  for (const row of rows) {
    assert.deepEqual(Object.keys(row).sort(), ["base64", "key", "value"], path);
    assert.equal(row.base64, true, path);
    assert.equal(Buffer.from(row.value, "base64").toString("base64"), row.value, `${path}: ${row.key}`);
  }
  return rows;
}

function pointerOf(envelope) {
  const { payloadType, payload, signatures } = JSON.parse(envelope);
  assert.equal(payloadType, "application/vnd.packferry.channel+json");
  assert.deepEqual(signatures, []);
  return JSON.parse(Buffer.from(payload, "base64"));
}

test("a release of more than 10,000 objects is several bulk files", { timeout: PATIENCE }, async () => {
  const folder = scratch("large");
  const count = 3400;
  const names = Array.from({ length: count }, (_, at) => `m${at}`);
  writePack(join(folder, "packs"), {
    name: "large",
    version: "1.0.0",
    modules: Object.fromEntries(names.map((name) => [name, `${name}.js`])),
    files: Object.fromEntries(names.map((name) => [`${name}.js`, `export const name = "${name}";\n`])),
  });
  const [release, bulk] = [join(folder, "release"), join(folder, "bulk")];
  await build([join(folder, "packs")], release);
  await packferry(["publish", release, "--bulk", bulk, "--first"]);
  const files = readdirSync(bulk).sort();
  const sizes = files.map((name) => checkBulkFile(join(bulk, name)).length);
  assert.deepEqual(files, ["0001-objects.json", "0002-objects.json", "0003-manifest.json", "0004-channel.json"]);
  assert.deepEqual(sizes, [10_000, 3 * count + 1 - 10_000, 1, 1], "with one shard for the one large pack");
});

test("exit statuses", { timeout: PATIENCE }, async (context) => {
  const folder = scratch("statuses");
  const state = join(folder, "state");
  const good = copyPacks(join(folder, "good"), ["units"]);
  const faulty = copyPacks(join(folder, "faulty"), ["units", "@acme/hashbang"]);
  const skipped = copyPacks(join(folder, "skipped"), ["@acme/npm-refused", "@nodetool-ai/sandbox-csv", "units"]);
  const release = await build([good], join(folder, "release"));
  const partial = join(folder, "partial");
  const altered = join(folder, "altered");
  const rows = [
    ["a good pack", ["build", good, "--out", join(folder, "again")], 0],
    ["skipped npm and host entries", ["build", skipped, "--out", join(folder, "skipped-out")], 0],
    ["a pack at fault", ["build", faulty, "--out", partial], 1],
    ["an unknown option", ["build", good, "--out", join(folder, "x"), "--nope"], 2],
    ["no place to write", ["build", good], 2],
    ["a root that is not there", ["build", join(folder, "absent"), "--out", join(folder, "x")], 2],
    ["an unknown command", ["nope"], 2],
    ["a release that is not there", ["publish", join(folder, "absent"), "--local", "--persist-to", state], 2],
    ["a publish to nowhere", ["publish", release], 2],
    ["a channel's name that is none", ["publish", release, "--local", "--persist-to", state, "--channel", "a/b"], 2],
    ["help", ["--help"], 0],
  ];
  for (const [what, args, status] of rows) {
    await context.test(`${status}: ${what}`, async () => {
      const { stderr } = await packferry(args, { expect: status });
      assert.ok(status === 0 || stderr.trim() !== "", "a failure says something");
    });
  }

  await context.test("the release is written without the pack at fault", () => {
    const { packs } = JSON.parse(readFileSync(join(partial, "manifest.json"), "utf8"));
    assert.deepEqual(packs.map(({ name }) => name), ["units"]);
    assert.deepEqual(report(partial).withheld.map(({ pack }) => pack), ["@acme/hashbang"]);
  });

  await context.test("a release from which packs were withheld is published only when asked for", async () => {
    const args = ["publish", partial, "--local", "--persist-to", state];
    const { stderr } = await packferry(args, { expect: 2 });
    assert.match(stderr, /@acme\/hashbang/);
    assert.match(stderr, /--allow-withheld/);
    await packferry([...args, "--allow-withheld"]);
  });

  await context.test("2: a release whose manifest is not that of its report", async () => {
    cpSync(release, altered, { recursive: true });
    const text = readFileSync(join(altered, "manifest.json"), "utf8");
    writeFileSync(join(altered, "manifest.json"), text.replace('"name":"units"', '"name":"unitz"'));
    await packferry(["publish", altered, "--local", "--persist-to", state], { expect: 2 });
  });

  await context.test("2: a release with damaged objects", async () => {
    const damaged = join(folder, "damaged");
    cpSync(release, damaged, { recursive: true });
    const blobs = join(damaged, "objects", "blob");
    for (const name of readdirSync(blobs)) {
      writeFileSync(join(blobs, name), "something else");
    }
    const other = join(folder, "other-state");
    await packferry(["publish", damaged, "--local", "--persist-to", other], { expect: 2 });
  });
});

/** Moments at which a publish is killed, in the order in which it comes to them. */
const MOMENTS = [
  "before blob",
  "during blob",
  "during graph",
  "during closure",
  "before manifest",
  "during manifest",
  "before channel",
  "during channel",
];

test("a publish that is killed leaves the old release whole; run again, it finishes", { timeout: 2 * PATIENCE }, async (context) => {
  const folder = scratch("killed");
  const [packs, release, state, bin] = ["packs", "release", "state", "bin"].map((name) => join(folder, name));
  const pack = (version) => ({
    name: "@example/pair",
    version,
    modules: { ".": "index.js" },
    internal: ["part.js"],
    files: { "index.js": `export * from "./part.js";\nexport const v = "${version}";\n`, "part.js": `export const p = "${version}";\n` },
  });
  // The publisher's `node` is the real one behind the switch.
  mkdirSync(bin);
  writeFileSync(join(bin, "node"), `#!/bin/sh\nexec "${process.execPath}" "${KILL_SWITCH}" "$@"\n`);
  chmodSync(join(bin, "node"), 0o755);

  writePack(packs, pack("1.0.0"));
  writePack(packs, single("steady", "export const steady = 1;\n"));
  await build([packs], release);
  await publish(release, state);
  const edge = await startEdge({ state });
  context.after(() => edge.close());

  /** What the worker answers for the pack: one version, whole. */
  const version = async () => {
    const root = await edge.get(`${MODULES}@example/pair`);
    assert.equal(root.status, 200, root.body.toString());
    const [helper] = JSON.parse(root.headers.get("x-sandbox-module-dependencies"));
    const found = root.headers.get("x-sandbox-pack-version");
    assert.equal(await answers(edge, "@example/pair"), `export * from "./part.js";\nexport const v = "${found}";\n`);
    assert.equal(await answers(edge, helper), `export const p = "${found}";\n`);
    assert.equal(await answers(edge, "@example/pair::part.js"), `export const p = "${found}";\n`);
    assert.equal(await answers(edge, "steady"), "export const steady = 1;\n");
    return found;
  };
  assert.equal(await version(), "1.0.0");

  writePack(packs, pack("2.0.0"));
  await build([packs], release);
  for (const moment of MOMENTS) {
    await context.test(`killed ${moment}`, async () => {
      const env = { KILL_AT: moment, PATH: `${bin}:${process.env.PATH}` };
      const ended = await start(PACKFERRY, ["publish", release, "--local", "--persist-to", state], { env }).ended;
      assert.equal(ended.signal, "SIGKILL", `it was killed, not: ${ended.status} ${ended.stderr}`);
      const found = await version();
      // What was handed over when the power went may have arrived; then it is the new release, whole.
      const possible = moment === "during channel" ? ["1.0.0", "2.0.0"] : ["1.0.0"];
      assert.ok(possible.includes(found), `${found} after ${moment}`);
    });
  }
  await publish(release, state);
  assert.equal(await version(), "2.0.0");
});
