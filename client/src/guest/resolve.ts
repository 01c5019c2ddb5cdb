//! The normaliser: which module an import means, and which imports are denied. Pure. The engine asks it for every import,
//! also of modules that it has loaded already, so nothing gets past it.

import type { Bridge, ModuleTable } from "./table.js";

/** `linking`: the static imports of the entry and all it reaches are resolved. `locked`: what is imported now, is so dynamically. */
export type Phase = "linking" | "locked";

/** An import that is not served. */
export class Denial extends Error {}

const FACADES: Record<Bridge, string> = { host: "host", capability: "capability", wasm: "WASM" };

export const bridgeSpecifier = (bridge: Bridge): string => `nodetool:${bridge}-bridge`;

/** The guest id that `name` means in the module `base`; a bridge's id is its specifier. Throws a `Denial`. */
export function resolve(table: ModuleTable, phase: Phase, base: string, name: string): string {
  if (phase === "locked") throw new Denial(`dynamic import() is not allowed in the sandbox (requested "${name}")`);
  const importer = table.files.get(base);
  for (const bridge of ["host", "capability", "wasm"] as const) {
    if (name !== bridgeSpecifier(bridge)) continue;
    if (importer?.bridge === bridge) return name;
    throw new Denial(`"${name}" is private to the sandbox's generated ${FACADES[bridge]} facades and cannot be imported`);
  }
  const declared = table.specifiers.get(name);
  if (declared !== undefined) return declared;
  if (importer && name.startsWith(".")) {
    const found = relative(table, base, name);
    if (found !== undefined) return found;
    throw new Denial(`"${name}" is not a file of the ${importer.packName} sandbox package`);
  }
  throw new Denial(`"${name}" is not a sandbox package this run serves — only an installed pack the code imports resolves`);
}

/**
 * The file that a relative name means: as it is, with `.js`, or the `index.js` of that folder. `..` at the top stays there.
 * Nothing is decoded: escapes, queries and fragments are parts of a name that no file has.
 */
function relative({ files }: ModuleTable, base: string, name: string): string | undefined {
  const bar = base.indexOf("|");
  const segments = base.slice(bar + 1).split("/").slice(0, -1);
  for (const segment of name.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  const path = `${base.slice(0, bar + 1)}${segments.join("/")}`;
  return [path, `${path}.js`, `${path}/index.js`].find((id) => files.has(id));
}
