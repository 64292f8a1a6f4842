//! One function: control flow, guards, registers.

use std::collections::HashMap;

use simt_ir::{
    Block, Convert, FunctionBuilder, IntUnary, Op, Signature, Target, Terminator, Type, Value, Var,
};

use super::expander::Expander;
use super::links::Links;
use super::place::Places;

use crate::isa::syntax::{OperandSpec, Shape};
use crate::isa::{self, Context, Found, Guarding, Kind, Problem, Ty};
use crate::resolve::{Guard, LabelId, Operand, OperandKind, RegisterId, ResolvedFunction};

/// A function under construction.
pub(crate) struct Body<'r> {
    /// Where instructions go.
    pub b: FunctionBuilder,
    /// What other functions and variables are.
    pub links: &'r Links<'r>,
    /// What is lowered.
    pub func: &'r ResolvedFunction<'r, 'r>,
    /// Where its variables and parameters are.
    pub places: Places,
    registers: Vec<Vec<Var>>,
    labels: Vec<Block>,
    carry: Option<Var>,
    ended: bool,
    problem: Option<Problem>,
}

/// Lowers one function.
pub(crate) fn lower<'r>(
    links: &'r Links<'r>,
    func: &'r ResolvedFunction<'r, 'r>,
) -> Result<simt_ir::Function, Problem> {
    let context = Context {
        version: links.version,
        sm: links.sm,
        samplers_apart: links.samplers_apart,
        registers: &func.registers,
        variables: &func.variables,
        prototypes: &func.prototypes,
        call_targets: &func.call_targets,
    };
    let found = func
        .instructions
        .iter()
        .map(|inst| isa::find(inst, &context))
        .collect::<Result<Vec<Found>, Problem>>()?;
    let signature =
        if func.function.is_entry { Signature::default() } else { super::call::signature(func.function) };
    let mut b = FunctionBuilder::new(func.function.name.text, signature);
    b.func_mut().token = links.token_if_taken(func.function.name.text);
    let registers = declare_registers(&mut b, func, &found);
    let places = Places::new(&mut b, links, func)?;
    let mut body = Body {
        b,
        links,
        func,
        places,
        registers,
        labels: Vec::new(),
        carry: None,
        ended: false,
        problem: None,
    };
    body.receive_params();
    body.instructions(&found);
    if let Some(problem) = body.problem {
        return Err(problem);
    }
    let frame = (body.places.frame_bytes(), body.places.frame_align());
    let data = body.b.func_mut();
    (data.local_bytes, data.local_align) = frame;
    Ok(body.b.finish())
}

/// One variable a register (element); `.b128` takes two. Untyped registers get the type in which instructions use them
/// most, so that floats kept in them stay floats.
fn declare_registers(
    b: &mut FunctionBuilder,
    func: &ResolvedFunction<'_, '_>,
    found: &[Found],
) -> Vec<Vec<Var>> {
    let mut uses: Vec<Uses> = vec![Uses::default(); func.registers.len()];
    for (inst, found) in func.instructions.iter().zip(found) {
        for (spec, operand) in found.entry.syntax.operands.iter().zip(&inst.operands) {
            count_uses(spec, operand, found, &mut uses);
        }
    }
    let mut all = Vec::with_capacity(func.registers.len());
    for (register, uses) in func.registers.iter().zip(&uses) {
        let ty = Ty::from_name(register.ty.name()).unwrap_or(Ty::B64);
        let ir = match (ty.kind(), ty.ir()) {
            (Kind::Bits, Type::I32) if uses.float > uses.int => Type::F32,
            (Kind::Bits, Type::I64) if ty != Ty::B128 && uses.float > uses.int => Type::F64,
            (Kind::Bits, Type::I16) if uses.half > uses.int && uses.half >= uses.bfloat => Type::F16,
            (Kind::Bits, Type::I16) if uses.bfloat > uses.int => Type::BF16,
            (_, ir) => ir,
        };
        let count = register.vector.unwrap_or(1) * if ty == Ty::B128 { 2 } else { 1 };
        all.push((0..count).map(|_| b.var(ir)).collect());
    }
    all
}

#[derive(Clone, Copy, Default)]
struct Uses {
    int: u32,
    float: u32,
    half: u32,
    bfloat: u32,
}

fn count_uses(spec: &OperandSpec, operand: &Operand<'_, '_>, found: &Found, uses: &mut [Uses]) {
    match &operand.kind {
        OperandKind::Pair(first, second) => {
            count_uses(spec, first, found, uses);
            if let Some(second_spec) = &spec.second {
                count_uses(second_spec, second, found, uses);
            }
        }
        OperandKind::Vector(list) => list.iter().for_each(|o| count_uses(spec, o, found, uses)),
        OperandKind::Register(id) => {
            let count = &mut uses[id.0 as usize];
            let Shape::Value(type_spec) = spec.shape else { return };
            match found.chosen.resolve(type_spec) {
                Some(Ty::F32 | Ty::F64) => count.float += 1,
                Some(Ty::F16) => count.half += 1,
                Some(Ty::Bf16) => count.bfloat += 1,
                Some(ty) if ty.kind() != Kind::Bits => count.int += 1,
                _ => {}
            }
        }
        OperandKind::Address(address) => {
            if let OperandKind::Register(id) = &address.base.kind {
                uses[id.0 as usize].int += 1;
            }
        }
        _ => {}
    }
}

impl<'r> Body<'r> {
    fn instructions(&mut self, found: &[Found]) {
        let func = self.func;
        self.make_label_blocks();
        let mut labels: Vec<LabelId> = (0..func.labels.len() as u32).map(LabelId).collect();
        labels.sort_by_key(|id| func.labels[id.0 as usize].at);
        let mut labels = labels.into_iter().peekable();
        for (index, (inst, found)) in func.instructions.iter().zip(found).enumerate() {
            while let Some(label) = labels.next_if(|id| func.labels[id.0 as usize].at as usize <= index) {
                self.arrive_at(label);
            }
            if self.ended {
                // Code that nothing reaches.
                let block = self.b.block();
                self.continue_in(block);
            }
            self.b.set_loc(self.links.loc(inst.syntax));
            self.instruction(inst, found);
            if self.problem.is_some() {
                return;
            }
        }
        for label in labels {
            self.arrive_at(label);
        }
        if !self.ended {
            self.leave_function();
        }
    }

    /// Labels at one place share a block.
    fn make_label_blocks(&mut self) {
        let mut at: HashMap<u32, Block> = HashMap::new();
        for label in &self.func.labels {
            let block = *at.entry(label.at).or_insert_with(|| self.b.block());
            self.labels.push(block);
        }
    }

    fn arrive_at(&mut self, label: LabelId) {
        let block = self.label(label);
        if self.b.current() == block {
            return;
        }
        if !self.ended {
            self.end(Terminator::Jump(Target::new(block)));
        }
        self.continue_in(block);
    }

    fn instruction(&mut self, inst: &'r crate::resolve::Instruction<'r, 'r>, found: &Found) {
        let expand = found.entry.form.expand;
        match (inst.guard, found.entry.form.guarding) {
            (None, _) | (_, Guarding::Own) => {
                expand(&mut Expander { body: self, inst, found, guard: None });
            }
            (Some(guard), Guarding::Select) => {
                let guard = Some(self.guard(guard));
                expand(&mut Expander { body: self, inst, found, guard });
            }
            (Some(guard), Guarding::Branch) => {
                let cond = self.guard(guard);
                let (taken, after) = (self.b.block(), self.b.block());
                self.branch(cond, taken, after, false);
                self.continue_in(taken);
                expand(&mut Expander { body: self, inst, found, guard: None });
                if !self.ended {
                    self.end(Terminator::Jump(Target::new(after)));
                }
                self.continue_in(after);
            }
        }
    }

    /// The guard's value: whether the instruction is executed.
    pub fn guard(&mut self, guard: Guard) -> Value {
        let value = self.read(guard.register, 0);
        if guard.negated { self.b.inst(Op::IntUnary(IntUnary::Not), &[value], Type::Pred) } else { value }
    }

    /// The block of a label.
    pub fn label(&self, label: LabelId) -> Block {
        self.labels[label.0 as usize]
    }

    /// Ends the block with a branch.
    pub fn branch(&mut self, cond: Value, then: Block, otherwise: Block, uniform: bool) {
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        self.end(Terminator::Branch { cond, then, otherwise, uniform });
    }

    /// Ends the block.
    pub fn end(&mut self, term: Terminator) {
        self.b.terminate(term);
        self.ended = true;
    }

    /// Goes on in `block`.
    pub fn continue_in(&mut self, block: Block) {
        self.b.switch_to(block);
        self.ended = false;
    }

    /// Remembers the first problem; the function is then given up.
    pub fn fail(&mut self, problem: Problem) {
        self.problem.get_or_insert(problem);
    }

    /// IR type of a register's variables.
    pub fn register_ty(&self, id: RegisterId) -> Type {
        self.b.var_ty(self.registers[id.0 as usize][0])
    }

    /// The value of a register's element.
    pub fn read(&mut self, id: RegisterId, element: usize) -> Value {
        let var = self.registers[id.0 as usize][element];
        self.b.read(var)
    }

    /// Gives a register's element a value, extended if the register is wider; only where `guard` holds, if there is one.
    pub fn write(
        &mut self,
        id: RegisterId,
        element: usize,
        value: Value,
        signed: bool,
        guard: Option<Value>,
    ) {
        let var = self.registers[id.0 as usize][element];
        let ty = self.b.var_ty(var);
        let mut value = if self.b.func().ty(value).bits() < ty.bits() {
            let int = self.as_int(value);
            let wide = if ty.is_float() { ty.as_int().unwrap_or(ty) } else { ty };
            let op = if signed { Convert::SExt } else { Convert::ZExt };
            let extended = self.b.inst(Op::Convert(op), &[int], wide);
            self.fit(extended, ty)
        } else {
            self.fit(value, ty)
        };
        if let Some(guard) = guard {
            let old = self.b.read(var);
            value = self.b.inst(Op::Select, &[guard, value, old], ty);
        }
        self.b.write(var, value);
    }

    /// The value as an integer of the same width.
    pub fn as_int(&mut self, value: Value) -> Value {
        let ty = self.b.func().ty(value);
        match ty.as_int() {
            Some(int) if ty.is_float() => self.fit(value, int),
            _ => value,
        }
    }

    /// The value as `ty`, which is no wider: its low bits, or the same bits.
    pub fn fit(&mut self, value: Value, ty: Type) -> Value {
        let from = self.b.func().ty(value);
        if from == ty {
            return value;
        }
        if let Some(bits) = self.b.known_constant(value) {
            return self.b.constant(ty, bits);
        }
        if from.bits() == ty.bits() {
            return self.b.inst(Op::Convert(Convert::Bitcast), &[value], ty);
        }
        let int = self.as_int(value);
        let narrow = if ty.is_float() { ty.as_int().unwrap_or(ty) } else { ty };
        let cut = self.b.inst(Op::Convert(Convert::Trunc), &[int], narrow);
        if narrow == ty { cut } else { self.b.inst(Op::Convert(Convert::Bitcast), &[cut], ty) }
    }

    /// The carry flag `CC.CF`.
    pub fn carry(&mut self) -> Var {
        if let Some(var) = self.carry {
            return var;
        }
        let var = self.b.var(Type::Pred);
        *self.carry.insert(var)
    }
}
