import { dump, load, loadAll } from "@packferry/yaml";

return {
  config: load("retries: 3\nhosts: [a, b]\nnested:\n  text: |\n    two\n    lines\n"),
  documents: loadAll("a: 1\n---\nb: 2\n"),
  text: dump({ name: "north", values: [1, 2] }, { sortKeys: true }),
};
