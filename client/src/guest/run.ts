//! What callers use: a run of user code with what its declarations resolved to.

import type { Resolution } from "../catalog.js";
import { WasmCalls } from "./calls.js";
import { type BridgeCall, Engine, type EngineVariant } from "./engine.js";
import { GuestError } from "./errors.js";
import { callHost, type HostModules, type Json, type PlatformModules } from "./hosts.js";
import { type Limits, limitsOf } from "./limits.js";
import { asModule } from "./script.js";
import { layOut } from "./table.js";
import type { StartWorker } from "./workers.js";

/** The bounds of a run that differ from the standard ones, and what the application answers. */
export interface GuestOptions extends Partial<Limits> {
  /** Host modules of this application, by id. */
  hosts?: HostModules;
  /** Modules of the platform, by specifier. */
  platform?: PlatformModules;
  /** Another build of the engine. */
  variant?: EngineVariant;
  /** The engine's module, compiled once for many runs; by default it is loaded for each. */
  wasmModule?: WebAssembly.Module;
  signal?: AbortSignal;
}

/** What a run gave. */
export interface GuestResult {
  /** What the code returned, as JSON; nothing is null. */
  value: Json;
  /** What it wrote to `console`, as far as the limits go, and how many lines it wrote beyond them. */
  output: string[];
  outputDropped: number;
}

/** Runs `code` with the modules of `resolution` in a guest of its own. Rejects with a `GuestError`. */
export type RunInGuest = (code: string, resolution: Pick<Resolution, "modules">, options?: GuestOptions) => Promise<GuestResult>;

/** The function for a platform's kind of workers. */
export const guestWith =
  (startWorker: StartWorker): RunInGuest =>
  async (code, resolution, options = {}) => {
    const { hosts = {}, platform = {}, signal, variant, wasmModule, ...given } = options;
    signal?.throwIfAborted();
    const limits = limitsOf(given);
    const script = asModule(code, limits.scriptBytes);
    const table = layOut(resolution.modules, hosts, platform);
    const wasm = new WasmCalls(table.wasm, startWorker);
    const call: BridgeCall = async ({ bridge, specifier, exportName, args }) => {
      if (bridge === "wasm") return wasm.call(specifier, exportName, args.numbers, args.count);
      if (args.json instanceof Error) throw args.json;
      const modules = bridge === "host" ? hosts : platform;
      const key = bridge === "host" ? table.hosts.get(specifier) : specifier;
      const module = key !== undefined && Object.hasOwn(modules, key) ? modules[key] : undefined;
      return callHost(module, specifier, exportName, JSON.parse(args.json));
    };
    let engine: Engine | undefined;
    try {
      engine = await Engine.start(table, script, limits, call, { ...(variant && { variant }), ...(wasmModule && { wasmModule }), ...(signal && { signal }) });
      const value = JSON.parse(await engine.run()) as Json;
      return { value, output: engine.output, outputDropped: engine.outputDropped };
    } catch (error) {
      if (error instanceof GuestError) error.output = engine?.output ?? [];
      throw error;
    } finally {
      wasm.close();
    }
  };
