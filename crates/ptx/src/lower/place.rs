//! Where variables and parameters live, and the memory that an address operand means.

use simt_ir::{
    Access, CLUSTER_STRIDE, Convert, FunctionBuilder, IntBinary, IntCmp, Op, Refusal, Shift, Space,
    SpecialReg, Type, Value, Var,
};

use super::body::Body;
use super::links::Links;
use crate::ast::{Component, StateSpace, Variable};
use crate::isa::{Problem, Ty};
use crate::resolve::{Operand, OperandKind, ResolvedFunction, Role, Symbol, VariableId};

/// Where a variable of the function is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// At this offset of the function's frame in the local window.
    Frame(u32),
    /// At this offset of the kernel's parameters.
    KernelParam(u32),
    /// In no memory: a parameter that is a number, passed as a value.
    Value(Var),
    /// In the local window, at an address that the caller passed.
    Passed(Var),
    /// At this offset of the shared window.
    Shared(u32),
}

/// Places of a function's variables, by [`VariableId`].
#[derive(Debug, Default)]
pub(crate) struct Places {
    places: Vec<Place>,
    frame_bytes: u64,
    frame_align: u32,
}

/// What an address operand means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory {
    /// Memory at `base` plus `offset`.
    At { space: Space, base: Value, offset: i64 },
    /// A parameter that is in no memory, from byte `offset`.
    Value { var: Var, offset: i64 },
}

/// Whether parameters of this declaration are passed by address rather than as a value.
pub(crate) fn is_aggregate(variable: &Variable<'_>) -> bool {
    !variable.dimensions.is_empty() || variable.vector.is_some() || variable.ty.size() > 8
}

/// The IR type in which a parameter that is no aggregate is passed: an integer, whatever its type, so that declarations that differ in
/// this only agree.
pub(crate) fn value_type(variable: &Variable<'_>) -> Type {
    let ir = Ty::from_name(variable.ty.name()).map_or(Type::I64, Ty::ir);
    ir.as_int().unwrap_or(ir)
}

/// Offsets of a kernel's parameters, and the bytes of all.
pub(crate) fn kernel_params(params: &[Variable<'_>]) -> Option<(Vec<u32>, u32)> {
    let mut end = 0u64;
    let mut offsets = Vec::with_capacity(params.len());
    for param in params {
        end = end.checked_next_multiple_of(param.alignment().max(1))?;
        offsets.push(u32::try_from(end).ok()?);
        end = end.checked_add(param.size()?)?;
    }
    Some((offsets, u32::try_from(end).ok()?))
}

impl Places {
    /// Decides where each variable is.
    pub fn new(
        b: &mut FunctionBuilder,
        links: &Links<'_>,
        func: &ResolvedFunction<'_, '_>,
    ) -> Result<Places, Problem> {
        let in_memory = addressed_variables(func);
        let too_large = |variable: &Variable<'_>| {
            Problem::mismatch(variable.span, "the size of this variable is not known or too large")
        };
        let offsets = kernel_params(&func.function.params);
        let mut places = Places { places: Vec::new(), frame_bytes: 0, frame_align: 1 };
        for (index, local) in func.variables.iter().enumerate() {
            let variable = local.declaration;
            let place = match (variable.space, local.role) {
                (StateSpace::Shared, _) => links.shared_offset(variable, local.index).map(Place::Shared),
                (StateSpace::Param, Role::Param(n)) if func.function.is_entry => offsets
                    .as_ref()
                    .and_then(|(offsets, _)| offsets.get(n as usize))
                    .map(|o| Place::KernelParam(*o)),
                (StateSpace::Param, Role::Param(_) | Role::Return(_)) if is_aggregate(variable) => {
                    Some(Place::Passed(b.var(Type::I64)))
                }
                (StateSpace::Param, _) if !is_aggregate(variable) && !in_memory[index] => {
                    Some(Place::Value(b.var(value_type(variable))))
                }
                _ => places.reserve(variable).map(Place::Frame),
            };
            places.places.push(place.ok_or_else(|| too_large(variable))?);
        }
        if u32::try_from(places.frame_bytes).is_err() {
            return Err(Problem::mismatch(
                func.function.span,
                "the function's local variables are too large",
            ));
        }
        Ok(places)
    }

    fn reserve(&mut self, variable: &Variable<'_>) -> Option<u32> {
        let align = variable.alignment().max(1);
        let offset = self.frame_bytes.checked_next_multiple_of(align)?;
        self.frame_bytes = offset.checked_add(variable.size()?)?;
        self.frame_align = self.frame_align.max(u32::try_from(align).ok()?);
        u32::try_from(offset).ok()
    }

    /// Where the variable is.
    pub fn get(&self, id: VariableId) -> Place {
        self.places[id.0 as usize]
    }

    /// Bytes of the function's frame.
    pub fn frame_bytes(&self) -> u32 {
        self.frame_bytes as u32
    }

    /// Alignment of the frame.
    pub fn frame_align(&self) -> u32 {
        self.frame_align
    }
}

/// For each variable whether something other than an access or a call names it: it then needs an address.
fn addressed_variables(func: &ResolvedFunction<'_, '_>) -> Vec<bool> {
    fn visit(operand: &Operand<'_, '_>, addressed: &mut [bool]) {
        match &operand.kind {
            OperandKind::Symbol(Symbol::Local(id), _) | OperandKind::Element(Symbol::Local(id), _) => {
                addressed[id.0 as usize] = true;
            }
            OperandKind::Vector(list) => list.iter().for_each(|o| visit(o, addressed)),
            OperandKind::Pair(a, b) => {
                visit(a, addressed);
                visit(b, addressed);
            }
            _ => {}
        }
    }
    let mut addressed = vec![false; func.variables.len()];
    for inst in &func.instructions {
        if inst.syntax.opcode.text != "call" {
            inst.operands.iter().for_each(|o| visit(o, &mut addressed));
        }
    }
    addressed
}

/// The IR's window for a state space modifier; generic without one.
pub(crate) fn space_of(word: &str, is_kernel: bool) -> Space {
    match word {
        "global" => Space::Global,
        "const" => Space::Const,
        "local" => Space::Local,
        "param::entry" => Space::Param,
        "param::func" => Space::Local,
        "param" if is_kernel => Space::Param,
        "param" => Space::Local,
        "" => Space::Generic,
        _ => Space::Shared,
    }
}

impl<'r> Body<'r> {
    /// Whether a kernel is being lowered.
    pub fn is_kernel(&self) -> bool {
        self.func.function.is_entry
    }

    /// The memory that `[…]` means in the state space of the modifier `space`, empty for generic addresses.
    pub fn memory(&mut self, operand: &'r Operand<'r, 'r>, space: &str) -> Memory {
        let (at, offset) = match &operand.kind {
            OperandKind::Address(address) => (&address.base, address.offset),
            OperandKind::Register(_) | OperandKind::Symbol(..) => (operand, 0),
            OperandKind::Element(symbol, index) => return self.element(*symbol, index, 0, operand),
            _ => {
                self.fail(Problem::mismatch(operand.span, "an address is required"));
                return self.nowhere();
            }
        };
        let value = match &at.kind {
            OperandKind::Register(id) => Some(self.read(*id, 0)),
            OperandKind::Component(id, Component::Element(n)) => Some(self.read(*id, usize::from(*n))),
            OperandKind::Immediate(value) => Some(self.b.constant(Type::I64, value.integer().unwrap_or(0))),
            _ => None,
        };
        if let Some(value) = value {
            if space == "shared::cluster" {
                let base = self.in_cluster(value);
                return Memory::At { space: Space::Generic, base, offset };
            }
            let space = space_of(space, self.is_kernel());
            let value = if space == Space::Shared { self.own_place(value) } else { value };
            return self.at_value(value, space, offset);
        }
        match &at.kind {
            OperandKind::Symbol(symbol, more) => {
                let offset = more.wrapping_add(offset);
                self.at_symbol(*symbol, offset, at)
            }
            OperandKind::Element(symbol, index) => self.element(*symbol, index, offset, at),
            _ => {
                self.fail(Problem::mismatch(operand.span, "not an address"));
                self.nowhere()
            }
        }
    }

    /// An element of an array, and bytes added. What a register says is counted in 32 bits without a sign, as NVIDIA's assembler has it.
    fn element(
        &mut self,
        symbol: Symbol<'r, 'r>,
        index: &Operand<'_, '_>,
        offset: i64,
        operand: &Operand<'_, '_>,
    ) -> Memory {
        let size = match symbol {
            Symbol::Local(id) => self.func.variables[id.0 as usize].declaration.ty.size(),
            Symbol::Global(variable, _) => variable.ty.size(),
            Symbol::Function(_) => 1,
        };
        let (register, more) = match &index.kind {
            OperandKind::Register(id) => (*id, 0),
            OperandKind::RegisterOffset(id, more) => (*id, *more),
            kind => {
                let OperandKind::Immediate(value) = kind else {
                    self.fail(Problem::mismatch(index.span, "an index is a register or a constant"));
                    return self.nowhere();
                };
                let bytes = size.wrapping_mul(value.integer().unwrap_or(0)) as i64;
                return self.at_symbol(symbol, bytes.wrapping_add(offset), operand);
            }
        };
        let Memory::At { space, base, offset } = self.at_symbol(symbol, offset, operand) else {
            self.fail(Problem::mismatch(operand.span, "this parameter has no address"));
            return self.nowhere();
        };
        let index = self.read(register, 0);
        let index = self.as_int(index);
        let index = match self.b.func().ty(index).bits() {
            ..32 => self.b.inst(Op::Convert(Convert::ZExt), &[index], Type::I32),
            _ => self.fit(index, Type::I32),
        };
        let (more, size) = (self.b.constant(Type::I32, more as u64), self.b.constant(Type::I32, size));
        let index = self.b.inst(Op::Int(IntBinary::Add), &[index, more], Type::I32);
        let bytes = self.b.inst(Op::Int(IntBinary::Mul), &[index, size], Type::I32);
        let ty = self.b.func().ty(base);
        let bytes = if ty == Type::I64 { self.widen(bytes) } else { bytes };
        Memory::At { space, base: self.b.inst(Op::Int(IntBinary::Add), &[base, bytes], ty), offset }
    }

    /// The address of an element of an array, in the array's space.
    pub fn address_of_element(
        &mut self,
        symbol: Symbol<'r, 'r>,
        index: &Operand<'_, '_>,
        operand: &Operand<'_, '_>,
    ) -> Value {
        let memory = self.element(symbol, index, 0, operand);
        self.address_in(memory, operand)
    }

    fn nowhere(&mut self) -> Memory {
        Memory::At { space: Space::Generic, base: self.b.constant(Type::I64, 0), offset: 0 }
    }

    /// The generic address of a `.shared` one of any block of the cluster.
    pub fn in_cluster(&mut self, address: Value) -> Value {
        let mut distance = self.as_int(address);
        if self.b.func().ty(distance) != Type::I32 {
            distance = self.fit(distance, Type::I32);
        }
        // The windows of all ranks that an address can name lie behind the first one's.
        let distance = self.widen(distance);
        let distance = self.own_offset(distance);
        self.b.inst(Op::ToGeneric(Space::Shared), &[distance], Type::I64)
    }

    /// What tells the executing block's shared addresses from those of others (see [`simt_ir::CLUSTER_STRIDE`]), as `I32`. Nothing in a
    /// program where nobody can tell: its addresses are offsets, whatever the block.
    pub fn own_window(&mut self) -> Option<Value> {
        if !self.links.names_blocks {
            return None;
        }
        let rank = self.b.inst(Op::SpecialReg(SpecialReg::ClusterCtaRank), &[], Type::I32);
        let bits = self.b.constant(Type::I32, CLUSTER_STRIDE.trailing_zeros().into());
        Some(self.b.inst(Op::Shift(Shift::Left), &[rank, bits], Type::I32))
    }

    /// A shared address as a distance from the beginning of the own window.
    pub fn own_offset(&mut self, address: Value) -> Value {
        let Some(own) = self.own_window() else { return address };
        let address = self.as_int(address);
        let ty = self.b.func().ty(address);
        let own = if ty == Type::I64 { self.widen(own) } else { own };
        self.b.inst(Op::Int(IntBinary::Sub), &[address, own], ty)
    }

    /// As [`own_offset`](Self::own_offset), of an address that must be the executing block's.
    fn own_place(&mut self, address: Value) -> Value {
        let offset = self.own_offset(address);
        if self.links.names_blocks {
            let ty = self.b.func().ty(offset);
            let most = self.b.constant(ty, CLUSTER_STRIDE - 1);
            let of_another = self.b.inst(Op::IntCmp(IntCmp::GtU), &[offset, most], Type::Pred);
            self.b.effect(Op::Refuse(Refusal::Illegal), &[of_another]);
        }
        offset
    }

    /// The shared address at a distance of 64 bits from the beginning of the own window.
    pub fn own_address(&mut self, distance: Value) -> Value {
        let Some(own) = self.own_window() else { return distance };
        let own = self.widen(own);
        self.b.inst(Op::Int(IntBinary::Add), &[distance, own], Type::I64)
    }

    /// Addresses in the shared and local windows keep their width; elsewhere they are 64 bits.
    fn at_value(&mut self, value: Value, space: Space, offset: i64) -> Memory {
        let value = self.as_int(value);
        let narrow = self.b.func().ty(value) == Type::I32;
        let base = if narrow && !matches!(space, Space::Shared | Space::Local) {
            self.b.inst(Op::Convert(Convert::ZExt), &[value], Type::I64)
        } else {
            value
        };
        Memory::At { space, base, offset }
    }

    fn at_symbol(&mut self, symbol: Symbol<'r, 'r>, offset: i64, operand: &Operand<'_, '_>) -> Memory {
        match symbol {
            Symbol::Local(id) => match self.places.get(id) {
                Place::Frame(at) => {
                    let base = self.b.inst(Op::LocalBase, &[], Type::I64);
                    Memory::At { space: Space::Local, base, offset: offset.wrapping_add(i64::from(at)) }
                }
                Place::KernelParam(at) => {
                    let base = self.b.constant(Type::I64, 0);
                    Memory::At { space: Space::Param, base, offset: offset.wrapping_add(i64::from(at)) }
                }
                Place::Passed(var) => Memory::At { space: Space::Local, base: self.b.read(var), offset },
                Place::Shared(at) => {
                    let base = self.b.constant(Type::I32, u64::from(at));
                    Memory::At { space: Space::Shared, base, offset }
                }
                Place::Value(var) => Memory::Value { var, offset },
            },
            Symbol::Global(variable, index) => {
                match (variable.space, self.links.shared_offset(variable, index)) {
                    (StateSpace::Shared, Some(at)) => {
                        let base = self.b.constant(Type::I32, u64::from(at));
                        Memory::At { space: Space::Shared, base, offset }
                    }
                    (StateSpace::Global | StateSpace::Const, _) => {
                        let global = self.links.global(variable, index);
                        let base = self.b.inst(Op::GlobalAddr(global), &[], Type::I64);
                        let space =
                            if variable.space == StateSpace::Const { Space::Const } else { Space::Global };
                        Memory::At { space, base, offset }
                    }
                    _ => {
                        let message =
                            format!("a module variable in .{} is not supported yet", variable.space.name());
                        self.fail(Problem::new(crate::LoadErrorKind::Unsupported, operand.span, message));
                        self.nowhere()
                    }
                }
            }
            Symbol::Function(_) => {
                self.fail(Problem::mismatch(operand.span, "a function is not memory"));
                self.nowhere()
            }
        }
    }

    /// The address of a variable in the window of its space, plus `offset`, as `I64`; a function's is its token.
    pub fn address_of(&mut self, symbol: Symbol<'r, 'r>, offset: i64, operand: &Operand<'_, '_>) -> Value {
        if let Symbol::Function(function) = symbol {
            let callable = self.links.function(function.name.text).filter(|_| !function.is_entry);
            return match callable {
                Some(func) => self.b.inst(Op::FuncToken(func), &[], Type::I64),
                None => {
                    // A kernel has a token too, to be launched by, and so has a function that is only declared.
                    let token = self.links.token(function.name.text);
                    self.b.constant(Type::I64, token)
                }
            };
        }
        let memory = self.at_symbol(symbol, offset, operand);
        self.address_in(memory, operand)
    }

    fn address_in(&mut self, memory: Memory, operand: &Operand<'_, '_>) -> Value {
        match memory {
            Memory::At { space, base, offset } => {
                let base = match self.b.func().ty(base) {
                    Type::I32 => self.widen(base),
                    _ => base,
                };
                let address = self.plus(base, offset);
                if space == Space::Shared { self.own_address(address) } else { address }
            }
            Memory::Value { .. } => {
                self.fail(Problem::mismatch(operand.span, "this parameter has no address"));
                self.b.constant(Type::I64, 0)
            }
        }
    }

    fn plus(&mut self, base: Value, offset: i64) -> Value {
        if let Some(bits) = self.b.known_constant(base) {
            return self.b.constant(Type::I64, bits.wrapping_add(offset as u64));
        }
        if offset == 0 {
            return base;
        }
        let offset = self.b.constant(Type::I64, offset as u64);
        self.b.inst(Op::Int(IntBinary::Add), &[base, offset], Type::I64)
    }

    fn widen(&mut self, value: Value) -> Value {
        match self.b.known_constant(value) {
            Some(bits) => self.b.constant(Type::I64, bits),
            None => self.b.inst(Op::Convert(Convert::ZExt), &[value], Type::I64),
        }
    }

    /// Reads `lanes` elements of type `ty` of a parameter that is in no memory. Bytes beyond it are zero.
    pub fn read_value(&mut self, var: Var, offset: i64, ty: Type, lanes: usize) -> Vec<Value> {
        let whole = self.b.read(var);
        let bits = i64::from(self.b.var_ty(var).bits());
        (0..lanes as i64)
            .map(|lane| {
                let at = offset.saturating_add(lane * i64::from(ty.bytes())).saturating_mul(8);
                if at < 0 || at >= bits || i64::from(ty.bits()) > bits {
                    return self.b.constant(ty, 0);
                }
                let mut value = whole;
                if at != 0 {
                    let amount = self.b.constant(Type::I32, at as u64);
                    let int = self.b.var_ty(var);
                    value = self.b.inst(Op::Shift(Shift::RightU), &[value, amount], int);
                }
                self.fit(value, ty)
            })
            .collect()
    }

    /// Writes elements into a parameter that is in no memory. Bytes beyond it are dropped.
    pub fn write_value(&mut self, var: Var, offset: i64, values: &[Value]) {
        let ty = self.b.var_ty(var);
        for (lane, value) in values.iter().enumerate() {
            let value = self.as_int(*value);
            let part = self.b.func().ty(value);
            let at = offset.saturating_add(lane as i64 * i64::from(part.bytes())).saturating_mul(8);
            if part == ty && at == 0 {
                self.b.write(var, value);
                continue;
            }
            if at < 0 || at >= i64::from(ty.bits()) || part.bits() > ty.bits() {
                continue;
            }
            let old = self.b.read(var);
            let keep = self.b.constant(ty, !(part.mask() << at));
            let kept = self.b.inst(Op::Int(IntBinary::And), &[old, keep], ty);
            let mut new = if part.bits() < ty.bits() {
                self.b.inst(Op::Convert(Convert::ZExt), &[value], ty)
            } else {
                value
            };
            let amount = self.b.constant(Type::I32, at as u64);
            new = self.b.inst(Op::Shift(Shift::Left), &[new, amount], ty);
            let merged = self.b.inst(Op::Int(IntBinary::Or), &[kept, new], ty);
            self.b.write(var, merged);
        }
    }

    /// Loads from the function's own frame or the local window.
    pub fn load_local(&mut self, base: Value, offset: i64, ty: Type) -> Value {
        self.b.inst(Op::Load(Access::weak(Space::Local, offset)), &[base], ty)
    }

    /// Stores to the function's own frame or the local window.
    pub fn store_local(&mut self, base: Value, offset: i64, value: Value) {
        self.b.effect(Op::Store(Access::weak(Space::Local, offset)), &[base, value]);
    }
}
