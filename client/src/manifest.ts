//! The manifest: which graph digest a specifier has in a release. Its bytes were checked against their digest before they
//! come here.

import { insist } from "./errors.js";
import { isDigest, isFileId, isPackName, isSorted, isSpecifier, isText } from "./names.js";
import { type Infer, isCount, isObject, parseCanonical, read } from "./schema.js";

const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";
const FILE = { sha256: isDigest, size: isCount } as const;
const MODULE = {
  specifier: isSpecifier,
  kind: isText,
  graphDigest: isDigest,
  fileId: isFileId,
  ...FILE,
  dependencies: [isFileId],
  exports: [isText],
  "wasmContract?": isObject,
  "hostId?": isText,
  "npm?": isText,
} as const;
const PACK = {
  name: isPackName,
  "version?": isText,
  "description?": isText,
  digest: isDigest,
  modules: [MODULE],
  files: [{ id: isFileId, kind: isText, ...FILE, internal: isBoolean, graphDigest: isDigest, dependencies: [isFileId] }],
  unavailable: [{ specifier: isSpecifier, code: isText }],
} as const;
const SHARD = { first: isPackName, sha256: isDigest } as const;

/** A manifest's root: the release in one piece, or where its shards are. A shard reads as a root that has packs. */
export interface Root {
  packs: Infer<typeof PACK>[];
  shards: Infer<typeof SHARD>[];
}

/** Reads a root or a shard. */
export function parseManifest(json: string): Root {
  const { packs = [], shards = [] } = read({ version: 1, "packs?": [PACK], "shards?": [SHARD] }, parseCanonical(json));
  insist(
    isSorted(packs.map((pack) => pack.name)) &&
      isSorted(shards.map((shard) => shard.first)) &&
      packs.every((pack) => isSorted(pack.modules.map((module) => module.specifier))),
    "the manifest is out of order",
  );
  return { packs, shards };
}

/** Digest of the shard that has `pack`, if any has. */
export const shardOf = ({ shards }: Root, pack: string): string | undefined => shards.findLast(({ first }) => first <= pack)?.sha256;

/** The graph digest of a module, if root or shard has it. */
export const graphDigestOf = ({ packs }: Root, specifier: string): string | undefined =>
  packs.flatMap((pack) => pack.modules).find((module) => module.specifier === specifier)?.graphDigest;
