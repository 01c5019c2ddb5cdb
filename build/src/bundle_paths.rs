//! Takes the paths out of a bundle that esbuild writes into it: the comment above each module, and the keys of the wrappers of
//! CommonJS and lazily evaluated modules. Every place is found in a parse and replaced by its span; nothing else changes.

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::{BindingPattern, Comment, Expression, ObjectPropertyKind, Program, PropertyKey, Statement};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType, Span};
use serde::{Deserialize, Serialize};

/// A bundle without paths.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewritten {
    /// Its text.
    pub source: String,
    /// Where modules begin in it, and their labels; in order.
    pub modules: Vec<(usize, String)>,
}

/// The bundle does not parse.
#[derive(Debug, PartialEq, Eq)]
pub struct Unparsable;

/// `source` with every path in `labels` replaced by its label.
///
/// # Errors
///
/// [`Unparsable`] where `source` is no JavaScript module.
pub fn rewrite_paths(source: &str, labels: &HashMap<String, String>) -> Result<Rewritten, Unparsable> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, source, SourceType::mjs()).parse();
    if parsed.panicked || !parsed.diagnostics.is_empty() {
        return Err(Unparsable);
    }
    let mut edits = comment_edits(&parsed.program, labels);
    edits.extend(key_edits(&parsed.program, labels));
    edits.sort_by_key(|edit| edit.span.start);
    Ok(apply(source, edits))
}

struct Edit {
    span: Span,
    text: String,
    /// The label of the module that begins here, where one does.
    module: Option<String>,
}

fn apply(source: &str, edits: Vec<Edit>) -> Rewritten {
    let mut result = String::with_capacity(source.len());
    let mut modules = Vec::new();
    let mut copied = 0;
    for edit in edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        if let Some(between) = source.get(copied..start) {
            result.push_str(between);
            modules.extend(edit.module.map(|label| (result.len(), label)));
            result.push_str(&edit.text);
            copied = end;
        }
    }
    result.push_str(source.get(copied..).unwrap_or_default());
    Rewritten {
        source: result,
        modules,
    }
}

/// `// ‹path›` between two statements; `// require("./*.js") in ‹path›` above a table of what a pattern matches.
fn comment_edits(program: &Program<'_>, labels: &HashMap<String, String>) -> Vec<Edit> {
    let in_comments: HashMap<String, &String> = labels
        .iter()
        .map(|(path, label)| (without_line_breaks(path), label))
        .collect();
    let between = |comment: &&Comment| {
        let next = program
            .body
            .partition_point(|statement| statement.span().end <= comment.span.start);
        program
            .body
            .get(next)
            .is_none_or(|next| next.span().start >= comment.span.end)
    };
    let edit = |comment: &Comment| {
        let span = comment.content_span();
        let text = span.source_text(program.source_text).strip_prefix(' ')?;
        let (start, path) = std::iter::once((0, text))
            .chain(text.match_indices(" in ").map(|(at, found)| {
                let start = at + found.len();
                (start, text.get(start..).unwrap_or_default())
            }))
            .find(|(_, path)| in_comments.contains_key(*path))?;
        let label = in_comments.get(path)?;
        let kept = text.get(..start)?;
        let text = format!(" {kept}{}", without_line_breaks(label));
        Some(Edit {
            span,
            text,
            module: Some((*label).clone()),
        })
    };
    let comments = program.comments.iter().filter(|comment| comment.is_line());
    comments.filter(between).filter_map(edit).collect()
}

/// As esbuild writes a path into a comment that ends with its line.
fn without_line_breaks(path: &str) -> String {
    path.replace('\r', "\\r")
        .replace('\n', "\\n")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// `var x = __commonJS({ "‹path›"(exports, module) { … } })`, and the same with `__esm`.
fn key_edits(program: &Program<'_>, labels: &HashMap<String, String>) -> Vec<Edit> {
    let declared = program.body.iter().flat_map(|statement| match statement {
        Statement::VariableDeclaration(declaration) => declaration.declarations.as_slice(),
        _ => &[],
    });
    let keys = declared.filter_map(|declarator| {
        let BindingPattern::BindingIdentifier(_) = &declarator.id else {
            return None;
        };
        let Some(Expression::CallExpression(call)) = &declarator.init else {
            return None;
        };
        let Expression::ObjectExpression(wrapper) = call.arguments.first()?.as_expression()? else {
            return None;
        };
        match wrapper.properties.as_slice() {
            [ObjectPropertyKind::ObjectProperty(property)] => match &property.key {
                PropertyKey::StringLiteral(key) => Some(key),
                _ => None,
            },
            _ => None,
        }
    });
    keys.filter_map(|key| {
        let label = labels.get(key.value.as_str())?;
        let text = serde_json::to_string(label).ok()?;
        Some(Edit {
            span: key.span,
            text,
            module: None,
        })
    })
    .collect()
}
