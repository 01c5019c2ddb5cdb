//! Every rule that a pack can break and every warning it can earn: code, severity, what it means, how to mend it. Other files
//! construct diagnostics through the constants here and never invent a code; `docs/diagnostics.md` is generated from them.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; everything is served.
    Warning,
    /// A declared module is not delivered; the rest of its pack is.
    Skipped,
    /// The pack is withheld whole.
    Error,
}

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable code, part of `--json` and of the build report.
    pub code: &'static str,
    /// How bad breaking it is.
    pub severity: Severity,
    /// What it asks for, in one sentence.
    pub summary: &'static str,
    /// How to mend a pack that breaks it.
    pub hint: &'static str,
}

/// A place in one of a pack's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Path in the pack, `/`-separated: a file id, `package.json` or `SKILL.md`.
    pub file: String,
    /// Byte offsets in the file, where the fault has a place.
    pub span: Option<Range<usize>>,
    /// The file's text, for an excerpt with line and column. None for binaries.
    pub text: Option<Arc<str>>,
}

/// One finding about a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule.
    pub rule: &'static Rule,
    /// The final sentence. Names pack, file and module; never a path outside the pack.
    pub message: String,
    /// Where, if it has a place in a file.
    pub location: Option<Location>,
}

impl Diagnostic {
    /// A finding without a place.
    #[must_use]
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            message: message.into(),
            location: None,
        }
    }

    /// The finding, placed in `file`.
    #[must_use]
    pub fn at(mut self, file: &str, span: Option<Range<usize>>, text: Option<&Arc<str>>) -> Self {
        self.location = Some(Location {
            file: file.to_owned(),
            span,
            text: text.map(Arc::clone),
        });
        self
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $severity:ident $code:literal, $summary:literal, $hint:literal;)*) => {
        $($(#[$doc])* pub const $name: Rule =
            Rule { code: $code, severity: Severity::$severity, summary: $summary, hint: $hint };)*

        /// Every rule, in the order of the documentation.
        pub const RULES: &[&Rule] = &[$(&$name),*];
    };
}

rules! {
    /// Two directories of equal standing hold packs of one name.
    DUPLICATE_PACK = Error "duplicate-pack",
        "A pack name is found once among the search roots.",
        "Remove one of the two directories, or build them into separate releases.";
    /// A host entry, and no registry was given.
    HOST_NOT_REGISTERED = Skipped "host-not-registered",
        "A host module is delivered only where the operator registers it.",
        "Pass --config with a packferry.toml that lists the host module, its owner and its exports.";

    /// A module of an npm entry imports what only Node has.
    NPM_MODULE_BUILTIN_IMPORT = Skipped "npm-module-builtin-import",
        "No module of an npm entry imports a Node builtin.",
        "Use a library, or an entry of it, that is made for browsers.";
    /// An import of an npm entry leads nowhere.
    NPM_MODULE_UNRESOLVED = Skipped "npm-module-unresolved",
        "Every import of an npm entry leads to an installed file.",
        "List the package among the pack's dependencies and install them.";
    /// esbuild cannot bundle an npm entry.
    NPM_MODULE_BUNDLE_FAILED = Skipped "npm-module-bundle-failed",
        "The bundler makes one module of an npm entry.",
        "Try the library in a browser build, and report the error to its authors.";
    /// A bundle is over its limit.
    NPM_MODULE_TOO_LARGE = Skipped "npm-module-too-large",
        "A bundled npm entry is at most 1,048,576 bytes.",
        "Use a smaller library, or one that is published in parts.";
    /// A bundle is not self-contained.
    NPM_MODULE_SCAN_REJECTED = Skipped "npm-module-scan-rejected",
        "A bundled npm entry is one JavaScript module that imports nothing, not even dynamically.",
        "Use a library that does not load code at run time.";
    /// A bundle refers plainly to a global that the guest lacks.
    NPM_MODULE_FORBIDDEN_GLOBAL = Skipped "npm-module-forbidden-global",
        "A bundled npm entry uses no global that the guest lacks, unless it tests with `typeof` whether it is there.",
        "Use a library that runs without timers, a document, a process, and code made from text.";
    /// A bundle looks for a global that the guest lacks.
    NPM_MODULE_WARNING = Warning "npm-module-warning",
        "A bundled npm entry needs no global that the guest lacks.",
        "See that what you use of the library works without it.";

    /// Two entries over one npm package, both delivered.
    NPM_MODULE_DUPLICATE = Error "npm-module-duplicate",
        "A pack has at most one entry over an npm package.",
        "Keep one of the entries.";
    /// A pack's files are over its cap.
    PACK_TOO_LARGE = Error "pack-too-large",
        "All files of a pack, bundled npm entries included, are together at most 8,388,608 bytes.",
        "Split the pack, or leave out what is not needed.";
}
