//! The instruction table: for every instruction its syntax, its types and its meaning in the IR, in one entry.
//!
//! A family is a file with a list of [`Form`]s. An entry reads like a manual's synopsis (see [`syntax`]) followed by the
//! expansion, which gets its operands by the names in the synopsis:
//!
//! ```text
//! form("brev.T{b32,b64} d=T, a:T", |x| { let a = x.src("a"); … x.set("d", v) })
//! ```
//!
//! Several entries may share an opcode; the first whose modifiers and operands fit is meant. What PTX knows and this
//! compiler does not is listed by name in [`unsupported`].

mod atomic;
mod barrier;
mod bits;
mod carry;
mod compare;
mod control;
mod convert;
mod copy;
mod float;
mod fp8;
mod hints;
mod integer;
mod logic;
mod matrix;
mod memory;
mod mov;
pub(crate) mod special;
pub(crate) mod syntax;
mod types;
mod unsupported;
mod video;
mod warp;
mod wgmma;
mod wmma;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use types::{Kind, Ty};

use crate::ast;
use crate::error::LoadErrorKind;
use crate::lower::expander::Expander;
use crate::resolve::{Instruction, Operand, OperandKind, Register, RegisterId, Symbol};
use crate::span::Span;
use syntax::{Chosen, Mismatch, OperandSpec, Shape, Syntax};

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

/// A form and its synopsis, read.
pub(crate) struct Entry {
    pub form: &'static Form,
    pub syntax: Syntax,
}

/// Entries by opcode.
struct Table {
    entries: HashMap<&'static str, Vec<Entry>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let families = [
        atomic::FORMS,
        barrier::FORMS,
        bits::FORMS,
        carry::FORMS,
        compare::FORMS,
        control::FORMS,
        convert::FORMS,
        copy::FORMS,
        float::FORMS,
        fp8::FORMS,
        hints::FORMS,
        integer::FORMS,
        logic::FORMS,
        matrix::FORMS,
        memory::FORMS,
        mov::FORMS,
        video::FORMS,
        warp::FORMS,
        wgmma::FORMS,
        wmma::FORMS,
    ];
    let mut entries: HashMap<&'static str, Vec<Entry>> = HashMap::new();
    for form in families.into_iter().flatten() {
        let syntax = Syntax::parse(form.text).unwrap_or_else(|e| panic!("the entry '{}': {e}", form.text));
        entries.entry(syntax.opcode).or_default().push(Entry { form, syntax });
    }
    Table { entries }
});

/// Every synopsis of the table, by opcode: what this compiler understands.
pub fn synopses() -> Vec<&'static str> {
    let mut all: Vec<_> = TABLE.entries.values().flatten().map(|entry| entry.form.text).collect();
    all.sort_unstable();
    all
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
    /// Registers of the function.
    pub registers: &'c [Register<'c>],
}

impl Context<'_> {
    fn register(&self, id: RegisterId) -> &Register<'_> {
        &self.registers[id.0 as usize]
    }
}

/// What is wrong with an instruction that PTX does not have.
pub(crate) fn unknown(syntax: &ast::Instruction<'_>) -> Option<Problem> {
    let opcode = syntax.opcode.text;
    let known = TABLE.entries.contains_key(opcode) || unsupported::is_opcode(opcode);
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
    let Some(entries) = TABLE.entries.get(opcode) else {
        return Err(unknown(syntax).unwrap_or_else(|| Problem::unsupported(syntax.span, &spelling(syntax))));
    };
    let mut mismatch = Mismatch { at: 0, missing: false };
    let mut refused: Option<Problem> = None;
    let lenient = LENIENT.contains(&opcode);
    for entry in entries {
        let modifiers = || syntax.modifiers.iter().map(|m| m.text);
        let choice = entry.syntax.choose(modifiers());
        let choice = match choice {
            Err(error) if lenient => entry.syntax.choose_in_any_order(modifiers()).ok_or(error),
            choice => choice,
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
    let foreign = syntax.modifiers.iter().any(|m| unsupported::is_modifier(opcode, m.text));
    if refused.is_none() && foreign {
        return Err(Problem::unsupported(syntax.span, &spelling(syntax)));
    }
    Err(refused.unwrap_or_else(|| modifier_problem(syntax, entries, mismatch)))
}

/// Opcodes whose modifiers may stand in any order: real programs rely on `atom.add.release.gpu.u32`.
const LENIENT: [&str; 5] = ["atom", "red", "ld", "st", "fence"];

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
    (entry.form.operands)(&inst.operands)
        .map_err(|m| Problem::mismatch(span, format!("arguments mismatch for instruction '{name}': {m}")))?;
    let (major, minor) = entry.form.version;
    if context.version < (ast::Version { major, minor }) {
        let text = spelling(inst.syntax);
        let message = format!("instruction '{text}' requires PTX ISA .version {major}.{minor} or later");
        return Err(Problem::new(LoadErrorKind::VersionTooOld, span, message));
    }
    if context.sm < entry.form.sm {
        let text = spelling(inst.syntax);
        return Err(Problem::mismatch(
            span,
            format!("instruction '{text}' requires .target sm_{} or higher", entry.form.sm),
        ));
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
                _ => self.mismatch(operand, "an address is required"),
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
                    _ => {
                        return self
                            .mismatch(operand, "a vector of this many elements does not fit the type");
                    }
                };
                parts.iter().try_for_each(|element| match element.kind {
                    OperandKind::Sink if spec.written => Ok(()),
                    _ => self.value(spec, element, part),
                })
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
            Shape::Condition => match &operand.kind {
                OperandKind::Not(inner) => self.value(spec, inner, Ty::Pred),
                _ => self.value(spec, operand, Ty::Pred),
            },
            Shape::Value(type_spec) => {
                let Some(ty) = self.chosen.resolve(type_spec) else {
                    return self.mismatch(operand, "the instruction has no such type");
                };
                if spec.vector { self.vector(spec, operand, ty) } else { self.value(spec, operand, ty) }
            }
        }
    }

    /// A word, or a byte or half of it.
    fn part(&self, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let (id, selected) = match &operand.kind {
            OperandKind::Immediate(value) if value.integer().is_some() => return Ok(()),
            OperandKind::Register(id) => (id, true),
            OperandKind::Component(id, ast::Component::Bytes(lanes)) => {
                (id, matches!(lanes.digits(), [digit] if *digit < 4))
            }
            OperandKind::Component(id, ast::Component::Halves(lanes)) => {
                (id, matches!(lanes.digits(), [digit] if *digit < 2))
            }
            _ => return self.mismatch(operand, "a word or a part of one is required"),
        };
        self.selection(operand, *id, selected)
    }

    /// A word, or a choice of `count` parts out of two words; of a destination any of its parts.
    fn lanes(&self, spec: &OperandSpec, operand: &Operand<'_, '_>, count: u8) -> Result<(), Problem> {
        let (id, digits) = match (&operand.kind, count) {
            (OperandKind::Immediate(value), _) if !spec.written && value.integer().is_some() => return Ok(()),
            (OperandKind::Register(id), _) => (id, None),
            (OperandKind::Component(id, ast::Component::Halves(lanes)), 2)
            | (OperandKind::Component(id, ast::Component::Bytes(lanes)), 4) => (id, Some(lanes.digits())),
            _ => return self.mismatch(operand, "a word or a choice of its parts is required"),
        };
        let selected = match digits {
            Some(digits) if spec.written => digits.iter().all(|digit| *digit < count),
            Some(digits) => {
                digits.len() == usize::from(count) && digits.iter().all(|digit| *digit < 2 * count)
            }
            None => true,
        };
        self.selection(operand, *id, selected)
    }

    fn selection(&self, operand: &Operand<'_, '_>, id: RegisterId, selected: bool) -> Result<(), Problem> {
        let register = self.context.register(id);
        if register.vector.is_some() || !Ty::U32.accepts(register.ty, false) {
            self.mismatch(operand, "a register of 32 bits is required")
        } else if selected {
            Ok(())
        } else {
            self.mismatch(operand, "there is no such part")
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
                elements.iter().try_for_each(|element| match element.kind {
                    OperandKind::Sink if spec.written => Ok(()),
                    _ => self.value(spec, element, ty),
                })
            }
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
                return match (ty.kind(), value.integer()) {
                    (Kind::Pred, None) => self.mismatch(operand, "a predicate is required"),
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
        if ty.accepts(register, relaxed) {
            Ok(())
        } else {
            let what = format!("a register of type .{} does not fit type .{}", register.name(), ty.name());
            self.mismatch(operand, what)
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
        assert!(synopses().len() > 100);
        for (opcode, entries) in &TABLE.entries {
            for entry in entries {
                assert!(!unsupported::is_opcode(opcode), "'{opcode}' is supported after all");
                let (least, most) = entry.syntax.operand_counts();
                assert!(least <= most, "{}", entry.form.text);
            }
        }
    }
}
