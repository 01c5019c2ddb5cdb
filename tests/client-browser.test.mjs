//! The client in a real Chromium against the worker in workerd, page and worker on origins of their own: prefetch, proof, cache,
//! upgrade, damage, refusals, and runs on the page and in a web worker.

import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { CLIENT, NO_BROWSER, bundled, findBrowser, launch, requireClient, servePages } from "./client/browser.mjs";
import { guestFixture, openEdge, signer } from "./client/edge.mjs";
import { packferry } from "./support/command.mjs";
import { ROOT, requirePackferry, requireWorker, scratch } from "./support/project.mjs";
import { writePack } from "./support/release.mjs";

const chromium = findBrowser();
const options = { skip: chromium === undefined ? NO_BROWSER : false, timeout: 300_000 };
if (chromium === undefined) {
  console.log(NO_BROWSER);
}

/** The reports for docs/parity.md, by where the cases ran; those of an earlier run must not stay where none is made. */
const REPORTS = ["chromium-page", "chromium-worker"];

/** A name of this machine that no browser takes for its own: over plain http its pages are not secure. */
const LAN = "machine.lan";

let browser;
let pages;

before(async () => {
  if (chromium === undefined) {
    REPORTS.forEach((runtime) => rmSync(join(ROOT, "target", "parity", `${runtime}.json`), { force: true }));
    return;
  }
  requireClient();
  requireWorker();
  requirePackferry();
  pages = await servePages(await bundled("test/browser/page.ts", "test/browser/worker.ts"), "page.js");
  browser = await launch(chromium, [`--host-resolver-rules=MAP ${LAN} 127.0.0.1`]);
});
after(async () => {
  await browser?.close();
  await pages?.close();
});

/** A page with storage of its own, which `reload` keeps. */
async function openPage(context, address) {
  const profile = await browser.newContext();
  context.after(() => profile.close());
  const page = await profile.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  const call = (name, ...args) => page.evaluate(([method, values]) => globalThis.packferry[method](...values), [name, args]);
  const running = (method) => async (code, declarations, more = {}, names = ["it"]) =>
    JSON.parse(await call(method, names, { code, declarations, ...more }));
  const reload = async (address = pages.url) => {
    await page.goto(address);
    await page.waitForFunction(() => globalThis.packferry !== undefined);
  };
  await reload(address);
  return {
    prefetch: (client, declarations, more) => call("prefetch", "it", client, declarations, more),
    prefetchAs: (name, client, declarations) => call("prefetch", name, client, declarations),
    run: running("run"),
    runInWorker: running("runInWorker"),
    damage: () => call("damage"),
    keeps: (...sizes) => call("keeps", ...sizes),
    reload,
    faults,
  };
}

/** Writes a pack of `count` files in a tree and a root that gives `version`. */
function tree(folder, version, count = 99) {
  const files = { "main.js": `import { sum } from "./f0.js";\nexport const answer = () => "${version}: " + sum();\n` };
  for (let at = 0; at < count; at++) {
    const children = [2 * at + 1, 2 * at + 2].filter((child) => child < count);
    const imports = children.map((child) => `import { sum as s${child} } from "./f${child}.js";\n`);
    files[`f${at}.js`] = `${imports.join("")}export const sum = () => 1${children.map((child) => ` + s${child}()`).join("")};\n`;
  }
  const internal = Object.keys(files).filter((file) => file !== "main.js");
  writePack(folder, { name: "@acme/tree", version, modules: { ".": "main.js" }, internal, files });
  return folder;
}

const CODE = 'import { answer } from "@acme/tree";\nreturn answer();';
const DECLARED = ["@acme/tree"];
const asked = (proxy) => proxy.taken().map(({ ifNoneMatch, status }) => [ifNoneMatch, status]);

test("every guest case, its modules fetched from the worker", options, async (context) => {
  const { build, cases } = await guestFixture();
  const { difference, runsOf } = await import(join(CLIENT, "build", "test", "guest-cases.js"));
  const { GuestReport } = await import(join(CLIENT, "build", "test", "guest-report.js"));
  const edge = openEdge(context);
  const modules = new Map([...new Set(cases.flatMap(({ declared }) => declared))].map((key) => [key, build(key)]));
  await edge.put([...modules.values()].flatMap(({ objects }) => [...objects]));
  const proxy = await edge.start();
  const page = await openPage(context);

  for (const [key, { specifier, digest }] of modules) {
    // The guest is to find out for itself whose host module it is.
    const echo = key === "forged" ? { pack: "@acme/forged", exports: ["echo"] } : { pack: "@acme/echo", exports: ["echo", "fail"] };
    const client = { baseUrl: proxy.url, pin: true, hosts: { echo } };
    const fetched = await page.prefetchAs(key, client, [{ specifier, contentDigest: digest }]);
    assert.equal(fetched.records?.[0].proven, true, `${key}: ${JSON.stringify(fetched)}`);
  }
  const digests = new Set([...modules.values()].map(({ digest }) => digest));
  assert.equal(proxy.taken().length, digests.size, "each closure is fetched once");

  for (const where of ["run", "runInWorker"]) {
    await context.test(where === "run" ? "on the page" : "in a web worker", async (step) => {
      const report = new GuestReport(where === "run" ? "chromium-page" : "chromium-worker");
      for (const expected of cases) {
        for (const { name, declared } of runsOf(expected)) {
          await step.test(name, async () => {
            const declarations = declared.map((key) => modules.get(key).specifier);
            const { limits = {}, platform = false } = expected;
            const outcome = await page[where](expected.code, declarations, { limits, platform }, declared);
            const found = difference(expected, outcome);
            report.add(name, found);
            assert.equal(found, undefined);
          });
        }
      }
      report.write();
    });
  }
  assert.deepEqual(page.faults, []);
});

test("against wrangler dev: prefetch from another origin, an upgrade, a second load, no network", options, async (context) => {
  const packs = scratch("client-packs");
  const edge = openEdge(context);
  await edge.publish([tree(packs, "1.0.0")]);
  const proxy = await edge.start({ wrangler: true });
  const page = await openPage(context);
  const client = { baseUrl: proxy.url };
  let first;

  await context.test("one request for a hundred files, without a preflight", async () => {
    const { records, progress } = await page.prefetch(client, DECLARED);
    const requests = proxy.taken();
    first = records[0].contentDigest;
    assert.deepEqual(requests.map(({ path, status }) => [path, status]), [["/api/sandbox-closures/@acme/tree", 200]]);
    assert.equal(proxy.preflights, 0);
    assert.deepEqual(progress, { loaded: requests[0].bytes, total: requests[0].bytes });
    assert.deepEqual([records[0].proven, records[0].packVersion], [true, "1.0.0"]);
  });

  await context.test("the same run on the page and in a web worker", async () => {
    const expected = { value: "1.0.0: 99", statuses: [] };
    assert.deepEqual(await page.run(CODE, DECLARED), expected);
    assert.deepEqual(await page.runInWorker(CODE, DECLARED), expected);
  });

  await context.test("a second page load makes one conditional request and no download", async () => {
    await page.reload();
    await page.prefetch(client, DECLARED);
    const requests = proxy.taken();
    assert.deepEqual(requests.map(({ ifNoneMatch, status, bytes }) => [ifNoneMatch, status, bytes]), [[`"${first}"`, 304, 0]]);
    assert.deepEqual(await page.run(CODE, DECLARED), { value: "1.0.0: 99", statuses: [] });
  });

  await context.test("after an upgrade the second run has the new version, by one download", async () => {
    await edge.publish([tree(packs, "2.0.0")]);
    await page.prefetch(client, DECLARED);
    assert.deepEqual(asked(proxy), [[`"${first}"`, 200]]);
    assert.deepEqual(await page.runInWorker(CODE, DECLARED), { value: "2.0.0: 99", statuses: [] });
    const saved = [{ specifier: "@acme/tree", resolvedPackVersion: "1.0.0", contentDigest: first }];
    assert.deepEqual((await page.run(CODE, saved)).statuses, ["version-mismatch", "content-digest-mismatch"]);
  });

  await context.test("pinned to the past, from the cache, without a network", async () => {
    const saved = [{ specifier: "@acme/tree", contentDigest: first }];
    proxy.offline = true;
    await page.reload();
    const { records } = await page.prefetch({ ...client, pin: true }, saved);
    assert.deepEqual([records[0].pinned, records[0].contentDigest], [true, first]);
    assert.deepEqual(await page.run(CODE, saved), { value: "1.0.0: 99", statuses: [] });
    const { code, message, packName } = await page.prefetch(client, DECLARED);
    assert.deepEqual([code, packName], ["network", "@acme/tree"]);
    assert.match(message, /Sandbox module @acme\/tree could not be fetched/);
    proxy.offline = false;
  });

  await context.test("what was damaged in the cache is fetched again", async () => {
    proxy.taken();
    assert.equal(await page.damage(), 3, "two closures and a name");
    await page.prefetch(client, DECLARED);
    assert.deepEqual(asked(proxy), [[undefined, 200]]);
    assert.deepEqual(await page.run(CODE, DECLARED), { value: "2.0.0: 99", statuses: [] });
  });
  assert.deepEqual(page.faults, []);
});

test("what is changed on the way is refused, named, and not kept", options, async (context) => {
  const edge = openEdge(context);
  await edge.publish([tree(scratch("client-packs"), "1.0.0", 10)]);
  const proxy = await edge.start();
  const page = await openPage(context);
  const flipped = (answer) => {
    answer.body[answer.body.length - 3] ^= 1;
    return answer;
  };
  const without = (name) => (answer) => {
    delete answer.headers[name];
    return answer;
  };
  const unencoded = without("unencoded-digest");
  const rows = [
    // Chromium checks Unencoded-Digest itself, before the page sees anything.
    ["a changed body, by the browser", flipped, "network", /could not be fetched/],
    ["a changed body, by the client", (answer) => unencoded(flipped(answer)), "mismatch", /its SHA-256 is not the announced one/],
    ["a changed body without any hash", (answer) => without("x-content-sha256")(unencoded(flipped(answer))), "mismatch", /the SHA-256 of main\.js/],
    ["an answer that a page may not read", without("access-control-allow-origin"), "network", /could not be fetched/],
    ["a redirect", (answer) => ({ ...answer, status: 302, headers: { ...answer.headers, location: "/healthz" } }), "network", /could not be fetched/],
  ];
  for (const [what, change, code, message] of rows) {
    await context.test(what, async () => {
      proxy.change = change;
      const failure = await page.prefetch({ baseUrl: proxy.url }, DECLARED);
      assert.deepEqual([failure.code, failure.packName], [code, "@acme/tree"], JSON.stringify(failure));
      assert.match(failure.message, message);
    });
  }
  proxy.change = (answer) => answer;
  proxy.taken();
  assert.equal((await page.prefetch({ baseUrl: proxy.url }, DECLARED)).records[0].proven, true);
  assert.deepEqual(asked(proxy), [[undefined, 200]], "nothing had been kept");
});

test("signatures: the chain from a key to the graph, and a key that did not sign", options, async (context) => {
  const edge = openEdge(context);
  await edge.publish([tree(scratch("client-packs"), "1.0.0", 10)]);
  const [ours, theirs] = [signer(), signer()];
  await edge.put([["channel/stable", ours.signed(await edge.read("channel/stable"))]]);
  const proxy = await edge.start();
  const page = await openPage(context);
  const client = { baseUrl: proxy.url, trustedKeys: [ours.trusted] };

  const fetched = await page.prefetch(client, DECLARED);
  assert.equal(fetched.records?.[0].proven, true, JSON.stringify(fetched));
  assert.deepEqual(proxy.taken().map(({ path }) => path.split("/")[2]), ["channels", "manifests", "sandbox-closures"]);
  await page.prefetch(client, DECLARED);
  assert.deepEqual(proxy.taken().map(({ path }) => path), ["/api/channels/stable"], "warm, one round trip");

  const failure = await page.prefetch({ ...client, trustedKeys: [theirs.trusted], memory: true }, DECLARED);
  assert.deepEqual([failure.code, failure.message], ["mismatch", "Channel stable failed its check: no trusted key signed it."]);
});

test("a private pack needs a token and a preflight; an absent one is named", options, async (context) => {
  const edge = openEdge(context, { POLICY: "test" });
  await edge.publish([tree(scratch("client-packs"), "1.0.0", 3)]);
  const file = join(scratch("client-policy"), "policy.toml");
  writeFileSync(file, 'private = ["@acme/tree"]\n');
  const made = await packferry(["policy", "token", "ci", "--grant", "@acme/tree", "--expires", "1d", "--file", file]);
  await packferry(["policy", "push", file, "--name", "test", "--local", "--persist-to", edge.state]);
  const proxy = await edge.start();
  const page = await openPage(context);

  const refused = await page.prefetch({ baseUrl: proxy.url }, DECLARED);
  assert.deepEqual([refused.code, refused.packName], ["forbidden", "@acme/tree"]);
  assert.equal(refused.message, "Sandbox module @acme/tree is not available to this client.");
  assert.equal(proxy.preflights, 0);

  const fetched = await page.prefetch({ baseUrl: proxy.url, token: made.stdout.trim() }, DECLARED);
  assert.equal(fetched.records?.[0].proven, true, JSON.stringify(fetched));
  assert.equal(proxy.preflights, 1);

  const absent = await page.prefetch({ baseUrl: proxy.url }, ["@other/absent/x"]);
  assert.deepEqual([absent.code, absent.packName], ["not-available", "@other/absent"]);
  assert.equal(absent.message, "Sandbox module @other/absent/x is not available on this server.");
});

test("Cache Storage keeps to its bytes, and drops what was written longest ago", options, async (context) => {
  const page = await openPage(context);
  const kept = [undefined, 100, 100];
  assert.deepEqual(await page.keeps(250, [100, 100, 100]), [kept, kept]);
  assert.deepEqual(await page.keeps(250, [100, 251]), [[undefined, undefined], [undefined, undefined]], "what is larger than all leaves nothing");
});

test("a page over plain http says why nothing can be verified, and what to do", options, async (context) => {
  const page = await openPage(context, pages.url.replace("127.0.0.1", LAN));
  const { code, message } = await page.prefetch({ baseUrl: "http://127.0.0.1:9" }, DECLARED);
  assert.equal(code, "insecure-context");
  assert.match(message, /crypto\.subtle.*https and localhost only: serve this page there/);
  assert.deepEqual(page.faults, []);
});

test("a document of no origin, which has no Cache Storage, fetches and runs all the same", options, async (context) => {
  const edge = openEdge(context);
  await edge.publish([tree(scratch("client-packs"), "1.0.0", 3)]);
  const proxy = await edge.start();
  const page = await openPage(context, `${pages.url}sandboxed`);
  const fetched = await page.prefetch({ baseUrl: proxy.url }, DECLARED);
  assert.equal(fetched.records?.[0].proven, true, JSON.stringify(fetched));
  assert.deepEqual(await page.run(CODE, DECLARED), { value: "1.0.0: 3", statuses: [] });
  assert.deepEqual(page.faults, []);
});
