//! The Packferry build step: packs on disk become an immutable release, and a release is published.
//!
//! The path of a pack is readable in `pipeline.rs`, top to bottom; one file a stage.

pub mod bulk;
pub mod bundle;
pub mod bundle_paths;
pub mod bundled;
pub mod check;
pub mod child;
pub mod cli;
pub mod commands;
pub mod commonjs_names;
pub mod cycles;
pub mod diagnostics;
pub mod discover;
pub mod excerpt;
pub mod exports;
pub mod fault;
pub mod finding;
pub mod guest_process;
pub mod imports;
pub mod javascript;
pub mod json;
pub mod judge;
pub mod link;
pub mod local_kv;
pub mod npm;
pub mod pack_files;
pub mod package_json;
pub mod pipeline;
pub mod policy_file;
pub mod probe;
pub mod progress;
pub mod publish;
pub mod registry;
pub mod release;
pub mod report;
pub mod run;
pub mod scan;
pub mod skill;
pub mod stage;
pub mod staging;
pub mod validate;
pub mod verify_bundle;
pub mod wasm;
pub mod watch;
