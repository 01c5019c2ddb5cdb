//! Names: packs, modules, files, and the module ids of requests. Text from outside is parsed here once and stays typed.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::digest::{GraphDigest, is_digest};
use crate::limits::MODULE_ID_BYTES;

/// The text is not of the form that the name wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Not a package name.
    #[error("not a package name")]
    Pack,
    /// Not a module name.
    #[error("not a module name")]
    Module,
    /// Not a path inside a pack.
    #[error("invalid package-relative path")]
    File,
}

macro_rules! text_type {
    ($name:ident) => {
        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                Self::parse(&text)
            }
        }
    };
}

/// A pack's name: the package-name form of the pack contract, section 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct PackName(String);
text_type!(PackName);

impl PackName {
    /// Parses `text`: an optional `@scope/`, then one or more of `[A-Za-z0-9._~-]`.
    ///
    /// # Errors
    /// [`InvalidName::Pack`].
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name = match text.strip_prefix('@') {
            Some(scoped) => {
                let (scope, name) = scoped.split_once('/').ok_or(InvalidName::Pack)?;
                if !is_package_segment(scope) {
                    return Err(InvalidName::Pack);
                }
                name
            }
            None => text,
        };
        if is_package_segment(name) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName::Pack)
        }
    }
}

fn is_package_segment(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'~' | b'-'))
}

/// The name of a module inside its pack: `.` for the pack's root, else one or more of `[A-Za-z0-9._-]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ModuleName(String);
text_type!(ModuleName);

impl ModuleName {
    /// Parses `text`.
    ///
    /// # Errors
    /// [`InvalidName::Module`]; `..` and `node_modules` are refused by name.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let legal = !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && text != ".."
            && text != "node_modules";
        if legal {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName::Module)
        }
    }

    /// Whether this is the pack's root module.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0 == "."
    }
}

/// What a workflow asks for: `<pack>` for the root module, else `<pack>/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Specifier(String);
text_type!(Specifier);

impl Specifier {
    /// The specifier of `module` in `pack`.
    #[must_use]
    pub fn new(pack: &PackName, module: &ModuleName) -> Self {
        if module.is_root() {
            Self(pack.0.clone())
        } else {
            Self(format!("{pack}/{module}"))
        }
    }

    /// Parses a package name with at most one further segment.
    ///
    /// # Errors
    /// [`InvalidName`] of the part that is wrong.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let (pack, module) = split_specifier(text);
        PackName::parse(pack)?;
        if let Some(module) = module {
            // `<pack>/.` would be a second spelling of the root.
            if ModuleName::parse(module)?.is_root() {
                return Err(InvalidName::Module);
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The pack's name.
    #[must_use]
    pub fn pack(&self) -> &str {
        split_specifier(&self.0).0
    }

    /// The module's name in its pack: `.` for the root.
    #[must_use]
    pub fn module(&self) -> &str {
        split_specifier(&self.0).1.unwrap_or(".")
    }
}

/// Splits a specifier into the pack's name and what follows it. Total: for text that is no specifier, the first part is
/// what a pack's name would be, and no pack has it.
fn split_specifier(text: &str) -> (&str, Option<&str>) {
    let from = if text.starts_with('@') {
        text.find('/').map_or(text.len(), |slash| slash + 1)
    } else {
        0
    };
    match text.get(from..).and_then(|rest| rest.find('/')) {
        Some(slash) => (text.get(..from + slash).unwrap_or(text), text.get(from + slash + 1..)),
        None => (text, None),
    }
}

/// One source of a pack's graph: a normalized pack-relative path, or `host:<id>` or `npm:<name>` for a generated one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct FileId(String);
text_type!(FileId);

impl FileId {
    /// Takes an id that is already normalized.
    ///
    /// # Errors
    /// [`InvalidName::File`] where [`FileId::normalize`] would refuse it or give another id.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let id = Self::normalize(text)?;
        if id.0 == text { Ok(id) } else { Err(InvalidName::File) }
    }

    /// Normalizes a file string of package.json, or an import resolved against its file (pack contract, section 4):
    /// `\` becomes `/`, `.` segments go; control characters, percent-escapes of dot, slash and backslash, a leading
    /// `/`, and empty or `..` segments are refused, and so is an empty result.
    ///
    /// # Errors
    /// [`InvalidName::File`].
    pub fn normalize(text: &str) -> Result<Self, InvalidName> {
        let path = text.replace('\\', "/");
        if path.bytes().any(|b| b < 0x20 || b == 0x7f) || has_path_escape(&path) || path.starts_with('/') {
            return Err(InvalidName::File);
        }
        let mut segments = Vec::new();
        for segment in path.split('/') {
            match segment {
                "" | ".." => return Err(InvalidName::File),
                "." => {}
                other => segments.push(other),
            }
        }
        if segments.is_empty() {
            Err(InvalidName::File)
        } else {
            Ok(Self(segments.join("/")))
        }
    }

    /// The id of the facade of host module `host`.
    #[must_use]
    pub fn host(host: &str) -> Self {
        Self(format!("host:{host}"))
    }

    /// The id of the bundle of npm package `npm`.
    #[must_use]
    pub fn npm(npm: &str) -> Self {
        Self(format!("npm:{npm}"))
    }

    /// Whether headers can carry the id: printable ASCII that neither begins nor ends with a space.
    #[must_use]
    pub fn is_deliverable(&self) -> bool {
        is_header_text(&self.0)
    }
}

/// Whether `text` can stand in a header and in NodeTool's client unchanged: printable ASCII that neither begins nor ends
/// with a space.
#[must_use]
pub fn is_header_text(text: &str) -> bool {
    text.bytes().all(|b| (0x20..=0x7e).contains(&b)) && !text.starts_with(' ') && !text.ends_with(' ')
}

/// Whether `text` holds a percent-escape of dot, slash or backslash, in either letter case.
#[must_use]
pub fn has_path_escape(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|w| matches!(w, [b'%', b'2', b'e' | b'E' | b'f' | b'F'] | [b'%', b'5', b'c' | b'C']))
}

/// The id cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The module id cannot be decoded.")]
pub struct InvalidModuleId;

/// What a request asks for (wire contract). The text is opaque apart from the split that this type records.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ModuleId {
    /// `<specifier>`: moves with an upgrade of the pack.
    Specifier(String),
    /// `<pack>::<file id>`: moves with an upgrade of the pack.
    File {
        /// The pack's name.
        pack: String,
        /// The file's id in the pack.
        file: String,
    },
    /// `<graph digest>`: the graph's entry, for ever.
    Graph(GraphDigest),
    /// `<graph digest>::<file id>`: a file of the graph, for ever.
    GraphFile {
        /// The graph.
        graph: GraphDigest,
        /// The file's id in the graph.
        file: String,
    },
}

impl ModuleId {
    /// Reads a module id from the path of a request, given what follows the route's prefix: drops one trailing literal
    /// `/`, decodes percent-escapes exactly once, and splits at the first `::`.
    ///
    /// # Errors
    /// [`InvalidModuleId`]: a malformed escape, invalid UTF-8, a control character, or more than 512 bytes after
    /// decoding.
    pub fn from_path(raw: &str) -> Result<Self, InvalidModuleId> {
        let raw = raw.strip_suffix('/').unwrap_or(raw);
        // Every decoded byte takes at most three of the raw ones: no need to decode what must be too long.
        if raw.len() > 3 * MODULE_ID_BYTES {
            return Err(InvalidModuleId);
        }
        let text = String::from_utf8(percent_decode(raw)?).map_err(|_| InvalidModuleId)?;
        if text.len() > MODULE_ID_BYTES || text.chars().any(char::is_control) {
            return Err(InvalidModuleId);
        }
        Ok(Self::split(text))
    }

    /// Splits a decoded id. Total: what is no legal id is one that nothing has.
    #[must_use]
    pub fn split(text: String) -> Self {
        match text.split_once("::") {
            None => match text.parse() {
                Ok(graph) => Self::Graph(graph),
                Err(_) => Self::Specifier(text),
            },
            Some((owner, file)) if is_digest(owner) => match owner.parse() {
                Ok(graph) => Self::GraphFile {
                    graph,
                    file: file.to_owned(),
                },
                Err(_) => Self::Specifier(text),
            },
            Some(("", _) | (_, "")) => Self::Specifier(text),
            Some((pack, file)) => Self::File {
                pack: pack.to_owned(),
                file: file.to_owned(),
            },
        }
    }

    /// Whether the id can never mean anything else.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        matches!(self, Self::Graph(_) | Self::GraphFile { .. })
    }

    /// The pack whose name the id carries; none for a pinned id.
    #[must_use]
    pub fn pack(&self) -> Option<&str> {
        match self {
            Self::Specifier(specifier) => Some(split_specifier(specifier).0),
            Self::File { pack, .. } => Some(pack),
            Self::Graph(_) | Self::GraphFile { .. } => None,
        }
    }
}

impl fmt::Display for ModuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Specifier(specifier) => f.write_str(specifier),
            Self::File { pack, file } => write!(f, "{pack}::{file}"),
            Self::Graph(graph) => write!(f, "{graph}"),
            Self::GraphFile { graph, file } => write!(f, "{graph}::{file}"),
        }
    }
}

/// Decodes percent-escapes once (RFC 3986, section 2.1); `+` is an ordinary character.
///
/// # Errors
/// [`InvalidModuleId`] for a `%` that two hexadecimal digits do not follow.
pub fn percent_decode(raw: &str) -> Result<Vec<u8>, InvalidModuleId> {
    let mut bytes = raw.bytes();
    let mut decoded = Vec::with_capacity(raw.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (Some(high), Some(low)) = (bytes.next().and_then(hex_value), bytes.next().and_then(hex_value)) else {
                return Err(InvalidModuleId);
            };
            decoded.push(high << 4 | low);
        } else {
            decoded.push(byte);
        }
    }
    Ok(decoded)
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack_names() {
        for good in ["a", "@a/b", "Mixed_Case.pack~1", ".", "@./.", "~"] {
            assert!(PackName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "@", "@a", "@/b", "@a/", "a/b", "@a/b/c", "a b", "é", "a:b", "a\n"] {
            assert_eq!(PackName::parse(bad), Err(InvalidName::Pack), "{bad}");
        }
    }

    #[test]
    fn module_names() {
        for good in [".", "...", ".x", "-d", "Sub.Path-1_x"] {
            assert!(ModuleName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "..", "node_modules", "a/b", "a~", "é", "a\n"] {
            assert_eq!(ModuleName::parse(bad), Err(InvalidName::Module), "{bad}");
        }
    }

    #[test]
    fn specifiers_split_after_the_scope() {
        let cases = [
            ("@a/b", "@a/b", "."),
            ("@a/b/c", "@a/b", "c"),
            ("a", "a", "."),
            ("a/b", "a", "b"),
        ];
        for (text, pack, module) in cases {
            let specifier = Specifier::parse(text).unwrap();
            assert_eq!((specifier.pack(), specifier.module()), (pack, module));
            let rebuilt = Specifier::new(&PackName::parse(pack).unwrap(), &ModuleName::parse(module).unwrap());
            assert_eq!(rebuilt, specifier);
        }
        for bad in ["", "@a", "@a/b/c/d", "a/b/c", "a/", "a/.", "a/..", "a/node_modules"] {
            assert!(Specifier::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn file_strings_normalize() {
        let cases = [
            ("a.js", Some("a.js")),
            ("./s/./h.js", Some("s/h.js")),
            ("s\\h.js", Some("s/h.js")),
            ("s/..two.js", Some("s/..two.js")),
            ("a%20b.js", Some("a%20b.js")),
            ("c::d.js", Some("c::d.js")),
            ("", None),
            (".", None),
            ("./", None),
            ("/a.js", None),
            ("\\a.js", None),
            ("../a.js", None),
            ("a/../b.js", None),
            ("a//b.js", None),
            ("a/", None),
            ("%2E%2e/b.js", None),
            ("a%2Fb.js", None),
            ("a%5cb.js", None),
            ("a\u{7f}.js", None),
            ("a\n.js", None),
        ];
        for (text, id) in cases {
            assert_eq!(
                FileId::normalize(text).ok().as_ref().map(FileId::as_str),
                id,
                "{text:?}"
            );
        }
        assert!(FileId::parse("./a.js").is_err());
    }

    #[test]
    fn module_ids_from_paths() {
        let digest = "ab".repeat(32);
        let graph: GraphDigest = digest.parse().unwrap();
        let file = |pack: &str, file: &str| ModuleId::File {
            pack: pack.into(),
            file: file.into(),
        };
        let specifier = |text: &str| ModuleId::Specifier(text.into());
        let cases = [
            ("@acme%2Fgeo".to_owned(), Ok(specifier("@acme/geo"))),
            ("@acme/geo/".to_owned(), Ok(specifier("@acme/geo"))),
            ("@acme/geo//".to_owned(), Ok(specifier("@acme/geo/"))),
            ("@acme%2Fgeo%2F".to_owned(), Ok(specifier("@acme/geo/"))),
            ("%2540acme%252Fgeo".to_owned(), Ok(specifier("%40acme%2Fgeo"))),
            ("a+b".to_owned(), Ok(specifier("a+b"))),
            ("@a/b::c::d.js".to_owned(), Ok(file("@a/b", "c::d.js"))),
            ("::x".to_owned(), Ok(specifier("::x"))),
            ("a::".to_owned(), Ok(specifier("a::"))),
            (digest.clone(), Ok(ModuleId::Graph(graph))),
            (digest.to_uppercase(), Ok(specifier(&digest.to_uppercase()))),
            (
                format!("{digest}::a.js"),
                Ok(ModuleId::GraphFile {
                    graph,
                    file: "a.js".into(),
                }),
            ),
            (
                format!("{digest}::"),
                Ok(ModuleId::GraphFile {
                    graph,
                    file: String::new(),
                }),
            ),
            ("%".to_owned(), Err(InvalidModuleId)),
            ("%zz".to_owned(), Err(InvalidModuleId)),
            ("a%2".to_owned(), Err(InvalidModuleId)),
            ("%+1".to_owned(), Err(InvalidModuleId)),
            ("%c0%af".to_owned(), Err(InvalidModuleId)),
            ("a%00".to_owned(), Err(InvalidModuleId)),
            ("a%7F".to_owned(), Err(InvalidModuleId)),
            ("%C2%85".to_owned(), Err(InvalidModuleId)),
            ("a".repeat(512), Ok(specifier(&"a".repeat(512)))),
            ("a".repeat(513), Err(InvalidModuleId)),
            ("%61".repeat(513), Err(InvalidModuleId)),
        ];
        for (raw, id) in cases {
            assert_eq!(ModuleId::from_path(&raw), id, "{raw}");
        }
    }

    #[test]
    fn ids_print_as_they_were_asked_for() {
        for text in [
            "@a/b/c",
            "@a/b::x::y",
            &"0".repeat(64),
            &format!("{}::a", "0".repeat(64)),
            "::",
            "a::",
        ] {
            assert_eq!(ModuleId::split(String::from(text)).to_string(), text);
        }
    }
}
