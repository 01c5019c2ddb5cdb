//! What the two entries of the guest half share.

export type { EngineVariant } from "./engine.js";
export { GuestError, type GuestErrorKind } from "./errors.js";
export type { HostFunction, HostModules, Json, PlatformModules } from "./hosts.js";
export { DEFAULT_LIMITS, type Limits } from "./limits.js";
export type { GuestOptions, GuestResult, RunInGuest } from "./run.js";
