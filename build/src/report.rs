//! What a person sees: diagnostics, faults, outcomes. Nothing here decides anything. The only file that knows the terminal.

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use camino::Utf8Path;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use serde_json::Value;

use crate::diagnostics::Severity;
use crate::excerpt::Excerpt;
use crate::fault::{Fault, reason};
use crate::finding::Finding;
use crate::text::{counted, printable, printable_json, printable_lines};

/// Characters of the file's path above an excerpt.
const NAME_CHARS: usize = 300;

/// Why what was printed on standard output is lost, if it is.
static LOST: OnceLock<String> = OnceLock::new();

/// The fault that standard output took not all of what was printed. A closed pipe is none: who closed it wants no more.
#[must_use]
pub fn lost_output() -> Option<Fault> {
    let why = LOST.get()?;
    Some(Fault::new(format!("standard output cannot be written: {why}")))
}

fn print(text: &str) {
    let mut out = io::stdout().lock();
    let printed = writeln!(out, "{text}").and_then(|()| out.flush());
    if let Err(error) = printed
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.set(reason(&error)).ok();
    }
}

/// Prints a line on standard output.
pub fn print_line(line: &str) {
    print(&printable_lines(line));
}

/// Prints `value` on standard output.
pub fn print_json(value: &Value) {
    print(&printable_json(&value.to_string()));
}

/// Prints a note beside the outcome, on standard error.
pub fn print_note(note: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable_lines(note));
}

/// Prints a fault on standard error.
pub fn print_fault(fault: &Fault) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "packferry: {}", printable_lines(&fault.to_string()));
    if let Some(help) = fault.help() {
        let _ = writeln!(out, "  help: {}", printable_lines(help));
    }
}

/// Prints diagnostics on standard error, in the order given, with excerpts of the files.
pub fn print_findings<'a>(findings: impl IntoIterator<Item = &'a Finding>) {
    let mut out = io::stderr().lock();
    let colours = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
    for finding in findings {
        let _ = writeln!(out, "{}", rendered(finding, colours));
    }
}

/// One diagnostic for a person.
#[must_use]
pub fn rendered(finding: &Finding, colours: bool) -> String {
    let theme = if colours {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_wrap_lines(false)
        .with_links(false);
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = handler.render_report(&mut text, &Shown::of(finding));
    text
}

/// A finding as miette wants it.
#[derive(Debug)]
struct Shown<'a> {
    finding: &'a Finding,
    message: String,
    excerpt: Option<Excerpt>,
}

impl<'a> Shown<'a> {
    fn of(finding: &'a Finding) -> Self {
        let location = finding.diagnostic.location.as_ref();
        let excerpt = location.and_then(|location| {
            let (text, span) = (location.text.as_ref()?, location.span.as_ref()?);
            let name = finding.about.shown.join(&location.file);
            Excerpt::of(printable(name.as_str(), NAME_CHARS), text, span)
        });
        let mut message = finding.diagnostic.message.clone();
        if excerpt.is_none() {
            message.push_str(&place_in_words(finding));
        }
        Self {
            finding,
            message: printable_lines(&message),
            excerpt,
        }
    }
}

/// Where a finding without an excerpt is, as a line of its own.
fn place_in_words(finding: &Finding) -> String {
    let Some(location) = &finding.diagnostic.location else {
        return format!("\nin {}", finding.about.shown);
    };
    let mut place = format!("\nin {}", finding.about.shown.join(&location.file));
    if let Some(span) = &location.span {
        place.push_str(&format!(", at byte {} ({:#x})", span.start, span.start));
    }
    if let Some(export) = &location.export {
        place.push_str(&format!(", export {export:?}"));
    }
    place
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.finding.diagnostic.rule.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.diagnostic.rule.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Skipped | Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.finding.diagnostic.rule.hint))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_primary_with_span(None, self.excerpt.as_ref()?.place());
        Some(Box::new(std::iter::once(label)))
    }
}

/// Prints what a script wrote, on standard error: standard output is its result's.
pub fn print_script_output(lines: &[String], dropped: u64) {
    let mut out = io::stderr().lock();
    for line in lines {
        let _ = writeln!(out, "{}", printable(line, usize::MAX));
    }
    if dropped > 0 {
        let _ = writeln!(out, "({} more)", counted(dropped, "line"));
    }
}

/// Prints why a script failed, on standard error.
pub fn print_script_failure(file: &Utf8Path, message: &str, stack: &str) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{}", printable_lines(&format!("{file}: {message}")));
    let _ = write!(out, "{}", printable_lines(stack));
}
