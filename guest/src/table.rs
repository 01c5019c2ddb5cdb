//! Which files a run serves, under which guest ids (pack contract, section 15). Built once, before any code runs; pure.

use std::collections::HashMap;
use std::sync::Arc;

use packferry_core::contract::{WasmContract, capability_facade};
use packferry_core::digest::BlobDigest;
use packferry_core::id::FileId;
use packferry_core::payload::GraphPayload;
use packferry_core::record::DeliveredKind;

use crate::graph::Graph;
use crate::host::PlatformModule;

/// The bridges over which generated facades call out of the guest. No other module may import one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bridge {
    Host,
    Capability,
    Wasm,
}

impl Bridge {
    pub(crate) const ALL: [Self; 3] = [Self::Host, Self::Capability, Self::Wasm];

    pub(crate) const fn specifier(self) -> &'static str {
        match self {
            Self::Host => "nodetool:host-bridge",
            Self::Capability => "nodetool:capability-bridge",
            Self::Wasm => "nodetool:wasm-bridge",
        }
    }

    /// How refusals call the facades that may import it.
    pub(crate) const fn facades(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Capability => "capability",
            Self::Wasm => "WASM",
        }
    }
}

/// The specifier of a bundle that is evaluated alone.
pub(crate) const BUNDLE: &str = "bundle";

/// A file that the loader serves.
#[derive(Debug)]
pub(crate) struct ServedFile {
    pub(crate) pack: String,
    pub(crate) source: Source,
}

/// Where a served file's text comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The file itself.
    Authored(Arc<[u8]>),
    /// Generated here; the delivered bytes of a WASM or host entry are never evaluated as JavaScript.
    Facade(Bridge, String),
}

/// A declared WASM module.
#[derive(Debug)]
pub(crate) struct WasmModule {
    pub(crate) bytes: Arc<[u8]>,
    pub(crate) contract: WasmContract,
}

/// A declared host module.
#[derive(Debug)]
pub(crate) struct HostModule {
    pub(crate) host: String,
    pub(crate) pack: String,
    pub(crate) exports: Vec<String>,
}

/// Everything that a run serves.
#[derive(Debug, Default)]
pub(crate) struct ModuleTable {
    /// Declared specifiers to guest ids.
    specifiers: HashMap<String, String>,
    /// Guest ids to files.
    files: HashMap<String, ServedFile>,
    /// Specifiers to WASM modules.
    wasm: HashMap<String, WasmModule>,
    /// Specifiers to host modules.
    hosts: HashMap<String, HostModule>,
    /// Specifiers of the platform's modules to their exports.
    platform: HashMap<String, Vec<String>>,
}

/// What graphs must agree about to share a file: its bytes and the files it imports.
type Content<'a> = (BlobDigest, &'a [FileId]);

impl ModuleTable {
    /// Lays out `graphs` in the order of declaration, and the modules of the platform. Of two graphs with one specifier the first
    /// counts.
    ///
    /// Guest ids are `nodetool-sandbox:<pack>|<file id>`. A graph that disagrees about a file with the graphs that got such ids
    /// before it gets ids of its own, `nodetool-sandbox:<pack>@<graph digest>|<file id>`, for all its files: two versions of a
    /// pack never share a helper.
    pub(crate) fn new(graphs: &[Graph], platform: &[PlatformModule]) -> Self {
        let mut table = Self::default();
        let mut shared: HashMap<String, Content<'_>> = HashMap::new();
        for graph in graphs {
            let payload = graph.record().payload();
            if table.specifiers.contains_key(payload.specifier().as_str()) {
                continue;
            }
            let plain = format!("nodetool-sandbox:{}", payload.pack());
            let contents = || {
                let files = graph.record().files().iter();
                files.map(|file| (guest_id(&plain, &file.id), (file.sha256, file.dependencies.as_slice())))
            };
            let agrees = contents().all(|(id, content)| shared.get(&id).is_none_or(|first| *first == content))
                && table.agrees_about_facade(graph, &plain);
            if agrees {
                shared.extend(contents());
                table.add(graph, &plain);
            } else {
                table.add(graph, &format!("{plain}@{}", graph.record().digest()));
            }
        }
        for module in platform {
            table.add_platform(module);
        }
        table
    }

    /// The table of a run that has one file, `source`, under the specifier [`BUNDLE`].
    pub(crate) fn of_bundle(source: &str) -> Self {
        let id = format!("nodetool-sandbox:{BUNDLE}|{BUNDLE}");
        let file = ServedFile {
            pack: BUNDLE.to_owned(),
            source: Source::Authored(source.as_bytes().into()),
        };
        Self {
            specifiers: HashMap::from([(BUNDLE.to_owned(), id.clone())]),
            files: HashMap::from([(id, file)]),
            ..Self::default()
        }
    }

    /// The file with guest id `id`.
    pub(crate) fn file(&self, id: &str) -> Option<&ServedFile> {
        self.files.get(id)
    }

    /// The guest id that a declared specifier stands for.
    pub(crate) fn declared(&self, specifier: &str) -> Option<&str> {
        self.specifiers.get(specifier).map(String::as_str)
    }

    /// The declared WASM modules, by specifier.
    pub(crate) fn wasm(&self) -> &HashMap<String, WasmModule> {
        &self.wasm
    }

    /// The declared host module `specifier`.
    pub(crate) fn host(&self, specifier: &str) -> Option<&HostModule> {
        self.hosts.get(specifier)
    }

    /// The exports of the platform's module `specifier`.
    pub(crate) fn platform(&self, specifier: &str) -> Option<&[String]> {
        self.platform.get(specifier).map(Vec::as_slice)
    }

    fn agrees_about_facade(&self, graph: &Graph, folder: &str) -> bool {
        let payload = graph.record().payload();
        match (
            self.files
                .get(&guest_id(folder, payload.entry()))
                .map(|file| &file.source),
            facade(payload),
        ) {
            (Some(Source::Facade(_, first)), Some((_, facade))) => first == facade,
            _ => true,
        }
    }

    fn add(&mut self, graph: &Graph, folder: &str) {
        let payload = graph.record().payload();
        let specifier = payload.specifier().to_string();
        let entry = guest_id(folder, payload.entry());
        for (file, body) in graph.files() {
            // A WASM or host file is served as the facade of its own entry only.
            if file.kind == DeliveredKind::Js {
                self.serve(guest_id(folder, &file.id), payload, Source::Authored(Arc::clone(body)));
            }
        }
        if let Some((bridge, text)) = facade(payload) {
            self.serve(entry.clone(), payload, Source::Facade(bridge, text.to_owned()));
        }
        if let (Some(contract), Some((_, body))) = (payload.wasm_contract(), graph.files().next()) {
            let bytes = Arc::clone(body);
            self.wasm.insert(specifier.clone(), WasmModule { bytes, contract });
        }
        if let GraphPayload::Host(host) = payload {
            let module = HostModule {
                host: host.host_id.clone(),
                pack: host.package_name.to_string(),
                exports: host.exports.clone(),
            };
            self.hosts.insert(specifier.clone(), module);
        }
        self.specifiers.insert(specifier, entry);
    }

    /// Serves a module of the platform under its specifier, also where a graph has that, too.
    fn add_platform(&mut self, module: &PlatformModule) {
        let specifier = module.specifier();
        let id = format!("nodetool-sandbox:{specifier}|capability");
        let names: Vec<&str> = module.exports().iter().map(String::as_str).collect();
        let file = ServedFile {
            pack: specifier.to_owned(),
            source: Source::Facade(Bridge::Capability, capability_facade(specifier, &names)),
        };
        self.files.insert(id.clone(), file);
        self.specifiers.insert(specifier.to_owned(), id);
        self.platform.insert(specifier.to_owned(), module.exports().to_vec());
    }

    fn serve(&mut self, id: String, payload: &GraphPayload, source: Source) {
        let pack = payload.pack().to_string();
        self.files.entry(id).or_insert(ServedFile { pack, source });
    }
}

/// The id of `file` in `folder`, which is what stands before the bar.
pub(crate) fn guest_id(folder: &str, file: &FileId) -> String {
    format!("{folder}|{file}")
}

fn facade(payload: &GraphPayload) -> Option<(Bridge, &str)> {
    match payload {
        GraphPayload::Wasm(wasm) => Some((Bridge::Wasm, &wasm.facade)),
        GraphPayload::Host(host) => Some((Bridge::Host, &host.facade)),
        GraphPayload::Js(_) | GraphPayload::Npm(_) => None,
    }
}
