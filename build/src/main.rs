//! The `packferry` command.
fn main() {}
