//! Stands before `node scripts/local-kv.mjs` in the killed publish of release.test.mjs: passes everything on, and at
//! the moment that KILL_AT names it kills its process group, publisher and storage included, as a power cut would.
//!
//! KILL_AT is `before <kind>` or `during <kind>`: before the first value of that kind of key is handed to storage, or
//! once it has been handed over and nothing has been confirmed.

import { spawn } from "node:child_process";
import process from "node:process";
import { createInterface } from "node:readline";

const [when, kind] = process.env.KILL_AT.split(" ");
const storage = spawn(process.execPath, process.argv.slice(2), { stdio: ["pipe", "inherit", "inherit"] });
storage.on("close", (status) => process.exit(status ?? 1));

for await (const line of createInterface(process.stdin)) {
  const { op, entries = [] } = JSON.parse(line);
  const isMoment = op === "put" && entries.some(({ key }) => key.startsWith(`${kind}/`));
  if (isMoment && when === "before") {
    process.kill(0, "SIGKILL");
  }
  storage.stdin.write(`${line}\n`, () => isMoment && process.kill(0, "SIGKILL"));
}
storage.stdin.end();
