//! Upper halves that are compared where they are.

use std::collections::{HashMap, HashSet};

use simt_ir::{Cfg, Convert, FloatRel, FloatUnary, Function, Inst, IntBinary, IntCmp, Op, Type, Value};

use super::{DEEPEST, LOW, MOST, Rest, Whole, each_inst, make, upper, upper_of};

/// Compares whole numbers where nothing but comparisons asks for their upper halves.
pub(super) fn compare_in_place(func: &mut Function) {
    let compared = find(func);
    each_inst(func, |func, inst, before| {
        let comparison = compared.get(&inst)?;
        let number = comparison.number.make(func, inst, before);
        let limit = make(func, Op::Const(comparison.limit), Vec::new(), inst, before);
        let data = func.inst_mut(inst);
        (data.op, data.args) = (Op::IntCmp(comparison.relation), vec![number, limit]);
        None
    });
}

/// A comparison of a number of 64 bits that says the same as one of its upper half.
struct Comparison {
    relation: IntCmp,
    number: Whole,
    limit: u64,
}

/// Comparisons of upper halves that nothing but comparisons asks for.
fn find(func: &Function) -> HashMap<Inst, Comparison> {
    let cfg = Cfg::new(func);
    let mut uses: HashMap<Value, Vec<Inst>> = HashMap::new();
    let mut passed: HashSet<Value> = HashSet::new();
    for &block in cfg.order() {
        for &inst in &func.block(block).insts {
            for arg in &func.inst(inst).args {
                uses.entry(*arg).or_default().push(inst);
            }
        }
        passed.extend(func.block(block).term.uses());
    }
    let mut compared = HashMap::new();
    for &block in cfg.order() {
        for &inst in &func.block(block).insts {
            let Some(&half) = func.inst(inst).results.first() else { continue };
            if upper_of(func, Some(half)).is_some() {
                let mut search = Search {
                    func,
                    uses: &uses,
                    passed: &passed,
                    looked_at: HashSet::new(),
                    found: HashMap::new(),
                };
                if search.is_only_compared(half) {
                    compared.extend(search.found);
                }
            }
        }
    }
    compared
}

/// What is computed of a half, and where it is compared.
struct Search<'a> {
    func: &'a Function,
    uses: &'a HashMap<Value, Vec<Inst>>,
    /// What ends of blocks use.
    passed: &'a HashSet<Value>,
    looked_at: HashSet<Value>,
    found: HashMap<Inst, Comparison>,
}

impl Search<'_> {
    /// Whether all that is computed of a value ends in comparisons that can be done in place, which are then found.
    fn is_only_compared(&mut self, value: Value) -> bool {
        if self.passed.contains(&value) {
            return false;
        }
        if !self.looked_at.insert(value) {
            return true;
        }
        let uses = self.uses.get(&value).map_or(&[][..], Vec::as_slice);
        uses.iter().all(|user| {
            let data = self.func.inst(*user);
            match data.op {
                Op::IntCmp(_) | Op::FloatCmp(_) => {
                    let comparison = comparison(self.func, *user);
                    comparison.map(|comparison| self.found.insert(*user, comparison)).is_some()
                }
                Op::Int(
                    IntBinary::Add | IntBinary::Sub | IntBinary::And | IntBinary::Or | IntBinary::Xor,
                )
                | Op::Convert(Convert::Bitcast)
                | Op::FloatUnary(FloatUnary::Abs, _) => self.is_only_compared(data.results[0]),
                _ => false,
            }
        })
    }
}

/// What a comparison of an upper half with a constant is of the whole number.
fn comparison(func: &Function, inst: Inst) -> Option<Comparison> {
    let data = func.inst(inst);
    let limit = func.constant(*data.args.get(1)?)?;
    let (relation, number, rest) = match data.op {
        Op::IntCmp(relation) if func.ty(data.args[0]) == Type::I32 => {
            let (number, rest) = upper(func, data.args[0], DEEPEST);
            (relation, number, rest)
        }
        Op::FloatCmp(cmp) if func.ty(data.args[0]) == Type::F32 => {
            // Magnitudes of floats are in the order of their bits, and NaNs above all.
            let abs = func.def_inst(data.args[0])?;
            let is_normal = (f32::MIN_POSITIVE.to_bits()..=f32::INFINITY.to_bits()).contains(&(limit as u32));
            if !matches!(abs.op, Op::FloatUnary(FloatUnary::Abs, _)) || !is_normal {
                return None;
            }
            let cast = func.def_inst(abs.args[0]).filter(|data| data.op == Op::Convert(Convert::Bitcast))?;
            let relation = match (cmp.rel, cmp.nan) {
                (FloatRel::Lt, false) => IntCmp::LtS,
                (FloatRel::Le, false) => IntCmp::LeS,
                (FloatRel::Gt, true) => IntCmp::GtS,
                (FloatRel::Ge, true) => IntCmp::GeS,
                _ => return None,
            };
            let (number, rest) = upper(func, cast.args[0], DEEPEST);
            (relation, number.and(!(1 << 63)), rest)
        }
        _ => return None,
    };
    let (relation, limit) = of_whole(relation, limit as u32)?;
    let is_equality = matches!(relation, IntCmp::Eq | IntCmp::Ne);
    let number = if is_equality && rest != Rest::Zero { number.and(!LOW) } else { number };
    let (operations, extended) = number.cost();
    (extended == 0 && operations <= MOST).then_some(Comparison { relation, number, limit })
}

/// The comparison of a whole number that asks the same of its upper half, whatever the lower half is.
fn of_whole(relation: IntCmp, limit: u32) -> Option<(IntCmp, u64)> {
    let after = |last: u32| (limit != last).then(|| u64::from(limit.wrapping_add(1)) << 32);
    let limit = u64::from(limit) << 32;
    Some(match relation {
        IntCmp::Eq | IntCmp::Ne | IntCmp::LtS | IntCmp::GeS | IntCmp::LtU | IntCmp::GeU => (relation, limit),
        IntCmp::LeS => (IntCmp::LtS, after(i32::MAX as u32)?),
        IntCmp::GtS => (IntCmp::GeS, after(i32::MAX as u32)?),
        IntCmp::LeU => (IntCmp::LtU, after(u32::MAX)?),
        IntCmp::GtU => (IntCmp::GeU, after(u32::MAX)?),
    })
}
