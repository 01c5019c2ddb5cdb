//! Writes docs/parity.md: every guest case in every runtime, from the reports that the runners of the cases left in
//! target/parity. With `--check` it writes nothing and fails where the page is not what the reports say.

import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

import { ROOT } from "./state-dir.mjs";

/** The runtimes in the order of the columns: their report, heading, and the command that makes the report. */
const RUNTIMES = [
  { report: "native", heading: "native Rust", command: "cargo test -p packferry-guest --test cases" },
  { report: "node", heading: "Node", command: "cd client && npm test" },
  { report: "chromium-page", heading: "Chromium, page", command: "node --test tests/client-browser.test.mjs" },
  { report: "chromium-worker", heading: "Chromium, web worker", command: "node --test tests/client-browser.test.mjs" },
];

/** Characters of an expectation that are shown. */
const SHOWN = 60;

const INTRODUCTION = `# One contract, three runtimes

Every case of [fixtures/guest/](../fixtures/guest/README.md), and what became of it in each runtime. Written by \`make parity\` from what the runners reported: the
native guest (QuickJS in Rust, wasmi for WASM), Node and Chromium (QuickJS in WebAssembly, the platform's own engine for WASM). In Chromium the modules are
fetched from the worker in workerd, verified and cached. \`make test\` fails where this page is not what its own runs gave.

A case runs once with what it declares and, where a second mark stands, once more with nothing declared. ✓: value, or each part of the error, as expected.
`;

/** The page. Throws where a report is not one of these cases. */
export function render({ cases }, fixture, reports) {
  const rows = cases.map((expected) => {
    const runs = expected.alsoUndeclared ? [expected.name, `${expected.name}, nothing declared`] : [expected.name];
    const marks = RUNTIMES.map((runtime) => runs.map((run) => mark(runtime, reports[runtime.report], fixture, run)).join(" "));
    return `| ${[code(expected.name), expectation(expected), ...marks].join(" | ")} |`;
  });
  const runs = cases.length + cases.filter(({ alsoUndeclared }) => alsoUndeclared).length;
  const differing = RUNTIMES.flatMap(({ report }) => Object.values(reports[report].runs)).filter((difference) => difference !== null).length;
  const head = ["case", "expected", ...RUNTIMES.map(({ heading }) => heading)];
  return [
    INTRODUCTION,
    `${cases.length} cases, ${runs} runs in each runtime; ${differing} of ${runs * RUNTIMES.length} differ from what is expected.\n`,
    `| ${head.join(" | ")} |`,
    `|${head.map(() => "---|").join("")}`,
    ...rows,
    "",
  ].join("\n");
}

function mark({ report, command }, { fixture: of, runs }, fixture, run) {
  if (of !== fixture || !(run in runs)) {
    throw new Error(`target/parity/${report}.json is not of these cases. Run: ${command}`);
  }
  return runs[run] === null ? "✓" : `✗ ${code(shortened(runs[run]))}`;
}

function expectation({ value, valueContains, error }) {
  if (error !== undefined) {
    return error.length > 0 ? `fails: ${error.map((part) => code(shortened(part))).join(", ")}` : "fails";
  }
  return valueContains === undefined
    ? code(shortened(JSON.stringify(value)))
    : `text with ${valueContains.map((part) => code(shortened(part))).join(", ")}`;
}

const shortened = (text) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

/** Code in a cell of a table, whatever it holds. */
function code(text) {
  const printable = text.replaceAll(/\s/g, " ").replaceAll("|", "\\|");
  return text.includes("`") ? `\`\` ${printable} \`\`` : `\`${printable}\``;
}

const reportOf = ({ report }) => join(ROOT, "target", "parity", `${report}.json`);

/** Reads the reports; says which are missing and how they are made. */
function readReports() {
  const missing = RUNTIMES.filter((runtime) => !existsSync(reportOf(runtime)));
  if (missing.length > 0) {
    const commands = new Set(missing.map(({ command }) => command));
    throw new Error(`No report of ${missing.map(({ heading }) => heading).join(", ")}. Run: ${[...commands].join("; ")}`);
  }
  return Object.fromEntries(RUNTIMES.map((runtime) => [runtime.report, JSON.parse(readFileSync(reportOf(runtime), "utf8"))]));
}

function main() {
  const check = process.argv.includes("--check");
  if (check && !existsSync(reportOf({ report: "chromium-worker" }))) {
    console.log("SKIPPED, NOT PASSED: docs/parity.md was not checked, as no Chromium has run the guest cases.");
    return;
  }
  const fixture = readFileSync(join(ROOT, "fixtures", "guest", "cases.json"));
  const page = join(ROOT, "docs", "parity.md");
  const text = render(JSON.parse(fixture), createHash("sha256").update(fixture).digest("hex"), readReports());
  if (!check) {
    writeFileSync(page, text);
  } else if (text !== readFileSync(page, "utf8")) {
    throw new Error("docs/parity.md is not what the runners reported. Run: make parity");
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main();
  } catch (error) {
    console.error(`error: ${error.message}`);
    process.exitCode = 1;
  }
}
