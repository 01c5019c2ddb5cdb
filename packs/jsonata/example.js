import jsonata from "@packferry/jsonata";

const data = { lines: [{ kind: "tea", price: 3, count: 2 }, { kind: "cup", price: 4, count: 1 }, { kind: "tea", price: 5, count: 1 }] };
const total = await jsonata("$sum(lines.(price * count))").evaluate(data);
const byKind = await jsonata("lines{kind: $sum(count)}").evaluate(data);
const shout = await jsonata("$join(lines.$uppercase(kind), '-')").evaluate(data);
return { total, byKind, shout };
