import { lexer, marked } from "@packferry/markdown";

const text = "# Title\n\nSome *emphasis* and `code`.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n- [x] done\n";
return {
  html: marked.parse(text),
  line: marked.parseInline("only **inline** markup"),
  kinds: lexer(text).map((token) => token.type),
};
