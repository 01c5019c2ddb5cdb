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

/// Why a bundle is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRefusal {
    /// A sentence that names no path.
    pub message: String,
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
                let settled = failure.settled;
                return Ok(Err(ProbeRefusal { message, settled }));
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
        let settled = true;
        Ok(Err(ProbeRefusal { message, settled }))
    }
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
