//! A KV binding that fails on request: what Miniflare wraps around the real one. What goes wrong with a key stands under
//! `<key>` in the namespace FAULTS: `throw`, `throw once`, `slow`, `null` or `null once`.

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export default function wrap({ KV, FAULTS }) {
  const failed = new Set();
  return {
    async get(key, options) {
      const [fault, once] = ((await FAULTS.get(key)) ?? "").split(" ");
      if (once && failed.has(key)) {
        return KV.get(key, options);
      }
      failed.add(key);
      if (fault === "throw") {
        throw new Error("KV GET failed: 500 Internal Server Error");
      }
      if (fault === "null") {
        return null;
      }
      if (fault === "slow") {
        await pause(1500);
      }
      return KV.get(key, options);
    },
    getWithMetadata: () => Promise.reject(new Error("not asked for")),
    put: () => Promise.reject(new Error("the worker never writes")),
    list: () => Promise.reject(new Error("the worker never lists")),
    delete: () => Promise.reject(new Error("the worker never deletes")),
  };
}
