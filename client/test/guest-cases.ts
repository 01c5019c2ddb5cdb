//! What runners of `fixtures/guest/` share, in Node and in browsers: the shape of a case, the host module that the cases ask
//! for, and when an outcome is the expected one. Knows no platform.

import type { HostModules, Limits } from "../src/guest/index.js";

export interface Case {
  name: string;
  declared: string[];
  code: string;
  value?: unknown;
  valueContains?: string[];
  error?: string[];
  alsoUndeclared?: boolean;
  limits?: Partial<Pick<Limits, "deadlineMs" | "heapBytes" | "stackBytes">>;
}

/** The host module that the cases' README asks every runner to register. */
export const echoHost: HostModules = {
  echo: {
    pack: "@acme/echo",
    exports: ["echo", "fail"],
    call(exportName, args) {
      if (exportName === "fail") throw new Error("the host refuses");
      if (exportName === "echo") return { host: "echo", arguments: args };
      throw new Error(`no such host function: ${exportName}`);
    },
  },
};

/** How a run of a case differs from what the case expects; undefined where it does not. */
export function difference(expected: Case, outcome: { value: unknown } | { error: string }): string | undefined {
  const shown = JSON.stringify(outcome);
  const contains = (text: unknown, parts: string[]): boolean => typeof text === "string" && parts.every((part) => text.includes(part));
  if ("error" in outcome) return expected.error && contains(outcome.error, expected.error) ? undefined : shown;
  if (expected.valueContains) return contains(outcome.value, expected.valueContains) ? undefined : shown;
  return "value" in expected && canonical(expected.value) === canonical(outcome.value) ? undefined : shown;
}

/** JSON with sorted keys: how values are compared. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}
