//! Which functions a program is made of.

use std::borrow::Cow;
use std::collections::HashSet;

use simt_ir::Signature;

use super::call::{signature, signature_of};
use crate::ast::{Body, Function, Item, Module, OperandKind, Prototype, Statement, Variable};
use crate::visit::{initialiser_names, statements};
use crate::{Errors, read_reachable};

/// A module in which the bodies of some functions have been read, and these functions.
pub(super) struct Reached<'c, 'a> {
    /// The module.
    pub module: Cow<'c, Module<'a>>,
    /// Indices of functions with a body, the kernel first.
    pub items: Vec<usize>,
    /// Names of functions that an indirect call may mean.
    pub taken: HashSet<&'a str>,
}

impl<'a> Reached<'_, 'a> {
    /// The functions.
    pub fn functions(&self) -> impl Iterator<Item = &Function<'a>> {
        self.items.iter().filter_map(|item| match &self.module.items[*item] {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }
}

/// The kernel `entry` and what it may call. Where it calls indirectly, that is every function of the module whose address is taken
/// anywhere, for a pointer may come from another kernel or the host, if it has one of the signatures called.
pub(super) fn functions<'c, 'a>(
    source: &'a str,
    mut module: Cow<'c, Module<'a>>,
    entry: &str,
) -> Result<Reached<'c, 'a>, Errors> {
    let mut items = reachable(source, &mut module, entry)?;
    let mut called = HashSet::new();
    let mut done = HashSet::new();
    let mut targets = HashSet::new();
    loop {
        let before = called.len();
        for item in &items {
            if let Item::Function(function) = &module.items[*item]
                && done.insert(*item)
            {
                called.extend(indirect_signatures(&module, function));
            }
        }
        if called.len() == before {
            return Ok(Reached { module, items, taken: targets });
        }
        for name in taken(source, &mut module)? {
            let fits = module.function(name).is_some_and(|f| !f.is_entry && called.contains(&signature(f)));
            if fits {
                targets.insert(name);
                for item in reachable(source, &mut module, name)? {
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
            }
        }
    }
}

/// Functions with bodies that `name` may run, itself first.
fn reachable<'a>(
    source: &'a str,
    module: &mut Cow<'_, Module<'a>>,
    name: &str,
) -> Result<Vec<usize>, Errors> {
    let all_read = !module.functions().any(|f| matches!(f.body, Body::Skipped(_)));
    let mut items = if all_read {
        crate::reach::reachable(module, name)
    } else {
        read_reachable(source, module.to_mut(), name)?
    };
    // Other kernels are named only to be launched.
    items.retain(|item| match &module.items[*item] {
        Item::Function(function) => {
            function.is_defined() && (!function.is_entry || function.name.text == name)
        }
        _ => false,
    });
    Ok(items)
}

/// Signatures by which a function calls what a register holds.
fn indirect_signatures(module: &Module<'_>, function: &Function<'_>) -> HashSet<Signature> {
    let mut called = HashSet::new();
    if let Body::Parsed(code) = &function.body {
        statements(&code.block, &mut |statement| match statement {
            Statement::Prototype(Prototype { returns, params, .. }) => {
                called.insert(signature_of(returns, params));
            }
            Statement::CallTargets(list) => {
                let functions = list.names.iter().filter_map(|name| module.function(name.text));
                called.extend(functions.map(signature));
            }
            _ => {}
        });
    }
    called
}

/// Names of the functions whose address something takes. All bodies are read for it.
fn taken<'a>(source: &'a str, module: &mut Cow<'_, Module<'a>>) -> Result<Vec<&'a str>, Errors> {
    if module.functions().any(|f| matches!(f.body, Body::Skipped(_))) {
        for item in &mut module.to_mut().items {
            if let Item::Function(function) = item {
                Module::parse_body(source, function)?;
            }
        }
    }
    let functions: HashSet<&str> = module.functions().map(|f| f.name.text).collect();
    let mut names = Vec::new();
    for variable in module.variables() {
        if let Some(initialiser) = &variable.initialiser {
            initialiser_names(initialiser, &mut |name| names.push(name.text));
        }
    }
    for function in module.functions() {
        let Body::Parsed(code) = &function.body else { continue };
        statements(&code.block, &mut |statement| match statement {
            Statement::Instruction(inst) if inst.opcode.text != "call" => {
                for operand in &inst.operands {
                    match &operand.kind {
                        OperandKind::Name(name) | OperandKind::SymbolOffset(name, _) => names.push(name.text),
                        _ => {}
                    }
                }
            }
            Statement::CallTargets(list) => names.extend(list.names.iter().map(|name| name.text)),
            Statement::Variable(Variable { initialiser: Some(initialiser), .. }) => {
                initialiser_names(initialiser, &mut |name| names.push(name.text));
            }
            _ => {}
        });
    }
    names.retain(|name| functions.contains(name));
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    Ok(names)
}
