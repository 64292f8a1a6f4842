//! Rules that hold for many instructions: where special registers may be read, that a variable lies in the state space that the instruction
//! says, and what advice on caches goes with what.

use super::syntax::{Chosen, Shape, TypeSpec};
use super::{Context, Entry, Kind, Problem, Ty, matrix};
use crate::ast::{StateSpace, Type};
use crate::resolve::{Instruction, Operand, OperandKind, Symbol};

/// Checks an instruction that is otherwise what the entry says.
pub(super) fn check(
    entry: &Entry,
    inst: &Instruction<'_, '_>,
    chosen: &Chosen,
    context: &Context<'_>,
) -> Result<(), Problem> {
    let rules = Rules { opcode: inst.syntax.opcode.text, chosen, context };
    for (at, operand) in inst.operands.iter().enumerate() {
        rules.special_registers(operand)?;
        rules.address(at, operand)?;
        rules.parts(at, operand)?;
        rules.conversion(at, operand)?;
        rules.parts_of_matrix(entry, at, operand)?;
        rules.around_matrices(entry, at, operand)?;
        rules.integers(entry, at, operand)?;
    }
    let why =
        rules.caches(entry, inst).or_else(|| rules.whole_lines(inst)).or_else(|| rules.matrices(entry, inst));
    why.map_or(Ok(()), |why| {
        let message = format!("{why} for instruction '{}'", rules.opcode);
        Err(Problem::mismatch(inst.syntax.span, message))
    })
}

/// Whether the word names a type that no register has.
pub(super) fn is_narrow_type(word: &str) -> bool {
    matches!(word, "e4m3x2" | "e5m2x2" | "u4" | "s4" | "u2" | "s2" | "b1" | "e4m3" | "e5m2")
}

/// The integer that an operand is.
pub(super) fn number(operands: &[Operand<'_, '_>], at: usize) -> Option<u64> {
    match operands.get(at)?.kind {
        OperandKind::Immediate(value) => value.integer(),
        _ => None,
    }
}

/// What the elements of a vector operand of type `ty` must fit. Of a register's type only the width matters, which is the same for all, if not
/// all are floats; floats do not stand next to integers or to pairs of halves.
pub(super) fn element_type(elements: &[Operand<'_, '_>], ty: Ty, context: &Context<'_>) -> Option<Ty> {
    let register = |element: &Operand<'_, '_>| match element.kind {
        OperandKind::Register(id) => Ty::from_name(context.register(id).ty.name()),
        _ => None,
    };
    let types: Vec<_> = elements.iter().filter_map(register).collect();
    let is_integer = |ty: Ty| matches!(ty.kind(), Kind::Signed | Kind::Unsigned);
    let is_float = |ty: Ty| ty.kind() == Kind::Float;
    let differ = |pair: &[Ty]| {
        let &[a, b] = pair else { return false };
        a.bits() != b.bits()
            || is_float(a) && is_integer(b)
            || is_integer(a) && is_float(b)
            || is_float(a) && is_float(b) && (a == Ty::F16x2) != (b == Ty::F16x2)
    };
    let wider_integers =
        is_float(ty) && types.iter().all(|other| is_integer(*other) && other.bits() > ty.bits());
    let typed = types.iter().all(|ty| is_float(*ty))
        || ty.half().is_some() && types.iter().all(|other| *other == types[0] && other.kind() != Kind::Bits);
    if types.windows(2).any(differ) || !types.is_empty() && wider_integers {
        None
    } else if typed {
        Some(ty)
    } else {
        Some(Ty::untyped(ty.bits()).unwrap_or(ty))
    }
}

/// What the operand negates, or itself.
pub(super) fn negated<'o, 'm, 'a>(operand: &'o Operand<'m, 'a>) -> &'o Operand<'m, 'a> {
    match &operand.kind {
        OperandKind::Not(inner) => inner,
        _ => operand,
    }
}

/// Whether the operand is a register of two halves.
pub(super) fn is_halves(operand: &Operand<'_, '_>, context: &Context<'_>) -> bool {
    matches!(operand.kind, OperandKind::Register(id) if context.register(id).ty == Type::F16x2)
}

struct Rules<'c> {
    opcode: &'c str,
    chosen: &'c Chosen,
    context: &'c Context<'c>,
}

/// The state spaces that an address may be in.
#[derive(Clone, Copy)]
enum Allowed {
    One(StateSpace),
    /// Global, shared and local memory.
    Generic,
}

impl Rules<'_> {
    fn mismatch(&self, operand: &Operand<'_, '_>, what: impl std::fmt::Display) -> Result<(), Problem> {
        let message = format!("arguments mismatch for instruction '{}': {what}", self.opcode);
        Err(Problem::mismatch(operand.span, message))
    }

    /// Which factor is by rows and which by columns is said in this order, and lanes with metadata are among those that there are.
    fn matrices(&self, entry: &Entry, inst: &Instruction<'_, '_>) -> Option<&'static str> {
        if !matches!(self.opcode, "mma" | "wmma" | "wgmma") {
            return None;
        }
        let place = |word| inst.syntax.modifiers.iter().position(|modifier| modifier.text == word);
        let is_free = entry.syntax.slots.iter().any(|slot| slot.name() == "al" && slot.words().len() > 1);
        if !is_free && place("row") > place("col") && place("col").is_some() {
            return Some("illegal layouts");
        }
        let bits = place("and").or(place("xor"));
        if place("popc") < bits && place("popc").is_some() {
            return Some("'.popc' follows the operation on bits");
        }
        let selector =
            || number(&inst.operands, entry.syntax.operands.iter().position(|spec| spec.name == "f")?);
        match self.chosen.has("sp") || self.chosen.has("sp::ordered_metadata") {
            true if selector().is_none_or(|n| n >= matrix::selectors(self.opcode, self.chosen)) => {
                Some("the sparsity selector is out of range")
            }
            _ => None,
        }
    }

    /// Counts, masks and the like are no floats, whatever their type is called in the table; nor are two halves.
    fn integers(&self, entry: &Entry, at: usize, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let Some(spec) = entry.syntax.operands.get(at) else { return Ok(()) };
        let is_count = matches!(spec.shape, Shape::Value(TypeSpec::Fixed(Ty::U32 | Ty::S32)));
        let halves_too = match (self.opcode, spec.name) {
            // NVIDIA's assembler is not as strict about these.
            ("fns", _) | ("bar" | "barrier", "d") => return Ok(()),
            (_, "mask") | ("elect" | "redux", _) | ("match" | "bmsk", "d") => true,
            ("dp4a" | "dp2a", "d" | "c") | ("createpolicy", "d" | "a") => true,
            ("txq", "l") | ("mbarrier", "state") => true,
            // The factors are words of any kind but one float.
            ("dp4a" | "dp2a", _) => false,
            ("vset" | "vset2" | "vset4", "d" | "c") => true,
            // Video instructions take halves for words.
            _ if is_count && !self.opcode.starts_with('v') => true,
            _ => return Ok(()),
        };
        let operand = match &operand.kind {
            OperandKind::Pair(first, _) => first,
            _ => operand,
        };
        let is_float = match operand.kind {
            OperandKind::Register(id) | OperandKind::Component(id, _) => {
                match Ty::from_name(self.context.register(id).ty.name()) {
                    Some(Ty::F16x2) => halves_too,
                    ty => ty.is_some_and(Ty::is_float),
                }
            }
            OperandKind::Immediate(value) => value.integer().is_none(),
            _ => false,
        };
        if is_float { self.mismatch(operand, "an integer is required") } else { Ok(()) }
    }

    /// Registers hold parts of matrices, and how far copies shift, by their types.
    fn parts_of_matrix(&self, entry: &Entry, at: usize, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let (Some(spec), OperandKind::Vector(list)) = (entry.syntax.operands.get(at), &operand.kind) else {
            return Ok(());
        };
        if !matches!(self.opcode, "mma" | "wmma" | "wgmma") && spec.name != "shifts" {
            return Ok(());
        }
        let registers = list.iter().filter_map(|element| match element.kind {
            OperandKind::Register(id) => Ty::from_name(self.context.register(id).ty.name()),
            _ => None,
        });
        let types: Vec<_> = registers.collect();
        let Some(first) = types.first() else { return Ok(()) };
        // Registers of several types are words, if each goes with the next.
        let ty = match types.iter().all(|ty| ty == first) {
            true => Some(*first),
            false => element_type(list, *first, self.context),
        };
        match ty {
            Some(ty) if matrix::holds(self.opcode, self.chosen, spec.name, ty) => Ok(()),
            Some(ty) => {
                self.mismatch(operand, format!("registers of type .{} do not hold such elements", ty.name()))
            }
            None => self.mismatch(operand, "registers of floats next to others"),
        }
    }

    /// Descriptors, metadata and distances of rows are no floats; sparse factors have their metadata in a register, and what a
    /// product of a warpgroup is told by number is 0 or 1, and of signs 1 or -1.
    fn around_matrices(&self, entry: &Entry, at: usize, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let Some(spec) = entry.syntax.operands.get(at) else { return Ok(()) };
        let is_float = match operand.kind {
            OperandKind::Register(id) => {
                Ty::from_name(self.context.register(id).ty.name()).is_some_and(Ty::is_float)
            }
            OperandKind::Immediate(value) => value.integer().is_none(),
            _ => false,
        };
        let number = match operand.kind {
            OperandKind::Immediate(value) => value.integer(),
            _ => None,
        };
        match (self.opcode, spec.name) {
            ("wgmma", "a" | "b" | "e") | ("wmma", "stride") if is_float => {
                self.mismatch(operand, "an integer is required")
            }
            ("mma" | "wgmma", "e") if number.is_some() => self.mismatch(operand, "a register is required"),
            ("wgmma", "sa" | "sb") if number.is_some_and(|n| !matches!(n as i64, 1 | -1)) => {
                self.mismatch(operand, "1 or -1 is required")
            }
            ("wgmma", "p" | "ta" | "tb") if number.is_some_and(|n| n > 1) => {
                self.mismatch(operand, "0 or 1 is required")
            }
            _ => Ok(()),
        }
    }

    /// Special registers are read by moves, and by conversions between integers, only.
    fn special_registers(&self, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let floats = || self.chosen.all().filter_map(Ty::from_name).any(Ty::is_float);
        let converts = || self.opcode == "cvt" && !self.chosen.has("pack") && !floats();
        match &operand.kind {
            OperandKind::Special(..) if self.opcode != "mov" && !converts() => {
                self.mismatch(operand, "only mov and cvt between integers read a special register")
            }
            OperandKind::Vector(list) | OperandKind::List(list) => {
                list.iter().try_for_each(|element| self.special_registers(element))
            }
            OperandKind::Not(inner) | OperandKind::Negate(inner) => self.special_registers(inner),
            _ => Ok(()),
        }
    }

    /// Of whole vectors of bytes or halves there are no constants, and `vmad` adds whole words. Of two results one at least is
    /// wanted.
    fn parts(&self, at: usize, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let packed = self.opcode.starts_with('v') && self.opcode.ends_with(['2', '4']);
        match &operand.kind {
            OperandKind::Immediate(value)
                if self.opcode == "stackrestore"
                    || self.opcode == "movmatrix" && value.integer().is_some() =>
            {
                self.mismatch(operand, "a register is required")
            }
            OperandKind::Pair(first, second)
                if matches!((&first.kind, &second.kind), (OperandKind::Sink, OperandKind::Sink)) =>
            {
                self.mismatch(operand, "one result at least is wanted")
            }
            OperandKind::Immediate(_) if packed => self.mismatch(operand, "a register is required"),
            OperandKind::Component(..) if self.opcode == "vmad" && at == 3 => {
                self.mismatch(operand, "a whole word is required")
            }
            _ => Ok(()),
        }
    }

    /// Floats of fewer bits than a register's type can say are in registers of bits, and none of them is a constant. Packed integers
    /// are no float, and barriers know none.
    fn conversion(&self, at: usize, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let ty = |id| Ty::from_name(self.context.register(id).ty.name());
        match operand.kind {
            OperandKind::Register(id) if self.opcode == "mbarrier" && ty(id).is_some_and(Ty::is_float) => {
                return self.mismatch(operand, "states and counts are no floats");
            }
            _ if self.opcode != "cvt" => return Ok(()),
            _ => {}
        }
        let eight_bits =
            |slot| self.chosen.word(slot).is_some_and(|word| matches!(word, "e4m3x2" | "e5m2x2"));
        let unpacks = eight_bits("F") && self.chosen.word("D").is_some();
        let narrow = if unpacks { at == 1 } else { at == 0 && (eight_bits("F") || self.chosen.has("tf32")) };
        let ty = match operand.kind {
            OperandKind::Register(id) => ty(id).unwrap_or(Ty::B32),
            OperandKind::Immediate(_) if narrow => return self.mismatch(operand, "a register is required"),
            _ => return Ok(()),
        };
        if narrow && ty.kind() != Kind::Bits {
            return self.mismatch(operand, "a register without a type of its own is required");
        }
        if self.chosen.has("pack") && at == 0 && matches!(ty, Ty::F32 | Ty::F64) {
            return self.mismatch(operand, "the result is no float");
        }
        Ok(())
    }

    /// What is wrong with the advice on caches, which concerns global memory.
    fn caches(&self, entry: &Entry, inst: &Instruction<'_, '_>) -> Option<&'static str> {
        let copies = self.opcode == "cp" && self.chosen.word("cop").is_some();
        let accesses = matches!(self.opcode, "ld" | "st" | "atom" | "red") && !self.chosen.has("async");
        if !copies && !accesses {
            return None;
        }
        let near = self.chosen.all().find_map(space).is_some_and(|space| space != StateSpace::Global);
        let advice = self.chosen.all().any(|word| word.starts_with("L1::") || word.starts_with("L2::"));
        let takes_policy = entry.syntax.operand("policy").is_some();
        let policy = takes_policy && inst.operands.len() == entry.syntax.operands.len();
        if near && advice && accesses {
            Some("advice on caches is for global memory")
        } else if self.chosen.word("L1").is_some() && self.chosen.word("cop").is_some() {
            Some("an eviction priority does not go with a cache operator")
        } else if policy != self.chosen.has("L2::cache_hint") {
            Some("a cache policy and .L2::cache_hint go together")
        } else {
            None
        }
    }

    /// What goes around the L1 cache is no less than 16 bytes.
    fn whole_lines(&self, inst: &Instruction<'_, '_>) -> Option<&'static str> {
        let around = self.opcode == "cp" && self.chosen.has("cg");
        (around && number(&inst.operands, 2) != Some(16)).then_some("16 bytes are copied by .cg")
    }

    fn address(&self, at: usize, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let base = match &operand.kind {
            OperandKind::Address(address) => &address.base,
            OperandKind::Element(symbol, _) if self.opcode == "mov" => {
                return self.moved_address(symbol, operand);
            }
            OperandKind::Element(..) => operand,
            OperandKind::Symbol(..) if self.opcode == "cp" => operand,
            OperandKind::Symbol(..) if matches!(self.opcode, "cvta" | "mapa" | "getctarank") => operand,
            OperandKind::Symbol(symbol, offset) if self.opcode == "mov" => {
                return match symbol {
                    _ if is_opaque(symbol) && !self.chosen.has("u64") => {
                        self.mismatch(operand, "the handle of a texture, a sampler or a surface is .u64")
                    }
                    Symbol::Function(_) if *offset != 0 => {
                        self.mismatch(operand, "nothing is added to the address of a function")
                    }
                    // NVIDIA's assembler overlooks it where something is added.
                    _ if *offset != 0 => Ok(()),
                    _ => self.moved_address(symbol, operand),
                };
            }
            _ => return Ok(()),
        };
        let accesses = matches!(self.opcode, "ld" | "ldu" | "st") && !self.chosen.has("async")
            || self.opcode == "multimem" && self.chosen.has("st");
        match &base.kind {
            OperandKind::Symbol(symbol, _) if is_opaque(symbol) && accesses => {
                return self.mismatch(base, "textures, samplers and surfaces are not accessed as memory");
            }
            _ => {}
        }
        if let OperandKind::Register(id) = base.kind
            && self.context.register(id).ty.size() == 4
            && self.needs_whole_address()
        {
            return self.mismatch(
                base,
                "an address of 64 bits is required outside .shared, .local, .const and .param",
            );
        }
        let Some(allowed) = self.allowed(at) else { return Ok(()) };
        match (&base.kind, allowed) {
            (OperandKind::Immediate(_), Allowed::One(StateSpace::Local)) => Ok(()),
            (OperandKind::Immediate(_), _) => {
                self.mismatch(base, "a number is an address in .local memory only")
            }
            (OperandKind::Symbol(symbol, _) | OperandKind::Element(symbol, _), allowed) => {
                match self.space_of(symbol) {
                    Some(space) if !allowed.has(space) => {
                        let what = format!("the address is in another state space, .{}", space.name());
                        self.mismatch(base, what)
                    }
                    None if self.opcode == "cvta" => {
                        self.mismatch(base, "functions are in none of these state spaces")
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Of the addresses that moves give, those of global memory do not fit 32 bits.
    fn moved_address(&self, symbol: &Symbol<'_, '_>, operand: &Operand<'_, '_>) -> Result<(), Problem> {
        let narrow = self.chosen.ty("T").is_some_and(|ty| ty.bits() == 32);
        match self.space_of(symbol) {
            Some(StateSpace::Global) if narrow => {
                self.mismatch(operand, "the address of a .global variable has 64 bits")
            }
            _ => Ok(()),
        }
    }

    /// Whether 32 bits say too little: for these, NVIDIA's assembler wants the whole of an address that is global or generic.
    fn needs_whole_address(&self) -> bool {
        let anywhere = matches!(
            self.opcode,
            "ld" | "ldu"
                | "st"
                | "atom"
                | "red"
                | "mbarrier"
                | "multimem"
                | "prefetch"
                | "prefetchu"
                | "discard"
                | "applypriority"
        );
        let space = self.chosen.all().find_map(space);
        let others = self.chosen.has("async") || self.chosen.has("tensormap");
        anywhere && !others && matches!(space, None | Some(StateSpace::Global))
    }

    /// Where the operand's address must be, if that is known from the modifiers.
    fn allowed(&self, at: usize) -> Option<Allowed> {
        use StateSpace::{Global, Shared};
        let said = || {
            let space = self.chosen.all().find_map(space);
            Some(space.map_or(Allowed::Generic, Allowed::One))
        };
        match self.opcode {
            "cp" if self.chosen.has("mbarrier") => said(),
            "cp" if self.chosen.has("tensor") => {
                // A variable that is a map is global, and all else is shared.
                let map = usize::from(self.chosen.word("to").is_some());
                Some(Allowed::One(if at == map { Global } else { Shared }))
            }
            "cp" if self.chosen.has("async") && !self.chosen.has("bulk") => {
                [Allowed::One(Shared), Allowed::One(Global)].get(at).copied()
            }
            "cp" if self.chosen.has("bulk") => {
                let spaces: Vec<_> = self.chosen.all().filter_map(space).collect();
                match (at, &spaces[..]) {
                    (0 | 1, [_, _]) => Some(Allowed::One(spaces[at])),
                    (0, [only]) => Some(Allowed::One(*only)),
                    (3, _) => Some(Allowed::One(Shared)),
                    _ => None,
                }
            }
            "mbarrier" | "mapa" | "getctarank" => Some(Allowed::One(Shared)),
            "prefetchu" => Some(Allowed::One(Global)),
            "tensormap" if self.chosen.has("cp_fenceproxy") => {
                [Allowed::One(Global), Allowed::One(Shared)].get(at).copied()
            }
            "ld" | "ldu" | "st" | "atom" | "red" | "multimem" | "prefetch" | "applypriority" | "discard"
            | "cvta" | "createpolicy" | "tensormap" | "ldmatrix" | "stmatrix" | "wmma" => said(),
            _ => None,
        }
    }

    /// Where a variable is. Opaque ones are known by their handles, and a function's parameters may be moved to local memory.
    fn space_of(&self, symbol: &Symbol<'_, '_>) -> Option<StateSpace> {
        let variable = match symbol {
            Symbol::Local(id) => self.context.variables.get(id.0 as usize)?.declaration,
            Symbol::Global(variable, _) => *variable,
            Symbol::Function(_) => return None,
        };
        let by_address = matches!(self.opcode, "mbarrier" | "cvta" | "mapa" | "getctarank");
        (by_address || !is_opaque(symbol)).then_some(variable.space)
    }
}

/// Whether this is a texture, a sampler or a surface of the module.
fn is_opaque(symbol: &Symbol<'_, '_>) -> bool {
    match symbol {
        Symbol::Global(variable, _) => {
            matches!(variable.ty, Type::Texref | Type::Samplerref | Type::Surfref)
        }
        Symbol::Local(_) | Symbol::Function(_) => false,
    }
}

impl Allowed {
    fn has(self, space: StateSpace) -> bool {
        match self {
            Allowed::One(one) => one == space,
            Allowed::Generic => {
                matches!(space, StateSpace::Global | StateSpace::Shared | StateSpace::Local)
            }
        }
    }
}

/// The state space that a modifier names.
fn space(word: &str) -> Option<StateSpace> {
    let (word, _) = word.split_once("::").unwrap_or((word, ""));
    match word {
        "global" => Some(StateSpace::Global),
        "shared" => Some(StateSpace::Shared),
        "local" => Some(StateSpace::Local),
        "const" => Some(StateSpace::Const),
        "param" => Some(StateSpace::Param),
        _ => None,
    }
}
