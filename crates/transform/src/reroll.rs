//! Loops that compilers unrolled, rolled again.
//!
//! A loop over the elements of a row, `for (i = lane; i < n; i += lanes)`, comes out of a compiler as two: one takes the iterations that do not fill the
//! other, which takes several at once. Where the lanes of a warp have not equally many iterations, as at the end of each row whose length is no
//! multiple of theirs, some leave the first loop sooner, and are far from the others in the second. The first loop alone would do: all
//! lanes take their iterations side by side in it, and leave when they have had all of them. [`reroll`] has warps whose lanes have
//! different numbers of iterations do that, where the second loop is found to do the same several times over (`same`), and tests show
//! that it ends when the first would, unless that is known (`known`). Lanes that run one at a time over rows of their own do it too: each row has one end then that nobody foresees,
//! instead of three.

mod expr;
mod known;
mod same;

use std::collections::HashMap;

use simt_ir::{
    Block, Convert, Def, Function, Inst, IntBinary, IntCmp, IntUnary, Op, SourceLoc, Space, Target,
    Terminator, Type, Value,
};

use self::same::Same;

/// The most instructions of the loop that is there once more.
const MOST: usize = 64;

/// Iterations from which on a lane by itself is faster with several at once than it loses by a second end that nobody foresees.
const LONG: u64 = 64;

/// Which lanes take all their iterations in one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Those of warps whose lanes have different numbers of iterations.
    OfWarps,
    /// Each that has few, where lanes run one at a time.
    OfLanes,
}

/// Two loops that were one.
struct Unrolled {
    /// The block before them, which goes to `between` where there is nothing left over.
    before: Block,
    /// What leads from there to the first loop, if anything.
    enters_first: Option<Block>,
    first: Block,
    between: Block,
    /// What leads from there to the second loop, if anything.
    enters_second: Option<Block>,
    second: Block,
    after: Block,
    /// Iterations of the first loop in one of the second.
    times: u64,
    /// All iterations, and those left over.
    trips: Value,
    left: Value,
}

/// Rolls the loops of a kernel that were unrolled. After: these lanes take all their iterations in one loop. Answers whether there are any.
pub fn reroll(func: &mut Function, whose: Whose) -> bool {
    let mut found = Vec::new();
    for block in func.blocks() {
        if let Some(unrolled) = Unrolled::of_first(func, block)
            && let Some(same) = Same::of(func, &unrolled, whose)
        {
            found.push((unrolled, same));
        }
    }
    for (unrolled, same) in &found {
        roll(func, unrolled, same, whose);
    }
    !found.is_empty()
}

/// Whether a block does nothing but lead on.
fn is_empty(func: &Function, block: Block) -> bool {
    let data = func.block(block);
    data.params.is_empty() && data.insts.is_empty() && matches!(data.term, Terminator::Jump(_))
}

/// Where a target leads, over blocks that do nothing.
fn through<'f>(func: &'f Function, mut target: &'f Target) -> &'f Target {
    for _ in 0..8 {
        match &func.block(target.block).term {
            Terminator::Jump(next) if is_empty(func, target.block) => target = next,
            _ => break,
        }
    }
    target
}

/// Where control may come from, over such blocks.
fn preds(func: &Function, block: Block) -> Vec<Block> {
    let leads = |from: &Block| {
        let targets = func.block(*from).term.targets();
        !is_empty(func, *from) && targets.iter().any(|to| through(func, to).block == block)
    };
    func.blocks().filter(leads).collect()
}

/// The ways of a block that is a loop by itself: back, and out; and whether it goes back where its condition holds.
fn ways(func: &Function, block: Block) -> Option<(&Target, &Target, Value, bool)> {
    let Terminator::Branch { cond, then, otherwise, .. } = &func.block(block).term else { return None };
    let (then, otherwise) = (through(func, then), through(func, otherwise));
    match (then.block == block, otherwise.block == block) {
        (true, false) => Some((then, otherwise, *cond, true)),
        (false, true) => Some((otherwise, then, *cond, false)),
        _ => None,
    }
}

/// Whether an instruction can be computed elsewhere too, by lanes that may not come to it: what it loads is there whatever they have.
fn is_plain(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::Load(access) => access.space == Space::Param && func.constant(data.args[0]).is_some(),
        op => op.is_pure(),
    }
}

impl Unrolled {
    fn of_first(func: &Function, first: Block) -> Option<Unrolled> {
        let (_, out, ..) = ways(func, first)?;
        let between = out.block;
        let plain = |block: Block| func.block(block).insts.iter().all(|inst| is_plain(func, *inst));
        let from = preds(func, between);
        let &[one, other] = &from[..] else { return None };
        let before = if one == first { other } else { one };
        // A block that only leads on from another.
        let leads = |block: Block, to: Block| {
            let is_jump = matches!(&func.block(block).term, Terminator::Jump(target) if through(func, target).block == to);
            is_jump && func.block(block).params.is_empty() && preds(func, block).len() == 1 && plain(block)
        };
        let Terminator::Branch { cond, then, otherwise, .. } = &func.block(before).term else { return None };
        let (then, otherwise) = (through(func, then), through(func, otherwise));
        let (on, none_left) = match (then.block == between, otherwise.block == between) {
            (true, false) => (otherwise.block, true),
            (false, true) => (then.block, false),
            _ => return None,
        };
        let enters_first = (on != first).then_some(on);
        if enters_first.is_some_and(|block| !leads(block, first)) || preds(func, first).len() != 2 {
            return None;
        }
        // Nothing is left over.
        let data = func.def_inst(*cond)?;
        let is_none = match data.op {
            Op::IntCmp(IntCmp::Eq) => none_left,
            Op::IntCmp(IntCmp::Ne) => !none_left,
            _ => false,
        };
        // A condition may be known, and has no operands then.
        let &[left, right] = &data.args[..] else { return None };
        let rest = func.def_inst(left).filter(|data| data.op == Op::Int(IntBinary::And))?;
        let (trips, mask) = (rest.args[0], func.constant(rest.args[1])?);
        if !is_none || func.constant(right) != Some(0) || func.ty(trips) != Type::I32 {
            return None;
        }
        let times = mask.checked_add(1).filter(|times| matches!(times, 2 | 4 | 8))?;
        let Terminator::Branch { then, otherwise, .. } = &func.block(between).term else { return None };
        let (then, otherwise) = (through(func, then), through(func, otherwise));
        let candidates = [(then.block, otherwise.block), (otherwise.block, then.block)];
        candidates.into_iter().find_map(|(on, after)| {
            let (enters_second, second) = match &func.block(on).term {
                Terminator::Jump(target) if leads(on, through(func, target).block) => {
                    (Some(on), through(func, target).block)
                }
                _ => (None, on),
            };
            let (_, out, ..) = ways(func, second)?;
            let fits = out.block == after && preds(func, second).len() == 2 && plain(between);
            fits.then_some(Unrolled {
                before,
                enters_first,
                first,
                between,
                enters_second,
                second,
                after,
                times,
                trips,
                left,
            })
        })
    }

    /// The target by which control comes from one block to another.
    fn edge(func: &Function, from: Block, to: Block) -> Option<&Target> {
        let targets = func.block(from).term.targets().into_iter().map(|target| through(func, target));
        let mut edges = targets.filter(|target| target.block == to);
        let edge = edges.next()?;
        edges.next().is_none().then_some(edge)
    }
}

/// Makes the loop.
fn roll(func: &mut Function, unrolled: &Unrolled, same: &Same, whose: Whose) {
    let Unrolled { before, first, .. } = *unrolled;
    let loc = func.block(before).term_loc;
    let at = func.block(before).insts.len();
    let rest = func.split_block(before, at);
    let [tests, enter, body, leave] = [0; 4].map(|_| func.add_block());
    let mut make = Maker { func, block: before, loc };
    let stays = match whose {
        // Lanes with as many iterations stay together as it is.
        Whose::OfWarps => {
            let one = make.inst(Op::AnyLane, &[unrolled.trips], Type::I32);
            let alike = make.compare(IntCmp::Eq, unrolled.trips, one);
            make.inst(Op::Unanimous, &[alike], Type::Pred)
        }
        Whose::OfLanes => {
            let long = make.constant(Type::I32, LONG);
            make.compare(IntCmp::GeU, unrolled.trips, long)
        }
    };
    make.branch(stays, rest, tests);
    let mut make = Maker { func, block: tests, loc };
    let mut map: HashMap<Value, Value> = HashMap::new();
    if let Some(block) = unrolled.enters_first {
        make.copy(block, &mut map);
    }
    let entering = same.entering.iter().map(|value| map.get(value).copied().unwrap_or(*value));
    let entering: Vec<Value> = entering.collect();
    if same.is_known {
        make.func.block_mut(tests).term = Terminator::Jump(Target::new(enter));
    } else {
        let holds = same.tests(unrolled, &mut make, &entering);
        let holds = make.inst(Op::Unanimous, &[holds], Type::Pred);
        make.branch(holds, enter, rest);
    }
    let mut args = entering;
    args[same.counter] = unrolled.trips;
    // The first loop once more, with what comes before it. Addresses that are one distance from several places have that in common.
    let mut entered: Vec<Value> = Vec::new();
    let (mut kept, mut distances) = (Vec::new(), HashMap::new());
    for (at, param) in func.block(first).params.clone().into_iter().enumerate() {
        let along = (0..args.len()).filter(|other| same.go_along(func, at, *other));
        let shared = along.filter(|other| *other != at).find_map(|other| shared(func, args[at], args[other]));
        let here = if let Some([place, distance]) = shared {
            let from = *distances.entry(distance).or_insert_with(|| {
                kept.push((at, Some(distance)));
                entered.push(distance);
                func.add_param(body, Type::I64)
            });
            Maker { func, block: body, loc }.int(IntBinary::Add, place, from)
        } else {
            kept.push((at, None));
            entered.push(args[at]);
            let ty = func.ty(param);
            func.add_param(body, ty)
        };
        map.insert(param, here);
    }
    func.block_mut(enter).term = Terminator::Jump(Target { block: body, args: entered });
    Maker { func, block: body, loc }.copy(first, &mut map);
    let mapped = |value: &Value| map.get(value).copied().unwrap_or(*value);
    let (back, _, cond, holds) = ways(func, first).expect("it is a loop by itself");
    let args: Vec<Value> = back.args.iter().map(mapped).collect();
    let mut make = Maker { func, block: body, loc };
    let further = |(at, distance): &(usize, Option<Value>)| match distance {
        Some(distance) => {
            let step = same.step(&mut make, *at);
            make.int(IntBinary::Add, distances[distance], step)
        }
        None => args[*at],
    };
    let again = Target { block: body, args: kept.iter().map(further).collect() };
    let cond = mapped(&cond);
    let out = Target::new(leave);
    let (then, otherwise) = if holds { (again, out) } else { (out, again) };
    func.block_mut(body).term = Terminator::Branch { cond, then, otherwise, uniform: false };
    let left: Vec<Value> = same
        .leaving
        .iter()
        .map(|leaving| match leaving {
            same::Leaving::State(at) => args[*at],
            same::Leaving::Value(value) => *value,
        })
        .collect();
    func.block_mut(leave).term = Terminator::Jump(Target { block: unrolled.after, args: left });
    for block in [tests, enter, body, leave] {
        func.block_mut(block).term_loc = loc;
    }
}

/// Of two sums with a part in common the first one's other part, and that.
fn shared(func: &Function, one: Value, other: Value) -> Option<[Value; 2]> {
    let parts = |value: Value| {
        let data = func.def_inst(value).filter(|data| data.op == Op::Int(IntBinary::Add))?;
        Some([data.args[0], data.args[1]])
    };
    let ([a, b], others) = (parts(one)?, parts(other)?);
    [[a, b], [b, a]].into_iter().find(|[_, part]| others.contains(part))
}

/// Adds instructions at the end of a block.
struct Maker<'a> {
    func: &'a mut Function,
    block: Block,
    loc: SourceLoc,
}

impl Maker<'_> {
    fn inst(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.func.append_value(self.block, op, args.to_vec(), ty, self.loc)
    }

    fn int(&mut self, op: IntBinary, a: Value, b: Value) -> Value {
        let ty = self.func.ty(a);
        self.inst(Op::Int(op), &[a, b], ty)
    }

    fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.inst(Op::Const(bits), &[], ty)
    }

    fn compare(&mut self, cmp: IntCmp, a: Value, b: Value) -> Value {
        self.inst(Op::IntCmp(cmp), &[a, b], Type::Pred)
    }

    fn not(&mut self, a: Value) -> Value {
        self.inst(Op::IntUnary(IntUnary::Not), &[a], Type::Pred)
    }

    fn widened(&mut self, convert: Convert, a: Value) -> Value {
        if self.func.ty(a) == Type::I64 { a } else { self.inst(Op::Convert(convert), &[a], Type::I64) }
    }

    fn branch(&mut self, cond: Value, then: Block, otherwise: Block) {
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        self.func.block_mut(self.block).term = Terminator::Branch { cond, then, otherwise, uniform: false };
    }

    /// Copies the instructions of a block.
    fn copy(&mut self, from: Block, map: &mut HashMap<Value, Value>) {
        for inst in self.func.block(from).insts.clone() {
            self.func.append_copy(self.block, inst, map);
        }
    }

    /// What a value of some blocks is where their parameters are these; nothing if it depends on others.
    fn value_in(&mut self, value: Value, blocks: &[Block], map: &mut HashMap<Value, Value>) -> Option<Value> {
        if let Some(known) = map.get(&value) {
            return Some(*known);
        }
        match self.func.def(value) {
            Def::Param(block, _) => (!blocks.contains(&block)).then_some(value),
            Def::Result(inst, _) => {
                if !blocks.iter().any(|block| self.func.block(*block).insts.contains(&inst)) {
                    return Some(value);
                }
                for arg in self.func.inst(inst).args.clone() {
                    let known = self.value_in(arg, blocks, map)?;
                    map.insert(arg, known);
                }
                self.func.append_copy(self.block, inst, map);
                map.get(&value).copied()
            }
            Def::Removed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FunctionBuilder, Signature};

    #[test]
    fn whether_anything_is_left_over_may_be_known() {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let [first, between] = [(); 2].map(|()| b.block());
        let [known, again] = [0, 1].map(|value| b.constant(Type::Pred, value));
        let branch = |cond, then, otherwise| Terminator::Branch {
            cond,
            then: Target::new(then),
            otherwise: Target::new(otherwise),
            uniform: false,
        };
        b.terminate(branch(known, between, first));
        b.switch_to(first);
        b.terminate(branch(again, first, between));
        b.switch_to(between);
        b.terminate(Terminator::Exit);
        let mut func = b.finish();
        assert!(!reroll(&mut func, Whose::OfWarps));
    }
}
