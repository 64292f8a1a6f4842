//! Suspension points: what is saved at a barrier, and how a warp goes on.
//!
//! Which slots are live at a barrier is found by a data-flow analysis over the linear control flow, from the reads and writes that emission
//! makes. Slots keep their place in the warp's state wherever they are saved. Those that are written less often than barriers are met are stored
//! there where they are written.

use std::collections::{BTreeSet, HashMap};
use std::mem::offset_of;

use kernel_abi::{BlockFrame, CompileError, Wait, WaitKind};
use simt_ir::{BarrierKind, Block, ClusterBarrier, Inst, SourceLoc};

use super::function::Emitter;
use super::stack::stack_align;
use super::unsupported;
use crate::llvm::{self, Value};

/// Why a kernel is not compiled.
pub(super) const BARRIER_IN_FUNCTION: &str =
    "a barrier in a function that recurses or is called through a pointer";

/// A slot, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

/// A barrier: where the warp's state is saved and where it goes on.
pub struct Suspension<'c> {
    save: llvm::Block<'c>,
    resume: llvm::Block<'c>,
    resumed: llvm::Block<'c>,
    /// The node of the flow that begins after the barrier.
    after: usize,
    /// The block it is in.
    block: Block,
}

/// Reads and writes of slots along the linear control flow. A node is a block, or part of one.
pub struct Flow {
    nodes: Vec<Node>,
    current: usize,
}

#[derive(Clone, Default)]
struct Node {
    /// Slots read before they are written here.
    reads: BTreeSet<SlotId>,
    /// Slots surely written here before control goes on to `next`.
    writes: BTreeSet<SlotId>,
    next: BTreeSet<usize>,
    /// Where control goes from the beginning, past the writes.
    skip: BTreeSet<usize>,
}

impl Flow {
    /// The node before the first block.
    pub const START: usize = 0;

    /// The flow of a function of so many blocks.
    pub fn new(blocks: usize) -> Flow {
        Flow { nodes: vec![Node::default(); blocks + 1], current: 0 }
    }

    /// The node in which a block begins.
    pub fn node_of(&self, block: Block) -> usize {
        block.index() + 1
    }

    /// What follows happens in this node.
    pub fn enter(&mut self, node: usize) {
        self.current = node;
    }

    /// The node that things happen in.
    pub fn current(&self) -> usize {
        self.current
    }

    /// A slot is read.
    pub fn read(&mut self, slot: SlotId) {
        let node = &mut self.nodes[self.current];
        if !node.writes.contains(&slot) {
            node.reads.insert(slot);
        }
    }

    /// A slot is written.
    pub fn write(&mut self, slot: SlotId) {
        self.nodes[self.current].writes.insert(slot);
    }

    /// Control may go to a block from here.
    pub fn edge_to_block(&mut self, to: Block) {
        let to = self.node_of(to);
        self.nodes[self.current].next.insert(to);
    }

    /// Control may go to a block from the beginning of the current node.
    pub fn skip_to(&mut self, to: Block) {
        let to = self.node_of(to);
        self.nodes[self.current].skip.insert(to);
    }

    /// What follows happens in a new node after `node`, which others may follow too.
    pub fn branch_from(&mut self, node: usize) {
        self.nodes.push(Node::default());
        self.current = self.nodes.len() - 1;
        let new = self.current;
        self.nodes[node].next.insert(new);
    }

    /// Of these nodes, the slots whose content is needed at the beginning, so many in all.
    fn live(&self, slots: usize, wanted: impl Iterator<Item = usize>) -> Vec<BTreeSet<SlotId>> {
        // Rows of bits: unoptimised code has thousands of slots in thousands of nodes.
        let words = slots.div_ceil(64);
        let row = |at: usize| at * words..(at + 1) * words;
        let rows_of = |set: fn(&Node) -> &BTreeSet<SlotId>| {
            let mut bits = vec![0u64; self.nodes.len() * words];
            for (at, node) in self.nodes.iter().enumerate() {
                for slot in set(node) {
                    bits[at * words + slot.0 as usize / 64] |= 1 << (slot.0 % 64);
                }
            }
            bits
        };
        let writes = rows_of(|node| &node.writes);
        let mut live = rows_of(|node| &node.reads);
        let mut now = vec![0; words];
        let mut changed = true;
        while changed {
            changed = false;
            for (at, node) in self.nodes.iter().enumerate().rev() {
                now.copy_from_slice(&live[row(at)]);
                for &next in &node.next {
                    let kept =
                        live[row(next)].iter().zip(&writes[row(at)]).map(|(live, write)| live & !write);
                    now.iter_mut().zip(kept).for_each(|(now, more)| *now |= more);
                }
                for &skip in &node.skip {
                    now.iter_mut().zip(&live[row(skip)]).for_each(|(now, more)| *now |= more);
                }
                if live[row(at)] != now[..] {
                    live[row(at)].copy_from_slice(&now);
                    changed = true;
                }
            }
        }
        let is_live = |at: usize, slot: usize| live[at * words + slot / 64] >> (slot % 64) & 1 != 0;
        wanted
            .map(|at| (0..slots).filter(|slot| is_live(at, *slot)).map(|slot| SlotId(slot as u32)).collect())
            .collect()
    }
}

impl<'c> Emitter<'_, 'c> {
    /// A barrier: records what the warp waits for, saves its state and returns; or comes back here.
    pub(super) fn barrier(&mut self, inst: Inst, kind: BarrierKind, count: bool) -> Result<(), CompileError> {
        let b = self.unit.b;
        let data = self.p.func.inst(inst);
        self.check_barrier(data.loc)?;
        if self.unit.shape.block_is_gang() {
            // All have come.
            b.order_memory();
            return Ok(());
        }
        let mask = self.active();
        let lanes = match (self.unit.shape.gang, self.unit.shape.strips) {
            (1, 1) => b.mask_to_int(mask),
            // The others will come to it as well.
            (1, _) => self.unit.types.i32.all_ones(),
            // Who counts votes asks for them; a gang's barriers have none.
            _ => self.unit.types.i32.zero(),
        };
        let id = self.first_active(data.args[0]);
        let threads = if count { self.first_active(data.args[1]) } else { self.unit.types.i32.zero() };
        let votes = match kind {
            BarrierKind::Sync | BarrierKind::Arrive => self.unit.types.i32.zero(),
            _ => {
                let pred = self.vector(*data.args.last().expect("a reduction has a predicate"));
                b.mask_to_int(b.and(mask, pred))
            }
        };
        let wait = if kind == BarrierKind::Arrive { WaitKind::Arrive } else { WaitKind::Barrier };
        let fields = [
            (offset_of!(Wait, kind), self.unit.types.i32.int_const(wait as u64)),
            (offset_of!(Wait, barrier), id),
            (offset_of!(Wait, threads), threads),
            (offset_of!(Wait, lanes), lanes),
            (offset_of!(Wait, votes), votes),
        ];
        self.store_waits(&fields);
        self.suspend();
        if let Some(&result) = data.results.first() {
            let votes = self.load_wait(offset_of!(Wait, result));
            let value = match kind {
                BarrierKind::RedAnd => {
                    let all = self.load_wait(offset_of!(Wait, arrived));
                    b.icmp(llvm::IntPredicate::Eq, votes, all)
                }
                BarrierKind::RedOr => b.icmp(llvm::IntPredicate::Ne, votes, votes.ty().zero()),
                _ => votes,
            };
            self.define_scalar_or_vector(result, value);
        }
        Ok(())
    }

    /// One half of the cluster's barrier: the warp suspends, and the scheduler lets it go on.
    pub(super) fn cluster_barrier(&mut self, inst: Inst, half: ClusterBarrier) -> Result<(), CompileError> {
        self.check_barrier(self.p.func.inst(inst).loc)?;
        let kind = match half {
            ClusterBarrier::Arrive => WaitKind::ClusterArrive,
            ClusterBarrier::Wait => WaitKind::ClusterWait,
        };
        self.store_wait(offset_of!(Wait, kind), self.unit.types.i32.int_const(kind as u64));
        self.suspend();
        Ok(())
    }

    /// Whether the warp can suspend at a barrier here.
    fn check_barrier(&self, loc: SourceLoc) -> Result<(), CompileError> {
        if !self.p.is_kernel {
            return Err(unsupported(BARRIER_IN_FUNCTION, loc));
        }
        Ok(())
    }

    /// Lets others run for a while.
    pub(super) fn give_way(&mut self) {
        if self.unit.shape.block_is_gang() {
            // There are no others.
            return;
        }
        // Who goes on later says nothing of its lanes.
        let lanes = self.unit.types.i32.zero();
        self.store_wait(offset_of!(Wait, kind), self.unit.types.i32.int_const(WaitKind::Yield as u64));
        self.store_wait(offset_of!(Wait, lanes), lanes);
        self.suspend();
    }

    /// Whether the warp suspends at the end of a block, for others' sake.
    pub(super) fn pauses_after(&self, block: Block) -> bool {
        self.p.polling.yields.contains(&block) || self.turns.contains(&block)
    }

    /// Saves the warp's state and returns; or comes back here.
    pub(super) fn suspend(&mut self) {
        let b = self.unit.b;
        let suspension = Suspension {
            save: b.append_block("suspend"),
            resume: b.append_block("resume"),
            resumed: b.append_block("resumed"),
            after: {
                let node = self.flow.current();
                self.flow.branch_from(node);
                self.flow.current()
            },
            block: self.current,
        };
        b.br(suspension.save);
        b.position_at_end(suspension.resumed);
        self.suspensions.push(suspension);
        // Values at hand before are not at hand after.
        self.forget();
    }

    fn wait_field(&self, offset: usize) -> Value<'c> {
        self.unit.b.ptr_offset(self.place.frame, (offset_of!(BlockFrame, wait) + offset) as i64)
    }

    fn store_wait(&self, offset: usize, value: Value<'c>) {
        self.unit.b.store(value, self.wait_field(offset), 4);
    }

    /// Records what the warp waits for. Kernels have many barriers that are alike: in code that is to be there soon they call one function.
    fn store_waits(&self, fields: &[(usize, Value<'c>)]) {
        let b = self.unit.b;
        let numbers: Option<Vec<u64>> = fields.iter().map(|(_, value)| value.as_int()).collect();
        let Some(numbers) = numbers.filter(|_| self.is_quick()) else {
            return fields.iter().for_each(|(offset, value)| self.store_wait(*offset, *value));
        };
        let name = numbers.iter().fold("wait".to_owned(), |name, number| format!("{name}.{number}"));
        let (void, frame) = (self.unit.context().void(), self.place.frame);
        let function = self.shared_function(&name, void, &[frame.ty()], |function| {
            for (offset, value) in fields {
                let offset = offset_of!(BlockFrame, wait) + offset;
                b.store(*value, b.ptr_offset(function.param(0), offset as i64), 4);
            }
            b.ret_void();
        });
        b.call(function, &[frame]);
    }

    fn load_wait(&self, offset: usize) -> Value<'c> {
        self.unit.b.load(self.unit.types.i32, self.wait_field(offset), 4)
    }

    /// Where each slot that is live at some suspension point has its place in a warp's state, and the bytes of a state.
    pub fn state_layout(&self) -> StateLayout {
        let after = self.suspensions.iter().map(|suspension| suspension.after);
        let saved = self.flow.live(self.slot_list.len(), after);
        let mut layout = StateLayout { bytes: self.cell_bytes(), saved, ..StateLayout::default() };
        let mut most_aligned = if layout.bytes > 0 { 64 } else { 8 };
        for live in &layout.saved {
            for &slot in live {
                let (_, ty) = self.slot_list[slot.0 as usize];
                let (size, align) = match () {
                    () if ty == self.unit.types.mask => (ty.lanes() / 8, ty.lanes() / 8),
                    () if ty.is_vector() => (ty.lanes() * ty.scalar_bits().div_ceil(8), 64),
                    () => (8, 8),
                };
                let bytes = &mut layout.bytes;
                most_aligned = most_aligned.max(align);
                layout.places.entry(slot).or_insert_with(|| {
                    let offset = bytes.next_multiple_of(align);
                    *bytes = offset + size;
                    (offset, align)
                });
            }
        }
        layout.bytes = layout.bytes.next_multiple_of(most_aligned);
        layout
    }

    /// The slots whose content goes to the state wherever they are written, rather than at each suspension point: those that are written less
    /// often, such as sums that several barriers pass by. What is not used between two of them is then not even loaded there.
    fn written_at_once(&self, layout: &StateLayout) -> BTreeSet<SlotId> {
        // An inner loop runs more often than what is around it.
        let often = |block: Block| 16u64.saturating_pow(self.p.loops.around(block).count() as u32);
        let mut gain: HashMap<SlotId, i64> = HashMap::new();
        for (suspension, saved) in self.suspensions.iter().zip(&layout.saved) {
            for slot in saved {
                let gain = gain.entry(*slot).or_default();
                *gain = gain.saturating_add_unsigned(often(suspension.block));
            }
        }
        for write in &self.writes {
            if let Some(gain) = gain.get_mut(&write.slot) {
                *gain = gain.saturating_sub_unsigned(often(write.block));
            }
        }
        let is_mask = |slot: SlotId| self.slot_list[slot.0 as usize].1 == self.unit.types.mask;
        gain.into_iter().filter(|(slot, gain)| *gain > 0 && !is_mask(*slot)).map(|(slot, _)| slot).collect()
    }

    /// Completes the suspension points once all blocks are emitted. Answers where to go on for each `resume` from 1. `state` is this
    /// warp's; `leave` ends its turn with that number.
    pub fn finish_suspensions(
        &mut self,
        layout: &StateLayout,
        state: Value<'c>,
        leave: impl Fn(Value<'c>),
    ) -> Vec<(u64, llvm::Block<'c>)> {
        let b = self.unit.b;
        let written = self.written_at_once(layout);
        for write in self.writes.iter().filter(|write| written.contains(&write.slot)) {
            let (offset, align) = layout.places[&write.slot];
            b.position_before(write.store);
            b.store(write.value, b.ptr_offset(state, offset.into()), align);
        }
        let mut cases = Vec::new();
        for (index, suspension) in self.suspensions.iter().enumerate() {
            let number = index as u64 + 1;
            for slot in &layout.saved[index] {
                let (memory, ty) = self.slot_list[slot.0 as usize];
                let is_mask = ty == self.unit.types.mask;
                let (offset, align) = layout.places[slot];
                if !written.contains(slot) {
                    b.position_at_end(suspension.save);
                    let value = b.load(ty, memory, stack_align(ty));
                    let value = if is_mask { b.mask_to_int(value) } else { value };
                    b.store(value, b.ptr_offset(state, offset.into()), align);
                }
                b.position_at_end(suspension.resume);
                let stored = if is_mask { self.unit.context().int(ty.lanes()) } else { ty };
                let value = b.load(stored, b.ptr_offset(state, offset.into()), align);
                let value = if is_mask { self.unit.int_to_mask(value) } else { value };
                b.store(value, memory, stack_align(ty));
            }
            b.position_at_end(suspension.save);
            leave(self.unit.types.i32.int_const(number));
            b.position_at_end(suspension.resume);
            b.br(suspension.resumed);
            cases.push((number, suspension.resume));
        }
        cases
    }
}

/// How a suspended warp's slots lie in its state.
#[derive(Default)]
pub struct StateLayout {
    /// Bytes of a state.
    pub bytes: u32,
    /// Offset and alignment of each slot that is saved somewhere.
    places: HashMap<SlotId, (u32, u32)>,
    /// The slots saved at each suspension point.
    saved: Vec<BTreeSet<SlotId>>,
}
