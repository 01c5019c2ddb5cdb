//! How a run ends when it does not end well.

/**
 * Which bound or rule ended a run. `thrown`: the code threw, a module did, or an import was denied. `deadline`: it ran longer
 * than it may. `memory`: it used more than it may. `unsettled`: it waits for a promise that nothing can settle. `result`:
 * what it returned is no JSON, or too much of it. `fault`: the guest itself failed.
 */
export type GuestErrorKind = "thrown" | "deadline" | "memory" | "unsettled" | "result" | "fault";

/** Why a run has no result. */
export class GuestError extends Error {
  override name = "GuestError";
  /** What the code wrote to `console` before. */
  output: readonly string[] = [];

  constructor(
    readonly kind: GuestErrorKind,
    /** `<name>: <message>` of what was thrown, or a sentence about the bound. */
    message: string,
    /** The guest's own stack, one frame a line; empty where there is none. */
    readonly guestStack = "",
    /** The pack whose file threw or asked for a denied import, where it was one of a pack. */
    readonly packName: string | undefined = undefined,
  ) {
    super(message);
  }
}
