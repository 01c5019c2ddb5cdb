//! Records and closures: read back whole, refused wherever they differ from what the digest proves.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  checkAsked,
  checkBodies,
  checkContractHeader,
  checkGraph,
  checkHost,
  checkPayloadDigest,
  checkRecord,
  cutFiles,
  openClosure,
  readRecord,
  splitFrame,
} from "../src/record.js";
import type { HostRegistry } from "../src/contract.js";
import { type Graph, parsePayload } from "../src/payload.js";
import { type Case, check, frameOf, NPM_SOURCE, npmPayload, payloadOf, payloadRows, recordOf, replaced, sha256, utf8 } from "./cases.js";

void test("the record of every reference payload reads back and has its digest", async () => {
  for (const row of payloadRows) {
    const { graph, digest, sizes } = await readRecord(recordOf(row.payload), row.digest);
    assert.equal(digest, row.digest);
    assert.equal(sizes.length, graph.files.length);
  }
});

const geo = payloadOf("@acme/geo");
const math = payloadOf("@acme/wasm-math/math");
const csv = payloadOf("@nodetool-ai/sandbox-csv");
const record = recordOf(geo.payload);
const firstBlob = /"sha256":"([^"]+)"/.exec(record)?.[0] ?? "";

const tampered: [string, string, string, string][] = [
  ["another kind", '"kind":"js","sha256"', '"kind":"wasm","sha256"', "not that of its payload"],
  ["another blob", firstBlob, `"sha256":"${"0".repeat(64)}"`, "not that of its payload"],
  ["another entry", '"entry":"sandbox/geo.js"', '"entry":"sandbox/internal/round.js"', "not that of its payload"],
  ["no entry", ',"entry":"sandbox/geo.js"', "", "not that of its payload"],
  ["no dependency", '"size":3,"dependencies":["sandbox/internal/round.js"]', '"size":3,"dependencies":[]', "not that of its payload"],
  ["another version", '{"version":1', '{"version":2', "not that of its payload"],
  ["an unknown key", '{"version":1', '{"x":1,"version":1', "not that of its payload"],
  ["white space", '{"version":1', '{ "version":1', "not that of its payload"],
  ["a negative size", '"size":3', '"size":-3', "not that of its payload"],
  ["a huge size", '"size":3', '"size":99999999999999999999', "not that of its payload"],
  ["a changed payload", "@acme/geo", "@acme/neo", "graph digest"],
];

check("readRecord", ([json, wanted]: [string, string?]) => readRecord(json, wanted), [
  ["as promised", [record, geo.digest]],
  ["without a promise", [record]],
  ["a WASM entry", [recordOf(math.payload), math.digest]],
  ["a host entry", [recordOf(csv.payload), csv.digest]],
  ["an npm entry", [recordOf(npmPayload), sha256(npmPayload)]],
  ["of another graph", [record, math.digest], "graph digest"],
  ["not JSON", ["nope"], /Unexpected/],
  ["a list", ["[]"], "not a graph record"],
  ["no payload", ['{"files":[]}'], "not a graph record"],
  ...tampered.map(([what, from, to, refusal]): Case<[string, string]> => [what, [replaced(record, from, to), geo.digest], refusal]),
  [
    "a host entry with another file",
    [replaced(recordOf(csv.payload), /"sha256":"[^"]+"/.exec(recordOf(csv.payload))?.[0] ?? "", `"sha256":"${"0".repeat(64)}"`)],
    "not that of its payload",
  ],
  [
    "an npm entry with another file",
    [replaced(recordOf(npmPayload), `"sha256":"${sha256(NPM_SOURCE)}"`, `"sha256":"${"0".repeat(64)}"`)],
    "not that of its payload",
  ],
]);

check("checkPayloadDigest", (input: [string, string?]) => checkPayloadDigest(...input), [
  ["the one asked for", [geo.payload, geo.digest]],
  ["none asked for", [geo.payload]],
  ["another", [geo.payload, math.digest], `is ${geo.digest}, not ${math.digest}`],
]);

check("checkRecord", ([from, to]: [string, string?]) => {
  const json = to === undefined ? record : replaced(record, from, to);
  const sizes = (JSON.parse(json) as { files: { size: unknown }[] }).files.map((file) => file.size);
  checkRecord(json, geo.payload, parsePayload(geo.payload), sizes);
}, [
  ["as built", [""]],
  ["another size", ['"size":3', '"size":4']],
  ["a file missing", [/,\{"id":"sandbox\/internal[^}]*\}/.exec(record)?.[0] ?? "", ""], "not that of its payload"],
  ["a file more", ['"files":[', '"files":[{"id":"a","kind":"js","sha256":"x","size":1,"dependencies":[]},'], "not that of its payload"],
  ["another id", ['"id":"sandbox/internal/round.js","kind":"js","sha256"', '"id":"sandbox/internal/rounD.js","kind":"js","sha256"'], "not that of its payload"],
  ["a size that is no number", ['"size":3', '"size":"3"'], "not that of its payload"],
  ["a size that is no whole number", ['"size":3', '"size":3.5'], "not that of its payload"],
  ["no size", ['"size":3,', ""], "not that of its payload"],
]);

const graph = (edges: Record<string, string[]>): { id: string; dependencies: string[] }[] =>
  Object.entries(edges).map(([id, dependencies]) => ({ id, dependencies }));
const chain = (length: number): Record<string, string[]> =>
  Object.fromEntries(Array.from({ length }, (_, at) => [at === 0 ? "a" : `f${at}`, at + 1 === length ? [] : [`f${at + 1}`]]));

check("checkGraph", (files: ReturnType<typeof graph>) => checkGraph(files, "a"), [
  ["one file", graph({ a: [] })],
  ["a diamond", graph({ a: ["b", "c"], b: ["d"], c: ["b", "d"], d: [] })],
  ["a chain of 50,000", graph(chain(50_000))],
  ["a dependency outside", graph({ a: ["b"] }), "not a file of the graph"],
  ["an entry outside", graph({ b: [] }), "not a file of the graph"],
  ["an import of itself", graph({ a: ["a"] }), "imports itself"],
  ["a cycle", graph({ a: ["b"], b: ["c"], c: ["a"] }), "imports itself"],
  ["a cycle off the entry", graph({ a: ["b"], b: ["c"], c: ["b"] }), "imports itself"],
  ["a file out of reach", graph({ a: [], b: [] }), "never imported"],
  ["a cycle out of reach", graph({ a: [], b: ["c"], c: ["b"] }), "never imported"],
  ["a file twice", [...graph({ a: [] }), ...graph({ a: [] })], "listed twice"],
]);

const twoFiles = {
  files: ["one", "two"].map((text) => ({ id: text, kind: "js", dependencies: [], bytes: sha256(text) })),
} as unknown as Graph;
check("checkBodies", (bodies: string[]) => checkBodies(twoFiles, bodies.map(utf8)), [
  ["the files", ["one", "two"]],
  ["one changed", ["one", "twO"], "SHA-256 of two"],
  ["one for the other", ["two", "one"], "SHA-256 of one"],
]);

check("checkAsked", (specifier: string) => checkAsked(parsePayload(geo.payload), specifier), [
  ["the one asked for", "@acme/geo"],
  ["another", "@acme/geo/extra", "it is the graph of @acme/geo"],
]);

const header = JSON.stringify(parsePayload(math.payload).wasm);
check("checkContractHeader", ([json, payload]: [string | null, string]) => checkContractHeader(json, parsePayload(payload)), [
  ["the payload's", [header, math.payload]],
  ["no header", [null, math.payload]],
  ["none on JavaScript", [null, geo.payload]],
  ["more memory", [replaced(header, ":8", ":9"), math.payload], "call contract"],
  ["another order", [replaced(header, '"scale","as":"scale"', '"add","as":"add"'), math.payload], "call contract"],
  ["one on JavaScript", [header, geo.payload], "call contract"],
]);

const pack = "@nodetool-ai/sandbox-csv";
const exports = ["stringify", "parse"];
check("checkHost", ([payload, registry]: [string, HostRegistry]) => checkHost(parsePayload(payload), registry), [
  ["bound to that pack", [csv.payload, { csv: { pack, exports } }]],
  ["no host module", [geo.payload, {}]],
  ["not registered", [csv.payload, {}], "not registered for"],
  ["a name of the prototype", [csv.payload.replaceAll("csv", "constructor"), {}], "not registered for"],
  ["bound to another pack", [csv.payload, { csv: { pack: "@acme/csv", exports } }], "not registered for"],
  ["fewer exports", [csv.payload, { csv: { pack, exports: ["parse"] } }], "not registered for"],
  ["more exports", [csv.payload, { csv: { pack, exports: [...exports, "evil"] } }], "not registered for"],
]);

const files = new Map([["sandbox/geo.js", utf8("abc")], ["sandbox/internal/round.js", utf8("def")]]);
/** The geo payload over the two files above. */
const small = JSON.stringify({
  ...(JSON.parse(geo.payload) as object),
  entries: [...files].map(([id, bytes], at) => ({ id, kind: "js", dependencies: at === 0 ? ["sandbox/internal/round.js"] : [], bytes: sha256(bytes) })),
});

void test("closures read back, and every damage is found", async () => {
  const bodies = [...files.values()];
  const frame = frameOf(recordOf(small), bodies);
  const closure = await openClosure(frame, sha256(small));
  assert.deepEqual(closure.bodies, bodies);
  assert.equal(closure.digest, sha256(small));
  for (let end = 0; end < frame.length; end++) await assert.rejects(openClosure(frame.slice(0, end)), `cut at ${end}`);
  for (let at = 0; at < frame.length; at++) {
    const damaged = frame.slice();
    damaged[at] = (damaged[at] ?? 0) ^ 1;
    await assert.rejects(openClosure(damaged, sha256(small)), `flipped at ${at}`);
  }
  await assert.rejects(openClosure(new Uint8Array([...frame, 0])), /sum of its files/);
  const huge = frame.slice();
  huge.set([255, 255, 255, 255], 4);
  await assert.rejects(openClosure(huge), /not a closure/);
  // A view into a larger buffer is read from its own start.
  const offset = new Uint8Array(frame.length + 5);
  offset.set(frame, 5);
  assert.deepEqual((await openClosure(offset.subarray(5))).bodies, bodies);
});

check("splitFrame", (bytes: Uint8Array<ArrayBuffer>) => splitFrame(bytes), [
  ["a record and no file", frameOf("{}", [])],
  ["another magic", frameOf("{}", []).map((byte, at) => (at === 3 ? 0x32 : byte)), "not a closure"],
  ["a record that is not UTF-8", frameOf("{}", []).map((byte, at) => (at === 9 ? 0xff : byte)), "not valid"],
  ["nothing", utf8(""), "not a closure"],
]);

check("cutFiles", ([sizes, length]: [number[], number]) => cutFiles(sizes, new Uint8Array(length)), [
  ["as long as they say", [[1, 0, 2], 3]],
  ["none", [[], 0]],
  ["longer", [[1], 2], "sum of its files"],
  ["shorter", [[2], 1], "sum of its files"],
]);
