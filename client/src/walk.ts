//! The walk over module ids, for a server without closures. It proves each body against its announced SHA-256 and nothing
//! else: there is no payload, so its records say `proven: false`.

import type { FileRecord, ModuleRecord } from "./catalog.js";
import { facadeNames, type HostRegistry, WASM_CONTRACT, type WasmContract } from "./contract.js";
import { insist } from "./errors.js";
import { isDigest, isFileId, isPackName, isText } from "./names.js";
import { isReserved } from "./reserved.js";
import { checkGraph, checkHost } from "./record.js";
import { read } from "./schema.js";
import { type Answer, ask, checkStatus, type Session, type Subject } from "./transport.js";

/** One delivered file, by what its headers say. */
interface Delivered {
  digest: string;
  packName: string;
  packVersion: string | null;
  file: FileRecord;
  /** Module ids of its imports. */
  imports: string[];
  wasm?: WasmContract;
  hostId?: string;
}

const TRIES = 3;

/** Fetches a module and all that it imports; gives `known` back where the server says that nothing changed. */
export async function walk(session: Session, what: Subject & { specifier: string }, hosts: HostRegistry, known?: ModuleRecord): Promise<ModuleRecord> {
  const { specifier } = what;
  const deliver = (id: string, etag?: string): Promise<Delivered | undefined> =>
    ask(session, `sandbox-modules/${encodeURIComponent(id)}`, what, (answer) => delivered(answer, what, etag), etag);
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const root = await deliver(specifier, known?.contentDigest);
    if (!root) return known as ModuleRecord;
    const files = new Map([[root.file.id, root.file]]);
    for (let next = root.imports; next.length; ) {
      const ids = new Map(next.map((id) => [fileOf(id), id]));
      const missing = [...ids].filter(([file]) => !files.has(file));
      const level = await Promise.all(missing.map(async ([file, id]) => imported(await deliver(id), root, file)));
      for (const { file } of level) files.set(file.id, file);
      next = level.flatMap(({ imports }) => imports);
    }
    // A publish in the middle of the walk has changed the root's digest, which covers all that it imports.
    if (files.size === 1 || !(await deliver(specifier, root.digest))) return recordOf(root, [...files.values()], specifier, hosts);
  }
  throw new Error("it changed again and again while it was fetched");
}

const fileOf = (id: string): string => id.replace(/^.*?::/, "");

function imported(found: Delivered | undefined, root: Delivered, id: string): Delivered {
  insist(found && found.packName === root.packName && found.file.id === id, `${id} is not the file that was asked for`);
  return found;
}

function recordOf(root: Delivered, files: FileRecord[], specifier: string, hosts: HostRegistry): ModuleRecord {
  const { packName, packVersion, digest: contentDigest, file, wasm, hostId } = root;
  const { id: moduleId, kind } = file;
  checkGraph(files, moduleId);
  if (hostId) {
    const facade = new TextDecoder().decode(file.bytes);
    checkHost({ packName, host: { id: hostId, exports: facadeNames(facade).sort(), facade } }, hosts);
  }
  return {
    specifier,
    packName,
    ...(isText(packVersion) && { packVersion }),
    contentDigest,
    moduleId,
    kind,
    files,
    ...(wasm && { wasm }),
    ...(hostId && { hostId }),
    proven: false,
    pinned: false,
  };
}

function contractOf(header: string): WasmContract {
  const contract = read(WASM_CONTRACT, JSON.parse(header));
  insist(contract.exports.length && !contract.exports.some((pair) => isReserved(pair.as)), "its call contract is refused");
  return contract;
}

function delivered(answer: Answer, what: Subject, etag?: string): Delivered | undefined {
  if (etag && answer.status === 304) return undefined;
  checkStatus(answer.status, what);
  const { header, body: bytes } = answer;
  const digest = header("X-Content-Digest");
  const packName = header("X-Sandbox-Pack");
  const id = header("X-Sandbox-File-Id");
  const complete = isDigest(digest) && isPackName(packName) && isFileId(id) && header("X-Content-Sha256");
  insist(complete, "it was delivered without its content headers");
  if (header("X-Content-Digest") === etag) return undefined;
  const hostId = header("X-Sandbox-Host-Module");
  const contract = header("X-Sandbox-Wasm-Contract");
  const kind = header("Content-Type")?.startsWith("application/wasm") ? "wasm" : hostId ? "host" : "js";
  const imports = read([isText], JSON.parse(header("X-Sandbox-Module-Dependencies") ?? "[]"));
  return {
    digest,
    packName,
    packVersion: header("X-Sandbox-Pack-Version"),
    file: { id, kind, bytes, dependencies: imports.map(fileOf) },
    imports,
    ...(contract && { wasm: contractOf(contract) }),
    ...(hostId && { hostId }),
  };
}
