import { gunzipSync, gzipSync, strFromU8, strToU8, unzipSync, zipSync, zlibSync } from "@packferry/compression";

const text = "the same line again and again\n".repeat(200);
const packed = gzipSync(strToU8(text), { mtime: 0, level: 9 });
const archive = zipSync({ "a.txt": strToU8("first"), "b/c.txt": strToU8(text) }, { mtime: "2025-03-07T00:00:00" });
const files = unzipSync(archive);
return {
  packed: Array.from(packed),
  same: strFromU8(gunzipSync(packed)) === text,
  files: Object.keys(files).map((name) => [name, files[name].length]),
  zlib: Array.from(zlibSync(strToU8("abc"))),
};
