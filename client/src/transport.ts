//! Requests: mirrors in order, tokens to their own origin, retries, progress, bounded bodies. What a body must be is the
//! caller's check, so that a mirror whose answer fails it is passed over.

import type { ByteCache } from "./cache.js";
import { type ErrorCode, insist, PackferryError } from "./errors.js";
import { type Bytes, sha256 } from "./hash.js";

/** A server, and the token that it alone gets. */
export interface Mirror {
  url: string;
  token?: string;
}

/** What one prefetch works with. */
export interface Session {
  fetch: typeof fetch;
  mirrors: readonly Mirror[];
  cache: ByteCache;
  signal: AbortSignal;
  /** The manifests that named answers came from, in the order in which they were first seen. */
  manifests: Set<string>;
  /** Told of every response and of every chunk. */
  onBytes: (arrived: number, announced: number) => void;
}

/** An answer with its body, whose SHA-256 is the announced one, if one was. */
export interface Answer {
  status: number;
  header: (name: string) => string | null;
  body: Bytes;
}

/** No object of the wire is larger: the files of a pack are at most 8 MiB. */
const MAX_BYTES = 16 << 20;
const RETRIES = 3;
const LONGEST_PAUSE = 5000;

/** What a request is for: the object in words, and the module where it is one. */
export interface Subject {
  name: string;
  specifier?: string;
}

/**
 * Asks the mirrors in order until one gives an answer that `accept` takes. Network errors, mismatches and a server's
 * faults lead to the next mirror; a refusal is an answer, and an abort the end.
 */
export async function ask<T>(
  session: Session,
  path: string,
  { name, specifier }: Subject,
  accept: (answer: Answer) => Promise<T> | T,
  etag?: string,
): Promise<T> {
  let failure: PackferryError | undefined;
  for (const mirror of session.mirrors) {
    let arrived = false;
    try {
      const answer = await answerOf(session, mirror, path, etag);
      arrived = true;
      await checkBody(answer);
      return await accept(answer);
    } catch (error) {
      session.signal.throwIfAborted();
      failure =
        error instanceof PackferryError
          ? error
          : new PackferryError(
              arrived ? "mismatch" : "network",
              `${name} ${arrived ? "failed its check" : `could not be fetched from ${mirror.url}`}: ${(error as Error).message}.`,
              specifier,
              error,
            );
      if (REFUSALS.has(failure.code)) break;
    }
  }
  throw failure;
}

/** Answers that no other mirror is asked to better. */
const REFUSALS = new Set<ErrorCode>(["not-available", "forbidden", "unproven"]);

/** A body is the one that its header announces. */
export async function checkBody({ header, body, status }: Answer): Promise<void> {
  const announced = header("X-Content-Sha256");
  insist(status !== 200 || !announced || announced === (await sha256(body)), "its SHA-256 is not the announced one");
}

/** Throws what a status other than 200 says about the subject. */
export function checkStatus(status: number, { name, specifier }: Subject): void {
  if (status === 404) throw new PackferryError("not-available", `${name} is not available on this server.`, specifier);
  if (status === 403) throw new PackferryError("forbidden", `${name} is not available to this client.`, specifier);
  if (status !== 200) throw new PackferryError("http", `${name} could not be fetched (HTTP ${status}).`, specifier);
}

/**
 * Reads `key` from the cache, or fetches it from `path`. `open` checks the bytes, whichever way they came; what fails is
 * neither used nor kept. An answer's status is left to it, too.
 */
export async function keep<T>(
  session: Session,
  key: string,
  path: string,
  what: Subject,
  open: (body: Bytes, answer?: Answer) => Promise<T>,
): Promise<T> {
  return (
    (await held(session, key, open)) ??
    ask(session, path, what, async (answer) => {
      const opened = await open(answer.body, answer);
      await put(session, key, answer.body);
      return opened;
    })
  );
}

/** Reads `key` from the cache. What does not pass `open`, and a cache that fails, are misses. */
export async function held<T>({ cache }: Session, key: string, open: (body: Bytes) => T): Promise<Awaited<T> | undefined> {
  try {
    const body = await cache.get(key);
    return body && (await open(body));
  } catch {
    return undefined;
  }
}

/** Writes to the cache. A full disk does not keep a run from starting. */
export async function put({ cache }: Session, key: string, body: Bytes): Promise<void> {
  try {
    await cache.put(key, body);
  } catch {
    // The next prefetch fetches it again.
  }
}

async function answerOf({ fetch, signal, onBytes }: Session, { url, token }: Mirror, path: string, etag?: string): Promise<Answer> {
  const headers = {
    ...(token && { Authorization: `Bearer ${token}` }),
    ...(etag && { "If-None-Match": `"${etag}"` }),
  };
  for (let attempt = 0; ; attempt++) {
    // Our own cache is verified when it is read; the browser's would give a tampered body again.
    const response = await fetch(`${url}/api/${path}`, { signal, headers, credentials: "omit", redirect: "error", cache: "no-store" });
    const body = await bodyOf(response, onBytes);
    const header = (name: string): string | null => response.headers.get(name);
    if (response.status !== 503 || attempt === RETRIES) return { status: response.status, header, body };
    await pause(Number(header("Retry-After")) * 1000 || 250 << attempt, signal);
  }
}

async function bodyOf(response: Response, onBytes: Session["onBytes"]): Promise<Bytes> {
  const chunks: Bytes[] = [];
  let size = 0;
  onBytes(0, Number(response.headers.get("Content-Length")));
  const reader = response.body?.getReader();
  for (let part; (part = await reader?.read())?.value; ) {
    chunks.push(part.value);
    size += part.value.length;
    onBytes(part.value.length, 0);
    if (size > MAX_BYTES) await reader?.cancel();
    insist(size <= MAX_BYTES, "it is too large");
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

const pause = (milliseconds: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    setTimeout(resolve, Math.min(milliseconds, LONGEST_PAUSE));
    signal.addEventListener("abort", reject);
  });
