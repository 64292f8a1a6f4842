//! Accesses at addresses that are no multiples of what they access.
//!
//! Most addresses are a kernel's parameter and a multiple. The parameters are tested before the kernel runs ([`Trusted`]); whatever else they are
//! computed from is tested at each access.

use std::cell::RefCell;
use std::collections::BTreeMap;

use kernel_abi::{AlignedParam, FaultKind, Shape};
use simt_ir::{
    Access, Convert, Def, Function, IntBinary, Op, Shift, Space, Type as IrType, Value as IrValue,
};
use transform::{LaneShape, Offsets, Prepared};

use super::exact::even_step;
use super::function::Emitter;
use super::grouped::Groups;
use crate::llvm::{IntPredicate, Value};

/// What tells whether an access is aligned.
pub(super) struct AlignmentTest {
    /// This value's lowest bits,
    pub(super) tested: IrValue,
    /// with this added.
    pub(super) offset: i64,
    /// Those of its base, since lanes differ by multiples.
    pub(super) is_scalar: bool,
    /// Those of the bases of its rows, likewise.
    in_rows: bool,
}

/// The parameters of a kernel that its code takes to be multiples of what is accessed there, by their offsets.
pub(super) struct Trusted {
    /// Whether it may: other code has every test. A kernel that looks whether a pointer is a multiple can do with one that is not.
    is_allowed: bool,
    /// Bytes of all parameters.
    end: u32,
    bytes: RefCell<BTreeMap<u32, u32>>,
}

impl Trusted {
    /// None yet.
    pub(super) fn new(kernel: &Prepared, shape: &Shape, param_bytes: u32) -> Trusted {
        let is_allowed = kernel.is_kernel && shape.assume_no_wrap && !tests_alignment(&kernel.func);
        Trusted { is_allowed, end: param_bytes, bytes: RefCell::default() }
    }

    /// All of them.
    pub(super) fn params(&self) -> Vec<AlignedParam> {
        let bytes = self.bytes.borrow();
        bytes.iter().map(|(offset, bytes)| AlignedParam { offset: *offset, bytes: *bytes }).collect()
    }

    /// Whether a value is such a parameter, which it is from now on if it can be.
    fn trusts(&self, p: &Prepared, value: IrValue, bytes: u32) -> bool {
        if !self.is_allowed || !p.is_kernel {
            return false;
        }
        let is_inside = |offset: &u32| offset.checked_add(8).is_some_and(|end| end <= self.end);
        let Some(offset) = param_offset(&p.func, value).filter(is_inside) else { return false };
        let mut trusted = self.bytes.borrow_mut();
        let most = trusted.entry(offset).or_insert(bytes);
        *most = bytes.max(*most);
        true
    }
}

/// Where a value is among a kernel's parameters, if it is one of eight bytes.
fn param_offset(func: &Function, value: IrValue) -> Option<u32> {
    let data = func.def_inst(value)?;
    let Op::Load(access) = data.op else { return None };
    if access.space != Space::Param || access.lanes != 1 || func.ty(value) != IrType::I64 {
        return None;
    }
    let address = func.constant(data.args[0])? as i64;
    u32::try_from(address.checked_add(access.offset)?).ok()
}

/// Whether a kernel looks at the lowest bits of a parameter, or of an address computed from one.
fn tests_alignment(func: &Function) -> bool {
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst));
    insts.any(|data| {
        let is_mask = |value: IrValue| {
            func.constant(value).is_some_and(|mask| mask > 0 && mask < 128 && (mask + 1).is_power_of_two())
        };
        data.op == Op::Int(IntBinary::And)
            && (0..2).any(|at| is_mask(data.args[at]) && leads_to_param(func, data.args[1 - at], 8))
    })
}

fn leads_to_param(func: &Function, value: IrValue, depth: u32) -> bool {
    if param_offset(func, value).is_some() {
        return true;
    }
    let Some(data) = func.def_inst(value).filter(|_| depth > 0) else { return false };
    match data.op {
        Op::Int(IntBinary::Add | IntBinary::Sub | IntBinary::Or)
        | Op::Convert(Convert::Trunc)
        | Op::ToGeneric(_)
        | Op::FromGeneric(_) => data.args.iter().any(|arg| leads_to_param(func, *arg, depth - 1)),
        _ => false,
    }
}

impl<'c> Emitter<'_, 'c> {
    /// Raises a fault if an active lane's address is no multiple of `bytes`. Lanes in groups are multiples where their groups start at
    /// some.
    pub(super) fn check_alignment(
        &mut self,
        value: IrValue,
        access: Access,
        bytes: u32,
        loc: simt_ir::SourceLoc,
        groups: Option<&Groups<'c>>,
    ) {
        if self.ahead.is_aligned(value, access, bytes) {
            return;
        }
        let Some(AlignmentTest { tested, offset, is_scalar, in_rows }) =
            self.alignment_test(value, access, bytes)
        else {
            return;
        };
        let b = self.unit.b;
        let low = u64::from(bytes - 1);
        let natural = self.natural(tested);
        if let Some(groups) = groups.filter(|_| !is_scalar && !in_rows) {
            let starts = groups.starts.iter().copied().reduce(|one, other| b.or(one, other));
            let starts = starts.expect("there is a group");
            let bad = b.and(starts, starts.ty().int_const(low));
            let bad = b.icmp(IntPredicate::Ne, bad, bad.ty().zero());
            return self.unlikely(bad, |this| this.check_alignment(value, access, bytes, loc, None));
        }
        let checked = if is_scalar || in_rows { natural } else { self.vector(tested) };
        let checked = self.offset(checked, offset);
        let bad = b.and(checked, checked.ty().int_const(low));
        let bad = b.icmp(IntPredicate::Ne, bad, bad.ty().zero());
        let mask = self.active();
        let raise = |this: &mut Self, lanes: Value<'c>| {
            let lane = this.lowest_lane(lanes);
            let address = this.in_lane(value, lane);
            let address = this.in_window(address, address.ty().scalar_bits() == 32, access.offset);
            this.raise_in(FaultKind::Misaligned, lane, address, loc);
        };
        if in_rows {
            // A row may be one that no active lane is in.
            return self.unlikely(b.any(bad), |this| {
                let bad = b.and(this.in_lanes(bad), mask);
                this.unlikely(b.any(bad), |this| raise(this, bad));
            });
        }
        let (any, lanes) = if is_scalar {
            (bad, mask)
        } else {
            let bad = b.and(bad, mask);
            (b.any(bad), bad)
        };
        self.unlikely(any, |this| raise(this, lanes));
    }

    /// What tells whether addresses are multiples of `bytes`, which is a power of two; nothing if they surely are.
    pub(super) fn alignment_test(
        &mut self,
        value: IrValue,
        access: Access,
        bytes: u32,
    ) -> Option<AlignmentTest> {
        if bytes == 1 || access.anywhere {
            return None;
        }
        let power = bytes.trailing_zeros();
        let mut roots = Vec::new();
        self.alignment_roots(value, power, 12, &mut Vec::new(), &mut roots);
        if let &[root] = &roots[..]
            && self.unit.aligned.trusts(self.p, root, bytes)
        {
            roots.clear();
        }
        let mut exact = access.offset.trailing_zeros() < power || roots.len() > 1;
        if roots.is_empty() && !exact {
            return None;
        }
        let low = i64::from(bytes - 1);
        // A root may be a value of another block that is not kept for this one.
        exact = exact || !self.is_at_hand(roots[0]);
        let (tested, offset) = match exact {
            // Of several accesses from one place on, the first one's test does for all: LLVM sees that they are the same.
            true => (self.without_multiples(value, power), access.offset & low),
            false => (roots[0], 0),
        };
        let multiples = |offsets: &Offsets| offsets.iter().all(|offset| offset & low == 0);
        let (is_scalar, in_rows) = match self.p.shapes.of(tested) {
            LaneShape::Uniform => (true, false),
            LaneShape::Affine(offsets) => (multiples(offsets), false),
            LaneShape::Rows(offsets) => (false, multiples(offsets)),
            LaneShape::Varying => (false, false),
        };
        Some(AlignmentTest { tested, offset, is_scalar, in_rows })
    }

    /// The value in one lane, for code that hardly ever runs: where it can be computed from a scalar, it is, since the vector would
    /// be more code than all the rest.
    fn in_lane(&mut self, value: IrValue, lane: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let step = match self.p.shapes.of(value) {
            LaneShape::Uniform => Some((0, 0)),
            LaneShape::Affine(offsets) => even_step(offsets).map(|step| (offsets[0], step)),
            LaneShape::Rows(_) | LaneShape::Varying => None,
        };
        let Some((first, step)) = step else {
            let vector = self.vector(value);
            return b.extract_dynamic(vector, lane);
        };
        let base = self.natural(value);
        if step == 0 {
            return self.offset(base, first);
        }
        let lane = b.int_resize(lane, base.ty(), false);
        let steps = b.mul(lane, base.ty().int_const(step as u64));
        b.add(self.offset(base, first), steps)
    }

    /// Values whose sum has the same lowest `power` bits as `value`; what is surely a multiple is left out.
    fn alignment_roots(
        &self,
        value: IrValue,
        power: u32,
        depth: u32,
        cycle: &mut Vec<IrValue>,
        roots: &mut Vec<IrValue>,
    ) {
        let value = self.through_params(value);
        if self.low_zeros(value, depth) >= power || cycle.contains(&value) {
            return;
        }
        let p = self.p;
        match p.func.def(value) {
            Def::Result(inst, _) if depth > 0 => {
                let data = p.func.inst(inst);
                match data.op {
                    Op::Int(IntBinary::Add) => {
                        self.alignment_roots(data.args[0], power, depth - 1, cycle, roots);
                        self.alignment_roots(data.args[1], power, depth - 1, cycle, roots);
                        return;
                    }
                    Op::ToGeneric(space) | Op::FromGeneric(space) if space != Space::Local || power <= 4 => {
                        return self.alignment_roots(data.args[0], power, depth - 1, cycle, roots);
                    }
                    _ => {}
                }
            }
            Def::Param(block, index) if depth > 4 && p.loops.headed_by(block).is_some() => {
                // A pointer that a loop moves by multiples is as aligned as it was before.
                let mut entering = None;
                let mut moves = Vec::new();
                cycle.push(value);
                for &pred in p.cfg.preds(block) {
                    for target in p.func.block(pred).term.targets() {
                        if target.block != block {
                            continue;
                        }
                        let arg = target.args[index as usize];
                        if p.loops.is_back_edge(pred, block) {
                            self.alignment_roots(arg, power, 4, cycle, &mut moves);
                        } else {
                            entering = Some(arg);
                        }
                    }
                }
                cycle.pop();
                if let Some(entering) = entering.filter(|_| moves.is_empty()) {
                    return self.alignment_roots(entering, power, 4, cycle, roots);
                }
            }
            _ => {}
        }
        roots.push(value);
    }

    /// The value that a parameter of a block with one incoming edge stands for. What lanes leave a loop with in different iterations is no value
    /// of the loop's: that is the last one's.
    pub(super) fn through_params(&self, mut value: IrValue) -> IrValue {
        let p = self.p;
        while let Def::Param(block, index) = p.func.def(value)
            && let [pred] = p.cfg.preds(block)
            && p.shapes.leave_together(&p.loops, *pred, block)
            && let Some(target) =
                p.func.block(*pred).term.targets().iter().find(|target| target.block == block)
        {
            value = target.args[index as usize];
        }
        value
    }

    /// A value with the same lowest `power` bits, which may have fewer operations behind it.
    fn without_multiples(&mut self, mut value: IrValue, power: u32) -> IrValue {
        while let Some(data) = self.p.func.def_inst(value)
            && data.op == Op::Int(IntBinary::Add)
            && let Some(at) = (0..2).find(|at| self.low_zeros(data.args[*at], 12) >= power)
            && self.is_at_hand(data.args[1 - at])
        {
            value = data.args[1 - at];
        }
        value
    }

    /// Zero bits in which a value surely ends, in every lane.
    fn low_zeros(&self, value: IrValue, depth: u32) -> u32 {
        let p = self.p;
        let Some(data) = p.func.def_inst(value).filter(|_| depth > 0) else { return 0 };
        let arg = |at: usize| self.low_zeros(data.args[at], depth - 1);
        match data.op {
            Op::Const(bits) => bits.trailing_zeros(),
            Op::Int(IntBinary::Add | IntBinary::Sub | IntBinary::Or | IntBinary::Xor) => arg(0).min(arg(1)),
            Op::Int(IntBinary::And) => arg(0).max(arg(1)),
            Op::Int(IntBinary::Mul) => arg(0) + arg(1),
            Op::Shift(Shift::Left) => arg(0) + p.func.constant(data.args[1]).unwrap_or(0).min(64) as u32,
            Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc)
                if p.func.ty(data.args[0]) != IrType::Pred =>
            {
                arg(0)
            }
            Op::Select => {
                self.low_zeros(data.args[1], depth - 1).min(self.low_zeros(data.args[2], depth - 1))
            }
            _ => 0,
        }
    }
}
