//! Warps that take turns.
//!
//! In a loop over the grid (`transform::stride`) a warp runs one iteration, keeps what it needs for the next, and gives way to the one behind it. So all
//! warps of some blocks go round until none has anything left to do.

use super::Unit;
use crate::llvm::{Block, IntPredicate, LoopHint, Value};

/// Bytes of what all warps that take turns keep, on the stack. The more warps there are, the longer is the piece of memory that they walk along in a turn;
/// beside it what they keep is little, and comes in order as well.
const KEPT: u32 = 64 << 10;
/// Warps of the largest block.
const MOST_WARPS: u32 = 32;

/// Where a warp goes on that has not begun.
const BEGINNING: u32 = 0;

/// Where warps keep what they need for their next turn.
pub(super) struct Turns<'c> {
    /// Where each warp goes on. Behind them: whether any has not [ended].
    resumes: Value<'c>,
    states: Value<'c>,
    state_bytes: u32,
    /// How many warps there is room for.
    room: u32,
    /// How many blocks, as i64.
    pub(super) blocks: Value<'c>,
}

impl<'c> Turns<'c> {
    /// For warps, gangs or strips that keep so many bytes, so many in a block; the builder stands in the function's first block.
    pub(super) fn new(unit: Unit<'_, 'c>, state_bytes: u32, warps: Value<'c>) -> Turns<'c> {
        let b = unit.b;
        let (i32, i64) = (unit.types.i32, unit.types.i64);
        let room = (KEPT / state_bytes.max(1)).max(MOST_WARPS * u32::from(unit.shape.strips));
        let resumes = b.alloca(i32.array(u64::from(room) + 1), 64);
        let states = b.alloca(unit.context().int(8).array((room * state_bytes).into()), 64);
        let blocks = b.zext(b.udiv(i32.int_const(room.into()), warps), i64);
        Turns { resumes, states, state_bytes, room, blocks }
    }

    fn any_left(&self, unit: Unit<'_, 'c>) -> Value<'c> {
        unit.b.ptr_offset(self.resumes, 4 * i64::from(self.room))
    }
}

/// Where a warp goes on that has ended.
pub(super) fn ended<'c>(unit: Unit<'_, 'c>) -> Value<'c> {
    unit.types.i32.all_ones()
}

/// A loop over turns, in each of which every warp that has not ended has one, and whose body is being emitted.
pub(super) struct Round<'a, 'c> {
    turns: &'a Turns<'c>,
    head: Block<'c>,
}

impl<'a, 'c> Round<'a, 'c> {
    /// The first turn of so many warps.
    pub(super) fn begin(unit: Unit<'_, 'c>, turns: &'a Turns<'c>, warps: Value<'c>) -> Round<'a, 'c> {
        let b = unit.b;
        let (i32, i64) = (unit.types.i32, unit.types.i64);
        let bytes = b.mul(b.zext(warps, i64), i64.int_const(4));
        const { assert!(BEGINNING == 0, "memory is set to it byte by byte") };
        b.memset(turns.resumes, unit.context().int(8).zero(), bytes, 64);
        let head = b.append_block("round");
        b.br(head);
        b.position_at_end(head);
        b.store(i32.zero(), turns.any_left(unit), 4);
        Round { turns, head }
    }

    /// The turn of the warp of this number among those that take turns. `run` is given where it keeps things and where it goes on, and
    /// answers where it will go on.
    pub(super) fn turn(
        &self,
        unit: Unit<'_, 'c>,
        number: Value<'c>,
        run: impl FnOnce(Value<'c>, Value<'c>) -> Value<'c>,
    ) {
        let b = unit.b;
        let turns = self.turns;
        let i32 = unit.types.i32;
        let [turn, again, over] = ["turn", "again", "over"].map(|name| b.append_block(name));
        let place = b.ptr_index(turns.resumes, number, 4);
        let resume = b.load(i32, place, 4);
        b.cond_br(b.icmp(IntPredicate::Ne, resume, ended(unit)), turn, over);
        b.position_at_end(turn);
        let resume = run(b.ptr_index(turns.states, number, turns.state_bytes), resume);
        b.store(resume, place, 4);
        b.cond_br(b.icmp(IntPredicate::Ne, resume, ended(unit)), again, over);
        b.position_at_end(again);
        // Not kept in a register: that would be one from turn to turn.
        b.store(i32.int_const(1), turns.any_left(unit), 4);
        b.br(over);
        b.position_at_end(over);
    }

    pub(super) fn end(self, unit: Unit<'_, 'c>) {
        let b = unit.b;
        let left = b.load(unit.types.i32, self.turns.any_left(unit), 4);
        let more = b.icmp(IntPredicate::Ne, left, left.ty().zero());
        let after = b.append_block("rounds.done");
        let latch = b.cond_br(more, self.head, after);
        b.mark_loop(latch, &[LoopHint::DoNotUnroll, LoopHint::DoNotVectorize]);
        b.position_at_end(after);
    }
}
