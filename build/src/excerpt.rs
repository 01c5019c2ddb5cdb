//! The lines of a file around a place, fit for a terminal: long lines are cut, and nothing in them reaches the terminal but text.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

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
        self.text.extend(text.trim_end_matches('\r').chars().map(|c| match c {
            '\t' => ' ',
            c if c.is_control() || is_invisible(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        }));
    }
}

/// Marks that reorder or hide the text around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
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
