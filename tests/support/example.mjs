//! Runs the example of a pack in Node: with the library from npm, the pack's own file, or its WebAssembly, as Node loads them.
//! Nothing here is shared with the guest but esbuild, which finds the library's files.

import { build } from "esbuild";
import { join } from "node:path";

/** What a run in the guest returns went through JSON; this does the same. */
const throughJson = (value) => JSON.parse(JSON.stringify(value));

/** The value that `code` returns, with the sandbox modules of the pack in `root` behind their specifiers. */
export async function runInNode(code, root, { name: pack, nodetool }) {
  const modules = new Map(
    nodetool.sandboxModules.map((module) => [module.name === "." ? pack : `${pack}/${module.name}`, module]),
  );
  const result = await build({
    stdin: { contents: asModule(code), resolveDir: root },
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    mainFields: ["module", "main"],
    conditions: ["import", "module"],
    loader: { ".wasm": "binary" },
    logLevel: "silent",
    plugins: [sandboxModules(modules, root)],
  });
  const [{ text }] = result.outputFiles;
  const { default: run } = await import(`data:text/javascript;base64,${Buffer.from(text).toString("base64")}`);
  return throughJson(await run());
}

/** Code of the sandbox as a module: its imports, then a function with the statements. */
function asModule(code) {
  const lines = code.split("\n");
  const statements = lines.findIndex((line) => line !== "" && !line.startsWith("import "));
  return [...lines.slice(0, statements), "export default async () => {", ...lines.slice(statements), "};"].join("\n");
}

/** Finds what a pack declares: the library by its name, the file by its path, WebAssembly behind a facade. */
function sandboxModules(modules, root) {
  return {
    name: "sandbox-modules",
    setup(bundle) {
      bundle.onResolve({ filter: /^@packferry\// }, ({ path, kind }) => {
        const module = modules.get(path);
        if (module === undefined) {
          return { errors: [{ text: `The pack does not declare ${path}` }] };
        }
        if (module.kind === "wasm") {
          return { path, namespace: "wasm-facade" };
        }
        return bundle.resolve(module.npm ?? `./${module.file}`, { resolveDir: root, kind });
      });
      bundle.onLoad({ filter: /^/, namespace: "wasm-facade" }, ({ path }) => ({
        contents: facade(modules.get(path), root),
        resolveDir: root,
      }));
    },
  };
}

/** One asynchronous function for each export, over one instance: the packs' functions keep no state. */
function facade({ file, exports }, root) {
  const functions = exports.map((each) => (typeof each === "string" ? { wasm: each, as: each } : each));
  return [
    `import bytes from ${JSON.stringify(join(root, file))};`,
    "const { instance } = await WebAssembly.instantiate(bytes);",
    ...functions.map(({ wasm, as }) => `export const ${as} = async (...values) => instance.exports.${wasm}(...values);`),
  ].join("\n");
}
