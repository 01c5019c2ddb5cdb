//! What a call into a WASM or host module looks like: the call contract, and the facades that stand for the module in
//! the guest. Facades are generated here, never taken from the wire.

import { isIdentifier, isText } from "./names.js";
import { type Infer, within } from "./schema.js";

/** One exported function: its name in the binary and its name for importers. */
export const EXPORT_PAIR = { wasm: isText, as: isIdentifier } as const;

/** Schemas of the two bounds that a WASM module declares, with their ceilings. */
export const MEMORY_PAGES = within(0, 4096);
export const CALL_LIMITS = {
  "callTimeoutMs?": within(1, 5000),
  "callConcurrency?": within(1, 2),
  "callsPerInvocation?": within(1, 256),
  "wallClockMs?": within(1, 30_000),
} as const;

/** A call contract as a server sends it in a header. */
export const WASM_CONTRACT = { memoryPagesMax: MEMORY_PAGES, exports: [EXPORT_PAIR], "limits?": CALL_LIMITS } as const;

/** How a WASM module may be called. */
export type WasmContract = Infer<typeof WASM_CONTRACT>;
export type ExportPair = Infer<typeof EXPORT_PAIR>;

/** The host modules that a client implements: by id, the pack that each is bound to and its exports in facade order. */
export type HostRegistry = Readonly<Record<string, { readonly pack: string; readonly exports: readonly string[] }>>;

/**
 * The facade of a WASM or host entry: one async function an export; a host entry has a default export of all names, too.
 */
export const facadeOf = (bridge: "wasm" | "host", specifier: string, names: readonly string[]): string =>
  `import { __call } from "nodetool:${bridge}-bridge";\n` +
  names
    .map((name) => `export async function ${name}(...args) {\n  return __call("${specifier}", "${name}", args);\n}\n`)
    .join("") +
  (bridge === "host" ? `export default { ${names.join(", ")} };\n` : "");

/** The names of a facade's functions, in its order. Only a hint: whoever asks generates the facade again and compares. */
export const facadeNames = (code: string): string[] =>
  Array.from(code.matchAll(/^export async function (.+)\(\.\.\.args\) {$/gm), (match) => match[1] ?? "");
