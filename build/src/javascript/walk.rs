//! The one pass over a module's tree: calls that the contract forbids, uses of globals that the guest deletes, and how deep the
//! tree is.

use std::cell::Cell;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionExpression, CallExpression, ConditionalExpression, Expression, Function, IdentifierReference,
    IfStatement, LogicalExpression, Program, PropertyDefinition, UnaryExpression, UnaryOperator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_semantic::Stats;
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::{ScopeFlags, ScopeId};

use super::acorn::Acorn;
use super::finding::{Finding, FindingKind};

/// Globals that the guest deletes.
const REMOVED_GLOBALS: [&str; 15] = [
    "setTimeout",
    "clearTimeout",
    "setInterval",
    "clearInterval",
    "setImmediate",
    "clearImmediate",
    "eval",
    "Function",
    "Buffer",
    "process",
    "env",
    "Headers",
    "Request",
    "Response",
    "performance",
];

/// A set of removed globals, one bit each.
type Globals = u16;

/// What the pass found.
#[derive(Default)]
pub(super) struct Walked<'a> {
    /// Offences, as the pass met them.
    pub(super) findings: Vec<Finding>,
    /// References by the name of a removed global that are evaluated with the module; some may have a binding.
    pub(super) removed: Vec<&'a IdentifierReference<'a>>,
    /// Levels of the deepest node.
    pub(super) depth: usize,
    /// What there is to resolve.
    pub(super) stats: Stats,
    /// Where acorn judges otherwise than oxc.
    pub(super) acorn: Acorn<'a>,
}

/// Walks all of `program`.
pub(super) fn walk<'a>(program: &Program<'a>) -> Walked<'a> {
    let mut walk = Walk::default();
    walk.walked.acorn = Acorn::of(program.source_text);
    walk.visit_program(program);
    walk.walked
}

#[derive(Default)]
struct Walk<'a> {
    walked: Walked<'a>,
    /// Levels above the node in hand.
    depth: usize,
    /// Functions around the node in hand that run later than the module's evaluation, if at all.
    deferred: usize,
    /// The function that is about to be entered and is called on the spot.
    immediate: Option<Span>,
    /// Globals that the test in hand looks for with `typeof`.
    tested: Globals,
    /// Globals that are known to be there, or looked for, around the node in hand.
    guarded: Globals,
}

impl<'a> Walk<'a> {
    fn find(&mut self, kind: FindingKind, span: Span) {
        let span = span.start as usize..span.end as usize;
        self.walked.findings.push(Finding { kind, span });
    }

    fn refer(&mut self, reference: &'a IdentifierReference<'a>) {
        self.walked.stats.references += 1;
        if self.deferred == 0 && removed_global(reference) & !self.guarded != 0 {
            self.walked.removed.push(reference);
        }
    }

    fn check_call(&mut self, call: &CallExpression<'a>) {
        if let Expression::Identifier(callee) = call.callee.without_parentheses()
            && callee.name == "require"
        {
            self.find(FindingKind::Require, callee.span);
        }
    }

    /// Visits what runs later.
    fn later(&mut self, later: bool, visit: impl FnOnce(&mut Self)) {
        self.deferred += usize::from(later);
        visit(self);
        self.deferred -= usize::from(later);
    }

    /// Visits the body of a function, which runs later unless it is called on the spot.
    fn function(&mut self, span: Span, generator: bool, visit: impl FnOnce(&mut Self)) {
        let immediate = self.immediate.take_if(|immediate| *immediate == span).is_some();
        self.later(generator || !immediate, visit);
    }

    /// Visits a test, and then what is evaluated by its outcome.
    fn guard(&mut self, test: &Expression<'a>, visit: impl FnOnce(&mut Self)) {
        let around = (std::mem::take(&mut self.tested), self.guarded);
        self.visit_expression(test);
        self.guarded |= self.tested;
        visit(self);
        self.tested |= around.0;
        self.guarded = around.1;
    }
}

impl<'a> Visit<'a> for Walk<'a> {
    fn enter_node(&mut self, kind: AstKind<'a>) {
        self.walked.stats.nodes += 1;
        self.depth += 1;
        self.walked.depth = self.walked.depth.max(self.depth);
        self.walked.acorn.enter(kind);
        match kind {
            AstKind::BindingIdentifier(_) => self.walked.stats.symbols += 1,
            AstKind::IdentifierReference(reference) => self.refer(reference),
            AstKind::ImportExpression(import) => self.find(FindingKind::DynamicImport, import.span),
            AstKind::CallExpression(call) => self.check_call(call),
            _ => {}
        }
    }

    fn leave_node(&mut self, kind: AstKind<'a>) {
        self.walked.acorn.leave(kind);
        self.depth -= 1;
    }

    fn enter_scope(&mut self, _: ScopeFlags, _: &Cell<Option<ScopeId>>) {
        self.walked.stats.scopes += 1;
    }

    fn visit_function(&mut self, function: &Function<'a>, flags: ScopeFlags) {
        self.function(function.span, function.generator, |walk| {
            walk::walk_function(walk, function, flags)
        });
    }

    fn visit_arrow_function_expression(&mut self, function: &ArrowFunctionExpression<'a>) {
        self.function(function.span, false, |walk| {
            walk::walk_arrow_function_expression(walk, function)
        });
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.immediate = called_function(call);
        walk::walk_call_expression(self, call);
    }

    fn visit_property_definition(&mut self, property: &PropertyDefinition<'a>) {
        let kind = AstKind::PropertyDefinition(self.alloc(property));
        self.enter_node(kind);
        self.visit_decorators(&property.decorators);
        self.visit_property_key(&property.key);
        if let Some(value) = &property.value {
            self.later(!property.r#static, |walk| walk.visit_expression(value));
        }
        self.leave_node(kind);
    }

    fn visit_unary_expression(&mut self, unary: &UnaryExpression<'a>) {
        let around = self.guarded;
        if unary.operator == UnaryOperator::Typeof
            && let Expression::Identifier(operand) = unary.argument.without_parentheses()
        {
            let global = removed_global(operand);
            self.tested |= global;
            self.guarded |= global;
        }
        walk::walk_unary_expression(self, unary);
        self.guarded = around;
    }

    fn visit_if_statement(&mut self, statement: &IfStatement<'a>) {
        let kind = AstKind::IfStatement(self.alloc(statement));
        self.enter_node(kind);
        self.guard(&statement.test, |walk| {
            walk.visit_statement(&statement.consequent);
            if let Some(alternate) = &statement.alternate {
                walk.visit_statement(alternate);
            }
        });
        self.leave_node(kind);
    }

    fn visit_conditional_expression(&mut self, expression: &ConditionalExpression<'a>) {
        let kind = AstKind::ConditionalExpression(self.alloc(expression));
        self.enter_node(kind);
        self.guard(&expression.test, |walk| {
            walk.visit_expression(&expression.consequent);
            walk.visit_expression(&expression.alternate);
        });
        self.leave_node(kind);
    }

    fn visit_logical_expression(&mut self, expression: &LogicalExpression<'a>) {
        let kind = AstKind::LogicalExpression(self.alloc(expression));
        self.enter_node(kind);
        self.guard(&expression.left, |walk| walk.visit_expression(&expression.right));
        self.leave_node(kind);
    }
}

/// The bit of the removed global that a reference names, if it does.
fn removed_global(reference: &IdentifierReference<'_>) -> Globals {
    let position = REMOVED_GLOBALS.iter().position(|name| reference.name == *name);
    position.map_or(0, |position| 1 << position)
}

/// The function that is called on the spot: `(…)()`, `(…).call()`, `(…).apply()`.
fn called_function(call: &CallExpression<'_>) -> Option<Span> {
    let callee = match call.callee.without_parentheses() {
        Expression::StaticMemberExpression(member) if matches!(member.property.name.as_str(), "call" | "apply") => {
            member.object.without_parentheses()
        }
        callee => callee,
    };
    matches!(
        callee,
        Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_)
    )
    .then(|| callee.span())
}
