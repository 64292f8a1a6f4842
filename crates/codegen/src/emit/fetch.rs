//! Memory that is asked for long before it is read.
//!
//! Processors fetch ahead what goes on as it has gone so far, but stop where a page ends, and where blocks do little, what waits for memory at once is
//! less than could. Blocks come in order, so what their threads read one after another goes on beyond where the current block ends: a kernel that reads more than the
//! caches keep asks for what is some way ahead. What it names so need not be memory: nothing is accessed. Processors that see
//! far enough ahead by themselves lose what asking takes.
//!
//! Where lanes read near each other but not side by side, an iteration of a loop reads some lines. Where the next one's are farther on than that, as the blocks of
//! quantized numbers in the rows of a matrix that several warps share, no processor sees it go on: each iteration asks for what the next one reads.
//!
//! Where a loop goes on from row to row, each warp accesses a little of many rows, and the next one what lies beside: each iteration asks for what the warp after the next will want
//! ([`far`]). It is worth most where a compiler has unrolled the loop a few times: then each instruction comes to few rows, too few for a processor to see their stride.

use std::collections::HashSet;

use simt_ir::{Access, Block, Inst, Type as IrType, Value as IrValue};
use transform::far::{self, Step};

use super::address::Address;
use super::exact::even_step;
use super::function::Emitter;
use super::memory::Pattern;
use crate::llvm::{IntPredicate, Value};

/// Bytes of which the caches of one processor keep little. Below, what asks takes longer than what it spares.
const MANY: u64 = 4 << 20;
/// Bytes from what is read to what is asked for: the least that a page may have.
const DISTANCE: i64 = 4096;
/// Bytes of a line.
const LINE: u32 = 64;
/// Bytes of the largest structure that is asked for.
const WIDEST: i64 = 128;
/// Pieces of memory that a block may read for it to ask for any. With more of them it is not memory alone that it waits for.
const MOST: usize = 4;
/// Bytes by which a loop goes on at least for its iterations to ask for what the next one reads. Below, processors see it go on.
const FAR: u64 = 256;
/// How many warps later those are for which lines are asked for. The next one would wait for them still.
const WARPS: u32 = 2;
/// Places in a block that it asks at.
const MOST_PLACES: usize = 12;
/// Lines that an iteration asks for at most at one place.
const LINES: u32 = 7;

/// Where what is asked for is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cache {
    /// Next to the processor: it is read very soon.
    First,
    /// One farther, of which there is much more.
    Second,
}

/// What the lanes of a load read.
struct Piece<'c> {
    start: Value<'c>,
    /// From the first lane to the end of what is the last one's.
    bytes: u32,
    /// Lanes read parts of it, such as a member of a structure.
    is_spread: bool,
}

/// What the code being emitted reads in order.
#[derive(Default)]
pub(super) struct Fetches<'c> {
    pieces: Vec<Piece<'c>>,
    /// The addresses, which may be read at several distances.
    seen: HashSet<IrValue>,
    /// What iterations ask for: where lanes are before they have moved, in which block, and which piece of so many lines.
    next: HashSet<(IrValue, Block, i64)>,
    /// The accesses that ask for what later warps want, once it is known.
    far: Option<HashSet<Inst>>,
}

/// Whether lanes so many bytes apart read members of structures. Small ones of two or four elements are loaded in order, as any row.
fn is_structure(step: i64) -> bool {
    let fills_registers = step <= 16 && step.count_ones() == 1;
    (1..=WIDEST).contains(&step) && !fills_registers
}

impl Fetches<'_> {
    /// Control comes from elsewhere.
    pub(super) fn forget(&mut self) {
        self.pieces.clear();
        self.seen.clear();
        self.next.clear();
    }
}

impl<'c> Emitter<'_, 'c> {
    /// Notes what a load reads whose lanes, of so many bytes each, lie one after another or have structures that do, and which no loop repeats: that goes
    /// on elsewhere.
    pub(super) fn note_read(&mut self, inst: Inst, access: Access, address: &Address<'c>, bytes: u32) {
        let p = self.p;
        let (value, result) = (p.func.inst(inst).args[0], p.func.inst(inst).results[0]);
        let Address::Affine(base, offsets) = address else { return };
        if self.is_quick() || !far::is_plain(access) || p.loops.innermost(self.current).is_some() {
            return;
        }
        let lanes = self.unit.lanes;
        let piece = if let Pattern::Consecutive(start) = self.pattern(address, bytes, 1, true) {
            Piece { start, bytes: bytes * lanes, is_spread: false }
        } else if let Some(step) = even_step(offsets).filter(|step| is_structure(*step))
            // What stays together is loaded in order, as any row.
            && self.packs.of(result).is_none()
        {
            Piece { start: self.offset(*base, offsets[0]), bytes: step as u32 * lanes, is_spread: true }
        } else {
            return;
        };
        if self.fetches.seen.insert(value) {
            self.fetches.pieces.push(piece);
        }
    }

    /// Asks for what the next iteration of the loop around reads where this load of so many bytes a lane does, if lanes are near to each other.
    pub(super) fn fetch_next(&mut self, value: IrValue, access: Access, address: &Address<'c>, bytes: u32) {
        let gains = !self.is_quick() && self.unit.machine.cpu().looks_for_order();
        if !gains || !far::is_plain(access) || self.p.func.ty(value) != IrType::I64 {
            return;
        }
        let Some(around) = self.p.loops.innermost(self.current) else { return };
        let step = far::step(self.p, value, around);
        let Some(Step::By(step)) = step else { return };
        if step.unsigned_abs() < FAR {
            return;
        }
        let is_scattered = !matches!(self.pattern(address, bytes, 1, true), Pattern::Consecutive(_));
        let here = self.fetches.next.iter().filter(|(_, block, _)| *block == self.current);
        if !is_scattered || here.count() >= MOST_PLACES {
            return;
        }
        let (start, moves) = self.before_moves(value);
        let reach = LINE * LINES;
        let piece = (access.offset + i64::from(reach / 2)).div_euclid(reach.into());
        if !self.fetches.next.insert((start, self.current, piece)) {
            return;
        }
        let b = self.unit.b;
        let (first, span) = match address {
            Address::Affine(base, offsets) => {
                let least = offsets.iter().min().copied().unwrap_or(0);
                let most = offsets.iter().max().copied().unwrap_or(0);
                (self.offset(*base, least), self.unit.types.i64.int_const((most - least) as u64))
            }
            Address::Varying(_) | Address::Indexed(..) => {
                let lanes = self.vector(start);
                let (first, last) = (b.extract(lanes, 0), b.extract(lanes, self.unit.lanes - 1));
                let moved = moves.into_iter().fold(first, |sum, by| b.add(sum, self.natural(by)));
                (self.offset(moved, access.offset), b.sub(last, first))
            }
            Address::Uniform(_) | Address::Rows { .. } => return,
        };
        let are_near = b.icmp(IntPredicate::Ule, span, span.ty().int_const((reach - LINE - bytes).into()));
        if are_near.as_int() == Some(0) {
            return;
        }
        let (asks, after) = (b.append_block("fetch"), b.append_block("fetched"));
        b.cond_br(are_near, asks, after);
        b.position_at_end(asks);
        for line in 0..LINES {
            self.prefetch(self.offset(first, step + i64::from(line * LINE)), Cache::First);
        }
        b.br(after);
        b.position_at_end(after);
    }

    /// Asks for what a later warp accesses where this one does, if the loop around goes on far away.
    pub(super) fn fetch_beside(&mut self, inst: Inst, address: &Address<'c>, bytes: u32) {
        if self.is_quick() || !self.unit.machine.cpu().looks_for_order() {
            return;
        }
        let p = self.p;
        let accesses = self.fetches.far.get_or_insert_with(|| far::accesses(p));
        let takes_turns = |latch: &Block| p.loops.innermost(*latch) == p.loops.innermost(self.current);
        if !accesses.contains(&inst) || self.turns.iter().any(takes_turns) {
            return;
        }
        let pattern = self.pattern(address, bytes, 1, true);
        let Some((starts, lanes)) = pattern.pieces(self.unit.lanes) else { return };
        let piece = lanes * bytes;
        for start in starts {
            for line in (0..piece).step_by(LINE as usize) {
                self.prefetch(self.offset(start, i64::from(WARPS * piece + line)), Cache::Second);
            }
        }
    }

    /// Asks for what comes some way after what has been noted, where the kernel reads much.
    pub(super) fn fetch(&mut self) {
        let pieces = std::mem::take(&mut self.fetches.pieces);
        self.fetches.forget();
        let asks = |piece: &&Piece<'_>| piece.is_spread || !self.unit.machine.cpu().looks_far_ahead();
        let asked: Vec<_> = pieces.iter().filter(asks).collect();
        if pieces.len() > MOST {
            return;
        }
        let Some(least) = asked.iter().map(|piece| piece.bytes / self.unit.lanes).min() else { return };
        let b = self.unit.b;
        let many = self.threads_move(MANY, least.into());
        let (asks, after) = (b.append_block("fetch"), b.append_block("fetched"));
        let branch = b.cond_br(many, asks, after);
        // Where it does not, every instruction counts.
        b.mark_odds(branch, 1, 2000);
        b.position_at_end(asks);
        for Piece { start, bytes, .. } in asked {
            for line in (0..*bytes).step_by(LINE as usize) {
                self.prefetch(self.offset(*start, DISTANCE + i64::from(line)), Cache::First);
            }
        }
        b.br(after);
        b.position_at_end(after);
    }
}
