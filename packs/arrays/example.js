import { bin, extent, quantile, rollups, sum, ticks } from "@packferry/arrays";

const rows = [["north", 4], ["south", 9], ["north", 6], ["east", 1]].map(([region, amount]) => ({ region, amount }));
const amounts = rows.map((row) => row.amount);
return {
  totals: rollups(rows, (group) => sum(group, (row) => row.amount), (row) => row.region),
  extent: extent(amounts),
  median: quantile(amounts, 0.5),
  bins: bin().thresholds(3)(amounts).map(({ x0, x1, length }) => [x0, x1, length]),
  ticks: ticks(0, 9, 4),
};
