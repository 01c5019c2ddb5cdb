//! The same answers from a Fastify server in Node: `node fastify.mjs ANSWERS PORT`.

import { readFileSync } from "node:fs";
import process from "node:process";

import fastify from "fastify";

const [answers, port] = process.argv.slice(2);
const table = new Map();
for (const [path, { status, headers, body }] of Object.entries(JSON.parse(readFileSync(answers, "utf8")))) {
  const { etag, ...others } = Object.fromEntries(headers);
  table.set(path, { status, etag, headers: { ...others, ...(etag && { etag }) }, body: Buffer.from(body, "base64") });
}
const absent = table.get("/api/sandbox-modules/absent");

const server = fastify();
server.get("/*", (request, reply) => {
  const { status, etag, headers, body } = table.get(request.url) ?? absent;
  if (etag !== undefined && request.headers["if-none-match"] === etag) {
    const { "content-length": _, ...others } = headers;
    return reply.code(304).headers(others).send();
  }
  return reply.code(status).headers(headers).send(body);
});
await server.listen({ host: "127.0.0.1", port: Number(port) });
