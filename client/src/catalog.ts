//! A catalog over fetched records: what there is, and what a run's declarations resolve to. It fetches nothing.

import type { WasmContract } from "./contract.js";
import { type Declaration, parseDeclarations } from "./declarations.js";
import type { Bytes } from "./hash.js";
import { packOf } from "./names.js";
import type { FileKind } from "./payload.js";

/** A file of a record. */
export interface FileRecord {
  id: string;
  kind: FileKind;
  bytes: Bytes;
  /** File ids of the same graph. */
  dependencies: string[];
}

/** A fetched module: plain data, to be cloned into a worker. */
export interface ModuleRecord {
  specifier: string;
  packName: string;
  packVersion?: string;
  /** The graph digest. */
  contentDigest: string;
  /** File id of the entry. */
  moduleId: string;
  kind: FileKind;
  files: FileRecord[];
  wasm?: WasmContract;
  hostId?: string;
  /** Whether the digest was proven, or only each body against its own (a server without closures). */
  proven: boolean;
  /** Whether this is the graph that the workflow was saved with, whatever is installed now. */
  pinned: boolean;
}

/** A message about a pack or module. */
export interface Status {
  packName: string;
  specifier?: string;
  status: "ready" | "warning" | "skipped" | "error";
  code: string;
  message: string;
}

/** A file of a resolved module: source or bytes. */
export interface ResolvedFile {
  id: string;
  kind: FileKind;
  source?: string;
  bytes?: Bytes;
  dependencies: string[];
  internal: boolean;
}

/** A module as a run gets it. */
export interface ResolvedModule {
  specifier: string;
  packName: string;
  packVersion?: string;
  contentDigest: string;
  moduleId: string;
  kind: FileKind;
  /** Every file that the entry reaches, the entry included, sorted by id; of a host module none. */
  graph: ResolvedFile[];
  source?: string;
  bytes?: Bytes;
  wasm?: WasmContract;
  hostId?: string;
}

/** What a run's declarations come to. */
export interface Resolution {
  modules: ResolvedModule[];
  statuses: Status[];
}

/** A module's line in a list. */
export type Summary = Omit<ModuleRecord, "files" | "wasm" | "hostId">;

export interface Catalog {
  summaries(): Summary[];
  /** What there is to say about the records themselves. */
  diagnostics(): Status[];
  resolveForExecution(declarations: unknown): Resolution;
}

/** Makes a catalog of records. */
export function createCatalog(records: readonly ModuleRecord[]): Catalog {
  // Of two records of one module the first counts, as of two declarations.
  const bySpecifier = new Map(records.toReversed().map((record) => [record.specifier, record]));
  return {
    summaries: () => records.map(({ files, wasm, hostId, ...summary }) => summary),
    diagnostics: () =>
      records.flatMap((record) => {
        const say = speaker(record);
        return [
          ...(record.proven ? [] : [say("warning", "unproven", "was delivered without proof of its digest.")]),
          ...(record.pinned ? [say("ready", "pinned", `is pinned to the graph it was saved with, ${record.contentDigest}.`)] : []),
        ];
      }),
    resolveForExecution(declarations) {
      const resolution: Resolution = { modules: [], statuses: [] };
      for (const declaration of parseDeclarations(declarations)) {
        const { specifier } = declaration;
        resolve(declaration, bySpecifier.get(specifier), resolution);
      }
      return resolution;
    },
  };
}

const speaker =
  ({ specifier, packName }: { specifier: string; packName: string }) =>
  (status: Status["status"], code: string, end: string): Status => ({
    packName,
    specifier,
    status,
    code,
    message: `Sandbox module ${specifier} ${end}`,
  });

function resolve(declaration: Declaration, record: ModuleRecord | undefined, { modules, statuses }: Resolution): void {
  const { specifier, resolvedPackVersion, contentDigest } = declaration;
  const status = speaker(record ?? { specifier, packName: packOf(specifier) });
  const say = (...message: Parameters<typeof status>): void => void statuses.push(status(...message));
  if (!record) return say("error", "module-not-found", "is not installed.");
  const { files, proven, pinned, ...module } = record;
  const { packName, packVersion, moduleId, kind } = module;
  if (kind === "wasm" && !module.wasm) return say("error", "module-unavailable", "was delivered without its WASM call contract.");
  if (resolvedPackVersion && resolvedPackVersion !== packVersion) {
    const installed = packVersion ?? "an unversioned pack";
    say("warning", "version-mismatch", `was saved with pack version ${resolvedPackVersion}, but ${installed} is installed.`);
  }
  if (contentDigest && contentDigest !== module.contentDigest) {
    say("warning", "content-digest-mismatch", "has changed since the workflow was saved.");
  }
  for (const id of new Set(files.flatMap((file) => file.dependencies))) {
    if (!files.some((file) => file.id === id)) say("error", "module-unavailable", `is missing ${packName}::${id}, which it imports.`);
  }
  const graph = files.map((file) => resolvedFile(file, moduleId)).sort((a, b) => a.id.localeCompare(b.id, "en"));
  const { source, bytes } = graph.find((file) => file.id === moduleId) ?? {};
  if (kind === "host") modules.push({ ...module, graph: [] });
  else modules.push({ ...module, graph, ...(bytes ? { bytes } : { source: source ?? "" }) });
}

function resolvedFile({ id, kind, bytes, dependencies }: FileRecord, moduleId: string): ResolvedFile {
  const body = kind === "wasm" ? { bytes } : { source: new TextDecoder().decode(bytes) };
  return { id, kind, ...body, dependencies, internal: id !== moduleId };
}
