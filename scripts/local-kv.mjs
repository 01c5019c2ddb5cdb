//! The KV that `wrangler dev` serves, opened for another program: one JSON request a line on standard
//! input, one JSON answer a line on standard output, in the same order.
//!
//!     {"op":"get","key":"k"}             {"value":"<base64>"}, or {"value":null}
//!     {"op":"missing","keys":["k",…]}    {"missing":["k",…]}: the absent ones, in the order given
//!     {"op":"list","prefix":"p"}         {"keys":["k",…]}: all of them, sorted
//!     {"op":"put","entries":[{"key":"k","value":"<base64>"},…]}
//!                                        {"put":n}, once every value is stored
//!     {"op":"delete","keys":["k",…]}     {"deleted":n}
//!     anything that fails                {"error":"…"}; then the process ends with status 1
//!
//! Entries of one request are written in parallel; requests never overlap, so whoever needs an order
//! of writes puts it into separate requests. Values are KV's own bytes, untouched. What is written is
//! the caller's business.
//!
//! The namespace is the one that wrangler derives from its configuration, in the folder that
//! `wrangler dev --persist-to` was given (default: state-dir.mjs). `wrangler dev` may serve from it
//! meanwhile, and sees every write at once; storage that is busy is tried again for some seconds.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";

import { ROOT, stateDirectory } from "./state-dir.mjs";

const USAGE = `usage: node scripts/local-kv.mjs [--persist-to DIR] [--config FILE] [--binding NAME]
Opens wrangler's local KV: JSON requests in, JSON answers out, one a line.`;

/** What one request may ask for. */
const LIMITS = {
  /** Bytes of a line: a value as large as KV takes, in base64, and its neighbours. */
  line: 64 * 1024 * 1024,
  /** Keys of one request. */
  keys: 100_000,
  /** Bytes of a key, and of a value: KV's own limits. */
  key: 512,
  value: 25 * 1024 * 1024,
  /** What is handed to storage at once: keys, and bytes of values (or one larger value). */
  batchKeys: 1000,
  batchBytes: 16 * 1024 * 1024,
  /** Keys that a list may answer, so that the answer fits into one string. */
  listed: 1_000_000,
};

/** A request that cannot be served; its message is the answer. */
class Refused extends Error {}

const { values: options } = readArguments();
// Standard output carries answers only; what libraries print goes the other way.
console.log = console.error;
process.stdout.on("error", () => process.exit(1));

let storage;
try {
  storage = await openStorage(options);
  for await (const line of lines(process.stdin)) {
    await answer(await serve(JSON.parse(line)));
  }
} catch (error) {
  process.exitCode = 1;
  await answer({ error: String(error?.message ?? error) });
} finally {
  await storage?.close();
}
// A caller that failed may keep its end of the pipe open; nothing more is read from it.
process.stdin.destroy();

function readArguments() {
  try {
    return parseArgs({
      options: {
        "persist-to": { type: "string" },
        config: { type: "string" },
        binding: { type: "string" },
      },
    });
  } catch (error) {
    console.error(`${error.message}\n\n${USAGE}`);
    process.exit(2);
  }
}

/** One request to its answer. */
async function serve(request) {
  switch (request?.op) {
    case "get":
      return { value: await storage.get(checkKey(request.key)) };
    case "missing":
      return { missing: await inBatches(checkKeys(request.keys), storage.missing) };
    case "list":
      return { keys: await storage.list(checkPrefix(request.prefix)) };
    case "put":
      return { put: await putAll(checkArray(request.entries, "entries")) };
    case "delete":
      await inBatches(checkKeys(request.keys), storage.delete);
      return { deleted: request.keys.length };
    default:
      throw new Refused(`The operation ${JSON.stringify(request?.op)} is unknown.`);
  }
}

/** Stores all entries, batch after batch. */
async function putAll(entries) {
  let batch = [];
  let bytes = 0;
  for (const { key, value } of entries.map(checkEntry)) {
    if (batch.length === LIMITS.batchKeys || (bytes > 0 && bytes + value.length > LIMITS.batchBytes)) {
      await storage.put(batch);
      batch = [];
      bytes = 0;
    }
    batch.push({ key, value });
    bytes += value.length;
  }
  if (batch.length > 0) {
    await storage.put(batch);
  }
  return entries.length;
}

/** Applies `operation` to runs of keys and joins what it answers. */
async function inBatches(keys, operation) {
  const answers = [];
  for (let at = 0; at < keys.length; at += LIMITS.batchKeys) {
    answers.push(await operation(keys.slice(at, at + LIMITS.batchKeys)));
  }
  return answers.flat();
}

function checkArray(items, name) {
  if (!Array.isArray(items) || items.length > LIMITS.keys) {
    throw new Refused(`"${name}" must be an array of at most ${LIMITS.keys} items.`);
  }
  return items;
}

function checkKeys(keys) {
  return checkArray(keys, "keys").map(checkKey);
}

function checkKey(key) {
  const bytes = typeof key === "string" ? Buffer.byteLength(key) : 0;
  if (bytes === 0 || bytes > LIMITS.key || key === "." || key === "..") {
    throw new Refused(`A key must be a string of 1 to ${LIMITS.key} bytes, not ${excerpt(key)}.`);
  }
  return key;
}

function checkPrefix(prefix) {
  if (typeof prefix !== "string" || Buffer.byteLength(prefix) > LIMITS.key) {
    throw new Refused(`A prefix must be a string of at most ${LIMITS.key} bytes, not ${excerpt(prefix)}.`);
  }
  return prefix;
}

function checkEntry(entry) {
  const key = checkKey(entry?.key);
  // Node decodes what it can and drops the rest; only what encodes back to itself was base64.
  const value = typeof entry.value === "string" ? Buffer.from(entry.value, "base64") : undefined;
  if (value === undefined || value.toString("base64") !== entry.value) {
    throw new Refused(`The value of ${excerpt(key)} is not base64.`);
  }
  if (value.length > LIMITS.value) {
    throw new Refused(`The value of ${excerpt(key)} has ${value.length} bytes; KV takes ${LIMITS.value}.`);
  }
  return { key, value };
}

function excerpt(value) {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** Writes one line and waits until the reader has taken it. */
function answer(value) {
  return new Promise((written) => process.stdout.write(`${JSON.stringify(value)}\n`, written));
}

/** The lines of a byte stream, none longer than the limit. */
async function* lines(stream) {
  let parts = [];
  let length = 0;
  for await (const chunk of stream) {
    let start = 0;
    for (let end; (end = chunk.indexOf(0x0a, start)) !== -1; start = end + 1) {
      parts.push(chunk.subarray(start, end));
      yield checkLength(parts, length + end - start);
      parts = [];
      length = 0;
    }
    parts.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > LIMITS.line) {
      throw new Refused(`A request is one line of at most ${LIMITS.line} bytes.`);
    }
  }
  if (length > 0) {
    throw new Refused("The last request has no line end: it was cut off.");
  }
}

function checkLength(parts, length) {
  if (length > LIMITS.line) {
    throw new Refused(`A request is one line of at most ${LIMITS.line} bytes.`);
  }
  return Buffer.concat(parts, length).toString("utf8");
}

/** Starts workerd on the folder and gives its KV as functions. */
async function openStorage(options) {
  const { Miniflare, Log, LogLevel } = await loadTool("miniflare");
  const persistTo = resolve(options["persist-to"] ?? stateDirectory());
  const namespace = await namespaceId(options);
  mkdirSync(persistTo, { recursive: true });
  const miniflare = new Miniflare({
    cf: false,
    log: new Log(LogLevel.NONE),
    // workerd reports every busy answer; those are tried again, and the last one is our error.
    handleRuntimeStdio: (out, err) => [out, err].forEach((stream) => stream.resume()),
    modules: true,
    scriptPath: join(ROOT, "scripts", "local-kv-worker.mjs"),
    compatibilityDate: "2026-04-01",
    kvNamespaces: { KV: namespace },
    // Where `wrangler dev --persist-to` puts its KV.
    kvPersist: join(persistTo, "v3", "kv"),
  });
  await miniflare.ready;

  async function call(operation, items, values = []) {
    const head = Buffer.from(JSON.stringify(items));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(head.length);
    const response = await miniflare.dispatchFetch(`http://local-kv/${operation}`, {
      method: "POST",
      body: Buffer.concat([length, head, ...values]),
    });
    if (response.status === 500) {
      throw new Error(`Local KV in ${persistTo} failed to ${operation}: ${await response.text()}`);
    }
    return response;
  }

  return {
    async get(key) {
      const response = await call("get", [key]);
      return response.ok ? Buffer.from(await response.arrayBuffer()).toString("base64") : null;
    },
    async missing(keys) {
      return (await call("missing", keys)).json();
    },
    async list(prefix) {
      const keys = [];
      for (let cursor; cursor !== null; ) {
        const page = await (await call("list", [{ prefix, cursor }])).json();
        keys.push(...page.keys);
        cursor = page.cursor;
        if (keys.length > LIMITS.listed) {
          throw new Refused(`More than ${LIMITS.listed} keys begin with ${excerpt(prefix)}.`);
        }
      }
      return keys;
    },
    async put(entries) {
      const items = entries.map(({ key, value }) => ({ key, size: value.length }));
      await call("put", items, entries.map(({ value }) => value));
    },
    async delete(keys) {
      await call("delete", keys);
    },
    close: () => miniflare.dispose(),
  };
}

/** The id under which wrangler keeps the binding's namespace. */
async function namespaceId({ config, binding = "KV" }) {
  const { unstable_getMiniflareWorkerOptions: miniflareOptions } = await loadTool("wrangler");
  const file = resolve(config ?? join(ROOT, "wrangler.toml"));
  const id = miniflareOptions(file).workerOptions.kvNamespaces?.[binding]?.id;
  if (id === undefined) {
    throw new Refused(`${file} has no KV namespace bound to ${binding}.`);
  }
  return id;
}

/** A pinned tool out of node_modules, or a message that says how to get it. */
async function loadTool(name) {
  try {
    return await import(name);
  } catch (error) {
    throw new Refused(`${name} cannot be loaded (${error.message}). Run: npm ci`);
  }
}
