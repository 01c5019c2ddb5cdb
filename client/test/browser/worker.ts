//! The web worker of the tests: runs once what it is sent.

import { outcomeOf, type RunRequest } from "./runner.js";

// The global scope of a worker; the library's types are those of pages.
const scope = globalThis as unknown as { onmessage: (event: MessageEvent<RunRequest>) => void; postMessage: (message: unknown) => void };
scope.onmessage = ({ data }) => void outcomeOf(data).then((outcome) => scope.postMessage(outcome));
