//! Walks over syntax trees.

use crate::ast::{
    AddressInitialiser, Block, Body, Function, Initialiser, Name, Operand, OperandKind, Statement,
};
use crate::resolve::Names;

/// Gives `visit` every name in the body of `function` that the function does not declare itself: symbols of
/// module scope, special registers, and what does not exist.
pub fn free_names<'m, 'a>(function: &'m Function<'a>, visit: impl FnMut(&'m Name<'a>)) {
    let mut walk = Walk { scopes: vec![Names::default()], visit };
    for parameter in function.returns.iter().chain(&function.params) {
        walk.declare(parameter.name, parameter.count);
    }
    if let Body::Parsed(code) = &function.body {
        walk.block(&code.block);
    }
}

/// Gives `visit` every symbol an initial value refers to.
pub fn initialiser_names<'m, 'a>(initialiser: &'m Initialiser<'a>, visit: &mut impl FnMut(&'m Name<'a>)) {
    addresses(initialiser, &mut |address| visit(&address.symbol));
}

/// Gives `visit` every address in an initial value.
pub(crate) fn addresses<'m, 'a>(
    initialiser: &'m Initialiser<'a>,
    visit: &mut impl FnMut(&'m AddressInitialiser<'a>),
) {
    match initialiser {
        Initialiser::Address(address) => visit(address),
        Initialiser::List(list) => list.iter().for_each(|inner| addresses(inner, visit)),
        Initialiser::Value(_) | Initialiser::Fields(_) => {}
    }
}

/// Gives `visit` every statement of a block and of those inside it.
pub(crate) fn statements<'m, 'a>(block: &'m Block<'a>, visit: &mut impl FnMut(&'m Statement<'a>)) {
    for statement in &block.statements {
        visit(statement);
        if let Statement::Block(inner) = statement {
            statements(inner, visit);
        }
    }
}

struct Walk<'a, F> {
    /// Outermost first.
    scopes: Vec<Names<'a, ()>>,
    visit: F,
}

impl<'m, 'a: 'm, F: FnMut(&'m Name<'a>)> Walk<'a, F> {
    fn declare(&mut self, name: Name<'a>, count: Option<u32>) {
        let scope = self.scopes.last_mut().expect("the parameters' scope is never closed");
        match count {
            // What is declared twice is declared.
            Some(count) => drop(scope.insert_range(name, count, ())),
            None => drop(scope.insert(name, ())),
        }
    }

    fn block(&mut self, block: &'m Block<'a>) {
        self.scopes.push(Names::default());
        for statement in &block.statements {
            match statement {
                Statement::Label(name) => self.declare(*name, None),
                Statement::Prototype(prototype) => self.declare(prototype.name, None),
                Statement::CallTargets(list) | Statement::BranchTargets(list) => {
                    self.declare(list.name, None)
                }
                _ => {}
            }
        }
        for statement in &block.statements {
            match statement {
                Statement::Instruction(instruction) => {
                    if let Some(guard) = &instruction.guard {
                        self.name(&guard.register);
                    }
                    instruction.operands.iter().for_each(|operand| self.operand(operand));
                }
                Statement::Registers(registers) => {
                    registers.names.iter().for_each(|register| self.declare(register.name, register.count));
                }
                Statement::Variable(variable) => {
                    if let Some(initialiser) = &variable.initialiser {
                        initialiser_names(initialiser, &mut |name| self.name(name));
                    }
                    self.declare(variable.name, variable.count);
                }
                Statement::Block(block) => self.block(block),
                Statement::CallTargets(list) => list.names.iter().for_each(|name| self.name(name)),
                _ => {}
            }
        }
        self.scopes.pop();
    }

    fn operand(&mut self, operand: &'m Operand<'a>) {
        match &operand.kind {
            OperandKind::Name(name)
            | OperandKind::Component(name, _)
            | OperandKind::SymbolOffset(name, _) => {
                self.name(name);
            }
            OperandKind::Element(name, index) => {
                self.name(name);
                self.operand(index);
            }
            OperandKind::Not(inner) | OperandKind::Negate(inner) => self.operand(inner),
            OperandKind::Pair(a, b) => {
                self.operand(a);
                self.operand(b);
            }
            OperandKind::Vector(list) | OperandKind::List(list) => {
                list.iter().for_each(|inner| self.operand(inner));
            }
            OperandKind::Address(address) => {
                self.operand(&address.base);
                address.rest.iter().for_each(|inner| self.operand(inner));
            }
            OperandKind::Immediate(_) | OperandKind::Sink => {}
        }
    }

    fn name(&mut self, name: &'m Name<'a>) {
        if !self.scopes.iter().rev().any(|scope| scope.get(name.text).is_some()) {
            (self.visit)(name);
        }
    }
}
