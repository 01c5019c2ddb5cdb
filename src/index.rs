//! The index: what a requester may fetch, page by page, reading only the shards that a page shows.

use std::collections::HashSet;

use packferry_core::canonical;
use packferry_core::digest::{BlobDigest, GraphDigest, ManifestDigest};
use packferry_core::id::{FileId, ModuleId, PackName, Specifier};
use packferry_core::key::StorageKey;
use packferry_core::manifest::{ModuleEntry, PackEntry, Root, ShardRow};
use packferry_core::order::by_utf16;
use packferry_core::policy::Subject;
use packferry_core::record::DeliveredKind;
use serde::Serialize;

use crate::fetch::Reader;
use crate::guard::Gate;
use crate::problem::{Corruption, Problem};
use crate::release::Release;
use crate::route::IndexQuery;
use crate::store::Store;

#[derive(Serialize)]
struct Page {
    manifest: ManifestDigest,
    modules: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Specifier>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    specifier: Specifier,
    pack: PackName,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    kind: DeliveredKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    graph_digest: GraphDigest,
    pinned_id: String,
    exports: Vec<String>,
    size: u64,
    files: usize,
}

/// All that a page depends on, in one digest: the text of its entity tag.
pub(crate) fn fingerprint(release: &Release, gate: &Gate, query: &IndexQuery) -> BlobDigest {
    let after = query.after.as_deref().unwrap_or_default();
    let parts = (release.manifest, gate.fingerprint(), &query.prefix, after, query.limit);
    BlobDigest::of(canonical::to_json(&parts).as_bytes())
}

impl<S: Store> Reader<'_, S> {
    /// The page of `release` that `query` asks for, with what the gate lets through, as JSON.
    pub(crate) async fn index(&self, release: &Release, gate: &Gate, query: &IndexQuery) -> Result<String, Problem> {
        let span = Span::new(query);
        let mut page = Page {
            manifest: release.manifest,
            modules: Vec::new(),
            next: None,
        };
        match &*release.root {
            Root::Packs(packs) => {
                fill(&mut page, packs, gate, &span)?;
            }
            Root::Shards(rows) => {
                for (row, end) in span.shards(rows) {
                    if end.is_some_and(|end| gate.hides_all(row.first.as_str(), end.first.as_str())) {
                        continue;
                    }
                    let full = page.modules.len() >= query.limit;
                    if full {
                        page.next = page.modules.last().map(|row| row.specifier.clone());
                    }
                    if full || fill(&mut page, &self.packs(row.sha256).await?, gate, &span)? {
                        break;
                    }
                }
            }
        }
        Ok(canonical::to_json(&page))
    }
}

/// Adds the modules of `packs` that the page shows. Whether the page ends here.
fn fill(page: &mut Page, packs: &[PackEntry], gate: &Gate, span: &Span<'_>) -> Result<bool, Problem> {
    for pack in packs {
        if span.ends_before(pack.name.as_str()) {
            return Ok(true);
        }
        for module in &pack.modules {
            if !span.holds(&module.specifier) || !is_visible(pack, module, gate) {
                continue;
            }
            if page.modules.len() >= span.query.limit {
                page.next = page.modules.last().map(|row| row.specifier.clone());
                return Ok(true);
            }
            page.modules.push(row(page.manifest, pack, module)?);
        }
    }
    Ok(false)
}

fn is_visible(pack: &PackEntry, module: &ModuleEntry, gate: &Gate) -> bool {
    let subject = Subject {
        pack: pack.name.as_str(),
        version: pack.version.as_deref(),
        graph: Some(module.graph_digest),
    };
    gate.delivery(&subject).is_ok()
}

fn row(manifest: ManifestDigest, pack: &PackEntry, module: &ModuleEntry) -> Result<Row, Problem> {
    let (size, files) = graph_size(pack, module).ok_or_else(|| Corruption {
        key: StorageKey::Manifest(manifest),
        cause: format!("{} lists no file that {} imports", pack.name, module.specifier),
    })?;
    Ok(Row {
        specifier: module.specifier.clone(),
        pack: pack.name.clone(),
        version: pack.version.clone(),
        kind: module.kind,
        description: pack.description.clone(),
        graph_digest: module.graph_digest,
        pinned_id: module.graph_digest.to_string(),
        exports: module.exports.clone(),
        size,
        files,
    })
}

/// Bytes and number of the files that a module reaches, itself included. None where the pack does not list one of them.
fn graph_size(pack: &PackEntry, module: &ModuleEntry) -> Option<(u64, usize)> {
    let mut seen: HashSet<&FileId> = HashSet::from([&module.file_id]);
    let mut open: Vec<&FileId> = module.dependencies.iter().collect();
    let mut size = module.size;
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            let file = pack.file(id.as_str())?;
            size = size.checked_add(file.size)?;
            open.extend(&file.dependencies);
        }
    }
    Some((size, seen.len()))
}

/// Which specifiers a query wants, and between which pack names they lie.
struct Span<'a> {
    query: &'a IndexQuery,
    /// No wanted pack's name is smaller.
    first: String,
    /// Set where the prefix reaches into one pack: no other can match.
    only: Option<String>,
    /// The pack of the specifier that the page comes after.
    after_pack: Option<String>,
}

impl<'a> Span<'a> {
    fn new(query: &'a IndexQuery) -> Self {
        let pack_of = |text: &str| {
            ModuleId::Specifier(text.to_owned())
                .pack()
                .unwrap_or_default()
                .to_owned()
        };
        let prefix_pack = pack_of(&query.prefix);
        let only = (prefix_pack != query.prefix).then(|| prefix_pack.clone());
        let after_pack = query.after.as_deref().map(pack_of);
        let first = match &after_pack {
            Some(after) if by_utf16(after, &prefix_pack).is_gt() => after.clone(),
            Some(_) | None => prefix_pack,
        };
        Self {
            query,
            first,
            only,
            after_pack,
        }
    }

    /// The shards in which wanted packs may lie, each with the one after it.
    fn shards<'r>(&self, rows: &'r [ShardRow]) -> impl Iterator<Item = (&'r ShardRow, Option<&'r ShardRow>)> {
        let begun = rows.partition_point(|row| by_utf16(row.first.as_str(), &self.first).is_le());
        let rest = rows.get(begun.saturating_sub(1)..).unwrap_or_default();
        // Only the first may begin before what is wanted.
        let beyond = rest.iter().skip(1).position(|row| self.ends_before(row.first.as_str()));
        let wanted = beyond.map_or(rest.len(), |at| at + 1);
        let ends = rest.iter().skip(1).map(Some).chain([None]);
        rest.iter().zip(ends).take(wanted)
    }

    /// Whether this pack and all later ones lie behind the wanted ones.
    fn ends_before(&self, pack: &str) -> bool {
        match &self.only {
            Some(only) => by_utf16(pack, only).is_gt(),
            None => !pack.starts_with(&self.query.prefix) && by_utf16(pack, &self.query.prefix).is_gt(),
        }
    }

    /// Whether a specifier is wanted.
    fn holds(&self, specifier: &Specifier) -> bool {
        let comes_after = match (&self.after_pack, &self.query.after) {
            (Some(pack), Some(after)) => {
                let order = by_utf16(specifier.pack(), pack).then_with(|| by_utf16(specifier.as_str(), after));
                order.is_gt()
            }
            _ => true,
        };
        comes_after && specifier.as_str().starts_with(&self.query.prefix)
    }
}
