//! Local KV, opened as the publisher opens it: for tests that look into storage or damage it.

import { spawn } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";

import { ROOT } from "./project.mjs";

/** Opens the KV of `state`. Values are bytes; an absent one is null. */
export function openStorage(state) {
  const child = spawn(process.execPath, [join(ROOT, "scripts", "local-kv.mjs"), "--persist-to", state], {
    stdio: ["pipe", "pipe", "inherit"],
    timeout: 120_000,
  });
  const ended = new Promise((resolve) => child.on("close", resolve));
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  async function ask(request) {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await answers.next();
    const answer = done ? { error: "it ended" } : JSON.parse(value);
    if (answer.error !== undefined) {
      throw new Error(`local KV: ${answer.error}`);
    }
    return answer;
  }
  return {
    async get(key) {
      const { value } = await ask({ op: "get", key });
      return value === null ? null : Buffer.from(value, "base64");
    },
    async put(key, bytes) {
      await ask({ op: "put", entries: [{ key, value: Buffer.from(bytes).toString("base64") }] });
    },
    delete: (key) => ask({ op: "delete", keys: [key] }),
    close() {
      child.stdin.end();
      return ended;
    },
  };
}
