//! Loops that wait for what another thread does.
//!
//! A warp that polls memory must let others run, so such a loop is a suspension point ([`Polling::yields`]). It may also wait for another lane
//! of its own warp, which in code that runs lanes in step never gets to go on ([`Polling::lanes_wait`]):
//!
//! * lanes leave the loop one by one, and one that has left is what another waits for: the holder of a lock. Not so where the loop gives back
//!   what it took before a lane leaves it: then every lane is through with it when the next iteration begins;
//! * lanes that are not in the loop could do something before they wait for those in it: they are in the other branch.

use std::collections::HashSet;

use simt_ir::{
    AtomicOp, Block, Cfg, ClusterBarrier, Def, DomTree, Function, Inst, IntBinary, IntCmp, Op, Order, Space,
    SpecialReg, Terminator, Value,
};

use crate::{Linear, LoopId, Loops, Shapes};

/// The waiting loops of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polling {
    /// Latches of loops that may run in step.
    pub yields: Vec<Block>,
    /// Loops that wait for lanes of the same warp.
    pub lanes_wait: Vec<LoopId>,
    /// Headers of all of them.
    pub headers: Vec<Block>,
    /// There may be others: loops in which threads meet, and that end by what is read in them: one thread could wait, and tell the others. Or
    /// loops that pass time, of whatever length.
    pub may_hide: bool,
}

/// Finds loops that end when memory changes under them, in a function in normal form. `dims` are the dimensions of a block that may
/// exceed 1.
pub fn find(
    func: &Function,
    cfg: &Cfg,
    dom: &DomTree,
    loops: &Loops,
    shapes: &Shapes,
    linear: &Linear,
    dims: u8,
) -> Polling {
    let mut polling = Polling::default();
    for id in loops.ids() {
        let search = Search::new(func, cfg, loops, id);
        let Found { looks, reads, takes, carried, through_frame, .. } = search.decisive();
        // What a loop without a way out waits for is the end of the launch, by a failure of another thread.
        let is_endless = loops.exit_edges(id, cfg).is_empty();
        if looks.is_empty() && !is_endless {
            polling.may_hide |= (reads || through_frame) && search.threads_meet();
            polling.may_hide |= search.passes_time();
            continue;
        }
        let header = loops.get(id).header;
        polling.headers.push(header);
        let parts = shapes.divergent_loops()[id.index()]
            && !one_thread(func, cfg, dom, header, dims)
            && (carried || !search.gives_back(&looks, &takes));
        if parts || others_act(func, cfg, loops, linear, id) {
            polling.lanes_wait.push(id);
        } else {
            let latch = cfg.preds(header).iter().find(|pred| loops.contains(id, **pred));
            polling.yields.extend(latch);
        }
    }
    polling
}

/// Whether lanes that wait elsewhere while others are in a loop could do something first that is seen from there.
fn others_act(func: &Function, cfg: &Cfg, loops: &Loops, linear: &Linear, id: LoopId) -> bool {
    let header = loops.get(id).header;
    // Nobody waits at the loop's own exits but those that have left it.
    let is_exit = |block: Block| cfg.preds(block).iter().all(|pred| loops.contains(id, *pred));
    let mut work: Vec<Block> = linear.deferred(header).filter(|block| !is_exit(*block)).collect();
    let mut seen = HashSet::new();
    while let Some(block) = work.pop() {
        if !seen.insert(block) {
            continue;
        }
        let mut insts = func.block(block).insts.iter().map(|inst| func.inst(*inst));
        let first = insts.find_map(|data| match data.op {
            Op::Store(access) => (!matches!(access.space, Space::Local)).then_some(true),
            Op::Atomic(..) | Op::AtomicCas(_) | Op::Call(_) | Op::CallIndirect(_) | Op::Syscall(_) => {
                Some(true)
            }
            // An address is looked at by every access.
            Op::Refuse(refusal) if refusal != simt_ir::Refusal::Misaligned => Some(true),
            // There they wait for those in the loop, on any device.
            Op::Barrier { count: false, .. } | Op::ClusterBarrier(ClusterBarrier::Wait) => Some(false),
            op if op.is_convergent() => {
                let mask = data.args.last().and_then(|mask| func.constant(*mask));
                (mask == Some(u32::MAX.into())).then_some(false)
            }
            _ => None,
        });
        match first {
            Some(true) => return true,
            Some(false) => {}
            None if func.block(block).term == Terminator::Trap => return true,
            None => work.extend_from_slice(cfg.succs(block)),
        }
    }
    false
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
    cfg: &'a Cfg,
    loops: &'a Loops,
    id: LoopId,
    /// What the loop's instructions define.
    defined: HashSet<Value>,
    /// Something in the loop says that memory changes meanwhile.
    expects_change: bool,
}

impl<'a> Search<'a> {
    fn new(func: &'a Function, cfg: &'a Cfg, loops: &'a Loops, id: LoopId) -> Search<'a> {
        let mut search = Search { func, cfg, loops, id, defined: HashSet::new(), expects_change: false };
        for inst in search.insts() {
            let data = func.inst(inst);
            search.expects_change |= matches!(data.op, Op::Fence { .. } | Op::Nanosleep);
            search.defined.extend(&data.results);
        }
        search
    }

    fn insts(&self) -> Vec<Inst> {
        self.loops
            .get(self.id)
            .blocks
            .iter()
            .flat_map(|block| self.func.block(*block).insts.clone())
            .collect()
    }

    /// Whether its threads sleep or look at a clock.
    fn passes_time(&self) -> bool {
        self.insts().iter().any(|inst| match self.func.inst(*inst).op {
            Op::Nanosleep => true,
            Op::SpecialReg(reg) => reg.is_counter(),
            _ => false,
        })
    }

    fn threads_meet(&self) -> bool {
        self.insts().iter().any(|inst| self.func.inst(*inst).op.is_barrier())
    }

    /// What decides whether a thread stays in the loop.
    fn decisive(&self) -> Found {
        let mut found = Found::default();
        let exiting: Vec<Block> =
            self.loops.exit_edges(self.id, self.cfg).into_iter().map(|(from, _)| from).collect();
        for &from in exiting.iter().chain(&self.short_ways(&exiting)) {
            if let Terminator::Branch { cond, .. } = self.func.block(from).term {
                self.decides(cond, &mut found);
            }
        }
        if found.through_frame {
            // What is kept in the frame may come from any look.
            found.looks.extend(self.insts().into_iter().filter(|inst| self.looks(*inst)));
        }
        found
    }

    /// The blocks at which a thread may turn back to the next iteration before it comes to where the loop is left, or go on to there.
    fn short_ways(&self, exiting: &[Block]) -> Vec<Block> {
        let blocks = &self.loops.get(self.id).blocks;
        let header = self.loops.get(self.id).header;
        // From where there is a way to one of these inside the loop, within an iteration, and without coming past an exit.
        let leads_to = |goals: &dyn Fn(Block) -> bool| {
            let mut leads: HashSet<Block> = HashSet::new();
            let mut work: Vec<Block> = blocks.iter().copied().filter(|block| goals(*block)).collect();
            while let Some(block) = work.pop() {
                for &pred in self.cfg.preds(block) {
                    let is_inside = self.loops.contains(self.id, pred) && block != header;
                    if is_inside && !exiting.contains(&pred) && leads.insert(pred) {
                        work.push(pred);
                    }
                }
            }
            leads
        };
        let goes_back = |block: Block| self.cfg.succs(block).contains(&header);
        let back = leads_to(&|block| goes_back(block) && !exiting.contains(&block));
        let out = leads_to(&|block| exiting.contains(&block));
        let turns_back = |succ: &Block| {
            *succ == header || back.contains(succ) || goes_back(*succ) && !exiting.contains(succ)
        };
        let goes_out = |succ: &Block| *succ != header && (out.contains(succ) || exiting.contains(succ));
        let may_both = |block: &Block| {
            let succs = self.cfg.succs(*block);
            !exiting.contains(block) && succs.iter().any(turns_back) && succs.iter().any(goes_out)
        };
        blocks.iter().copied().filter(may_both).collect()
    }

    /// Adds the looks that a value computed in the loop depends on.
    fn decides(&self, value: Value, found: &mut Found) {
        if !found.seen.insert(value) {
            return;
        }
        match self.func.def(value) {
            Def::Result(inst, _) => {
                if self.advances(inst) || !self.inside(value) {
                    return;
                }
                if self.looks(inst) {
                    found.looks.push(inst);
                    found.carried |= found.from_before;
                    return;
                }
                let data = self.func.inst(inst);
                if matches!(data.op, Op::Atomic(..)) {
                    found.takes.push(inst);
                }
                found.through_frame |= self.is_frame(inst);
                found.reads |= reads(&data.op);
                data.args.iter().for_each(|arg| self.decides(*arg, found));
            }
            Def::Param(block, index) => {
                if !self.loops.contains(self.id, block) {
                    return;
                }
                let is_carried = block == self.loops.get(self.id).header;
                let before = found.from_before;
                found.from_before |= is_carried;
                for &from in self.cfg.preds(block) {
                    if !self.loops.contains(self.id, from) {
                        continue;
                    }
                    for target in self.func.block(from).term.targets() {
                        if target.block == block {
                            self.decides(target.args[index as usize], found);
                        }
                    }
                    // Which of them it is, the way to the block decides.
                    self.decided_by_way(block, from, found);
                }
                found.from_before = before;
            }
            Def::Removed => {}
        }
    }

    /// Adds the looks that decide by which of its predecessors control comes to `join`.
    fn decided_by_way(&self, join: Block, from: Block, found: &mut Found) {
        let mut at = from;
        let header = self.loops.get(self.id).header;
        while at != header && found.ways.insert((join, at)) {
            if let Terminator::Branch { cond, .. } = self.func.block(at).term {
                self.decides(cond, found);
            }
            // A chain of blocks with one predecessor each leads to the branch; further joins count by their own parameters.
            match self.cfg.preds(at) {
                [pred] if self.loops.contains(self.id, *pred) => at = *pred,
                _ => return,
            }
        }
        if let Terminator::Branch { cond, .. } = self.func.block(at).term {
            self.decides(cond, found);
        }
    }

    /// Whether the loop writes where it looked, whichever way a thread leaves it after a look. What tells whether it took what it saw does not count.
    fn gives_back(&self, looks: &[Inst], takes: &[Inst]) -> bool {
        looks.iter().all(|look| {
            let place = self.func.inst(*look).args[0];
            let gives = |inst: &Inst| {
                let data = self.func.inst(*inst);
                let writes = matches!(data.op, Op::Store(_) | Op::Atomic(..)) && data.args[0] == place;
                writes && inst != look && !takes.contains(inst)
            };
            let holds = |block: &Block| self.func.block(*block).insts.contains(look);
            let Some(start) = self.loops.get(self.id).blocks.iter().copied().find(holds) else {
                return false;
            };
            let insts = &self.func.block(start).insts;
            let after = insts.iter().skip_while(|inst| *inst != look);
            if after.into_iter().any(gives) {
                return true;
            }
            let mut seen = HashSet::new();
            let mut work = self.cfg.succs(start).to_vec();
            while let Some(block) = work.pop() {
                if !self.loops.contains(self.id, block) {
                    return false;
                }
                let next_round = block == self.loops.get(self.id).header;
                if !next_round && seen.insert(block) && !self.func.block(block).insts.iter().any(gives) {
                    work.extend_from_slice(self.cfg.succs(block));
                }
            }
            true
        })
    }

    fn inside(&self, value: Value) -> bool {
        self.defined.contains(&value)
    }

    /// A load from the thread's own frame: what compilers do with variables when they do not optimise.
    fn is_frame(&self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        match data.op {
            Op::Load(access) if access.space == Space::Local => true,
            Op::Load(access) => access.space == Space::Generic && self.is_frame_address(data.args[0]),
            _ => false,
        }
    }

    fn is_frame_address(&self, mut address: Value) -> bool {
        while let Some(data) = self.func.def_inst(address) {
            match data.op {
                Op::ToGeneric(Space::Local) | Op::LocalBase => return true,
                Op::Int(IntBinary::Add) => address = data.args[0],
                _ => return false,
            }
        }
        false
    }

    /// An access that shows what others did, and leaves memory as it is when the answer is to wait.
    fn looks(&self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        let constant = |at: usize| self.func.constant(data.args[at]);
        // Code that was not optimised keeps its constants in the frame too.
        let in_frame = |at: usize| match self.func.def(data.args[at]) {
            Def::Result(inst, _) => self.is_frame(inst),
            Def::Param(..) | Def::Removed => false,
        };
        let looks = match data.op {
            Op::Load(access) if access.order == Order::Weak => {
                self.expects_change && !access.invariant && !self.is_frame(inst)
            }
            Op::Load(_) => true,
            // Who expects what was there last time succeeds unless another does.
            Op::AtomicCas(_) => !self.varies(data.args[1], &mut HashSet::new()),
            Op::Atomic(AtomicOp::Exch, _) => true,
            Op::Atomic(AtomicOp::Add | AtomicOp::Xor | AtomicOp::FAdd { .. }, _) => {
                constant(1) == Some(0) || in_frame(1)
            }
            // Once done, it changes nothing.
            Op::Atomic(
                AtomicOp::And
                | AtomicOp::Or
                | AtomicOp::MaxU
                | AtomicOp::MinU
                | AtomicOp::MaxS
                | AtomicOp::MinS,
                _,
            ) => !self.varies(data.args[1], &mut HashSet::new()) || in_frame(1),
            _ => false,
        };
        // Who looks elsewhere each time is searching, not waiting; but not who moves on only once it has found something.
        looks
            && (!self.varies(data.args[0], &mut HashSet::new())
                || self.may_stay(data.args[0], &mut HashSet::new()))
    }

    /// Whether a value that differs between iterations may be the same in the next.
    fn may_stay(&self, value: Value, seen: &mut HashSet<Value>) -> bool {
        if !seen.insert(value) {
            return true;
        }
        let header = self.loops.get(self.id).header;
        match self.func.def(value) {
            Def::Result(inst, _) if self.inside(value) => {
                let data = self.func.inst(inst);
                data.op.is_pure() && data.args.iter().all(|arg| self.may_stay(*arg, seen))
            }
            Def::Param(block, at) if self.loops.contains(self.id, block) => {
                let ways = self.ways(block, at as usize);
                match block == header {
                    true => ways.into_iter().any(|way| self.is_passed(way, value, &mut HashSet::new())),
                    false => ways.into_iter().any(|way| self.may_stay(way, seen)),
                }
            }
            Def::Result(..) | Def::Param(..) => true,
            Def::Removed => false,
        }
    }

    /// Whether a value is another on some way inside the loop.
    fn is_passed(&self, value: Value, other: Value, seen: &mut HashSet<Value>) -> bool {
        if value == other {
            return true;
        }
        match self.func.def(value) {
            Def::Param(block, at) if self.loops.contains(self.id, block) && seen.insert(value) => {
                let ways = self.ways(block, at as usize);
                block != self.loops.get(self.id).header
                    && ways.into_iter().any(|way| self.is_passed(way, other, seen))
            }
            Def::Result(inst, _) if self.func.inst(inst).op == Op::Select => {
                self.func.inst(inst).args[1..].iter().any(|arg| self.is_passed(*arg, other, seen))
            }
            _ => false,
        }
    }

    /// What comes to a parameter from inside the loop.
    fn ways(&self, block: Block, at: usize) -> Vec<Value> {
        let preds = self.cfg.preds(block).iter().filter(|pred| self.loops.contains(self.id, **pred));
        let targets = preds.flat_map(|pred| self.func.block(*pred).term.targets());
        targets.filter(|target| target.block == block).map(|target| target.args[at]).collect()
    }

    /// Whether a value may differ from one iteration to the next.
    fn varies(&self, value: Value, seen: &mut HashSet<Value>) -> bool {
        if !seen.insert(value) {
            return false;
        }
        match self.func.def(value) {
            Def::Result(inst, _) => {
                let data = self.func.inst(inst);
                // A variable in the frame may be an index that moves on, but then the loop ends soon.
                self.inside(value)
                    && (!(data.op.is_pure() || self.is_frame(inst))
                        || data.args.iter().any(|arg| self.varies(*arg, seen)))
            }
            Def::Param(block, _) => self.loops.contains(self.id, block),
            Def::Removed => false,
        }
    }

    /// A comparison that tells whether a compare-and-swap succeeded which expects what was there last time: some thread succeeds each
    /// time, so nobody waits. Who expects the same each time does.
    fn advances(&self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        if !matches!(data.op, Op::IntCmp(IntCmp::Eq | IntCmp::Ne)) {
            return false;
        }
        let swaps = |old: Value, expected: Value| {
            self.func.def_inst(old).is_some_and(|swap| {
                matches!(swap.op, Op::AtomicCas(_))
                    && swap.args[1] == expected
                    && self.varies(expected, &mut HashSet::new())
            })
        };
        swaps(data.args[0], data.args[1]) || swaps(data.args[1], data.args[0])
    }
}

/// Whether the result is of what others may have done.
fn reads(op: &Op) -> bool {
    match op {
        Op::Load(access) => !access.invariant && !matches!(access.space, Space::Param | Space::Const),
        Op::Atomic(..)
        | Op::AtomicCas(_)
        | Op::MbarrierArrive { .. }
        | Op::Call(_)
        | Op::CallIndirect(_)
        | Op::Syscall(_)
        | Op::Texture(_)
        | Op::Recall(_) => true,
        _ => false,
    }
}

/// What decides whether a thread stays in a loop.
#[derive(Default)]
struct Found {
    /// The looks at memory.
    looks: Vec<Inst>,
    /// Something that is read does, if not a look.
    reads: bool,
    /// Atomics that change what is there, and whose answers do.
    takes: Vec<Inst>,
    /// A look of the iteration before does.
    carried: bool,
    /// What is looked for now is of the iteration before.
    from_before: bool,
    /// Something that comes from the thread's frame does.
    through_frame: bool,
    seen: HashSet<Value>,
    ways: HashSet<(Block, Block)>,
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
    fn a_loop_that_passes_time_hides_a_wait() {
        let asleep = until_zero(
            |b, _| {
                let time = b.constant(Type::I32, 100);
                b.effect(Op::Nanosleep, &[time]);
                b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32)
            },
            false,
        );
        assert!(asleep.may_hide);
        let clock = |b: &mut FunctionBuilder, _| b.inst(Op::SpecialReg(SpecialReg::Clock), &[], Type::I32);
        assert!(until_zero(clock, false).may_hide);
        let lane = |b: &mut FunctionBuilder, _| b.inst(Op::SpecialReg(SpecialReg::LaneId), &[], Type::I32);
        assert!(!until_zero(lane, false).may_hide);
    }

    #[test]
    fn a_loop_without_a_way_out_waits_for_the_end() {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let body = b.block();
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        b.terminate(Terminator::Jump(Target::new(body)));
        let polling = prepare(b.finish(), true, &Shape::of([1; 3], [32, 1, 1])).unwrap().polling;
        assert_eq!(polling.yields.len(), 1);
    }

    #[test]
    fn a_loop_in_which_threads_meet_hides_a_wait_if_it_ends_by_what_is_read() {
        let kernel = |meets: bool, space: Space| {
            until_zero(
                |b, place| {
                    if meets {
                        let id = b.constant(Type::I32, 0);
                        b.effect(Op::Barrier { kind: simt_ir::BarrierKind::Sync, count: false }, &[id]);
                    }
                    let place = match space {
                        Space::Shared => b.constant(Type::I64, 1024),
                        _ => place,
                    };
                    b.inst(Op::Load(Access::weak(space, 0)), &[place], Type::I32)
                },
                false,
            )
        };
        assert!(kernel(true, Space::Shared).may_hide);
        assert!(kernel(true, Space::Global).may_hide);
        assert!(!kernel(true, Space::Const).may_hide, "that is the same for ever");
        assert!(!kernel(false, Space::Shared).may_hide, "nobody could tell");
        assert_eq!(kernel(true, Space::Shared).yields, [], "it is not seen to wait");
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
        let look = |b: &mut FunctionBuilder, place| {
            // As code that was not optimised has it: the zero lies in the frame.
            let (frame, zero) = (b.inst(Op::LocalBase, &[], Type::I64), b.constant(Type::I32, 0));
            b.effect(Op::Store(Access::weak(Space::Local, 0)), &[frame, zero]);
            let zero = b.inst(Op::Load(Access::weak(Space::Local, 0)), &[frame], Type::I32);
            b.inst(Op::Atomic(AtomicOp::Add, volatile), &[place, zero], Type::I32)
        };
        assert_eq!(until_zero(look, false).lanes_wait.len(), 1, "who may add nothing looks");
    }
}
