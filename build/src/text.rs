//! Text for people. What comes from a pack may be long, or hold what a terminal obeys instead of showing it.

/// Characters of one line of a person's report.
pub const LINE_CHARS: usize = 2_000;

/// `text` without what a terminal would obey, and cut where it is longer than `longest` characters. Line breaks and tabs stay.
#[must_use]
pub fn printable(text: &str, longest: usize) -> String {
    let mut characters = text.chars();
    let mut printable: String = characters.by_ref().take(longest).map(shown).collect();
    if characters.next().is_some() {
        printable.push('…');
    }
    printable
}

/// [`printable`] line by line, each cut at [`LINE_CHARS`].
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| printable(line, LINE_CHARS)).collect();
    lines.join("\n")
}

fn shown(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        c if c.is_control() || is_invisible(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

/// Marks that reorder or hide the text around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// JSON as it may stand on a terminal: the control characters that JSON leaves bare are escaped. Its value is the same.
#[must_use]
pub fn printable_json(json: &str) -> String {
    if !json.contains(char::is_control) {
        return json.to_owned();
    }
    let mut printable = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            // Inside of strings alone: outside of them compact JSON has none.
            c if c.is_control() => printable.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => printable.push(c),
        }
    }
    printable
}

/// So many of something.
#[must_use]
pub fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_printable_and_cut() {
        let cases = [
            ("a b é", "a b é"),
            ("a\u{1b}[3\u{9b}m\u{7f}", "a\u{fffd}[3\u{fffd}m\u{fffd}"),
            ("a\u{202e}b\u{feff}\r", "a\u{fffd}b\u{fffd}\u{fffd}"),
            ("a\n\tb", "a\n\tb"),
            ("12345678", "12345678"),
            ("123456789", "12345678…"),
            ("éééééééé\u{1b}", "éééééééé…"),
        ];
        for (text, expected) in cases {
            assert_eq!(printable(text, 8), expected, "{text:?}");
        }
        let lines = format!("a\n{}\nb", "x".repeat(LINE_CHARS + 1));
        assert_eq!(printable_lines(&lines), format!("a\n{}…\nb", "x".repeat(LINE_CHARS)));
    }

    #[test]
    fn json_keeps_its_value() {
        for text in ["a\u{7f}b\u{9b}31m\u{1b}", "plain \u{2028} é"] {
            let json = serde_json::to_string(text).unwrap();
            let printable = printable_json(&json);
            assert!(!printable.contains(char::is_control), "{printable}");
            assert_eq!(serde_json::from_str::<String>(&printable).unwrap(), text);
        }
    }

    #[test]
    fn things_are_counted() {
        let counts: Vec<String> = (0..3).map(|count| counted(count, "pack")).collect();
        assert_eq!(counts, ["0 packs", "1 pack", "2 packs"]);
    }
}
