import { words } from "./internal/fold.js";

/**
 * A name for a URL or a file: folded words joined by the separator.
 * With `maxLength`, whole words are dropped from the end; one word that is longer is cut.
 */
export function slug(text, { separator = "-", maxLength = Infinity } = {}) {
  let result = "";
  for (const word of words(text)) {
    const longer = result === "" ? word : result + separator + word;
    if (longer.length > maxLength) {
      return result === "" ? word.slice(0, maxLength) : result;
    }
    result = longer;
  }
  return result;
}

/** Slugs in the order of the texts; a repeated one gets the first free number appended. */
export function uniqueSlugs(texts, options = {}) {
  const separator = options.separator ?? "-";
  const taken = new Set();
  return Array.from(texts, (text) => {
    const base = slug(text, options);
    let candidate = base;
    for (let number = 2; taken.has(candidate); number += 1) {
      candidate = base + separator + number;
    }
    taken.add(candidate);
    return candidate;
  });
}
