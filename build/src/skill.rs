//! SKILL.md: what a pack says about itself (pack contract, section 4). Nothing here withholds a pack; a SKILL.md at fault is as
//! good as none.

use std::sync::Arc;

use packferry_core::id::FileId;
use packferry_core::limits::PACK_LIMITS;

use crate::diagnostics::{Diagnostic, Findings, SKILL_INVALID, SKILL_MISSING};
use crate::pack_files::{Opened, PackRoot, Unread};

/// The file's name.
pub const SKILL_MD: &str = "SKILL.md";

const NAME_CHARS: usize = 64;
const DESCRIPTION_UNITS: usize = 1_024;
/// Names that a skill must not take.
const RESERVED: [&str; 2] = ["anthropic", "claude"];

/// What SKILL.md states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name.
    pub name: String,
    /// Its description, on one line, single spaces between words.
    pub description: String,
}

/// The SKILL.md of a pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillFile {
    /// Its bytes, where it could be read.
    pub bytes: Option<Arc<[u8]>>,
    /// What it states, where it is in order.
    pub says: Option<Skill>,
}

/// Reads the SKILL.md of a pack.
pub fn read(root: &PackRoot<'_>, label: &str, findings: &mut Findings) -> SkillFile {
    let mut file = SkillFile::default();
    let Ok(id) = FileId::parse(SKILL_MD) else { return file };
    let reason = match root.open_file(&id, PACK_LIMITS.skill_bytes).and_then(Opened::read) {
        Ok(bytes) => {
            let parsed = parse(&String::from_utf8_lossy(&bytes));
            file.bytes = Some(bytes.into());
            match parsed {
                Ok(skill) => {
                    file.says = Some(skill);
                    return file;
                }
                Err(reason) => reason.to_owned(),
            }
        }
        Err(Unread::Missing) if !root.is_link(&id) => {
            findings.push(Diagnostic::new(
                &SKILL_MISSING,
                format!("{label}: there is no SKILL.md"),
            ));
            return file;
        }
        Err(Unread::Missing | Unread::Symlink | Unread::Escapes) => "it is a symbolic link".to_owned(),
        Err(Unread::NotRegular) => "it is not a regular file".to_owned(),
        Err(Unread::TooLarge { bytes }) => {
            format!("it has {bytes} bytes, and the limit is {}", PACK_LIMITS.skill_bytes)
        }
        Err(Unread::Failed(reason)) => format!("it cannot be read: {reason}"),
    };
    let message = format!("{label}: SKILL.md is not used: {reason}");
    findings.push(Diagnostic::new(&SKILL_INVALID, message).at(SKILL_MD, None, None));
    file
}

/// Parses the text of a SKILL.md.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn parse(text: &str) -> Result<Skill, &'static str> {
    if !text.starts_with("---") {
        return Err("it does not start with ---");
    }
    let mut lines = text.split('\n').skip(1);
    let (mut name, mut description) = (None, None);
    loop {
        let line = lines.next().ok_or("its front matter is not closed by a line of ---")?;
        if line.trim() == "---" {
            break;
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        match key.trim() {
            "name" => name = Some(unquoted(value.trim())),
            "description" => description = Some(unquoted(value.trim())),
            _ => {}
        }
    }
    let name = name.ok_or("its front matter has no name")?;
    check_name(name)?;
    let description = description.ok_or("its front matter has no description")?;
    check_description(description)?;
    if lines.all(|line| line.trim().is_empty()) {
        return Err("nothing follows the front matter");
    }
    Ok(Skill {
        name: name.to_owned(),
        description: description.split_whitespace().collect::<Vec<_>>().join(" "),
    })
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value)
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let legal = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !legal || name.is_empty() || name.len() > NAME_CHARS {
        return Err("its name is not 1 to 64 of a-z 0-9 -");
    }
    if RESERVED.iter().any(|reserved| name.contains(reserved)) {
        return Err("its name holds a reserved word");
    }
    Ok(())
}

fn check_description(description: &str) -> Result<(), &'static str> {
    if description.trim().is_empty() {
        return Err("its description is empty");
    }
    if description.encode_utf16().count() > DESCRIPTION_UNITS {
        return Err("its description has more than 1024 characters");
    }
    if description.contains('\r') {
        return Err("its description is not one line");
    }
    let mut tags = description.split('<').skip(1);
    if tags.any(|rest| rest.find('>').is_some_and(|end| end > 0)) {
        return Err("its description holds a <tag>");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What it is about, the text, and name and description or a part of the reason.
    type Case<'a> = (&'a str, String, Result<(&'a str, &'a str), &'a str>);

    fn skill(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\nbody\n")
    }

    fn check(what: &str, text: &str, expected: Result<(&str, &str), &str>) {
        match (parse(text), expected) {
            (Ok(skill), Ok((name, description))) => {
                assert_eq!(
                    (skill.name.as_str(), skill.description.as_str()),
                    (name, description),
                    "{what}"
                );
            }
            (Err(reason), Err(part)) => assert!(reason.contains(part), "{what}: {reason}"),
            (outcome, _) => panic!("{what}: {outcome:?}"),
        }
    }

    #[test]
    fn front_matter_is_read_as_the_contract_says() {
        let plain = Ok(("a-1", "Does it."));
        let long = "x".repeat(1_024);
        let astral = "\u{1f600}".repeat(512);
        let cases: &[Case<'_>] = &[
            ("plain", skill("a-1", "Does it."), plain),
            ("windows lines", skill("a-1", "Does it.").replace('\n', "\r\n"), plain),
            ("double quotes", skill("\"a-1\"", "\"Does it.\""), plain),
            ("single quotes", skill("'a-1'", "'Does it.'"), plain),
            (
                "quotes that do not match stay",
                skill("a-1", "\"Does it.'"),
                Ok(("a-1", "\"Does it.'")),
            ),
            (
                "first colon divides",
                skill("a-1", "one: two: three"),
                Ok(("a-1", "one: two: three")),
            ),
            (
                "white space is collapsed",
                skill("a-1", "Rough   distance\thelpers"),
                Ok(("a-1", "Rough distance helpers")),
            ),
            (
                "other lines are ignored",
                format!("---\n# note\nlicense: MIT\n{}", &skill("a-1", "Does it.")[4..]),
                plain,
            ),
            (
                "the last of two wins",
                format!("---\nname: b\n{}", &skill("a-1", "Does it.")[4..]),
                plain,
            ),
            (
                "the closing line is trimmed",
                skill("a-1", "Does it.").replace("\n---", "\n  --- "),
                plain,
            ),
            ("64 characters", skill(&"n".repeat(64), "d"), Ok((&"n".repeat(64), "d"))),
            ("1024 characters", skill("a", &long), Ok(("a", &long))),
            ("1024 code units", skill("a", &astral), Ok(("a", &astral))),
            (
                "an empty tag is none",
                skill("a", "1 <> 2 and a > b"),
                Ok(("a", "1 <> 2 and a > b")),
            ),
            ("no front matter", "body".into(), Err("does not start")),
            ("empty", String::new(), Err("does not start")),
            (
                "byte order mark",
                format!("\u{feff}{}", skill("a", "d")),
                Err("does not start"),
            ),
            (
                "not closed",
                "---\nname: a\ndescription: d\nbody".into(),
                Err("not closed"),
            ),
            ("no name", "---\ndescription: d\n---\nbody".into(), Err("no name")),
            (
                "no description",
                "---\nname: a\n---\nbody".into(),
                Err("no description"),
            ),
            ("upper case", skill("Bad", "d"), Err("name is not")),
            ("65 characters", skill(&"n".repeat(65), "d"), Err("name is not")),
            ("empty name", skill("", "d"), Err("name is not")),
            ("reserved", skill("my-claude-tool", "d"), Err("reserved")),
            ("reserved, too", skill("anthropic", "d"), Err("reserved")),
            ("empty description", skill("a", "''"), Err("description is empty")),
            ("1025 characters", skill("a", &"x".repeat(1_025)), Err("more than 1024")),
            (
                "1025 code units",
                skill("a", &format!("{astral}x")),
                Err("more than 1024"),
            ),
            ("a tag", skill("a", "use <b> here"), Err("<tag>")),
            (
                "no body",
                "---\nname: a\ndescription: d\n---\n \n".into(),
                Err("nothing follows"),
            ),
            (
                "no line after it",
                "---\nname: a\ndescription: d\n---".into(),
                Err("nothing follows"),
            ),
        ];
        for (what, text, expected) in cases {
            check(what, text, *expected);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(---\n)?(name|description|: |\n|---|<|>|\"|'|é|[a-z]){0,30}") {
            if let Ok(skill) = parse(&text) {
                prop_assert!(!skill.description.is_empty() && !skill.name.is_empty());
            }
        }
    }
}
