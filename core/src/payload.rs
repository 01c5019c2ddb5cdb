//! Digest payloads: the canonical JSON whose SHA-256 is a graph digest or a pack digest (pack contract, section 10 and its
//! table of differences). Written when a release is built, parsed strictly wherever a graph is checked.

use serde::{Deserialize, Serialize};

use crate::canonical::{self, NotCanonical};
use crate::contract::{CallLimits, ExportPair, HOST_FACADE_VERSION, WASM_FACADE_VERSION, WasmContract};
use crate::contract::{host_facade, is_identifier, wasm_facade};
use crate::digest::{BlobDigest, GraphDigest, PackDigest};
use crate::id::{FileId, ModuleName, PackName, Specifier};
use crate::order::by_utf16;

/// Kind of an authored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// JavaScript source.
    Js,
    /// A WASM binary.
    Wasm,
}

/// An export as package.json declares it: its name, or a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ExportDeclaration {
    /// One name for both sides.
    Name(String),
    /// A name in the binary and an alias.
    Pair(ExportPair),
}

impl ExportDeclaration {
    /// The export's name in the binary.
    #[must_use]
    pub fn wasm(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Pair(pair) => &pair.wasm,
        }
    }

    /// The identifier that importers see.
    #[must_use]
    pub fn alias(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Pair(pair) => &pair.alias,
        }
    }

    /// The declaration as a pair.
    #[must_use]
    pub fn pair(&self) -> ExportPair {
        ExportPair {
            wasm: self.wasm().to_owned(),
            alias: self.alias().to_owned(),
        }
    }
}

/// `declaration` of a js entry over an authored file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsDeclaration {
    /// The module's name.
    pub name: ModuleName,
    /// Always `js`.
    pub kind: JsKind,
    /// The raw file string of package.json.
    pub file: String,
}

/// `declaration` of a js entry over an npm package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NpmDeclaration {
    /// The module's name.
    pub name: ModuleName,
    /// Always `js`.
    pub kind: JsKind,
    /// The npm package's name.
    pub npm: String,
}

/// `declaration` of a WASM entry; `exports` sorted by wasm name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WasmDeclaration {
    /// The module's name.
    pub name: ModuleName,
    /// Always `wasm`.
    pub kind: WasmKind,
    /// The raw file string of package.json.
    pub file: String,
    /// Pages that the module's memory may reach.
    pub memory_pages_max: u64,
    /// Bounds of its calls, where package.json gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<CallLimits>,
    /// The exports, sorted by wasm name, each as package.json wrote it.
    pub exports: Vec<ExportDeclaration>,
}

/// `declaration` of a host entry (it stands in pack payloads only).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostDeclaration {
    /// The module's name.
    pub name: ModuleName,
    /// Always `host`.
    pub kind: HostKind,
    /// The host module's id.
    pub host: String,
}

macro_rules! constant_kind {
    ($(#[$doc:meta])* $name:ident, $variant:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum $name {
            /// The only value.
            $variant,
        }
    };
}
constant_kind!(
    /// The constant `js`.
    JsKind, Js
);
constant_kind!(
    /// The constant `wasm`.
    WasmKind, Wasm
);
constant_kind!(
    /// The constant `host`.
    HostKind, Host
);
constant_kind!(
    /// The constant `esbuild`.
    BundlerName, Esbuild
);

/// A file of an authored graph, as a graph payload lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphEntry {
    /// The file.
    pub id: FileId,
    /// Its kind.
    pub kind: FileKind,
    /// The files it imports, sorted.
    pub dependencies: Vec<FileId>,
    /// SHA-256 of its bytes.
    pub bytes: BlobDigest,
}

/// Payload of a js entry over authored files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct JsPayload {
    /// The pack.
    pub package_name: PackName,
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// The module.
    pub specifier: Specifier,
    /// Its file.
    pub module_id: FileId,
    /// Always `js`.
    pub kind: JsKind,
    /// The module as package.json declares it.
    pub declaration: JsDeclaration,
    /// Every file reachable from the entry, sorted by id.
    pub entries: Vec<GraphEntry>,
}

/// Payload of a WASM entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WasmPayload {
    /// The pack.
    pub package_name: PackName,
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// The module.
    pub specifier: Specifier,
    /// Its file.
    pub module_id: FileId,
    /// Always `wasm`.
    pub kind: WasmKind,
    /// The module as package.json declares it, exports sorted.
    pub declaration: WasmDeclaration,
    /// The one file.
    pub entries: Vec<GraphEntry>,
    /// [`WASM_FACADE_VERSION`].
    pub facade_version: u64,
    /// The facade, exports in manifest order.
    pub facade: String,
}

/// Payload of a host entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HostPayload {
    /// The pack.
    pub package_name: PackName,
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// The module.
    pub specifier: Specifier,
    /// `host:<id>`.
    pub module_id: FileId,
    /// The host module's id.
    pub host_id: String,
    /// Its exports, sorted.
    pub exports: Vec<String>,
    /// [`HOST_FACADE_VERSION`].
    pub facade_version: u64,
    /// The facade, exports in the registry's order.
    pub facade: String,
}

/// Payload of a bundled npm entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NpmPayload {
    /// The pack.
    pub package_name: PackName,
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// The module.
    pub specifier: Specifier,
    /// `npm:<name>`.
    pub module_id: FileId,
    /// The npm package's name.
    pub npm: String,
    /// The resolved package's version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm_version: Option<String>,
    /// The module as package.json declares it.
    pub declaration: NpmDeclaration,
    /// Always `esbuild`.
    pub bundler: BundlerName,
    /// The bundler's version.
    pub bundler_version: String,
    /// SHA-256 (hex) of the bundler's options.
    pub options_digest: BlobDigest,
    /// SHA-256 of the bundle as it is delivered.
    pub source: BlobDigest,
}

/// What a graph digest is the SHA-256 of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphPayload {
    /// A js entry over authored files.
    Js(JsPayload),
    /// A WASM entry.
    Wasm(WasmPayload),
    /// A host entry.
    Host(HostPayload),
    /// A bundled npm entry.
    Npm(NpmPayload),
}

/// Why a payload is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPayload {
    /// Not of any payload's shape, or not canonical.
    #[error(transparent)]
    Document(#[from] NotCanonical),
    /// Of a payload's shape, but its parts disagree.
    #[error("the payload contradicts itself: {0}")]
    Contradiction(&'static str),
}

/// Tells payloads apart; everything else is left to the strict parse.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discriminant {
    kind: Option<FileKind>,
    host_id: Option<String>,
    npm: Option<String>,
}

impl GraphPayload {
    /// Parses a payload strictly: canonical encoding, and every statement that it makes twice must agree.
    ///
    /// # Errors
    /// [`InvalidPayload`].
    pub fn parse(text: &str) -> Result<Self, InvalidPayload> {
        let shape = serde_json::from_str::<Discriminant>(text);
        let shape = shape.map_err(|error| NotCanonical::Shape(error.to_string()))?;
        let payload = match shape {
            Discriminant {
                kind: Some(FileKind::Js),
                ..
            } => Self::Js(canonical::from_json(text)?),
            Discriminant {
                kind: Some(FileKind::Wasm),
                ..
            } => Self::Wasm(canonical::from_json(text)?),
            Discriminant { host_id: Some(_), .. } => Self::Host(canonical::from_json(text)?),
            Discriminant { npm: Some(_), .. } => Self::Npm(canonical::from_json(text)?),
            Discriminant { .. } => return Err(NotCanonical::Shape("of no known kind".to_owned()).into()),
        };
        payload.check()?;
        Ok(payload)
    }

    /// The canonical JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Js(payload) => canonical::to_json(payload),
            Self::Wasm(payload) => canonical::to_json(payload),
            Self::Host(payload) => canonical::to_json(payload),
            Self::Npm(payload) => canonical::to_json(payload),
        }
    }

    /// The graph digest.
    #[must_use]
    pub fn digest(&self) -> GraphDigest {
        GraphDigest::of(self.to_json().as_bytes())
    }

    /// The pack's name.
    #[must_use]
    pub fn pack(&self) -> &PackName {
        match self {
            Self::Js(payload) => &payload.package_name,
            Self::Wasm(payload) => &payload.package_name,
            Self::Host(payload) => &payload.package_name,
            Self::Npm(payload) => &payload.package_name,
        }
    }

    /// The pack's version, where it has one.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Js(payload) => payload.package_version.as_deref(),
            Self::Wasm(payload) => payload.package_version.as_deref(),
            Self::Host(payload) => payload.package_version.as_deref(),
            Self::Npm(payload) => payload.package_version.as_deref(),
        }
    }

    /// The module.
    #[must_use]
    pub fn specifier(&self) -> &Specifier {
        match self {
            Self::Js(payload) => &payload.specifier,
            Self::Wasm(payload) => &payload.specifier,
            Self::Host(payload) => &payload.specifier,
            Self::Npm(payload) => &payload.specifier,
        }
    }

    /// The entry's file id.
    #[must_use]
    pub fn entry(&self) -> &FileId {
        match self {
            Self::Js(payload) => &payload.module_id,
            Self::Wasm(payload) => &payload.module_id,
            Self::Host(payload) => &payload.module_id,
            Self::Npm(payload) => &payload.module_id,
        }
    }

    /// The host module's id, of a host entry.
    #[must_use]
    pub fn host_id(&self) -> Option<&str> {
        match self {
            Self::Host(payload) => Some(&payload.host_id),
            Self::Js(_) | Self::Wasm(_) | Self::Npm(_) => None,
        }
    }

    /// The call contract of a WASM entry, its exports in the facade's order.
    #[must_use]
    pub fn wasm_contract(&self) -> Option<WasmContract> {
        let Self::Wasm(WasmPayload {
            declaration, facade, ..
        }) = self
        else {
            return None;
        };
        let exports = facade_aliases(facade)
            .filter_map(|alias| declaration.exports.iter().find(|export| export.alias() == alias))
            .map(ExportDeclaration::pair)
            .collect();
        Some(WasmContract {
            memory_pages_max: declaration.memory_pages_max,
            exports,
            limits: declaration.limits.clone(),
        })
    }

    fn check(&self) -> Result<(), InvalidPayload> {
        match self {
            Self::Js(payload) => {
                check_specifier(
                    &payload.package_name,
                    Some(&payload.declaration.name),
                    &payload.specifier,
                )?;
                check_file(&payload.declaration.file, &payload.module_id)?;
                check_entries(&payload.entries, &payload.module_id, FileKind::Js)
            }
            Self::Wasm(payload) => {
                check_specifier(
                    &payload.package_name,
                    Some(&payload.declaration.name),
                    &payload.specifier,
                )?;
                check_file(&payload.declaration.file, &payload.module_id)?;
                check_entries(&payload.entries, &payload.module_id, FileKind::Wasm)?;
                check_wasm_facade(payload)
            }
            Self::Host(payload) => {
                check_specifier(&payload.package_name, None, &payload.specifier)?;
                check_host(payload)
            }
            Self::Npm(payload) => {
                check_specifier(
                    &payload.package_name,
                    Some(&payload.declaration.name),
                    &payload.specifier,
                )?;
                let agrees = payload.declaration.npm == payload.npm && payload.module_id == FileId::npm(&payload.npm);
                require(agrees, "the npm package and the module id")
            }
        }
    }
}

fn require(holds: bool, what: &'static str) -> Result<(), InvalidPayload> {
    if holds {
        Ok(())
    } else {
        Err(InvalidPayload::Contradiction(what))
    }
}

fn check_specifier(pack: &PackName, name: Option<&ModuleName>, specifier: &Specifier) -> Result<(), InvalidPayload> {
    require(specifier.pack() == pack.as_str(), "the specifier and the pack")?;
    let agrees = name.is_none_or(|name| name.as_str() == specifier.module());
    require(agrees, "the specifier and the declared name")
}

fn check_file(declared: &str, module_id: &FileId) -> Result<(), InvalidPayload> {
    require(
        FileId::normalize(declared).as_ref() == Ok(module_id),
        "the declared file and the module id",
    )
}

fn check_entries(entries: &[GraphEntry], module_id: &FileId, kind: FileKind) -> Result<(), InvalidPayload> {
    require(
        is_sorted(entries.iter().map(|entry| entry.id.as_str())),
        "the order of the entries",
    )?;
    let sorted = entries
        .iter()
        .all(|entry| is_sorted(entry.dependencies.iter().map(FileId::as_str)));
    require(sorted, "the order of the dependencies")?;
    let leaves = entries
        .iter()
        .all(|entry| entry.kind == FileKind::Js || entry.dependencies.is_empty());
    require(leaves, "a WASM file and its dependencies")?;
    let entry = entries.iter().find(|entry| entry.id == *module_id);
    require(
        entry.is_some_and(|entry| entry.kind == kind),
        "the module id and the entries",
    )
}

fn check_wasm_facade(payload: &WasmPayload) -> Result<(), InvalidPayload> {
    let declared = &payload.declaration.exports;
    require(payload.facade_version == WASM_FACADE_VERSION, "the facade's version")?;
    require(
        is_sorted(declared.iter().map(ExportDeclaration::wasm)),
        "the order of the exports",
    )?;
    let aliases: Vec<&str> = facade_aliases(&payload.facade).collect();
    let mut named: Vec<&str> = aliases.clone();
    let mut wanted: Vec<&str> = declared.iter().map(ExportDeclaration::alias).collect();
    named.sort_unstable();
    wanted.sort_unstable();
    require(!wanted.is_empty() && named == wanted, "the facade and the exports")?;
    require(
        wanted.iter().all(|alias| is_identifier(alias)),
        "the facade and the exports",
    )?;
    let facade = wasm_facade(payload.specifier.as_str(), aliases);
    require(facade == payload.facade, "the facade's text")
}

fn check_host(payload: &HostPayload) -> Result<(), InvalidPayload> {
    require(payload.facade_version == HOST_FACADE_VERSION, "the facade's version")?;
    require(
        payload.module_id == FileId::host(&payload.host_id),
        "the host id and the module id",
    )?;
    require(
        is_sorted(payload.exports.iter().map(String::as_str)),
        "the order of the exports",
    )?;
    let names: Vec<&str> = facade_aliases(&payload.facade).collect();
    let mut sorted = names.clone();
    sorted.sort_unstable_by(|a, b| by_utf16(a, b));
    let agrees = sorted == payload.exports && names.iter().all(|name| is_identifier(name));
    require(agrees, "the facade and the exports")?;
    require(
        host_facade(payload.specifier.as_str(), &names) == payload.facade,
        "the facade's text",
    )
}

/// The names of a facade's functions, in its order. Only a hint: the caller generates the facade from them again and
/// compares.
fn facade_aliases(facade: &str) -> impl Iterator<Item = &str> {
    facade
        .lines()
        .filter_map(|line| line.strip_prefix("export async function ")?.strip_suffix("(...args) {"))
}

/// Whether the texts are strictly ascending by UTF-16 code units, so that none occurs twice.
pub(crate) fn is_sorted<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    texts.is_sorted_by(|a, b| by_utf16(a, b).is_lt())
}

/// A declaration, as the pack payload lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Declaration {
    /// A js entry over an authored file.
    Js(JsDeclaration),
    /// A js entry over an npm package.
    Npm(NpmDeclaration),
    /// A WASM entry.
    Wasm(WasmDeclaration),
    /// A host entry.
    Host(HostDeclaration),
}

impl Declaration {
    /// The module's name.
    #[must_use]
    pub fn name(&self) -> &ModuleName {
        match self {
            Self::Js(declaration) => &declaration.name,
            Self::Npm(declaration) => &declaration.name,
            Self::Wasm(declaration) => &declaration.name,
            Self::Host(declaration) => &declaration.name,
        }
    }
}

/// The manifest of package.json, as the pack payload states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PackManifest {
    /// Always 1.
    pub api_version: u64,
    /// Raw strings, sorted.
    pub internal: Vec<String>,
    /// Declarations, sorted by name.
    pub sandbox_modules: Vec<Declaration>,
}

/// A file of a pack, as the pack payload lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackFile {
    /// The file.
    pub id: FileId,
    /// Its kind.
    pub kind: FileKind,
    /// The module that it is the entry of, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specifier: Option<Specifier>,
    /// The files a public entry imports; empty for any other file.
    pub dependencies: Vec<FileId>,
    /// Whether package.json lists it as internal.
    pub internal: bool,
    /// SHA-256 of its bytes.
    pub bytes: BlobDigest,
}

/// How an admitted npm entry was compiled, as the pack payload states it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CompiledEntry {
    /// `npm:<name>`.
    pub id: FileId,
    /// The resolved package's version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm_version: Option<String>,
    /// Always `esbuild`.
    pub bundler: BundlerName,
    /// The bundler's version.
    pub bundler_version: String,
    /// SHA-256 (hex) of the bundler's options.
    pub options_digest: BlobDigest,
}

/// What a pack digest is the SHA-256 of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PackPayload {
    /// The pack.
    pub package_name: PackName,
    /// Its version, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_version: Option<String>,
    /// Its manifest.
    pub manifest: PackManifest,
    /// Its files, sorted by id.
    pub entries: Vec<PackFile>,
    /// Its admitted npm entries, sorted by id.
    pub compiled: Vec<CompiledEntry>,
}

impl PackPayload {
    /// The pack digest.
    #[must_use]
    pub fn digest(&self) -> PackDigest {
        PackDigest::of(canonical::to_json(self).as_bytes())
    }
}
