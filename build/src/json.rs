//! JSON with places: values of a text that know where they stand in it, read one level at a time. Skipping a value is
//! iterative (`serde_json`'s raw values), so depth costs nothing, and numbers stay text until somebody asks.
//!
//! The reading is JavaScript's: the last of duplicate keys wins, and numbers are doubles.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::Deserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// What a value is, told by its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// A list.
    Array,
    /// An object.
    Object,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    raw: &'a str,
    start: usize,
}

/// A key of an object with its value.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The key, unescaped.
    pub key: Cow<'a, str>,
    /// Where the key stands, quotes included.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node<'a>,
}

/// The text is not JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotJson {
    /// What is wrong, without a place.
    pub reason: String,
    /// The byte at which reading stopped.
    pub offset: usize,
}

impl<'a> Node<'a> {
    /// The value that `text` holds.
    ///
    /// # Errors
    /// [`NotJson`], exactly where `JSON.parse` refuses, too.
    pub fn parse(text: &'a str) -> Result<Self, NotJson> {
        match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) => Ok(Self::within(text, 0, raw)),
            Err(error) => Err(not_json(text, &error)),
        }
    }

    /// The node of `raw`, which borrows from `text`, which itself starts at `start`.
    fn within(text: &str, start: usize, raw: &'a RawValue) -> Self {
        let raw = raw.get();
        let offset = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        Self {
            raw,
            start: start + offset,
        }
    }

    /// Where it stands.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.start..self.start + self.raw.len()
    }

    /// Its text, as written.
    #[must_use]
    pub fn raw(&self) -> &'a str {
        self.raw
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.raw.as_bytes().first() {
            Some(b'n') => Kind::Null,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'"') => Kind::String,
            Some(b'[') => Kind::Array,
            Some(b'{') => Kind::Object,
            _ => Kind::Number,
        }
    }

    /// The text of a string; None for any other value, and for a string with a lone surrogate.
    #[must_use]
    pub fn string(&self) -> Option<Cow<'a, str>> {
        let unescaped = self.raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))?;
        if unescaped.contains('\\') {
            serde_json::from_str::<String>(self.raw).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(unescaped))
        }
    }

    /// The double that JavaScript reads; None for any other value.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        if self.kind() == Kind::Number {
            self.raw.parse().ok()
        } else {
            None
        }
    }

    /// The elements of a list; None for any other value.
    #[must_use]
    pub fn elements(&self) -> Option<Vec<Node<'a>>> {
        if self.kind() != Kind::Array {
            return None;
        }
        let mut json = serde_json::Deserializer::from_str(self.raw);
        let raws = json.deserialize_seq(Elements).ok()?;
        Some(
            raws.into_iter()
                .map(|raw| Self::within(self.raw, self.start, raw))
                .collect(),
        )
    }

    /// The members of an object in the order of their last occurrences, each key once; None for any other value.
    #[must_use]
    pub fn members(&self) -> Option<Vec<Member<'a>>> {
        if self.kind() != Kind::Object {
            return None;
        }
        let mut json = serde_json::Deserializer::from_str(self.raw);
        let raws = json.deserialize_map(Members).ok()?;
        let mut members: Vec<Member<'a>> = raws
            .into_iter()
            .filter_map(|(key, value)| {
                let key = Self::within(self.raw, self.start, key);
                Some(Member {
                    key: key.string()?,
                    key_span: key.span(),
                    value: Self::within(self.raw, self.start, value),
                })
            })
            .collect();
        let mut seen = HashSet::new();
        members.reverse();
        members.retain(|member| seen.insert(member.key.clone()));
        members.reverse();
        Some(members)
    }
}

struct Elements;

impl<'de> Visitor<'de> for Elements {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut raws = Vec::new();
        while let Some(raw) = elements.next_element()? {
            raws.push(raw);
        }
        Ok(raws)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(&'de RawValue, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut raws = Vec::new();
        while let Some(entry) = members.next_entry()? {
            raws.push(entry);
        }
        Ok(raws)
    }
}

/// `serde_json` tells line and column; the column counts bytes, from 1, and may lie within a character.
fn not_json(text: &str, error: &serde_json::Error) -> NotJson {
    let line_start: usize = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let offset = text.floor_char_boundary(line_start + error.column().saturating_sub(1));
    let message = error.to_string();
    let reason = match message.rfind(" at line ") {
        Some(at) => message.get(..at).unwrap_or(&message).to_owned(),
        None => message,
    };
    NotJson { reason, offset }
}

/// The first escape of JSON text that is half a surrogate pair, if there is one.
#[must_use]
pub fn first_lone_surrogate(json: &str) -> Option<Range<usize>> {
    lone_surrogates(json).next()
}

/// The text with every lone surrogate escape replaced by U+FFFD's, which is as long: places stay what they are.
#[must_use]
pub fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut spans = lone_surrogates(json).peekable();
    if spans.peek().is_none() {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len());
    let mut copied = 0;
    for span in spans {
        text.push_str(json.get(copied..span.start).unwrap_or_default());
        text.push_str("\\ufffd");
        copied = span.end;
    }
    text.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(text)
}

fn lone_surrogates(json: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        // Outside strings there is no backslash in JSON, so strings need not be told apart.
        while at < bytes.len() {
            if bytes.get(at) != Some(&b'\\') {
                at += 1;
                continue;
            }
            let Some(unit) = escaped_unit(bytes, at) else {
                at += 2;
                continue;
            };
            let start = at;
            at += 6;
            match unit {
                0xd800..=0xdbff if matches!(escaped_unit(bytes, at), Some(0xdc00..=0xdfff)) => at += 6,
                0xd800..=0xdfff => return Some(start..at),
                _ => {}
            }
        }
        None
    })
}

/// The code unit of a `\uXXXX` escape at `at`, if there is one.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn values_know_their_place() {
        let text = r#" { "a" : [ 1, "x\u0041" ], "b": {"a": null}, "a": -0.50e1 } "#;
        let root = Node::parse(text).unwrap();
        assert_eq!(&text[root.span()], text.trim());
        let members = root.members().unwrap();
        let shown: Vec<(&str, &str, &str)> = members
            .iter()
            .map(|m| (m.key.as_ref(), &text[m.key_span.clone()], &text[m.value.span()]))
            .collect();
        assert_eq!(shown, [("b", "\"b\"", "{\"a\": null}"), ("a", "\"a\"", "-0.50e1")]);
        assert_eq!(members[1].value.number(), Some(-5.0));
        let inner = members[0].value.members().unwrap();
        assert_eq!(
            (&text[inner[0].value.span()], inner[0].value.kind()),
            ("null", Kind::Null)
        );
        let list = Node::parse(r#"[1, "x\u0041"]"#).unwrap().elements().unwrap();
        assert_eq!(list[1].string().as_deref(), Some("xA"));
        assert_eq!(list[0].string(), None);
    }

    #[test]
    fn depth_and_odd_numbers_cost_nothing() {
        let deep = format!("{}{}", "[".repeat(400_000), "]".repeat(400_000));
        assert_eq!(Node::parse(&deep).unwrap().kind(), Kind::Array);
        let digits = "9".repeat(100_000);
        for (text, number) in [
            ("1e999", f64::INFINITY),
            ("-0", -0.0),
            ("1.0", 1.0),
            ("1E3", 1e3),
            (&digits, f64::INFINITY),
        ] {
            assert_eq!(Node::parse(text).unwrap().number(), Some(number), "{text:.20}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused_where_it_goes_wrong() {
        let cases = [
            ("", 0),
            ("\u{feff}{}", 0),
            ("{a:1}", 1),
            ("{\n\"a\":1,}", 8),
            ("[1 2]", 3),
            ("01", 1),
            ("\"\u{1}\"", 0),
            ("\"é\u{1}\"", 1),
            ("\"\u{fffd}\u{1f600}\u{1}\"", 4),
            ("\"\\x\"", 2),
            ("{} x", 3),
            ("'a'", 0),
            ("NaN", 0),
        ];
        for (text, offset) in cases {
            let error = Node::parse(text).unwrap_err();
            assert_eq!(error.offset, offset, "{text:?}: {error:?}");
            assert!(!error.reason.contains("line"), "{error:?}");
        }
    }

    #[test]
    fn lone_surrogates_are_found_and_replaced() {
        let cases = [
            (r#""\ud83d\ude00""#, None),
            (r#""\\ud800""#, None),
            (r#""\ud800""#, Some(1..7)),
            (r#""\udc00\ud800""#, Some(1..7)),
            (r#""\ud800\ud83d\ude00""#, Some(1..7)),
            (r#""\ud83d\ude00\uDE00""#, Some(13..19)),
            (r#""\ud80"#, None),
            (r#""\"#, None),
        ];
        for (text, span) in cases {
            assert_eq!(first_lone_surrogate(text), span, "{text}");
            let mended = without_lone_surrogates(text);
            assert_eq!(mended.len(), text.len());
            assert_eq!(first_lone_surrogate(&mended), None, "{mended}");
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(f64::from(n))),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(any::<String>(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    fn read(node: &Node<'_>) -> Value {
        match node.kind() {
            Kind::Null => Value::Null,
            Kind::Boolean => Value::from(node.raw() == "true"),
            Kind::Number => node.number().map(Value::from).unwrap(),
            Kind::String => node.string().map(Value::from).unwrap(),
            Kind::Array => node.elements().unwrap().iter().map(read).collect(),
            Kind::Object => {
                let members = node.members().unwrap();
                members
                    .into_iter()
                    .map(|member| (member.key.into_owned(), read(&member.value)))
                    .collect()
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,80}") {
            if let Ok(node) = Node::parse(&text) {
                let _ = (node.string(), node.number(), node.elements(), node.members());
            }
            let _ = without_lone_surrogates(&text);
        }

        #[test]
        fn reads_what_was_written(value in any_value()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(read(&Node::parse(&text).unwrap()), value);
        }
    }
}
