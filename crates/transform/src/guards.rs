//! Guards of numbers that follow each other.
//!
//! A thread that has several elements tests of each whether it is there, `if (i + k < n)`: a block for each element, and what lies side by side in
//! memory is accessed one by one. But most warps have all of theirs. [`straighten`] has one test for all elements of all lanes before the
//! first, and behind it the code of all of them in one block.

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Cfg, Def, Function, Inst, IntBinary, IntCmp, Op, Target, Terminator, Type, Value};

use crate::facts::are_same;
use crate::simplify::sign_extended;

/// The fewest elements.
const FEWEST: usize = 2;
/// The most in one test.
const LONGEST: usize = 32;
/// The most instructions of a kernel that are there twice.
const MOST: usize = 600;
/// How many operations on constants lead from one number to another.
const STEPS: usize = 8;

/// A test, what is done where it holds, and where control goes on in any case.
struct Guard {
    inst: Inst,
    cmp: IntCmp,
    body: Block,
    join: Block,
}

/// Whether a function has as many branches.
pub fn may_have(func: &Function) -> bool {
    func.blocks().filter(|block| matches!(func.block(*block).term, Terminator::Branch { .. })).count()
        >= FEWEST
}

/// Gives guards of numbers that follow each other a common test. After: where it holds for all lanes, what they guard is one block. Answers whether there are
/// any. The kernel is in normal form.
pub fn straighten(func: &mut Function) -> bool {
    let cfg = Cfg::new(func);
    let mut taken: HashSet<Block> = HashSet::new();
    let mut found = Vec::new();
    let mut left = MOST;
    for &block in cfg.order() {
        if taken.contains(&block) {
            continue;
        }
        let chain = chain(func, &cfg, block);
        let size = size(func, &chain);
        if chain.len() >= FEWEST && size <= left && has_accesses(func, &chain) {
            left -= size;
            taken.extend(chain.iter().flat_map(|guard| [guard.body, guard.join]));
            found.push((block, chain));
        }
    }
    for (block, chain) in &found {
        divide(func, *block, chain);
    }
    !found.is_empty()
}

/// Guards one after another, the first at the end of this block, of numbers that differ by constants.
fn chain(func: &Function, cfg: &Cfg, first: Block) -> Vec<Guard> {
    let mut chain: Vec<Guard> = Vec::new();
    let (mut block, mut before): (Block, Option<[Value; 2]>) = (first, None);
    let mut seen = HashSet::from([first]);
    while let Some(guard) = guard(func, cfg, block) {
        let compared = &func.inst(guard.inst).args;
        let compared = [compared[0], compared[1]];
        let follows = before.is_none_or(|before| {
            let is_other = |at: usize| are_same(func, before[1 - at], compared[1 - at]);
            let moves = |at: usize| root(func, before[at]).0 == root(func, compared[at]).0;
            chain[0].cmp == guard.cmp && (0..2).any(|at| moves(at) && is_other(at))
        });
        // What is tested must be known before all of it.
        let inner: HashSet<Block> = chain.iter().flat_map(|guard| [guard.body, guard.join]).collect();
        let known = compared.iter().all(|value| is_known(func, &inner, *value, STEPS));
        if !follows || !known || !seen.insert(guard.join) {
            break;
        }
        before = Some(compared);
        block = guard.join;
        let is_join = cfg.preds(block).len() == 2;
        chain.push(guard);
        if !is_join || chain.len() == LONGEST {
            break;
        }
    }
    chain
}

/// The guard at the end of a block.
fn guard(func: &Function, cfg: &Cfg, block: Block) -> Option<Guard> {
    let Terminator::Branch { cond, then, otherwise, .. } = &func.block(block).term else { return None };
    let Def::Result(inst, _) = func.def(*cond) else { return None };
    let Op::IntCmp(cmp) = func.inst(inst).op else { return None };
    if !matches!(func.ty(func.inst(inst).args[0]), Type::I32 | Type::I64) {
        return None;
    }
    let leads = |body: &Target, join: &Target| {
        let data = func.block(body.block);
        let on = matches!(&data.term, Terminator::Jump(target) if target.block == join.block);
        let plain = |inst: &Inst| {
            let op = &func.inst(*inst).op;
            op.is_pure() || matches!(op, Op::Load(_) | Op::Store(_))
        };
        on && body.args.is_empty()
            && body.block != join.block
            && cfg.preds(body.block) == [block]
            && data.insts.iter().all(plain)
    };
    if leads(then, otherwise) {
        Some(Guard { inst, cmp, body: then.block, join: otherwise.block })
    } else if leads(otherwise, then) {
        Some(Guard { inst, cmp: cmp.inverse(), body: otherwise.block, join: then.block })
    } else {
        None
    }
}

/// What a number differs from by constants, and by how much in all, if that is added.
fn root(func: &Function, mut value: Value) -> (Value, Option<i64>) {
    let mut sum = Some(0i64);
    for _ in 0..STEPS {
        let Some(data) = func.def_inst(value) else { break };
        let Op::Int(op @ (IntBinary::Add | IntBinary::Sub | IntBinary::Or)) = data.op else { break };
        let Some(constant) = func.constant(data.args[1]) else { break };
        let constant = sign_extended(constant, func.ty(value).bits());
        sum = match op {
            IntBinary::Add => sum.and_then(|sum| sum.checked_add(constant)),
            IntBinary::Sub => sum.and_then(|sum| sum.checked_sub(constant)),
            _ => None,
        };
        value = data.args[0];
    }
    (value, sum)
}

/// Whether a value can be computed before these blocks.
fn is_known(func: &Function, inner: &HashSet<Block>, value: Value, depth: usize) -> bool {
    match func.def(value) {
        Def::Result(inst, _) => {
            let data = func.inst(inst);
            let is_inner = || inner.iter().any(|block| func.block(*block).insts.contains(&inst));
            let computed = data.op.is_pure()
                && depth > 0
                && data.args.iter().all(|arg| is_known(func, inner, *arg, depth - 1));
            computed || !is_inner()
        }
        Def::Param(block, _) => !inner.contains(&block),
        Def::Removed => false,
    }
}

/// The instructions that the guards' code would have again.
fn size(func: &Function, chain: &[Guard]) -> usize {
    let insts = |block: Block| func.block(block).insts.len();
    let inner = chain.split_last().map_or(0, |(_, inner)| inner.iter().map(|guard| insts(guard.join)).sum());
    chain.iter().map(|guard| insts(guard.body)).sum::<usize>() + inner
}

fn has_accesses(func: &Function, chain: &[Guard]) -> bool {
    let mut insts = chain.iter().flat_map(|guard| &func.block(guard.body).insts);
    insts.any(|inst| !func.inst(*inst).op.is_pure())
}

/// Puts the common test before the first guard, and the code for where it holds beside them.
fn divide(func: &mut Function, block: Block, chain: &[Guard]) {
    let (last, inner) = chain.split_last().expect("a chain has guards");
    let members: Vec<Block> =
        inner.iter().flat_map(|guard| [guard.body, guard.join]).chain([last.body]).collect();
    pass_on(func, &members, last.join);
    let copy = straight(func, chain);
    // The guards as they are, behind the test.
    let rest = func.add_block();
    let data = func.block(block);
    let (term, loc) = (data.term.clone(), data.term_loc);
    let data = func.block_mut(rest);
    (data.term, data.term_loc) = (term, loc);
    let mut holds: Option<Value> = None;
    let mut known: HashMap<Value, Value> = HashMap::new();
    for Test { cmp, number, other } in tests(func, chain) {
        let ty = func.ty(number);
        let number = before(func, block, &members, number, &mut known);
        let other = match other {
            Other::Value(value) => before(func, block, &members, value, &mut known),
            Other::Constant(bits) => append(func, block, Op::Const(bits), vec![], ty),
        };
        let test = append(func, block, Op::IntCmp(cmp), vec![number, other], Type::Pred);
        let both = |before| append(func, block, Op::Int(IntBinary::And), vec![before, test], Type::Pred);
        holds = Some(holds.map_or(test, both));
    }
    let cond = append(func, block, Op::Unanimous, holds.into_iter().collect(), Type::Pred);
    let (then, otherwise) = (Target::new(copy), Target::new(rest));
    func.block_mut(block).term = Terminator::Branch { cond, then, otherwise, uniform: false };
}

/// A comparison of a number.
struct Test {
    cmp: IntCmp,
    number: Value,
    other: Other,
}

enum Other {
    Value(Value),
    Constant(u64),
}

/// What shows that all guards hold: what the first and the last number show, if no number in between can have wrapped, or all.
fn tests(func: &Function, chain: &[Guard]) -> Vec<Test> {
    let args = |guard: &Guard| [func.inst(guard.inst).args[0], func.inst(guard.inst).args[1]];
    let as_it_is = |guard: &Guard| {
        let [number, other] = args(guard);
        Test { cmp: guard.cmp, number, other: Other::Value(other) }
    };
    let all = || chain.iter().map(as_it_is).collect();
    let moves = usize::from(are_same(func, args(&chain[0])[0], args(&chain[1])[0]));
    let numbers: Option<Vec<(i64, usize)>> =
        chain.iter().zip(0..).map(|(guard, at)| Some((root(func, args(guard)[moves]).1?, at))).collect();
    let Some(mut numbers) = numbers else { return all() };
    numbers.sort_unstable();
    let ((least, first), (most, last)) = (numbers[0], numbers[numbers.len() - 1]);
    let number = args(&chain[first])[moves];
    let mask = func.ty(number).mask();
    let (cmp, largest) = match chain[0].cmp {
        IntCmp::LtS | IntCmp::LeS | IntCmp::GtS | IntCmp::GeS => (IntCmp::LeS, mask >> 1),
        IntCmp::LtU | IntCmp::LeU | IntCmp::GtU | IntCmp::GeU => (IntCmp::LeU, mask),
        IntCmp::Eq | IntCmp::Ne => return all(),
    };
    let distance = most.checked_sub(least).and_then(|distance| u64::try_from(distance).ok());
    match distance.and_then(|distance| largest.checked_sub(distance)) {
        Some(limit) if first != last => {
            let stays = Test { cmp, number, other: Other::Constant(limit) };
            vec![stays, as_it_is(&chain[first]), as_it_is(&chain[last])]
        }
        _ => all(),
    }
}

/// What an instruction at the end of a block computes.
fn append(func: &mut Function, block: Block, op: Op, args: Vec<Value>, ty: Type) -> Value {
    let loc = func.block(block).term_loc;
    func.append_value(block, op, args, ty, loc)
}

/// Has what these blocks compute and others use passed on to where control leaves them.
pub fn pass_on(func: &mut Function, members: &[Block], join: Block) {
    let mut own: HashSet<Value> = HashSet::new();
    for block in members {
        let data = func.block(*block);
        own.extend(&data.params);
        own.extend(data.insts.iter().flat_map(|inst| &func.inst(*inst).results));
    }
    let others: Vec<Block> = func.blocks().filter(|block| !members.contains(block)).collect();
    let mut used: Vec<Value> = Vec::new();
    for block in &others {
        let data = func.block(*block);
        used.extend(data.insts.iter().flat_map(|inst| func.inst(*inst).args.clone()));
        used.extend(data.term.uses());
    }
    used.retain(|value| own.contains(value));
    used.sort_unstable();
    used.dedup();
    let params: HashMap<Value, Value> =
        used.iter().map(|value| (*value, func.add_param(join, func.ty(*value)))).collect();
    let param = |value: Value| params.get(&value).copied().unwrap_or(value);
    for block in others {
        for inst in func.block(block).insts.clone() {
            func.inst_mut(inst).args.iter_mut().for_each(|arg| *arg = param(*arg));
        }
        func.block_mut(block).term.map_uses(param);
    }
    for block in members {
        for target in func.block_mut(*block).term.targets_mut() {
            if target.block == join {
                target.args.extend(&used);
            }
        }
    }
}

/// All that the guards guard, as one block.
fn straight(func: &mut Function, chain: &[Guard]) -> Block {
    let copy = func.add_block();
    let mut values: HashMap<Value, Value> = HashMap::new();
    for (at, guard) in chain.iter().enumerate() {
        let is_last = at + 1 == chain.len();
        copy_insts(func, guard.body, copy, &mut values);
        let Terminator::Jump(target) = func.block(guard.body).term.clone() else {
            unreachable!("a guard's body goes on to where they join");
        };
        let mapped = |value: Value| values.get(&value).copied().unwrap_or(value);
        let args: Vec<Value> = target.args.iter().map(|arg| mapped(*arg)).collect();
        if is_last {
            let loc = func.block(guard.body).term_loc;
            let data = func.block_mut(copy);
            data.term = Terminator::Jump(Target { block: guard.join, args });
            data.term_loc = loc;
        } else {
            values.extend(func.block(guard.join).params.iter().copied().zip(args));
            copy_insts(func, guard.join, copy, &mut values);
        }
    }
    copy
}

/// Copies a block's instructions to the end of another, but for what is computed there already.
fn copy_insts(func: &mut Function, from: Block, to: Block, values: &mut HashMap<Value, Value>) {
    for inst in func.block(from).insts.clone() {
        let mut data = func.inst(inst).clone();
        data.args.iter_mut().for_each(|arg| *arg = values.get(arg).copied().unwrap_or(*arg));
        let types: Vec<Type> = data.results.iter().map(|result| func.ty(*result)).collect();
        let same = |other: &&Inst| {
            let other = func.inst(**other);
            let alike = (&other.op, &other.args) == (&data.op, &data.args);
            alike && other.results.iter().map(|result| func.ty(*result)).eq(types.iter().copied())
        };
        let known = data.op.is_pure().then(|| func.block(to).insts.iter().find(same).copied()).flatten();
        let new = known.unwrap_or_else(|| func.append(to, data.op, data.args, &types, data.loc));
        values.extend(data.results.into_iter().zip(func.inst(new).results.clone()));
    }
}

/// A value, computed at the end of a block if only blocks behind it compute it.
fn before(
    func: &mut Function,
    block: Block,
    members: &[Block],
    value: Value,
    known: &mut HashMap<Value, Value>,
) -> Value {
    if let Some(known) = known.get(&value) {
        return *known;
    }
    let Def::Result(inst, _) = func.def(value) else { return value };
    if !members.iter().any(|member| func.block(*member).insts.contains(&inst)) {
        return value;
    }
    let mut data = func.inst(inst).clone();
    data.args = data.args.into_iter().map(|arg| before(func, block, members, arg, known)).collect();
    let new = func.append_value(block, data.op, data.args, func.ty(value), data.loc);
    known.insert(value, new);
    new
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{Access, Convert, FunctionBuilder, Signature, Space, SpecialReg};

    use super::*;

    /// A kernel that doubles a word of each of these places, as far as the thread's number and what is added to it are below a limit.
    fn guarded(added: &[u64], cmp: IntCmp) -> Function {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let [base, limit] = [(0, Type::I64), (8, Type::I32)]
            .map(|(at, ty)| b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], ty));
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let wide = b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64);
        let address = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
        for added in added {
            let more = b.constant(Type::I32, *added);
            let number = b.inst(Op::Int(IntBinary::Add), &[tid, more], Type::I32);
            let cond = b.inst(Op::IntCmp(cmp), &[number, limit], Type::Pred);
            let (body, join) = (b.block(), b.block());
            let (then, otherwise) = (Target::new(body), Target::new(join));
            b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
            b.switch_to(body);
            let place = Access::weak(Space::Global, 4 * *added as i64);
            let loaded = b.inst(Op::Load(place), &[address], Type::I32);
            let twice = b.inst(Op::Int(IntBinary::Add), &[loaded, loaded], Type::I32);
            b.effect(Op::Store(place), &[address, twice]);
            b.terminate(Terminator::Jump(Target::new(join)));
            b.switch_to(join);
        }
        b.terminate(Terminator::Exit);
        b.finish()
    }

    /// The most stores of a block, and the comparisons before the guards.
    fn straightened(mut func: Function) -> Option<(usize, usize)> {
        crate::normalize::normalize(&mut func, true).ok()?;
        straighten(&mut func).then(|| {
            let count = |block: Block, is: fn(&Op) -> bool| {
                func.block(block).insts.iter().filter(|inst| is(&func.inst(**inst).op)).count()
            };
            let stores = func.blocks().map(|block| count(block, |op| matches!(op, Op::Store(_)))).max();
            crate::prepare(func.clone(), true, &Shape::of([8, 1, 1], [256, 1, 1])).expect("it is sound");
            (stores.unwrap_or(0), count(Function::ENTRY, |op| matches!(op, Op::IntCmp(_))))
        })
    }

    #[test]
    fn elements_side_by_side_have_one_test() {
        // That of the first guard, and of the least and the largest number that they are below the limit and that none wraps in between.
        assert_eq!(straightened(guarded(&[0, 1, 2, 3], IntCmp::LtS)), Some((4, 4)));
        assert_eq!(straightened(guarded(&[3, 1, 2, 7], IntCmp::LtU)), Some((4, 4)));
    }

    #[test]
    fn numbers_that_do_not_tell_of_those_between_are_all_tested() {
        assert_eq!(straightened(guarded(&[0, 1, 2], IntCmp::Ne)), Some((3, 4)));
    }

    #[test]
    fn what_does_not_follow_stays() {
        assert_eq!(straightened(guarded(&[5], IntCmp::LtS)), None);
    }

    #[test]
    fn not_much_is_there_twice() {
        let many: Vec<u64> = (0..500).collect();
        let mut func = guarded(&many, IntCmp::LtS);
        let size =
            |func: &Function| -> usize { func.blocks().map(|block| func.block(block).insts.len()).sum() };
        let before = size(&func);
        assert!(straighten(&mut func));
        assert!(size(&func) < before + 2 * MOST);
    }
}
