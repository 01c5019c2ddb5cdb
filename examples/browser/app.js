//! The page: pick modules, write code, run it, see what came of it. Fetching is `server.js`'s affair, the run `run.js`'s, the result
//! `result.js`'s.

import { importsOf, withImport, withoutImport } from "./code.js";
import { EXAMPLES } from "./examples.js";
import { element, find } from "./dom.js";
import { show, showFailure, showState } from "./result.js";
import { outcomeOf } from "./run.js";
import { failureOf, prefetch, readIndex } from "./server.js";

/** The edge beside this page, where the address does not name another with `?server=`. */
const DEFAULT_SERVER = `${location.protocol}//${location.hostname}:8787`;

const page = {
  server: "",
  /** The server's modules by specifier. */
  modules: new Map(),
  /** What the last run ran, by specifier: later runs compare with it, or stay with it. */
  saved: new Map(),
  /** Ends the run that runs. */
  stop: undefined,
};

// The server.

async function connect() {
  const connection = find("connection");
  page.server = find("url").value.replace(/\/+$/, "");
  connection.className = "";
  connection.textContent = "Connecting…";
  try {
    const modules = await readIndex(page.server);
    page.modules = new Map(modules.map((module) => [module.specifier, module]));
    connection.textContent = `${modules.length} modules`;
  } catch (error) {
    page.modules.clear();
    connection.className = "bad";
    connection.textContent = `No index from ${page.server}: ${error.message}. Is it running? (make dev)`;
  }
  page.saved.clear();
  listModules();
  listExamples();
}

// Modules.

const boxes = () => [...document.querySelectorAll("#modules input")];
const picked = () => boxes().filter((box) => box.checked).map((box) => box.value);

function listModules() {
  find("modules").replaceChildren(...Array.from(page.modules.values(), moduleItem));
  filterModules();
  showPicked();
}

function moduleItem(module) {
  const box = element("input", { type: "checkbox", value: module.specifier });
  box.addEventListener("change", () => {
    const code = find("code");
    code.value = box.checked ? withImport(code.value, module) : withoutImport(code.value, module);
    showPicked();
  });
  const name = element("span", { className: "name" }, module.specifier);
  if (module.kind !== "js") name.append(element("span", { className: "kind" }, module.kind));
  const about = element("span", { className: "about" }, (module.description ?? "").split(/(?<=\.)\s/)[0]);
  return element("li", {}, element("label", {}, box, name, element("span", { className: "size" }, kilobytes(module.size)), about));
}

function filterModules() {
  const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const item of find("modules").children) {
    const text = item.textContent.toLowerCase();
    item.hidden = !words.every((word) => text.includes(word));
    shown += item.hidden ? 0 : 1;
  }
  find("none").hidden = shown > 0 || page.modules.size === 0;
}

/** Shows what is picked, each with a button that lets go of it. */
function showPicked() {
  const specifiers = picked();
  find("count").textContent = specifiers.length > 0 ? `${specifiers.length} picked` : "";
  find("picks").replaceChildren(...specifiers.map(pickItem));
}

function pickItem(specifier) {
  const button = element("button", { type: "button" }, specifier, element("span", { ariaHidden: "true" }, "×"));
  button.setAttribute("aria-label", `Remove ${specifier}`);
  button.addEventListener("click", () => {
    boxes().find((box) => box.value === specifier).click();
    (find("picks").querySelector("button") ?? find("filter")).focus();
  });
  return element("li", {}, button);
}

/** Picks exactly the modules that the code imports. */
function pickImported() {
  const imported = new Set(importsOf(find("code").value));
  for (const box of boxes()) box.checked = imported.has(box.value);
  showPicked();
}

// Code.

function listExamples() {
  const usable = EXAMPLES.filter(({ code }) => importsOf(code).every((specifier) => page.modules.has(specifier)));
  const options = usable.map(({ title, code }) => element("option", { value: code }, title));
  find("example").replaceChildren(...options, element("option", { value: "" }, "an empty page"));
  if (find("code").value.trim() === "") startFromExample();
  else pickImported();
}

function startFromExample() {
  find("code").value = find("example").value;
  pickImported();
}

// Runs.

async function run() {
  if (page.stop) return;
  const pin = find("pin").checked;
  const code = find("code").value;
  const declarations = picked().map((specifier) => page.saved.get(specifier) ?? { specifier });
  const stopped = new AbortController();
  page.stop = () => stopped.abort(new Error("Stopped."));
  setRunning(true);
  try {
    showState("Fetching and verifying…");
    const { records, cost } = await prefetch(page.server, declarations, { pin, signal: stopped.signal });
    showState("Running…");
    const start = document.querySelector("input[name=where]:checked").value === "worker" ? runInWorker : outcomeOf;
    const outcome = await start({ code, declarations, records }, stopped.signal);
    show(outcome, records, cost);
    if (!pin) remember(records);
  } catch (error) {
    showFailure(failureOf(error));
  } finally {
    page.stop = undefined;
    setRunning(false);
  }
}

/** Runs in a web worker of its own; the records cross to it as they are. */
function runInWorker(request, signal) {
  const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
  const outcome = new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => ("outcome" in data ? resolve(data.outcome) : reject(new Error(data.error)));
    worker.onerror = () => reject(new Error("The web worker could not be started."));
    signal.addEventListener("abort", () => reject(signal.reason));
    worker.postMessage(request);
  });
  return outcome.finally(() => worker.terminate());
}

function remember(records) {
  for (const { specifier, packVersion, contentDigest } of records) {
    page.saved.set(specifier, { specifier, contentDigest, ...(packVersion && { resolvedPackVersion: packVersion }) });
  }
  find("pin").disabled = false;
}

function setRunning(running) {
  find("run").disabled = running;
  find("stop").disabled = !running;
}

const kilobytes = (bytes) => `${Math.max(1, Math.round(bytes / 1024))} KB`;

find("server").addEventListener("submit", (event) => {
  event.preventDefault();
  void connect();
});
find("filter").addEventListener("input", filterModules);
find("example").addEventListener("change", startFromExample);
find("code").addEventListener("change", pickImported);
find("code").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  pickImported();
  void run();
});
find("run").addEventListener("click", run);
find("stop").addEventListener("click", () => page.stop?.());

find("url").value = new URLSearchParams(location.search).get("server") ?? DEFAULT_SERVER;
void connect();
