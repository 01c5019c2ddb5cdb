//! The operator's policy as a file: `policy.toml`, read strictly, pushed as the canonical document that the worker reads, and the
//! one place where tokens are made. The decisions are `packferry_core::policy`.

use std::collections::HashSet;
use std::fs;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use camino::Utf8Path;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use packferry_core::canonical;
use packferry_core::channel::check_name;
use packferry_core::digest::TokenDigest;
use packferry_core::key::StorageKey;
use packferry_core::policy::{Block, InvalidPolicy, Pattern, Policy, Token};
use serde::Deserialize;
use toml::Spanned;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use crate::fault::Fault;
use crate::release::write_atomically;
use crate::text::counted;

/// A policy file's shape; every list may be left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    private: Vec<Pattern>,
    blocked: Vec<Spanned<Block>>,
    tokens: Vec<Spanned<Token>>,
}

/// Reads a policy file.
///
/// # Errors
/// A [`Fault`] that names file, line and what is wrong.
pub fn read(path: &Utf8Path) -> Result<Policy, Fault> {
    parse(&read_text(path)?).map_err(|error| Fault::new(format!("{path}: {error}")))
}

/// What a policy holds, in a line: an operator sees when it is less than was meant.
#[must_use]
pub fn summary(policy: &Policy) -> String {
    let [private, blocked, tokens] = policy.counts();
    if private + blocked + tokens == 0 {
        return "It is empty: every pack is public, and nothing is blocked.".to_owned();
    }
    let parts = [(private, "private pattern"), (blocked, "block"), (tokens, "token")];
    let [private, blocked, tokens] = parts.map(|(count, what)| counted(count as u64, what));
    format!("It has {private}, {blocked} and {tokens}.")
}

/// Parses a policy file.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse(text: &str) -> Result<Policy, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    for block in &file.blocked {
        let alone = Policy::new(Vec::new(), vec![block.get_ref().clone()], Vec::new());
        check(&alone).map_err(|error| format!("{}: {error}", line(text, block)))?;
    }
    let mut seen = HashSet::new();
    for token in &file.tokens {
        let (at, token) = (line(text, token), token.get_ref());
        check(&Policy::new(Vec::new(), Vec::new(), vec![token.clone()])).map_err(|error| format!("{at}: {error}"))?;
        if !seen.insert(token.name.clone()) || !seen.insert(token.sha256.to_string()) {
            return Err(format!(
                "{at}: token {:?} has the name or the hash of one above",
                token.name
            ));
        }
    }
    Ok(Policy::new(file.private, rows(file.blocked), rows(file.tokens)))
}

/// The worker's own reading decides what a policy is.
fn check(policy: &Policy) -> Result<Policy, InvalidPolicy> {
    Policy::parse(&canonical::to_json(policy))
}

fn rows<T>(spanned: Vec<Spanned<T>>) -> Vec<T> {
    spanned.into_iter().map(Spanned::into_inner).collect()
}

fn line<T>(text: &str, row: &Spanned<T>) -> String {
    let above = text.get(..row.span().start).unwrap_or_default();
    format!("line {}", above.matches('\n').count() + 1)
}

/// Key and value of `policy` in KV, as policy `name`.
///
/// # Errors
/// A [`Fault`] where that is no name.
pub fn entry(policy: &Policy, name: &str) -> Result<(String, Vec<u8>), Fault> {
    check_name(name).map_err(|_| Fault::new(format!("{name:?}: a policy's name is 1 to 64 of a-z, 0-9 and -")))?;
    let key = StorageKey::Policy(name.to_owned()).to_string();
    Ok((key, canonical::to_json(policy).into_bytes()))
}

/// Makes a token: 32 random bytes in base64url. It is shown once and stored nowhere.
///
/// # Errors
/// A [`Fault`] where the system gives no randomness.
pub fn new_token() -> Result<String, Fault> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| Fault::new(format!("the system gives no randomness: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The time `lifetime` (such as `90d` or `12h`) from now: RFC 3339, UTC, seconds.
///
/// # Errors
/// A [`Fault`] where it is no length of time, or leads into the past.
pub fn expiry(lifetime: &str) -> Result<String, Fault> {
    let wrong = || Fault::new(format!("{lifetime:?} is no length of time")).hint("Write it like 90d, 12h or 1y.");
    let span: Span = lifetime.parse().map_err(|_| wrong())?;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let end = now.checked_add(span).map_err(|_| wrong())?;
    if end <= now {
        return Err(wrong());
    }
    Ok(end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Adds the hash of `token` to the policy file, which is made where there is none. Everything else in the file stays as it is,
/// comments included.
///
/// # Errors
/// A [`Fault`] where the file is no policy, has a token of that name, or cannot be written.
pub fn add_token(
    path: &Utf8Path,
    name: &str,
    token: &str,
    grants: &[String],
    expires: Option<&str>,
) -> Result<(), Fault> {
    let text = if path.exists() { read_text(path)? } else { String::new() };
    parse(&text).map_err(|error| Fault::new(format!("{path}: {error}")))?;
    let text =
        with_token(&text, name, token, grants, expires).map_err(|error| Fault::new(format!("{path}: {error}")))?;
    parse(&text).map_err(|error| Fault::new(format!("the token cannot be added to {path}: {error}")))?;
    write_atomically(path, text.as_bytes()).map_err(|error| Fault::writing(path, &error))
}

fn with_token(text: &str, name: &str, token: &str, grants: &[String], expires: Option<&str>) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| error.to_string())?;
    let tokens = document
        .entry("tokens")
        .or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let tokens = tokens
        .as_array_of_tables_mut()
        .ok_or("tokens is not written as [[tokens]]")?;
    if tokens
        .iter()
        .any(|row| row.get("name").and_then(Item::as_str) == Some(name))
    {
        return Err(format!(
            "there is a token {name:?} already; remove it, or choose another name"
        ));
    }
    let mut row = Table::new();
    row.insert("name", value(name));
    row.insert("sha256", value(TokenDigest::of(token.as_bytes()).to_string()));
    row.insert("grants", value(grants.iter().collect::<Array>()));
    if let Some(expires) = expires {
        row.insert("expires", value(expires));
    }
    tokens.push(row);
    Ok(document.to_string())
}

fn read_text(path: &Utf8Path) -> Result<String, Fault> {
    fs::read_to_string(path).map_err(|error| Fault::reading(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_strictly() {
        let digest = "ab".repeat(32);
        let good = [
            String::new(),
            "private = [\"@acme/*\"]".to_owned(),
            format!(
                "[[blocked]]\ngraph = \"{digest}\"\nreason = \"broken\"\n[[blocked]]\npack = \"units\"\nversion = \"\""
            ),
            format!(
                "[[tokens]]\nname = \"ci\"\nsha256 = \"{digest}\"\ngrants = [\"*\"]\nexpires = \"2030-01-01T00:00:00Z\""
            ),
        ];
        let summaries = [
            "It is empty: every pack is public, and nothing is blocked.",
            "It has 1 private pattern, 0 blocks and 0 tokens.",
            "It has 0 private patterns, 2 blocks and 0 tokens.",
            "It has 0 private patterns, 0 blocks and 1 token.",
        ];
        for (text, says) in good.iter().zip(summaries) {
            assert_eq!(
                parse(text).map(|policy| summary(&policy)).as_deref(),
                Ok(says),
                "{text}"
            );
        }
        let bad = [
            ("privat = []", "privat"),
            ("private = [\"a b\"]", "no pattern"),
            ("private = [\"*/x\"]", "no pattern"),
            ("private = []\n[[blocked]]\nreason = \"x\"", "line 2: "),
            ("[[blocked]]\nreason = \"x\"", "neither a pack nor a graph"),
            ("[[blocked]]\ngraph = \"ab\"", "64 lower-case hexadecimal digits"),
            ("[[tokens]]\nname = \"ci\"", "sha256"),
            ("private = [", "line 1"),
        ];
        for (text, says) in bad {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        let expires = format!("[[tokens]]\nname = \"ci\"\nsha256 = \"{digest}\"\ngrants = []\nexpires = \"tomorrow\"");
        assert!(
            parse(&expires)
                .unwrap_err()
                .contains("line 1: the expiry of token \"ci\" is not written like")
        );
        let twice = format!("[[tokens]]\nname = \"ci\"\nsha256 = \"{digest}\"\ngrants = []\n").repeat(2);
        assert!(parse(&twice).unwrap_err().starts_with("line 5: token \"ci\""));
    }

    #[test]
    fn tokens_are_random_and_of_the_wire_contract_s_form() {
        let (one, two) = (new_token().unwrap(), new_token().unwrap());
        assert_ne!(one, two);
        assert_eq!(URL_SAFE_NO_PAD.decode(&one).unwrap().len(), 32);
    }

    #[test]
    fn a_token_is_added_and_everything_else_stays() {
        let before = "# ours\nprivate = [\"@acme/*\"] # all of it\n";
        let after = with_token(
            before,
            "ci",
            "secret",
            &["@acme/*".to_owned()],
            Some("2030-01-01T00:00:00Z"),
        )
        .unwrap();
        assert!(after.starts_with(before), "{after}");
        assert!(!after.contains("secret"), "{after}");
        assert!(after.contains(&TokenDigest::of(b"secret").to_string()), "{after}");
        assert!(parse(&after).is_ok(), "{after}");
        assert!(
            with_token(&after, "ci", "other", &[], None)
                .unwrap_err()
                .contains("already")
        );
    }

    #[test]
    fn lifetimes() {
        for good in ["90d", "12h", "1y", "1 month"] {
            assert!(packferry_core::time::is_time(&expiry(good).unwrap()), "{good}");
        }
        for bad in ["", "soon", "-1d", "0s", "90", "999999999y"] {
            assert!(expiry(bad).is_err(), "{bad}");
        }
    }
}
