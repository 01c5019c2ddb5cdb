//! How oxc is set up to parse a module, and what it says about one.

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_diagnostics::OxcDiagnostic;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::{Scoping, SemanticBuilder, Stats};
use oxc_span::{SourceType, Span};

use super::finding::{Finding, FindingKind};

/// Syntax errors that are reported for one file; a parser that goes on after an error can find one a byte.
const ERRORS_KEPT: usize = 20;

/// Parses `text` as a module.
pub(super) fn parse<'a>(allocator: &'a Allocator, text: &'a str) -> Result<ParserReturn<'a>, Vec<Finding>> {
    let options = ParseOptions {
        parse_regular_expression: true,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(allocator, text, SourceType::mjs())
        .with_options(options)
        .parse();
    let mut errors = syntax_errors(parsed.diagnostics.errors());
    errors.extend(no_whitespace(&parsed.irregular_whitespaces, text));
    if parsed.panicked || !errors.is_empty() {
        return Err(errors);
    }
    Ok(parsed)
}

/// Characters that oxc takes for whitespace and ECMAScript does not.
fn no_whitespace(irregular: &[Span], text: &str) -> Option<Finding> {
    let whitespace = |c| match c {
        '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{2028}' | '\u{2029}' | '\u{feff}' => true,
        // The category Zs.
        ' ' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => true,
        _ => false,
    };
    let span = irregular
        .iter()
        .find(|span| !span.source_text(text).chars().all(whitespace))?;
    Some(Finding {
        kind: FindingKind::Syntax("a character that only looks like whitespace".to_owned()),
        span: span.start as usize..span.end as usize,
    })
}

/// Resolves names and checks what the grammar alone does not forbid; complaints about what stands at `tolerated` do not count.
pub(super) fn resolve<'a>(program: &'a Program<'a>, stats: Stats, tolerated: &[Span]) -> (Scoping, Vec<Finding>) {
    let built = SemanticBuilder::new()
        .with_check_syntax_error(true)
        .with_stats(stats)
        .build(program);
    let errors = built.diagnostics.errors().filter(|error| {
        let place = error.labels.first().map(|label| label.offset());
        !tolerated.iter().any(|span| Some(span.start) == place)
    });
    let mut errors = syntax_errors(errors);
    let scoping = built.semantic.into_scoping();
    errors.extend(redeclared_in_static_block(&scoping));
    (scoping, errors)
}

/// To acorn a function of a static block is declared as in any other block: once, and not as a `var` besides.
fn redeclared_in_static_block(scoping: &Scoping) -> Option<Finding> {
    scoping.symbol_ids().find_map(|symbol| {
        let declarations = scoping.symbol_redeclarations(symbol);
        let in_static_block = scoping
            .scope_flags(scoping.symbol_scope_id(symbol))
            .is_class_static_block();
        let is_function = declarations.iter().any(|declaration| declaration.flags.is_function());
        let last = declarations.last().filter(|_| in_static_block && is_function)?;
        Some(Finding {
            kind: FindingKind::Syntax(format!("`{}` has already been declared", scoping.symbol_name(symbol))),
            span: last.span.start as usize..last.span.end as usize,
        })
    })
}

fn syntax_errors<'e>(errors: impl Iterator<Item = &'e OxcDiagnostic>) -> Vec<Finding> {
    errors.take(ERRORS_KEPT).map(syntax_error).collect()
}

fn syntax_error(error: &OxcDiagnostic) -> Finding {
    let label = error.labels.first();
    let span = label.map_or(0..0, |label| {
        let start = label.offset() as usize;
        start..start + label.len() as usize
    });
    Finding {
        kind: FindingKind::Syntax(error.message.to_string()),
        span,
    }
}
