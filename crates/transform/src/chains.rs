//! What a kernel waits for that computes much from little: one result after another.
//!
//! A processor looks ahead over so many instructions. In a kernel without loops whose warp is longer than that, most of what it sees are the steps
//! of one long formula, each of which needs the one before; the next warp, which does not, is out of sight.

use simt_ir::{Approx, Block, Convert, FloatBinary, FloatUnary, InstData, Op, Space, Type, Value};

use crate::{LaneShape, Prepared};

/// What code takes that runs once from start to end: roughly, and for one register of each value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Instructions, or cycles of the unit that does them where those are more.
    pub(crate) work: u32,
    /// Cycles from the first operand to the last result.
    pub(crate) latency: u32,
}

/// What a kernel's operations on vectors take, if it runs from start to end with the same lanes, but for a little, and accesses memory in order.
pub(crate) fn of(p: &Prepared) -> Option<Cost> {
    if p.loops.count() > 0 {
        return None;
    }
    let mut chain = Chain::new(p);
    let mut work_of = vec![0_u32; p.func.blocks().len()];
    for &block in p.cfg.order() {
        let data = p.func.block(block);
        for inst in &data.insts {
            work_of[p.linear.mask_of(block).index()] += chain.add(p.func.inst(*inst))?;
        }
        for target in data.term.targets() {
            for (param, arg) in p.func.block(target.block).params.iter().zip(&target.args) {
                chain.pass(*arg, *param);
            }
        }
    }
    let most: Option<u32> = p.cfg.order().iter().map(|block: &Block| work_of[block.index()]).max();
    // Where lanes part, more of them part more often.
    (most? * 8 >= chain.whole.work * 7).then_some(chain.whole)
}

/// Operations one after another, each as soon as its operands are there.
struct Chain<'a> {
    p: &'a Prepared,
    /// When each value is there.
    ready: Vec<u32>,
    whole: Cost,
}

impl<'a> Chain<'a> {
    fn new(p: &'a Prepared) -> Chain<'a> {
        Chain { p, ready: vec![0; p.func.value_count()], whole: Cost::default() }
    }

    /// Adds an operation; answers its work.
    fn add(&mut self, inst: &InstData) -> Option<u32> {
        let cost = of_inst(self.p, inst)?;
        let begin = inst.args.iter().map(|arg| self.ready[arg.index()]).max().unwrap_or(0);
        let end = begin + cost.latency;
        inst.results.iter().for_each(|result| self.ready[result.index()] = end);
        self.whole = Cost { work: self.whole.work + cost.work, latency: self.whole.latency.max(end) };
        Some(cost.work)
    }

    /// A block passes a value on.
    fn pass(&mut self, arg: Value, param: Value) {
        self.ready[param.index()] = self.ready[param.index()].max(self.ready[arg.index()]);
    }
}

/// What the block of a kernel takes that is most of it and in no loop, if there is one. Where most warps do not come does not count.
pub(crate) fn of_main_block(p: &Prepared) -> Option<(Block, Cost)> {
    let works = |block: Block| -> u32 {
        let insts = p.func.block(block).insts.iter().map(|inst| p.func.inst(*inst));
        insts.map(|inst| of_inst(p, inst).map_or(1, |cost| cost.work)).sum()
    };
    let main = p.usual_blocks().max_by_key(|block| works(*block))?;
    let whole: u32 = p.usual_blocks().map(works).sum();
    if p.loops.innermost(main).is_some() || 2 * works(main) < whole {
        return None;
    }
    let mut chain = Chain::new(p);
    for inst in &p.func.block(main).insts {
        chain.add(p.func.inst(*inst))?;
    }
    Some((main, chain.whole))
}

/// What an operation takes, unless that depends on more than its kind.
fn of_inst(p: &Prepared, inst: &InstData) -> Option<Cost> {
    if let Some(access) = inst.op.access() {
        let in_order = *p.shapes.of(inst.args[0]) != LaneShape::Varying;
        return match inst.op {
            Op::Load(_) if access.space == Space::Param => Some(Cost::default()),
            Op::Load(_) if in_order => Some(Cost { work: 1, latency: 8 }),
            Op::Store(_) if in_order => Some(Cost { work: 1, latency: 0 }),
            _ => None,
        };
    }
    if !inst.results.iter().any(|result| p.shapes.of(*result).is_varying()) {
        return Some(Cost::default());
    }
    let ty = inst.args.last().map_or(Type::I32, |arg| p.func.ty(*arg));
    let (work, latency) = of_op(&inst.op)?;
    // Wider values take more registers.
    Some(Cost { work: work * ty.bits().div_ceil(32).max(1), latency })
}

/// Work and latency. Those of a recent processor; of approximations, what their steps come to.
pub(crate) fn of_op(op: &Op) -> Option<(u32, u32)> {
    Some(match op {
        Op::Float(FloatBinary::Div, _) | Op::FloatUnary(FloatUnary::Rcp, _) => (6, 12),
        Op::FloatUnary(FloatUnary::Sqrt, _) => (10, 15),
        Op::Float(..) | Op::Fma(_) => (1, 4),
        Op::MinMax(_) => (2, 4),
        Op::Convert(Convert::FloatToFloat(_)) => (1, 3),
        Op::Approx { func, .. } => match func {
            Approx::Ex2 => (11, 40),
            Approx::Lg2 => (13, 50),
            Approx::Sin | Approx::Cos => (22, 60),
            Approx::Tanh => (28, 80),
            Approx::Rsqrt => (9, 36),
            Approx::Rcp => (6, 12),
            Approx::Sqrt => (10, 15),
            Approx::Div | Approx::DivFull => (9, 16),
        },
        Op::Int(_)
        | Op::IntUnary(_)
        | Op::Shift(_)
        | Op::FloatUnary(..)
        | Op::IntCmp(_)
        | Op::FloatCmp(_)
        | Op::Select
        | Op::Convert(_)
        | Op::CanonNan
        | Op::Unanimous
        | Op::AnyLane => (1, 1),
        _ => return None,
    })
}
