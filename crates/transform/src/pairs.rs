//! Numbers of 16 bits, two of which share a word.
//!
//! PTX's instructions for two such numbers at once, `fma.rn.f16x2` and its like, have them in a register of 32 bits. The next instruction takes apart
//! what the one before put together, which costs nothing where both halves of a register can be read. In vectors it is several instructions, and
//! between them a number is bits, whose NaN has to be the right one. After [`pairs`], what is taken out of a word that was put together is what went into it,
//! and a word that a loop brings along, as the sums of a product of halves, comes as its two numbers.

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Cfg, Convert, Def, Function, Inst, IntBinary, Op, Shift, Terminator, Type, Value};

use crate::halves::made;
use crate::simplify;

/// Takes numbers from where they were before they came to a word.
pub fn pairs(func: &mut Function) {
    if !func.blocks().any(|block| func.block(block).insts.iter().any(|inst| taken(func, *inst).is_some())) {
        return;
    }
    bring_apart(func);
    forward(func);
    simplify::remove_unused(func);
}

/// The number that an instruction takes out of a word: the word, and whether it is the upper one.
fn taken(func: &Function, inst: Inst) -> Option<(Value, bool)> {
    let data = func.inst(inst);
    let is_half = data.op == Op::Convert(Convert::Trunc) && func.ty(data.results[0]) == Type::I16;
    let from = *data.args.first().filter(|_| is_half)?;
    if func.ty(from) != Type::I32 {
        return None;
    }
    Some(match shifted(func, from, Shift::RightU) {
        Some(word) => (word, true),
        None => (from, false),
    })
}

/// The number, or the float whose bits it is, that an instruction takes out of a word: the word, and whether it is the upper one.
pub fn number_in_word(func: &Function, inst: Inst) -> Option<(Value, bool)> {
    taken(func, inst).or_else(|| {
        let data = func.inst(inst);
        let is_cast = data.op == Op::Convert(Convert::Bitcast);
        let Def::Result(from, _) = func.def(*data.args.first().filter(|_| is_cast)?) else { return None };
        taken(func, from)
    })
}

/// A word that is put together.
pub struct Together {
    /// The word.
    pub word: Value,
    /// Of what, the lower one first: numbers, or floats whose bits they are.
    pub numbers: [Value; 2],
    /// The instructions that begin with these.
    pub first: [Inst; 2],
    /// What is computed on the way.
    pub between: Vec<Value>,
}

/// What an instruction puts together.
pub fn put_together(func: &Function, inst: Inst) -> Option<Together> {
    let data = func.inst(inst);
    let is_union = data.op == Op::Int(IntBinary::Or);
    let word = *data.results.first().filter(|_| is_union)?;
    let parts = parts(func, word)?;
    let mut between = data.args.clone();
    let (mut numbers, mut first) = (parts, [inst; 2]);
    for (at, part) in parts.into_iter().enumerate() {
        let extended = data.args.iter().find_map(|arg| {
            let from = shifted(func, *arg, Shift::Left).filter(|_| at == 1).unwrap_or(*arg);
            (func.def_inst(from)?.args[0] == part).then_some(from)
        })?;
        between.push(extended);
        let begins = match cast_from(func, part) {
            Some(float) => {
                numbers[at] = float;
                between.push(part);
                part
            }
            None => extended,
        };
        let Def::Result(begins, _) = func.def(begins) else { return None };
        first[at] = begins;
    }
    between.sort_unstable();
    between.dedup();
    Some(Together { word, numbers, first, between })
}

/// What is shifted by the bits of one number.
fn shifted(func: &Function, value: Value, by: Shift) -> Option<Value> {
    let data = func.def_inst(value).filter(|data| data.op == Op::Shift(by))?;
    (func.constant(data.args[1]) == Some(16)).then(|| data.args[0])
}

/// The numbers of which a word was put together, the lower first.
fn parts(func: &Function, word: Value) -> Option<[Value; 2]> {
    let data = func.def_inst(word).filter(|data| data.op == Op::Int(IntBinary::Or))?;
    let extended = |value: Value| {
        let data = func.def_inst(value).filter(|data| data.op == Op::Convert(Convert::ZExt))?;
        (func.ty(word) == Type::I32 && func.ty(data.args[0]) == Type::I16).then(|| data.args[0])
    };
    let both = |low: Value, high: Value| Some([extended(low)?, extended(shifted(func, high, Shift::Left)?)?]);
    both(data.args[0], data.args[1]).or_else(|| both(data.args[1], data.args[0]))
}

/// Takes numbers out of words by taking what went in, and bits of floats that are floats again as those.
fn forward(func: &mut Function) {
    let mut replaced: HashMap<Value, Value> = HashMap::new();
    let cfg = Cfg::new(func);
    for &block in cfg.order() {
        for &inst in &func.block(block).insts {
            let data = func.inst(inst);
            let now = |value: Value| replaced.get(&value).copied().unwrap_or(value);
            let found = match taken(func, inst) {
                Some((word, is_upper)) => {
                    parts(func, now(word)).map(|parts| now(parts[usize::from(is_upper)]))
                }
                None if data.op == Op::Convert(Convert::Bitcast) => cast_from(func, now(data.args[0])),
                None => None,
            };
            let found = found.filter(|value| func.ty(*value) == func.ty(data.results[0]));
            if let Some(value) = found {
                replaced.insert(data.results[0], now(value));
            }
        }
    }
    func.map_uses(|value| replaced.get(&value).copied().unwrap_or(value));
}

/// What the bits of a value are.
fn cast_from(func: &Function, bits: Value) -> Option<Value> {
    let data = func.def_inst(bits).filter(|data| data.op == Op::Convert(Convert::Bitcast))?;
    Some(data.args[0])
}

/// Parameters of blocks, words that are put together before and taken apart after, become parameters for each number.
fn bring_apart(func: &mut Function) {
    let cfg = Cfg::new(func);
    let words = words_apart(func, &cfg);
    if words.is_empty() {
        return;
    }
    let mut numbers: HashMap<Value, [Value; 2]> = HashMap::new();
    let mut types: Vec<(Value, Type)> = words.iter().map(|(word, ty)| (*word, *ty)).collect();
    types.sort_unstable_by_key(|(word, _)| *word);
    for (word, ty) in types {
        let Def::Param(block, _) = func.def(word) else { continue };
        numbers.insert(word, [(); 2].map(|()| func.add_param(block, ty)));
    }
    for &block in cfg.order() {
        pass_apart(func, block, &numbers);
    }
    // Whoever asks for a word puts it together; what is taken out of that is taken from before, and nothing is left of it.
    for &block in cfg.order() {
        use_together(func, block, &numbers);
    }
}

/// Gives the blocks behind a block the numbers of each word that they get.
fn pass_apart(func: &mut Function, block: Block, numbers: &HashMap<Value, [Value; 2]>) {
    let mut term: Terminator = func.block(block).term.clone();
    let mut insts = Vec::new();
    for target in term.targets_mut() {
        let params = func.block(target.block).params.clone();
        let mut passed: HashMap<Value, Value> = HashMap::new();
        for (param, arg) in params.iter().zip(&target.args) {
            let Some(own) = numbers.get(param) else { continue };
            for (own, is_upper) in own.iter().zip([false, true]) {
                passed.insert(*own, number_of(func, *arg, is_upper, func.ty(*own), &mut insts));
            }
        }
        let added = params[target.args.len()..].iter().map(|param| passed[param]);
        target.args.extend(added);
    }
    let data = func.block_mut(block);
    data.insts.extend(insts);
    data.term = term;
}

/// Has a block that uses words put them together of their numbers.
fn use_together(func: &mut Function, block: Block, numbers: &HashMap<Value, [Value; 2]>) {
    let data = func.block(block);
    let mut used: Vec<Value> = data.insts.iter().flat_map(|inst| func.inst(*inst).args.clone()).collect();
    used.extend(data.term.uses());
    used.retain(|value| numbers.contains_key(value));
    used.sort_unstable();
    used.dedup();
    let mut insts = Vec::new();
    let whole: HashMap<Value, Value> =
        used.into_iter().map(|word| (word, together(func, numbers[&word], &mut insts))).collect();
    let now = |value: Value| whole.get(&value).copied().unwrap_or(value);
    for inst in func.block(block).insts.clone() {
        func.inst_mut(inst).args.iter_mut().for_each(|arg| *arg = now(*arg));
    }
    let data = func.block_mut(block);
    data.insts.splice(0..0, insts);
    data.term.map_uses(now);
}

/// The words that come apart, and the type of their numbers: those that control brings, from where each is put together, to where they are taken
/// apart.
fn words_apart(func: &Function, cfg: &Cfg) -> HashMap<Value, Type> {
    let mut floats: HashMap<Value, HashSet<Type>> = HashMap::new();
    for inst in cfg.order().iter().flat_map(|block| &func.block(*block).insts) {
        let Some((word, _)) = number_in_word(func, *inst) else { continue };
        let floats = floats.entry(word).or_default();
        let ty = func.ty(func.inst(*inst).results[0]);
        if ty != Type::I16 {
            floats.insert(ty);
        }
    }
    let mut words: HashMap<Value, Type> = HashMap::new();
    for (word, floats) in floats {
        let is_passed = matches!(func.def(word), Def::Param(block, _) if block != Function::ENTRY);
        let mut floats = floats.into_iter();
        if is_passed {
            words.insert(word, floats.next().filter(|_| floats.next().is_none()).unwrap_or(Type::I16));
        }
    }
    loop {
        let comes_apart = |word: &Value| {
            let Def::Param(block, at) = func.def(*word) else { return false };
            let passed: Vec<Value> = cfg.passed(func, block, at as usize).collect();
            let is_made = |value: &Value| parts(func, *value).is_some();
            let is_fine = |value: &Value| {
                is_made(value) || words.contains_key(value) || func.constant(*value).is_some()
            };
            passed.iter().any(is_made) && passed.iter().all(is_fine)
        };
        let bad: Vec<Value> = words.keys().copied().filter(|word| !comes_apart(word)).collect();
        if bad.is_empty() {
            return words;
        }
        words.retain(|word, _| !bad.contains(word));
    }
}

/// Takes a number out of a word.
fn number_of(func: &mut Function, word: Value, is_upper: bool, ty: Type, insts: &mut Vec<Inst>) -> Value {
    let mut from = word;
    if is_upper {
        let by = made(func, Op::Const(16), Vec::new(), Type::I32, insts);
        from = made(func, Op::Shift(Shift::RightU), vec![word, by], Type::I32, insts);
    }
    let bits = made(func, Op::Convert(Convert::Trunc), vec![from], Type::I16, insts);
    if ty == Type::I16 { bits } else { made(func, Op::Convert(Convert::Bitcast), vec![bits], ty, insts) }
}

/// Puts a word together.
fn together(func: &mut Function, numbers: [Value; 2], insts: &mut Vec<Inst>) -> Value {
    let [low, high] = numbers.map(|number| {
        let bits = match func.ty(number) {
            Type::I16 => number,
            _ => made(func, Op::Convert(Convert::Bitcast), vec![number], Type::I16, insts),
        };
        made(func, Op::Convert(Convert::ZExt), vec![bits], Type::I32, insts)
    });
    let by = made(func, Op::Const(16), Vec::new(), Type::I32, insts);
    let high = made(func, Op::Shift(Shift::Left), vec![high, by], Type::I32, insts);
    made(func, Op::Int(IntBinary::Or), vec![low, high], Type::I32, insts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use simt_ir::{FloatMode, FunctionBuilder, IntCmp, Signature, Target};

    /// The floats in a word.
    fn apart(b: &mut FunctionBuilder, word: Value) -> [Value; 2] {
        let by = b.constant(Type::I32, 16);
        let upper = b.inst(Op::Shift(Shift::RightU), &[word, by], Type::I32);
        [word, upper].map(|half| {
            let bits = b.inst(Op::Convert(Convert::Trunc), &[half], Type::I16);
            b.inst(Op::Convert(Convert::Bitcast), &[bits], Type::F16)
        })
    }

    fn word(b: &mut FunctionBuilder, floats: [Value; 2]) -> Value {
        let [low, high] = floats.map(|float| {
            let bits = b.inst(Op::Convert(Convert::Bitcast), &[float], Type::I16);
            b.inst(Op::Convert(Convert::ZExt), &[bits], Type::I32)
        });
        let by = b.constant(Type::I32, 16);
        let high = b.inst(Op::Shift(Shift::Left), &[high, by], Type::I32);
        b.inst(Op::Int(IntBinary::Or), &[high, low], Type::I32)
    }

    fn fma(b: &mut FunctionBuilder, words: [Value; 3]) -> Value {
        let [x, y, z] = words.map(|word| apart(b, word));
        let halves =
            [0, 1].map(|at| b.inst(Op::Fma(FloatMode::default()), &[x[at], y[at], z[at]], Type::F16));
        word(b, halves)
    }

    fn count(func: &Function, is: impl Fn(&Op) -> bool) -> usize {
        func.blocks()
            .flat_map(|block| &func.block(block).insts)
            .filter(|inst| is(&func.inst(**inst).op))
            .count()
    }

    #[test]
    fn what_is_put_together_is_not_taken_apart() {
        let signature = Signature { params: vec![Type::I32; 3], results: vec![Type::I32] };
        let mut b = FunctionBuilder::new("f", signature);
        let [x, y, z] = [0, 1, 2].map(|at| b.param(at));
        let first = fma(&mut b, [x, y, z]);
        let second = fma(&mut b, [first, y, first]);
        b.terminate(Terminator::Return(vec![second]));
        let mut func = b.finish();
        pairs(&mut func);
        assert_eq!(count(&func, |op| *op == Op::Int(IntBinary::Or)), 1);
        assert_eq!(count(&func, |op| matches!(op, Op::Fma(_))), 4);
    }

    #[test]
    fn a_loop_brings_the_numbers_of_a_word() {
        let signature = Signature { params: vec![Type::I32; 2], results: vec![Type::I32] };
        let mut b = FunctionBuilder::new("f", signature);
        let (x, y) = (b.param(0), b.param(1));
        let zero = b.constant(Type::I32, 0);
        let [sum, counter] = [(); 2].map(|()| b.var(Type::I32));
        for var in [sum, counter] {
            b.write(var, zero);
        }
        let (header, after) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(header)));
        b.switch_to(header);
        let before = b.read(sum);
        let next = fma(&mut b, [x, y, before]);
        b.write(sum, next);
        let (one, number) = (b.constant(Type::I32, 1), b.read(counter));
        let more = b.inst(Op::Int(IntBinary::Add), &[number, one], Type::I32);
        b.write(counter, more);
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[more, x], Type::Pred);
        let (then, otherwise) = (Target::new(header), Target::new(after));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        b.switch_to(after);
        b.terminate(Terminator::Return(vec![before]));
        let mut func = b.finish();
        pairs(&mut func);
        let [header, after] = [Block(1), Block(2)];
        let mut types: Vec<Type> = func.block(header).params.iter().map(|param| func.ty(*param)).collect();
        types.sort_by_key(|ty| ty.is_float());
        assert_eq!(types, [Type::I32, Type::F16, Type::F16]);
        let joined = |block: Block| {
            let insts = func.block(block).insts.iter();
            insts.filter(|inst| func.inst(**inst).op == Op::Int(IntBinary::Or)).count()
        };
        assert_eq!([header, after].map(joined), [0, 1], "only what is returned is a word");
    }
}
