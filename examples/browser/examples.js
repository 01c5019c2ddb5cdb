//! What the page offers to start from. Each runs with the starter packs.

export const EXAMPLES = [
  {
    title: "YAML to a link and its QR code",
    code: `import { load } from "@packferry/yaml";
import { slug } from "@packferry/text/slug";
import { renderSVG } from "@packferry/qr";

// In a QuickJS guest: no network, no page.
const talk = load(\`
title: Crème brûlée & other ferries
tracks: [edge, wasm]
\`);
const path = slug(talk.title);
const link = "https://example.org/" + path;
return { ...talk, link, code: renderSVG(link) };
`,
  },
  {
    title: "Dates: a deadline in working days",
    code: `import { addBusinessDays, formatISO, getISOWeek, parseISO } from "@packferry/dates";

const start = parseISO("2025-03-07");
const due = addBusinessDays(start, 10);
console.log("from", formatISO(start, { representation: "date" }));
return { due: formatISO(due, { representation: "date" }), week: getISOWeek(due) };
`,
  },
  {
    title: "WebAssembly: a landscape of noise",
    code: `import { fractalNoise } from "@packferry/noise";

// Every call runs in a worker of its own kind, on a fresh instance of the module.
const heights = [];
for (let x = 0; x < 40; x++) heights.push(await fractalNoise(x * 0.11, 0.5, 7, 4));
const points = heights.map((height, x) => x * 10 + "," + Math.round(70 - height * 55)).join(" ");
return \`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 390 140" width="390" height="140">
  <polyline points="\${points}" fill="none" stroke="#0b5d6b" stroke-width="3" stroke-linejoin="round"/>
</svg>\`;
`,
  },
  {
    title: "Colours: an even ramp",
    code: `import { formatHex, interpolate, samples, wcagContrast } from "@packferry/colors";

const ramp = samples(6).map(interpolate(["#003f5c", "#ffa600"], "lab")).map(formatHex);
const boxes = ramp.map((colour, at) => \`<rect x="\${at * 40}" width="40" height="48" fill="\${colour}"/>\`);
return {
  ramp,
  contrast: ramp.map((colour) => Number(wcagContrast(colour, "white").toFixed(2))),
  picture: \`<svg xmlns="http://www.w3.org/2000/svg" width="240" height="48">\${boxes.join("")}</svg>\`,
};
`,
  },
  {
    title: "A denial: an import that nobody declared",
    code: `import { readFile } from "node:fs/promises";

return readFile("/etc/passwd", "utf8");
`,
  },
];
