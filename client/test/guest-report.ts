//! What a runner of `fixtures/guest/` found, as a file: `docs/parity.md` is made of these by the repository's `scripts/parity.mjs`.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

import { repository, sha256 } from "./cases.js";

/** The outcomes of one runtime. An unfinished report leaves no file, nor an earlier one. */
export class GuestReport {
  readonly #file: URL;
  readonly #runs: Record<string, string | null> = {};

  constructor(runtime: string) {
    this.#file = repository(`target/parity/${runtime}.json`);
    rmSync(this.#file, { force: true });
  }

  /** Notes a run by its name, and how its outcome differs from the expected one, if it does. */
  add(run: string, difference: string | undefined): void {
    this.#runs[run] = difference ?? null;
  }

  /** Writes the file, with the digest of the cases that were run. */
  write(): void {
    const fixture = sha256(readFileSync(repository("fixtures/guest/cases.json")));
    mkdirSync(new URL(dirname(this.#file.href)), { recursive: true });
    writeFileSync(this.#file, JSON.stringify({ fixture, runs: this.#runs }));
  }
}
