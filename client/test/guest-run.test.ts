//! Runs in the guest in Node that no shared case can say: the application's own modules, workers, budgets, aborts, errors.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { ResolvedModule } from "../src/index.js";
import type { WasmContract } from "../src/contract.js";
import { GuestError, type GuestOptions, type GuestResult, runInGuest } from "../src/guest/node.js";
import { guestWith } from "../src/guest/run.js";
import type { StartWorker } from "../src/guest/workers.js";
import { startNodeWorker } from "../src/guest/workers-node.js";
import { readBinary } from "../src/guest/wasm-binary.js";
import { utf8 } from "./cases.js";
import { echoHost } from "./guest-cases.js";
import { build, cases, resolutionOf } from "./guest-fixture.js";

const none = { modules: [] };

/** Asserts that a run fails. */
async function fails(run: Promise<GuestResult>, kind: string, message: string | RegExp): Promise<GuestError> {
  let failure: unknown;
  await assert.rejects(run, (error) => {
    failure = error;
    return true;
  });
  assert(failure instanceof GuestError, String(failure));
  assert.equal(failure.kind, kind);
  if (typeof message === "string") assert.equal(failure.message, message);
  else assert.match(failure.message, message);
  return failure;
}

// The platform's modules, as an application writes them: `fixtures/guest/` has what holds in every runtime.

const platform = {
  "@nodetool-ai/sandbox-nodetool/media": {
    exports: ["read"],
    call: async (exportName: string, args: unknown[]) => ({ exportName, args }),
  },
};
const capability = `import { read } from "@nodetool-ai/sandbox-nodetool/media";\n`;

void test("a platform module is served if the application registers it", async () => {
  const { value } = await runInGuest(`${capability}return read("a", { b: [1] });`, none, { platform });
  assert.deepEqual(value, { exportName: "read", args: ["a", { b: [1] }] });
  const denial = '"@nodetool-ai/sandbox-nodetool" is not a sandbox package this run serves';
  await fails(runInGuest('import "@nodetool-ai/sandbox-nodetool";', none, { platform }), "thrown", new RegExp(denial));
  await fails(runInGuest(capability, none), "thrown", /is not a sandbox package this run serves/);
});

const packCode = (source: string): ResolvedModule => ({
  specifier: "@acme/uses",
  packName: "@acme/uses",
  contentDigest: "0".repeat(64),
  moduleId: "main.js",
  kind: "js",
  graph: [{ id: "main.js", kind: "js", source, dependencies: [], internal: false }],
  source,
});

void test("a pack may import a platform module, and no bridge", async () => {
  const pack = packCode(`${capability}export const go = () => read();`);
  const { value } = await runInGuest('import { go } from "@acme/uses";\nreturn go();', { modules: [pack] }, { platform });
  assert.deepEqual(value, { exportName: "read", args: [] });
  const thief = packCode('export * from "nodetool:capability-bridge";');
  const failure = await fails(runInGuest('import "@acme/uses";', { modules: [thief] }, { platform }), "thrown", /private to the sandbox's generated capability facades/);
  assert.equal(failure.packName, "@acme/uses");
});

void test("names of exports are identifiers before they become code", async () => {
  for (const name of ["a-b", "await", "x(){}; evil; function y"]) {
    const bad = { "@nodetool-ai/sandbox-nodetool": { exports: [name], call: () => 1 } };
    await fails(runInGuest("return 1;", none, { platform: bad }), "thrown", /cannot export/);
  }
});

// Host modules.

const echo = resolutionOf(["echo"]);

void test("host modules answer in their own time, and what they throw is thrown", async () => {
  const hosts = { echo: { ...echoHost.echo, pack: "@acme/echo", exports: ["echo", "fail"], call: (name: string, args: unknown[]) => new Promise((resolve, reject) => setTimeout(() => (name === "echo" ? resolve(args) : reject(new Error("later"))), 20)) } };
  const code = `import { echo, fail } from "@acme/echo";
    const all = await Promise.all([echo(1), echo(2), fail().catch((error) => error.message)]);
    return all;`;
  assert.deepEqual((await runInGuest(code, await echo, { hosts })).value, [[1], [2], "later"]);
});

void test("a host call that never ends ends with the run", async () => {
  const hosts = { echo: { pack: "@acme/echo", exports: ["echo"], call: () => new Promise(() => undefined) } };
  await fails(runInGuest('import { echo } from "@acme/echo";\nreturn echo();', await echo, { hosts, deadlineMs: 200 }), "deadline", /interrupted/);
});

void test("what a host gives back crosses as JSON", async () => {
  const values: [unknown, unknown][] = [[undefined, null], [null, null], [1.5, 1.5], ["x", "x"], [[1, { a: null }], [1, { a: null }]], [new Date(0), "1970-01-01T00:00:00.000Z"], [() => 1, null]];
  for (const [given, seen] of values) {
    const hosts = { echo: { pack: "@acme/echo", exports: ["echo"], call: () => given } };
    assert.deepEqual((await runInGuest('import { echo } from "@acme/echo";\nreturn (await echo()) ?? null;', await echo, { hosts })).value, seen);
  }
});

void test("a host module that is not ours, or of another pack, is not run", async () => {
  await fails(runInGuest("return 1;", await echo), "thrown", /binds no host module "echo" to @acme\/echo/);
  const hosts = { echo: { ...echoHost.echo, pack: "@other/echo", exports: ["echo"], call: () => 1 } };
  await fails(runInGuest("return 1;", await echo, { hosts }), "thrown", /binds no host module/);
});

// WASM.

const wasm = (name: string): ReturnType<typeof resolutionOf> => resolutionOf([name]);
const spin = (module: string, count: number): string =>
  `import { spin } from "${module}";\nconst late = (error) => error.message;\nreturn Promise.all(Array.from({ length: ${count} }, () => spin().catch(late)));`;

/** The module of the cases with other limits. */
async function limited(limits: WasmContract["limits"]): Promise<ResolvedModule> {
  const [module] = (await wasm("wasm")).modules;
  assert(module?.wasm);
  const { limits: _, ...contract } = module.wasm;
  return { ...module, wasm: { ...contract, ...(limits && { limits }) } };
}

void test("an endless call costs itself and nothing else", async () => {
  const code = `import * as math from "@acme/wasm";
    const late = math.spin().catch((error) => error.message);
    return [await math.add(1, 2), await late, await math.add(3, 4)];`;
  const { value } = await runInGuest(code, { modules: [await limited({ callTimeoutMs: 200 })] });
  assert.match(JSON.stringify(value), /^\[3,"@acme\/wasm: spin was stopped after \d+ ms",7\]$/);
});

/** Starts threads, and notes how many of them were at a call at once. */
function watched(): { start: StartWorker; most: () => number } {
  let busy = 0;
  let most = 0;
  const start: StartWorker = (onReply, onError) => {
    let calls = 0;
    const idle = (): void => {
      busy -= calls;
      calls = 0;
    };
    const worker = startNodeWorker((reply) => (idle(), onReply(reply)), onError);
    return {
      post(request) {
        calls++;
        most = Math.max(most, ++busy);
        worker.post(request);
      },
      terminate: () => (idle(), worker.terminate()),
    };
  };
  return { start, most: () => most };
}

const concurrency: [number, number, number][] = [
  [1, 2, 1],
  [2, 2, 2],
  [2, 4, 2],
];
for (const [callConcurrency, calls, atOnce] of concurrency) {
  void test(`of ${calls} calls, ${atOnce} run at once where ${callConcurrency} may`, async () => {
    const module = await limited({ callTimeoutMs: 1500, callConcurrency });
    const { start, most } = watched();
    const { value } = await guestWith(start)(spin("@acme/wasm", calls), { modules: [module] }, { deadlineMs: 60_000 });
    assert.equal((value as string[]).filter((text) => text.includes("was stopped after")).length, calls);
    assert.equal(most(), atOnce);
  });
}

void test("time is reserved when a call starts, so calls at once share the run's", async () => {
  const module = await limited({ callTimeoutMs: 300, callConcurrency: 2, wallClockMs: 400 });
  const { value } = await runInGuest(spin("@acme/wasm", 3), { modules: [module] });
  const took = (value as string[]).map((text) => Number(/stopped after (\d+) ms/.exec(text)?.[1] ?? NaN));
  assert(took[0] !== undefined && took[0] >= 295, String(value));
  assert(took[1] !== undefined && took[1] >= 95, String(value));
  assert.match((value as string[])[2] ?? "", /take longer than 400 ms/);
});

void test("many runs at once share the workers there may be", async () => {
  const module = await limited({ callTimeoutMs: 100 });
  const runs = Array.from({ length: 6 }, () => runInGuest(spin("@acme/wasm", 2), { modules: [module] }, { deadlineMs: 20_000 }));
  for (const { value } of await Promise.all(runs)) assert.match(JSON.stringify(value), /stopped.*stopped/);
});

void test("where no worker can be started, every call says so and none waits for another", async () => {
  const module = await limited({});
  const code = 'import { add } from "@acme/wasm";\nconst late = (error) => error.message;\nreturn Promise.all(Array.from({ length: 6 }, () => add(1, 2).catch(late)));';
  const forbidden = guestWith(() => {
    throw new Error("not on this page");
  });
  const { value } = await forbidden(code, { modules: [module] });
  assert.deepEqual(new Set(value as string[]), new Set(["@acme/wasm: the worker for WASM calls could not be started: not on this page"]));
  const mute = guestWith((_, onError) => {
    setTimeout(() => onError(new Error("no such script")));
    return { post: () => undefined, terminate: () => undefined };
  });
  assert.match(JSON.stringify((await mute(code, { modules: [module] })).value), /could not be started: no such script/);
  assert.deepEqual((await runInGuest(code, { modules: [module] })).value, [3, 3, 3, 3, 3, 3], "their places are free again");
});

// Binaries by hand.

const u8 = (...bytes: number[]): number[] => [bytes.length, ...bytes];
const section = (id: number, ...bytes: number[]): number[] => [id, ...u8(...bytes)];
const name = (text: string): number[] => u8(...utf8(text));
const HEAD = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
const TYPE = section(1, 1, 0x60, ...u8(0x7f), ...u8(0x7c));
const FUNCTION = section(3, 1, 0);
const EXPORT = section(7, 1, ...name("f"), 0, 0);

const binaries: [string, number[], string | undefined][] = [
  ["a function", [...HEAD, ...TYPE, ...FUNCTION, ...EXPORT], undefined],
  ["a memory at the bound", [...HEAD, ...section(5, 1, 1, 1, 2)], undefined],
  ["no memory and no export", HEAD, undefined],
  ["custom sections", [...HEAD, ...section(0, 1, 2, 3)], undefined],
  ["a memory beyond the bound", [...HEAD, ...section(5, 1, 1, 1, 3)], "memory maximum exceeds the declared or host ceiling"],
  ["a second memory beyond the bound", [...HEAD, ...section(5, 2, 1, 1, 1, 1, 1, 3)], "memory maximum exceeds the declared or host ceiling"],
  ["a memory without a maximum", [...HEAD, ...section(5, 1, 0, 1)], "every WASM memory must be unshared and declare a maximum"],
  ["a shared memory", [...HEAD, ...section(5, 1, 3, 1, 1)], "every WASM memory must be unshared and declare a maximum"],
  ["a 64-bit memory", [...HEAD, ...section(5, 1, 5, 1, 1)], "every WASM memory must be unshared and declare a maximum"],
  ["an import", [...HEAD, ...section(2, 1, ...name("a"), ...name("b"), 0, 0)], "WASM imports are not allowed"],
  ["another magic", [0, 0x61, 0x73, 0x6e, 1, 0, 0, 0], "invalid WASM magic or version"],
  ["another version", [0, 0x61, 0x73, 0x6d, 2, 0, 0, 0], "invalid WASM magic or version"],
  ["half a header", HEAD.slice(0, 5), "truncated WASM binary"],
  ["nothing", [], "truncated WASM binary"],
  ["a cut section", [...HEAD, ...TYPE].slice(0, -1), "truncated WASM binary"],
  ["a section without a length", [...HEAD, 1], "truncated WASM binary"],
  ["a length without an end", [...HEAD, 1, 0x80, 0x80, 0x80, 0x80, 0x80, 0], "malformed WASM section"],
  ["a count beyond its section", [...HEAD, 1, 5, 0xff, 0xff, 0xff, 0xff, 0x0f], "truncated WASM binary"],
  ["a type of another proposal", [...HEAD, ...section(1, 1, 0x5f, 0)], "invalid WASM function type"],
];
for (const [what, bytes, refusal] of binaries) {
  void test(`a WASM binary with ${what} is ${refusal === undefined ? "read" : "refused"}`, () => {
    const read = (): unknown => readBinary(Uint8Array.from(bytes), 2);
    if (refusal === undefined) read();
    else assert.throws(read, { message: refusal });
  });
}

void test("only functions of the scalar contract can be called", () => {
  const of = (type: number[]): unknown => readBinary(Uint8Array.from([...HEAD, ...section(1, 1, 0x60, ...type), ...FUNCTION, ...EXPORT]), 0).functions.get("f");
  assert.deepEqual(of([...u8(0x7f, 0x7d), ...u8(0x7c)]), { parameters: ["i32", "f32"], results: ["f64"] });
  assert.deepEqual(of([...u8(), ...u8()]), { parameters: [], results: [] });
  for (const type of [[...u8(0x7e), ...u8()], [...u8(), ...u8(0x7e)], [...u8(), ...u8(0x7f, 0x7f)], [...u8(...new Array<number>(9).fill(0x7f)), ...u8()], [...u8(0x7b), ...u8()], [...u8(0x70), ...u8()]]) {
    assert.equal(of(type), undefined);
  }
});

void test("a binary that could take more memory than its contract says is not run", async () => {
  const [module] = (await wasm("wasm")).modules;
  assert(module?.wasm);
  const greedy = { ...module, wasm: { ...module.wasm, memoryPagesMax: 0 } };
  await fails(runInGuest('import { add } from "@acme/wasm";\nreturn add(1, 2);', { modules: [greedy] }), "thrown", /memory maximum exceeds/);
});

// Bounds, output, aborts.

void test("the heap is bounded in bytes", async () => {
  const code = "const all = [];\ntry { for (;;) all.push(new Uint8Array(1 << 20)); } catch { return all.length; }";
  for (const megabytes of [16, 64, 128]) {
    const { value } = await runInGuest(code, none, { heapBytes: megabytes << 20, deadlineMs: 20_000 });
    assert(typeof value === "number" && value > megabytes * 0.85 && value <= megabytes, `${String(value)} of ${megabytes}`);
  }
});

void test("what the code writes is kept within bounds, also of a run that fails", async () => {
  const { output, outputDropped } = await runInGuest('console.log("a", { b: 1 }, [2]); console.error(new TypeError("x")); console.info(undefined, Symbol("s"));', none);
  assert.deepEqual([output, outputDropped], [['a {"b":1} [2]', "TypeError: x", "undefined Symbol(s)"], 0]);
  const loud = await runInGuest('for (let i = 0; i < 5; i++) console.log("😀".repeat(10));', none, { outputLines: 2, outputChars: 3 });
  assert.deepEqual([loud.output, loud.outputDropped], [["😀😀😀", "😀😀😀"], 3]);
  const failure = await fails(runInGuest('console.log("before"); throw new Error("x");', none), "thrown", "Error: x");
  assert.deepEqual(failure.output, ["before"]);
});

void test("a result is bounded in bytes", async () => {
  assert.equal((await runInGuest('return "é".repeat(4);', none, { resultBytes: 10 })).value, "éééé");
  await fails(runInGuest('return "é".repeat(5);', none, { resultBytes: 10 }), "result", "the result is 12 bytes of JSON, and may be 10");
  await fails(runInGuest('return "x".repeat(1e7);', none, { deadlineMs: 20_000 }), "result", /10000002 bytes of JSON, and may be 4194304/);
});

void test("a script is bounded in bytes, and in how deep it nests", async () => {
  await fails(runInGuest("return 1;", none, { scriptBytes: 8 }), "thrown", "the code is 9 bytes long, and a script may have 8");
  await fails(runInGuest("[".repeat(100_000), none), "thrown", /^SyntaxError: /);
  await fails(runInGuest("let a;\n  let b = ;", none), "thrown", "SyntaxError: Unexpected token (line 2, column 11)");
});

void test("a run can be aborted, before and while it waits", async () => {
  const hosts = { echo: { pack: "@acme/echo", exports: ["echo"], call: () => new Promise(() => undefined) } };
  const run = (options: GuestOptions): Promise<GuestResult> => echo.then((resolution) => runInGuest('import { echo } from "@acme/echo";\nreturn echo();', resolution, { hosts, ...options }));
  await assert.rejects(run({ signal: AbortSignal.abort(new Error("not now")) }), /not now/);
  await assert.rejects(run({ signal: AbortSignal.timeout(100) }), { name: "TimeoutError" });
});

void test("errors name the pack whose file threw", async () => {
  const pack = packCode("export const go = () => { null.x; };");
  const failure = await fails(runInGuest('import { go } from "@acme/uses";\ngo();', { modules: [pack] }), "thrown", /^TypeError: /);
  assert.equal(failure.packName, "@acme/uses");
  assert.match(failure.guestStack, /nodetool-sandbox:@acme\/uses\|main\.js/);
  assert.equal((await fails(runInGuest("null.x;", none), "thrown", /TypeError/)).packName, undefined);
});

void test("an endless chain of promise jobs leaves the process its turns", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 10);
  await fails(runInGuest("const spin = () => { Promise.resolve().then(spin); };\nspin();\nawait new Promise(() => {});", none, { deadlineMs: 500 }), "deadline", /interrupted/);
  clearInterval(timer);
  assert(turns > 0);
});

void test("runs share nothing", async () => {
  await runInGuest("Array.prototype.map = () => 1; globalThis.left = 1;", none);
  assert.deepEqual((await runInGuest("return [[1].map((x) => x), typeof left];", none)).value, [[1], "undefined"]);
  const many = await Promise.all(Array.from({ length: 8 }, (_, at) => runInGuest(`await null; return ${at};`, none)));
  assert.deepEqual(many.map(({ value }) => value), [0, 1, 2, 3, 4, 5, 6, 7]);
});

void test("an engine that is compiled once serves many runs", async () => {
  const { readFile } = await import("node:fs/promises");
  const wasmModule = await WebAssembly.compile(await readFile(new URL(import.meta.resolve("@jitl/quickjs-ng-wasmfile-release-sync/wasm"))));
  for (const at of [1, 2]) assert.equal((await runInGuest(`return ${at};`, none, { wasmModule })).value, at);
});

void test("the cases are those of a release: proven, and named by their digests", () => {
  assert(cases.length > 200);
  assert.notEqual(build("state/a").digest, build("state-old/a").digest);
});

test("limits that bound nothing are refused, and so is what is no option", async () => {
  const refused: [unknown, string][] = [
    [{ deadlineMs: Number.NaN }, "deadlineMs must be a number from 1, not NaN"],
    [{ deadlineMs: Number.POSITIVE_INFINITY }, "deadlineMs must be a number from 1, not Infinity"],
    [{ deadlineMs: 0 }, "deadlineMs must be a number from 1, not 0"],
    [{ deadlineMs: "20" }, "deadlineMs must be a number from 1, not 20"],
    [{ heapBytes: undefined }, "heapBytes must be a number from 1, not undefined"],
    [{ outputLines: -1 }, "outputLines must be a number from 0, not -1"],
    [{ deadline: 20 }, '"deadline" is no option of a run'],
  ];
  for (const [options, message] of refused) {
    await assert.rejects(runInGuest("for (;;) {}", none, options as GuestOptions), { name: "TypeError", message });
  }
});
