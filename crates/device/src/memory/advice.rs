//! What programs say about where memory should be. All processors share the machine's memory, so nothing follows from it; but
//! a program may ask for what it said.

use std::collections::BTreeMap;

use super::range::PAGE;
use super::{AddressSpace, Allocation, Kind, machine};
use crate::{Error, Result};

/// A place where memory can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a device.
    Device(usize),
    /// At the host.
    Host,
    /// At a node of the host.
    HostNode(i32),
}

/// Says something about memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It is read mostly, or that is taken back.
    ReadMostly(bool),
    /// It should be in a place, or that is taken back.
    Preferred(Option<Place>),
    /// A device will access it, or that is taken back; `None` stands for the host.
    AccessedBy(Option<usize>, bool),
    /// It was asked to move.
    Prefetched(Place),
}

/// What has been said of all bytes of a range.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeState {
    /// It is read mostly.
    pub read_mostly: bool,
    /// Where it should be.
    pub preferred: Option<Place>,
    /// The devices that will access it.
    pub accessed_by: Vec<usize>,
    /// The host will access it.
    pub accessed_by_host: bool,
    /// Where it was last asked to move.
    pub prefetched: Option<Place>,
}

/// Ranges of which something has been said: start to end and what. They do not overlap.
#[derive(Debug, Default)]
pub(super) struct AdviceMap {
    ranges: BTreeMap<u64, (u64, RangeState)>,
}

impl AddressSpace {
    /// Says something about managed memory, or memory of the program; the range is widened to whole pages of it.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a range that is empty or not of one piece of such memory.
    pub fn advise(&self, start: u64, len: u64, advice: Advice) -> Result<()> {
        let (start, end) = self.movable(start, len)?;
        self.advice.lock().change(start, end, |state| state.take(advice));
        Ok(())
    }

    /// What has been said of all of a range.
    ///
    /// # Errors
    /// As for [`advise`](Self::advise).
    pub fn range_state(&self, start: u64, len: u64) -> Result<RangeState> {
        self.movable(start, len)?;
        Ok(self.advice.lock().common(start, start + len))
    }

    /// The content of a range is not needed any more: managed memory in it may go back to the machine. What is read there
    /// next is undefined. Nothing may be using the range.
    ///
    /// # Errors
    /// As for [`advise`](Self::advise).
    pub fn discard(&self, start: u64, len: u64) -> Result<()> {
        self.movable(start, len)?;
        let Some(found) = self.find(start) else { return Ok(()) };
        let (first, end) = (start.next_multiple_of(PAGE), (start + len) & !(PAGE - 1));
        if first < end {
            self.devices[found.device].heap_at(first).lock().discard(first, end - first);
        }
        Ok(())
    }

    /// Checks that a range is of one piece of memory that can be said to be somewhere.
    ///
    /// # Errors
    /// As for [`advise`](Self::advise).
    pub fn check_movable(&self, start: u64, len: u64) -> Result<()> {
        self.movable(start, len).map(drop)
    }

    /// Forgets what was said of an allocation that is gone.
    pub(super) fn forget_advice(&self, allocation: &Allocation) {
        if matches!(allocation.kind, Kind::Managed { .. }) {
            self.advice
                .lock()
                .change(allocation.base, allocation.end(), |state| *state = RangeState::default());
        }
    }

    /// A range in whole pages, as far as they are of the same allocation.
    fn movable(&self, start: u64, len: u64) -> Result<(u64, u64)> {
        let end = start.checked_add(len).filter(|_| len > 0).ok_or(Error::InvalidValue)?;
        let first = start & !(PAGE - 1);
        let last = end.checked_next_multiple_of(PAGE).ok_or(Error::InvalidValue)?;
        match self.find(start) {
            Some(found) if matches!(found.kind, Kind::Managed { .. }) && end <= found.end() => {
                Ok((first.max(found.base), last.min(found.end())))
            }
            None if start != 0 && !self.is_device_address(start) && machine::is_mapped(start, len) => {
                Ok((first, last))
            }
            _ => Err(Error::InvalidValue),
        }
    }
}

impl RangeState {
    fn take(&mut self, advice: Advice) {
        match advice {
            Advice::ReadMostly(is) => self.read_mostly = is,
            Advice::Preferred(place) => self.preferred = place,
            Advice::AccessedBy(None, is) => self.accessed_by_host = is,
            Advice::AccessedBy(Some(device), is) => {
                self.accessed_by.retain(|known| *known != device);
                if is {
                    self.accessed_by.push(device);
                    self.accessed_by.sort_unstable();
                }
            }
            Advice::Prefetched(place) => self.prefetched = Some(place),
        }
    }

    /// What holds for both.
    fn and(mut self, other: &RangeState) -> RangeState {
        self.read_mostly &= other.read_mostly;
        self.preferred = self.preferred.filter(|place| other.preferred == Some(*place));
        self.prefetched = self.prefetched.filter(|place| other.prefetched == Some(*place));
        self.accessed_by.retain(|device| other.accessed_by.contains(device));
        self.accessed_by_host &= other.accessed_by_host;
        self
    }
}

impl AdviceMap {
    /// Changes what was said of a range.
    fn change(&mut self, start: u64, end: u64, change: impl Fn(&mut RangeState)) {
        self.split(start);
        self.split(end);
        // Pieces that exist, and the gaps between them.
        let known: Vec<(u64, u64)> =
            self.ranges.range(start..end).map(|(at, (end, _))| (*at, *end)).collect();
        let mut at = start;
        for (piece, piece_end) in known.into_iter().chain([(end, end)]) {
            if at < piece {
                self.ranges.insert(at, (piece, RangeState::default()));
            }
            at = piece_end;
        }
        for (_, (_, state)) in self.ranges.range_mut(start..end) {
            change(state);
        }
        self.tidy(start, end);
    }

    /// What holds for all of a range.
    fn common(&self, start: u64, end: u64) -> RangeState {
        let before = self.ranges.range(..=start).next_back().filter(|(_, (end, _))| *end > start);
        let after = self.ranges.range(start..end).filter(|(at, _)| **at > start);
        let (mut at, mut common) = (start, None::<RangeState>);
        for (piece, (piece_end, state)) in before.into_iter().chain(after) {
            if *piece > at {
                break;
            }
            at = *piece_end;
            common = Some(match common {
                None => state.clone(),
                Some(common) => common.and(state),
            });
        }
        if at < end { RangeState::default() } else { common.unwrap_or_default() }
    }

    /// Makes `at` a border.
    fn split(&mut self, at: u64) {
        let inside = self.ranges.range_mut(..at).next_back().filter(|(_, (end, _))| *end > at);
        if let Some((_, (end, state))) = inside {
            let upper = (std::mem::replace(end, at), state.clone());
            self.ranges.insert(at, upper);
        }
    }

    /// Drops pieces of which nothing is said any more, and joins equal neighbours.
    fn tidy(&mut self, start: u64, end: u64) {
        self.ranges.retain(|_, (_, state)| *state != RangeState::default());
        let first = self.ranges.range(..start).next_back().map_or(start, |(at, _)| *at);
        let pieces: Vec<u64> = self.ranges.range(first..=end).map(|(at, _)| *at).collect();
        for pair in pieces.windows(2).rev() {
            let (lower, upper) = (&self.ranges[&pair[0]], &self.ranges[&pair[1]]);
            if lower.0 == pair[1] && lower.1 == upper.1 {
                let end = upper.0;
                self.ranges.remove(&pair[1]);
                self.ranges.get_mut(&pair[0]).expect("looked at just now").0 = end;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_parts_holds_for_parts() {
        let mut map = AdviceMap::default();
        map.change(100, 200, |state| state.take(Advice::ReadMostly(true)));
        map.change(150, 300, |state| state.take(Advice::Preferred(Some(Place::Host))));
        map.change(150, 200, |state| state.take(Advice::AccessedBy(Some(1), true)));
        map.change(100, 250, |state| state.take(Advice::AccessedBy(Some(0), true)));
        assert!(map.common(100, 200).read_mostly && !map.common(100, 201).read_mostly);
        assert_eq!(map.common(150, 300).preferred, Some(Place::Host));
        assert_eq!(map.common(149, 300).preferred, None);
        assert_eq!(map.common(150, 200).accessed_by, [0, 1]);
        assert_eq!(map.common(120, 220).accessed_by, [0]);
        assert_eq!(map.common(99, 120), RangeState::default());
        assert_eq!(map.common(299, 301), RangeState::default());
        map.change(0, 1000, |state| *state = RangeState::default());
        assert!(map.ranges.is_empty());
    }

    #[test]
    fn gaps_count_and_equal_neighbours_join() {
        let mut map = AdviceMap::default();
        for start in [0, 20, 10] {
            map.change(start, start + 10, |state| state.take(Advice::Prefetched(Place::Device(0))));
        }
        assert_eq!(map.ranges.len(), 1, "{:?}", map.ranges);
        map.change(40, 50, |state| state.take(Advice::Prefetched(Place::Device(0))));
        assert_eq!(map.common(5, 30).prefetched, Some(Place::Device(0)));
        assert_eq!(map.common(5, 50).prefetched, None, "nothing was said of what lies between");
        map.change(12, 13, |state| state.take(Advice::Prefetched(Place::Host)));
        assert_eq!((map.common(0, 30).prefetched, map.common(12, 13).prefetched), (None, Some(Place::Host)));
    }
}
