import { List, OrderedSet, Range, fromJS, is } from "@packferry/collections";

const before = fromJS({ a: { b: [1, 2] } });
const after = before.setIn(["a", "b", 0], 9);
return {
  before: before.toJS(),
  after: after.toJS(),
  equal: [is(before, fromJS({ a: { b: [1, 2] } })), is(before, after)],
  set: OrderedSet([3, 1, 3]).union([2]).toArray(),
  lazy: Range(1, Infinity).filter((n) => n % 3 === 0).take(4).toArray(),
  groups: List([1, 2, 3, 4]).groupBy((n) => (n % 2 ? "odd" : "even")).toJS(),
};
