//! The instruction table: for every instruction its syntax, its types and its meaning in the IR, in one entry.
//!
//! A family is a file with a list of [`Form`]s. An entry reads like a manual's synopsis (see [`syntax`]) followed by the
//! expansion, which gets its operands by the names in the synopsis:
//!
//! ```text
//! form("brev.T{b32,b64} d=T, a:T", |x| { let a = x.src("a"); … x.set("d", v) })
//! ```
//!
//! Several entries may share an opcode; the first whose modifiers and operands fit is meant.

mod atomic;
mod barrier;
mod bits;
mod bulk;
mod carry;
mod cluster;
mod compare;
mod control;
mod convert;
mod copy;
mod describe;
mod examples;
mod float;
mod fp8;
mod hints;
mod integer;
mod logic;
mod matrix;
mod mbarrier;
mod memory;
mod mov;
mod multimem;
mod parts;
mod rules;
pub(crate) mod special;
mod stack;
pub(crate) mod syntax;
mod table;
mod texture;
mod types;
mod unsupported;
mod video;
mod warp;
mod wgmma;
mod wmma;

pub use describe::{Later, Place, Row, Use, refused, rows, uses};
pub use examples::{DEVICE, Example, example, examples};
pub use types::{Kind, Ty};

use crate::ast;
use crate::error::LoadErrorKind;
use crate::lower::expander::Expander;
use crate::resolve::{
    Address, Instruction, LocalVariable, Operand, OperandKind, Register, RegisterId, Symbol,
};
use crate::span::Span;
use syntax::{Chosen, Mismatch, OperandSpec, Shape};
pub(crate) use table::Entry;
use table::TABLE;

/// How an expansion treats a guard `@p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarding {
    /// It only computes: it is executed by all, and the guard chooses between new and old results.
    Select,
    /// It has effects: threads whose guard is false go around it.
    Branch,
    /// It looks at the guard itself.
    Own,
}

/// One entry of the table.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    text: &'static str,
    version: (u32, u32),
    sm: u32,
    later: &'static [(&'static str, u32, u32, u32)],
    until: Option<(u32, u32, u32)>,
    pub guarding: Guarding,
    legal: fn(&Chosen) -> Result<(), &'static str>,
    operands: fn(&[Operand<'_, '_>]) -> Result<(), &'static str>,
    registers: fn(&Chosen, &str) -> usize,
    pub expand: fn(&mut Expander<'_, '_>),
}

const fn form(text: &'static str, expand: fn(&mut Expander<'_, '_>)) -> Form {
    Form {
        text,
        version: (1, 0),
        sm: 10,
        later: &[],
        until: None,
        guarding: Guarding::Select,
        legal: |_| Ok(()),
        operands: |_| Ok(()),
        registers: |_, _| 1,
        expand,
    }
}

impl Form {
    /// First version of PTX, and first architecture, that have it.
    const fn since(mut self, major: u32, minor: u32, sm: u32) -> Form {
        self.version = (major, minor);
        self.sm = sm;
        self
    }

    /// Modifiers that came after the rest: each with the first version of PTX, and architecture, that have it.
    const fn later(mut self, words: &'static [(&'static str, u32, u32, u32)]) -> Form {
        self.later = words;
        self
    }

    /// The last version of PTX that has it for architectures from `sm` on.
    const fn until(mut self, major: u32, minor: u32, sm: u32) -> Form {
        self.until = Some((major, minor, sm));
        self
    }

    fn first(&self, chosen: &Chosen) -> (ast::Version, u32) {
        let words = self.later.iter().filter(|(word, ..)| chosen.has(word));
        words.map(|(_, major, minor, sm)| ((*major, *minor), *sm)).fold(
            (ast::Version { major: self.version.0, minor: self.version.1 }, self.sm),
            |(version, least), ((major, minor), sm)| {
                (version.max(ast::Version { major, minor }), least.max(sm))
            },
        )
    }

    /// It has effects beyond its results.
    const fn effect(mut self) -> Form {
        self.guarding = Guarding::Branch;
        self
    }

    /// It looks at its guard itself.
    const fn guards_itself(mut self) -> Form {
        self.guarding = Guarding::Own;
        self
    }

    /// Combinations of modifiers that the synopsis allows and PTX does not.
    const fn only_if(mut self, legal: fn(&Chosen) -> Result<(), &'static str>) -> Form {
        self.legal = legal;
        self
    }

    /// How many registers the named operand, a fragment of a matrix, has.
    const fn registers(mut self, count: fn(&Chosen, &str) -> usize) -> Form {
        self.registers = count;
        self
    }

    /// Further rules about operands.
    const fn only_with(mut self, operands: fn(&[Operand<'_, '_>]) -> Result<(), &'static str>) -> Form {
        self.operands = operands;
        self
    }
}

/// The families of instructions, by the names that people know them by.
const FAMILIES: &[(&str, &[Form])] = &[
    ("Integer arithmetic", integer::FORMS),
    ("Extended-precision arithmetic", carry::FORMS),
    ("Bits", bits::FORMS),
    ("Logic and shifts", logic::FORMS),
    ("Video instructions", video::FORMS),
    ("Floating-point arithmetic", float::FORMS),
    ("Comparison and selection", compare::FORMS),
    ("Conversion", convert::FORMS),
    ("Conversion of 8-bit floats", fp8::FORMS),
    ("Moves", mov::FORMS),
    ("Loads, stores and addresses", memory::FORMS),
    ("Stack", stack::FORMS),
    ("Advice", hints::FORMS),
    ("Atomics, reductions and fences", atomic::FORMS),
    ("All copies of a multicast object", multimem::FORMS),
    ("Asynchronous copies", copy::FORMS),
    ("Bulk copies and tensor maps", bulk::FORMS),
    ("Barriers in memory", mbarrier::FORMS),
    ("Barriers of blocks and warps", barrier::FORMS),
    ("Clusters", cluster::FORMS),
    ("Exchange in a warp", warp::FORMS),
    ("Control flow", control::FORMS),
    ("Textures and surfaces", texture::FORMS),
    ("Matrices", matrix::FORMS),
    ("Matrices in memory", wmma::FORMS),
    ("Products of warpgroups", wgmma::FORMS),
];

/// Every synopsis of the table, in the notation of its entries.
pub fn synopses() -> Vec<&'static str> {
    FAMILIES.iter().flat_map(|(_, forms)| forms.iter()).map(|form| form.text).collect()
}

/// The words that a named list of a synopsis, `$name`, stands for.
pub fn words_of_set(name: &str) -> Option<&'static str> {
    syntax::words_of_set(name)
}

/// What is wrong with an instruction.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub kind: LoadErrorKind,
    pub span: Span,
    pub message: String,
}

impl Problem {
    pub fn new(kind: LoadErrorKind, span: Span, message: impl Into<String>) -> Problem {
        Problem { kind, span, message: message.into() }
    }

    /// Operands or types do not fit.
    pub fn mismatch(span: Span, message: impl Into<String>) -> Problem {
        Problem::new(LoadErrorKind::Type, span, message)
    }

    /// Something PTX has and this compiler has not.
    pub fn unsupported(span: Span, what: &str) -> Problem {
        Problem::new(LoadErrorKind::Unsupported, span, format!("instruction '{what}' is not supported yet"))
    }
}

/// The entry that an instruction is, and its choices.
pub(crate) struct Found {
    pub entry: &'static Entry,
    pub chosen: Chosen,
}

/// What an instruction is checked against besides the table.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c> {
    /// `.version` of the module.
    pub version: ast::Version,
    /// Number of its `.target`.
    pub sm: u32,
    /// Samplers stand apart from textures.
    pub samplers_apart: bool,
    /// Registers of the function.
    pub registers: &'c [Register<'c>],
    /// Its variables and parameters.
    pub variables: &'c [LocalVariable<'c, 'c>],
}

impl Context<'_> {
    fn register(&self, id: RegisterId) -> &Register<'_> {
        &self.registers[id.0 as usize]
    }
}

/// What is wrong with an instruction that PTX does not have.
pub(crate) fn unknown(syntax: &ast::Instruction<'_>) -> Option<Problem> {
    let opcode = syntax.opcode.text;
    let known = TABLE.has(opcode) || unsupported::is_opcode(opcode);
    let message = || format!("unknown instruction '{opcode}'");
    (!known).then(|| Problem::new(LoadErrorKind::Syntax, syntax.opcode.span, message()))
}

/// Finds the entry of an instruction and checks guard, modifiers, operands and types.
pub(crate) fn find(inst: &Instruction<'_, '_>, context: &Context<'_>) -> Result<Found, Problem> {
    let syntax = inst.syntax;
    let opcode = syntax.opcode.text;
    if let Some(guard) = inst.guard
        && (context.register(guard.register).ty != ast::Type::Pred
            || context.register(guard.register).vector.is_some())
    {
        return Err(Problem::mismatch(syntax.span, "a guard is a predicate register"));
    }
    let Some(entries) = TABLE.entries(opcode) else {
        return Err(unknown(syntax).unwrap_or_else(|| Problem::unsupported(syntax.span, &spelling(syntax))));
    };
    let mut mismatch = Mismatch { at: 0, missing: false };
    let mut refused: Option<Problem> = None;
    for in_order in [true, false] {
        for entry in entries {
            let modifiers = || syntax.modifiers.iter().map(|m| m.text);
            let choice = match in_order {
                true => entry.syntax.choose(modifiers()),
                // Any order will do: real programs rely on `atom.add.release.gpu.u32`.
                false => entry.syntax.choose_in_any_order(modifiers()).ok_or(mismatch),
            };
            let chosen = match choice {
                Ok(chosen) => chosen,
                Err(error) => {
                    if error.at >= mismatch.at {
                        mismatch = error;
                    }
                    continue;
                }
            };
            match check_entry(entry, &chosen, inst, context) {
                Ok(()) => return Ok(Found { entry, chosen }),
                Err(problem) => drop(refused.get_or_insert(problem)),
            }
        }
    }
    let words = syntax.modifiers.iter().map(|modifier| modifier.text);
    if unsupported::is_later(opcode, words, inst.operands.len()) {
        return Err(Problem::unsupported(syntax.span, &spelling(syntax)));
    }
    Err(refused.unwrap_or_else(|| modifier_problem(syntax, entries, mismatch)))
}

/// Opcode and modifiers as written.
pub(crate) fn spelling(inst: &ast::Instruction<'_>) -> String {
    let mut text = inst.opcode.text.to_owned();
    for modifier in &inst.modifiers {
        text.push('.');
        text.push_str(modifier.text);
    }
    text
}

fn modifier_problem(inst: &ast::Instruction<'_>, entries: &[Entry], mismatch: Mismatch) -> Problem {
    let opcode = inst.opcode.text;
    match inst.modifiers.get(mismatch.at) {
        Some(modifier) if !mismatch.missing => {
            let known = entries.iter().any(|e| e.syntax.words().any(|w| w == modifier.text));
            let (kind, what) = match (known, Ty::from_name(modifier.text)) {
                (_, Some(_)) => (LoadErrorKind::Type, "unexpected instruction type"),
                (true, None) => (LoadErrorKind::Syntax, "illegal combination or order at modifier"),
                (false, None) => (LoadErrorKind::Syntax, "illegal modifier"),
            };
            Problem::new(
                kind,
                modifier.span,
                format!("{what} '.{}' for instruction '{opcode}'", modifier.text),
            )
        }
        _ => {
            let message = format!("modifier required for instruction '{}'", spelling(inst));
            Problem::new(LoadErrorKind::Syntax, inst.span, message)
        }
    }
}

fn check_entry(
    entry: &Entry,
    chosen: &Chosen,
    inst: &Instruction<'_, '_>,
    context: &Context<'_>,
) -> Result<(), Problem> {
    let span = inst.syntax.span;
    let name = inst.syntax.opcode.text;
    (entry.form.legal)(chosen)
        .map_err(|m| Problem::mismatch(span, format!("{m} for instruction '{name}'")))?;
    let (least, most) = entry.syntax.operand_counts();
    if inst.operands.len() < least || inst.operands.len() > most {
        let message = format!("arguments mismatch for instruction '{name}': wrong number of operands");
        return Err(Problem::mismatch(span, message));
    }
    for (spec, operand) in entry.syntax.operands.iter().zip(&inst.operands) {
        if spec.shape == Shape::Rest {
            break;
        }
        let checker = Checker { context, chosen, opcode: name, registers: entry.form.registers };
        checker.operand(spec, operand)?;
    }
    rules::check(entry, inst, chosen, context)?;
    (entry.form.operands)(&inst.operands)
        .map_err(|m| Problem::mismatch(span, format!("arguments mismatch for instruction '{name}': {m}")))?;
    let (version, sm) = entry.form.first(chosen);
    if context.version < version {
        let ast::Version { major, minor } = version;
        let text = spelling(inst.syntax);
        let message = format!("instruction '{text}' requires PTX ISA .version {major}.{minor} or later");
        return Err(Problem::new(LoadErrorKind::VersionTooOld, span, message));
    }
    if context.sm < sm {
        let text = spelling(inst.syntax);
        return Err(Problem::mismatch(
            span,
            format!("instruction '{text}' requires .target sm_{sm} or higher"),
        ));
    }
    if let Some((major, minor, sm)) = entry.form.until
        && context.version > (ast::Version { major, minor })
        && context.sm >= sm
    {
        let text = spelling(inst.syntax);
        let message = format!(
            "instruction '{text}' is not there for .target sm_{sm} and higher after PTX ISA .version {major}.{minor}"
        );
        return Err(Problem::mismatch(span, message));
    }
    Ok(())
}

/// Checks operands against their entries.
struct Checker<'c> {
    context: &'c Context<'c>,
    chosen: &'c Chosen,
    opcode: &'c str,
    registers: fn(&Chosen, &str) -> usize,
}

impl Checker<'_> {
    fn mismatch(&self, operand: &Operand<'_, '_>, what: impl std::fmt::Display) -> Result<(), Problem> {
        let message = format!("arguments mismatch for instruction '{}': {what}", self.opcode);
        Err(Problem::mismatch(operand.span, message))
    }

    fn operand(&self, spec: &OperandSpec, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        if let OperandKind::Pair(first, second) = &operand.kind {
            let Some(second_spec) = &spec.second else {
                return self.mismatch(operand, "unexpected pair of operands");
            };
            self.single(spec, first)?;
            return self.single(second_spec, second);
        }
        if spec.second.as_ref().is_some_and(|second| !second.optional) {
            return self.mismatch(operand, "a pair of operands is required");
        }
        self.single(spec, operand)
    }

    fn single(&self, spec: &OperandSpec, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        match spec.shape {
            Shape::Rest => Ok(()),
            Shape::Immediate => match &operand.kind {
                OperandKind::Immediate(value) if value.integer().is_some() => Ok(()),
                _ => self.mismatch(operand, "an integer constant is required"),
            },
            Shape::Address => match &operand.kind {
                OperandKind::Address(address) if address.rest.is_empty() => self.address_base(&address.base),
                OperandKind::Element(symbol, index) if matches!(self.opcode, "ld" | "ldu" | "st") => {
                    self.element(symbol, index)
                }
                // What else a copy of a tensor names may stand without brackets, as NVIDIA's assembler has it.
                OperandKind::Register(_) | OperandKind::Symbol(..)
                    if self.opcode == "cp" && self.chosen.has("tensor") =>
                {
                    self.address_base(operand)
                }
                _ => self.mismatch(operand, "an address is required"),
            },
            Shape::Tensor => match &operand.kind {
                OperandKind::Address(address) => self.tensor(spec, operand, address),
                _ => self.mismatch(operand, "a tensor and coordinates are required"),
            },
            Shape::Label => match &operand.kind {
                OperandKind::Label(_) => Ok(()),
                _ => self.mismatch(operand, "a label is required"),
            },
            Shape::Part { negative } => match &operand.kind {
                OperandKind::Negate(inner) if negative => self.part(inner),
                _ => self.part(operand),
            },
            Shape::Lanes(count) => self.lanes(spec, operand, count),
            Shape::TargetList => match &operand.kind {
                OperandKind::BranchTargets(_) => Ok(()),
                _ => self.mismatch(operand, "a list of branch targets is required"),
            },
            Shape::Symbol => match &operand.kind {
                OperandKind::Symbol(..) => Ok(()),
                OperandKind::Element(_, index) if matches!(index.kind, OperandKind::Immediate(_)) => Ok(()),
                OperandKind::Element(symbol, index) if self.opcode == "mov" => self.element(symbol, index),
                _ => self.mismatch(operand, "a register, a constant or an address is required"),
            },
            Shape::Parts(type_spec) => {
                let OperandKind::Vector(parts) = &operand.kind else {
                    return self.mismatch(operand, "a vector is required");
                };
                let whole = self.chosen.resolve(type_spec).map_or(0, Ty::bits);
                let part = match (parts.len(), whole) {
                    (2, 16) | (4, 32) => Ty::B8,
                    (2, 32) | (4, 64) => Ty::B16,
                    (2, 64) | (4, 128) => Ty::B32,
                    (2, 128) => Ty::B64,
                    _ => return self.mismatch(operand, "so many elements do not fit the type"),
                };
                self.alike(spec, operand, parts, part)
            }
            Shape::Fragment(type_spec) => {
                let count = (self.registers)(self.chosen, spec.name);
                let ty = self.chosen.resolve(type_spec);
                match (&operand.kind, ty) {
                    (OperandKind::Vector(list), Some(ty)) if list.len() == count => {
                        list.iter().try_for_each(|register| self.value(spec, register, ty))
                    }
                    _ => self.mismatch(operand, format!("a vector of {count} registers is required")),
                }
            }
            Shape::Tuple(type_spec) => {
                let count = (self.registers)(self.chosen, spec.name);
                match (self.chosen.resolve(type_spec), &operand.kind) {
                    // Offsets may be more than there are coordinates: two, or four.
                    (Some(ty), OperandKind::Vector(list))
                        if spec.name == "e" && list.len() > count && matches!(list.len(), 2 | 4) =>
                    {
                        self.tuple(spec, operand, list.len(), |_| ty, false)
                    }
                    (Some(ty), _) => self.tuple(spec, operand, count, |_| ty, false),
                    (None, _) => self.mismatch(operand, "the instruction has no such type"),
                }
            }
            Shape::Object => match &operand.kind {
                OperandKind::Address(address) if address.rest.is_empty() && address.offset == 0 => {
                    let asked = self.chosen.word("query").unwrap_or_default();
                    let types = texture::asked(self.opcode, asked, self.context.samplers_apart);
                    self.object(&address.base, types)?;
                    if matches!(address.base.kind, OperandKind::Register(_)) && !texture::of_handles(asked) {
                        let what = "asks about variables only: no driver loads it for a register";
                        let message = format!("'{}.{asked}' {what}", self.opcode);
                        return Err(Problem::new(LoadErrorKind::Unsupported, operand.span, message));
                    }
                    Ok(())
                }
                _ => self.mismatch(operand, "a texture, a sampler or a surface is required"),
            },
            Shape::Image { sampler } => self.image(spec, operand, sampler),
            Shape::Condition => self.value(spec, rules::negated(operand), Ty::Pred),
            Shape::Value(type_spec) => {
                let Some(ty) = self.chosen.resolve(type_spec) else {
                    return self.mismatch(operand, "the instruction has no such type");
                };
                // A predicate may be negated wherever it is read.
                let operand = if ty == Ty::Pred && !spec.written { rules::negated(operand) } else { operand };
                if spec.vector { self.vector(spec, operand, ty) } else { self.value(spec, operand, ty) }
            }
        }
    }

    /// `[map, {coordinates}]`
    fn tensor(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        address: &Address<'_, '_>,
    ) -> Result<(), Problem> {
        let count = (self.registers)(self.chosen, spec.name);
        match &address.rest[..] {
            [Operand { kind: OperandKind::Vector(list), .. }]
                if list.len() == count && address.offset == 0 =>
            {
                self.address_base(&address.base)?;
                self.alike(spec, operand, list, Ty::S32)
            }
            _ => self.mismatch(operand, format!("a tensor and a vector of {count} coordinates are required")),
        }
    }

    /// A handle of a texture, a sampler or a surface.
    fn object(&self, base: &Operand<'_, '_>, types: &[ast::Type]) -> Result<(), Problem> {
        if let Some(problem) = texture::object_problem(base, types) {
            return self.mismatch(base, problem);
        }
        match &base.kind {
            OperandKind::Register(id) => {
                let register = self.context.register(*id);
                match register.vector.is_none() && Ty::U64.accepts(register.ty, false) {
                    true => Ok(()),
                    false => self.mismatch(base, "a register of 64 bits is required"),
                }
            }
            _ => Ok(()),
        }
    }

    /// An object and coordinates.
    fn image(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, sampler: bool) -> Result<(), Problem> {
        let OperandKind::Address(address) = &operand.kind else {
            return self.mismatch(operand, "an object and coordinates are required");
        };
        let coordinates = match &address.rest[..] {
            _ if address.offset != 0 => return self.mismatch(operand, "an object has no offset"),
            [coordinates] => coordinates,
            [other, coordinates] if sampler => {
                self.object(other, &[ast::Type::Samplerref])?;
                coordinates
            }
            _ => return self.mismatch(operand, "an object and coordinates are required"),
        };
        self.object(&address.base, &[if sampler { ast::Type::Texref } else { ast::Type::Surfref }])?;
        let wanted = texture::brackets(self.chosen);
        let ty = self.chosen.ty("C").filter(|_| sampler).unwrap_or(Ty::S32);
        // Samples stand after the layer. A surface's layer is a number like the others.
        let integers = usize::from(wanted.layered && sampler) + usize::from(wanted.samples);
        let ty_of = |index| if index < integers { Ty::U32 } else { ty };
        self.tuple(spec, coordinates, wanted.numbers, ty_of, true)
    }

    /// A vector of so many values, or perhaps one value for a vector of one.
    fn tuple(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        count: usize,
        ty: impl Fn(usize) -> Ty,
        scalar: bool,
    ) -> Result<(), Problem> {
        match &operand.kind {
            OperandKind::Vector(list) if list.len() == count => {
                // What is a layer or a sample is one whatever stands beside it.
                let last = count.saturating_sub(1);
                let apart = (0..last).take_while(|index| ty(*index) != ty(last)).count();
                let (before, rest) = list.split_at(apart);
                before.iter().enumerate().try_for_each(|(index, value)| {
                    match rules::is_halves(value, self.context) {
                        true => self.mismatch(value, "a layer is an integer"),
                        false => self.value(spec, value, ty(index)),
                    }
                })?;
                self.alike(spec, operand, rest, ty(last))
            }
            OperandKind::Vector(_) => {
                self.mismatch(operand, format!("a vector of {count} elements is required"))
            }
            OperandKind::Register(id) if self.context.register(*id).vector.is_some() => {
                let register = self.context.register(*id);
                let fits = register.vector == Some(count as u32)
                    && (0..count).all(|index| ty(index).accepts(register.ty, false));
                if fits { Ok(()) } else { self.mismatch(operand, "a vector of another kind is required") }
            }
            _ if count == 1 && scalar => self.value(spec, operand, ty(0)),
            _ => self.mismatch(operand, format!("a vector of {count} elements is required")),
        }
    }

    /// A vector of as many elements as the instruction says; a scalar if it says nothing.
    fn vector(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, ty: Ty) -> Result<(), Problem> {
        let lanes = self.chosen.lanes();
        let wrong = || self.mismatch(operand, format!("a vector of {lanes} elements is required"));
        match &operand.kind {
            OperandKind::Vector(elements) => {
                if elements.len() != lanes {
                    return wrong();
                }
                self.alike(spec, operand, elements, ty)
            }
            OperandKind::Sink if spec.sink => Ok(()),
            _ if self.chosen.word("vec").is_none() => self.value(spec, operand, ty),
            OperandKind::Special(register, None) if register.describe().vector && !spec.written => Ok(()),
            OperandKind::Register(id) => {
                let register = self.context.register(*id);
                let fits = register.vector == Some(lanes as u32) && ty.accepts(register.ty, spec.wider);
                if fits { Ok(()) } else { wrong() }
            }
            _ => wrong(),
        }
    }

    /// The elements of a vector.
    fn alike(
        &self,
        spec: &OperandSpec,
        operand: &Operand<'_, '_>,
        elements: &[Operand<'_, '_>],
        ty: Ty,
    ) -> Result<(), Problem> {
        let Some(ty) = rules::element_type(elements, ty, self.context) else {
            return self.mismatch(
                operand,
                "the elements of a vector are of one width and all floats or all integers",
            );
        };
        let is_place = matches!(self.opcode, "suld" | "sust" | "sured" | "cp") && ty == Ty::S32;
        if (is_place || spec.name == "e") && elements.iter().all(|at| rules::is_halves(at, self.context)) {
            return self.mismatch(operand, "pairs of halves are no places");
        }
        elements.iter().try_for_each(|element| match element.kind {
            OperandKind::Sink if spec.written => Ok(()),
            _ => self.value(spec, element, ty),
        })
    }

    fn value(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, ty: Ty) -> Result<(), Problem> {
        let (register, relaxed) = match &operand.kind {
            OperandKind::Register(id) => {
                let register = self.context.register(*id);
                if register.vector.is_some() {
                    return self.mismatch(operand, "a scalar is required");
                }
                (register.ty, spec.wider)
            }
            OperandKind::Component(id, ast::Component::Element(_)) => {
                (self.context.register(*id).ty, spec.wider)
            }
            OperandKind::Special(register, component) if !spec.written => {
                if register.describe().vector != component.is_some() {
                    return self.mismatch(operand, "an element of the vector is required");
                }
                // Reading `%tid.x` as 16 bits is old usage.
                (register.describe().ty, spec.wider || ty.bits() == 16)
            }
            OperandKind::Immediate(value) if !spec.written => {
                // What multimem stores as .bf16x2 is as good as bits.
                let halves = ty.half().is_some() || matches!(ty, Ty::F16 | Ty::Bf16 | Ty::Tf32);
                let width = match value {
                    ast::Immediate::F32(_) => 32,
                    _ => 64,
                };
                return match (ty.kind(), value.integer()) {
                    (Kind::Pred, None) => self.mismatch(operand, "a predicate is required"),
                    _ if halves
                        && !(self.opcode == "multimem" && self.chosen.has("st") && ty != Ty::F16x2) =>
                    {
                        self.mismatch(operand, format!("there are no constants of type .{}", ty.name()))
                    }
                    (Kind::Bits, None) if ty.bits() != width => {
                        self.mismatch(operand, "a float of another width")
                    }
                    (Kind::Signed | Kind::Unsigned, None) => self.mismatch(operand, "an integer is required"),
                    (Kind::Float, Some(_)) if matches!(ty, Ty::F32 | Ty::F64) => {
                        self.mismatch(operand, "a floating-point constant is required")
                    }
                    _ => Ok(()),
                };
            }
            OperandKind::Sink if spec.sink => return Ok(()),
            OperandKind::Sink => return self.mismatch(operand, "the sink '_' is not allowed here"),
            _ if spec.written => return self.mismatch(operand, "a register is required"),
            _ => return self.mismatch(operand, "a register or constant is required"),
        };
        // What `set` answers as .bf16 may be in integers too, and as .bf16x2 in anything.
        let integer = match ty {
            Ty::Bf16 => Some(Ty::U16),
            Ty::Bf16x2 => Some(Ty::B32),
            _ => None,
        };
        let truth = integer.filter(|_| self.opcode == "set" && spec.written);
        if ty.accepts(register, relaxed) || truth.is_some_and(|ty| ty.accepts(register, false)) {
            Ok(())
        } else {
            let what = format!("a register of type .{} does not fit type .{}", register.name(), ty.name());
            self.mismatch(operand, what)
        }
    }

    /// `array[index]`, without brackets around it.
    fn element(&self, symbol: &Symbol<'_, '_>, index: &Operand<'_, '_>) -> Result<(), Problem> {
        let is_array = match symbol {
            Symbol::Local(id) => !self.context.variables[id.0 as usize].declaration.dimensions.is_empty(),
            Symbol::Global(variable, _) => !variable.dimensions.is_empty(),
            Symbol::Function(_) => false,
        };
        if !is_array {
            return self.mismatch(index, "what is indexed is no array");
        }
        match &index.kind {
            OperandKind::Immediate(_) => Ok(()),
            OperandKind::Register(id) | OperandKind::RegisterOffset(id, _) => {
                let register = self.context.register(*id);
                let fits = [Ty::U16, Ty::U32, Ty::U64].iter().any(|ty| ty.accepts(register.ty, false));
                if register.vector.is_none() && fits {
                    return Ok(());
                }
                self.mismatch(index, "an index is an integer")
            }
            _ => self.mismatch(index, "an index is a register or a constant"),
        }
    }

    fn address_base(&self, base: &Operand<'_, '_>) -> Result<(), Problem> {
        let register = match &base.kind {
            OperandKind::Immediate(_) => return Ok(()),
            OperandKind::Symbol(Symbol::Local(_) | Symbol::Global(..), _) => return Ok(()),
            OperandKind::Element(_, index) if matches!(index.kind, OperandKind::Immediate(_)) => {
                return Ok(());
            }
            OperandKind::Component(id, ast::Component::Element(_)) => self.context.register(*id),
            OperandKind::Register(id) if self.context.register(*id).vector.is_none() => {
                self.context.register(*id)
            }
            _ => return self.mismatch(base, "not an address"),
        };
        if Ty::U32.accepts(register.ty, false) || Ty::U64.accepts(register.ty, false) {
            Ok(())
        } else {
            self.mismatch(base, format!("a register of type .{} cannot hold an address", register.ty.name()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_read() {
        let forms: Vec<_> =
            FAMILIES.iter().flat_map(|(_, forms)| forms.iter().map(|form| form.text)).collect();
        let different: std::collections::HashSet<_> = forms.iter().collect();
        assert_eq!(different.len(), forms.len(), "an entry stands twice");
        for opcode in TABLE.opcodes() {
            for entry in TABLE.entries(opcode).unwrap() {
                assert!(!unsupported::is_opcode(opcode), "'{opcode}' is supported after all");
                let (least, most) = entry.syntax.operand_counts();
                assert_eq!(entry.syntax.opcode, opcode);
                assert!(least <= most, "{}", entry.form.text);
            }
        }
    }
}
