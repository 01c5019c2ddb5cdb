const SPELLED_OUT = new Map([
  ["ß", "ss"],
  ["æ", "ae"],
  ["œ", "oe"],
  ["ø", "o"],
  ["đ", "d"],
  ["ł", "l"],
  ["þ", "th"],
]);

/** Lower case, without accents, so that spellings of one word compare equal. */
export function fold(text) {
  const bare = String(text).toLowerCase().normalize("NFKD").replace(/\p{M}+/gu, "");
  return Array.from(bare, (character) => SPELLED_OUT.get(character) ?? character).join("");
}

/** The words of a text, folded. An apostrophe joins: "don't" is one word. */
export function words(text) {
  return fold(text).replace(/['’]/g, "").match(/[\p{L}\p{N}]+/gu) ?? [];
}
