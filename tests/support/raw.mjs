//! HTTP/1.1 over a plain socket: the request goes out byte for byte, where `fetch` would normalize its path.

import { connect } from "node:net";

/** Milliseconds for one exchange. */
const PATIENCE = 15_000;

/**
 * Sends a request to the origin of `url`. `path` may hold any character up to U+00FF, each sent as one byte.
 * Answers {status, headers, body}; headers by lower-case name.
 */
export function rawRequest(url, { method = "GET", path, headers = {}, body = "" }) {
  const { hostname, port, host } = new URL(url);
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(headers)) {
    lines.push(`${name}: ${value}`);
  }
  if (body !== "") {
    lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  }
  const request = Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), Buffer.from(body)]);
  return exchange({ host: hostname, port: Number(port) }, request, method);
}

/** Sends bytes and reads one whole answer; the server may keep the connection open after it. */
function exchange(address, request, method) {
  return new Promise((resolve, reject) => {
    const socket = connect(address);
    let received = Buffer.alloc(0);
    socket.setTimeout(PATIENCE, () => socket.destroy(new Error("no whole answer in time")));
    socket.on("error", reject);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      try {
        const answer = parse(received, method);
        if (answer !== undefined) {
          resolve(answer);
          socket.destroy();
        }
      } catch (error) {
        socket.destroy(error);
      }
    });
    socket.on("end", () => reject(new Error(`the answer is cut off: ${JSON.stringify(received.toString("latin1"))}`)));
    socket.write(request);
  });
}

/** The answer that these bytes are, or undefined where there must be more. */
function parse(bytes, method) {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) {
    return undefined;
  }
  const [statusLine, ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = new Headers(lines.map(splitHeader));
  const status = Number(statusLine.split(" ")[1]);
  const rest = bytes.subarray(end + 4);
  if (method === "HEAD" || status === 304 || status === 204) {
    if (rest.length > 0) {
      throw new Error(`a body of ${rest.length} bytes where there may be none`);
    }
    return { status, headers, body: rest };
  }
  const body = headers.get("transfer-encoding") === "chunked" ? dechunk(rest) : sized(rest, headers);
  return body && { status, headers, body };
}

function splitHeader(line) {
  const colon = line.indexOf(":");
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

function sized(bytes, headers) {
  const length = Number(headers.get("content-length") ?? NaN);
  if (Number.isNaN(length) || bytes.length > length) {
    throw new Error(`a body of ${bytes.length} bytes and Content-Length ${headers.get("content-length")}`);
  }
  return bytes.length === length ? bytes : undefined;
}

function dechunk(bytes) {
  const parts = [];
  for (let at = 0; ; ) {
    const line = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.subarray(at, line).toString("latin1"), 16);
    const next = line + 2 + size + 2;
    if (line === -1 || next > bytes.length) {
      return undefined;
    }
    if (size === 0) {
      return Buffer.concat(parts);
    }
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = next;
  }
}
