//! What callers use: a run of user code, and the names of a bundle's exports.

use std::sync::Arc;

use serde_json::Value;

use crate::engine::{self, Entry};
use crate::error::GuestError;
use crate::graph::Graph;
use crate::host::{HostDispatcher, NoHost, PlatformModule};
use crate::limits::Limits;
use crate::table::ModuleTable;

/// Everything that a run may use. Each evaluation gets a guest of its own.
#[derive(Clone)]
pub struct Run {
    /// The declared modules, in the order of declaration.
    pub modules: Vec<Graph>,
    /// Its bounds.
    pub limits: Limits,
    /// The platform's modules, which code may import undeclared; no other is served.
    pub platform: Vec<PlatformModule>,
    /// Answers the calls of declared host modules and of the platform's modules.
    pub host: Arc<dyn HostDispatcher>,
}

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// What the code returned; nothing is null.
    pub result: Result<Value, GuestError>,
    /// What it wrote to `console`, as far as the limits go.
    pub output: Vec<String>,
    /// Lines that it wrote beyond them.
    pub output_dropped: u64,
}

impl Run {
    /// A run of `modules` with the standard limits, and no module of a host or platform.
    #[must_use]
    pub fn new(modules: Vec<Graph>) -> Self {
        Self {
            modules,
            limits: Limits::default(),
            platform: Vec::new(),
            host: Arc::new(NoHost),
        }
    }

    /// Runs `code` and gives what it returns.
    ///
    /// # Errors
    /// [`GuestError`].
    pub fn evaluate(&self, code: &str) -> Result<Value, GuestError> {
        self.evaluate_with_output(code).result
    }

    /// Runs `code` and gives what it returns and what it wrote.
    #[must_use]
    pub fn evaluate_with_output(&self, code: &str) -> Outcome {
        let table = ModuleTable::new(&self.modules, &self.platform);
        engine::evaluate(table, self.limits, &self.host, Entry::Script(code))
    }
}

/// Evaluates `source`, a module that imports nothing, and gives the names that it really exports, sorted by UTF-16 code units.
///
/// # Errors
/// [`GuestError`], also for any import.
pub fn module_names(source: &str, limits: Limits) -> Result<Vec<String>, GuestError> {
    let table = ModuleTable::of_bundle(source);
    let host: Arc<dyn HostDispatcher> = Arc::new(NoHost);
    let names = engine::evaluate(table, limits, &host, Entry::Names).result?;
    let names = names.as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
