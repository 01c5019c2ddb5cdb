//! The base for cold starts: the smallest worker that reads one value of KV and sends it.

export default {
  async fetch(request, env) {
    const body = await env.KV.get("first", { type: "stream" });
    return new Response(body, { headers: { "Content-Type": "text/javascript" } });
  },
};
