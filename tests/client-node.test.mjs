//! The client in Node against the worker in workerd, from a signed channel to what user code returns: a cache in a directory, the guest
//! with its worker threads, upgrades, damage, no network.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";

import { CLIENT, requireClient } from "./client/browser.mjs";
import { openEdge, signer } from "./client/edge.mjs";
import { run as runProgram } from "./support/command.mjs";
import { runInNode } from "./support/example.mjs";
import { ROOT, STARTER_PACKS, requireStarterPacks, scratch } from "./support/project.mjs";
import { GOOD_PACKS, writePack } from "./support/release.mjs";

requireClient();
const { createCatalog, createCatalogClient } = await import(join(CLIENT, "dist", "index.js"));
const { directoryCache } = await import(join(CLIENT, "dist", "node", "index.js"));
const { runInGuest } = await import(join(CLIENT, "dist", "guest", "node.js"));

const options = { timeout: 180_000 };

/** Where requests went, and with what condition and status. */
const asked = (proxy) => proxy.taken().map(({ path, ifNoneMatch, status }) => [path.split("/")[2], ifNoneMatch, status]);

/** An edge whose channel is signed, and clients that trust the key and keep what they fetched in one directory. */
async function open(context) {
  const edge = openEdge(context);
  const ours = signer();
  const directory = scratch("client-cache");
  let proxy;
  return {
    directory,
    async publish(...release) {
      await edge.publish(...release);
      await edge.put([["channel/stable", ours.signed(await edge.read("channel/stable"))]]);
      proxy ??= await edge.start();
      return proxy;
    },
    client: (more = {}) =>
      createCatalogClient({ baseUrl: proxy.url, trustedKeys: [ours.trusted], cache: directoryCache(directory), ...more }),
  };
}

/** Runs code with what was fetched for its declarations. */
async function run(code, declarations, records, more) {
  const resolution = createCatalog(records).resolveForExecution(declarations);
  const { value } = await runInGuest(code, resolution, more);
  return { value, statuses: resolution.statuses.map(({ code: status }) => status) };
}

test("the example of every starter pack, fetched, proven and run", options, async (context) => {
  requireStarterPacks();
  const world = await open(context);
  const proxy = await world.publish([STARTER_PACKS]);
  const folders = readdirSync(STARTER_PACKS, { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== "node_modules");
  assert.ok(folders.length >= 20);
  for (const { name: folder } of folders) {
    const root = join(STARTER_PACKS, folder);
    const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    await context.test(manifest.name, async () => {
      const code = readFileSync(join(root, "example.js"), "utf8");
      const declared = manifest.nodetool.sandboxModules.map(({ name }) => (name === "." ? manifest.name : `${manifest.name}/${name}`));
      const records = await world.client().prefetch(declared);
      assert.ok(records.every(({ proven }) => proven));
      assert.deepEqual(await run(code, declared, records), { value: await runInNode(code, root, manifest), statuses: [] });
    });
  }
  await context.test("a process that comes later asks for the channel alone", async () => {
    proxy.taken();
    const declared = folders.slice(0, 3).map(({ name }) => `@packferry/${name}`);
    await world.client().prefetch(declared);
    assert.deepEqual(asked(proxy), [["channels", undefined, 200]]);
  });
});

test("the package's README has a script that runs", options, async (context) => {
  requireStarterPacks();
  const world = await open(context);
  const { url } = await world.publish([STARTER_PACKS]);
  const lines = readFileSync(join(CLIENT, "README.md"), "utf8").split("\n");
  const from = lines.findIndex((line) => line.startsWith("    import "));
  const to = lines.findIndex((line, at) => at > from && /^\S/.test(line));
  const script = lines.slice(from, to).map((line) => line.slice(4)).join("\n");
  assert.ok(script.includes('"http://localhost:8787"'));
  const folder = scratch("client-readme");
  mkdirSync(join(folder, "node_modules", "@packferry"), { recursive: true });
  symlinkSync(CLIENT, join(folder, "node_modules", "@packferry", "client"));
  writeFileSync(join(folder, "run.mjs"), script.replace("http://localhost:8787", url));
  const { stdout } = await runProgram(process.execPath, ["run.mjs"], { cwd: folder });
  assert.match(stdout, /^\{ x: 1\.5, height: 0\.\d+ \} \[\]\n$/);
  assert.equal(readdirSync(join(folder, ".modules")).length, 4, "two closures and what their names mean");
});

test("WASM in worker threads, and a module of the host", options, async (context) => {
  const world = await open(context);
  await world.publish([GOOD_PACKS], { withheld: true, args: ["--config", join(ROOT, "examples", "nodetool.packferry.toml")] });
  const csv = { pack: "@nodetool-ai/sandbox-csv", exports: ["parse", "stringify"] };
  const declared = ["@acme/wasm-math/math", "@nodetool-ai/sandbox-csv"];
  const records = await world.client({ hosts: { csv } }).prefetch(declared);
  const code = `import { add } from "@acme/wasm-math/math";
    import { parse } from "@nodetool-ai/sandbox-csv";
    return [await add(19, 23), await parse("a,b")];`;
  const hosts = { csv: { ...csv, call: (name, [text]) => ({ name, cells: text.split(",") }) } };
  assert.deepEqual(await run(code, declared, records, { hosts }), { value: [42, { name: "parse", cells: ["a", "b"] }], statuses: [] });
  await assert.rejects(world.client().prefetch(declared), { code: "mismatch", packName: "@nodetool-ai/sandbox-csv" });
});

/** A pack of two modules that share a helper; all say their version. */
function twoModules(folder, version) {
  const entry = `import { helper } from "./helper.js";\nexport const versions = () => ["${version}", helper];\n`;
  writePack(folder, {
    name: "@acme/two",
    version,
    modules: { ".": "main.js", other: "other.js" },
    internal: ["helper.js"],
    files: { "main.js": entry, "other.js": entry, "helper.js": `export const helper = "${version}";\n` },
  });
  return folder;
}

const CODE = 'import { versions } from "@acme/two";\nreturn versions();';

test("an upgrade, a pin to the past, damage on disk, no network, another key", options, async (context) => {
  const packs = scratch("client-packs");
  const world = await open(context);
  const proxy = await world.publish([twoModules(packs, "1.0.0")]);
  const [first] = await world.client().prefetch(["@acme/two"]);
  assert.deepEqual(asked(proxy).map(([what]) => what), ["channels", "manifests", "sandbox-closures"]);
  await world.publish([twoModules(packs, "2.0.0")]);
  const saved = [{ specifier: "@acme/two", resolvedPackVersion: "1.0.0", contentDigest: first.contentDigest }];

  await context.test("the second run has the new version, and says that the workflow was saved with another", async () => {
    const records = await world.client().prefetch(saved);
    const changed = ["version-mismatch", "content-digest-mismatch"];
    assert.deepEqual(await run(CODE, saved, records), { value: ["2.0.0", "2.0.0"], statuses: changed });
  });

  await context.test("pinned, the saved version runs, also without a network", async () => {
    proxy.offline = true;
    const records = await world.client({ pin: true }).prefetch(saved);
    assert.deepEqual(await run(CODE, saved, records), { value: ["1.0.0", "1.0.0"], statuses: [] });
    await assert.rejects(world.client().prefetch(saved), { code: "network", message: /^Channel stable could not be fetched/ });
    proxy.offline = false;
  });

  await context.test("both versions in one run keep their own files", async () => {
    const declared = [...saved, "@acme/two/other"];
    const records = await world.client({ pin: true }).prefetch(declared);
    assert.deepEqual(records.map(({ pinned, packVersion }) => [pinned, packVersion]), [[true, "1.0.0"], [false, "2.0.0"]]);
    const both = 'import { versions } from "@acme/two";\nimport { versions as now } from "@acme/two/other";\nreturn [versions(), now()];';
    assert.deepEqual(await run(both, declared, records), { value: [["1.0.0", "1.0.0"], ["2.0.0", "2.0.0"]], statuses: [] });
  });

  await context.test("what was damaged on disk is fetched again", async () => {
    for (const name of readdirSync(world.directory)) {
      const path = join(world.directory, name);
      const bytes = readFileSync(path);
      bytes[bytes.length - 1] ^= 1;
      writeFileSync(path, bytes);
    }
    proxy.taken();
    const records = await world.client().prefetch(["@acme/two"]);
    assert.deepEqual(asked(proxy).map(([what]) => what), ["channels", "manifests", "sandbox-closures"]);
    assert.deepEqual((await run(CODE, ["@acme/two"], records)).value, ["2.0.0", "2.0.0"]);
  });

  await context.test("a key that did not sign the channel opens nothing", async () => {
    const message = "Channel stable failed its check: no trusted key signed it.";
    await assert.rejects(world.client({ trustedKeys: [signer().trusted] }).prefetch(["@acme/two"]), { code: "mismatch", message });
  });
});

test("a publish in the middle of a prefetch mixes no versions", options, async (context) => {
  const packs = scratch("client-packs");
  const edge = openEdge(context);
  await edge.publish([twoModules(packs, "1.0.0")]);
  const proxy = await edge.start();
  let answered;
  const first = new Promise((resolve) => (answered = resolve));
  let calls = 0;
  const gated = async (...request) => {
    calls += 1;
    if (calls === 2) {
      await first;
      await edge.publish([twoModules(packs, "2.0.0")]);
    }
    const response = await fetch(...request);
    answered();
    return response;
  };
  const client = createCatalogClient({ baseUrl: proxy.url, fetch: gated });
  const records = await client.prefetch(["@acme/two", "@acme/two/other"]);
  assert.deepEqual(records.map(({ packVersion }) => packVersion), ["2.0.0", "2.0.0"]);
  assert.deepEqual(asked(proxy).map(([what]) => what), ["sandbox-closures", "sandbox-closures", "manifests", "sandbox-closures"]);
});
