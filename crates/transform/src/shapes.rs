//! How each value differs between the 32 lanes of a warp, and which branches part them.
//!
//! A value is *uniform* when all lanes that are active where it is defined have the same one, *affine* when the lanes' values differ by
//! constants known now, and *varying* otherwise. Uniform values are computed once for the warp, affine ones once
//! and a constant vector added where a vector is needed; an affine address is one memory access instead of 32.

use std::rc::Rc;

use kernel_abi::{Shape, XLayout};
use simt_ir::{
    Block, Cfg, Convert, Def, DomTree, Function, IntBinary, Op, Shift, Space, SpecialReg, Terminator, Type,
    Value,
};

use crate::facts::Facts;
use crate::simplify::sign_extended;
use crate::{Loops, sync};

/// Lanes of a warp.
pub const LANES: usize = 32;

/// What is added to an affine value's base in each lane, as signed numbers of the value's width.
pub type Offsets = Rc<[i64; LANES]>;

/// How a value differs between lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneShape {
    /// The same in all active lanes.
    Uniform,
    /// A base, the same for all lanes, plus an offset for each lane, modulo 2 to the width.
    Affine(Offsets),
    /// Anything.
    Varying,
}

impl LaneShape {
    /// Whether all active lanes have the same value.
    pub fn is_uniform(&self) -> bool {
        *self == LaneShape::Uniform
    }

    /// The offsets of a uniform or affine value.
    pub fn offsets(&self) -> Option<Offsets> {
        match self {
            LaneShape::Uniform => Some(Rc::new([0; LANES])),
            LaneShape::Affine(offsets) => Some(offsets.clone()),
            LaneShape::Varying => None,
        }
    }

    /// Affine with these offsets, taken modulo 2 to the `bits`.
    fn affine(bits: u32, offset: impl Fn(usize) -> i64) -> LaneShape {
        let offsets: [i64; LANES] = std::array::from_fn(|lane| sign_extended(offset(lane) as u64, bits));
        if offsets == [0; LANES] { LaneShape::Uniform } else { LaneShape::Affine(Rc::new(offsets)) }
    }

    fn meet(&self, other: &LaneShape) -> LaneShape {
        if self == other { self.clone() } else { LaneShape::Varying }
    }
}

/// The shapes of a function's values.
#[derive(Clone, Debug)]
pub struct Shapes {
    values: Vec<LaneShape>,
    divergent: Vec<bool>,
    divergent_loops: Vec<bool>,
}

impl Shapes {
    /// Analyses a function in normal form with closed loops. Parameters of the function are varying.
    pub fn new(func: &Function, cfg: &Cfg, dom: &DomTree, loops: &Loops, shape: &Shape) -> Shapes {
        let mut analysis = Analysis {
            func,
            cfg,
            loops,
            shape,
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
        Shapes {
            values: analysis.values.into_iter().map(|shape| shape.unwrap_or(LaneShape::Uniform)).collect(),
            divergent: analysis.divergent,
            divergent_loops: analysis.divergent_loops,
        }
    }

    /// The value's shape.
    pub fn of(&self, value: Value) -> &LaneShape {
        &self.values[value.index()]
    }

    /// For each block, whether lanes part at its end.
    pub fn divergent(&self) -> &[bool] {
        &self.divergent
    }

    /// For each loop, whether lanes leave it in different iterations.
    pub fn divergent_loops(&self) -> &[bool] {
        &self.divergent_loops
    }
}

struct Analysis<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    shape: &'a Shape,
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
            if let Terminator::Branch { cond, uniform: false, .. } = self.func.block(block).term
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

    fn transfer(&self, block: Block, inst: simt_ir::Inst) -> LaneShape {
        let data = self.func.inst(inst);
        let bits = self.func.ty(data.results[0]).bits();
        let args: Vec<LaneShape> = data.args.iter().map(|arg| self.of(*arg)).collect();
        let all_uniform = args.iter().all(LaneShape::is_uniform);
        match data.op {
            Op::SpecialReg(reg) => self.special(reg),
            Op::LocalBase => LaneShape::Uniform,
            Op::ToGeneric(Space::Local) => LaneShape::Varying,
            Op::IsSpace(Space::Local) if !all_uniform => LaneShape::Varying,
            Op::FromGeneric(Space::Local) => LaneShape::Varying,
            Op::Load(access) => match access.space {
                Space::Local => LaneShape::Varying,
                _ if all_uniform => LaneShape::Uniform,
                _ => LaneShape::Varying,
            },
            Op::Vote(_) | Op::MatchAll | Op::Redux(_) => {
                if data.args[1..].iter().all(|mask| self.of(*mask).is_uniform()) {
                    LaneShape::Uniform
                } else {
                    LaneShape::Varying
                }
            }
            Op::ActiveMask | Op::Barrier { .. } => LaneShape::Uniform,
            Op::Atomic(..)
            | Op::AtomicCas(_)
            | Op::Shuffle(_)
            | Op::MatchAny
            | Op::Elect
            | Op::Call(_)
            | Op::CallIndirect(_)
            | Op::Syscall(_) => LaneShape::Varying,
            _ if all_uniform => LaneShape::Uniform,
            Op::Int(op) => self.binary(op, bits, &data.args, &args),
            Op::Shift(op) => self.shift(op, bits, &data.args, &args),
            Op::Select if args[0].is_uniform() && args[1] == args[2] => args[1].clone(),
            Op::ToGeneric(_) | Op::FromGeneric(_) => args[0].clone(),
            Op::Convert(Convert::Trunc) if bits > 1 => self.affine_map(bits, &args[0], |offset| offset),
            Op::Convert(Convert::ZExt | Convert::SExt) => self.extend(block, bits, data, &args[0]),
            _ => LaneShape::Varying,
        }
    }

    fn affine_map(&self, bits: u32, arg: &LaneShape, map: impl Fn(i64) -> i64) -> LaneShape {
        match arg.offsets() {
            Some(offsets) => LaneShape::affine(bits, |lane| map(offsets[lane])),
            None => LaneShape::Varying,
        }
    }

    fn binary(&self, op: IntBinary, bits: u32, args: &[Value], shapes: &[LaneShape]) -> LaneShape {
        let (Some(a), Some(b)) = (shapes[0].offsets(), shapes[1].offsets()) else {
            return LaneShape::Varying;
        };
        let constant = |at: usize| self.func.constant(args[at]);
        match op {
            IntBinary::Add => LaneShape::affine(bits, |lane| a[lane].wrapping_add(b[lane])),
            IntBinary::Sub => LaneShape::affine(bits, |lane| a[lane].wrapping_sub(b[lane])),
            IntBinary::Mul => match (constant(0), constant(1)) {
                (_, Some(factor)) => LaneShape::affine(bits, |lane| a[lane].wrapping_mul(factor as i64)),
                (Some(factor), _) => LaneShape::affine(bits, |lane| b[lane].wrapping_mul(factor as i64)),
                _ => LaneShape::Varying,
            },
            IntBinary::And | IntBinary::Or | IntBinary::Xor => {
                let (value, offsets, other) = match (constant(0), constant(1)) {
                    (_, Some(other)) => (args[0], a, other),
                    (Some(other), _) => (args[1], b, other),
                    _ => return LaneShape::Varying,
                };
                let zeros = self.facts.base_zeros(value);
                self.bitwise(op, bits, &offsets, zeros, other)
            }
            _ => LaneShape::Varying,
        }
    }

    /// `(base + offset) op constant`, where the base ends in `zeros` zero bits: exact when the offsets stay within these.
    fn bitwise(&self, op: IntBinary, bits: u32, offsets: &Offsets, zeros: u32, constant: u64) -> LaneShape {
        let constant = sign_extended(constant, bits);
        let within = zeros >= 63 || offsets.iter().all(|offset| (0..1 << zeros).contains(offset));
        match op {
            // The bits above are the base's own, which the operation leaves to the base.
            IntBinary::And if within => LaneShape::affine(bits, |lane| offsets[lane] & constant),
            // A mask of low bits sees nothing of the base, whatever the offsets.
            IntBinary::And if constant >= 0 && zeros < 63 && constant < 1 << zeros => {
                LaneShape::affine(bits, |lane| offsets[lane] & constant)
            }
            IntBinary::Or | IntBinary::Xor
                if within && constant >= 0 && (zeros >= 63 || constant < 1 << zeros) =>
            {
                LaneShape::affine(bits, |lane| {
                    if op == IntBinary::Or { offsets[lane] | constant } else { offsets[lane] ^ constant }
                })
            }
            _ => LaneShape::Varying,
        }
    }

    fn shift(&self, op: Shift, bits: u32, args: &[Value], shapes: &[LaneShape]) -> LaneShape {
        let (Some(offsets), Some(amount)) = (shapes[0].offsets(), self.func.constant(args[1])) else {
            return LaneShape::Varying;
        };
        if amount >= u64::from(bits) {
            return LaneShape::Varying;
        }
        match op {
            Shift::Left => LaneShape::affine(bits, |lane| offsets[lane].wrapping_shl(amount as u32)),
            Shift::RightU | Shift::RightS => {
                let zeros = self.facts.base_zeros(args[0]);
                let within = zeros >= 63 || offsets.iter().all(|offset| (0..1 << zeros).contains(offset));
                if zeros >= amount as u32 && within {
                    LaneShape::affine(bits, |lane| offsets[lane] >> amount)
                } else {
                    LaneShape::Varying
                }
            }
        }
    }

    /// An extension keeps the offsets when no active lane's value wraps on the way from the base.
    fn extend(&self, block: Block, bits: u32, data: &simt_ir::InstData, arg: &LaneShape) -> LaneShape {
        let Some(offsets) = arg.offsets() else { return LaneShape::Varying };
        let from = self.func.ty(data.args[0]);
        if from == Type::Pred {
            return LaneShape::Varying;
        }
        if self.facts.extends(data.args[0], block, &offsets, data.op == Op::Convert(Convert::ZExt)) {
            LaneShape::affine(bits, |lane| offsets[lane])
        } else {
            LaneShape::Varying
        }
    }

    fn special(&self, reg: SpecialReg) -> LaneShape {
        let flat = self.shape.dims == 1;
        match reg {
            SpecialReg::LaneId => LaneShape::affine(32, |lane| lane as i64),
            SpecialReg::Tid(axis) if axis >= self.shape.dims => LaneShape::Uniform,
            SpecialReg::Tid(0) if flat => LaneShape::affine(32, |lane| lane as i64),
            SpecialReg::Tid(axis) => match (self.shape.x, axis) {
                (XLayout::Rows, 0) => LaneShape::affine(32, |lane| lane as i64),
                (XLayout::Rows, _) => LaneShape::Uniform,
                (XLayout::Period(period), 0) => LaneShape::affine(32, |lane| lane as i64 % i64::from(period)),
                (XLayout::Period(period), 1) if self.shape.dims == 2 => {
                    LaneShape::affine(32, |lane| lane as i64 / i64::from(period))
                }
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

/// Whether a value is defined by an instruction that can be repeated anywhere at little cost.
pub fn is_rematerialisable(func: &Function, value: Value) -> bool {
    match func.def(value) {
        Def::Result(inst, _) => {
            matches!(func.inst(inst).op, Op::Const(_) | Op::GlobalAddr(_) | Op::FuncToken(_) | Op::LocalBase)
        }
        Def::Param(..) | Def::Removed => false,
    }
}
