//! All passes and analyses in order: from a function as the front end makes it to what code generation reads.

use kernel_abi::Shape;
use simt_ir::{Block, Cfg, DomTree, Function, Inst, IntBinary, Op, Target, Terminator, Value};

use crate::columns::Columns;
use crate::poll::{self, Polling};
use crate::unread::Unread;
use crate::wanted::Wanted;
use crate::{
    Irreducible, Linear, Loops, Shapes, abreast, bytes, cancel, decide, disjoint, dispatch, drift, halves,
    in_step, lane_by_lane, late, lcssa, nan, narrow, normalize, pairs, quiet, selections, simplify,
    stragglers, traps, words, zeros,
};

/// How far it is from a lane that stands for all to what is compared with others.
const STEPS: u32 = 3;

/// A function in normal form, with all that is known of it.
pub struct Prepared {
    /// The function.
    pub func: Function,
    /// It is the kernel: every thread of the warp enters it.
    pub is_kernel: bool,
    /// Its control-flow graph.
    pub cfg: Cfg,
    /// Its dominators.
    pub dom: DomTree,
    /// Its loops.
    pub loops: Loops,
    /// Its values' shapes, and its divergent branches.
    pub shapes: Shapes,
    /// Its values that a block's rows have in common.
    pub columns: Columns,
    /// Its linear control flow.
    pub linear: Linear,
    /// Its loops that wait for other threads.
    pub polling: Polling,
    /// Its atomics that may be done later, in ascending order: see [`late`].
    pub late: Vec<Inst>,
    /// Its atomics that one lane comes to at a time, in ascending order: see [`stragglers`].
    pub alone: Vec<Inst>,
    /// In which lanes its values are wanted: see [`wanted`](crate::wanted).
    pub wanted: Wanted,
    /// Its parameters that only lanes read that came one way: see [`unread`](crate::unread).
    pub unread: Unread,
    /// Its local memory is interleaved: see [`lane_by_lane`].
    pub lane_by_lane: bool,
    /// Its lanes have places of their own: see [`dispatch`].
    pub dispatched: bool,
    /// The block that returns.
    pub end: Option<Block>,
    /// For each block, whether it surely runs with all 32 lanes.
    pub full: Vec<bool>,
    /// The block that defines each value.
    pub def_block: Vec<Option<Block>>,
}

/// Prepares a kernel whose calls have been inlined: to run its lanes in step if that does what the program means, else with lanes that
/// have places of their own. If it is too large for that, the reason why it cannot run in step.
pub fn prepare_kernel(func: &Function, shape: &Shape) -> Result<Prepared, in_step::Obstacle> {
    let (obstacle, waiting) = match (prepare(func.clone(), true, shape), &func.waits_at) {
        (Ok(prepared), known) => match in_step::obstacle(&prepared) {
            None => return Ok(prepared),
            Some(obstacle) => (obstacle, known.clone().unwrap_or(prepared.polling.headers)),
        },
        (Err(irreducible), known) => {
            let waiting = known.clone().unwrap_or_else(|| may_wait_anywhere(func));
            (in_step::Obstacle::entered_twice(func, irreducible), waiting)
        }
    };
    let mut func = func.clone();
    abreast::forget(&mut func);
    traps::pass_through(&mut func);
    simplify::simplify(&mut func);
    let Some(dispatched) = dispatch::dispatch(&func, &waiting) else { return Err(obstacle) };
    let Ok(mut prepared) = prepare_blocks(dispatched.func, true, shape) else { return Err(obstacle) };
    prepared.polling = Polling { yields: vec![dispatched.pause], ..Polling::default() };
    prepared.late.clear();
    prepared.wanted = Wanted::default();
    prepared.unread = Unread::default();
    prepared.dispatched = true;
    Ok(prepared)
}

/// Where lanes may wait if it cannot be said where loops are: wherever control goes back to.
fn may_wait_anywhere(func: &Function) -> Vec<Block> {
    if !func.sees_others() {
        return Vec::new();
    }
    let cfg = Cfg::new(func);
    let edges = cfg.order().iter().flat_map(|from| cfg.succs(*from).iter().map(move |to| (*from, *to)));
    let back = edges.filter(|(from, to)| cfg.position(*to) <= cfg.position(*from));
    let mut waiting: Vec<Block> = back.map(|(_, to)| to).collect();
    waiting.sort();
    waiting.dedup();
    waiting
}

/// The headers of the loops of a function in which threads may wait for others.
pub fn waits_at(func: &Function, is_kernel: bool, shape: &Shape) -> Vec<Block> {
    match prepare(func.clone(), is_kernel, shape) {
        Ok(prepared) => prepared.polling.headers,
        Err(_) => may_wait_anywhere(func),
    }
}

/// What all else begins with: takes away what has no effect for blocks of this shape.
pub(crate) fn straighten_out(func: &mut Function, shape: &Shape) {
    traps::pass_through(func);
    simplify::simplify(func);
    disjoint::sums(func, shape);
    cancel::cancel(func);
    decide::decide(func, shape);
    bytes::bytes(func);
}

/// Prepares a function whose calls have been inlined, to run its lanes in step.
pub fn prepare(mut func: Function, is_kernel: bool, shape: &Shape) -> Result<Prepared, Irreducible> {
    straighten_out(&mut func, shape);
    selections::select(&mut func);
    prepare_straight(func, is_kernel, shape)
}

/// Prepares a function that has a block which something else names: where lanes that have places of their own pause, which is all that this block is there for.
fn prepare_blocks(mut func: Function, is_kernel: bool, shape: &Shape) -> Result<Prepared, Irreducible> {
    straighten_out(&mut func, shape);
    prepare_straight(func, is_kernel, shape)
}

fn prepare_straight(mut func: Function, is_kernel: bool, shape: &Shape) -> Result<Prepared, Irreducible> {
    halves::halves(&mut func);
    pairs::pairs(&mut func);
    words::words(&mut func);
    narrow::narrow(&mut func, shape);
    isolate_barriers(&mut func);
    normalize::normalize(&mut func, is_kernel)?;
    let cfg = Cfg::new(&func);
    let dom = DomTree::new(&cfg);
    let loops = Loops::new(&cfg, &dom, func.blocks().len())?;
    nan::make_canonical(&mut func);
    zeros::ignore_signs(&mut func);
    Ok(finish(func, is_kernel, shape, cfg, dom, loops))
}

/// All that is known of a function in normal form.
fn finish(
    mut func: Function,
    is_kernel: bool,
    shape: &Shape,
    cfg: Cfg,
    dom: DomTree,
    loops: Loops,
) -> Prepared {
    lcssa::close_loops(&mut func, &cfg, &dom, &loops);
    debug_assert!(lcssa::is_closed(&func, &cfg, &loops));
    let mut shapes = Shapes::new(&func, &cfg, &dom, &loops, shape, is_kernel);
    if drift::part(&mut func, &cfg, &loops, &shapes) {
        debug_assert!(lcssa::is_closed(&func, &cfg, &loops));
        shapes = Shapes::new(&func, &cfg, &dom, &loops, shape, is_kernel);
    }
    let returns = |block: &Block| matches!(func.block(*block).term, Terminator::Return(_));
    let end = cfg.order().iter().copied().find(returns);
    let linear = Linear::new(&cfg, &dom, &loops, shapes.divergent(), end);
    let full = full_blocks(&cfg, &linear, shapes.divergent(), is_kernel && shape.whole_warps);
    let polling = poll::find(&func, &cfg, &dom, &loops, &shapes, &linear, shape.dims);
    let def_block = lcssa::def_blocks(&func, &cfg);
    let late = if is_kernel { late::find(&func, &cfg, &polling) } else { Vec::new() };
    let wanted = Wanted::find(&func, &cfg, &shapes, shape);
    let unread = Unread::find(&func, &cfg, &dom, &def_block);
    quiet::mark(&mut func, &cfg, &shapes);
    let columns = Columns::find(&func, &cfg, &shapes, shape);
    let lane_by_lane = is_kernel && lane_by_lane::is_possible(&func, &cfg);
    let dispatched = false;
    Prepared {
        func,
        is_kernel,
        cfg,
        dom,
        loops,
        shapes,
        columns,
        linear,
        polling,
        late,
        alone: Vec::new(),
        wanted,
        unread,
        lane_by_lane,
        dispatched,
        end,
        full,
        def_block,
    }
}

impl Prepared {
    /// The kernel with what the few lanes do that stay in a loop apart from what all do, where that is faster: see [`stragglers`].
    pub fn with_stragglers_apart(self, shape: &Shape) -> Prepared {
        // In a gang, lanes are not numbered.
        if shape.gang > 1 || self.dispatched {
            return self;
        }
        let Some((func, alone)) = stragglers::split(&self, shape) else { return self };
        let cfg = Cfg::new(&func);
        let dom = DomTree::new(&cfg);
        let Ok(loops) = Loops::new(&cfg, &dom, func.blocks().len()) else { return self };
        let apart = Prepared { alone, ..finish(func, self.is_kernel, shape, cfg, dom, loops) };
        let runs_in_step = apart.polling.headers.is_empty() && in_step::obstacle(&apart).is_none();
        if runs_in_step { apart } else { self }
    }

    /// Values that are read in another block than the one that defines them, and all block parameters.
    pub fn crossing(&self) -> Vec<bool> {
        self.crossing_into(|_| true)
    }

    /// Values that are read in one of some blocks and defined in another one of any, and the parameters of these blocks.
    pub fn crossing_into(&self, into: impl Fn(Block) -> bool) -> Vec<bool> {
        let mut crossing = vec![false; self.func.value_count()];
        for &block in self.cfg.order().iter().filter(|block| into(**block)) {
            let data = self.func.block(block);
            for param in &data.params {
                crossing[param.index()] = true;
            }
            let args = data.insts.iter().flat_map(|inst| self.func.inst(*inst).args.iter().copied());
            for value in args.chain(data.term.uses()) {
                if self.def_block[value.index()] != Some(block) {
                    crossing[value.index()] = true;
                }
            }
            // What is tested beside accesses.
            let insts = data.insts.iter().map(|inst| self.func.inst(*inst));
            for address in
                insts.filter(|inst| inst.op.access().is_some()).filter_map(|inst| inst.args.first())
            {
                for check in self.shapes.checks(*address) {
                    let index = check.assumption.index;
                    crossing[index.index()] |= self.def_block[index.index()] != Some(block);
                }
            }
        }
        crossing
    }

    /// How often each value is used.
    pub fn uses(&self) -> Vec<u32> {
        self.cfg.uses(&self.func)
    }

    /// Whether control comes to a block only where a warp is told by [`Op::Unanimous`] to take the other way, and little depends on how long
    /// that takes. Not where the way is told by what one lane has, as where rows end or lanes leave loops: that may be everywhere.
    pub fn is_rare(&self, block: Block) -> bool {
        self.is_aside(block, |cond| !self.is_of_one_lane(cond, STEPS))
    }

    /// Whether control comes to a block only where a warp is told by [`Op::Unanimous`] to take the other way: there is a block for most.
    pub fn is_unusual(&self, block: Block) -> bool {
        self.is_aside(block, |_| true)
    }

    /// The blocks that control usually comes to: those that are not [unusual](Prepared::is_unusual).
    pub fn usual_blocks(&self) -> impl Iterator<Item = Block> {
        self.cfg.order().iter().copied().filter(|block| !self.is_unusual(*block))
    }

    /// How often a block runs for each time that the kernel does, where what is in a loop runs so many times: how often it does is not known, and what is in many
    /// loops does not count for more than what is in four.
    pub fn often(&self, block: Block, iterations: u64) -> u64 {
        iterations.pow((self.loops.around(block).count() as u32).min(4))
    }

    fn is_aside(&self, block: Block, counts: impl Fn(Value) -> bool) -> bool {
        let mut at = block;
        while let Some(parent) = self.dom.idom(at) {
            if let Terminator::Branch { cond, otherwise, .. } = &self.func.block(parent).term
                && otherwise.block == at
                && self.cfg.preds(at) == [parent]
                && self.op_of(*cond) == Some(&Op::Unanimous)
                && counts(*cond)
            {
                return true;
            }
            at = parent;
        }
        false
    }

    /// Whether a test is one of what a lane has that stands for all, so many steps before what is compared.
    fn is_of_one_lane(&self, value: Value, steps: u32) -> bool {
        let Some(data) = self.func.def_inst(value) else { return false };
        let is_compared = !matches!(data.op, Op::Unanimous | Op::Int(IntBinary::And) | Op::IntCmp(_));
        let Some(steps) = steps.checked_sub(u32::from(is_compared)) else { return false };
        data.op == Op::AnyLane || data.args.iter().any(|arg| self.is_of_one_lane(*arg, steps))
    }

    /// The instruction's operation, if the value is a result.
    pub fn op_of(&self, value: Value) -> Option<&Op> {
        self.func.def_inst(value).map(|data| &data.op)
    }
}

/// After: a barrier, as all that suspends a warp, is the first instruction of a block that has one predecessor.
pub fn isolate_barriers(func: &mut Function) {
    for block in func.blocks() {
        let mut block = block;
        let mut from = 0;
        while let Some(at) = (from..func.block(block).insts.len())
            .find(|at| abreast::suspends(&func.inst(func.block(block).insts[*at]).op))
        {
            let new = func.split_block(block, at);
            let loc = func.block(new).term_loc;
            let data = func.block_mut(block);
            data.term = Terminator::Jump(Target::new(new));
            data.term_loc = loc;
            (block, from) = (new, 1);
        }
    }
}

/// Blocks entered by all lanes whenever they are entered.
fn full_blocks(cfg: &Cfg, linear: &Linear, divergent: &[bool], entry: bool) -> Vec<bool> {
    let mut full = vec![entry; divergent.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in cfg.order() {
            let now = match linear.mask_of(block) {
                shared if shared != block => full[shared.index()],
                _ if block == Function::ENTRY => entry,
                _ => cfg.preds(block).iter().all(|pred| full[pred.index()] && !divergent[pred.index()]),
            };
            if full[block.index()] && !now {
                full[block.index()] = false;
                changed = true;
            }
        }
    }
    full
}
