//! Whom a reader believes: trusted Ed25519 keys, and whether one of them signed a channel's envelope (wire contract,
//! "Channel"). Sequence and time go on from there: the caller knows what it saw last, and the clock.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, VerifyingKey};
use sha2::{Digest, Sha256};

use crate::channel::{Envelope, PAYLOAD_TYPE, Pointer, pre_authentication_encoding};

/// The text names no keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("trusted keys are 32 bytes of Ed25519 each, in base64, separated by commas")]
pub struct InvalidKeys;

/// Why an envelope is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// It has no signature.
    #[error("it is not signed")]
    Unsigned,
    /// No signature of it is one of a trusted key.
    #[error("no trusted key signed it")]
    Signature,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
}

/// Keys of which one has to have signed. Without any, everything is believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedKeys(Vec<TrustedKey>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct TrustedKey {
    id: String,
    key: VerifyingKey,
}

/// The `keyid` of a key: SHA-256, hex, of its 32 raw bytes.
#[must_use]
pub fn key_id(key: &[u8; 32]) -> String {
    hex::encode(Sha256::digest(key))
}

impl TrustedKeys {
    /// Parses keys in base64, separated by commas; spaces around them are ignored.
    ///
    /// # Errors
    /// [`InvalidKeys`]; also for a key with which any signature could be forged.
    pub fn parse(text: &str) -> Result<Self, InvalidKeys> {
        let key = |text: &str| {
            let bytes = STANDARD.decode(text.trim()).map_err(|_| InvalidKeys)?;
            let bytes: [u8; 32] = bytes.try_into().map_err(|_| InvalidKeys)?;
            let key = VerifyingKey::from_bytes(&bytes).map_err(|_| InvalidKeys)?;
            if key.is_weak() {
                return Err(InvalidKeys);
            }
            Ok(TrustedKey {
                id: key_id(&bytes),
                key,
            })
        };
        text.split(',').map(key).collect::<Result<_, _>>().map(Self)
    }

    /// Whether nothing is asked of an envelope.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that one of the keys signed `envelope`, whose payload is `pointer`, and that at `now` (RFC 3339, UTC, seconds)
    /// it still holds.
    ///
    /// # Errors
    /// [`Untrusted`].
    pub fn check(&self, envelope: &Envelope, pointer: &Pointer, now: &str) -> Result<(), Untrusted> {
        if self.is_empty() {
            return Ok(());
        }
        if envelope.signatures.is_empty() {
            return Err(Untrusted::Unsigned);
        }
        if !self.is_signed(envelope) {
            return Err(Untrusted::Signature);
        }
        match &pointer.expires {
            Some(expires) if now >= expires.as_str() => Err(Untrusted::Expired),
            Some(_) | None => Ok(()),
        }
    }

    /// Each key is tried once, on the first signature that names it: a hostile envelope costs no more than an honest one.
    fn is_signed(&self, envelope: &Envelope) -> bool {
        let Ok(payload) = STANDARD.decode(&envelope.payload) else {
            return false;
        };
        let message = pre_authentication_encoding(PAYLOAD_TYPE, &payload);
        self.0.iter().any(|trusted| {
            let named = envelope
                .signatures
                .iter()
                .find(|signature| signature.keyid == trusted.id);
            let bytes = named.and_then(|signature| STANDARD.decode(&signature.sig).ok());
            let signature = bytes.and_then(|bytes| Signature::from_slice(&bytes).ok());
            signature.is_some_and(|signature| trusted.key.verify_strict(&message, &signature).is_ok())
        })
    }
}

#[cfg(test)]
mod tests {
    use ed25519_dalek::{Signer, SigningKey};

    use super::*;
    use crate::channel;
    use crate::digest::ManifestDigest;

    const NOW: &str = "2026-06-01T00:00:00Z";

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_bytes(&[seed; 32])
    }

    fn text(keys: &[&SigningKey]) -> String {
        let keys = keys.iter().map(|key| STANDARD.encode(key.verifying_key().as_bytes()));
        keys.collect::<Vec<_>>().join(", ")
    }

    fn pointer(expires: Option<&str>) -> Pointer {
        Pointer {
            version: 1,
            channel: "stable".to_owned(),
            sequence: 1,
            manifest: ManifestDigest::of(b"x"),
            published_at: "2026-01-02T03:04:05Z".to_owned(),
            expires: expires.map(str::to_owned),
        }
    }

    /// An envelope signed by `signers`, each under its own id.
    fn signed(pointer: &Pointer, signers: &[&SigningKey]) -> Envelope {
        let mut envelope = Envelope::unsigned(pointer);
        let payload = STANDARD.decode(&envelope.payload).unwrap();
        let message = pre_authentication_encoding(PAYLOAD_TYPE, &payload);
        let sign = |key: &&SigningKey| channel::Signature {
            keyid: key_id(key.verifying_key().as_bytes()),
            sig: STANDARD.encode(key.sign(&message).to_bytes()),
        };
        envelope.signatures = signers.iter().map(sign).collect();
        envelope
    }

    #[test]
    fn envelopes() {
        let (ours, theirs) = (key(1), key(2));
        let trusted = TrustedKeys::parse(&text(&[&ours, &key(3)])).unwrap();
        let check = |pointer: &Pointer, envelope: &Envelope| trusted.check(envelope, pointer, NOW);
        let lasting = pointer(None);
        let mut renamed = signed(&lasting, &[&theirs]);
        renamed.signatures[0].keyid = key_id(ours.verifying_key().as_bytes());
        let mut garbled = signed(&lasting, &[&ours]);
        garbled.signatures[0].sig = "!".to_owned();
        let mut swapped = signed(&lasting, &[&ours]);
        swapped.payload = signed(&pointer(Some("2027-01-01T00:00:00Z")), &[&ours]).payload;
        let cases = [
            ("signed", signed(&lasting, &[&ours]), Ok(())),
            ("also signed", signed(&lasting, &[&theirs, &ours]), Ok(())),
            ("unsigned", signed(&lasting, &[]), Err(Untrusted::Unsigned)),
            (
                "by another key",
                signed(&lasting, &[&theirs]),
                Err(Untrusted::Signature),
            ),
            ("by another key under our id", renamed, Err(Untrusted::Signature)),
            ("no signature's encoding", garbled, Err(Untrusted::Signature)),
            ("another payload", swapped, Err(Untrusted::Signature)),
        ];
        for (what, envelope, expected) in cases {
            assert_eq!(check(&lasting, &envelope), expected, "{what}");
            assert_eq!(TrustedKeys::default().check(&envelope, &lasting, NOW), Ok(()), "{what}");
        }
        for (expires, expected) in [(NOW, Err(Untrusted::Expired)), ("2026-06-01T00:00:01Z", Ok(()))] {
            let pointer = pointer(Some(expires));
            assert_eq!(check(&pointer, &signed(&pointer, &[&ours])), expected, "{expires}");
        }
    }

    #[test]
    fn keys() {
        assert!(TrustedKeys::parse(&text(&[&key(1)])).is_ok());
        let weak = STANDARD.encode([0; 32]);
        for bad in ["", ",", "AAAA", &weak, &format!("{},", text(&[&key(1)]))] {
            assert_eq!(TrustedKeys::parse(bad), Err(InvalidKeys), "{bad}");
        }
    }
}
