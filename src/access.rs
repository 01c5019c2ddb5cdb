//! Who asks: from the Authorization header to a requester. Pure. What a requester may do is the core's `policy.rs`.

use packferry_core::digest::TokenDigest;
use packferry_core::policy::Requester;

/// Characters of a token: 32 bytes in base64url without padding.
const TOKEN_LENGTH: usize = 43;

/// Reads the Authorization header. Whatever is no well-formed bearer token is nobody.
#[must_use]
pub fn requester(authorization: Option<&str>) -> Requester {
    let token = authorization.and_then(bearer_token);
    token.map_or(Requester::Anonymous, |token| {
        Requester::Bearer(TokenDigest::of(token.as_bytes()))
    })
}

fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim_start();
    let legal = scheme.eq_ignore_ascii_case("bearer")
        && token.len() == TOKEN_LENGTH
        && token
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    legal.then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_tokens_are_somebody() {
        let token = "A".repeat(43);
        let known = Requester::Bearer(TokenDigest::of(token.as_bytes()));
        let cases = [
            (Some(format!("Bearer {token}")), known),
            (Some(format!("bearer  {token} ")), known),
            (None, Requester::Anonymous),
            (Some(String::new()), Requester::Anonymous),
            (Some(token.clone()), Requester::Anonymous),
            (Some(format!("Basic {token}")), Requester::Anonymous),
            (Some(format!("Bearer {token}A")), Requester::Anonymous),
            (Some(format!("Bearer {}=", "A".repeat(42))), Requester::Anonymous),
            (Some(format!("Bearer {}é", "A".repeat(41))), Requester::Anonymous),
        ];
        for (header, expected) in cases {
            assert_eq!(requester(header.as_deref()), expected, "{header:?}");
        }
    }
}
