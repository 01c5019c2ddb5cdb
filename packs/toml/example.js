import { parse, stringify } from "@packferry/toml";

const config = parse('title = "x"\nday = 2025-03-07\n[server]\nports = [80, 443]\n[[users]]\nname = "Ada"\n[[users]]\nname = "Bo"\n');
let fault;
try {
  parse("a = 1\nb = = 2\n");
} catch (error) {
  fault = { line: error.line, column: error.column };
}
return { config, fault, text: stringify({ a: 1.5, list: [1, 2], table: { on: true } }) };
