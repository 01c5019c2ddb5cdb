//! scripts/local-kv.mjs through its pipes, on real local KV: what every operation answers, what is
//! refused, and that another process sees what was written.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("../scripts/local-kv.mjs", import.meta.url));
const FOLDER = mkdtempSync(join(tmpdir(), "packferry-local-kv-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

/** A running script: `ask` sends one request, `end` closes its input and gives its exit status. */
function open(...options) {
  const child = spawn(process.execPath, [SCRIPT, "--persist-to", FOLDER, ...options], {
    stdio: ["pipe", "pipe", "inherit"],
    timeout: 120_000,
  });
  child.stdin.on("error", () => {});
  const exited = new Promise((resolve) => child.on("close", resolve));
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  const read = async () => JSON.parse((await answers.next()).value);
  return {
    async ask(request) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      return read();
    },
    async send(text) {
      child.stdin.end(text);
      return read();
    },
    end() {
      child.stdin.end();
      return exited;
    },
  };
}

const base64 = (bytes) => Buffer.from(bytes).toString("base64");

test("every operation answers as documented, and another process sees the writes", async () => {
  const large = base64(randomBytes(25 * 1024 * 1024));
  const entries = [
    { key: "blob/b", value: base64([0, 255, 10, 13]) },
    { key: "blob/a", value: "" },
    { key: "channel/stable", value: base64("one") },
    { key: "large", value: large },
  ];
  const rows = [
    [{ op: "get", key: "blob/b" }, { value: null }],
    [{ op: "put", entries }, { put: 4 }],
    [{ op: "get", key: "blob/b" }, { value: base64([0, 255, 10, 13]) }],
    [{ op: "get", key: "blob/a" }, { value: "" }],
    [{ op: "get", key: "large" }, { value: large }],
    [{ op: "missing", keys: ["z", "blob/a", "blob", "y"] }, { missing: ["z", "blob", "y"] }],
    [{ op: "list", prefix: "blob/" }, { keys: ["blob/a", "blob/b"] }],
    [{ op: "put", entries: [{ key: "channel/stable", value: base64("two") }] }, { put: 1 }],
    [{ op: "delete", keys: ["blob/a", "absent"] }, { deleted: 2 }],
    [{ op: "list", prefix: "" }, { keys: ["blob/b", "channel/stable", "large"] }],
    [{ op: "put", entries: [] }, { put: 0 }],
  ];
  const writer = open();
  const reader = open();
  for (const [request, answer] of rows) {
    assert.deepEqual(await writer.ask(request), answer, JSON.stringify(request).slice(0, 100));
  }
  assert.deepEqual(await reader.ask({ op: "get", key: "channel/stable" }), { value: base64("two") });
  assert.equal(await writer.end(), 0);
  assert.equal(await reader.end(), 0);
});

test("two writers at once both succeed, and a list is complete beyond one page", async () => {
  const names = ["left", "right"];
  const write = async (name) => {
    const writer = open();
    for (let round = 0; round < 2; round++) {
      const entries = Array.from({ length: 600 }, (_, index) => ({
        key: `${name}/${round}-${index}`,
        value: base64(`${name} ${round} ${index}`),
      }));
      assert.deepEqual(await writer.ask({ op: "put", entries }), { put: 600 });
    }
    const { keys } = await writer.ask({ op: "list", prefix: `${name}/` });
    assert.equal(keys.length, 1200);
    assert.deepEqual(await writer.ask({ op: "missing", keys }), { missing: [] });
    assert.equal(await writer.end(), 0);
  };
  await Promise.all(names.map(write));
});

const REFUSED = [
  ["an unknown operation", '{"op":"drop"}\n', /operation "drop" is unknown/],
  ["no object", "null\n", /operation undefined is unknown/],
  ["no JSON", "put it\n", /JSON/],
  ["a key that is too long", `{"op":"get","key":"${"k".repeat(513)}"}\n`, /1 to 512 bytes/],
  ["a key that is no string", '{"op":"missing","keys":[1]}\n', /1 to 512 bytes, not 1/],
  ["keys that are no array", '{"op":"delete","keys":"a"}\n', /must be an array/],
  ["a value that is not base64", '{"op":"put","entries":[{"key":"k","value":"YQ"}]}\n', /not base64/],
  ["an entry without a value", '{"op":"put","entries":[{"key":"k"}]}\n', /not base64/],
  ["a value over KV's limit", `{"op":"put","entries":[{"key":"k","value":"${"A".repeat(34952536)}"}]}\n`, /KV takes/],
  ["a line that was cut off", '{"op":"list","prefix":""}', /cut off/],
  ["a line that never ends", "x".repeat(64 * 1024 * 1024 + 1), /at most/],
];

test("a bad request is one error and ends the process", { concurrency: 2 }, async (context) => {
  await Promise.all(
    REFUSED.map(([name, input, message]) =>
      context.test(name, async () => {
        const script = open();
        assert.match((await script.send(input)).error, message);
        assert.equal(await script.end(), 1);
      }),
    ),
  );
});

test("a binding that the configuration lacks is an error", async () => {
  const script = open("--binding", "ABSENT");
  assert.match((await script.send("")).error, /no KV namespace bound to ABSENT/);
  assert.equal(await script.end(), 1);
});
