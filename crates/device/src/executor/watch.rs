//! What is done about work that does not get on.

use std::mem;
use std::time::Duration;

use super::State;

/// How often the watch looks for progress, and after how many looks without work it ends.
pub(super) const WATCH: Duration = Duration::from_millis(4);
pub(super) const WATCHES: u32 = 50;
/// After how many looks nothing gets on where blocks run in quickly made code. They may take as long as that by themselves, and more threads would only keep
/// processors from those who make better code.
pub(super) const WATCHES_AT_FIRST: u32 = 12;
/// Most workers that are started at a time.
const MAX_BATCH: usize = 32;
/// The most looks, a second or so, after which another worker is started where no blocks wait for others.
const MOST_PATIENCE: u32 = 256;

/// What the watch has seen.
#[derive(Default)]
pub(super) struct Watch {
    /// [`Executor::progress`](super::Executor::progress) when it looked last.
    last: u64,
    /// Looks in a row that found no work.
    quiet: u32,
    /// Looks in a row that found work, and that nothing had moved, since something was done about that.
    still: u32,
    /// Workers that it added last, if it has to again.
    batch: usize,
    /// After how many looks without progress, less one, there is one more worker though no blocks wait for others: blocks may take as long as that by
    /// themselves, or what the program has been called back for, which may wait for anything. Twice as many each time.
    patience: u32,
    /// [`Executor::max_extra`](super::Executor::max_extra).
    max_extra: usize,
}

/// What is to be done about work that does not get on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    Nothing,
    /// Those who sleep are to look for work.
    Wake,
    /// So many more workers.
    Add(usize),
    /// There has been none for long.
    End,
}

impl Watch {
    pub(super) fn new(max_extra: usize) -> Watch {
        Watch { max_extra, ..Watch::default() }
    }

    /// `waiting`: whether some thread runs blocks that may wait for others.
    pub(super) fn look(
        &mut self,
        state: &State,
        progress: u64,
        waiting: bool,
        first_code: bool,
        shut_down: bool,
    ) -> Remedy {
        let waits = state.has_job();
        self.quiet = if waits { 0 } else { self.quiet + 1 };
        if self.quiet > WATCHES || shut_down {
            return Remedy::End;
        }
        let moved = progress != mem::replace(&mut self.last, progress);
        self.still = if waits && !moved { self.still + 1 } else { 0 };
        let any_waits = waiting || state.grids.iter().any(|grid| grid.blocks_wait());
        let looks = match (first_code, any_waits) {
            (true, _) => WATCHES_AT_FIRST,
            (false, true) => 1,
            (false, false) => 1 + self.patience,
        };
        let stalls = self.still >= looks;
        if stalls {
            self.still = 0;
        }
        if !waits {
            self.patience = 0;
        }
        // The longer nothing moves, the more blocks wait for others that have not begun.
        let some_wait = state.grids.iter().any(|grid| grid.blocks_wait() && grid.has_blocks_left());
        let batch = self.batch.max(1);
        self.batch = match self.still {
            0 if stalls && some_wait => (batch * 2).min(MAX_BATCH),
            0 => 1,
            _ => batch,
        };
        match stalls {
            false => Remedy::Nothing,
            // Whoever was to come for it found something else, and what that was may wait for this.
            true if state.some_sleep() => Remedy::Wake,
            true => {
                self.patience = (1 + 2 * self.patience).min(MOST_PATIENCE);
                Remedy::Add(batch.min(self.max_extra.saturating_sub(state.extra)))
            }
        }
    }
}
