//! The edge over storage in memory: the same code as in the worker, without the runtime.

#![expect(clippy::unwrap_used, reason = "tests")]

mod faults;
mod hostile;
mod index;
mod matrix;
mod policy;
mod probes;
mod reads;
mod release;
mod releases;
mod trust;
mod vectors;
mod visit;
