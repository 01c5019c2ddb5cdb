//! What only Node has: `@packferry/client/node`.

export { directoryCache } from "./directory-cache.js";
