//! What one request cost: reads, checks and time, for `Server-Timing` and the log; and what trouble it met on its way.

use std::cell::{Cell, RefCell};
use std::fmt::Display;

/// Counters of one request.
#[derive(Debug, Default)]
pub struct Trace {
    reads: Cell<u32>,
    read_milliseconds: Cell<u64>,
    checks: Cell<u32>,
    check_milliseconds: Cell<u64>,
    trouble: RefCell<Option<String>>,
}

impl Trace {
    /// Notes a read of storage.
    pub fn note_read(&self, milliseconds: u64) {
        self.reads.set(self.reads.get().saturating_add(1));
        self.read_milliseconds
            .set(self.read_milliseconds.get().saturating_add(milliseconds));
    }

    /// Notes a check of bytes against their digest.
    pub fn note_check(&self, milliseconds: u64) {
        self.checks.set(self.checks.get().saturating_add(1));
        self.check_milliseconds
            .set(self.check_milliseconds.get().saturating_add(milliseconds));
    }

    /// Notes something that is wrong although the request may be answered.
    pub fn note_trouble(&self, trouble: impl Display) {
        *self.trouble.borrow_mut() = Some(trouble.to_string());
    }

    /// What was noted last of that.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Reads of storage so far.
    #[must_use]
    pub fn reads(&self) -> u32 {
        self.reads.get()
    }

    /// The value of Server-Timing: route, number of reads and their time, number of checks and theirs. A constant for an
    /// answer from memory.
    #[must_use]
    pub fn server_timing(&self, route: &'static str) -> String {
        if self.reads() == 0 {
            return Self::warm_timing(route);
        }
        format!(
            "route;desc=\"{route}\", kv;desc=\"{}\";dur={}, verify;desc=\"{}\";dur={}",
            self.reads.get(),
            self.read_milliseconds.get(),
            self.checks.get(),
            self.check_milliseconds.get(),
        )
    }

    /// The value of Server-Timing on an answer from memory.
    #[must_use]
    pub fn warm_timing(route: &'static str) -> String {
        format!("route;desc=\"{route}\", kv;desc=\"0\"")
    }
}
