//! The web worker that runs code: gets a request by `postMessage`, records and all, and answers with the outcome.

import { outcomeOf } from "./run.js";

globalThis.onmessage = async ({ data }) => {
  try {
    postMessage({ outcome: await outcomeOf(data) });
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
