//! What a workflow declares: read from a graph of nodes, and parsed strictly before anything is fetched for it.

import { PackferryError } from "./errors.js";
import { isDigest, isSpecifier, isText } from "./names.js";
import { isObject } from "./schema.js";

/** A module that a run declares, with what the workflow was saved with. */
export interface Declaration {
  specifier: string;
  resolvedPackVersion?: string;
  contentDigest?: string;
}

function isDeclaration(value: unknown): value is Declaration {
  if (!isObject(value)) return false;
  const { specifier, resolvedPackVersion: version, contentDigest: digest, ...others } = value;
  const optional = (version === undefined || (version && isText(version))) && (digest === undefined || isDigest(digest));
  return isSpecifier(specifier) && !!optional && !Object.keys(others).length;
}

/** Reads declarations strictly; a bare string is a specifier, and the first of several with one specifier wins. */
export function parseDeclarations(value: unknown): Declaration[] {
  if (value === undefined || value === null || value === "") return [];
  if (!Array.isArray(value)) throw new PackferryError("usage", "The declarations are not a list.");
  const bySpecifier = new Map<string, Declaration>();
  for (const item of value as unknown[]) {
    const declaration = isText(item) ? { specifier: item } : item;
    if (!isDeclaration(declaration)) {
      throw new PackferryError("usage", `Not a declaration: ${JSON.stringify(item)}`);
    }
    if (!bySpecifier.has(declaration.specifier)) bySpecifier.set(declaration.specifier, declaration);
  }
  return [...bySpecifier.values()];
}

/** Collects the declarations of a workflow's code nodes; what cannot be one is passed over. */
export function collectDeclarations(graph: { readonly nodes?: readonly unknown[] }): Declaration[] {
  const packages = (graph.nodes ?? []).flatMap((node) => {
    if (!isObject(node) || node.type !== "nodetool.code.Code") return [];
    const data = isObject(node.data) ? node.data : {};
    const list = packagesOf(node.properties) ?? packagesOf(data.properties) ?? data.packages;
    return Array.isArray(list) ? (list as unknown[]) : [];
  });
  return parseDeclarations(packages.filter((item) => isSpecifier(item) || isDeclaration(item)));
}

const packagesOf = (properties: unknown): unknown => (isObject(properties) ? properties.packages : undefined);
