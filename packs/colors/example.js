import { converter, formatHex, interpolate, samples, wcagContrast } from "@packferry/colors";

const ramp = samples(5).map(interpolate(["#003f5c", "#ffa600"], "lab")).map(formatHex);
const { mode, h } = converter("hsl")("rebeccapurple");
return { ramp, mode, hue: Math.round(h), contrast: wcagContrast("#003f5c", "white").toFixed(2) };
