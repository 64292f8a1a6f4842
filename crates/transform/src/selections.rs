//! Short ways that meet again, as selections.
//!
//! Where a branch does little more than to choose between numbers, the lanes of a warp go both ways anyway, and each edge that control comes by puts its
//! numbers in place for its lanes: two edges with the same number do it twice. What both ways compute can as well be computed by all lanes, and chosen from.
//! Compilers do that too, but for one branch in another they leave the outer one, and accesses behind them are apart.

use simt_ir::{Block, Cfg, Function, IntBinary, Op, Target, Terminator, Value};

use crate::chains;

/// The most work of each way.
const MOST_WORK: u32 = 6;
/// The most numbers that are chosen.
const MOST_CHOSEN: usize = 8;
/// How often ways within ways are looked for.
const DEPTH: usize = 16;

/// Has numbers be chosen where branches do nothing else. After: no branch of two ways as short as that meets where neither has done anything. Answers whether there was one.
pub fn select(func: &mut Function) -> bool {
    let mut found = false;
    for _ in 0..DEPTH {
        let cfg = Cfg::new(func);
        let mut changed = false;
        // Those within others come later in control flow.
        for &block in cfg.order().iter().rev() {
            changed |= select_at(func, &cfg, block);
        }
        if !changed {
            break;
        }
        found = true;
    }
    found
}

/// One of the ways from a branch.
struct Way {
    /// What is computed on it, if anything is.
    through: Option<Block>,
    to: Target,
}

impl Way {
    fn of(func: &Function, cfg: &Cfg, from: Block, target: &Target) -> Option<Way> {
        let direct = Way { through: None, to: target.clone() };
        let side = func.block(target.block);
        let Terminator::Jump(next) = &side.term else { return Some(direct) };
        let is_side =
            cfg.preds(target.block) == [from] && side.params.is_empty() && next.block != target.block;
        if !is_side {
            return Some(direct);
        }
        let mut work = 0;
        for inst in &side.insts {
            let op = &func.inst(*inst).op;
            work += match op {
                Op::Const(_) => 0,
                Op::Unanimous | Op::AnyLane => return None,
                Op::Int(IntBinary::DivS | IntBinary::DivU | IntBinary::RemS | IntBinary::RemU) => {
                    return None;
                }
                op if op.is_pure() => chains::of_op(op)?.0,
                _ => return None,
            };
        }
        (work <= MOST_WORK).then(|| Way { through: Some(target.block), to: next.clone() })
    }
}

fn select_at(func: &mut Function, cfg: &Cfg, block: Block) -> bool {
    let Terminator::Branch { cond, then, otherwise, uniform: false } = &func.block(block).term else {
        return false;
    };
    let cond = *cond;
    // A way that is no side of the branch may be where the other one leads.
    let ways = [then, otherwise].map(|target| Way::of(func, cfg, block, target));
    let direct = |target: &Target| Way { through: None, to: target.clone() };
    let [Some(one), Some(other)] = ways else { return false };
    let meet = |one: &Way, other: &Way| one.to.block == other.to.block;
    let (one, other) = if meet(&one, &other) {
        (one, other)
    } else if meet(&direct(then), &other) {
        (direct(then), other)
    } else if meet(&one, &direct(otherwise)) {
        (one, direct(otherwise))
    } else {
        return false;
    };
    let join = one.to.block;
    // Who goes back to where a loop begins goes there by one edge of its own.
    let is_ahead = cfg.position(join) > cfg.position(block);
    let differ = one.to.args.iter().zip(&other.to.args).filter(|(a, b)| a != b).count();
    if !is_ahead || differ > MOST_CHOSEN {
        return false;
    }
    let loc = func.block(block).term_loc;
    for side in [one.through, other.through].into_iter().flatten() {
        let insts = std::mem::take(&mut func.block_mut(side).insts);
        func.block_mut(block).insts.extend(insts);
        func.block_mut(side).term = Terminator::Exit;
    }
    let choose = |func: &mut Function, (a, b): (Value, Value)| {
        let ty = func.ty(a);
        if a == b { a } else { func.append_value(block, Op::Select, vec![cond, a, b], ty, loc) }
    };
    let pairs: Vec<(Value, Value)> = one.to.args.into_iter().zip(other.to.args).collect();
    let args = pairs.into_iter().map(|pair| choose(func, pair)).collect();
    func.block_mut(block).term = Terminator::Jump(Target { block: join, args });
    true
}

#[cfg(test)]
mod tests {
    use simt_ir::{Access, FunctionBuilder, IntCmp, Program, Signature, Space, SpecialReg, Type};

    use super::*;

    /// `if (tid < 5) { if (tid < 3) x = side(tid) else x = 7 } else x = 9`, and what is stored.
    fn nested(side: impl Fn(&mut FunctionBuilder, Value) -> Value, uniform: bool) -> Function {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(0)), &[], Type::I32);
        let x = b.var(Type::I32);
        let [inner, small, large, other, after] = [(); 5].map(|()| b.block());
        let below = |b: &mut FunctionBuilder, limit: u64, then: Block, otherwise: Block| {
            let limit = b.constant(Type::I32, limit);
            let cond = b.inst(Op::IntCmp(IntCmp::LtS), &[tid, limit], Type::Pred);
            let [then, otherwise] = [then, otherwise].map(Target::new);
            b.terminate(Terminator::Branch { cond, then, otherwise, uniform });
        };
        below(&mut b, 5, inner, other);
        b.switch_to(inner);
        below(&mut b, 3, small, large);
        b.switch_to(small);
        let value = side(&mut b, tid);
        b.write(x, value);
        b.terminate(Terminator::Jump(Target::new(after)));
        for (block, number) in [(large, 7), (other, 9)] {
            b.switch_to(block);
            let value = b.constant(Type::I32, number);
            b.write(x, value);
            b.terminate(Terminator::Jump(Target::new(after)));
        }
        b.switch_to(after);
        let (zero, value) = (b.constant(Type::I64, 0), b.read(x));
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[zero, value]);
        b.terminate(Terminator::Exit);
        b.finish()
    }

    /// How many numbers are chosen, and how many branches are left, by what computes the first number.
    fn chosen(side: impl Fn(&mut FunctionBuilder, Value) -> Value, uniform: bool) -> (usize, usize) {
        let mut func = nested(side, uniform);
        select(&mut func);
        let program = Program { functions: vec![func.clone()], ..Program::default() };
        simt_ir::verify(&program).expect("it stays well formed");
        let cfg = Cfg::new(&func);
        let insts = cfg.order().iter().flat_map(|block| &func.block(*block).insts);
        let selects = insts.filter(|inst| func.inst(**inst).op == Op::Select).count();
        let branches = cfg.order().iter().filter(|block| cfg.succs(**block).len() > 1).count();
        (selects, branches)
    }

    #[test]
    fn branches_in_branches_become_selections() {
        let twice = |b: &mut FunctionBuilder, tid| b.inst(Op::Int(IntBinary::Add), &[tid, tid], Type::I32);
        assert_eq!(chosen(twice, false), (2, 0));
    }

    #[test]
    fn what_has_an_effect_or_takes_long_is_left_to_those_who_go_there() {
        let loaded = |b: &mut FunctionBuilder, _| {
            let zero = b.constant(Type::I64, 0);
            b.inst(Op::Load(Access::weak(Space::Global, 0)), &[zero], Type::I32)
        };
        assert_eq!(chosen(loaded, false), (0, 2));
        let divided = |b: &mut FunctionBuilder, tid| b.inst(Op::Int(IntBinary::DivU), &[tid, tid], Type::I32);
        assert_eq!(chosen(divided, false), (0, 2));
        let often = |b: &mut FunctionBuilder, tid| {
            (0..=MOST_WORK).fold(tid, |sum, _| b.inst(Op::Int(IntBinary::Add), &[sum, tid], Type::I32))
        };
        assert_eq!(chosen(often, false), (0, 2));
    }

    #[test]
    fn what_all_lanes_decide_alike_stays_a_branch() {
        let same = |_: &mut FunctionBuilder, tid| tid;
        assert_eq!(chosen(same, false), (2, 0));
        assert_eq!(chosen(same, true), (0, 2));
    }
}
