//! The pure core of Packferry: ids, digests, records, the manifest, the channel and policy decisions.
//!
//! Nothing here does I/O, reads a clock or spawns anything: the same code computes a digest when a release is built
//! and checks it at the edge. It compiles natively and for `wasm32-unknown-unknown`, and its vectors run on both.

pub mod canonical;
pub mod channel;
pub mod closure;
pub mod contract;
pub mod digest;
pub mod id;
pub mod key;
pub mod limits;
pub mod manifest;
pub mod order;
pub mod payload;
pub mod policy;
pub mod record;
pub mod time;
pub mod trust;
