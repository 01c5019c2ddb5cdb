//! Rules of one module of the manifest: its kind, and the keys that the kind wants, each with one `read_*` or `check_*`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use packferry_core::contract::{CallLimits, ExportPair, is_declarable, is_identifier};
use packferry_core::id::{ModuleName, PackName};
use packferry_core::limits::{CALL_LIMIT_CEILINGS, PACK_LIMITS};
use packferry_core::payload::{
    Declaration, ExportDeclaration, FileKind, HostDeclaration, HostKind, JsDeclaration, JsKind, NpmDeclaration,
    WasmDeclaration, WasmKind,
};

use super::{RawFile, RawModule, RawPack, file_id, quoted};
use crate::diagnostics::{
    CALL_LIMIT, DUPLICATE_EXPORT, EXPORT_IDENTIFIER, EXPORT_NAME, EXPORT_NOT_LOADABLE, EXPORTS_EMPTY, FILE_PATH,
    HOST_ID, MANIFEST_SHAPE, MANIFEST_UNKNOWN_KEY, MEMORY_PAGES, MODULE_KIND, MODULE_NAME, MODULE_SOURCE, NPM_NAME,
    Rule,
};
use crate::json::{Kind, Member, Node};

/// The first character of a value: all of a module as an excerpt would say nothing.
pub(super) fn opening(node: &Node<'_>) -> Range<usize> {
    let span = node.span();
    if matches!(node.kind(), Kind::Array | Kind::Object) {
        span.start..span.start + 1
    } else {
        span
    }
}

/// An object of the manifest, with its name in messages.
struct Fields<'p, 'a> {
    pack: &'p mut RawPack,
    path: String,
    opening: Range<usize>,
    members: Vec<Member<'a>>,
}

impl<'p, 'a> Fields<'p, 'a> {
    /// The object at `node`; a finding, if it is none.
    fn of(pack: &'p mut RawPack, path: String, node: &Node<'a>) -> Option<Self> {
        let Some(members) = node.members() else {
            let message = format!("{}: {path} is {}, and must be an object", pack.label, node.kind());
            pack.find(&MANIFEST_SHAPE, opening(node), message);
            return None;
        };
        Some(Self {
            pack,
            path,
            opening: opening(node),
            members,
        })
    }

    fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members
            .iter()
            .find(|member| member.key == key)
            .map(|member| member.value)
    }

    /// Adds a finding about the value at `key`.
    fn find(&mut self, rule: &'static Rule, key: &str, place: Range<usize>, what: &str) {
        let message = format!("{}: {}.{key} {what}", self.pack.label, self.path);
        self.pack.find(rule, place, message);
    }

    fn required(&mut self, key: &str) -> Option<Node<'a>> {
        let node = self.get(key);
        if node.is_none() {
            self.find(&MANIFEST_SHAPE, key, self.opening.clone(), "is missing");
        }
        node
    }

    fn wrong_type(&mut self, key: &str, node: &Node<'_>, wanted: &str) {
        self.find(
            &MANIFEST_SHAPE,
            key,
            opening(node),
            &format!("is {}, and must be {wanted}", node.kind()),
        );
    }

    fn string<'t>(&mut self, key: &str, node: &Node<'t>) -> Option<Cow<'t, str>> {
        let text = node.string();
        if text.is_none() {
            self.wrong_type(key, node, "a string");
        }
        text
    }

    fn check_no_other_keys(&mut self, known: &[&str]) {
        for member in self.members.clone() {
            if !known.contains(&member.key.as_ref()) {
                let message = format!(
                    "{}: {} has an unknown key {}",
                    self.pack.label,
                    self.path,
                    quoted(&member.key)
                );
                self.pack.find(&MANIFEST_UNKNOWN_KEY, member.key_span, message);
            }
        }
    }
}

/// Reads one module, and its name with its place, where it has a legal one.
pub(super) fn read_module(
    pack: &mut RawPack,
    index: usize,
    node: &Node<'_>,
) -> (RawModule, Option<(String, Range<usize>)>) {
    let mut module = RawModule {
        declaration: None,
        file: None,
        span: opening(node),
    };
    let Some(mut fields) = Fields::of(pack, format!("nodetool.sandboxModules[{index}]"), node) else {
        return (module, None);
    };
    let name = read_name(&mut fields);
    match read_kind(&mut fields).as_deref() {
        Some("js") => read_js(&mut fields, name.as_ref(), &mut module),
        Some("wasm") => read_wasm(&mut fields, name.as_ref(), &mut module),
        Some("host") => read_host(&mut fields, name.as_ref(), &mut module),
        _ => {}
    }
    let place = fields.get("name").map(|node| node.span());
    (module, name.map(String::from).zip(place))
}

fn read_name(fields: &mut Fields<'_, '_>) -> Option<ModuleName> {
    let node = fields.required("name")?;
    let text = fields.string("name", &node)?;
    let name = ModuleName::parse(&text).ok();
    if name.is_none() {
        let what = if matches!(text.as_ref(), ".." | "node_modules") {
            format!("{} is a reserved module name", quoted(&text))
        } else {
            format!("{} must be . or one path segment of A-Z a-z 0-9 . _ -", quoted(&text))
        };
        fields.find(&MODULE_NAME, "name", node.span(), &what);
    }
    name
}

fn read_kind<'a>(fields: &mut Fields<'_, 'a>) -> Option<Cow<'a, str>> {
    let Some(node) = fields.get("kind") else {
        fields.find(
            &MODULE_KIND,
            "kind",
            fields.opening.clone(),
            "is missing: js, wasm or host",
        );
        return None;
    };
    let kind = node
        .string()
        .filter(|kind| matches!(kind.as_ref(), "js" | "wasm" | "host"));
    if kind.is_none() {
        let shown = node
            .string()
            .map_or_else(|| node.kind().to_string(), |text| quoted(&text));
        fields.find(
            &MODULE_KIND,
            "kind",
            opening(&node),
            &format!("is {shown}, and must be js, wasm or host"),
        );
    }
    kind
}

fn read_js(fields: &mut Fields<'_, '_>, name: Option<&ModuleName>, module: &mut RawModule) {
    fields.check_no_other_keys(&["name", "kind", "file", "npm"]);
    let file = fields.get("file").map(|node| read_file(fields, &node));
    let npm = fields.get("npm").map(|node| (read_npm(fields, &node), node.span()));
    let kind = JsKind::Js;
    match (file, npm) {
        (Some(file), None) => {
            let Some(file) = file else { return };
            module.span = file.span.clone();
            module.declaration = name.map(|name| {
                Declaration::Js(JsDeclaration {
                    name: name.clone(),
                    kind,
                    file: file.text.clone(),
                })
            });
            module.file = Some((file, FileKind::Js));
        }
        (None, Some((npm, place))) => {
            module.span = place;
            module.declaration = name.zip(npm).map(|(name, npm)| {
                Declaration::Npm(NpmDeclaration {
                    name: name.clone(),
                    kind,
                    npm,
                })
            });
        }
        (Some(file), Some(_)) => {
            check_one_source(fields, "has both");
            module.file = file.map(|file| (file, FileKind::Js));
        }
        (None, None) => check_one_source(fields, "has neither"),
    }
}

fn check_one_source(fields: &mut Fields<'_, '_>, what: &str) {
    let message = format!(
        "{}: {} {what}: a JS module must declare exactly one of file or npm",
        fields.pack.label, fields.path
    );
    fields.pack.find(&MODULE_SOURCE, fields.opening.clone(), message);
}

fn read_file(fields: &mut Fields<'_, '_>, node: &Node<'_>) -> Option<RawFile> {
    let text = fields.string("file", node)?;
    match file_id(&text) {
        Ok(id) => Some(RawFile {
            text: text.into_owned(),
            id,
            span: node.span(),
        }),
        Err(fault) => {
            fields.find(&FILE_PATH, "file", node.span(), &format!("{} {fault}", quoted(&text)));
            None
        }
    }
}

fn read_npm(fields: &mut Fields<'_, '_>, node: &Node<'_>) -> Option<String> {
    let text = fields.string("npm", node)?;
    // The package-name form has room for neither control characters nor escapes.
    if PackName::parse(&text).is_err() || matches!(text.as_ref(), "." | "..") {
        fields.find(
            &NPM_NAME,
            "npm",
            node.span(),
            &format!("{} is no package name", quoted(&text)),
        );
        return None;
    }
    Some(text.into_owned())
}

fn read_host(fields: &mut Fields<'_, '_>, name: Option<&ModuleName>, module: &mut RawModule) {
    fields.check_no_other_keys(&["name", "kind", "host"]);
    let Some(node) = fields.required("host") else { return };
    let Some(host) = fields.string("host", &node) else {
        return;
    };
    if !is_host_id(&host) {
        return fields.find(
            &HOST_ID,
            "host",
            node.span(),
            &format!("{} is no host module id", quoted(&host)),
        );
    }
    module.span = node.span();
    module.declaration = name.map(|name| {
        Declaration::Host(HostDeclaration {
            name: name.clone(),
            kind: HostKind::Host,
            host: host.into_owned(),
        })
    });
}

/// Whether `text` may name a host module: 1 to 64 of `[a-z0-9-]`, a letter first.
#[must_use]
pub fn is_host_id(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

fn read_wasm(fields: &mut Fields<'_, '_>, name: Option<&ModuleName>, module: &mut RawModule) {
    fields.check_no_other_keys(&["name", "kind", "file", "memoryPagesMax", "exports", "limits"]);
    let file = fields.required("file").and_then(|node| read_file(fields, &node));
    let pages = fields
        .required("memoryPagesMax")
        .and_then(|node| read_memory_pages(fields, &node));
    let exports = fields.required("exports").and_then(|node| read_exports(fields, &node));
    let limits = match fields.get("limits") {
        None => Some(None),
        Some(node) => read_limits(fields, &node).map(Some),
    };
    let Some(file) = file else { return };
    module.span = file.span.clone();
    if let (Some(name), Some(memory_pages_max), Some(exports), Some(limits)) = (name, pages, exports, limits) {
        module.declaration = Some(Declaration::Wasm(WasmDeclaration {
            name: name.clone(),
            kind: WasmKind::Wasm,
            file: file.text.clone(),
            memory_pages_max,
            limits,
            exports,
        }));
    }
    module.file = Some((file, FileKind::Wasm));
}

/// The integer that JavaScript reads at `node`, if it is one from `least` to `most`.
fn integer(node: &Node<'_>, least: u64, most: u64) -> Option<u64> {
    let number = node.number()?;
    #[expect(clippy::cast_precision_loss, reason = "the bounds are small")]
    let in_range = number.fract() == 0.0 && number >= least as f64 && number <= most as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be an integer in range"
    )]
    in_range.then_some(number as u64)
}

fn read_memory_pages(fields: &mut Fields<'_, '_>, node: &Node<'_>) -> Option<u64> {
    let most = PACK_LIMITS.wasm_memory_pages;
    let pages = integer(node, 0, most);
    if pages.is_none() {
        let what = format!("is {}, and must be an integer from 0 to {most}", shown(node));
        fields.find(&MEMORY_PAGES, "memoryPagesMax", opening(node), &what);
    }
    pages
}

fn shown(node: &Node<'_>) -> String {
    if node.kind() == Kind::Number && node.raw().len() <= 40 {
        node.raw().to_owned()
    } else {
        node.kind().to_string()
    }
}

fn read_limits(fields: &mut Fields<'_, '_>, node: &Node<'_>) -> Option<CallLimits> {
    let path = format!("{}.limits", fields.path);
    let mut limits = Fields::of(fields.pack, path, node)?;
    limits.check_no_other_keys(&["callTimeoutMs", "callConcurrency", "callsPerInvocation", "wallClockMs"]);
    let ceilings = CALL_LIMIT_CEILINGS;
    let read = [
        read_limit(&mut limits, "callTimeoutMs", ceilings.call_timeout_ms),
        read_limit(&mut limits, "callConcurrency", ceilings.call_concurrency),
        read_limit(&mut limits, "callsPerInvocation", ceilings.calls_per_invocation),
        read_limit(&mut limits, "wallClockMs", ceilings.wall_clock_ms),
    ];
    let [
        Ok(call_timeout_ms),
        Ok(call_concurrency),
        Ok(calls_per_invocation),
        Ok(wall_clock_ms),
    ] = read
    else {
        return None;
    };
    Some(CallLimits {
        call_timeout_ms,
        call_concurrency,
        calls_per_invocation,
        wall_clock_ms,
    })
}

/// An optional limit; `Err` where it is at fault, and the finding is made.
fn read_limit(limits: &mut Fields<'_, '_>, key: &str, ceiling: u64) -> Result<Option<u64>, ()> {
    let Some(node) = limits.get(key) else { return Ok(None) };
    let limit = integer(&node, 1, ceiling);
    if limit.is_none() {
        let what = format!("is {}, and must be an integer from 1 to {ceiling}", shown(&node));
        limits.find(&CALL_LIMIT, key, opening(&node), &what);
    }
    limit.map(Some).ok_or(())
}

fn read_exports(fields: &mut Fields<'_, '_>, node: &Node<'_>) -> Option<Vec<ExportDeclaration>> {
    let Some(elements) = node.elements() else {
        fields.wrong_type("exports", node, "an array");
        return None;
    };
    if elements.is_empty() {
        fields.find(
            &EXPORTS_EMPTY,
            "exports",
            node.span(),
            "is empty: there is nothing to call",
        );
        return None;
    }
    let mut exports = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        if let Some(export) = read_export(fields, index, element) {
            exports.push((export, element.span()));
        }
    }
    check_exports_are_distinct(fields, &exports);
    (exports.len() == elements.len()).then(|| exports.into_iter().map(|(export, _)| export).collect())
}

fn read_export(fields: &mut Fields<'_, '_>, index: usize, node: &Node<'_>) -> Option<ExportDeclaration> {
    let key = format!("exports[{index}]");
    if let Some(name) = node.string() {
        return check_identifier(fields, &key, &name, node).then(|| ExportDeclaration::Name(name.into_owned()));
    }
    if node.kind() != Kind::Object {
        fields.wrong_type(&key, node, "an identifier or {\"wasm\", \"as\"}");
        return None;
    }
    let path = format!("{}.{key}", fields.path);
    let mut pair = Fields::of(fields.pack, path, node)?;
    pair.check_no_other_keys(&["wasm", "as"]);
    let wasm = pair
        .required("wasm")
        .and_then(|node| read_export_name(&mut pair, &node));
    let alias = pair.required("as").and_then(|node| {
        let alias = pair.string("as", &node)?;
        check_identifier(&mut pair, "as", &alias, &node).then(|| alias.into_owned())
    });
    let (wasm, alias) = wasm.zip(alias)?;
    Some(ExportDeclaration::Pair(ExportPair { wasm, alias }))
}

fn read_export_name(pair: &mut Fields<'_, '_>, node: &Node<'_>) -> Option<String> {
    let name = pair.string("wasm", node)?;
    let what = if name.is_empty() {
        "is empty".to_owned()
    } else if name.chars().any(|c| matches!(c, '\0'..='\u{1f}' | '\u{7f}')) {
        format!("{} holds a control character", quoted(&name))
    } else if !name.is_ascii() {
        format!("{} is not ASCII: no header carries it to every client", quoted(&name))
    } else {
        return Some(name.into_owned());
    };
    pair.find(&EXPORT_NAME, "wasm", node.span(), &what);
    None
}

fn check_identifier(fields: &mut Fields<'_, '_>, key: &str, text: &str, node: &Node<'_>) -> bool {
    let legal = is_identifier(text);
    if !legal {
        let what = format!(
            "{} must be a valid JavaScript identifier, ASCII and not reserved",
            quoted(text)
        );
        fields.find(&EXPORT_IDENTIFIER, key, node.span(), &what);
    } else if !is_declarable(text) {
        let what = format!("{text} cannot be declared by a facade: no guest will load the module");
        fields.find(&EXPORT_NOT_LOADABLE, key, node.span(), &what);
    }
    legal
}

fn check_exports_are_distinct(fields: &mut Fields<'_, '_>, exports: &[(ExportDeclaration, Range<usize>)]) {
    let mut names = HashSet::new();
    let mut aliases = HashSet::new();
    for (export, place) in exports {
        if !names.insert(export.wasm()) {
            let what = format!("has a duplicate WASM export: {}", quoted(export.wasm()));
            fields.find(&DUPLICATE_EXPORT, "exports", place.clone(), &what);
        }
        if !aliases.insert(export.alias()) {
            let what = format!("has a duplicate export alias: {}", quoted(export.alias()));
            fields.find(&DUPLICATE_EXPORT, "exports", place.clone(), &what);
        }
    }
}
