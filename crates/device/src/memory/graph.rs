//! Memory that nodes of graphs allocate.
//!
//! Its addresses belong to a graph from the node's making to the graph's end. It is *in use* from a launch that allocates it to the
//! launch or call that frees it, in the order in which these are submitted, and *reserved* from its first launch until it is
//! trimmed, in use or not, which is what a GPU's driver counts: pages of memory that is not reserved are the system's.
//!
//! What is told of it is counted as a GPU's driver does, which takes memory in units ([`UNIT`]): an allocation takes what is left of those
//! that there are, or as many new ones as it needs. What allocations add up to, in whole units, is used, also when their graphs are gone: until
//! it is trimmed, or others take it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{AddressSpace, Allocation, ContextId, Kind, PAGE};
use crate::stream::Completion;
use crate::{Error, Result};

/// What graphs take memory in.
const UNIT: u64 = 32 << 20;

/// Bytes that graphs use and have reserved on a device, and the most there have been: since one reset, and since another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphUsage {
    /// Used, or free and not trimmed.
    pub used: u64,
    /// Reserved.
    pub reserved: u64,
    /// The most since that of use was last reset.
    pub used_high: u64,
    /// The most since that of reservations was last reset.
    pub reserved_high: u64,
}

/// What is known about the memory of graphs.
#[derive(Default)]
pub(super) struct GraphAllocations {
    by_address: HashMap<u64, State>,
    by_device: HashMap<usize, Reserved>,
}

/// What is reserved on a device.
#[derive(Default)]
struct Reserved {
    /// What allocations add up to, with those that are gone and not trimmed.
    bytes: u64,
    /// The latter alone.
    gone: u64,
    usage: GraphUsage,
}

struct State {
    size: u64,
    device: usize,
    in_use: bool,
    reserved: bool,
    /// The graph is gone: it goes when it is freed.
    orphaned: bool,
    /// The end of the last launch that used it.
    last: Option<Arc<Completion>>,
}

impl Reserved {
    fn reserve(&mut self, state: &mut State) {
        if std::mem::replace(&mut state.reserved, true) {
            return;
        }
        let again = self.gone.min(state.size);
        self.gone -= again;
        let size = state.size - again;
        if size > self.usage.reserved - self.bytes {
            self.usage.reserved += size.next_multiple_of(UNIT);
        }
        self.bytes += size;
        self.count();
    }

    /// Part of what has been trimmed.
    fn release(&mut self, state: &mut State) {
        if std::mem::replace(&mut state.reserved, false) {
            self.bytes -= state.size;
        }
    }

    /// Gives back what is left when parts have been.
    fn trim(&mut self) {
        self.bytes -= std::mem::take(&mut self.gone);
        self.usage.reserved = self.bytes.next_multiple_of(UNIT);
        self.count();
    }

    fn count(&mut self) {
        let usage = &mut self.usage;
        usage.used = self.bytes.next_multiple_of(UNIT);
        usage.used_high = usage.used_high.max(usage.used);
        usage.reserved_high = usage.reserved_high.max(usage.reserved);
    }
}

impl GraphAllocations {
    fn set(&mut self, address: u64, in_use: bool) {
        if let Some(state) = self.by_address.get_mut(&address) {
            state.in_use = in_use;
            // What is freed stays reserved.
            if in_use {
                self.by_device.entry(state.device).or_default().reserve(state);
            }
        }
    }

    fn is_in_use(&self, address: u64) -> bool {
        self.by_address.get(&address).is_some_and(|state| state.in_use)
    }
}

impl AddressSpace {
    /// Addresses for a node, which is to belong to a graph.
    pub(crate) fn allocate_for_graph(&self, device: usize, owner: ContextId, size: u64) -> Result<u64> {
        let address = self.allocate(device, owner, size, Kind::Graph)?;
        let state = State { size, device, in_use: false, reserved: false, orphaned: false, last: None };
        self.graphs.lock().by_address.insert(address, state);
        Ok(address)
    }

    /// A launch allocates and frees what it says.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if something is in use that is to be allocated, unless that is said to be `reused`, or something not
    /// in use that is to be freed.
    pub(crate) fn launch_graph_memory(&self, allocated: &[u64], freed: &[u64], reused: bool) -> Result<()> {
        let mut graphs = self.graphs.lock();
        let taken = !reused && allocated.iter().any(|address| graphs.is_in_use(*address));
        let own: HashSet<u64> = allocated.iter().copied().collect();
        // What is not a graph's is freed in its stream, or was when the node was made.
        let is_there = |address: &u64| {
            own.contains(address) || graphs.is_in_use(*address) || !graphs.by_address.contains_key(address)
        };
        if taken || !freed.iter().all(is_there) {
            return Err(Error::InvalidValue);
        }
        allocated.iter().for_each(|address| graphs.set(*address, true));
        // What is allocated again behind that is in use.
        let mut left: HashMap<u64, usize> = HashMap::new();
        if !freed.is_empty() {
            allocated.iter().for_each(|address| *left.entry(*address).or_default() += 1);
        }
        for address in freed {
            let times = left.entry(*address).or_insert(1);
            *times = times.saturating_sub(1);
            if *times == 0 {
                graphs.set(*address, false);
            }
        }
        Ok(())
    }

    /// Whether there is memory at an address now: that of a graph is there while it is in use.
    pub fn is_there(&self, allocation: &Allocation) -> bool {
        allocation.kind != Kind::Graph || self.graphs.lock().is_in_use(allocation.base)
    }

    /// The end of a launch that used this memory.
    pub(crate) fn note_graph_launch(&self, addresses: &[u64], end: &Arc<Completion>) {
        let mut graphs = self.graphs.lock();
        for address in addresses {
            if let Some(state) = graphs.by_address.get_mut(address) {
                state.last = Some(end.clone());
            }
        }
    }

    /// The program frees what a launch has allocated. The answer says whether the memory itself is to go, since its graph has.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not in use.
    pub(crate) fn free_graph_memory(&self, address: u64) -> Result<bool> {
        let mut graphs = self.graphs.lock();
        if !graphs.is_in_use(address) {
            return Err(Error::InvalidValue);
        }
        graphs.set(address, false);
        Ok(graphs.by_address[&address].orphaned)
    }

    /// The graph is gone that had this memory. What is in use stays until the program frees it.
    pub(crate) fn disown_graph_memory(&self, address: u64, id: u64) {
        if let Some(state) = self.graphs.lock().by_address.get_mut(&address).filter(|state| state.in_use) {
            state.orphaned = true;
            return;
        }
        // The context may have taken it along.
        let _ = self.free(address, |allocation| allocation.id == id);
    }

    /// What graphs use of a device.
    pub fn graph_usage(&self, device: usize) -> GraphUsage {
        self.graphs.lock().by_device.get(&device).map_or_else(GraphUsage::default, |reserved| reserved.usage)
    }

    /// Forgets the most that graphs have used, or reserved, of a device.
    pub fn reset_graph_high(&self, device: usize, of_reserved: bool) {
        let mut graphs = self.graphs.lock();
        let usage = &mut graphs.by_device.entry(device).or_default().usage;
        match of_reserved {
            true => usage.reserved_high = usage.reserved,
            false => usage.used_high = usage.used,
        }
    }

    /// Gives pages that no graph uses, and no launch that is under way, back to the system.
    pub fn trim_graph_memory(&self, device: usize) {
        let mut graphs = self.graphs.lock();
        let GraphAllocations { by_address, by_device } = &mut *graphs;
        let reserved = by_device.entry(device).or_default();
        for (address, state) in by_address.iter_mut().filter(|(_, state)| state.device == device) {
            let is_running = state.last.as_ref().is_some_and(|last| !last.is_finished());
            if state.reserved && !state.in_use && !is_running {
                // Pages at the ends may be others' too.
                let (first, end) = (address.next_multiple_of(PAGE), (address + state.size) / PAGE * PAGE);
                if first < end {
                    self.devices[device].heap_at(*address).lock().discard(first, end - first);
                }
                reserved.release(state);
            }
        }
        reserved.trim();
    }

    /// Memory of a graph goes, in use or not.
    pub(super) fn forget_graph_memory(&self, allocation: &Allocation) {
        let mut graphs = self.graphs.lock();
        if let Some(state) = graphs.by_address.remove(&allocation.base).filter(|state| state.reserved) {
            graphs.by_device.entry(state.device).or_default().gone += state.size;
        }
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::*;

    const A: ContextId = ContextId(1);

    /// In units: used and reserved, now and at most.
    fn usage(space: &AddressSpace) -> [u64; 4] {
        let GraphUsage { used, reserved, used_high, reserved_high } = space.graph_usage(0);
        [used, reserved, used_high, reserved_high].map(|bytes| {
            assert!(bytes.is_multiple_of(UNIT));
            bytes / UNIT
        })
    }

    #[test]
    fn memory_is_reserved_by_launches_until_it_is_trimmed() {
        let space = AddressSpace::new(&[256 << 20]).unwrap();
        let a = space.allocate_for_graph(0, A, 33 << 20).unwrap();
        let b = space.allocate_for_graph(0, A, 33 << 20).unwrap();
        let small = space.allocate_for_graph(0, A, 500).unwrap();
        assert_eq!(usage(&space), [0; 4]);
        space.launch_graph_memory(&[a, b], &[b], false).unwrap();
        assert_eq!(usage(&space), [3, 4, 3, 4]);
        space.launch_graph_memory(&[small], &[small], false).unwrap();
        assert_eq!(usage(&space), [3, 4, 3, 4], "there is room in a piece");
        assert_eq!(space.launch_graph_memory(&[a, b], &[b], false), Err(Error::InvalidValue), "in use");
        space.launch_graph_memory(&[a, b], &[b], true).unwrap();
        space.trim_graph_memory(0);
        assert_eq!(usage(&space), [2, 2, 3, 4], "what is in use stays, and no more");
        assert_eq!(space.free_graph_memory(a), Ok(false));
        assert_eq!(space.free_graph_memory(a), Err(Error::InvalidValue));
        assert_eq!(space.launch_graph_memory(&[], &[a], false), Err(Error::InvalidValue), "not in use");
        space.reset_graph_high(0, false);
        assert_eq!(usage(&space), [2, 2, 2, 4]);
        space.trim_graph_memory(0);
        space.reset_graph_high(0, false);
        space.reset_graph_high(0, true);
        assert_eq!(usage(&space), [0; 4]);
    }

    #[test]
    fn trimming_gives_whole_pages_back_and_no_others() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let [a, b] = [3 * PAGE + 100, 200].map(|size| space.allocate_for_graph(0, A, size).unwrap());
        space.launch_graph_memory(&[a, b], &[a], false).unwrap();
        // SAFETY: memory of the test's.
        unsafe {
            guard::store(a + PAGE, 7_u32).unwrap();
            guard::store(b, 9_u32).unwrap();
        }
        space.trim_graph_memory(0);
        // SAFETY: likewise.
        let words = unsafe { [guard::load::<u32>(a + PAGE).unwrap(), guard::load(b).unwrap()] };
        assert_eq!(words, [0, 9]);
        assert_eq!(usage(&space), [1; 4]);
    }

    #[test]
    fn what_is_in_use_outlives_its_graph() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        let a = space.allocate_for_graph(0, A, 1000).unwrap();
        let b = space.allocate_for_graph(0, A, 500).unwrap();
        space.launch_graph_memory(&[a], &[], false).unwrap();
        for address in [a, b] {
            space.disown_graph_memory(address, space.find(address).unwrap().id);
        }
        assert!(space.find(a).is_some() && space.find(b).is_none());
        assert_eq!(space.free_graph_memory(a), Ok(true));
        space.free_owned(A);
        assert_eq!(usage(&space), [1; 4]);
        let b = space.allocate_for_graph(0, A, 20 << 20).unwrap();
        let c = space.allocate_for_graph(0, A, 20 << 20).unwrap();
        space.launch_graph_memory(&[b], &[], false).unwrap();
        assert_eq!(usage(&space), [1; 4], "taken again");
        space.launch_graph_memory(&[c], &[b], false).unwrap();
        assert_eq!(usage(&space), [2; 4]);
        space.free_owned(A);
        space.trim_graph_memory(0);
        assert_eq!(usage(&space), [0, 0, 2, 2]);
    }
}
