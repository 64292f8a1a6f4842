//! Static shared memory: where its variables are, and how much of it each kernel has.

use crate::ast::{Linkage, Module, StateSpace, Variable};
use crate::names::{NameMap, NameSet};
use crate::resolve::{OperandKind, ResolvedFunction, Symbol};
use crate::visit::addresses;
use simt_ir::RESERVED_SHARED;

use super::links::visit;

/// A variable, with its number if it is declared as `name<count>`.
pub(super) type Instance<'m, 'a> = (&'m Variable<'a>, Option<u32>);

/// A declaration, told from others by its place in memory, and the number of the one meant if it declares several.
pub(super) type Key = (usize, Option<u32>);

pub(super) fn key(variable: &Variable<'_>, index: Option<u32>) -> Key {
    (std::ptr::from_ref(variable).addr(), index)
}

/// Where a program's shared variables are.
pub(super) struct Layout {
    /// Places in the shared window.
    pub offsets: NameMap<Key, u32>,
    /// Bytes of all but what a launch sizes.
    pub bytes: u32,
    /// Alignment of all.
    pub align: u32,
}

impl Layout {
    /// Behind what is reserved, variables of known size first, in order of first use; what a launch sizes begins after all of them. Where a module has
    /// that, the others end where it may begin, as on the hardware, for kernels that do not use it as well. `None` if they do not fit 32 bits.
    pub fn new(used: &[Instance<'_, '_>], module: &Module<'_>) -> Option<Layout> {
        let mut offsets = NameMap::default();
        let mut most_aligned = 16;
        let mut end = u64::from(RESERVED_SHARED);
        for (variable, index) in used.iter().filter(|(v, _)| !is_dynamic(v)) {
            let align = variable.alignment().max(1);
            most_aligned = most_aligned.max(u32::try_from(align).ok()?);
            if offsets.contains_key(&key(variable, *index)) {
                continue;
            }
            end = end.checked_next_multiple_of(align)?;
            offsets.insert(key(variable, *index), u32::try_from(end).ok()?);
            end = end.checked_add(variable.size()?)?;
        }
        for (variable, _) in used.iter().filter(|(v, _)| is_dynamic(v)) {
            most_aligned = most_aligned.max(u32::try_from(variable.alignment()).ok()?);
        }
        let declared = module.variables().filter(|v| v.space == StateSpace::Shared);
        let all_dynamic = declared.chain(used.iter().map(|(v, _)| *v)).filter(|v| is_dynamic(v));
        if let Some(align) = all_dynamic.map(Variable::alignment).max() {
            end = end.checked_next_multiple_of(align.max(16))?;
        }
        let end = u32::try_from(end).ok()?;
        let dynamic_start = end.checked_next_multiple_of(most_aligned)?;
        for (variable, index) in used.iter().filter(|(v, _)| is_dynamic(v)) {
            offsets.insert(key(variable, *index), dynamic_start);
        }
        Some(Layout { offsets, bytes: end - RESERVED_SHARED, align: most_aligned })
    }
}

/// Whether a launch says how large a variable is.
fn is_dynamic(variable: &Variable<'_>) -> bool {
    variable.linkage == Linkage::Extern || variable.size().is_none()
}

/// Whether a variable begins with addresses in it.
fn holds_addresses(variable: &Variable<'_>) -> bool {
    let mut found = false;
    variable.initialiser.iter().for_each(|initialiser| addresses(initialiser, &mut |_| found = true));
    found
}

/// Which functions and shared variables the functions of a module name.
#[derive(Debug, Default)]
pub struct SharedUses<'m, 'a> {
    functions: NameMap<&'a str, Uses<'m, 'a>>,
}

#[derive(Debug, Default)]
struct Uses<'m, 'a> {
    is_entry: bool,
    shared: Vec<Instance<'m, 'a>>,
    functions: Vec<&'a str>,
    /// It could come to functions that it does not name.
    goes_further: bool,
}

impl<'m, 'a> SharedUses<'m, 'a> {
    /// Notes what a function names.
    pub(super) fn note(&mut self, func: &ResolvedFunction<'m, 'a>) {
        let declared = func.variables.iter().filter(|local| local.declaration.space == StateSpace::Shared);
        let mut uses = Uses {
            is_entry: func.function.is_entry,
            shared: declared.map(|local| (local.declaration, local.index)).collect(),
            functions: Vec::new(),
            goes_further: !func.prototypes.is_empty()
                || !func.call_targets.is_empty()
                || !func.statics.is_empty(),
        };
        for inst in &func.instructions {
            let is_call = inst.syntax.opcode.text == "call";
            for operand in &inst.operands {
                visit(operand, &mut |kind| {
                    let (OperandKind::Symbol(symbol, _) | OperandKind::Element(symbol, _)) = kind else {
                        return;
                    };
                    match *symbol {
                        Symbol::Function(function) => uses.functions.push(function.name.text),
                        Symbol::Global(variable, index) if variable.space == StateSpace::Shared => {
                            if !is_call {
                                uses.shared.push((variable, index));
                            }
                        }
                        // It may hold the address of a function.
                        Symbol::Global(variable, _) => uses.goes_further |= holds_addresses(variable),
                        Symbol::Local(_) => {}
                    }
                });
            }
        }
        uses.functions.sort_unstable();
        uses.functions.dedup();
        self.functions.insert(func.function.name.text, uses);
    }

    /// Bytes of static shared memory of a kernel, where that is plain from the names.
    pub(super) fn bytes(&self, module: &Module<'_>, kernel: &str) -> Option<u32> {
        let mut used: Vec<Instance<'m, 'a>> = Vec::new();
        let (mut pending, mut seen) = (vec![kernel], NameSet::from_iter([kernel]));
        while let Some(name) = pending.pop() {
            // One that is only declared uses nothing.
            let Some(uses) = self.functions.get(name) else { continue };
            if uses.goes_further {
                return None;
            }
            // Another kernel is named only to be launched.
            if !uses.is_entry || name == kernel {
                used.extend(&uses.shared);
            }
            pending.extend(uses.functions.iter().filter(|callee| seen.insert(**callee)));
        }
        // Elsewhere the order of first use matters too.
        let mut sized: Vec<&Variable<'_>> = used.iter().map(|(v, _)| *v).filter(|v| !is_dynamic(v)).collect();
        sized.dedup_by_key(|variable| std::ptr::from_ref(*variable));
        let align = sized.iter().map(|variable| variable.alignment().max(1)).max().unwrap_or(1);
        let fills = |variable: &&Variable<'_>| variable.size().is_some_and(|size| size.is_multiple_of(align));
        let is_plain = sized.len() <= 1 || sized.iter().all(fills);
        is_plain.then(|| Layout::new(&used, module)).flatten().map(|layout| layout.bytes)
    }
}
