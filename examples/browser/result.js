//! Shows what a run came to: the value, the console, what was proven, what it took; or why there is none.

import { element, find } from "./dom.js";

/** Characters of a text in the value that are shown; pictures are shown as pictures. */
const SHOWN = 400;
const PICTURE = /^\s*<svg[\s>]/;

/** The value as JSON, for the button that copies it. */
let json = "";

/** Says how far a run is. */
export function showState(text, kind = "") {
  find("state").textContent = text;
  find("state").className = kind;
}

/** Shows a run that ended, well or not. */
export function show({ value, failure, output, outputDropped, statuses, milliseconds }, records, cost) {
  find("outcome").hidden = false;
  showState(failure ? "The code failed." : `Done in ${time(cost.milliseconds + milliseconds)}.`, failure ? "bad" : "good");
  fill("failure", failure && failureParts(failure));
  fill("notes", statuses.length > 0 && statuses.map(({ message }) => element("li", {}, message)));
  find("returned").hidden = failure !== undefined;
  if (!failure) showValue(value);
  find("wrote").hidden = output.length === 0;
  find("output").textContent = [...output, ...(outputDropped > 0 ? [`… and ${outputDropped} more lines`] : [])].join("\n");
  find("proof").hidden = records.length === 0;
  find("digests").replaceChildren(...records.map(proofRow));
  showTiming(cost, milliseconds);
}

/** Shows why there was no run. */
export function showFailure(failure) {
  showState(failure.message === "Stopped." ? "Stopped." : "Nothing was run.", "bad");
  find("outcome").hidden = false;
  for (const id of ["notes", "returned", "wrote", "proof", "timing"]) find(id).hidden = true;
  fill("failure", failureParts(failure));
}

function fill(id, children) {
  find(id).hidden = !children;
  find(id).replaceChildren(...(children || []));
}

function failureParts({ message, packName, stack }) {
  const where = packName ? [element("strong", {}, packName)] : [];
  const frames = stack?.trim() ? [element("pre", {}, stack.trimEnd())] : [];
  return [...where, element("div", {}, message), ...frames];
}

function showValue(value) {
  json = JSON.stringify(value, null, 2);
  find("value").textContent = JSON.stringify(value, (_, part) => (typeof part === "string" ? shortened(part) : part), 2);
  const pictures = picturesIn(value).slice(0, 6);
  // An image runs no script and loads nothing, whatever the text holds.
  find("pictures").replaceChildren(
    ...pictures.map((svg, at) => element("img", { src: `data:image/svg+xml,${encodeURIComponent(svg)}`, alt: `Picture ${at + 1} of the result` })),
  );
}

function shortened(text) {
  if (PICTURE.test(text)) return `<svg …> (${text.length} characters, shown below)`;
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}… (${text.length} characters)` : text;
}

function picturesIn(value) {
  if (typeof value === "string") return PICTURE.test(value) ? [value] : [];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(picturesIn) : [];
}

function proofRow({ specifier, packVersion, contentDigest, files, proven, pinned }) {
  const version = `${packVersion ?? "no version"}${pinned ? ", kept" : ""}`;
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, specifier, element("small", {}, version)),
    element("td", { className: "digest" }, contentDigest),
    element("td", { className: "files" }, String(files.length)),
    element("td", { className: proven ? "proven" : "unproven" }, proven ? "✓ proven" : "bodies only"),
  );
}

function showTiming({ requests, unchanged, bytes, milliseconds: fetching }, running) {
  find("timing").hidden = false;
  const [first, second] = find("timeline").children;
  first.style.flexGrow = String(fetching);
  second.style.flexGrow = String(running);
  find("fetching").textContent = time(fetching);
  find("running").textContent = time(running);
  find("requests").textContent = requests === 0 ? "none, all kept" : unchanged > 0 ? `${requests}, ${unchanged} unchanged` : String(requests);
  find("received").textContent = bytes === 0 ? "nothing new" : `${(bytes / 1024).toFixed(1)} KB`;
}

const time = (milliseconds) => (milliseconds < 1000 ? `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms` : `${(milliseconds / 1000).toFixed(2)} s`);

find("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText(json);
  find("copy").textContent = "Copied";
  setTimeout(() => (find("copy").textContent = "Copy JSON"), 1500);
});
