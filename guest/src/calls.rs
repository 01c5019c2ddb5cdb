//! Calls of WASM modules: what they must be given, and how many a run may make (pack contract, section 7).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use packferry_core::contract::CallLimits;
use packferry_core::limits::{CALL_LIMIT_CEILINGS, PACK_LIMITS};

use crate::table::WasmModule;
pub(crate) use crate::wasm::Number;
use crate::wasm::{Argument, CallFailure, CompiledModule, Scalar, Signature, argument};

/// The WASM calls of one run. They are made one after the other, so no bound on calls at once can be exceeded.
pub(crate) struct WasmCalls {
    clock: fn() -> Instant,
    compiled: HashMap<String, Result<CompiledModule, String>>,
    /// Calls that the run may make: the lowest number that any of its modules gives.
    calls_max: u64,
    calls: u64,
    /// Time that all calls together may take: the lowest that any of its modules gives.
    wall_clock: Duration,
    spent: Duration,
}

impl WasmCalls {
    /// No calls yet of `modules`.
    pub(crate) fn new(modules: &HashMap<String, WasmModule>, clock: fn() -> Instant) -> Self {
        let lowest = |limit: fn(&CallLimits) -> Option<u64>, ceiling: u64| {
            let limits = modules.values().filter_map(|module| module.contract.limits.as_ref());
            limits.filter_map(limit).fold(ceiling, u64::min)
        };
        Self {
            clock,
            compiled: HashMap::new(),
            calls_max: lowest(
                |limits| limits.calls_per_invocation,
                CALL_LIMIT_CEILINGS.calls_per_invocation,
            ),
            calls: 0,
            wall_clock: Duration::from_millis(lowest(|limits| limits.wall_clock_ms, CALL_LIMIT_CEILINGS.wall_clock_ms)),
            spent: Duration::ZERO,
        }
    }

    /// Calls `export` of the module `specifier` with `arguments`, of which None is no number, and not beyond `deadline`.
    ///
    /// # Errors
    /// The message of the error that the calling code sees.
    pub(crate) fn call(
        &mut self,
        modules: &HashMap<String, WasmModule>,
        specifier: &str,
        export: &str,
        arguments: &[Option<f64>],
        deadline: Instant,
    ) -> Result<Option<Number>, String> {
        let named = |text: &str| format!("{specifier}: {text}");
        let module = modules
            .get(specifier)
            .ok_or_else(|| named("not a WASM module of this run"))?;
        let pair = module.contract.exports.iter().find(|pair| pair.alias == export);
        let pair = pair.ok_or_else(|| named(&format!("no function {export}")))?;
        let start = (self.clock)();
        let compile = || CompiledModule::new(&module.bytes, module.contract.memory_pages_max);
        let compiled = self.compiled.entry(specifier.to_owned()).or_insert_with(compile);
        let compiled = compiled.as_ref().map_err(|error| named(error))?;
        let signature = compiled.signature(&pair.wasm).filter(is_scalar);
        let signature =
            signature.ok_or_else(|| named(&format!("{export} is not a function of the scalar contract")))?;
        let arguments = checked(&signature, export, arguments).map_err(|error| named(&error))?;

        let most = self.calls_max;
        if self.calls >= most {
            return Err(named(&format!("the run makes more than {most} WASM calls")));
        }
        self.calls += 1;
        let limits = module.contract.limits.as_ref();
        let call_timeout = limits.and_then(|limits| limits.call_timeout_ms);
        let call_timeout = Duration::from_millis(call_timeout.unwrap_or(CALL_LIMIT_CEILINGS.call_timeout_ms));
        let left = self.wall_clock.saturating_sub(self.spent);
        if left.is_zero() {
            let wall_clock = self.wall_clock.as_millis();
            return Err(named(&format!("the run's WASM calls take longer than {wall_clock} ms")));
        }
        let until = deadline.min(start + call_timeout.min(left));
        let called = compiled.call(&pair.wasm, &arguments, until, self.clock);
        let taken = (self.clock)().saturating_duration_since(start);
        self.spent += taken;
        called.map_err(|failure| match failure {
            CallFailure::Late => named(&format!("{export} was stopped after {} ms", taken.as_millis())),
            CallFailure::Trapped(why) => named(&format!("{export} trapped: {why}")),
        })
    }
}

fn is_scalar(signature: &Signature) -> bool {
    signature.parameters.len() <= PACK_LIMITS.wasm_arity
}

fn checked(signature: &Signature, export: &str, arguments: &[Option<f64>]) -> Result<Vec<Argument>, String> {
    let (takes, given) = (signature.parameters.len(), arguments.len());
    if takes != given {
        let s = if takes == 1 { "" } else { "s" };
        return Err(format!("{export} takes {takes} argument{s}, not {given}"));
    }
    let check = |(i, (scalar, number)): (usize, (&Scalar, &Option<f64>))| {
        let number = number.ok_or_else(|| format!("argument {} of {export} must be a number", i + 1))?;
        let range = "an integer from -2147483648 to 2147483647";
        argument(*scalar, number).ok_or_else(|| format!("argument {} of {export} must be {range}", i + 1))
    };
    signature
        .parameters
        .iter()
        .zip(arguments)
        .enumerate()
        .map(check)
        .collect()
}
