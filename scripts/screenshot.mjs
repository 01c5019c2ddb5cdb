//! Takes docs/example.png from the example page that `make example` serves.
//!
//!     node scripts/screenshot.mjs [http://localhost:8788/]

import { join } from "node:path";
import process from "node:process";

import { findBrowser, launch } from "../tests/client/browser.mjs";
import { ROOT } from "./state-dir.mjs";

const browser = await launch(findBrowser());
// Smaller than life: as README shows it, and as a small file.
const page = await browser.newPage({ viewport: { width: 1360, height: 930 }, deviceScaleFactor: 0.7 });
await page.goto(process.argv[2] ?? "http://localhost:8788/");
await page.waitForSelector("#modules li");
for (const _ of ["cold", "warm"]) {
  await page.locator("#run").click();
  await page.waitForFunction(() => /^Done/.test(document.getElementById("state").textContent));
}
await page.screenshot({ path: join(ROOT, "docs", "example.png") });
await browser.close();
