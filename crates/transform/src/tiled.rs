//! Kernels whose blocks load what others in their row of the grid load, and what others in their column do.
//!
//! A product of matrices is one: a block loads rows of the first as its row of the grid says, and columns of the second as its column
//! says. Whoever runs blocks row by row comes upon a column again only a whole row later, when other columns have taken its place in the caches.

use simt_ir::{Op, Space, SpecialReg, Value};

use crate::Prepared;

/// Of what indices of blocks a value depends: a bit for each axis.
type Axes = u8;

const X: Axes = 1;
const Y: Axes = 2;

/// Whether in loops of the kernel some loads depend on where a block is in x alone, and others on where it is in y alone.
pub fn is_tiled(p: &Prepared) -> bool {
    let axes = axes(p);
    let blocks = p.cfg.order().iter().filter(|block| p.loops.innermost(**block).is_some());
    let insts = blocks.flat_map(|block| &p.func.block(*block).insts).map(|inst| p.func.inst(*inst));
    let loads = insts.filter_map(|data| match data.op {
        Op::Load(access) if matches!(access.space, Space::Global | Space::Generic) => {
            Some(axes[data.args[0].index()])
        }
        _ => None,
    });
    let (mut x, mut y) = (false, false);
    for of in loads {
        x |= of == X;
        y |= of == Y;
    }
    // What the program prints would come in an order that surprises.
    let mut insts = p.cfg.order().iter().flat_map(|block| &p.func.block(*block).insts);
    x && y && !insts.any(|inst| matches!(p.func.inst(*inst).op, Op::Syscall(_)))
}

/// For each value, of what its number depends. What is loaded depends on what its address does.
fn axes(p: &Prepared) -> Vec<Axes> {
    let func = &p.func;
    let mut axes = vec![0; func.value_count()];
    let mut changed = true;
    while changed {
        changed = false;
        for &block in p.cfg.order() {
            let data = func.block(block);
            for inst in &data.insts {
                let inst = func.inst(*inst);
                let of = of_op(&inst.op) | inst.args.iter().fold(0, |all, arg| all | axes[arg.index()]);
                inst.results.iter().for_each(|result| changed |= add(&mut axes, *result, of));
            }
            for target in data.term.targets() {
                for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
                    let of = axes[arg.index()];
                    changed |= add(&mut axes, *param, of);
                }
            }
        }
    }
    axes
}

fn of_op(op: &Op) -> Axes {
    match op {
        Op::SpecialReg(SpecialReg::CtaId(0)) => X,
        Op::SpecialReg(SpecialReg::CtaId(1)) => Y,
        Op::SpecialReg(
            SpecialReg::Tid(_) | SpecialReg::Ntid(_) | SpecialReg::NctaId(_) | SpecialReg::LaneId,
        ) => 0,
        // Anything.
        Op::SpecialReg(_) | Op::Atomic(..) | Op::AtomicCas(_) | Op::Call(_) | Op::CallIndirect(_) => X | Y,
        _ => 0,
    }
}

fn add(axes: &mut [Axes], value: Value, more: Axes) -> bool {
    let known = &mut axes[value.index()];
    let before = *known;
    *known |= more;
    *known != before
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{Access, Convert, FunctionBuilder, IntBinary, IntCmp, Signature, Target, Terminator, Type};

    use super::*;

    /// A loop that loads from where each of two pairs of numbers says, which are told where a block is in x and in y and how often the loop has run.
    fn is_tiled_by(places: impl Fn(&mut FunctionBuilder, [Value; 3]) -> [Value; 2]) -> bool {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let base = b.inst(Op::Load(Access::weak(Space::Param, 0)), &[zero], Type::I64);
        let [x, y] = [0, 1].map(|axis| b.inst(Op::SpecialReg(SpecialReg::CtaId(axis)), &[], Type::I32));
        let round = b.var(Type::I32);
        let (none, one, limit) =
            (b.constant(Type::I32, 0), b.constant(Type::I32, 1), b.constant(Type::I32, 9));
        b.write(round, none);
        let (body, end) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let at = b.read(round);
        let places = places(&mut b, [x, y, at]);
        let loaded = places.map(|place| {
            let wide = b.inst(Op::Convert(Convert::SExt), &[place], Type::I64);
            let address = b.inst(Op::Int(IntBinary::Add), &[base, wide], Type::I64);
            b.inst(Op::Load(Access::weak(Space::Global, 0)), &[address], Type::I32)
        });
        b.effect(Op::Store(Access::weak(Space::Global, 4096)), &[base, loaded[0]]);
        b.effect(Op::Store(Access::weak(Space::Global, 8192)), &[base, loaded[1]]);
        let next = b.inst(Op::Int(IntBinary::Add), &[at, one], Type::I32);
        b.write(round, next);
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[next, limit], Type::Pred);
        let (then, otherwise) = (Target::new(body), Target::new(end));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        b.switch_to(end);
        b.terminate(Terminator::Exit);
        is_tiled(&crate::prepare(b.finish(), true, &Shape::of([4, 4, 1], [32, 1, 1])).unwrap())
    }

    fn sum(b: &mut FunctionBuilder, one: Value, other: Value) -> Value {
        b.inst(Op::Int(IntBinary::Add), &[one, other], Type::I32)
    }

    #[test]
    fn rows_of_one_and_columns_of_the_other_make_a_product() {
        assert!(is_tiled_by(|b, [x, y, at]| [sum(b, y, at), sum(b, at, x)]));
    }

    #[test]
    fn what_each_block_loads_alone_or_all_do_is_no_tile() {
        assert!(!is_tiled_by(|b, [x, y, at]| {
            let both = sum(b, x, y);
            [sum(b, both, at), sum(b, at, both)]
        }));
        assert!(!is_tiled_by(|b, [x, _, at]| [sum(b, x, at), at]));
        assert!(!is_tiled_by(|_, [_, _, at]| [at, at]));
    }
}
