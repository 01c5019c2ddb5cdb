//! Payloads: the reference vectors read back, and whatever contradicts itself is refused, however consistent its digest.

import assert from "node:assert/strict";
import { test } from "node:test";

import { facadeNames, facadeOf, WASM_CONTRACT } from "../src/contract.js";
import { read } from "../src/schema.js";
import { checkEntries, checkHostFacade, checkModuleId, checkSpecifier, exportsInFacadeOrder, parsePayload } from "../src/payload.js";
import type { GraphFile } from "../src/payload.js";
import { type Case, check, npmPayload, payloadOf, payloadRows, replaced } from "./cases.js";

void test("every reference payload reads back", () => {
  assert(payloadRows.length > 30);
  for (const row of payloadRows) {
    const graph = parsePayload(row.payload);
    assert.equal(graph.specifier, row.specifier);
    assert.equal(graph.kind, row.kind);
    assert.equal((JSON.parse(row.payload) as { moduleId: string }).moduleId, graph.moduleId);
  }
});

const geo = payloadOf("@acme/geo").payload;
const math = payloadOf("@acme/wasm-math/math").payload;
const csv = payloadOf("@nodetool-ai/sandbox-csv").payload;

/** A tampered payload: [what, payload, text in it, its replacement, refusal]. */
const tampered: [string, string, string, string, string][] = [
  ["white space", geo, '{"packageName"', '{ "packageName"', "canonical"],
  ["an unknown key", geo, '{"packageName"', '{"x":1,"packageName"', "shape"],
  ["keys in another order", geo, '"name":".","kind":"js"', '"kind":"js","name":"."', "shape"],
  ["a specifier of another pack", geo, '"specifier":"@acme/geo"', '"specifier":"@evil/geo"', "not the declared one"],
  ["a specifier of another module", geo, '"specifier":"@acme/geo"', '"specifier":"@acme/geo/x"', "not the declared one"],
  ["another spelling of the root", geo, '"specifier":"@acme/geo"', '"specifier":"@acme/geo/."', "shape"],
  ["a pack's name that is none", geo, '"packageName":"@acme/geo"', '"packageName":"@acme/"', "shape"],
  ["another file than declared", geo, '"file":"sandbox/geo.js"', '"file":"sandbox/other.js"', "module id"],
  ["an entry outside the graph", geo, '"moduleId":"sandbox/geo.js"', '"moduleId":"sandbox/x.js"', "module id"],
  ["a path out of the pack", geo, '"id":"sandbox/geo.js"', '"id":"../geo.js"', "shape"],
  ["a dependency out of the pack", geo, '["sandbox/internal/round.js"]', '["../round.js"]', "shape"],
  ["an unknown kind", geo, '"kind":"js","declaration"', '"kind":"ts","declaration"', "shape"],
  ["an unknown kind of file", geo, '"kind":"js","dependencies"', '"kind":"host","dependencies"', "shape"],
  ["a digest in upper case", geo, /"bytes":"[^"]+"/.exec(geo)?.[0] ?? "", `"bytes":"${"A".repeat(64)}"`, "shape"],
  ["a version that is no text", geo, /"packageVersion":"[^"]+"/.exec(geo)?.[0] ?? "", '"packageVersion":1', "shape"],
  ["a facade of other exports", math, "function scale(", "function evil(", "generated"],
  ["a facade with more code", math, "import { __call }", "evil(); import { __call }", "generated"],
  ["a facade of another specifier", math, '__call(\\"@acme/wasm-math/math\\"', '__call(\\"@acme/other\\"', "generated"],
  ["another facade version", math, '"facadeVersion":1', '"facadeVersion":2', "shape"],
  ["exports out of order", math, '"exports":["add","bump"', '"exports":["bump","add"', "not in order"],
  ["an export that is not in the facade", math, '"exports":["add"', '"exports":["aaa","add"', "generated"],
  ["an alias that is no identifier", math, '"exports":["add"', '"exports":[{"wasm":"add","as":"a-b"}', "shape"],
  ["a pair with its keys in another order", math, '"exports":["add"', '"exports":[{"as":"add","wasm":"add"}', "shape"],
  ["too much memory", math, '"memoryPagesMax":8', '"memoryPagesMax":4097', "shape"],
  ["a limit above its ceiling", math, '"callTimeoutMs":250', '"callTimeoutMs":5001', "shape"],
  ["a limit of nothing", math, '"callsPerInvocation":16', '"callsPerInvocation":0', "shape"],
  ["an unknown limit", math, '"callTimeoutMs"', '"callTimeout"', "shape"],
  ["a WASM entry of kind js", math, '"kind":"wasm","dependencies"', '"kind":"js","dependencies"', "not in order"],
  ["host exports out of order", csv, '["parse","stringify"]', '["stringify","parse"]', "not in order"],
  ["host exports that are not in the facade", csv, '["parse","stringify"]', '["parse"]', "generated"],
  ["a host id and another module id", csv, '"hostId":"csv"', '"hostId":"xml"', "module id"],
  ["a host facade with more code", csv, "import { __call }", "evil(); import { __call }", "generated"],
  ["a host facade of version 1", csv, '"facadeVersion":2', '"facadeVersion":1', "shape"],
  ["a host payload with a declaration", csv, '"hostId"', '"declaration":{},"hostId"', "shape"],
  ["an npm entry of another package", npmPayload, '"npm":"shout","npmVersion"', '"npm":"other","npmVersion"', "module id"],
  ["an npm entry of another module id", npmPayload, '"moduleId":"npm:shout"', '"moduleId":"npm:other"', "module id"],
  ["an npm entry of another bundler", npmPayload, '"esbuild"', '"other"', "shape"],
  ["an npm entry without a source", npmPayload, /,"source":"[^"]+"/.exec(npmPayload)?.[0] ?? "", "", "shape"],
  ["an npm entry in NodeTool's form", npmPayload, '"bundler":"esbuild"', '"compilerVersion":"2"', "shape"],
];

check("parsePayload", parsePayload, [
  ["js", geo],
  ["wasm", math],
  ["host", csv],
  ["npm", npmPayload],
  ["npm without versions", npmPayload.replace('"packageVersion":"1.2.3",', "").replace('"npmVersion":"2.0.0",', "")],
  ["an empty version", replaced(geo, /"packageVersion":"[^"]+"/.exec(geo)?.[0] ?? "", '"packageVersion":""')],
  ["a list", "[]", "not a payload"],
  ["an empty object", "{}", "shape"],
  ...tampered.map(([what, payload, from, to, refusal]): Case<string> => [what, replaced(payload, from, to), refusal]),
]);

check("checkSpecifier", (input: [string, string, string?]) => checkSpecifier(...input), [
  ["the root", ["@a/p", "@a/p", "."]],
  ["a module", ["@a/p", "@a/p/x", "x"]],
  ["an unscoped pack", ["p", "p/x", "x"]],
  ["without a declaration", ["p", "p/x"]],
  ["a longer pack", ["@a/p", "@a/px"], "not the declared one"],
  ["the root declared with a name", ["p", "p", "x"], "not the declared one"],
  ["a module declared as the root", ["p", "p/x", "."], "not the declared one"],
  ["another module", ["p", "p/x", "y"], "not the declared one"],
]);

check("checkModuleId", (input: [string, string]) => checkModuleId(...input), [
  ["the declared one", ["a.js", "a.js"]],
  ["another", ["a.js", "b.js"], "module id"],
]);

const file = (id: string, dependencies: string[] = [], kind: "js" | "wasm" = "js"): GraphFile => ({ id, kind, dependencies, bytes: "" });

check("checkEntries", (files: GraphFile[]) => checkEntries(files, "a", "js"), [
  ["one", [file("a")]],
  ["sorted", [file("a", ["b", "c"]), file("b"), file("c")]],
  ["out of order", [file("b"), file("a")], "not in order"],
  ["twice", [file("a"), file("a")], "not in order"],
  ["dependencies out of order", [file("a", ["c", "b"])], "not in order"],
  ["a dependency twice", [file("a", ["b", "b"])], "not in order"],
  ["a WASM file that imports", [file("a"), file("w", ["a"], "wasm")], "not in order"],
  ["no entry", [file("b")], "not in order"],
  ["an entry of another kind", [file("a", [], "wasm")], "not in order"],
]);

const pair = (wasm: string, alias = wasm): { wasm: string; as: string } => ({ wasm, as: alias });
const wasm = (...aliases: string[]): string => facadeOf("wasm", "p", aliases);
const host = (...names: string[]): string => facadeOf("host", "p", names);

check("exportsInFacadeOrder", (input: [(string | ReturnType<typeof pair>)[], string]) => exportsInFacadeOrder(...input, "p"), [
  ["in the facade's order", [["a", "b"], wasm("b", "a")]],
  ["a pair", [[pair("a-b", "x")], wasm("x")]],
  ["a name in the binary for an alias", [[pair("a-b", "x")], wasm("ab")], "generated"],
  ["nothing", [[], wasm()], "generated"],
  ["one name twice", [["a", pair("b", "a")], wasm("a", "a")], "generated"],
  ["fewer in the facade", [["a", "b"], wasm("a")], "generated"],
  ["more in the facade", [["a"], wasm("a", "b")], "generated"],
  ["another bridge", [["a"], wasm("a").replace("wasm-bridge", "host-bridge")], "generated"],
]);

void test("the contract's exports stand in the facade's order, its limits as declared", () => {
  assert.equal(
    JSON.stringify(parsePayload(math).wasm),
    '{"memoryPagesMax":8,"exports":[{"wasm":"scale","as":"scale"},{"wasm":"add","as":"add"},{"wasm":"noop","as":"noop"},{"wasm":"bump","as":"bump"}],"limits":{"callTimeoutMs":250,"callsPerInvocation":16}}',
  );
  const empty = replaced(math, /"limits":\{[^}]*\}/.exec(math)?.[0] ?? "", '"limits":{}');
  assert.deepEqual(parsePayload(empty).wasm?.limits, {});
  const none = replaced(math, /"limits":\{[^}]*\},/.exec(math)?.[0] ?? "", "");
  assert(!("limits" in (parsePayload(none).wasm ?? { limits: {} })));
});

check("checkHostFacade", (input: [string[], string]) => checkHostFacade(...input, "p"), [
  ["sorted exports, facade in another order", [["a", "b"], host("b", "a")]],
  ["out of order", [["b", "a"], host("b", "a")], "not in order"],
  ["others", [["a"], host("b")], "generated"],
  ["nothing", [[], host()], "generated"],
  ["no default export", [["a"], host("a").replace(/export default.*\n/, "")], "generated"],
]);

void test("facades name their functions in order", () => assert.deepEqual(facadeNames(wasm("b", "a")), ["b", "a"]));

const contract = { memoryPagesMax: 1, exports: [pair("a")] };
check("WASM_CONTRACT", (value: unknown) => read(WASM_CONTRACT, value), [
  ["without limits", contract],
  ["with limits", { ...contract, limits: { wallClockMs: 30_000 } }],
  ["with empty limits", { ...contract, limits: {} }],
  ["with an unknown key", { ...contract, x: 1 }, "shape"],
  ["with a negative memory", { ...contract, memoryPagesMax: -1 }, "shape"],
  ["with a bare name", { ...contract, exports: ["a"] }, "shape"],
  ["with a bad alias", { ...contract, exports: [pair("a", "1a")] }, "shape"],
]);
