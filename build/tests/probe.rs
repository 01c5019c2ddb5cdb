//! The admission probe over the real executable: what is admitted, what is refused and why, and that nothing breaks the build.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use packferry::probe::Probe;

/// The refusal's message, or nothing.
fn probe(source: &str, expected: &[&str]) -> Option<String> {
    let expected: Vec<String> = expected.iter().map(|name| (*name).to_owned()).collect();
    let probe = Probe::new(Path::new(env!("CARGO_BIN_EXE_packferry")));
    probe
        .probe(source, &expected)
        .unwrap()
        .err()
        .map(|refusal| refusal.message)
}

#[test]
fn bundles_are_admitted_or_refused_with_a_reason() {
    let admitted: &[(&str, &[&str])] = &[
        ("", &[]),
        ("export const b = 1, a = 2; export default 3;", &["default", "a", "b"]),
        ("export { x as \"a b\" }; const x = 1;", &["a b"]),
        ("export const n = await Promise.resolve(1);", &["n"]),
        (
            "Object.keys = () => []; Reflect.ownKeys = () => []; export let a;",
            &["a"],
        ),
        (
            "console.log('x'.repeat(1e6)); for (let i = 0; i < 1e4; i++) console.log(i); export let a;",
            &["a"],
        ),
    ];
    for (source, expected) in admitted {
        assert_eq!(probe(source, expected), None, "{source}");
    }
    let refused: &[(&str, &[&str], &str)] = &[
        (
            "export let a, b;",
            &["a", "c"],
            "Against its text, in the guest it lacks \"c\" and has \"b\".",
        ),
        (
            "export let a;",
            &["a", "b"],
            "Against its text, in the guest it lacks \"b\".",
        ),
        (
            "export let a, b, c, d, e, f, g;",
            &[],
            "Against its text, in the guest it has \"a\", \"b\", \"c\", \"d\", \"e\" and 2 more.",
        ),
        (
            "throw new TypeError('no.');",
            &[],
            "It fails in the guest: TypeError: no.",
        ),
        (
            "process.exit(0);",
            &[],
            "It fails in the guest: ReferenceError: process is not defined.",
        ),
        ("export {", &[], "It fails in the guest: SyntaxError: "),
        (
            "throw new Error('a\u{1b}[31m\\nb');",
            &[],
            "It fails in the guest: Error: a[31m.",
        ),
        (
            "import 'fs';",
            &[],
            "It fails in the guest: Error: \"fs\" is not a sandbox package this run serves — only an installed pack the code imports resolves.",
        ),
        (
            "await import('fs');",
            &[],
            "It fails in the guest: Error: dynamic import() is not allowed in the sandbox (requested \"fs\").",
        ),
        (
            "await new Promise(() => {});",
            &[],
            "It fails in the guest: the code waits for a promise",
        ),
        (
            "const f = () => f(); f();",
            &[],
            "It fails in the guest: RangeError: Maximum call stack size exceeded.",
        ),
        ("\0", &[], "It fails in the guest: "),
    ];
    for (source, expected, message) in refused {
        let refusal = probe(source, expected).unwrap_or_default();
        assert!(refusal.starts_with(message), "{source}: {refusal}");
    }
}

#[test]
fn hostile_bundles_cost_nothing_but_themselves() {
    let cases = [
        (
            "for (;;);",
            "It fails in the guest: interrupted: the code ran longer than 5000 ms.",
        ),
        (
            "Array.prototype.join.call({ length: 2 ** 53 - 1 }, '');",
            "It fails in the guest: interrupted: the code ran longer than 5000 ms.",
        ),
        (
            "const a = []; for (;;) a.push(new Uint8Array(1e6));",
            "It fails in the guest: out of memory: the sandbox may use 67108864 bytes.",
        ),
    ];
    for (source, message) in cases {
        assert_eq!(probe(source, &[]).as_deref(), Some(message), "{source}");
    }
}

/// A probe whose children are the script `tests/broken-guests/<script>` instead. The scripts are committed: a file that this process had just
/// written could still be open for writing in a child that another test is starting, and then does not run.
#[cfg(unix)]
fn probe_by(script: &str) -> Result<Option<String>, String> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/broken-guests")
        .join(script);
    let probed = Probe::new(&program).probe("export {};", &[]);
    probed
        .map(|admitted| admitted.err().map(|refusal| refusal.message))
        .map_err(|fault| fault.to_string())
}

#[cfg(unix)]
#[test]
fn a_child_that_breaks_is_a_refusal_and_one_that_cannot_run_a_fault() {
    let broken = Ok(Some("It fails in the guest: the sandbox broke down.".to_owned()));
    assert_eq!(probe_by("segmentation-fault"), broken);
    assert_eq!(probe_by("cpu-limit"), broken);
    let fault = Err("the guest cannot be run: no memory".to_owned());
    assert_eq!(probe_by("no-memory"), fault);
    assert!(probe_by("nonsense").is_err());
}
