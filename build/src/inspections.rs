//! The inspections of one pack's files. What stands in a file depends on its bytes alone, so a file whose bytes an earlier build
//! inspected is not inspected again, whatever it is called and wherever it lies.

use std::collections::BTreeMap;

use packferry_core::canonical;
use packferry_core::digest::BlobDigest;
use packferry_core::payload::WasmDeclaration;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::cache::{Cache, Key, Kind};
use crate::fault::Fault;
use crate::javascript::{Inspected, Inspection, Inspector};
use crate::wasm::{self, WasmFault};

/// Inspects files with what is known from earlier builds.
#[derive(Clone, Copy)]
pub struct Inspectors<'a> {
    /// Inspects JavaScript that nobody trusts.
    pub javascript: &'a Inspector,
    /// Where inspections are kept.
    pub cache: &'a Cache,
}

/// The inspections of a pack's files: those known, and those made.
pub struct Inspections<'a> {
    inspectors: Inspectors<'a>,
    key: Key,
    known: Record,
    used: Record,
    is_new: bool,
}

/// Inspections by what they are of, as JSON: a file may state a million names, which are held once, where they are used. Those of WASM
/// depend on the declaration, too.
#[derive(Default, Serialize, Deserialize)]
struct Record {
    javascript: BTreeMap<BlobDigest, Box<RawValue>>,
    wasm: BTreeMap<BlobDigest, Box<RawValue>>,
}

impl Record {
    fn is_empty(&self) -> bool {
        self.javascript.is_empty() && self.wasm.is_empty()
    }
}

/// The answer under `name` in `known`, moved over to `used`.
fn recall<T: DeserializeOwned>(
    known: &mut BTreeMap<BlobDigest, Box<RawValue>>,
    used: &mut BTreeMap<BlobDigest, Box<RawValue>>,
    name: BlobDigest,
) -> Option<T> {
    if let Some(found) = known.remove(&name) {
        used.insert(name, found);
    }
    serde_json::from_str(used.get(&name)?.get()).ok()
}

impl<'a> Inspections<'a> {
    /// What is known about the files of the pack with this package.json.
    #[must_use]
    pub fn of_pack(inspectors: Inspectors<'a>, package_json: &str) -> Self {
        let key = Key::new(Kind::Inspections, &[package_json.as_bytes()]);
        Self {
            known: inspectors.cache.get(&key).unwrap_or_default(),
            inspectors,
            key,
            used: Record::default(),
            is_new: false,
        }
    }

    /// Inspects a JavaScript file with these bytes.
    ///
    /// # Errors
    /// A [`Fault`] where that cannot be done.
    pub fn javascript(&mut self, bytes: &[u8], sha256: BlobDigest) -> Result<Inspection, Fault> {
        let known = recall(&mut self.known.javascript, &mut self.used.javascript, sha256);
        if let Some(inspection) = known {
            return Ok(inspection);
        }
        let Inspected { inspection, settled } = self.inspectors.javascript.inspect(bytes)?;
        if settled && self.inspectors.cache.keeps() {
            self.is_new = true;
            let json = to_raw_value(&inspection).ok();
            self.used.javascript.extend(json.map(|json| (sha256, json)));
        }
        Ok(inspection)
    }

    /// Holds a WASM file with these bytes against its declaration.
    pub fn wasm(&mut self, bytes: &[u8], sha256: BlobDigest, declaration: &WasmDeclaration) -> Vec<WasmFault> {
        let declared = canonical::to_json(declaration);
        let name = BlobDigest::of(&[sha256.as_bytes(), declared.as_bytes()].concat());
        if let Some(faults) = recall(&mut self.known.wasm, &mut self.used.wasm, name) {
            return faults;
        }
        let faults = wasm::inspect(bytes, declaration);
        if self.inspectors.cache.keeps() {
            self.is_new = true;
            let json = to_raw_value(&faults).ok();
            self.used.wasm.extend(json.map(|json| (name, json)));
        }
        faults
    }

    /// Keeps the inspections of this build, and no others: those of files that are gone go, too.
    pub fn keep(self) {
        if self.is_new || !self.known.is_empty() {
            self.inspectors.cache.put(&self.key, &self.used);
        }
    }
}
