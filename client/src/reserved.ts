//! The words that no export may be named by. Kept apart from `names.ts`: only code that generates facades, or takes a call
//! contract without a payload, needs them.

const RESERVED = new Set(
  (
    "await break case catch class const continue debugger default delete do else enum export extends false finally for " +
    "function if implements import in instanceof interface let new null package private protected public return static " +
    "super switch this throw true try typeof var void while with yield"
  ).split(" "),
);

/** Whether an identifier is a reserved word. `arguments`, `eval`, `async`, `of` and `undefined` are not. */
export const isReserved = (identifier: string): boolean => RESERVED.has(identifier);
