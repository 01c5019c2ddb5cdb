//! The chain from a trusted key to a graph digest: envelope, signature, sequence, manifest, shard.

import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";

import {
  checkChannelName,
  checkExpiry,
  checkSequence,
  checkSignature,
  importKey,
  parseEnvelope,
  preAuthenticationEncoding,
} from "../src/channel.js";
import { graphDigestOf, parseManifest, shardOf } from "../src/manifest.js";
import { type Case, check, replaced, sha256 } from "./cases.js";

const TYPE = "application/vnd.packferry.channel+json";
const base64 = (data: string | Uint8Array): string => Buffer.from(data).toString("base64");

/** A key pair: its public half as trusted keys are written, and a signer. */
function keyPair(): { trusted: string; signature: (payload: string) => { keyid: string; sig: string } } {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  return {
    trusted: base64(raw),
    signature: (payload) => ({
      keyid: sha256(raw),
      sig: base64(sign(null, preAuthenticationEncoding(TYPE, payload), privateKey)),
    }),
  };
}

const pointer = JSON.stringify({
  version: 1,
  channel: "stable",
  sequence: 7,
  manifest: "a".repeat(64),
  publishedAt: "2026-01-02T03:04:05Z",
  expires: "2026-02-02T03:04:05Z",
});
const envelope = (payload: string, signatures: { keyid: string; sig: string }[] = []): string =>
  JSON.stringify({ payloadType: TYPE, payload: base64(payload), signatures });

const wrapped = (what: string, from: string, to: string, refusal: string): Case<string> => [what, envelope(replaced(pointer, from, to)), refusal];

check("parseEnvelope", parseEnvelope, [
  ["unsigned", envelope(pointer)],
  ["signed", envelope(pointer, [{ keyid: "x", sig: "y" }])],
  ["spelled with white space", JSON.stringify(JSON.parse(envelope(pointer)), null, 2)],
  ["without an expiry", envelope(pointer.replace(/,"expires":"[^"]+"/, ""))],
  ["not JSON", "nope", /Unexpected/],
  ["a list", "[]", "not a channel"],
  ["with a key of its own", replaced(envelope(pointer), '{"payloadType"', '{"x":1,"payloadType"')],
  ["another type", replaced(envelope(pointer), "channel+json", "other"), "not a channel"],
  ["not base64", replaced(envelope(pointer), '"payload":"', '"payload":"!'), /./],
  ["a signature that is none", replaced(envelope(pointer), "[]", '[{"keyid":"x"}]'), "shape"],
  wrapped("white space in the payload", '{"version"', '{ "version"', "canonical"),
  wrapped("an unknown key in the payload", '{"version"', '{"x":1,"version"', "shape"),
  wrapped("another version", '"version":1', '"version":2', "shape"),
  wrapped("a negative sequence", ":7", ":-7", "shape"),
  wrapped("a time with an offset", "05Z", "05+", "shape"),
  wrapped("an expiry in words", "2026-02-02T03:04:05Z", "tomorrow", "shape"),
  wrapped("a manifest that is no digest", "a".repeat(64), "a".repeat(63), "shape"),
]);

const parsed = parseEnvelope(envelope(pointer)).pointer;

check("checkChannelName", (name: string) => checkChannelName(parsed, name), [
  ["the one asked for", "stable"],
  ["another", "beta", "it is channel stable"],
]);

check("checkExpiry", ([json, now]: [string, string]) => checkExpiry(parseEnvelope(envelope(json)).pointer, Date.parse(now)), [
  ["before", [pointer, "2026-02-02T03:04:04Z"]],
  ["at the second", [pointer, "2026-02-02T03:04:05Z"], "expired"],
  ["after", [pointer, "2027-01-01T00:00:00Z"], "expired"],
  ["never", [pointer.replace(/,"expires":"[^"]+"/, ""), "2100-01-01T00:00:00Z"]],
]);

check("checkSequence", ([now, last]: [string, string?]) => checkSequence(parseEnvelope(envelope(now)), last === undefined ? undefined : parseEnvelope(envelope(last))), [
  ["the first", [pointer]],
  ["the same again", [pointer, pointer]],
  ["a newer one", [replaced(pointer, ":7", ":8"), pointer]],
  ["an older one", [replaced(pointer, ":7", ":6"), pointer], "not above 7"],
  ["the same sequence with another payload", [replaced(pointer, "a".repeat(64), "b".repeat(64)), pointer], "not above 7"],
]);

const [ours, theirs] = [keyPair(), keyPair()];
check(
  "checkSignature",
  async ([json, ...trusted]: [string, ...string[]]) => checkSignature(parseEnvelope(json), await Promise.all(trusted.map(importKey))),
  [
    ["by the trusted key", [envelope(pointer, [ours.signature(pointer)]), ours.trusted]],
    ["by one of two", [envelope(pointer, [theirs.signature(pointer), ours.signature(pointer)]), ours.trusted]],
    ["by one of two trusted", [envelope(pointer, [ours.signature(pointer)]), theirs.trusted, ours.trusted]],
    ["unsigned", [envelope(pointer), ours.trusted], "no trusted key"],
    ["by another key", [envelope(pointer, [theirs.signature(pointer)]), ours.trusted], "no trusted key"],
    ["by another key under our id", [envelope(pointer, [{ ...theirs.signature(pointer), keyid: ours.signature(pointer).keyid }]), ours.trusted], "no trusted key"],
    ["over another payload", [envelope(replaced(pointer, ":7", ":8"), [ours.signature(pointer)]), ours.trusted], "no trusted key"],
    ["cut off", [envelope(pointer, [{ ...ours.signature(pointer), sig: "QQ==" }]), ours.trusted], "no trusted key"],
    ["not base64", [envelope(pointer, [{ ...ours.signature(pointer), sig: "!" }]), ours.trusted], /./],
  ],
);

check("importKey", importKey, [
  ["32 bytes", ours.trusted],
  ["31 bytes", base64(new Uint8Array(31)), /./],
  ["hex", "ab".repeat(32), /./],
  ["not base64", "nope!", /./],
]);

void test("the signed bytes are those of the DSSE specification", () => {
  const encoded = preAuthenticationEncoding("http://example.com/HelloWorld", "hello world");
  assert.equal(new TextDecoder().decode(encoded), "DSSEv1 29 http://example.com/HelloWorld 11 hello world");
});

const d = (digit: string): string => digit.repeat(64);
const moduleRow = (specifier: string): string =>
  `{"specifier":"${specifier}","kind":"js","graphDigest":"${d("1")}","fileId":"a.js","sha256":"${d("2")}","size":1,"dependencies":[],"exports":["a"]}`;
const packRow = (name: string, modules = moduleRow(name), unavailable = ""): string =>
  `{"name":"${name}","version":"1.0.0","description":"d","digest":"${d("3")}","modules":[${modules}],"files":[],"unavailable":[${unavailable}]}`;
const root = (...packs: string[]): string => `{"version":1,"packs":[${packs.join()}]}`;
const shards = (...names: string[]): string =>
  `{"version":1,"shards":[${names.map((name) => `{"first":"${name}","sha256":"${d(name)}"}`).join()}]}`;

check("parseManifest", parseManifest, [
  ["no packs", root()],
  ["packs", root(packRow("a"), packRow("b"))],
  ["shards", shards("a", "b")],
  ["something unavailable", root(packRow("a", "", '{"specifier":"a","code":"host-not-registered"}'))],
  ["packs out of order", root(packRow("b"), packRow("a")), "out of order"],
  ["a pack twice", root(packRow("a"), packRow("a")), "out of order"],
  ["modules out of order", root(packRow("a", `${moduleRow("a/b")},${moduleRow("a")}`)), "out of order"],
  ["shards out of order", shards("b", "a"), "out of order"],
  ["another version", replaced(root(), ":1", ":2"), "shape"],
  ["an unknown key", replaced(root(packRow("a")), '"files"', '"x":1,"files"'), "shape"],
  ["an unknown key in a module", replaced(root(packRow("a")), '"fileId"', '"x":1,"fileId"'), "shape"],
  ["a graph digest that is none", replaced(root(packRow("a")), d("1"), "1"), "shape"],
  ["white space", `${root()} `, "canonical"],
]);

void test("the shard of a pack", () => {
  const rows = parseManifest(shards("b", "d"));
  const cases: [string, string | undefined][] = [["a", undefined], ["b", "b"], ["c", "b"], ["d", "d"], ["z", "d"]];
  for (const [pack, first] of cases) assert.equal(shardOf(rows, pack), first && d(first), pack);
});

void test("the graph digest of a module", () => {
  const release = parseManifest(root(packRow("a"), packRow("b", moduleRow("b/c"))));
  const cases: [string, string | undefined][] = [["a", d("1")], ["b/c", d("1")], ["b", undefined], ["toString", undefined]];
  for (const [specifier, digest] of cases) assert.equal(graphDigestOf(release, specifier), digest, specifier);
});
