//! Numbers that lanes leave a loop with.
//!
//! A loop over the elements of an array, `for (i = thread; i < n; i += threads)`, is unrolled by compilers into two: one that takes the iterations that do not
//! fill the other. Lanes may leave it sooner or later, so nothing is known any more of how their numbers go on into the second. But mostly
//! all lanes of a warp have as many elements, and leave together: then their numbers still lie to each other as they did before. [`find`] has the kernel
//! compute them so, from what they were and one lane's distance from that, for [`within`](crate::within) to take where a test says that it is
//! right.

use std::collections::HashMap;

use simt_ir::{Block, Cfg, Def, DomTree, Function, IntBinary, Op, Terminator, Type, Value};

use crate::{LoopId, Loops, lcssa};

/// A number that lanes come out of a loop with, or around it.
pub struct Rejoined {
    /// What it usually is, and what it was before the loop.
    pub usual: Value,
    pub before: Value,
    /// What lanes leave the loop by.
    pub exits: Vec<Value>,
}

/// Whether a function has a loop.
pub fn may_have(func: &Function) -> bool {
    func.blocks().any(|block| func.block(block).term.targets().iter().any(|to| to.block <= block))
}

/// By parameter of a block, what it usually is. After: the kernel computes that too. Its loops are closed.
pub fn find(func: &mut Function, cfg: &Cfg, dom: &DomTree, loops: &Loops) -> HashMap<Value, Rejoined> {
    let def_block = lcssa::def_blocks(func, cfg);
    let mut found = HashMap::new();
    for &block in cfg.order() {
        if loops.headed_by(block).is_some() {
            continue;
        }
        let mut at = 0;
        for (index, param) in func.block(block).params.clone().into_iter().enumerate() {
            let ty = func.ty(param);
            if !matches!(ty, Type::I32 | Type::I64) {
                continue;
            }
            let args: Vec<Value> = cfg.passed(func, block, index).collect();
            let is_before = |arg: &Value| {
                def_block[arg.index()].is_some_and(|from| {
                    from != block
                        && dom.dominates(from, block)
                        && loops.around(from).all(|id| loops.contains(id, block))
                })
            };
            let Some(&before) = args.iter().find(|arg| is_before(arg)) else { continue };
            let mut left = args.iter().filter_map(|arg| left(func, cfg, loops, &def_block, *arg, block));
            let Some(id) = left.next() else { continue };
            let exits = exits(func, cfg, loops, id);
            let loc = func.block(block).term_loc;
            let mut add = |op, args: Vec<Value>| {
                at += 1;
                func.insert(block, at - 1, op, args, ty, loc)
            };
            let distance = add(Op::Int(IntBinary::Sub), vec![param, before]);
            let one = add(Op::AnyLane, vec![distance]);
            let usual = add(Op::Int(IntBinary::Add), vec![before, one]);
            found.insert(param, Rejoined { usual, before, exits });
        }
    }
    found
}

/// The loop that a value leaves on its way to a block.
fn left(
    func: &Function,
    cfg: &Cfg,
    loops: &Loops,
    def_block: &[Option<Block>],
    mut value: Value,
    block: Block,
) -> Option<LoopId> {
    loop {
        let from = def_block[value.index()]?;
        let around = loops.innermost(from).filter(|id| !loops.contains(*id, block));
        if around.is_some() {
            return around;
        }
        // Through the parameters by which loops are closed.
        let (Def::Param(_, index), &[pred]) = (func.def(value), cfg.preds(from)) else { return None };
        let targets = func.block(pred).term.targets();
        value = targets.iter().find(|to| to.block == from)?.args[index as usize];
    }
}

/// The conditions by which control leaves a loop.
pub fn exits(func: &Function, cfg: &Cfg, loops: &Loops, id: LoopId) -> Vec<Value> {
    let leaving = loops.exit_edges(id, cfg).into_iter().map(|(from, _)| from);
    let cond = |from: Block| match &func.block(from).term {
        Terminator::Branch { cond, .. } => Some(*cond),
        _ => None,
    };
    leaving.filter_map(cond).collect()
}
