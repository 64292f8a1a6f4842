//! In which lanes a value is wanted.
//!
//! A warp adds up what its lanes have by shuffles, each time with lanes half as far away, and then one lane goes on alone. Of the last sum only that
//! lane's is wanted, of the one before two lanes', and so on: the others may have anything. So a shuffle need not give them what it says, and may
//! leave whole registers out.

use kernel_abi::{Shape, WARP, XLayout};
use simt_ir::{
    Block, Cfg, Function, Inst, InstData, IntBinary, IntCmp, IntUnary, Op, ShuffleMode, SpecialReg,
    Terminator, Type, Value, eval,
};

use crate::Shapes;

const ALL: u32 = u32::MAX;
/// How far a condition that is made of others is followed.
const DEPTH: u32 = 8;

/// The lanes of a warp that want each value, or of each of a gang's warps.
#[derive(Debug, Default)]
pub struct Wanted(Vec<u32>);

impl Wanted {
    /// Finds them where that matters: in functions that shuffle.
    pub fn find(func: &Function, cfg: &Cfg, shapes: &Shapes, shape: &Shape) -> Wanted {
        let mut insts = cfg.order().iter().flat_map(|block| &func.block(*block).insts);
        if !insts.any(|inst| is_one_way(func.inst(*inst))) {
            return Wanted::default();
        }
        let come = Lanes { func, shapes, shape }.come(cfg);
        let mut wanted = vec![0; func.value_count()];
        loop {
            let before = wanted.clone();
            for &block in cfg.order().iter().rev() {
                want(func, shapes, block, come[block.index()], &mut wanted);
            }
            if wanted == before {
                return Wanted(wanted);
            }
        }
    }

    /// One bit for each lane; all where nobody has looked.
    pub fn of(&self, value: Value) -> u32 {
        self.0.get(value.index()).copied().unwrap_or(ALL)
    }

    /// The lane that each lane may read where a shuffle says this: those in which the result is not wanted stay near to what they are among.
    pub fn near(&self, result: Value, sources: [u32; 32]) -> [u32; 32] {
        let wanted = self.of(result);
        let is_wanted = |at: u32| wanted >> at & 1 == 1;
        let at_once =
            |size: u32| (0..32).all(|at| !is_wanted(at) || at / size == sources[at as usize] / size);
        let size = [1, 2, 4, 8, 16].into_iter().find(|size| at_once(*size)).unwrap_or(32);
        // As the first of those that are wanted does, around in groups of so many lanes: one exchange does that in all of a register.
        let step = (0..32).find(|at| is_wanted(*at)).map_or(0, |at| sources[at as usize].wrapping_sub(at));
        std::array::from_fn(|at| match at as u32 {
            at if is_wanted(at) => sources[at as usize],
            at => at - at % size + at.wrapping_add(step) % size,
        })
    }
}

/// Whether lanes of a shuffle that are not wanted could save something.
fn is_one_way(data: &InstData) -> bool {
    matches!(data.op, Op::Shuffle(ShuffleMode::Up | ShuffleMode::Down))
}

/// Adds what a block wants, to which so many lanes come.
fn want(func: &Function, shapes: &Shapes, block: Block, come: u32, wanted: &mut [u32]) {
    let data = func.block(block);
    match &data.term {
        Terminator::Branch { cond: value, .. } | Terminator::Switch { index: value, .. } => {
            wanted[value.index()] = ALL;
        }
        Terminator::Return(values) => values.iter().for_each(|value| wanted[value.index()] = ALL),
        Terminator::Jump(_) | Terminator::Exit | Terminator::Trap => {}
    }
    for target in data.term.targets() {
        for (param, arg) in func.block(target.block).params.iter().zip(&target.args) {
            // What comes to one value for all lanes may be taken from any.
            let lanes = if shapes.of(*param).is_varying() { wanted[param.index()] } else { ALL };
            wanted[arg.index()] |= lanes;
        }
    }
    for inst in data.insts.iter().rev() {
        want_operands(func, shapes, *inst, come, wanted);
    }
}

fn want_operands(func: &Function, shapes: &Shapes, inst: Inst, come: u32, wanted: &mut [u32]) {
    let data = func.inst(inst);
    let varies = |value: &Value| shapes.of(*value).is_varying() || func.ty(*value) == Type::Pred;
    let of_results = data.results.iter().fold(0, |lanes, result| lanes | wanted[result.index()]);
    let lanes = match data.op {
        Op::Shuffle(mode) => {
            if let Some(sources) = sources(func, data, mode) {
                let of_first = wanted[data.results[0].index()];
                wanted[data.args[0].index()] |= (0..32)
                    .filter(|at| of_first >> at & 1 == 1)
                    .fold(0, |lanes, at| lanes | 1 << sources[at].0);
                return;
            }
            ALL
        }
        Op::Load(_) | Op::Store(_) | Op::Atomic(..) | Op::AtomicCas(_) => come,
        Op::Unanimous | Op::AnyLane => ALL,
        op if op.is_pure() && data.results.iter().all(varies) => of_results,
        _ => ALL,
    };
    for arg in &data.args {
        wanted[arg.index()] |= lanes;
    }
}

/// The lane that each lane reads in a shuffle of all by constants, and whether it is in range.
fn sources(func: &Function, data: &InstData, mode: ShuffleMode) -> Option<[(u32, bool); 32]> {
    let all_take_part = |members| func.constant(members) == Some(ALL.into());
    let (lane, clamp) = (func.constant(data.args[1])?, func.constant(data.args[2])?);
    let is_known = data.args.get(3).is_none_or(|members| all_take_part(*members));
    is_known.then(|| mode.sources(lane as u32, clamp as u32))
}

/// Finds to which blocks lanes cannot come.
struct Lanes<'a> {
    func: &'a Function,
    shapes: &'a Shapes,
    shape: &'a Shape,
}

impl Lanes<'_> {
    /// The lanes that may come to each block.
    fn come(&self, cfg: &Cfg) -> Vec<u32> {
        let mut come = vec![0; self.func.blocks().len()];
        if let Some(first) = cfg.order().first() {
            come[first.index()] = ALL;
        }
        loop {
            let before = come.clone();
            for &block in cfg.order() {
                let here = come[block.index()];
                let term = &self.func.block(block).term;
                for target in term.targets() {
                    come[target.block.index()] |= match term {
                        Terminator::Branch { cond, then, otherwise, .. } if then.block != otherwise.block => {
                            here & self.where_is(*cond, target.block == then.block, DEPTH)
                        }
                        _ => here,
                    };
                }
            }
            if come == before {
                return come;
            }
        }
    }

    /// The lanes in which a predicate may be so.
    fn where_is(&self, pred: Value, holds: bool, depth: u32) -> u32 {
        if let Some(numbers) = self.shapes.known(pred) {
            let lanes = (0..).zip(&**numbers).filter(|(_, number)| **number == u64::from(holds));
            return lanes.fold(0, |lanes, (at, _)| lanes | 1 << (at % WARP));
        }
        let Some(data) = self.func.def_inst(pred).filter(|_| depth > 0) else { return ALL };
        match data.op {
            Op::IntUnary(IntUnary::Not) => self.where_is(data.args[0], !holds, depth - 1),
            Op::Int(op @ (IntBinary::And | IntBinary::Or)) => {
                let [first, second] = [0, 1].map(|at| self.where_is(data.args[at], holds, depth - 1));
                if (op == IntBinary::And) == holds { first & second } else { first | second }
            }
            Op::IntCmp(cmp) => self.where_thread_is(if holds { cmp } else { cmp.inverse() }, data),
            _ => ALL,
        }
    }

    /// The lanes in which a thread's number in x may compare so with a constant: it ends in the lane's, and is no less.
    fn where_thread_is(&self, cmp: IntCmp, data: &InstData) -> u32 {
        let number = self.func.def_inst(data.args[0]).map(|data| data.op);
        let is_thread = number == Some(Op::SpecialReg(SpecialReg::Tid(0))) && self.shape.x == XLayout::Rows;
        let Some(constant) = self.func.constant(data.args[1]).filter(|_| is_thread) else { return ALL };
        let may = |lane: u32| match cmp {
            IntCmp::Eq => u64::from(lane) == constant % u64::from(WARP),
            IntCmp::LtS | IntCmp::LtU | IntCmp::LeS | IntCmp::LeU => {
                let types = [Type::I32; 2];
                eval::eval(Op::IntCmp(cmp), &[lane.into(), constant], &types, Type::Pred) == Some(1)
            }
            _ => true,
        };
        (0..WARP).filter(|lane| may(*lane)).fold(0, |lanes, lane| lanes | 1 << lane)
    }
}
