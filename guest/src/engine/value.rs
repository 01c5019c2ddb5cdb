//! Values that leave the guest: results as JSON, thrown values as errors. Whatever runs guest code here (getters, `toJSON`,
//! `toString`) runs within the bounds of the run.

use rquickjs::convert::Coerced;
use rquickjs::{Ctx, Error, Object, Value as JsValue};
use serde_json::Value;

use super::Shared;
use crate::error::{GuestError, GuestErrorKind};
use crate::limits::Limits;

/// Characters kept of a thrown error's message, and of its stack.
const TEXT_CHARS: usize = 2_000;

/// The result that `value` stands for.
pub(super) fn to_json<'js>(ctx: &Ctx<'js>, shared: &Shared, value: JsValue<'js>) -> Result<Value, GuestError> {
    let refuse = |message: String| GuestError::new(GuestErrorKind::Result, message);
    let text = match ctx.json_stringify(value) {
        Ok(None) => return Ok(Value::Null),
        Ok(Some(text)) => text.to_string(),
        Err(error) => {
            let mut error = thrown(ctx, shared, error);
            if error.kind == GuestErrorKind::Thrown {
                error.kind = GuestErrorKind::Result;
            }
            return Err(error);
        }
    };
    let text = text.map_err(|error| thrown(ctx, shared, error))?;
    if text.len() > shared.limits.result_bytes {
        let (length, most) = (text.len(), shared.limits.result_bytes);
        return Err(refuse(format!(
            "the result is {length} bytes of JSON, and may be {most}"
        )));
    }
    serde_json::from_str(&text)
        .map_err(|error| refuse(format!("the result cannot be taken out of the sandbox: {error}")))
}

/// The run's error once it is overdue.
pub(super) fn late(limits: &Limits) -> GuestError {
    let milliseconds = limits.deadline.as_millis();
    let message = format!("interrupted: the code ran longer than {milliseconds} ms");
    GuestError::new(GuestErrorKind::Deadline, message)
}

/// What `error` tells. Takes a pending exception off the engine.
pub(super) fn thrown(ctx: &Ctx<'_>, shared: &Shared, error: Error) -> GuestError {
    let denied_to = shared.denied_to.take();
    let exhausted = || {
        let message = format!("out of memory: the sandbox may use {} bytes", shared.limits.heap_bytes);
        GuestError::new(GuestErrorKind::Memory, message)
    };
    let null = || {
        let exhausted = exhausted();
        let message = format!("thrown: null, or {exhausted}");
        GuestError { message, ..exhausted }
    };
    let mut failure = match error {
        Error::Exception | Error::Unknown => describe(ctx, ctx.catch()).unwrap_or_else(null),
        Error::Allocation => exhausted(),
        other => GuestError::new(GuestErrorKind::Thrown, other.to_string()),
    };
    if shared.is_overdue() {
        return late(&shared.limits);
    }
    if failure.message == "InternalError: out of memory" {
        let stack = failure.stack;
        failure = GuestError { stack, ..exhausted() };
    }
    failure.pack = denied_to.or_else(|| pack_of(&failure.stack));
    failure
}

/// The error for a thrown value. None for null, which the engine throws where no memory is left for an error object.
fn describe<'js>(ctx: &Ctx<'js>, value: JsValue<'js>) -> Option<GuestError> {
    if value.is_null() {
        return None;
    }
    let (message, stack) = match value.as_object() {
        Some(object) if object.is_error() => (error_text(ctx, object), text_of(ctx, object, "stack")),
        _ => (text(ctx, value).map(|text| format!("thrown: {text}")), None),
    };
    let message = message.unwrap_or_else(|| "a value was thrown that has no text".to_owned());
    let mut error = GuestError::new(GuestErrorKind::Thrown, message);
    error.stack = stack.unwrap_or_default();
    Some(error)
}

/// `<name>: <message>`.
fn error_text<'js>(ctx: &Ctx<'js>, error: &Object<'js>) -> Option<String> {
    let name = text_of(ctx, error, "name");
    let message = text_of(ctx, error, "message");
    match (name, message) {
        (Some(name), Some(message)) => Some(format!("{name}: {message}")),
        (one, other) => one.or(other),
    }
}

fn text_of<'js>(ctx: &Ctx<'js>, object: &Object<'js>, key: &str) -> Option<String> {
    match object.get::<_, JsValue<'js>>(key) {
        Ok(value) if !value.is_undefined() => text(ctx, value),
        Ok(_) => None,
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

/// `value` as text, as long as the engine can make it one.
pub(super) fn text<'js>(ctx: &Ctx<'js>, value: JsValue<'js>) -> Option<String> {
    match value.get::<Coerced<String>>() {
        Ok(Coerced(text)) => Some(shortened(&text, TEXT_CHARS)),
        Err(_) => {
            ctx.catch();
            None
        }
    }
}

/// At most `most` characters of `text`.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => text.get(..end).unwrap_or(text).to_owned(),
        None => text.to_owned(),
    }
}

/// The pack of the uppermost frame that is a file's.
fn pack_of(stack: &str) -> Option<String> {
    let frame = stack.lines().find(|line| !line.ends_with("(native)"))?;
    let (_, id) = frame.split_once("nodetool-sandbox:")?;
    let (folder, _) = id.split_once('|')?;
    // A version of its own is `<pack>@<graph digest>`; a scope's `@` comes first.
    let version = folder.char_indices().skip(1).find(|(_, c)| *c == '@');
    Some(
        version
            .map_or(folder, |(at, _)| folder.get(..at).unwrap_or(folder))
            .to_owned(),
    )
}
