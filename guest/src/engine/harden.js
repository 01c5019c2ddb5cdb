// Runs before anything else does: takes away whatever gives code from text, a clock, or a way out, on every engine that this
// guest has had. What the language defines stays.
(() => {
  "use strict";
  const absent = [
    "eval", "Function", "Buffer", "process", "env", "Headers", "Request", "Response", "performance",
    "setTimeout", "clearTimeout", "setInterval", "clearInterval", "setImmediate", "clearImmediate", "queueMicrotask",
    "require", "module", "exports", "WebAssembly", "window", "document", "navigator", "location", "self",
    "XMLHttpRequest", "fetch", "localStorage", "sessionStorage", "indexedDB", "importScripts", "atob", "btoa",
  ];
  for (const name of absent) delete globalThis[name];
  // `Function` and its kin can still be reached from any function. What is found there keeps its name and refuses to compile.
  const samples = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (const sample of samples) {
    const prototype = Object.getPrototypeOf(sample);
    const name = prototype.constructor.name;
    const refuse = function () {
      throw new TypeError(`${name} cannot compile text in the sandbox`);
    };
    Object.defineProperty(refuse, "name", { value: name });
    Object.defineProperty(refuse, "prototype", { value: prototype, writable: false });
    Object.defineProperty(prototype, "constructor", { value: refuse });
  }
})();
