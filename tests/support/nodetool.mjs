//! NodeTool's reference answers and how ours differ from them on purpose: what the fixtures say, read once.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { FIXTURES } from "./project.mjs";

const read = (name) => JSON.parse(readFileSync(join(FIXTURES, name), "utf8"));

/** Per module and file, what NodeTool's route answers. */
export const VECTORS = read("vectors.json");
/** The canonical JSON behind each digest. */
export const PAYLOADS = read("digest-payloads.json").payloads;
/** Where we answer a row of the vectors differently, and why. */
export const DIFFERENCES = read("vector-differences.json");
/** Raw requests to NodeTool's route, with its answers. */
export const PROBES = read("route-probes.json");
/** Where we answer a probe differently, and why. */
export const PROBE_DIFFERENCES = read("route-probe-differences.json");

/** What the headers of our delivery must be where NodeTool's are `headers`. */
export function ours(headers) {
  const changed = { ...headers };
  for (const [name, { values, ids }] of Object.entries(DIFFERENCES.headers)) {
    if (ids === "pinned") {
      const digest = headers["x-content-digest"];
      const pinned = JSON.parse(headers[name]).map((id) => digest + id.slice(id.indexOf("::")));
      changed[name] = JSON.stringify(pinned);
    } else {
      changed[name] = values[headers[name]] ?? headers[name];
    }
  }
  return changed;
}
