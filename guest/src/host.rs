//! Host modules: functions that the embedder implements, called through the facades of the modules that declare them.

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

/// Answers the calls of host modules.
pub trait HostDispatcher: Send + Sync {
    /// Answers `call`.
    ///
    /// # Errors
    /// The message of the error that the calling code sees.
    fn call(&self, call: HostCall<'_>) -> Result<Value, String>;
}

/// Implements no host module.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl HostDispatcher for NoHost {
    fn call(&self, call: HostCall<'_>) -> Result<Value, String> {
        Err(format!("\"{}\" is not a host module of this guest", call.host))
    }
}
