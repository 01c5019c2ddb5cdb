//! The Packferry build step: packs on disk become an immutable release, and a release is published.
//!
//! The path of a pack is readable in `pipeline.rs`, top to bottom; one file a stage.

pub mod bundled;
pub mod diagnostics;
pub mod discover;
pub mod exports;
pub mod link;
pub mod package_json;
pub mod validate;
