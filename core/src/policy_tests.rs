//! The policy table: requester × state of the pack × what is known of the subject.

use super::*;

const NOW: &str = "2026-06-01T00:00:00Z";

fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

fn graph(name: &str) -> GraphDigest {
    GraphDigest::of(name.as_bytes())
}

fn bearer(token: &str) -> Requester {
    Requester::Bearer(TokenDigest::of(token.as_bytes()))
}

fn token(name: &str, grants: &[&str], expires: Option<&str>) -> Token {
    Token {
        name: name.to_owned(),
        sha256: TokenDigest::of(name.as_bytes()),
        grants: grants.iter().map(|grant| pattern(grant)).collect(),
        expires: expires.map(str::to_owned),
    }
}

fn block(pack: Option<&str>, version: Option<&str>, of: Option<&str>, reason: Option<&str>) -> Block {
    Block {
        pack: pack.map(pattern),
        version: version.map(str::to_owned),
        graph: of.map(graph),
        reason: reason.map(str::to_owned),
    }
}

fn policy() -> Policy {
    Policy::new(
        vec![pattern("@acme/*"), pattern("secret")],
        vec![
            block(Some("bad"), None, None, Some("malware")),
            block(Some("evil-*"), None, None, None),
            block(Some("flawed"), Some("1.0.0"), None, Some("CVE")),
            block(Some("blank"), Some(""), None, None),
            block(None, None, Some("cursed"), Some("withdrawn")),
            block(Some("@acme/bad"), None, None, Some("internal reason")),
        ],
        vec![
            token("acme", &["@acme/*"], None),
            token("one", &["@acme/one"], Some("2026-06-01T00:00:01Z")),
            token("late", &["@acme/*"], Some(NOW)),
            token("all", &["*"], None),
        ],
    )
}

const PUBLIC: Result<Permit, Forbidden> = Ok(Permit { private: false });
const PRIVATE: Result<Permit, Forbidden> = Ok(Permit { private: true });

fn blocked(reason: Option<&str>) -> Result<Permit, Forbidden> {
    Err(Forbidden {
        private: false,
        blocked: true,
        reason: reason.map(str::to_owned),
    })
}

fn closed(reason: Option<&str>) -> Result<Permit, Forbidden> {
    Err(Forbidden {
        private: true,
        blocked: reason.is_some(),
        reason: reason.map(str::to_owned),
    })
}

#[test]
fn refusals_say_why_for_the_log() {
    let cases = [
        (blocked(Some("CVE")), "it is blocked: CVE"),
        (blocked(None), "it is blocked"),
        (closed(None), "it is private, and the requester has no grant for it"),
        (closed(Some("internal reason")), "it is blocked: internal reason"),
    ];
    for (decision, sentence) in cases {
        assert_eq!(decision.unwrap_err().to_string(), sentence);
    }
}

#[test]
fn deliveries() {
    let anonymous = Requester::Anonymous;
    let cases = [
        (anonymous, "open", None, None, PUBLIC),
        (bearer("acme"), "open", Some("1.0.0"), Some("g"), PUBLIC),
        (bearer("unknown"), "open", None, None, PUBLIC),
        (anonymous, "@acme/one", None, None, closed(None)),
        (anonymous, "@acme/absent", None, None, closed(None)),
        (anonymous, "@acme", None, None, PUBLIC),
        (bearer("unknown"), "@acme/one", None, None, closed(None)),
        (bearer("late"), "@acme/one", None, None, closed(None)),
        (bearer("one"), "@acme/one", Some("1.0.0"), Some("g"), PRIVATE),
        (bearer("one"), "@acme/one-more", None, None, closed(None)),
        (bearer("acme"), "@acme/one", None, None, PRIVATE),
        (bearer("acme"), "secret", None, None, closed(None)),
        (bearer("all"), "secret", None, None, PRIVATE),
        (anonymous, "secrets", None, None, PUBLIC),
        (anonymous, "bad", None, None, blocked(Some("malware"))),
        (bearer("all"), "bad", Some("9.9.9"), None, blocked(Some("malware"))),
        (anonymous, "evil-twin", None, None, blocked(None)),
        (anonymous, "flawed", None, None, PUBLIC),
        (anonymous, "flawed", Some("1.0.0"), None, blocked(Some("CVE"))),
        (anonymous, "flawed", Some("1.0.1"), None, PUBLIC),
        (anonymous, "blank", Some(""), None, blocked(None)),
        (anonymous, "blank", None, None, PUBLIC),
        (
            anonymous,
            "open",
            Some("1.0.0"),
            Some("cursed"),
            blocked(Some("withdrawn")),
        ),
        (anonymous, "@acme/bad", None, None, closed(None)),
        (bearer("acme"), "@acme/bad", None, None, closed(Some("internal reason"))),
    ];
    for (requester, pack, version, of, expected) in cases {
        let subject = Subject {
            pack,
            version,
            graph: of.map(graph),
        };
        let decision = authorize_delivery(&policy(), requester, &subject, NOW);
        assert_eq!(decision, expected, "{requester:?} {subject:?}");
        assert_eq!(authorize_delivery(&Policy::default(), requester, &subject, NOW), PUBLIC);
    }
}

#[test]
fn catalogs_need_every_private_pattern() {
    let cases = [
        (Requester::Anonymous, closed(None)),
        (bearer("unknown"), closed(None)),
        (bearer("acme"), closed(None)),
        (bearer("all"), PRIVATE),
    ];
    for (requester, expected) in cases {
        assert_eq!(authorize_catalog(&policy(), requester, NOW), expected, "{requester:?}");
        assert_eq!(authorize_catalog(&Policy::default(), requester, NOW), PUBLIC);
    }
}

#[test]
fn ranges_are_hidden_only_where_nobody_could_see_into_them() {
    let cases = [
        (vec![], "@acme/a", "@acme/b", true),
        (vec![], "@acme/a", "@acme0", false),
        (vec![], "@acmd/z", "@acme/b", false),
        (vec![], "secret", "secret", false),
        (vec!["@acme/one"], "@acme/a", "@acme/b", true),
        (vec!["@acme/one"], "@acme/a", "@acme/one", true),
        (vec!["@acme/one"], "@acme/one", "@acme/two", false),
        (vec!["@acme/one"], "@acme/a", "@acme/one-more", false),
        (vec!["@acme/o*"], "@acme/a", "@acme/b", true),
        (vec!["@acme/o*"], "@acme/a", "@acme/o", true),
        (vec!["@acme/o*"], "@acme/a", "@acme/one", false),
        (vec!["@acme/o*"], "@acme/one", "@acme/two", false),
        (vec!["@acme/b", "@acme/o*"], "@acme/oak", "@acme/ox", false),
        (vec!["*"], "@acme/a", "@acme/b", false),
        (vec!["@other/*"], "@acme/a", "@acme/b", true),
    ];
    for (grants, first, end, expected) in cases {
        let grants: Vec<Pattern> = grants.into_iter().map(pattern).collect();
        let grants: Vec<&Pattern> = grants.iter().collect();
        assert_eq!(
            policy().hides_all(&grants, first, end),
            expected,
            "{grants:?} {first} {end}"
        );
    }
}

#[test]
fn patterns() {
    for bad in ["", "a*b", "**", "a**", "a b", "@", "é*", "@acme/"] {
        assert!(Pattern::parse(bad).is_err(), "{bad}");
    }
    let covers = [
        ("*", "secret", true),
        ("*", "@acme/*", true),
        ("@acme/*", "@acme/*", true),
        ("@acme/*", "@acme/one", true),
        ("@acme/one", "@acme/*", false),
        ("@acme/o*", "@acme/*", false),
        ("@a*", "@acme/*", true),
        ("secret", "secret", true),
        ("secret", "secrets", false),
    ];
    for (grant, of, expected) in covers {
        assert_eq!(pattern(grant).covers(&pattern(of)), expected, "{grant} over {of}");
    }
}

#[test]
fn documents_read_back_and_hostile_ones_are_refused() {
    let text = serde_json::to_string(&policy()).unwrap();
    assert_eq!(Policy::parse(&text), Ok(policy()));
    let cases = [
        String::new(),
        "{}".to_owned(),
        text.replacen("\"version\":1", "\"version\":2", 1),
        text.replacen("\"version\":1", "\"extra\":1,\"version\":1", 1),
        text.replacen("@acme/*", "@acme/**", 1),
        text.replacen(NOW, "tomorrow", 1),
        r#"{"version":1,"private":[],"blocked":[{"version":"1"}],"tokens":[]}"#.to_owned(),
        r#"{"version":1,"private":[],"tokens":[]}"#.to_owned(),
    ];
    for hostile in cases {
        assert!(Policy::parse(&hostile).is_err(), "{hostile}");
    }
}
