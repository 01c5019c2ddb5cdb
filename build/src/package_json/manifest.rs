//! Rules of the manifest as a whole: `apiVersion`, `sandboxModules`, `internal`, and what its parts must not share.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use packferry_core::id::FileId;

use super::modules::{opening, read_module};
use super::names::{check_file_string, normalized};
use super::{RawFile, RawPack, member, quoted};
use crate::diagnostics::{
    API_VERSION, DUPLICATE_FILE, DUPLICATE_INTERNAL, DUPLICATE_MODULE, FILE_PATH, INTERNAL_IS_PUBLIC, INTERNAL_NOT_JS,
    MANIFEST_SHAPE,
};
use crate::json::{Member, Node};

/// Reads the three keys of `nodetool` that make the manifest; all others are somebody else's.
pub(super) fn read(pack: &mut RawPack, nodetool: &[Member<'_>]) {
    if let Some(version) = member(nodetool, "apiVersion") {
        check_api_version(pack, &version.value);
    }
    if let Some(modules) = member(nodetool, "sandboxModules") {
        read_modules(pack, &modules.value);
    }
    if let Some(internal) = member(nodetool, "internal") {
        read_internal(pack, &internal.value);
    }
    check_internal_is_not_public(pack);
}

fn check_api_version(pack: &mut RawPack, node: &Node<'_>) {
    if node.number() != Some(1.0) {
        let message = format!("{}: nodetool.apiVersion is not 1", pack.label);
        pack.find(&API_VERSION, node.span(), message);
    }
}

fn read_modules(pack: &mut RawPack, node: &Node<'_>) {
    let Some(elements) = node.elements() else {
        return not_an_array(pack, "sandboxModules", node);
    };
    let mut names: HashMap<String, usize> = HashMap::new();
    for (index, element) in elements.iter().enumerate() {
        let (module, name) = read_module(pack, index, element);
        if let Some(name) = name {
            check_module_is_new(pack, &mut names, index, &name);
        }
        pack.modules.push(module);
    }
    check_files_are_distinct(pack);
}

fn not_an_array(pack: &mut RawPack, key: &str, node: &Node<'_>) {
    let message = format!(
        "{}: nodetool.{key} is {}, and must be an array",
        pack.label,
        node.kind()
    );
    pack.find(&MANIFEST_SHAPE, opening(node), message);
}

fn check_module_is_new(
    pack: &mut RawPack,
    names: &mut HashMap<String, usize>,
    index: usize,
    name: &(String, Range<usize>),
) {
    let (name, place) = name;
    if let Some(first) = names.get(name) {
        let message = format!(
            "{}: duplicate module name {}: nodetool.sandboxModules[{index}] and [{first}]",
            pack.label,
            quoted(name)
        );
        pack.find(&DUPLICATE_MODULE, place.clone(), message);
    } else {
        names.insert(name.clone(), index);
    }
}

fn check_files_are_distinct(pack: &mut RawPack) {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let mut faults = Vec::new();
    for (file, _) in pack.modules.iter().filter_map(|module| module.file.as_ref()) {
        match seen.get(file.id.as_str()) {
            Some(first) if *first == file.text => {
                faults.push((
                    file.span.clone(),
                    format!("{}: duplicate sandbox file: two modules name it", file.id),
                ));
            }
            Some(first) => {
                let message = format!(
                    "{}: duplicate sandbox file: {} and {} are one",
                    file.id,
                    quoted(first),
                    quoted(&file.text)
                );
                faults.push((file.span.clone(), message));
            }
            None => {
                seen.insert(file.id.as_str(), &file.text);
            }
        }
    }
    for (place, message) in faults {
        let message = format!("{}: {message}", pack.label);
        pack.find(&DUPLICATE_FILE, place, message);
    }
}

/// Reads `internal`: by the schema file strings, each once. What they name is judged only in a pack that declares modules: with
/// an empty list of those it is none.
fn read_internal(pack: &mut RawPack, node: &Node<'_>) {
    let Some(elements) = node.elements() else {
        return not_an_array(pack, "internal", node);
    };
    let declares_modules = !pack.modules.is_empty();
    let mut strings: HashSet<String> = HashSet::new();
    let mut ids: HashMap<FileId, String> = HashMap::new();
    for (index, element) in elements.iter().enumerate() {
        let Some(text) = element.string() else {
            let message = format!(
                "{}: nodetool.internal[{index}] is {}, and must be a string",
                pack.label,
                element.kind()
            );
            pack.find(&MANIFEST_SHAPE, opening(element), message);
            continue;
        };
        if let Err(fault) = check_file_string(&text) {
            not_a_path(pack, index, &text, element.span(), fault);
        } else if !strings.insert(text.clone().into_owned()) {
            let message = format!(
                "{}: duplicate internal file: {} is listed twice",
                pack.label,
                quoted(&text)
            );
            pack.find(&DUPLICATE_INTERNAL, element.span(), message);
        } else if declares_modules {
            declare_internal(pack, &mut ids, index, text.into_owned(), element.span());
        }
    }
}

/// Declares the internal file that a string names.
fn declare_internal(
    pack: &mut RawPack,
    ids: &mut HashMap<FileId, String>,
    index: usize,
    text: String,
    span: Range<usize>,
) {
    let id = match normalized(&text) {
        Ok(id) => id,
        Err(fault) => return not_a_path(pack, index, &text, span, fault),
    };
    if !id.as_str().ends_with(".js") {
        let message = format!("{}: internal file must be JavaScript: {}", pack.label, quoted(&text));
        pack.find(&INTERNAL_NOT_JS, span.clone(), message);
    }
    if let Some(first) = ids.get(&id) {
        let message = format!(
            "{}: {id}: duplicate sandbox file: {} and {} are one",
            pack.label,
            quoted(first),
            quoted(&text)
        );
        return pack.find(&DUPLICATE_FILE, span, message);
    }
    ids.insert(id.clone(), text.clone());
    pack.internal.push(RawFile { text, id, span });
}

fn not_a_path(pack: &mut RawPack, index: usize, text: &str, place: Range<usize>, fault: &str) {
    let message = format!("{}: nodetool.internal[{index}] {} {fault}", pack.label, quoted(text));
    pack.find(&FILE_PATH, place, message);
}

fn check_internal_is_not_public(pack: &mut RawPack) {
    let public: HashMap<&str, &str> = pack
        .modules
        .iter()
        .filter_map(|module| module.file.as_ref())
        .map(|(file, _)| (file.id.as_str(), file.text.as_str()))
        .collect();
    let faults: Vec<(Range<usize>, String)> = pack
        .internal
        .iter()
        .filter_map(|file| {
            let module = public.get(file.id.as_str())?;
            let message = format!(
                "{}: public module duplicates internal file {}: a module names it as {}",
                pack.label,
                quoted(&file.text),
                quoted(module)
            );
            Some((file.span.clone(), message))
        })
        .collect();
    for (place, message) in faults {
        pack.find(&INTERNAL_IS_PUBLIC, place, message);
    }
}
