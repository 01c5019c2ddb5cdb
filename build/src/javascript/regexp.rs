//! What acorn refuses in a regular expression and oxc takes: groups of one name that can take part in one match, and characters that
//! oxc reads otherwise. One pass over the pattern's tree.

use std::collections::HashSet;

use oxc_ast::ast::{RegExpFlags, RegExpLiteral};
use oxc_regular_expression::ast::{CapturingGroup, Character, CharacterKind};
use oxc_regular_expression::visit::{RegExpAstKind, Visit};
use oxc_span::Span;

/// What is wrong with a literal, and where.
pub(super) fn fault(literal: &RegExpLiteral<'_>, source: &str) -> Option<(&'static str, Span)> {
    let pattern = literal.regex.pattern.pattern.as_deref()?;
    let mut reader = Reader {
        source,
        unicode: literal.regex.flags.intersects(RegExpFlags::U | RegExpFlags::V),
        groups: 0,
        last_reference: None,
        alternatives: Vec::new(),
        disjunctions: Vec::new(),
        fault: None,
    };
    reader.visit_pattern(pattern);
    let reference = reader
        .last_reference
        .filter(|(index, _)| reader.unicode && *index > reader.groups);
    reader
        .fault
        .or(reference.map(|(_, span)| ("a reference leads to no group", span)))
}

struct Reader<'s> {
    source: &'s str,
    /// Whether the flags `u` or `v` make the grammar strict.
    unicode: bool,
    /// Capturing groups so far.
    groups: u32,
    /// The reference to the group of the highest number.
    last_reference: Option<(u32, Span)>,
    /// The names of groups in each alternative and in each disjunction around the term in hand.
    alternatives: Vec<HashSet<String>>,
    disjunctions: Vec<HashSet<String>>,
    fault: Option<(&'static str, Span)>,
}

impl<'a> Visit<'a> for Reader<'_> {
    fn enter_node(&mut self, kind: RegExpAstKind<'a>) {
        match kind {
            RegExpAstKind::Disjunction(_) => self.disjunctions.push(HashSet::new()),
            RegExpAstKind::Alternative(_) => self.alternatives.push(HashSet::new()),
            RegExpAstKind::CapturingGroup(_) => self.groups += 1,
            RegExpAstKind::IndexedReference(reference) => {
                if reference.span.source_text(self.source).starts_with("\\0") {
                    self.refuse_if_strict("an octal escape", reference.span);
                }
                if self.last_reference.is_none_or(|(index, _)| index < reference.index) {
                    self.last_reference = Some((reference.index, reference.span));
                }
            }
            RegExpAstKind::Character(character) => self.check_character(character),
            _ => {}
        }
    }

    fn leave_node(&mut self, kind: RegExpAstKind<'a>) {
        match kind {
            // Of the alternatives of a disjunction one takes part in a match; of the terms of an alternative all do.
            RegExpAstKind::Alternative(_) => {
                let names = self.alternatives.pop().unwrap_or_default();
                if let Some(all) = self.disjunctions.last_mut() {
                    add(all, names);
                }
            }
            RegExpAstKind::Disjunction(disjunction) => {
                let names = self.disjunctions.pop().unwrap_or_default();
                if let Some(all) = self.alternatives.last_mut()
                    && !add(all, names)
                {
                    self.fault.get_or_insert((DUPLICATE, disjunction.span));
                }
            }
            RegExpAstKind::CapturingGroup(group) => self.check_name(group),
            _ => {}
        }
    }
}

const DUPLICATE: &str = "two groups of one name take part in one match";

impl Reader<'_> {
    fn refuse_if_strict(&mut self, what: &'static str, span: Span) {
        if self.unicode {
            self.fault.get_or_insert((what, span));
        }
    }

    fn check_name(&mut self, group: &CapturingGroup<'_>) {
        let (Some(name), Some(all)) = (&group.name, self.alternatives.last_mut()) else {
            return;
        };
        if !all.insert(unescaped(name)) {
            self.fault.get_or_insert((DUPLICATE, group.span));
        }
    }

    /// A backslash that stands for itself, which strict patterns do not have. In a class it may begin the escape of a control
    /// character, which oxc takes apart.
    fn check_character(&mut self, character: &Character) {
        let after = self.source.get(character.span.end as usize..).unwrap_or_default();
        let controls = after
            .strip_prefix('c')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        if character.kind == CharacterKind::Symbol && character.value == u32::from('\\') && !controls {
            self.refuse_if_strict("a backslash that escapes nothing", character.span);
        }
    }
}

/// Adds `names` to `all`; whether none was there.
fn add(all: &mut HashSet<String>, mut names: HashSet<String>) -> bool {
    if all.len() < names.len() {
        std::mem::swap(all, &mut names);
    }
    let together = all.len() + names.len();
    all.extend(names);
    all.len() == together
}

/// A group's name, its escapes undone.
fn unescaped(name: &str) -> String {
    let mut units = Vec::new();
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        let escape = rest
            .strip_prefix("\\u")
            .and_then(|digits| match digits.strip_prefix('{') {
                Some(digits) => digits.split_once('}'),
                None => digits.split_at_checked(4),
            });
        let escaped = escape.and_then(|(digits, after)| Some((u32::from_str_radix(digits, 16).ok()?, after)));
        match escaped {
            Some((value, after)) => {
                match u16::try_from(value) {
                    Ok(unit) => units.push(unit),
                    Err(_) => units.extend(
                        char::from_u32(value)
                            .map(|c| c.to_string())
                            .iter()
                            .flat_map(|c| c.encode_utf16()),
                    ),
                }
                rest = after;
            }
            None => {
                units.extend(character.encode_utf16(&mut [0; 2]).iter());
                rest = rest.get(character.len_utf8()..).unwrap_or_default();
            }
        }
    }
    String::from_utf16_lossy(&units)
}
