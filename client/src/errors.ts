//! What goes wrong. A check that does not hold throws a plain error that knows no module; whoever asked for the module wraps
//! it into a `PackferryError`, which callers see: it names the module and its pack.

import { packOf } from "./names.js";

/** Throws an error that says `what` unless `holds`. */
export function insist(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/**
 * Why something could not be had. `mismatch`: what arrived is not what was asked for or promised. `network`: nothing
 * arrived. `http`: a status that says neither of the next two. `not-available`: 404. `forbidden`: 403. `unproven`: the
 * server has no closures, and proof was asked for. `usage`: the caller's mistake. `insecure-context`: the page has no
 * `crypto.subtle`.
 */
export type ErrorCode =
  | "mismatch"
  | "network"
  | "http"
  | "not-available"
  | "forbidden"
  | "unproven"
  | "usage"
  | "insecure-context";

/** What every function of this package throws or rejects with (an aborted one rejects with the signal's reason). */
export class PackferryError extends Error {
  /** What went wrong. */
  declare readonly code: ErrorCode;
  /** The module that was asked for. */
  declare readonly specifier: string | undefined;
  /** Its pack. */
  declare readonly packName: string | undefined;

  constructor(code: ErrorCode, message: string, specifier?: string, cause?: unknown) {
    super(message, { cause });
    Object.assign(this, { name: "PackferryError", code, specifier, packName: specifier && packOf(specifier) });
  }
}
