//! Integers that are computed in as few bits as they have.
//!
//! Pictures are bytes, but C computes with them as with any `int`: a vector of 32 lanes takes four times the registers that the bytes would.
//! After [`narrow`], groups of operations on numbers that come from narrow loads and whose results are known to fit, or of which only low bits
//! are asked for, are done in 8 or 16 bits. Their operands are cut where they come from something wider, and results are extended where
//! something needs them whole; a group is left as it is where that would cost more than it saves.
//!
//! Indices stay as they are: what the places of threads are made of is known lane by lane (see [`shapes`](crate::shapes)), which is worth more.

use std::collections::{HashMap, HashSet};

use kernel_abi::Shape;
use simt_ir::{
    Block, Cfg, Convert, DomTree, Function, Inst, InstData, IntBinary, IntCmp, IntUnary, Op, Shift, Type,
    Value,
};

use crate::facts::{Facts, Range, signed_limits};
use crate::simplify;

/// What cutting a wide number, or extending a narrow one, costs; an operation costs its bytes.
const CONVERSION: i32 = 4;

/// Puts operations on narrow numbers in place of wide ones, where that pays.
pub fn narrow(func: &mut Function, shape: &Shape) {
    let is_extension = |data: &InstData| matches!(data.op, Op::Convert(Convert::ZExt | Convert::SExt));
    let from_narrow = |data: &InstData| matches!(func.ty(data.args[0]), Type::I8 | Type::I16);
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst));
    if !insts.any(|data| is_extension(data) && from_narrow(data)) {
        return;
    }
    for ty in [Type::I8, Type::I16] {
        let groups = Search::new(func, shape, ty).groups();
        if !groups.is_empty() {
            rewrite(func, ty, groups.into_iter().flatten().collect());
            simplify::remove_unused(func);
        }
    }
}

/// How an operation is done on narrow numbers.
#[derive(Clone, Copy, PartialEq)]
struct Narrowed {
    op: Op,
    /// The result is extended by its sign where it is needed whole.
    signed: bool,
}

/// Operations that are narrowed together, in order.
type Group = Vec<(Inst, Narrowed)>;

struct Search<'a> {
    func: &'a Function,
    ty: Type,
    order: Vec<Inst>,
    ranges: HashMap<Value, Range>,
    /// How many low bits of a value are looked at.
    asked: HashMap<Value, u32>,
    uses: HashMap<Value, Vec<Option<Inst>>>,
}

impl<'a> Search<'a> {
    fn new(func: &'a Function, shape: &Shape, ty: Type) -> Search<'a> {
        let cfg = Cfg::new(func);
        let dom = DomTree::new(&cfg);
        let facts = Facts::new(func, &cfg, &dom, shape);
        let order: Vec<Inst> =
            cfg.order().iter().flat_map(|block| func.block(*block).insts.iter().copied()).collect();
        let mut ranges: HashMap<Value, Range> = HashMap::new();
        let mut uses: HashMap<Value, Vec<Option<Inst>>> = HashMap::new();
        for &inst in &order {
            let data = func.inst(inst);
            for arg in &data.args {
                uses.entry(*arg).or_default().push(Some(inst));
            }
            if let [result] = data.results[..]
                && func.ty(result).is_int()
            {
                let of = |value: Value| {
                    ranges.get(&value).copied().unwrap_or_else(|| signed_limits(func.ty(value)))
                };
                let range = facts.result_range(data, result, of);
                ranges.insert(result, range);
            }
        }
        for &block in cfg.order() {
            for value in func.block(block).term.uses() {
                uses.entry(value).or_default().push(None);
            }
        }
        let mut search = Search { func, ty, order, ranges, asked: HashMap::new(), uses };
        search.ask();
        search
    }

    /// Finds how many low bits of values are looked at, from their uses backwards.
    fn ask(&mut self) {
        for at in (0..self.order.len()).rev() {
            let data = self.func.inst(self.order[at]);
            let [result] = data.results[..] else { continue };
            let all = self.func.ty(result).bits();
            let uses = self.uses.get(&result).map_or(&[][..], Vec::as_slice);
            let asked = uses.iter().map(|user| user.map_or(all, |user| self.asked_by(user, result))).max();
            self.asked.insert(result, asked.unwrap_or(0).min(all));
        }
    }

    /// How many low bits of an operand an instruction looks at.
    fn asked_by(&self, user: Inst, value: Value) -> u32 {
        let data = self.func.inst(user);
        let all = self.func.ty(value).bits();
        let [result] = data.results[..] else { return all };
        let of_result = self.asked.get(&result).copied().unwrap_or(all);
        match data.op {
            Op::Convert(Convert::Trunc) => self.func.ty(result).bits().min(of_result.max(1)),
            Op::Int(IntBinary::And) => {
                let constants = data.args.iter().filter_map(|arg| self.func.constant(*arg));
                constants.map(|mask| 64 - mask.leading_zeros()).fold(of_result, u32::min)
            }
            Op::Select if value != data.args[0] => of_result,
            Op::Shift(Shift::Left) if value != data.args[1] => of_result,
            op if is_of_low_bits(&op) => of_result,
            _ => all,
        }
    }

    fn range(&self, value: Value) -> Range {
        self.ranges.get(&value).copied().unwrap_or_else(|| signed_limits(self.func.ty(value)))
    }

    /// Whether the narrow type has all a value's numbers, as unsigned or as signed ones.
    fn fits(&self, value: Value, signed: bool) -> bool {
        let (low, high) = self.range(value);
        let (least, most) = if signed { signed_limits(self.ty) } else { (0, self.ty.mask() as i64) };
        least <= low && high <= most
    }

    /// How an instruction is done on narrow numbers, if that is the same.
    fn narrowed(&self, inst: Inst) -> Option<Narrowed> {
        let func = self.func;
        let data = func.inst(inst);
        let [result] = data.results[..] else { return None };
        let numbers = match data.op {
            Op::Select => &data.args[1..],
            Op::Shift(_) => &data.args[..1],
            _ => &data.args[..],
        };
        let wide = func.ty(*numbers.first()?);
        if !matches!(wide, Type::I16 | Type::I32) || wide.bits() <= self.ty.bits() {
            return None;
        }
        // Processors neither multiply bytes nor shift them.
        let is_dear = matches!(data.op, Op::Int(IntBinary::Mul) | Op::Shift(_));
        if is_dear && self.ty == Type::I8
            || matches!(data.op, Op::Shift(_)) && func.constant(data.args[1]).is_none()
        {
            return None;
        }
        let all_fit = |signed: bool| {
            let result = func.ty(result).is_int().then_some(result);
            numbers.iter().chain(result.as_ref()).all(|value| self.fits(*value, signed))
        };
        match data.op {
            Op::Select | Op::Shift(Shift::Left) => self.of_low_bits(data.op, result),
            op if is_of_low_bits(&op) => self.of_low_bits(op, result),
            Op::Int(op) => {
                let (signed, unsigned) = match op {
                    IntBinary::MinS => (true, IntBinary::MinU),
                    IntBinary::MaxS => (true, IntBinary::MaxU),
                    IntBinary::MinU | IntBinary::MaxU => (false, op),
                    _ => return None,
                };
                self.of_whole(all_fit, signed, Op::Int(op), Op::Int(unsigned))
            }
            Op::Shift(op) => self.of_whole(all_fit, op == Shift::RightS, data.op, Op::Shift(Shift::RightU)),
            // The least number has no opposite.
            Op::IntUnary(IntUnary::Abs)
                if all_fit(true) && self.range(numbers[0]).0 > signed_limits(self.ty).0 =>
            {
                Some(Narrowed { op: data.op, signed: true })
            }
            Op::IntCmp(cmp) if self.chooses_only(result) => {
                let unsigned = cmp.unsigned();
                let signed = unsigned != cmp || matches!(cmp, IntCmp::Eq | IntCmp::Ne);
                self.of_whole(all_fit, signed, Op::IntCmp(cmp), Op::IntCmp(unsigned))
            }
            _ => None,
        }
    }

    fn of_low_bits(&self, op: Op, result: Value) -> Option<Narrowed> {
        let asked = self.asked.get(&result).copied().unwrap_or(u32::MAX);
        let fits = [false, true].into_iter().find(|signed| self.fits(result, *signed));
        let signed = fits.or((asked <= self.ty.bits()).then_some(false))?;
        Some(Narrowed { op, signed })
    }

    fn of_whole(&self, fit: impl Fn(bool) -> bool, signed: bool, op: Op, unsigned: Op) -> Option<Narrowed> {
        match (fit(false), signed && fit(true)) {
            (true, _) => Some(Narrowed { op: unsigned, signed: false }),
            (_, true) => Some(Narrowed { op, signed: true }),
            _ => None,
        }
    }

    /// Whether a predicate does nothing but choose between numbers that are narrowed: where masks have no registers of their own they are as
    /// wide as what they choose.
    fn chooses_only(&self, predicate: Value) -> bool {
        let uses = self.uses.get(&predicate).map_or(&[][..], Vec::as_slice);
        uses.iter().all(|user| {
            user.is_some_and(|user| {
                let data = self.func.inst(user);
                data.op == Op::Select && !data.args[1..].contains(&predicate) && self.narrowed(user).is_some()
            })
        })
    }

    /// What an extension extends, if that is no wider than the narrow type.
    fn extended(&self, value: Value) -> Option<(Convert, Value)> {
        extended(self.func, value, self.ty)
    }

    /// What addresses are computed of. A thread's index may come as 16 bits too, and a product of it in so many could wrap.
    fn places(&self) -> HashSet<Value> {
        let mut passed: HashMap<Value, Vec<Value>> = HashMap::new();
        for block in self.func.blocks() {
            for target in self.func.block(block).term.targets() {
                for (param, arg) in self.func.block(target.block).params.iter().zip(&target.args) {
                    passed.entry(*param).or_default().push(*arg);
                }
            }
        }
        let accesses = self.order.iter().map(|inst| self.func.inst(*inst));
        let accesses = accesses.filter(|data| data.op.access().is_some());
        let mut work: Vec<Value> = accesses.map(|data| data.args[0]).collect();
        let mut places = HashSet::new();
        while let Some(value) = work.pop() {
            if !self.func.ty(value).is_int() || !places.insert(value) {
                continue;
            }
            match self.func.def_inst(value) {
                Some(data) if data.op.is_pure() => work.extend(&data.args),
                Some(_) => {}
                None => work.extend(passed.get(&value).into_iter().flatten()),
            }
        }
        places
    }

    fn groups(&self) -> Vec<Group> {
        let places = self.places();
        let mut found: HashMap<Inst, Narrowed> = HashMap::new();
        // What is computed from narrow numbers is data, not a place.
        let mut data_of: HashSet<Value> = HashSet::new();
        for &inst in &self.order {
            let data = self.func.inst(inst);
            if !data.results.iter().any(|result| places.contains(result))
                && data.args.iter().any(|arg| data_of.contains(arg) || self.extended(*arg).is_some())
                && let Some(narrowed) = self.narrowed(inst)
            {
                found.insert(inst, narrowed);
                data_of.extend(&data.results);
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        let mut of: HashMap<Inst, usize> = HashMap::new();
        for &start in self.order.iter().filter(|inst| found.contains_key(inst)) {
            if of.contains_key(&start) {
                continue;
            }
            let number = groups.len();
            let mut work = vec![start];
            while let Some(inst) = work.pop() {
                if of.insert(inst, number).is_some() {
                    continue;
                }
                let data = self.func.inst(inst);
                let before = data.args.iter().filter_map(|arg| match self.func.def(*arg) {
                    simt_ir::Def::Result(inst, _) => Some(inst),
                    _ => None,
                });
                let after = data.results.iter().flat_map(|result| self.uses.get(result)).flatten().flatten();
                let near = before.chain(after.copied());
                work.extend(near.filter(|other| found.contains_key(other) && !of.contains_key(other)));
            }
            groups.push(Vec::new());
        }
        for &inst in &self.order {
            if let Some(number) = of.get(&inst) {
                groups[*number].push((inst, found[&inst]));
            }
        }
        groups.retain(|group| self.pays(group));
        groups
    }

    /// Whether less is saved by conversions and operations than conversions take.
    fn pays(&self, group: &Group) -> bool {
        let own: HashSet<Inst> = group.iter().map(|(inst, _)| *inst).collect();
        let is_own = |user: &Option<Inst>| user.is_some_and(|user| own.contains(&user));
        let uses = |value: Value| self.uses.get(&value).map_or(&[][..], Vec::as_slice);
        let bytes = self.ty.bytes() as i32;
        let mut gain = 0;
        let mut seen: HashSet<Value> = HashSet::new();
        for (inst, _) in group {
            let data = self.func.inst(*inst);
            let numbers = data.args.iter().filter(|arg| self.func.ty(**arg) != Type::Pred);
            gain += data.args.iter().map(|arg| self.func.ty(*arg).bytes() as i32).max().unwrap_or(0) - bytes;
            for &arg in numbers.filter(|arg| self.func.constant(**arg).is_none()) {
                let inside = match self.func.def(arg) {
                    simt_ir::Def::Result(inst, _) => own.contains(&inst),
                    _ => false,
                };
                if inside || !seen.insert(arg) {
                    continue;
                }
                gain += match self.extended(arg) {
                    Some((_, narrow)) => {
                        let goes = uses(arg).iter().all(is_own);
                        let again = self.func.ty(narrow) != self.ty;
                        i32::from(goes) * CONVERSION - i32::from(again) * bytes
                    }
                    None => -CONVERSION,
                };
            }
            for &result in data.results.iter().filter(|result| self.func.ty(**result).is_int()) {
                let cuts = |user: &Option<Inst>| user.is_some_and(|user| self.cuts(user));
                let outside = || uses(result).iter().filter(|user| !is_own(user));
                gain += CONVERSION * outside().filter(|user| cuts(user)).count() as i32;
                if outside().any(|user| !cuts(user)) {
                    gain -= CONVERSION;
                }
            }
        }
        gain > 0
    }

    /// Whether an instruction takes low bits that the narrow type has.
    fn cuts(&self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        data.op == Op::Convert(Convert::Trunc)
            && self.func.ty(data.results[0]).is_int()
            && self.func.ty(data.results[0]).bits() <= self.ty.bits()
    }
}

/// Operations whose low bits are those of their operands' low bits.
fn is_of_low_bits(op: &Op) -> bool {
    matches!(
        op,
        Op::Int(
            IntBinary::Add
                | IntBinary::Sub
                | IntBinary::Mul
                | IntBinary::And
                | IntBinary::Or
                | IntBinary::Xor
        ) | Op::IntUnary(IntUnary::Not | IntUnary::Neg)
    )
}

/// What an extension extends, if that is no wider than `ty`.
fn extended(func: &Function, value: Value, ty: Type) -> Option<(Convert, Value)> {
    let data = func.def_inst(value)?;
    match data.op {
        Op::Convert(op @ (Convert::ZExt | Convert::SExt)) => {
            let narrow = func.ty(data.args[0]);
            (narrow.is_int() && narrow.bits() <= ty.bits()).then_some((op, data.args[0]))
        }
        _ => None,
    }
}

/// Has operations done on numbers of this type.
fn rewrite(func: &mut Function, ty: Type, narrowed: HashMap<Inst, Narrowed>) {
    let mut results: HashMap<Value, Value> = HashMap::new();
    let blocks: Vec<Block> = Cfg::new(func).order().to_vec();
    for block in blocks {
        let old = std::mem::take(&mut func.block_mut(block).insts);
        let mut new = Vec::with_capacity(old.len());
        for inst in old {
            let Some(Narrowed { op, signed }) = narrowed.get(&inst).copied() else {
                new.push(inst);
                continue;
            };
            let data = func.inst(inst).clone();
            let is_number = |at: usize| match data.op {
                Op::Select => at > 0,
                Op::Shift(_) => at == 0,
                _ => true,
            };
            let mut args = Vec::with_capacity(data.args.len());
            for (at, &arg) in data.args.iter().enumerate() {
                args.push(if is_number(at) { cut(func, &mut new, ty, &results, arg, data.loc) } else { arg });
            }
            let result = data.results[0];
            if func.ty(result) == Type::Pred {
                let data = func.inst_mut(inst);
                (data.op, data.args) = (op, args);
            } else {
                let made = func.push_value(&mut new, op, args, ty, data.loc);
                results.insert(result, made);
                let data = func.inst_mut(inst);
                data.op = Op::Convert(if signed { Convert::SExt } else { Convert::ZExt });
                data.args = vec![made];
            }
            new.push(inst);
        }
        func.block_mut(block).insts = new;
    }
    forward_cuts(func, ty, &results);
}

/// The low bits of a value as one of this type; what that takes goes to the end of `insts`.
fn cut(
    func: &mut Function,
    insts: &mut Vec<Inst>,
    ty: Type,
    results: &HashMap<Value, Value>,
    value: Value,
    loc: simt_ir::SourceLoc,
) -> Value {
    if let Some(known) = results.get(&value) {
        return *known;
    }
    let (op, args) = match (func.constant(value), extended(func, value, ty)) {
        (Some(bits), _) => (Op::Const(bits & ty.mask()), Vec::new()),
        (_, Some((_, narrow))) if func.ty(narrow) == ty => return narrow,
        (_, Some((op, narrow))) => (Op::Convert(op), vec![narrow]),
        _ => (Op::Convert(Convert::Trunc), vec![value]),
    };
    func.push_value(insts, op, args, ty, loc)
}

/// What was cut of wide results is the narrow ones, or cut of those.
fn forward_cuts(func: &mut Function, ty: Type, results: &HashMap<Value, Value>) {
    let mut same: HashMap<Value, Value> = HashMap::new();
    let insts: Vec<Inst> = func.blocks().flat_map(|block| func.block(block).insts.clone()).collect();
    for inst in insts {
        let data = func.inst(inst);
        if data.op == Op::Convert(Convert::Trunc)
            && let Some(narrow) = results.get(&data.args[0]).copied()
        {
            let result = data.results[0];
            if func.ty(result) == ty {
                same.insert(result, narrow);
            } else if func.ty(result).bits() < ty.bits() {
                func.inst_mut(inst).args[0] = narrow;
            }
        }
    }
    func.map_uses(|value| same.get(&value).copied().unwrap_or(value));
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, Signature, Space, SpecialReg, Terminator};

    use super::*;

    /// The types in which integers are computed in a kernel, counted: what it stores as a byte is made of two that it loads, extended.
    fn types(
        extension: Convert,
        compute: impl FnOnce(&mut FunctionBuilder, Value, Value) -> Value,
    ) -> [usize; 3] {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let base = b.constant(Type::I64, 0);
        let load = |b: &mut FunctionBuilder, at| {
            let loaded = b.inst(Op::Load(Access::weak(Space::Global, at)), &[base], Type::I8);
            b.inst(Op::Convert(extension), &[loaded], Type::I32)
        };
        let (x, y) = (load(&mut b, 0), load(&mut b, 1));
        let value = compute(&mut b, x, y);
        let byte = b.inst(Op::Convert(Convert::Trunc), &[value], Type::I8);
        b.effect(Op::Store(Access::weak(Space::Global, 2)), &[base, byte]);
        b.terminate(Terminator::Exit);
        let mut func = b.finish();
        narrow(&mut func, &Shape::of([1; 3], [32, 1, 1]));
        let cfg = Cfg::new(&func);
        let insts =
            || cfg.order().iter().flat_map(|block| &func.block(*block).insts).map(|inst| func.inst(*inst));
        let computes = |data: &InstData| {
            matches!(data.op, Op::Int(_) | Op::IntUnary(_) | Op::Shift(_) | Op::Select | Op::IntCmp(_))
        };
        let number = |data: &InstData| *data.args.last().unwrap_or(&data.results[0]);
        [Type::I8, Type::I16, Type::I32].map(|ty| {
            insts()
                .filter(|data| {
                    computes(data)
                        && func.ty(if matches!(data.op, Op::Shift(_)) { data.args[0] } else { number(data) })
                            == ty
                })
                .count()
        })
    }

    fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
        b.inst(Op::Int(op), &[x, y], Type::I32)
    }

    #[test]
    fn bytes_are_compared_and_added_as_such() {
        let least = |b: &mut FunctionBuilder, x, y| int(b, IntBinary::MinS, x, y);
        assert_eq!(types(Convert::ZExt, least), [1, 0, 0]);
        assert_eq!(types(Convert::SExt, least), [1, 0, 0]);
        // A signed number is large as an unsigned one of 32 bits.
        let unsigned = |b: &mut FunctionBuilder, x, y| int(b, IntBinary::MinU, x, y);
        assert_eq!(types(Convert::ZExt, unsigned), [1, 0, 0]);
        assert_eq!(types(Convert::SExt, unsigned), [0, 0, 1]);
        // Nobody asks for more of a sum than the low byte.
        let sum = |b: &mut FunctionBuilder, x, y| int(b, IntBinary::Add, x, y);
        assert_eq!(types(Convert::ZExt, sum), [1, 0, 0]);
        let chosen = |b: &mut FunctionBuilder, x, y| {
            let cond = b.inst(Op::IntCmp(IntCmp::GtS), &[x, y], Type::Pred);
            b.inst(Op::Select, &[cond, x, y], Type::I32)
        };
        assert_eq!(types(Convert::ZExt, chosen), [2, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_a_byte_takes_two() {
        let mean = |b: &mut FunctionBuilder, x, y| {
            let (one, sum) = (b.constant(Type::I32, 1), int(b, IntBinary::Add, x, y));
            let sum = int(b, IntBinary::Add, sum, one);
            b.inst(Op::Shift(Shift::RightS), &[sum, one], Type::I32)
        };
        assert_eq!(types(Convert::ZExt, mean), [0, 3, 0]);
        let distance = |b: &mut FunctionBuilder, x, y| {
            let difference = int(b, IntBinary::Sub, x, y);
            b.inst(Op::IntUnary(IntUnary::Abs), &[difference], Type::I32)
        };
        assert_eq!(types(Convert::ZExt, distance), [0, 2, 0]);
        let square = |b: &mut FunctionBuilder, x, y| {
            let (product, eight) = (int(b, IntBinary::Mul, x, y), b.constant(Type::I32, 8));
            b.inst(Op::Shift(Shift::RightU), &[product, eight], Type::I32)
        };
        assert_eq!(types(Convert::ZExt, square), [0, 2, 0]);
        let cube = |b: &mut FunctionBuilder, x, y| {
            let (square, sixteen) = (int(b, IntBinary::Mul, x, y), b.constant(Type::I32, 16));
            let cube = int(b, IntBinary::Mul, square, x);
            b.inst(Op::Shift(Shift::RightU), &[cube, sixteen], Type::I32)
        };
        assert_eq!(types(Convert::ZExt, cube), [0, 0, 3], "and what does not fit two takes four");
        let nine_bits = |b: &mut FunctionBuilder, x, y| {
            let (sum, mask) = (int(b, IntBinary::Add, x, y), b.constant(Type::I32, 511));
            let bits = int(b, IntBinary::And, sum, mask);
            let base = b.constant(Type::I64, 64);
            b.effect(Op::Store(Access::weak(Space::Global, 0)), &[base, bits]);
            bits
        };
        assert_eq!(types(Convert::ZExt, nine_bits)[0], 0);
    }

    #[test]
    fn places_of_threads_stay_as_they_are() {
        let place = |b: &mut FunctionBuilder, x, _| {
            let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
            let mask = b.constant(Type::I32, 15);
            let column = int(b, IntBinary::And, tid, mask);
            let wide = b.inst(Op::Convert(Convert::ZExt), &[column], Type::I64);
            b.effect(Op::Store(Access::weak(Space::Global, 64)), &[wide, x]);
            column
        };
        assert_eq!(types(Convert::ZExt, place), [0, 0, 1]);
    }

    #[test]
    fn an_index_of_16_bits_keeps_its_steps() {
        use simt_ir::Target;
        // Whether the index goes to the store by way of another block's parameter.
        for passed in [false, true] {
            let mut b = FunctionBuilder::new("kernel", Signature::default());
            let zero = b.constant(Type::I64, 0);
            let out = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
            let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
            let short = b.inst(Op::Convert(Convert::Trunc), &[tid], Type::I16);
            let index = b.inst(Op::Convert(Convert::ZExt), &[short], Type::I32);
            let (pitch, more) = (b.constant(Type::I32, 40), b.constant(Type::I32, 4));
            let start = int(&mut b, IntBinary::Mul, index, pitch);
            let mut place = int(&mut b, IntBinary::Add, start, more);
            if passed {
                let at = b.var(Type::I32);
                b.write(at, place);
                let (body, end) = (b.block(), b.block());
                b.terminate(Terminator::Jump(Target::new(body)));
                b.switch_to(body);
                place = b.read(at);
                let next = int(&mut b, IntBinary::Add, place, more);
                b.write(at, next);
                let limit = b.constant(Type::I32, 100);
                let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[next, limit], Type::Pred);
                let (then, otherwise) = (Target::new(body), Target::new(end));
                b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
                b.switch_to(end);
            }
            let wide = b.inst(Op::Convert(Convert::ZExt), &[place], Type::I64);
            let address = b.inst(Op::Int(IntBinary::Add), &[out, wide], Type::I64);
            b.effect(Op::Store(Access::weak(Space::Global, 0)), &[address, pitch]);
            b.terminate(Terminator::Exit);
            let mut func = b.finish();
            let shape = Shape::of([1; 3], [1024, 1, 1]);
            if !passed {
                let prepared = crate::prepare(func.clone(), true, &shape).unwrap();
                assert!(matches!(prepared.shapes.of(address), crate::LaneShape::Affine(_)));
            }
            narrow(&mut func, &shape);
            assert_eq!(func.def_inst(start).unwrap().op, Op::Int(IntBinary::Mul), "passed: {passed}");
        }
    }
}
