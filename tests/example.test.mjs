//! The example page (examples/browser/) as `make example` serves it, in a real Chromium against `wrangler dev` on another origin: by
//! keyboard, on a phone, in the dark, and what it says where something fails.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { CLIENT, NO_BROWSER, findBrowser, launch, requireClient } from "./client/browser.mjs";
import { start } from "./support/command.mjs";
import { ROOT, STARTER_PACKS, requireStarterPacks, requireWorker, scratch } from "./support/project.mjs";
import { build, publish } from "./support/release.mjs";
import { freePort, startWrangler } from "./support/wrangler.mjs";

const PATIENCE = 240_000;
const chromium = findBrowser();
const options = { skip: chromium === undefined ? NO_BROWSER : false, timeout: 120_000 };
if (chromium === undefined) {
  console.log(NO_BROWSER);
}

let browser;
let edge;
let server;
let url;

before(
  async () => {
    if (chromium === undefined) {
      return;
    }
    requireClient();
    requireWorker();
    requireStarterPacks();
    const folder = scratch("example");
    await publish(await build([STARTER_PACKS], join(folder, "release")), join(folder, "state"));
    edge = await startWrangler(join(folder, "state"), { timeout: PATIENCE });
    const port = await freePort();
    const args = ["examples/browser/serve.mjs", "--port", String(port), "--edge-port", String(edge.port)];
    server = start(process.execPath, args, { timeout: PATIENCE });
    url = await saidUrl(server);
    browser = await launch(chromium);
  },
  { timeout: PATIENCE },
);
after(async () => {
  await browser?.close();
  server?.kill("SIGTERM");
  await edge?.close();
});

/** The URL that the command says once it serves. */
async function saidUrl({ output, ended }) {
  let over = false;
  ended.catch(() => {}).finally(() => (over = true));
  for (;;) {
    const said = /The example page: (\S+)/.exec(output.stdout);
    if (said) {
      assert.match(output.stdout, /Using the worker that answers on port \d+/);
      return said[1];
    }
    assert.ok(!over, `${output.stdout}${output.stderr}`);
    await sleep(100);
  }
}

/** The page, in a profile of its own, once it knows the server's modules. Whatever it reports as a fault fails the test. */
async function openPage(context, profile = {}, address = url) {
  const session = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...profile });
  const page = await session.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && !/Failed to load resource/.test(message.text()) && faults.push(message.text()));
  context.after(async () => {
    await session.close();
    assert.deepEqual(faults, []);
  });
  await page.goto(address);
  await page.waitForFunction(() => !/^(Connecting…)?$/.test(document.getElementById("connection").textContent));
  return page;
}

const text = (page, id) => page.locator(`#${id}`).innerText();

/** Waits until a run has ended, and gives what the page says of it. */
async function ended(page) {
  await page.waitForFunction(() => !/^(Nothing has run yet\.|Fetching and verifying…|Running…)$/.test(document.getElementById("state").textContent), undefined, {
    timeout: 60_000,
  });
  return text(page, "state");
}

async function runs(page) {
  await page.locator("#state").evaluate((state) => (state.textContent = "Running…"));
  await page.locator("#run").click();
  return ended(page);
}

const write = (page, code) => page.locator("#code").fill(code);
const proofRows = (page) => page.locator("#digests tr").evaluateAll((rows) => rows.map((row) => Array.from(row.children, (cell) => cell.innerText.replace("\n", " "))));

/** The graph digest of a module, as the server states it. */
async function digestOf(specifier) {
  const { headers } = await edge.get(`/api/sandbox-modules/${encodeURIComponent(specifier)}`);
  return headers.get("x-content-digest");
}

test("an example runs, and shows value, picture, digests and timing", options, async (context) => {
  const page = await openPage(context);
  assert.match(await runs(page), /^Done in /);
  const value = JSON.parse(await text(page, "value"));
  assert.equal(value.link, "https://example.org/creme-brulee-other-ferries");
  assert.equal(await page.locator("#pictures img").evaluateAll(([image]) => image.complete && image.naturalWidth > 50), true);
  const specifiers = ["@packferry/qr", "@packferry/text/slug", "@packferry/yaml"];
  assert.deepEqual(
    (await proofRows(page)).map(([module, digest, , proof]) => [module, digest, proof]),
    await Promise.all(specifiers.map(async (specifier) => [`${specifier} 0.1.0`, await digestOf(specifier), "✓ proven"])),
  );
  assert.match(await text(page, "fetching"), /^[\d.]+ m?s$/);
  assert.match(await text(page, "running"), /^[\d.]+ m?s$/);
  assert.equal(await text(page, "requests"), "3");
  assert.match(await text(page, "received"), /^\d+\.\d KB$/);

  await runs(page);
  assert.deepEqual([await text(page, "requests"), await text(page, "received")], ["3, 3 unchanged", "nothing new"]);
  await page.locator("#pin").check();
  await runs(page);
  assert.equal(await text(page, "requests"), "none, all kept");
  assert.match((await proofRows(page))[0][0], /0\.1\.0, kept$/);
});

test("every example runs, in a web worker and on the page", options, async (context) => {
  const page = await openPage(context);
  const titles = await page.locator("#example option").allInnerTexts();
  assert.ok(titles.length >= 5, String(titles));
  for (const where of ["worker", "page"]) {
    await page.locator(`input[value=${where}]`).check();
    for (const title of titles) {
      await page.locator("#example").selectOption({ label: title });
      const denied = title.startsWith("A denial");
      assert.match(await runs(page), denied ? /^The code failed/ : /^Done in /, `${title}: ${await text(page, "outcome")}`);
      if (denied) {
        assert.match(await text(page, "failure"), /"node:fs\/promises" is not a sandbox package this run serves/);
      }
    }
  }
});

test("by keyboard alone: find, pick, write, run, let go", options, async (context) => {
  const page = await openPage(context);
  const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.value || document.activeElement.textContent);
  const tabTo = async (wanted) => {
    for (let presses = 0; presses < 60; presses++) {
      if ((await focused()) === wanted) {
        const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
        assert.equal(outline, "solid", `${wanted} shows its focus`);
        return;
      }
      await page.keyboard.press("Tab");
    }
    assert.fail(`Tab does not reach ${wanted}`);
  };
  await tabTo("filter");
  await page.keyboard.type("ini files");
  await page.keyboard.press("Tab");
  assert.equal(await focused(), "@packferry/ini", "what is hidden is passed over");
  await page.keyboard.press("Space");
  await tabTo("code");
  assert.match(await page.locator("#code").inputValue(), /^import \* as ini from "@packferry\/ini";$/m);
  await page.keyboard.press("Control+A");
  await page.keyboard.type('import { parse } from "@packferry/ini";\nreturn parse("a=1\\n[s]\\nb=2");');
  await page.keyboard.press("Control+Enter");
  assert.match(await ended(page), /^Done/);
  assert.deepEqual(JSON.parse(await text(page, "value")), { a: "1", s: { b: "2" } });
  assert.equal(await text(page, "count"), "1 picked");

  await page.locator("#url").focus();
  await tabTo("@packferry/ini×");
  await page.keyboard.press("Enter");
  assert.equal(await text(page, "count"), "");
  assert.equal(await focused(), "filter");
  assert.doesNotMatch(await page.locator("#code").inputValue(), /@packferry\/ini/);
});

test("an endless loop is stopped by hand, and the page goes on", options, async (context) => {
  const page = await openPage(context);
  await write(page, "for (;;);");
  await page.locator("#run").click();
  await page.waitForFunction(() => document.getElementById("state").textContent === "Running…");
  await page.locator("#stop").click();
  assert.equal(await ended(page), "Stopped.");
  await write(page, 'console.log("still here"); return 1;');
  await runs(page);
  assert.deepEqual([await text(page, "value"), await text(page, "output")], ["1", "still here"]);
});

test("what fails is said, with the pack", options, async (context) => {
  const page = await openPage(context);
  await write(page, 'import { load } from "@packferry/yaml";\nreturn load("a: [");');
  await page.locator("#code").blur();
  assert.match(await runs(page), /^The code failed/);
  assert.match(await text(page, "failure"), /^@packferry\/yaml\nYAMLException: /);

  await page.route("**/api/sandbox-closures/**", (route) => route.fulfill({ status: 403, headers: { "Access-Control-Allow-Origin": "*", "Content-Type": "application/problem+json" } }));
  await page.reload();
  await page.waitForSelector("#modules li");
  assert.match(await runs(page), /^Nothing was run/);
  assert.match(await text(page, "failure"), /^@packferry\/\S+\nSandbox module @packferry\/\S+ is not available to this client\.$/);
});

test("a server that does not answer is named, with what to do", options, async (context) => {
  const dead = `http://127.0.0.1:${await freePort()}`;
  const page = await openPage(context, {}, `${new URL(url).origin}/?server=${dead}`);
  assert.match(await text(page, "connection"), new RegExp(`^No index from ${dead}: .*make dev`));
  await page.locator("#url").fill(new URL(url).searchParams.get("server"));
  await page.locator("#url").press("Enter");
  await page.waitForSelector("#modules li");
  assert.match(await text(page, "connection"), /^\d+ modules$/);
});

const PHONE = { viewport: { width: 320, height: 640 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };
const LOOKS = [
  ["on a desk, in the light", {}],
  ["on a desk, in the dark", { colorScheme: "dark" }],
  ["on a phone, in the light", PHONE],
  ["on a phone, in the dark", { ...PHONE, colorScheme: "dark" }],
];

for (const [look, profile] of LOOKS) {
  test(`readable ${look}: nothing sticks out, and axe finds no fault`, options, async (context) => {
    const page = await openPage(context, profile);
    await runs(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(width, 0, "the page scrolls down only");
    const small = await page.locator("button:visible, select:visible, input:visible").evaluateAll((controls) =>
      controls
        .map((control) => [control.id || control.value || control.textContent, (control.closest("label") ?? control).getBoundingClientRect()])
        .filter(([, { width: wide, height: high }]) => wide < 24 || high < 24)
        .map(([name]) => name),
    );
    assert.deepEqual(small, [], "controls are large enough to hit");
    await page.evaluate(readFileSync(createRequire(join(CLIENT, "package.json")).resolve("axe-core/axe.min.js"), "utf8"));
    const { violations, passes } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]), []);
    assert.ok(passes.some(({ id }) => id === "color-contrast"));
  });
}
