//! The ways out of the guest: `console`, and the bridges over which generated facades call WASM modules, host modules and the platform.
//!
//! A bridge is a module whose `__call` is set from here before anything else runs. Nothing of it is a global, and the normaliser
//! gives it to no module but the facades.

use std::rc::Rc;

use rquickjs::function::Rest;
use rquickjs::{Ctx, Exception, Function, Module, Object, Result, Value as JsValue};
use serde_json::Value;

use super::{Shared, value};
use crate::calls::Number;
use crate::host::{HostCall, PlatformCall};
use crate::table::{Bridge, HostModule, ModuleTable};

/// What a bridge's module holds until its `__call` is set.
const BRIDGE: &str = "export let __call; export default (call) => { __call = call; };";

/// Installs `console` and the bridges.
pub(super) fn install<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>) -> Result<()> {
    install_console(ctx, shared)?;
    let for_wasm = Rc::clone(shared);
    let wasm = Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, specifier: String, export: String, arguments: JsValue<'js>| {
            call_wasm(&ctx, &for_wasm, &specifier, &export, &arguments)
        },
    )?;
    set_bridge(ctx, Bridge::Wasm, wasm)?;
    for bridge in [Bridge::Host, Bridge::Capability] {
        let shared = Rc::clone(shared);
        let call = Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>, specifier: String, export: String, arguments: JsValue<'js>| {
                call_embedder(&ctx, &shared, bridge, &specifier, &export, arguments)
            },
        )?;
        set_bridge(ctx, bridge, call)?;
    }
    Ok(())
}

fn set_bridge<'js>(ctx: &Ctx<'js>, bridge: Bridge, call: Function<'js>) -> Result<()> {
    let (module, _) = Module::declare(ctx.clone(), bridge.specifier(), BRIDGE)?.eval()?;
    let set: Function<'js> = module.get("default")?;
    set.call((call,))
}

fn install_console<'js>(ctx: &Ctx<'js>, shared: &Rc<Shared>) -> Result<()> {
    let console = Object::new(ctx.clone())?;
    for level in ["debug", "error", "info", "log", "warn"] {
        let shared = Rc::clone(shared);
        let write = Function::new(ctx.clone(), move |ctx: Ctx<'js>, values: Rest<JsValue<'js>>| {
            write(&ctx, &shared, values);
        })?;
        console.set(level, write)?;
    }
    ctx.globals().set("console", console)
}

fn write<'js>(ctx: &Ctx<'js>, shared: &Shared, values: Rest<JsValue<'js>>) {
    if shared.output.borrow().lines.len() >= shared.limits.output_lines {
        shared.output.borrow_mut().dropped += 1;
        return;
    }
    // Making texts may run guest code that writes, too: the output is borrowed only afterwards.
    let texts: Vec<String> = values.0.into_iter().map(|value| shown(ctx, value)).collect();
    let line = value::shortened(&texts.join(" "), shared.limits.output_chars);
    let mut output = shared.output.borrow_mut();
    if output.lines.len() < shared.limits.output_lines {
        output.lines.push(line);
    } else {
        output.dropped += 1;
    }
}

/// Objects as JSON, errors and everything else as text.
fn shown<'js>(ctx: &Ctx<'js>, value: JsValue<'js>) -> String {
    let plain = value
        .as_object()
        .is_some_and(|object| !object.is_error() && !object.is_function());
    if plain {
        match ctx.json_stringify(value.clone()) {
            Ok(Some(text)) => return value::text(ctx, text.into_value()).unwrap_or_default(),
            Ok(None) => {}
            Err(_) => {
                ctx.catch();
            }
        }
    }
    value::text(ctx, value).unwrap_or_default()
}

fn call_wasm<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    specifier: &str,
    export: &str,
    arguments: &JsValue<'js>,
) -> Result<JsValue<'js>> {
    let refuse = |message: &str| Exception::throw_message(ctx, message);
    let Some(list) = arguments.as_array() else {
        return Err(refuse(&format!(
            "{specifier}: the arguments of {export} must be a list"
        )));
    };
    let numbers: Result<Vec<Option<f64>>> = list
        .iter::<JsValue<'js>>()
        .map(|value| Ok(value?.as_number()))
        .collect();
    let called = shared
        .calls
        .borrow_mut()
        .call(shared.table.wasm(), specifier, export, &numbers?, shared.deadline);
    match called {
        Ok(None) => Ok(JsValue::new_undefined(ctx.clone())),
        Ok(Some(Number::I32(number))) => Ok(JsValue::new_int(ctx.clone(), number)),
        Ok(Some(Number::Float(number))) => Ok(JsValue::new_float(ctx.clone(), number)),
        Err(message) => Err(refuse(&message)),
    }
}

/// A call over one of the bridges that the embedder answers.
fn call_embedder<'js>(
    ctx: &Ctx<'js>,
    shared: &Shared,
    bridge: Bridge,
    specifier: &str,
    export: &str,
    arguments: JsValue<'js>,
) -> Result<JsValue<'js>> {
    let refuse = |message: &str| Exception::throw_message(ctx, message);
    let Some(callee) = Callee::find(&shared.table, bridge, specifier) else {
        return Err(refuse(&format!("{specifier} is not a host module of this run")));
    };
    if !callee.exports().iter().any(|name| name == export) {
        return Err(refuse(&format!("{specifier} has no function {export}")));
    }
    let arguments = value::to_json(ctx, shared, arguments).map_err(|error| refuse(&error.message))?;
    let Value::Array(arguments) = arguments else {
        return Err(refuse(&format!(
            "{specifier}: the arguments of {export} must be a list"
        )));
    };
    let answer = match callee {
        Callee::Host(HostModule { host, pack, .. }) => shared.host.call(HostCall {
            host,
            pack,
            export,
            arguments: &arguments,
        }),
        Callee::Platform(_) => shared.host.call_platform(PlatformCall {
            specifier,
            export,
            arguments: &arguments,
        }),
    };
    match answer {
        Ok(value) => ctx.json_parse(value.to_string()),
        Err(message) => Err(refuse(&message)),
    }
}

/// What a call over a bridge of the embedder's is for.
enum Callee<'a> {
    Host(&'a HostModule),
    /// By its exports.
    Platform(&'a [String]),
}

impl<'a> Callee<'a> {
    fn find(table: &'a ModuleTable, bridge: Bridge, specifier: &str) -> Option<Self> {
        match bridge {
            Bridge::Host => table.host(specifier).map(Self::Host),
            Bridge::Capability => table.platform(specifier).map(Self::Platform),
            Bridge::Wasm => None,
        }
    }

    fn exports(&self) -> &'a [String] {
        match self {
            Self::Host(module) => &module.exports,
            Self::Platform(exports) => exports,
        }
    }
}
