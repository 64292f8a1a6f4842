//! From a kernel's name to a [`simt_ir::Program`]: the kernel, the device functions it reaches, and where its variables are.

pub(crate) mod body;
mod call;
mod contract;
pub(crate) mod expander;
mod halves;
mod links;
pub(crate) mod place;
mod reach;
mod references;
mod shared;
mod variables;

use std::borrow::Cow;

use simt_ir::{Approximations, Program};

pub(crate) use call::syscall;
pub use references::{ObjectKind, ObjectVariable, object_variables};
pub use shared::SharedUses;
pub use variables::{
    Entry, EntryParam, ModuleVariable, ParamClass, Relocation, entries, entries_that_use, variables,
};

use crate::ast::{self, Body, Function, Item, Module, StateSpace, Statement};
use crate::isa;
use crate::resolve::{ResolvedFunction, Symbols};
use crate::target::Architecture;
use crate::{Errors, LoadError, LoadErrorKind};
use links::Links;

/// Lowers the kernel `entry` of `module`, which was read from `source`, with all device functions it reaches. Bodies that were
/// skipped are read where they are needed.
pub fn program(source: &str, module: &Module<'_>, entry: &str) -> Result<Program, Errors> {
    program_with(source, module, entry, Approximations::default())
}

/// Likewise, with a choice of what `.approx` instructions become.
pub fn program_with<'a>(
    source: &'a str,
    module: &Module<'a>,
    entry: &str,
    approximations: Approximations,
) -> Result<Program, Errors> {
    lower(source, Cow::Borrowed(module), entry, approximations)
}

/// Likewise, of a module that is used up: its skipped bodies are read in place.
pub fn program_of<'a>(
    source: &'a str,
    module: Module<'a>,
    entry: &str,
    approximations: Approximations,
) -> Result<Program, Errors> {
    lower(source, Cow::Owned(module), entry, approximations)
}

fn lower<'a>(
    source: &'a str,
    module: Cow<'_, Module<'a>>,
    entry: &str,
    approximations: Approximations,
) -> Result<Program, Errors> {
    let unknown = || {
        let message = format!("there is no kernel '{entry}'");
        LoadError::without_place(LoadErrorKind::Name, entry, message)
    };
    if !module.entries().any(|f| f.name.text == entry) {
        return Err(unknown().into());
    }
    let reached = reach::functions(source, module, entry)?;
    let kernel = reached.functions().next().ok_or_else(unknown)?;
    let (_, param_bytes) = place::kernel_params(&kernel.params).ok_or_else(|| {
        LoadError::at(LoadErrorKind::TooLarge, source, kernel.span, "the parameters are too large")
    })?;
    let symbols = Symbols::new(source, &reached.module)?;
    let resolved = reached
        .functions()
        .map(|function| crate::resolve::function(&symbols, function))
        .collect::<Result<Vec<_>, Errors>>()?;
    let sm = architecture(&reached.module);
    let mut links = Links::new(source, &reached.module, sm, &resolved, &reached.taken).ok_or_else(|| {
        LoadError::at(LoadErrorKind::TooLarge, source, kernel.span, "shared memory is too large")
    })?;
    links.approximations = approximations;
    let mut lowered = Vec::with_capacity(resolved.len());
    // To be debugged it is left as it stands, as NVIDIA's assembler leaves it.
    let is_debugged = reached.module.target.options.iter().any(|option| option.text == "debug");
    for func in &resolved {
        let mut function = body::lower(&links, func)
            .map_err(|problem| LoadError::at(problem.kind, source, problem.span, problem.message))?;
        if !is_debugged {
            contract::contract(&mut function);
        }
        halves::as_hardware_does(&mut function);
        lowered.push(function);
    }
    let directives = &kernel.directives;
    let (shared_bytes, shared_align) = links.shared_size();
    let (globals, signatures) = links.into_tables();
    Ok(Program {
        functions: lowered,
        globals,
        signatures,
        param_bytes,
        shared_bytes,
        shared_align,
        required_block: directives.reqntid.unwrap_or_default(),
        max_threads: directives.maxntid.map_or(0, |n| n.iter().fold(1, |a: u32, b| a.saturating_mul(*b))),
    })
}

/// Bytes of shared memory that a block can have at all.
const MAX_SHARED: u64 = 227 << 10;

/// The shared variables that a kernel uses, its own and the module's, must fit a block. `all_shared` is the size of all of the module's.
fn check_shared(
    source: &str,
    module: &Module<'_>,
    all_shared: u64,
    kernel: &ResolvedFunction<'_, '_>,
) -> Result<(), LoadError> {
    if !kernel.function.is_entry {
        return Ok(());
    }
    let shared = kernel
        .variables
        .iter()
        .map(|local| local.declaration)
        .filter(|variable| variable.space == StateSpace::Shared);
    let own = shared.fold(0_u64, |bytes, variable| bytes.saturating_add(variable.size().unwrap_or(0)));
    // Which of the module's a kernel uses is worth finding out only where all together are too many.
    if own.saturating_add(all_shared) <= MAX_SHARED {
        return Ok(());
    }
    let name = kernel.function.name.text;
    let used = crate::reach::items(module, name).into_iter();
    let bytes = used.filter_map(|item| shared_size(&module.items[item])).fold(own, u64::saturating_add);
    if bytes <= MAX_SHARED {
        return Ok(());
    }
    let message = format!("the kernel has {bytes} bytes of shared variables, and {MAX_SHARED} is the most");
    Err(LoadError::at(LoadErrorKind::TooLarge, source, kernel.function.name.span, message))
}

/// Bytes of a module's shared variable.
fn shared_size(item: &Item<'_>) -> Option<u64> {
    match item {
        Item::Variable(variable) if variable.space == StateSpace::Shared => variable.size(),
        _ => None,
    }
}

/// Checks every instruction of a module against the instruction table: what a load must refuse. Bodies that were not read
/// are not checked.
pub fn check(source: &str, module: &Module<'_>) -> Result<(), Errors> {
    check_uses(source, module).map(drop)
}

/// Likewise; tells what the functions use of shared memory.
pub fn check_uses<'m, 'a>(source: &'a str, module: &'m Module<'a>) -> Result<SharedUses<'m, 'a>, Errors> {
    let mut uses = SharedUses::default();
    let symbols = Symbols::new(source, module)?;
    let sm = architecture(module);
    let all_shared = module.items.iter().filter_map(shared_size).fold(0, u64::saturating_add);
    let mut errors = Vec::new();
    for function in module.functions() {
        if errors.len() >= Errors::LIMIT {
            break;
        }
        match crate::resolve::function(&symbols, function) {
            Ok(resolved) => {
                let context = isa::Context {
                    version: module.version,
                    sm,
                    samplers_apart: module.samplers_apart(),
                    registers: &resolved.registers,
                    variables: &resolved.variables,
                    prototypes: &resolved.prototypes,
                    call_targets: &resolved.call_targets,
                };
                let problems =
                    resolved.instructions.iter().filter_map(|inst| isa::find(inst, &context).err());
                errors.extend(
                    problems.map(|p| LoadError::at(p.kind, source, p.span, p.message)).take(Errors::LIMIT),
                );
                errors.extend(check_shared(source, module, all_shared, &resolved).err());
                uses.note(&resolved);
            }
            Err(found) => {
                // Names come before instructions, but who looks for a mistake wants to hear of both.
                errors.extend_from_slice(found.list());
                let unknown = instructions(function).filter_map(isa::unknown);
                errors.extend(
                    unknown.map(|p| LoadError::at(p.kind, source, p.span, p.message)).take(Errors::LIMIT),
                );
            }
        }
    }
    Errors::from_list(errors).map(|()| uses)
}

/// All instructions of a body that was read.
fn instructions<'m, 'a>(function: &'m Function<'a>) -> impl Iterator<Item = &'m ast::Instruction<'a>> {
    let mut blocks = match &function.body {
        Body::Parsed(code) => vec![&code.block],
        Body::Declared | Body::Skipped(_) => Vec::new(),
    };
    let mut found = Vec::new();
    while let Some(block) = blocks.pop() {
        for statement in &block.statements {
            match statement {
                Statement::Instruction(instruction) => found.push(instruction),
                Statement::Block(inner) => blocks.push(inner),
                _ => {}
            }
        }
    }
    found.into_iter()
}

/// The number of `.target sm_90a`.
pub(crate) fn architecture(module: &Module<'_>) -> u32 {
    Architecture::parse(module.target.architecture.text).map_or(0, |architecture| architecture.sm)
}
