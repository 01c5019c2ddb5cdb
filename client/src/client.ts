//! The client: declarations in, proven records out. It decides what to ask for; how is in `transport.ts`, what must hold in
//! the files of the checks.

import { type ByteCache, defaultCache } from "./cache.js";
import type { ModuleRecord } from "./catalog.js";
import type { HostRegistry } from "./contract.js";
import { type Declaration, parseDeclarations } from "./declarations.js";
import { PackferryError } from "./errors.js";
import { type Bytes, decodeUtf8, encodeUtf8, subtle } from "./hash.js";
import { isDigest } from "./names.js";
import { checkAsked, checkContractHeader, checkHost, openClosure } from "./record.js";
import { type Answer, ask, checkStatus, held, keep, type Mirror, put, type Session } from "./transport.js";

/** How a client is made. One of `baseUrl` and `mirrors` is needed. */
export interface ClientOptions {
  /** The server whose word is taken for what a specifier means now. */
  baseUrl?: string;
  /** Token for `baseUrl`; no other origin gets it. */
  token?: string;
  /** Servers asked in this order after `baseUrl`. They need `trustedKeys` or `pin`. */
  mirrors?: readonly Mirror[];
  /** Where verified bytes are kept; by default Cache Storage where there is one, else memory. */
  cache?: ByteCache;
  /** Ed25519 keys, 32 bytes in base64. With them every digest follows from a channel that one of them signed. */
  trustedKeys?: readonly string[];
  /** The channel that `trustedKeys` sign; by default `stable`. */
  channel?: string;
  /** The host modules of this application; no other is taken. */
  hosts?: HostRegistry;
  /** Default of `prefetch`'s `pin`. */
  pin?: boolean;
  fetch?: typeof fetch;
}

/** How far a prefetch is, in bytes. `total` is what its responses so far have announced, and never below `loaded`. */
export interface Progress {
  loaded: number;
  total: number;
}

export interface PrefetchOptions {
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
  /** Fetch the graph of a declaration's `contentDigest`, also where another is installed by now; nothing unproven. */
  pin?: boolean;
}

export interface CatalogClient {
  /** Fetches and proves the declared modules with all that they import, in the order of the declarations. */
  prefetch(declarations: unknown, options?: PrefetchOptions): Promise<ModuleRecord[]>;
}

/** Makes a client. Throws where a mirror is given that nothing could check. */
export function createCatalogClient(options: ClientOptions): CatalogClient {
  const { trustedKeys, channel = "stable", hosts = {} } = options;
  const [base, mirrors] = mirrorsOf(options);
  const cache = options.cache ?? defaultCache();
  const walked = new Map<string, ModuleRecord>();

  const fetchModule = async (session: Session, declaration: Declaration, pin: boolean, digestOf?: DigestOf): Promise<ModuleRecord> => {
    const { specifier, contentDigest } = declaration;
    const what = { name: `Sandbox module ${specifier}`, specifier };
    const pinned = pin && !!contentDigest;
    const digest = pinned ? contentDigest : await digestOf?.(specifier);
    const open = async (body: Bytes, answer?: Answer, wanted = digest): Promise<ModuleRecord> => {
      if (answer && lacksClosures(answer)) throw new PackferryError("unproven", `${what.name} cannot be proven: this server has no closures.`, specifier);
      if (answer) checkStatus(answer.status, what);
      return openRecord(body, specifier, pinned, hosts, wanted, answer);
    };
    if (digest) return keep(session, `closure/${digest}`, `sandbox-closures/${digest}`, what, open);
    if (digestOf) checkStatus(404, what);
    if (!base) throw new PackferryError("usage", `${what.name} needs a contentDigest to be fetched from mirrors.`, specifier);

    const name = `named/${base.url}/${specifier}`;
    const saved = await held(session, name, decodeUtf8);
    const known = await held(session, `closure/${saved}`, (body) => open(body, undefined, saved));
    return ask(
      { ...session, mirrors: [base] },
      `sandbox-closures/${encodeURIComponent(specifier)}`,
      what,
      async (answer) => {
        const manifest = answer.header("X-Packferry-Manifest");
        if (isDigest(manifest)) session.manifests.add(manifest);
        if (known && answer.status === 304) return known;
        if (!pin && lacksClosures(answer)) {
          const record = await (await import("./walk.js")).walk({ ...session, mirrors: [base] }, what, hosts, walked.get(specifier));
          walked.set(specifier, record);
          return structuredClone(record);
        }
        const fresh = await open(answer.body, answer);
        await Promise.all([put(session, `closure/${fresh.contentDigest}`, answer.body), put(session, name, encodeUtf8(fresh.contentDigest))]);
        return fresh;
      },
      known?.contentDigest,
    );
  };

  return {
    async prefetch(declarations, { signal, onProgress, pin = options.pin ?? false } = {}) {
      subtle();
      const wanted = parseDeclarations(declarations);
      const stop = new AbortController();
      const progress = { loaded: 0, total: 0 };
      const session: Session = {
        fetch: options.fetch ?? globalThis.fetch,
        mirrors,
        cache,
        manifests: new Set(),
        signal: AbortSignal.any(signal ? [signal, stop.signal] : [stop.signal]),
        onBytes(arrived, announced) {
          progress.loaded += arrived;
          progress.total = Math.max(progress.total + announced, progress.loaded);
          onProgress?.({ ...progress });
        },
      };
      try {
        session.signal.throwIfAborted();
        const named = wanted.some(({ contentDigest }) => !pin || !contentDigest);
        const fetchAll = (digestOf?: DigestOf): Promise<ModuleRecord[]> =>
          Promise.all(wanted.map((declaration) => fetchModule(session, declaration, pin, digestOf)));
        const release = (): Promise<typeof import("./release.js")> => import("./release.js");
        if (trustedKeys && named) return await fetchAll(await (await release()).openRelease(session, channel, trustedKeys));
        const records = await fetchAll();
        const latest = [...session.manifests].at(-1);
        if (!base || !latest || session.manifests.size === 1) return records;
        // A publish came between the answers. What they name is taken from one release, the one that was seen last.
        return await fetchAll(await (await release()).openManifest({ ...session, mirrors: [base] }, latest, "that answers now"));
      } finally {
        stop.abort(); // where one module fails, the others are not fetched on
      }
    },
  };
}

type DigestOf = (specifier: string) => Promise<string | undefined>;

/** Opens a closure and checks that it is of the module that was asked for; `wanted` is its digest, where that is known. */
async function openRecord(
  body: Bytes,
  specifier: string,
  pinned: boolean,
  hosts: HostRegistry,
  wanted: string | undefined,
  answer: Answer | undefined,
): Promise<ModuleRecord> {
  const { graph, digest, bodies } = await openClosure(body, wanted ?? answer?.header("X-Content-Digest") ?? undefined);
  checkAsked(graph, specifier);
  checkHost(graph, hosts);
  if (answer) checkContractHeader(answer.header("X-Sandbox-Wasm-Contract"), graph);
  const { files, host, ...module } = graph;
  return {
    ...module,
    contentDigest: digest,
    files: files.map(({ id, kind, dependencies }, at) => ({ id, kind, bytes: new Uint8Array(bodies[at] ?? []), dependencies })),
    ...(host && { hostId: host.id }),
    proven: true,
    pinned,
  };
}

/** Whether the answer is that of a server that does not know the route, rather than not the module. */
const lacksClosures = ({ status, header }: Answer): boolean =>
  [200, 404, 405].includes(status) && !/packferry|problem/.test(header("Content-Type") ?? "");

function mirrorsOf({ baseUrl, token, mirrors = [], trustedKeys, pin }: ClientOptions): [base: Mirror | undefined, mirrors: Mirror[]] {
  const normalized = (url: string): string => new URL(url, globalThis.location?.href).href.replace(/\/$/, "");
  const base = baseUrl === undefined ? undefined : { url: normalized(baseUrl), ...(token && { token }) };
  const others = mirrors.map((mirror) => ({ ...mirror, url: normalized(mirror.url) })).filter(({ url }) => url !== base?.url);
  if (others.length && !trustedKeys && !pin) {
    throw new PackferryError("usage", `Nothing could check ${others[0]?.url}: mirrors need trustedKeys or pin.`);
  }
  if (!base && !others.length) throw new PackferryError("usage", "No baseUrl and no mirrors.");
  return [base, base ? [base, ...others] : others];
}
