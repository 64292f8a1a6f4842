//! How each value differs between the lanes of a warp, or of the warps of a gang, and which branches part them.
//!
//! A value is *uniform* when all lanes that are active where it is defined have the same one, *affine* when the lanes' values differ by
//! constants known now, and *varying* otherwise. Uniform values are computed once for the warp, affine ones once
//! and a constant vector added where a vector is needed; an affine address is one memory access instead of 32.
//! Where a warp covers several rows of a block, a value can be affine in each *row* while the rows differ by anything.
//!
//! Addresses of 64 bits come from indices of 32 bits, which may wrap between one lane and the next. Where that cannot be excluded,
//! it is tested: at the kernel's entry if the index is known there ([`Shapes::assumed`]), else at the access ([`Shapes::checks`]).

mod checks;
mod known;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use kernel_abi::{Shape, WARP, XLayout};
use simt_ir::{
    Block, Cfg, Convert, DomTree, Function, Inst, InstData, IntBinary, IntCmp, Op, Shift, ShuffleMode, Space,
    SpecialReg, Terminator, Type, Value,
};

pub use self::checks::Check;
use self::checks::Tests;
pub use self::known::Numbers;
use crate::facts::{Facts, Low};
use crate::simplify::sign_extended;
use crate::{Loops, sync};

/// What is added to an affine value's base in each lane, as signed numbers of the value's width.
pub type Offsets = Rc<[i64]>;

/// How a value differs between lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneShape {
    /// The same in all active lanes.
    Uniform,
    /// A base, the same for all lanes, plus an offset for each lane, modulo 2 to the width.
    Affine(Offsets),
    /// In each row of the block that the warp covers (see [`XLayout::Period`]), the first lane's value plus these offsets. The rows
    /// differ by anything.
    Rows(Offsets),
    /// Anything.
    Varying,
}

impl LaneShape {
    /// Whether all active lanes have the same value.
    pub fn is_uniform(&self) -> bool {
        *self == LaneShape::Uniform
    }

    /// Whether there is no base that stands for all lanes.
    pub fn is_vector(&self) -> bool {
        matches!(self, LaneShape::Rows(_) | LaneShape::Varying)
    }

    /// Whether there are no bases at all: the value is kept as one of each lane.
    pub fn is_varying(&self) -> bool {
        *self == LaneShape::Varying
    }

    /// The offsets of a uniform or affine value in so many lanes.
    pub fn offsets(&self, lanes: usize) -> Option<Offsets> {
        match self {
            LaneShape::Uniform => Some(vec![0; lanes].into()),
            LaneShape::Affine(offsets) => Some(offsets.clone()),
            LaneShape::Rows(_) | LaneShape::Varying => None,
        }
    }

    /// The offsets from the first lane of each row of `period` lanes, of `lanes`.
    fn row_offsets(&self, lanes: usize, period: usize) -> Option<Offsets> {
        match self {
            LaneShape::Uniform => Some(vec![0; lanes].into()),
            LaneShape::Affine(offsets) => Some(
                (0..lanes).map(|lane| offsets[lane].wrapping_sub(offsets[lane - lane % period])).collect(),
            ),
            LaneShape::Rows(offsets) => Some(offsets.clone()),
            LaneShape::Varying => None,
        }
    }

    /// Affine with these offsets, taken modulo 2 to the `bits`, in so many lanes.
    fn affine(lanes: usize, bits: u32, offset: impl Fn(usize) -> i64) -> LaneShape {
        let offsets: Offsets = (0..lanes).map(|lane| sign_extended(offset(lane) as u64, bits)).collect();
        if is_zero(&offsets) { LaneShape::Uniform } else { LaneShape::Affine(offsets) }
    }

    fn meet(&self, other: &LaneShape) -> LaneShape {
        if self == other { self.clone() } else { LaneShape::Varying }
    }
}

fn is_zero(offsets: &Offsets) -> bool {
    offsets.iter().all(|offset| *offset == 0)
}

/// A 32-bit index that must not wrap between the lanes of a warp when it is extended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The index.
    pub index: Value,
    /// It is extended with zeros, so that it must not be negative either.
    pub unsigned: bool,
}

/// The shapes of a function's values.
#[derive(Clone, Debug)]
pub struct Shapes {
    values: Vec<LaneShape>,
    divergent: Vec<bool>,
    divergent_loops: Vec<bool>,
    joins: Vec<bool>,
    tests: Tests,
    known: HashMap<Value, Numbers>,
}

impl Shapes {
    /// Analyses a function in normal form with closed loops. Parameters of the function are varying. In a kernel, indices that its entry
    /// can compute are assumed not to wrap if the launch shape allows it.
    pub fn new(
        func: &Function,
        cfg: &Cfg,
        dom: &DomTree,
        loops: &Loops,
        shape: &Shape,
        is_kernel: bool,
    ) -> Shapes {
        let mut given_up = HashSet::new();
        loop {
            let mut analysis = Analysis {
                func,
                cfg,
                loops,
                shape,
                assumes: is_kernel && shape.assume_no_wrap,
                given_up: &given_up,
                facts: Facts::new(func, cfg, dom, shape),
                values: vec![None; func.value_count()],
                divergent: vec![false; func.blocks().len()],
                divergent_loops: vec![false; loops.count()],
                joins: vec![false; func.blocks().len()],
            };
            for param in &func.block(Function::ENTRY).params {
                analysis.values[param.index()] = Some(LaneShape::Varying);
            }
            while analysis.round() {}
            match analysis.assumptions() {
                Ok(tests) => {
                    let shape = |shape: Option<LaneShape>| shape.unwrap_or(LaneShape::Uniform);
                    let known = analysis.known();
                    return Shapes {
                        known,
                        values: analysis.values.into_iter().map(shape).collect(),
                        divergent: analysis.divergent,
                        divergent_loops: analysis.divergent_loops,
                        joins: analysis.joins,
                        tests,
                    };
                }
                // Indices that are used otherwise than for an access beside them are varying after all.
                Err(misused) => given_up.extend(misused),
            }
        }
    }

    /// What must be tested before the kernel does anything. If an index does wrap, code that does not assume it must run.
    pub fn assumed(&self) -> &[Assumption] {
        &self.tests.assumed
    }

    /// What must be tested before an access whose address this value is, beside it: its offsets hold only if none of these wraps. Such a value
    /// is used as an address, and for other such values that it is added to or multiplied for.
    pub fn checks(&self, value: Value) -> &[Check] {
        self.tests.checks.get(&value).map_or(&[], Vec::as_slice)
    }

    /// The value's shape.
    pub fn of(&self, value: Value) -> &LaneShape {
        &self.values[value.index()]
    }

    /// What the value is in each lane, where it differs between lanes and that is known now.
    pub fn known(&self, value: Value) -> Option<&Numbers> {
        self.known.get(&value)
    }

    /// For each block, whether lanes part at its end.
    pub fn divergent(&self) -> &[bool] {
        &self.divergent
    }

    /// For each loop, whether lanes leave it in different iterations.
    pub fn divergent_loops(&self) -> &[bool] {
        &self.divergent_loops
    }

    /// Whether lanes reach a block on different ways.
    pub fn is_join(&self, block: Block) -> bool {
        self.joins[block.index()]
    }

    /// Whether lanes that go from one block to the next are in the same iteration of each loop that they leave so: what is passed on is what it was in
    /// that iteration then.
    pub fn leave_together(&self, loops: &Loops, from: Block, to: Block) -> bool {
        loops.around(from).all(|id| !self.divergent_loops[id.index()] || loops.contains(id, to))
    }
}

struct Analysis<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    shape: &'a Shape,
    /// Whether the entry tests assumptions.
    assumes: bool,
    /// Extensions whose operands may wrap and that cannot be tested for it.
    given_up: &'a HashSet<Value>,
    facts: Facts<'a>,
    /// `None` until something is known: then nothing speaks against uniform.
    values: Vec<Option<LaneShape>>,
    divergent: Vec<bool>,
    divergent_loops: Vec<bool>,
    /// Blocks that lanes reach on different ways.
    joins: Vec<bool>,
}

impl Analysis<'_> {
    /// Visits every block once; whether anything changed.
    fn round(&mut self) -> bool {
        let mut changed = false;
        for &block in self.cfg.order() {
            for inst in &self.func.block(block).insts {
                let results = self.func.inst(*inst).results.clone();
                if !results.is_empty() {
                    let shape = self.transfer(block, *inst);
                    for result in results {
                        changed |= self.lower(result, shape.clone());
                    }
                }
            }
            for target in self.func.block(block).term.targets() {
                for (param, arg) in self.func.block(target.block).params.iter().zip(&target.args) {
                    if self.joins[target.block.index()] {
                        changed |= self.lower(*param, LaneShape::Varying);
                    } else if let Some(shape) = self.values[arg.index()].clone() {
                        changed |= self.lower(*param, shape);
                    }
                }
            }
            // What a program promises of the lanes of a warp it does not promise of a gang's.
            if let Terminator::Branch { cond, uniform, .. } = self.func.block(block).term
                && (!uniform || self.shape.gang > 1)
                && self.values[cond.index()].as_ref().is_some_and(|shape| !shape.is_uniform())
                && !self.divergent[block.index()]
            {
                self.divergent[block.index()] = true;
                changed = true;
                self.influence(sync::of_branch(self.cfg, self.loops, block));
            }
        }
        changed
    }

    fn influence(&mut self, influence: sync::Influence) {
        for block in influence.joins {
            self.joins[block.index()] = true;
        }
        for id in influence.loops {
            if !std::mem::replace(&mut self.divergent_loops[id.index()], true) {
                self.influence(sync::of_loop(self.cfg, self.loops, id));
            }
        }
    }

    /// Combines what is known of a value with one more possibility.
    fn lower(&mut self, value: Value, shape: LaneShape) -> bool {
        let known = &mut self.values[value.index()];
        let new = known.as_ref().map_or_else(|| shape.clone(), |known| known.meet(&shape));
        let changed = known.as_ref() != Some(&new);
        *known = Some(new);
        changed
    }

    fn of(&self, value: Value) -> LaneShape {
        self.values[value.index()].clone().unwrap_or(LaneShape::Uniform)
    }

    fn lanes(&self) -> usize {
        self.shape.lanes() as usize
    }

    fn affine(&self, bits: u32, offset: impl Fn(usize) -> i64) -> LaneShape {
        LaneShape::affine(self.lanes(), bits, offset)
    }

    fn transfer(&self, block: Block, inst: simt_ir::Inst) -> LaneShape {
        let data = self.func.inst(inst);
        let bits = self.func.ty(data.results[0]).bits();
        if self.lanes() == 1 {
            return LaneShape::Uniform;
        }
        let args: Vec<LaneShape> = data.args.iter().map(|arg| self.of(*arg)).collect();
        let all_uniform = args.iter().all(LaneShape::is_uniform);
        match data.op {
            Op::SpecialReg(reg) => self.special(reg),
            Op::LocalBase
            | Op::ActiveMask
            | Op::Unanimous
            | Op::AnyLane
            | Op::FirstLane
            | Op::FewLanes(_)
            | Op::Barrier { .. } => LaneShape::Uniform,
            Op::StackSave | Op::Recall(_) => LaneShape::Varying,
            Op::ToGeneric(Space::Local) => LaneShape::Varying,
            Op::IsSpace(Space::Local) if !all_uniform => LaneShape::Varying,
            Op::FromGeneric(Space::Local) => LaneShape::Varying,
            Op::Load(access) => match access.space {
                Space::Local => LaneShape::Varying,
                _ if all_uniform => LaneShape::Uniform,
                _ => LaneShape::Varying,
            },
            Op::Vote(_) | Op::MatchAll | Op::Redux(_) => {
                if self.shape.gang == 1 && data.args[1..].iter().all(|mask| self.of(*mask).is_uniform()) {
                    LaneShape::Uniform
                } else {
                    LaneShape::Varying
                }
            }
            // All lanes read the same lane of the whole warp.
            Op::Shuffle(ShuffleMode::Idx)
                if args[1].is_uniform()
                    && self.shape.gang == 1
                    && self.func.constant(data.args[2]) == Some(0x1f)
                    && args.get(3).is_none_or(LaneShape::is_uniform) =>
            {
                LaneShape::Uniform
            }
            Op::Atomic(..)
            | Op::AtomicCas(_)
            | Op::MbarrierArrive { .. }
            | Op::Shuffle(_)
            | Op::MatchAny
            | Op::MatrixMultiply(_)
            | Op::Elect
            | Op::Call(_)
            | Op::CallIndirect(_)
            | Op::Syscall(_)
            | Op::Texture(_) => LaneShape::Varying,
            _ if all_uniform => LaneShape::Uniform,
            Op::Select if args[0].is_uniform() && args[1] == args[2] => args[1].clone(),
            Op::ToGeneric(_) | Op::FromGeneric(_) => args[0].clone(),
            Op::Convert(Convert::ZExt | Convert::SExt) => {
                let extended = |offsets: &Offsets| {
                    (self.func.ty(data.args[0]) != Type::Pred
                        && self.extension(block, inst, offsets) != Extension::Unknown)
                        .then(|| offsets.clone())
                };
                match &args[0] {
                    LaneShape::Affine(offsets) => {
                        extended(offsets).map_or(LaneShape::Varying, LaneShape::Affine)
                    }
                    LaneShape::Rows(offsets) => extended(offsets).map_or(LaneShape::Varying, LaneShape::Rows),
                    _ => LaneShape::Varying,
                }
            }
            _ => match self.affine_result(data, bits, &args) {
                LaneShape::Varying => self.rows_result(data, bits, &args),
                shape => shape,
            },
        }
    }

    fn affine_result(&self, data: &InstData, bits: u32, args: &[LaneShape]) -> LaneShape {
        match data.op {
            Op::Int(op) => self.binary(op, bits, &data.args, args),
            Op::Shift(op) => self.shift(op, bits, &data.args, args),
            Op::IntCmp(cmp) if self.compares_bases(cmp, &data.args, args) => LaneShape::Uniform,
            Op::Convert(Convert::Trunc) if bits > 1 => match args[0].offsets(self.lanes()) {
                Some(offsets) => self.affine(bits, |lane| offsets[lane]),
                None => LaneShape::Varying,
            },
            _ => LaneShape::Varying,
        }
    }

    /// Whether comparing an affine value with a constant is comparing its base: where the offsets change none but known bits at the base's
    /// end and the constant is a multiple of as much, as when whole warps take different ways.
    fn compares_bases(&self, cmp: IntCmp, args: &[Value], shapes: &[LaneShape]) -> bool {
        let (index, constant, cmp) = match (self.func.constant(args[0]), self.func.constant(args[1])) {
            (None, Some(constant)) => (0, constant, cmp),
            (Some(constant), None) => (1, constant, cmp.mirrored()),
            _ => return false,
        };
        let Some(offsets) = shapes[index].offsets(self.lanes()) else { return false };
        let low = self.facts.base_low(args[index]);
        let known = low.bits().min(16);
        let multiple = |value: u64| value.is_multiple_of(1 << known);
        low.holds(&offsets, known)
            && match cmp {
                IntCmp::LtS | IntCmp::LtU | IntCmp::GeS | IntCmp::GeU => multiple(constant),
                IntCmp::LeS | IntCmp::LeU | IntCmp::GtS | IntCmp::GtU => {
                    let mask = self.func.ty(args[index]).mask();
                    // The next number is a multiple, and there is one.
                    constant != mask && constant != mask >> 1 && multiple(constant + 1)
                }
                IntCmp::Eq | IntCmp::Ne => false,
            }
    }

    /// The result's offsets in each row, where a warp covers several.
    fn rows_result(&self, data: &InstData, bits: u32, args: &[LaneShape]) -> LaneShape {
        let XLayout::Period(period) = self.shape.x else { return LaneShape::Varying };
        if self.shape.dims == 1 || period < 4 {
            return LaneShape::Varying;
        }
        let lanes = self.lanes();
        let rows = |at: usize| args[at].row_offsets(lanes, period.into());
        let constant = |at: usize| self.func.constant(data.args[at]);
        let shaped = |offset: &dyn Fn(usize) -> i64| {
            LaneShape::Rows((0..lanes).map(|lane| sign_extended(offset(lane) as u64, bits)).collect())
        };
        match data.op {
            Op::Int(op @ (IntBinary::Add | IntBinary::Sub)) => match (rows(0), rows(1)) {
                (Some(a), Some(b)) if op == IntBinary::Add => shaped(&|lane| a[lane].wrapping_add(b[lane])),
                (Some(a), Some(b)) => shaped(&|lane| a[lane].wrapping_sub(b[lane])),
                _ => LaneShape::Varying,
            },
            Op::Int(IntBinary::Mul) => match (rows(0), rows(1)) {
                (Some(a), Some(_)) if constant(1).is_some() => {
                    let factor = constant(1).unwrap_or(0) as i64;
                    shaped(&|lane| a[lane].wrapping_mul(factor))
                }
                (Some(_), Some(b)) if constant(0).is_some() => {
                    let factor = constant(0).unwrap_or(0) as i64;
                    shaped(&|lane| b[lane].wrapping_mul(factor))
                }
                (Some(a), Some(b)) if is_zero(&a) && is_zero(&b) => shaped(&|_| 0),
                _ => LaneShape::Varying,
            },
            Op::Shift(Shift::Left) => match (rows(0), constant(1)) {
                (Some(a), Some(amount)) if amount < u64::from(bits) => {
                    shaped(&|lane| a[lane].wrapping_shl(amount as u32))
                }
                _ => LaneShape::Varying,
            },
            Op::Convert(Convert::Trunc) if bits > 1 => match rows(0) {
                Some(a) => shaped(&|lane| a[lane]),
                None => LaneShape::Varying,
            },
            // What is the same in each row stays so.
            Op::Int(_) | Op::IntUnary(_) | Op::Shift(_)
                if (0..args.len()).all(|at| rows(at).is_some_and(|offsets| is_zero(&offsets))) =>
            {
                shaped(&|_| 0)
            }
            _ => LaneShape::Varying,
        }
    }

    /// Why an extension keeps its operand's offsets.
    fn extension(&self, block: Block, inst: Inst, offsets: &Offsets) -> Extension {
        let data = self.func.inst(inst);
        let operand = data.args[0];
        let unsigned = data.op == Op::Convert(Convert::ZExt);
        let in_rows = matches!(self.of(operand), LaneShape::Rows(_));
        if in_rows && is_zero(offsets) || self.facts.extends(operand, block, offsets, unsigned) {
            Extension::Proven
        } else if self.func.ty(operand) != Type::I32 {
            Extension::Unknown
        } else if self.assumes && self.facts.is_known_at_entry(operand) {
            Extension::Assumed
        } else if !in_rows && !self.given_up.contains(&data.results[0]) {
            Extension::Checked
        } else {
            Extension::Unknown
        }
    }

    fn binary(&self, op: IntBinary, bits: u32, args: &[Value], shapes: &[LaneShape]) -> LaneShape {
        let (Some(a), Some(b)) = (shapes[0].offsets(self.lanes()), shapes[1].offsets(self.lanes())) else {
            return LaneShape::Varying;
        };
        let constant = |at: usize| self.func.constant(args[at]);
        match op {
            IntBinary::Add => self.affine(bits, |lane| a[lane].wrapping_add(b[lane])),
            IntBinary::Sub => self.affine(bits, |lane| a[lane].wrapping_sub(b[lane])),
            IntBinary::Mul => match (constant(0), constant(1)) {
                (_, Some(factor)) => self.affine(bits, |lane| a[lane].wrapping_mul(factor as i64)),
                (Some(factor), _) => self.affine(bits, |lane| b[lane].wrapping_mul(factor as i64)),
                _ => LaneShape::Varying,
            },
            IntBinary::And | IntBinary::Or | IntBinary::Xor => {
                let (value, offsets, other) = match (constant(0), constant(1)) {
                    (_, Some(other)) => (args[0], a, other),
                    (Some(other), _) => (args[1], b, other),
                    _ => return LaneShape::Varying,
                };
                self.bitwise(op, bits, &offsets, self.facts.base_low(value), other)
            }
            _ => LaneShape::Varying,
        }
    }

    /// `(base + offset) op constant`, where the base ends in bits that are known: exact when the offsets change no others.
    fn bitwise(&self, op: IntBinary, bits: u32, offsets: &Offsets, low: Low, constant: u64) -> LaneShape {
        let constant = sign_extended(constant, bits);
        let is_below = constant >= 0 && (low.bits() == 64 || constant < 1 << low.bits().min(62));
        let apply = |number: i64| match op {
            IntBinary::And => number & constant,
            IntBinary::Or => number | constant,
            _ => number ^ constant,
        };
        // The bits above are the base's own, which `and` leaves to the base, and which a mask of low bits sees nothing of.
        let holds = match op {
            IntBinary::And => low.holds_all(offsets) || is_below,
            IntBinary::Or | IntBinary::Xor => low.holds_all(offsets) && is_below,
            _ => false,
        };
        // Of `or` and `xor` the base is the operand's: the constant is all in the offsets.
        let base = low.low(64);
        let first = if op == IntBinary::And { apply(base) } else { base };
        if holds {
            self.affine(bits, |lane| apply(base.wrapping_add(offsets[lane])).wrapping_sub(first))
        } else {
            LaneShape::Varying
        }
    }

    fn shift(&self, op: Shift, bits: u32, args: &[Value], shapes: &[LaneShape]) -> LaneShape {
        let (Some(offsets), Some(amount)) = (shapes[0].offsets(self.lanes()), self.func.constant(args[1]))
        else {
            return LaneShape::Varying;
        };
        if amount >= u64::from(bits) {
            return LaneShape::Varying;
        }
        match op {
            Shift::Left => self.affine(bits, |lane| offsets[lane].wrapping_shl(amount as u32)),
            Shift::RightU | Shift::RightS => {
                let low = self.facts.base_low(args[0]);
                if !low.holds_all(&offsets) {
                    return LaneShape::Varying;
                }
                // Of a base that is known the sum is the number, which may be one with its highest bit set.
                let mask = u64::MAX >> (64 - bits);
                let shifted = |number: i64| match op {
                    Shift::RightU => ((number as u64 & mask) >> amount) as i64,
                    _ => sign_extended(number as u64, bits) >> amount,
                };
                let base = low.low(64);
                // If more bits go than are known, no lane's value has others above those than the base has.
                if u64::from(low.bits()) >= amount {
                    self.affine(bits, |lane| {
                        shifted(base.wrapping_add(offsets[lane])).wrapping_sub(shifted(base))
                    })
                } else {
                    LaneShape::Uniform
                }
            }
        }
    }

    fn special(&self, reg: SpecialReg) -> LaneShape {
        let flat = self.shape.dims == 1;
        match reg {
            SpecialReg::LaneId => self.affine(32, |lane| (lane % WARP as usize) as i64),
            SpecialReg::Tid(axis) if axis >= self.shape.dims => LaneShape::Uniform,
            SpecialReg::Tid(0) if flat => self.affine(32, |lane| lane as i64),
            SpecialReg::Tid(axis) => match (self.shape.x, axis) {
                (XLayout::Rows, 0) => self.affine(32, |lane| lane as i64),
                (XLayout::Rows, _) => LaneShape::Uniform,
                (XLayout::Period(period), 0) => self.affine(32, |lane| lane as i64 % i64::from(period)),
                (XLayout::Period(period), _) => match self.shape.rows() {
                    Some(rows) => self.affine(32, |lane| {
                        let row = lane as i64 / i64::from(period);
                        let in_y = i64::from(rows.in_y);
                        if axis == 1 { row % in_y } else { row / in_y }
                    }),
                    None => LaneShape::Rows(vec![0; self.lanes()].into()),
                },
                _ => LaneShape::Varying,
            },
            SpecialReg::LanemaskEq
            | SpecialReg::LanemaskLe
            | SpecialReg::LanemaskLt
            | SpecialReg::LanemaskGe
            | SpecialReg::LanemaskGt => LaneShape::Varying,
            _ => LaneShape::Uniform,
        }
    }
}

/// Why the offsets of an extension's operand are those of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// No lane's value wraps.
    Proven,
    /// The entry tests it.
    Assumed,
    /// Accesses that depend on it test it.
    Checked,
    /// They may not be.
    Unknown,
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, Signature, Target};

    use super::*;
    use crate::Prepared;

    fn reg(b: &mut FunctionBuilder, reg: SpecialReg) -> Value {
        b.inst(Op::SpecialReg(reg), &[], Type::I32)
    }

    fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
        let ty = b.func().ty(x);
        b.inst(Op::Int(op), &[x, y], ty)
    }

    fn param(b: &mut FunctionBuilder, offset: i64, ty: Type) -> Value {
        let zero = b.constant(Type::I64, 0);
        b.inst(Op::Load(Access::weak(Space::Param, offset)), &[zero], ty)
    }

    /// The shape of the address that a kernel loads from, as `address` computes it.
    fn of_address(
        shape: &Shape,
        address: impl FnOnce(&mut FunctionBuilder) -> Value,
    ) -> (LaneShape, Prepared) {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let address = address(&mut b);
        let access = Access::weak(Space::Global, 0);
        let value = b.inst(Op::Load(access), &[address], Type::I32);
        let out = param(&mut b, 0, Type::I64);
        b.effect(Op::Store(access), &[out, value]);
        b.terminate(Terminator::Exit);
        let prepared = crate::prepare(b.finish(), true, shape).unwrap();
        (prepared.shapes.of(address).clone(), prepared)
    }

    fn element(b: &mut FunctionBuilder, index: Value) -> Value {
        let base = param(b, 0, Type::I64);
        let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let four = b.constant(Type::I64, 4);
        let bytes = int(b, IntBinary::Mul, wide, four);
        int(b, IntBinary::Add, base, bytes)
    }

    fn global_id(b: &mut FunctionBuilder, axis: u8) -> Value {
        let (cta, ntid, tid) =
            (reg(b, SpecialReg::CtaId(axis)), reg(b, SpecialReg::Ntid(axis)), reg(b, SpecialReg::Tid(axis)));
        let start = int(b, IntBinary::Mul, cta, ntid);
        int(b, IntBinary::Add, start, tid)
    }

    fn consecutive(step: i64, period: i64) -> Offsets {
        (0..32).map(|lane| lane % period * step).collect()
    }

    #[test]
    fn the_usual_index_is_consecutive_without_a_test() {
        let shape = Shape::of([1 << 20, 1, 1], [256, 1, 1]);
        let (of, prepared) = of_address(&shape, |b| {
            let index = global_id(b, 0);
            element(b, index)
        });
        assert_eq!(of, LaneShape::Affine(consecutive(4, 32)));
        assert_eq!(prepared.shapes.assumed(), []);
        let huge = Shape::of([1 << 30, 1, 1], [256, 1, 1]);
        let (of, prepared) = of_address(&huge, |b| {
            let index = global_id(b, 0);
            element(b, index)
        });
        assert_eq!(of, LaneShape::Affine(consecutive(4, 32)));
        assert_eq!(prepared.shapes.assumed().len(), 1, "in a larger grid it may wrap");
        let (of, _) = of_address(&Shape { assume_no_wrap: false, ..huge }, |b| {
            let index = global_id(b, 0);
            element(b, index)
        });
        assert_eq!(of, LaneShape::Affine(consecutive(4, 32)), "then the access tests it");
    }

    #[test]
    fn an_index_in_a_matrix_is_consecutive_in_each_row_of_the_block() {
        let index = |b: &mut FunctionBuilder| {
            let (x, y, width) = (global_id(b, 0), global_id(b, 1), param(b, 8, Type::I32));
            let row = int(b, IntBinary::Mul, y, width);
            let index = int(b, IntBinary::Add, row, x);
            element(b, index)
        };
        let (of, prepared) = of_address(&Shape::of([64, 64, 1], [32, 8, 1]), index);
        assert_eq!(of, LaneShape::Affine(consecutive(4, 32)));
        assert_eq!(prepared.shapes.assumed().len(), 1);
        let (of, _) = of_address(&Shape::of([64, 64, 1], [16, 16, 1]), index);
        assert_eq!(of, LaneShape::Rows(consecutive(4, 16)));
        let (of, _) = of_address(&Shape::of([64, 64, 1], [10, 10, 1]), index);
        assert_eq!(of, LaneShape::Varying);
    }

    #[test]
    fn what_is_the_same_in_a_row_stays_so() {
        let row = |b: &mut FunctionBuilder| {
            let (y, last) = (global_id(b, 1), b.constant(Type::I32, 99));
            let first = int(b, IntBinary::MinS, y, last);
            let (x, width) = (global_id(b, 0), param(b, 8, Type::I32));
            let row = int(b, IntBinary::Mul, first, width);
            let index = int(b, IntBinary::Add, row, x);
            element(b, index)
        };
        let (of, _) = of_address(&Shape::of([64, 64, 1], [8, 32, 1]), row);
        assert_eq!(of, LaneShape::Rows(consecutive(4, 8)));
        let (of, _) = of_address(&Shape::of([64, 64, 1], [8, 32, 1]), |b| {
            let (x, last) = (global_id(b, 0), b.constant(Type::I32, 99));
            let index = int(b, IntBinary::MinS, x, last);
            element(b, index)
        });
        assert_eq!(of, LaneShape::Varying, "it differs in the row");
    }

    #[test]
    fn lanes_and_warps_of_a_thread_index() {
        let shape = Shape::of([1, 1, 1], [256, 1, 1]);
        let of = |op: &dyn Fn(&mut FunctionBuilder, Value) -> Value| {
            of_address(&shape, |b| {
                let tid = reg(b, SpecialReg::Tid(0));
                let value = op(b, tid);
                element(b, value)
            })
            .0
        };
        let five = |b: &mut FunctionBuilder| b.constant(Type::I32, 5);
        let warp = of(&|b, tid| {
            let amount = five(b);
            b.inst(Op::Shift(Shift::RightU), &[tid, amount], Type::I32)
        });
        assert_eq!(warp, LaneShape::Uniform);
        let pair_of_warps = of(&|b, tid| {
            let amount = b.constant(Type::I32, 6);
            b.inst(Op::Shift(Shift::RightS), &[tid, amount], Type::I32)
        });
        assert_eq!(pair_of_warps, LaneShape::Uniform);
        let lane = of(&|b, tid| {
            let mask = b.constant(Type::I32, 31);
            int(b, IntBinary::And, tid, mask)
        });
        assert_eq!(lane, LaneShape::Affine(consecutive(4, 32)));
        let pair = of(&|b, tid| {
            let one = b.constant(Type::I32, 1);
            int(b, IntBinary::Xor, tid, one)
        });
        assert_eq!(pair, LaneShape::Affine((0..32).map(|lane| (lane ^ 1) * 4).collect()));
    }

    /// `while (i < limit) i++;` with the limit given; the shapes of the counter in the loop and after it, and whether lanes part.
    fn counter(limit: impl FnOnce(&mut FunctionBuilder) -> Value) -> (LaneShape, LaneShape, bool) {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let limit = limit(&mut b);
        let i = b.var(Type::I32);
        let zero = b.constant(Type::I32, 0);
        b.write(i, zero);
        let (body, end) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let (at, one) = (b.read(i), b.constant(Type::I32, 1));
        let next = int(&mut b, IntBinary::Add, at, one);
        b.write(i, next);
        let more = b.inst(Op::IntCmp(IntCmp::LtS), &[next, limit], Type::Pred);
        let then = Target::new(body);
        b.terminate(Terminator::Branch { cond: more, then, otherwise: Target::new(end), uniform: false });
        b.switch_to(end);
        let (out, last) = (param(&mut b, 0, Type::I64), b.read(i));
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[out, last]);
        b.terminate(Terminator::Exit);
        let prepared = crate::prepare(b.finish(), true, &Shape::of([1; 3], [32, 1, 1])).unwrap();
        let mut insts = prepared.cfg.order().iter().flat_map(|block| &prepared.func.block(*block).insts);
        let store = insts.find(|inst| matches!(prepared.func.inst(**inst).op, Op::Store(_))).unwrap();
        let last = prepared.func.inst(*store).args[1];
        let divergent = prepared.shapes.divergent_loops()[0];
        (prepared.shapes.of(next).clone(), prepared.shapes.of(last).clone(), divergent)
    }

    #[test]
    fn a_counter_is_uniform_while_lanes_count_and_not_when_they_have_left() {
        let (inside, after, divergent) = counter(|b| param(b, 8, Type::I32));
        assert_eq!((inside, after, divergent), (LaneShape::Uniform, LaneShape::Uniform, false));
        let (inside, after, divergent) = counter(|b| reg(b, SpecialReg::Tid(0)));
        assert_eq!((inside, after, divergent), (LaneShape::Uniform, LaneShape::Varying, true));
    }
}
