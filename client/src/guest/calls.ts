//! Calls of WASM modules: what they must be given, and how many a run may make.

import type { WasmContract } from "../contract.js";
import { type Binary, readBinary, type Scalar, type Signature } from "./wasm-binary.js";
import type { CallRequest } from "./wasm-worker.js";
import { Late, type StartWorker, Workers } from "./workers.js";

type WasmModules = ReadonlyMap<string, { bytes: Uint8Array<ArrayBuffer>; contract: WasmContract }>;

/** Bounds of a run's calls where its modules give none. */
const CEILINGS = { callTimeoutMs: 5000, callConcurrency: 2, callsPerInvocation: 256, wallClockMs: 30_000 };

const INTEGER = "an integer from -2147483648 to 2147483647";

/** The WASM calls of one run. */
export class WasmCalls {
  readonly #modules: WasmModules;
  readonly #workers: Workers;
  readonly #compiled = new Map<string, Promise<[Binary, WebAssembly.Module]>>();
  /** The lowest that any of the run's modules gives; only the time of a call is a module's own. */
  readonly #limits: Omit<typeof CEILINGS, "callTimeoutMs">;
  #calls = 0;
  #running = 0;
  readonly #queue: (() => void)[] = [];
  /** Milliseconds of calls that have ended, and those that running ones may still take. */
  #spent = 0;
  #reserved = 0;

  constructor(modules: WasmModules, start: StartWorker) {
    this.#modules = modules;
    this.#workers = new Workers(start);
    const lowest = (key: keyof typeof CEILINGS): number =>
      Math.min(CEILINGS[key], ...Array.from(modules.values(), ({ contract }) => contract.limits?.[key] ?? CEILINGS[key]));
    this.#limits = {
      callConcurrency: lowest("callConcurrency"),
      callsPerInvocation: lowest("callsPerInvocation"),
      wallClockMs: lowest("wallClockMs"),
    };
  }

  /** Calls `exportName` of a module; of `args`, undefined is no number. Rejects with the error that the calling code sees. */
  async call(specifier: string, exportName: string, args: readonly (number | undefined)[], given = args.length): Promise<number | undefined> {
    try {
      return await this.#call(specifier, exportName, args, given);
    } catch (error) {
      throw new Error(`${specifier}: ${(error as Error).message}`);
    }
  }

  /** Ends the calls that still run. */
  close(): void {
    this.#workers.close();
  }

  async #call(specifier: string, exportName: string, args: readonly (number | undefined)[], given: number): Promise<number | undefined> {
    const { contract } = this.#modules.get(specifier) ?? {};
    if (!contract) throw new Error("not a WASM module of this run");
    const pair = contract.exports.find(({ as }) => as === exportName);
    if (!pair) throw new Error(`no function ${exportName}`);
    const [binary, module] = await this.#compile(specifier);
    const signature = binary.functions.get(pair.wasm);
    if (!signature) throw new Error(`${exportName} is not a function of the scalar contract`);
    const numbers = checked(signature, exportName, args, given);

    const { callsPerInvocation } = this.#limits;
    if (this.#calls >= callsPerInvocation) throw new Error(`the run makes more than ${callsPerInvocation} WASM calls`);
    this.#calls++;
    await this.#turn();
    try {
      return await this.#timed({ module, name: pair.wasm, args: numbers }, exportName, contract.limits?.callTimeoutMs);
    } finally {
      this.#running--;
      this.#queue.shift()?.();
    }
  }

  /** Makes a call within its own time and the run's. Starting a worker is not the call's time. */
  async #timed(request: CallRequest, exportName: string, callTimeoutMs = CEILINGS.callTimeoutMs): Promise<number | undefined> {
    const { wallClockMs } = this.#limits;
    const timeout = Math.min(callTimeoutMs, wallClockMs - this.#spent - this.#reserved);
    if (timeout <= 0) throw new Error(`the run's WASM calls take longer than ${wallClockMs} ms`);
    this.#reserved += timeout;
    let started = 0;
    const taken = (): number => started && performance.now() - started;
    try {
      const worker = await this.#workers.take();
      started = performance.now();
      const reply = await this.#workers.call(worker, request, timeout);
      if ("trap" in reply) throw new Error(`${exportName} trapped: ${reply.trap}`);
      return reply.value;
    } catch (error) {
      throw error instanceof Late ? new Error(`${exportName} was stopped after ${Math.round(taken())} ms`) : error;
    } finally {
      this.#reserved -= timeout;
      this.#spent += taken();
    }
  }

  /** Waits until fewer calls run than may run at once, and counts one more. */
  async #turn(): Promise<void> {
    while (this.#running >= this.#limits.callConcurrency) await new Promise<void>((resolve) => this.#queue.push(resolve));
    this.#running++;
  }

  #compile(specifier: string): Promise<[Binary, WebAssembly.Module]> {
    let compiled = this.#compiled.get(specifier);
    if (!compiled) {
      compiled = compile(this.#modules.get(specifier));
      this.#compiled.set(specifier, compiled);
    }
    return compiled;
  }
}

async function compile(module: { bytes: Uint8Array<ArrayBuffer>; contract: WasmContract } | undefined): Promise<[Binary, WebAssembly.Module]> {
  if (!module) throw new Error("not a WASM module of this run");
  const binary = readBinary(module.bytes, module.contract.memoryPagesMax);
  try {
    return [binary, await WebAssembly.compile(module.bytes)];
  } catch (error) {
    throw new Error(`invalid WASM binary: ${(error as Error).message}`);
  }
}

/** The numbers, each of them one that its parameter can take: there is no wrapping. */
function checked({ parameters }: Signature, exportName: string, args: readonly (number | undefined)[], given: number): number[] {
  const takes = parameters.length;
  if (takes !== given) throw new Error(`${exportName} takes ${takes} argument${takes === 1 ? "" : "s"}, not ${given}`);
  return parameters.map((scalar, at) => {
    const number = args[at];
    if (number === undefined) throw new Error(`argument ${at + 1} of ${exportName} must be a number`);
    if (!fits(scalar, number)) throw new Error(`argument ${at + 1} of ${exportName} must be ${INTEGER}`);
    return number;
  });
}

const fits = (scalar: Scalar, number: number): boolean => scalar !== "i32" || number === (number | 0);
