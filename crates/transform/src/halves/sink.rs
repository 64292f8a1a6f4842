//! Halves that are taken out where they are asked for.

use std::collections::{BTreeMap, HashMap};

use simt_ir::{Block, Cfg, DomTree, Function, Inst, Value};

use super::{truncated, upper_of};
use crate::Loops;

/// Blocks beyond which a half is better taken out once.
const MOST_BLOCKS: usize = 2;

/// Takes halves out in the blocks that ask for them, where that is not the one that has the number: what is special seldom comes up, and has a
/// block of its own.
pub(super) fn sink(func: &mut Function) {
    let cfg = Cfg::new(func);
    let dom = DomTree::new(&cfg);
    let Ok(loops) = Loops::new(&cfg, &dom, func.blocks().len()) else { return };
    let mut asking: HashMap<Value, BTreeMap<Block, Vec<Inst>>> = HashMap::new();
    for &block in cfg.order() {
        for &inst in &func.block(block).insts {
            for arg in &func.inst(inst).args {
                asking.entry(*arg).or_default().entry(block).or_default().push(inst);
            }
        }
        for value in func.block(block).term.uses() {
            asking.entry(value).or_default().entry(block).or_default();
        }
    }
    for &block in cfg.order() {
        for inst in func.block(block).insts.clone() {
            let Some(&half) = func.inst(inst).results.first() else { continue };
            let Some(users) = asking.get(&half).filter(|_| truncated(func, half).is_some()) else { continue };
            let is_not_deeper =
                |user: &Block| loops.around(*user).all(|around| loops.contains(around, block));
            let is_asked_for =
                |user: &Block| !users[user].is_empty() && !func.block(*user).term.uses().contains(&half);
            if users.contains_key(&block)
                || users.len() > MOST_BLOCKS
                || !users.keys().all(|user| is_not_deeper(user) && is_asked_for(user))
            {
                continue;
            }
            for (user, insts) in users {
                let copy = taken_out(func, half, *user);
                for inst in insts {
                    let args = &mut func.inst_mut(*inst).args;
                    args.iter_mut().filter(|arg| **arg == half).for_each(|arg| *arg = copy);
                }
            }
        }
    }
}

/// Takes a half out once more, at the beginning of a block.
fn taken_out(func: &mut Function, half: Value, block: Block) -> Value {
    let mut steps = vec![half];
    if upper_of(func, Some(half)).is_some() {
        steps.extend(truncated(func, half));
    }
    let mut replaced: Option<(Value, Value)> = None;
    for (at, step) in steps.into_iter().rev().enumerate() {
        let data = func.def_inst(step).expect("a half is a result").clone();
        let args = data.args.iter().map(|arg| match replaced {
            Some((old, new)) if old == *arg => new,
            _ => *arg,
        });
        let args = args.collect();
        let copy = func.insert(block, at, data.op, args, func.ty(step), data.loc);
        replaced = Some((step, copy));
    }
    replaced.expect("there is a step").1
}
