//! The text of the code: which modules it imports, and import lines that come and go with what is picked. Pure.

const IMPORT = /^\s*import\s(?:[^;'"]*?\sfrom\s*)?["']([^"']+)["']/gm;

/** The specifiers that `code` imports, in its order. */
export const importsOf = (code) => [...new Set(Array.from(code.matchAll(IMPORT), ([, specifier]) => specifier))];

/** The code with a line that imports the module, where none does. */
export function withImport(code, module) {
  if (importsOf(code).includes(module.specifier)) return code;
  const lines = code.split("\n");
  const at = lines.findLastIndex((line) => /^import\s/.test(line)) + 1;
  return [...lines.slice(0, at), importLine(module), ...lines.slice(at)].join("\n");
}

/** The code without the lines that import the module. */
export const withoutImport = (code, { specifier }) =>
  code
    .split("\n")
    .filter((line) => !(/^import\s/.test(line) && importsOf(line).includes(specifier)))
    .join("\n");

/** An import of all that a module exports, or of its default where that is all. */
function importLine({ specifier, exports }) {
  const name = specifier.split("/").at(-1).replace(/[^A-Za-z0-9]+(.)?/g, (_, next = "") => next.toUpperCase());
  const local = /^[A-Za-z]/.test(name) ? name : `module${name}`;
  const names = exports.filter((item) => item !== "default");
  return names.length === 0 && exports.length > 0 ? `import ${local} from "${specifier}";` : `import * as ${local} from "${specifier}";`;
}
