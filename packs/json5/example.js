import JSON5 from "@packferry/json5";

let fault;
try {
  JSON5.parse("{\n  a: 1,\n  b: ?\n}");
} catch (error) {
  fault = { line: error.lineNumber, column: error.columnNumber };
}
return { value: JSON5.parse("{ hex: 0xff, /* why */ hosts: ['a', 'b',], half: .5, }"), fault, text: JSON5.stringify({ a: [1, "it's"], "b-c": true }, null, 2) };
