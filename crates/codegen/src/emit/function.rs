//! Control flow, masks, and where values are kept.
//!
//! A value that another block reads has a *slot*, stack memory in its natural form: a scalar if uniform, the scalar base if affine,
//! a vector of bases if affine in each row of the block, a vector otherwise. LLVM makes registers of slots. What depends on the launch, the block and the warp alone is computed in
//! the prologue, where both a fresh start and every resumption pass, and needs no slot.
//!
//! Masks of blocks live in slots too. An edge adds its lanes to its target's mask; where lanes may wait for a block, the masks are
//! cleared at the beginning of each iteration of the loop around it.

use std::collections::{HashMap, HashSet};
use std::mem::offset_of;

use kernel_abi::{BlockFrame, CompileError};
use simt_ir::{Block, Inst, Op, Target, Terminator, Value as IrValue};
use transform::held::Held;
use transform::packs::Packs;
use transform::{LaneShape, Prepared};

use super::ahead::Ahead;
use super::cell::Cells;
use super::copied::Copies;
use super::fetch::Fetches;
use super::full::ActiveLanes;
use super::matrix::Factors;
use super::slots::SlotWrite;
use super::stack::Scratch;
use super::suspend::{Flow, SlotId, Suspension};
use super::{Unit, unsupported};
use crate::llvm::{self, IntPredicate, Type, Value};
use crate::math::value_type;

/// Vector operations up to which a block runs with an empty mask rather than being jumped over.
const CHEAP: usize = 8;

/// The most rows for which numbers are computed one by one.
const ROWS_APART: u32 = 4;

/// In what form a value is at hand.
#[derive(Clone, Copy)]
pub(super) enum AtHand {
    Natural,
    Vector,
    Wide,
}

/// Where a warp is: what the prologue knows.
#[derive(Clone, Copy)]
pub struct Place<'c> {
    /// The `BlockFrame`.
    pub frame: Value<'c>,
    /// The `LaunchFrame`.
    pub launch: Value<'c>,
    /// Index of the block.
    pub ctaid: [Value<'c>; 3],
    /// Index of the warp.
    pub warp: Value<'c>,
    /// `tid` of the warp's first thread, where it is known and rows of the block are whole warps.
    pub tid: Option<[Value<'c>; 3]>,
}

/// Emits one function.
pub struct Emitter<'a, 'c> {
    pub(super) unit: Unit<'a, 'c>,
    pub(super) p: &'a Prepared,
    pub(super) place: Place<'c>,
    /// Block of what depends on the place alone; it gets its end last.
    pub(super) prologue: llvm::Block<'c>,
    /// Block of allocas, likewise: the function's first.
    pub(super) stack_block: llvm::Block<'c>,
    /// Lanes the function is entered with.
    pub(super) entry_mask: Value<'c>,
    /// Start of the function's frame in the local windows.
    pub(super) local_base: Value<'c>,
    /// Start of the block's shared window.
    pub(super) shared_base: Value<'c>,
    pub(super) blocks: Vec<Option<llvm::Block<'c>>>,
    pub(super) crossing: Vec<bool>,
    /// How often each value is used.
    pub(super) uses: Vec<u32>,
    in_prologue: HashMap<IrValue, bool>,
    pub(super) prologue_values: HashMap<IrValue, Value<'c>>,
    pub(super) prologue_regs: HashMap<simt_ir::SpecialReg, Value<'c>>,
    /// The stack pointers of the lanes, where the function sets them.
    pub(super) stack: Option<SlotId>,
    pub(super) slots: HashMap<IrValue, SlotId>,
    pub(super) masks: HashMap<Block, SlotId>,
    pub(super) slot_list: Vec<(Value<'c>, Type<'c>)>,
    /// Values that are kept together.
    pub(super) packs: Packs,
    /// Shared memory that registers stand for.
    pub(super) held: Held,
    /// The values whose slots others share, where that is known: see [`transform::places`].
    pub(super) places: Vec<IrValue>,
    /// Where slots are written.
    pub(super) writes: Vec<SlotWrite<'c>>,
    /// Values at hand in the block being emitted, in natural form.
    pub(super) local: HashMap<IrValue, Value<'c>>,
    /// The same as vectors.
    pub(super) vectors: HashMap<IrValue, Value<'c>>,
    /// Packs at hand as a whole, by their first value: see [`packed`](super::packed).
    pub(super) wides: HashMap<IrValue, Value<'c>>,
    /// Packs that have been computed.
    pub(super) made: HashSet<IrValue>,
    /// What has been put into these, in order, since the block began.
    pub(super) added: Vec<(AtHand, IrValue)>,
    /// Stack memory that an instruction uses and the next may use again.
    pub(super) scratch: Scratch<'c>,
    /// Stack memory of zeros, for lanes that are not active: see [`own_rows`](super::own_rows).
    pub(super) readable_row: Option<Value<'c>>,
    /// Where lanes have what they begin with that go on one after another: see [`few`](super::few).
    pub(super) laid_out: HashMap<Inst, Value<'c>>,
    /// Quicker ways whose misses are counted (`near`).
    pub(super) counted: u32,
    pub(super) flow: Flow,
    pub(super) suspensions: Vec<Suspension<'c>>,
    /// Latches at which another warp's turn comes: see [`turns`](super::turns).
    pub(super) turns: Vec<Block>,
    /// Whether stores may pass by the caches: see [`passing`](super::passing).
    pub(super) passes_by: bool,
    pub(super) cells: Cells<'c>,
    /// Accesses that another has taken along, or will: see [`joined`](super::joined).
    pub(super) joined: HashSet<Inst>,
    /// Stores that store for others too: where those begin, and all values.
    pub(super) joined_stores: HashMap<Inst, (i64, Vec<IrValue>)>,
    pub(super) copies: Copies<'c>,
    /// Factors of matrix products in memory.
    pub(super) factors: Factors<'c>,
    pub(super) current: Block,
    /// Which lanes the code being emitted is for.
    pub(super) active_lanes: ActiveLanes,
    /// Where the code for all lanes begins of a block that has it beside that for some: see [`full`](super::full).
    pub(super) full_versions: HashMap<Block, Option<llvm::Block<'c>>>,
    /// Instructions of the current block that nobody may ask for: see [`full`](super::full).
    pub(super) put_off: Vec<Inst>,
    /// What has been tested before the code being emitted.
    pub(super) ahead: Ahead,
    /// What it reads in order: see [`fetch`](super::fetch).
    pub(super) fetches: Fetches<'c>,
    /// Threads of the grid, where it has been computed.
    pub(super) threads: Option<Value<'c>>,
    /// Arguments and results of a device function.
    pub(super) arguments: Option<(Value<'c>, Value<'c>)>,
}

impl<'a, 'c> Emitter<'a, 'c> {
    /// Begins a function; the builder stands in its prologue.
    pub fn new(
        unit: Unit<'a, 'c>,
        p: &'a Prepared,
        place: Place<'c>,
        entry_mask: Value<'c>,
        local_base: Value<'c>,
    ) -> Emitter<'a, 'c> {
        let count = p.func.blocks().len();
        let shared = unit.b.ptr_offset(place.frame, offset_of!(BlockFrame, shared) as i64);
        Emitter {
            unit,
            p,
            place,
            prologue: unit.b.block(),
            stack_block: unit.b.block(),
            entry_mask,
            local_base,
            // Not marked as invariant: LLVM would rather load it anew wherever registers are scarce, as in a loop over a tile, and what is loaded
            // from that window would have to wait.
            shared_base: unit.b.load(unit.types.i64, shared, 8),
            blocks: vec![None; count],
            crossing: p.crossing(),
            uses: p.uses(),
            in_prologue: HashMap::new(),
            prologue_values: HashMap::new(),
            prologue_regs: HashMap::new(),
            stack: None,
            slots: HashMap::new(),
            masks: HashMap::new(),
            slot_list: Vec::new(),
            packs: Packs::default(),
            held: Held::default(),
            places: Vec::new(),
            writes: Vec::new(),
            local: HashMap::new(),
            vectors: HashMap::new(),
            wides: HashMap::new(),
            made: HashSet::new(),
            added: Vec::new(),
            scratch: Scratch::default(),
            readable_row: None,
            laid_out: HashMap::new(),
            counted: 0,
            flow: Flow::new(count),
            suspensions: Vec::new(),
            turns: Vec::new(),
            passes_by: false,
            cells: Cells::new(),
            joined: HashSet::new(),
            joined_stores: HashMap::new(),
            copies: Copies::default(),
            factors: Factors::default(),
            current: simt_ir::Function::ENTRY,
            active_lanes: ActiveLanes::Any,
            full_versions: HashMap::new(),
            ahead: Ahead::default(),
            fetches: Fetches::default(),
            threads: None,
            put_off: Vec::new(),
            arguments: None,
        }
    }

    /// Emits all blocks. Control starts at the block returned and gets to `end` where the function returns. The prologue is left
    /// open.
    pub fn body(&mut self, end: llvm::Block<'c>) -> Result<llvm::Block<'c>, CompileError> {
        let b = self.unit.b;
        let start = b.append_block("start");
        for &block in self.p.linear.order() {
            let llvm = b.append_block(&format!("b{}", block.0));
            self.blocks[block.index()] = Some(llvm);
        }
        b.position_at_end(start);
        self.flow.enter(Flow::START);
        self.clear_masks(None);
        self.begin_stack();
        self.take_arguments();
        self.flow.edge_to_block(simt_ir::Function::ENTRY);
        b.br(self.llvm_block(simt_ir::Function::ENTRY));
        for &block in self.p.linear.order() {
            self.block(block, end)?;
        }
        Ok(start)
    }

    pub(super) fn llvm_block(&self, block: Block) -> llvm::Block<'c> {
        self.blocks[block.index()].expect("control goes to reachable blocks only")
    }

    fn block(&mut self, block: Block, end: llvm::Block<'c>) -> Result<(), CompileError> {
        let b = self.unit.b;
        self.current = block;
        self.forget();
        b.position_at_end(self.llvm_block(block));
        self.flow.enter(self.flow.node_of(block));
        if let Some(id) = self.p.loops.headed_by(block) {
            self.clear_masks(Some(id));
            if self.p.dispatched {
                self.clear_params(id);
            }
        }
        if let Some(skip) = self.p.linear.skip(block)
            && self.is_guarded(block)
        {
            let mask = self.mask(block);
            let body = b.append_block(&format!("b{}.run", block.0));
            let any = b.any(mask);
            self.flow.skip_to(skip);
            b.cond_br(any, body, self.llvm_block(skip));
            b.position_at_end(body);
        }
        self.insts(block)?;
        if self.p.polling.yields.contains(&block) {
            self.give_way();
        } else if self.turns.contains(&block) {
            self.suspend();
        }
        self.terminator(block, end)
    }

    /// Whether control jumps over the block when no lane enters it.
    fn is_guarded(&self, block: Block) -> bool {
        if self.p.loops.headed_by(block).is_some() || Some(block) == self.p.end {
            // No lane enters a loop: its preheader is jumped over. The last block has nothing to jump to.
            return false;
        }
        let data = self.p.func.block(block);
        let scalar_params = |target: &&Target| {
            let mut params = self.p.func.block(target.block).params.iter();
            params.any(|param| !self.p.shapes.of(*param).is_varying())
        };
        let enters_loop = |target: &&Target| self.p.loops.headed_by(target.block).is_some();
        let targets = data.term.targets();
        match data.term {
            Terminator::Jump(_) => {}
            Terminator::Branch { .. } if self.p.shapes.divergent()[block.index()] => {}
            _ => return true,
        }
        if targets.iter().any(|target| scalar_params(target) || enters_loop(target)) {
            return true;
        }
        let mut cost = 0;
        for inst in &data.insts {
            let data = self.p.func.inst(*inst);
            if !data.op.is_pure() {
                return true;
            }
            let varying = data.results.iter().any(|value| self.p.shapes.of(*value).is_varying());
            cost += match data.op {
                Op::Approx { .. } | Op::Mufu(_) => 2 * CHEAP,
                Op::Int(
                    simt_ir::IntBinary::DivS
                    | simt_ir::IntBinary::DivU
                    | simt_ir::IntBinary::RemS
                    | simt_ir::IntBinary::RemU,
                ) => 2 * CHEAP,
                _ => usize::from(varying),
            };
        }
        cost > CHEAP
    }

    fn terminator(&mut self, block: Block, end: llvm::Block<'c>) -> Result<(), CompileError> {
        let b = self.unit.b;
        let p = self.p;
        let data = p.func.block(block);
        match &data.term {
            Terminator::Jump(target) => {
                self.lay_out(block, target.block);
                let mask = self.mask(block);
                self.pass_on(target, mask);
                let next = if p.loops.is_back_edge(block, target.block) {
                    target.block
                } else {
                    p.linear.next(block, &[target.block]).expect("there is a target")
                };
                self.go(next);
            }
            Terminator::Branch { cond, then, otherwise, .. } if p.shapes.divergent()[block.index()] => {
                let [taken, not_taken] = self.ways_of_lanes(block, *cond, then)?;
                self.pass_on(then, taken);
                self.pass_on(otherwise, not_taken);
                let next = p.linear.next(block, &[then.block, otherwise.block]).expect("there are targets");
                self.go(next);
            }
            Terminator::Branch { cond, then, otherwise, .. } => {
                let cond = if p.shapes.of(*cond).is_uniform() {
                    self.natural(*cond)
                } else {
                    // The program promises that the active lanes agree: any of them tells.
                    let (mask, cond) = (self.mask(block), self.vector(*cond));
                    b.any(b.and(mask, cond))
                };
                let mask = self.mask(block);
                let sides = [b.append_block("then"), b.append_block("else")];
                b.cond_br(cond, sides[0], sides[1]);
                let node = self.flow.current();
                for (side, target) in sides.into_iter().zip([then, otherwise]) {
                    b.position_at_end(side);
                    let mark = self.mark();
                    self.flow.branch_from(node);
                    self.pass_on(target, mask);
                    let next = p.linear.next(block, &[target.block]).expect("there is a target");
                    self.go(next);
                    self.forget_since(mark);
                }
            }
            Terminator::Return(values) => {
                self.give_results(values);
                b.br(end);
            }
            Terminator::Trap => {
                let mask = self.mask(block);
                self.raise_for(kernel_abi::FaultKind::Trap, mask, None, data.term_loc);
            }
            Terminator::Switch { .. } => return Err(unsupported("a switch", data.term_loc)),
            Terminator::Exit => return Err(unsupported("`exit` in a function that recurses", data.term_loc)),
        }
        Ok(())
    }

    fn go(&mut self, next: Block) {
        self.flow.edge_to_block(next);
        self.unit.b.br(self.llvm_block(next));
    }

    /// The lanes that execute a block.
    pub(super) fn mask(&mut self, block: Block) -> Value<'c> {
        let shared = self.p.linear.mask_of(block);
        if self.p.full[block.index()] {
            self.unit.types.mask.all_ones()
        } else if shared == simt_ir::Function::ENTRY {
            self.entry_mask
        } else if let Some(lanes) = self.known_lanes_of(shared, 4) {
            self.unit.types.mask.int_vector(&lanes.into_iter().map(u64::from).collect::<Vec<_>>())
        } else {
            let slot = self.mask_slot(shared);
            self.read_slot(slot)
        }
    }

    /// The lanes that execute the code being emitted.
    pub(super) fn active(&mut self) -> Value<'c> {
        match self.active_lanes {
            ActiveLanes::All => self.unit.types.mask.all_ones(),
            ActiveLanes::Any | ActiveLanes::NotAll => self.mask(self.current),
        }
    }

    /// Whether all lanes surely execute the code being emitted.
    pub(super) fn is_full(&self) -> bool {
        self.active_lanes == ActiveLanes::All || self.p.full[self.current.index()]
    }

    // Values

    /// A value in its natural form: scalar, scalar base, vector of the rows' bases, or vector.
    pub(super) fn natural(&mut self, value: IrValue) -> Value<'c> {
        if let Some(known) = self.local.get(&value) {
            return *known;
        }
        if let Some(pack) = self.pack_of(value)
            && let Some(vector) = self.taken_out(&pack, value)
        {
            return vector;
        }
        let at = if self.is_prologue(value) {
            self.prologue_value(value)
        } else {
            let slot = self.slot(value);
            self.read_slot(slot)
        };
        self.have(value, at);
        at
    }

    /// From now on a value is at hand.
    pub(super) fn have(&mut self, value: IrValue, natural: Value<'c>) {
        self.local.insert(value, natural);
        self.added.push((AtHand::Natural, value));
    }

    /// Whether a value whose definition dominates this place can be had here: what no other block reads is known in its own block
    /// alone, and what a loop defines is that of the last iteration of any lane once it is left.
    pub(super) fn is_at_hand(&mut self, value: IrValue) -> bool {
        if self.local.contains_key(&value) || self.is_prologue(value) {
            return true;
        }
        let p = self.p;
        self.crossing[value.index()]
            && p.def_block[value.index()]
                .is_some_and(|block| p.loops.around(block).all(|id| p.loops.contains(id, self.current)))
    }

    /// A value of which it is known what it is in each lane, in natural form.
    pub(super) fn known(&self, value: IrValue) -> Option<Value<'c>> {
        let numbers = self.p.shapes.known(value)?;
        let lane = self.lane_type(value);
        Some(match self.p.shapes.of(value) {
            LaneShape::Affine(offsets) => {
                lane.int_const(numbers[0].wrapping_sub(offsets[0] as u64) & self.p.func.ty(value).mask())
            }
            _ => lane.vector(self.unit.lanes).int_vector(numbers),
        })
    }

    /// Whether it is known of each lane that it executes the code being emitted, or that it does not: which do.
    pub(super) fn known_lanes(&self) -> Option<Vec<bool>> {
        if self.is_full() {
            return Some(vec![true; self.unit.lanes as usize]);
        }
        self.known_lanes_of(self.current, 4)
    }

    fn known_lanes_of(&self, block: Block, depth: u32) -> Option<Vec<bool>> {
        let p = self.p;
        let block = p.linear.mask_of(block);
        if p.full[block.index()] {
            return Some(vec![true; self.unit.lanes as usize]);
        }
        let [from] = p.cfg.preds(block) else { return None };
        if depth == 0 || p.loops.innermost(*from) != p.loops.innermost(block) {
            return None;
        }
        let mut lanes = self.known_lanes_of(*from, depth - 1)?;
        match &p.func.block(*from).term {
            Terminator::Branch { cond, then, otherwise, .. }
                if p.shapes.divergent()[from.index()] && then.block != otherwise.block =>
            {
                let goes = u64::from(then.block == block);
                let numbers = p.shapes.known(*cond)?;
                lanes.iter_mut().zip(&**numbers).for_each(|(lane, number)| *lane &= *number == goes);
                Some(lanes)
            }
            Terminator::Jump(_) => Some(lanes),
            _ => None,
        }
    }

    /// A value as a vector.
    pub(super) fn vector(&mut self, value: IrValue) -> Value<'c> {
        if let Some(known) = self.vectors.get(&value) {
            return *known;
        }
        let natural = self.natural(value);
        let vector = self.widen(natural, &self.p.shapes.of(value).clone());
        self.vectors.insert(value, vector);
        self.added.push((AtHand::Vector, value));
        vector
    }

    /// No value is at hand any more: control comes from elsewhere.
    pub(super) fn forget(&mut self) {
        self.local.clear();
        self.vectors.clear();
        self.wides.clear();
        self.added.clear();
        self.fetches.forget();
    }

    /// What is at hand now.
    pub(super) fn mark(&self) -> usize {
        self.added.len()
    }

    /// What has come to hand since is not at hand where control goes on.
    pub(super) fn forget_since(&mut self, mark: usize) {
        for (form, value) in self.added.drain(mark..) {
            match form {
                AtHand::Natural => self.local.remove(&value),
                AtHand::Vector => self.vectors.remove(&value),
                AtHand::Wide => self.wides.remove(&value),
            };
        }
    }

    /// A natural form of that shape as a vector.
    pub(super) fn widen(&self, natural: Value<'c>, shape: &LaneShape) -> Value<'c> {
        let b = self.unit.b;
        match shape {
            LaneShape::Varying => natural,
            LaneShape::Uniform => b.splat(natural, self.unit.lanes),
            LaneShape::Affine(offsets) => {
                let splat = b.splat(natural, self.unit.lanes);
                b.add(splat, constants(natural.ty(), offsets))
            }
            LaneShape::Rows(offsets) => b.add(self.in_lanes(natural), constants(natural.ty(), offsets)),
        }
    }

    /// What there is for each row, in each lane.
    pub(super) fn in_lanes(&self, rows: Value<'c>) -> Value<'c> {
        let row_lanes = self.unit.row_lanes() as i32;
        let lanes: Vec<i32> = (0..self.unit.lanes as i32).map(|lane| lane / row_lanes).collect();
        self.unit.b.shuffle(rows, rows, &lanes)
    }

    /// What a value is in the first lane of each row. It does not vary within rows otherwise than by constants.
    pub(super) fn row_bases(&mut self, value: IrValue) -> Value<'c> {
        let natural = self.natural(value);
        self.widen_to_rows(natural, self.p.shapes.of(value))
    }

    fn widen_to_rows(&self, natural: Value<'c>, shape: &LaneShape) -> Value<'c> {
        let b = self.unit.b;
        match shape {
            LaneShape::Uniform => b.splat(natural, self.unit.rows()),
            LaneShape::Affine(offsets) => {
                let mut firsts = offsets.iter().copied().step_by(self.unit.row_lanes() as usize);
                if self.has_rows_apart() && natural.ty().is_int() {
                    let (value, constant) = natural.as_sum().unwrap_or((natural, 0));
                    return self.of_rows(|_| {
                        let first = firsts.next().unwrap_or_default();
                        self.offset(value, first.wrapping_add(constant as i64))
                    });
                }
                let firsts: Vec<i64> = firsts.collect();
                b.add(b.splat(natural, self.unit.rows()), constants(natural.ty(), &firsts))
            }
            LaneShape::Rows(_) | LaneShape::Varying => natural,
        }
    }

    /// Whether rows are so few that an operation for each is no more than one for all. What is computed of places in rows is the same for one row as for
    /// the next one of another access then, and LLVM finds it where it is not part of a vector.
    pub(super) fn has_rows_apart(&self) -> bool {
        self.unit.rows() <= ROWS_APART
    }

    /// A value for each row, of what each has.
    pub(super) fn of_rows(&self, mut of: impl FnMut(u32) -> Value<'c>) -> Value<'c> {
        let first = of(0);
        let mut all = first.ty().vector(self.unit.rows()).poison();
        all = self.unit.b.insert(all, first, 0);
        for row in 1..self.unit.rows() {
            all = self.unit.b.insert(all, of(row), row);
        }
        all
    }

    /// Records the result of an instruction.
    pub(super) fn define(&mut self, value: IrValue, natural: Value<'c>) {
        // Of one lane everything is uniform, whatever it was computed as.
        let natural = match self.unit.lanes == 1 && natural.ty().is_vector() {
            true => self.unit.b.extract(natural, 0),
            false => natural,
        };
        self.have(value, natural);
        if let Some(pack) = self.pack_of(value) {
            self.define_apart(&pack);
        } else if self.crossing[value.index()] {
            let slot = self.slot(value);
            self.write_slot(slot, natural);
        }
    }

    /// Defines a value that was computed as a vector or, if it is uniform, as a scalar.
    pub(super) fn define_scalar_or_vector(&mut self, value: IrValue, computed: Value<'c>) {
        let natural = if self.p.shapes.of(value).is_varying() && !computed.ty().is_vector() {
            self.unit.b.splat(computed, self.unit.lanes)
        } else {
            computed
        };
        self.define(value, natural);
    }

    /// The LLVM type of one lane of a value.
    pub(super) fn lane_type(&self, value: IrValue) -> Type<'c> {
        value_type(self.unit.context(), self.p.func.ty(value))
    }

    /// Whether a value depends on the place alone and is cheap, so that the prologue computes it, or is a constant in each lane.
    pub(super) fn is_prologue(&mut self, value: IrValue) -> bool {
        if let Some(known) = self.in_prologue.get(&value) {
            return *known;
        }
        let p = self.p;
        let is = match p.func.def_inst(value) {
            None => false,
            Some(_) if p.shapes.known(value).is_some() => self.pack_of(value).is_none(),
            Some(data) => match data.op {
                Op::SpecialReg(reg) => !reg.is_counter(),
                Op::Load(access) => {
                    access.space == simt_ir::Space::Param
                        && p.is_kernel
                        && p.func.constant(data.args[0]).is_some()
                        && data.results.len() == 1
                }
                op => {
                    op.is_pure()
                        && !p.shapes.of(value).is_vector()
                        && !matches!(
                            op,
                            Op::IsSpace(_) | Op::Approx { .. } | Op::Mufu(_) | Op::Unanimous | Op::AnyLane
                        )
                        && data
                            .args
                            .iter()
                            .all(|arg| !p.shapes.of(*arg).is_vector() && self.is_prologue(*arg))
                }
            },
        };
        self.in_prologue.insert(value, is);
        is
    }

    fn prologue_value(&mut self, value: IrValue) -> Value<'c> {
        if let Some(known) = self.prologue_values.get(&value) {
            return *known;
        }
        if let Some(known) = self.known(value) {
            return known;
        }
        let p = self.p;
        let data = p.func.def_inst(value).expect("a prologue value is a result");
        let args: Vec<Value<'c>> = data.args.iter().map(|arg| self.prologue_value(*arg)).collect();
        let b = self.unit.b;
        let here = b.block();
        b.position_at_end(self.prologue);
        let result = match data.op {
            Op::Load(access) => self.param_load(access, p.func.constant(data.args[0]), value),
            Op::SpecialReg(reg) => self.special(reg),
            _ => self.scalar_result(data, value, &args),
        };
        b.position_at_end(here);
        self.prologue_values.insert(value, result);
        result
    }

    /// A value that a kernel's entry can compute, in natural form, at the builder's position.
    pub(super) fn entry_value(&mut self, value: IrValue) -> Result<Value<'c>, CompileError> {
        if self.is_prologue(value) {
            return Ok(self.prologue_value(value));
        }
        let p = self.p;
        let data = p.func.def_inst(value).expect("what an entry can compute is a result");
        let shape = p.shapes.of(value);
        let mut args = Vec::new();
        for arg in &data.args {
            let natural = self.entry_value(*arg)?;
            args.push(match shape {
                LaneShape::Varying => self.widen(natural, p.shapes.of(*arg)),
                LaneShape::Rows(_) => self.widen_to_rows(natural, p.shapes.of(*arg)),
                LaneShape::Uniform | LaneShape::Affine(_) => natural,
            });
        }
        match shape {
            LaneShape::Varying => self.vector_result(data, value, &args),
            LaneShape::Rows(_) => Ok(self.rows_result(data, value, &args)),
            LaneShape::Uniform | LaneShape::Affine(_) => Ok(self.scalar_result(data, value, &args)),
        }
    }

    /// Whether some index wraps that the kernel's code assumes not to, at the builder's position.
    pub fn wraps(&mut self) -> Result<Value<'c>, CompileError> {
        let b = self.unit.b;
        let p = self.p;
        let mut wraps = self.unit.types.bit.zero();
        for assumption in p.shapes.assumed() {
            let index = self.entry_value(assumption.index)?;
            let bad = b.not(self.stays_in_range(assumption, index));
            let bad = if bad.ty().is_vector() { b.any(bad) } else { bad };
            wraps = b.or(wraps, bad);
        }
        Ok(wraps)
    }

    /// Whether the lanes of an affine index with this base do not wrap; for each row if the index is affine in rows.
    pub(super) fn stays_in_range(&self, assumption: &transform::Assumption, base: Value<'c>) -> Value<'c> {
        let b = self.unit.b;
        let (least, most) = match self.p.shapes.of(assumption.index) {
            LaneShape::Affine(offsets) | LaneShape::Rows(offsets) => {
                offsets.iter().fold((0, 0), |(l, m), o| (*o.min(&l), *o.max(&m)))
            }
            LaneShape::Uniform | LaneShape::Varying => (0, 0),
        };
        let limit = if assumption.unsigned { 0 } else { i64::from(i32::MIN) };
        let (low, high) = (limit - least, i64::from(i32::MAX) - most);
        let ty = base.ty();
        if high < low {
            // Offsets that far apart fit no base.
            return b.icmp(IntPredicate::Ult, base, ty.zero());
        }
        b.icmp(IntPredicate::Ule, b.sub(base, ty.int_const(low as u64)), ty.int_const((high - low) as u64))
    }
}

/// Offsets as constants, in vectors of this type's integers.
fn constants<'c>(ty: Type<'c>, offsets: &[i64]) -> Value<'c> {
    ty.int_vector(&offsets.iter().map(|offset| *offset as u64).collect::<Vec<_>>())
}
