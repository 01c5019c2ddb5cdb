//! Stands between a client and an edge: counts what is asked, changes it, or cuts the line.

import { createServer, request as requestTo } from "node:http";

import { stopped } from "./browser.mjs";

/** Starts a proxy before `target`, an origin. */
export async function startProxy(target) {
  const proxy = {
    /** Each request but preflights: path, what it was conditional on, status, bytes of the answer. */
    requests: [],
    preflights: 0,
    /** Whether connections are cut. */
    offline: false,
    /** Gives what becomes of an answer {status, headers, body}. */
    change: (answer) => answer,
    /** What was asked since the last time. */
    taken: () => proxy.requests.splice(0),
  };
  const server = createServer(async (request, response) => {
    if (proxy.offline) {
      request.socket.destroy();
      return;
    }
    try {
      const answer = proxy.change(await forwarded(target, request));
      if (request.method === "OPTIONS") {
        proxy.preflights += 1;
      } else {
        const ifNoneMatch = request.headers["if-none-match"];
        proxy.requests.push({ path: decodeURIComponent(request.url), ifNoneMatch, status: answer.status, bytes: answer.body.length });
      }
      response.writeHead(answer.status, answer.headers).end(answer.body);
    } catch {
      request.socket.destroy();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(proxy, { url: `http://127.0.0.1:${server.address().port}`, close: () => stopped(server) });
}

function forwarded(target, { method, url, headers }) {
  return new Promise((resolve, reject) => {
    const { hostname, port, host } = new URL(target);
    const passed = { ...headers, host, connection: "close", "accept-encoding": "identity" };
    const asked = requestTo({ hostname, port, method, path: url, headers: passed }, async (answer) => {
      const chunks = [];
      for await (const chunk of answer) {
        chunks.push(chunk);
      }
      const { connection, "transfer-encoding": _, ...rest } = answer.headers;
      resolve({ status: answer.statusCode, headers: rest, body: Buffer.concat(chunks) });
    });
    asked.on("error", reject);
    asked.setTimeout(30_000, () => asked.destroy(new Error("no answer in time")));
    asked.end();
  });
}
