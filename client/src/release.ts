//! The chain of trust: from the caller's keys over channel and manifest to the graph digest of a module.

import { checkChannelName, checkExpiry, checkSequence, checkSignature, type Envelope, importKey, parseEnvelope } from "./channel.js";
import { insist } from "./errors.js";
import { type Bytes, decodeUtf8, sha256 } from "./hash.js";
import { graphDigestOf, parseManifest, type Root, shardOf } from "./manifest.js";
import { packOf } from "./names.js";
import { ask, checkStatus, held, keep, put, type Session } from "./transport.js";

/** Looks up the graph digest of a specifier. */
type DigestOf = (specifier: string) => Promise<string | undefined>;

/** Reads the release that a channel points to; gives the look-up of its graph digests. */
export async function openRelease(session: Session, channel: string, trustedKeys: readonly string[]): Promise<DigestOf> {
  const name = `Channel ${channel}`;
  const key = `channel/${channel}`;
  const keys = await Promise.all(trustedKeys.map(importKey));
  const open = async (body: Bytes): Promise<Envelope> => {
    const envelope = parseEnvelope(decodeUtf8(body));
    checkChannelName(envelope.pointer, channel);
    await checkSignature(envelope, keys);
    return envelope;
  };
  const last = await held(session, key, open);
  const { pointer } = await ask(session, `channels/${channel}`, { name }, async (answer) => {
    checkStatus(answer.status, { name });
    const envelope = await open(answer.body);
    checkExpiry(envelope.pointer, Date.now());
    checkSequence(envelope, last);
    await put(session, key, answer.body);
    return envelope;
  });
  return openManifest(session, pointer.manifest, `of channel ${channel}`);
}

/** Reads the manifest with this digest, which errors call by `which` it is; gives the look-up of its graph digests. */
export async function openManifest(session: Session, manifest: string, which: string): Promise<DigestOf> {
  const read = once((object: string): Promise<Root> => {
    const [kind, digest] = object.split("/");
    const what = { name: `The ${kind} ${which}` };
    return keep(session, object, `${kind}s/${digest}`, what, async (body, answer) => {
      if (answer) checkStatus(answer.status, what);
      insist((await sha256(body)) === digest, "its SHA-256 is not its name");
      return parseManifest(decodeUtf8(body));
    });
  });
  const root = await read(`manifest/${manifest}`);
  return async (specifier) => {
    const shard = shardOf(root, packOf(specifier));
    return graphDigestOf(shard ? await read(`shard/${shard}`) : root, specifier);
  };
}

function once<T>(read: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => known.get(key) ?? (known.set(key, read(key)), known.get(key) as T);
}
