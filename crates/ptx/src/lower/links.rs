//! What one program is made of: which functions, where its shared variables are, which module variables it names.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;

use simt_ir::{Approximations, FuncRef, GlobalRef, SigRef, Signature, SourceLoc};

use super::shared::{Instance, Key, Layout, key};
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
    shared: Layout,
    signatures: RefCell<Vec<Signature>>,
    lines: LineIndex,
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
pub(crate) fn visit<'m, 'a>(operand: &Operand<'m, 'a>, see: &mut impl FnMut(&OperandKind<'m, 'a>)) {
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
            shared: Layout { offsets: NameMap::default(), bytes: 0, align: 16 },
            signatures: RefCell::default(),
            lines: LineIndex::new(source),
        };
        let mut shared: Vec<Instance<'_, '_>> = Vec::new();
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
        links.shared = Layout::new(&shared, module)?;
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
        self.shared.offsets.get(&key(variable, index)).copied()
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
        (self.shared.bytes, self.shared.align)
    }

    /// Names of the variables, and the signatures of indirect calls.
    pub fn into_tables(self) -> (Vec<String>, Vec<Signature>) {
        (self.globals, self.signatures.into_inner())
    }
}
