//! The two clients that are measured, behind one interface, for Node and browsers: NodeTool's walk, one request after another, and
//! ours. Each gets what a module imports, verified, or rejects.

import { createCatalogClient } from "@packferry/client";

import { NodeToolClient } from "../../tests/nodetool-client.mjs";

/** Makes a client that has fetched nothing yet. `cache` is where ours keeps what it fetched; the walk has nothing that outlives it. */
export function makeClient(kind, { origin, specifier, cache }) {
  if (kind === "walk") {
    const client = new NodeToolClient((path, options) => fetch(origin + path, options));
    return async () => (await client.prefetch([specifier])).size;
  }
  const client = createCatalogClient({ baseUrl: origin, ...(cache && { cache }) });
  return async () => {
    const [record] = await client.prefetch([specifier]);
    return record.files.length;
  };
}

/** Milliseconds until everything is verified, and how many files that were. */
export async function timed(prefetch) {
  const started = performance.now();
  const files = await prefetch();
  return { milliseconds: performance.now() - started, files };
}
