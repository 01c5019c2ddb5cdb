import { GIFEncoder, applyPalette, quantize } from "@packferry/gif";

const size = 8;
const gif = GIFEncoder();
for (let frame = 0; frame < 3; frame += 1) {
  const rgba = new Uint8Array(size * size * 4);
  for (let at = 0; at < rgba.length; at += 4) {
    rgba.set([(at + frame * 40) % 256, at % 128, 90, 255], at);
  }
  const palette = quantize(rgba, 16);
  gif.writeFrame(applyPalette(rgba, palette), size, size, { palette, delay: 50 });
}
gif.finish();
return Array.from(gif.bytes());
