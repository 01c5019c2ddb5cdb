import { fold, words } from "./internal/fold.js";

/** How many single-character edits turn one text into the other, after folding. */
export function distance(left, right) {
  const a = Array.from(fold(left));
  const b = Array.from(fold(right));
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  a.forEach((character, row) => {
    const current = [row + 1];
    b.forEach((other, column) => {
      const replaced = previous[column] + (character === other ? 0 : 1);
      current.push(Math.min(replaced, previous[column + 1] + 1, current[column] + 1));
    });
    previous = current;
  });
  return previous[b.length];
}

/** 1 for texts that are equal after folding, 0 for texts with nothing in common. */
export function similarity(left, right) {
  const longest = Math.max(Array.from(fold(left)).length, Array.from(fold(right)).length);
  return longest === 0 ? 1 : 1 - distance(left, right) / longest;
}

/** The share of distinct words that two texts have in common. */
export function wordOverlap(left, right) {
  const a = new Set(words(left));
  const b = new Set(words(right));
  const shared = [...a].filter((word) => b.has(word)).length;
  const all = a.size + b.size - shared;
  return all === 0 ? 1 : shared / all;
}

/** The candidate most like the text, as `{value, score}`; null when there is none. */
export function closest(text, candidates) {
  let best = null;
  for (const value of candidates) {
    const score = similarity(text, value);
    if (best === null || score > best.score) {
      best = { value, score };
    }
  }
  return best;
}
