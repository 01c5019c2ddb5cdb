//! Code that goes for the engine rather than for an answer: whatever it does, a run ends, in time, and with the right kind of error.

use std::time::{Duration, Instant};

use packferry_guest::{GuestErrorKind, Run};

/// A deadline that keeps the tests short, and what may pass beyond it on a busy machine.
const DEADLINE: Duration = Duration::from_millis(300);
const LATEST: Duration = Duration::from_secs(8);

#[expect(clippy::disallowed_methods, reason = "native tests")]
fn check(code: &str, kind: GuestErrorKind) {
    let mut run = Run::new(Vec::new());
    run.limits.deadline = DEADLINE;
    let start = Instant::now();
    let result = run.evaluate(code);
    let taken = start.elapsed();
    assert!(taken < LATEST, "{code}: {taken:?}");
    let found = result.map_err(|error| error.kind);
    assert_eq!(found, Err(kind), "{code}");
}

#[test]
fn time_is_bounded_wherever_it_is_spent() {
    let endless = [
        "for (;;);",
        "const spin = () => { Promise.resolve().then(spin); }; spin(); await new Promise(() => {});",
        "return /^(a+)+$/.test('a'.repeat(60) + 'b');",
        "return { get a() { for (;;); } };",
        "return { toJSON() { for (;;); } };",
        "return { get then() { for (;;); } };",
        "throw { toString() { for (;;); } };",
        "throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;); } });",
        "throw new Proxy(new Error('x'), { get() { for (;;); } });",
        "Error.prepareStackTrace = () => { for (;;); }; null.x;",
        "console.log({ toJSON() { for (;;); } });",
        "console.log({ toString() { for (;;); } }, Symbol.iterator);\nfor (;;);",
        "const s = new Set([1]); s.forEach((x) => { s.delete(x); s.add(x + 1); });",
        "const f = async () => { for (;;) { try { await f; } catch {} } }; await f();",
        "return Promise.all({ [Symbol.iterator]: () => ({ next: () => { for (;;); } }) });",
        "return [...(function* () { for (;;); })()];",
        "class A { static { for (;;); } }",
    ];
    for code in endless {
        check(code, GuestErrorKind::Deadline);
    }
}

#[test]
fn builtins_that_never_look_at_the_clock_are_given_up() {
    check(
        "return Array.prototype.join.call({ length: 2 ** 53 - 1 }, '');",
        GuestErrorKind::Deadline,
    );
    check(
        "const a = []; a[2 ** 32 - 2] = 1; return a.reverse().length;",
        GuestErrorKind::Deadline,
    );
}

#[test]
fn memory_is_bounded_wherever_it_is_used() {
    let mut run = Run::new(Vec::new());
    run.limits.heap_bytes = 8 << 20;
    run.limits.deadline = Duration::from_secs(60);
    let greedy = [
        "const all = []; for (;;) all.push(new Array(1000).fill(1.5));",
        "let all = null; for (;;) all = { all };",
        "const m = new Map(); for (;;) m.set({}, 1);",
        "let s = 'ab'; const all = []; for (;;) { all.push(s + all.length + s); s += s.length < 1e6 ? s : ''; }",
        "return new ArrayBuffer(2 ** 27).byteLength;",
        "return new SharedArrayBuffer(2 ** 27).byteLength;",
        "const b = new ArrayBuffer(8, { maxByteLength: 2 ** 40 }); return b.resize(2 ** 39);",
        "return JSON.parse('[' + '1,'.repeat(2e6) + '1]').length;",
        "return 'x'.repeat(2 ** 24).split('').length;",
        "return JSON.stringify(Array(1e7)).length;",
        "let f = () => 1; for (;;) f = f.bind(null, f);",
    ];
    for code in greedy {
        let error = run.evaluate(code).unwrap_err();
        let refused = matches!(error.kind, GuestErrorKind::Memory) || error.message.starts_with("RangeError");
        assert!(refused, "{code}: {error:?}");
    }
}

#[test]
fn nesting_and_recursion_end_in_errors() {
    let deep = [
        "const f = () => f() + 1; return f();",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a;",
        "let a = [1]; for (let i = 0; i < 1e5; i++) a = [a]; return a.toString();",
        "return JSON.parse('['.repeat(1e6));",
        "return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).source;",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); return p.x;",
        "let f = () => 1; for (let i = 0; i < 1e5; i++) f = f.bind(null); return f();",
        "const o = { get x() { return this.x; } }; return o.x;",
        "const o = { toString() { return `${o}`; } }; return `${o}`;",
        "class A { constructor() { return new A(); } } new A();",
        "return { toJSON() { return { a: { toJSON: this.toJSON } }; } };",
        "const g = function* () { yield* g(); }; return [...g()];",
    ];
    for code in deep {
        let error = Run::new(Vec::new()).evaluate(code).unwrap_err();
        let kinds = [GuestErrorKind::Thrown, GuestErrorKind::Result, GuestErrorKind::Memory];
        assert!(kinds.contains(&error.kind), "{code}: {error:?}");
    }
}

#[test]
fn odd_values_leave_as_errors_or_json() {
    let cases = [
        (
            "throw null;",
            Err("thrown: null, or out of memory: the sandbox may use 67108864 bytes"),
        ),
        ("throw undefined;", Err("thrown: undefined")),
        ("throw Symbol('x');", Err("a value was thrown that has no text")),
        (
            "throw { toString() { throw 1; } };",
            Err("a value was thrown that has no text"),
        ),
        ("throw '\\ud800';", Err("a value was thrown that has no text")),
        (
            "return '\\ud800';",
            Err("the result cannot be taken out of the sandbox"),
        ),
        (
            "return 'x'.repeat(5e6);",
            Err("the result is 5000002 bytes of JSON, and may be 4194304"),
        ),
        ("return { get a() { throw new Error('boom'); } };", Err("Error: boom")),
        ("await import('\\ud800');", Err("TypeError: ")),
        (
            "await import('a\\0b');",
            Err("Error: dynamic import() is not allowed in the sandbox (requested \"a\")"),
        ),
        ("with ({}) {}", Err("SyntaxError: ")),
        ("return arguments.length;", Err("ReferenceError: ")),
        (
            "return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);",
            Err("TypeError: "),
        ),
        ("Object.prototype.toJSON = () => 1; return { a: 2 };", Ok("1")),
        ("return console.log.constructor.name;", Ok("\"Function\"")),
        ("return JSON.stringify('\\ud800').length;", Ok("8")),
    ];
    for (code, expected) in cases {
        let result = Run::new(Vec::new()).evaluate(code);
        let same = match (&result, expected) {
            (Ok(value), Ok(json)) => *value == serde_json::from_str::<serde_json::Value>(json).unwrap(),
            (Err(error), Err(start)) => error.message.starts_with(start),
            _ => false,
        };
        assert!(same, "{code}: {result:?}");
    }
}

#[test]
fn output_is_bounded() {
    let run = Run::new(Vec::new());
    let outcome = run.evaluate_with_output(
        "console.log('a', 1, null, undefined, 1n, { b: [2] }, new Error('c'));\n\
         console.warn('\\u00e9'.repeat(1000));\n\
         console.error(Symbol('s'), () => 1);\n\
         console.info({ toJSON() { console.debug('inner'); return 'outer'; } });\n\
         for (let i = 0; i < 100; i++) console.log(i);\n\
         return 1;",
    );
    assert_eq!(outcome.result, Ok(1.into()));
    let lines = &outcome.output;
    assert_eq!(lines[0], "a 1 null undefined 1 {\"b\":[2]} Error: c");
    assert_eq!(lines[1], "\u{e9}".repeat(500));
    assert_eq!(lines[2], " () => 1");
    assert_eq!(lines[3..5], ["inner", "\"outer\""]);
    assert_eq!((lines.len(), outcome.output_dropped), (20, 85));
}
