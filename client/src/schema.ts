//! Canonical JSON, parsed strictly: the encoding that every digest is computed over. A schema is data that has the shape
//! of the documents it admits; `read` gives a value the schema's type or throws. No document's schema is here.

import { insist } from "./errors.js";

/** A predicate, a constant, a list of one schema, or an object: exactly its keys, in its order; `key?` may be absent. */
export type Schema = ((value: unknown) => value is unknown) | string | number | readonly [Schema] | { readonly [key: string]: Schema };

/** The type of the values that a schema admits. */
export type Infer<S> = S extends (value: unknown) => value is infer T
  ? T
  : S extends string | number
    ? S
    : S extends readonly [infer E]
      ? Infer<E>[]
      : { [K in keyof S as K extends `${string}?` ? never : K]: Infer<S[K]> } & {
          [K in keyof S as K extends `${infer Name}?` ? Name : never]?: Infer<S[K]>;
        };

/** Takes `value` if it is of `schema`. */
export function read<const S extends Schema>(schema: S, value: unknown): Infer<S> {
  insist(admits(schema, value), "its shape is not the expected one");
  return value as Infer<S>;
}

/** Whether `value` is of `schema`. */
export function admits(schema: Schema, value: unknown): boolean {
  if (typeof schema === "function") return schema(value);
  if (typeof schema !== "object") return schema === value;
  if (isList(schema)) return Array.isArray(value) && value.every((element) => admits(schema[0], element));
  if (!isObject(value)) return false;
  const keys = Object.keys(value);
  let at = 0;
  const known = Object.entries(schema).every(([name, inner]) => {
    const key = name.replace("?", "");
    return keys[at] === key ? (at++, admits(inner, value[key])) : key !== name;
  });
  return known && at === keys.length;
}

const isList = (schema: object): schema is readonly [Schema] => Array.isArray(schema);

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A whole number between two bounds, inclusive. */
export const within =
  (least: number, most: number) =>
  (value: unknown): value is number =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;

/** A length, a sequence: whatever counts. */
export const isCount = within(0, Number.MAX_SAFE_INTEGER);

/**
 * Parses `json`, which must be what `JSON.stringify` prints: so it has no white space, no duplicate keys and one spelling
 * of every number and string. Key order is left to `read`.
 */
export function parseCanonical(json: string): unknown {
  const value: unknown = JSON.parse(json);
  // `\ud…` is how lone surrogates are printed, and nothing else is: no digest is over one.
  insist(JSON.stringify(value) === json && !/(^|[^\\])(\\\\)*\\ud/.test(json), "it is not in canonical encoding");
  return value;
}
