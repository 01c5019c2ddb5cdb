//! Where an import leads (pack contract, section 6): from the text between the quotes to a declared file of the pack. Reads nothing.

use std::collections::BTreeMap;

use packferry_core::id::FileId;
use packferry_core::payload::FileKind;

use crate::diagnostics::{IMPORT_ESCAPES, IMPORT_NOT_JS, IMPORT_OUTSIDE, IMPORT_PATH, IMPORT_UNDECLARED, Rule};
use crate::package_json::quoted;

/// Why an import leads to no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Astray {
    /// It is not relative.
    Outside,
    /// It leaves the pack's directory.
    Escapes,
    /// It is no path of a file.
    NoPath,
    /// No declared file has that id.
    Undeclared,
    /// The file is no JavaScript.
    NotJs,
}

impl Astray {
    /// The rule that was broken.
    #[must_use]
    pub fn rule(self) -> &'static Rule {
        match self {
            Self::Outside => &IMPORT_OUTSIDE,
            Self::Escapes => &IMPORT_ESCAPES,
            Self::NoPath => &IMPORT_PATH,
            Self::Undeclared => &IMPORT_UNDECLARED,
            Self::NotJs => &IMPORT_NOT_JS,
        }
    }

    /// The sentence about `source`, to stand behind the file's name.
    #[must_use]
    pub fn sentence(self, source: &str) -> String {
        let source = quoted(source);
        match self {
            Self::Outside => format!("import outside the pack: {source}"),
            Self::Escapes => format!("import escapes the package: {source}"),
            Self::NoPath => format!("import of an invalid package-relative path: {source}"),
            Self::Undeclared => {
                format!("imported file {source} is not declared as a public or internal file")
            }
            Self::NotJs => format!("JS import targets non-JS module {source}"),
        }
    }
}

/// Whether the guest denies an import that [`resolve`] takes: file ids have no backslash, and the guest turns none into a slash.
#[must_use]
pub fn is_denied_in_guest(source: &str) -> bool {
    source.contains('\\')
}

/// The file that `importer` means by `source`. No extension is guessed.
///
/// # Errors
/// [`Astray`].
pub fn resolve(importer: &FileId, source: &str, declared: &BTreeMap<FileId, FileKind>) -> Result<FileId, Astray> {
    if !source.starts_with('.') {
        return Err(Astray::Outside);
    }
    let mut path: Vec<&str> = importer.as_str().split('/').collect();
    path.pop();
    for segment in source.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                // Also where it would lead back in by the directory's own name: no pack may depend on what that is.
                path.pop().ok_or(Astray::Escapes)?;
            }
            segment => path.push(segment),
        }
    }
    let id = FileId::normalize(&path.join("/")).map_err(|_| Astray::NoPath)?;
    match declared.get(&id) {
        Some(FileKind::Js) => Ok(id),
        Some(FileKind::Wasm) => Err(Astray::NotJs),
        None => Err(Astray::Undeclared),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn declared() -> BTreeMap<FileId, FileKind> {
        let files = [
            ("a.js", FileKind::Js),
            ("s/b.js", FileKind::Js),
            ("s/t/c.js", FileKind::Js),
            ("s/..two.js", FileKind::Js),
            ("s/.x/d.js", FileKind::Js),
            ("s/a%20b.js", FileKind::Js),
            ("w.wasm", FileKind::Wasm),
        ];
        files
            .into_iter()
            .map(|(id, kind)| (FileId::parse(id).unwrap(), kind))
            .collect()
    }

    #[test]
    fn imports_lead_where_the_contract_says() {
        let cases = [
            ("a.js", "./s/b.js", Ok("s/b.js")),
            ("s/b.js", "../a.js", Ok("a.js")),
            ("s/b.js", "./t/c.js", Ok("s/t/c.js")),
            ("s/t/c.js", "../.././a.js", Ok("a.js")),
            ("s/b.js", "./t/../b.js", Ok("s/b.js")),
            ("s/b.js", ".//b.js", Ok("s/b.js")),
            ("s/b.js", "./b.js/", Ok("s/b.js")),
            ("s/b.js", "./..two.js", Ok("s/..two.js")),
            ("s/b.js", "..two.js", Ok("s/..two.js")),
            ("s/b.js", ".x/d.js", Ok("s/.x/d.js")),
            ("s/b.js", ".\\b.js", Ok("s/b.js")),
            ("s/b.js", "./a%20b.js", Ok("s/a%20b.js")),
            ("a.js", "left-pad", Err(Astray::Outside)),
            ("a.js", "node:fs", Err(Astray::Outside)),
            ("a.js", "/etc/passwd", Err(Astray::Outside)),
            ("a.js", "https://example.invalid/x.js", Err(Astray::Outside)),
            ("a.js", "nodetool:wasm-bridge", Err(Astray::Outside)),
            ("a.js", "s/b.js", Err(Astray::Outside)),
            ("a.js", "#x", Err(Astray::Outside)),
            ("a.js", "", Err(Astray::Outside)),
            ("a.js", "../a.js", Err(Astray::Escapes)),
            ("s/b.js", "../../outside.js", Err(Astray::Escapes)),
            ("s/b.js", "../../pack/a.js", Err(Astray::Escapes)),
            ("s/b.js", "./%2e%2e/a.js", Err(Astray::NoPath)),
            ("s/b.js", "./x%2Fb.js", Err(Astray::NoPath)),
            ("s/b.js", "..\\a.js", Err(Astray::NoPath)),
            ("s/b.js", "./b\n.js", Err(Astray::NoPath)),
            ("s/b.js", "..", Err(Astray::NoPath)),
            ("a.js", ".", Err(Astray::NoPath)),
            ("a.js", "./s/..", Err(Astray::NoPath)),
            ("a.js", "./s", Err(Astray::Undeclared)),
            ("a.js", "./a", Err(Astray::Undeclared)),
            ("a.js", "./A.js", Err(Astray::Undeclared)),
            ("a.js", "./a.js?x", Err(Astray::Undeclared)),
            ("a.js", "./gone.js", Err(Astray::Undeclared)),
            ("a.js", "./w.wasm", Err(Astray::NotJs)),
        ];
        for (importer, source, expected) in cases {
            let found = resolve(&FileId::parse(importer).unwrap(), source, &declared());
            assert_eq!(
                found.as_ref().map(FileId::as_str),
                expected.as_ref().copied(),
                "{importer}: {source:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_leads_out_or_panics(source in "[./\\\\%2eEfFa-c\n]{0,16}") {
            if let Ok(id) = resolve(&FileId::parse("s/t/c.js").unwrap(), &source, &declared()) {
                prop_assert!(declared().contains_key(&id));
            }
        }
    }
}
