//! Accesses whose lanes go down through memory, as those of an array that is turned round: as runs that go up, whose elements change places in the
//! register.

use kernel_abi::CompileError;

use super::address::Address;
use super::function::Emitter;
use super::mark::Mark;
use crate::llvm::{Type, Value};

/// The least elements of a run.
const LEAST: u32 = 4;

/// Runs in which lanes go down.
struct Descending<'c> {
    /// Where the last lane of each is.
    starts: Vec<Value<'c>>,
    lanes: u32,
}

impl<'c> Emitter<'_, 'c> {
    /// Loads an element for each lane; nothing if they do not lie so.
    pub(super) fn load_descending(
        &mut self,
        address: &Address<'c>,
        lane: Type<'c>,
        mark: Mark,
    ) -> Result<Option<Value<'c>>, CompileError> {
        let Some(runs) = self.descending(address, lane.scalar_bits() / 8) else { return Ok(None) };
        let mask = self.active();
        let mask = self.turned(mask, runs.lanes);
        let loaded = self.load_runs(lane, &runs.starts, runs.lanes, 1, mask, mark)?;
        let loaded = self.concatenated(loaded);
        Ok(Some(self.turned(loaded, runs.lanes)))
    }

    /// Stores an element of each lane; whether they lie so.
    pub(super) fn store_descending(
        &mut self,
        address: &Address<'c>,
        value: Value<'c>,
        mark: Mark,
    ) -> Result<bool, CompileError> {
        let Some(runs) = self.descending(address, value.ty().scalar_bits() / 8) else { return Ok(false) };
        let mask = self.active();
        let [mask, value] = [mask, value].map(|lanes| self.turned(lanes, runs.lanes));
        self.store_runs(value, &runs.starts, runs.lanes, 1, mask, mark)?;
        Ok(true)
    }

    fn descending(&self, address: &Address<'c>, bytes: u32) -> Option<Descending<'c>> {
        let (offsets, row) = match address {
            Address::Affine(_, offsets) => (offsets, self.unit.lanes),
            Address::Rows { offsets, .. } => (offsets, self.unit.row_lanes()),
            _ => return None,
        };
        let goes_down =
            |run: &[i64]| run.windows(2).all(|pair| pair[0].wrapping_sub(pair[1]) == bytes.into());
        let sizes = std::iter::successors(Some(row), |lanes| Some(lanes / 2));
        let mut sizes = sizes.take_while(|lanes| *lanes >= LEAST);
        let lanes = sizes.find(|lanes| offsets.chunks(*lanes as usize).all(goes_down))?;
        let last_of_each = (lanes - 1..self.unit.lanes).step_by(lanes as usize);
        Some(Descending {
            starts: last_of_each.map(|lane| self.place_of_lane(address, lane)).collect(),
            lanes,
        })
    }

    /// The elements of each run in the other order.
    fn turned(&self, vector: Value<'c>, lanes: u32) -> Value<'c> {
        let places: Vec<i32> =
            (0..self.unit.lanes).map(|at| (at - at % lanes + (lanes - 1 - at % lanes)) as i32).collect();
        self.unit.b.shuffle(vector, vector, &places)
    }
}
