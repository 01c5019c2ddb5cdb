//! What runners of `fixtures/guest/` share, in Node and in browsers: the shape of a case, its runs, the modules of host and platform
//! that the cases ask for, and when an outcome is the expected one. Knows no runtime.

import type { HostModules, Limits, PlatformModules } from "../src/guest/index.js";

export interface Case {
  name: string;
  declared: string[];
  code: string;
  value?: unknown;
  valueContains?: string[];
  error?: string[];
  alsoUndeclared?: boolean;
  platform?: boolean;
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

/** The platform module that the README asks the runner of a case with `platform` to register. */
const MEDIA = "@nodetool-ai/sandbox-nodetool/media";
export const mediaPlatform: PlatformModules = {
  [MEDIA]: {
    exports: ["read", "fail"],
    call(exportName, args) {
      if (exportName === "read") return { platform: MEDIA, arguments: args };
      throw new Error("the platform refuses");
    },
  },
};

/** The runs of a case, by name: with what it declares, and once more with nothing declared where it says so. */
export function runsOf({ name, declared, alsoUndeclared }: Case): { name: string; declared: string[] }[] {
  const first = { name, declared };
  return alsoUndeclared ? [first, { name: `${name}, nothing declared`, declared: [] }] : [first];
}

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
