//! Loops that wait for what another thread does.
//!
//! A warp that polls memory must let others run, so such a loop is a suspension point ([`Polling::yields`]). If the lanes of a
//! warp may leave it one by one, a lane that goes on may be what another waits for, a lock's holder for instance; running in step, it never
//! gets to go on. Code that runs lanes in step cannot run such a loop ([`Polling::lanes_wait`]).

use std::collections::HashSet;

use simt_ir::{
    AtomicOp, Block, Cfg, Def, DomTree, Function, Inst, IntBinary, IntCmp, Op, Order, SpecialReg, Terminator,
    Value,
};

use crate::{LoopId, Loops, Shapes};

/// The waiting loops of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polling {
    /// Latches of loops that a whole warp leaves at once.
    pub yields: Vec<Block>,
    /// Loops that lanes leave one by one.
    pub lanes_wait: Vec<LoopId>,
}

/// Finds loops that end when memory changes under them, in a function in normal form. `dims` are the dimensions of a block that may
/// exceed 1.
pub fn find(func: &Function, cfg: &Cfg, dom: &DomTree, loops: &Loops, shapes: &Shapes, dims: u8) -> Polling {
    let mut polling = Polling::default();
    for id in loops.ids() {
        let polls = loops
            .exit_edges(id, cfg)
            .iter()
            .filter_map(|(from, _)| match func.block(*from).term {
                Terminator::Branch { cond, .. } => Some(cond),
                _ => None,
            })
            .any(|cond| Search { func, loops, id, seen: HashSet::new() }.polls(cond));
        if !polls {
            continue;
        }
        let alone = || one_thread(func, cfg, dom, loops.get(id).header, dims);
        if shapes.divergent_loops()[id.index()] && !alone() {
            polling.lanes_wait.push(id);
        } else {
            let header = loops.get(id).header;
            let latch = cfg.preds(header).iter().find(|pred| loops.contains(id, **pred));
            polling.yields.extend(latch);
        }
    }
    polling
}

/// Whether only the thread with index 0 in all dimensions comes to the block.
fn one_thread(func: &Function, cfg: &Cfg, dom: &DomTree, block: Block, dims: u8) -> bool {
    let mut zero = HashSet::new();
    let mut at = block;
    while let Some(parent) = dom.idom(at) {
        if cfg.preds(at) == [parent]
            && let Terminator::Branch { cond, then, otherwise, .. } = &func.block(parent).term
            && then.block != otherwise.block
        {
            zero_if(func, *cond, then.block == at, &mut zero);
        }
        at = parent;
    }
    (0..dims).all(|axis| zero.contains(&axis))
}

/// Adds the dimensions in which a thread's index is surely 0 when the condition is `holds`.
fn zero_if(func: &Function, cond: Value, holds: bool, zero: &mut HashSet<u8>) {
    let Some(data) = func.def_inst(cond) else { return };
    match data.op {
        Op::IntUnary(simt_ir::IntUnary::Not) => zero_if(func, data.args[0], !holds, zero),
        Op::Int(IntBinary::And) if holds => data.args.iter().for_each(|arg| zero_if(func, *arg, true, zero)),
        Op::Int(IntBinary::Or) if !holds => data.args.iter().for_each(|arg| zero_if(func, *arg, false, zero)),
        Op::IntCmp(cmp) if cmp == if holds { IntCmp::Eq } else { IntCmp::Ne } => {
            let is_zero = |value: Value| func.constant(value) == Some(0);
            if is_zero(data.args[1]) {
                terms(func, data.args[0], zero);
            } else if is_zero(data.args[0]) {
                terms(func, data.args[1], zero);
            } else {
                // `x + y == -z`, as compilers write `x + y + z == 0`.
                for (sum, other) in [(0, 1), (1, 0)] {
                    let other = func.def_inst(data.args[other]);
                    if let Some(negated) =
                        other.filter(|data| data.op == Op::IntUnary(simt_ir::IntUnary::Neg))
                    {
                        terms(func, data.args[sum], zero);
                        terms(func, negated.args[0], zero);
                    }
                }
            }
        }
        _ => {}
    }
}

/// Adds the thread indices of which a value is the sum or the union, if it is of nothing else.
fn terms(func: &Function, value: Value, zero: &mut HashSet<u8>) {
    let mut found = HashSet::new();
    let mut work = vec![value];
    while let Some(value) = work.pop() {
        match func.def_inst(value).map(|data| (data.op, &data.args)) {
            Some((Op::Int(IntBinary::Add | IntBinary::Or), args)) => work.extend_from_slice(args),
            Some((Op::SpecialReg(SpecialReg::Tid(axis)), _)) => {
                found.insert(axis);
            }
            _ => return,
        }
    }
    zero.extend(found);
}

struct Search<'a> {
    func: &'a Function,
    loops: &'a Loops,
    id: LoopId,
    seen: HashSet<Value>,
}

impl Search<'_> {
    /// Whether a value computed in the loop depends on a look at memory that others change.
    fn polls(&mut self, value: Value) -> bool {
        if !self.seen.insert(value) {
            return false;
        }
        match self.func.def(value) {
            Def::Result(inst, _) => {
                let data = self.func.inst(inst);
                if self.advances(inst) || !self.inside(value) {
                    return false;
                }
                self.looks(inst) || data.args.clone().into_iter().any(|arg| self.polls(arg))
            }
            Def::Param(block, index) => {
                if !self.loops.contains(self.id, block) {
                    return false;
                }
                let passed: Vec<Value> = self
                    .loops
                    .get(self.id)
                    .blocks
                    .iter()
                    .flat_map(|from| self.func.block(*from).term.targets())
                    .filter(|target| target.block == block)
                    .map(|target| target.args[index as usize])
                    .collect();
                passed.into_iter().any(|arg| self.polls(arg))
            }
            Def::Removed => false,
        }
    }

    fn inside(&self, value: Value) -> bool {
        let mut blocks = self.loops.get(self.id).blocks.iter();
        blocks.any(|block| {
            let mut insts = self.func.block(*block).insts.iter();
            insts.any(|inst| self.func.inst(*inst).results.contains(&value))
        })
    }

    /// An access that shows what others did, and leaves memory as it is when the answer is to wait.
    fn looks(&self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        let constant = |at: usize| self.func.constant(data.args[at]);
        let looks = match data.op {
            Op::Load(access) => access.order != Order::Weak,
            // Who expects what was there last time succeeds unless another does.
            Op::AtomicCas(_) => !self.varies(data.args[1], &mut HashSet::new()),
            Op::Atomic(AtomicOp::Exch, _) => true,
            Op::Atomic(AtomicOp::Add | AtomicOp::Xor, _) => constant(1) == Some(0),
            Op::Atomic(AtomicOp::And | AtomicOp::Or | AtomicOp::MaxU | AtomicOp::MinU, _) => {
                constant(1).is_some()
            }
            _ => false,
        };
        // Who looks elsewhere each time is searching, not waiting.
        looks && !self.varies(data.args[0], &mut HashSet::new())
    }

    /// Whether a value may differ from one iteration to the next.
    fn varies(&self, value: Value, seen: &mut HashSet<Value>) -> bool {
        if !seen.insert(value) {
            return false;
        }
        match self.func.def(value) {
            Def::Result(inst, _) => {
                let data = self.func.inst(inst);
                self.inside(value)
                    && (!data.op.is_pure() || data.args.iter().any(|arg| self.varies(*arg, seen)))
            }
            Def::Param(block, _) => self.loops.contains(self.id, block),
            Def::Removed => false,
        }
    }

    /// A comparison that tells whether a compare-and-swap succeeded which expects what was there last time: some thread succeeds each
    /// time, so nobody waits.
    fn advances(&self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        if !matches!(data.op, Op::IntCmp(IntCmp::Eq | IntCmp::Ne)) {
            return false;
        }
        let swaps = |old: Value, expected: Value| {
            self.func.def_inst(old).is_some_and(|swap| {
                matches!(swap.op, Op::AtomicCas(_))
                    && swap.args[1] == expected
                    && self.func.constant(expected).is_none()
            })
        };
        swaps(data.args[0], data.args[1]) || swaps(data.args[1], data.args[0])
    }
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{Access, FunctionBuilder, Signature, Space, SpecialReg, Target, Type};

    use super::*;
    use crate::prepare;

    /// A kernel that tries an operation on memory until it yields zero.
    fn until_zero(attempt: impl FnOnce(&mut FunctionBuilder, Value) -> Value, own_place: bool) -> Polling {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let mut place = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        if own_place {
            let lane = b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32);
            let lane = b.inst(Op::Convert(simt_ir::Convert::ZExt), &[lane], Type::I64);
            place = b.inst(Op::Int(simt_ir::IntBinary::Add), &[place, lane], Type::I64);
        }
        let (body, end) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let value = attempt(&mut b, place);
        let zero = b.constant(Type::I32, 0);
        let again = b.inst(Op::IntCmp(IntCmp::Ne), &[value, zero], Type::Pred);
        b.terminate(Terminator::Branch {
            cond: again,
            then: Target::new(body),
            otherwise: Target::new(end),
            uniform: false,
        });
        b.switch_to(end);
        b.terminate(Terminator::Exit);
        prepare(b.finish(), true, &Shape::of([1; 3], [32, 1, 1])).unwrap().polling
    }

    #[test]
    fn a_loop_on_a_flag_yields_and_a_lock_is_left_alone() {
        let volatile = Access { order: Order::Volatile, ..Access::weak(Space::Global, 0) };
        let flag = |b: &mut FunctionBuilder, place| b.inst(Op::Load(volatile), &[place], Type::I32);
        let polling = until_zero(flag, false);
        assert_eq!((polling.yields.len(), polling.lanes_wait.len()), (1, 0));
        let polling = until_zero(flag, true);
        assert_eq!((polling.yields.len(), polling.lanes_wait.len()), (0, 1));
        let lock = |b: &mut FunctionBuilder, place| {
            let (zero, one) = (b.constant(Type::I32, 0), b.constant(Type::I32, 1));
            b.inst(Op::AtomicCas(volatile), &[place, zero, one], Type::I32)
        };
        assert_eq!(until_zero(lock, false).lanes_wait.len(), 1);
        let count = |b: &mut FunctionBuilder, place| {
            let one = b.constant(Type::I32, 1);
            b.inst(Op::Atomic(AtomicOp::Add, volatile), &[place, one], Type::I32)
        };
        assert_eq!(until_zero(count, false), Polling::default(), "who counts gets on");
    }
}
