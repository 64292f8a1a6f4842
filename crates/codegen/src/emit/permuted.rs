//! Accesses whose lanes lie in runs of memory in another order than theirs ([`transform::permuted`]), as those of an array that is turned round, or of
//! blocks of three axes: the runs are accessed as they lie, and elements change places in the register.

use kernel_abi::CompileError;
use transform::permuted::Permutation;

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use super::memory::Pattern;
use crate::llvm::{Type, Value};

/// How many times fewer runs there must be than pieces that lanes have in order.
const FEWER: usize = 4;

impl<'c> Emitter<'_, 'c> {
    /// Loads `count` elements for each lane; nothing if they do not lie so.
    pub(super) fn load_permuted(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        count: u32,
        mark: Mark,
    ) -> Result<Option<Vec<Value<'c>>>, CompileError> {
        let b = self.unit.b;
        let Some(found) = self.permutation(address, lane.scalar_bits() / 8, count, true) else {
            return Ok(None);
        };
        let mask = self.active();
        let mask = self.picked(mask, &found.lanes);
        let starts = self.starts_of_runs(address, &found);
        let loaded = self.load_runs(lane, &starts, found.run as u32, count, mask, mark)?;
        let loaded = self.split(b.concatenated(loaded), count);
        Ok(Some(loaded.into_iter().map(|elements| self.picked(elements, &found.elements)).collect()))
    }

    /// Stores some elements of each lane; whether they lie so.
    pub(super) fn store_permuted(
        &mut self,
        address: &Address<'c>,
        values: &[Value<'c>],
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let count = values.len() as u32;
        let Some(found) = self.permutation(address, values[0].ty().scalar_bits() / 8, count, false) else {
            return Ok(false);
        };
        let mask = self.active();
        let mask = self.picked(mask, &found.lanes);
        let values: Vec<_> = values.iter().map(|elements| self.picked(*elements, &found.lanes)).collect();
        let starts = self.starts_of_runs(address, &found);
        self.store_runs(self.join(&values), &starts, found.run as u32, count, mask, mark)?;
        Ok(true)
    }

    fn permutation(&self, address: &Address<'c>, size: u32, count: u32, load: bool) -> Option<Permutation> {
        let (offsets, row) = match address {
            Address::Affine(_, offsets) => (offsets, self.unit.lanes),
            Address::Rows { offsets, .. } => (offsets, self.unit.row_lanes()),
            _ => return None,
        };
        // An element that several lanes share is touched if any of them is active.
        let share = load && self.is_full();
        let found = Permutation::of(offsets, row as usize, (size * count).into(), share)?;
        let pays = match self.pattern(address, size, count, load) {
            Pattern::Consecutive(_) => false,
            Pattern::Pieces { starts, .. } => FEWER * found.runs() <= starts.len(),
            _ => true,
        };
        (pays && count.is_power_of_two()).then_some(found)
    }

    fn starts_of_runs(&self, address: &Address<'c>, found: &Permutation) -> Vec<Value<'c>> {
        found.lanes.iter().step_by(found.run).map(|lane| self.place_of_lane(address, *lane as u32)).collect()
    }
}
