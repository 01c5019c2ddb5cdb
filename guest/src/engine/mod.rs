//! The engine at work: one runtime on a thread of its own, from the hardened globals to the result. This folder is the only place
//! that knows rquickjs.

mod bridge;
mod loader;
mod value;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use rquickjs::object::Filter;
use rquickjs::promise::PromiseState;
use rquickjs::{Context, Ctx, Function, Module, Object, Promise, Runtime, Value as JsValue};
use serde_json::Value;

use crate::calls::WasmCalls;
use crate::error::{GuestError, GuestErrorKind};
use crate::host::HostDispatcher;
use crate::limits::Limits;
use crate::resolve::Phase;
use crate::run::Outcome;
use crate::script;
use crate::table::{BUNDLE, ModuleTable};

/// Removes what engines put back for each evaluation, on the first line of every source (pack contract, section 15).
const PREFIX: &str = "delete globalThis.setTimeout; delete globalThis.clearTimeout; delete globalThis.setInterval; \
                      delete globalThis.clearInterval; delete globalThis.setImmediate; delete globalThis.clearImmediate; ";

/// Makes the globals those of the guest.
const HARDEN: &str = include_str!("harden.js");

/// The name of the user's code in stacks. No guest id looks like it.
const SCRIPT: &str = "script";

/// Native stack beyond the engine's own bound: what its builtins and our callbacks may use after its last check.
const STACK_MARGIN: usize = 3 << 20;

/// How long a guest that missed its deadline may take to notice.
const GRACE: Duration = Duration::from_secs(1);

/// What a run evaluates.
pub(crate) enum Entry<'a> {
    /// User code; its result is what it returns.
    Script(&'a str),
    /// The run's one file; its result is the list of names that it exports.
    Names,
}

/// What `console` was given.
#[derive(Default)]
struct Output {
    lines: Vec<String>,
    dropped: u64,
}

/// What the engine's callbacks share. All of it lives on the guest's thread.
struct Shared {
    table: ModuleTable,
    limits: Limits,
    deadline: Instant,
    /// Set once the deadline was missed: an interrupt inside a promise job is swallowed by the engine.
    overdue: Cell<bool>,
    phase: Cell<Phase>,
    /// The pack whose file asked for the import that was denied last.
    denied_to: RefCell<Option<String>>,
    output: RefCell<Output>,
    calls: RefCell<WasmCalls>,
    host: Arc<dyn HostDispatcher>,
}

impl Shared {
    fn is_overdue(&self) -> bool {
        if !self.overdue.get() && now() >= self.deadline {
            self.overdue.set(true);
        }
        self.overdue.get()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the guest is native only, and its deadline needs the clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Runs `entry` in a guest of its own.
pub(crate) fn evaluate(
    table: ModuleTable,
    limits: Limits,
    host: &Arc<dyn HostDispatcher>,
    entry: Entry<'_>,
) -> Outcome {
    let text = match entry {
        Entry::Script(code) => script::as_module(code, limits.script_bytes),
        Entry::Names => Ok(format!(
            "import * as names from \"{BUNDLE}\"; export {{ names as default }};"
        )),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return failed(error),
    };
    let finish: Finish = match entry {
        Entry::Script(_) => returned,
        Entry::Names => names,
    };
    let (answer, answered) = mpsc::sync_channel(1);
    let host = Arc::clone(host);
    let guest = std::thread::Builder::new().stack_size(limits.stack_bytes + STACK_MARGIN);
    let thread = guest.spawn(move || answer.send(on_this_thread(table, limits, host, &text, finish)));
    if let Err(error) = thread {
        return failed(fault(&format!("the guest's thread could not be started: {error}")));
    }
    // Some of the engine's builtins never look at the clock. Such a thread is given up and runs until the process ends.
    match answered.recv_timeout(limits.deadline + GRACE) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => failed(value::late(&limits)),
        Err(RecvTimeoutError::Disconnected) => failed(fault("the guest failed")),
    }
}

fn failed(error: GuestError) -> Outcome {
    Outcome {
        result: Err(error),
        output: Vec::new(),
        output_dropped: 0,
    }
}

fn fault(message: &str) -> GuestError {
    GuestError::new(GuestErrorKind::Fault, message)
}

/// Makes the result from the entry's default export.
type Finish = for<'js> fn(&Ctx<'js>, &Shared, JsValue<'js>) -> Result<Value, GuestError>;

fn on_this_thread(
    table: ModuleTable,
    limits: Limits,
    host: Arc<dyn HostDispatcher>,
    text: &str,
    finish: Finish,
) -> Outcome {
    let calls = WasmCalls::new(table.wasm(), now);
    let shared = Rc::new(Shared {
        table,
        limits,
        deadline: now() + limits.deadline,
        overdue: Cell::new(false),
        phase: Cell::new(Phase::Linking),
        denied_to: RefCell::new(None),
        output: RefCell::default(),
        calls: RefCell::new(calls),
        host,
    });
    let result = in_runtime(&shared, text, finish);
    let result = if shared.overdue.get() {
        Err(value::late(&shared.limits))
    } else {
        result
    };
    let Output { lines, dropped } = shared.output.take();
    Outcome {
        result,
        output: lines,
        output_dropped: dropped,
    }
}

fn in_runtime(shared: &Rc<Shared>, text: &str, finish: Finish) -> Result<Value, GuestError> {
    let set_up = |error: rquickjs::Error| fault(&format!("the engine could not be set up: {error}"));
    let runtime = Runtime::new().map_err(set_up)?;
    runtime.set_memory_limit(shared.limits.heap_bytes);
    runtime.set_max_stack_size(shared.limits.stack_bytes);
    let watched = Rc::clone(shared);
    runtime.set_interrupt_handler(Some(Box::new(move || watched.is_overdue())));
    runtime.set_loader(loader::Names(Rc::clone(shared)), loader::Files(Rc::clone(shared)));
    let context = Context::full(&runtime).map_err(set_up)?;
    context.with(|ctx| {
        set_globals(&ctx, shared).map_err(|error| value::thrown(&ctx, shared, error))?;
        let exported = run_entry(&ctx, shared, text)?;
        finish(&ctx, shared, exported)
    })
}

fn set_globals(ctx: &Ctx<'_>, shared: &Rc<Shared>) -> rquickjs::Result<()> {
    ctx.eval::<(), _>(HARDEN)?;
    bridge::install(ctx, shared)
}

/// Links the entry with everything that it reaches, locks the loader, evaluates, and gives the entry's default export.
fn run_entry<'js>(ctx: &Ctx<'js>, shared: &Shared, text: &str) -> Result<JsValue<'js>, GuestError> {
    let error = |error| value::thrown(ctx, shared, error);
    let module = Module::declare(ctx.clone(), SCRIPT, format!("{PREFIX}{text}")).map_err(error)?;
    shared.phase.set(Phase::Locked);
    let (module, evaluated) = module.eval().map_err(error)?;
    settle(ctx, shared, &evaluated)?;
    module.get("default").map_err(error)
}

/// Runs promise jobs until `promise` is settled.
fn settle<'js>(ctx: &Ctx<'js>, shared: &Shared, promise: &Promise<'js>) -> Result<JsValue<'js>, GuestError> {
    loop {
        if shared.is_overdue() {
            return Err(value::late(&shared.limits));
        }
        if promise.state() != PromiseState::Pending {
            let settled = promise.result::<JsValue<'js>>();
            let settled = settled.unwrap_or_else(|| Err(rquickjs::Error::Unknown));
            return settled.map_err(|error| value::thrown(ctx, shared, error));
        }
        if !ctx.execute_pending_job() {
            let message = "the code waits for a promise that nothing in the sandbox can settle";
            return Err(GuestError::new(GuestErrorKind::Unsettled, message));
        }
    }
}

/// Calls the user's function and gives what it returns as JSON.
fn returned<'js>(ctx: &Ctx<'js>, shared: &Shared, function: JsValue<'js>) -> Result<Value, GuestError> {
    let error = |error| value::thrown(ctx, shared, error);
    let function = Function::from_value(function).map_err(error)?;
    let promise: Promise<'js> = function.call(()).map_err(error)?;
    let result = settle(ctx, shared, &promise)?;
    value::to_json(ctx, shared, result)
}

/// The names of a namespace object. No property is read and no function of the guest is called.
fn names<'js>(ctx: &Ctx<'js>, shared: &Shared, namespace: JsValue<'js>) -> Result<Value, GuestError> {
    let error = |error| value::thrown(ctx, shared, error);
    let namespace = Object::from_value(namespace).map_err(error)?;
    let names = namespace.own_keys::<String>(Filter::new().string());
    names
        .map(|name| name.map(Value::String))
        .collect::<Result<_, _>>()
        .map(Value::Array)
        .map_err(error)
}
