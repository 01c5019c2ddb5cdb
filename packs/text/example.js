import { closest, distance, similarity, wordOverlap } from "@packferry/text/similarity";
import { slug, uniqueSlugs } from "@packferry/text/slug";

return {
  slugs: [slug("Crème brûlée & more"), slug("A rather long heading", { maxLength: 12 })],
  unique: uniqueSlugs(["Intro", "Intro", "End"]),
  distance: distance("kitten", "sitting"),
  alike: similarity("Müller", "Muller"),
  overlap: wordOverlap("red green blue", "green blue"),
  closest: closest("colour", ["color", "collar"]),
};
