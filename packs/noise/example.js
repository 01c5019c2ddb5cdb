import { fractalNoise, noise } from "@packferry/noise";

return {
  points: await Promise.all([0, 1, 2, 3].map((step) => noise(step * 0.37, 3.25, 7))),
  seeds: [await noise(12.5, 3.25, 7), await noise(12.5, 3.25, 8)],
  ridge: await fractalNoise(0.4, 0.9, 7, 5),
};
