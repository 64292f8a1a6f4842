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
mod call;
mod carry;
mod cluster;
mod compare;
mod control;
mod convert;
mod copy;
mod describe;
mod diagnose;
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
mod operands;
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
use crate::resolve::{Instruction, LocalVariable, Operand, Register, RegisterId};
use crate::span::Span;
use operands::Checker;
use syntax::{Chosen, Shape};
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
    /// Its prototypes.
    pub prototypes: &'c [&'c ast::Prototype<'c>],
    /// Its lists of functions.
    pub call_targets: &'c [Vec<&'c ast::Function<'c>>],
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
    let mut refused: Option<(Stage, Problem)> = None;
    for in_order in [true, false] {
        for entry in entries {
            let modifiers = || syntax.modifiers.iter().map(|m| m.text);
            let choice = match in_order {
                true => entry.syntax.choose(modifiers()),
                // Any order will do: real programs rely on `atom.add.release.gpu.u32`.
                false => entry.syntax.choose_in_any_order(modifiers()),
            };
            let Some(chosen) = choice else { continue };
            match check_entry(entry, &chosen, inst, context) {
                Ok(()) => return Ok(Found { entry, chosen }),
                // Of several entries with these modifiers the one is meant that goes furthest.
                Err(next) => {
                    if refused.as_ref().is_none_or(|(stage, _)| next.0 > *stage) {
                        refused = Some(next);
                    }
                }
            }
        }
    }
    let words = syntax.modifiers.iter().map(|modifier| modifier.text);
    if unsupported::is_later(opcode, words, inst.operands.len()) {
        return Err(Problem::unsupported(syntax.span, &spelling(syntax)));
    }
    Err(refused.map_or_else(|| diagnose::modifiers(syntax, entries), |(_, problem)| problem))
}

/// How far an instruction went that is not what an entry says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Modifiers that are not there together, or too many or too few operands.
    Modifiers,
    /// So many operands are right.
    Operands(usize),
    /// All are, each by itself.
    Rules,
    /// All is right, but for another version or architecture.
    Later,
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

fn check_entry(
    entry: &Entry,
    chosen: &Chosen,
    inst: &Instruction<'_, '_>,
    context: &Context<'_>,
) -> Result<(), (Stage, Problem)> {
    let span = inst.syntax.span;
    let name = inst.syntax.opcode.text;
    (entry.form.legal)(chosen)
        .map_err(|m| (Stage::Modifiers, Problem::mismatch(span, format!("{m} for instruction '{name}'"))))?;
    let (least, most) = entry.syntax.operand_counts();
    if inst.operands.len() < least || inst.operands.len() > most {
        let message = format!("arguments mismatch for instruction '{name}': wrong number of operands");
        return Err((Stage::Modifiers, Problem::mismatch(span, message)));
    }
    for (at, (spec, operand)) in entry.syntax.operands.iter().zip(&inst.operands).enumerate() {
        if spec.shape == Shape::Rest {
            break;
        }
        let checker = Checker { context, chosen, opcode: name, registers: entry.form.registers };
        checker.operand(spec, operand).map_err(|problem| (Stage::Operands(at), problem))?;
    }
    rules::check(entry, inst, chosen, context).map_err(|problem| (Stage::Rules, problem))?;
    (entry.form.operands)(&inst.operands).map_err(|m| {
        let message = format!("arguments mismatch for instruction '{name}': {m}");
        (Stage::Rules, Problem::mismatch(span, message))
    })?;
    if name == "call" {
        call::check(inst, context).map_err(|problem| (Stage::Rules, problem))?;
    }
    too_early(entry, chosen, inst, context).map_err(|problem| (Stage::Later, problem))
}

/// Whether the module's version and architecture have the instruction.
fn too_early(
    entry: &Entry,
    chosen: &Chosen,
    inst: &Instruction<'_, '_>,
    context: &Context<'_>,
) -> Result<(), Problem> {
    let span = inst.syntax.span;
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
