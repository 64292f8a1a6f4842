//! Lanes one at a time.
//!
//! Where each lane goes over a row of its own, as of a sparse matrix or one in which it puts the sums, or keeps a stack, every access is as many places
//! as there are lanes, and those whose rows are short wait for the others. There is little arithmetic to do side by side then, and a processor is better at code without
//! vectors: it looks ahead over iterations and runs each lane for as long as that one goes on. Strips of one lane are such code. Estimated here is what a
//! lane takes either way, roughly: what pays beyond doubt does so several times over.
//!
//! Not where the next access waits for what the last one has brought, as in a search: the lanes of a vector wait together.

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Def, InstData, IntBinary, Op, Order, Space, Value};

use crate::{LaneShape, LoopId, Prepared, chains, packs};

/// How much more the lanes of a vector must take.
const MARGIN: u64 = 2;
/// How much longer a vector goes round a loop than its lanes do by mean, if they leave it one by one.
const WAITS: u64 = 2;
/// Iterations, by which what is in a loop counts for more.
const ITERATIONS: u64 = 8;

/// What a lane takes, in tenths of a processor's cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cost {
    in_vectors: u64,
    alone: u64,
}

/// Of an operation, for each unit of its work.
const OPERATION: Cost = Cost { in_vectors: 1, alone: 3 };
/// Of an access to places side by side.
const IN_ORDER: Cost = Cost { in_vectors: 1, alone: 5 };
/// Of one to places side by side that are elsewhere in each iteration: lanes that come one after another find little of what the last one had near.
const ACROSS: Cost = Cost { in_vectors: 1, alone: 30 };
/// Bytes, or elements, that the next iteration is at most away where it finds what the last one had near.
const NEAR: u64 = 64;
/// Of one that is in another place in each lane, from which something is loaded or to which it is stored,
const GATHERED: Cost = Cost { in_vectors: 20, alone: 5 };
const SCATTERED: Cost = Cost { in_vectors: 40, alone: 5 };
/// or which is an atomic.
const ATOMIC: Cost = Cost { in_vectors: 30, alone: 20 };
/// Of an access to what lies in a row with something that is accessed: it comes with that.
const IN_ROW: Cost = Cost { in_vectors: 5, alone: 5 };
/// Bytes of a row.
const ROW: u64 = 16;
/// Of a load that the next iteration's waits for.
const AWAITED: u64 = 120;
/// Of a branch that each lane takes its own way.
const BRANCH: u64 = 80;

/// Of the end of a loop that nobody foresees, for each iteration.
const END: u64 = 20;

/// Whether a kernel's lanes had better run one at a time.
pub(crate) fn pays(p: &Prepared) -> bool {
    if !is_possible(p) {
        return false;
    }
    let mut sum = Cost::default();
    for block in p.usual_blocks() {
        let Some(cost) = of_block(p, block) else { return false };
        let often = p.often(block, ITERATIONS);
        let leave_apart = |id: LoopId| p.shapes.divergent_loops()[id.index()];
        let waits = if p.loops.around(block).any(leave_apart) { WAITS } else { 1 };
        sum.in_vectors += often * waits * cost.in_vectors;
        sum.alone += often * cost.alone;
    }
    sum.in_vectors > MARGIN * sum.alone
}

/// Whether nothing in a kernel is about other lanes, or about memory that they share and wait for.
pub(crate) fn is_possible(p: &Prepared) -> bool {
    let insts = p.cfg.order().iter().flat_map(|block| &p.func.block(*block).insts);
    p.polling.headers.is_empty()
        && insts.map(|inst| p.func.inst(*inst)).all(|data| match data.op {
            Op::Load(access) | Op::Store(access) => {
                access.order == Order::Weak && access.space != Space::Shared
            }
            Op::Atomic(_, access) => {
                access.lanes == 1
                    && matches!(access.order, Order::Weak | Order::Relaxed)
                    && matches!(access.space, Space::Global | Space::Generic)
            }
            Op::SpecialReg(reg) => !reg.is_of_lane() && !reg.is_counter(),
            Op::LocalBase => true,
            Op::ToGeneric(Space::Local) | Op::FromGeneric(Space::Local) => false,
            op => op.is_pure(),
        })
}

/// How many of so many lanes a loop may be left to at most for one after another to be no slower than all at once, where they store anywhere. To gather
/// is not so much more than to load, and lanes that leave a loop together are not told from others.
pub(crate) fn few_of(p: &Prepared, id: LoopId, lanes: u32) -> Option<u32> {
    let mut insts = p.loops.get(id).blocks.iter().flat_map(|block| &p.func.block(*block).insts);
    insts.find(|inst| {
        let data = p.func.inst(**inst);
        matches!(data.op, Op::Store(_) | Op::Atomic(..)) && p.shapes.of(data.args[0]).is_varying()
    })?;
    let sum = of_loop(p, id)?;
    Some((u64::from(lanes) * sum.in_vectors / (sum.alone + END)).min(lanes.into()) as u32)
}

/// How many of so many lanes may come to a loop at most for one after another to be faster. Atomics are done lane by lane in vectors too, and what is
/// stored takes as long for few as for all.
pub(crate) fn few_that_enter(p: &Prepared, id: LoopId, lanes: u32) -> Option<u32> {
    let insts = p.loops.get(id).blocks.iter().flat_map(|block| &p.func.block(*block).insts);
    let atomics = insts.filter(|inst| matches!(p.func.inst(**inst).op, Op::Atomic(..))).count() as u64;
    let sum = of_loop(p, id)?;
    let (of_all, of_each) = (sum.in_vectors - atomics * ATOMIC.in_vectors, sum.alone + END);
    let each = of_each.saturating_sub(atomics * ATOMIC.in_vectors).max(END);
    Some((u64::from(lanes) * of_all / (MARGIN * each)).min(lanes.into()) as u32)
}

/// What a loop's blocks take.
fn of_loop(p: &Prepared, id: LoopId) -> Option<Cost> {
    let mut sum = Cost::default();
    for block in &p.loops.get(id).blocks {
        let cost = of_block(p, *block)?;
        sum.in_vectors += cost.in_vectors;
        sum.alone += cost.alone;
    }
    Some(sum)
}

/// What a block takes; nothing if it has operations of which that is not known.
fn of_block(p: &Prepared, block: Block) -> Option<Cost> {
    let mut sum = Cost::default();
    let mut accessed: HashMap<Value, Vec<i64>> = HashMap::new();
    let own_row = packs::own_row(p, block).filter(|_| packs::may_be_apart(p, block));
    for inst in &p.func.block(block).insts {
        let data = p.func.inst(*inst);
        let mut cost = of_inst(p, block, data)?;
        if let Op::Load(access) | Op::Store(access) = data.op
            && (cost == GATHERED || cost == SCATTERED && own_row == Some(data.args[0]))
        {
            let places = accessed.entry(data.args[0]).or_default();
            if places.iter().any(|place| place.abs_diff(access.offset) < ROW) {
                cost = IN_ROW;
            } else {
                places.push(access.offset);
            }
        }
        sum.in_vectors += cost.in_vectors;
        sum.alone += cost.alone;
    }
    let inner = p.loops.innermost(block);
    let stays = |to: &Block| inner.is_some_and(|id| p.loops.contains(id, *to));
    if p.shapes.divergent()[block.index()] && p.cfg.succs(block).iter().all(stays) {
        sum.alone += BRANCH;
    }
    Some(sum)
}

fn of_inst(p: &Prepared, block: Block, data: &InstData) -> Option<Cost> {
    if let Some(access) = data.op.access() {
        return Some(match (data.op, p.shapes.of(data.args[0])) {
            _ if matches!(access.space, Space::Param | Space::Const) => Cost::default(),
            (Op::Atomic(..), _) => ATOMIC,
            (_, LaneShape::Affine(_) | LaneShape::Rows(_)) if goes_far(p, block, data.args[0]) => ACROSS,
            (_, LaneShape::Uniform | LaneShape::Affine(_) | LaneShape::Rows(_)) => IN_ORDER,
            (Op::Load(_), LaneShape::Varying) if is_awaited(p, block, data.args[0]) => {
                Cost { alone: AWAITED, ..GATHERED }
            }
            (Op::Load(_), LaneShape::Varying) => GATHERED,
            (_, LaneShape::Varying) => SCATTERED,
        });
    }
    if data.results.iter().all(|result| p.shapes.of(*result).is_uniform()) {
        return Some(Cost::default());
    }
    let work = match data.op {
        Op::SpecialReg(_) | Op::LocalBase | Op::ToGeneric(_) | Op::FromGeneric(_) => 1,
        op => u64::from(chains::of_op(&op)?.0),
    };
    Some(Cost { in_vectors: work * OPERATION.in_vectors, alone: work * OPERATION.alone })
}

/// Whether an address in a loop is computed from what an earlier iteration has loaded.
fn is_awaited(p: &Prepared, block: Block, address: Value) -> bool {
    let Some(id) = p.loops.innermost(block) else { return false };
    nexts(p, id, &sources(p, id, address)).into_iter().any(|(_, next)| {
        sources(p, id, next).iter().any(|value| matches!(p.op_of(*value), Some(Op::Load(_))))
    })
}

/// Whether an address in a loop is far from where it was an iteration earlier, for all that is known.
fn goes_far(p: &Prepared, block: Block, address: Value) -> bool {
    let Some(id) = p.loops.innermost(block) else { return false };
    let sources = sources(p, id, address);
    let nexts = nexts(p, id, &sources);
    let constant = |data: &InstData, but: Value| {
        let mut others = data.args.iter().filter(|arg| **arg != but);
        let bits = others.next().and_then(|arg| p.func.constant(*arg))?;
        others.next().is_none().then_some(bits as i32)
    };
    let is_near = |(param, next): &(Value, Value)| {
        let step = p.func.def_inst(*next).filter(|data| data.op == Op::Int(IntBinary::Add));
        step.and_then(|data| constant(data, *param))
            .is_some_and(|step| u64::from(step.unsigned_abs()) <= NEAR)
    };
    // A number that goes up by one may be that of a row.
    let is_times = |value: &Value| {
        let data = p.func.def_inst(*value).filter(|data| data.op == Op::Int(IntBinary::Mul));
        data.is_some_and(|data| data.args.iter().all(|arg| p.func.constant(*arg).is_none()))
    };
    !nexts.is_empty() && (!nexts.iter().all(is_near) || sources.iter().any(is_times))
}

/// The parameters of a loop among these values, and what each is in the next iteration.
fn nexts(p: &Prepared, id: LoopId, sources: &HashSet<Value>) -> Vec<(Value, Value)> {
    let header = p.loops.get(id).header;
    let latches = p.cfg.preds(header).iter().filter(|pred| p.loops.contains(id, **pred));
    let targets = latches.flat_map(|latch| p.func.block(*latch).term.targets());
    let backs: Vec<_> = targets.filter(|target| target.block == header).collect();
    let nexts = sources.iter().flat_map(|value| {
        let index = match p.func.def(*value) {
            Def::Param(block, index) if block == header => Some(index as usize),
            _ => None,
        };
        let targets = if index.is_some() { &backs[..] } else { &[] };
        targets.iter().map(move |target| (*value, target.args[index.unwrap_or_default()]))
    });
    nexts.collect()
}

/// What a value is computed from in one iteration of a loop, with itself: as far as to what the loop begins with.
fn sources(p: &Prepared, id: LoopId, value: Value) -> HashSet<Value> {
    let header = p.loops.get(id).header;
    let mut found = HashSet::new();
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        let inside = p.def_block[value.index()].is_some_and(|block| p.loops.contains(id, block));
        if !inside || !found.insert(value) {
            continue;
        }
        match p.func.def(value) {
            Def::Result(inst, _) => left.extend(&p.func.inst(inst).args),
            Def::Param(block, index) if block != header => {
                let targets = p.cfg.preds(block).iter().flat_map(|pred| p.func.block(*pred).term.targets());
                left.extend(targets.filter(|to| to.block == block).map(|to| to.args[index as usize]));
            }
            Def::Param(..) | Def::Removed => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{
        Access, Convert, Function, FunctionBuilder, IntBinary, IntCmp, Shift, Signature, SpecialReg, Target,
        Terminator, Type,
    };

    use super::*;

    /// What a lane does in each iteration.
    #[derive(Clone, Copy, PartialEq)]
    enum Walk {
        /// Takes the next element of its own row, a number, and adds up what lies there.
        Row,
        /// Goes on to the number that it has loaded.
        Chain,
        /// Takes its element of the next row.
        Along,
        /// Takes the next element of its own row, and puts the sum in its place.
        OwnRow,
        /// Takes its element of the next row, and puts it and the sum in places of its own row that lie together,
        Gather,
        /// or apart.
        Scatter,
        /// Counts its element of the next row in a table of its own.
        Count,
    }

    /// Lanes go from a number that each has loaded, or all have, up to another such.
    fn kernel(walk: Walk, is_common: bool) -> Function {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let access = Access::weak(Space::Global, 0);
        let [starts, numbers, elements, out] =
            [0, 8, 16, 24].map(|at| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], Type::I64));
        let place = |b: &mut FunctionBuilder, base: Value, index: Value| {
            let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
            let two = b.constant(Type::I32, 2);
            let bytes = b.inst(Op::Shift(Shift::Left), &[wide, two], Type::I64);
            b.inst(Op::Int(IntBinary::Add), &[base, bytes], Type::I64)
        };
        let load = |b: &mut FunctionBuilder, base: Value, index: Value| {
            let place = place(b, base, index);
            b.inst(Op::Load(access), &[place], Type::I32)
        };
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let one = b.constant(Type::I32, 1);
        let row = if is_common { one } else { tid };
        let next_row = b.inst(Op::Int(IntBinary::Add), &[row, one], Type::I32);
        let [start, end] = [row, next_row].map(|row| load(&mut b, starts, row));
        let (number, sum) = (b.var(Type::I32), b.var(Type::I32));
        let none = b.constant(Type::I32, 0);
        b.write(number, start);
        b.write(sum, none);
        let (body, after) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let at = b.read(number);
        let gathers = matches!(walk, Walk::Gather | Walk::Scatter);
        let place_of = if matches!(walk, Walk::Along | Walk::Count) {
            let width = b.inst(Op::SpecialReg(SpecialReg::Ntid(0)), &[], Type::I32);
            let first = b.inst(Op::Int(IntBinary::Mul), &[at, width], Type::I32);
            b.inst(Op::Int(IntBinary::Add), &[first, tid], Type::I32)
        } else {
            at
        };
        let place_of = if walk == Walk::OwnRow {
            let first = b.inst(Op::Int(IntBinary::Mul), &[tid, end], Type::I32);
            b.inst(Op::Int(IntBinary::Add), &[first, at], Type::I32)
        } else {
            place_of
        };
        let place_of = if gathers { tid } else { place_of };
        let mut there = place(&mut b, numbers, place_of);
        if gathers {
            let wide = b.inst(Op::Convert(Convert::SExt), &[at], Type::I64);
            let bits = b.constant(Type::I32, 12);
            let further = b.inst(Op::Shift(Shift::Left), &[wide, bits], Type::I64);
            there = b.inst(Op::Int(IntBinary::Add), &[there, further], Type::I64);
        }
        let loaded = b.inst(Op::Load(access), &[there], Type::I32);
        let element = if walk == Walk::Row { load(&mut b, elements, loaded) } else { loaded };
        let old = b.read(sum);
        let new = b.inst(Op::Int(IntBinary::Add), &[old, element], Type::I32);
        b.write(sum, new);
        if walk == Walk::Count {
            let table = b.inst(Op::LocalBase, &[], Type::I64);
            let count = place(&mut b, table, loaded);
            let access = Access::weak(Space::Local, 0);
            let old = b.inst(Op::Load(access), &[count], Type::I32);
            let next = b.inst(Op::Int(IntBinary::Add), &[old, one], Type::I32);
            b.effect(Op::Store(access), &[count, next]);
        }
        if walk == Walk::OwnRow {
            b.effect(Op::Store(access), &[there, new]);
        }
        if gathers {
            let first = b.inst(Op::Int(IntBinary::Mul), &[tid, end], Type::I32);
            let row = place(&mut b, out, first);
            for (at, value) in (0..).zip([element, new, element, new]) {
                let offset = if walk == Walk::Gather { 4 * at } else { 400 * at };
                b.effect(Op::Store(Access::weak(Space::Global, offset)), &[row, value]);
            }
        }
        let next =
            if walk == Walk::Chain { loaded } else { b.inst(Op::Int(IntBinary::Add), &[at, one], Type::I32) };
        b.write(number, next);
        let more = b.inst(Op::IntCmp(IntCmp::LtS), &[next, end], Type::Pred);
        let (then, otherwise) = (Target::new(body), Target::new(after));
        b.terminate(Terminator::Branch { cond: more, then, otherwise, uniform: false });
        b.switch_to(after);
        let sum = b.read(sum);
        let own = place(&mut b, out, tid);
        b.effect(Op::Store(access), &[own, sum]);
        b.terminate(Terminator::Exit);
        b.finish()
    }

    fn pays_for(walk: Walk, is_common: bool) -> bool {
        let shape = Shape::of([8, 1, 1], [128, 1, 1]);
        pays(&crate::prepare(kernel(walk, is_common), true, &shape).unwrap())
    }

    #[test]
    fn lanes_with_rows_of_their_own_run_one_at_a_time() {
        assert!(pays_for(Walk::Row, false));
        assert!(!pays_for(Walk::Row, true), "all lanes go over the same row");
        assert!(pays_for(Walk::OwnRow, true), "each store may change what the next element is");
        assert!(!pays_for(Walk::Chain, false), "the next load waits for the last, and lanes wait together");
        assert!(!pays_for(Walk::Along, true), "they lie side by side");
        assert!(!pays_for(Walk::Gather, true), "what each stores goes together");
        assert!(pays_for(Walk::Scatter, true), "what each stores goes to four lines");
        assert!(
            !pays_for(Walk::Count, true),
            "what one loads lies beside what the next one does, and far from where it goes on"
        );
    }
}
