//! The normal form that later passes and emission rely on.
//!
//! After [`normalize`]:
//! * switches are trees of branches;
//! * one block returns, it is empty but for its parameters, and ends kernels for every thread;
//! * a loop has one latch, an empty block that jumps to the header, and one entry edge, from an empty preheader;
//! * an edge out of a loop leads to a block that has no other predecessor.

use simt_ir::{Block, Cfg, DomTree, Function, IntCmp, Op, SourceLoc, Target, Terminator, Type, Value};

use crate::{Irreducible, LoopId, Loops};

/// Brings a function into normal form. Control flow that enters a loop in the middle is refused.
pub fn normalize(func: &mut Function, is_kernel: bool) -> Result<(), Irreducible> {
    clear_unreachable(func);
    for block in func.blocks() {
        lower_switch(func, block);
    }
    unify_returns(func, is_kernel);
    let loops = find_loops(func)?;
    for id in loops.ids() {
        isolate_header(func, &loops, id);
    }
    let loops = find_loops(func)?;
    isolate_exits(func, &loops);
    Ok(())
}

/// The loops of a function as it stands.
pub fn find_loops(func: &Function) -> Result<Loops, Irreducible> {
    let cfg = Cfg::new(func);
    Loops::new(&cfg, &DomTree::new(&cfg), func.blocks().len())
}

fn clear_unreachable(func: &mut Function) {
    let cfg = Cfg::new(func);
    func.retain_params(|block, _| cfg.is_reachable(block));
    for block in func.blocks() {
        if !cfg.is_reachable(block) {
            let data = func.block_mut(block);
            data.insts.clear();
            data.term = Terminator::Trap;
        }
    }
}

fn lower_switch(func: &mut Function, block: Block) {
    let data = func.block(block);
    let loc = data.term_loc;
    if let Terminator::Switch { index, targets } = data.term.clone() {
        branch_tree(func, block, index, 0, &targets, loc);
    }
}

/// Ends `block` in branches to `targets[index - first]`.
fn branch_tree(
    func: &mut Function,
    block: Block,
    index: Value,
    first: u64,
    targets: &[Target],
    loc: SourceLoc,
) {
    let term = match targets {
        [] => Terminator::Trap,
        [target] => Terminator::Jump(target.clone()),
        _ => {
            let (low, high) = targets.split_at(targets.len() / 2);
            let middle = first + low.len() as u64;
            let limit = func.append_value(block, Op::Const(middle), vec![], Type::I32, loc);
            let cond = func.append_value(block, Op::IntCmp(IntCmp::LtU), vec![index, limit], Type::Pred, loc);
            let mut side = |first: u64, targets: &[Target]| match targets {
                [target] => target.clone(),
                _ => {
                    let new = func.add_block();
                    branch_tree(func, new, index, first, targets, loc);
                    Target::new(new)
                }
            };
            let (then, otherwise) = (side(first, low), side(middle, high));
            Terminator::Branch { cond, then, otherwise, uniform: false }
        }
    };
    let data = func.block_mut(block);
    data.term = term;
    data.term_loc = loc;
}

fn unify_returns(func: &mut Function, is_kernel: bool) {
    let cfg = Cfg::new(func);
    let returns = |func: &Function, block: Block| match func.block(block).term {
        Terminator::Return(_) => true,
        Terminator::Exit => is_kernel,
        _ => false,
    };
    let ending: Vec<Block> = cfg.order().iter().copied().filter(|b| returns(func, *b)).collect();
    if ending.is_empty() {
        return;
    }
    let end = func.add_block();
    let params = func.signature.results.clone().into_iter().map(|ty| func.add_param(end, ty)).collect();
    func.block_mut(end).term = Terminator::Return(params);
    for block in ending {
        let data = func.block_mut(block);
        let args = match std::mem::replace(&mut data.term, Terminator::Exit) {
            Terminator::Return(values) => values,
            _ => Vec::new(),
        };
        data.term = Terminator::Jump(Target { block: end, args });
    }
}

/// Gives a loop its latch and its preheader.
fn isolate_header(func: &mut Function, loops: &Loops, id: LoopId) {
    let header = loops.get(id).header;
    let cfg = Cfg::new(func);
    let (mut back, mut entering) = (Vec::new(), Vec::new());
    for &pred in cfg.preds(header) {
        // Blocks added for other loops lead to their headers only, so every predecessor is one that `loops` knows.
        let list = if loops.contains(id, pred) { &mut back } else { &mut entering };
        if !list.contains(&pred) {
            list.push(pred);
        }
    }
    interpose(func, &back, header);
    interpose(func, &entering, header);
}

/// Leads all edges from `sources` to `target` through one new empty block, unless one empty block is there.
fn interpose(func: &mut Function, sources: &[Block], target: Block) {
    if let [only] = sources {
        let data = func.block(*only);
        if data.insts.is_empty() && matches!(data.term, Terminator::Jump(_)) && *only != Function::ENTRY {
            return;
        }
    }
    let new = func.add_block();
    let types: Vec<Type> = func.block(target).params.iter().map(|p| func.ty(*p)).collect();
    let args: Vec<Value> = types.into_iter().map(|ty| func.add_param(new, ty)).collect();
    for &source in sources {
        for edge in func.block_mut(source).term.targets_mut() {
            if edge.block == target {
                edge.block = new;
            }
        }
    }
    let loc = func.block(target).term_loc;
    let data = func.block_mut(new);
    data.term = Terminator::Jump(Target { block: target, args });
    data.term_loc = loc;
}

/// Gives every edge out of a loop a block of its own.
fn isolate_exits(func: &mut Function, loops: &Loops) {
    let cfg = Cfg::new(func);
    for &from in cfg.order() {
        let mut term = func.block(from).term.clone();
        for target in term.targets_mut() {
            let leaves = loops.around(from).any(|id| !loops.contains(id, target.block));
            if leaves && cfg.preds(target.block).len() > 1 {
                let new = func.add_block();
                let old = std::mem::replace(target, Target::new(new));
                func.block_mut(new).term_loc = func.block(from).term_loc;
                func.block_mut(new).term = Terminator::Jump(old);
            }
        }
        func.block_mut(from).term = term;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FunctionBuilder, Signature};

    #[test]
    fn unreachable_blocks_neither_take_nor_pass_values() {
        let mut b =
            FunctionBuilder::new("f", Signature { params: vec![Type::I32], results: vec![Type::I32] });
        let value = b.param(0);
        let (dead, also_dead, join) = (b.block(), b.block(), b.block());
        b.terminate(Terminator::Jump(Target { block: join, args: vec![value] }));
        let mut func = b.finish();
        let passed_on = func.add_param(dead, Type::I32);
        let (first, second) = (func.add_param(also_dead, Type::I32), func.add_param(also_dead, Type::I32));
        let result = func.add_param(join, Type::I32);
        func.block_mut(dead).term =
            Terminator::Jump(Target { block: also_dead, args: vec![passed_on, passed_on] });
        func.block_mut(also_dead).term = Terminator::Branch {
            cond: first,
            then: Target { block: join, args: vec![second] },
            otherwise: Target { block: dead, args: vec![first] },
            uniform: false,
        };
        func.block_mut(join).term = Terminator::Return(vec![result]);
        clear_unreachable(&mut func);
        for block in [dead, also_dead] {
            assert!(func.block(block).params.is_empty());
            assert!(matches!(func.block(block).term, Terminator::Trap));
        }
        assert_eq!(func.block(join).params, [result]);
        assert_eq!(func.block(Function::ENTRY).term.targets()[0].args, [value]);
    }
}
