//! The native QuickJS guest: runs user code with the declared modules of packs, and nothing else.
//!
//! It enforces what the guests in browsers and Node enforce, by the same cases (`fixtures/guest/`): the loader is the
//! boundary, the globals are those of the language, every run has a bounded heap, stack, time and output. It reads no file,
//! opens no socket and knows no environment. `packferry run` and the admission probe of npm bundles use it.
//!
//! What the engine cannot bound from within, a caller bounds from without, by running the guest in a process of its own: a
//! builtin that never looks at the clock keeps its thread after the run has been given up, and a fault of the engine is one of
//! its process.

mod calls;
mod engine;
mod error;
mod graph;
mod host;
mod limits;
mod resolve;
mod run;
mod script;
mod table;
mod wasm;

pub use error::{GuestError, GuestErrorKind};
pub use graph::{Graph, InvalidGraph};
pub use host::{HostCall, HostDispatcher, InvalidExport, NoHost, PlatformCall, PlatformModule};
pub use limits::Limits;
pub use run::{Outcome, Run, module_names};
pub use script::imported_names;
