//! The fetching half: declarations to proven records to what a run needs. The guest half is `@packferry/client/guest`.

export { browserCache, type ByteCache, memoryCache } from "./cache.js";
export {
  type Catalog,
  createCatalog,
  type FileRecord,
  type ModuleRecord,
  type Resolution,
  type ResolvedFile,
  type ResolvedModule,
  type Status,
  type Summary,
} from "./catalog.js";
export { type CatalogClient, type ClientOptions, createCatalogClient, type PrefetchOptions, type Progress } from "./client.js";
export type { HostRegistry, WasmContract } from "./contract.js";
export { collectDeclarations, type Declaration } from "./declarations.js";
export { type ErrorCode, PackferryError } from "./errors.js";
export type { Mirror } from "./transport.js";
