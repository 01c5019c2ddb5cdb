//! How the worker is: which release answers, since when, and what is wrong.

use packferry_core::canonical;
use packferry_core::digest::ManifestDigest;
use packferry_core::time::format_time;
use serde::Serialize;

use crate::config::Source;
use crate::fetch::Reader;
use crate::release::public_sentence;
use crate::store::Store;

#[derive(Serialize)]
struct Report<'a> {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    manifest: Option<ManifestDigest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
    since: String,
    storage: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// The report, as JSON. It looks at the channel, and tries a new release, as any request for a named id does.
pub(crate) async fn report<S: Store>(reader: &Reader<'_, S>) -> String {
    let tried = reader.release(async |_| Ok(())).await;
    let condition = reader.edge.releases.condition();
    let channel = match &reader.edge.config.source {
        Source::Channel(name) => Some(name.as_str()),
        Source::Manifest(_) | Source::Nothing(_) => None,
    };
    let problem = condition.problem.or_else(|| tried.err().as_ref().map(public_sentence));
    let well = !condition.degraded && condition.current.is_some();
    canonical::to_json(&Report {
        status: if well { "ok" } else { "degraded" },
        manifest: condition.current.map(|(manifest, _)| manifest),
        channel,
        sequence: condition.current.and_then(|(_, sequence)| sequence),
        since: format_time(condition.since / 1000),
        storage: if condition.storage_fails { "failing" } else { "ok" },
        problem,
    })
}
