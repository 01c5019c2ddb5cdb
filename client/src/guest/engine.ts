//! The engine at work: one instance of QuickJS for each run, from the hardened globals to the result. The only file that knows
//! quickjs-emscripten.
//!
//! Nothing is disposed of: a run has an instance of the engine to itself, and memory of its own that goes with it. So no leaked
//! handle matters, and no state of a run that overran its stack is ever used again.

import ngVariant from "@jitl/quickjs-ng-wasmfile-release-sync";
import { newQuickJSWASMModuleFromVariant, newVariant, type QuickJSContext, type QuickJSHandle, type QuickJSRuntime } from "quickjs-emscripten-core";

import { GuestError } from "./errors.js";
import { HARDEN } from "./harden.js";
import type { Limits } from "./limits.js";
import { BRIDGE, PREFIX, REPAIR, TOOLS } from "./prelude.js";
import { bridgeSpecifier, Denial, type Phase, resolve } from "./resolve.js";
import type { Bridge, ModuleTable } from "./table.js";

// Its types are those of its CommonJS form; what is imported is the other.
const NG_VARIANT = ngVariant as unknown as EngineVariant;

/** A build of the engine: a package of quickjs-emscripten, of its synchronous kind. */
export type EngineVariant = Parameters<typeof newVariant>[0] & { readonly type: "sync" };

/** Answers a call over a bridge. `numbers` are the arguments that are numbers; `json` gives all of them as JSON. */
export type BridgeCall = (call: { bridge: Bridge; specifier: string; exportName: string; args: BridgeArguments }) => Promise<unknown>;

/** The arguments of a call, read while the guest stands still. */
export interface BridgeArguments {
  count: number;
  /** The first few, undefined for what is no number. */
  numbers: (number | undefined)[];
  /** All as JSON text; throws what the guest's own values throw. */
  json: string | Error;
}

/** Names of modules that are the guest's own. No other module can import them. */
const ENTRY = "entry";
const SCRIPT = "script";
const LOCK = "lock";
const LOCKER = "locker";
/** What a denied import is called until the loader says why; a trap of the wrapper loses errors of the normaliser. */
const DENIED = "denied";

/** Locks the loader before any other module is evaluated: modules evaluate in the order of their imports. */
const ENTRY_TEXT = `import "${LOCK}"; export { default } from "${SCRIPT}";`;
const LOCK_TEXT = `import { __call } from "${LOCKER}"; __call();`;

/**
 * Bytes of its own stack that the engine may use. Its calls are calls of the platform, too, whose stack fills faster: with 320 KiB
 * here V8's, of about 1 MB, was found to be the first at its end, and its error ends a run where the engine's can be caught. The
 * stack of a web worker is smaller.
 */
const PLATFORM_STACK = "WorkerGlobalScope" in globalThis ? 128 << 10 : 256 << 10;

/** What the engine's module says about its memory: pages at the start and at most, and bytes of stack and constants in it. */
const PAGE_BYTES = 65_536;
const INITIAL_PAGES = 256;
const MOST_PAGES = 32_768;
const STATIC_BYTES = 5_342_832;

/** Arguments read one by one: more than any WASM function takes. */
const MOST_NUMBERS = 16;
/** Promise jobs between two looks at the clock: an interrupt inside a job is swallowed by the engine. */
const JOBS = 500;
/** Milliseconds after which the page or process gets its turn. */
const TURN_MS = 30;

type Tools = Record<"message" | "stack" | "json" | "show" | "parse" | "shield", QuickJSHandle>;

/** One run of the engine. */
export class Engine {
  readonly output: string[] = [];
  outputDropped = 0;

  readonly #runtime: QuickJSRuntime;
  readonly #context: QuickJSContext;
  readonly #table: ModuleTable;
  readonly #limits: Limits;
  readonly #script: string;
  readonly #signal: AbortSignal | undefined;
  readonly #deadline: number;
  readonly #tools: Tools;
  #phase: Phase = "linking";
  /** The import that was denied last. The loader is asked for it before the next name is resolved. */
  #denial: { message: string; packName: string | undefined } | undefined;
  #deniedTo: string | undefined;
  /** Calls out of the guest that have not settled, and who waits for one that does. */
  #calls = 0;
  #settled: (() => void) | undefined;

  private constructor(runtime: QuickJSRuntime, table: ModuleTable, script: string, limits: Limits, signal: AbortSignal | undefined, call: BridgeCall) {
    this.#runtime = runtime;
    this.#table = table;
    this.#limits = limits;
    this.#script = script;
    this.#signal = signal;
    this.#deadline = performance.now() + limits.deadlineMs;
    runtime.setMaxStackSize(Math.min(limits.stackBytes, PLATFORM_STACK));
    runtime.setInterruptHandler(() => this.#isOverdue());
    runtime.setModuleLoader(
      (name) => this.#load(name),
      (base, name) => this.#normalize(base, name),
    );
    this.#context = runtime.newContext();
    this.#evaluate(HARDEN, "harden");
    this.#evaluate(REPAIR, "repair");
    this.#tools = this.#properties(this.#evaluate(TOOLS, "tools"));
    this.#installConsole();
    this.#setBridge(LOCKER, () => void (this.#phase = "locked"));
    for (const bridge of ["host", "capability", "wasm"] as const) {
      this.#setBridge(bridgeSpecifier(bridge), (...args) => this.#callOut(bridge, args, call));
    }
  }

  /** Sets up a guest. */
  static async start(
    table: ModuleTable,
    script: string,
    limits: Limits,
    call: BridgeCall,
    options: { variant?: EngineVariant; wasmModule?: WebAssembly.Module; signal?: AbortSignal },
  ): Promise<Engine> {
    const { variant = NG_VARIANT, wasmModule } = options;
    const wasmMemory = memoryOf(limits.heapBytes);
    const engine = await newQuickJSWASMModuleFromVariant(newVariant(variant, { wasmMemory, ...(wasmModule && { wasmModule }) }));
    return new Engine(engine.newRuntime(), table, script, limits, options.signal, call);
  }

  /** Evaluates the modules, calls the user's function, and gives its result as JSON text. */
  async run(): Promise<string> {
    try {
      const evaluated = this.#context.evalCode(ENTRY_TEXT, ENTRY, { type: "module" });
      if (evaluated.error) throw this.#thrown(evaluated.error);
      const names = await this.#settle(evaluated.value);
      const called = this.#context.callFunction(this.#context.getProp(names, "default"), this.#context.undefined);
      if (called.error) throw this.#thrown(called.error);
      return this.#json(await this.#settle(called.value));
    } catch (error) {
      this.#signal?.throwIfAborted();
      if (this.#isOverdue()) throw this.#late();
      throw error instanceof GuestError ? error : engineFailure(error);
    }
  }

  #isOverdue(): boolean {
    return performance.now() >= this.#deadline;
  }

  #late(): GuestError {
    return new GuestError("deadline", `interrupted: the code ran longer than ${this.#limits.deadlineMs} ms`);
  }

  // The loader.

  #normalize(base: string, name: string): string {
    if (base === ENTRY || base === LOCK) return name;
    try {
      return resolve(this.#table, this.#phase, base, name);
    } catch (error) {
      if (!(error instanceof Denial)) throw error;
      this.#denial = { message: error.message, packName: this.#table.files.get(base)?.packName };
      return DENIED;
    }
  }

  #load(name: string): string | { error: Error } {
    if (name === LOCK) return LOCK_TEXT;
    if (name === SCRIPT) return PREFIX + this.#script;
    const file = this.#table.files.get(name);
    // The wrapper hands texts over as C strings, which end at the first NUL.
    if (file?.source.includes("\0")) return { error: new SyntaxError(`${name} holds a NUL character`) };
    if (file) return PREFIX + file.source;
    this.#deniedTo = this.#denial?.packName;
    return { error: new Error(this.#denial?.message ?? `${name} is not a module of this run`) };
  }

  // What the guest can reach outside.

  #installConsole(): void {
    const console = this.#context.newObject();
    for (const level of ["debug", "error", "info", "log", "warn"]) {
      this.#context.setProp(console, level, this.#context.newFunction(level, (...values) => this.#write(values)));
    }
    this.#context.setProp(this.#context.global, "console", console);
  }

  #write(values: QuickJSHandle[]): void {
    if (this.output.length < this.#limits.outputLines) {
      const line = values.map((value) => this.#text(this.#tools.show, value)).join(" ");
      // Making texts may run guest code that writes, too.
      if (this.output.length < this.#limits.outputLines) {
        this.output.push(Array.from(line.slice(0, 2 * this.#limits.outputChars)).slice(0, this.#limits.outputChars).join(""));
        return;
      }
    }
    this.outputDropped++;
  }

  /** Makes the module `name`, whose `__call` is `call`. It is there before anything else, so the loader is never asked for it. */
  #setBridge(name: string, call: (...args: QuickJSHandle[]) => QuickJSHandle | void): void {
    const module = this.#evaluate(BRIDGE, name, "module");
    const set = this.#context.getProp(module, "default");
    this.#succeed(this.#context.callFunction(set, this.#context.undefined, this.#context.newFunction("__call", call)));
  }

  #callOut(bridge: Bridge, [specifier, exportName, list]: QuickJSHandle[], call: BridgeCall): QuickJSHandle {
    const context = this.#context;
    const deferred = context.newPromise();
    this.#succeed(context.callFunction(this.#tools.shield, context.undefined, deferred.handle));
    const request = {
      bridge,
      specifier: specifier ? context.getString(specifier) : "",
      exportName: exportName ? context.getString(exportName) : "",
      args: this.#arguments(bridge, list ?? context.undefined),
    };
    const ended = (settle: () => void): void => {
      this.#calls--;
      // Whatever fails here is the run's own bound, which the loop that waits will find.
      try {
        settle();
      } finally {
        this.#settled?.();
      }
    };
    this.#calls++;
    void call(request).then(
      (value) => ended(() => deferred.resolve(this.#imported(value))),
      (error: unknown) => ended(() => deferred.reject(context.newError(error instanceof Error ? error.message : String(error)))),
    );
    return deferred.handle;
  }

  #arguments(bridge: Bridge, list: QuickJSHandle): BridgeArguments {
    const context = this.#context;
    if (bridge !== "wasm") {
      const json = context.callFunction(this.#tools.json, context.undefined, list);
      return { count: 0, numbers: [], json: json.error ? new Error(this.#text(this.#tools.message, json.error)) : context.getString(json.value) };
    }
    const count = context.getLength(list) ?? 0;
    const numbers = Array.from({ length: Math.min(count, MOST_NUMBERS) }, (_, at) => {
      const value = context.getProp(list, at);
      return context.typeof(value) === "number" ? context.getNumber(value) : undefined;
    });
    return { count, numbers, json: "" };
  }

  /** A value of the application in the guest: numbers as they are, all else as JSON. */
  #imported(value: unknown): QuickJSHandle {
    const context = this.#context;
    if (value === undefined) return context.undefined;
    if (typeof value === "number") return context.newNumber(value);
    return this.#succeed(context.callFunction(this.#tools.parse, context.undefined, context.newString(JSON.stringify(value) ?? "null")));
  }

  // Values.

  /** Runs promise jobs, and waits for calls out of the guest, until `promise` is settled; gives its value. */
  async #settle(promise: QuickJSHandle): Promise<QuickJSHandle> {
    let turn = performance.now();
    /** What ended a job that could not end well, as where no memory was left to settle its promise. */
    let lost: GuestError | undefined;
    for (;;) {
      this.#signal?.throwIfAborted();
      if (this.#isOverdue()) throw this.#late();
      const state = this.#context.getPromiseState(promise);
      if (state.type === "fulfilled") return state.value;
      if (state.type === "rejected") throw this.#thrown(state.error);
      const jobs = this.#runtime.executePendingJobs(JOBS);
      if (jobs.error) lost = this.#thrown(jobs.error);
      if (this.#runtime.hasPendingJob()) {
        if (performance.now() - turn < TURN_MS) continue;
        await new Promise<void>((resolve) => setTimeout(resolve));
        turn = performance.now();
      } else if (this.#calls > 0) {
        await this.#nextCall();
      } else if (this.#context.getPromiseState(promise).type === "pending") {
        throw lost ?? new GuestError("unsettled", "the code waits for a promise that nothing in the sandbox can settle");
      }
    }
  }

  /** Waits until a call ends, the run's time is over, or the run is aborted. */
  async #nextCall(): Promise<void> {
    const calls = this.#calls;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, this.#deadline - performance.now()) + 1);
      this.#signal?.addEventListener("abort", () => resolve());
      this.#settled = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#calls < calls) this.#settled();
    });
    this.#settled = undefined;
  }

  #json(value: QuickJSHandle): string {
    const context = this.#context;
    const result = context.callFunction(this.#tools.json, context.undefined, value);
    if (result.error) {
      const { kind, message, guestStack, packName } = this.#thrown(result.error);
      throw new GuestError(kind === "thrown" ? "result" : kind, message, guestStack, packName);
    }
    const most = this.#limits.resultBytes;
    const refuse = (length: number): never => {
      throw new GuestError("result", `the result is ${length} bytes of JSON, and may be ${most}`);
    };
    const length = context.getLength(result.value) ?? 0;
    if (length > most) refuse(length);
    const text = context.getString(result.value);
    const bytes = new TextEncoder().encode(text).length;
    return bytes > most ? refuse(bytes) : text;
  }

  /** The error for a thrown value. The engine throws null where no memory is left for an error object. */
  #thrown(value: QuickJSHandle): GuestError {
    const packName = this.#deniedTo;
    this.#deniedTo = undefined;
    const memory = `out of memory: the sandbox may use ${this.#limits.heapBytes} bytes`;
    const message = this.#text(this.#tools.message, value);
    const stack = this.#text(this.#tools.stack, value);
    if (message === "InternalError: out of memory" || message === "") return new GuestError("memory", memory, stack);
    return new GuestError("thrown", message, stack, packName ?? packOf(stack));
  }

  /** What one of our tools makes of a value; empty where it has no memory or no time for it. */
  #text(tool: QuickJSHandle, value: QuickJSHandle): string {
    const result = this.#context.callFunction(tool, this.#context.undefined, value);
    return result.error ? "" : this.#context.getString(result.value);
  }

  #evaluate(code: string, name: string, type: "global" | "module" = "global"): QuickJSHandle {
    return this.#succeed(this.#context.evalCode(code, name, { type }));
  }

  #succeed(result: ReturnType<QuickJSContext["callFunction"]>): QuickJSHandle {
    if (result.error) throw new GuestError("memory", "out of memory: the guest could not be set up");
    return result.value;
  }

  #properties(object: QuickJSHandle): Tools {
    const get = (key: keyof Tools): QuickJSHandle => this.#context.getProp(object, key);
    return { message: get("message"), stack: get("stack"), json: get("json"), show: get("show"), parse: get("parse"), shield: get("shield") };
  }
}

/**
 * The engine's memory, of which `heapBytes` are left to its heap. This is the bound: the engine's own limit counts allocations
 * and not their bytes in this build, for which no allocator tells the size of a block.
 */
function memoryOf(heapBytes: number): WebAssembly.Memory {
  const pages = Math.ceil((STATIC_BYTES + heapBytes) / PAGE_BYTES);
  return new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: Math.min(Math.max(pages, INITIAL_PAGES), MOST_PAGES) });
}

/** What the engine's own failure means: its stack is the platform's, and an overrun of that comes as the platform's error. */
function engineFailure(error: unknown): GuestError {
  if (error instanceof RangeError && /call stack/.test(error.message)) return new GuestError("thrown", `RangeError: ${error.message}`);
  const { message } = error as Error;
  // Firefox and Safari word it in their own ways.
  if (/recursion/.test(message)) return new GuestError("thrown", "RangeError: Maximum call stack size exceeded");
  return new GuestError("fault", `the engine failed: ${message}`);
}

/** The pack of the uppermost frame that is a file's. A version of its own is `<pack>@<graph digest>`. */
function packOf(stack: string): string | undefined {
  const frame = stack.split("\n").find((line) => line.trim() !== "" && !line.endsWith("(native)"));
  return frame && /nodetool-sandbox:(@?[^@|]*)[^|]*\|/.exec(frame)?.[1];
}
