//! Headers as tables: what stands on every answer, cache control, entity tags and conditional requests, and how text gets
//! into a header at all. Which answer has which is decided in `respond.rs`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use packferry_core::canonical;
use packferry_core::id::is_header_text;
use serde::Serialize;

/// Graph digest of a delivery. Never a hash of the body.
pub const X_CONTENT_DIGEST: HeaderName = HeaderName::from_static("x-content-digest");
/// SHA-256 of the body, hex.
pub const X_CONTENT_SHA256: HeaderName = HeaderName::from_static("x-content-sha256");
/// SHA-256 of the body as a structured field; unlike RFC 9530's two it survives compression on the way.
pub const UNENCODED_DIGEST: HeaderName = HeaderName::from_static("unencoded-digest");
/// The pack's name.
pub const X_SANDBOX_PACK: HeaderName = HeaderName::from_static("x-sandbox-pack");
/// The pack's version, where it has one.
pub const X_SANDBOX_PACK_VERSION: HeaderName = HeaderName::from_static("x-sandbox-pack-version");
/// The file's id.
pub const X_SANDBOX_FILE_ID: HeaderName = HeaderName::from_static("x-sandbox-file-id");
/// `1` for an internal file, else `0`.
pub const X_SANDBOX_INTERNAL: HeaderName = HeaderName::from_static("x-sandbox-internal");
/// Pinned ids of what the file imports, as a JSON list.
pub const X_SANDBOX_MODULE_DEPENDENCIES: HeaderName = HeaderName::from_static("x-sandbox-module-dependencies");
/// Call contract of a WASM entry, as JSON.
pub const X_SANDBOX_WASM_CONTRACT: HeaderName = HeaderName::from_static("x-sandbox-wasm-contract");
/// Host module's id of a host entry.
pub const X_SANDBOX_HOST_MODULE: HeaderName = HeaderName::from_static("x-sandbox-host-module");
/// Digest of the manifest that answered; named ids only.
pub const X_PACKFERRY_MANIFEST: HeaderName = HeaderName::from_static("x-packferry-manifest");
/// Where the answer came from.
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// By what a cache in front of the worker can purge the answer.
pub const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");

/// What stands on every answer, whatever its status. The origin is never echoed: a constant needs no `Vary`.
const EVERYWHERE: [(HeaderName, &str); 5] = [
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        "Content-Type, ETag, X-Content-Digest, X-Content-Sha256, Unencoded-Digest, X-Sandbox-Pack, \
         X-Sandbox-Pack-Version, X-Sandbox-File-Id, X-Sandbox-Internal, X-Sandbox-Module-Dependencies, \
         X-Sandbox-Wasm-Contract, X-Sandbox-Host-Module, X-Packferry-Manifest, Cache-Control, Server-Timing, Retry-After",
    ),
    (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
];

/// What a preflight allows.
const PREFLIGHT: [(HeaderName, &str); 4] = [
    (header::ALLOW, ALLOWED_METHODS),
    (header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS),
    (header::ACCESS_CONTROL_ALLOW_HEADERS, "Authorization, If-None-Match"),
    (header::ACCESS_CONTROL_MAX_AGE, "86400"),
];

/// Every method that is answered.
pub const ALLOWED_METHODS: &str = "GET, HEAD, OPTIONS";

/// How long an answer may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caching {
    /// Not at all.
    NoStore,
    /// It moves with a release: asked again each time, or after so many seconds.
    Fresh(u32),
    /// It can never mean anything else.
    Immutable,
}

/// The value of Cache-Control. What depended on the requester is `private`, and then always asked for again.
#[must_use]
pub fn cache_control(caching: Caching, private: bool) -> String {
    match (caching, private) {
        (Caching::NoStore, _) => "no-store".to_owned(),
        (Caching::Fresh(0), false) => "no-cache".to_owned(),
        (Caching::Fresh(seconds), false) => format!("public, max-age={seconds}"),
        (Caching::Fresh(_), true) => "private, no-cache".to_owned(),
        (Caching::Immutable, false) => "public, max-age=31536000, immutable".to_owned(),
        (Caching::Immutable, true) => "private, max-age=31536000, immutable".to_owned(),
    }
}

/// A value that no header can carry, or that Node's fetch would fail on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} has a value that no header can carry")]
pub struct Unsendable(pub HeaderName);

/// The headers of one answer, checked as they are set.
#[derive(Debug, Clone)]
pub struct Headers(HeaderMap);

impl Headers {
    /// What stands on every answer.
    #[must_use]
    pub fn new(caching: Caching, private: bool) -> Self {
        let mut headers = HeaderMap::with_capacity(24);
        headers.extend(EVERYWHERE.map(|(name, value)| (name, HeaderValue::from_static(value))));
        if let Ok(value) = HeaderValue::try_from(cache_control(caching, private)) {
            headers.insert(header::CACHE_CONTROL, value);
        }
        if private {
            headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
        }
        Self(headers)
    }

    /// Adds what a preflight allows.
    #[must_use]
    pub fn with_preflight(mut self) -> Self {
        self.0
            .extend(PREFLIGHT.map(|(name, value)| (name, HeaderValue::from_static(value))));
        self
    }

    /// Sets a header to a text of ours.
    pub fn set_static(&mut self, name: HeaderName, value: &'static str) {
        self.0.insert(name, HeaderValue::from_static(value));
    }

    /// Sets a header to a number.
    pub fn set_number(&mut self, name: HeaderName, value: usize) {
        self.0.insert(name, HeaderValue::from(value));
    }

    /// Sets a header to text that came from storage or is made of it.
    ///
    /// # Errors
    /// [`Unsendable`] for anything but printable ASCII that begins and ends with no space, and for what is too long.
    pub fn set(&mut self, name: HeaderName, value: &str) -> Result<(), Unsendable> {
        let value = Some(value)
            .filter(|value| is_header_text(value) && value.len() <= VALUE_BYTES)
            .and_then(|value| HeaderValue::from_str(value).ok());
        let value = value.ok_or_else(|| Unsendable(name.clone()))?;
        self.0.insert(name, value);
        Ok(())
    }

    /// The finished map.
    #[must_use]
    pub fn into_map(self) -> HeaderMap {
        self.0
    }
}

/// Bytes of one value: what the build allows its longest headers.
const VALUE_BYTES: usize = packferry_core::limits::PACK_LIMITS.header_bytes;

/// JSON in printable ASCII: whatever is not is written as `\uXXXX`, pairs of them outside the basic plane.
#[must_use]
pub fn ascii_json<T: Serialize>(value: &T) -> String {
    let json = canonical::to_json(value);
    let mut text = String::with_capacity(json.len());
    let mut units = [0; 2];
    for c in json.chars() {
        if (' '..='~').contains(&c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// Takes away what a 304 must not have: headers that are about the bytes of the very answer, which has none. Browsers that check
/// Unencoded-Digest (Chromium does) check it against the empty body of a 304, and fail the whole request.
pub fn leave_out_of_not_modified(headers: &mut HeaderMap) {
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(UNENCODED_DIGEST);
}

/// The value of Unencoded-Digest: a dictionary of one byte sequence (RFC 8941).
#[must_use]
pub fn unencoded_digest(sha256: &[u8; 32]) -> String {
    format!("sha-256=:{}:", STANDARD.encode(sha256))
}

/// A strong entity tag of `text`, which has no quotes.
#[must_use]
pub fn entity_tag(text: &impl std::fmt::Display) -> String {
    format!("\"{text}\"")
}

/// Whether If-None-Match names `tag`, a strong one: a list, or `*`. Compared weakly, as RFC 9110 (13.1.2) wants: a proxy
/// that compresses turns our tag into a weak one. A list is read up to what is no entity tag.
#[must_use]
pub fn matches_none(if_none_match: &str, tag: &str) -> bool {
    let mut rest = if_none_match.trim_matches(WHITESPACE);
    if rest == "*" {
        return true;
    }
    loop {
        rest = rest.trim_start_matches(|c| c == ',' || WHITESPACE.contains(&c));
        let strong = rest.strip_prefix("W/").unwrap_or(rest);
        let Some((opaque, after)) = strong.strip_prefix('"').and_then(|text| text.split_once('"')) else {
            return false;
        };
        if tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')) == Some(opaque) {
            return true;
        }
        rest = after;
    }
}

const WHITESPACE: [char; 2] = [' ', '\t'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditional_requests() {
        let cases = [
            ("\"a\"", true),
            ("W/\"a\"", true),
            (" \t\"a\" ", true),
            ("*", true),
            (" * ", true),
            ("\"x\", \"a\"", true),
            ("\"x\",W/\"a\",\"y\"", true),
            (",, \"x\" ,, \"a\",", true),
            ("\"x,y\", \"a\"", true),
            ("\"x\"", false),
            ("", false),
            ("a", false),
            ("\"A\"", false),
            ("\"a", false),
            ("w/\"a\"", false),
            ("\"x\", *", false),
            ("x, \"a\"", false),
            ("\"a\\\"\"", false),
        ];
        for (header, expected) in cases {
            assert_eq!(matches_none(header, "\"a\""), expected, "{header}");
        }
        let many = "\"x\", ".repeat(100_000);
        assert!(!matches_none(&many, "\"a\"") && matches_none(&(many + "\"a\""), "\"a\""));
    }

    #[test]
    fn cache_control_by_kind_and_requester() {
        let cases = [
            (Caching::NoStore, false, "no-store"),
            (Caching::NoStore, true, "no-store"),
            (Caching::Fresh(0), false, "no-cache"),
            (Caching::Fresh(60), false, "public, max-age=60"),
            (Caching::Fresh(60), true, "private, no-cache"),
            (Caching::Immutable, false, "public, max-age=31536000, immutable"),
            (Caching::Immutable, true, "private, max-age=31536000, immutable"),
        ];
        for (caching, private, expected) in cases {
            assert_eq!(cache_control(caching, private), expected);
        }
    }

    #[test]
    fn values_that_split_or_overflow_are_refused() {
        let mut headers = Headers::new(Caching::NoStore, false);
        for good in ["", "1.0.0", "a, b", &"x".repeat(12_000)] {
            assert_eq!(headers.set(X_SANDBOX_PACK, good), Ok(()), "{good}");
        }
        for bad in [
            "a\r\nB: c",
            "a\n",
            "\0",
            "é",
            "\u{7f}",
            "\t",
            " a",
            "a ",
            &"x".repeat(12_001),
        ] {
            assert_eq!(
                headers.set(X_SANDBOX_PACK, bad),
                Err(Unsendable(X_SANDBOX_PACK)),
                "{bad}"
            );
        }
    }

    #[test]
    fn json_is_escaped_to_ascii() {
        let text = "a\"\\/\u{7f}é\u{2028}😀\n";
        assert_eq!(ascii_json(&text), r#""a\"\\/\u007f\u00e9\u2028\ud83d\ude00\n""#);
        assert_eq!(serde_json::from_str::<String>(&ascii_json(&text)).unwrap(), text);
    }
}
