//! Where a library's own file has what a bundle of it is refused or warned for. The file may be a module or a script of any kind.
//! Recursive: it runs where a stack may overflow (`judge.rs`).

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, CallExpression, ExportAllDeclaration, ExportFromDeclaration, Expression, ImportDeclaration,
    ImportExpression, Program, StringLiteral,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::{ParseOptions, Parser};
use oxc_semantic::SemanticBuilder;
use oxc_span::SourceType;
use serde::{Deserialize, Serialize};

use crate::scan::{Reference, first_reference};

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wanted {
    /// An import, of any kind, of this specifier.
    Import(String),
    /// Any `import(…)`.
    DynamicImport,
    /// A reference to this global: the first plain one, else the first that a test guards.
    Global(String),
}

/// The line of `source`, from 1, that has `wanted` first. None where no line has it, and where `source` is no JavaScript.
#[must_use]
pub fn line_of(source: &str, wanted: &Wanted) -> Option<u32> {
    let allocator = Allocator::default();
    let options = ParseOptions {
        preserve_parens: false,
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let parsed = [SourceType::mjs(), SourceType::script()]
        .into_iter()
        .map(|kind| Parser::new(&allocator, source, kind).with_options(options).parse())
        .find(|parsed| !parsed.panicked && parsed.diagnostics.is_empty())?;
    let offset = match wanted {
        Wanted::Global(name) => {
            let built = SemanticBuilder::new().with_build_nodes(true).build(&parsed.program);
            match first_reference(&built.semantic, name)? {
                Reference::Plain(span) | Reference::Guarded(span) => span.start,
            }
        }
        Wanted::Import(name) => first_import(&parsed.program, Some(name))?,
        Wanted::DynamicImport => first_import(&parsed.program, None)?,
    };
    let before = source.get(..offset as usize)?;
    u32::try_from(before.matches('\n').count() + 1).ok()
}

/// The offset of the first import of `name`; of the first dynamic one, of whatever, without a name.
fn first_import(program: &Program<'_>, name: Option<&str>) -> Option<u32> {
    let mut imports = Imports { name, first: None };
    imports.visit_program(program);
    imports.first
}

struct Imports<'n> {
    name: Option<&'n str>,
    first: Option<u32>,
}

impl Imports<'_> {
    fn found(&mut self, offset: u32) {
        self.first = Some(self.first.map_or(offset, |first| first.min(offset)));
    }

    fn named(&mut self, source: &StringLiteral<'_>) {
        if self.name == Some(source.value.as_str()) {
            self.found(source.span.start);
        }
    }
}

impl<'a> Visit<'a> for Imports<'_> {
    fn visit_import_declaration(&mut self, import: &ImportDeclaration<'a>) {
        self.named(&import.source);
    }

    fn visit_export_all_declaration(&mut self, export: &ExportAllDeclaration<'a>) {
        self.named(&export.source);
    }

    fn visit_export_from_declaration(&mut self, export: &ExportFromDeclaration<'a>) {
        self.named(&export.source);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        match (&import.source, self.name) {
            (Expression::StringLiteral(source), Some(_)) => self.named(source),
            (_, None) => self.found(import.span.start),
            _ => {}
        }
        walk::walk_import_expression(self, import);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let (Expression::Identifier(callee), [Argument::StringLiteral(source), ..]) =
            (&call.callee, call.arguments.as_slice())
            && callee.name == "require"
        {
            self.named(source);
        }
        walk::walk_call_expression(self, call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found() {
        let import = |name: &str| Wanted::Import(name.to_owned());
        let global = |name: &str| Wanted::Global(name.to_owned());
        let cases = [
            ("import 'a';\nimport { b } from 'fs';", import("fs"), Some(2)),
            ("export * from 'a';\n\nexport * from 'fs';", import("fs"), Some(3)),
            ("export { a } from 'fs';", import("fs"), Some(1)),
            (
                "export const a = 1;\nexport const load = () => import('fs');",
                import("fs"),
                Some(2),
            ),
            ("'fs';\ntry { require('fs') } catch {}", import("fs"), Some(2)),
            ("with (a) {\n  b = require('fs') }\nreturn", import("fs"), Some(2)),
            ("import 'a'; other('fs'); import('fs/promises')", import("fs"), None),
            ("const a = 1;\nimport(a)", Wanted::DynamicImport, Some(2)),
            ("import 'a'; require('a')", Wanted::DynamicImport, None),
            (
                "if (typeof process) process\nvar process2;\nprocess",
                global("process"),
                Some(3),
            ),
            ("1;\ntypeof process", global("process"), Some(2)),
            ("(process) => process", global("process"), None),
            ("no JavaScript", global("no"), None),
        ];
        for (source, wanted, line) in cases {
            assert_eq!(line_of(source, &wanted), line, "{source}");
        }
    }
}
