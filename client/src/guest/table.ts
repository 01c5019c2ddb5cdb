//! Which files a run serves, under which guest ids. Built once, before any code runs; pure.

import type { ResolvedFile, ResolvedModule } from "../catalog.js";
import { facadeOf, type WasmContract } from "../contract.js";
import { isIdentifier } from "../names.js";
import { isReserved } from "../reserved.js";
import { GuestError } from "./errors.js";
import type { HostModules, PlatformModules } from "./hosts.js";

/** The bridges over which generated facades call out of the guest. No other module may import one. */
export type Bridge = "host" | "capability" | "wasm";

/** A file that the loader serves. */
export interface ServedFile {
  packName: string;
  source: string;
  /** Of a facade, the bridge that it alone may import. */
  bridge?: Bridge;
}

/** Everything that a run serves. */
export interface ModuleTable {
  /** Declared specifiers to guest ids. */
  specifiers: Map<string, string>;
  /** Guest ids to files. */
  files: Map<string, ServedFile>;
  /** Specifiers to WASM modules. */
  wasm: Map<string, { bytes: Uint8Array<ArrayBuffer>; contract: WasmContract }>;
  /** Specifiers to the ids of host modules. */
  hosts: Map<string, string>;
}

/**
 * Lays out `modules` in the order of declaration; of two with one specifier the first counts.
 *
 * Guest ids are `nodetool-sandbox:<pack>|<file id>`. A graph that disagrees about a file with the graphs that got such ids before
 * it gets ids of its own, `nodetool-sandbox:<pack>@<graph digest>|<file id>`, for all its files: two versions of a pack never
 * share a helper.
 */
export function layOut(modules: readonly ResolvedModule[], hosts: HostModules, platform: PlatformModules): ModuleTable {
  const table: ModuleTable = { specifiers: new Map(), files: new Map(), wasm: new Map(), hosts: new Map() };
  const shared = new Map<string, Contents>();
  for (const module of modules) {
    if (table.specifiers.has(module.specifier)) continue;
    const contents = contentsOf(module, hosts);
    const plain = `nodetool-sandbox:${module.packName}`;
    const agrees = contents.every((file) => same(shared.get(`${plain}|${file.id}`), file));
    if (agrees) for (const file of contents) shared.set(`${plain}|${file.id}`, { ...shared.get(`${plain}|${file.id}`), ...file });
    add(table, module, contents, agrees ? plain : `${plain}@${module.contentDigest}`);
  }
  for (const [specifier, { exports }] of Object.entries(platform)) {
    const id = `nodetool-sandbox:${specifier}|capability`;
    checkNames(specifier, exports);
    const source = facadeOf("host", specifier, exports).replace("nodetool:host-bridge", "nodetool:capability-bridge");
    table.files.set(id, { packName: specifier, source, bridge: "capability" });
    table.specifiers.set(specifier, id);
  }
  return table;
}

/** What graphs must agree about to share a file: its text or bytes, the files it imports, and its facade, where both have one. */
interface Contents {
  id: string;
  dependencies: string;
  body: string | Uint8Array | undefined;
  facade?: string;
  bridge?: "wasm" | "host";
}

function contentsOf(module: ResolvedModule, hosts: HostModules): Contents[] {
  const files = module.graph.map((file) => ({ id: file.id, dependencies: JSON.stringify(file.dependencies), body: bodyOf(file) }));
  const facade = ownFacade(module, hosts);
  if (!facade) return files;
  const rest = files.filter(({ id }) => id !== module.moduleId);
  const entry = files.find(({ id }) => id === module.moduleId) ?? { id: module.moduleId, dependencies: "[]", body: undefined };
  return [...rest, { ...entry, ...facade }];
}

const bodyOf = (file: ResolvedFile): string | Uint8Array | undefined => (file.kind === "wasm" ? file.bytes : file.source);

function ownFacade({ kind, specifier, packName, wasm, hostId }: ResolvedModule, hosts: HostModules): Pick<Contents, "facade" | "bridge"> | undefined {
  if (kind === "js") return undefined;
  const host = hostId !== undefined && Object.hasOwn(hosts, hostId) ? hosts[hostId] : undefined;
  const names = kind === "wasm" ? wasm?.exports.map((pair) => pair.as) : host?.pack === packName ? host.exports : undefined;
  if (!names) {
    const why = kind === "wasm" ? "it has no call contract" : `this application binds no host module "${hostId}" to ${packName}`;
    throw new GuestError("thrown", `${specifier} cannot be run: ${why}`, "", packName);
  }
  checkNames(specifier, names);
  return { facade: facadeOf(kind, specifier, names), bridge: kind };
}

/** Names become code: whoever they come from, they are identifiers and no reserved words. */
function checkNames(specifier: string, names: readonly string[]): void {
  const bad = names.find((name) => !isIdentifier(name) || isReserved(name));
  if (bad !== undefined) throw new GuestError("thrown", `${specifier} cannot be run: it cannot export ${JSON.stringify(bad)}`);
}

function same(first: Contents | undefined, second: Contents): boolean {
  if (!first) return true;
  const facades = first.facade === undefined || second.facade === undefined || first.facade === second.facade;
  return facades && first.dependencies === second.dependencies && equal(first.body, second.body);
}

function equal(a: Contents["body"], b: Contents["body"]): boolean {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  return a.length === b.length && a.every((byte, at) => byte === b[at]);
}

function add(table: ModuleTable, module: ResolvedModule, contents: Contents[], folder: string): void {
  const { packName, specifier, moduleId, wasm, bytes, hostId } = module;
  for (const { id, body, facade, bridge } of contents) {
    const guestId = `${folder}|${id}`;
    // A WASM or host file is served as the facade of its own entry only.
    const source = facade ?? (typeof body === "string" ? body : undefined);
    if (source === undefined || table.files.has(guestId)) continue;
    table.files.set(guestId, { packName, source, ...(bridge && { bridge }) });
  }
  table.specifiers.set(specifier, `${folder}|${moduleId}`);
  if (wasm && bytes) table.wasm.set(specifier, { bytes: new Uint8Array(bytes), contract: wasm });
  if (hostId !== undefined) table.hosts.set(specifier, hostId);
}
