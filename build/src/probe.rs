//! The admission probe: a bundle is evaluated once in the guest, and must export there what it exports by its text
//! (pack contract, section 9). The only step of a build that runs a pack's code, in a child process without any capability.

use std::collections::BTreeSet;
use std::path::Path;

use crate::fault::Fault;
use crate::guest_process::GuestProcess;

/// Names that a refusal lists before it only counts.
const NAMES_SHOWN: usize = 5;

/// Characters of a thrown error's message that a refusal repeats.
const MESSAGE_CHARS: usize = 300;

/// Frames of a stack that are read.
const FRAMES_READ: usize = 16;

/// Why a bundle is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRefusal {
    /// A sentence that names no path.
    pub message: String,
    /// Offsets in the bundle where it stood when it failed, the innermost first.
    pub stack: Vec<usize>,
    /// Whether the bundle is refused so every time: not where the clock or a process that broke down ended it.
    pub settled: bool,
}

/// Probes bundles.
#[derive(Debug, Clone)]
pub struct Probe {
    guest: GuestProcess,
}

impl Probe {
    /// A probe whose guests are children of `program`, the `packferry` executable.
    #[must_use]
    pub fn new(program: &Path) -> Self {
        Self {
            guest: GuestProcess::new(program),
        }
    }

    /// Evaluates the bundle `source`, which exports `expected` by its text.
    ///
    /// # Errors
    /// A fault where the guest cannot be run. What is wrong with the bundle is a [`ProbeRefusal`].
    pub fn probe(&self, source: &str, expected: &[String]) -> Result<Result<(), ProbeRefusal>, Fault> {
        let names = match self.guest.names(source)? {
            Ok(names) => names,
            Err(failure) if failure.fault => return Err(Fault::new(failure.message)),
            Err(failure) => {
                let message = format!("It fails in the guest: {}.", sentence(&failure.message));
                return Ok(Err(ProbeRefusal {
                    message,
                    stack: stack_offsets(&failure.stack, source),
                    settled: failure.settled,
                }));
            }
        };
        let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let missing: Vec<&str> = expected.difference(&names).copied().collect();
        let unforeseen: Vec<&str> = names.difference(&expected).copied().collect();
        if missing.is_empty() && unforeseen.is_empty() {
            return Ok(Ok(()));
        }
        let parts = [("lacks", missing), ("has", unforeseen)];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        let parts: Vec<String> = parts.map(|(verb, names)| format!("{verb} {}", listed(names))).collect();
        let message = format!("Against its text, in the guest it {}.", parts.join(" and "));
        Ok(Err(ProbeRefusal {
            message,
            stack: Vec::new(),
            settled: true,
        }))
    }
}

/// The offsets in the bundle `source` that a guest's stack names, a frame a line that ends with `:‹line›:‹column›` and perhaps a
/// bracket. The bundle may have written any text there.
fn stack_offsets(stack: &str, source: &str) -> Vec<usize> {
    let frames = stack.lines().take(FRAMES_READ).filter_map(|frame| {
        let mut parts = frame.trim_end_matches(')').rsplitn(3, ':');
        let column: usize = parts.next()?.parse().ok()?;
        let line: usize = parts.next()?.parse().ok()?;
        parts.next()?;
        let mut lines = source.split_inclusive('\n');
        let start: usize = lines.by_ref().take(line.checked_sub(1)?).map(str::len).sum();
        let within = lines.next()?.char_indices().nth(column.checked_sub(1)?);
        Some(start + within.map_or(0, |(at, _)| at))
    });
    frames.collect()
}

/// The first line of what a bundle threw, fit for a diagnostic.
fn sentence(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let shown = line.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS);
    shown.collect::<String>().trim_end_matches('.').to_owned()
}

fn listed(names: &[&str]) -> String {
    let shown: Vec<String> = names
        .iter()
        .take(NAMES_SHOWN)
        .map(|name| format!("\"{name}\""))
        .collect();
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_read_for_their_places() {
        let source = "first\nsé cond\nthird";
        let cases: [(&str, &[usize]); 7] = [
            ("    at f (nodetool-sandbox:bundle|bundle:2:4)", &[10]),
            ("    at nodetool-sandbox:bundle|bundle:3:1", &[15]),
            ("    at f (x:2:1)\n    at (native)\n    at g (x:1:3)", &[6, 2]),
            ("    at f (x:2:999)", &[6]),
            (
                "    at f (x:4:1)\n at f (x:0:0)\n at f (x:1:99999999999999999999999)",
                &[],
            ),
            ("nonsense\n1:2\n:::", &[]),
            ("", &[]),
        ];
        for (stack, offsets) in cases {
            assert_eq!(stack_offsets(stack, source), offsets, "{stack}");
        }
        assert_eq!(stack_offsets(&"x:1:1\n".repeat(100), source).len(), FRAMES_READ);
    }
}
