//! Digest payloads: the canonical JSON whose SHA-256 is a graph digest. Parsed strictly; every statement that a payload
//! makes twice must agree. What comes out is what the digest proves.

import { CALL_LIMITS, EXPORT_PAIR, facadeNames, facadeOf, MEMORY_PAGES } from "./contract.js";
import type { ExportPair, WasmContract } from "./contract.js";
import { insist } from "./errors.js";
import { isDigest, isFileId, isIdentifier, isPackName, isSorted, isSpecifier, isText, normalizeFile, packOf } from "./names.js";
import { admits, type Infer, isObject, parseCanonical, read } from "./schema.js";

/** Kind of a delivered file. */
export type FileKind = "js" | "wasm" | "host";

/** A file of a graph as its payload states it. */
export interface GraphFile {
  id: string;
  kind: FileKind;
  /** File ids of the same graph, sorted. */
  dependencies: string[];
  /** SHA-256 of the file's bytes. A host entry's payload states its bytes instead: the facade. */
  bytes?: string;
}

/** What a graph digest proves. */
export interface Graph {
  packName: string;
  packVersion?: string;
  specifier: string;
  /** File id of the entry. */
  moduleId: string;
  kind: FileKind;
  /** Every file that the entry reaches, sorted by id. */
  files: GraphFile[];
  /** Of a WASM entry. */
  wasm?: WasmContract;
  /** Of a host entry. */
  host?: { id: string; exports: string[]; facade: string };
}

const isExport = (value: unknown): value is string | ExportPair =>
  isIdentifier(value) || admits(EXPORT_PAIR, value);
const isFileKind = (value: unknown): value is "js" | "wasm" => value === "js" || value === "wasm";

const PACK = { packageName: isPackName, "packageVersion?": isText, specifier: isSpecifier, moduleId: isFileId } as const;
const ENTRIES = [{ id: isFileId, kind: isFileKind, dependencies: [isFileId], bytes: isDigest }] as const;
const JS = { ...PACK, kind: "js", declaration: { name: isText, kind: "js", file: isText }, entries: ENTRIES } as const;
const WASM = {
  ...PACK,
  kind: "wasm",
  declaration: { name: isText, kind: "wasm", file: isText, memoryPagesMax: MEMORY_PAGES, "limits?": CALL_LIMITS, exports: [isExport] },
  entries: ENTRIES,
  facadeVersion: 1,
  facade: isText,
} as const;
const HOST = { ...PACK, hostId: isText, exports: [isIdentifier], facadeVersion: 2, facade: isText } as const;
const NPM = {
  ...PACK,
  npm: isText,
  "npmVersion?": isText,
  declaration: { name: isText, kind: "js", npm: isText },
  bundler: "esbuild",
  bundlerVersion: isText,
  optionsDigest: isDigest,
  source: isDigest,
} as const;

/** Parses a payload strictly. */
export function parsePayload(json: string): Graph {
  const value = parseCanonical(json);
  insist(isObject(value), "it is not a payload");
  if (value.kind === "wasm") return wasmGraph(read(WASM, value));
  if ("kind" in value) return jsGraph(read(JS, value));
  return "hostId" in value ? hostGraph(read(HOST, value)) : npmGraph(read(NPM, value));
}

function jsGraph(payload: Infer<typeof JS>): Graph {
  const { declaration, entries: files } = payload;
  checkModuleId(payload.moduleId, normalizeFile(declaration.file));
  return graphOf("js", files, payload, declaration);
}

function wasmGraph(payload: Infer<typeof WASM>): Graph {
  const { declaration, entries: files, facade } = payload;
  const { memoryPagesMax, limits } = declaration;
  checkModuleId(payload.moduleId, normalizeFile(declaration.file));
  const exports = exportsInFacadeOrder(declaration.exports, facade, payload.specifier);
  return { ...graphOf("wasm", files, payload, declaration), wasm: { memoryPagesMax, exports, ...(limits && { limits }) } };
}

function hostGraph(payload: Infer<typeof HOST>): Graph {
  const { hostId: id, exports, facade, moduleId } = payload;
  checkModuleId(moduleId, `host:${id}`);
  checkHostFacade(exports, facade, payload.specifier);
  return { ...graphOf("host", [{ id: moduleId, kind: "host", dependencies: [] }], payload), host: { id, exports, facade } };
}

function npmGraph(payload: Infer<typeof NPM>): Graph {
  const { npm, declaration, moduleId, source: bytes } = payload;
  checkModuleId(moduleId, `npm:${npm}`);
  checkModuleId(moduleId, `npm:${declaration.npm}`);
  return graphOf("js", [{ id: moduleId, kind: "js", dependencies: [], bytes }], payload, declaration);
}

function graphOf(kind: FileKind, files: GraphFile[], payload: Infer<typeof PACK>, declaration?: { name: string }): Graph {
  const { packageName: packName, packageVersion: packVersion, specifier, moduleId } = payload;
  checkSpecifier(packName, specifier, declaration?.name);
  checkEntries(files, moduleId, kind);
  return { packName, ...(isText(packVersion) && { packVersion }), specifier, moduleId, kind, files };
}

/** The specifier is one of the pack: that of the declared name, if there is one. */
export function checkSpecifier(packName: string, specifier: string, name?: string): void {
  const stated = name === "." ? packName : `${packName}/${name}`;
  insist(packOf(specifier) === packName && (!name || specifier === stated), "the specifier is not the declared one");
}

/** The module id is that of what is declared: a file, normalized, a host module, an npm package. */
export function checkModuleId(moduleId: string, declared: string): void {
  insist(moduleId === declared, "the module id is not the declared one");
}

/** Entries and dependencies are sorted, only JavaScript imports, and the entry is there with its kind. */
export function checkEntries(files: GraphFile[], moduleId: string, kind: FileKind): void {
  const sorted = isSorted(files.map((file) => file.id)) && files.every((file) => isSorted(file.dependencies));
  const leaves = files.every((file) => file.kind === "js" || !file.dependencies.length);
  const entry = files.some((file) => file.id === moduleId && file.kind === kind);
  insist(sorted && leaves && entry, "its files are not in order");
}

/** The facade is the one generated for `declared`; gives the exports in its order. */
export function exportsInFacadeOrder(declared: (string | ExportPair)[], facade: string, specifier: string): ExportPair[] {
  const pairs = declared.map((item) => (isText(item) ? { wasm: item, as: item } : item));
  checkFacade("wasm", pairs.map((pair) => pair.as), facade, specifier);
  insist(isSorted(pairs.map((pair) => pair.wasm)), "its exports are not in order");
  return facadeNames(facade).flatMap((name) => pairs.filter((pair) => pair.as === name));
}

/** The facade is the one generated for the exports, which are sorted. */
export function checkHostFacade(exports: string[], facade: string, specifier: string): void {
  checkFacade("host", exports, facade, specifier);
  insist(isSorted(exports), "its exports are not in order");
}

/** The facade is the generated one, for the given exports, each once, in an order of its own. */
function checkFacade(bridge: "wasm" | "host", exports: string[], facade: string, specifier: string): void {
  const names = facadeNames(facade);
  const generated = names.length && facadeOf(bridge, specifier, names) === facade;
  const sorted = names.sort();
  insist(generated && isSorted(sorted) && sorted.join() === [...exports].sort().join(), "its facade is not the generated one");
}
