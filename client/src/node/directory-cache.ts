//! A cache in a directory, for Node. Nothing read from it is believed: the client verifies it again.

import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

import type { ByteCache } from "../cache.js";

/** A cache in `directory`, which it makes; it drops what was used longest ago. Processes may share it. */
export function directoryCache(directory: string, maxBytes = 256 * 1024 * 1024): ByteCache {
  // Keys hold slashes and colons, and no system takes file names of their length.
  const pathOf = (key: string): string => join(directory, createHash("sha256").update(key).digest("hex"));
  return {
    async get(key) {
      const path = pathOf(key);
      try {
        const bytes = new Uint8Array(await readFile(path));
        const now = new Date();
        await utimes(path, now, now);
        return bytes;
      } catch {
        return undefined;
      }
    },
    async put(key, bytes) {
      await mkdir(directory, { recursive: true });
      // Whoever reads meanwhile sees the old file or the new one, never half of one.
      const partial = join(directory, `${randomUUID()}.partial`);
      await writeFile(partial, bytes);
      await rename(partial, pathOf(key));
      await trim(directory, maxBytes);
    },
  };
}

/** Removes files, the one used longest ago first, until the rest fits. Another process may do the same. */
async function trim(directory: string, maxBytes: number): Promise<void> {
  const found = await Promise.all(
    (await readdir(directory)).map(async (name) => {
      const path = join(directory, name);
      const status = await stat(path).catch(() => undefined);
      return status?.isFile() ? [{ path, size: status.size, used: status.mtimeMs }] : [];
    }),
  );
  let size = 0;
  for (const file of found.flat().sort((a, b) => b.used - a.used)) {
    size += file.size;
    if (size > maxBytes) await rm(file.path, { force: true });
  }
}
