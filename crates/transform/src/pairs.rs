//! Numbers of 16 bits, two of which share a word.
//!
//! PTX's instructions for two such numbers at once, `fma.rn.f16x2` and its like, have them in a register of 32 bits. The next instruction takes apart
//! what the one before put together, which costs nothing where both halves of a register can be read. In vectors it is several instructions, and
//! between them a number is bits, whose NaN has to be the right one. After [`pairs`], what is taken out of a word that was put together is what went into it,
//! and a word that a loop brings along, as the sums of a product of halves, comes as its two numbers.

use std::collections::{HashMap, HashSet};

use simt_ir::{
    Block, Cfg, Convert, Def, Function, Inst, IntBinary, Op, Shift, SourceLoc, Terminator, Type, Value,
};

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
        put_together(func, block, &numbers);
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
fn put_together(func: &mut Function, block: Block, numbers: &HashMap<Value, [Value; 2]>) {
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
        if let Some((word, _)) = taken(func, *inst) {
            floats.entry(word).or_default();
        } else if let Some(word) = taken_as_float(func, *inst) {
            floats.entry(word).or_default().insert(func.ty(func.inst(*inst).results[0]));
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

/// The word that an instruction takes a float out of.
fn taken_as_float(func: &Function, inst: Inst) -> Option<Value> {
    let data = func.inst(inst);
    let is_cast = data.op == Op::Convert(Convert::Bitcast);
    let Def::Result(from, _) = func.def(*data.args.first().filter(|_| is_cast)?) else { return None };
    Some(taken(func, from)?.0)
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

fn made(func: &mut Function, op: Op, args: Vec<Value>, ty: Type, insts: &mut Vec<Inst>) -> Value {
    let inst = func.make_inst(op, args, &[ty], SourceLoc::default());
    insts.push(inst);
    func.inst(inst).results[0]
}
