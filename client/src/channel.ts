//! The channel: a signed pointer from a name to a manifest, in a DSSE envelope. Each check of the chain from trusted key to
//! manifest digest is one function.

import { insist } from "./errors.js";
import { type Bytes, decodeUtf8, encodeUtf8, sha256, subtle } from "./hash.js";
import { isDigest, isText } from "./names.js";
import { type Infer, isCount, isObject, parseCanonical, read } from "./schema.js";

const TYPE = "application/vnd.packferry.channel+json";

/** RFC 3339, UTC, seconds. */
const isTime = (value: unknown): value is string => isText(value) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value);

const POINTER = { version: 1, channel: isText, sequence: isCount, manifest: isDigest, publishedAt: isTime, "expires?": isTime } as const;

/** What a channel says. */
export type Pointer = Infer<typeof POINTER>;

/** An envelope, taken apart. Nothing in it is trusted yet. */
export interface Envelope {
  payload: string;
  signatures: { keyid: string; sig: string }[];
  pointer: Pointer;
}

/** A public key of the caller, ready to verify. */
export interface TrustedKey {
  id: string;
  key: CryptoKey;
}

/** Parses an envelope. Its own JSON may be spelled in any way, its payload in one. */
export function parseEnvelope(json: string): Envelope {
  const envelope: unknown = JSON.parse(json);
  insist(isObject(envelope) && envelope.payloadType === TYPE, "it is not a channel");
  const payload = decodeUtf8(decodeBase64(read(isText, envelope.payload)));
  const signatures = read([{ keyid: isText, sig: isText }], envelope.signatures);
  return { payload, signatures, pointer: read(POINTER, parseCanonical(payload)) };
}

/** The pointer is that of the channel that was asked for. */
export function checkChannelName(pointer: Pointer, channel: string): void {
  insist(pointer.channel === channel, `it is channel ${pointer.channel}`);
}

/** The pointer has not expired at `now` (milliseconds). */
export function checkExpiry({ expires }: Pointer, now: number): void {
  insist(!expires || Date.parse(expires) > now, `it expired at ${expires}`);
}

/** The sequence is not lower than the last one seen, and the same sequence means the same payload. */
export function checkSequence({ pointer, payload }: Envelope, last: Envelope | undefined): void {
  insist(
    !last || pointer.sequence > last.pointer.sequence || payload === last.payload,
    `its sequence ${pointer.sequence} is not above ${last?.pointer.sequence}, which was seen before`,
  );
}

/** Imports a trusted key: 32 raw bytes of Ed25519 in base64. */
export async function importKey(base64: string): Promise<TrustedKey> {
  const raw = decodeBase64(base64);
  return { id: await sha256(raw), key: await subtle().importKey("raw", raw, "Ed25519", false, ["verify"]) };
}

/** Some trusted key signed the envelope. */
export async function checkSignature({ payload, signatures }: Envelope, keys: TrustedKey[]): Promise<void> {
  const signed = preAuthenticationEncoding(TYPE, payload);
  const valid = await Promise.all(
    signatures.flatMap(({ keyid, sig }) =>
      keys.map(({ id, key }) => id === keyid && subtle().verify("Ed25519", key, decodeBase64(sig), signed)),
    ),
  );
  insist(valid.includes(true), "no trusted key signed it");
}

/** What a signature is over: DSSE's pre-authentication encoding of type and payload. */
export const preAuthenticationEncoding = (type: string, payload: string): Bytes =>
  encodeUtf8(`DSSEv1 ${encodeUtf8(type).length} ${type} ${encodeUtf8(payload).length} ${payload}`);

/** Decodes base64 strictly: one spelling of every value. */
export function decodeBase64(data: string): Bytes {
  const binary = atob(data);
  insist(btoa(binary) === data, "it is not base64");
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}
