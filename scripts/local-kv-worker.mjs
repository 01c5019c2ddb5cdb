//! The half of local-kv.mjs that runs in workerd, next to the KV binding: takes a batch of one
//! operation, applies it to every key in parallel, and tries again where another process holds the
//! storage. Knows nothing of the line protocol. Not the Packferry worker; never deployed.
//!
//! A request is POST /<operation>; its body is a 32-bit little-endian length, that many bytes of JSON
//! (an array with one item per key) and the values end to end. The answer is JSON or, for `get`, bytes.

/** How many keys are worked on at once: more only makes them wait inside workerd. */
const PARALLEL = 64;
/** How long busy storage is tried again, in milliseconds, and the longest pause between two tries. */
const PATIENCE = 60_000;
const LONGEST_PAUSE = 500;

const OPERATIONS = {
  /** Stores values; answers how many, once all are confirmed. */
  async put(kv, items, values) {
    let at = 0;
    const entries = items.map(({ key, size }) => {
      const value = values.subarray(at, at + size);
      at += size;
      return { key, value };
    });
    await inParallel(entries, ({ key, value }) => patiently(() => kv.put(key, value)));
    return Response.json(entries.length);
  },

  /** Answers which of the keys are absent, without reading a value to its end. */
  async missing(kv, keys) {
    const present = await inParallel(keys, (key) =>
      patiently(async () => {
        const stream = await kv.get(key, "stream");
        await stream?.cancel();
        return stream !== null;
      }),
    );
    return Response.json(keys.filter((_, index) => !present[index]));
  },

  /** Answers the bytes of one value, or 404. */
  async get(kv, [key]) {
    const value = await patiently(() => kv.get(key, "arrayBuffer"));
    return value === null ? new Response(null, { status: 404 }) : new Response(value);
  },

  /** Answers one page of the keys under a prefix, as KV does. */
  async list(kv, [{ prefix, cursor }]) {
    const page = await patiently(() => kv.list({ prefix, cursor }));
    return Response.json({ keys: page.keys.map(({ name }) => name), cursor: page.cursor ?? null });
  },

  /** Removes keys; absent ones are no error. */
  async delete(kv, keys) {
    await inParallel(keys, (key) => patiently(() => kv.delete(key)));
    return Response.json(keys.length);
  },
};

export default {
  async fetch(request, env) {
    try {
      const { items, values } = decodeFrame(await request.arrayBuffer());
      const operation = OPERATIONS[new URL(request.url).pathname.slice(1)];
      return await operation(env.KV, items, values);
    } catch (error) {
      return new Response(String(error?.message ?? error), { status: 500 });
    }
  },
};

/** Splits a request body into its items and the bytes of the values. */
function decodeFrame(body) {
  const length = new DataView(body).getUint32(0, true);
  const items = JSON.parse(new TextDecoder().decode(new Uint8Array(body, 4, length)));
  return { items, values: new Uint8Array(body, 4 + length) };
}

/** `Promise.all(items.map(work))`, a bounded number at once. */
async function inParallel(items, work) {
  const results = new Array(items.length);
  let next = 0;
  const lane = async () => {
    while (next < items.length) {
      const index = next++;
      results[index] = await work(items[index]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(PARALLEL, items.length) }, lane));
  return results;
}

/**
 * Runs `attempt` until it succeeds. Two processes share the SQLite file under local KV; the one that
 * comes second is answered "500 Internal Server Error" and only has to try again.
 */
async function patiently(attempt) {
  const deadline = Date.now() + PATIENCE;
  for (let pause = 10; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    try {
      return await attempt();
    } catch (error) {
      if (Date.now() + pause > deadline || !/\b5\d\d\b/.test(String(error?.message))) {
        throw error;
      }
    }
    await new Promise((resume) => setTimeout(resume, pause * (0.5 + Math.random() / 2)));
  }
}
