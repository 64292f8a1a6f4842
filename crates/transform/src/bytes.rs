//! Words that are read byte by byte.
//!
//! Programs put numbers together from bytes where they do not know that a pointer is aligned, or where a format has the highest byte first; compilers
//! do the same for vectors of bytes. A load for each byte is four gathers where lanes are not side by side, and shuffles that put together what one
//! gather would have brought as it is. After [`bytes`], bytes that lie side by side and become one word are loaded as that word, from whatever address.

use std::collections::HashMap;

use simt_ir::{Access, Cfg, Convert, Function, Inst, IntBinary, Op, Order, Shift, Space, Type, Value};

use crate::simplify;

/// The selector by which `prmt` exchanges first and last.
const REVERSED: u64 = 0x0123;

/// Loads words as a whole that are read byte by byte.
pub fn bytes(func: &mut Function) {
    let mut insts = func.blocks().flat_map(|block| &func.block(block).insts);
    if !insts.any(|inst| byte_loaded(func, *inst).is_some()) {
        return;
    }
    let cfg = Cfg::new(func);
    let uses = cfg.uses(func);
    let mut words: HashMap<Value, Value> = HashMap::new();
    for &block in cfg.order() {
        for Word { value, loads, reversed } in words_of(func, &func.block(block).insts, &uses) {
            let first = if reversed { loads[loads.len() - 1] } else { loads[0] };
            let data = func.inst(first).clone();
            let Some(access) = byte_loaded(func, first) else { continue };
            let ty = func.ty(value);
            let whole =
                func.make_inst(Op::Load(Access { anywhere: true, ..access }), data.args, &[ty], data.loc);
            let mut made = vec![whole];
            if reversed {
                let selector = func.make_inst(Op::Const(REVERSED), Vec::new(), &[ty], data.loc);
                let [word, by] = [whole, selector].map(|inst| func.inst(inst).results[0]);
                let turned = func.make_inst(Op::Prmt, vec![word, word, by], &[ty], data.loc);
                made.extend([selector, turned]);
            }
            let last = made.last().copied().unwrap_or(whole);
            words.insert(value, func.inst(last).results[0]);
            let insts = &mut func.block_mut(block).insts;
            let at = insts.iter().position(|inst| loads.contains(inst)).unwrap_or(0);
            insts.splice(at..at, made);
        }
    }
    if words.is_empty() {
        return;
    }
    func.map_uses(|value| words.get(&value).copied().unwrap_or(value));
    simplify::remove_unused(func);
}

/// A word that is put together of bytes.
struct Word {
    value: Value,
    /// Of these loads, the byte of which is the lowest first.
    loads: Vec<Inst>,
    /// The lowest byte lies last.
    reversed: bool,
}

/// A byte of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    Zero,
    Loaded(Inst),
    Other,
}

/// What is known of a value.
struct Known {
    /// Its bytes, the lowest first.
    bytes: Vec<Byte>,
    /// Nothing else is computed from what it is made of.
    is_all: bool,
}

/// How an instruction loads a byte that others beside it may come with.
fn byte_loaded(func: &Function, inst: Inst) -> Option<Access> {
    let data = func.inst(inst);
    let Op::Load(access) = data.op else { return None };
    let is_byte = data.results.len() == 1 && func.ty(data.results[0]) == Type::I8;
    let is_plain = access.order == Order::Weak && matches!(access.space, Space::Global | Space::Const);
    (is_byte && is_plain).then_some(access)
}

/// The words that a block puts together of bytes that it loads.
fn words_of(func: &Function, insts: &[Inst], uses: &[u32]) -> Vec<Word> {
    let mut known: HashMap<Value, Known> = HashMap::new();
    // Between which writes a byte was loaded.
    let (mut writes, mut loaded_after) = (0, HashMap::new());
    let mut found = Vec::new();
    for &inst in insts {
        let data = func.inst(inst);
        if byte_loaded(func, inst).is_some() {
            loaded_after.insert(inst, writes);
            known.insert(data.results[0], Known { bytes: vec![Byte::Loaded(inst)], is_all: true });
            continue;
        }
        if !data.op.is_pure() {
            writes += u32::from(!matches!(data.op, Op::Load(access) if access.order == Order::Weak));
            continue;
        }
        let [value] = data.results[..] else { continue };
        let Some(bytes) = bytes_of(func, inst, &known) else { continue };
        if !bytes.iter().any(|byte| matches!(byte, Byte::Loaded(_))) {
            continue;
        }
        let is_all = data
            .args
            .iter()
            .all(|arg| known.get(arg).is_none_or(|from| from.is_all && uses[arg.index()] == 1));
        if is_all && let Some((loads, reversed)) = side_by_side(func, &bytes, func.ty(value)) {
            let first = loaded_after.get(&loads[0]);
            if loads.iter().all(|load| loaded_after.get(load) == first) {
                found.push(Word { value, loads, reversed });
                continue;
            }
        }
        known.insert(value, Known { bytes, is_all });
    }
    found
}

/// The loads of a word's bytes if these lie side by side, and whether the lowest is the last.
fn side_by_side(func: &Function, bytes: &[Byte], ty: Type) -> Option<(Vec<Inst>, bool)> {
    if !matches!(ty, Type::I32 | Type::I64) {
        return None;
    }
    let loaded = |byte: &Byte| match byte {
        Byte::Loaded(load) => Some(*load),
        _ => None,
    };
    let loads: Vec<Inst> = bytes.iter().map(loaded).collect::<Option<_>>()?;
    let [access, own] = [loads[0], loads[1]].map(|load| byte_loaded(func, load));
    let (access, step) = (access?, own?.offset.checked_sub(access?.offset)?);
    let is_next = |(at, load): (i64, &Inst)| {
        let alike = Access { offset: access.offset.wrapping_add(at * step), ..access };
        byte_loaded(func, *load) == Some(alike) && func.inst(*load).args == func.inst(loads[0]).args
    };
    let all = (0..).zip(&loads).all(is_next);
    match step {
        1 if all => Some((loads, false)),
        -1 if all && ty == Type::I32 => Some((loads, true)),
        _ => None,
    }
}

/// The bytes of what an instruction computes, if it only moves bytes.
fn bytes_of(func: &Function, inst: Inst, known: &HashMap<Value, Known>) -> Option<Vec<Byte>> {
    let data = func.inst(inst);
    let size = func.ty(data.results[0]).bits() as usize / 8;
    let of = |at: usize| -> Vec<Byte> {
        let arg = data.args[at];
        if let Some(known) = known.get(&arg) {
            return known.bytes.clone();
        }
        let constant = func.constant(arg);
        let byte = |at: usize| match constant {
            Some(constant) if constant >> (8 * at) & 0xff == 0 => Byte::Zero,
            _ => Byte::Other,
        };
        (0..func.ty(arg).bits() as usize / 8).map(byte).collect()
    };
    let moved = |from: &[Byte], by: i64| -> Vec<Byte> {
        let byte = |at: i64| usize::try_from(at - by).ok().and_then(|at| from.get(at)).copied();
        (0..size as i64).map(|at| byte(at).unwrap_or(Byte::Zero)).collect()
    };
    let whole_bytes = || {
        let amount = func.constant(data.args[1])?;
        (amount.is_multiple_of(8) && amount < 8 * size as u64).then_some(amount as i64 / 8)
    };
    Some(match data.op {
        Op::Convert(Convert::ZExt) if func.ty(data.args[0]) != Type::Pred => moved(&of(0), 0),
        Op::Convert(Convert::Trunc) if size > 0 => of(0)[..size].to_vec(),
        Op::Shift(Shift::Left) => moved(&of(0), whole_bytes()?),
        Op::Shift(Shift::RightU) => moved(&of(0), -whole_bytes()?),
        Op::Int(IntBinary::And) => {
            let mask = func.constant(data.args[1])?;
            let masked = |(at, byte): (usize, Byte)| match mask >> (8 * at) & 0xff {
                0 => Byte::Zero,
                0xff => byte,
                _ => Byte::Other,
            };
            of(0).into_iter().enumerate().map(masked).collect()
        }
        // What has no byte in common is put together by a sum as well: nothing is carried.
        Op::Int(op @ (IntBinary::Or | IntBinary::Xor | IntBinary::Add)) => {
            let either = |(a, b): (Byte, Byte)| match (a, b) {
                (Byte::Zero, other) | (other, Byte::Zero) => other,
                _ => Byte::Other,
            };
            let (a, b) = (of(0), of(1));
            let apart = a.iter().zip(&b).all(|(a, b)| *a == Byte::Zero || *b == Byte::Zero);
            if op == IntBinary::Add && !apart {
                return None;
            }
            a.into_iter().zip(b).map(either).collect()
        }
        Op::Prmt => {
            let selector = func.constant(data.args[2])?;
            let from = [of(0), of(1)].concat();
            let byte = |at: usize| match selector >> (4 * at) & 0xf {
                place @ 0..8 => from[place as usize],
                _ => Byte::Other,
            };
            (0..size).map(byte).collect()
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use simt_ir::{FunctionBuilder, Signature, Terminator};

    use super::*;

    /// What is loaded for a word whose bytes, lowest first, lie at these places, with something done after the second of them.
    fn loads(
        places: [i64; 4],
        between: impl FnOnce(&mut FunctionBuilder, [Value; 2]),
    ) -> Vec<(Type, Access)> {
        let mut b = FunctionBuilder::new("k", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let address = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let load = |b: &mut FunctionBuilder, at: i64| {
            b.inst(Op::Load(Access::weak(Space::Global, at)), &[address], Type::I8)
        };
        let mut bytes = vec![load(&mut b, places[0]), load(&mut b, places[1])];
        between(&mut b, [address, bytes[0]]);
        bytes.extend([load(&mut b, places[2]), load(&mut b, places[3])]);
        let mut word = b.constant(Type::I32, 0);
        for (at, byte) in (0..).zip(bytes) {
            let (wide, by) =
                (b.inst(Op::Convert(Convert::ZExt), &[byte], Type::I32), b.constant(Type::I32, 8 * at));
            let moved = b.inst(Op::Shift(Shift::Left), &[wide, by], Type::I32);
            word = b.inst(Op::Int(IntBinary::Or), &[word, moved], Type::I32);
        }
        b.effect(Op::Store(Access::weak(Space::Global, 64)), &[address, word]);
        b.terminate(Terminator::Exit);
        let mut func = b.finish();
        super::bytes(&mut func);
        let insts = func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst));
        let loaded = insts.filter_map(|data| match data.op {
            Op::Load(access) if access.space == Space::Global => Some((func.ty(data.results[0]), access)),
            _ => None,
        });
        loaded.collect()
    }

    #[test]
    fn bytes_side_by_side_are_one_load_either_way_around() {
        let word = |at: i64| vec![(Type::I32, Access { anywhere: true, ..Access::weak(Space::Global, at) })];
        assert_eq!(loads([1, 2, 3, 4], |_, _| {}), word(1));
        assert_eq!(loads([4, 3, 2, 1], |_, _| {}), word(1));
        assert_eq!(loads([1, 2, 4, 3], |_, _| {}).len(), 4, "they are in another order");
        assert_eq!(loads([1, 2, 3, 5], |_, _| {}).len(), 4, "one lies apart");
    }

    #[test]
    fn a_byte_that_may_be_written_or_is_needed_is_loaded_by_itself() {
        let stored = |b: &mut FunctionBuilder, [address, byte]: [Value; 2]| {
            b.effect(Op::Store(Access::weak(Space::Global, 3)), &[address, byte]);
        };
        assert_eq!(loads([1, 2, 3, 4], stored).len(), 4);
        let used = |b: &mut FunctionBuilder, [address, byte]: [Value; 2]| {
            let wide = b.inst(Op::Convert(Convert::ZExt), &[byte], Type::I64);
            let further = b.inst(Op::Int(IntBinary::Add), &[address, wide], Type::I64);
            let other = b.inst(Op::Load(Access::weak(Space::Global, 64)), &[further], Type::I32);
            let zero = b.constant(Type::I64, 0);
            b.effect(Op::Store(Access::weak(Space::Shared, 0)), &[zero, other]);
        };
        assert_eq!(loads([1, 2, 3, 4], used).len(), 5);
    }
}
