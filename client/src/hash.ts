//! SHA-256 and UTF-8, through the platform.

import { PackferryError } from "./errors.js";

/** Bytes that own plain memory, as WebCrypto and `postMessage` want them. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** `crypto.subtle`, or an error that says why there is none and what to do. */
export function subtle(): SubtleCrypto {
  // Typed as always there; on a page from plain http it is not.
  const found = (globalThis.crypto as Crypto | undefined)?.subtle as SubtleCrypto | undefined;
  if (found) return found;
  throw new PackferryError(
    "insecure-context",
    "Nothing can be verified without crypto.subtle, which browsers offer on https and localhost only: serve this page there.",
  );
}

/** The SHA-256 of `data` in lower-case hex. */
export async function sha256(data: Bytes | string): Promise<string> {
  const hash = await subtle().digest("SHA-256", typeof data === "string" ? encodeUtf8(data) : data);
  return Array.from(new Uint8Array(hash), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export const encodeUtf8 = (data: string): Bytes => new TextEncoder().encode(data);

/** Decodes UTF-8 strictly: invalid sequences throw, a byte order mark stays. */
export const decodeUtf8 = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
