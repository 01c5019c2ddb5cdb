//! The lines of a file around a place, fit for a terminal: long lines are cut, and nothing in them reaches the terminal but text.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::text::printable;

/// How much of a long line is shown before and after the place.
const BEFORE: usize = 60;
const AFTER: usize = 100;
/// How much of a neighbouring line is shown.
const NEIGHBOUR: usize = 120;

/// A place in a text, as people count: from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The byte at which the line begins.
    line_start: usize,
}

impl Position {
    /// The position of a byte of `text`.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let offset = text.floor_char_boundary(offset);
        let before = text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Self {
            line: before.bytes().filter(|b| *b == b'\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            line_start,
        }
    }
}

/// A place of a text with the lines around it, for miette.
#[derive(Debug)]
pub struct Excerpt {
    name: String,
    text: String,
    place: Range<usize>,
    position: Position,
    /// The number of the first line of `text`.
    first_line: usize,
    lines: usize,
}

impl Excerpt {
    /// The excerpt of `text` around `place`, its first line at most. None where there is nothing to show.
    #[must_use]
    pub fn of(name: String, text: &str, place: &Range<usize>) -> Option<Self> {
        let position = Position::of(text, place.start);
        let start = text.floor_char_boundary(place.start);
        let rest = text.get(position.line_start..)?;
        let line = rest.split('\n').next()?;
        let line_end = position.line_start + line.len();
        let end = text.floor_char_boundary(place.end.clamp(start, line_end));
        let from = text.floor_char_boundary(start.saturating_sub(BEFORE).max(position.line_start));
        let to = text.ceil_char_boundary((start + AFTER).min(line_end));
        let mut excerpt = Self {
            name,
            text: String::new(),
            place: 0..0,
            position,
            first_line: position.line,
            lines: 1,
        };
        if let Some(previous) = text
            .get(..position.line_start.saturating_sub(1))
            .filter(|_| position.line > 1)
        {
            let previous = previous.rsplit('\n').next().unwrap_or_default();
            excerpt.push(
                previous
                    .get(..previous.ceil_char_boundary(NEIGHBOUR.min(previous.len())))
                    .unwrap_or_default(),
            );
            excerpt.text.push('\n');
            excerpt.first_line -= 1;
            excerpt.lines += 1;
        }
        excerpt.push(text.get(from..start)?);
        excerpt.place.start = excerpt.text.len();
        excerpt.push(text.get(start..end.min(to))?);
        excerpt.place.end = excerpt.text.len();
        excerpt.push(text.get(end.min(to)..to)?);
        let next = text.get(line_end..).and_then(|rest| rest.strip_prefix('\n'));
        if let Some(next) = next
            .and_then(|rest| rest.split('\n').next())
            .filter(|next| !next.trim().is_empty())
        {
            excerpt.text.push('\n');
            excerpt.push(
                next.get(..next.ceil_char_boundary(NEIGHBOUR.min(next.len())))
                    .unwrap_or_default(),
            );
            excerpt.lines += 1;
        }
        (!excerpt.text.trim().is_empty()).then_some(excerpt)
    }

    /// Where the place stands in the excerpt.
    #[must_use]
    pub fn place(&self) -> SourceSpan {
        (self.place.start, self.place.len()).into()
    }

    /// Adds text, with a replacement for every character that a terminal would obey instead of showing it.
    fn push(&mut self, text: &str) {
        let text = text.trim_end_matches('\r').replace(['\t', '\n'], " ");
        self.text.push_str(&printable(&text, usize::MAX));
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        // Without context miette asks for line and column of the place, else for the lines to show.
        let (data, span, line, column, lines) = if before == 0 && after == 0 {
            let (line, column) = (self.position.line, self.position.column);
            (self.text.get(self.place.clone()), *span, line, column - 1, 1)
        } else {
            (
                Some(self.text.as_str()),
                (0, self.text.len()).into(),
                self.first_line,
                0,
                self.lines,
            )
        };
        let data = data.ok_or(MietteError::OutOfBounds)?.as_bytes();
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            data,
            span,
            line - 1,
            column,
            lines,
        )))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of an excerpt, the number of the first, and the text at the place.
    fn shown(text: &str, place: Range<usize>) -> Option<(usize, Vec<String>, String)> {
        let excerpt = Excerpt::of("f".into(), text, &place)?;
        let lines = excerpt.text.split('\n').map(str::to_owned).collect();
        Some((
            excerpt.first_line,
            lines,
            excerpt.text[excerpt.place.clone()].to_owned(),
        ))
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "a\nüb\r\n\nx";
        let cases = [
            (0, 1, 1),
            (1, 1, 2),
            (2, 2, 1),
            (3, 2, 1),
            (4, 2, 2),
            (7, 3, 1),
            (8, 4, 1),
            (9, 4, 2),
            (99, 4, 2),
        ];
        for (offset, line, column) in cases {
            let position = Position::of(text, offset);
            assert_eq!((position.line, position.column), (line, column), "byte {offset}");
        }
    }

    #[test]
    fn lines_around_the_place_are_shown() {
        let text = "one\ntwo\nthree\nfour\n";
        let cases = [
            (0..3, 1, &["one", "two"][..], "one"),
            (4..5, 1, &["one", "two", "three"], "t"),
            (14..18, 3, &["three", "four"], "four"),
            (5..12, 1, &["one", "two", "three"], "wo"),
        ];
        for (place, first, lines, at) in cases {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            assert_eq!(
                shown(text, place.clone()),
                Some((first, lines, at.to_owned())),
                "{place:?}"
            );
        }
        assert_eq!(shown("", 0..0), None);
        assert_eq!(shown("\n\n", 1..1), None);
    }

    #[test]
    fn long_lines_are_cut_and_nothing_is_obeyed() {
        let long = format!("{}HERE{}", "<".repeat(100_000), ">".repeat(100_000));
        let (_, lines, at) = shown(&long, 100_000..100_004).unwrap();
        assert_eq!((lines[0].len(), at.as_str()), (BEFORE + AFTER, "HERE"));
        let (_, lines, at) = shown(&format!("{long}\nx\n{long}"), 200_005..200_006).unwrap();
        assert_eq!((lines.len(), lines[0].len(), at.as_str()), (3, NEIGHBOUR, "x"));
        let (_, lines, at) = shown("a\tb\u{1b}[31m\u{202e}c\r", 2..3).unwrap();
        assert_eq!((lines[0].as_str(), at.as_str()), ("a b\u{fffd}[31m\u{fffd}c", "b"));
    }

    proptest! {
        #[test]
        fn no_place_panics(text in "(a|ü|\n|\t|\u{1b}|\u{1f600}){0,40}", start in 0..200_usize, length in 0..50_usize) {
            if let Some(excerpt) = Excerpt::of("f".into(), &text, &(start..start + length)) {
                prop_assert!(excerpt.text.get(excerpt.place.clone()).is_some());
                prop_assert_eq!(excerpt.text.split('\n').count(), excerpt.lines);
                for context in [0, 1] {
                    prop_assert!(excerpt.read_span(&excerpt.place(), context, context).is_ok());
                }
            }
        }
    }
}
