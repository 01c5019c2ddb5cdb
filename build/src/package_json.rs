//! Stage 2: from a pack directory to its declared manifest. Reads package.json and nothing else; the rules of the manifest
//! are in `package_json/`.

use std::ops::Range;
use std::sync::Arc;

use packferry_core::id::{FileId, PackName};
use packferry_core::limits::PACK_LIMITS;
use packferry_core::payload::{Declaration, FileKind};

use crate::diagnostics::{
    Diagnostic, Findings, PACK_NAME_MISSING, PACKAGE_JSON_INVALID, PACKAGE_JSON_NOT_UNICODE, PACKAGE_JSON_PASSED_OVER,
    PACKAGE_JSON_TOO_LARGE, Rule,
};
use crate::discover::PackDir;
use crate::json::{Kind, Member, Node, first_lone_surrogate, without_lone_surrogates};
use crate::pack_files::{self, Unread};

mod manifest;
mod modules;
mod names;
#[cfg(test)]
mod tests;

pub use modules::is_host_id;
pub use names::{file_id, quoted};

/// The file's name, as diagnostics give it.
pub const PACKAGE_JSON: &str = "package.json";

/// What a package.json says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It declares no sandbox modules; nothing to say about it.
    NotAPack,
    /// It cannot be read as a pack's, or, met on the way, is too large to be read at all.
    Refused {
        /// Its name, where that much is known.
        name: Option<String>,
        /// Why.
        findings: Vec<Diagnostic>,
    },
    /// It declares modules. What is wrong with the declarations is in [`RawPack::findings`].
    Pack(Box<RawPack>),
}

/// A pack whose package.json was read: everything that it declares well, and what it declares badly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPack {
    /// Where it lies.
    pub dir: PackDir,
    /// How messages name the pack: its name, or what stands in its place.
    pub label: String,
    /// Its name; None where that is at fault.
    pub name: Option<PackName>,
    /// `version`, present iff it is a string.
    pub version: Option<String>,
    /// The `internal` strings, in manifest order.
    pub internal: Vec<RawFile>,
    /// The declared modules, in manifest order.
    pub modules: Vec<RawModule>,
    /// The text of package.json, for excerpts.
    pub text: Arc<str>,
    /// What is wrong so far. With an error among them, later stages only look for more.
    pub findings: Findings,
}

/// A file that package.json declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawFile {
    /// As it is declared.
    pub text: String,
    /// Its id.
    pub id: FileId,
    /// Where package.json declares it.
    pub span: Range<usize>,
}

/// A module that package.json declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawModule {
    /// The declaration, exports in manifest order; None where it is at fault.
    pub declaration: Option<Declaration>,
    /// The authored file behind it, where it names one well.
    pub file: Option<(RawFile, FileKind)>,
    /// Where its host id, npm package or file stands, or else the module.
    pub span: Range<usize>,
}

impl RawPack {
    /// Adds a finding with a place in package.json.
    pub fn find(&mut self, rule: &'static Rule, span: Range<usize>, message: impl Into<String>) {
        let diagnostic = Diagnostic::new(rule, message).at(PACKAGE_JSON, Some(span), Some(&self.text));
        self.findings.push(diagnostic);
    }
}

/// Reads the package.json of `dir`: only if it is a regular file, and never more than is needed to tell a pack.
#[must_use]
pub fn read(dir: &PackDir) -> Outcome {
    let path = dir.real.join(PACKAGE_JSON);
    match pack_files::read_document(&path, PACK_LIMITS.package_json_read_bytes) {
        Ok(bytes) if bytes.len() as u64 > PACK_LIMITS.package_json_bytes => match parse(dir, &bytes) {
            Outcome::Pack(pack) => too_large(&PACKAGE_JSON_TOO_LARGE, pack.name.as_ref(), bytes.len() as u64),
            other => other,
        },
        Ok(bytes) => parse(dir, &bytes),
        Err(Unread::Missing | Unread::NotRegular | Unread::Symlink | Unread::Escapes) => Outcome::NotAPack,
        Err(Unread::TooLarge { bytes }) if dir.named => too_large(&PACKAGE_JSON_TOO_LARGE, None, bytes),
        Err(Unread::TooLarge { bytes }) => too_large(&PACKAGE_JSON_PASSED_OVER, None, bytes),
        Err(Unread::Failed(reason)) => {
            let message = format!("invalid package.json: it cannot be read: {reason}");
            refused(
                None,
                Diagnostic::new(&PACKAGE_JSON_INVALID, message).at(PACKAGE_JSON, None, None),
            )
        }
    }
}

fn too_large(rule: &'static Rule, name: Option<&PackName>, bytes: u64) -> Outcome {
    let whose = name.map(|name| format!("{name}: ")).unwrap_or_default();
    let limit = PACK_LIMITS.package_json_bytes;
    let message = format!("{whose}package.json has {bytes} bytes, and the limit is {limit}");
    refused(
        name.map(ToString::to_string),
        Diagnostic::new(rule, message).at(PACKAGE_JSON, None, None),
    )
}

fn refused(name: Option<String>, finding: Diagnostic) -> Outcome {
    Outcome::Refused {
        name,
        findings: vec![finding],
    }
}

/// Reads the text of a package.json.
#[must_use]
pub fn parse(dir: &PackDir, bytes: &[u8]) -> Outcome {
    // Whether it is a pack's is decided as NodeTool does, on text with replacements; only a pack is refused for them.
    let lossy = String::from_utf8_lossy(bytes);
    let text: Arc<str> = Arc::from(lossy.as_ref());
    let readable = without_lone_surrogates(&text);
    let root = match Node::parse(&readable) {
        Ok(root) => root,
        Err(error) => {
            let message = format!("invalid package.json: {}", error.reason);
            let place = error.offset..error.offset;
            return refused(
                None,
                Diagnostic::new(&PACKAGE_JSON_INVALID, message).at(PACKAGE_JSON, Some(place), Some(&text)),
            );
        }
    };
    let Some(members) = root.members() else {
        let message = format!("invalid package.json: it is {}, and must be an object", root.kind());
        let place = root.span().start..root.span().start + 1;
        return refused(
            None,
            Diagnostic::new(&PACKAGE_JSON_INVALID, message).at(PACKAGE_JSON, Some(place), Some(&text)),
        );
    };
    let declared = member(&members, "nodetool").and_then(|nodetool| nodetool.value.members());
    let Some(nodetool) = declared.filter(|keys| member(keys, "sandboxModules").is_some()) else {
        return Outcome::NotAPack;
    };
    let mut pack = RawPack {
        dir: dir.clone(),
        label: names::label(dir, member(&members, "name").map(|name| &name.value)),
        name: None,
        version: member(&members, "version")
            .and_then(|version| version.value.string())
            .map(Into::into),
        internal: Vec::new(),
        modules: Vec::new(),
        text: Arc::clone(&text),
        findings: Findings::default(),
    };
    let name = member(&members, "name").filter(|name| name.value.kind() == Kind::String);
    if name.is_none() {
        let place = member(&members, "name").map_or(root.span().start..root.span().start + 1, |name| name.value.span());
        let message = format!("{}: the sandbox pack has no valid package name", pack.label);
        pack.find(&PACK_NAME_MISSING, place, message);
    }
    manifest::read(&mut pack, &nodetool);
    if pack.modules.is_empty() && !pack.findings.has_errors() {
        return Outcome::NotAPack;
    }
    check_unicode(&mut pack, bytes);
    if let Some(name) = name {
        names::check_pack_name(&mut pack, &name.value);
    }
    if let Some(version) = member(&members, "version") {
        names::check_version(&mut pack, &version.value);
    }
    Outcome::Pack(Box::new(pack))
}

fn member<'m, 'a>(members: &'m [Member<'a>], key: &str) -> Option<&'m Member<'a>> {
    members.iter().find(|member| member.key == key)
}

/// NodeTool reads text with replacements and carries half surrogates through digests; neither can be delivered unchanged.
fn check_unicode(pack: &mut RawPack, bytes: &[u8]) {
    if let Err(error) = std::str::from_utf8(bytes) {
        let at = error.valid_up_to();
        let message = format!("{}: package.json is not UTF-8 at byte {at}", pack.label);
        pack.find(&PACKAGE_JSON_NOT_UNICODE, at..at, message);
    }
    if let Some(place) = first_lone_surrogate(&pack.text) {
        let escape = pack.text.get(place.clone()).unwrap_or_default();
        let message = format!("{}: package.json holds {escape}, half of a surrogate pair", pack.label);
        pack.find(&PACKAGE_JSON_NOT_UNICODE, place, message);
    }
}
