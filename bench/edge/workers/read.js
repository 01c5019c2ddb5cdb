//! One value from KV or from the Cache API, as the path says: what a tier of ours in the Cache API would gain over KV's own cache. In
//! workerd both are services; here the same worker in memory answers them, so that what differs is what the runtime does.

export default {
  async fetch(request, env) {
    if (request.url.endsWith("/cache")) {
      return await caches.default.match("http://cache/first");
    }
    const body = await env.KV.get("first", { type: "stream" });
    return new Response(body, { headers: { "Content-Type": "text/javascript" } });
  },
};
