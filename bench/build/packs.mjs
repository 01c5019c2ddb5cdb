//! Writes a corpus of packs: JavaScript of the kind that people write, the same on every machine for the same numbers.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const WORDS = "value index total buffer result options source target offset length entry parse format token depth state cursor limit".split(" ");

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomNumbers(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** One exported declaration with documentation, branches, loops, classes, templates and literals. */
function declaration(number, random) {
  const word = () => WORDS[Math.floor(random() * WORDS.length)];
  const [a, b, c] = [`${word()}A`, `${word()}B`, `${word()}C`];
  const digit = () => Math.floor(random() * 1000);
  const shapes = [
    () => `/**
 * Takes the ${a} apart and returns what the ${b} needs.
 * @param {string} ${a} what to take apart
 */
export function ${word()}${number}(${a}, { ${b} = ${digit()}, ${c} } = {}) {
  const parts = [];
  for (let index = 0; index < ${a}.length; index += 1) {
    const code = ${a}.charCodeAt(index);
    if (code > ${digit()} && code !== ${b}) {
      parts.push({ code, text: \`\${${a}.slice(0, index)}-\${${b}}\`, last: index === ${a}.length - 1 });
    } else if (${c}?.skip ?? false) {
      continue;
    }
  }
  return parts.filter(({ code }) => code % ${digit() + 1} !== 0).map((part) => ({ ...part, ${c} }));
}
`,
    () => `export class ${word()[0].toUpperCase()}${word()}${number} {
  #${a} = new Map();
  static defaults = { ${b}: ${digit()}, ${c}: "${word()} ${word()}", list: [${digit()}, ${digit()}, ${digit()}] };

  constructor(${b} = ${digit()}) {
    this.${b} = Number.isInteger(${b}) ? ${b} : Math.trunc(${b});
  }

  get size() {
    return this.#${a}.size;
  }

  ${c}(key, value) {
    // The key is written once, so that a second value never replaces the first.
    if (!this.#${a}.has(key)) this.#${a}.set(key, [value, /^[a-z]+${digit()}$/iu.test(String(key))]);
    return this;
  }
}
`,
    () => `export const ${word()}${number} = Object.freeze({
  ${a}: (x, y) => (x < y ? -1 : x > y ? 1 : ${digit()}),
  "${b}-${c}": async function* (items) {
    for await (const item of items) yield item * ${digit()} + (item >>> 3);
  },
  ${c}: [${Array.from({ length: 8 }, () => `"${word()}-${digit()}"`).join(", ")}],
});
`,
  ];
  return shapes[Math.floor(random() * shapes.length)]();
}

/** Writes `count` packs of ten files, ten to a hundred thousand bytes each, under `root`. */
export function writePacks(root, count) {
  for (let pack = 0; pack < count; pack += 1) {
    const random = randomNumbers(pack + 1);
    const directory = join(root, "@bench", `pack-${pack}`);
    mkdirSync(directory, { recursive: true });
    const names = Array.from({ length: 9 }, (_, file) => `part-${file}.js`);
    const imports = names.map((name, file) => `import * as part${file} from "./${name}";\n`).join("");
    const exported = `export const parts = [${names.map((_, file) => `part${file}`).join(", ")}];\n`;
    for (const [file, name] of [...names, "index.js"].entries()) {
      let text = name === "index.js" ? imports + exported : "";
      for (let number = 0, length = 10_000 + random() * 90_000; text.length < length; number += 1) {
        text += declaration(`${file}x${number}`, random);
      }
      writeFileSync(join(directory, name), text.slice(0, 262_144));
    }
    writeFileSync(join(directory, "SKILL.md"), "---\nname: bench\ndescription: A pack to measure with\n---\n\nNothing to say.\n");
    const manifest = { apiVersion: 1, internal: names, sandboxModules: [{ name: ".", kind: "js", file: "index.js" }] };
    writeFileSync(join(directory, "package.json"), JSON.stringify({ name: `@bench/pack-${pack}`, version: "1.0.0", nodetool: manifest }));
  }
}

/** Writes `count` packages that are no packs under `root`. */
export function writePackages(root, count) {
  for (let number = 0; number < count; number += 1) {
    const directory = join(root, `package-${number}`);
    mkdirSync(directory, { recursive: true });
    const manifest = { name: `package-${number}`, version: "1.0.0", description: "Not a pack", main: "index.js", scripts: { test: "node test.js" }, keywords: WORDS, license: "MIT" };
    writeFileSync(join(directory, "package.json"), JSON.stringify(manifest, null, 2));
  }
}

/** Writes a pack of `count` modules, each over one and the same chain of `count` files: its graphs list their product. */
export function writeChain(directory, count) {
  mkdirSync(directory, { recursive: true });
  const numbers = Array.from({ length: count }, (_, number) => number);
  for (const number of numbers) {
    writeFileSync(join(directory, `module-${number}.js`), 'import "./file-0.js";\n');
    writeFileSync(join(directory, `file-${number}.js`), number + 1 < count ? `import "./file-${number + 1}.js";\n` : "");
  }
  const sandboxModules = numbers.map((number) => ({ name: `module-${number}`, kind: "js", file: `module-${number}.js` }));
  const manifest = { apiVersion: 1, internal: numbers.map((number) => `file-${number}.js`), sandboxModules };
  writeFileSync(join(directory, "package.json"), JSON.stringify({ name: "@bench/chain", version: "1.0.0", nodetool: manifest }));
}
