//! The base: the smallest worker that can send the same bytes with the same headers from memory.

import answers from "answers.json";

const table = new Map();
for (const [path, { status, headers, body }] of Object.entries(answers)) {
  const whole = new Headers(headers);
  const notModified = new Headers(headers);
  notModified.delete("Content-Length");
  table.set(path, {
    tag: whole.get("ETag"),
    body: Uint8Array.from(atob(body), (c) => c.charCodeAt(0)),
    init: { status, headers: whole },
    notModified: { status: 304, headers: notModified },
  });
}
const absent = table.get("/api/sandbox-modules/absent");

export default {
  fetch(request) {
    const { url } = request;
    const answer = table.get(url.slice(url.indexOf("/", 8))) ?? absent;
    if (answer.tag !== null && request.headers.get("If-None-Match") === answer.tag) {
      return new Response(null, answer.notModified);
    }
    return new Response(answer.body, answer.init);
  },
};
