//! Memory: who owns which addresses.
//!
//! Every device has one reserved range of addresses ([`range`]) with a [`heap`] in it; a device pointer is a host address. One
//! [`AddressSpace`] knows all allocations of all devices and all host memory that was made known to them, so that an address alone
//! tells what it belongs to.
//!
//! * [`range`], [`extents`], [`heap`], [`machine`]: the addresses of a device, which of them are free, and what the machine has;
//! * [`mapping`]: address ranges and memory as separate things; [`apart`]: large ranges beside a device's own; [`shared`]: memory that several processes map;
//! * [`pool`], [`account`], [`shared_pool`]: stream-ordered allocations, what they hold, and pools of several processes;
//! * [`mod@graph`]: memory that nodes of graphs allocate; [`external`]: memory of other APIs;
//! * [`mod@array`], [`sparse`]: texels for textures and surfaces, and arrays without memory of their own;
//! * [`transfer`], [`fill`]: copies, and setting memory to a value;
//! * [`advice`]: what programs say about where memory should be.
//!
//! **Invariant.** Nothing outside this module makes, moves or unmaps device memory.

mod account;
mod advice;
mod apart;
mod array;
pub(crate) mod extents;
mod external;
pub mod fill;
mod graph;
pub mod heap;
pub mod machine;
mod mapping;
mod pool;
pub mod range;
mod shared;
mod shared_pool;
mod sparse;
pub mod transfer;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use account::Accounts;
use advice::AdviceMap;
pub use advice::{Advice, Place, RangeState};
use apart::Apart;
pub use array::{ArrayLayout, ArrayMemory, Backing, Level};
pub use external::ExternalMemory;
pub use fill::Fill;
use graph::GraphAllocations;
pub use graph::GraphUsage;
pub use heap::{GRANULE, Shared};
use heap::{Heap, Placement};
use mapping::Mappings;
pub use mapping::{
    Access, Accessor, GRANULARITY, Mapping, MemoryPlace, PhysicalMemory, Purpose, SharedHandle,
};
pub use pool::{Pool, PoolAccess, PoolBytes, PoolId, PoolKind, Reuse};
use range::AddressRange;
pub use range::PAGE;
pub(crate) use shared::SharedFile;
pub use shared_pool::SharedPointer;
use shared_pool::SharedPools;
pub use sparse::{SparseLayout, TileMapping};
pub use transfer::{Corner, Extent, Region, Side, Transfer};

use crate::lock::{Rank, RankedMutex};
use crate::usage::Usage;
use crate::{Error, Result};

/// Identifies a context, and with it what it owns; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u64);

impl ContextId {
    /// The owner of what belongs to no context. No context has this identity.
    pub const NONE: ContextId = ContextId(0);
}

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Memory of the device.
    Device,
    /// Memory of the device from a stream-ordered allocation.
    Pooled,
    /// Host memory from a stream-ordered allocation.
    PooledHost,
    /// Memory of the device that a node of a graph allocates.
    Graph,
    /// Managed memory; with `attach_host`, not for kernels until it is attached otherwise.
    Managed {
        /// Made with the flag that attaches it to the host.
        attach_host: bool,
    },
    /// Host memory that the device allocated, with the flags it was made with.
    Pinned {
        /// As the program gave them.
        flags: u32,
    },
    /// Host memory of the program, made known to the device.
    Registered {
        /// As the program gave them.
        flags: u32,
    },
    /// A variable of a module.
    Variable,
    /// What kernels allocate from. The host has no use of it: neither copies nor frees there.
    KernelHeap,
    /// The texels of an array. Programs have no pointers to them.
    Array,
    /// Memory that was mapped: by the program, or from another process.
    Mapped,
    /// Memory of another API.
    External,
}

impl Kind {
    /// Whether the memory counts as the host's.
    pub fn is_host(self) -> bool {
        matches!(self, Kind::Pinned { .. } | Kind::Registered { .. } | Kind::PooledHost)
    }

    /// Whether programs have no pointers to it.
    fn is_hidden(self) -> bool {
        matches!(self, Kind::KernelHeap | Kind::Array)
    }
}

/// A piece of memory that the device knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// First byte.
    pub base: u64,
    /// Bytes, as asked for.
    pub size: u64,
    /// What it is.
    pub kind: Kind,
    /// The context that made it.
    pub owner: ContextId,
    /// Number of its device.
    pub device: usize,
    /// Unique in the process, even when the address is used again.
    pub id: u64,
    /// The pool it is counted in.
    pub pool: Option<PoolId>,
    /// Synchronous calls on it end only when they are done.
    pub synchronous: bool,
    /// Its pool counts it no more, although it has not been freed yet.
    written_off: bool,
    placement: Option<Placement>,
}

impl Allocation {
    /// One without a place in a heap, and as yet without an identity.
    fn new(base: u64, size: u64, kind: Kind, owner: ContextId, device: usize) -> Allocation {
        let (pool, placement, synchronous, written_off) = (None, None, false, false);
        Allocation { base, size, kind, owner, device, id: 0, pool, synchronous, written_off, placement }
    }

    /// First address after it.
    pub fn end(&self) -> u64 {
        self.base + self.size
    }
}

/// All memory that the devices of a platform know.
pub struct AddressSpace {
    devices: Vec<DeviceMemory>,
    allocations: RankedMutex<BTreeMap<u64, Allocation>>,
    last_id: AtomicU64,
    accounts: RankedMutex<Accounts>,
    /// Some pool may hold more than its threshold.
    are_pools_full: AtomicBool,
    mappings: RankedMutex<Mappings>,
    advice: RankedMutex<AdviceMap>,
    shared_pools: RankedMutex<SharedPools>,
    graphs: RankedMutex<GraphAllocations>,
    /// Some heap may have freed pages that do not fault.
    has_exposed: AtomicBool,
}

struct DeviceMemory {
    /// What kernels use.
    own: Zone,
    /// What the host uses too; made when it is first asked for. Apart from the rest, because memory of the device moves when it
    /// is shared with other processes, while the host may be writing here.
    host: OnceLock<Zone>,
    /// For programs whose device pointers have 32 bits; made when it is first asked for.
    low: OnceLock<Zone>,
    apart: RankedMutex<Apart>,
    total: u64,
    /// Of these, bytes that the machine can give, as it said when it was first asked. What it says later depends on what has been touched.
    at_hand: OnceLock<AtHand>,
    /// Allocations end where the machine's memory does, rather than with the total.
    ends_with_machine: bool,
    used: AtomicU64,
    /// Where other processes see what is used.
    usage: Usage,
}

/// A range of addresses and what is in it.
#[derive(Debug)]
struct Zone {
    heap: RankedMutex<Heap>,
    addresses: Range<u64>,
}

/// Addresses reserved below 4 GiB: as many as can be had, between these.
const LOW: (u64, u64) = (1 << 30, 64 << 20);

/// Addresses reserved for each device, where the machine lets so many be reserved.
const RESERVED: u64 = 1 << 40;

/// Of the memory that the machine can give, one part in so many is left for what the program has on the host.
const KEPT: u64 = 16;

/// What a machine can give.
#[derive(Clone, Copy)]
struct AtHand {
    /// To all processes, with what they used already.
    all: u64,
    /// To this one.
    own: u64,
}

/// Twice the memory, so that fragments and guards do not use the addresses up.
fn least_range(total: u64) -> u64 {
    total.saturating_mul(2).min(RESERVED)
}

impl AddressSpace {
    /// An empty space for devices with so much memory each.
    pub fn new(memory: &[u64]) -> Result<AddressSpace> {
        AddressSpace::counted(memory.iter().map(|total| (*total, Usage::private())).collect())
    }

    /// As [`new`](Self::new), with the places where each device's use is counted.
    pub(crate) fn counted(memory: Vec<(u64, Usage)>) -> Result<AddressSpace> {
        let device = |(total, usage)| {
            let own = Zone::new(AddressRange::reserve_up_to(RESERVED, least_range(total))?);
            let (host, low, used) = (OnceLock::new(), OnceLock::new(), AtomicU64::new(0));
            let (at_hand, apart) = (OnceLock::new(), RankedMutex::new(Rank::Heap, Apart::default()));
            let ends_with_machine = false;
            Ok(DeviceMemory { own, host, low, apart, total, at_hand, ends_with_machine, used, usage })
        };
        Ok(AddressSpace {
            devices: memory.into_iter().map(device).collect::<Result<_>>()?,
            allocations: RankedMutex::new(Rank::Allocations, BTreeMap::new()),
            last_id: AtomicU64::new(0),
            accounts: RankedMutex::new(Rank::Pools, Accounts::default()),
            are_pools_full: AtomicBool::new(false),
            mappings: RankedMutex::new(Rank::Mappings, Mappings::default()),
            advice: RankedMutex::new(Rank::Advice, AdviceMap::default()),
            shared_pools: RankedMutex::new(Rank::Mappings, SharedPools::default()),
            graphs: RankedMutex::new(Rank::Pools, GraphAllocations::default()),
            has_exposed: AtomicBool::new(false),
        })
    }

    /// Allocates `size` bytes, aligned to [`GRANULE`] at least.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a size of 0, [`Error::OutOfMemory`] when the device has not as much left.
    pub fn allocate(&self, device: usize, owner: ContextId, size: u64, kind: Kind) -> Result<u64> {
        self.allocate_in(None, device, owner, size, kind)
    }

    /// As [`allocate`](Self::allocate), at an address that fits 32 bits.
    ///
    /// # Errors
    /// Also [`Error::OutOfMemory`] where no such addresses are left.
    pub fn allocate_low(&self, device: usize, owner: ContextId, size: u64, kind: Kind) -> Result<u64> {
        let memory = self.device(device)?;
        let allocation = Allocation::new(0, size, kind, owner, device);
        self.place(memory, allocation, || memory.low()?.heap.lock().allocate(size).map(Some))
    }

    /// As [`allocate`](Self::allocate), counted in a pool.
    ///
    /// # Errors
    /// Also [`Error::InvalidValue`] for another process's pool, and [`Error::OutOfMemory`] where a pool is full.
    pub fn allocate_in(
        &self,
        pool: Option<PoolId>,
        device: usize,
        owner: ContextId,
        size: u64,
        kind: Kind,
    ) -> Result<u64> {
        let memory = self.device(device)?;
        let mut allocation = Allocation::new(0, size, kind, owner, device);
        allocation.pool = pool;
        if let Some(base) = self.take_from_shared_pool(pool, size)? {
            allocation.base = base;
            return self.place(memory, allocation, || Ok(None)).inspect_err(|_| {
                self.give_to_shared_pool(&allocation);
            });
        }
        let is_seen = kind.is_host() || matches!(kind, Kind::Managed { .. });
        let zone = if is_seen { memory.host()? } else { &memory.own };
        self.place(memory, allocation, || zone.heap.lock().allocate(size).map(Some))
    }

    /// Gives an allocation its place; a pool's has one already.
    fn place(
        &self,
        memory: &DeviceMemory,
        mut allocation: Allocation,
        find: impl FnOnce() -> Result<Option<Placement>>,
    ) -> Result<u64> {
        let size = allocation.size;
        if size == 0 {
            return Err(Error::InvalidValue);
        }
        self.charge(memory, &allocation)?;
        allocation.placement = find().inspect_err(|_| self.discharge(memory, &allocation))?;
        if let Some(placement) = allocation.placement {
            allocation.base = placement.address;
        }
        self.insert(allocation).expect("no address is handed out twice");
        Ok(allocation.base)
    }

    /// Takes an allocation's bytes from what its device has, or from its pool.
    fn charge(&self, memory: &DeviceMemory, allocation: &Allocation) -> Result<()> {
        match allocation.pool {
            Some(pool) => self.take_from_account(pool, memory, allocation.size),
            // Host memory is not the device's to run out of, the machine's limit aside.
            None if allocation.kind.is_host() => Ok(()),
            // Of managed memory there may be more than is free: pages take none until they are touched.
            None if matches!(allocation.kind, Kind::Managed { .. }) => {
                self.charge_bytes(memory, memory.total, allocation.size)
            }
            None => self.charge_bytes(memory, memory.most(), allocation.size),
        }
    }

    /// Takes bytes from what a device has, of so many in all; what pools hold in vain goes first.
    fn charge_bytes(&self, memory: &DeviceMemory, most: u64, size: u64) -> Result<()> {
        let charge = || memory.charge_up_to(most, size);
        charge().or_else(|error| if self.release_all_unused() { charge() } else { Err(error) })
    }

    /// Takes back what [`charge`](Self::charge) did.
    fn discharge(&self, memory: &DeviceMemory, allocation: &Allocation) {
        match allocation.pool {
            Some(_) if allocation.written_off => {}
            Some(pool) => self.give_to_account(pool, memory, allocation.size),
            None if allocation.kind.is_host() => {}
            None => memory.discharge(allocation.size),
        }
    }

    /// Frees the allocation that begins at `base` and for which `accept` holds.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if there is none.
    pub fn free(&self, base: u64, accept: impl Fn(&Allocation) -> bool) -> Result<Allocation> {
        self.take_out(base, |found| !found.kind.is_hidden() && accept(found))
    }

    fn take_out(&self, base: u64, accept: impl Fn(&Allocation) -> bool) -> Result<Allocation> {
        let allocation = {
            let mut allocations = self.allocations.lock();
            let found = allocations.get(&base).filter(|found| accept(found));
            let allocation = *found.ok_or(Error::InvalidValue)?;
            allocations.remove(&base);
            allocation
        };
        self.reclaim(&allocation);
        Ok(allocation)
    }

    /// Frees the allocation that begins at `base`, if it is this context's.
    pub(crate) fn free_if_owned(&self, base: u64, owner: ContextId) {
        // Otherwise it is gone already.
        let _ = self.take_out(base, |found| found.owner == owner);
    }

    /// Frees everything that a context owns.
    pub fn free_owned(&self, owner: ContextId) {
        let mut owned = Vec::new();
        self.allocations.lock().retain(|_, allocation| {
            let keep = allocation.owner != owner;
            if !keep {
                owned.push(*allocation);
            }
            keep
        });
        for allocation in &owned {
            self.reclaim(allocation);
        }
    }

    /// Makes host memory of the program known.
    ///
    /// # Errors
    /// [`Error::HostMemoryAlreadyRegistered`] if any of it is known already; [`Error::InvalidValue`] for an empty range, null, or memory
    /// that is not there, or cannot be read, or written if that is needed.
    pub fn register(
        &self,
        device: usize,
        owner: ContextId,
        base: u64,
        size: u64,
        (flags, needs_writes): (u32, bool),
    ) -> Result<()> {
        if base == 0 || size == 0 || base.checked_add(size).is_none() || self.is_device_address(base) {
            return Err(Error::InvalidValue);
        }
        if !machine::is_mapped(base, size) || !machine::has_accessible_ends(base, size, needs_writes) {
            return Err(Error::InvalidValue);
        }
        let kind = Kind::Registered { flags };
        self.insert(Allocation::new(base, size, kind, owner, device))
            .map_err(|_| Error::HostMemoryAlreadyRegistered)
    }

    /// Takes back what [`register`](Self::register) did.
    ///
    /// # Errors
    /// [`Error::HostMemoryNotRegistered`] if no registered memory begins there.
    pub fn unregister(&self, base: u64) -> Result<()> {
        self.free(base, |allocation| matches!(allocation.kind, Kind::Registered { .. })).map(drop).map_err(
            |_| match self.find(base) {
                Some(found) if found.kind.is_host() || found.kind == Kind::Device => Error::InvalidValue,
                _ => Error::HostMemoryNotRegistered,
            },
        )
    }

    /// The allocation that an address lies in.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        self.find_any(address).filter(|found| !found.kind.is_hidden())
    }

    /// What a kernel may name in a copy or fill of its own: the heap that it allocates from too.
    pub(crate) fn find_for_kernel(&self, address: u64) -> Option<Allocation> {
        self.find_any(address).filter(|found| found.kind != Kind::Array)
    }

    /// The array that an address lies in.
    fn find_array(&self, address: u64) -> Option<Allocation> {
        self.find_any(address).filter(|found| found.kind == Kind::Array)
    }

    fn find_any(&self, address: u64) -> Option<Allocation> {
        let allocations = self.allocations.lock();
        let (_, allocation) = allocations.range(..=address).next_back()?;
        (address - allocation.base < allocation.size).then_some(*allocation)
    }

    /// Says whether synchronous calls on an allocation end only when they are done.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where there is none.
    pub fn set_synchronous(&self, address: u64, synchronous: bool) -> Result<()> {
        let mut allocations = self.allocations.lock();
        let found = allocations.range_mut(..=address).next_back().map(|(_, allocation)| allocation);
        let found = found.filter(|found| address - found.base < found.size).ok_or(Error::InvalidValue)?;
        found.synchronous = synchronous;
        Ok(())
    }

    /// Whether all of a range lies in one allocation, or in mapped memory without a gap.
    pub fn covers(&self, address: u64, len: u64) -> bool {
        let Some(end) = address.checked_add(len) else { return false };
        let allocations = self.allocations.lock();
        let Some((_, first)) = allocations.range(..=address).next_back() else { return false };
        let (mut reached, mut kind) = (first.end(), first.kind);
        while reached < end && kind == Kind::Mapped {
            let Some(next) = allocations.get(&reached) else { return false };
            (reached, kind) = (next.end(), next.kind);
        }
        reached >= end && address < first.end() && !first.kind.is_hidden()
    }

    /// Whether an address lies in the range of a device, allocated or not.
    pub fn is_device_address(&self, address: u64) -> bool {
        self.devices.iter().any(|memory| memory.contains(address))
    }

    /// Where a device's use is counted.
    pub(crate) fn usage(&self, device: usize) -> Usage {
        self.devices.get(device).map_or_else(Usage::private, |memory| memory.usage.clone())
    }

    /// Free and total bytes of a device. What other processes use is not free.
    pub fn info(&self, device: usize) -> Result<(u64, u64)> {
        let memory = self.device(device)?;
        let used = memory.used.load(Ordering::Relaxed).saturating_add(memory.usage.memory_of_others());
        Ok((memory.at_hand().all.saturating_sub(used), memory.total))
    }

    /// Has allocations end where the machine's memory does, rather than the process when it touches what there is not.
    pub(crate) fn end_with_machine(&mut self) {
        self.devices.iter_mut().for_each(|memory| memory.ends_with_machine = true);
    }

    /// Has memory fault that was freed: work is about to begin that must not find it. What the host may access itself faults since it was freed.
    pub(crate) fn conceal_freed(&self) {
        if self.has_exposed.load(Ordering::Acquire) && self.has_exposed.swap(false, Ordering::AcqRel) {
            self.devices
                .iter()
                .flat_map(DeviceMemory::zones)
                .for_each(|zone| zone.heap.lock().conceal_freed());
        }
    }

    fn device(&self, device: usize) -> Result<&DeviceMemory> {
        self.devices.get(device).ok_or(Error::InvalidDevice)
    }

    fn insert(&self, mut allocation: Allocation) -> std::result::Result<(), Allocation> {
        allocation.id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let mut allocations = self.allocations.lock();
        let before = allocations.range(..allocation.end()).next_back();
        if let Some((_, other)) = before.filter(|(_, other)| other.end() > allocation.base) {
            return Err(*other);
        }
        allocations.insert(allocation.base, allocation);
        Ok(())
    }

    fn reclaim(&self, allocation: &Allocation) {
        self.forget_advice(allocation);
        if allocation.kind == Kind::Graph {
            self.forget_graph_memory(allocation);
        }
        let memory = &self.devices[allocation.device];
        let is_charged = match allocation.placement {
            Some(placement) => {
                let mut heap = memory.heap_at(placement.address).lock();
                heap.free(placement);
                if memory.is_seen_by_host(placement.address) {
                    heap.conceal_freed();
                } else if heap.has_exposed() {
                    self.has_exposed.store(true, Ordering::Release);
                }
                true
            }
            // Otherwise it is the program's, or another process's.
            None => {
                self.reclaim_external(allocation);
                let is_pooled = matches!(allocation.kind, Kind::Pooled | Kind::PooledHost);
                is_pooled && self.give_to_shared_pool(allocation)
            }
        };
        if is_charged {
            self.discharge(memory, allocation);
        }
    }
}

impl DeviceMemory {
    /// Whether the program may access this address by itself.
    fn is_seen_by_host(&self, address: u64) -> bool {
        self.host.get().is_some_and(|zone| zone.addresses.contains(&address))
    }

    /// The heap that an address is of.
    fn heap_at(&self, address: u64) -> &RankedMutex<Heap> {
        &self.zones().find(|zone| zone.addresses.contains(&address)).unwrap_or(&self.own).heap
    }

    fn contains(&self, address: u64) -> bool {
        self.zones().any(|zone| zone.addresses.contains(&address)) || self.apart.lock().of(address).is_some()
    }

    fn zones(&self) -> impl Iterator<Item = &Zone> {
        [Some(&self.own), self.host.get(), self.low.get()].into_iter().flatten()
    }

    fn host(&self) -> Result<&Zone> {
        Zone::get_or_make(&self.host, || AddressRange::reserve_up_to(RESERVED, least_range(self.total)))
    }

    fn low(&self) -> Result<&Zone> {
        Zone::get_or_make(&self.low, || AddressRange::reserve_low(LOW.0, LOW.1))
    }

    fn at_hand(&self) -> AtHand {
        *self.at_hand.get_or_init(|| {
            let others = self.usage.memory_of_others();
            let used = self.used.load(Ordering::Relaxed).saturating_add(others);
            let of_machine = |bytes: u64| (bytes - bytes / KEPT).saturating_add(used);
            let all = machine::available().map_or(self.total, |bytes| self.total.min(of_machine(bytes)));
            AtHand { all, own: all.saturating_sub(others) }
        })
    }

    /// Bytes that allocations may take together.
    fn most(&self) -> u64 {
        if self.ends_with_machine { self.at_hand().own } else { self.total }
    }

    fn charge(&self, size: u64) -> Result<()> {
        self.charge_up_to(self.most(), size)
    }

    fn charge_up_to(&self, most: u64, size: u64) -> Result<()> {
        let size = size.checked_next_multiple_of(GRANULE).ok_or(Error::OutOfMemory)?;
        let fits = |used: u64| used.checked_add(size).filter(|used| *used <= most);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => {
                self.usage.add_memory(size);
                Ok(())
            }
            Err(_) => Err(Error::OutOfMemory),
        }
    }

    fn discharge(&self, size: u64) {
        let size = size.next_multiple_of(GRANULE);
        self.used.fetch_sub(size, Ordering::Relaxed);
        self.usage.remove_memory(size);
    }
}

impl Zone {
    fn new(range: AddressRange) -> Zone {
        let heap = Heap::new(range);
        let addresses = heap.addresses();
        Zone { heap: RankedMutex::new(Rank::Heap, heap), addresses }
    }

    fn get_or_make(place: &OnceLock<Zone>, range: impl FnOnce() -> Result<AddressRange>) -> Result<&Zone> {
        if place.get().is_none() {
            // If another thread was quicker, what it made counts.
            let _ = place.set(Zone::new(range()?));
        }
        place.get().ok_or(Error::OutOfMemory)
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserves address space with mmap flags that Miri lacks
mod tests {
    use super::*;

    const A: ContextId = ContextId(1);
    const B: ContextId = ContextId(2);

    fn space() -> AddressSpace {
        AddressSpace::new(&[64 << 20, 64 << 20]).unwrap()
    }

    #[test]
    fn an_address_tells_its_allocation() {
        let space = space();
        let base = space.allocate(1, A, 1000, Kind::Device).unwrap();
        assert_eq!(base % 256, 0);
        let found = space.find(base + 999).unwrap();
        assert_eq!((found.base, found.size, found.owner, found.device), (base, 1000, A, 1));
        assert_eq!(space.find(base + 1000), None, "the exact size counts, not the slot's");
        assert!(space.is_device_address(base) && !space.is_device_address(0x1234));
    }

    #[test]
    fn allocations_end_where_the_machines_memory_does() {
        let mut space = AddressSpace::new(&[1 << 50]).unwrap();
        space.end_with_machine();
        let (free, total) = space.info(0).unwrap();
        assert!(free > 0 && free < machine::total() && total == 1 << 50);
        assert_eq!(space.allocate(0, A, free + 1, Kind::Device), Err(Error::OutOfMemory));
        space.allocate(0, A, free / 2, Kind::Device).unwrap();
        space.allocate(0, A, free, Kind::Managed { attach_host: false }).unwrap();
        assert_eq!(space.allocate(0, A, free, Kind::Device), Err(Error::OutOfMemory));
    }

    #[test]
    fn freed_once_and_by_its_base_only() {
        let space = space();
        let base = space.allocate(0, A, 4096, Kind::Device).unwrap();
        for wrong in [0, 0x1234, base + 4] {
            assert_eq!(space.free(wrong, |_| true), Err(Error::InvalidValue));
        }
        assert_eq!(space.free(base, |a| a.kind.is_host()), Err(Error::InvalidValue));
        space.free(base, |_| true).unwrap();
        assert_eq!(space.free(base, |_| true), Err(Error::InvalidValue));
    }

    #[test]
    fn low_memory_has_low_addresses() {
        let space = space();
        let low = space.allocate_low(0, A, 3 << 20, Kind::Device).unwrap();
        assert!(low + (3 << 20) <= 1 << 32 && space.is_device_address(low));
        let small = space.allocate_low(0, A, 100, Kind::Device).unwrap();
        assert!(small < 1 << 32);
        Fill::linear(low, 7, 1, 3 << 20).run().unwrap();
        assert_eq!(space.allocate_low(0, A, 0, Kind::Device), Err(Error::InvalidValue));
        assert_eq!(space.allocate_low(0, A, 65 << 20, Kind::Device), Err(Error::OutOfMemory));
        space.free(low, |_| true).unwrap();
        space.free(small, |_| true).unwrap();
        assert_eq!(space.devices[0].used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_the_host_sees_stays_where_it_is_when_memory_is_shared() {
        let space = space();
        let device = space.allocate(0, A, 1000, Kind::Device).unwrap();
        let seen = [Kind::Pinned { flags: 0 }, Kind::Managed { attach_host: false }];
        for kind in seen {
            let host = space.allocate(0, A, 1000, kind).unwrap();
            assert!(space.is_device_address(host));
            assert!(host.abs_diff(device) >= 2 << 20, "no pages in common");
            space.free(host, |_| true).unwrap();
        }
        space.share(device).unwrap();
    }

    #[test]
    fn memory_is_counted() {
        let space = space();
        let (_, total) = space.info(0).unwrap();
        assert_eq!(total, 64 << 20);
        assert_eq!(space.allocate(0, A, 65 << 20, Kind::Device), Err(Error::OutOfMemory));
        assert_eq!(space.allocate(0, A, 1 << 50, Kind::Device), Err(Error::OutOfMemory));
        assert_eq!(space.allocate(0, A, u64::MAX, Kind::Device), Err(Error::OutOfMemory));
        assert_eq!(space.allocate(0, A, 0, Kind::Device), Err(Error::InvalidValue));
        let all = space.allocate(0, A, 64 << 20, Kind::Device).unwrap();
        assert_eq!(space.info(0).unwrap().0, 0);
        assert_eq!(space.allocate(0, A, 1, Kind::Device), Err(Error::OutOfMemory));
        space.allocate(1, A, 1, Kind::Device).unwrap();
        space.free(all, |_| true).unwrap();
        space.allocate(0, A, 1, Kind::Device).unwrap();
    }

    #[test]
    fn a_context_takes_its_own_along() {
        let space = space();
        let a = space.allocate(0, A, 4 << 20, Kind::Device).unwrap();
        let b = space.allocate(0, B, 4 << 20, Kind::Pinned { flags: 0 }).unwrap();
        space.free_owned(A);
        assert_eq!(space.find(a), None);
        assert_eq!(space.find(b).unwrap().owner, B);
    }

    #[test]
    fn host_memory_is_registered_once() {
        let space = space();
        let buffer = vec![0_u8; 1 << 16];
        let address = buffer.as_ptr() as u64;
        space.register(0, A, address, 4096, (0, true)).unwrap();
        assert_eq!(
            space.register(0, A, address + 100, 10, (0, true)),
            Err(Error::HostMemoryAlreadyRegistered)
        );
        assert_eq!(space.register(0, A, 16, 4096, (0, true)), Err(Error::InvalidValue), "nothing is there");
        assert!(space.find(address).unwrap().kind.is_host());
        space.unregister(address).unwrap();
        assert_eq!(space.unregister(address), Err(Error::HostMemoryNotRegistered));
    }
}
