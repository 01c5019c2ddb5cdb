//! What an answer must look like whatever it delivers: the headers of every response, of a delivery and of a
//! refusal, as tables. Recomputes what can be recomputed. Which module has which values is the tests' affair.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";

/** Prefix of every module's path. */
export const MODULES = "/api/sandbox-modules/";

/** What stands on every response. */
const EVERYWHERE = {
  "access-control-allow-origin": "*",
  "cross-origin-resource-policy": "cross-origin",
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; sandbox",
};

/** What a browser must be allowed to read of a delivery; the rest it may always read. */
const EXPOSED = [
  "ETag",
  "X-Content-Digest",
  "X-Content-Sha256",
  "Unencoded-Digest",
  "X-Sandbox-Pack",
  "X-Sandbox-Pack-Version",
  "X-Sandbox-File-Id",
  "X-Sandbox-Internal",
  "X-Sandbox-Module-Dependencies",
  "X-Sandbox-Wasm-Contract",
  "X-Sandbox-Host-Module",
  "X-Packferry-Manifest",
  "Server-Timing",
];

/** Cache-Control by kind of answer, without a policy. */
export const CACHING = { named: "no-cache", pinned: "public, max-age=31536000, immutable", refused: "no-store" };

/** Headers that may stand on an answer beside those that a check names. */
const OTHERS = [
  ...Object.keys(EVERYWHERE),
  "access-control-expose-headers",
  "accept-ranges",
  "server-timing",
  // Of the connection, not of the answer.
  "connection",
  "content-length",
  "date",
  "transfer-encoding",
];

/** SHA-256 of bytes, in hex. */
export function sha256(bytes) {
  return createHash("sha256").update(bytes).digest("hex");
}

/** The headers that a delivery must have by the wire contract; null where one must be absent. */
export function deliveryHeaders(delivery) {
  const { pinned, body, graphDigest, fileId, pack, version, internal, dependencies } = delivery;
  return {
    "content-type": delivery.kind === "wasm" ? "application/wasm" : "text/javascript; charset=utf-8",
    etag: `"${graphDigest}"`,
    "x-content-digest": graphDigest,
    "x-content-sha256": sha256(body),
    "unencoded-digest": `sha-256=:${createHash("sha256").update(body).digest("base64")}:`,
    "x-sandbox-pack": pack,
    "x-sandbox-pack-version": version ?? null,
    "x-sandbox-file-id": fileId,
    "x-sandbox-internal": internal ? "1" : "0",
    "x-sandbox-module-dependencies": JSON.stringify(dependencies.map((id) => `${graphDigest}::${id}`)),
    "x-sandbox-wasm-contract": delivery.wasmContract ? JSON.stringify(delivery.wasmContract) : null,
    "x-sandbox-host-module": delivery.hostId ?? null,
    "x-packferry-manifest": pinned ? null : delivery.manifest,
    "cache-control": pinned ? CACHING.pinned : CACHING.named,
    "content-length": String(body.length),
    "accept-ranges": "none",
  };
}

/** Checks headers by name; null stands for absence. */
export function checkHeaders(answer, expected, what) {
  const names = Object.keys(expected);
  const actual = Object.fromEntries(names.map((name) => [name, answer.headers.get(name)]));
  assert.deepEqual(actual, expected, what);
}

/** Checks what stands on every response, and that nothing stands there that `named` and the tables do not know. */
function checkEverywhere(answer, named, what) {
  checkHeaders(answer, EVERYWHERE, what);
  assert.ok(answer.headers.has("cache-control"), `${what}: Cache-Control is explicit`);
  const exposed = list(answer.headers.get("access-control-expose-headers"));
  assert.deepEqual(
    EXPOSED.filter((name) => !exposed.includes(name.toLowerCase())),
    [],
    `${what}: Access-Control-Expose-Headers names all`,
  );
  const known = new Set([...OTHERS, ...named]);
  const unknown = [...answer.headers.keys()].filter((name) => !known.has(name));
  assert.deepEqual(unknown, [], `${what}: headers that no table knows`);
}

function list(value) {
  return (value ?? "").split(",").map((item) => item.trim().toLowerCase());
}

/** Checks a whole delivery: status, body and every header of the wire contract. */
export function checkDelivery(answer, delivery, what) {
  assert.equal(answer.status, 200, `${what}: ${answer.body.subarray(0, 300)}`);
  assert.ok(answer.body.equals(delivery.body), `${what}: the body is the file's bytes`);
  const expected = deliveryHeaders(delivery);
  checkHeaders(answer, expected, what);
  checkEverywhere(answer, Object.keys(expected), what);
  assert.match(answer.headers.get("server-timing") ?? "", /^[a-z-]+(;|,|$)/, `${what}: Server-Timing`);
}

/** Checks that the answer to a conditional request is `full` without its body. */
export function checkNotModified(answer, full, what) {
  assert.equal(answer.status, 304, what);
  assert.equal(answer.body.length, 0, `${what}: no body`);
  // What is about the bytes of an answer is not on one that has none: Chromium would check the digest, and fail.
  const aboutBytes = ["content-length", "unencoded-digest"];
  assert.deepEqual(lasting(answer, aboutBytes), lasting(full, aboutBytes), what);
  aboutBytes.forEach((name) => assert.equal(answer.headers.get(name), null, `${what}: ${name}`));
}

/** Checks that the answer to HEAD is `full` without its body. */
export function checkHead(answer, full, what) {
  assert.equal(answer.status, full.status, what);
  assert.equal(answer.body.length, 0, `${what}: no body`);
  assert.deepEqual(lasting(answer), lasting(full), what);
}

/** The headers that do not change from one moment to the next. */
function lasting(answer, without = []) {
  const passing = new Set(["date", "server-timing", "connection", "transfer-encoding", ...without]);
  return Object.fromEntries([...answer.headers].filter(([name]) => !passing.has(name)));
}

/** Status of each refusal and fault, by code. */
const STATUS = {
  "invalid-id": 400,
  forbidden: 403,
  "not-found": 404,
  unavailable: 404,
  "method-not-allowed": 405,
  corrupt: 502,
  "storage-incomplete": 503,
  "storage-unavailable": 503,
  "policy-unavailable": 503,
};

/** Checks a refusal: a problem document of this code, with this detail where one is given. */
export function checkProblem(answer, { code, detail }, what) {
  assert.equal(answer.status, STATUS[code], `${what}: ${answer.body.subarray(0, 300)}`);
  const named = { "content-type": "application/problem+json", "cache-control": CACHING.refused };
  checkHeaders(answer, named, what);
  checkEverywhere(answer, [...Object.keys(named), "allow", "retry-after"], what);
  const document = JSON.parse(answer.body);
  assert.equal(document.status, answer.status, what);
  assert.equal(document.code, code, what);
  for (const member of ["type", "title", "detail"]) {
    assert.equal(typeof document[member], "string", `${what}: ${member}`);
  }
  if (detail !== undefined) {
    assert.equal(document.detail, detail, what);
  }
  return document;
}

/** NodeTool's sentence for an id that nothing has, which is ours too. */
export function notInstalled(id) {
  return { code: "not-found", detail: `Sandbox module ${id} is not installed.` };
}

/** NodeTool's sentence for an entry that is declared and not delivered, which is ours too. */
export function notAvailable(id) {
  return { code: "unavailable", detail: `Sandbox module ${id} is not available for delivery.` };
}
