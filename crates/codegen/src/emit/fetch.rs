//! Memory that is asked for long before it is read.
//!
//! Processors fetch ahead what goes on as it has gone so far, but stop where a page ends, and where blocks do little, what waits for memory at once is
//! less than could. Blocks come in order, so what their threads read one after another goes on beyond where the current block ends: a kernel that reads more than the
//! caches keep asks for what is some way ahead. What it names so need not be memory: nothing is accessed. Processors that see
//! far enough ahead by themselves lose what asking takes.

use std::collections::HashSet;

use simt_ir::{Access, Order, Space, Value as IrValue};

use super::address::Address;
use super::function::Emitter;
use super::memory::Pattern;
use crate::llvm::Value;

/// Bytes of which the caches of one processor keep little. Below, what asks takes longer than what it spares.
const MANY: u64 = 4 << 20;
/// Bytes from what is read to what is asked for: the least that a page may have.
const DISTANCE: i64 = 4096;
/// Bytes of a line.
const LINE: u32 = 64;
/// Pieces of memory that a block may read for it to ask for any. With more of them it is not memory alone that it waits for.
const MOST: usize = 4;

/// What the code being emitted reads in order.
#[derive(Default)]
pub(super) struct Fetches<'c> {
    /// Where, and bytes of all lanes.
    pieces: Vec<(Value<'c>, u32)>,
    /// The addresses, which may be read at several distances.
    seen: HashSet<IrValue>,
}

impl<'c> Emitter<'_, 'c> {
    /// Notes what a load reads whose lanes, of so many bytes each, lie one after another, and which no loop repeats: that goes on elsewhere.
    pub(super) fn note_read(&mut self, value: IrValue, access: Access, address: &Address<'c>, bytes: u32) {
        let is_plain = access.order == Order::Weak && matches!(access.space, Space::Global | Space::Generic);
        let goes_on =
            matches!(address, Address::Affine(..)) && self.p.loops.innermost(self.current).is_none();
        if self.is_quick() || !is_plain || !goes_on {
            return;
        }
        let Pattern::Consecutive(start) = self.pattern(address, bytes, 1, true) else { return };
        if self.fetches.seen.insert(value) {
            self.fetches.pieces.push((start, bytes * self.unit.lanes));
        }
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
