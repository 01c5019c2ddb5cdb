//! A KV binding that fails on request: what Miniflare wraps around the real one. What goes wrong with a key stands under
//! `<key>` in the namespace FAULTS: the name of a fault, and `once` where only the first read meets it.

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What is read in place of a value's stream. */
const FAULTS_BY_NAME = {
  throw: () => {
    throw new Error("KV GET failed: 500 Internal Server Error");
  },
  null: () => null,
  never: () => new Promise(() => {}),
  slow: async (stream) => {
    await pause(300);
    return stream;
  },
  other: () => new Response("other bytes").body,
  nothing: () => new Response("").body,
  truncated: async (stream) => new Response((await bytes(stream)).slice(0, -1)).body,
  flipped: async (stream) => new Response((await bytes(stream)).map((byte, at) => (at === 0 ? byte ^ 1 : byte))).body,
  late: async (stream) => {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    writer.write((await bytes(stream)).slice(0, 1)).then(() => writer.abort(new Error("the connection was lost")), () => {});
    return readable;
  },
};

const bytes = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());

export default function wrap({ KV, FAULTS }) {
  const failed = new Set();
  return {
    async get(key, options) {
      const [name, once] = ((await FAULTS.get(key)) ?? "").split(" ");
      const stream = await KV.get(key, options);
      if (name === "" || (once && failed.has(key))) {
        return stream;
      }
      failed.add(key);
      return FAULTS_BY_NAME[name](stream);
    },
    getWithMetadata: () => Promise.reject(new Error("not asked for")),
    put: () => Promise.reject(new Error("the worker never writes")),
    list: () => Promise.reject(new Error("the worker never lists")),
    delete: () => Promise.reject(new Error("the worker never deletes")),
  };
}
