//! In which lanes a value is wanted.
//!
//! A warp adds up what its lanes have by shuffles, each time with lanes half as far away, and then one lane goes on alone. Of the last sum only that
//! lane's is wanted, of the one before two lanes', and so on: the others may have anything. So a shuffle need not give them what it says, and may
//! leave whole registers out.

use kernel_abi::{Shape, XLayout};
use simt_ir::{
    Block, Cfg, Function, Inst, InstData, IntBinary, IntCmp, IntUnary, Op, ShuffleMode, SpecialReg,
    Terminator, Type, Value, eval,
};

use crate::Shapes;

const ALL: u32 = u32::MAX;
/// How far back numbers of lanes are followed.
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
        let come = Lanes { func, shape }.come(cfg);
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
                let read = |at: usize| 1 << sources[at].0;
                let of_first = wanted[data.results[0].index()];
                wanted[data.args[0].index()] |=
                    (0..32).filter(|at| of_first >> at & 1 == 1).fold(0, |lanes, at| lanes | read(at));
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
    is_known.then(|| std::array::from_fn(|at| mode.source(at as u32, lane as u32, clamp as u32)))
}

/// What is known of a value in each lane.
enum Number {
    /// All of it.
    Is([u64; 32]),
    /// It is no less than this, and the same in its lowest five bits.
    EndsIn([u64; 32]),
}

/// Finds to which blocks lanes cannot come.
struct Lanes<'a> {
    func: &'a Function,
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
        let Some(data) = self.func.def_inst(pred).filter(|_| depth > 0) else { return ALL };
        match data.op {
            Op::IntUnary(IntUnary::Not) => self.where_is(data.args[0], !holds, depth - 1),
            Op::Int(op @ (IntBinary::And | IntBinary::Or)) => {
                let [first, second] = [0, 1].map(|at| self.where_is(data.args[at], holds, depth - 1));
                if (op == IntBinary::And) == holds { first & second } else { first | second }
            }
            Op::IntCmp(cmp) => self.where_compared(cmp, data, holds),
            _ => ALL,
        }
    }

    fn where_compared(&self, cmp: IntCmp, data: &InstData, holds: bool) -> u32 {
        let types = [0, 1].map(|at| self.func.ty(data.args[at]));
        let numbers = [0, 1].map(|at| self.number(data.args[at], DEPTH));
        let compare = |cmp: IntCmp, first: u64, second: u64| {
            eval::eval(Op::IntCmp(cmp), &[first, second], &types, Type::Pred) != Some(0)
        };
        let [Some(first), Some(second)] = numbers else { return ALL };
        let may = |lane: usize| match (&first, &second) {
            (Number::Is(first), Number::Is(second)) => compare(cmp, first[lane], second[lane]) == holds,
            (Number::EndsIn(first), Number::Is(second)) => match (cmp, holds) {
                (IntCmp::Eq, true) | (IntCmp::Ne, false) => first[lane] % 32 == second[lane] % 32,
                // What is not below this is not below what is no less.
                (IntCmp::LtS | IntCmp::LtU | IntCmp::LeS | IntCmp::LeU, true) => {
                    compare(cmp, first[lane], second[lane])
                }
                (IntCmp::GeS | IntCmp::GeU | IntCmp::GtS | IntCmp::GtU, false) => {
                    !compare(cmp, first[lane], second[lane])
                }
                _ => true,
            },
            _ => true,
        };
        (0..32).filter(|lane| may(*lane)).fold(0, |lanes, lane| lanes | 1 << lane)
    }

    fn number(&self, value: Value, depth: u32) -> Option<Number> {
        let data = self.func.def_inst(value).filter(|_| depth > 0)?;
        match data.op {
            Op::SpecialReg(SpecialReg::LaneId) => {
                return Some(Number::Is(std::array::from_fn(|at| at as u64)));
            }
            Op::SpecialReg(SpecialReg::Tid(0)) => {
                return match self.shape.x {
                    XLayout::Rows => Some(Number::EndsIn(std::array::from_fn(|at| at as u64))),
                    XLayout::Period(period) => {
                        Some(Number::Is(std::array::from_fn(|at| at as u64 % u64::from(period))))
                    }
                    XLayout::Irregular => None,
                };
            }
            Op::Const(bits) => return Some(Number::Is([bits; 32])),
            op if !op.is_pure() || data.results.len() != 1 => return None,
            _ => {}
        }
        let numbers: Option<Vec<Number>> = data.args.iter().map(|arg| self.number(*arg, depth - 1)).collect();
        let types: Vec<Type> = data.args.iter().map(|arg| self.func.ty(*arg)).collect();
        let ty = self.func.ty(value);
        // Of a number whose lowest bits are known, those that an operation asks for.
        let asks_for_lowest = |second: &[u64; 32]| match data.op {
            Op::Int(IntBinary::And) => second.iter().all(|mask| *mask < 32),
            Op::Int(IntBinary::RemU | IntBinary::RemS) => second.iter().all(|by| *by > 0 && 32 % by == 0),
            _ => false,
        };
        let args = match &numbers?[..] {
            [Number::EndsIn(first), Number::Is(second)] if asks_for_lowest(second) => vec![*first, *second],
            numbers => {
                let is = |number: &Number| if let Number::Is(lanes) = number { Some(*lanes) } else { None };
                numbers.iter().map(is).collect::<Option<Vec<_>>>()?
            }
        };
        let mut lanes = [0; 32];
        for (at, lane) in lanes.iter_mut().enumerate() {
            let args: Vec<u64> = args.iter().map(|arg| arg[at]).collect();
            *lane = eval::eval(data.op, &args, &types, ty)?;
        }
        Some(Number::Is(lanes))
    }
}
