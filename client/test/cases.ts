//! What the tests share: the fixtures, and helpers that build the objects of the wire from them. No cases of its own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { hash } from "node:crypto";

import type { Bytes } from "../src/hash.js";

/** A path in the repository. */
export const repository = (path: string): URL => new URL(`../../../${path}`, import.meta.url);

export const fixture = <T>(path: string): T => JSON.parse(readFileSync(repository(`fixtures/${path}`), "utf8")) as T;

export interface PayloadRow {
  specifier: string;
  kind: string;
  digest: string;
  payload: string;
}

/** The reference payloads of kinds that this client reads: all but NodeTool's own npm entries and pack digests. */
export const payloadRows: PayloadRow[] = fixture<{ payloads: PayloadRow[] }>("digest-payloads.json").payloads.filter((row) =>
  ["js", "wasm", "host"].includes(row.kind),
);

export function payloadOf(specifier: string): PayloadRow {
  const row = payloadRows.find((candidate) => candidate.specifier === specifier);
  assert(row, specifier);
  return row;
}

/** A payload of this project's own form of npm entries. */
export const NPM_SOURCE = utf8("export const shout = (text) => text.toUpperCase();\n");
export const npmPayload = JSON.stringify({
  packageName: "@acme/npm",
  packageVersion: "1.2.3",
  specifier: "@acme/npm/shout",
  moduleId: "npm:shout",
  npm: "shout",
  npmVersion: "2.0.0",
  declaration: { name: "shout", kind: "js", npm: "shout" },
  bundler: "esbuild",
  bundlerVersion: "0.28.2",
  optionsDigest: "1".repeat(64),
  source: sha256(NPM_SOURCE),
});

export function sha256(data: string | Uint8Array): string {
  return hash("sha256", data);
}

export function utf8(data: string): Bytes {
  return new TextEncoder().encode(data);
}

interface PayloadDocument {
  moduleId: string;
  kind?: string;
  hostId?: string;
  facade?: string;
  source?: string;
  entries?: { id: string; kind: string; dependencies: string[]; bytes: string }[];
}

/** The record of a payload, by the size of each file. */
export function recordOf(payload: string, sizeOf: (id: string) => number = () => 3): string {
  const document = JSON.parse(payload) as PayloadDocument;
  const one = (kind: string, digest: string): PayloadDocument["entries"] => [
    { id: document.moduleId, kind, dependencies: [], bytes: digest },
  ];
  const entries =
    document.entries ??
    (document.hostId === undefined ? one("js", document.source ?? "") : one("host", sha256(document.facade ?? ""))) ??
    [];
  return JSON.stringify({
    version: 1,
    payload,
    files: entries.map(({ id, kind, bytes, dependencies }) => ({ id, kind, sha256: bytes, size: sizeOf(id), dependencies })),
    entry: document.moduleId,
  });
}

/** Frames a record and its files. */
export function frameOf(record: string, bodies: Uint8Array[]): Bytes {
  const json = utf8(record);
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, json.length, true);
  return new Uint8Array(Buffer.concat([utf8("PFC1"), length, json, ...bodies]));
}

/** Replaces the first `from` in `whole` by `to`; a case whose text is not there is no case. */
export function replaced(whole: string, from: string, to: string): string {
  const result = whole.replace(from, () => to);
  assert.notEqual(result, whole, `nothing to replace: ${from}`);
  return result;
}

/** One row of a table: what it shows, the input, and the message that it must be refused with (none: accepted). */
export type Case<Input> = readonly [what: string, input: Input, refusal?: string | RegExp];

/** Runs a table of cases against one check. */
export function check<Input>(name: string, run: (input: Input) => unknown, cases: readonly Case<Input>[]): void {
  void test(name, async (context) => {
    for (const [what, input, refusal] of cases) {
      await context.test(what, async () => {
        const outcome = async (): Promise<unknown> => run(input);
        if (refusal === undefined) await outcome();
        else await assert.rejects(outcome, { message: typeof refusal === "string" ? new RegExp(escape(refusal)) : refusal });
      });
    }
  });
}

const escape = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
