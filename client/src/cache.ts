//! Caches: bytes by key, in memory and in the browser's Cache Storage. Nothing read from one is believed: the client
//! verifies it again.

import type { Bytes } from "./hash.js";

/** Where a client keeps what it verified. A cache may forget anything at any time, and its failures are misses. */
export interface ByteCache {
  get(key: string): Promise<Bytes | undefined>;
  put(key: string, bytes: Bytes): Promise<void>;
}

const DEFAULT_BYTES = 64 * 1024 * 1024;

/** The browser's, where it has one for this page, else one in memory. A sandboxed frame throws at the mere look. */
export function defaultCache(): ByteCache {
  try {
    if (globalThis.caches) return browserCache();
  } catch {
    // It has none.
  }
  return memoryCache();
}

/** A cache in memory that drops what was used longest ago. */
export function memoryCache(maxBytes = DEFAULT_BYTES): ByteCache {
  const held = new Map<string, Bytes>();
  let size = 0;
  const remove = (key: string): void => {
    size -= held.get(key)?.length ?? 0;
    held.delete(key);
  };
  const put = async (key: string, bytes: Bytes): Promise<void> => {
    remove(key);
    held.set(key, bytes);
    size += bytes.length;
    for (const oldest of held.keys()) if (size > maxBytes) remove(oldest);
  };
  return {
    async get(key) {
      const bytes = held.get(key);
      if (bytes) await put(key, bytes);
      return bytes;
    },
    put,
  };
}

/** A cache in the browser's Cache Storage that drops what was written longest ago. It outlives the page. */
export function browserCache(name = "packferry", maxBytes = DEFAULT_BYTES): ByteCache {
  const opened = caches.open(name);
  opened.catch(() => undefined); // whoever reads or writes is told
  // The size stands in the query, so that the budget is kept without reading a body.
  const url = (key: string): string => `https://packferry.invalid/${encodeURIComponent(key)}`;
  const find = { ignoreSearch: true };
  return {
    async get(key) {
      const response = await (await opened).match(url(key), find);
      return response && new Uint8Array(await response.arrayBuffer());
    },
    async put(key, bytes) {
      const cache = await opened;
      await cache.delete(url(key), find);
      await cache.put(`${url(key)}?${bytes.length}`, new Response(bytes));
      let size = 0;
      for (const request of [...(await cache.keys())].reverse()) {
        size += Number(request.url.split("?")[1]);
        if (size > maxBytes) await cache.delete(request);
      }
    },
  };
}
