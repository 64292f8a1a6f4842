//! Addresses that a loop moves on by the same in all rows, or in all lanes.
//!
//! Where a warp covers several rows of a block, an address is a vector: the first of each row. A loop that moves it on adds to that vector,
//! and takes the rows' addresses out of it for each access, which is a good part of the work of a loop over tiles, and work for the same units as
//! its arithmetic: what is accessed next waits for what is computed now. Here the address before the loop stays as it is, and beside it a number, the
//! same for all lanes, counts how far it has moved. The rows' addresses are taken out of the vector once.
//!
//! Likewise where the lanes enter a loop at places that nothing is known of, as after one that some of them have left sooner: how they lie to each other is the
//! same in every iteration, and found out once (`emit::regular`).

use std::collections::{HashMap, HashSet};

use simt_ir::{Block, Cfg, Def, Function, IntBinary, Op, Space, Type, Value};

use crate::{LaneShape, Loops, Shapes, abreast};

/// How far definitions are followed: loops are unrolled a few times, and add as often.
const DEPTH: u32 = 24;

/// A parameter of a loop that is what enters, moved.
struct Drift {
    header: Block,
    param: Value,
    entering: (Block, Value),
    /// What is added, by which edge.
    moves: Vec<(Block, Moves)>,
}

/// What is added to a parameter on the way round a loop.
#[derive(Default)]
struct Moves {
    added: Vec<Value>,
    /// The sums, and the parameters of blocks on the way.
    sums: Vec<Value>,
}

/// After: what a loop moves on by the same in all rows, or lanes, is what it was before the loop and a uniform number. Keeps loops closed. Returns whether anything
/// changed.
pub fn part(func: &mut Function, cfg: &Cfg, loops: &Loops, shapes: &Shapes) -> bool {
    let finder = Finder { func, cfg, loops, shapes, addressed: addressed(func, shapes) };
    let found: Vec<Drift> = loops.ids().flat_map(|id| finder.of_loop(loops.get(id).header)).collect();
    let mut moved = HashMap::new();
    for drift in &found {
        moved.insert(drift.param, drift.rewrite(func));
    }
    func.map_uses(|value| moved.get(&value).copied().unwrap_or(value));
    func.retain_params(|_, param| !moved.contains_key(&param));
    let sums = found.iter().flat_map(|drift| &drift.moves).flat_map(|(_, moves)| &moves.sums);
    remove_unused(func, sums.copied().collect());
    !found.is_empty()
}

/// Removes those of these sums and parameters that nothing uses: they would be kept from one iteration to the next all the same.
fn remove_unused(func: &mut Function, mut sums: HashSet<Value>) {
    loop {
        let blocks = || func.blocks().map(|block| func.block(block));
        let insts = blocks().flat_map(|block| &block.insts).flat_map(|inst| &func.inst(*inst).args).copied();
        let used: HashSet<Value> = insts.chain(blocks().flat_map(|block| block.term.uses())).collect();
        let (kept, unused): (HashSet<_>, HashSet<_>) = sums.into_iter().partition(|sum| used.contains(sum));
        if unused.is_empty() {
            return;
        }
        sums = kept;
        for value in unused {
            match func.def(value) {
                Def::Result(sum, _) => {
                    for block in func.blocks() {
                        func.block_mut(block).insts.retain(|inst| *inst != sum);
                    }
                }
                Def::Param(..) => func.retain_params(|_, param| param != value),
                Def::Removed => {}
            }
        }
    }
}

struct Finder<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    loops: &'a Loops,
    shapes: &'a Shapes,
    /// What memory is accessed at, but for what is the same for all lanes.
    addressed: HashSet<Value>,
}

/// What accesses of global memory have for addresses, once what is the same for all lanes is taken off.
fn addressed(func: &Function, shapes: &Shapes) -> HashSet<Value> {
    let insts = func.blocks().flat_map(|block| &func.block(block).insts).map(|inst| func.inst(*inst));
    let addresses = insts.filter_map(|data| match data.op {
        Op::Load(access) | Op::Store(access) => {
            matches!(access.space, Space::Global | Space::Generic).then(|| data.args[0])
        }
        _ => None,
    });
    let start = |mut address: Value| {
        while let Some(data) = func.def_inst(address)
            && data.op == Op::Int(IntBinary::Add)
            && let Some(at) = (0..2).find(|at| shapes.of(data.args[*at]).is_uniform())
        {
            address = data.args[1 - at];
        }
        address
    };
    addresses.map(start).collect()
}

impl Finder<'_> {
    fn of_loop(&self, header: Block) -> Vec<Drift> {
        let params = self.func.block(header).params.iter().enumerate();
        params.filter_map(|(index, param)| self.of_param(header, index, *param)).collect()
    }

    fn of_param(&self, header: Block, index: usize, param: Value) -> Option<Drift> {
        let ty = self.func.ty(param);
        let gains = match self.shapes.of(param) {
            LaneShape::Rows(_) => matches!(ty, Type::I32 | Type::I64),
            LaneShape::Varying => ty == Type::I64 && self.addressed.contains(&param),
            LaneShape::Uniform | LaneShape::Affine(_) => false,
        };
        if !gains {
            return None;
        }
        let mut entering = None;
        let mut moves = Vec::new();
        for &pred in self.cfg.preds(header) {
            let arg = self.arg(pred, header, index)?;
            if self.loops.is_back_edge(pred, header) {
                moves.push((pred, self.moves(arg, param, DEPTH)?));
            } else if entering.replace((pred, arg)).is_some() {
                return None;
            }
        }
        Some(Drift { header, param, entering: entering?, moves })
    }

    /// What one block passes to another, if it does so in one way.
    fn arg(&self, from: Block, to: Block, index: usize) -> Option<Value> {
        let targets = self.func.block(from).term.targets();
        let mut args = targets.iter().filter(|target| target.block == to).map(|target| target.args[index]);
        match (args.next(), args.next()) {
            (Some(arg), None) => Some(arg),
            _ => None,
        }
    }

    /// What has been added to `param`, if that is what the value is.
    fn moves(&self, value: Value, param: Value, depth: u32) -> Option<Moves> {
        if value == param {
            return Some(Moves::default());
        }
        let depth = depth.checked_sub(1)?;
        match self.func.def(value) {
            Def::Result(sum, _) => {
                let data = self.func.inst(sum);
                if data.op != Op::Int(IntBinary::Add) {
                    return None;
                }
                let [left, right] = data.args[..] else { return None };
                let (base, added) =
                    if self.shapes.of(left).is_uniform() { (right, left) } else { (left, right) };
                if !self.shapes.of(added).is_uniform() {
                    return None;
                }
                let mut moves = self.moves(base, param, depth)?;
                moves.added.push(added);
                moves.sums.push(value);
                Some(moves)
            }
            Def::Param(block, index) => {
                let [pred] = self.cfg.preds(block) else { return None };
                if !self.shapes.leave_together(self.loops, *pred, block) {
                    return None;
                }
                let arg = self.arg(*pred, block, index as usize)?;
                let mut moves = self.moves(arg, param, depth)?;
                moves.sums.push(value);
                Some(moves)
            }
            Def::Removed => None,
        }
    }
}

impl Drift {
    /// What stands for the parameter, which is not used any more.
    fn rewrite(&self, func: &mut Function) -> Value {
        let ty = func.ty(self.param);
        let loc = func.block(self.header).term_loc;
        let way = func.add_param(self.header, ty);
        let (before, start) = self.entering;
        let zero = func.append_value(before, Op::Const(0), Vec::new(), ty, loc);
        pass(func, before, self.header, zero);
        for (latch, moves) in &self.moves {
            let mut sum = way;
            for &step in &moves.added {
                sum = func.append_value(*latch, Op::Int(IntBinary::Add), vec![sum, step], ty, loc);
            }
            pass(func, *latch, self.header, sum);
        }
        let insts = &func.block(self.header).insts;
        let at = insts.iter().take_while(|inst| abreast::suspends(&func.inst(**inst).op)).count();
        func.insert(self.header, at, Op::Int(IntBinary::Add), vec![start, way], ty, loc)
    }
}

/// Has the edge from one block to another pass one more argument.
fn pass(func: &mut Function, from: Block, to: Block, arg: Value) {
    let targets = func.block_mut(from).term.targets_mut();
    targets.into_iter().filter(|target| target.block == to).for_each(|target| target.args.push(arg));
}

#[cfg(test)]
mod tests {
    use kernel_abi::Shape;
    use simt_ir::{
        Access, Convert, FunctionBuilder, Inst, IntCmp, Signature, SpecialReg, Target, Terminator,
    };

    use super::*;
    use crate::Prepared;

    fn int(b: &mut FunctionBuilder, op: IntBinary, x: Value, y: Value) -> Value {
        let ty = b.func().ty(x);
        b.inst(Op::Int(op), &[x, y], ty)
    }

    /// A loop that loads from a row of its thread's and moves on by `step`, which is told a number that is the same for all and one that is not.
    fn walk(step: impl FnOnce(Value, Value) -> Value, block: [u32; 3]) -> Prepared {
        walk_from(false, step, block)
    }

    /// Likewise; `anywhere`: from what is found in memory.
    fn walk_from(anywhere: bool, step: impl FnOnce(Value, Value) -> Value, block: [u32; 3]) -> Prepared {
        let mut b = FunctionBuilder::new("kernel", Signature::default());
        let zero = b.constant(Type::I64, 0);
        let param = |b: &mut FunctionBuilder, at| {
            b.inst(Op::Load(Access::weak(Space::Param, at)), &[zero], Type::I64)
        };
        let (base, pitch, limit) = (param(&mut b, 0), param(&mut b, 8), param(&mut b, 16));
        let tid = |b: &mut FunctionBuilder, axis| {
            let tid = b.inst(Op::SpecialReg(SpecialReg::Tid(axis)), &[], Type::I32);
            b.inst(Op::Convert(Convert::ZExt), &[tid], Type::I64)
        };
        let (x, y) = (tid(&mut b, 0), tid(&mut b, 1));
        let row = int(&mut b, IntBinary::Mul, y, pitch);
        let row = int(&mut b, IntBinary::Add, base, row);
        let mut start = int(&mut b, IntBinary::Add, row, x);
        if anywhere {
            start = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[start], Type::I64);
        }
        let at = b.var(Type::I64);
        b.write(at, start);
        let (body, end) = (b.block(), b.block());
        b.terminate(Terminator::Jump(Target::new(body)));
        b.switch_to(body);
        let here = b.read(at);
        let value = b.inst(Op::Load(Access::weak(Space::Global, 0)), &[here], Type::I64);
        let next = int(&mut b, IntBinary::Add, here, step(pitch, row));
        b.write(at, next);
        let cond = b.inst(Op::IntCmp(IntCmp::LtU), &[limit, limit], Type::Pred);
        let (then, otherwise) = (Target::new(body), Target::new(end));
        b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
        b.switch_to(end);
        b.effect(Op::Store(Access::weak(Space::Global, 0)), &[base, value]);
        b.terminate(Terminator::Exit);
        crate::prepare(b.finish(), true, &Shape::of([1; 3], block)).unwrap()
    }

    /// The shapes of what goes round the loop, and sums in it.
    fn carried(p: &Prepared) -> (Vec<LaneShape>, usize) {
        let header = p.loops.get(crate::LoopId(0)).header;
        let block = p.func.block(header);
        let is_sum = |inst: &&Inst| p.func.inst(**inst).op == Op::Int(IntBinary::Add);
        let blocks = p.loops.get(crate::LoopId(0)).blocks.iter();
        let sums = blocks.flat_map(|block| &p.func.block(*block).insts).filter(is_sum).count();
        (block.params.iter().map(|param| p.shapes.of(*param).clone()).collect(), sums)
    }

    #[test]
    fn what_all_rows_move_by_is_counted_once() {
        let moved = walk(|pitch, _| pitch, [16, 16, 1]);
        assert_eq!(carried(&moved), (vec![LaneShape::Uniform], 2), "how far, and the address");
    }

    #[test]
    fn rows_that_move_by_themselves_stay_together() {
        let p = walk(|_, row| row, [16, 16, 1]);
        assert!(matches!(carried(&p), (shapes, 1) if matches!(shapes[..], [LaneShape::Rows(_)])));
    }

    #[test]
    fn lanes_that_begin_anywhere_move_together() {
        let p = walk_from(true, |pitch, _| pitch, [32, 8, 1]);
        assert_eq!(carried(&p), (vec![LaneShape::Uniform], 2), "how far, and the address");
    }

    #[test]
    fn where_a_warp_has_one_row_there_is_nothing_to_part() {
        let p = walk(|pitch, _| pitch, [32, 8, 1]);
        assert!(matches!(carried(&p), (shapes, 1) if matches!(shapes[..], [LaneShape::Affine(_)])));
    }
}
