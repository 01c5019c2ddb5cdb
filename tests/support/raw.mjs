//! HTTP/1.1 over a plain socket: the request goes out byte for byte, where `fetch` would normalize its path.

import { connect } from "node:net";

/** Milliseconds for one exchange. */
const PATIENCE = 15_000;

/**
 * Sends a request to the origin of `url`. `path` may hold any character up to U+00FF, each sent as one byte.
 * Answers {status, headers, body}; headers by lower-case name.
 */
export async function rawRequest(url, { method = "GET", path, headers = {}, body = "" }) {
  const { hostname, port, host } = new URL(url);
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, "Connection: close"];
  for (const [name, value] of Object.entries(headers)) {
    lines.push(`${name}: ${value}`);
  }
  if (body !== "") {
    lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  }
  const request = Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(body)]);
  return parse(await exchange({ host: hostname, port: Number(port) }, request), method);
}

/** All bytes that come back until the other side closes. */
function exchange(address, request) {
  return new Promise((resolve, reject) => {
    const socket = connect(address);
    const chunks = [];
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error("no whole answer in time")));
    socket.on("error", reject);
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("end", () => resolve(Buffer.concat(chunks)));
    socket.write(request);
  });
}

function parse(bytes, method) {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) {
    throw new Error(`no HTTP answer: ${JSON.stringify(bytes.toString("latin1").slice(0, 200))}`);
  }
  const [statusLine, ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Headers(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]));
  const status = Number(statusLine.split(" ")[1]);
  const rest = bytes.subarray(end + 4);
  const bodyless = method === "HEAD" || status === 304 || status === 204;
  if (bodyless && rest.length > 0) {
    throw new Error(`a body of ${rest.length} bytes where there may be none`);
  }
  return { status, headers, body: headers.get("transfer-encoding") === "chunked" ? dechunk(rest) : rest };
}

function dechunk(bytes) {
  const parts = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.subarray(at, line).toString("latin1"), 16);
    if (line === -1 || Number.isNaN(size)) {
      throw new Error("a chunked body that is cut off");
    }
    if (size === 0) {
      return Buffer.concat(parts);
    }
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}
