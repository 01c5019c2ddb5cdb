//! Texts that run in the guest before any module does.

/** Removes what engines put back for each evaluation, on the first line of every source. */
export const PREFIX =
  "delete globalThis.setTimeout; delete globalThis.clearTimeout; delete globalThis.setInterval; " +
  "delete globalThis.clearInterval; delete globalThis.setImmediate; delete globalThis.clearImmediate; ";

/**
 * Functions that only the host holds, over the engine's own functions as they were before any guest code ran: guest code can
 * change every global without changing them. Whatever runs guest code in them (getters, `toJSON`) is within the run's bounds.
 */
export const TOOLS = String.raw`(() => {
  "use strict";
  const { stringify, parse } = JSON;
  const { apply } = Reflect;
  const { isError } = Error;
  const { defineProperty } = Object;
  const { then } = Promise.prototype;
  const slice = "".slice;
  const toText = String;
  const MOST = 2000;

  const textOf = (value) => {
    try {
      return apply(slice, toText(value), [0, MOST]);
    } catch {
      return undefined;
    }
  };
  const read = (object, key) => {
    try {
      const value = object[key];
      return value === undefined ? undefined : textOf(value);
    } catch {
      return undefined;
    }
  };
  const message = (thrown) => {
    if (thrown === null) return "";
    if (!isError(thrown)) {
      const text = textOf(thrown);
      return text === undefined ? "a value was thrown that has no text" : "thrown: " + text;
    }
    const name = read(thrown, "name");
    const text = read(thrown, "message");
    if (name === undefined && text === undefined) return "a value was thrown that has no text";
    return name === undefined ? text : text === undefined ? name : name + ": " + text;
  };
  const stack = (thrown) => (isError(thrown) ? read(thrown, "stack") : undefined) ?? "";
  const json = (value) => stringify(value) ?? "null";
  const show = (value) => {
    if (typeof value === "object" && value !== null && !isError(value)) {
      try {
        return apply(slice, toText(stringify(value)), [0, MOST]);
      } catch {
        return textOf(value) ?? "";
      }
    }
    return textOf(value) ?? "";
  };
  // A facade returns our promise from an async function, which looks for its "then".
  const shield = (promise) => {
    defineProperty(promise, "then", { __proto__: null, value: then });
    defineProperty(promise, "constructor", { __proto__: null, value: undefined });
  };
  return { message, stack, json, show, parse, shield };
})()`;

/**
 * Replaces `Array.prototype.push`, as that of the engine is not safe to call: quickjs-ng as quickjs-emscripten 0.32 builds it writes
 * beyond the elements of an array whose last one was deleted, and so gives freed memory to the guest. Nothing else of the engine
 * was found to do so, and nothing keeps the replaced function.
 */
export const REPAIR = String.raw`(() => {
  "use strict";
  const { isArray } = Array;
  const { trunc } = Math;
  const toObject = Object;
  const MOST = 2 ** 53 - 1;
  const lengthOf = (object) => {
    const length = +object.length;
    return length > 0 ? (length < MOST ? trunc(length) : MOST) : 0;
  };
  const { push } = {
    push(item) {
      const count = arguments.length;
      if (count === 1 && isArray(this)) {
        const at = this.length;
        // Anything else is the length of a proxy.
        if (at >>> 0 === at) {
          this[at] = item;
          return (this.length = at + 1);
        }
      }
      if (this === undefined || this === null) throw new TypeError("push was called on " + this);
      const object = toObject(this);
      const length = lengthOf(object);
      if (length + count > MOST) throw new TypeError("the array would be too long");
      for (let at = 0; at < count; at++) object[length + at] = arguments[at];
      return (object.length = length + count);
    },
  };
  Object.defineProperty(Array.prototype, "push", { __proto__: null, value: push });
})()`;

/** What a bridge's module holds until its `__call` is set. */
export const BRIDGE = "export let __call; export default (call) => { __call = call; };";
