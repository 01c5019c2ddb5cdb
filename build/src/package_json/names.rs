//! Rules of names in package.json: the pack's name and version, and file strings.

use packferry_core::digest::is_digest;
use packferry_core::id::{FileId, PackName, has_path_escape, is_header_text};
use packferry_core::limits::PACK_LIMITS;

use super::RawPack;
use crate::diagnostics::{PACK_NAME_INVALID, PACK_NAME_RESERVED, VERSION_NOT_DELIVERABLE};
use crate::discover::PackDir;
use crate::json::Node;

/// Names that cannot be a folder of their own, beside files that a staged tree or a package manager puts there.
const RESERVED_PACK_NAMES: [&str; 8] = [
    ".",
    "..",
    "node_modules",
    ".npm",
    ".bin",
    ".cache",
    "manifest.json",
    "staging.json",
];

/// How much of a string from a pack a message quotes.
const QUOTED_CHARS: usize = 100;

/// `text` in quotes, with everything escaped that would not show, and cut where it is long.
#[must_use]
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// How messages name the pack: its name as it stands, if that can be shown, else quoted, else the directory's name.
pub(super) fn label(dir: &PackDir, name: Option<&Node<'_>>) -> String {
    match name.and_then(Node::string) {
        Some(name) if PackName::parse(&name).is_ok() && name.len() <= QUOTED_CHARS => name.into_owned(),
        Some(name) => quoted(&name),
        None => dir.shown.file_name().unwrap_or("the pack").to_owned(),
    }
}

pub(super) fn check_pack_name(pack: &mut RawPack, node: &Node<'_>) {
    let Some(name) = node.string() else { return };
    let Ok(parsed) = PackName::parse(&name) else {
        let message = format!(
            "{} is no package name, so its modules have no specifiers",
            quoted(&name)
        );
        return pack.find(&PACK_NAME_INVALID, node.span(), message);
    };
    let segments = name.strip_prefix('@').unwrap_or(&name).split('/');
    let last = name.rsplit('/').next().unwrap_or_default();
    let dots = segments.into_iter().any(|segment| matches!(segment, "." | ".."));
    if dots || RESERVED_PACK_NAMES.contains(&last) {
        let message = format!(
            "{}: a pack cannot have this name: it is no folder of its own",
            pack.label
        );
        return pack.find(&PACK_NAME_RESERVED, node.span(), message);
    }
    if is_digest(&name) {
        let message = format!(
            "{}: a pack cannot be named like a digest: its ids would look pinned",
            pack.label
        );
        return pack.find(&PACK_NAME_RESERVED, node.span(), message);
    }
    pack.name = Some(parsed);
}

pub(super) fn check_version(pack: &mut RawPack, node: &Node<'_>) {
    let Some(version) = node.string() else { return };
    let limit = PACK_LIMITS.version_chars;
    if is_header_text(&version) && version.len() > limit {
        let message = format!(
            "{}: version {} has {} characters, and the limit is {limit}",
            pack.label,
            quoted(&version),
            version.len()
        );
        return pack.find(&VERSION_NOT_DELIVERABLE, node.span(), message);
    }
    if !is_header_text(&version) {
        let message = format!(
            "{}: version {} cannot be delivered: a header carries printable ASCII without outer spaces",
            pack.label,
            quoted(&version)
        );
        pack.find(&VERSION_NOT_DELIVERABLE, node.span(), message);
    }
}

/// The id of a file string (pack contract, sections 1 and 4).
///
/// # Errors
/// What is wrong with it, as the end of a sentence that begins with the string.
pub fn file_id(text: &str) -> Result<FileId, &'static str> {
    check_file_string(text)?;
    normalized(text)
}

/// What the manifest's schema wants of a file string (pack contract, section 1).
///
/// # Errors
/// As [`file_id`].
pub(super) fn check_file_string(text: &str) -> Result<(), &'static str> {
    if text.is_empty() {
        return Err("is empty");
    }
    if text.starts_with('/') {
        return Err("is not relative to the pack");
    }
    if text.split(['/', '\\']).any(|segment| segment == "..") {
        return Err("holds a .. segment");
    }
    if text.contains('\\') {
        return Err("holds a backslash");
    }
    if text.chars().any(|c| matches!(c, '\0'..='\u{1f}' | '\u{7f}')) {
        return Err("holds a control character");
    }
    if has_path_escape(text) {
        return Err("holds an encoded path traversal");
    }
    Ok(())
}

/// The id of a file string that keeps the schema (pack contract, section 4).
///
/// # Errors
/// As [`file_id`].
pub(super) fn normalized(text: &str) -> Result<FileId, &'static str> {
    if text.split('/').any(str::is_empty) {
        return Err("holds an empty segment");
    }
    FileId::normalize(text).map_err(|_| "names no file")
}
