//! The worker's configuration: what the vars of wrangler.toml mean. Reading them is `app.rs`'s.

use packferry_core::channel;
use packferry_core::digest::ManifestDigest;
use packferry_core::trust::TrustedKeys;

/// Which release answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The one that this channel points to.
    Channel(String),
    /// This one: the deploy is the release.
    Manifest(ManifestDigest),
    /// None, and why.
    Nothing(&'static str),
}

/// Whether a policy is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicySource {
    /// Everything is public.
    Open,
    /// The policy of this name.
    Named(String),
    /// One is asked for by a name that none can have: everything stays closed.
    Invalid,
}

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `MANIFEST`, else `CHANNEL`.
    pub source: Source,
    /// `TRUSTED_KEYS`: one of them has to have signed the channel. None: channels are taken as they are.
    pub trusted_keys: TrustedKeys,
    /// `POLICY`.
    pub policy: PolicySource,
    /// `CACHE_BYTES`: what the isolate's cache may hold. An isolate has 128 MB.
    pub cache_bytes: usize,
    /// `NAMED_MAX_AGE`: seconds for which browsers may keep a named answer without asking.
    pub named_max_age: u32,
    /// `POINTER_CACHE_SECONDS`: how long channel and policy are taken from the isolate's memory.
    pub pointer_cache_seconds: u32,
    /// `CACHE_TAGS`: whether answers say by what a cache in front of the worker can purge them.
    pub cache_tags: bool,
}

impl Config {
    /// Reads the configuration through `var`, which knows the vars by name. An empty var counts as absent.
    pub fn read(var: impl Fn(&str) -> Option<String>) -> Self {
        let var = |name| var(name).filter(|value| !value.trim().is_empty());
        let number = |name| var(name).and_then(|value| value.trim().parse::<u32>().ok());
        let trusted_keys = var("TRUSTED_KEYS").map_or(Ok(TrustedKeys::default()), |text| TrustedKeys::parse(&text));
        let source = match (source(var("MANIFEST").as_deref(), var("CHANNEL")), &trusted_keys) {
            // A channel is not taken unchecked because the keys cannot be read.
            (Source::Channel(_), Err(_)) => Source::Nothing("TRUSTED_KEYS holds no keys of Ed25519 in base64"),
            (source, _) => source,
        };
        Self {
            source,
            trusted_keys: trusted_keys.unwrap_or_default(),
            policy: match var("POLICY") {
                None => PolicySource::Open,
                Some(name) if channel::check_name(&name).is_ok() => PolicySource::Named(name),
                Some(_) => PolicySource::Invalid,
            },
            cache_bytes: number("CACHE_BYTES").map_or(32 << 20, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            named_max_age: number("NAMED_MAX_AGE").unwrap_or(0),
            pointer_cache_seconds: number("POINTER_CACHE_SECONDS").unwrap_or(30),
            cache_tags: var("CACHE_TAGS").is_some_and(|value| value == "1"),
        }
    }
}

fn source(manifest: Option<&str>, channel: Option<String>) -> Source {
    match (manifest, channel) {
        (Some(digest), _) => match digest.parse() {
            Ok(digest) => Source::Manifest(digest),
            Err(_) => Source::Nothing("MANIFEST is no digest"),
        },
        (None, Some(name)) => match channel::check_name(&name) {
            Ok(()) => Source::Channel(name),
            Err(_) => Source::Nothing("CHANNEL is no channel's name"),
        },
        (None, None) => Source::Nothing("neither CHANNEL nor MANIFEST is set"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Config {
        Config::read(|name| {
            let row = vars.iter().find(|(var, _)| *var == name);
            row.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn sources() {
        let digest = "ab".repeat(32);
        let manifest = Source::Manifest(digest.parse().unwrap());
        let channel = Source::Channel("stable".to_owned());
        let cases = [
            (vec![], Source::Nothing("neither CHANNEL nor MANIFEST is set")),
            (vec![("CHANNEL", "stable")], channel.clone()),
            (vec![("CHANNEL", "stable"), ("MANIFEST", "")], channel),
            (vec![("CHANNEL", "stable"), ("MANIFEST", &digest)], manifest),
            (
                vec![("CHANNEL", "a/b")],
                Source::Nothing("CHANNEL is no channel's name"),
            ),
            (
                vec![("MANIFEST", "x"), ("CHANNEL", "stable")],
                Source::Nothing("MANIFEST is no digest"),
            ),
        ];
        for (vars, source) in cases {
            assert_eq!(read(&vars).source, source, "{vars:?}");
        }
    }

    #[test]
    fn defaults_and_wrong_values() {
        let defaults = read(&[]);
        assert_eq!(
            (
                defaults.cache_bytes,
                defaults.named_max_age,
                defaults.pointer_cache_seconds,
                defaults.cache_tags
            ),
            (33_554_432, 0, 30, false)
        );
        assert_eq!(defaults.policy, PolicySource::Open);
        let odd = read(&[
            ("CACHE_BYTES", "x"),
            ("NAMED_MAX_AGE", "-1"),
            ("POLICY", "a b"),
            ("CACHE_TAGS", "1"),
        ]);
        assert_eq!(
            (odd.cache_bytes, odd.named_max_age, odd.cache_tags),
            (33_554_432, 0, true)
        );
        assert_eq!(
            odd.policy,
            PolicySource::Invalid,
            "a policy that cannot exist does not open the door"
        );
    }
}
