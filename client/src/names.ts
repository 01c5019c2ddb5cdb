//! Names: packs, modules, files, digests, specifiers. What is legal, and how a name splits.

export const isText = (value: unknown): value is string => typeof value === "string";

const matches =
  (form: RegExp) =>
  (value: unknown): value is string =>
    isText(value) && form.test(value);

/** A package name: an optional `@scope/`, then one or more of `[A-Za-z0-9._~-]`. */
export const isPackName = matches(/^(@[\w.~-]+\/)?[\w.~-]+$/);

/** A pack's name alone, or with `/` and a module's name (`<pack>/.` would be a second spelling of the root). */
export const isSpecifier = matches(/^(@[\w.~-]+\/)?[\w.~-]+(\/(?!\.\.?$|node_modules$)[\w.-]+)?$/);

/** 64 lower-case hexadecimal digits. */
export const isDigest = matches(/^[\da-f]{64}$/);

/**
 * A normalized path inside a pack: no control character, backslash, percent-escape of dot, slash or backslash, and no
 * segment that is empty, `.` or `..`.
 */
export const isFileId = matches(/^(?!.*[\0-\x1f\x7f\\]|.*%(2[ef]|5c)|(.*\/)?\.{0,2}(\/|$))/is);

/** The form of an ASCII identifier. Reserved words are told apart where a name becomes code: `reserved.ts`. */
export const isIdentifier = matches(/^[a-z_$][\w$]*$/i);

/** The file id that a file string of package.json stands for, where it is a legal one. */
export const normalizeFile = (declared: string): string =>
  declared
    .replaceAll("\\", "/")
    .split("/")
    .filter((segment) => segment !== ".")
    .join("/");

/** The pack of a specifier: its first segment, or its first two where it begins with `@`. */
export const packOf = (specifier: string): string => specifier.replace(/^((@[^/]*\/)?[^/]*).*/, "$1");

/** The order of every sorted list: by UTF-16 code units, strictly ascending, so that nothing occurs twice. */
export const isSorted = (texts: string[]): boolean => texts.every((text, at) => !at || (texts[at - 1] ?? "") < text);
