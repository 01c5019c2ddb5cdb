import * as v from "@packferry/schema";

const Person = v.object({
  name: v.pipe(v.string(), v.trim(), v.minLength(1)),
  mail: v.pipe(v.string(), v.email()),
  age: v.optional(v.pipe(v.number(), v.integer()), 18),
});
const good = v.safeParse(Person, { name: " Ada ", mail: "ada@example.org", extra: 1 });
const bad = v.safeParse(Person, { name: "", mail: "nope", age: 1.5 });
return { good: good.output, bad: v.flatten(bad.issues) };
