//! Which names a CommonJS module of a bundle gives its importers, as far as its text tells: what Node's own analysis finds, over
//! what esbuild makes of the module. A name that the module does not have after all is undefined for its importers. Recursive:
//! it runs where a stack may overflow (`judge.rs`).

use std::collections::{BTreeSet, HashMap, HashSet};

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    Argument, AssignmentExpression, BindingPattern, CallExpression, Expression, Function, MemberExpression,
    ObjectExpression, ObjectPropertyKind, Program, PropertyKey, Statement, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_parser::Parser;
use oxc_span::SourceType;
use oxc_syntax::identifier::is_identifier_name;

/// More names than any library has. Beyond it none are given.
const MAX_NAMES: usize = 4_096;

/// The names that the module behind `key`, a path that esbuild wrote into `bundle`, gives; `default` not among them. Sorted.
#[must_use]
pub fn commonjs_names(bundle: &str, key: &str) -> Vec<String> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, bundle, SourceType::mjs()).parse();
    if parsed.panicked {
        return Vec::new();
    }
    let modules = Modules::of(&parsed.program);
    let mut names = BTreeSet::new();
    let mut seen = HashSet::new();
    let mut open: Vec<&str> = modules.by_key.get(key).copied().into_iter().collect();
    while let Some(module) = open.pop() {
        if !seen.insert(module) {
            continue;
        }
        names.extend(modules.tables.get(module).into_iter().flatten().copied());
        if let Some(function) = modules.wrapped.get(module) {
            let mut exports = Exports::of(&modules);
            if let Some(body) = &function.body {
                exports.visit_function_body(body);
            }
            names.extend(exports.names);
            open.extend(exports.from);
        }
    }
    let given = names
        .into_iter()
        .filter(|name| !matches!(*name, "default" | "__esModule"));
    let given: Vec<String> = given
        .filter(|name| is_identifier_name(name))
        .map(str::to_owned)
        .collect();
    if given.len() > MAX_NAMES { Vec::new() } else { given }
}

/// The modules of a bundle that others import by a call.
#[derive(Default)]
struct Modules<'p, 'a> {
    /// `var require_x = __commonJS({ "‹key›"(exports, module) { … } })`: the function by the variable, the variable by the key.
    wrapped: HashMap<&'a str, &'p Function<'a>>,
    by_key: HashMap<&'a str, &'a str>,
    /// `__export(x_exports, { ‹name›: () => … })`: the names by the variable.
    tables: HashMap<&'a str, Vec<&'a str>>,
}

impl<'p, 'a> Modules<'p, 'a> {
    fn of(program: &'p Program<'a>) -> Self {
        let mut modules = Self::default();
        for statement in &program.body {
            match statement {
                Statement::VariableDeclaration(declaration) => {
                    for declarator in &declaration.declarations {
                        modules.add_wrapper(declarator);
                    }
                }
                Statement::ExpressionStatement(statement) => {
                    if let Expression::CallExpression(call) = &statement.expression {
                        modules.tables.extend(export_table(call));
                    }
                }
                _ => {}
            }
        }
        modules
    }

    fn add_wrapper(&mut self, declarator: &'p VariableDeclarator<'a>) {
        if let BindingPattern::BindingIdentifier(variable) = &declarator.id
            && let Some(Expression::CallExpression(call)) = &declarator.init
            && let Some(Argument::ObjectExpression(wrapper)) = call.arguments.first()
            && let [ObjectPropertyKind::ObjectProperty(property)] = wrapper.properties.as_slice()
            && let PropertyKey::StringLiteral(key) = &property.key
            && let Expression::FunctionExpression(function) = &property.value
        {
            self.wrapped.insert(variable.name.as_str(), function);
            self.by_key.insert(key.value.as_str(), variable.name.as_str());
        }
    }
}

/// The variable and the names of `__export(variable, { name: () => … })`.
fn export_table<'a>(call: &CallExpression<'a>) -> Option<(&'a str, Vec<&'a str>)> {
    match call.arguments.as_slice() {
        [Argument::Identifier(variable), Argument::ObjectExpression(table)] => {
            Some((variable.name.as_str(), own_names(table)))
        }
        _ => None,
    }
}

fn own_names<'a>(object: &ObjectExpression<'a>) -> Vec<&'a str> {
    let names = object.properties.iter().filter_map(|property| match property {
        ObjectPropertyKind::ObjectProperty(property) => match &property.key {
            PropertyKey::StaticIdentifier(key) => Some(key.name.as_str()),
            PropertyKey::StringLiteral(key) => Some(key.value.as_str()),
            _ => None,
        },
        ObjectPropertyKind::SpreadProperty(_) => None,
    });
    names.collect()
}

/// Finds what one CommonJS module exports.
struct Exports<'m, 'p, 'a> {
    modules: &'m Modules<'p, 'a>,
    names: Vec<&'a str>,
    /// Modules whose names it hands on.
    from: Vec<&'a str>,
    /// Modules by the variables that hold them.
    held: HashMap<&'a str, &'a str>,
    /// Tables of its own, like [`Modules::tables`], where it was bundled before.
    tables: HashMap<&'a str, Vec<&'a str>>,
}

impl<'m, 'p, 'a> Exports<'m, 'p, 'a> {
    fn of(modules: &'m Modules<'p, 'a>) -> Self {
        Self {
            modules,
            names: Vec::new(),
            from: Vec::new(),
            held: HashMap::new(),
            tables: HashMap::new(),
        }
    }

    /// The module that an expression is: `require_x()`, `(init_x(), __toCommonJS(x_exports))`, a variable that holds one, or any of
    /// them as the first argument of a helper.
    fn module(&self, expression: &Expression<'a>) -> Option<&'a str> {
        match expression {
            Expression::ParenthesizedExpression(inner) => self.module(&inner.expression),
            Expression::SequenceExpression(sequence) => self.module(sequence.expressions.last()?),
            Expression::Identifier(variable) => {
                let variable = variable.name.as_str();
                let table = self.modules.tables.contains_key(variable).then_some(variable);
                self.held.get(variable).copied().or(table)
            }
            Expression::CallExpression(call) => match (&call.callee, call.arguments.first()) {
                (Expression::Identifier(callee), None) => {
                    let callee = callee.name.as_str();
                    self.modules.wrapped.contains_key(callee).then_some(callee)
                }
                (_, Some(argument)) => self.module(argument.as_expression()?),
                _ => None,
            },
            _ => None,
        }
    }

    /// `module.exports = value`
    fn assign_all(&mut self, value: &Expression<'a>) {
        match value {
            Expression::ParenthesizedExpression(inner) => self.assign_all(&inner.expression),
            Expression::AssignmentExpression(inner) => self.assign_all(&inner.right),
            Expression::ObjectExpression(object) => {
                self.names.extend(own_names(object));
                for property in &object.properties {
                    if let ObjectPropertyKind::SpreadProperty(spread) = property {
                        self.from.extend(self.module(&spread.argument));
                    }
                }
            }
            Expression::CallExpression(call) => {
                self.from.extend(self.module(value));
                // `__toCommonJS(x_exports)`
                if let [Argument::Identifier(table)] = call.arguments.as_slice() {
                    let names = self.tables.get(table.name.as_str());
                    self.names.extend(names.into_iter().flatten().copied());
                }
            }
            other => self.from.extend(self.module(other)),
        }
    }

    fn call(&mut self, call: &CallExpression<'a>) {
        self.tables.extend(export_table(call));
        let arguments = call.arguments.as_slice();
        let called = called_name(&call.callee);
        match (called, arguments) {
            // `Object.defineProperty(exports, "name", { … })`, and helpers of that name.
            (Some("defineProperty" | "__defProp"), [target, Argument::StringLiteral(name), _])
                if target.as_expression().is_some_and(is_exports) =>
            {
                self.names.push(name.value.as_str());
            }
            // `Object.keys(module).forEach(…)`
            (Some("forEach"), [_]) => {
                if let Expression::StaticMemberExpression(member) = &call.callee
                    && let Expression::CallExpression(keys) = &member.object
                    && called_name(&keys.callee) == Some("keys")
                    && let [Argument::Identifier(module)] = keys.arguments.as_slice()
                {
                    self.from.extend(self.held.get(module.name.as_str()));
                }
            }
            // `__exportStar(module, exports)`, `__export(module)`, `__reExport(exports, module)`
            (Some(name), _) if name.starts_with("__export") || name.starts_with("__reExport") => {
                let modules = arguments
                    .iter()
                    .filter_map(|argument| self.module(argument.as_expression()?));
                let modules: Vec<&str> = modules.collect();
                self.from.extend(modules);
            }
            _ => {}
        }
    }
}

impl<'a> Visit<'a> for Exports<'_, '_, 'a> {
    fn visit_variable_declarator(&mut self, declarator: &VariableDeclarator<'a>) {
        if let BindingPattern::BindingIdentifier(variable) = &declarator.id
            && let Some(module) = declarator.init.as_ref().and_then(|init| self.module(init))
        {
            self.held.insert(variable.name.as_str(), module);
        }
        walk::walk_variable_declarator(self, declarator);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        match assignment.left.as_member_expression() {
            Some(member) if is_module_exports(member) => self.assign_all(&assignment.right),
            Some(member) if is_exports(member.object()) => {
                self.names.extend(member.static_property_name());
            }
            _ => {}
        }
        walk::walk_assignment_expression(self, assignment);
    }

    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        self.call(call);
        walk::walk_call_expression(self, call);
    }
}

/// `f` of `f(…)`, `a.f(…)` and `(0, a.f)(…)`.
fn called_name<'a>(callee: &Expression<'a>) -> Option<&'a str> {
    match callee {
        Expression::ParenthesizedExpression(inner) => called_name(&inner.expression),
        Expression::SequenceExpression(sequence) => called_name(sequence.expressions.last()?),
        Expression::Identifier(name) => Some(name.name.as_str()),
        Expression::StaticMemberExpression(member) => Some(member.property.name.as_str()),
        _ => None,
    }
}

/// `exports`, also as a parameter of that name that esbuild numbers, and `module.exports`.
fn is_exports(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::Identifier(name) => is_numbered(name.name.as_str(), "exports"),
        _ => expression.as_member_expression().is_some_and(is_module_exports),
    }
}

fn is_module_exports(member: &MemberExpression<'_>) -> bool {
    member.static_property_name().is_some_and(|name| name == "exports")
        && matches!(member.object(), Expression::Identifier(name) if is_numbered(name.name.as_str(), "module"))
}

fn is_numbered(name: &str, plain: &str) -> bool {
    name.strip_prefix(plain)
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a bundle's module `"lib"` with this body. The bundle has two modules more to hand on: CommonJS with `a` and
    /// `b`, and a lazily evaluated one with `late`.
    fn names(body: &str) -> String {
        let bundle = format!(
            "var require_other = __commonJS({{ \"other\"(exports) {{ exports.a = 1; exports.b = 2; }} }});
             __export(late_exports, {{ default: () => d, late: () => late }});
             var require_lib = __commonJS({{ \"lib\"(exports, module) {{ {body} }} }});
             export default require_lib();"
        );
        commonjs_names(&bundle, "lib").join(" ")
    }

    #[test]
    fn names_are_found() {
        let cases = [
            ("", ""),
            (
                "exports.x = exports['y'] = void 0; exports.default = 1; exports['no-name'] = 1",
                "x y",
            ),
            ("module.exports.x = 1; if (a) { module['exports'].y = 2 }", "x y"),
            ("exports.x.deep = 1; other.z = 2; exports[computed] = 3", ""),
            (
                "module.exports = { x, 'y': 1, z() {}, [k]: 2, ...require_other() }",
                "a b x y z",
            ),
            ("exports = module.exports = main; exports.x = 1", "x"),
            ("module.exports = main; module.exports.default = main", ""),
            ("module.exports = exports = { x: 1 }", "x"),
            ("module.exports = require_other()", "a b"),
            (
                "if (p) module.exports = require_other(); else module.exports = (init_late(), __toCommonJS(late_exports))",
                "a b late",
            ),
            (
                "Object.defineProperty(exports, '__esModule', { value: true }); Object.defineProperty(exports, 'x', { enumerable: true, get: f })",
                "x",
            ),
            ("__exportStar(require_other(), exports)", "a b"),
            (
                "var tslib = require_tslib(); tslib.__exportStar(require_other(), exports); (0, tslib.__exportStar)((init_late(), __toCommonJS(late_exports)), exports)",
                "a b late",
            ),
            (
                "function __export(m) { for (var p in m) exports[p] = m[p] } __export(require_other())",
                "a b",
            ),
            (
                "var o = _interopRequireWildcard(require_other()); Object.keys(o).forEach(function (k) { exports[k] = o[k] })",
                "a b",
            ),
            ("var o = require_other(); o.x = 1; Object.keys(config).forEach(f)", ""),
            (
                "__export(src_exports, { x: () => x }); module.exports = __toCommonJS(src_exports)",
                "x",
            ),
            (
                "(function (g, f) { typeof exports === 'object' ? f(exports) : f(g.lib = {}) })(exports, function (exports2) { exports2.x = 1 })",
                "x",
            ),
            ("module.exports = require_lib(); exports.x = 1", "x"),
        ];
        for (body, expected) in cases {
            assert_eq!(names(body), expected, "{body}");
        }
        assert!(commonjs_names("export {}", "lib").is_empty());
        assert!(commonjs_names("not JavaScript", "lib").is_empty());
    }
}
