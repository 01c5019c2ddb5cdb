//! One call of a WASM module, in whatever worker it runs. A fresh instance for each call: nothing is left of the one before.

/** What a worker is asked. */
export interface CallRequest {
  module: WebAssembly.Module;
  name: string;
  args: number[];
}

/** What it answers: that it is there, a result, or why there is none. */
export type CallReply = "ready" | { value: number | undefined } | { trap: string };

/** Makes the call. */
export function callWasm({ module, name, args }: CallRequest): CallReply {
  try {
    const { exports } = new WebAssembly.Instance(module, {});
    const value: unknown = (exports[name] as (...numbers: number[]) => unknown)(...args);
    return { value: typeof value === "number" ? value : undefined };
  } catch (error) {
    return { trap: error instanceof Error ? error.message : String(error) };
  }
}
