//! Host entries: what the operator's registry says about them (pack contract, section 8).

use std::ops::Range;

use packferry_core::payload::Declaration;

use super::EntrySource;
use crate::diagnostics::{HOST_NOT_REGISTERED, HOST_UNKNOWN, HOST_WRONG_PACK, Rule};
use crate::package_json::RawPack;
use crate::registry::Registry;

pub(super) fn check_all(raw: &mut RawPack, registry: Option<&Registry>) {
    let findings: Vec<_> = raw
        .modules
        .iter()
        .filter_map(|module| {
            let Some(Declaration::Host(host)) = &module.declaration else {
                return None;
            };
            check_host(raw, &host.host, module.span.clone(), registry)
        })
        .collect();
    for (rule, place, message) in findings {
        let message = format!("{}: {message}", raw.label);
        raw.find(rule, place, message);
    }
}

fn check_host(
    raw: &RawPack,
    id: &str,
    place: Range<usize>,
    registry: Option<&Registry>,
) -> Option<(&'static Rule, Range<usize>, String)> {
    let Some(registry) = registry else {
        let message = format!("host module \"{id}\" is not delivered: no registry was given");
        return Some((&HOST_NOT_REGISTERED, place, message));
    };
    let Some(module) = registry.get(id) else {
        let message = format!("\"{id}\" is not a host module of the registry, and a pack cannot bring its own");
        return Some((&HOST_UNKNOWN, place, message));
    };
    if raw.name.as_ref() == Some(&module.owner) {
        return None;
    }
    let message = format!(
        "host module \"{id}\" belongs to {} and cannot be declared by {}",
        module.owner, raw.label
    );
    Some((&HOST_WRONG_PACK, place, message))
}

/// What stands behind a host entry.
pub(super) fn source(id: &str, registry: Option<&Registry>) -> EntrySource {
    match registry.and_then(|registry| registry.get(id)) {
        Some(module) => EntrySource::Host(module.exports.clone()),
        None => EntrySource::UnregisteredHost,
    }
}
