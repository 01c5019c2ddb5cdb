//! The packs that the edge is measured with: a module of 8 KB, a WASM module of 1 MB, a graph of 100 files.

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const EIGHT_KB = 8192;
const ONE_MB = 1 << 20;

/** Writes the packs into `folder`, which is then a root for `packferry build`. Another version has other bytes. */
export function writePacks(folder, version = "1.0.0") {
  const write = (...parts) => writePack(folder, version, ...parts);
  write("@bench/eight", [{ name: ".", kind: "js", file: "index.js" }], {
    "index.js": padded(`export const version = "${version}";\n`, EIGHT_KB),
  });
  const exports = [{ wasm: "f", as: "f" }];
  write("@bench/mega", [{ name: ".", kind: "wasm", file: "f.wasm", memoryPagesMax: 1, exports }], {
    "f.wasm": paddedWasm(ONE_MB),
  });
  const names = Array.from({ length: 99 }, (_, n) => `part-${String(n).padStart(2, "0")}.js`);
  const imports = names.map((name, n) => `import { part as part${n} } from "./${name}";\n`);
  const files = Object.fromEntries(names.map((name) => [name, padded("export const part = 1;\n", 1000)]));
  files["index.js"] = `${imports.join("")}export const all = [${names.map((_, n) => `part${n}`)}];\n`;
  write("@bench/hundred", [{ name: ".", kind: "js", file: "index.js" }], files, names);
}

function writePack(folder, version, name, sandboxModules, files, internal = []) {
  const manifest = { name, version, nodetool: { apiVersion: 1, sandboxModules, internal } };
  for (const [file, content] of Object.entries({ "package.json": JSON.stringify(manifest), ...files })) {
    const path = join(folder, name, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}

/** JavaScript of exactly so many bytes: comments that do not compress away entirely. */
function padded(source, bytes) {
  let text = source;
  for (let n = 0; text.length < bytes; n += 1) {
    text += `// line ${n}: ${(n * 2654435761) >>> 0}\n`;
  }
  return `${text.slice(0, bytes - 1)}\n`;
}

/** A WASM module of about so many bytes that exports f: () -> i32, its bulk in a custom section. */
function paddedWasm(bytes) {
  const section = (id, content) => [id, ...leb(content.length), ...content];
  const head = [
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 0, 1, 0x7f]),
    ...section(3, [1, 0]),
    ...section(7, [1, 1, 0x66, 0, 0]),
    ...section(10, [1, 4, 0, 0x41, 42, 0x0b]),
  ];
  const name = [1, 0x78];
  const padding = bytes - head.length - 16;
  const custom = Buffer.concat([Buffer.from([0, ...leb(name.length + padding), ...name]), Buffer.alloc(padding, "padding ")]);
  return Buffer.concat([Buffer.from(head), custom]);
}

function leb(value) {
  const bytes = [];
  for (let rest = value; ; ) {
    const byte = rest & 0x7f;
    rest >>>= 7;
    if (rest === 0) {
      return [...bytes, byte];
    }
    bytes.push(byte | 0x80);
  }
}
