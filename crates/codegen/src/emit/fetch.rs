//! Memory that is asked for long before it is read.
//!
//! Processors fetch ahead what goes on as it has gone so far, but stop where a page ends, and where blocks do little, what waits for memory at once is
//! less than could. Blocks come in order, so what their threads read one after another goes on beyond where the current block ends: a kernel that reads more than the
//! caches keep asks for what is some way ahead. What it names so need not be memory: nothing is accessed. Processors that see
//! far enough ahead by themselves lose what asking takes.
//!
//! Where lanes read near each other but not side by side, an iteration of a loop reads some lines. Where the next one's are farther on than that, as the blocks of
//! quantized numbers in the rows of a matrix that several warps share, no processor sees it go on: each iteration asks for what the next one reads.

use std::collections::HashSet;

use simt_ir::{
    Access, Block, Convert, Def, IntBinary, Op, Order, Shift, Space, Type as IrType, Value as IrValue,
};
use transform::LoopId;
use transform::simplify::sign_extended;

use super::address::Address;
use super::function::Emitter;
use super::memory::Pattern;
use crate::llvm::{IntPredicate, Value};

/// Bytes of which the caches of one processor keep little. Below, what asks takes longer than what it spares.
const MANY: u64 = 4 << 20;
/// Bytes from what is read to what is asked for: the least that a page may have.
const DISTANCE: i64 = 4096;
/// Bytes of a line.
const LINE: u32 = 64;
/// Pieces of memory that a block may read for it to ask for any. With more of them it is not memory alone that it waits for.
const MOST: usize = 4;
/// Bytes by which a loop goes on at least for its iterations to ask for what the next one reads. Below, processors see it go on.
const FAR: u64 = 256;
/// Places in a block that it asks at.
const MOST_PLACES: usize = 12;
/// Lines that an iteration asks for at most at one place.
const LINES: u32 = 7;
/// How many definitions are looked at for what a loop moves an address by.
const DEFINITIONS: u32 = 100;

/// What the code being emitted reads in order.
#[derive(Default)]
pub(super) struct Fetches<'c> {
    /// Where, and bytes of all lanes.
    pieces: Vec<(Value<'c>, u32)>,
    /// The addresses, which may be read at several distances.
    seen: HashSet<IrValue>,
    /// What iterations ask for: where lanes are before they have moved, in which block, and which piece of so many lines.
    next: HashSet<(IrValue, Block, i64)>,
}

/// Whether it may be asked for: it is device memory, which nobody waits for.
fn is_plain(access: Access) -> bool {
    access.order == Order::Weak && matches!(access.space, Space::Global | Space::Generic)
}

impl<'c> Emitter<'_, 'c> {
    /// Notes what a load reads whose lanes, of so many bytes each, lie one after another, and which no loop repeats: that goes on elsewhere.
    pub(super) fn note_read(&mut self, value: IrValue, access: Access, address: &Address<'c>, bytes: u32) {
        let goes_on =
            matches!(address, Address::Affine(..)) && self.p.loops.innermost(self.current).is_none();
        if self.is_quick() || !is_plain(access) || !goes_on {
            return;
        }
        let Pattern::Consecutive(start) = self.pattern(address, bytes, 1, true) else { return };
        if self.fetches.seen.insert(value) {
            self.fetches.pieces.push((start, bytes * self.unit.lanes));
        }
    }

    /// Asks for what the next iteration of the loop around reads where this load of so many bytes a lane does, if lanes are near to each other.
    pub(super) fn fetch_next(&mut self, value: IrValue, access: Access, address: &Address<'c>, bytes: u32) {
        let gains = !self.is_quick() && self.unit.machine.cpu().looks_for_order();
        if !gains || !is_plain(access) || self.p.func.ty(value) != IrType::I64 {
            return;
        }
        let Some(around) = self.p.loops.innermost(self.current) else { return };
        let mut left = DEFINITIONS;
        let step = self.step(value, around, &mut left).filter(|step| step.unsigned_abs() >= FAR);
        let Some(step) = step else { return };
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
            self.prefetch(self.offset(first, step + i64::from(line * LINE)));
        }
        b.br(after);
        b.position_at_end(after);
    }

    /// By what a value is greater in the next iteration of a loop, if it is by a constant. That it could wrap is nothing to what is only asked for.
    /// So many definitions may still be looked at.
    fn step(&self, value: IrValue, around: LoopId, left: &mut u32) -> Option<i64> {
        let p = self.p;
        *left = left.checked_sub(1)?;
        if p.def_block[value.index()].is_none_or(|block| !p.loops.contains(around, block)) {
            return Some(0);
        }
        let data = match p.func.def(value) {
            Def::Param(block, at) if p.loops.headed_by(block) == Some(around) => {
                let mut next = p.cfg.passed(&p.func, block, at as usize);
                return next.find_map(|arg| self.moved_by(arg, value, left));
            }
            _ => p.func.def_inst(value)?,
        };
        let mut of = |at: usize| self.step(data.args[at], around, left);
        let constant = || self.signed_constant(data.args[1]);
        match data.op {
            Op::Int(IntBinary::Add) => of(0)?.checked_add(of(1)?),
            Op::Int(IntBinary::Sub) => of(0)?.checked_sub(of(1)?),
            Op::Int(IntBinary::Mul) => of(0)?.checked_mul(constant()?),
            Op::Shift(Shift::Left) => of(0)?.checked_mul(1i64.checked_shl(constant()? as u32)?),
            Op::Convert(Convert::ZExt | Convert::SExt) => of(0),
            _ => None,
        }
    }

    /// What constants a value is more than a loop's parameter, whichever way control has come.
    fn moved_by(&self, value: IrValue, param: IrValue, left: &mut u32) -> Option<i64> {
        if value == param {
            return Some(0);
        }
        let p = self.p;
        *left = left.checked_sub(1)?;
        match p.func.def(value) {
            Def::Param(block, at) if p.loops.headed_by(block).is_none() => {
                let mut ways = p.cfg.passed(&p.func, block, at as usize);
                let one = self.moved_by(ways.next()?, param, left)?;
                ways.all(|arg| self.moved_by(arg, param, left) == Some(one)).then_some(one)
            }
            Def::Result(..) => {
                let data = p.func.def_inst(value).filter(|data| data.op == Op::Int(IntBinary::Add))?;
                let by = |at: usize| Some((data.args[1 - at], self.signed_constant(data.args[at])?));
                let (before, more) = by(0).or_else(|| by(1))?;
                self.moved_by(before, param, left)?.checked_add(more)
            }
            _ => None,
        }
    }

    /// A constant, with its sign: numbers of 32 bits are kept without.
    fn signed_constant(&self, value: IrValue) -> Option<i64> {
        let bits = self.p.func.constant(value)?;
        Some(sign_extended(bits, self.p.func.ty(value).bits()))
    }

    /// Asks for what comes some way after what has been noted, where the kernel reads much.
    pub(super) fn fetch(&mut self) {
        let pieces = std::mem::take(&mut self.fetches).pieces;
        if pieces.len() > MOST || self.unit.machine.cpu().looks_far_ahead() {
            return;
        }
        let Some(least) = pieces.iter().map(|(_, bytes)| bytes / self.unit.lanes).min() else { return };
        let b = self.unit.b;
        let many = self.threads_move(MANY, least.into());
        let (asks, after) = (b.append_block("fetch"), b.append_block("fetched"));
        let branch = b.cond_br(many, asks, after);
        // Where it does not, every instruction counts.
        b.mark_odds(branch, 1, 2000);
        b.position_at_end(asks);
        for (start, bytes) in pieces {
            for line in (0..bytes).step_by(LINE as usize) {
                self.prefetch(self.offset(start, DISTANCE + i64::from(line)));
            }
        }
        b.br(after);
        b.position_at_end(after);
    }
}
