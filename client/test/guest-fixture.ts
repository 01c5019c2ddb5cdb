//! The packs of `fixtures/guest/cases.json` as modules: built into closures as a release has them, and fetched through the client, so
//! that every case's files were proven on their way.

import { createCatalog, createCatalogClient, memoryCache, type Resolution } from "../src/index.js";
import { facadeOf } from "../src/contract.js";
import type { Case } from "./guest-cases.js";
import { fixture, frameOf, recordOf, sha256, utf8 } from "./cases.js";

type Export = string | { wasm: string; as: string };

interface Module {
  kind: "js" | "npm" | "wasm" | "host";
  file?: string;
  npm?: string;
  text?: string;
  memoryPagesMax?: number;
  exports?: Export[];
  limits?: Record<string, number>;
  host?: string;
}

interface Pack {
  name: string;
  version?: string;
  modules: Record<string, Module>;
  files: Record<string, { dependencies: string[]; text?: string; base64?: string }>;
}

const document = fixture<{ packs: Record<string, Pack>; cases: Case[] }>("guest/cases.json");
export const cases = document.cases;

/** A module as a release has it: its digest payload, and its files in the order of the record. */
export interface Built {
  specifier: string;
  digest: string;
  /** The values of KV that answer its pinned ids, by key. */
  objects: Map<string, Uint8Array<ArrayBuffer>>;
  closure: Uint8Array<ArrayBuffer>;
}

const wasmName = (item: Export): string => (typeof item === "string" ? item : item.wasm);
const alias = (item: Export): string => (typeof item === "string" ? item : item.as);
const byUnits = (a: string, b: string): number => (a < b ? -1 : 1);

/** Builds the module `<pack key>` or `<pack key>/<name>`. */
export function build(declared: string): Built {
  const [key = "", name = "."] = declared.split(/\/(.*)/s);
  const pack = document.packs[key];
  const module = pack?.modules[name];
  if (!pack || !module) throw new Error(`no module ${declared} among the cases' packs`);
  const specifier = name === "." ? pack.name : `${pack.name}/${name}`;
  const { payload, bodies } = payloadOf(pack, name, module, specifier);
  const record = recordOf(JSON.stringify(payload), (id) => bodies.get(id)?.length ?? 0);
  const { files } = JSON.parse(record) as { files: { id: string }[] };
  const closure = frameOf(record, files.map(({ id }) => bodies.get(id) ?? utf8("")));
  const digest = sha256(JSON.stringify(payload));
  const blobs = Array.from(bodies.values(), (body): [string, Uint8Array<ArrayBuffer>] => [`blob/${sha256(body)}`, new Uint8Array(body)]);
  return { specifier, digest, closure, objects: new Map([...blobs, [`graph/${digest}`, utf8(record)], [`closure/${digest}`, closure]]) };
}

function payloadOf(pack: Pack, name: string, module: Module, specifier: string): { payload: object; bodies: Map<string, Uint8Array> } {
  const start = { packageName: pack.name, packageVersion: pack.version, specifier };
  if (module.kind === "host") {
    const exports = module.exports?.map(alias) ?? [];
    const facade = facadeOf("host", specifier, exports);
    const moduleId = `host:${module.host}`;
    const payload = { ...start, moduleId, hostId: module.host, exports: [...exports].sort(), facadeVersion: 2, facade };
    return { payload, bodies: new Map([[moduleId, utf8(facade)]]) };
  }
  if (module.kind === "npm") {
    const moduleId = `npm:${module.npm}`;
    const body = utf8(module.text ?? "");
    const payload = {
      ...start,
      moduleId,
      npm: module.npm,
      declaration: { name, kind: "js", npm: module.npm },
      bundler: "esbuild",
      bundlerVersion: "0.28.2",
      optionsDigest: "0".repeat(64),
      source: sha256(body),
    };
    return { payload, bodies: new Map([[moduleId, body]]) };
  }
  const moduleId = module.file ?? "";
  const bodies = reachable(pack, moduleId);
  const entries = [...bodies.keys()].sort(byUnits).map((id) => ({
    id,
    kind: pack.files[id]?.base64 === undefined ? "js" : "wasm",
    dependencies: [...(pack.files[id]?.dependencies ?? [])].sort(byUnits),
    bytes: sha256(bodies.get(id) ?? ""),
  }));
  const file = module.file;
  if (module.kind === "js") {
    return { payload: { ...start, moduleId, kind: "js", declaration: { name, kind: "js", file }, entries }, bodies };
  }
  const { memoryPagesMax, limits, exports = [] } = module;
  const sorted = [...exports].sort((a, b) => byUnits(wasmName(a), wasmName(b)));
  const declaration = { name, kind: "wasm", file, memoryPagesMax, limits, exports: sorted };
  const facade = facadeOf("wasm", specifier, exports.map(alias));
  return { payload: { ...start, moduleId, kind: "wasm", declaration, entries, facadeVersion: 1, facade }, bodies };
}

function reachable(pack: Pack, entry: string): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>();
  for (const queue = [entry]; queue.length > 0; ) {
    const id = queue.pop() ?? "";
    const file = pack.files[id];
    if (found.has(id) || !file) continue;
    found.set(id, file.base64 === undefined ? utf8(file.text ?? "") : Buffer.from(file.base64, "base64"));
    queue.push(...file.dependencies);
  }
  return found;
}

const hostExports = (declared: string[]): string[] =>
  declared.flatMap((key) => document.packs[key]?.modules["."]?.exports ?? []).map(alias);

/** What the declared modules of a case resolve to. */
export async function resolutionOf(declared: string[]): Promise<Resolution> {
  const built = declared.map(build);
  const closures = new Map(built.map(({ digest, closure }) => [digest, closure]));
  const client = createCatalogClient({
    baseUrl: "https://cases.invalid",
    pin: true,
    // The guest is to find out for itself whose host module it is.
    hosts: { echo: { pack: built.some(({ specifier }) => specifier === "@acme/forged") ? "@acme/forged" : "@acme/echo", exports: hostExports(declared) } },
    cache: memoryCache(),
    fetch: async (url) => {
      const closure = closures.get(String(url).split("/").at(-1) ?? "");
      return new Response(closure ?? null, { status: closure ? 200 : 404, headers: { "Content-Type": "application/vnd.packferry.closure" } });
    },
  });
  // Two digests of one specifier are two prefetches, as the first of two declarations counts.
  const records = await Promise.all(built.map(({ specifier, digest }) => client.prefetch([{ specifier, contentDigest: digest }])));
  return createCatalog(records.flat()).resolveForExecution(built.map(({ specifier }) => specifier));
}
