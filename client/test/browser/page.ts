//! The page of the tests in a browser: `globalThis.packferry` fetches and runs what a test asks for, on the page itself or in a web
//! worker to which the records cross by `postMessage`.

import { browserCache, type ByteCache, type ClientOptions, createCatalogClient, memoryCache, type ModuleRecord, PackferryError, type PrefetchOptions, type Progress } from "@packferry/client";

import { type Outcome, outcomeOf, type RunRequest } from "./runner.js";

/** Options that can be told from outside. With `memory` the cache is one in memory, else the client's own choice. */
type Options = Omit<ClientOptions, "cache" | "fetch"> & { memory?: boolean };

/** What a prefetch came to. */
type Fetched =
  | { records: Omit<ModuleRecord, "files" | "wasm" | "hostId">[]; progress: Progress | undefined }
  | { code: string; message: string; packName: string | undefined };

const held = new Map<string, ModuleRecord[]>();
const recordsOf = (names: string[]): ModuleRecord[] => names.flatMap((name) => held.get(name) ?? []);

const packferry = {
  /** Prefetches; the records are kept under `name`. */
  async prefetch(name: string, options: Options, declarations: unknown, more: PrefetchOptions = {}): Promise<Fetched> {
    let progress: Progress | undefined;
    const { memory, ...clientOptions } = options;
    try {
      const client = createCatalogClient({ ...clientOptions, ...(memory && { cache: memoryCache() }) });
      const records = await client.prefetch(declarations, { ...more, onProgress: (seen) => (progress = seen) });
      held.set(name, records);
      return { progress, records: records.map(({ files, wasm, hostId, ...record }) => record) };
    } catch (error) {
      if (!(error instanceof PackferryError)) throw error;
      const { code, message, packName } = error;
      return { code, message, packName };
    }
  },
  /** Runs code on the page; gives JSON, as the browser's driver loses keys such as `__proto__`. */
  async run(names: string[], request: Omit<RunRequest, "records">): Promise<string> {
    return JSON.stringify(await outcomeOf({ ...request, records: recordsOf(names) }));
  },
  /** Runs code in a web worker of its own. */
  async runInWorker(names: string[], request: Omit<RunRequest, "records">): Promise<string> {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    const outcome = new Promise<Outcome>((resolve, reject) => {
      worker.onmessage = ({ data }: MessageEvent<Outcome>) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage({ ...request, records: recordsOf(names) });
    });
    return JSON.stringify(await outcome.finally(() => worker.terminate()));
  },
  /** Puts entries of these sizes into a cache in Cache Storage of `maxBytes`; gives the sizes that it has then, and in another instance. */
  async keeps(maxBytes: number, sizes: number[]): Promise<(number | undefined)[][]> {
    const cache = browserCache("budget", maxBytes);
    for (const [at, size] of sizes.entries()) await cache.put(`key/${at}`, new Uint8Array(size));
    const held = (from: ByteCache): Promise<(number | undefined)[]> => Promise.all(sizes.map(async (_, at) => (await from.get(`key/${at}`))?.length));
    return [await held(cache), await held(browserCache("budget", maxBytes))];
  },
  /** Changes a byte of everything that Cache Storage has; gives how many entries that were. */
  async damage(): Promise<number> {
    const cache = await caches.open("packferry");
    const requests = await cache.keys();
    for (const request of requests) {
      const bytes = new Uint8Array((await (await cache.match(request))?.arrayBuffer()) ?? new ArrayBuffer(0));
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      await cache.put(request, new Response(bytes));
    }
    return requests.length;
  },
};

Object.assign(globalThis, { packferry });
