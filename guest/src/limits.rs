//! The bounds of a run.

use std::time::Duration;

/// What a run may use (pack contract, section 15).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that the engine may allocate. Keeps hostile code from exhausting the process's memory.
    pub heap_bytes: usize,
    /// Bytes of native stack that the engine may use. Recursion beyond it is an error in the guest, not a crash.
    pub stack_bytes: usize,
    /// Time for everything, from the first module's evaluation to the result's last byte, promise jobs included.
    pub deadline: Duration,
    /// Lines that `console` keeps; further ones are only counted.
    pub output_lines: usize,
    /// Characters that `console` keeps of a line.
    pub output_chars: usize,
    /// Bytes of the result as JSON. A tree of values takes up to thirty times as much memory as its text.
    pub result_bytes: usize,
    /// Bytes of the user's code, the bound of an authored file: the parser's stack grows with it.
    pub script_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            heap_bytes: 64 << 20,
            stack_bytes: 1 << 20,
            deadline: Duration::from_secs(5),
            output_lines: 20,
            output_chars: 500,
            result_bytes: 4 << 20,
            script_bytes: 262_144,
        }
    }
}
