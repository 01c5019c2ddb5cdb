import Fuse from "@packferry/search";

const books = [
  { title: "Old Man's War", author: "John Scalzi" },
  { title: "The Lock Artist", author: "Steve Hamilton" },
  { title: "The Art of War", author: "Sun Tzu" },
];
const fuse = new Fuse(books, { keys: ["title", { name: "author", weight: 2 }], includeScore: true });
const ranked = (text) => fuse.search(text).map(({ item, score }) => [item.title, score.toFixed(4)]);
return { misspelled: ranked("lock artst"), author: ranked("hamiltn"), none: ranked("zzzz") };
