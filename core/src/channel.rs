//! The channel: a small envelope that points from a name to a manifest (wire contract, "Channel"). A DSSE envelope
//! (github.com/secure-systems-lab/dsse) in JSON; its payload is canonical JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::canonical::{self, NotCanonical};
use crate::digest::ManifestDigest;
use crate::time::is_time;

/// `payloadType` of a channel's envelope.
pub const PAYLOAD_TYPE: &str = "application/vnd.packferry.channel+json";

/// A name that no channel or policy may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a channel's name is 1 to 64 of a-z, 0-9 and -")]
pub struct InvalidChannelName;

/// Checks a channel's name: 1 to 64 of `[a-z0-9-]`.
///
/// # Errors
/// [`InvalidChannelName`].
pub fn check_name(name: &str) -> Result<(), InvalidChannelName> {
    let legal = (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if legal { Ok(()) } else { Err(InvalidChannelName) }
}

/// What a channel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Pointer {
    /// Always 1.
    pub version: u64,
    /// The channel's name.
    pub channel: String,
    /// Grows with every publish and every rollback.
    pub sequence: u64,
    /// The manifest that answers.
    pub manifest: ManifestDigest,
    /// When it was published: RFC 3339, UTC, seconds.
    pub published_at: String,
    /// When readers with trusted keys stop taking it: RFC 3339, UTC, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// A signature over [`pre_authentication_encoding`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// SHA-256, hex, of the 32 raw key bytes.
    pub keyid: String,
    /// Ed25519 signature in base64.
    pub sig: String,
}

/// The envelope around a pointer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Envelope {
    /// [`PAYLOAD_TYPE`].
    pub payload_type: String,
    /// The pointer's canonical JSON in base64.
    pub payload: String,
    /// Empty when unsigned.
    pub signatures: Vec<Signature>,
}

/// Why an envelope is not one of this channel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEnvelope {
    /// The envelope or its payload is not of the right shape, or not canonical.
    #[error(transparent)]
    Document(#[from] NotCanonical),
    /// Another payload type.
    #[error("its payload type is not a channel's")]
    PayloadType,
    /// The payload is not base64 of UTF-8.
    #[error("its payload cannot be decoded")]
    Payload,
    /// Another version than this code reads.
    #[error("pointer version {0} is not known")]
    Version(u64),
    /// The pointer of another channel.
    #[error("it is that of channel {0}")]
    OtherChannel(String),
    /// A time that is not RFC 3339 in UTC with seconds.
    #[error("its times are not RFC 3339 in UTC")]
    Time,
}

impl Envelope {
    /// Wraps `pointer`, unsigned.
    #[must_use]
    pub fn unsigned(pointer: &Pointer) -> Self {
        Self {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: STANDARD.encode(canonical::to_json(pointer)),
            signatures: Vec::new(),
        }
    }

    /// Parses an envelope and its pointer. Signatures are left to the caller, who knows the trusted keys.
    ///
    /// # Errors
    /// [`InvalidEnvelope`]; also where the pointer is that of another channel than `channel`.
    pub fn parse(text: &str, channel: &str) -> Result<(Self, Pointer), InvalidEnvelope> {
        let shape = serde_json::from_str(text).map_err(|error| NotCanonical::Shape(error.to_string()));
        let envelope: Self = shape?;
        if envelope.payload_type != PAYLOAD_TYPE {
            return Err(InvalidEnvelope::PayloadType);
        }
        let payload = STANDARD
            .decode(&envelope.payload)
            .map_err(|_| InvalidEnvelope::Payload)?;
        let payload = String::from_utf8(payload).map_err(|_| InvalidEnvelope::Payload)?;
        let pointer: Pointer = canonical::from_json(&payload)?;
        if pointer.version != 1 {
            return Err(InvalidEnvelope::Version(pointer.version));
        }
        if pointer.channel != channel {
            return Err(InvalidEnvelope::OtherChannel(pointer.channel));
        }
        if !is_time(&pointer.published_at) || !pointer.expires.as_deref().is_none_or(is_time) {
            return Err(InvalidEnvelope::Time);
        }
        Ok((envelope, pointer))
    }

    /// The envelope's canonical JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        canonical::to_json(self)
    }
}

/// What a signature is over: DSSE's pre-authentication encoding of type and payload.
#[must_use]
pub fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointer() -> Pointer {
        Pointer {
            version: 1,
            channel: "stable".into(),
            sequence: 7,
            manifest: ManifestDigest::of(b"x"),
            published_at: "2026-01-02T03:04:05Z".into(),
            expires: None,
        }
    }

    #[test]
    fn an_envelope_reads_back() {
        let envelope = Envelope::unsigned(&pointer());
        assert_eq!(
            Envelope::parse(&envelope.to_json(), "stable"),
            Ok((envelope, pointer()))
        );
    }

    #[test]
    fn hostile_envelopes_are_refused() {
        let wrap = |payload: &str| Envelope {
            payload_type: PAYLOAD_TYPE.into(),
            payload: STANDARD.encode(payload),
            signatures: Vec::new(),
        };
        let json = canonical::to_json(&pointer());
        let cases = [
            ("not canonical", wrap(&format!("{json} ")).to_json()),
            (
                "unknown key",
                wrap(&json.replacen("\"version\"", "\"x\":1,\"version\"", 1)).to_json(),
            ),
            (
                "version",
                wrap(&json.replacen("\"version\":1", "\"version\":2", 1)).to_json(),
            ),
            ("another channel", wrap(&json.replacen("stable", "beta", 1)).to_json()),
            ("a negative sequence", wrap(&json.replacen(":7", ":-7", 1)).to_json()),
            ("a time with an offset", wrap(&json.replacen("05Z", "05+", 1)).to_json()),
            (
                "another type",
                wrap(&json).to_json().replacen("channel+json", "other", 1),
            ),
            (
                "not base64",
                wrap(&json).to_json().replacen("\"payload\":\"", "\"payload\":\"!", 1),
            ),
            ("not JSON", "nope".to_owned()),
        ];
        for (what, text) in cases {
            assert!(Envelope::parse(&text, "stable").is_err(), "{what}");
        }
    }

    #[test]
    fn names() {
        for good in ["stable", "a", "0-1", &"a".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "A", "a/b", "a_b", "é", &"a".repeat(65)] {
            assert_eq!(check_name(bad), Err(InvalidChannelName), "{bad}");
        }
    }

    #[test]
    fn the_signed_bytes_are_those_of_the_dsse_specification() {
        let encoded = pre_authentication_encoding("http://example.com/HelloWorld", b"hello world");
        assert_eq!(encoded, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }
}
