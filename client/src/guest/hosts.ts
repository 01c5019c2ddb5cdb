//! What the application answers itself: its host modules, and the platform's own modules. Types, and the one check of a call.

/** A value that crosses the guest's border. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Answers a call; what it throws is thrown in the guest, by its message. */
export type HostFunction = (exportName: string, args: Json[]) => unknown;

/** Host modules by id: the pack that each is bound to, its functions in facade order, and what answers them. */
export type HostModules = Readonly<Record<string, { readonly pack: string; readonly exports: readonly string[]; readonly call: HostFunction }>>;

/** Modules of the platform by specifier (`@nodetool-ai/sandbox-nodetool`, also with a path). Code may import them undeclared. */
export type PlatformModules = Readonly<Record<string, { readonly exports: readonly string[]; readonly call: HostFunction }>>;

/** Answers a call of a module's function, by name, with a list. */
export async function callHost(
  module: { readonly exports: readonly string[]; readonly call: HostFunction } | undefined,
  specifier: string,
  exportName: string,
  args: unknown,
): Promise<unknown> {
  if (!module) throw new Error(`${specifier} is not a host module of this run`);
  if (!module.exports.includes(exportName)) throw new Error(`${specifier} has no function ${exportName}`);
  if (!Array.isArray(args)) throw new Error(`${specifier}: the arguments of ${exportName} must be a list`);
  return module.call(exportName, args as Json[]);
}
