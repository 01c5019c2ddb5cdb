//! The user's code as a module: static imports first, everything else in an async function. The only file that knows the
//! parser.

import { type ImportDeclaration, parse } from "acorn";

import { GuestError } from "./errors.js";

/**
 * Rewrites `code` as the text of a module whose default export is the async function to call. All imports come to stand on the
 * first line, and every other character keeps its line. Throws a `GuestError` with line and column of a syntax error.
 */
export function asModule(code: string, mostBytes: number): string {
  const length = new TextEncoder().encode(code).length;
  if (length > mostBytes) throw new GuestError("thrown", `the code is ${length} bytes long, and a script may have ${mostBytes}`);
  const imports = parsed(code).body.filter((statement) => statement.type === "ImportDeclaration");
  let head = "";
  let body = "";
  let copied = 0;
  for (const declaration of imports) {
    head += importText(code, declaration);
    body += code.slice(copied, declaration.start) + blank(code.slice(declaration.start, declaration.end));
    copied = declaration.end;
  }
  return `${head}export default async () => { ${body}${code.slice(copied)}\n};`;
}

function parsed(code: string): ReturnType<typeof parse> {
  try {
    return parse(code, { ecmaVersion: "latest", sourceType: "module", allowReturnOutsideFunction: true, allowHashBang: false });
  } catch (error) {
    if (error instanceof RangeError) throw new GuestError("thrown", "SyntaxError: the code is nested too deeply");
    const { message, loc } = error as SyntaxError & { loc?: { line: number; column: number } };
    const at = loc ? ` (line ${loc.line}, column ${loc.column + 1})` : "";
    throw new GuestError("thrown", `SyntaxError: ${message.replace(/ \(\d+:\d+\)$/, "")}${at}`);
  }
}

/** The declaration again, without the line breaks and comments that it may have had. */
function importText(code: string, { specifiers, source, attributes }: ImportDeclaration): string {
  const textOf = ({ start, end }: { start: number; end: number }): string => code.slice(start, end);
  const clauses: string[] = [];
  const names: string[] = [];
  for (const specifier of specifiers) {
    const local = textOf(specifier.local);
    if (specifier.type === "ImportDefaultSpecifier") clauses.push(local);
    else if (specifier.type === "ImportNamespaceSpecifier") clauses.push(`* as ${local}`);
    else names.push(`${textOf(specifier.imported)} as ${local}`);
  }
  if (names.length > 0) clauses.push(`{ ${names.join(", ")} }`);
  const from = clauses.length > 0 ? `${clauses.join(", ")} from ` : "";
  const entries = attributes.map((attribute) => `${textOf(attribute.key)}: ${textOf(attribute.value)}`);
  const attached = entries.length > 0 ? ` with { ${entries.join(", ")} }` : "";
  return `import ${from}${textOf(source)}${attached}; `;
}

/** An empty statement of the same lines, so that the statements around it stay apart. */
const blank = (text: string): string => `;${text.slice(1).replace(/[^\n\r\u2028\u2029]/g, " ")}`;
