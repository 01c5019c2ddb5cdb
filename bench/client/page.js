//! The page of the measurement in Chromium: a client that lives as long as the page.

import { makeClient, timed } from "./clients.js";

let prefetch;

globalThis.bench = {
  open: (kind, specifier) => void (prefetch = makeClient(kind, { origin: location.origin, specifier })),
  prefetch: () => timed(prefetch),
};
