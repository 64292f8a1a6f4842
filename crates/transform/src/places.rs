//! Values that may be kept in one place, since no two of them are needed at once: what a loop makes of a number, and the number that the next
//! iteration begins with. With a place for each, one would have to be moved to the other.

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Op, Target, Value};

use crate::{LaneShape, Prepared};

/// For each value the one whose place it shares, which for most is itself. Floats only: what addresses are made of is read where the
/// accesses are, which may be after its last use here.
pub fn shared(p: &Prepared) -> Vec<Value> {
    let mut places: Vec<Value> = (0..p.func.value_count() as u32).map(Value).collect();
    let mut pairs = Vec::new();
    for &block in p.cfg.order() {
        for target in p.func.block(block).term.targets() {
            pairs.extend(movable(p, target));
        }
    }
    if pairs.is_empty() {
        return places;
    }
    let ranges = ranges(p, &pairs);
    let mut together: HashMap<Value, Vec<Value>> = HashMap::new();
    for (param, arg) in pairs {
        let (keeps, joins) = (places[param.index()], places[arg.index()]);
        let all = |value| together.get(&value).cloned().unwrap_or_else(|| vec![value]);
        let (kept, joined) = (all(keeps), all(joins));
        let apart = |a: &Value| joined.iter().all(|b| !ranges[a].meets(&ranges[b]));
        if keeps != joins && kept.iter().all(apart) {
            joined.iter().for_each(|value| places[value.index()] = keeps);
            together.insert(keeps, [kept, joined].concat());
        }
    }
    places
}

/// The parameters and arguments of an edge that could have one place. What an inner loop computes has places apart from what is around it,
/// since it is written more often.
fn movable(p: &Prepared, target: &Target) -> Vec<(Value, Value)> {
    let around = |value: Value| p.def_block[value.index()].map(|block| p.loops.innermost(block));
    let params = p.func.block(target.block).params.iter().copied();
    let pairs = params.zip(target.args.iter().copied()).filter(|(a, b)| around(*a) == around(*b));
    pairs.filter(|(a, b)| is_plain(p, *a) && is_plain(p, *b)).collect()
}

/// Whether a value is written where it is defined, for all lanes, and nowhere else.
fn is_plain(p: &Prepared, value: Value) -> bool {
    let Some(block) = p.def_block[value.index()] else { return false };
    let is_vector = || p.func.ty(value).is_float() && p.shapes.of(value) == &LaneShape::Varying;
    p.full[block.index()]
        && is_vector()
        && match p.func.def_inst(value).map(|data| &data.op) {
            // Loads may come earlier, with their neighbours.
            Some(Op::Load(_)) => false,
            Some(_) => true,
            // A parameter is written where control comes from, whatever way it takes from there if lanes go different ways.
            None => {
                let mut from = p.cfg.preds(block).iter().map(|pred| pred.index());
                !p.linear.is_delayed(block) && from.all(|at| p.full[at] && !p.shapes.divergent()[at])
            }
        }
}

/// Where a value is needed. A point of a block is before so many of its instructions.
struct Range {
    /// The point at which it is defined.
    block: Block,
    from: usize,
    /// Blocks at whose beginning, and at whose end it is needed.
    begins: HashSet<Block>,
    ends: HashSet<Block>,
    /// The last point in a block at which it is used.
    last: HashMap<Block, usize>,
}

/// The point of what a block's end uses.
const END: usize = usize::MAX;

impl Range {
    fn new(p: &Prepared, value: Value, uses: &[(Block, usize)]) -> Range {
        let block = p.def_block[value.index()].expect("it is plain");
        let insts = &p.func.block(block).insts;
        let defines = |inst: &simt_ir::Inst| p.func.inst(*inst).results.contains(&value);
        let from = insts.iter().position(defines).map_or(0, |at| at + 1);
        let mut range =
            Range { block, from, begins: HashSet::new(), ends: HashSet::new(), last: HashMap::new() };
        let mut work = Vec::new();
        for &(at, point) in uses {
            let last = range.last.entry(at).or_default();
            *last = point.max(*last);
            work.push(at);
        }
        while let Some(at) = work.pop() {
            if at != block && range.begins.insert(at) {
                range.ends.extend(p.cfg.preds(at));
                work.extend(p.cfg.preds(at));
            }
        }
        range
    }

    fn is_needed(&self, block: Block, point: usize) -> bool {
        let is_there = self.begins.contains(&block) || block == self.block && self.from <= point;
        let is_used =
            || self.ends.contains(&block) || self.last.get(&block).is_some_and(|last| *last >= point);
        is_there && is_used()
    }

    /// Whether one is needed where the other is written.
    fn meets(&self, other: &Range) -> bool {
        self.is_needed(other.block, other.from) || other.is_needed(self.block, self.from)
    }
}

fn ranges(p: &Prepared, pairs: &[(Value, Value)]) -> HashMap<Value, Range> {
    let mut uses: HashMap<Value, Vec<(Block, usize)>> =
        pairs.iter().flat_map(|(a, b)| [(*a, Vec::new()), (*b, Vec::new())]).collect();
    for &block in p.cfg.order() {
        let data = p.func.block(block);
        let insts = data.insts.iter().enumerate();
        let args = insts.flat_map(|(at, inst)| p.func.inst(*inst).args.iter().map(move |arg| (*arg, at)));
        for (value, at) in args.chain(data.term.uses().into_iter().map(|value| (value, END))) {
            if let Some(uses) = uses.get_mut(&value) {
                uses.push((block, at));
            }
        }
    }
    uses.into_iter().map(|(value, uses)| (value, Range::new(p, value, &uses))).collect()
}
