//! The user's code as a module: static imports first, everything else in an async function (pack contract, section 15). The only
//! file that knows the parser.

use oxc_allocator::Allocator;
use oxc_ast::ast::{ImportDeclaration, ImportDeclarationSpecifier, ImportPhase, ModuleDeclaration, Program, Statement};
use oxc_parser::{ParseOptions, Parser};
use oxc_span::{GetSpan, SourceType, Span};

use crate::error::{GuestError, GuestErrorKind};
use crate::limits::Limits;

/// Bytes of stack that the parser may need for one byte of source. Brackets, the most expensive nesting there is, were measured
/// at 2,850 without optimisation and 1,570 with it.
const STACK_PER_BYTE: usize = 3_500;

/// Bytes of stack that the parser needs for any source.
const STACK_BASE: usize = 1 << 20;

/// Rewrites `code` as the text of a module whose default export is the async function to call. All imports come to stand on
/// the first line and every other character keeps its line.
///
/// # Errors
/// A syntax error, with its line and column; code longer than `bytes_max`.
pub(crate) fn as_module(code: &str, bytes_max: usize) -> Result<String, GuestError> {
    parsed(code, bytes_max, rewrite)
}

/// The names that a script imports, in the order of its imports; what a caller may want to declare.
///
/// # Errors
/// As [`Run::evaluate`](crate::Run::evaluate) for code that cannot be parsed, or is longer than the standard limits allow.
pub fn imported_names(code: &str) -> Result<Vec<String>, GuestError> {
    let sources =
        |_: &str, program: &Program<'_>| imports(program).map(|import| import.source.value.to_string()).collect();
    parsed(code, Limits::default().script_bytes, sources)
}

/// Parses `code` and gives what `take` makes of the syntax tree.
fn parsed<T: Send>(code: &str, bytes_max: usize, take: fn(&str, &Program<'_>) -> T) -> Result<T, GuestError> {
    if code.len() > bytes_max {
        let length = code.len();
        let message = format!("the code is {length} bytes long, and a script may have {bytes_max}");
        return Err(GuestError::new(GuestErrorKind::Thrown, message));
    }
    // The parser recurses with the nesting of its input and knows no limit; the stack it gets is enough for the worst there is.
    let stack = STACK_BASE + code.len() * STACK_PER_BYTE;
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(stack);
        let thread = parser.spawn_scoped(scope, || parse(code, take));
        let thread = thread.map_err(|error| fault(&format!("the parser's thread could not be started: {error}")))?;
        thread.join().map_err(|_| fault("the parser failed"))?
    })
}

fn fault(message: &str) -> GuestError {
    GuestError::new(GuestErrorKind::Fault, message)
}

fn parse<T>(code: &str, take: fn(&str, &Program<'_>) -> T) -> Result<T, GuestError> {
    let allocator = Allocator::default();
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let parsed = Parser::new(&allocator, code, SourceType::mjs())
        .with_options(options)
        .parse();
    let refuse = |what: &str, at: usize| {
        let (line, column) = position(code, at);
        let message = format!("SyntaxError: {what} (line {line}, column {column})");
        Err(GuestError::new(GuestErrorKind::Thrown, message))
    };
    if let Some(error) = parsed.diagnostics.first() {
        let at = error.labels.first().map_or(0, |label| label.offset() as usize);
        return refuse(&error.message, at);
    }
    if parsed.program.hashbang.is_some() {
        return refuse("a script has no hashbang", 0);
    }
    // What stands in a function exports nothing.
    if let Some(export) = parsed.program.body.iter().find(|statement| is_export(statement)) {
        let what = "a script returns its result and exports nothing";
        return refuse(what, export.span().start as usize);
    }
    Ok(take(code, &parsed.program))
}

fn is_export(statement: &Statement<'_>) -> bool {
    let declaration = statement.as_module_declaration();
    declaration.is_some_and(|declaration| !matches!(declaration, ModuleDeclaration::ImportDeclaration(_)))
}

fn imports<'a>(program: &'a Program<'a>) -> impl Iterator<Item = &'a ImportDeclaration<'a>> {
    program.body.iter().filter_map(|statement| match statement {
        Statement::ImportDeclaration(import) => Some(&**import),
        _ => None,
    })
}

fn rewrite(code: &str, program: &Program<'_>) -> String {
    let mut head = String::new();
    let mut body = String::with_capacity(code.len());
    let mut copied = 0;
    for import in imports(program) {
        head.push_str(&import_text(code, import));
        body.push_str(slice(code, Span::new(copied, import.span.start)));
        body.push_str(&blank(slice(code, import.span)));
        copied = import.span.end;
    }
    body.push_str(code.get(copied as usize..).unwrap_or_default());
    format!("{head}export default async () => {{ {body}\n}};")
}

/// The declaration again, without the line breaks and comments that it may have had.
fn import_text(code: &str, import: &ImportDeclaration<'_>) -> String {
    let mut text = String::from("import ");
    match import.phase {
        None => {}
        Some(ImportPhase::Source) => text.push_str("source "),
        Some(ImportPhase::Defer) => text.push_str("defer "),
    }
    if let Some(specifiers) = &import.specifiers {
        let mut names = Vec::new();
        let mut clauses = Vec::new();
        for specifier in specifiers {
            let local = slice(code, specifier.local().span);
            match specifier {
                ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => clauses.push(local.to_owned()),
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => clauses.push(format!("* as {local}")),
                ImportDeclarationSpecifier::ImportSpecifier(named) => {
                    names.push(format!("{} as {local}", slice(code, named.imported.span())));
                }
            }
        }
        if !names.is_empty() || clauses.is_empty() {
            clauses.push(format!("{{ {} }}", names.join(", ")));
        }
        text.push_str(&format!("{} from ", clauses.join(", ")));
    }
    text.push_str(slice(code, import.source.span));
    if let Some(with) = &import.with_clause {
        let entry = |entry: &oxc_ast::ast::ImportAttribute<'_>| {
            format!("{}: {}", slice(code, entry.key.span()), slice(code, entry.value.span))
        };
        let entries: Vec<String> = with.with_entries.iter().map(entry).collect();
        text.push_str(&format!(" with {{ {} }}", entries.join(", ")));
    }
    text + "; "
}

/// An empty statement of the same lines, so that the statements around it stay apart.
fn blank(text: &str) -> String {
    let breaks = |c: char| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
    let spaces = text.chars().skip(1).map(|c| if breaks(c) { c } else { ' ' });
    std::iter::once(';').chain(spaces).collect()
}

fn slice(code: &str, span: Span) -> &str {
    code.get(span.start as usize..span.end as usize).unwrap_or_default()
}

/// Line and column, from 1, of a byte offset.
fn position(code: &str, at: usize) -> (usize, usize) {
    let before = code.get(..at).unwrap_or(code);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before.get(start..).map_or(0, |text| text.chars().count()) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_hoisted_to_the_first_line() {
        let cases = [
            ("return 1;", "export default async () => { return 1;\n};"),
            (
                "import a from \"x\";\nreturn a;",
                "import a from \"x\"; export default async () => { ;                 \nreturn a;\n};",
            ),
            (
                "f()\nimport {\n  b, // why\n  \"c d\" as c } from 'y'\n(b)()",
                "import { b as b, \"c d\" as c } from 'y'; export default async () => { f()\n;       \n           \n                       \n(b)()\n};",
            ),
            (
                "import d, * as e from \"z\" with { type: \"json\" };",
                "import d, * as e from \"z\" with { type: \"json\" }; export default async () => { ;                                              \n};",
            ),
            (
                "import \"a\"; import {} from \"b\"; import f, { default as g } from \"c\"",
                "import \"a\"; import {  } from \"b\"; import f, { default as g } from \"c\"; export default async () => { ;           ;                   ;                                      \n};",
            ),
            (
                "const s = \"import x from 'y'\";",
                "export default async () => { const s = \"import x from 'y'\";\n};",
            ),
            ("// last line", "export default async () => { // last line\n};"),
        ];
        for (code, module) in cases {
            let module = module.to_owned();
            let bodies_agree = as_module(code, 1_000).map(|text| text.replace(' ', ""));
            assert_eq!(bodies_agree, Ok(module.replace(' ', "")), "{code}");
            let text = as_module(code, 1_000).unwrap();
            assert_eq!(text.lines().count(), code.lines().count() + 1, "{code}");
        }
    }

    #[test]
    fn imported_names_are_decoded() {
        let code = "import a from 'x'; f(); import 'y\\u0061'; const s = \"import 'z'\"; await import('w');";
        assert_eq!(imported_names(code), Ok(vec!["x".to_owned(), "ya".to_owned()]));
        assert!(imported_names("import").is_err());
    }

    #[test]
    fn code_cannot_leave_its_function() {
        for code in [
            "}; globalThis.x = 1; async () => {",
            "return 1 }",
            "import x from",
            "\u{0}",
            "export default 1; }{",
        ] {
            let error = as_module(code, 1_000).unwrap_err();
            assert!(error.message.starts_with("SyntaxError: "), "{code}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let cases = [
            ("let a;\n  let b = ;", "Unexpected token (line 2, column 11)"),
            (
                "#!/usr/bin/env node\nreturn 1;",
                "a script has no hashbang (line 1, column 1)",
            ),
            (
                "let a;\n export default a;",
                "a script returns its result and exports nothing (line 2, column 2)",
            ),
            (
                "import b from 'x'; export { a } from 'b'",
                "a script returns its result and exports nothing (line 1, column 20)",
            ),
        ];
        for (code, message) in cases {
            let error = as_module(code, 1_000).unwrap_err();
            assert_eq!(error.message, format!("SyntaxError: {message}"), "{code}");
        }
    }

    #[test]
    fn nesting_takes_no_more_stack_than_there_is() {
        let shapes = [
            "[",
            "(",
            "{",
            "x={a:",
            "(()=>{",
            "!",
            "a=",
            "a=>",
            "a?b:",
            "if(a)",
            "f(",
            "`${",
            "new ",
            "l:",
            "async(",
            "class{m(){",
        ];
        for shape in shapes {
            let code = shape.repeat(40_000 / shape.len());
            let _: Result<String, GuestError> = as_module(&code, code.len());
        }
        let error = as_module(&"(".repeat(2_000), 1_999).unwrap_err();
        assert_eq!(error.message, "the code is 2000 bytes long, and a script may have 1999");
    }
}
