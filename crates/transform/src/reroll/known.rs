//! Loops of which it is known, and need not be tested, that the first does all that both do.

use simt_ir::{Block, Function, IntBinary, IntCmp, Op, Target, Terminator, Value};

use super::expr::{Exprs, Id};
use super::same::{run, told};
use super::{Unrolled, preds, through};

/// How far up a branch is looked for that leads to the loops.
const STEPS: usize = 4;

/// A number that goes up by one from its first value while it is less than the limit.
#[derive(Clone, Copy)]
pub struct Counted {
    pub begin: Value,
    pub limit: Value,
}

impl Counted {
    /// Whether its iterations are `trips`, and there is one at least: a branch leads here only where the first number is less than the limit. Nothing wraps then.
    pub fn takes(&self, func: &Function, unrolled: &Unrolled) -> bool {
        let is_distance = func
            .def_inst(unrolled.trips)
            .is_some_and(|data| data.op == Op::Int(IntBinary::Sub) && data.args == [self.limit, self.begin]);
        is_distance && self.is_less_at(func, unrolled.before)
    }

    fn is_less_at(&self, func: &Function, mut block: Block) -> bool {
        for _ in 0..STEPS {
            let from = preds(func, block);
            let &[pred] = &from[..] else { return false };
            match &func.block(pred).term {
                Terminator::Jump(_) => {}
                Terminator::Branch { cond, then, otherwise, .. } => {
                    let leads = |target: &Target| through(func, target).block == block;
                    match (leads(then), leads(otherwise)) {
                        (true, true) => {}
                        (holds, _) if self.is_told(func, *cond, holds) => return true,
                        _ => {}
                    }
                }
                _ => return false,
            }
            block = pred;
        }
        false
    }

    /// Whether a condition that holds, or does not, says that the first number is less than the limit.
    fn is_told(&self, func: &Function, cond: Value, holds: bool) -> bool {
        let Some(data) = func.def_inst(cond) else { return false };
        let Op::IntCmp(cmp) = data.op else { return false };
        let less = match (cmp, holds) {
            (IntCmp::LtS, true) | (IntCmp::GeS, false) => [self.begin, self.limit],
            (IntCmp::GtS, true) | (IntCmp::LeS, false) => [self.limit, self.begin],
            _ => return false,
        };
        data.args == less
    }
}

/// Whether the second loop is left out where there are fewer iterations than it takes at once, and only there. There is one at least.
pub fn is_left_out_alone(exprs: &mut Exprs<'_>, func: &Function, unrolled: &Unrolled) -> bool {
    let Terminator::Branch { cond, then, .. } = &func.block(unrolled.between).term else { return false };
    let Some(data) = func.def_inst(*cond) else { return false };
    let leaves = through(func, then).block == unrolled.after;
    if !matches!((data.op, leaves), (Op::IntCmp(IntCmp::LtU), true) | (Op::IntCmp(IntCmp::GeU), false)) {
        return false;
    }
    let (trips, compared) = (exprs.outside(unrolled.trips), exprs.outside(data.args[0]));
    // `trips < times`, or one less on both sides.
    let less = [0, 1].into_iter().find(|less| exprs.less(trips, *less) == compared);
    less.is_some_and(|less| func.constant(data.args[1]) == Some(unrolled.times - less))
}

/// What each value that goes into the second loop is, where what comes from the first is this.
pub fn going_in(
    exprs: &mut Exprs<'_>,
    func: &Function,
    unrolled: &Unrolled,
    between: &[Id],
) -> Option<Vec<Id>> {
    let mut values = run(exprs, func, unrolled.between, between, &mut 0)?.values;
    if let Some(block) = unrolled.enters_second {
        for inst in &func.block(block).insts {
            let data = func.inst(*inst);
            let args = told(exprs, &values, &data.args);
            if !data.op.is_pure() || data.results.len() != 1 {
                return None;
            }
            let id = exprs.computed(data, &args);
            values.insert(data.results[0], id);
        }
    }
    let into = Unrolled::edge(func, unrolled.enters_second.unwrap_or(unrolled.between), unrolled.second)?;
    Some(told(exprs, &values, &into.args))
}
