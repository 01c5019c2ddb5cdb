//! SHA-256 digests, one type for each kind of thing that a digest names, so that the compiler refuses to compare a
//! graph digest with a blob digest. Hashing of large bodies at the edge goes through the runtime instead (the worker's
//! `store.rs`); what is hashed here is small or built natively.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct InvalidDigest;

/// Whether `text` is what a digest looks like: 64 lower-case hexadecimal digits.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn parse_hex(text: &str) -> Result<[u8; 32], InvalidDigest> {
    if !is_digest(text) {
        return Err(InvalidDigest);
    }
    let mut bytes = [0; 32];
    hex::decode_to_slice(text, &mut bytes).map_err(|_| InvalidDigest)?;
    Ok(bytes)
}

macro_rules! digest_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            /// Hashes `bytes`.
            #[must_use]
            pub fn of(bytes: &[u8]) -> Self {
                Self(Sha256::digest(bytes).into())
            }

            /// A digest that was computed elsewhere (the runtime's SHA-256).
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The 32 raw bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = InvalidDigest;
            fn from_str(text: &str) -> Result<Self, InvalidDigest> {
                parse_hex(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                parse_hex(&text).map(Self).map_err(de::Error::custom)
            }
        }
    };
}

digest_type!(
    /// Names the bytes of one file as they are delivered.
    BlobDigest
);
digest_type!(
    /// Names a module graph: SHA-256 of its digest payload (pack contract, section 10).
    GraphDigest
);
digest_type!(
    /// Names a manifest: SHA-256 of its root's bytes.
    ManifestDigest
);
digest_type!(
    /// Names a shard of a manifest: SHA-256 of its bytes.
    ShardDigest
);
digest_type!(
    /// Names a whole pack as it was built (pack contract, section 10).
    PackDigest
);
digest_type!(
    /// SHA-256 of a requester's token: the only form in which a policy holds one.
    TokenDigest
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_parsed_strictly() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(BlobDigest::of(b"").to_string(), empty);
        assert_eq!(empty.parse::<BlobDigest>(), Ok(BlobDigest::of(b"")));
        for bad in [
            "",
            "e3",
            &empty.to_uppercase(),
            &format!("{empty}0"),
            &empty.replace('e', "g"),
            &"é".repeat(32),
        ] {
            assert_eq!(bad.parse::<BlobDigest>(), Err(InvalidDigest), "{bad}");
        }
    }
}
