//! Code for warps whose indices stay within bounds.
//!
//! A filter takes the nearest pixel at the edges of a picture, `min(max(x + 1, 0), width - 1)`; a grid that is a torus goes on at the other
//! side, `(x + 1) % width`; and where elements are numbered, a warp mostly lies in one row ([`rows`]). Next to each other where they were bounded, the indices of lanes are not for sure, and each access would have to
//! find out. But most warps touch no edge, and one test tells so for all that is bounded in a block: [`split`] puts it before, and from there
//! on the code is there twice. Where the test holds, what was to be bounded takes the place of what was.
//!
//! Only kernels in which that makes accesses regular are split, of moderate size, and no part in which lanes meet.

use std::collections::{HashMap, HashSet};

use kernel_abi::{Shape, XLayout};
use simt_ir::{
    Block, Cfg, Convert, Def, DomTree, Function, Inst, IntBinary, IntCmp, Op, Shift, Space, SpecialReg,
    Target, Terminator, Type, Value,
};

use crate::facts::inverse;
use crate::rows::{self, InRow};
use crate::{Loops, cancel, decide, lcssa, normalize, prepare, simplify, traps};

/// The most instructions that are there twice.
const MOST: usize = 600;

/// The most for each access that becomes regular.
const FOR_EACH: usize = 64;

/// The most results of a part that are kept for what they are used for afterwards.
const PASSED: usize = 12;

/// How far definitions are followed.
const DEPTH: u32 = 64;

/// How many sums are followed to find a term.
const TERMS: u32 = 4;

/// A kernel that goes another way where indices stay within bounds, if that makes accesses regular. Its calls have been inlined.
pub fn split(kernel: &Function, shape: &Shape) -> Option<Function> {
    let mut insts = kernel.blocks().flat_map(|block| &kernel.block(block).insts);
    if !insts.any(|inst| may_bound(kernel, *inst) || rows::divides(kernel, *inst)) {
        return None;
    }
    let mut func = kernel.clone();
    traps::pass_through(&mut func);
    simplify::simplify(&mut func);
    cancel::cancel(&mut func);
    decide::decide(&mut func, shape);
    prepare::isolate_barriers(&mut func);
    normalize::normalize(&mut func, true).ok()?;
    // Nothing uses what this adds until a part does, so it comes after what removes that.
    let around = once_around(&mut func);
    let in_row = rows::find(&mut func, |inst| around.contains_key(&inst));
    cancel::cancel(&mut func);
    let cfg = Cfg::new(&func);
    let dom = DomTree::new(&cfg);
    let loops = Loops::new(&cfg, &dom, func.blocks().len()).ok()?;
    lcssa::close_loops(&mut func, &cfg, &dom, &loops);
    let parts =
        Search { func: &func, cfg: &cfg, dom: &dom, loops: &loops, shape, around: &around, in_row: &in_row }
            .parts();
    for part in &parts {
        part.divide(&mut func);
    }
    (!parts.is_empty()).then_some(func)
}

/// Remainders of what has the divisor added, as `(x + width - 1) % width`: so that nothing is divided that is below zero. It is usually taken off again. After: the
/// kernel computes what is left then.
fn once_around(func: &mut Function) -> HashMap<Inst, Value> {
    let mut found = HashMap::new();
    for block in func.blocks() {
        for inst in func.block(block).insts.clone() {
            let data = func.inst(inst);
            let (&[dividend, divisor], loc) = (&data.args[..], data.loc) else { continue };
            let is_rest = matches!(data.op, Op::Int(IntBinary::RemS | IntBinary::RemU));
            if !is_rest || !has_term(func, dividend, divisor, TERMS) {
                continue;
            }
            let ty = func.ty(dividend);
            let less = func.make_inst(Op::Int(IntBinary::Sub), vec![dividend, divisor], &[ty], loc);
            let insts = &mut func.block_mut(block).insts;
            let at = insts.iter().position(|other| *other == inst).expect("it is in its block");
            insts.insert(at, less);
            found.insert(inst, func.inst(less).results[0]);
        }
    }
    found
}

/// Whether a value is a sum with this term, and not a multiple of it.
fn has_term(func: &Function, sum: Value, term: Value, depth: u32) -> bool {
    let Some(data) = func.def_inst(sum).filter(|_| depth > 0) else { return false };
    data.op == Op::Int(IntBinary::Add)
        && data.args.iter().any(|arg| *arg == term || has_term(func, *arg, term, depth - 1))
}

/// Whether an instruction is of a kind that bounds an index.
fn may_bound(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    let is_index = |value: Value| matches!(func.ty(value), Type::I32 | Type::I64);
    matches!(
        data.op,
        Op::Int(
            IntBinary::MinS
                | IntBinary::MaxS
                | IntBinary::MinU
                | IntBinary::MaxU
                | IntBinary::RemS
                | IntBinary::RemU
        ) | Op::Select
    ) && is_index(data.results[0])
}

/// How a value differs between lanes, as far as it is easily seen: what is computed from it decides, not this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It is the same in a warp.
    Same,
    /// It grows evenly from lane to lane.
    Even,
    /// Anything.
    Any,
}

/// Something bounded.
struct Bound {
    result: Value,
    /// What it usually is.
    usual: Value,
    /// When.
    tests: Vec<Comparison>,
}

/// A comparison with a value, or with zero.
type Comparison = (IntCmp, Value, Option<Value>);

/// Instructions that are to be there twice, from a place in a block on.
struct Part {
    block: Block,
    at: usize,
    bounds: Vec<Bound>,
    /// Where the ways join again in the block; if they do not, they include other blocks.
    end: Option<usize>,
    /// The other blocks, in an order in which definitions come before uses.
    others: Vec<Block>,
}

struct Search<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    dom: &'a DomTree,
    loops: &'a Loops,
    shape: &'a Shape,
    /// What [`once_around`] found.
    around: &'a HashMap<Inst, Value>,
    /// What [`rows::find`] found.
    in_row: &'a HashMap<Inst, InRow>,
}

impl Search<'_> {
    fn parts(&self) -> Vec<Part> {
        let mut taken: HashSet<Block> = HashSet::new();
        let mut parts = Vec::new();
        for &block in self.cfg.order() {
            if taken.contains(&block) {
                continue;
            }
            if let Some(part) = self.part(block) {
                taken.extend(part.others.iter().copied().chain([block]));
                parts.push(part);
            }
        }
        parts
    }

    fn part(&self, block: Block) -> Option<Part> {
        let insts = &self.func.block(block).insts;
        let mut lanes = Lanes {
            search: self,
            usual: HashMap::new(),
            kinds: HashMap::new(),
            depth: 0,
            bounded: HashMap::new(),
        };
        let mut bounds: Vec<Bound> = Vec::new();
        let (mut at, mut early) = (0, Early::new(self.func, insts));
        for (position, &inst) in insts.iter().enumerate() {
            let Some(bound) = lanes.bound(inst) else { continue };
            if bounds.is_empty() {
                (at, early) = (position, Early::new(self.func, &insts[position..]));
            }
            if bound.tests.iter().all(|(_, a, b)| early.is(*a, DEPTH) && b.is_none_or(|b| early.is(b, DEPTH)))
            {
                lanes.usual.insert(bound.result, bound.usual);
                bounds.push(bound);
            }
        }
        if bounds.is_empty() {
            return None;
        }
        let mut is_regular = |inst: &Inst| {
            let data = self.func.inst(*inst);
            matches!(data.op, Op::Load(access) | Op::Store(access) if !matches!(access.space, Space::Param | Space::Local))
                && lanes.is_bounded(data.args[0], DEPTH)
                && lanes.kind(data.args[0]) != Kind::Any
        };
        let meet = |inst: &Inst| self.func.inst(*inst).op.is_convergent();
        let here = &insts[at..];
        let here = &here[..here.iter().position(meet).unwrap_or(here.len())];
        let regular = here.iter().filter(|inst| is_regular(inst)).count();
        let last = here.iter().rposition(&mut is_regular);
        let others = self.others(block);
        let elsewhere: Vec<Inst> =
            others.iter().flat_map(|other| &self.func.block(*other).insts).copied().collect();
        let regular_elsewhere = elsewhere.iter().filter(|inst| is_regular(inst)).count();
        let pays = |count: usize, regular: usize| regular > 0 && count <= MOST.min(FOR_EACH * regular);
        let together = insts[at..].iter().chain(&elsewhere).any(meet);
        if regular_elsewhere > 0
            && !together
            && pays(insts.len() - at + elsewhere.len(), regular + regular_elsewhere)
        {
            return Some(Part { block, at, bounds, end: None, others });
        }
        let end = at + last? + 1;
        bounds.retain(|bound| {
            insts[at..end].iter().any(|inst| self.func.inst(*inst).results == [bound.result])
        });
        pays(end - at, regular).then_some(Part { block, at, bounds, end: Some(end), others: Vec::new() })
    }

    /// The other blocks that control comes to only through this one, in the same loop.
    fn others(&self, block: Block) -> Vec<Block> {
        let around = self.loops.innermost(block);
        let is_own = |other: &Block| {
            *other != block
                && self.dom.dominates(block, *other)
                && around.is_none_or(|id| self.loops.contains(id, *other))
                && !matches!(self.func.block(*other).term, Terminator::Return(_))
        };
        self.cfg.order().iter().copied().filter(is_own).collect()
    }
}

/// What can be had before these instructions of a block.
struct Early<'a> {
    func: &'a Function,
    own: HashSet<Inst>,
    known: HashMap<Value, bool>,
}

impl<'a> Early<'a> {
    fn new(func: &'a Function, own: &[Inst]) -> Early<'a> {
        Early { func, own: own.iter().copied().collect(), known: HashMap::new() }
    }

    /// Whether a value is from before, or computed from such.
    fn is(&mut self, value: Value, depth: u32) -> bool {
        let Def::Result(inst, _) = self.func.def(value) else { return true };
        if !self.own.contains(&inst) {
            return true;
        }
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let data = self.func.inst(inst);
        let is = depth > 0 && data.op.is_pure() && data.args.iter().all(|arg| self.is(*arg, depth - 1));
        self.known.insert(value, is);
        is
    }
}

/// What differs between lanes if nothing leaves its bounds.
struct Lanes<'a> {
    search: &'a Search<'a>,
    usual: HashMap<Value, Value>,
    kinds: HashMap<Value, Kind>,
    /// How deep the search for a kind is.
    depth: u32,
    bounded: HashMap<Value, bool>,
}

impl Lanes<'_> {
    /// What an instruction bounds, if it bounds what grows evenly by what is the same for all lanes.
    fn bound(&mut self, inst: Inst) -> Option<Bound> {
        let func = self.search.func;
        if let Some(InRow { number, width, usual, tests }) = self.search.in_row.get(&inst) {
            let kinds = [*number, *width].map(|arg| self.kind(arg));
            let result = func.inst(inst).results[0];
            let bound = || Bound { result, usual: *usual, tests: tests.clone() };
            return (kinds == [Kind::Even, Kind::Same]).then(bound);
        }
        if !may_bound(func, inst) {
            return None;
        }
        let data = func.inst(inst);
        let result = data.results[0];
        if data.op == Op::Select {
            return self.choice(result, data.args[0], data.args[1], data.args[2]);
        }
        let Op::Int(op) = data.op else { return None };
        let [first, second] = [data.args[0], data.args[1]].map(|arg| self.in_bounds(arg));
        let (even, limit) = match (self.kind(first), self.kind(second)) {
            (Kind::Even, Kind::Same) => (first, second),
            (Kind::Same, Kind::Even) if !matches!(op, IntBinary::RemS | IntBinary::RemU) => (second, first),
            _ => return None,
        };
        let usual = self.search.around.get(&inst).copied().unwrap_or(even);
        if self.kind(usual) != Kind::Even {
            return None;
        }
        let mut tests = match op {
            IntBinary::MinS => vec![(IntCmp::LeS, even, Some(limit))],
            IntBinary::MaxS => vec![(IntCmp::GeS, even, Some(limit))],
            IntBinary::MinU => vec![(IntCmp::LeU, even, Some(limit))],
            IntBinary::MaxU => vec![(IntCmp::GeU, even, Some(limit))],
            IntBinary::RemU => vec![(IntCmp::LtU, usual, Some(limit))],
            IntBinary::RemS => vec![(IntCmp::GeS, usual, None), (IntCmp::LtS, usual, Some(limit))],
            _ => return None,
        };
        if usual != even {
            // With the divisor it must not have wrapped.
            tests.push((if op == IntBinary::RemU { IntCmp::GeU } else { IntCmp::GeS }, even, Some(limit)));
        }
        Some(Bound { result, usual, tests })
    }

    /// A choice between what grows evenly and what is the same for all lanes: usually the former.
    fn choice(&mut self, result: Value, cond: Value, first: Value, second: Value) -> Option<Bound> {
        let func = self.search.func;
        let data = func.def_inst(cond)?;
        let Op::IntCmp(cmp) = data.op else { return None };
        let [a, b] = [data.args[0], data.args[1]].map(|arg| self.in_bounds(arg));
        let is_index = matches!(func.ty(a), Type::I32 | Type::I64);
        let [first, second] = [first, second].map(|arg| self.in_bounds(arg));
        let (usual, cmp) = match (self.kind(first), self.kind(second)) {
            (Kind::Even, Kind::Same) => (first, cmp),
            (Kind::Same, Kind::Even) => (second, inverse(cmp)),
            _ => return None,
        };
        let compared = (self.kind(a), self.kind(b));
        let is_edge = is_index && matches!(compared, (Kind::Even, Kind::Same) | (Kind::Same, Kind::Even));
        is_edge.then(|| Bound { result, usual, tests: vec![(cmp, a, Some(b))] })
    }

    /// What a value is if nothing leaves its bounds.
    fn in_bounds(&self, mut value: Value) -> Value {
        while let Some(usual) = self.usual.get(&value) {
            value = *usual;
        }
        value
    }

    fn kind(&mut self, value: Value) -> Kind {
        let value = self.in_bounds(value);
        if let Some(known) = self.kinds.get(&value) {
            return *known;
        }
        if self.depth == DEPTH {
            return Kind::Any;
        }
        // What a loop passes on to itself is what it began with and what is added.
        self.kinds.insert(value, Kind::Same);
        self.depth += 1;
        let kind = self.found(value);
        self.depth -= 1;
        self.kinds.insert(value, kind);
        kind
    }

    fn found(&mut self, value: Value) -> Kind {
        let Search { func, cfg, shape, .. } = *self.search;
        let data = match func.def(value) {
            Def::Result(inst, _) => func.inst(inst),
            Def::Param(block, index) => {
                let targets = cfg.preds(block).iter().flat_map(|pred| func.block(*pred).term.targets());
                let args = targets.filter(|to| to.block == block).map(|to| to.args[index as usize]);
                return args.map(|arg| self.kind(arg)).max().unwrap_or(Kind::Any);
            }
            Def::Removed => return Kind::Any,
        };
        match data.op {
            Op::SpecialReg(SpecialReg::Tid(axis)) => match shape.x {
                _ if axis >= shape.dims => Kind::Same,
                XLayout::Rows if axis > 0 => Kind::Same,
                XLayout::Irregular => Kind::Any,
                _ => Kind::Even,
            },
            Op::SpecialReg(
                SpecialReg::Ntid(_) | SpecialReg::CtaId(_) | SpecialReg::NctaId(_) | SpecialReg::WarpId,
            ) => Kind::Same,
            Op::AnyLane => Kind::Same,
            Op::Load(access) if matches!(access.space, Space::Param | Space::Const) => {
                if self.widest(&data.args) == Kind::Same { Kind::Same } else { Kind::Any }
            }
            Op::Int(IntBinary::Add | IntBinary::Sub)
            | Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc)
            | Op::ToGeneric(Space::Global | Space::Const | Space::Shared)
            | Op::FromGeneric(Space::Global | Space::Const | Space::Shared) => self.widest(&data.args),
            // Rows of a block may be any distance apart.
            Op::Int(IntBinary::Mul) | Op::Shift(Shift::Left) => {
                let both = self.kind(data.args[0]) == self.kind(data.args[1]);
                match self.widest(&data.args) {
                    Kind::Even if both => Kind::Any,
                    kind => kind,
                }
            }
            op if op.is_pure() && self.widest(&data.args) == Kind::Same => Kind::Same,
            _ => Kind::Any,
        }
    }

    fn widest(&mut self, values: &[Value]) -> Kind {
        values.iter().map(|value| self.kind(*value)).max().unwrap_or(Kind::Same)
    }

    /// Whether an address is computed from something bounded.
    fn is_bounded(&mut self, value: Value, depth: u32) -> bool {
        if self.usual.contains_key(&value) {
            return true;
        }
        if let Some(known) = self.bounded.get(&value) {
            return *known;
        }
        let is = self.search.func.def_inst(value).filter(|_| depth > 0).is_some_and(|data| {
            let is_plain = matches!(
                data.op,
                Op::Int(IntBinary::Add | IntBinary::Sub | IntBinary::Mul)
                    | Op::Shift(Shift::Left)
                    | Op::Convert(Convert::SExt | Convert::ZExt | Convert::Trunc)
                    | Op::ToGeneric(_)
                    | Op::FromGeneric(_)
            );
            is_plain && data.args.iter().any(|arg| self.is_bounded(*arg, depth - 1))
        });
        self.bounded.insert(value, is);
        is
    }
}

impl Part {
    /// Puts the test before the part, and a copy for where it holds beside it.
    fn divide(&self, func: &mut Function) {
        let after = self.end.map(|end| func.split_block(self.block, end));
        let rest = func.split_block(self.block, self.at);
        let loc = func.inst(func.block(rest).insts[0]).loc;
        if let Some(after) = after {
            sink(func, rest, after, self.bounds.iter().map(|bound| bound.usual).collect());
            join(func, rest, after);
        }
        let is_left = |bound: &&Bound| {
            let insts = &func.block(rest).insts;
            insts.iter().any(|inst| func.inst(*inst).results == [bound.result])
        };
        let bounds: Vec<&Bound> = self.bounds.iter().filter(is_left).collect();
        let make = |func: &mut Function, op, args, ty| {
            let inst = func.append(self.block, op, args, &[ty], loc);
            func.inst(inst).results[0]
        };
        let mut holds = None;
        let mut made: HashSet<Comparison> = HashSet::new();
        for &(cmp, a, b) in bounds.iter().flat_map(|bound| &bound.tests) {
            if !made.insert((cmp, a, b)) {
                continue;
            }
            [Some(a), b].into_iter().flatten().for_each(|value| bring_forward(func, rest, self.block, value));
            let b = b.unwrap_or_else(|| make(func, Op::Const(0), vec![], func.ty(a)));
            let test = make(func, Op::IntCmp(cmp), vec![a, b], Type::Pred);
            holds = Some(match holds {
                None => test,
                Some(holds) => make(func, Op::Int(IntBinary::And), vec![holds, test], Type::Pred),
            });
        }
        let holds = holds.expect("a part has bounds, and each a test");
        let cond = make(func, Op::Unanimous, vec![holds], Type::Pred);
        let copy = self.copied(func, rest);
        let (then, otherwise) = (Target::new(copy), Target::new(rest));
        let data = func.block_mut(self.block);
        data.term = Terminator::Branch { cond, then, otherwise, uniform: false };
        data.term_loc = loc;
    }

    /// Copies the part, without bounds; the copy of its first block.
    fn copied(&self, func: &mut Function, rest: Block) -> Block {
        let usual: HashMap<Value, Value> =
            self.bounds.iter().map(|bound| (bound.result, bound.usual)).collect();
        let originals: Vec<Block> = [rest].into_iter().chain(self.others.iter().copied()).collect();
        let copies: HashMap<Block, Block> =
            originals.iter().map(|block| (*block, func.add_block())).collect();
        let mut values: HashMap<Value, Value> = HashMap::new();
        let mut insts = Vec::new();
        for original in &originals {
            let copy = copies[original];
            for param in func.block(*original).params.clone() {
                values.insert(param, func.add_param(copy, func.ty(param)));
            }
            for inst in func.block(*original).insts.clone() {
                let data = func.inst(inst).clone();
                if data.results.iter().any(|result| usual.contains_key(result)) {
                    continue;
                }
                let types: Vec<Type> = data.results.iter().map(|result| func.ty(*result)).collect();
                let new = func.append(copy, data.op, data.args, &types, data.loc);
                values.extend(data.results.iter().copied().zip(func.inst(new).results.clone()));
                insts.push(new);
            }
        }
        let mapped = |mut value: Value| {
            while let Some(bounded) = usual.get(&value) {
                value = *bounded;
            }
            values.get(&value).copied().unwrap_or(value)
        };
        for inst in insts {
            func.inst_mut(inst).args.iter_mut().for_each(|arg| *arg = mapped(*arg));
        }
        for original in &originals {
            let data = func.block(*original);
            let (mut term, loc) = (data.term.clone(), data.term_loc);
            term.map_uses(mapped);
            for target in term.targets_mut() {
                target.block = copies.get(&target.block).copied().unwrap_or(target.block);
            }
            let data = func.block_mut(copies[original]);
            (data.term, data.term_loc) = (term, loc);
        }
        copies[&rest]
    }
}

/// Moves to the beginning of the next block what is computed beside accesses and what else is needed, unless that leaves many results for it.
fn sink(func: &mut Function, from: Block, to: Block, mut needed: HashSet<Value>) {
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    for &inst in func.block(from).insts.iter().rev() {
        let data = func.inst(inst);
        if data.op.is_pure() && !data.results.iter().any(|result| needed.contains(result)) {
            moved.push(inst);
        } else {
            needed.extend(&data.args);
            kept.push(inst);
        }
    }
    let results: HashSet<Value> = kept.iter().flat_map(|inst| &func.inst(*inst).results).copied().collect();
    let used: HashSet<Value> = moved.iter().flat_map(|inst| &func.inst(*inst).args).copied().collect();
    if used.intersection(&results).count() > PASSED {
        return;
    }
    kept.reverse();
    moved.reverse();
    func.block_mut(from).insts = kept;
    func.block_mut(to).insts.splice(0..0, moved);
}

/// Has a block go on to another, which so far used what it computes and now has it from there.
fn join(func: &mut Function, from: Block, to: Block) {
    let own: HashSet<Inst> = func.block(from).insts.iter().copied().collect();
    let results: HashSet<Value> = own.iter().flat_map(|inst| func.inst(*inst).results.clone()).collect();
    let blocks: Vec<Block> = func.blocks().filter(|block| *block != from).collect();
    let elsewhere: Vec<Inst> = blocks.iter().flat_map(|block| func.block(*block).insts.clone()).collect();
    let mut passed: Vec<Value> = elsewhere.iter().flat_map(|inst| func.inst(*inst).args.clone()).collect();
    passed.extend(blocks.iter().flat_map(|block| func.block(*block).term.uses()));
    passed.retain(|value| results.contains(value));
    passed.sort_unstable();
    passed.dedup();
    let params: HashMap<Value, Value> =
        passed.iter().map(|value| (*value, func.add_param(to, func.ty(*value)))).collect();
    let param = |value: Value| params.get(&value).copied().unwrap_or(value);
    for inst in elsewhere {
        func.inst_mut(inst).args.iter_mut().for_each(|arg| *arg = param(*arg));
    }
    for block in blocks {
        func.block_mut(block).term.map_uses(param);
    }
    func.block_mut(from).term = Terminator::Jump(Target { block: to, args: passed });
}

/// Moves what computes a value from one block to the end of another.
fn bring_forward(func: &mut Function, from: Block, to: Block, value: Value) {
    let Def::Result(inst, _) = func.def(value) else { return };
    if !func.block(from).insts.contains(&inst) {
        return;
    }
    for arg in func.inst(inst).args.clone() {
        bring_forward(func, from, to, arg);
    }
    func.block_mut(from).insts.retain(|other| *other != inst);
    func.block_mut(to).insts.push(inst);
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, BarrierKind, FunctionBuilder, Signature};

    use super::*;
    use crate::LaneShape;

    /// A thread's number and a limit; what it does with them is an index.
    type Bounded = fn(&mut FunctionBuilder, Value, Value) -> Value;

    fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
        b.inst(Op::Int(op), &[x, y], Type::I32)
    }

    fn nearest(b: &mut FunctionBuilder, x: Value, limit: Value) -> Value {
        let zero = b.constant(Type::I32, 0);
        let x = int(b, IntBinary::MaxS, x, zero);
        int(b, IntBinary::MinS, x, limit)
    }

    fn load(b: &mut FunctionBuilder, base: Value, index: Value) -> Value {
        let wide = b.inst(Op::Convert(Convert::SExt), &[index], Type::I64);
        let address = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
        b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], Type::I8)
    }

    /// A kernel that loads the byte before it and the one after it, as an index says, and does something in between.
    fn kernel(index: Bounded, between: impl Fn(&mut FunctionBuilder)) -> Function {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let param =
            |b: &mut FunctionBuilder, at, ty| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty);
        let (base, limit) = (param(&mut b, 0, Type::I64), param(&mut b, 8, Type::I32));
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let mut loaded = Vec::new();
        for step in [-1i32, 1] {
            let step = b.constant(Type::I32, u64::from(step as u32));
            let x = int(&mut b, IntBinary::Add, tid, step);
            let x = index(&mut b, x, limit);
            loaded.push(load(&mut b, base, x));
            between(&mut b);
        }
        let sum = b.inst(Op::Int(IntBinary::Add), &loaded, Type::I8);
        let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
        let to = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
        b.effect(Op::Store(Access::weak(Space::Global, 4096)), &[to, sum]);
        b.terminate(Terminator::Exit);
        b.finish()
    }

    fn shape() -> Shape {
        Shape::of([8, 1, 1], [256, 1, 1])
    }

    /// Of the loads of bytes, those of consecutive ones and the others, each where control usually goes and where it does not.
    fn loads(func: Function) -> [[usize; 2]; 2] {
        let p = crate::prepare(func, true, &shape()).unwrap();
        let mut loads = [[0; 2]; 2];
        for &block in p.cfg.order() {
            for inst in &p.func.block(block).insts {
                let data = p.func.inst(*inst);
                if matches!(data.op, Op::Load(_)) && p.func.ty(data.results[0]) == Type::I8 {
                    let is_even = matches!(p.shapes.of(data.args[0]), LaneShape::Affine(_));
                    loads[usize::from(p.is_rare(block))][usize::from(!is_even)] += 1;
                }
            }
        }
        loads
    }

    #[test]
    fn what_stays_within_bounds_is_loaded_side_by_side() {
        let other_side: Bounded = |b, x, limit| {
            let zero = b.constant(Type::I32, 0);
            let beyond = b.inst(Op::IntCmp(IntCmp::GtS), &[x, limit], Type::Pred);
            b.inst(Op::Select, &[beyond, zero, x], Type::I32)
        };
        let indices: [Bounded; 6] = [
            nearest,
            other_side,
            |b, x, limit| int(b, IntBinary::RemS, x, limit),
            |b, x, limit| {
                let beyond = int(b, IntBinary::Add, x, limit);
                int(b, IntBinary::RemS, beyond, limit)
            },
            |b, x, limit| {
                let (two, most) = (b.constant(Type::I32, 2), b.constant(Type::I32, u64::from(-2i32 as u32)));
                let beyond = int(b, IntBinary::Add, limit, x);
                let beyond = int(b, IntBinary::Add, beyond, two);
                let beyond = int(b, IntBinary::Add, most, beyond);
                int(b, IntBinary::RemU, beyond, limit)
            },
            |b, x, limit| int(b, IntBinary::MinU, limit, x),
        ];
        for index in indices {
            let func = kernel(index, |_| ());
            assert_eq!(loads(func.clone()), [[0, 2], [0, 0]]);
            assert_eq!(loads(split(&func, &shape()).expect("it has bounds")), [[2, 0], [0, 2]]);
        }
    }

    #[test]
    fn other_kernels_are_left_alone() {
        let unbounded = kernel(|_, x, _| x, |_| ());
        assert!(split(&unbounded, &shape()).is_none());
        // Data that is bounded is no index.
        let data: Bounded = |b, x, limit| {
            let least = int(b, IntBinary::MinS, x, limit);
            let zero = b.constant(Type::I64, 0);
            let out = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
            b.effect(Op::Store(Access::weak(Space::Global, 0)), &[out, least]);
            x
        };
        assert!(split(&kernel(data, |_| ()), &shape()).is_none());
        // An index that lanes do not have in a row before it is bounded has none after.
        let squared: Bounded = |b, x, limit| {
            let square = int(b, IntBinary::Mul, x, x);
            int(b, IntBinary::MinU, square, limit)
        };
        assert!(split(&kernel(squared, |_| ()), &shape()).is_none());
    }

    #[test]
    fn what_lanes_do_together_is_there_once() {
        let count = |func: &Function, is: fn(&Op) -> bool| {
            let insts = func.blocks().flat_map(|block| &func.block(block).insts);
            insts.filter(|inst| is(&func.inst(**inst).op)).count()
        };
        let waiting = |b: &mut FunctionBuilder| {
            let zero = b.constant(Type::I32, 0);
            b.effect(Op::Barrier { kind: BarrierKind::Sync, count: false }, &[zero]);
        };
        let func = split(&kernel(nearest, waiting), &shape()).expect("it has bounds");
        assert_eq!(count(&func, Op::is_barrier), 2);
        assert_eq!(loads(func), [[2, 0], [0, 2]], "on both sides of a barrier");
        let meeting = |b: &mut FunctionBuilder| {
            let all = b.constant(Type::I32, u64::from(u32::MAX));
            b.effect(Op::WarpSync, &[all]);
        };
        let func = split(&kernel(nearest, meeting), &shape()).expect("it has bounds");
        assert_eq!(count(&func, |op| *op == Op::WarpSync), 2);
        assert_eq!(loads(func), [[1, 1], [0, 1]], "as far as the first meeting");
    }

    #[test]
    fn not_much_is_there_twice() {
        let long = |count: u32| {
            kernel(nearest, move |b| {
                let mut value = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
                for _ in 0..count {
                    value = int(b, IntBinary::Mul, value, value);
                }
                let zero = b.constant(Type::I64, 0);
                let out = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
                b.effect(Op::Store(Access::weak(Space::Global, 0)), &[out, value]);
            })
        };
        assert!(split(&long(8), &shape()).is_some());
        assert!(split(&long(256), &shape()).is_none());
    }
}
