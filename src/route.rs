//! From method and URL to a route, or a refusal. Pure, and total: the path is taken from the URL's text as the runtime gives
//! it, because URL types normalize it or refuse characters that a client may send.

use packferry_core::digest::{ManifestDigest, ShardDigest};
use packferry_core::id::{InvalidModuleId, ModuleId, percent_decode};

use crate::problem::{Absence, Refusal};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// One file, by module id.
    Module(ModuleId),
    /// Every file of a graph, by specifier or graph digest.
    Closure(ModuleId),
    /// What this requester may fetch.
    Index(IndexQuery),
    /// A manifest's root.
    Manifest(ManifestDigest),
    /// A shard of a manifest.
    Shard(ShardDigest),
    /// A channel's envelope.
    Channel(String),
    /// How the worker is.
    Health,
    /// What a browser may ask.
    Preflight,
}

/// The index's query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexQuery {
    /// Only specifiers that begin so.
    pub prefix: String,
    /// Only what comes after this specifier.
    pub after: Option<String>,
    /// At most so many; 1 to [`INDEX_LIMIT`].
    pub limit: usize,
}

/// Most modules of one index page, and the default.
pub const INDEX_LIMIT: usize = 1000;

/// Whom a refusal's or fault's sentence speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// The module with this id.
    Module(String),
    /// Something else, as a sentence begins with it.
    Other(String),
}

/// A request that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Whether only headers are wanted.
    pub head: bool,
    /// What is asked for.
    pub route: Route,
}

/// A request that was not, with whom to speak of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotUnderstood {
    /// Whether only headers are wanted.
    pub head: bool,
    /// Why.
    pub refusal: Refusal,
    /// Of what.
    pub topic: Topic,
}

/// Reads method and URL.
///
/// # Errors
/// [`NotUnderstood`].
pub fn parse(method: &str, url: &str) -> Result<Asked, NotUnderstood> {
    let head = method == "HEAD";
    let (path, query) = path_and_query(url);
    let no = |refusal, topic: &str| NotUnderstood {
        head,
        refusal,
        topic: Topic::Other(topic.to_owned()),
    };
    match method {
        "GET" | "HEAD" => {}
        "OPTIONS" => {
            return Ok(Asked {
                head,
                route: Route::Preflight,
            });
        }
        _ => return Err(no(Refusal::MethodNotAllowed, "This method")),
    }
    match parse_path(path, query) {
        Ok(Some(route)) => Ok(Asked { head, route }),
        Ok(None) => Err(no(Refusal::NoRoute, "This path")),
        Err(Unparsed::Id) => Err(no(Refusal::InvalidId, "The module id")),
        Err(Unparsed::Absent(topic)) => Err(NotUnderstood {
            head,
            refusal: Refusal::NotFound(Absence::default()),
            topic,
        }),
    }
}

/// The path of an absolute URL, as it is written.
#[must_use]
pub fn path(url: &str) -> &str {
    path_and_query(url).0
}

/// Path and query of an absolute URL, as they are written.
fn path_and_query(url: &str) -> (&str, &str) {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let target = match after_scheme.find(['/', '?', '#']) {
        Some(at) => after_scheme.get(at..).unwrap_or(""),
        None => "",
    };
    let target = target.split_once('#').map_or(target, |(target, _)| target);
    target.split_once('?').unwrap_or((target, ""))
}

/// Why a path has no route although its beginning has one.
enum Unparsed {
    Id,
    Absent(Topic),
}

impl From<InvalidModuleId> for Unparsed {
    fn from(_: InvalidModuleId) -> Self {
        Self::Id
    }
}

fn parse_path(path: &str, query: &str) -> Result<Option<Route>, Unparsed> {
    if path == "/healthz" {
        return Ok(Some(Route::Health));
    }
    let Some(rest) = path.strip_prefix("/api/") else {
        return Ok(None);
    };
    let (collection, raw_id) = rest.split_once('/').unwrap_or((rest, ""));
    let route = match collection {
        // A bare collection and an empty id are one and the same.
        "sandbox-modules" if raw_id.is_empty() || raw_id == "/" => Route::Index(parse_query(query)?),
        _ if raw_id.is_empty() || raw_id == "/" => return Ok(None),
        "sandbox-modules" => Route::Module(ModuleId::from_path(raw_id)?),
        "sandbox-closures" => parse_closure(ModuleId::from_path(raw_id)?)?,
        "manifests" => Route::Manifest(parse_name(raw_id, "Manifest", |text| text.parse().ok())?),
        "shards" => Route::Shard(parse_name(raw_id, "Shard", |text| text.parse().ok())?),
        "channels" => Route::Channel(parse_name(raw_id, "Channel", |text| Some(text.to_owned()))?),
        _ => return Ok(None),
    };
    Ok(Some(route))
}

/// Closures are of whole graphs: a file's id names none.
fn parse_closure(id: ModuleId) -> Result<Route, Unparsed> {
    match id {
        ModuleId::Specifier(_) | ModuleId::Graph(_) => Ok(Route::Closure(id)),
        ModuleId::File { .. } | ModuleId::GraphFile { .. } => Err(Unparsed::Absent(Topic::Module(id.to_string()))),
    }
}

/// Decodes a name by the rules of module ids; one that cannot be of its kind is one that nothing has.
fn parse_name<T>(raw: &str, kind: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Unparsed> {
    let name = ModuleId::from_path(raw)?.to_string();
    parse(&name).ok_or_else(|| Unparsed::Absent(Topic::Other(format!("{kind} {name}"))))
}

/// Reads the index's query: unknown parameters and a limit that is no number are ignored; `+` is an ordinary character, as in
/// ids.
fn parse_query(query: &str) -> Result<IndexQuery, InvalidModuleId> {
    let mut parsed = IndexQuery {
        limit: INDEX_LIMIT,
        ..IndexQuery::default()
    };
    for parameter in query.split('&') {
        let (name, raw) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name {
            "prefix" => parsed.prefix = decode(raw)?,
            "after" => parsed.after = Some(decode(raw)?).filter(|after| !after.is_empty()),
            "limit" => parsed.limit = raw.parse().unwrap_or(INDEX_LIMIT).clamp(1, INDEX_LIMIT),
            _ => {}
        }
    }
    Ok(parsed)
}

fn decode(raw: &str) -> Result<String, InvalidModuleId> {
    // A text longer than any id begins none and comes after none.
    if raw.len() > 3 * packferry_core::limits::MODULE_ID_BYTES {
        return Err(InvalidModuleId);
    }
    String::from_utf8(percent_decode(raw)?).map_err(|_| InvalidModuleId)
}

impl Route {
    /// Whom a sentence about this request speaks of.
    #[must_use]
    pub fn topic(&self) -> Topic {
        match self {
            Self::Module(id) | Self::Closure(id) => Topic::Module(id.to_string()),
            Self::Index(_) => Topic::Other("The index of sandbox modules".to_owned()),
            Self::Manifest(digest) => Topic::Other(format!("Manifest {digest}")),
            Self::Shard(digest) => Topic::Other(format!("Shard {digest}")),
            Self::Channel(name) => Topic::Other(format!("Channel {name}")),
            Self::Health | Self::Preflight => Topic::Other("This worker".to_owned()),
        }
    }

    /// The route's name in logs and timings.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Module(id) if id.is_pinned() => "pinned",
            Self::Module(_) => "named",
            Self::Closure(_) => "closure",
            Self::Index(_) => "index",
            Self::Manifest(_) => "manifest",
            Self::Shard(_) => "shard",
            Self::Channel(_) => "channel",
            Self::Health => "health",
            Self::Preflight => "preflight",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes() {
        let digest = "ab".repeat(32);
        let module = |text: &str| Ok(Route::Module(ModuleId::split(String::from(text))));
        let closure = |text: &str| Ok(Route::Closure(ModuleId::split(String::from(text))));
        let index = |prefix: &str, after: Option<&str>, limit| {
            Ok(Route::Index(IndexQuery {
                prefix: prefix.to_owned(),
                after: after.map(str::to_owned),
                limit,
            }))
        };
        let absent = || Err(Refusal::NotFound(Absence::default()));
        let cases = [
            ("/api/sandbox-modules/@a/b", module("@a/b")),
            ("/api/sandbox-modules/%40a%2Fb?x=%zz", module("@a/b")),
            ("/api/sandbox-modules/a#b", module("a")),
            ("/api/sandbox-modules/<a>^", module("<a>^")),
            ("/api/sandbox-modules/%", Err(Refusal::InvalidId)),
            ("/api/sandbox-modules/a::b/c", module("a::b/c")),
            ("/api/sandbox-modules", index("", None, 1000)),
            ("/api/sandbox-modules/", index("", None, 1000)),
            ("/api/sandbox-modules//", index("", None, 1000)),
            ("/api/sandbox-modules///", module("/")),
            (
                "/api/sandbox-modules?prefix=%40a%2F&after=@a/b&limit=7",
                index("@a/", Some("@a/b"), 7),
            ),
            ("/api/sandbox-modules?limit=0&after=", index("", None, 1)),
            (
                "/api/sandbox-modules?limit=9999&limit=-1&other=x",
                index("", None, 1000),
            ),
            ("/api/sandbox-modules?prefix=%", Err(Refusal::InvalidId)),
            ("/api/sandbox-closures/a", closure("a")),
            (&format!("/api/sandbox-closures/{digest}"), closure(&digest)),
            (&format!("/api/sandbox-closures/{digest}::a.js"), absent()),
            ("/api/sandbox-closures/a::b.js", absent()),
            ("/api/sandbox-closures/", Err(Refusal::NoRoute)),
            (
                &format!("/api/manifests/{digest}"),
                Ok(Route::Manifest(digest.parse().unwrap())),
            ),
            (
                &format!("/api/shards/{digest}"),
                Ok(Route::Shard(digest.parse().unwrap())),
            ),
            ("/api/shards/abc", absent()),
            ("/api/shards/%f", Err(Refusal::InvalidId)),
            ("/api/channels/stable", Ok(Route::Channel("stable".to_owned()))),
            ("/healthz", Ok(Route::Health)),
            ("/healthz/", Err(Refusal::NoRoute)),
            ("", Err(Refusal::NoRoute)),
            ("/", Err(Refusal::NoRoute)),
            ("/api", Err(Refusal::NoRoute)),
            ("/api/", Err(Refusal::NoRoute)),
            ("/api/sandbox-modulesx/a", Err(Refusal::NoRoute)),
            ("/api/sandbox%2Dmodules/a", Err(Refusal::NoRoute)),
            ("//api/sandbox-modules/a", Err(Refusal::NoRoute)),
        ];
        for (target, expected) in cases {
            let parsed = parse("GET", &format!("http://host:8787{target}"));
            let route = parsed.map(|asked| asked.route).map_err(|no| no.refusal);
            assert_eq!(route, expected, "{target}");
        }
    }

    #[test]
    fn methods_come_before_paths() {
        let preflight = parse("OPTIONS", "http://host/nowhere").map(|asked| asked.route);
        assert_eq!(preflight.ok(), Some(Route::Preflight));
        for method in ["POST", "PUT", "DELETE", "PATCH", "get", ""] {
            let refusal = parse(method, "http://host/nowhere").map_err(|no| no.refusal);
            assert_eq!(refusal, Err(Refusal::MethodNotAllowed), "{method}");
        }
        assert!(parse("HEAD", "http://host/healthz").is_ok_and(|asked| asked.head));
    }
}
