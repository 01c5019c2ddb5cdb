//! What a person sees: diagnostics, faults, outcomes. Nothing here decides anything.

use std::io::{self, Write};

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
