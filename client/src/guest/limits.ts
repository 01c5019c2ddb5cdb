//! The bounds of a run.

/** What a run may use. */
export interface Limits {
  /** Bytes that the engine may allocate; no less than about 11 MB. */
  heapBytes: number;
  /** Bytes of the engine's stack. What the page or the process has left of its own may be less. */
  stackBytes: number;
  /** Milliseconds from the first module's evaluation to the result, promise jobs and calls included. */
  deadlineMs: number;
  /** Lines that `console` keeps; further ones are only counted. */
  outputLines: number;
  /** Characters that `console` keeps of a line. */
  outputChars: number;
  /** Bytes of the result as JSON. */
  resultBytes: number;
  /** Bytes of the user's code. */
  scriptBytes: number;
}

export const DEFAULT_LIMITS: Limits = {
  heapBytes: 64 << 20,
  stackBytes: 1 << 20,
  deadlineMs: 5000,
  outputLines: 20,
  outputChars: 500,
  resultBytes: 4 << 20,
  scriptBytes: 262_144,
};

/** The limits of a run: what is given, and the defaults. Throws a `TypeError` for what bounds nothing. */
export function limitsOf(given: Partial<Limits>): Limits {
  const limits = { ...DEFAULT_LIMITS };
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(DEFAULT_LIMITS, name)) throw new TypeError(`"${name}" is no option of a run`);
    const least = name.startsWith("output") ? 0 : 1;
    if (!Number.isFinite(value) || value < least) throw new TypeError(`${name} must be a number from ${least}, not ${String(value)}`);
    limits[name as keyof Limits] = value;
  }
  return limits;
}
