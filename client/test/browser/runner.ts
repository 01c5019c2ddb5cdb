//! One run from fetched records, on the page or in its worker.

import { createCatalog, type ModuleRecord } from "@packferry/client";
import { GuestError, type Json, type Limits, runInGuest } from "@packferry/client/guest";

import { echoHost, mediaPlatform } from "../guest-cases.js";

export interface RunRequest {
  code: string;
  declarations: unknown;
  records: ModuleRecord[];
  limits?: Partial<Limits>;
  /** Whether the run registers the platform's module. */
  platform?: boolean;
}

export type Outcome = { value: Json; statuses: string[] } | { error: string };

/** Resolves and runs; an error of the guest is an outcome. */
export async function outcomeOf({ code, declarations, records, limits, platform = false }: RunRequest): Promise<Outcome> {
  const resolution = createCatalog(records).resolveForExecution(declarations);
  try {
    const { value } = await runInGuest(code, resolution, { ...limits, hosts: echoHost, platform: platform ? mediaPlatform : {} });
    return { value, statuses: resolution.statuses.map((status) => status.code) };
  } catch (error) {
    if (error instanceof GuestError) return { error: error.message };
    throw error;
  }
}
