//! scripts/setup.sh and scripts/wasm-toolchain.sh against programs that stand in for rustc, rustup and npm:
//! what is installed when, that nothing is installed twice, and what is said where something is missing.
//! Debian's way needs root and minutes; it is not taken here.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const FOLDER = mkdtempSync(join(tmpdir(), "packferry-setup-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

/** What the scripts may call besides the stand-ins. apt-get is not among it. */
const SYSTEM = ["bash", "cat", "cksum", "cp", "cut", "dirname", "env", "mkdir", "rm", "sed"];

/** What the HTTP linter is made of. */
const LINTER = "tests/http-lint/requirements.txt";

/** Each stand-in notes its call; toolchains are folders, with a standard library where they have the target. */
const STAND_INS = {
  cargo: "",
  sleep: "",
  timeout: 'shift; exec "$@"',
  node: 'echo "${NODE_VERSION-v20.20.2}"',
  npm: `echo "npm $1 $2 in \${PWD##*/}" >>"$MACHINE/calls"
[ -z "\${NPM_FAILS-}" ] || exit 1
mkdir -p node_modules`,
  python3: `case "$1" in
-c) exit "\${PYTHON_LACKS-0}" ;;
esac
echo "python3 $1 $2" >>"$MACHINE/calls"
case "$2" in
venv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python3" ;;
pip) [ -z "\${PIP_FAILS-}" ] ;;
esac`,
  rustc: `case "$1" in
--version) echo "rustc \${RUST_VERSION-1.95.0} (0 2026-01-01)" ;;
*) echo "$MACHINE/toolchains/\${RUSTUP_TOOLCHAIN:-default}" ;;
esac`,
  rustup: `echo "rustup $*" >>"$MACHINE/calls"
[ -z "\${RUSTUP_FAILS-}" ] || exit 1
mkdir -p "$MACHINE/toolchains/default"
: >"$MACHINE/toolchains/default/libstd-0.rlib"`,
};

/** A machine with the stand-ins, and a copy of what setup reads; `toolchains` have the target already. */
function machine({ toolchains = [], without = [] }) {
  const at = mkdtempSync(join(FOLDER, "machine-"));
  const bin = join(at, "bin");
  const root = join(at, "repository");
  mkdirSync(bin);
  for (const name of SYSTEM) {
    const found = process.env.PATH.split(delimiter).map((folder) => join(folder, name)).find(existsSync);
    symlinkSync(found, join(bin, name));
  }
  for (const [name, script] of Object.entries(STAND_INS)) {
    if (!without.includes(name)) {
      writeFileSync(join(bin, name), `#!/usr/bin/env bash\n${script}\n`, { mode: 0o755 });
    }
  }
  for (const name of toolchains) {
    mkdirSync(join(at, "toolchains", name), { recursive: true });
    writeFileSync(join(at, "toolchains", name, "libstd-0.rlib"), "");
  }
  const read = ["Cargo.toml", "package-lock.json", "packs/package-lock.json", "client/package-lock.json", LINTER, "scripts"];
  for (const file of read) {
    cpSync(join(ROOT, file), join(root, file), { recursive: true });
  }
  writeFileSync(join(at, "calls"), "");
  return { at, root, bin };
}

/** Runs a script; gives its status, what it said, and whom it called. */
function run({ at, root, bin }, script, environment, args = []) {
  writeFileSync(join(at, "calls"), "");
  const { status, stdout, stderr } = spawnSync(join(root, "scripts", script), args, {
    env: { PATH: bin, MACHINE: at, ...environment },
    encoding: "utf8",
    timeout: 60_000,
  });
  const calls = readFileSync(join(at, "calls"), "utf8").split("\n").filter(Boolean);
  return { status, said: stdout + stderr, calls };
}

const RUSTUP = "rustup target add wasm32-unknown-unknown";
const NPM = ["npm ci --ignore-scripts in repository", "npm ci --ignore-scripts in packs"];

/** Runs of scripts/wasm-toolchain.sh: on which machine, and what comes of it. */
const TOOLCHAINS = [
  { name: "the default toolchain has the target", toolchains: ["default"], status: 0, calls: [] },
  { name: "a linked toolchain has it", toolchains: ["packferry-wasm"], status: 0, calls: [] },
  { name: "rustup adds it", status: 0, calls: [RUSTUP] },
  {
    name: "rustup cannot add it, and this is not Debian",
    environment: { RUSTUP_FAILS: "1" },
    status: 1,
    calls: [RUSTUP, RUSTUP, RUSTUP],
    says: /is missing\. Run: rustup target add wasm32-unknown-unknown/,
  },
  {
    name: "there is no rustup",
    without: ["rustup"],
    status: 1,
    calls: [],
    says: /is missing\. Run: rustup target add wasm32-unknown-unknown/,
  },
];

for (const { name, environment, status, calls, says, ...parts } of TOOLCHAINS) {
  test(`wasm32 toolchain: ${name}`, () => {
    const result = run(machine(parts), "wasm-toolchain.sh", environment);
    assert.equal(result.status, status, result.said);
    assert.deepEqual(result.calls, calls);
    assert.match(result.said, says ?? /^(==> .*\n)?$/);
  });
}

test("setup installs each thing once, and again when a lock file changes", () => {
  const fresh = machine({});
  assert.deepEqual(run(fresh, "setup.sh"), {
    status: 0,
    said:
      "==> Adding the target wasm32-unknown-unknown with rustup (about 10 seconds)\n" +
      "==> Installing the tools wrangler, esbuild and wasm-opt from npm (about 10 seconds)\n" +
      "==> Installing the libraries of the starter packs from npm (about 10 seconds)\n",
    calls: [RUSTUP, ...NPM],
  });
  assert.deepEqual(run(fresh, "setup.sh"), { status: 0, said: "", calls: [] });
  appendFileSync(join(fresh.root, "packs", "package-lock.json"), "\n");
  assert.deepEqual(run(fresh, "setup.sh").calls, [NPM[1]]);
});

test("an installation that failed is tried again", () => {
  const fresh = machine({ toolchains: ["default"] });
  const failed = run(fresh, "setup.sh", { NPM_FAILS: "1" });
  assert.equal(failed.status, 1);
  assert.match(failed.said, /npm could not install the tools .* then run make again/);
  assert.deepEqual(run(fresh, "setup.sh").calls, NPM);
});

test("what only tests need is installed once, and without Python the linter is left out", () => {
  const python = ["python3 -m venv", "python3 -m pip"];
  const tests = (on, environment) => run(on, "setup.sh", environment, ["tests"]);
  const fresh = machine({ toolchains: ["default"] });
  assert.deepEqual(tests(fresh).calls, [...NPM, "npm ci --ignore-scripts in client", ...python]);
  assert.deepEqual(tests(fresh), { status: 0, said: "", calls: [] });
  appendFileSync(join(fresh.root, LINTER), "\n");
  const failed = tests(fresh, { PIP_FAILS: "1" });
  assert.deepEqual([failed.status, failed.calls], [1, python]);
  assert.match(failed.said, /pip could not install the HTTP linter\. .* then run make again/);
  assert.deepEqual(tests(fresh).calls, python);

  for (const [parts, environment] of [[{ without: ["python3"] }, {}], [{}, { PYTHON_LACKS: "1" }]]) {
    const { status, said, calls } = tests(machine({ toolchains: ["default"], ...parts }), environment);
    assert.equal(status, 0, said);
    assert.match(said, /==> Python 3\.11 or newer with venv is missing: the HTTP linter will not run\n$/);
    assert.ok(!calls.some((call) => call.startsWith("python3")));
  }
});

/** Machines that lack what setup does not install, and what it says. */
const LACKING = [
  [{ without: ["cargo"] }, {}, "error: Rust is missing. Install it: https://rustup.rs\n"],
  [{}, { RUST_VERSION: "1.94.2" }, "error: Rust 1.94.2 is too old, 1.95 is needed. Run: rustup update stable\n"],
  [{ without: ["npm"] }, {}, "error: Node is missing. Install version 20.18.1 or newer with npm: https://nodejs.org\n"],
  [{}, { NODE_VERSION: "v18.20.0" }, "error: Node v18.20.0 is too old. Install version 20.18.1 or newer: https://nodejs.org\n"],
];

for (const [parts, environment, said] of LACKING) {
  test(said.trim(), () => {
    const result = run(machine({ toolchains: ["default"], ...parts }), "setup.sh", environment);
    assert.deepEqual(result, { status: 1, said, calls: [] });
  });
}

test("newer versions are fine", () => {
  const versions = { RUST_VERSION: "2.0.0-nightly", NODE_VERSION: "v100.1.0" };
  assert.equal(run(machine({ toolchains: ["default"] }), "setup.sh", versions).status, 0);
});
