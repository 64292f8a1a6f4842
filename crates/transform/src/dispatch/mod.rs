//! Lanes with a place of their own in the program.
//!
//! Code for a warp runs its lanes in step: where they part, one side runs to the join before the other begins. A thread may rely on the
//! other side going on meanwhile: it may hold the lock that this side spins on, or come to the same `bar.warp.sync` in its own
//! branch. For such kernels control flow is turned inside out. The function is cut into *regions* with one entry each, every lane keeps the
//! number of the region it goes to next, and one loop around all of them runs, each time, one region for the lanes that are
//! there:
//!
//! ```text
//! loop:  pick a region that lanes are at, the next in turn
//!        run it for these lanes, up to where they leave it
//! ```
//!
//! Taking turns is what makes progress fair. Inside a region, control flow is linearised as anywhere else; only what lanes may wait
//! at is cut: loops that poll, block barriers, operations with a member mask. The latter two are done in one place for all their occurrences:
//!
//! * an operation with a member mask waits there until all named lanes that have not ended have come, from wherever. Where all have come
//!   together, as they mostly do, it is done at once instead, and the lanes go on with the next region without another turn;
//! * a barrier waits until no lane of the warp can go on, so that the warp arrives once with all its lanes.
//!
//! `activemask` names no members, and programs take what it yields for those who came to it by whatever way: on a GPU lanes that part are together
//! again where their ways join. So lanes wait before it until no others can come, unless some loop polls: what that waits for may lie behind it.
//!
//! What a lane computes in one region and reads in another waits in a cell, so that the loop is compiled in a time that grows with its
//! regions' sizes, not with what lives across each of them. Values that depend on nothing but the launch are computed before the loop and
//! keep their shapes.

mod regions;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use simt_ir::{
    Block, Cell, Cfg, ClusterBarrier, Function, FunctionBuilder, Inst, IntBinary, IntCmp, IntUnary, Op,
    Refusal, Space, Target, Terminator, Type, Value, Var, VoteMode,
};

use regions::Regions;

/// A function whose lanes have places of their own.
pub struct Dispatched {
    /// The function: a loop around regions.
    pub func: Function,
    /// A block of the loop that is passed when every lane that is left has had its turn and some may wait for other warps.
    pub pause: Block,
}

/// The number of a lane's region when the lane has ended.
const ENDED: u64 = u32::MAX as u64;
/// All lanes.
const EVERYONE: u64 = u32::MAX as u64;
/// The turn of a lane is its region's number, with what comes first as the smaller class above it.
const CLASS_SHIFT: u64 = 24;
/// Regions at or before the one that ran last.
const LATER: u64 = 1 << CLASS_SHIFT;
/// Regions to which others may still come.
const GATHERING: u64 = 2 << CLASS_SHIFT;
/// Barriers.
const AT_BARRIER: u64 = 3 << CLASS_SHIFT;
/// Operations whose other members have not come.
const INCOMPLETE: u64 = 4 << CLASS_SHIFT;
/// Cells above which a block's warps would need too much memory: half a megabyte each.
const MAX_CELLS: usize = 4_000;

/// Gives the lanes of a kernel places of their own, if it is not too large for that. Lanes may wait in loops with these headers. The
/// function's calls have been inlined; it need not be in normal form, and may enter loops in several places.
pub fn dispatch(func: &Function, waiting: &[Block]) -> Option<Dispatched> {
    let mut func = func.clone();
    let first = Block(func.blocks().len() as u32);
    // The entry only computes; the program begins in the block after it.
    let count = func.block(Function::ENTRY).insts.len();
    let hoisted = func.block(Function::ENTRY).insts.iter().position(|inst| !is_free(&func, *inst));
    func.split_block(Function::ENTRY, hoisted.unwrap_or(count));
    func.block_mut(Function::ENTRY).term = Terminator::Jump(Target::new(first));
    let meetings = isolate_meetings(&mut func);
    let masks = if waiting.is_empty() { isolate_masks(&mut func) } else { Vec::new() };
    hoist(&mut func);
    let regions = Regions::new(&func, first, waiting, &meetings, &masks);
    Build::new(&func, regions, meetings)?.build()
}

/// Whether the operation may be done before control comes to it, and is the same whenever it is done.
pub(crate) fn is_free(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::Load(access) => access.space == Space::Param && func.constant(data.args[0]).is_some(),
        op => op.is_pure(),
    }
}

/// An operation at which lanes meet: alone in its block, which jumps to the region where its lanes go on.
#[derive(Clone, Copy)]
struct Meeting {
    inst: Inst,
    after: Block,
}

/// Whether lanes wait for each other at the operation.
fn is_meeting(op: &Op) -> bool {
    op.is_convergent() && !matches!(op, Op::Call(_) | Op::CallIndirect(_) | Op::ActiveMask)
}

/// After: an operation at which lanes meet is alone in its block, unless no lane waits for others there.
fn isolate_meetings(func: &mut Function) -> HashMap<Block, Meeting> {
    let mut meetings = HashMap::new();
    for block in func.blocks() {
        let mut block = block;
        while let Some(at) = func.block(block).insts.iter().position(|inst| {
            let data = func.inst(*inst);
            let waits = data.op.member_mask(data.args.len()).is_some();
            is_meeting(&data.op)
                && (waits || data.op.is_barrier() || matches!(data.op, Op::MatrixMultiply(_)))
        }) {
            let own = func.split_block(block, at);
            let after = func.split_block(own, 1);
            let loc = func.block(after).term_loc;
            for (from, to) in [(block, own), (own, after)] {
                let data = func.block_mut(from);
                data.term = Terminator::Jump(Target::new(to));
                data.term_loc = loc;
            }
            meetings.insert(own, Meeting { inst: func.block(own).insts[0], after });
            block = after;
        }
    }
    meetings
}

/// The blocks that begin by asking which lanes are there. Lanes do not part within a block, so that one question is enough.
fn isolate_masks(func: &mut Function) -> Vec<Block> {
    let mut masks = Vec::new();
    for block in func.blocks() {
        let is_mask = |inst: &Inst| func.inst(*inst).op == Op::ActiveMask;
        let Some(at) = func.block(block).insts.iter().position(is_mask) else { continue };
        let own = func.split_block(block, at);
        let loc = func.block(own).term_loc;
        let data = func.block_mut(block);
        data.term = Terminator::Jump(Target::new(own));
        data.term_loc = loc;
        masks.push(own);
    }
    masks
}

/// After: what depends on the launch and the thread alone is computed in the entry.
fn hoist(func: &mut Function) {
    let cfg = Cfg::new(func);
    let mut free = vec![false; func.value_count()];
    let mut moved = Vec::new();
    for &block in cfg.order() {
        let (hoisted, rest): (Vec<Inst>, Vec<Inst>) =
            func.block(block).insts.clone().into_iter().partition(|inst| {
                let data = func.inst(*inst);
                let is = is_free(func, *inst) && data.args.iter().all(|arg| free[arg.index()]);
                if is {
                    data.results.iter().for_each(|value| free[value.index()] = true);
                }
                is
            });
        moved.extend(hoisted);
        func.block_mut(block).insts = rest;
    }
    func.block_mut(Function::ENTRY).insts = moved;
}

/// Where all occurrences of one operation are done.
struct Place {
    op: Op,
    args: Vec<Operand>,
    results: Vec<Cell>,
}

/// Where an operation finds an operand.
#[derive(Clone, Copy)]
enum Operand {
    /// The same constant in all its occurrences, as member masks mostly are.
    Known(Type, u64),
    /// Lanes leave it here.
    Left(Cell),
}

struct Build<'a> {
    func: &'a Function,
    regions: Regions,
    meetings: HashMap<Block, Meeting>,
    b: FunctionBuilder,
    /// The lane's region.
    at: Cell,
    /// Where the lane goes on after an operation at which it meets others.
    back: Cell,
    /// The region that ran last.
    last: Var,
    /// Values that other regions read.
    cells: HashMap<Value, Cell>,
    /// What stands for the entry's values.
    values: HashMap<Value, Value>,
    /// What stands for the values of the region being built.
    own: HashMap<Value, Value>,
    /// What stands for other regions' values in the block being built.
    recalled: HashMap<Cell, Value>,
    blocks: HashMap<Block, Block>,
    places: Vec<Place>,
    latch: Block,
}

impl<'a> Build<'a> {
    fn new(func: &'a Function, regions: Regions, meetings: HashMap<Block, Meeting>) -> Option<Build<'a>> {
        let mut b = FunctionBuilder::new(func.name.clone(), func.signature.clone());
        let last = b.var(Type::I32);
        let [at, back] = [(); 2].map(|()| b.func_mut().add_cell(Type::I32));
        let latch = b.block();
        let mut build = Build {
            func,
            regions,
            meetings,
            b,
            at,
            back,
            last,
            cells: HashMap::new(),
            values: HashMap::new(),
            own: HashMap::new(),
            recalled: HashMap::new(),
            blocks: HashMap::new(),
            places: Vec::new(),
            latch,
        };
        build.find_cells();
        build.find_places();
        // A warp arrives for all its lanes: those that wait come after those that have yet to arrive.
        build.places.sort_by_key(|place| place.op == Op::ClusterBarrier(ClusterBarrier::Wait));
        (build.b.func().cells.len() <= MAX_CELLS).then_some(build)
    }

    /// Values that one region computes and another reads, the arguments of regions' heads, and what meetings yield.
    fn find_cells(&mut self) {
        let func = self.func;
        let mut region_of = vec![None; func.value_count()];
        let blocks: Vec<Block> =
            func.blocks().filter(|block| self.regions.of[block.index()].is_some()).collect();
        for &block in &blocks {
            let region = self.regions.of[block.index()];
            let data = func.block(block);
            let results = data.insts.iter().flat_map(|inst| func.inst(*inst).results.iter());
            for value in results.chain(&data.params) {
                region_of[value.index()] = region;
            }
            let crosses = self.regions.heads.contains(&block);
            let met = self.meetings.get(&block).map(|meeting| func.inst(meeting.inst).results.clone());
            for value in data.params.iter().copied().filter(|_| crosses).chain(met.into_iter().flatten()) {
                self.cell_of(value);
            }
        }
        for &block in &blocks {
            let region = self.regions.of[block.index()];
            let data = func.block(block);
            let args = data.insts.iter().flat_map(|inst| func.inst(*inst).args.iter().copied());
            for value in args.chain(data.term.uses()) {
                if region_of[value.index()].is_some_and(|of| Some(of) != region) {
                    self.cell_of(value);
                }
            }
        }
    }

    fn cell_of(&mut self, value: Value) -> Cell {
        let ty = self.func.ty(value);
        *self.cells.entry(value).or_insert_with(|| self.b.func_mut().add_cell(ty))
    }

    fn find_places(&mut self) {
        let mut meetings: Vec<Inst> = self.meetings.values().map(|meeting| meeting.inst).collect();
        meetings.sort();
        for inst in meetings {
            let data = self.func.inst(inst);
            let Some(index) = self.place_of(inst) else {
                let args = data.args.iter().map(|arg| self.operand(*arg, self.func.constant(*arg))).collect();
                let results = data.results.iter().map(|result| self.new_cell(*result)).collect();
                self.places.push(Place { op: data.op, args, results });
                continue;
            };
            for (at, arg) in data.args.iter().enumerate() {
                if let Operand::Known(_, bits) = self.places[index].args[at] {
                    let known = self.func.constant(*arg).filter(|other| *other == bits);
                    self.places[index].args[at] = self.operand(*arg, known);
                }
            }
        }
    }

    /// An operand for values like this one, of which this constant is known.
    fn operand(&mut self, value: Value, known: Option<u64>) -> Operand {
        match known {
            Some(bits) => Operand::Known(self.func.ty(value), bits),
            None => Operand::Left(self.new_cell(value)),
        }
    }

    /// A cell for values like this one.
    fn new_cell(&mut self, value: Value) -> Cell {
        let ty = self.func.ty(value);
        self.b.func_mut().add_cell(ty)
    }

    /// The place where the operation is done: the same for all that may meet.
    fn place_of(&self, inst: Inst) -> Option<usize> {
        let data = self.func.inst(inst);
        let types = &self.b.func().cells;
        let types_of = |values: &[Value]| values.iter().map(|value| self.func.ty(*value)).collect::<Vec<_>>();
        let (args, results) = (types_of(&data.args), types_of(&data.results));
        let of_operand = |operand: &Operand| match operand {
            Operand::Known(ty, _) => *ty,
            Operand::Left(cell) => types[cell.index()],
        };
        self.places.iter().position(|place| {
            place.op == data.op
                && args.iter().copied().eq(place.args.iter().map(of_operand))
                && results.iter().copied().eq(place.results.iter().map(|cell| types[cell.index()]))
        })
    }

    fn build(mut self) -> Option<Dispatched> {
        let entry = self.func.block(Function::ENTRY).insts.clone();
        entry.into_iter().for_each(|inst| self.copy(inst));
        self.values = std::mem::take(&mut self.own);
        let head = self.b.block();
        let first = match &self.func.block(Function::ENTRY).term {
            Terminator::Jump(target) => self.regions.number(target.block)?,
            _ => return None,
        };
        self.assign(self.at, first);
        let none = self.constant(0);
        self.b.write(self.last, none);
        self.jump(head);

        self.b.switch_to(head);
        let (end, pause, go_on) = (self.b.block(), self.b.block(), self.b.block());
        let choice = self.choose(end);
        let pick = self.b.current();
        for block in self.func.blocks().filter(|block| self.regions.of[block.index()].is_some()) {
            let new = self.b.block();
            self.blocks.insert(block, new);
        }
        let mut targets: Vec<Target> = Vec::new();
        for number in 0..self.regions.heads.len() {
            targets.push(Target::new(self.region(number, &choice)));
        }
        for place in 0..self.places.len() {
            targets.push(Target::new(self.meet(place, &choice)));
        }
        self.b.switch_to(pick);
        self.b.terminate(Terminator::Switch { index: choice.region, targets });

        self.b.switch_to(self.latch);
        self.b.write(self.last, choice.region);
        // Everyone has had a turn, and this one may wait for another warp.
        let again = self.compare(IntCmp::GeU, choice.turn, LATER);
        let waits = self.compare(IntCmp::LtU, choice.region, self.regions.waiting as u64);
        let waits = self.and(again, waits);
        self.branch(waits, pause, go_on);
        self.b.switch_to(pause);
        self.jump(go_on);
        self.b.switch_to(go_on);
        self.jump(head);
        self.b.switch_to(end);
        self.b.terminate(Terminator::Return(Vec::new()));

        let func = self.func;
        let result = self.b.func_mut();
        (result.token, result.local_bytes, result.local_align) =
            (func.token, func.local_bytes, func.local_align);
        let pause = self.b.final_number(pause)?;
        let func = self.b.finish();
        Some(Dispatched { func, pause })
    }

    /// Picks the lanes whose turn it is, or goes to `end` if all have ended. Most often all are at the same region, and nothing is to be picked.
    fn choose(&mut self, end: Block) -> Choice {
        let (at, last) = (self.recall(self.at), self.b.read(self.last));
        let ended = self.compare(IntCmp::Eq, at, ENDED);
        let live = self.not(ended);
        let live = self.ballot(live);
        let everyone = self.constant(EVERYONE);
        let first = self.b.inst(Op::Redux(IntBinary::MinU), &[at, everyone], Type::I32);
        let [lane_turn, turn] = [(); 2].map(|()| self.b.var(Type::I32));
        let [alive, together, apart, pick] = [(); 4].map(|()| self.b.block());
        let all_ended = self.compare(IntCmp::Eq, first, ENDED);
        self.branch(all_ended, end, alive);
        self.b.switch_to(alive);
        let there = self.b.inst(Op::IntCmp(IntCmp::Eq), &[at, first], Type::Pred);
        let there = self.ballot(there);
        let all_there = self.b.inst(Op::IntCmp(IntCmp::Eq), &[there, live], Type::Pred);
        let at_region = self.compare(IntCmp::LtU, first, self.regions.heads.len() as u64);
        let all_at_region = self.and(all_there, at_region);
        self.branch(all_at_region, together, apart);

        self.b.switch_to(together);
        let own = self.later(first, last);
        self.b.write(turn, own);
        let theirs = self.later(at, last);
        self.b.write(lane_turn, theirs);
        self.jump(pick);
        self.b.switch_to(apart);
        let (theirs, next) = self.choose_apart(at, last, live);
        self.b.write(turn, next);
        self.b.write(lane_turn, theirs);
        self.jump(pick);

        self.b.switch_to(pick);
        let (lane_turn, turn) = (self.b.read(lane_turn), self.b.read(turn));
        let low = self.constant((1 << CLASS_SHIFT) - 1);
        let region = self.and(turn, low);
        Choice { lane_turn, turn, region, live }
    }

    /// The turn of those at a region. Of those that gather the first in the program come first: who leaves a loop waits for those still in it.
    fn later(&mut self, at: Value, last: Value) -> Value {
        let later = self.b.inst(Op::IntCmp(IntCmp::LeU), &[at, last], Type::Pred);
        let turn = self.classed(at, later, LATER);
        if self.regions.gathering == 0 {
            return turn;
        }
        let gathers = self.compare(IntCmp::LtU, at, self.regions.gathering as u64);
        let own = self.classed(at, gathers, GATHERING);
        self.b.inst(Op::Select, &[gathers, own, turn], Type::I32)
    }

    /// The turn, of this class where the condition holds.
    fn classed(&mut self, turn: Value, cond: Value, class: u64) -> Value {
        let class = self.constant(class);
        let classed = self.b.inst(Op::Int(IntBinary::Or), &[turn, class], Type::I32);
        self.b.inst(Op::Select, &[cond, classed, turn], Type::I32)
    }

    /// Each lane's turn, and the one that comes next.
    fn choose_apart(&mut self, at: Value, last: Value, live: Value) -> (Value, Value) {
        let mut turn = self.later(at, last);
        for index in 0..self.places.len() {
            let number = (self.regions.heads.len() + index) as u64;
            let here = self.compare(IntCmp::Eq, at, number);
            let place = &self.places[index];
            let (op, args) = (place.op, place.args.clone());
            let (class, alone) = match op {
                op if op.is_barrier() => (AT_BARRIER, here),
                _ => {
                    let members = match op.member_mask(args.len()) {
                        Some(at) => args[at],
                        None => Operand::Known(Type::I32, EVERYONE),
                    };
                    let is_same = matches!(members, Operand::Known(..));
                    let members = self.take(members);
                    let named = self.and(members, live);
                    let mut come = self.ballot(here);
                    if !is_same {
                        let everyone = self.constant(EVERYONE);
                        let same = self.b.inst(Op::MatchAny, &[members, everyone], Type::I32);
                        come = self.and(come, same);
                    }
                    let come = self.not(come);
                    let missing = self.and(named, come);
                    let complete = self.compare(IntCmp::Eq, missing, 0);
                    let incomplete = self.not(complete);
                    (INCOMPLETE, self.and(here, incomplete))
                }
            };
            let class = self.constant(class | number);
            turn = self.b.inst(Op::Select, &[alone, class, turn], Type::I32);
        }
        let everyone = self.constant(EVERYONE);
        let next = self.b.inst(Op::Redux(IntBinary::MinU), &[turn, everyone], Type::I32);
        (turn, next)
    }

    /// The block where the lanes of a region enter it; emits the region.
    fn region(&mut self, number: usize, choice: &Choice) -> Block {
        let (enter, head) = (self.b.block(), self.regions.heads[number]);
        self.own.clear();
        let blocks: Vec<Block> =
            self.func.blocks().filter(|block| self.regions.of[block.index()] == Some(head)).collect();
        for &block in blocks.iter().filter(|block| **block != head) {
            for param in &self.func.block(block).params {
                let value = self.b.func_mut().add_param(self.blocks[&block], self.func.ty(*param));
                self.own.insert(*param, value);
            }
        }
        self.b.switch_to(enter);
        let here = self.b.inst(Op::IntCmp(IntCmp::Eq), &[choice.lane_turn, choice.turn], Type::Pred);
        let (start, latch) = (self.blocks[&head], self.latch);
        match self.meeting_before(head) {
            None => self.branch(here, start, latch),
            // What the meeting has yielded is theirs.
            Some(meeting) => {
                let met = self.b.block();
                self.branch(here, met, latch);
                self.b.switch_to(met);
                let index = self.place_of(meeting.inst).expect("every meeting has a place");
                let results = &self.func.inst(meeting.inst).results;
                for (cell, result) in self.places[index].results.clone().into_iter().zip(results) {
                    let value = self.recall(cell);
                    self.keep(self.cells[result], value);
                }
                self.jump(start);
            }
        }
        let cfg = Cfg::new(self.func);
        let mut blocks = blocks;
        blocks.sort_by_key(|block| cfg.position(*block));
        for block in blocks {
            self.block(block, head, choice);
        }
        enter
    }

    /// Where all members have come together they need not wait: the operation is done here, and they go on in the region behind it. The builder is
    /// left where some are missing.
    fn meet_at_once(&mut self, meeting: Meeting, args: &[Value], choice: &Choice) {
        let inst = self.func.inst(meeting.inst);
        let members = inst.op.member_mask(args.len()).map(|at| (args[at], inst.args[at]));
        let is_same = members.is_none_or(|(_, mask)| self.func.constant(mask).is_some());
        let members = members.map_or_else(|| self.constant(EVERYONE), |(members, _)| members);
        let everyone = self.b.constant(Type::Pred, 1);
        let mut here = self.ballot(everyone);
        if !is_same {
            // Who comes with another mask, as from another round of a loop, is not whom these wait for.
            let same = self.b.inst(Op::MatchAny, &[members, here], Type::I32);
            here = self.and(here, same);
        }
        let elsewhere = self.not(here);
        let elsewhere = self.and(elsewhere, choice.live);
        let missing = self.and(members, elsewhere);
        let mut complete = self.compare(IntCmp::Eq, missing, 0);
        if !is_same {
            let incomplete = self.not(complete);
            let incomplete = self.ballot(incomplete);
            complete = self.compare(IntCmp::Eq, incomplete, 0);
        }
        let (together, apart) = (self.b.block(), self.b.block());
        self.branch(complete, together, apart);
        self.b.switch_to(together);
        let types: Vec<Type> = inst.results.iter().map(|value| self.func.ty(*value)).collect();
        let values = self.b.insts(inst.op, args, &types);
        for (result, value) in inst.results.iter().zip(values) {
            self.keep(self.cells[result], value);
        }
        self.jump(self.blocks[&meeting.after]);
        self.b.switch_to(apart);
    }

    /// The meeting after which lanes come to this head.
    fn meeting_before(&self, head: Block) -> Option<Meeting> {
        self.meetings.values().find(|meeting| meeting.after == head).copied()
    }

    fn block(&mut self, block: Block, head: Block, choice: &Choice) {
        self.b.switch_to(self.blocks[&block]);
        self.recalled.clear();
        let data = self.func.block(block);
        if block == head {
            for param in &data.params {
                let value = self.recall(self.cells[param]);
                self.own.insert(*param, value);
            }
        } else {
            for param in &data.params {
                self.publish(*param);
            }
        }
        if let Some(meeting) = self.meetings.get(&block).copied() {
            let inst = self.func.inst(meeting.inst);
            self.b.set_loc(inst.loc);
            let index = self.place_of(meeting.inst).expect("every meeting has a place");
            let args: Vec<Value> = inst.args.iter().map(|arg| self.value(*arg)).collect();
            if !inst.op.is_barrier() {
                self.meet_at_once(meeting, &args, choice);
            }
            for (operand, value) in self.places[index].args.clone().into_iter().zip(args) {
                if let Operand::Left(cell) = operand {
                    self.keep(cell, value);
                }
            }
            let after = self.regions.number(meeting.after).expect("lanes go on at a head");
            self.assign(self.back, after);
            self.assign(self.at, (self.regions.heads.len() + index) as u64);
            return self.jump(self.latch);
        }
        for inst in &data.insts {
            self.copy(*inst);
        }
        self.b.set_loc(data.term_loc);
        self.terminator(&data.term);
    }

    fn terminator(&mut self, term: &Terminator) {
        match term {
            Terminator::Jump(target) => {
                let target = self.target(target);
                self.b.terminate(Terminator::Jump(target));
            }
            Terminator::Branch { cond, then, otherwise, uniform } => {
                let cond = self.value(*cond);
                let (then, otherwise) = (self.target(then), self.target(otherwise));
                self.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: *uniform });
            }
            Terminator::Switch { index, targets } => {
                let index = self.value(*index);
                let targets = targets.iter().map(|target| self.target(target)).collect();
                self.b.terminate(Terminator::Switch { index, targets });
            }
            Terminator::Return(_) | Terminator::Exit => {
                self.assign(self.at, ENDED);
                self.jump(self.latch);
            }
            Terminator::Trap => {
                let always = self.b.constant(Type::Pred, 1);
                self.b.effect(Op::Refuse(Refusal::Trap), &[always]);
                self.assign(self.at, ENDED);
                self.jump(self.latch);
            }
        }
    }

    /// Where an edge leads: within the region, or out of it, to another's head.
    fn target(&mut self, target: &Target) -> Target {
        let args: Vec<Value> = target.args.iter().map(|arg| self.value(*arg)).collect();
        let Some(number) = self.regions.number(target.block) else {
            return Target { block: self.blocks[&target.block], args };
        };
        let here = self.b.current();
        let leave = self.b.block();
        self.b.switch_to(leave);
        for (param, value) in self.func.block(target.block).params.iter().zip(args) {
            self.keep(self.cells[param], value);
        }
        self.assign(self.at, number);
        self.jump(self.latch);
        self.b.switch_to(here);
        Target::new(leave)
    }

    /// The block where lanes meet at a place; emits the operation.
    fn meet(&mut self, index: usize, choice: &Choice) -> Block {
        let enter = self.b.block();
        self.b.switch_to(enter);
        let Place { op, args, results } = &self.places[index];
        let (op, args, results) = (*op, args.clone(), results.clone());
        let mut here = self.b.inst(Op::IntCmp(IntCmp::Eq), &[choice.lane_turn, choice.turn], Type::Pred);
        if matches!(op, Op::Barrier { .. }) {
            // Lanes that have come to another barrier wait until it is their turn.
            let (id, none) = (self.take(args[0]), self.constant(ENDED));
            let ids = self.b.inst(Op::Select, &[here, id, none], Type::I32);
            let first = self.b.inst(Op::Redux(IntBinary::MinU), &[ids, none], Type::I32);
            let same = self.b.inst(Op::IntCmp(IntCmp::Eq), &[id, first], Type::Pred);
            here = self.and(here, same);
        }
        let body = self.b.block();
        self.branch(here, body, self.latch);
        self.b.switch_to(body);
        let args: Vec<Value> = args.into_iter().map(|operand| self.take(operand)).collect();
        let types: Vec<Type> = results.iter().map(|cell| self.b.func().cells[cell.index()]).collect();
        let values = self.b.insts(op, &args, &types);
        for (cell, value) in results.into_iter().zip(values) {
            self.keep(cell, value);
        }
        let back = self.recall(self.back);
        self.keep(self.at, back);
        self.jump(self.latch);
        enter
    }

    /// What stands for a value of the function. What other regions read is at hand in its own.
    fn value(&mut self, value: Value) -> Value {
        if let Some(here) = self.own.get(&value).or_else(|| self.values.get(&value)) {
            return *here;
        }
        let cell = self.cells[&value];
        if let Some(known) = self.recalled.get(&cell) {
            return *known;
        }
        let recalled = self.recall(cell);
        self.recalled.insert(cell, recalled);
        recalled
    }

    fn copy(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        let args: Vec<Value> = data.args.iter().map(|arg| self.value(*arg)).collect();
        let types: Vec<Type> = data.results.iter().map(|value| self.func.ty(*value)).collect();
        self.b.set_loc(data.loc);
        let results = self.b.insts(data.op, &args, &types);
        for (old, new) in data.results.iter().zip(results) {
            self.own.insert(*old, new);
            self.publish(*old);
        }
    }

    /// Lets other regions know a value that has just been defined.
    fn publish(&mut self, value: Value) {
        if let Some(cell) = self.cells.get(&value) {
            self.keep(*cell, self.own[&value]);
        }
    }

    fn constant(&mut self, bits: u64) -> Value {
        self.b.constant(Type::I32, bits)
    }

    fn assign(&mut self, cell: Cell, bits: u64) {
        let value = self.constant(bits);
        self.keep(cell, value);
    }

    fn keep(&mut self, cell: Cell, value: Value) {
        self.b.effect(Op::Keep(cell), &[value]);
    }

    fn recall(&mut self, cell: Cell) -> Value {
        let ty = self.b.func().cells[cell.index()];
        self.b.inst(Op::Recall(cell), &[], ty)
    }

    fn take(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Known(ty, bits) => self.b.constant(ty, bits),
            Operand::Left(cell) => self.recall(cell),
        }
    }

    fn compare(&mut self, cmp: IntCmp, value: Value, bits: u64) -> Value {
        let bits = self.constant(bits);
        self.b.inst(Op::IntCmp(cmp), &[value, bits], Type::Pred)
    }

    fn not(&mut self, value: Value) -> Value {
        let ty = self.b.func().ty(value);
        self.b.inst(Op::IntUnary(IntUnary::Not), &[value], ty)
    }

    fn and(&mut self, a: Value, b: Value) -> Value {
        let ty = self.b.func().ty(a);
        self.b.inst(Op::Int(IntBinary::And), &[a, b], ty)
    }

    fn ballot(&mut self, votes: Value) -> Value {
        let everyone = self.constant(EVERYONE);
        self.b.inst(Op::Vote(VoteMode::Ballot), &[votes, everyone], Type::I32)
    }

    fn jump(&mut self, to: Block) {
        self.b.terminate(Terminator::Jump(Target::new(to)));
    }

    fn branch(&mut self, cond: Value, then: Block, otherwise: Block) {
        let (then, otherwise) = (Target::new(then), Target::new(otherwise));
        self.b.terminate(Terminator::Branch { cond, then, otherwise, uniform: false });
    }
}

/// Whose turn it is.
struct Choice {
    /// Of each lane.
    lane_turn: Value,
    /// The least of them.
    turn: Value,
    /// The region, or place of meeting, that it names.
    region: Value,
    /// The lanes that have not ended.
    live: Value,
}
