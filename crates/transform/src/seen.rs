//! Where something about a value may be seen: the bits of a NaN, the sign of a zero.
//!
//! It is seen where it comes to an operation that tells it, or leaves the function. Most arithmetic does not look at it, or hands it on to its result.

use simt_ir::{Cfg, Def, Function, Inst, Terminator, Value};

/// What an operation makes of it in one of its operands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Nothing depends on it.
    Ignored,
    /// The same about the result depends on it, and nothing else.
    PassedOn,
    /// It may show.
    Seen,
}

/// Of each value whether it may be seen, where `use_of` says what an instruction makes of it in which operand.
pub fn seen(func: &Function, cfg: &Cfg, use_of: impl Fn(Inst, usize) -> Use) -> Vec<bool> {
    let mut seen = vec![false; func.value_count()];
    let mut work: Vec<Value> = Vec::new();
    let operands = |inst: Inst, wanted: Use| {
        let args = func.inst(inst).args.iter().enumerate();
        let use_of = &use_of;
        args.filter(move |(at, _)| use_of(inst, *at) == wanted).map(|(_, arg)| *arg)
    };
    for &block in cfg.order() {
        let data = func.block(block);
        if let Terminator::Return(values) = &data.term {
            work.extend(values);
        }
        work.extend(data.insts.iter().flat_map(|inst| operands(*inst, Use::Seen)));
    }
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        match func.def(value) {
            Def::Param(block, at) => work.extend(cfg.passed(func, block, at as usize)),
            Def::Result(inst, _) => work.extend(operands(inst, Use::PassedOn)),
            Def::Removed => {}
        }
    }
    seen
}
