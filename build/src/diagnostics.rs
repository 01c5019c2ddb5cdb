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
    /// The export of a WASM binary that it is about, by its name there.
    pub export: Option<String>,
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
            export: None,
        });
        self
    }

    /// The finding, placed in the WASM binary `file`, at a byte and about an export, where it has them.
    #[must_use]
    pub fn in_binary(mut self, file: &str, offset: Option<usize>, export: Option<String>) -> Self {
        self.location = Some(Location {
            file: file.to_owned(),
            span: offset.map(|offset| offset..offset),
            text: None,
            export,
        });
        self
    }
}

/// How many errors, and how many other findings, are kept of one pack. A hostile pack could earn millions.
const KEPT: usize = 200;

/// The findings about one pack, collected as they are met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    errors: Vec<Diagnostic>,
    others: Vec<Diagnostic>,
    dropped: usize,
}

impl Findings {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let list = if diagnostic.rule.severity == Severity::Error {
            &mut self.errors
        } else {
            &mut self.others
        };
        if list.len() < KEPT {
            list.push(diagnostic);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether the pack is withheld.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Everything that was kept, errors first, each kind in the order of its finding.
    #[must_use]
    pub fn into_vec(self) -> Vec<Diagnostic> {
        let mut all = self.errors;
        all.extend(self.others);
        if self.dropped > 0 {
            all.push(Diagnostic::new(
                &MORE_FINDINGS,
                format!("{} more findings are not listed", self.dropped),
            ));
        }
        all
    }
}

/// The rule with the code `code`.
fn rule(code: &str) -> Option<&'static Rule> {
    let mut rules = RULES.iter().flat_map(|(_, rules)| *rules);
    rules.find(|rule| rule.code == code).copied()
}

/// Writes a rule as its code and reads it back.
pub mod by_code {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Rule, rule};

    /// Writes the code.
    ///
    /// # Errors
    /// What the serializer says.
    pub fn serialize<S: Serializer>(rule: &&'static Rule, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(rule.code)
    }

    /// Reads the code of a rule.
    ///
    /// # Errors
    /// Where no rule has it.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Rule, D::Error> {
        let code = String::deserialize(deserializer)?;
        rule(&code).ok_or_else(|| D::Error::custom("no rule has this code"))
    }
}

/// `docs/diagnostics.md`: every rule as its declaration states it.
#[must_use]
pub fn documentation() -> String {
    let mut text = String::from(
        "# Diagnostics\n\n\
         Every rule that a pack can break and every warning that it can earn, as `packferry check`, `build`, `stage`, `verify-bundle` and their `--json` name them.\n\
         An *error* withholds the whole pack (exit status 1). *Skipped* means that one declared module is not delivered, a *warning* that everything is; both leave the\n\
         exit status at 0. Codes are stable. This page is generated from `build/src/diagnostics.rs`; a test compares the two.\n",
    );
    for (section, rules) in RULES {
        text.push_str(&format!(
            "\n## {section}\n\n| code | | rule | to mend it |\n|---|---|---|---|\n"
        ));
        for Rule {
            code,
            severity,
            summary,
            hint,
        } in *rules
        {
            let severity = match severity {
                Severity::Error => "error",
                Severity::Skipped => "skipped",
                Severity::Warning => "warning",
            };
            let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
            text.push_str(&format!(
                "| `{code}` | {severity} | {} | {} |\n",
                cell(summary),
                cell(hint)
            ));
        }
    }
    text
}

impl Extend<Diagnostic> for Findings {
    fn extend<I: IntoIterator<Item = Diagnostic>>(&mut self, diagnostics: I) {
        for diagnostic in diagnostics {
            self.push(diagnostic);
        }
    }
}

macro_rules! rules {
    ($([$section:literal] $($(#[$doc:meta])* $name:ident = $severity:ident $code:literal, $summary:literal, $hint:literal;)*)*) => {
        $($($(#[$doc])* pub const $name: Rule =
            Rule { code: $code, severity: Severity::$severity, summary: $summary, hint: $hint };)*)*

        /// Every rule, by what it is about, in the order of the documentation.
        pub const RULES: &[(&str, &[&Rule])] = &[$(($section, &[$(&$name),*])),*];
    };
}

rules! {
    ["Search roots"]
    /// Two directories of equal standing hold packs of one name.
    DUPLICATE_PACK = Error "duplicate-pack",
        "A pack name is found once among the search roots; a name found twice is dropped.",
        "Remove one of the two directories, or build them into separate releases.";
    /// A directory on the way cannot be read.
    UNREADABLE_DIRECTORY = Warning "unreadable-directory",
        "Directories among the search roots can be read.",
        "Grant read permission if the directory holds packs; otherwise ignore this.";
    /// A path on the command line holds no pack.
    NO_PACK = Warning "no-pack",
        "A path on the command line is a pack, or a directory whose children are packs.",
        "A pack is a directory with a package.json that lists nodetool.sandboxModules; for installed packs name the node_modules directory.";
    /// A release is written into a pack.
    RELEASE_IN_PACK = Warning "release-in-pack",
        "A release is written outside of the packs.",
        "Choose another --out, or see that package.json's \"files\" leaves the release out: npm publishes what lies in a package's directory.";
    /// A package.json on the way is too large to see whether it is a pack's.
    PACKAGE_JSON_PASSED_OVER = Warning "package-json-passed-over",
        "A package.json among the search roots is at most 16,777,216 bytes; a larger one is not read.",
        "If it is a pack's, make it smaller; otherwise ignore this.";

    ["Staged trees"]
    /// A staged tree's list cannot be used.
    STAGING_LIST_INVALID = Error "staging-list-invalid",
        "staging.json of a staged tree is a regular file, as `packferry stage` writes it.",
        "Stage again: packferry stage ROOT... --out DIST.";
    /// Two staged paths that are one where the case of letters does not count.
    STAGED_CASE = Error "staged-case",
        "Packs that are staged together, their files and their folders do not differ only in the case of letters.",
        "Rename one of the two, or stage the packs into separate folders.";
    /// There is no staged tree.
    STAGED_TREE_MISSING = Error "staged-tree-missing",
        "An application that is verified has a staged tree, the folder _sandbox.",
        "Name the folder that packferry stage was given as --out, and see that the build copies _sandbox whole.";
    /// A staged file is not there.
    STAGED_FILE_MISSING = Error "staged-file-missing",
        "Every file that staging.json lists is there.",
        "See that the build copies every file, those in .npm included, or stage again.";
    /// A staged file has other bytes.
    STAGED_FILE_CHANGED = Error "staged-file-changed",
        "Every staged file has the SHA-256 that staging.json gives it.",
        "Stage again, after whatever changes files, such as a minifier or a conversion of line ends.";
    /// Something lies in the tree that was not staged.
    STAGED_FILE_EXTRA = Error "staged-file-extra",
        "Nothing lies in a staged tree but what the staged packs declare.",
        "Remove it, or stage again, which replaces the whole folder.";
    /// Something in the tree is no file.
    STAGED_FILE_IRREGULAR = Error "staged-file-irregular",
        "Everything in a staged tree is a regular file or a folder that can be read, never a symbolic link.",
        "See that the build copies files and makes no links, or stage again.";
    /// The manifest or the list is not that of the staged packs.
    STAGED_MANIFEST = Error "staged-manifest",
        "manifest.json and staging.json are those of the staged packs.",
        "Stage again; where packs declare host modules, stage and verify with the same --config.";
    /// An installed pack is not staged.
    STAGED_PACK_MISSING = Error "staged-pack-missing",
        "Every pack under --against is staged.",
        "Stage again: packferry stage ROOT... --out DIST.";
    /// An installed pack is not what was staged.
    STAGED_PACK_STALE = Error "staged-pack-stale",
        "Every pack under --against is staged as it lies there, its npm packages included.",
        "Stage again: packferry stage ROOT... --out DIST.";

    ["package.json"]
    /// The package.json of a pack, or of a directory that was asked for, is too large.
    PACKAGE_JSON_TOO_LARGE = Error "package-json-too-large",
        "package.json is at most 1,048,576 bytes.",
        "Keep data in files of its own.";
    /// package.json cannot be read, is not JSON, or not an object.
    PACKAGE_JSON_INVALID = Error "package-json-invalid",
        "package.json is a JSON object, without a byte order mark.",
        "Mend the JSON; an editor that validates package.json shows where it breaks.";
    /// package.json is not Unicode text.
    PACKAGE_JSON_NOT_UNICODE = Error "package-json-not-unicode",
        "package.json is UTF-8 and holds no half of a surrogate pair.",
        "Save the file as UTF-8, and write characters beyond U+FFFF as themselves or as a full pair of escapes.";

    ["Name and version"]
    /// `name` is absent or no string.
    PACK_NAME_MISSING = Error "pack-name-missing",
        "A pack has a name, a string in package.json.",
        "Add \"name\" to package.json.";
    /// `name` is not a package name.
    PACK_NAME_INVALID = Error "pack-name-invalid",
        "A pack's name is an optional @scope/ and a name, each of letters, digits and . _ ~ -.",
        "Rename the pack; npm's own rules for names are stricter still.";
    /// `name` cannot be a folder of its own, or looks like a pinned id.
    PACK_NAME_RESERVED = Error "pack-name-reserved",
        "A pack's name is a folder of its own (not . or .., node_modules, .npm, .bin, .cache, manifest.json or staging.json) and is not 64 lower-case hexadecimal digits.",
        "Rename the pack.";
    /// `version` cannot stand in a header.
    VERSION_NOT_DELIVERABLE = Error "version-not-deliverable",
        "A pack's version is printable ASCII, neither begins nor ends with a space, and has at most 256 characters.",
        "Use a semantic version.";

    ["The manifest"]
    /// A value has the wrong type, or a required key is absent.
    MANIFEST_SHAPE = Error "manifest-shape",
        "Every value of the manifest has the type that its key wants, and every required key is present.",
        "Compare with the table of module kinds: js wants name, kind and file or npm; wasm wants name, kind, file, memoryPagesMax and exports; host wants name, kind and host.";
    /// A key that the manifest does not know.
    MANIFEST_UNKNOWN_KEY = Error "manifest-unknown-key",
        "Objects of the manifest have no keys but those of their kind.",
        "Remove the key, or mend its spelling.";
    /// `apiVersion` is not 1.
    API_VERSION = Error "api-version",
        "apiVersion is the number 1, or absent.",
        "Write \"apiVersion\": 1, or leave it out.";
    /// `kind` is none of the three.
    MODULE_KIND = Error "module-kind",
        "A module's kind is \"js\", \"wasm\" or \"host\".",
        "Say what the module is.";
    /// A module's name is not one.
    MODULE_NAME = Error "module-name",
        "A module's name is . for the pack itself, or one path segment of letters, digits and . _ -; not .. or node_modules.",
        "Rename the module; importers write <pack>/<name>.";
    /// Two modules have one name.
    DUPLICATE_MODULE = Error "duplicate-module",
        "Module names are unique in a pack.",
        "Rename one of the two.";
    /// A js module has both sources, or neither.
    MODULE_SOURCE = Error "module-source",
        "A js module has exactly one of file and npm.",
        "Name a file of the pack, or an npm package to bundle, but not both.";
    /// A file string is malformed.
    FILE_PATH = Error "file-path",
        "A file is named by a path inside the pack: not empty, not absolute, with / between segments, without .., empty segments, backslashes, control characters or percent-escapes of . / and \\.",
        "Write the path from the pack's directory to the file, such as sandbox/index.js.";
    /// An npm name is malformed.
    NPM_NAME = Error "npm-name",
        "An npm entry names a package: an optional @scope/ and a name, no path and no version.",
        "Write the package's name alone; its version comes from what is installed.";
    /// A host id is malformed.
    HOST_ID = Error "host-id",
        "A host module's id has 1 to 64 lower-case letters, digits and -, and begins with a letter.",
        "Use the id that the host's documentation gives.";
    /// `memoryPagesMax` is out of range.
    MEMORY_PAGES = Error "memory-pages",
        "memoryPagesMax is an integer from 0 to 4096 (pages of 64 KiB).",
        "State the maximum that the module's memory was linked with.";
    /// `exports` is empty.
    EXPORTS_EMPTY = Error "exports-empty",
        "A wasm module declares at least one export.",
        "List the functions that importers may call.";
    /// An export's name in the binary is malformed.
    EXPORT_NAME = Error "export-name",
        "The name of an export in the binary is not empty, printable and ASCII.",
        "Export the function under an ASCII name.";
    /// An export's name for importers is no identifier.
    EXPORT_IDENTIFIER = Error "export-identifier",
        "Importers see an export under an ASCII JavaScript identifier that is no reserved word.",
        "Give the export an alias: {\"wasm\": \"name in the binary\", \"as\": \"identifier\"}.";
    /// An export's name for importers is one that no facade can declare.
    EXPORT_NOT_LOADABLE = Warning "export-not-loadable",
        "Importers see an export under a name that the facade of its module can declare: not eval or arguments, which strict code forbids, nor __call, which the facade itself uses.",
        "Give the export another alias; until then no guest loads the module.";
    /// Two exports share a name.
    DUPLICATE_EXPORT = Error "duplicate-export",
        "No two exports of a module share a name in the binary or an alias.",
        "Remove or rename one of the two.";
    /// A call limit is out of range.
    CALL_LIMIT = Error "call-limit",
        "Call limits are integers from 1 to their ceilings: callTimeoutMs 5000, callConcurrency 2, callsPerInvocation 256, wallClockMs 30000.",
        "Lower the limit to the ceiling, or leave it out.";
    /// `internal` lists one string twice.
    DUPLICATE_INTERNAL = Error "duplicate-internal",
        "internal lists a file once.",
        "Remove one of the two.";
    /// A file is internal and public.
    INTERNAL_IS_PUBLIC = Error "internal-is-public",
        "A file is a public module or internal, not both.",
        "Remove it from internal: other files of the pack may import a public file, too.";

    ["Files"]
    /// An internal file is not JavaScript.
    INTERNAL_NOT_JS = Error "internal-not-js",
        "Internal files are JavaScript and end in .js.",
        "Rename the file, or make a wasm file a module of its own.";
    /// One file under two modules, or under two spellings among the internal ones.
    DUPLICATE_FILE = Error "duplicate-file",
        "A file is declared once.",
        "List an internal file once; let a second module have a file of its own that re-exports the first: export * from \"./first.js\".";
    /// A declared file is absent.
    FILE_MISSING = Error "file-missing",
        "Every declared file exists.",
        "Mend the path, build the file, or see that package.json's \"files\" has it.";
    /// A declared file leads out of the pack.
    FILE_ESCAPES = Error "file-escapes",
        "Every declared file lies in the pack's directory.",
        "Copy the file into the pack.";
    /// A declared file is reached through a link.
    FILE_SYMLINK = Error "file-symlink",
        "No part of a declared file's path is a symbolic link.",
        "Replace the link by the file itself.";
    /// A declared file cannot be read.
    FILE_UNREADABLE = Error "file-unreadable",
        "Every declared file is a regular file that can be read.",
        "Name a file, not a directory, and grant read permission.";
    /// A declared file is too large.
    FILE_TOO_LARGE = Error "file-too-large",
        "A JavaScript file has at most 262,144 bytes, a WASM file at most 4,194,304.",
        "Split the file, minify it, or move data into a WASM module.";
    /// The files of a pack are too large together.
    PACK_TOO_LARGE = Error "pack-too-large",
        "All files of a pack, bundled npm entries included, are together at most 8,388,608 bytes.",
        "Split the pack, or leave out what is not needed.";
    /// The modules of a pack reach too much together.
    GRAPHS_TOO_LARGE = Error "graphs-too-large",
        "The graphs of a pack have together at most 1,073,741,824 bytes: a module's graph counts every file that it reaches, with 512 bytes for the file and 256 for each name that the file exports.",
        "Let fewer modules share large files, or divide the pack.";
    /// A file id cannot stand in a header.
    FILE_ID_NOT_DELIVERABLE = Error "file-id-not-deliverable",
        "A file's path is printable ASCII and neither begins nor ends with a space.",
        "Rename the file.";
    /// A module id is too long.
    MODULE_ID_TOO_LONG = Error "module-id-too-long",
        "Every module id of a pack has at most 512 bytes: <pack>/<module>, <pack>::<file>, and 64 digits with ::<file>.",
        "Shorten the name or the path.";
    /// The dependencies header would be too long.
    DEPENDENCIES_TOO_LONG = Error "dependencies-too-long",
        "The header that lists a file's imports has at most 12,000 bytes.",
        "Import fewer files from this one: group them behind a file that re-exports them.";
    /// The WASM contract header would be too long.
    CONTRACT_TOO_LONG = Error "contract-too-long",
        "The header that lists a wasm module's exports has at most 12,000 bytes.",
        "Split the module, or shorten the names of its exports.";
    /// A graph would be no value of Workers KV.
    CLOSURE_TOO_LARGE = Error "closure-too-large",
        "A module's closure, its files and the record that lists them, has at most 26,214,400 bytes: what one value of Workers KV holds.",
        "Join files, or shorten their names.";
    /// The entry in the manifest would be too large for a worker.
    MANIFEST_ENTRY_TOO_LARGE = Error "manifest-entry-too-large",
        "A pack's entry in the manifest, which lists what every module exports, has at most 8,388,608 bytes.",
        "Export fewer names from fewer modules, or divide the pack.";

    ["JavaScript"]
    /// Bytes that are no UTF-8.
    JS_NOT_UTF8 = Error "javascript-not-utf8",
        "JavaScript files are UTF-8.",
        "Save the file as UTF-8.";
    /// A NUL character.
    JS_NUL = Error "javascript-nul",
        "JavaScript files have no NUL character, which the guest takes for their end.",
        "Remove it, or write it as \\0 in a string.";
    /// `#!` at the beginning.
    JS_HASHBANG = Error "javascript-hashbang",
        "JavaScript files do not begin with `#!`, which the guest does not take in a module.",
        "Remove the first line.";
    /// A syntax error.
    JS_SYNTAX = Error "javascript-invalid",
        "JavaScript files are modules of standard ECMAScript.",
        "Compile TypeScript, JSX and proposals to JavaScript before publishing.";
    /// Nesting that no parser of bounded stack, memory and time can read.
    JS_NESTED_TOO_DEEPLY = Error "javascript-nested-too-deeply",
        "JavaScript files are nested so that a parser can read them.",
        "Split the expression or the statement into several.";
    /// `import()`.
    JS_DYNAMIC_IMPORT = Error "javascript-dynamic-import",
        "Modules are imported statically, so that everything a module needs is known before it runs.",
        "Use an import declaration.";
    /// `require()`.
    JS_REQUIRE = Error "javascript-require",
        "Modules are imported by import declarations; `require` is not called, not even a function of one's own by that name.",
        "Use an import declaration, or give the function another name.";
    /// A removed global, used when the module is evaluated.
    JS_REMOVED_GLOBAL = Warning "javascript-removed-global",
        "Nothing at the top level of a module needs a global that the guest removes.",
        "Do without it, or test with `typeof` whether it is there.";

    ["Imports"]
    /// An import of something that is no file of the pack.
    IMPORT_OUTSIDE = Error "import-outside",
        "A file imports files of its own pack, by relative paths, and nothing else.",
        "Copy the code into the pack, or declare an npm entry and bundle it.";
    /// A relative import leaves the pack.
    IMPORT_ESCAPES = Error "import-escapes",
        "A relative import stays in the pack's directory.",
        "Move the file into the pack and declare it.";
    /// A relative import is no path of a file.
    IMPORT_PATH = Error "import-path",
        "A relative import leads to a file's path without control characters and percent-escapes of . / and \\.",
        "Write the path plainly.";
    /// An import of a file that package.json does not declare.
    IMPORT_UNDECLARED = Error "import-undeclared",
        "A file imports only what package.json declares, by its full name: no extension is guessed.",
        "Add the file to nodetool.internal in package.json, or write its extension.";
    /// JavaScript imports a WASM file.
    IMPORT_NOT_JS = Error "import-not-js",
        "JavaScript does not import WASM files of its pack.",
        "Let importers of the pack import the wasm module by its specifier.";
    /// An import that the guest does not resolve.
    IMPORT_BACKSLASH = Warning "import-backslash",
        "A relative import has / between its segments: the guest takes a backslash for a part of a name, and denies the import.",
        "Write / in place of each backslash.";
    /// An import of the platform capability.
    IMPORT_PLATFORM = Warning "import-platform",
        "The platform capability, @nodetool-ai/sandbox-nodetool, is served only where the guest's host registers it.",
        "See that every host that is to run the pack registers it.";
    /// Files import each other in a circle.
    IMPORT_CYCLE = Error "import-cycle",
        "No file imports itself, directly or through others.",
        "Move what both need into a third file.";

    ["WebAssembly"]
    /// A binary that no engine takes, or only one with proposals of its own.
    WASM_INVALID = Error "wasm-invalid",
        "WASM files are valid core modules of WebAssembly 2.0, in binary form and whole.",
        "Ship the core module as the compiler wrote it, for example for wasm32-unknown-unknown, without newer proposals: garbage collection, exceptions, tail calls, 64-bit or several memories, relaxed vectors.";
    /// An import.
    WASM_IMPORT = Error "wasm-import",
        "A WASM file imports nothing.",
        "Link what it needs into the binary, for example by building for wasm32-unknown-unknown.";
    /// A memory that may grow for ever, or that threads share.
    WASM_MEMORY_UNBOUNDED = Error "wasm-memory-unbounded",
        "Every memory of a WASM file is unshared and declares a maximum.",
        "Pass the linker a maximum, for example --max-memory=16777216, and build without threads.";
    /// A memory that may grow over what package.json declares.
    WASM_MEMORY_TOO_LARGE = Error "wasm-memory-too-large",
        "The maximum of a WASM file's memory is at most its memoryPagesMax, and at most 4,096 pages.",
        "Raise memoryPagesMax, or pass the linker a smaller maximum; a page has 65,536 bytes.";
    /// A declared export that the binary lacks.
    WASM_EXPORT_MISSING = Error "wasm-export-missing",
        "The binary of a WASM module exports what package.json declares.",
        "Correct the name, or keep the function when linking.";
    /// A declared export that cannot be called.
    WASM_EXPORT_KIND = Error "wasm-export-kind",
        "The declared exports of a WASM module are functions.",
        "Declare only functions; an exported memory, table or global needs no declaration.";
    /// A declared export with a signature that JavaScript numbers cannot serve.
    WASM_EXPORT_SIGNATURE = Error "wasm-export-signature",
        "The declared exports of a WASM module take at most eight i32, f32 or f64 and return one of them or nothing.",
        "Export a function of simpler signature that calls this one.";

    ["Host entries"]
    /// A host id that the registry does not have.
    HOST_UNKNOWN = Error "host-unknown",
        "A host module is one that the operator registered.",
        "Use a registered id, or ship the code as a js module; a pack cannot bring a host module of its own.";
    /// A host id that belongs to another pack.
    HOST_WRONG_PACK = Error "host-wrong-pack",
        "A host module is declared only by the pack that the registry names as its owner.",
        "Depend on the owner's pack instead.";
    /// A host entry, and no registry was given.
    HOST_NOT_REGISTERED = Skipped "host-not-registered",
        "A host module is delivered only where the operator registers it.",
        "Pass --config with a packferry.toml that lists the host module, its owner and its exports.";

    ["npm entries"]
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
    /// A bundle does not evaluate in the guest, or exports something else there.
    NPM_MODULE_PROBE_FAILED = Skipped "npm-module-probe-failed",
        "A bundled npm entry evaluates in the guest within its bounds, and exports there what it exports by its text.",
        "Reproduce it with packferry run; a library may need a build that touches nothing but the language when it loads.";
    /// A bundle looks for a global that the guest lacks, uses one that not every guest has, assigns to what nothing declares, or
    /// exports nothing.
    NPM_MODULE_WARNING = Warning "npm-module-warning",
        "A bundled npm entry needs nothing that a guest may lack, and exports something.",
        "See that what you use of the library works without it.";

    /// `check` found no bundler.
    NPM_MODULE_NOT_JUDGED = Skipped "npm-module-not-judged",
        "`packferry check` bundles npm entries to judge them, where esbuild is installed; it never runs them.",
        "Install esbuild as the reason says, or see what `packferry build` makes of the entry.";
    /// A staged pack's npm entry was not staged.
    NPM_MODULE_NOT_STAGED = Skipped "npm-module-not-staged",
        "An npm entry of a staged pack has a row in staging.json; it has none where it was not admitted when it was staged.",
        "Stage the pack again from where its npm packages are installed; `packferry stage` says why an entry is refused.";
    /// The bundle of a staged pack's npm entry is not the one that was staged.
    NPM_MODULE_DAMAGED = Error "npm-module-damaged",
        "The bundle of a staged npm entry is a regular file beside the packs, with the digest that staging.json gives it.",
        "Stage again: packferry stage ROOT... --out DIST.";
    /// Two entries over one npm package, both delivered.
    NPM_MODULE_DUPLICATE = Error "npm-module-duplicate",
        "A pack has at most one entry over an npm package.",
        "Keep one of the entries.";

    ["SKILL.md"]
    /// There is no SKILL.md.
    SKILL_MISSING = Warning "skill-missing",
        "A pack has a SKILL.md that says what it is for.",
        "Add SKILL.md: front matter with name and description between --- lines, then a text.";
    /// SKILL.md cannot be used.
    SKILL_INVALID = Warning "skill-invalid",
        "SKILL.md is a regular file of at most 16,384 bytes with front matter (name, description) between --- lines, and a body.",
        "Mend SKILL.md; until then the pack is listed without a description.";

    ["The report"]
    /// There are more findings than are listed.
    MORE_FINDINGS = Warning "more-findings",
        "A pack's findings are listed up to a number.",
        "Mend the first ones, then check again.";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_texts_are_sentences() {
        let mut codes = HashSet::new();
        for rule in RULES.iter().flat_map(|(_, rules)| *rules) {
            assert!(codes.insert(rule.code), "{} twice", rule.code);
            assert!(
                rule.code
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{}",
                rule.code
            );
            for text in [rule.summary, rule.hint] {
                assert!(text.ends_with('.') && !text.contains('\n'), "{}: {text}", rule.code);
            }
        }
    }

    /// `PACKFERRY_WRITE_DOCS=1 cargo test -p packferry documentation` writes the page.
    #[test]
    fn documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/diagnostics.md");
        if std::env::var_os("PACKFERRY_WRITE_DOCS").is_some() {
            std::fs::write(path, documentation()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            page == documentation(),
            "docs/diagnostics.md is stale: see the comment of this test"
        );
    }

    #[test]
    fn findings_keep_errors_whatever_else_floods_them() {
        let mut findings = Findings::default();
        for _ in 0..1_000 {
            findings.push(Diagnostic::new(&SKILL_MISSING, "w"));
        }
        assert!(!findings.has_errors());
        findings.push(Diagnostic::new(&FILE_MISSING, "e"));
        assert!(findings.has_errors());
        let all = findings.into_vec();
        assert_eq!((all.len(), all[0].rule.code), (202, "file-missing"));
        assert_eq!(all[201].message, "800 more findings are not listed");
    }
}
