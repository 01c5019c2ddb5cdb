//! WASM modules at work: compiled once a run, a fresh instance for each call. The only file that knows wasmi.

use std::time::Instant;

use wasmi::{
    Config, Engine, Error, ExternType, Func, Linker, Module, ResumableCall, Store, StoreLimits, StoreLimitsBuilder,
    TrapCode, Val, ValType,
};

/// Fuel between two looks at the clock: milliseconds of work.
const FUEL_SLICE: u64 = 2_000_000;

/// Fuel of a start function, which cannot be paused to look at the clock: seconds of work.
const START_FUEL: u64 = 200_000_000;

/// Bytes of a WASM page.
const PAGE_BYTES: u64 = 65_536;

/// Elements of all tables of an instance; a table may declare no maximum.
const TABLE_ELEMENTS: usize = 1 << 20;

/// Calls that an instance may nest, and bytes of its value stack: more than any engine of a browser gives.
const CALL_DEPTH: usize = 20_000;
const VALUE_STACK_BYTES: usize = 8 << 20;

/// A type that may cross the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    I32,
    F32,
    F64,
}

/// A value that crosses the bridge. A 32-bit float is widened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    I32(i32),
    Float(f64),
}

/// A checked argument of a call.
pub(crate) type Argument = Val;

/// What an exported function takes and gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Scalar>,
    pub(crate) result: Option<Scalar>,
}

/// Why a call gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It was still running when its time was over.
    Late,
    /// It trapped, or could not be instantiated.
    Trapped(String),
}

/// A compiled module.
pub(crate) struct CompiledModule {
    engine: Engine,
    module: Module,
    memory_bytes: usize,
}

impl CompiledModule {
    /// Compiles `bytes`, whose memory may reach `memory_pages` pages.
    pub(crate) fn new(bytes: &[u8], memory_pages: u64) -> Result<Self, String> {
        let engine = Engine::new(&config());
        let module = Module::new(&engine, bytes).map_err(|error| {
            let text = error.to_string();
            if text.contains("unexpected end") {
                "truncated WASM binary".to_owned()
            } else {
                format!("invalid WASM binary: {text}")
            }
        })?;
        let memory_bytes = usize::try_from(memory_pages.saturating_mul(PAGE_BYTES)).unwrap_or(usize::MAX);
        Ok(Self {
            engine,
            module,
            memory_bytes,
        })
    }

    /// The signature of the exported function `name`. None if it is no function, or one that the call contract does not allow.
    pub(crate) fn signature(&self, name: &str) -> Option<Signature> {
        let Some(ExternType::Func(function)) = self.module.get_export(name) else {
            return None;
        };
        let parameters = function.params().iter().map(scalar).collect::<Option<Vec<_>>>()?;
        let result = match function.results() {
            [] => None,
            [one] => Some(scalar(one)?),
            _ => return None,
        };
        Some(Signature { parameters, result })
    }

    /// Calls the exported function `name` on a fresh instance, until `deadline` by `clock`.
    pub(crate) fn call(
        &self,
        name: &str,
        arguments: &[Argument],
        deadline: Instant,
        clock: fn() -> Instant,
    ) -> Result<Option<Number>, CallFailure> {
        let mut store = Store::new(&self.engine, self.limits());
        store.limiter(|limits| limits);
        refuel(&mut store, START_FUEL)?;
        let linker: Linker<StoreLimits> = Linker::new(&self.engine);
        let instance = linker
            .instantiate_and_start(&mut store, &self.module)
            .map_err(failure)?;
        let function = instance
            .get_func(&store, name)
            .ok_or_else(|| CallFailure::Trapped(format!("no function {name}")))?;
        let results = run(&mut store, function, arguments, deadline, clock)?;
        Ok(results.first().and_then(number))
    }

    fn limits(&self) -> StoreLimits {
        StoreLimitsBuilder::new()
            .memory_size(self.memory_bytes)
            .memories(1)
            .tables(100)
            .table_elements(TABLE_ELEMENTS)
            .instances(1)
            .build()
    }
}

fn run(
    store: &mut Store<StoreLimits>,
    function: Func,
    arguments: &[Argument],
    deadline: Instant,
    clock: fn() -> Instant,
) -> Result<Vec<Val>, CallFailure> {
    let mut results: Vec<Val> = function
        .ty(&*store)
        .results()
        .iter()
        .map(|kind| Val::default_for_ty(*kind))
        .collect();
    refuel(store, FUEL_SLICE)?;
    let mut call = function
        .call_resumable(&mut *store, arguments, &mut results)
        .map_err(failure)?;
    loop {
        match call {
            ResumableCall::Finished => return Ok(results),
            ResumableCall::OutOfFuel(_) if clock() >= deadline => return Err(CallFailure::Late),
            ResumableCall::OutOfFuel(paused) => {
                refuel(store, paused.required_fuel().saturating_add(FUEL_SLICE))?;
                call = paused.resume(&mut *store, &mut results).map_err(failure)?;
            }
            ResumableCall::HostTrap(_) => return Err(CallFailure::Trapped("host call".to_owned())),
        }
    }
}

/// The features of the pack contract, less the atomic instructions, which this engine lacks.
fn config() -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .ignore_custom_sections(true)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .wasm_extended_const(false)
        .wasm_relaxed_simd(false)
        .set_max_recursion_depth(CALL_DEPTH)
        .set_max_stack_height(VALUE_STACK_BYTES);
    config
}

fn refuel(store: &mut Store<StoreLimits>, fuel: u64) -> Result<(), CallFailure> {
    store.set_fuel(fuel).map_err(failure)
}

fn failure(error: Error) -> CallFailure {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => CallFailure::Late,
        _ => CallFailure::Trapped(error.to_string()),
    }
}

fn scalar(kind: &ValType) -> Option<Scalar> {
    match kind {
        ValType::I32 => Some(Scalar::I32),
        ValType::F32 => Some(Scalar::F32),
        ValType::F64 => Some(Scalar::F64),
        _ => None,
    }
}

/// The argument that `number` is for a parameter of type `scalar`. None for what no 32-bit integer is: there is no wrapping.
pub(crate) fn argument(scalar: Scalar, number: f64) -> Option<Argument> {
    match scalar {
        Scalar::I32 => {
            let fits = number.fract() == 0.0 && (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number);
            fits.then_some(Val::I32(number as i32))
        }
        Scalar::F32 => Some(Val::from(number as f32)),
        Scalar::F64 => Some(Val::from(number)),
    }
}

fn number(value: &Val) -> Option<Number> {
    match value {
        Val::I32(number) => Some(Number::I32(*number)),
        Val::F32(number) => Some(Number::Float(f64::from(number.to_float()))),
        Val::F64(number) => Some(Number::Float(number.to_float())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Calls `f` of the module `text`, with 100 ms and two pages of memory.
    #[expect(clippy::disallowed_methods, reason = "native tests")]
    fn call(text: &str) -> Result<Option<Number>, CallFailure> {
        let compiled = CompiledModule::new(&wat::parse_str(text).unwrap(), 2).map_err(CallFailure::Trapped)?;
        let start = Instant::now();
        let called = compiled.call("f", &[], start + Duration::from_millis(100), Instant::now);
        let taken = start.elapsed();
        assert!(taken < Duration::from_secs(10), "{text}: {taken:?}");
        called
    }

    #[test]
    fn hostile_modules_end_in_time_and_memory() {
        let late = |text| assert_eq!(call(text), Err(CallFailure::Late), "{text}");
        late("(module (func (export \"f\") (loop br 0)))");
        late("(module (func $s (loop br 0)) (start $s) (func (export \"f\")))");
        late(
            "(module (memory 1 2) (func (export \"f\") (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) br 0)))",
        );
        let trapped = |text: &str, why: &str| match call(text) {
            Err(CallFailure::Trapped(message)) => assert!(message.contains(why), "{text}: {message}"),
            other => unreachable!("{text}: {other:?}"),
        };
        trapped(
            "(module (func $g (export \"f\") (result i32) (i32.add (call $g) (i32.const 1))))",
            "stack",
        );
        trapped("(module (memory 3 4) (func (export \"f\")))", "memory");
        trapped("(module (table 2000000 funcref) (func (export \"f\")))", "table");
        trapped("(module (import \"a\" \"b\" (func)) (func (export \"f\")))", "a");
        trapped("(module (func (export \"g\")))", "no function f");
        trapped(
            "(module (memory 1) (memory 1) (func (export \"f\")))",
            "invalid WASM binary",
        );
        trapped("(module (memory i64 1) (func (export \"f\")))", "invalid WASM binary");
    }

    #[test]
    fn growth_stops_at_the_bounds() {
        let grown = |text: &str| call(text).unwrap();
        let page = "(module (memory 1) (func (export \"f\") (result i32) (drop (memory.grow (i32.const 1))) (memory.grow (i32.const 1))))";
        assert_eq!(grown(page), Some(Number::I32(-1)));
        let table = "(module (table 1 funcref) (func (export \"f\") (result i32) (table.grow (ref.null func) (i32.const 0x7fffffff))))";
        assert_eq!(grown(table), Some(Number::I32(-1)));
    }

    #[test]
    fn signatures_are_scalar_or_none() {
        let module = wat::parse_str(
            "(module (memory (export \"m\") 1 1)\
               (func (export \"a\") (param i32 f32 f64) (result f32) local.get 1)\
               (func (export \"b\"))\
               (func (export \"c\") (param i64))\
               (func (export \"d\") (result i32 i32) i32.const 1 i32.const 2)\
               (func (export \"e\") (result funcref) ref.null func)\
               (func (export \"v\") (param v128)))",
        );
        let Ok(compiled) = CompiledModule::new(&module.unwrap(), 1) else {
            unreachable!("the module is valid")
        };
        let parameters = vec![Scalar::I32, Scalar::F32, Scalar::F64];
        let result = Some(Scalar::F32);
        assert_eq!(compiled.signature("a"), Some(Signature { parameters, result }));
        assert_eq!(
            compiled.signature("b"),
            Some(Signature {
                parameters: Vec::new(),
                result: None
            })
        );
        for name in ["c", "d", "e", "v", "m", "nope"] {
            assert_eq!(compiled.signature(name), None, "{name}");
        }
    }

    #[test]
    fn arguments_are_not_wrapped() {
        let cases = [
            (-2_147_483_648.0, true),
            (2_147_483_647.0, true),
            (-0.0, true),
            (2_147_483_648.0, false),
            (-2_147_483_649.0, false),
            (0.5, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ];
        for (number, fits) in cases {
            assert_eq!(argument(Scalar::I32, number).is_some(), fits, "{number}");
            assert!(argument(Scalar::F32, number).is_some() && argument(Scalar::F64, number).is_some());
        }
    }
}
