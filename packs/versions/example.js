import { coerce, diff, inc, maxSatisfying, rsort, satisfies, valid } from "@packferry/versions";

const all = ["1.2.0", "1.10.0", "2.0.0-rc.1", "1.9.1", "2.0.0"];
return {
  sorted: rsort([...all]),
  best: maxSatisfying(all, "1.x"),
  fits: satisfies("1.4.2", "^1.2.0 || >=3"),
  next: inc("1.9.1", "minor"),
  kind: diff("1.9.1", "2.0.0"),
  coerced: coerce("v2.1-final").version,
  invalid: valid("1.2"),
};
