//! A server on loopback that answers as the wire contract says, from packs made here, and can be told to misbehave. It stands
//! for the worker where a test needs a fault; the worker itself is tested in the repository's `tests/`.

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { frameOf, recordOf, sha256, utf8 } from "./cases.js";
import type { Bytes } from "../src/hash.js";

/** A module of a pack made for a test. */
export interface Graph {
  packName: string;
  packVersion: string;
  specifier: string;
  moduleId: string;
  digest: string;
  payload: string;
  closure: Bytes;
  files: Map<string, { bytes: Bytes; dependencies: string[] }>;
}

/** Makes the graph of a module: its files by id, the entry first. A file imports what it names in `import "./…"`. */
export function graphOf(specifier: string, packVersion: string, sources: Record<string, string>): Graph {
  const packName = specifier.split("/").slice(0, 2).join("/");
  const name = specifier.slice(packName.length + 1) || ".";
  const moduleId = Object.keys(sources)[0] ?? "";
  const files = new Map(
    Object.entries(sources).map(([id, source]) => {
      const dependencies = Array.from(source.matchAll(/from "\.\/(.*?)"/g), (match) => match[1] ?? "").sort();
      return [id, { bytes: utf8(source), dependencies }];
    }),
  );
  const entries = [...files]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, { bytes, dependencies }]) => ({ id, kind: "js", dependencies, bytes: sha256(bytes) }));
  const payload = JSON.stringify({
    packageName: packName,
    packageVersion: packVersion,
    specifier,
    moduleId,
    kind: "js",
    declaration: { name, kind: "js", file: moduleId },
    entries,
  });
  const record = recordOf(payload, (id) => files.get(id)?.bytes.length ?? 0);
  const closure = frameOf(record, entries.map(({ id }) => files.get(id)?.bytes ?? utf8("")));
  return { packName, packVersion, specifier, moduleId, digest: sha256(payload), payload, closure, files };
}

/** What a server answers. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  body?: Uint8Array | string;
}

export interface Edge extends AsyncDisposable {
  url: string;
  /** `<method> <path>` of each request, with what matters of its headers. */
  requests: { path: string; ifNoneMatch: string | undefined; authorization: string | undefined }[];
  /** What there is now, by specifier. Earlier graphs stay reachable by digest. */
  publish(...graphs: Graph[]): void;
  /** Digest of the manifest that named answers say they are from, if they say so. */
  manifest: string | undefined;
  /** The channel's signed envelope, and the objects behind it by path. */
  objects: Map<string, string>;
  /** Changes answers. */
  tamper: (reply: Reply, path: string) => Reply | Promise<Reply> | undefined;
}

const PROBLEM = { "Content-Type": "application/problem+json" };

/** Starts a server: Packferry's kind, or with `walkOnly` the kind that has no closures and speaks NodeTool's dialect. */
export async function startEdge(options: { walkOnly?: boolean } = {}): Promise<Edge> {
  const current = new Map<string, Graph>();
  const stored = new Map<string, Graph>();
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const edge: Edge = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    manifest: undefined,
    objects: new Map(),
    tamper: () => undefined,
    publish(...graphs) {
      for (const graph of graphs) {
        current.set(graph.specifier, graph);
        stored.set(graph.digest, graph);
      }
    },
    [Symbol.asyncDispose]: () => stopped(server),
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(request.url ?? "");
    const { "if-none-match": ifNoneMatch, authorization } = request.headers;
    edge.requests.push({ path, ifNoneMatch, authorization });
    let reply = answer(path);
    if (reply.status === 200 && ifNoneMatch !== undefined && ifNoneMatch === reply.headers?.ETag) reply = { ...reply, status: 304, body: "" };
    reply = (await edge.tamper(reply, path)) ?? reply;
    response.writeHead(reply.status, { ...reply.headers, "Content-Length": reply.status === 304 ? 0 : Buffer.byteLength(reply.body ?? "") });
    response.end(reply.status === 304 ? undefined : reply.body);
  }

  function answer(path: string): Reply {
    const [, kind, id] = /^\/api\/(sandbox-closures|sandbox-modules)\/(.+)$/.exec(path) ?? [];
    const object = edge.objects.get(path);
    if (object !== undefined) return { status: 200, body: object };
    if (kind === undefined || id === undefined || (options.walkOnly && kind === "sandbox-closures")) {
      return { status: 404, headers: { "Content-Type": "application/json" }, body: '{"detail":"Not Found"}' };
    }
    const graph = stored.get(id) ?? current.get(id);
    if (kind === "sandbox-closures" && graph) {
      const from = edge.manifest !== undefined && !stored.has(id) && { "X-Packferry-Manifest": edge.manifest };
      return { status: 200, headers: { ...graphHeaders(graph, graph.closure), ...from, "Content-Type": "application/vnd.packferry.closure" }, body: graph.closure };
    }
    const [owner = "", file] = id.split("::");
    const found = graph ?? stored.get(owner) ?? [...current.values()].find((candidate) => candidate.packName === owner && file !== undefined && candidate.files.has(file));
    const delivered = found?.files.get(file ?? found.moduleId);
    if (kind === "sandbox-closures" || !found || !delivered) return { status: 404, headers: PROBLEM, body: `{"code":"not-found"}` };
    const ids = delivered.dependencies.map((dependency) => `${options.walkOnly ? found.packName : found.digest}::${dependency}`);
    return {
      status: 200,
      headers: {
        ...graphHeaders(found, delivered.bytes),
        "Content-Type": "text/javascript",
        "X-Sandbox-Pack": found.packName,
        "X-Sandbox-Pack-Version": found.packVersion,
        "X-Sandbox-File-Id": file ?? found.moduleId,
        "X-Sandbox-Module-Dependencies": JSON.stringify(ids),
      },
      body: delivered.bytes,
    };
  }
  return edge;
}

const graphHeaders = (graph: Graph, body: Bytes): Record<string, string> => ({
  ETag: `"${graph.digest}"`,
  "X-Content-Digest": graph.digest,
  "X-Content-Sha256": sha256(body),
});

async function stopped(server: Server): Promise<void> {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
}
