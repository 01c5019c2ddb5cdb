//! Graph records, and the closures that carry them with the files' bytes. Everything is checked against the payload, and
//! the payload against the graph digest; nothing here fetches.

import type { HostRegistry } from "./contract.js";
import { insist } from "./errors.js";
import { type Bytes, decodeUtf8, sha256 } from "./hash.js";
import { isText } from "./names.js";
import { type Graph, type GraphFile, parsePayload } from "./payload.js";
import { isCount, isObject } from "./schema.js";

/** `Content-Type` of a closure. */
export const CLOSURE_TYPE = "application/vnd.packferry.closure";

/** A graph that was proven, with its digest and the bytes of its files, in their order. */
export interface Closure {
  graph: Graph;
  digest: string;
  bodies: Bytes[];
}

/** Opens a closure body; `wanted` is the graph digest that was asked for or promised. */
export async function openClosure(body: Bytes, wanted?: string): Promise<Closure> {
  const [json, rest] = splitFrame(body);
  const { graph, digest, sizes } = await readRecord(json, wanted);
  const bodies = cutFiles(sizes, rest);
  await checkBodies(graph, bodies);
  return { graph, digest, bodies };
}

/** Splits a closure's frame: `PFC1`, a little-endian length, that many bytes of the record's JSON; then the files. */
export function splitFrame(body: Bytes): [record: string, files: Bytes] {
  insist(body.length > 8, "it is not a closure");
  const view = new DataView(body.buffer, body.byteOffset);
  const end = 8 + view.getUint32(4, true);
  insist(view.getUint32(0) === 0x50464331 && end <= body.length, "it is not a closure");
  return [decodeUtf8(body.subarray(8, end)), body.subarray(end)];
}

/** Cuts what follows a record into files. */
export function cutFiles(sizes: number[], files: Bytes): Bytes[] {
  let at = 0;
  const bodies = sizes.map((size) => files.subarray(at, (at += size)));
  insist(at === files.length, "its length is not the sum of its files");
  return bodies;
}

/** Reads and checks a record. */
export async function readRecord(json: string, wanted?: string): Promise<{ graph: Graph; digest: string; sizes: number[] }> {
  const record: unknown = JSON.parse(json);
  insist(isObject(record) && isText(record.payload) && Array.isArray(record.files), "it is not a graph record");
  const sizes = record.files.map((file: unknown) => (isObject(file) ? file.size : undefined));
  const digest = await checkPayloadDigest(record.payload, wanted);
  const graph = parsePayload(record.payload);
  for (const file of graph.files) file.bytes ??= await sha256(graph.host?.facade ?? "");
  checkRecord(json, record.payload, graph, sizes);
  checkGraph(graph.files, graph.moduleId);
  return { graph, digest, sizes };
}

/** SHA-256 of the payload is the digest asked for. Gives it. */
export async function checkPayloadDigest(payload: string, wanted?: string): Promise<string> {
  const found = await sha256(payload);
  insist(!wanted || found === wanted, `its graph digest is ${found}, not ${wanted}`);
  return found;
}

/**
 * The record is, byte for byte, that of its payload and of the files' sizes: its files are exactly the payload's, none
 * missing, none extra, in order, with the same ids, kinds, digests and dependencies, and so is its entry.
 */
export function checkRecord(json: string, payload: string, graph: Graph, sizes: unknown[]): asserts sizes is number[] {
  const files = graph.files.map(({ id, kind, bytes, dependencies }, at) => ({ id, kind, sha256: bytes, size: sizes[at], dependencies }));
  const again = JSON.stringify({ version: 1, payload, files, entry: graph.moduleId });
  insist(sizes.every(isCount) && again === json, "its record is not that of its payload");
}

/** Dependencies stay inside the graph, there is no cycle, and the entry reaches every file. Iterative: it may be deep. */
export function checkGraph(files: Pick<GraphFile, "id" | "dependencies">[], entry: string): void {
  const byId = new Map(files.map((file) => [file.id, file]));
  const open = new Map<string, boolean>();
  const stack = [entry];
  for (let id; (id = stack.at(-1)) !== undefined; ) {
    if (open.has(id)) {
      open.set(id, false);
      stack.pop();
      continue;
    }
    const file = byId.get(id);
    insist(file, `${id} is not a file of the graph`);
    open.set(id, true);
    for (const dependency of file.dependencies) {
      insist(!open.get(dependency), `${dependency} imports itself`);
      if (!open.has(dependency)) stack.push(dependency);
    }
  }
  insist(open.size === files.length, "a file is listed twice or never imported");
}

/** Every file's bytes have the SHA-256 that the payload names. */
export async function checkBodies(graph: Graph, bodies: Bytes[]): Promise<void> {
  const hashes = await Promise.all(bodies.map(sha256));
  graph.files.forEach((file, at) => insist(hashes[at] === file.bytes, `the SHA-256 of ${file.id} is not the stated one`));
}

/** The payload is that of the specifier that was asked for. */
export function checkAsked(graph: Graph, specifier: string): void {
  insist(graph.specifier === specifier, `it is the graph of ${graph.specifier}`);
}

/** A call contract in a header says what the payload says. */
export function checkContractHeader(header: string | null, graph: Graph): void {
  insist(!header || header === JSON.stringify(graph.wasm), "the call contract in its header is not the payload's");
}

/** A host module is one of the client's own registry, bound there to that pack, with the same exports. */
export function checkHost({ host, packName }: Pick<Graph, "host" | "packName">, registry: HostRegistry): void {
  if (!host) return;
  const own = Object.hasOwn(registry, host.id) && registry[host.id];
  insist(
    own && own.pack === packName && [...own.exports].sort().join() === host.exports.join(),
    `host module "${host.id}" is not registered for ${packName} with these exports`,
  );
}
