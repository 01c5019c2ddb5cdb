//! What the embedder implements itself: host modules, called through the facades of the modules that declare them, and the
//! platform's own modules, which code imports undeclared.

use std::fmt;

use packferry_core::contract::is_identifier;
use serde_json::Value;

/// One call of a host module's function. Module, pack and function were checked against what the run declares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostCall<'a> {
    /// The host module's id.
    pub host: &'a str,
    /// The pack that declares it. The dispatcher decides whether it may (pack contract, section 8).
    pub pack: &'a str,
    /// The function.
    pub export: &'a str,
    /// Its arguments.
    pub arguments: &'a [Value],
}

/// One call of a platform module's function. Module and function were checked against what the run registers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlatformCall<'a> {
    /// The module.
    pub specifier: &'a str,
    /// The function.
    pub export: &'a str,
    /// Its arguments.
    pub arguments: &'a [Value],
}

/// A module of the platform, such as `@nodetool-ai/sandbox-nodetool`. A run serves it only where it is registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformModule {
    specifier: String,
    exports: Vec<String>,
}

/// An export of a platform module that code cannot import by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidExport(String);

impl fmt::Display for InvalidExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a platform module cannot export {:?}", self.0)
    }
}

impl std::error::Error for InvalidExport {}

impl PlatformModule {
    /// The module `specifier` with the functions `exports`.
    ///
    /// # Errors
    /// Where an export is no identifier: its name becomes code.
    pub fn new(specifier: &str, exports: &[&str]) -> Result<Self, InvalidExport> {
        match exports.iter().find(|name| !is_identifier(name)) {
            Some(name) => Err(InvalidExport((*name).to_owned())),
            None => Ok(Self {
                specifier: specifier.to_owned(),
                exports: exports.iter().map(|&name| name.to_owned()).collect(),
            }),
        }
    }

    /// The name that code imports it by.
    #[must_use]
    pub fn specifier(&self) -> &str {
        &self.specifier
    }

    /// Its functions.
    #[must_use]
    pub fn exports(&self) -> &[String] {
        &self.exports
    }
}

/// Answers the calls of host modules and platform modules.
pub trait HostDispatcher: Send + Sync {
    /// Answers a call of a host module.
    ///
    /// # Errors
    /// The message of the error that the calling code sees.
    fn call(&self, call: HostCall<'_>) -> Result<Value, String>;

    /// Answers a call of a platform module. An embedder that registers none needs no answer.
    ///
    /// # Errors
    /// The message of the error that the calling code sees.
    fn call_platform(&self, call: PlatformCall<'_>) -> Result<Value, String> {
        Err(format!("\"{}\" is not a platform module of this guest", call.specifier))
    }
}

/// Implements no host module.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl HostDispatcher for NoHost {
    fn call(&self, call: HostCall<'_>) -> Result<Value, String> {
        Err(format!("\"{}\" is not a host module of this guest", call.host))
    }
}
