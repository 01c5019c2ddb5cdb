//! Catalogs: what declarations resolve to, with the statuses of the pack contract, section 14; what workflows declare.

import assert from "node:assert/strict";
import { test } from "node:test";

import { collectDeclarations, createCatalog, type Declaration, type ModuleRecord } from "../src/index.js";
import { utf8 } from "./cases.js";

const file = (id: string, dependencies: string[] = []): ModuleRecord["files"][number] => ({ id, kind: "js", bytes: utf8(`// ${id}`), dependencies });

const geo: ModuleRecord = {
  specifier: "@acme/geo",
  packName: "@acme/geo",
  packVersion: "1.0.0",
  contentDigest: "1".repeat(64),
  moduleId: "b.js",
  kind: "js",
  files: [file("B.js"), file("a.js"), file("b.js", ["B.js", "a.js"])],
  proven: true,
  pinned: false,
};
const { packVersion: _, ...unversioned } = geo;
const binary = utf8("\0asm");
const wasm: ModuleRecord = {
  ...geo,
  specifier: "@acme/geo/math",
  moduleId: "math.wasm",
  kind: "wasm",
  files: [{ id: "math.wasm", kind: "wasm", bytes: binary, dependencies: [] }],
  wasm: { memoryPagesMax: 1, exports: [{ wasm: "add", as: "add" }] },
};
const { wasm: __, ...contractless } = wasm;
const host: ModuleRecord = {
  ...geo,
  specifier: "@acme/geo/csv",
  moduleId: "host:csv",
  kind: "host",
  files: [{ id: "host:csv", kind: "host", bytes: utf8("facade"), dependencies: [] }],
  hostId: "csv",
};

/** [what, record, declaration, statuses as "status code message", whether a module is returned]. */
const cases: [string, ModuleRecord, Declaration | string, string[], boolean][] = [
  ["as saved", geo, { specifier: "@acme/geo", resolvedPackVersion: "1.0.0", contentDigest: geo.contentDigest }, [], true],
  ["nothing saved", geo, "@acme/geo", [], true],
  ["unknown", geo, "@other/pack/x", ["error module-not-found Sandbox module @other/pack/x is not installed."], false],
  [
    "another version",
    geo,
    { specifier: "@acme/geo", resolvedPackVersion: "0.9.0" },
    ["warning version-mismatch Sandbox module @acme/geo was saved with pack version 0.9.0, but 1.0.0 is installed."],
    true,
  ],
  [
    "no version",
    unversioned,
    { specifier: "@acme/geo", resolvedPackVersion: "0.9.0" },
    ["warning version-mismatch Sandbox module @acme/geo was saved with pack version 0.9.0, but an unversioned pack is installed."],
    true,
  ],
  [
    "another digest",
    geo,
    { specifier: "@acme/geo", contentDigest: "2".repeat(64) },
    ["warning content-digest-mismatch Sandbox module @acme/geo has changed since the workflow was saved."],
    true,
  ],
  [
    "a file missing",
    { ...geo, files: geo.files.slice(1) },
    "@acme/geo",
    ["error module-unavailable Sandbox module @acme/geo is missing @acme/geo::B.js, which it imports."],
    true,
  ],
  ["WASM", wasm, "@acme/geo/math", [], true],
  [
    "WASM without its contract",
    contractless,
    "@acme/geo/math",
    ["error module-unavailable Sandbox module @acme/geo/math was delivered without its WASM call contract."],
    false,
  ],
  ["a host module", host, "@acme/geo/csv", [], true],
];

for (const [what, record, declaration, statuses, returned] of cases) {
  void test(`resolveForExecution: ${what}`, () => {
    const resolution = createCatalog([record]).resolveForExecution([declaration, declaration]);
    assert.deepEqual(resolution.statuses.map(({ status, code, message }) => `${status} ${code} ${message}`), statuses);
    assert.equal(resolution.modules.length, returned ? 1 : 0);
    for (const status of resolution.statuses) assert.equal(status.packName, status.specifier?.split("/").slice(0, 2).join("/"));
  });
}

void test("a resolved module has its graph sorted by id, and its entry", () => {
  const [js] = createCatalog([geo]).resolveForExecution(["@acme/geo"]).modules;
  assert.deepEqual(js?.graph, [
    { id: "a.js", kind: "js", source: "// a.js", dependencies: [], internal: true },
    { id: "b.js", kind: "js", source: "// b.js", dependencies: ["B.js", "a.js"], internal: false },
    { id: "B.js", kind: "js", source: "// B.js", dependencies: [], internal: true },
  ]);
  assert.equal(js.source, "// b.js");
  assert(!("files" in js) && !("proven" in js) && !("bytes" in js));
  const [module] = createCatalog([wasm]).resolveForExecution(["@acme/geo/math"]).modules;
  assert.deepEqual([module?.bytes, module?.wasm, module?.source], [binary, wasm.wasm, undefined]);
  const [facade] = createCatalog([host]).resolveForExecution(["@acme/geo/csv"]).modules;
  assert.deepEqual([facade?.graph, facade?.hostId, facade?.source], [[], "csv", undefined]);
});

void test("a byte order mark is gone from the executed text", () => {
  const marked = { ...geo, files: [{ id: "b.js", kind: "js" as const, bytes: utf8("\ufeff1"), dependencies: [] }] };
  assert.equal(createCatalog([marked]).resolveForExecution(["@acme/geo"]).modules[0]?.source, "1");
});

void test("summaries and diagnostics", () => {
  const catalog = createCatalog([geo, { ...wasm, proven: false, pinned: true }]);
  assert.deepEqual(catalog.summaries()[0], {
    specifier: "@acme/geo",
    packName: "@acme/geo",
    packVersion: "1.0.0",
    contentDigest: geo.contentDigest,
    moduleId: "b.js",
    kind: "js",
    proven: true,
    pinned: false,
  });
  assert.deepEqual(catalog.diagnostics().map(({ status, code }) => `${status} ${code}`), ["warning unproven", "ready pinned"]);
});

const code = (more: object): object => ({ type: "nodetool.code.Code", ...more });
const digest = "3".repeat(64);
const graphs: [string, { nodes?: unknown[] }, (string | Declaration)[]][] = [
  ["no nodes", {}, []],
  ["properties", { nodes: [code({ properties: { packages: ["@a/b", { specifier: "@a/b/c", contentDigest: digest }] } })] }, ["@a/b", { specifier: "@a/b/c", contentDigest: digest }]],
  ["data.properties", { nodes: [code({ data: { properties: { packages: ["a"] }, packages: ["b"] } })] }, ["a"]],
  ["data", { nodes: [code({ data: { packages: ["b"] } })] }, ["b"]],
  ["properties win", { nodes: [code({ properties: { packages: ["a"] }, data: { packages: ["b"] } })] }, ["a"]],
  ["the first per specifier wins", { nodes: [code({ properties: { packages: [{ specifier: "a", resolvedPackVersion: "1" }] } }), code({ properties: { packages: ["a", "b"] } })] }, [{ specifier: "a", resolvedPackVersion: "1" }, "b"]],
  ["other nodes", { nodes: [{ type: "nodetool.text.Text", properties: { packages: ["a"] } }, null, 1, "x"] }, []],
  ["what is no declaration", { nodes: [code({ properties: { packages: [1, null, "", "a/b/c", { specifier: 1 }, "a"] } }), code({ properties: { packages: "a" } }), code({})] }, ["a"]],
];

for (const [what, graph, declared] of graphs) {
  void test(`collectDeclarations: ${what}`, () => {
    assert.deepEqual(collectDeclarations(graph), declared.map((item) => (typeof item === "string" ? { specifier: item } : item)));
  });
}
