//! What one program is made of: which functions, where its shared variables are, which module variables it names.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

use simt_ir::{Approximations, FuncRef, GlobalRef, RESERVED_SHARED, SigRef, Signature, SourceLoc};

use super::variables::{ModuleVariable, variables};
use crate::LineIndex;
use crate::ast::{Body, Instruction, Item, Linkage, Module, StateSpace, Variable, Version};
use crate::names::NameMap;
use crate::resolve::{Operand, OperandKind, ResolvedFunction, Symbol};

/// Functions, variables and signatures by the numbers that a program gives them.
pub(crate) struct Links<'r> {
    pub version: Version,
    pub sm: u32,
    pub samplers_apart: bool,
    /// Shared addresses say which block of the cluster they are of: the program has instructions that can tell.
    pub names_blocks: bool,
    pub approximations: Approximations,
    functions: NameMap<&'r str, FuncRef>,
    tokens: NameMap<&'r str, u64>,
    taken: HashSet<&'r str>,
    globals: Vec<String>,
    global_index: NameMap<Key, GlobalRef>,
    constants: Vec<(GlobalRef, u64)>,
    shared: NameMap<Key, u32>,
    shared_bytes: u32,
    shared_align: u32,
    signatures: RefCell<Vec<Signature>>,
    lines: LineIndex,
}

/// A declaration, told from others by its place in memory, and the number of the one meant if it declares several.
type Key = (usize, Option<u32>);

fn key(variable: &Variable<'_>, index: Option<u32>) -> Key {
    (std::ptr::from_ref(variable).addr(), index)
}

/// A module variable's name; one of `name<count>` has its number. One declared in a block, which others may be named like, has its place in
/// the text too, behind a character that no name has.
pub(crate) fn variable_name(variable: &Variable<'_>, index: Option<u32>) -> String {
    let mut name = variable.name.text.to_owned();
    if let Some(index) = index {
        name += &index.to_string();
    }
    if variable.linkage == Linkage::Block {
        name += &format!("@{}", variable.name.span.start);
    }
    name
}

/// What makes [`Op::FuncToken`](simt_ir::Op::FuncToken) of each function of a module: its place among the module's functions. Never
/// zero, and far from any address of memory.
pub(crate) fn tokens<'r>(module: &Module<'r>) -> NameMap<&'r str, u64> {
    let mut tokens = NameMap::default();
    for function in module.functions() {
        let next = (tokens.len() as u64 + 1) * 16;
        tokens.entry(function.name.text).or_insert(next);
    }
    tokens
}

/// Visits an operand and those inside it.
pub(crate) fn visit<'r>(operand: &Operand<'r, 'r>, see: &mut impl FnMut(&OperandKind<'r, 'r>)) {
    see(&operand.kind);
    match &operand.kind {
        OperandKind::Not(inner) | OperandKind::Negate(inner) | OperandKind::Element(_, inner) => {
            visit(inner, see)
        }
        OperandKind::Vector(list) | OperandKind::List(list) => list.iter().for_each(|o| visit(o, see)),
        OperandKind::Pair(a, b) => {
            visit(a, see);
            visit(b, see);
        }
        OperandKind::Address(address) => {
            visit(&address.base, see);
            address.rest.iter().for_each(|o| visit(o, see));
        }
        _ => {}
    }
}

/// Symbols that a function names, but for those it calls.
fn symbols<'r>(func: &ResolvedFunction<'r, 'r>, mut see: impl FnMut(Symbol<'r, 'r>)) {
    for inst in func.instructions.iter().filter(|inst| inst.syntax.opcode.text != "call") {
        for operand in &inst.operands {
            visit(operand, &mut |kind| match kind {
                OperandKind::Symbol(symbol, _) | OperandKind::Element(symbol, _) => see(*symbol),
                _ => {}
            });
        }
    }
}

/// Whether a function tells addresses apart by their spaces.
fn asks_for_spaces(func: &ResolvedFunction<'_, '_>) -> bool {
    func.instructions.iter().any(|inst| inst.syntax.opcode.text == "isspacep")
}

/// The module with the bodies read that may declare constants: addresses come from functions of other kernels too.
fn with_constants<'m, 'r>(source: &'r str, module: &'m Module<'r>) -> Cow<'m, Module<'r>> {
    let declares = |body: &Body<'_>| {
        let Body::Skipped(span) = body else { return false };
        let text = span.text(source);
        // As a word of its own rather than a part of an instruction.
        text.match_indices(".const").any(|(at, _)| text[..at].ends_with(|c: char| !c.is_alphanumeric()))
    };
    let mut module = Cow::Borrowed(module);
    if module.functions().any(|function| declares(&function.body)) {
        for item in &mut module.to_mut().items {
            if let Item::Function(function) = item
                && declares(&function.body)
            {
                // What cannot be read is reported where it is run.
                let _ = Module::parse_body(source, function);
            }
        }
    }
    module
}

/// Whether a function has instructions for clusters, so that blocks may have each other's addresses.
fn names_blocks(func: &ResolvedFunction<'_, '_>) -> bool {
    let of_cluster = |inst: &Instruction<'_>| {
        let has = |word| inst.modifiers.iter().any(|modifier| modifier.text == word);
        match inst.opcode.text {
            "mapa" | "getctarank" => true,
            "barrier" => has("cluster"),
            _ => has("shared::cluster"),
        }
    };
    func.instructions.iter().any(|inst| of_cluster(inst.syntax))
}

impl<'r> Links<'r> {
    /// Numbers what `functions`, the kernel first, use. `None` if shared memory does not fit 32 bits.
    pub fn new(
        source: &'r str,
        module: &Module<'r>,
        sm: u32,
        functions: &[ResolvedFunction<'r, 'r>],
        taken: &HashSet<&'r str>,
    ) -> Option<Links<'r>> {
        let mut links = Links {
            version: module.version,
            sm,
            samplers_apart: module.samplers_apart(),
            names_blocks: functions.iter().any(names_blocks),
            approximations: Approximations::default(),
            functions: NameMap::default(),
            tokens: tokens(module),
            taken: taken.clone(),
            globals: Vec::new(),
            global_index: NameMap::default(),
            constants: Vec::new(),
            shared: NameMap::default(),
            shared_bytes: 0,
            shared_align: 16,
            signatures: RefCell::default(),
            lines: LineIndex::new(source),
        };
        let mut shared: Vec<(&Variable<'_>, Option<u32>)> = Vec::new();
        for (func, number) in functions.iter().zip(0..) {
            links.functions.insert(func.function.name.text, FuncRef(number));
            for local in &func.variables {
                if local.declaration.space == StateSpace::Shared {
                    shared.push((local.declaration, local.index));
                }
            }
            symbols(func, |symbol| match symbol {
                Symbol::Global(variable, index) => match variable.space {
                    StateSpace::Shared => shared.push((variable, index)),
                    StateSpace::Global | StateSpace::Const => links.name_global(variable, index),
                    _ => {}
                },
                Symbol::Function(function) => {
                    links.taken.insert(function.name.text);
                }
                Symbol::Local(_) => {}
            });
        }
        if functions.iter().any(asks_for_spaces) {
            // Variables that are wrong are reported where they get their memory.
            let module = with_constants(source, module);
            links.name_constants(&variables(source, &module).unwrap_or_default());
        }
        links.lay_out_shared(&shared, module)?;
        Some(links)
    }

    fn name_constants(&mut self, variables: &[ModuleVariable]) {
        for variable in variables.iter().filter(|v| v.space == StateSpace::Const) {
            let known = self.globals.iter().position(|name| *name == variable.name);
            let index = known.unwrap_or_else(|| {
                self.globals.push(variable.name.clone());
                self.globals.len() - 1
            });
            self.constants.push((GlobalRef(index as u32), variable.size));
        }
    }

    fn name_global(&mut self, variable: &Variable<'_>, index: Option<u32>) {
        let next = GlobalRef(self.globals.len() as u32);
        if *self.global_index.entry(key(variable, index)).or_insert(next) == next {
            self.globals.push(variable_name(variable, index));
        }
    }

    /// Behind what is reserved, variables of known size first, in order of first use; what a launch sizes begins after all of them. Where a module has
    /// that, the others end where it may begin, as on the hardware, for kernels that do not use it as well.
    fn lay_out_shared(&mut self, used: &[(&Variable<'_>, Option<u32>)], module: &Module<'_>) -> Option<()> {
        let mut end = u64::from(RESERVED_SHARED);
        let dynamic = |v: &Variable<'_>| v.linkage == Linkage::Extern || v.size().is_none();
        for (variable, index) in used.iter().filter(|(v, _)| !dynamic(v)) {
            let align = variable.alignment().max(1);
            self.shared_align = self.shared_align.max(u32::try_from(align).ok()?);
            if self.shared.contains_key(&key(variable, *index)) {
                continue;
            }
            end = end.checked_next_multiple_of(align)?;
            self.shared.insert(key(variable, *index), u32::try_from(end).ok()?);
            end = end.checked_add(variable.size()?)?;
        }
        for (variable, _) in used.iter().filter(|(v, _)| dynamic(v)) {
            self.shared_align = self.shared_align.max(u32::try_from(variable.alignment()).ok()?);
        }
        let declared = module.variables().filter(|v| v.space == StateSpace::Shared);
        let all_dynamic = declared.chain(used.iter().map(|(v, _)| *v)).filter(|v| dynamic(v));
        if let Some(align) = all_dynamic.map(Variable::alignment).max() {
            end = end.checked_next_multiple_of(align.max(16))?;
        }
        let end = u32::try_from(end).ok()?;
        self.shared_bytes = end - RESERVED_SHARED;
        let dynamic_start = end.checked_next_multiple_of(self.shared_align)?;
        for (variable, index) in used.iter().filter(|(v, _)| dynamic(v)) {
            self.shared.insert(key(variable, *index), dynamic_start);
        }
        Some(())
    }

    /// The function's number, if it is defined and part of the program.
    pub fn function(&self, name: &str) -> Option<FuncRef> {
        self.functions.get(name).copied()
    }

    /// The function's token.
    pub fn token(&self, name: &str) -> u64 {
        self.tokens.get(name).copied().unwrap_or(0)
    }

    /// The function's token, or 0 if the program takes none.
    pub fn token_if_taken(&self, name: &str) -> u64 {
        if self.taken.contains(name) { self.token(name) } else { 0 }
    }

    /// The variable's number.
    pub fn global(&self, variable: &Variable<'_>, index: Option<u32>) -> GlobalRef {
        self.global_index[&key(variable, index)]
    }

    /// The module's constant variables with their sizes, if the program asks which space an address is in.
    pub fn constants(&self) -> &[(GlobalRef, u64)] {
        &self.constants
    }

    /// Where a shared variable is in the shared window.
    pub fn shared_offset(&self, variable: &Variable<'_>, index: Option<u32>) -> Option<u32> {
        self.shared.get(&key(variable, index)).copied()
    }

    /// The number of a signature.
    pub fn signature(&self, signature: Signature) -> SigRef {
        let mut all = self.signatures.borrow_mut();
        let known = all.iter().position(|s| *s == signature);
        let index = known.unwrap_or_else(|| {
            all.push(signature);
            all.len() - 1
        });
        SigRef(index as u32)
    }

    /// Where an instruction stands.
    pub fn loc(&self, inst: &Instruction<'_>) -> SourceLoc {
        SourceLoc { ptx_line: self.lines.position(inst.span.start).line }
    }

    /// Bytes and alignment of static shared memory.
    pub fn shared_size(&self) -> (u32, u32) {
        (self.shared_bytes, self.shared_align)
    }

    /// Names of the variables, and the signatures of indirect calls.
    pub fn into_tables(self) -> (Vec<String>, Vec<Signature>) {
        (self.globals, self.signatures.into_inner())
    }
}
