//! An edge with something to fetch: the guest cases' modules by digest, and releases of packs.

import { generateKeyPairSync, sign } from "node:crypto";
import { join } from "node:path";

import { sha256 } from "../support/contract.mjs";
import { startEdge } from "../support/edge.mjs";
import { scratch } from "../support/project.mjs";
import { build, publish } from "../support/release.mjs";
import { openStorage } from "../support/storage.mjs";
import { startWrangler } from "../support/wrangler.mjs";
import { CLIENT, requireClient } from "./browser.mjs";
import { startProxy } from "./proxy.mjs";

/** The modules of `fixtures/guest/` as the client's own tests build them. */
export function guestFixture() {
  requireClient();
  return import(join(CLIENT, "build", "test", "guest-fixture.js"));
}

/** A KV of its own, and a worker over it with a proxy before; both end with the test. */
export function openEdge(context, vars = {}) {
  const folder = scratch("client");
  const state = join(folder, "state");
  let releases = 0;
  return {
    state,
    /** Builds and publishes packs; `options` are those of `build`. */
    async publish(roots, options = {}) {
      releases += 1;
      const release = await build(roots, join(folder, `release-${releases}`), options);
      await publish(release, state, { args: options.withheld ? ["--allow-withheld"] : [] });
    },
    /** Puts values of KV, by key. */
    async put(objects) {
      const storage = openStorage(state);
      for (const [key, bytes] of objects) {
        await storage.put(key, bytes);
      }
      await storage.close();
    },
    /** A value of KV. */
    async read(key) {
      const storage = openStorage(state);
      const value = await storage.get(key);
      await storage.close();
      return value;
    },
    /** Starts worker and proxy; the worker in `wrangler dev`, or in workerd without it. */
    async start({ wrangler = false } = {}) {
      const worker = wrangler ? await startWrangler(state, { timeout: 240_000 }) : await startEdge({ state, vars });
      context.after(() => worker.close());
      const proxy = await startProxy(worker.url);
      context.after(() => proxy.close());
      return proxy;
    },
  };
}

const TYPE = "application/vnd.packferry.channel+json";

/** A key: how it is trusted, and the signed form of an envelope. */
export function signer() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32);
  return {
    trusted: raw.toString("base64"),
    signed(envelope) {
      const { payload } = JSON.parse(envelope);
      const bytes = Buffer.from(payload, "base64");
      const encoded = Buffer.concat([Buffer.from(`DSSEv1 ${TYPE.length} ${TYPE} ${bytes.length} `), bytes]);
      const signature = { keyid: sha256(raw), sig: sign(null, encoded, privateKey).toString("base64") };
      return Buffer.from(JSON.stringify({ payloadType: TYPE, payload, signatures: [signature] }));
    },
  };
}
