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
