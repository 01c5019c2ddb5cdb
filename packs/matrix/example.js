import { Matrix, EigenvalueDecomposition, determinant, inverse, solve } from "@packferry/matrix";

const a = new Matrix([[2, 1], [1, 3]]);
const round = (values) => values.map((value) => Math.round(value * 1e9) / 1e9);
return {
  product: a.mmul(a).to2DArray(),
  x: round(solve(a, Matrix.columnVector([3, 5])).to1DArray()),
  inverse: round(inverse(a).to1DArray()),
  determinant: determinant(a),
  eigenvalues: round(new EigenvalueDecomposition(a).realEigenvalues),
};
