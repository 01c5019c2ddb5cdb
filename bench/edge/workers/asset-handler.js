//! The same files through @cloudflare/kv-asset-handler, without the Cache API.

import { getAssetFromKV, NotFoundError } from "@cloudflare/kv-asset-handler";
import assets from "assets.json";

export default {
  async fetch(request, env, context) {
    try {
      return await getAssetFromKV(
        { request, waitUntil: (promise) => context.waitUntil(promise) },
        { ASSET_NAMESPACE: env.KV, ASSET_MANIFEST: assets, cacheControl: { bypassCache: true } },
      );
    } catch (error) {
      if (error instanceof NotFoundError) {
        return new Response("not found", { status: 404 });
      }
      throw error;
    }
  },
};
