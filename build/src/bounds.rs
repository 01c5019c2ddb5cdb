//! Bounds that a process of ours sets on itself before it meets what nobody trusts. They outlive whatever goes wrong in it.

use std::io;

use rustix::process::{Rlimit, setrlimit};

pub use rustix::process::Resource;

/// Bounds what this process, and what it starts or becomes, may take of a resource, in the system's unit.
///
/// # Errors
/// Where the system refuses, as it does for more than an earlier bound.
pub fn bound(resource: Resource, most: u64) -> io::Result<()> {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    Ok(setrlimit(resource, limit)?)
}
