//! Values of which it is known now what they are in each lane: places of lanes in their warp, and what follows from them alone.

use std::collections::HashMap;
use std::rc::Rc;

use simt_ir::{InstData, Op, Type, Value, eval};

use super::{Analysis, LaneShape};

/// The bits of a value in each lane.
pub type Numbers = Rc<[u64]>;

impl Analysis<'_> {
    /// The integers and predicates that differ between lanes, and are known in each.
    pub(super) fn known(&self) -> HashMap<Value, Numbers> {
        let mut known = HashMap::new();
        for &block in self.cfg.order() {
            for &inst in &self.func.block(block).insts {
                let data = self.func.inst(inst);
                if let [result] = data.results[..]
                    && let Some(numbers) = self.numbers(data, result, &known)
                {
                    known.insert(result, numbers);
                }
            }
        }
        known
    }

    fn numbers(&self, data: &InstData, result: Value, known: &HashMap<Value, Numbers>) -> Option<Numbers> {
        let ty = self.func.ty(result);
        match self.of(result) {
            LaneShape::Affine(offsets) if ty.is_int() => {
                let base = self.facts.base_low(result).number()?;
                Some(offsets.iter().map(|offset| base.wrapping_add(*offset as u64) & ty.mask()).collect())
            }
            LaneShape::Varying if is_plain(data.op, ty) => {
                let types: Vec<Type> = data.args.iter().map(|arg| self.func.ty(*arg)).collect();
                let args = data.args.iter().map(|arg| match self.func.constant(*arg) {
                    Some(constant) => Some(vec![constant; self.lanes()].into()),
                    None => known.get(arg).cloned(),
                });
                let args: Vec<Numbers> = args.collect::<Option<_>>()?;
                let in_lane = |lane: usize| {
                    let args: Vec<u64> = args.iter().map(|numbers| numbers[lane]).collect();
                    eval::eval(data.op, &args, &types, ty)
                };
                (0..self.lanes()).map(in_lane).collect()
            }
            _ => None,
        }
    }
}

/// Whether an operation makes an integer or a predicate of such.
fn is_plain(op: Op, ty: Type) -> bool {
    (ty.is_int() || ty == Type::Pred)
        && matches!(op, Op::Int(_) | Op::IntUnary(_) | Op::Shift(_) | Op::IntCmp(_) | Op::Select)
}
