//! Starting what is measured: workerd with one worker and KV in memory, or a Node server; and what a process has used.

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";

/**
 * The runtime itself: `workerd` in node_modules/.bin is a program of Node that starts it as a child, of which neither CPU nor memory
 * would be measured.
 */
const WORKERD = createRequire(new URL("../../package.json", import.meta.url)).resolve(
  `@cloudflare/workerd-${process.platform}-${process.arch === "x64" ? "64" : process.arch}/bin/workerd`,
);
const COMPATIBILITY_DATE = "2026-04-01";
/** Clock ticks a second in /proc. */
const TICKS = 100;

/** KV in memory: a service of workerd itself. */
const KV_IN_MEMORY = '(name = "kv", worker = .kv)';
const KV_WORKER = `const kv :Workerd.Worker = (
  compatibilityDate = "${COMPATIBILITY_DATE}",
  modules = [ (name = "kv.js", esModule = embed "kv.js"), (name = "values.json", json = embed "values.json") ],
);
`;

/**
 * Starts workerd in `folder` with the worker whose modules are `modules` (Cap'n Proto), and the service `kv` behind it and, if it
 * asks for one, behind its cache. `bindings` and `settings` are more of its configuration, `args` of the command line.
 */
export async function startWorkerd({ folder, name, modules, vars = {}, port, kv = KV_IN_MEMORY, ...more }) {
  const { namespace = "KV", bindings: others = [], settings = [], args = [] } = more;
  const texts = Object.entries(vars).map(([key, value]) => `(name = "${key}", text = "${value}")`);
  const bindings = [`(name = "${namespace}", kvNamespace = "kv")`, ...texts, ...others];
  const config = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .main), ${kv} ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ],
);
const main :Workerd.Worker = (
  compatibilityDate = "${COMPATIBILITY_DATE}",
  modules = [ ${modules.join(", ")} ],
  bindings = [ ${bindings.join(", ")} ],
  ${settings.map((setting) => `${setting},`).join("\n  ")}
);
${kv === KV_IN_MEMORY ? KV_WORKER : ""}`;
  const file = join(folder, `${name}.capnp`);
  writeFileSync(file, config);
  return started(spawn(WORKERD, ["serve", ...args, file], { stdio: ["ignore", "ignore", "inherit"] }), name, port);
}

/** Starts a Node program that listens on `port`. */
export function startNode(program, args, name, port) {
  const child = spawn(process.execPath, [program, ...args, String(port)], { stdio: ["ignore", "ignore", "inherit"] });
  return started(child, name, port);
}

async function started(child, name, port) {
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  child.once("exit", () => process.removeListener("exit", end));
  for (let tries = 0; tries < 2000; tries += 1) {
    if (await accepts(port)) {
      return {
        name,
        port,
        url: (path) => `http://127.0.0.1:${port}${path}`,
        cpu: () => cpuSeconds(child.pid),
        memory: () => residentBytes(child.pid),
        stop: () => new Promise((resolve) => child.once("exit", resolve) && end()),
      };
    }
    await pause(5);
  }
  throw new Error(`${name} does not listen on ${port}`);
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true) || socket.destroy());
    socket.once("error", () => resolve(false));
  });
}

function cpuSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 13);
  return (Number(user) + Number(system)) / TICKS;
}

function residentBytes(pid) {
  return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096;
}
