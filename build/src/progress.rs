//! Progress on a terminal, silence in a pipe. The only file that knows the progress bar.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Whether and how progress is shown.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    shown: bool,
}

impl Progress {
    /// Shows progress on standard error if that is a terminal and `quiet` is not asked for.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        Self {
            shown: !quiet && std::io::stderr().is_terminal(),
        }
    }

    /// A bar for `steps` steps of `what`.
    #[must_use]
    pub fn bar(&self, what: &'static str, steps: usize) -> Bar {
        if !self.shown {
            return Bar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(steps as u64).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {wide_bar} {pos}/{len}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Bar(bar)
    }
}

/// A bar on its way; shared between threads.
#[derive(Debug, Clone)]
pub struct Bar(ProgressBar);

impl Bar {
    /// Counts `steps` as done.
    pub fn advance(&self, steps: usize) {
        self.0.inc(steps as u64);
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.0.finish_and_clear();
    }
}
