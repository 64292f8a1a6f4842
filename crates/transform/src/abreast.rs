//! Warps that read what another one overwrites without a barrier between.
//!
//! To sum over a block, each warp leaves its own sum in a word of shared memory, and after a barrier every warp reads all of them. Before that is done
//! once more with the same words there must be another barrier, which many programs lack: on a GPU warps leave a barrier together and
//! read at once, while what comes before the next sum takes its time. Here a warp runs to the next barrier before others have left the last one, and
//! would always be the one that overwrites. So where all warps read words of which each later stores its own, with no barrier between, they read
//! before one of them goes on. It is not a barrier: warps that do not come there are not waited for.

use std::collections::{HashMap, HashSet};

use simt_ir::{
    Access, BarrierKind, Block, Cfg, Convert, DomTree, Function, Inst, IntBinary, IntCmp, IntUnary, Op,
    Order, Shift, Space, SpecialReg, Terminator, Value,
};

/// Bits of a thread's number in its block that say which lane it is.
const LANE_BITS: i64 = 5;
/// Warps of a block.
const WARPS: u64 = 32;
/// Stores that are looked at: more are not what is meant here.
const MOST: usize = 256;

/// How far definitions are followed.
const DEPTH: u32 = 64;

/// Has the warps of a kernel give way to each other behind such reads.
pub fn keep(func: &mut Function) {
    let insts = || func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| &func.inst(*inst).op);
    if !insts().any(is_meeting) || !insts().any(|op| shared(op, true).is_some()) {
        return;
    }
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let mut numbers = Numbers { func, known: HashMap::new(), depth: 0 };
    let (mut reads, mut writes) = (HashMap::new(), Vec::new());
    for &block in cfg.order() {
        for (at, &inst) in func.block(block).insts.iter().enumerate() {
            let data = func.inst(inst);
            if let Some(access) = shared(&data.op, false) {
                let of = numbers.of(data.args[0]);
                if !of.warps {
                    reads.insert(inst, of.constant.wrapping_add_signed(access.offset));
                }
            } else if let Some(access) = shared(&data.op, true) {
                let of = numbers.of(data.args[0]);
                if of.warps && (!of.lanes || numbers.one_lane(&cfg, &dom, block)) {
                    let bytes = u64::from(access.lanes) * u64::from(func.ty(data.args[1]).bytes());
                    writes.push(Write {
                        block,
                        at,
                        start: of.constant.wrapping_add_signed(access.offset),
                        bytes: bytes * WARPS,
                    });
                }
            }
        }
    }
    if reads.is_empty() || writes.len() > MOST {
        return;
    }
    let found: HashSet<Inst> =
        writes.iter().flat_map(|write| write.overwritten(func, &cfg, &reads)).collect();
    let order = if found.is_empty() { &[] } else { cfg.order() };
    for &block in order {
        give_way(func, block, &found);
    }
}

/// Has them go on, as lanes that have places of their own do.
pub fn forget(func: &mut Function) {
    for block in func.blocks() {
        let mut insts = std::mem::take(&mut func.block_mut(block).insts);
        insts.retain(|inst| func.inst(*inst).op != Op::GiveWay);
        func.block_mut(block).insts = insts;
    }
}

/// Whether a warp suspends here.
pub fn suspends(op: &Op) -> bool {
    op.is_barrier() || *op == Op::GiveWay
}

/// Whether threads meet here.
fn is_meeting(op: &Op) -> bool {
    matches!(op, Op::Barrier { kind, .. } if *kind != BarrierKind::Arrive)
}

/// A plain load or store in shared memory.
fn shared(op: &Op, stores: bool) -> Option<Access> {
    let access = match op {
        Op::Load(access) if !stores => access,
        Op::Store(access) if stores => access,
        _ => return None,
    };
    let is_plain = matches!(access.order, Order::Weak | Order::Volatile);
    (access.space == Space::Shared && is_plain).then_some(*access)
}

/// A store by which each warp leaves a word of its own.
struct Write {
    block: Block,
    at: usize,
    /// Where the first warp's is,
    start: u64,
    /// and how far on all of them go.
    bytes: u64,
}

impl Write {
    /// The reads that lead here past no barrier.
    fn overwritten(&self, func: &Function, cfg: &Cfg, reads: &HashMap<Inst, u64>) -> Vec<Inst> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![(self.block, self.at)];
        while let Some((block, end)) = open.pop() {
            let mut insts = func.block(block).insts[..end].iter().rev();
            let meets = insts.any(|inst| {
                let is_read = reads.get(inst).is_some_and(|at| at.wrapping_sub(self.start) < self.bytes);
                found.extend(is_read.then_some(*inst));
                is_meeting(&func.inst(*inst).op)
            });
            if !meets {
                let new = cfg.preds(block).iter().filter(|pred| seen.insert(**pred));
                open.extend(new.map(|pred| (*pred, func.block(*pred).insts.len())));
            }
        }
        found
    }
}

/// Puts the operation behind such reads of a block, once where they follow each other.
fn give_way(func: &mut Function, block: Block, reads: &HashSet<Inst>) {
    let mut at = 0;
    while at < func.block(block).insts.len() {
        let insts = &func.block(block).insts;
        let inst = insts[at];
        at += 1;
        let mut rest = insts[at..].iter().take_while(|next| {
            let op = &func.inst(**next).op;
            shared(op, true).is_none() && !suspends(op)
        });
        if reads.contains(&inst) && !rest.any(|next| reads.contains(next)) {
            let new = func.make_inst(Op::GiveWay, Vec::new(), &[], func.inst(inst).loc);
            func.block_mut(block).insts.insert(at, new);
            at += 1;
        }
    }
}

/// What a number depends on.
#[derive(Clone, Copy)]
struct Number {
    /// It differs between the lanes of a warp.
    lanes: bool,
    /// It differs between the warps of a block.
    warps: bool,
    /// The bit that is the lowest of the thread's number in the block, which may be below the lowest of all.
    lowest: i64,
    /// What is added to it.
    constant: u64,
}

impl Number {
    const SAME: Number = Number { lanes: false, warps: false, lowest: 0, constant: 0 };
    const UNKNOWN: Number = Number { lanes: true, warps: true, ..Number::SAME };

    fn is_same(self) -> bool {
        !self.lanes && !self.warps
    }

    fn shifted(self, bits: i64) -> Number {
        let lowest = self.lowest + bits;
        let constant = match bits {
            0.. => self.constant.checked_shl(bits as u32),
            _ => self.constant.checked_shr(-bits as u32),
        };
        let lanes = self.lanes && lowest + LANE_BITS > 0;
        Number { lanes, lowest, constant: constant.unwrap_or(0), ..self }
    }

    /// Only these bits of it.
    fn masked(self, bits: u64) -> Number {
        let from = |bit: i64| u64::MAX.checked_shl(bit.max(0) as u32).unwrap_or(0);
        let of_warp = from(self.lowest + LANE_BITS);
        Number {
            lanes: self.lanes && bits & from(self.lowest) & !of_warp != 0,
            warps: self.warps && bits & of_warp != 0,
            constant: self.constant & bits,
            ..self
        }
    }

    fn plus(self, other: Number) -> Number {
        let lowest = if self.is_same() { other.lowest } else { self.lowest };
        Number {
            lanes: self.lanes || other.lanes,
            warps: self.warps || other.warps,
            lowest,
            constant: self.constant.wrapping_add(other.constant),
        }
    }
}

/// The numbers of a function.
struct Numbers<'f> {
    func: &'f Function,
    known: HashMap<Value, Number>,
    depth: u32,
}

impl Numbers<'_> {
    fn of(&mut self, value: Value) -> Number {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        if self.depth == DEPTH {
            return Number::UNKNOWN;
        }
        self.depth += 1;
        let number = self.find(value);
        self.depth -= 1;
        self.known.insert(value, number);
        number
    }

    fn find(&mut self, value: Value) -> Number {
        let Some(data) = self.func.def_inst(value) else { return Number::UNKNOWN };
        if let Some(constant) = self.func.constant(value) {
            return Number { constant, ..Number::SAME };
        }
        let constant = |at: usize| self.func.constant(data.args[at]);
        match data.op {
            Op::SpecialReg(SpecialReg::Tid(_)) => Number { lanes: true, warps: true, ..Number::SAME },
            Op::SpecialReg(SpecialReg::LaneId) => Number { lanes: true, ..Number::SAME },
            Op::SpecialReg(SpecialReg::WarpId) => Number { warps: true, lowest: -LANE_BITS, ..Number::SAME },
            Op::SpecialReg(reg) => {
                let of_lane = reg.is_of_lane() || reg.is_counter();
                if of_lane { Number::UNKNOWN } else { Number::SAME }
            }
            Op::Load(access) if access.space == Space::Param => Number::SAME,
            Op::Convert(Convert::Trunc | Convert::ZExt | Convert::SExt) => self.of(data.args[0]),
            Op::Int(IntBinary::Add | IntBinary::Or) => self.of(data.args[0]).plus(self.of(data.args[1])),
            Op::Shift(shift) => match (shift, constant(1)) {
                (Shift::Left, Some(bits @ 0..64)) => self.of(data.args[0]).shifted(bits as i64),
                (Shift::RightU | Shift::RightS, Some(bits @ 0..64)) => {
                    self.of(data.args[0]).shifted(-(bits as i64))
                }
                _ => self.same_of_same(value),
            },
            Op::Int(IntBinary::And) => match (constant(0), constant(1)) {
                (_, Some(bits)) => self.of(data.args[0]).masked(bits),
                (Some(bits), _) => self.of(data.args[1]).masked(bits),
                _ => self.same_of_same(value),
            },
            Op::Int(IntBinary::DivU | IntBinary::RemU | IntBinary::Mul) => match constant(1) {
                Some(by) if by.is_power_of_two() => {
                    let (of, bits) = (self.of(data.args[0]), i64::from(by.trailing_zeros()));
                    match data.op {
                        Op::Int(IntBinary::Mul) => of.shifted(bits),
                        Op::Int(IntBinary::DivU) => of.shifted(-bits),
                        _ => of.masked(by - 1),
                    }
                }
                // Rows of threads, whose length is a parameter: how they are numbered together.
                _ if data.op == Op::Int(IntBinary::Mul) => {
                    Number { constant: 0, ..self.of(data.args[0]).plus(self.of(data.args[1])) }
                }
                _ => self.same_of_same(value),
            },
            _ => self.same_of_same(value),
        }
    }

    /// Whether only one lane of a warp comes to the block.
    fn one_lane(&mut self, cfg: &Cfg, dom: &DomTree, block: Block) -> bool {
        let mut at = block;
        while let Some(parent) = dom.idom(at) {
            if cfg.preds(at) == [parent]
                && let Terminator::Branch { cond, then, otherwise, .. } = &self.func.block(parent).term
                && then.block != otherwise.block
                && self.is_of_one_lane(*cond, then.block == at, DEPTH)
            {
                return true;
            }
            at = parent;
        }
        false
    }

    /// Whether a condition can be `holds` in one lane of a warp only.
    fn is_of_one_lane(&mut self, cond: Value, holds: bool, depth: u32) -> bool {
        let (Some(data), Some(depth)) = (self.func.def_inst(cond), depth.checked_sub(1)) else {
            return false;
        };
        match data.op {
            Op::IntCmp(cmp) if cmp == if holds { IntCmp::Eq } else { IntCmp::Ne } => {
                let [a, b] = [0, 1].map(|at| self.of(data.args[at]));
                a.lanes && !a.warps && b.is_same() || b.lanes && !b.warps && a.is_same()
            }
            Op::IntUnary(IntUnary::Not) => self.is_of_one_lane(data.args[0], !holds, depth),
            Op::Int(op) if op == if holds { IntBinary::And } else { IntBinary::Or } => {
                data.args.iter().any(|arg| self.is_of_one_lane(*arg, holds, depth))
            }
            _ => false,
        }
    }

    /// What is the same for all, as it is computed from what is.
    fn same_of_same(&mut self, value: Value) -> Number {
        let Some(data) = self.func.def_inst(value) else { return Number::UNKNOWN };
        let is_same = data.op.is_pure() && data.args.iter().all(|arg| self.of(*arg).is_same());
        if is_same { Number::SAME } else { Number::UNKNOWN }
    }
}

#[cfg(test)]
mod tests {
    use simt_ir::{FunctionBuilder, Signature, Target, Type};

    use super::*;

    const SHARED: Access = Access::weak(Space::Shared, 0);

    fn barrier(b: &mut FunctionBuilder) {
        let id = b.constant(Type::I32, 0);
        b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[id]);
    }

    /// How often warps give way where each leaves a word, all read a word at `read` after a barrier, and each leaves another: at its number times four,
    /// or, if it is for one lane, at its thread's number over eight. There may be a second barrier.
    fn ways(read: u64, for_one: bool, second: bool) -> usize {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let constant = |b: &mut FunctionBuilder, bits| b.constant(Type::I32, bits);
        let [five, two, three, lanes, zero] = [5, 2, 3, 31, 0].map(|bits| constant(&mut b, bits));
        let at = if for_one {
            b.inst(Op::Shift(Shift::RightU), &[tid, three], Type::I32)
        } else {
            let warp = b.inst(Op::Shift(Shift::RightU), &[tid, five], Type::I32);
            b.inst(Op::Shift(Shift::Left), &[warp, two], Type::I32)
        };
        let lane = b.inst(Op::Int(IntBinary::And), &[tid, lanes], Type::I32);
        let first = b.inst(Op::IntCmp(IntCmp::Eq), &[lane, zero], Type::Pred);
        let start = constant(&mut b, 0x400);
        let at = b.inst(Op::Int(IntBinary::Add), &[start, at], Type::I32);
        b.effect(Op::Store(SHARED), &[at, tid]);
        barrier(&mut b);
        let from = constant(&mut b, read);
        let sum = b.inst(Op::Load(SHARED), &[from], Type::I32);
        if second {
            barrier(&mut b);
        }
        let (store, end) = (b.block(), b.block());
        let (then, otherwise) = (Target::new(store), Target::new(end));
        b.terminate(Terminator::Branch { cond: first, then, otherwise, uniform: false });
        b.switch_to(store);
        b.effect(Op::Store(SHARED), &[at, sum]);
        b.terminate(Terminator::Jump(Target::new(end)));
        b.switch_to(end);
        barrier(&mut b);
        b.terminate(Terminator::Exit);
        let mut func = b.finish();
        keep(&mut func);
        let count = |func: &Function| {
            let insts = func.blocks().flat_map(|block| &func.block(block).insts);
            insts.filter(|inst| func.inst(**inst).op == Op::GiveWay).count()
        };
        let found = count(&func);
        forget(&mut func);
        assert_eq!(count(&func), 0);
        found
    }

    #[test]
    fn warps_read_before_one_of_them_overwrites() {
        assert_eq!([ways(0x400, false, false), ways(0x47c, false, false), ways(0x400, true, false)], [1; 3]);
    }

    #[test]
    fn what_is_behind_a_barrier_or_elsewhere_needs_no_care() {
        assert_eq!([ways(0x400, false, true), ways(0x480, false, false), ways(0x3fc, true, false)], [0; 3]);
    }
}
