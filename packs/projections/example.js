import { geoCentroid, geoDistance, geoEqualEarth, geoMercator, geoPath } from "@packferry/projections";

const feature = { type: "Polygon", coordinates: [[[0, 0], [0, 10], [20, 10], [20, 0], [0, 0]]] };
const projection = geoMercator().fitSize([400, 300], feature);
const round = (values) => values.map((value) => Math.round(value * 1e6) / 1e6);
return {
  path: geoPath(projection).digits(2)(feature),
  centroid: round(geoCentroid(feature)),
  radians: geoDistance([0, 0], [90, 0]).toFixed(8),
  equalEarth: round(geoEqualEarth()([10, 50])),
};
