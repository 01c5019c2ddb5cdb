//! The built worker in workerd, over the local KV that `packferry publish --local` filled: the same worker,
//! configuration and state as `wrangler dev` would take, started through Miniflare.

import { join } from "node:path";

import { Log, LogLevel, Miniflare } from "miniflare";
import { unstable_getMiniflareWorkerOptions as workerOptions } from "wrangler";

import { ROOT, WORKER, requireWorker } from "./project.mjs";
import { rawRequest } from "./raw.mjs";

/**
 * Starts the worker on the state of `state`. `vars` are its vars beside those of wrangler.toml; by default a
 * channel is read again for every request, so that a test sees a publish at once. `faulty` puts faulty-kv.mjs before KV.
 */
export async function startEdge({ state, vars = {}, faulty = false }) {
  const { miniflare, log } = await start({ state, vars, faulty, names: ["edge"], direct: true });
  const direct = await miniflare.unsafeGetDirectURL();
  return {
    /** Its origin, for clients over HTTP. */
    url: direct.origin,
    /** A request by URL: status, headers and the body's bytes. */
    get: (path, options) => answer((...request) => miniflare.dispatchFetch(...request), path, options),
    /** The runtime's own `fetch`, for clients that want a Response. */
    fetch: (path, { headers = {} } = {}) => miniflare.dispatchFetch(`http://edge${path}`, { headers }),
    /** A request as these bytes, over a socket of its own. */
    raw: (request) => rawRequest(direct, request),
    /** What goes wrong with the keys of a faulty KV. */
    faults: faulty ? await miniflare.getKVNamespace("FAULTS", "faulty-kv") : undefined,
    /** What the worker and the runtime have printed. */
    log,
    close: () => miniflare.dispose(),
  };
}

/**
 * Starts `count` workers in one runtime, each an isolate that remembers nothing yet, behind the same faulty KV. `get` asks
 * the n-th.
 */
export async function startFleet({ state, vars = {}, count }) {
  const names = Array.from({ length: count }, (_, n) => `edge-${n}`);
  const { miniflare } = await start({ state, vars, faulty: true, names });
  return {
    async get(n, path, options) {
      const worker = await miniflare.getWorker(names[n]);
      return answer((...request) => worker.fetch(...request), path, options);
    },
    faults: await miniflare.getKVNamespace("FAULTS", "faulty-kv"),
    close: () => miniflare.dispose(),
  };
}

/** One runtime with a worker for each name. */
async function start({ state, vars, faulty, names, direct = false }) {
  requireWorker();
  const { compatibilityDate, compatibilityFlags, bindings, kvNamespaces, modulesRules } = workerOptions(
    join(ROOT, "wrangler.toml"),
  ).workerOptions;
  const logged = [];
  const keep = (stream) => stream.setEncoding("utf8").on("data", (text) => logged.push(text));
  const worker = (name) => ({
    name,
    // A socket of workerd without Miniflare's own worker before it, which would rewrite odd URLs.
    ...(direct && { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] }),
    modules: true,
    modulesRoot: WORKER,
    modulesRules,
    scriptPath: join(WORKER, "index.js"),
    compatibilityDate,
    compatibilityFlags,
    bindings: { ...bindings, POINTER_CACHE_SECONDS: "0", ...vars },
    ...(faulty ? { wrappedBindings: { KV: "faulty-kv" } } : { kvNamespaces }),
  });
  const miniflare = new Miniflare({
    cf: false,
    log: new Log(LogLevel.NONE),
    handleRuntimeStdio: (out, err) => [out, err].forEach(keep),
    host: "127.0.0.1",
    kvPersist: join(state, "v3", "kv"),
    cachePersist: join(state, "v3", "cache"),
    workers: [...names.map(worker), ...(faulty ? [wrapper(kvNamespaces)] : [])],
  });
  await miniflare.ready;
  return { miniflare, log: () => logged.join("") };
}

/** A request through `fetch`: status, headers and the body's bytes. */
async function answer(fetch, path, { headers = {}, method = "GET" } = {}) {
  const response = await fetch(`http://edge${path}`, {
    method,
    headers: { "Accept-Encoding": "identity", ...headers },
    redirect: "manual",
  });
  return {
    status: response.status,
    headers: new Headers([...response.headers]),
    body: Buffer.from(await response.arrayBuffer()),
  };
}

/** The worker that becomes the binding of a faulty KV: it wraps the real one. */
function wrapper({ KV }) {
  return {
    name: "faulty-kv",
    modules: [{ type: "ESModule", path: join(ROOT, "tests", "support", "faulty-kv.mjs") }],
    kvNamespaces: { KV, FAULTS: "faults" },
  };
}
