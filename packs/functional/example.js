import { ascend, assocPath, descend, groupBy, map, pipe, prop, sortWith, sum, zipObj } from "@packferry/functional";

const rows = [{ team: "a", points: 2 }, { team: "b", points: 1 }, { team: "a", points: 3 }];
const totals = pipe(groupBy(prop("team")), map((group) => sum(group.map(prop("points")))));
return {
  totals: totals(rows),
  sorted: sortWith([ascend(prop("team")), descend(prop("points"))], rows),
  nested: assocPath(["x", "y", 1], "set", { x: { y: ["kept"] } }),
  record: zipObj(["id", "name"], [7, "Ada"]),
};
