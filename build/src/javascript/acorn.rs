//! What acorn refuses or takes and oxc does not: decorators, class modifiers of TypeScript, import phases, jumps out of functions,
//! mixed logical operators, and a few more. A syntax error here is one that NodeTool's parser has; `fixtures/syntax` compares the two.

use std::collections::HashSet;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    AssignmentTarget, BinaryExpression, BinaryOperator, BindingIdentifier, Class, ClassType, ExportNamedDeclaration,
    Expression, ForStatementLeft, FormalParameters, Function, IdentifierReference, LabeledStatement, LogicalExpression,
    LogicalOperator, MethodDefinition, MethodDefinitionKind, ObjectProperty, Program, PropertyDefinition, PropertyKey,
    PropertyKind, RegExpLiteral, Statement, StaticMemberExpression, VariableDeclarationKind, WithClause,
    WithClauseKeyword,
};
use oxc_span::{GetSpan, Span};

use super::finding::{Finding, FindingKind};
use super::regexp;

/// What stands around a node and matters to a jump, an `await using` or `arguments`.
enum Around<'a> {
    Function { asynchronous: bool },
    Arrow { asynchronous: bool },
    StaticBlock,
    Field,
    Loop,
    Switch,
    Label { name: &'a str, of_loop: bool },
}

/// The checks, fed with every node as it is entered and left.
#[derive(Default)]
pub(super) struct Acorn<'a> {
    source: &'a str,
    around: Vec<Around<'a>>,
    /// Where an asynchronous function ends, or a property that is called like a keyword and asked for by `?.`: behind them acorn looks
    /// for a regular expression.
    misread_ends: HashSet<u32>,
    /// Syntax errors.
    pub(super) refused: Vec<Finding>,
    /// Names that oxc complains about and acorn does not.
    pub(super) tolerated: Vec<Span>,
}

impl<'a> Acorn<'a> {
    pub(super) fn of(source: &'a str) -> Self {
        Self {
            source,
            ..Self::default()
        }
    }

    fn refuse(&mut self, sentence: &str, span: Span) {
        self.refused.push(Finding {
            kind: FindingKind::Syntax(sentence.to_owned()),
            span: span.start as usize..span.end as usize,
        });
    }

    pub(super) fn enter(&mut self, kind: AstKind<'a>) {
        match kind {
            AstKind::Decorator(decorator) => self.refuse("decorators are no standard ECMAScript", decorator.span),
            AstKind::AccessorProperty(property) => {
                self.refuse("accessor properties are no standard ECMAScript", property.span);
            }
            AstKind::MethodDefinition(method) => self.check_method(method),
            AstKind::PropertyDefinition(property) => self.check_property(property),
            AstKind::Class(class) => self.check_class(class),
            AstKind::ImportDeclaration(import) if import.phase.is_some() => self.refuse(PHASE, import.span),
            AstKind::ImportExpression(import) if import.phase.is_some() => self.refuse(PHASE, import.span),
            AstKind::WithClause(clause) => self.check_with_clause(clause),
            AstKind::ExportNamedDeclaration(export) => self.check_export(export),
            AstKind::VariableDeclaration(declaration)
                if declaration.kind == VariableDeclarationKind::AwaitUsing && !self.may_await() =>
            {
                self.refuse(
                    "await using is only for modules and asynchronous functions",
                    declaration.span,
                );
            }
            AstKind::ForInStatement(statement) => self.check_loop_variable(&statement.left),
            AstKind::ForOfStatement(statement) => self.check_loop_variable(&statement.left),
            AstKind::BreakStatement(jump) => {
                let label = jump.label.as_ref().map(|label| label.name.as_str());
                self.check_jump(label, false, jump.span);
            }
            AstKind::ContinueStatement(jump) => {
                let label = jump.label.as_ref().map(|label| label.name.as_str());
                self.check_jump(label, true, jump.span);
            }
            AstKind::IdentifierReference(reference) => self.check_arguments(reference),
            AstKind::Program(program) => self.check_exports(program),
            AstKind::TSInterfaceDeclaration(interface) => self.refuse("interfaces are TypeScript", interface.span),
            AstKind::ObjectProperty(property) => self.check_object_property(property),
            AstKind::LogicalExpression(expression) => self.check_logical(expression),
            AstKind::RegExpLiteral(literal) => self.check_regexp(literal),
            AstKind::Function(function) => self.remember_function(function),
            AstKind::StaticMemberExpression(member) => self.remember_member(member),
            _ => {}
        }
        self.around.extend(around(kind));
    }

    pub(super) fn leave(&mut self, kind: AstKind<'a>) {
        if let AstKind::BinaryExpression(expression) = kind {
            self.check_division(expression);
        }
        if around(kind).is_some() {
            self.around.pop();
        }
    }

    fn check_method(&mut self, method: &MethodDefinition<'a>) {
        let allowed = |words: &[&str]| matches!(words, [] | ["*" | "async" | "get" | "set"] | ["async", "*"]);
        self.check_modifiers(method.span, &method.key, method.decorators.is_empty(), allowed);
        if method.optional {
            self.refuse(MODIFIER, method.key.span());
        }
        if method.kind == MethodDefinitionKind::Get {
            self.check_getter(&method.value.params);
        }
    }

    fn check_property(&mut self, property: &PropertyDefinition<'a>) {
        self.check_modifiers(property.span, &property.key, property.decorators.is_empty(), |words| {
            words.is_empty()
        });
        if property.optional || property.definite {
            self.refuse(MODIFIER, property.key.span());
        }
    }

    /// The words before a class element's key: `static`, and what `allowed` says.
    fn check_modifiers(
        &mut self,
        element: Span,
        key: &PropertyKey<'_>,
        plain: bool,
        allowed: impl Fn(&[&str]) -> bool,
    ) {
        let before = Span::new(element.start, key.span().start);
        // Most elements have none. Decorators are refused for themselves.
        if before.is_empty() || !plain {
            return;
        }
        let words: Vec<&str> = tokens(before.source_text(self.source)).collect();
        let words = words.strip_suffix(&["["]).unwrap_or(&words);
        let words = words.strip_prefix(&["static"]).unwrap_or(words);
        if !allowed(words) {
            self.refuse(MODIFIER, before);
        }
    }

    fn check_object_property(&mut self, property: &ObjectProperty<'a>) {
        if property.kind == PropertyKind::Get
            && let Expression::FunctionExpression(function) = &property.value
        {
            self.check_getter(&function.params);
        }
    }

    fn check_getter(&mut self, parameters: &FormalParameters<'a>) {
        if parameters.rest.is_some() {
            self.refuse("a getter has no parameters", parameters.span);
        }
    }

    /// `??` does not mix with `||` and `&&`, which parentheses around the outermost operands alone do not change.
    fn check_logical(&mut self, expression: &LogicalExpression<'a>) {
        let coalesces = expression.operator == LogicalOperator::Coalesce;
        let mixes = |operand: &Expression<'a>| {
            matches!(operand, Expression::LogicalExpression(inner)
                if (inner.operator == LogicalOperator::Coalesce) != coalesces)
        };
        if mixes(&expression.left) || mixes(&expression.right) {
            self.refuse(
                "`??` is mixed with `||` or `&&`: parentheses are needed",
                expression.span,
            );
        }
    }

    fn check_regexp(&mut self, literal: &RegExpLiteral<'a>) {
        if let Some((what, span)) = regexp::fault(literal, self.source) {
            self.refuse(&format!("Invalid regular expression: {what}"), span);
        }
    }

    fn remember_function(&mut self, function: &Function<'a>) {
        if function.r#async && function.is_expression() {
            self.misread_ends.insert(function.span.end);
        }
    }

    fn remember_member(&mut self, member: &StaticMemberExpression<'a>) {
        if member.optional && BEFORE_EXPRESSION.contains(&member.property.name.as_str()) {
            self.misread_ends.insert(member.property.span.end);
        }
    }

    /// A division sign that acorn takes for the beginning of a regular expression.
    fn check_division(&mut self, expression: &BinaryExpression<'a>) {
        let end = expression.left.span().end;
        if expression.operator == BinaryOperator::Division && self.misread_ends.contains(&end) {
            self.refuse(
                "the parser takes the division sign for a regular expression",
                expression.span,
            );
        }
    }

    /// Decorators before an export that is no class, which oxc leaves out of the tree.
    fn check_exports(&mut self, program: &Program<'a>) {
        let mut end = program.directives.last().map_or(0, |directive| directive.span.end);
        for statement in &program.body {
            let span = statement.span();
            if statement.is_module_declaration() {
                let before = Span::new(end, span.start).source_text(self.source);
                if tokens(before).chain(tokens(span.source_text(self.source))).next() == Some("@") {
                    self.refuse("decorators are no standard ECMAScript", span);
                }
            }
            end = span.end;
        }
    }

    /// The name of a class expression may be `eval` or `arguments`; no class is abstract.
    fn check_class(&mut self, class: &Class<'a>) {
        if class.r#type == ClassType::ClassExpression
            && let Some(BindingIdentifier { span, name, .. }) = &class.id
            && is_restricted(name)
        {
            self.tolerated.push(*span);
        }
        if class.r#abstract {
            self.refuse("abstract classes are TypeScript", class.span);
        }
    }

    fn check_with_clause(&mut self, clause: &WithClause<'a>) {
        if clause.keyword == WithClauseKeyword::Assert {
            self.refuse("import attributes follow `with`, not `assert`", clause.span);
        }
    }

    /// `export {} from`, and no source.
    fn check_export(&mut self, export: &ExportNamedDeclaration<'a>) {
        let after = export
            .specifiers
            .last()
            .map_or(export.span.start, |specifier| specifier.span.end);
        let rest = Span::new(after, export.span.end).source_text(self.source);
        let mut tokens = tokens(rest).skip_while(|token| *token != "}").skip(1);
        if tokens.next() == Some("from") {
            self.refuse("`from` is not followed by a source", export.span);
        }
    }

    fn check_loop_variable(&mut self, left: &ForStatementLeft<'a>) {
        if let Some(AssignmentTarget::AssignmentTargetIdentifier(name)) = left.as_assignment_target()
            && is_restricted(&name.name)
        {
            self.refuse("`eval` and `arguments` cannot be assigned to", name.span);
        }
    }

    /// `arguments` in an arrow function is no concern of the static block around it.
    fn check_arguments(&mut self, reference: &IdentifierReference<'a>) {
        if reference.name != "arguments" {
            return;
        }
        let mut functions = self.around.iter().rev().filter(|around| around.is_function());
        let arrow = matches!(functions.next(), Some(Around::Arrow { .. }));
        let around = functions.find(|around| !matches!(around, Around::Arrow { .. }));
        if arrow && matches!(around, Some(Around::StaticBlock)) {
            self.tolerated.push(reference.span);
        }
    }

    fn check_jump(&mut self, label: Option<&str>, continues: bool, span: Span) {
        let inside = self.around.iter().rev();
        let mut inside = inside.take_while(|around| !around.is_function());
        let leads_somewhere = inside.any(|around| match (around, label) {
            (Around::Loop, None) => true,
            (Around::Switch, None) => !continues,
            (Around::Label { name, of_loop }, Some(label)) => *name == label && (*of_loop || !continues),
            _ => false,
        });
        if !leads_somewhere {
            let jump = if continues { "continue" } else { "break" };
            self.refuse(&format!("`{jump}` has nothing to lead to"), span);
        }
    }

    /// The innermost function.
    fn function(&self) -> Option<&Around<'a>> {
        self.around.iter().rev().find(|around| around.is_function())
    }

    fn may_await(&self) -> bool {
        match self.function() {
            Some(Around::Function { asynchronous } | Around::Arrow { asynchronous }) => *asynchronous,
            Some(Around::StaticBlock) => false,
            _ => true,
        }
    }
}

/// Words behind which an expression begins.
const BEFORE_EXPRESSION: [&str; 14] = [
    "case",
    "default",
    "delete",
    "do",
    "else",
    "extends",
    "in",
    "instanceof",
    "new",
    "of",
    "return",
    "throw",
    "typeof",
    "void",
];
const MODIFIER: &str = "class elements have no modifiers but `static`, `async`, `get` and `set`";
const PHASE: &str = "import phases are no standard ECMAScript";

impl Around<'_> {
    fn is_function(&self) -> bool {
        matches!(
            self,
            Self::Function { .. } | Self::Arrow { .. } | Self::StaticBlock | Self::Field
        )
    }
}

fn around<'a>(kind: AstKind<'a>) -> Option<Around<'a>> {
    Some(match kind {
        AstKind::Function(function) => Around::Function {
            asynchronous: function.r#async,
        },
        AstKind::ArrowFunctionExpression(function) => Around::Arrow {
            asynchronous: function.r#async,
        },
        AstKind::StaticBlock(_) => Around::StaticBlock,
        AstKind::PropertyDefinition(_) => Around::Field,
        AstKind::SwitchStatement(_) => Around::Switch,
        AstKind::LabeledStatement(statement) => Around::Label {
            name: statement.label.name.as_str(),
            of_loop: is_loop(statement),
        },
        AstKind::ForStatement(_)
        | AstKind::ForInStatement(_)
        | AstKind::ForOfStatement(_)
        | AstKind::WhileStatement(_)
        | AstKind::DoWhileStatement(_) => Around::Loop,
        _ => return None,
    })
}

/// Names that strict code cannot assign to.
fn is_restricted(name: &str) -> bool {
    matches!(name, "eval" | "arguments")
}

/// Whether a label is one of a loop, alone or together with others.
fn is_loop(mut statement: &LabeledStatement<'_>) -> bool {
    while let Statement::LabeledStatement(inner) = &statement.body {
        statement = inner;
    }
    statement.body.is_iteration_statement()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// The words and signs of a text without strings, comments left out.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            let comment = if rest.starts_with("//") {
                rest.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                break;
            };
            rest = rest.get(comment..).unwrap_or_default();
        }
        let word = rest.find(|c: char| !is_word(c));
        let length = match word.unwrap_or(rest.len()) {
            0 => rest.chars().next()?.len_utf8(),
            length => length,
        };
        let (token, after) = rest.split_at_checked(length)?;
        rest = after;
        Some(token)
    })
}
