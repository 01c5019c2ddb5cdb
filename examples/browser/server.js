//! What the page asks the edge for: the index, and the modules of a run with what that took.

import { createCatalogClient, PackferryError } from "@packferry/client";

/** Every module that the server lists. */
export async function readIndex(server) {
  const modules = [];
  for (let after = ""; after !== undefined; ) {
    const url = new URL("api/sandbox-modules", `${server}/`);
    if (after) url.searchParams.set("after", after);
    const response = await fetch(url, { credentials: "omit" });
    if (!response.ok) throw new Error(`it answers ${response.status}`);
    const page = await response.json();
    modules.push(...page.modules);
    after = page.next;
  }
  return modules;
}

/** Fetches and proves modules; counts requests, unchanged answers and bytes. */
export async function prefetch(server, declarations, { pin, signal }) {
  const cost = { requests: 0, unchanged: 0, bytes: 0, milliseconds: 0 };
  const counted = async (...request) => {
    cost.requests += 1;
    const response = await fetch(...request);
    if (response.status === 304) cost.unchanged += 1;
    return response;
  };
  const client = createCatalogClient({ baseUrl: server, pin, fetch: counted });
  const started = performance.now();
  const records = await client.prefetch(declarations, { signal, onProgress: ({ loaded }) => (cost.bytes = loaded) });
  cost.milliseconds = performance.now() - started;
  return { records, cost };
}

/** A failure in words, and the pack that it is about. */
export const failureOf = (error) =>
  error instanceof PackferryError ? { message: error.message, packName: error.packName } : { message: String(error?.message ?? error) };
