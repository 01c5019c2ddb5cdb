import { area } from "@packferry/geo/area";
import { distance } from "@packferry/geo/distance";

const square = { type: "Polygon", coordinates: [[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]] };
return {
  kilometers: distance([13.4, 52.5], [2.35, 48.86]).toFixed(6),
  miles: distance([13.4, 52.5], [2.35, 48.86], { units: "miles" }).toFixed(6),
  squareMeters: area(square).toFixed(2),
};
