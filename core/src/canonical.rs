//! Canonical JSON: the compact encoding that every digest is computed over (pack contract, section 10).
//!
//! It is what `JSON.stringify` prints: no spaces, keys in the order of the type's fields, absent values omitted, only
//! `"`, `\` and control characters escaped. `serde_json` writes exactly this for strings without lone surrogates, which
//! a Rust string cannot hold, and for integers; no canonical type has a float or an unordered map.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Encodes `value` canonically.
///
/// # Panics
/// Never for the types of this crate: they hold strings, integers, lists and structs only. The lint is silenced here
/// and nowhere else.
#[must_use]
#[expect(
    clippy::expect_used,
    reason = "serialization of strings, integers, lists and structs cannot fail"
)]
pub fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("canonical types serialize")
}

/// Why a document was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// Not JSON, or not of the document's shape.
    #[error("not a document of this kind: {0}")]
    Shape(String),
    /// Of the right shape, but its encoding is not the canonical one.
    #[error("not in canonical encoding")]
    Encoding,
}

/// Parses a canonical document strictly: unknown keys and duplicate keys are errors of the type, and the re-encoding
/// must equal `text` byte for byte.
///
/// # Errors
/// [`NotCanonical`] says whether shape or encoding is wrong.
pub fn from_json<T: Serialize + DeserializeOwned>(text: &str) -> Result<T, NotCanonical> {
    let value: T = serde_json::from_str(text).map_err(|error| NotCanonical::Shape(error.to_string()))?;
    if to_json(&value) == text {
        Ok(value)
    } else {
        Err(NotCanonical::Encoding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_javascript_does() {
        let text = "\"\\\u{8}\u{c}\n\r\t\u{1}\u{1f}/\u{7f}\u{2028}é😀";
        assert_eq!(
            to_json(&text),
            "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f/\u{7f}\u{2028}é😀\""
        );
    }

    #[test]
    fn only_the_canonical_encoding_is_taken() {
        assert_eq!(from_json::<Vec<u32>>("[1,2]"), Ok(vec![1, 2]));
        assert_eq!(from_json::<Vec<u32>>("[1, 2]"), Err(NotCanonical::Encoding));
        assert!(matches!(from_json::<Vec<u32>>("[1.5]"), Err(NotCanonical::Shape(_))));
    }
}
