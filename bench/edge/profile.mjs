//! Where the CPU time of a warm answer goes: V8's profile of the worker under wrk, by what was running, written into
//! bench/README.md. Needs what run.mjs needs.
//!
//!     node --experimental-websocket bench/edge/profile.mjs [--seconds 5] [--dry]

import { spawn } from "node:child_process";
import process from "node:process";
import { parseArgs } from "node:util";

import { PATHS, get, makeFolder, prepareRelease, startOurs, writeTable } from "./ours.mjs";

const PORT = 9120;
/** Microseconds between two looks at what is running. */
const INTERVAL = 200;

const { values: options } = parseArgs({
  options: { seconds: { type: "string", default: "5" }, dry: { type: "boolean", default: false } },
});
const folder = makeFolder();
prepareRelease(folder);
const ours = await startOurs({ folder, port: PORT, args: [`--inspector-addr=127.0.0.1:${PORT + 1}`] });
const inspector = await connect(`ws://127.0.0.1:${PORT + 1}/main`);
const { headers } = await get(ours.url(PATHS.eight));
const CASES = [
  ["8 KB module", PATHS.eight, []],
  ["304", PATHS.eight, ["--header", `If-None-Match: ${headers.etag}`]],
  ["404", PATHS.absent, []],
];

/** By the names of V8: native functions have no file, WebAssembly has a scheme of its own, the rest is the entry module's. */
const KINDS = [
  ["the runtime outside JavaScript: HTTP, sockets, scheduling", ({ functionName }) => functionName === "(program)"],
  ["garbage collection", ({ functionName }) => functionName === "(garbage collector)"],
  ["making the Response", ({ functionName, url }) => functionName === "Response" && url === ""],
  ["other objects of the runtime: url, method and headers of the request", ({ url }) => url === ""],
  ["Rust: which answer it is, and whether it holds", ({ url }) => url.startsWith("wasm:")],
  ["the entry module and the glue to Rust", () => true],
];

const columns = [];
for (const [name, path, more] of CASES) {
  await get(ours.url(path));
  columns.push([name, await profile(ours.url(path), more)]);
}
const lines = [
  `| share of the CPU time of V8's thread | ${columns.map(([name]) => name).join(" | ")} |`,
  `|---|${"---|".repeat(columns.length)}`,
  ...KINDS.map(([kind]) => `| ${kind} | ${columns.map(([, shares]) => `${(100 * shares.get(kind)).toFixed(1)}%`).join(" | ")} |`),
];
console.log(lines.join("\n"));
if (!options.dry) {
  writeTable("profile", lines.join("\n"));
}
process.exit(0);

/** The share of each kind in what was running while wrk asked for `url`; waiting is left out. */
async function profile(url, more) {
  await inspector.ask("Profiler.start");
  const wrk = spawn("wrk", ["-t1", "-c16", `-d${options.seconds}s`, ...more, url], { stdio: "ignore" });
  await new Promise((resolve) => wrk.once("close", resolve));
  const { profile: taken } = await inspector.ask("Profiler.stop");
  const frames = new Map(taken.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const times = new Map(KINDS.map(([kind]) => [kind, 0]));
  let total = 0;
  for (const [at, id] of taken.samples.entries()) {
    const frame = frames.get(id);
    if (frame.functionName !== "(idle)") {
      const [kind] = KINDS.find(([, is]) => is(frame));
      times.set(kind, times.get(kind) + taken.timeDeltas[at]);
      total += taken.timeDeltas[at];
    }
  }
  return new Map([...times].map(([kind, time]) => [kind, time / total]));
}

/** The inspector of workerd: `ask` calls one of its methods. */
async function connect(url) {
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error(`no inspector at ${url}`)));
  });
  const waiting = new Map();
  socket.addEventListener("message", ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.(result);
  });
  const ask = (method, params = {}) =>
    new Promise((resolve) => {
      const id = waiting.size + 1;
      waiting.set(id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
  await ask("Profiler.enable");
  await ask("Profiler.setSamplingInterval", { interval: INTERVAL });
  return { ask };
}
