//! What an expansion of the instruction table works with: the operands of one instruction by name, and short ways to
//! write IR.

use simt_ir::{
    Convert, FloatBinary, FloatCmp, FloatMode, FloatUnary, IntBinary, IntCmp, IntUnary, MinMax, Op, Rounding,
    Shift, SpecialReg, Type, Value,
};

use super::body::Body;
use crate::ast::{self, Component, Immediate};
use crate::isa::syntax::{Chosen, OperandSpec, Shape};
use crate::isa::{Found, Problem, Ty};
use crate::resolve::{Instruction, Operand, OperandKind, RegisterId};
use crate::special::SpecialRegister;

/// One instruction on its way into the IR.
pub(crate) struct Expander<'x, 'r> {
    /// The function under construction.
    pub body: &'x mut Body<'r>,
    /// The instruction.
    pub inst: &'r Instruction<'r, 'r>,
    pub(super) found: &'x Found,
    /// Results are written only where this holds.
    pub(super) guard: Option<Value>,
}

/// The instruction: modifiers and operands. The instruction has been checked against its entry, so that what the entry
/// requires is there.
impl<'r> Expander<'_, 'r> {
    /// The type in a slot of the entry.
    pub fn ty(&self, slot: &str) -> Ty {
        self.found.chosen.ty(slot).expect("the entry has this type slot")
    }

    /// The words the instruction chose.
    pub fn chosen(&self) -> &Chosen {
        &self.found.chosen
    }

    /// Whether the instruction has this modifier.
    pub fn has(&self, word: &str) -> bool {
        self.found.chosen.has(word)
    }

    /// The word in a slot of the entry, empty if it was left out.
    pub fn word(&self, slot: &str) -> &'static str {
        self.found.chosen.word(slot).unwrap_or("")
    }

    /// Elements of a vector access.
    pub fn lanes(&self) -> usize {
        self.found.chosen.lanes()
    }

    fn spec(&self, name: &str) -> &'static OperandSpec {
        self.found.entry.syntax.operand(name).expect("the entry has this operand")
    }

    /// The type of an operand, by its entry.
    pub fn ty_of(&self, name: &str) -> Ty {
        match self.spec(name).shape {
            Shape::Value(spec) | Shape::Fragment(spec) => self.found.chosen.resolve(spec).expect("checked"),
            _ => Ty::Pred,
        }
    }

    /// The operand as written; `None` if it was left out.
    pub fn operand(&self, name: &str) -> Option<&'r Operand<'r, 'r>> {
        let (index, second) = self.found.entry.syntax.position(name)?;
        let operand = self.inst.operands.get(index)?;
        match (&operand.kind, second) {
            (OperandKind::Pair(first, _), false) => Some(first),
            (OperandKind::Pair(_, other), true) => Some(other),
            (_, false) => Some(operand),
            (_, true) => None,
        }
    }

    /// Whether a result is asked for.
    pub fn wants(&self, name: &str) -> bool {
        self.operand(name).is_some_and(|o| !matches!(o.kind, OperandKind::Sink))
    }

    /// An operand's value, of the IR type that its entry's type has.
    pub fn src(&mut self, name: &str) -> Value {
        let ir = self.ty_of(name).ir();
        self.src_as(name, ir)
    }

    /// An operand's value as another type, no wider than the operand.
    pub fn src_as(&mut self, name: &str, ty: Type) -> Value {
        let operand = self.operand(name).expect("the operand is required");
        self.value_as(operand, ty)
    }

    /// An operand's value if it is there.
    pub fn src_if(&mut self, name: &str) -> Option<Value> {
        self.operand(name).map(|_| self.src(name))
    }

    /// The value of an operand.
    pub fn value_as(&mut self, operand: &'r Operand<'r, 'r>, ty: Type) -> Value {
        match &operand.kind {
            OperandKind::Register(id) => {
                let value = self.body.read(*id, 0);
                self.fit(value, ty)
            }
            OperandKind::Component(id, Component::Element(n)) => {
                let value = self.body.read(*id, usize::from(*n));
                self.fit(value, ty)
            }
            OperandKind::Special(register, component) => {
                let axis = match component {
                    Some(Component::Element(n)) => *n,
                    _ => 0,
                };
                let value = self.special_element(*register, axis);
                let wanted = Ty::from_name(register.describe().ty.name()).map_or(Type::I32, Ty::ir);
                let value = if self.bits(value) < wanted.bits() { self.zext(value, wanted) } else { value };
                if self.bits(value) < ty.bits() { self.zext(value, ty) } else { self.fit(value, ty) }
            }
            OperandKind::Immediate(value) => self.imm(ty, immediate_bits(*value, ty)),
            OperandKind::Not(inner) => {
                let value = self.value_as(inner, Type::Pred);
                self.un(IntUnary::Not, value)
            }
            OperandKind::Vector(list) if list.len() == 1 => self.value_as(&list[0], ty),
            _ => {
                self.refuse(operand, "an operand of this kind is not a value");
                self.imm(ty, 0)
            }
        }
    }

    /// The two halves of a `.b128` operand, the low one first.
    pub fn src_pair(&mut self, name: &str) -> [Value; 2] {
        let operand = self.operand(name).expect("the operand is required").alone();
        match &operand.kind {
            OperandKind::Register(id) => [self.body.read(*id, 0), self.body.read(*id, 1)],
            // The assembler gives a number 64 bits, with zeros above them.
            _ => [self.value_as(operand, Type::I64), self.imm(Type::I64, 0)],
        }
    }

    /// Writes the two halves of a `.b128` register.
    pub fn set_pair(&mut self, name: &str, halves: [Value; 2]) {
        if let Some(OperandKind::Register(id)) = self.operand(name).map(|o| &o.alone().kind) {
            for (element, half) in halves.into_iter().enumerate() {
                self.body.write(*id, element, half, false, self.guard);
            }
        }
    }

    /// The element operands of a vector, or the operand itself if it is none.
    pub fn elements(&self, name: &str) -> Vec<&'r Operand<'r, 'r>> {
        match self.operand(name) {
            None => Vec::new(),
            Some(operand) => match &operand.kind {
                OperandKind::Vector(list) => list.iter().collect(),
                _ => vec![operand],
            },
        }
    }

    /// The values of a vector operand, each as `ty`.
    pub fn src_lanes(&mut self, name: &str, ty: Type) -> Vec<Value> {
        if let Some(Operand { kind: OperandKind::Special(register, None), .. }) = self.operand(name) {
            return (0..self.lanes() as u8)
                .map(|axis| {
                    let value = self.special_element(*register, axis);
                    self.fit(value, ty)
                })
                .collect();
        }
        if let Some(Operand { kind: OperandKind::Register(id), .. }) = self.operand(name)
            && self.body.func.registers[id.0 as usize].vector.is_some()
        {
            return (0..self.lanes())
                .map(|lane| {
                    let value = self.body.read(*id, lane);
                    self.fit(value, ty)
                })
                .collect();
        }
        self.elements(name).into_iter().map(|element| self.value_as(element, ty)).collect()
    }

    /// Writes the lanes of a vector result; `ty` says how they fill wider registers.
    pub fn set_lanes(&mut self, name: &str, ty: Ty, values: &[Value]) {
        if let Some(Operand { kind: OperandKind::Register(id), .. }) = self.operand(name)
            && self.body.func.registers[id.0 as usize].vector.is_some()
        {
            for (lane, value) in values.iter().enumerate() {
                self.body.write(*id, lane, *value, ty.is_signed(), self.guard);
            }
            return;
        }
        for (element, value) in self.elements(name).into_iter().zip(values) {
            self.set_operand(element, ty, *value);
        }
    }

    /// The IR type of the variable behind a register operand.
    pub fn natural(&self, operand: &Operand<'_, '_>) -> Option<Type> {
        match &operand.kind {
            OperandKind::Register(id) | OperandKind::Component(id, _) => Some(self.body.register_ty(*id)),
            OperandKind::Vector(list) => list.iter().find_map(|o| self.natural(o)),
            _ => None,
        }
    }

    /// The type in which to move the bits of `ty` to or from an operand: its register's own if the width is the same, so that floats
    /// kept in untyped registers stay floats.
    pub fn moving(&self, name: &str, ty: Ty) -> Type {
        self.operand(name)
            .and_then(|operand| self.natural(operand))
            .filter(|natural| {
                natural.bits() == ty.ir().bits() && (ty.ir() == Type::Pred) == (*natural == Type::Pred)
            })
            .unwrap_or_else(|| ty.ir())
    }

    /// Gives a result its value. Nothing happens if the result is not wanted.
    pub fn set(&mut self, name: &str, value: Value) {
        let ty = self.ty_of(name);
        if let Some(operand) = self.operand(name) {
            self.set_operand(operand, ty, value);
        }
    }

    /// Gives a register its value; wider registers are filled as `ty` says.
    pub fn set_operand(&mut self, operand: &'r Operand<'r, 'r>, ty: Ty, value: Value) {
        match &operand.kind {
            OperandKind::Register(id) => {
                let mut value = value;
                if self.body.func.registers[id.0 as usize].ty == ast::Type::B128 {
                    let low = self.body.as_int(value);
                    value = self.extend(ty.is_signed(), low, Type::I64);
                    // PTX has the sign go all the way up. After less than 64 bits the assembler (13.0) leaves chance bits here.
                    let high = match ty.is_signed() {
                        true => self.shift_imm(Shift::RightS, value, 63),
                        false => self.imm(Type::I64, 0),
                    };
                    self.body.write(*id, 1, high, false, self.guard);
                }
                self.body.write(*id, 0, value, ty.is_signed(), self.guard);
            }
            OperandKind::Component(id, Component::Element(n)) => {
                self.body.write(*id, usize::from(*n), value, ty.is_signed(), self.guard);
            }
            OperandKind::Vector(list) if list.len() == 1 => self.set_operand(&list[0], ty, value),
            OperandKind::Sink => {}
            _ => self.refuse(operand, "this cannot be written"),
        }
    }

    /// Gives a register a value of its width.
    pub fn set_register(&mut self, id: RegisterId, value: Value) {
        self.body.write(id, 0, value, false, self.guard);
    }

    /// The instruction cannot be expanded: an operand is not what it must be.
    pub fn refuse(&mut self, operand: &Operand<'_, '_>, why: &str) {
        let message = format!("{why} for instruction '{}'", self.inst.syntax.opcode.text);
        self.body.fail(Problem::mismatch(operand.span, message));
    }

    /// The integer constant that an operand is.
    pub fn number(&mut self, name: &str) -> u64 {
        match self.operand(name).map(|o| &o.kind) {
            Some(OperandKind::Immediate(value)) => value.integer().unwrap_or(0),
            _ => 0,
        }
    }
}

/// The bits of a number as a value of `ty`.
fn immediate_bits(value: Immediate, ty: Type) -> u64 {
    let bits = match (value, ty) {
        (Immediate::Signed(v), Type::Pred) => u64::from(v != 0),
        (Immediate::Unsigned(v), Type::Pred) => u64::from(v != 0),
        (Immediate::Signed(v), _) => v as u64,
        (Immediate::Unsigned(v), _) => v,
        (Immediate::F64(bits), Type::F32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Immediate::F32(bits), Type::F64) => f64::from(f32::from_bits(bits)).to_bits(),
        (Immediate::F32(bits), _) => u64::from(bits),
        (Immediate::F64(bits), Type::I32) => u64::from((f64::from_bits(bits) as f32).to_bits()),
        (Immediate::F64(bits), _) => bits,
    };
    bits & ty.mask()
}

/// Short ways to write IR.
impl Expander<'_, '_> {
    /// Width of a value.
    pub fn bits(&self, value: Value) -> u32 {
        self.type_of(value).bits()
    }

    /// Type of a value.
    pub fn type_of(&self, value: Value) -> Type {
        self.body.b.func().ty(value)
    }

    /// The bits of a constant.
    pub fn constant(&self, value: Value) -> Option<u64> {
        self.body.b.known_constant(value)
    }

    /// The value as `ty`, which is no wider: the low bits, or the same bits.
    pub fn fit(&mut self, value: Value, ty: Type) -> Value {
        self.body.fit(value, ty)
    }

    /// A constant.
    pub fn imm(&mut self, ty: Type, bits: u64) -> Value {
        self.body.b.constant(ty, bits)
    }

    /// A constant of the type of another value.
    pub fn imm_like(&mut self, value: Value, bits: u64) -> Value {
        let ty = self.type_of(value);
        self.imm(ty, bits)
    }

    /// A special register.
    pub fn special(&mut self, register: SpecialReg) -> Value {
        self.body.b.inst(Op::SpecialReg(register), &[], register.ty())
    }

    /// An element of a special register. The fourth has nothing in it.
    fn special_element(&mut self, register: SpecialRegister, element: u8) -> Value {
        if element > 2 {
            return self.imm(Type::I32, 0);
        }
        self.special(crate::isa::special::register(register, element))
    }

    /// An operation whose result has the type of its first operand.
    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let ty = self.type_of(args[0]);
        self.body.b.inst(op, args, ty)
    }

    /// An operation with a result of type `ty`.
    pub fn op_ty(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.body.b.inst(op, args, ty)
    }

    /// Integer arithmetic.
    pub fn int(&mut self, op: IntBinary, a: Value, b: Value) -> Value {
        self.op(Op::Int(op), &[a, b])
    }

    /// Integer arithmetic with a constant.
    pub fn int_imm(&mut self, op: IntBinary, a: Value, bits: u64) -> Value {
        let b = self.imm_like(a, bits);
        self.int(op, a, b)
    }

    /// An operation on one integer.
    pub fn un(&mut self, op: IntUnary, a: Value) -> Value {
        match op {
            IntUnary::LeadingZeros | IntUnary::PopCount => self.op_ty(Op::IntUnary(op), &[a], Type::I32),
            _ => self.op(Op::IntUnary(op), &[a]),
        }
    }

    /// A shift by an `I32`.
    pub fn shift(&mut self, op: Shift, a: Value, amount: Value) -> Value {
        self.op(Op::Shift(op), &[a, amount])
    }

    /// A shift by a constant.
    pub fn shift_imm(&mut self, op: Shift, a: Value, amount: u32) -> Value {
        let amount = self.imm(Type::I32, u64::from(amount));
        self.shift(op, a, amount)
    }

    /// An integer comparison.
    pub fn cmp(&mut self, op: IntCmp, a: Value, b: Value) -> Value {
        self.op_ty(Op::IntCmp(op), &[a, b], Type::Pred)
    }

    /// An integer comparison with a constant.
    pub fn cmp_imm(&mut self, op: IntCmp, a: Value, bits: u64) -> Value {
        let b = self.imm_like(a, bits);
        self.cmp(op, a, b)
    }

    /// A floating-point comparison.
    pub fn fcmp(&mut self, op: FloatCmp, a: Value, b: Value) -> Value {
        self.op_ty(Op::FloatCmp(op), &[a, b], Type::Pred)
    }

    /// `a` where the predicate holds, else `b`.
    pub fn select(&mut self, pred: Value, a: Value, b: Value) -> Value {
        let ty = self.type_of(a);
        self.op_ty(Op::Select, &[pred, a, b], ty)
    }

    /// Floating-point arithmetic.
    pub fn float(&mut self, op: FloatBinary, mode: FloatMode, a: Value, b: Value) -> Value {
        self.op(Op::Float(op, mode), &[a, b])
    }

    /// An exact operation on one float.
    pub fn float_un(&mut self, op: FloatUnary, mode: FloatMode, a: Value) -> Value {
        self.op(Op::FloatUnary(op, mode), &[a])
    }

    /// A floating-point minimum or maximum.
    pub fn min_max(&mut self, op: MinMax, a: Value, b: Value) -> Value {
        self.op(Op::MinMax(op), &[a, b])
    }

    /// A conversion.
    pub fn convert(&mut self, op: Convert, a: Value, ty: Type) -> Value {
        self.op_ty(Op::Convert(op), &[a], ty)
    }

    /// Zeros on top, to `ty`, which may be no wider than the value already is.
    pub fn zext(&mut self, a: Value, ty: Type) -> Value {
        match self.constant(a) {
            Some(bits) => self.imm(ty, bits),
            None if self.bits(a) >= ty.bits() => self.fit(a, ty),
            None => self.convert(Convert::ZExt, a, ty),
        }
    }

    /// Sign bits on top, to `ty`, which may be no wider than the value already is.
    pub fn sext(&mut self, a: Value, ty: Type) -> Value {
        match self.constant(a) {
            Some(bits) => {
                let unused = 64 - self.bits(a);
                self.imm(ty, ((bits << unused) as i64 >> unused) as u64)
            }
            None if self.bits(a) >= ty.bits() => self.fit(a, ty),
            None => self.convert(Convert::SExt, a, ty),
        }
    }

    /// Extended by sign or by zeros.
    pub fn extend(&mut self, signed: bool, a: Value, ty: Type) -> Value {
        if signed { self.sext(a, ty) } else { self.zext(a, ty) }
    }

    /// Halves of a 32-bit value, each as `ty`; the low half is the first.
    pub fn unpack(&mut self, value: Value, ty: Type) -> [Value; 2] {
        let word = self.fit(value, Type::I32);
        let low = self.fit(word, Type::I16);
        let shifted = self.shift_imm(Shift::RightU, word, 16);
        let high = self.fit(shifted, Type::I16);
        [self.fit(low, ty), self.fit(high, ty)]
    }

    /// Two 16-bit values as one of 32.
    pub fn pack(&mut self, halves: [Value; 2]) -> Value {
        let [low, high] = halves.map(|half| {
            let half = self.fit(half, Type::I16);
            self.zext(half, Type::I32)
        });
        let high = self.shift_imm(Shift::Left, high, 16);
        self.int(IntBinary::Or, low, high)
    }

    /// Applies `compute` to the sources, for each half if `ty` is packed. It gets the type of an element.
    pub fn elementwise(
        &mut self,
        ty: Ty,
        sources: &[&str],
        mut compute: impl FnMut(&mut Self, Ty, &[Value]) -> Value,
    ) -> Value {
        let Some(half) = ty.half() else {
            let values: Vec<Value> = sources.iter().map(|name| self.src(name)).collect();
            return compute(self, ty, &values);
        };
        let mut lanes = [Vec::new(), Vec::new()];
        for name in sources {
            let value = self.src(name);
            for (lane, value) in lanes.iter_mut().zip(self.unpack(value, half.ir())) {
                lane.push(value);
            }
        }
        let [low, high] = lanes.map(|values| compute(self, half, &values));
        self.pack([low, high])
    }

    /// Rounding, `ftz` and `sat` of the instruction. Without a rounding modifier: to nearest, and contraction allowed where
    /// `contractible`.
    pub fn float_mode(&self, contractible: bool) -> FloatMode {
        let word = self.word("rnd");
        let round = match word {
            "rz" | "rzi" => Rounding::Zero,
            "rm" | "rmi" => Rounding::Down,
            "rp" | "rpi" => Rounding::Up,
            "rna" => Rounding::NearestAway,
            _ => Rounding::Nearest,
        };
        FloatMode {
            round,
            ftz: self.has("ftz"),
            sat: self.has("sat"),
            contract: contractible && word.is_empty(),
        }
    }
}
