//! What a person sees: diagnostics, faults, outcomes. Nothing here decides anything.

use std::io::{self, Write};

use camino::Utf8Path;
use serde_json::Value;

use crate::fault::Fault;
use crate::pipeline::Finding;

/// Prints a line on standard output. A closed pipe is no fault.
pub fn print_line(line: &str) {
    let _ = writeln!(io::stdout().lock(), "{line}");
}

/// Prints `value` on standard output.
pub fn print_json(value: &Value) {
    print_line(&value.to_string());
}

/// Prints a note beside the outcome, on standard error.
pub fn print_note(note: &str) {
    let _ = writeln!(io::stderr().lock(), "{note}");
}

/// Prints a fault on standard error.
pub fn print_fault(fault: &Fault) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "packferry: {fault}");
    if let Some(help) = fault.help() {
        let _ = writeln!(out, "  help: {help}");
    }
}

/// Prints diagnostics on standard error, in the order given.
pub fn print_diagnostics(findings: &[Finding]) {
    let mut out = io::stderr().lock();
    for finding in findings {
        let diagnostic = &finding.diagnostic;
        let _ = writeln!(
            out,
            "{:?}[{}]: {}",
            diagnostic.rule.severity, diagnostic.rule.code, diagnostic.message
        );
        let _ = writeln!(out, "  help: {}", diagnostic.rule.hint);
    }
}

/// Prints what a script wrote, on standard error: standard output is its result's.
pub fn print_script_output(lines: &[String], dropped: u64) {
    let mut out = io::stderr().lock();
    for line in lines {
        let _ = writeln!(out, "{}", printable(line));
    }
    if dropped > 0 {
        let _ = writeln!(out, "({dropped} more lines)");
    }
}

/// Prints why a script failed, on standard error.
pub fn print_script_failure(file: &Utf8Path, message: &str, stack: &str) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{file}: {}", printable(message));
    let _ = write!(out, "{}", printable(stack));
}

/// Text of the guest without what a terminal would obey.
fn printable(text: &str) -> String {
    let harmless = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect()
}
