//! Words of 64 bits that lanes give each other.
//!
//! PTX's shuffles move 32 bits, so compilers take a double apart, exchange its halves, and put it together again. Vectors of doubles would be spread over
//! others and gathered from them for it: here the whole word is exchanged at once.

use std::collections::HashMap;

use simt_ir::{Block, Cfg, Convert, Def, Function, Inst, InstData, IntBinary, Op, Shift, Type, Value};

use crate::simplify;

/// Exchanges words as a whole whose halves are exchanged alike.
pub fn words(func: &mut Function) {
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    if !insts.any(|inst| matches!(func.inst(*inst).op, Op::Shuffle(_))) {
        return;
    }
    let cfg = Cfg::new(func);
    let uses = cfg.uses(func);
    let found: Vec<_> = cfg.order().iter().flat_map(|block| exchanged_in(func, *block, &uses)).collect();
    if found.is_empty() {
        return;
    }
    let mut whole: HashMap<Value, Value> = HashMap::new();
    for Exchanged { block, joined, apart, args } in found {
        let InstData { op, loc, .. } = *func.inst(apart[0]);
        let shuffle = func.make_inst(op, args, &[Type::I64, Type::Pred], loc);
        whole.insert(func.inst(joined).results[0], func.inst(shuffle).results[0]);
        let insts = &mut func.block_mut(block).insts;
        insts.retain(|inst| !apart.contains(inst));
        let at = insts.iter().position(|inst| *inst == joined).expect("it is in this block");
        insts.insert(at, shuffle);
    }
    func.map_uses(|value| whole.get(&value).copied().unwrap_or(value));
    simplify::remove_unused(func);
}

/// A word whose halves were exchanged.
struct Exchanged {
    block: Block,
    /// Where it is put together again.
    joined: Inst,
    /// The exchanges of the halves.
    apart: [Inst; 2],
    /// Of the exchange as a whole.
    args: Vec<Value>,
}

fn exchanged_in(func: &Function, block: Block, uses: &[u32]) -> Vec<Exchanged> {
    let insts = &func.block(block).insts;
    let is_for_this = |shuffle: Inst| {
        let results = &func.inst(shuffle).results;
        insts.contains(&shuffle) && results.iter().map(|result| uses[result.index()]).eq([1, 0])
    };
    let exchanged = |joined: &Inst| {
        let [low, high] = halves(func, *joined)?;
        let [(first, word), (second, shifted)] = [shuffled(func, low)?, shuffled(func, high)?];
        let is_whole =
            func.ty(word) == Type::I64 && shift_by_half(func, shifted, Shift::RightU) == Some(word);
        let [of_low, of_high] = [func.inst(first), func.inst(second)];
        let same = |(a, b): (&Value, &Value)| {
            a == b || func.constant(*a).is_some() && func.constant(*a) == func.constant(*b)
        };
        let alike = of_low.op == of_high.op
            && of_low.args.len() == of_high.args.len()
            && of_low.args.iter().zip(&of_high.args).skip(1).all(same);
        // From lanes that are known, by all. In one block the same lanes come to both.
        let is_known = of_low.args[1..3].iter().all(|arg| func.constant(*arg).is_some())
            && of_low.args.get(3).is_none_or(|members| func.constant(*members) == Some(u32::MAX.into()));
        let mut args = of_low.args.clone();
        args[0] = word;
        let apart = [first, second];
        (is_whole && alike && is_known && apart.into_iter().all(is_for_this)).then_some(Exchanged {
            block,
            joined: *joined,
            apart,
            args,
        })
    };
    insts.iter().filter_map(exchanged).collect()
}

/// The halves that an instruction makes a word of, the lower first.
fn halves(func: &Function, joined: Inst) -> Option<[Value; 2]> {
    let data = func.inst(joined);
    let is_union = data.op == Op::Int(IntBinary::Or) && func.ty(data.results[0]) == Type::I64;
    let [a, b] = <[Value; 2]>::try_from(&data.args[..]).ok().filter(|_| is_union)?;
    let extended = |value: Value| {
        let data = func.def_inst(value).filter(|data| data.op == Op::Convert(Convert::ZExt))?;
        Some(data.args[0]).filter(|half| func.ty(*half) == Type::I32)
    };
    let both =
        |low: Value, high: Value| Some([extended(low)?, extended(shift_by_half(func, high, Shift::Left)?)?]);
    both(a, b).or_else(|| both(b, a))
}

/// The shuffle whose result this is, and what the word was that it took the low half of.
fn shuffled(func: &Function, half: Value) -> Option<(Inst, Value)> {
    let Def::Result(shuffle, 0) = func.def(half) else { return None };
    let data = Some(func.inst(shuffle)).filter(|data| matches!(data.op, Op::Shuffle(_)))?;
    let taken = func.def_inst(data.args[0]).filter(|data| data.op == Op::Convert(Convert::Trunc))?;
    Some((shuffle, taken.args[0]))
}

/// What is shifted by the bits of a half.
fn shift_by_half(func: &Function, value: Value, by: Shift) -> Option<Value> {
    let data = func.def_inst(value).filter(|data| data.op == Op::Shift(by))?;
    (func.constant(data.args[1]) == Some(32)).then(|| data.args[0])
}
