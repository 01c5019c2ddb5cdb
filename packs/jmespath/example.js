import { search } from "@packferry/jmespath";

const orders = { orders: [{ id: 1, lines: [{ sku: "a", n: 2 }, { sku: "b", n: 5 }] }, { id: 2, lines: [{ sku: "a", n: 1 }] }] };
return {
  skus: search(orders, "orders[].lines[].sku | sort(@)"),
  large: search(orders, "orders[?sum(lines[].n) > `3`].{id: id, count: length(lines)}"),
  missing: search(orders, "customers[0].name"),
};
