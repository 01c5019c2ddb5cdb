import { encode, renderSVG, renderUnicodeCompact } from "@packferry/qr";

const { size, version, data } = encode("hello", { border: 2 });
return {
  size,
  version,
  dark: data.flat().filter(Boolean).length,
  text: renderUnicodeCompact("https://example.org"),
  svg: renderSVG("https://example.org", { ecc: "M", pixelSize: 8 }),
};
