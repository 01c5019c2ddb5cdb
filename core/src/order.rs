//! The two orders that digests and owners depend on. Both are fixed: no locale of a machine has a say.

use std::cmp::Ordering;

/// Order by UTF-16 code units, as JavaScript compares strings. Every sorted list in a digest payload or a manifest is
/// in this order.
#[must_use]
pub fn by_utf16(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// The order in which entries claim the files they reach (pack contract, section 12): primary keys position by position
/// in the order `_ - . 0-9 a-z`, letters without case; a proper prefix is smaller; where all are equal, lower case
/// comes before upper case at the first position that differs.
///
/// Specifiers of one pack share the pack's name, so only the legal characters of module names matter; any other
/// character sorts after those, by its code point, so that the order stays total.
#[must_use]
pub fn by_owner(a: &str, b: &str) -> Ordering {
    let primary = a.chars().map(primary_key).cmp(b.chars().map(primary_key));
    primary.then_with(|| {
        // Lower case first: the reverse of ASCII at the first position that differs.
        b.cmp(a)
    })
}

fn primary_key(c: char) -> (u8, u32) {
    match c {
        '_' => (0, 0),
        '-' => (1, 0),
        '.' => (2, 0),
        '0'..='9' => (3, u32::from(c)),
        'a'..='z' | 'A'..='Z' => (4, u32::from(c.to_ascii_lowercase())),
        other => (5, u32::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_order_differs_from_utf8_order_above_the_basic_plane() {
        // U+FF61 is one unit 0xFF61; U+10000 is the pair 0xD800 0xDC00 and therefore smaller.
        assert_eq!(by_utf16("\u{10000}", "\u{ff61}"), Ordering::Less);
        assert_eq!("\u{10000}".cmp("\u{ff61}"), Ordering::Greater);
        assert_eq!(by_utf16("a", "a/b"), Ordering::Less);
    }

    #[test]
    fn owners_sort_as_the_reference_collation() {
        let sorted = [
            "p", "p/_a", "p/-a", "p/.a", "p/0", "p/9", "p/a", "p/A", "p/a_", "p/a-b", "p/aB", "p/b", "p/B", "p/Z",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!(by_owner(a, b), i.cmp(&j), "{a} against {b}");
            }
        }
    }
}
