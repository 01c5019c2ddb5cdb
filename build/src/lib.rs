//! The Packferry build step.
