//! The edge over storage in memory: the same code as in the worker, without the runtime.

#![expect(clippy::unwrap_used, reason = "tests")]

mod probes;
mod release;
mod vectors;
mod visit;
