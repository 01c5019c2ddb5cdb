//! The line between a client and the edge: every request takes `latency` milliseconds longer, and is counted. Serves the
//! measurement's page, too, so that the page and what it asks for have one origin, as NodeTool's have.

import { readFileSync } from "node:fs";
import { Agent, createServer, request as requestTo } from "node:http";
import { extname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const TYPES = { ".js": "text/javascript", ".wasm": "application/wasm" };
const PAGE = '<!doctype html><title>bench</title><link rel="icon" href="data:,"><script type="module" src="/page.js"></script>';

/** Opens a line to the edge at `target`; the page's files are in `folder`. */
export async function openLine(target, folder) {
  const agent = new Agent({ keepAlive: true });
  const line = { latency: 0, requests: 0, bytes: 0 };
  const server = createServer(async (request, response) => {
    if (!request.url.startsWith("/api/")) {
      servePage(folder, request, response);
      return;
    }
    line.requests += 1;
    // A timer of none at all would still wait for a turn.
    if (line.latency > 0) {
      await sleep(line.latency);
    }
    forward(agent, target, request, response, (size) => (line.bytes += size));
  });
  // Each exchange of one client on a connection that is open already, as with a real edge.
  server.keepAliveTimeout = 60_000;
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  line.origin = `http://127.0.0.1:${server.address().port}`;
  line.taken = () => {
    const { requests, bytes } = line;
    Object.assign(line, { requests: 0, bytes: 0 });
    return { requests, bytes };
  };
  line.close = () => {
    agent.destroy();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return line;
}

function servePage(folder, { url }, response) {
  const type = TYPES[extname(url)];
  response.writeHead(200, { "Content-Type": type ?? "text/html" }).end(type ? readFileSync(join(folder, url)) : PAGE);
}

function forward(agent, target, { method, url, headers }, response, onBytes) {
  const { hostname, port, host } = new URL(target);
  const asked = requestTo({ agent, hostname, port, method, path: url, headers: { ...headers, host } }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.on("data", (chunk) => onBytes(chunk.length));
    answer.pipe(response);
  });
  asked.on("error", () => response.destroy());
  asked.end();
}
