//! Products fused with sums, where PTX leaves it to the assembler: `mul`, `add` and `sub` without a rounding modifier.
//!
//! Which ones are fused shows in the last bit, so this is NVIDIA's choice (ptxas of CUDA 13.0 for `sm_90`, by experiments): a product is
//! fused if all that reads it are such sums, in its own basic block, which also ends at what that assembler makes branches of, such as exact
//! quotients. It is fused with all of them then, and computed with none of them otherwise. Moves, and changes of sign, may lie between. Of two products in one sum, that with fewer readers is fused, the first operand's if
//! they have as many; the other one is computed, and so apart from all its readers.
//!
//! Before: a function as it was read. After: the same, with [`Op::Fma`] in place of such sums, and their products without readers.

use std::collections::HashMap;

use simt_ir::{
    Approx, Block, Cfg, Convert, Def, FloatBinary, FloatMode, FloatUnary, Function, Inst, IntBinary, Op,
    Shift, Terminator, Type, Value,
};

/// A sum that reads a product.
#[derive(Clone, Copy)]
struct Reader {
    sum: Inst,
    block: Block,
    operand: usize,
    /// The product's sign changes on its way.
    negated: bool,
}

/// A product whose readers are all sums.
struct Product {
    factors: [Value; 2],
    readers: Vec<Reader>,
    /// The words that it is half of on its way.
    words: Vec<Value>,
}

/// How a product lies in the value that is looked at.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// As a float.
    Float,
    /// As an integer of its size.
    Bits,
    /// As the lower half of a word whose upper one is zero.
    Alone,
    /// As the upper half of one whose lower one is zero.
    Raised,
    /// As the lower half of a word of two.
    Low,
    /// As the upper half of one.
    High,
}

/// Fuses what the assembler would.
pub(super) fn contract(func: &mut Function) {
    let insts = func.blocks().flat_map(|block| &func.block(block).insts);
    let products: Vec<Inst> = insts.copied().filter(|inst| may_be_fused(func, *inst)).collect();
    if products.is_empty() {
        return;
    }
    let uses = Uses::new(func);
    let mut found: HashMap<Inst, Product> = HashMap::new();
    for inst in products {
        if let Some(product) = uses.readers_of(func, inst) {
            found.insert(inst, product);
        }
    }
    both_halves_or_none(&mut found);
    one_in_a_sum(func, &mut found);
    both_halves_or_none(&mut found);
    fuse(func, &found);
}

fn may_be_fused(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    // A product of constants is one.
    let known = || data.args.iter().all(|arg| func.constant(*arg).is_some());
    matches!(data.op, Op::Float(FloatBinary::Mul, mode) if mode.contract && !mode.sat) && !known()
}

/// Whether NVIDIA's assembler makes an instruction several, with branches between them.
fn becomes_branches(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    let is_known = |operand: usize| func.constant(data.args[operand]).is_some();
    match data.op {
        Op::Float(FloatBinary::Div, _) | Op::FloatUnary(FloatUnary::Sqrt | FloatUnary::Rcp, _) => true,
        Op::Approx { func: Approx::Rsqrt, .. } => func.ty(data.args[0]) == Type::F64,
        Op::Int(IntBinary::DivS | IntBinary::RemS) => !is_known(1),
        Op::Int(IntBinary::DivU | IntBinary::RemU) => func.ty(data.args[0]) != Type::I32 && !is_known(1),
        Op::Fence { .. } | Op::Call(_) | Op::CallIndirect(_) | Op::Syscall(_) => true,
        _ => false,
    }
}

/// What reads each value, of what is not dead.
struct Uses {
    insts: Vec<Vec<(Block, Inst, usize)>>,
    /// Blocks that get it as a parameter, and which: from their only predecessor, which ends in a jump there. `None`: it is read in
    /// another way by the end of a block.
    ends: Vec<Vec<Option<Value>>>,
    /// Of each instruction, a number for the run that it is in: instructions that follow each other whatever happens.
    runs: Vec<u32>,
}

impl Uses {
    fn new(func: &Function) -> Uses {
        let live = live(func);
        let cfg = Cfg::new(func);
        let mut uses = Uses {
            insts: vec![Vec::new(); func.value_count()],
            ends: vec![Vec::new(); func.value_count()],
            runs: vec![0; func.inst_count()],
        };
        let (mut count, mut begins) = (0, vec![None; func.blocks().len()]);
        for &block in cfg.order() {
            let data = func.block(block);
            let mut next = || {
                count += 1;
                count
            };
            let mut run = begins[block.index()].unwrap_or_else(&mut next);
            for inst in &data.insts {
                if live[inst.index()] && becomes_branches(func, *inst) {
                    run = next();
                }
                uses.runs[inst.index()] = run;
                for (operand, arg) in func.inst(*inst).args.iter().enumerate() {
                    if live[inst.index()] {
                        uses.insts[arg.index()].push((block, *inst, operand));
                    }
                }
            }
            match &data.term {
                Terminator::Jump(target) if cfg.preds(target.block).len() == 1 => {
                    for (arg, param) in target.args.iter().zip(&func.block(target.block).params) {
                        uses.ends[arg.index()].push(Some(*param));
                    }
                    // The order is one in which a block comes after those before it, but for loops.
                    begins[target.block.index()] = Some(run);
                }
                term => term.uses().iter().for_each(|value| uses.ends[value.index()].push(None)),
            }
        }
        uses
    }

    /// The sums that read a product, if nothing else does.
    fn readers_of(&self, func: &Function, inst: Inst) -> Option<Product> {
        let data = func.inst(inst);
        let (Op::Float(_, mode), &[a, b], &[result]) = (data.op, &data.args[..], &data.results[..]) else {
            return None;
        };
        let mut product = Product { factors: [a, b], readers: Vec::new(), words: Vec::new() };
        let mut work = vec![(result, Form::Float, false)];
        while let Some((value, form, negated)) = work.pop() {
            for end in &self.ends[value.index()] {
                work.push(((*end)?, form, negated));
            }
            for &(at, user, operand) in &self.insts[value.index()] {
                let next = |form| Some((func.inst(user).results[0], form, negated));
                let step = match (func.inst(user).op, form) {
                    (Op::Float(FloatBinary::Add | FloatBinary::Sub, sum), Form::Float) => {
                        let same = sum.contract
                            && sum.ftz == mode.ftz
                            && self.runs[user.index()] == self.runs[inst.index()];
                        let reader = Reader { sum: user, block: at, operand, negated };
                        // A sum of a product and itself has it in any case.
                        if !same || product.readers.iter().any(|reader| reader.sum == user) {
                            return None;
                        }
                        product.readers.push(reader);
                        None
                    }
                    (Op::FloatUnary(FloatUnary::Neg, sign), Form::Float) => {
                        // The sign of two bfloats in a word is changed by an instruction of its own.
                        let apart = func.ty(value) == Type::BF16 && !product.words.is_empty();
                        if sign.ftz && !mode.ftz || apart {
                            return None;
                        }
                        Some((func.inst(user).results[0], form, !negated))
                    }
                    (Op::Convert(Convert::Bitcast), Form::Float) => next(Form::Bits),
                    (Op::Convert(Convert::Bitcast), Form::Bits)
                        if func.ty(func.inst(user).results[0]) == func.ty(result) =>
                    {
                        next(Form::Float)
                    }
                    (Op::Convert(Convert::ZExt), Form::Bits) if is_half(func, value) => next(Form::Alone),
                    (Op::Shift(Shift::Left), Form::Alone) if by_16(func, user) => next(Form::Raised),
                    (Op::Int(IntBinary::Or), Form::Alone | Form::Raised) => {
                        product.words.push(func.inst(user).results[0]);
                        next(if form == Form::Alone { Form::Low } else { Form::High })
                    }
                    // The other half.
                    (Op::Shift(Shift::RightU), Form::Low) if by_16(func, user) => None,
                    (Op::Convert(Convert::Trunc), Form::High) if to_half(func, user) => None,
                    (Op::Shift(Shift::RightU), Form::High) if by_16(func, user) => next(Form::Alone),
                    (Op::Convert(Convert::Trunc), Form::Low | Form::Alone) if to_half(func, user) => {
                        next(Form::Bits)
                    }
                    _ => return None,
                };
                work.extend(step);
            }
        }
        (!product.readers.is_empty()).then_some(product)
    }
}

fn is_half(func: &Function, value: Value) -> bool {
    func.ty(value) == Type::I16
}

fn to_half(func: &Function, inst: Inst) -> bool {
    is_half(func, func.inst(inst).results[0])
}

fn by_16(func: &Function, inst: Inst) -> bool {
    let result = func.inst(inst).results[0];
    func.ty(result) == Type::I32 && func.constant(func.inst(inst).args[1]) == Some(16)
}

/// Whether something that happens depends on each instruction.
fn live(func: &Function) -> Vec<bool> {
    let mut live = vec![false; func.inst_count()];
    let mut params = vec![false; func.value_count()];
    let mut work: Vec<Value> = Vec::new();
    for block in func.blocks() {
        let data = func.block(block);
        for inst in data.insts.iter().filter(|inst| !func.inst(**inst).op.is_pure()) {
            live[inst.index()] = true;
            work.extend(&func.inst(*inst).args);
        }
        match &data.term {
            Terminator::Branch { cond, .. } => work.push(*cond),
            Terminator::Switch { index, .. } => work.push(*index),
            Terminator::Return(values) => work.extend(values),
            Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => {}
        }
    }
    // What is passed to each block, by whom.
    let mut passed: Vec<Vec<&[Value]>> = vec![Vec::new(); func.blocks().len()];
    for block in func.blocks() {
        for target in func.block(block).term.targets() {
            passed[target.block.index()].push(&target.args);
        }
    }
    while let Some(value) = work.pop() {
        match func.def(value) {
            Def::Result(inst, _) if !live[inst.index()] => {
                live[inst.index()] = true;
                work.extend(&func.inst(inst).args);
            }
            Def::Param(block, position) if !params[value.index()] => {
                params[value.index()] = true;
                work.extend(passed[block.index()].iter().filter_map(|args| args.get(position as usize)));
            }
            _ => {}
        }
    }
    live
}

/// Two products in a word are those of one instruction.
fn both_halves_or_none(found: &mut HashMap<Inst, Product>) {
    loop {
        let mut halves: HashMap<Value, u32> = HashMap::new();
        for word in found.values().flat_map(|product| &product.words) {
            *halves.entry(*word).or_default() += 1;
        }
        let before = found.len();
        found.retain(|_, product| product.words.iter().all(|word| halves[word] == 2));
        if found.len() == before {
            return;
        }
    }
}

/// Leaves one product a sum.
fn one_in_a_sum(func: &Function, found: &mut HashMap<Inst, Product>) {
    let mut of_sum: HashMap<Inst, Vec<(usize, Inst)>> = HashMap::new();
    for (inst, product) in found.iter() {
        for reader in &product.readers {
            of_sum.entry(reader.sum).or_default().push((reader.operand, *inst));
        }
    }
    for inst in func.blocks().flat_map(|block| &func.block(block).insts) {
        let Some(products) = of_sum.get_mut(inst) else { continue };
        products.retain(|(_, product)| found.contains_key(product));
        products.sort_by_key(|(operand, product)| (found[product].readers.len(), *operand));
        for (_, product) in products.iter().skip(1) {
            found.remove(product);
        }
    }
}

fn fuse(func: &mut Function, found: &HashMap<Inst, Product>) {
    let readers: HashMap<Inst, (Reader, [Value; 2])> = found
        .values()
        .flat_map(|product| product.readers.iter().map(|reader| (reader.sum, (*reader, product.factors))))
        .collect();
    let mut blocks: Vec<Block> = readers.values().map(|(reader, _)| reader.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    for block in blocks {
        for inst in func.block(block).insts.clone() {
            let Some((reader, [a, b])) = readers.get(&inst).copied() else { continue };
            let data = func.inst(inst);
            let Op::Float(op, sum) = data.op else { continue };
            let mut addend = data.args[1 - reader.operand];
            let mut negated = reader.negated;
            let subtracts = op == FloatBinary::Sub;
            if subtracts && reader.operand == 0 {
                addend = negate(func, block, inst, addend, sum.ftz);
            } else if subtracts {
                negated = !negated;
            }
            let a = if negated { negate(func, block, inst, a, sum.ftz) } else { a };
            let data = func.inst_mut(inst);
            data.op = Op::Fma(FloatMode { contract: false, ..sum });
            data.args = vec![a, b, addend];
        }
    }
}

/// The value with the other sign, before the instruction.
fn negate(func: &mut Function, block: Block, before: Inst, value: Value, ftz: bool) -> Value {
    let (ty, loc) = (func.ty(value), func.inst(before).loc);
    let at = func.block(block).insts.iter().position(|inst| *inst == before).unwrap_or(0);
    let mode = FloatMode { ftz, ..FloatMode::default() };
    func.insert(block, at, Op::FloatUnary(FloatUnary::Neg, mode), vec![value], ty, loc)
}
