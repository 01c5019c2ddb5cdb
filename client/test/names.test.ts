//! Names, canonical JSON, base64: the readers under every check.

import assert from "node:assert/strict";
import { test } from "node:test";

import { decodeBase64 } from "../src/channel.js";
import { decodeUtf8 } from "../src/hash.js";
import { isDigest, isFileId, isIdentifier, isPackName, isSorted, isSpecifier, isText, normalizeFile, packOf } from "../src/names.js";
import { isReserved } from "../src/reserved.js";
import { parseCanonical, read, within } from "../src/schema.js";
import { check } from "./cases.js";

const names: [string, (text: string) => boolean, string[], string[]][] = [
  ["pack names", isPackName, ["a", "@a/b", "A.b_c~d-e", "@A.b/..", "a@b".replace("@", "")], ["", "@a", "a/b", "@a/b/c", "@/b", "a b", "é", "a\n"]],
  ["specifiers", isSpecifier, ["a", "a/b", "@a/b", "@a/b/c", "@a/b/..."], ["", "@a", "a/node_modules", "a/é", "a/b/c", "@a/b/c/d", "@a/b/.", "@a/b/..", "a/", "@a/b/"]],
  ["digests", isDigest, ["0".repeat(64), "abcdef".repeat(10) + "0123"], ["", "0".repeat(63), "0".repeat(65), "A".repeat(64), `${"0".repeat(64)}\n`]],
  [
    "file ids",
    isFileId,
    ["a.js", "a/b.js", "a::b", "a, b.js", "...", "a/...", ".a", "host:csv", "npm:@a/b", "%20", "é"],
    ["", ".", "..", "/a", "a/", "a//b", "a/./b", "a/../b", "./a", "a\\b", "a\0", "a\x7f", "a\u2028/../b", "a\n/../b", "a%2e", "a%2E", "%2fa", "%5C"],
  ],
  [
    "identifiers",
    isIdentifier,
    ["a", "_", "$", "a1", "arguments", "Await"],
    ["", "1a", "a-b", "é", "a b", "a\n"],
  ],
  ["reserved words", isReserved, ["await", "public", "yield", "enum", "null"], ["arguments", "eval", "async", "of", "undefined", "Await", ""]],
];

for (const [what, accepts, good, bad] of names) {
  void test(what, () => {
    for (const name of good) assert(accepts(name), JSON.stringify(name));
    for (const name of bad) assert(!accepts(name), JSON.stringify(name));
  });
}

void test("declared files are normalized", () => {
  const cases = [
    ["./a.js", "a.js"],
    ["a/./b.js", "a/b.js"],
    ["a\\b.js", "a/b.js"],
    ["a.js", "a.js"],
  ];
  for (const [declared, id] of cases) assert.equal(normalizeFile(declared ?? ""), id);
});

void test("the pack of a specifier", () => {
  const cases = [
    ["a", "a"],
    ["a/b", "a"],
    ["@a/b", "@a/b"],
    ["@a/b/c", "@a/b"],
    ["@a", "@a"],
    ["", ""],
  ];
  for (const [specifier, pack] of cases) assert.equal(packOf(specifier ?? ""), pack);
});

void test("order is strict and by UTF-16 code units", () => {
  assert(isSorted(["\u{10000}", "\uff61"]));
  assert(!isSorted(["\uff61", "\u{10000}"]));
  assert(!isSorted(["a", "a"]));
  assert(isSorted([]));
});

check("parseCanonical", parseCanonical, [
  ["an object", '{"a":[1,"é\\n\\u0001/\u2028",true,null]}'],
  ["an escaped backslash before ud", '{"a":"\\\\ud800"}'],
  ["white space", '{"a": 1}', "canonical"],
  ["a trailing line feed", "{}\n", "canonical"],
  ["a duplicate key", '{"a":1,"a":1}', "canonical"],
  ["an escaped slash", '"\\/"', "canonical"],
  ["an upper-case escape", '"\\u001F"', "canonical"],
  ["a needless escape", '"\\u0041"', "canonical"],
  ["a float", "1.0", "canonical"],
  ["an exponent", "1e3", "canonical"],
  ["a negative zero", "-0", "canonical"],
  ["a number beyond precision", "18446744073709551615", "canonical"],
  ["a lone surrogate", '{"a":"\\ud800"}', "canonical"],
  ["a lone surrogate after an escaped backslash", '"\\\\\\udfff"', "canonical"],
  ["a byte order mark", "\ufeff{}", /Unexpected/],
  ["nothing", "", /Unexpected/],
  ["nesting without end", "[".repeat(200_000) + "]".repeat(200_000), /call stack/],
]);

const schema = { a: isText, "b?": [within(0, 5)], c: { d: 1, e: "x" } } as const;
const rest = { c: { d: 1, e: "x" } };
const shape = "shape";
check("read", (value: unknown) => read(schema, value), [
  ["all keys", { a: "", b: [0, 5], ...rest }],
  ["without the optional one", { a: "", ...rest }],
  ["a missing key", { a: "" }, shape],
  ["another order", { ...rest, a: "" }, shape],
  ["an optional key out of order", { a: "", ...rest, b: [] }, shape],
  ["an unknown key", { a: "", ...rest, d: 4 }, shape],
  ["an unknown key within", { a: "", c: { d: 1, e: "x", f: 1 } }, shape],
  ["a key of the prototype", JSON.parse('{"a":"","__proto__":4,"c":{"d":1,"e":"x"}}'), shape],
  ["an optional key that is null", { a: "", b: null, ...rest }, shape],
  ["a number for a text", { a: 1, ...rest }, shape],
  ["a number above", { a: "", b: [6], ...rest }, shape],
  ["a number below", { a: "", b: [-1], ...rest }, shape],
  ["a fraction", { a: "", b: [1.5], ...rest }, shape],
  ["a number as text", { a: "", b: ["1"], ...rest }, shape],
  ["an object for a list", { a: "", b: { length: 0 }, ...rest }, shape],
  ["a list for an object", { a: "", c: [] }, shape],
  ["another constant", { a: "", c: { d: 2, e: "x" } }, shape],
  ["a constant of another type", { a: "", c: { d: "1", e: "x" } }, shape],
  ["a list", [], shape],
  ["null", null, shape],
]);

check("decodeBase64", decodeBase64, [
  ["nothing", ""],
  ["padded", "QQ=="],
  ["all digits", "+/+/"],
  ["no padding", "QQ", "base64"],
  ["bits left over", "QR==", "base64"],
  ["white space", "QQ ==", "base64"],
  ["the URL alphabet", "-_-_", /./],
  ["beyond ASCII", "é", /./],
]);

check("decodeUtf8", (bytes: number[]) => decodeUtf8(Uint8Array.from(bytes)), [
  ["text", [0xc3, 0xa9]],
  ["a broken sequence", [0xc3], "not valid"],
  ["a surrogate", [0xed, 0xa0, 0x80], "not valid"],
]);

void test("a byte order mark stays", () => assert.equal(decodeUtf8(Uint8Array.of(0xef, 0xbb, 0xbf)), "\ufeff"));
