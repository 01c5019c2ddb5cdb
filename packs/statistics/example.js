import { linearRegression, linearRegressionLine, mean, median, quantile, rSquared, standardDeviation } from "@packferry/statistics";

const values = [3, 4, 4, 5, 9];
const points = [[0, 1], [1, 3], [2, 5]];
const line = linearRegressionLine(linearRegression(points));
return {
  mean: mean(values),
  median: median(values),
  quartiles: quantile(values, [0.25, 0.75]),
  spread: standardDeviation(values),
  next: line(3),
  fit: rSquared(points, line),
};
