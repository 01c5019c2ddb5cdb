//! The inspections of one pack's files. What stands in a file depends on its bytes alone, so a file whose bytes an earlier build
//! inspected is not inspected again, whatever it is called and wherever it lies.

use std::collections::BTreeMap;

use packferry_core::canonical;
use packferry_core::digest::BlobDigest;
use packferry_core::payload::WasmDeclaration;
use serde::{Deserialize, Serialize};

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

/// Inspections by what they are of. Those of WASM depend on the declaration, too.
#[derive(Default, Serialize, Deserialize)]
struct Record {
    javascript: BTreeMap<BlobDigest, Inspection>,
    wasm: BTreeMap<BlobDigest, Vec<WasmFault>>,
}

impl Record {
    fn len(&self) -> usize {
        self.javascript.len() + self.wasm.len()
    }
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
        if let Some(known) = self.used.javascript.get(&sha256) {
            return Ok(known.clone());
        }
        let inspection = match self.known.javascript.remove(&sha256) {
            Some(known) => known,
            None => match self.inspectors.javascript.inspect(bytes)? {
                Inspected {
                    inspection,
                    settled: false,
                } => return Ok(inspection),
                Inspected { inspection, .. } => {
                    self.is_new = true;
                    inspection
                }
            },
        };
        self.used.javascript.insert(sha256, inspection.clone());
        Ok(inspection)
    }

    /// Holds a WASM file with these bytes against its declaration.
    pub fn wasm(&mut self, bytes: &[u8], sha256: BlobDigest, declaration: &WasmDeclaration) -> Vec<WasmFault> {
        let declared = canonical::to_json(declaration);
        let name = BlobDigest::of(&[sha256.as_bytes(), declared.as_bytes()].concat());
        let faults = self.known.wasm.remove(&name).unwrap_or_else(|| {
            self.is_new = true;
            wasm::inspect(bytes, declaration)
        });
        self.used.wasm.insert(name, faults.clone());
        faults
    }

    /// Keeps the inspections of this build, and no others: those of files that are gone go, too.
    pub fn keep(self) {
        if self.is_new || self.known.len() > 0 {
            self.inspectors.cache.put(&self.key, &self.used);
        }
    }
}
