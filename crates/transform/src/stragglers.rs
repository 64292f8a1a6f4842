//! Lanes that stay in a loop when most have left it, taken one after another.
//!
//! Where each thread follows something of its own, such as the edges of a vertex, some have far more to do than others, and a warp takes as long as its
//! longest: iterations for one or two lanes cost what those for all do, gathers above all. So a loop begins each iteration by asking whether few
//! lanes are left, and then does the rest for one lane at a time: its numbers are the same for the whole warp, and the code is as that of a
//! program with one thread. A loop that lanes leave together is asked for once, ahead of it, if memory tells which lanes come there: it may be few.

use std::collections::{HashMap, HashSet};

use kernel_abi::Shape;
use simt_ir::{
    Block, Def, Function, Inst, IntBinary, IntCmp, Op, Order, SourceLoc, Space, SpecialReg, Target,
    Terminator, Type, Value,
};

use crate::simplify::sign_extended;
use crate::{LaneShape, LoopId, Prepared, singly};

/// One of so many lanes is always few.
const PART: u32 = 8;

/// The most instructions of a loop that is there twice.
const MOST: usize = 96;

/// How many sums are followed to find by what a number moves.
const SUMS: u32 = 8;

/// The kernel with another way through loops for few lanes, if it has loops that gain by that, and the atomics on that way, to which one lane comes at
/// a time. It is in normal form, but for what of a loop is used outside.
pub fn split(p: &Prepared, shape: &Shape) -> Option<(Function, Vec<Inst>)> {
    let found = found(p);
    if found.is_empty() {
        return None;
    }
    let mut func = p.func.clone();
    let mut atomics = Vec::new();
    for (id, asks) in found {
        let few = match asks {
            Asks::Ahead => singly::few_that_enter(p, id, shape.lanes()).unwrap_or(0),
            Asks::InEachIteration => few_of(p, id, shape).max(shape.lanes() / PART).max(1),
        };
        if few == 0 {
            continue;
        }
        let loc = p.func.block(p.loops.get(id).header).term_loc;
        atomics.extend(Split { p, func: &mut func, id, asks, few: few as u8, loc }.apply());
    }
    atomics.sort_unstable();
    Some((func, atomics))
}

/// Where it is asked whether lanes are few.
#[derive(Clone, Copy, PartialEq)]
enum Asks {
    Ahead,
    InEachIteration,
}

/// Whether some loop is as fast from the start if lanes go through it one after another: a gang would go through it as often as its longest lane.
pub fn has_loops_of_their_own(p: &Prepared, shape: &Shape) -> bool {
    found(p)
        .into_iter()
        .any(|(id, asks)| asks == Asks::InEachIteration && few_of(p, id, shape) == shape.lanes())
}

fn found(p: &Prepared) -> Vec<(LoopId, Asks)> {
    if !p.shapes.divergent().contains(&true) || !p.polling.headers.is_empty() {
        return Vec::new();
    }
    let uses = p.uses();
    let asks = |id: LoopId| Some((id, may_gain(p, &uses, id)?));
    p.loops.ids().filter_map(asks).collect()
}

/// How many lanes are few of those in a loop.
fn few_of(p: &Prepared, id: LoopId, shape: &Shape) -> u32 {
    singly::few_of(p, id, shape.lanes()).unwrap_or(0)
}

/// Where a loop may ask for few lanes: they leave it one by one, long after each other, or few come there, and what it does for one takes far less than
/// for all.
fn may_gain(p: &Prepared, uses: &[u32], id: LoopId) -> Option<Asks> {
    let blocks = &p.loops.get(id).blocks;
    let header = p.loops.get(id).header;
    let leave_apart = p.shapes.divergent_loops()[id.index()];
    let asks = if leave_apart { Asks::InEachIteration } else { Asks::Ahead };
    let is_innermost = blocks.iter().all(|block| p.loops.innermost(*block) == Some(id));
    if !is_innermost || !leave_apart && !memory_tells(p, header) {
        return None;
    }
    let mut insts = blocks.iter().flat_map(|block| &p.func.block(*block).insts);
    let size = insts.clone().count();
    let is_plain =
        |block: &Block| matches!(p.func.block(*block).term, Terminator::Jump(_) | Terminator::Branch { .. });
    let params = &p.func.block(header).params;
    let gains = size <= MOST
        && blocks.iter().all(is_plain)
        && insts.clone().all(|inst| is_for_one(p, uses, *inst))
        && insts.any(|inst| is_scattered(p, *inst))
        && !(leave_apart && params.iter().any(|param| takes_turns(p, *param)));
    gains.then_some(asks)
}

/// Whether it depends on what a lane finds in memory that it comes to a block. Of those that only their numbers send there, nearly all come.
fn memory_tells(p: &Prepared, block: Block) -> bool {
    let mut below = block;
    while let Some(above) = p.dom.idom(below) {
        let is_sent = p.cfg.preds(below) == [above];
        if is_sent
            && let Terminator::Branch { cond, .. } = p.func.block(above).term
            && p.shapes.of(cond).is_varying()
            && is_of_memory(p, cond)
        {
            return true;
        }
        below = above;
    }
    false
}

/// Whether something that lanes load from places of their own has a part in a value, as far as it is computed in its block.
fn is_of_memory(p: &Prepared, value: Value) -> bool {
    let block = p.def_block[value.index()];
    let mut work = vec![value];
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        if p.def_block[value.index()] != block || !seen.insert(value) {
            continue;
        }
        let Some(data) = p.func.def_inst(value) else { continue };
        match data.op {
            Op::Load(access) if !matches!(access.space, Space::Param | Space::Const) => return true,
            _ => work.extend(&data.args),
        }
    }
    false
}

/// Whether it can be done for one lane as it is for all.
fn is_for_one(p: &Prepared, uses: &[u32], inst: Inst) -> bool {
    let data = p.func.inst(inst);
    let is_unused = || data.results.iter().all(|result| uses[result.index()] == 0);
    match data.op {
        // Who asks for the answer may wait for another lane's doing.
        Op::Atomic(_, access) => {
            let is_plain = matches!(access.order, Order::Weak | Order::Relaxed) && access.lanes == 1;
            is_plain && access.space != Space::Local && is_unused()
        }
        Op::Load(access) | Op::Store(access) => access.order == Order::Weak && access.space != Space::Local,
        Op::LocalBase | Op::ToGeneric(Space::Local) | Op::FromGeneric(Space::Local) | Op::IsSpace(_) => false,
        Op::SpecialReg(_) => data.results.iter().all(|result| p.shapes.of(*result).is_uniform()),
        Op::Unanimous | Op::AnyLane => false,
        op => op.is_pure(),
    }
}

/// Whether lanes access memory anywhere.
fn is_scattered(p: &Prepared, inst: Inst) -> bool {
    let data = p.func.inst(inst);
    let accesses = matches!(data.op, Op::Load(_) | Op::Store(_) | Op::Atomic(..));
    accesses && *p.shapes.of(data.args[0]) == LaneShape::Varying
}

/// Whether what a lane's number is moved on by from one iteration to the next leaves room for that of the other lanes, or may do so: they take the
/// elements of a row in turn then, and leave the loop one iteration apart.
fn takes_turns(p: &Prepared, param: Value) -> bool {
    let Def::Param(header, index) = p.func.def(param) else { return false };
    let lanes = u64::from(kernel_abi::WARP);
    let ty = p.func.ty(param);
    // Of an index, or an address.
    let room = if ty == Type::I32 { lanes } else { 4 * lanes };
    let mut work: Vec<Value> = p.cfg.passed(&p.func, header, index as usize).collect();
    let mut seen = HashSet::new();
    while let Some(value) = work.pop() {
        if !seen.insert(value) {
            continue;
        }
        if let Def::Param(block, index) = p.func.def(value)
            && p.loops.innermost(block) == p.loops.innermost(header)
        {
            // Through the latch.
            work.extend(p.cfg.passed(&p.func, block, index as usize));
        }
        if moved_by(p, value, param, SUMS).is_some_and(|by| by.unsigned_abs() >= room) {
            return true;
        }
    }
    false
}

/// What is added to a number to come to another, if that is the same for all lanes: anything, if it is no constant.
fn moved_by(p: &Prepared, value: Value, from: Value, depth: u32) -> Option<i64> {
    if value == from {
        return Some(0);
    }
    let data = p.func.def_inst(value).filter(|data| data.op == Op::Int(IntBinary::Add) && depth > 0)?;
    [(0, 1), (1, 0)].into_iter().find_map(|(at, other)| {
        let before = moved_by(p, data.args[at], from, depth - 1)?;
        let by = data.args[other];
        match p.func.constant(by) {
            Some(bits) => Some(before.saturating_add(sign_extended(bits, p.func.ty(by).bits()))),
            None => p.shapes.of(by).is_uniform().then_some(i64::MAX),
        }
    })
}

struct Split<'a> {
    p: &'a Prepared,
    func: &'a mut Function,
    id: LoopId,
    asks: Asks,
    few: u8,
    loc: SourceLoc,
}

impl Split<'_> {
    /// ```text
    /// header(h): few? → rest(h), body            body …: leaves by an edge → left(args) → exit(args)
    /// rest(h) → turn: the numbers of the first lane → alone(h) …: leaves → ended(args): is this its lane? → taken(args) → exit(args)
    ///                                                                              not yet → next → turn
    /// ```
    /// What asks ahead of the loop is a block of its own with parameters as the header's.
    ///
    /// Answers the atomics of the copy.
    fn apply(mut self) -> Vec<Inst> {
        let p = self.p;
        let header = p.loops.get(self.id).header;
        let (asking, body) = match self.asks {
            Asks::Ahead => (self.block_ahead(header), header),
            Asks::InEachIteration => (header, self.func.split_block(header, 0)),
        };
        let params = self.func.block(asking).params.clone();
        let rest = self.block_for(&params);
        let [turn, before, next] = [(); 3].map(|()| self.func.add_block());
        let few = self.make(asking, Op::FewLanes(self.few), vec![], Type::Pred);
        let args = if asking == header { vec![] } else { params.clone() };
        let (then, otherwise) = (Target { block: rest, args: params }, Target { block: body, args });
        self.end(asking, Terminator::Branch { cond: few, then, otherwise, uniform: false });
        self.jump(rest, turn, vec![]);
        self.jump(next, turn, vec![]);
        // What the first lane has.
        let lane = self.make(turn, Op::SpecialReg(SpecialReg::LaneId), vec![], Type::I32);
        let first = self.make(turn, Op::FirstLane, vec![lane], Type::I32);
        let own = self.make(turn, Op::IntCmp(IntCmp::Eq), vec![lane, first], Type::Pred);
        let mut alone: HashMap<Value, Value> = HashMap::new();
        for value in self.used_from_outside() {
            let ty = self.func.ty(value);
            alone.insert(value, self.make(turn, Op::FirstLane, vec![value], ty));
        }
        let kept = self.func.block(rest).params.clone();
        let entering: Vec<Value> = kept
            .into_iter()
            .map(|param| self.make(turn, Op::FirstLane, vec![param], self.func.ty(param)))
            .collect();
        self.jump(turn, before, vec![]);
        // The loop again.
        let blocks: Vec<Block> = p.loops.get(self.id).blocks.clone();
        let copies: HashMap<Block, Block> =
            blocks.iter().map(|block| (*block, self.func.add_block())).collect();
        for block in &blocks {
            for &param in &p.func.block(*block).params {
                alone.insert(param, self.func.add_param(copies[block], self.func.ty(param)));
            }
        }
        let (mut made, mut atomics) = (Vec::new(), Vec::new());
        let mut ends = Vec::new();
        for block in &blocks {
            let mut at = copies[block];
            for inst in &p.func.block(*block).insts {
                let is_for_each = matches!(p.func.inst(*inst).op, Op::Atomic(..));
                let place = if is_for_each { self.func.add_block() } else { at };
                made.push(self.func.append_copy(place, *inst, &mut alone));
                if is_for_each {
                    atomics.extend(made.last());
                    // All that are left come here, and it is to be done once.
                    let after = self.func.add_block();
                    let (then, otherwise) = (Target::new(place), Target::new(after));
                    self.end(at, Terminator::Branch { cond: own, then, otherwise, uniform: false });
                    self.jump(place, after, vec![]);
                    at = after;
                }
            }
            ends.push(at);
        }
        let mapped = |value: Value| alone.get(&value).copied().unwrap_or(value);
        for copy in made {
            self.func.inst_mut(copy).args.iter_mut().for_each(|arg| *arg = mapped(*arg));
        }
        self.jump(before, copies[&header], entering);
        for (block, end) in blocks.iter().zip(ends) {
            let original = if *block == header { body } else { *block };
            let mut term = p.func.block(*block).term.clone();
            let mut own_term = term.clone();
            own_term.map_uses(mapped);
            for (target, of_one) in term.targets_mut().into_iter().zip(own_term.targets_mut()) {
                match copies.get(&target.block) {
                    Some(copy) => of_one.block = *copy,
                    None => self.exit(target, of_one, own, next),
                }
            }
            self.end(end, own_term);
            self.end(original, term);
        }
        atomics
    }

    /// A block that all that lead to a loop from elsewhere lead to in its header's place.
    fn block_ahead(&mut self, header: Block) -> Block {
        let ahead = self.block_for(&self.p.func.block(header).params);
        let inside = &self.p.loops.get(self.id).blocks;
        let outside: Vec<Block> = self.func.blocks().filter(|block| !inside.contains(block)).collect();
        for block in outside {
            for target in self.func.block_mut(block).term.targets_mut() {
                if target.block == header {
                    target.block = ahead;
                }
            }
        }
        ahead
    }

    /// Has an edge out of the loop, and the same one out of its copy, lead to where both join.
    fn exit(&mut self, target: &mut Target, of_one: &mut Target, own: Value, next: Block) {
        let exit = target.block;
        let [left, ended, taken] = [(); 3].map(|()| self.block_for(&target.args));
        for block in [left, taken] {
            let args = self.func.block(block).params.clone();
            self.jump(block, exit, args);
        }
        let (then, otherwise) =
            (Target { block: taken, args: self.func.block(ended).params.clone() }, Target::new(next));
        self.end(ended, Terminator::Branch { cond: own, then, otherwise, uniform: false });
        (target.block, of_one.block) = (left, ended);
    }

    /// What the loop uses that is not computed in it and may differ between lanes.
    fn used_from_outside(&self) -> Vec<Value> {
        let p = self.p;
        let blocks = p.loops.get(self.id).blocks.iter().map(|block| p.func.block(*block));
        let args = |inst: &Inst| p.func.inst(*inst).args.clone();
        let mut used: Vec<Value> =
            blocks.flat_map(|data| data.insts.iter().flat_map(args).chain(data.term.uses())).collect();
        let is_outside = |value: &Value| {
            p.def_block[value.index()].is_some_and(|block| !p.loops.contains(self.id, block))
                && !p.shapes.of(*value).is_uniform()
        };
        used.retain(is_outside);
        used.sort_unstable();
        used.dedup();
        used
    }

    /// A block with parameters for these values.
    fn block_for(&mut self, values: &[Value]) -> Block {
        let block = self.func.add_block();
        for value in values {
            self.func.add_param(block, self.func.ty(*value));
        }
        block
    }

    fn make(&mut self, block: Block, op: Op, args: Vec<Value>, ty: Type) -> Value {
        self.func.append_value(block, op, args, ty, self.loc)
    }

    fn jump(&mut self, from: Block, to: Block, args: Vec<Value>) {
        self.end(from, Terminator::Jump(Target { block: to, args }));
    }

    fn end(&mut self, block: Block, term: Terminator) {
        let data = self.func.block_mut(block);
        (data.term, data.term_loc) = (term, self.loc);
    }
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, AtomicOp, Convert, FunctionBuilder, Signature};

    use super::*;
    use crate::prepare;

    fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
        b.inst(Op::Int(op), &[x, y], Type::I32)
    }

    /// The address of a word of the kernel's array.
    fn word(b: &mut FunctionBuilder, index: Value) -> Value {
        let zero = b.constant(Type::I64, 0);
        let base = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let (wide, four) =
            (b.inst(Op::Convert(Convert::SExt), &[index], Type::I64), b.constant(Type::I64, 4));
        let offset = b.inst(Op::Int(IntBinary::Mul), &[wide, four], Type::I64);
        b.inst(Op::Int(IntBinary::Add), &[base, offset], Type::I64)
    }

    /// A kernel whose threads end in this block, with stragglers apart.
    fn apart_up_to(mut b: FunctionBuilder, done: Block) -> Prepared {
        b.switch_to(done);
        b.terminate(Terminator::Exit);
        let shape = Shape::of([8, 1, 1], [256, 1, 1]);
        prepare(b.finish(), true, &shape).unwrap().with_stragglers_apart(&shape)
    }

    /// The block that asks whether few lanes are left.
    fn asks(p: &Prepared) -> Option<Block> {
        let is_asked = |inst: &Inst| matches!(p.func.inst(*inst).op, Op::FewLanes(_));
        p.func.blocks().find(|block| p.func.block(*block).insts.iter().any(is_asked))
    }

    /// Whether the loop of a kernel is there twice in which each thread goes from the place that is its number to one that is its own, in such
    /// steps, and does something with the word at a place that it finds there.
    fn is_split(step: u64, does: impl FnOnce(&mut FunctionBuilder, Value)) -> bool {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let place = word(&mut b, tid);
        let end = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::I32);
        let at = b.var(Type::I32);
        b.write(at, tid);
        let (again, done) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(again)));
        b.switch_to(again);
        let index = b.read(at);
        let place = word(&mut b, index);
        let other = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::I32);
        let there = word(&mut b, other);
        does(&mut b, there);
        let step = b.constant(Type::I32, step);
        let next = int(&mut b, IntBinary::Add, index, step);
        b.write(at, next);
        let cond = b.inst(Op::IntCmp(IntCmp::LtS), &[next, end], Type::Pred);
        let (then, otherwise) = (Target::new(again), Target::new(done));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        asks(&apart_up_to(b, done)).is_some()
    }

    #[test]
    fn lanes_that_follow_something_of_their_own_may_be_left_alone() {
        let stores = |b: &mut FunctionBuilder, there: Value| {
            b.effect(Op::Store(Access::weak(Space::Global, 0)), &[there, there]);
        };
        assert!(is_split(1, stores));
        assert!(is_split(4, stores), "four at once");
        assert!(!is_split(32, stores), "the lanes of a warp take turns");
    }

    /// Whether the loop of a kernel is there twice in which all threads that have come there count the same numbers in places of their own, if those
    /// come that have found something in memory, or whose numbers are low.
    fn is_split_ahead(memory_tells: bool) -> bool {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let place = word(&mut b, tid);
        let found = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[place], Type::I32);
        let (seven, none) = (b.constant(Type::I32, 7), b.constant(Type::I32, 0));
        let told = if memory_tells { found } else { tid };
        let comes = b.inst(Op::IntCmp(IntCmp::LtS), &[told, seven], Type::Pred);
        let (again, ahead, done) = (b.block(), b.block(), b.block());
        let (then, otherwise) = (Target::new(ahead), Target::new(done));
        b.terminate(Terminator::Branch { cond: comes, then, otherwise, uniform: false });
        b.switch_to(ahead);
        let count = b.var(Type::I32);
        b.write(count, none);
        b.terminate(Terminator::Jump(Target::new(again)));
        b.switch_to(again);
        let number = b.read(count);
        let product = int(&mut b, IntBinary::Mul, number, found);
        let there = word(&mut b, product);
        let one = b.constant(Type::I32, 1);
        let access = Access { order: Order::Relaxed, ..Access::weak(Space::Global, 0) };
        b.inst(Op::Atomic(AtomicOp::Add, access), &[there, one], Type::I32);
        let next = int(&mut b, IntBinary::Add, number, one);
        b.write(count, next);
        let cond = b.inst(Op::IntCmp(IntCmp::LtS), &[next, seven], Type::Pred);
        let (then, otherwise) = (Target::new(again), Target::new(done));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        let p = apart_up_to(b, done);
        let asks = asks(&p);
        assert!(asks.is_none_or(|block| p.loops.innermost(block).is_none()), "it is asked once");
        assert_eq!(p.alone.len(), asks.iter().count());
        asks.is_some()
    }

    #[test]
    fn where_memory_tells_which_lanes_come_they_may_be_few() {
        assert!(is_split_ahead(true));
        assert!(!is_split_ahead(false));
    }

    #[test]
    fn what_may_wait_for_other_lanes_is_left_as_it_is() {
        let volatile = |b: &mut FunctionBuilder, there: Value| {
            let access = Access { order: Order::Relaxed, ..Access::weak(Space::Global, 0) };
            b.effect(Op::Store(access), &[there, there]);
        };
        assert!(!is_split(1, volatile));
        let access = Access { order: Order::Relaxed, ..Access::weak(Space::Global, 0) };
        let exchange = move |b: &mut FunctionBuilder, there: Value| {
            let one = b.constant(Type::I32, 1);
            b.inst(Op::Atomic(AtomicOp::Exch, access), &[there, one], Type::I32)
        };
        assert!(is_split(1, |b, there| {
            exchange(b, there);
        }));
        assert!(!is_split(1, |b, there| {
            let found = exchange(b, there);
            b.effect(Op::Store(Access::weak(Space::Global, 0)), &[there, found]);
        }));
    }
}
