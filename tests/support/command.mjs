//! Runs other programs: always with an end in time, and with everything that they started.

import { spawn } from "node:child_process";
import process from "node:process";

import { PACKFERRY, ROOT, WRANGLER, requirePackferry } from "./project.mjs";

/** Variables that keep the tools quiet and off the network. */
export const QUIET = { CLOUDFLARE_CF_FETCH_ENABLED: "false", WRANGLER_SEND_METRICS: "false", NO_COLOR: "1", CI: "1" };

/**
 * Starts a program as the leader of a process group, with `input` on its standard input.
 * `ended` gives {status, signal, stdout, stderr}; `kill` ends the whole group.
 */
export function start(program, args, { cwd = ROOT, env = {}, input, timeout = 60_000 } = {}) {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...QUIET, ...env },
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    detached: true,
  });
  child.stdin?.on("error", () => {}).end(input);
  const output = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"]) {
    child[stream].setEncoding("utf8").on("data", (text) => (output[stream] += text));
  }
  let late = false;
  let over = false;
  const kill = (signal = "SIGKILL") => {
    // Once it has ended, its number may be another's.
    if (over) {
      return;
    }
    try {
      process.kill(-child.pid, signal);
    } catch {
      // The group is gone already.
    }
  };
  const alarm = setTimeout(() => {
    late = true;
    kill();
  }, timeout);
  // A group of its own outlives us and does not get the terminal's interrupt: it ends here.
  const killAtExit = () => kill();
  process.once("exit", killAtExit);
  const ended = new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (status, signal) => {
      over = true;
      clearTimeout(alarm);
      process.removeListener("exit", killAtExit);
      if (late) {
        reject(new Error(`${program} ${args.join(" ")} took over ${timeout} ms\n${output.stdout}${output.stderr}`));
      } else {
        resolve({ status, signal, ...output });
      }
    });
  });
  // Whoever waits sees the failure; who only kills does not have to.
  ended.catch(() => {});
  return { child, output, ended, kill };
}

/** Runs a program to its end, and fails where it does not end with `expect`. */
export async function run(program, args, { expect = 0, ...options } = {}) {
  const ended = await start(program, args, options).ended;
  if (ended.status !== expect) {
    const how = ended.signal ?? `status ${ended.status}, not ${expect}`;
    throw new Error(`${program} ${args.join(" ")} ended with ${how}\n${ended.stdout}${ended.stderr}`);
  }
  return ended;
}

/** Runs `packferry` with these arguments. */
export function packferry(args, options) {
  requirePackferry();
  return run(PACKFERRY, args, options);
}

/** Runs the pinned wrangler with these arguments. */
export function wrangler(args, options) {
  return run(process.execPath, [WRANGLER, ...args], options);
}
