//! How many registers a function would need on a machine that has some.

use std::collections::HashSet;

use crate::{Cfg, Function, Type, Value};

/// The most 32-bit registers that hold values of a thread at once. Predicates have registers of their own.
pub fn registers(function: &Function) -> u32 {
    let cfg = Cfg::new(function);
    let live_out = live_out(function, &cfg);
    let mut most = 0;
    for &block in cfg.order() {
        let mut live = live_out[block.index()].clone();
        let mut words: u32 = live.iter().map(|value| words(function.ty(*value))).sum();
        let data = function.block(block);
        let enter = |live: &mut HashSet<Value>, words: &mut u32, value: Value| {
            if live.insert(value) {
                *words += self::words(function.ty(value));
            }
        };
        data.term.uses().into_iter().for_each(|value| enter(&mut live, &mut words, value));
        most = most.max(words);
        for &inst in data.insts.iter().rev() {
            let inst = function.inst(inst);
            // Constants are written into instructions.
            for result in &inst.results {
                if live.remove(result) {
                    words -= self::words(function.ty(*result));
                }
            }
            for &value in inst.args.iter().filter(|value| function.constant(**value).is_none()) {
                enter(&mut live, &mut words, value);
            }
            most = most.max(words);
        }
    }
    most
}

/// Values that are needed after each block.
fn live_out(function: &Function, cfg: &Cfg) -> Vec<HashSet<Value>> {
    let count = function.blocks().len();
    let (mut live_in, mut live_out) = (vec![HashSet::new(); count], vec![HashSet::new(); count]);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in cfg.order().iter().rev() {
            let data = function.block(block);
            let after: HashSet<Value> =
                cfg.succs(block).iter().flat_map(|succ| live_in[succ.index()].iter().copied()).collect();
            let mut live = after.clone();
            live.extend(data.term.uses());
            for &inst in data.insts.iter().rev() {
                let inst = function.inst(inst);
                inst.results.iter().for_each(|result| _ = live.remove(result));
                live.extend(inst.args.iter().filter(|value| function.constant(**value).is_none()));
            }
            data.params.iter().for_each(|param| _ = live.remove(param));
            live_out[block.index()] = after;
            if live != live_in[block.index()] {
                live_in[block.index()] = live;
                changed = true;
            }
        }
    }
    live_out
}

/// 32-bit registers of a value.
fn words(ty: Type) -> u32 {
    match ty {
        Type::Pred => 0,
        ty => ty.bytes().div_ceil(4),
    }
}
