//! Address ranges and memory as separate things: reservations, what is mapped into them, and memory of other processes.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::heap::{Shared, protection};
use super::range::{AddressRange, HUGE_PAGE, PAGE};
use super::shared::SharedFile;
use super::{AddressSpace, Allocation, ContextId, DeviceMemory, Kind};
use crate::{Error, Result};

/// Sizes and offsets of reservations, memory and mappings are multiples of this.
pub const GRANULARITY: u64 = HUGE_PAGE;

/// Memory without an address.
pub struct PhysicalMemory {
    file: SharedFile,
    device: usize,
    /// Unique in the process.
    id: u64,
    is_shareable: bool,
    purpose: Purpose,
    /// Counted as used of the device; not if it is another process's.
    charged: Option<Arc<AddressSpace>>,
}

/// Whose memory it is, and what it is for. All lies in the machine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purpose {
    /// Where the program wants it.
    pub place: MemoryPlace,
    /// Tiles of sparse arrays will be of it.
    pub tiles: bool,
}

/// Where memory without an address is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemoryPlace {
    /// At its device, whose memory it is counted as.
    #[default]
    Device,
    /// At a node of the host.
    Node(u32),
}

/// What may be done with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Nothing.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
}

/// Who accesses mapped memory. All share the machine's pages: what may be done is the most that any of them may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Accessor {
    /// A device.
    Device(usize),
    /// The host, whatever its nodes.
    Host,
}

/// What is known of a mapping.
pub struct Mapping {
    /// The addresses that were set aside together.
    pub reserved: Range<u64>,
    /// Those that were mapped together.
    pub mapped: Range<u64>,
    /// What may be done there.
    pub access: Access,
    /// By whom.
    pub accessors: BTreeMap<Accessor, Access>,
    /// What is there.
    pub memory: Arc<PhysicalMemory>,
}

/// Names an allocation to other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedHandle {
    /// The process that allocated it.
    pub process: u32,
    /// Where the process has it.
    pub shared: Shared,
    /// Bytes of the allocation.
    pub size: u64,
    /// What tells it from those that lay there before and after.
    pub id: u64,
}

/// Reservations, and what is mapped.
#[derive(Default)]
pub(super) struct Mappings {
    /// Start to length and device.
    reservations: BTreeMap<u64, (u64, usize)>,
    mapped: BTreeMap<u64, Mapped>,
    /// Memory of other processes, by the allocations' addresses here.
    opened: BTreeMap<u64, Opened>,
    /// Memory of other APIs, and arrays without memory of their own: the allocation's address to the mapping's start and length.
    pub(super) external: BTreeMap<u64, (u64, u64)>,
    /// The memory that pieces of arrays have, by their addresses.
    pub(super) tiles: BTreeMap<u64, Arc<PhysicalMemory>>,
}

/// Memory of another process.
struct Opened {
    handle: SharedHandle,
    /// The mapping, of which the allocation is a part.
    start: u64,
    len: u64,
    device: usize,
    /// How often it has been opened and not closed.
    times: u64,
}

struct Mapped {
    len: u64,
    device: usize,
    memory: Arc<PhysicalMemory>,
    /// Who has been given access.
    accessors: BTreeMap<Accessor, Access>,
}

impl Mapped {
    /// The most that anybody may do.
    fn access(&self) -> Access {
        most(&self.accessors)
    }
}

/// The most that any of them may do.
fn most(accessors: &BTreeMap<Accessor, Access>) -> Access {
    accessors.values().copied().max().unwrap_or(Access::None)
}

impl PhysicalMemory {
    /// New memory of a device.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a size that is no multiple of [`GRANULARITY`], [`Error::OutOfMemory`].
    pub fn create(
        space: &Arc<AddressSpace>,
        device: usize,
        size: u64,
        is_shareable: bool,
        purpose: Purpose,
    ) -> Result<Arc<PhysicalMemory>> {
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(Error::InvalidValue);
        }
        let charged = (purpose.place == MemoryPlace::Device).then(|| space.clone());
        if charged.is_some() {
            let memory = space.device(device)?;
            space.charge_bytes(memory, memory.most(), size)?;
        }
        let file = SharedFile::create_named(size, &purpose.name()).inspect_err(|_| {
            if charged.is_some() {
                space.devices[device].discharge(size);
            }
        })?;
        let id = PhysicalMemory::new_id();
        Ok(Arc::new(PhysicalMemory { file, device, id, is_shareable, purpose, charged }))
    }

    /// Memory of another process, by a descriptor that it has sent.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for what cannot be such memory.
    pub fn import(device: usize, descriptor: OwnedFd) -> Result<Arc<PhysicalMemory>> {
        let file = SharedFile::from_descriptor(descriptor)?;
        if !file.is_mappable() || !file.bytes().is_multiple_of(GRANULARITY) {
            return Err(Error::InvalidValue);
        }
        let (id, purpose) = (PhysicalMemory::new_id(), Purpose::of_name(&file.name()));
        // Who made it shares it.
        Ok(Arc::new(PhysicalMemory { file, device, id, is_shareable: false, purpose, charged: None }))
    }

    fn new_id() -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A descriptor to send to another process.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for memory that was not made to be shared, or not here.
    pub fn export(&self) -> Result<OwnedFd> {
        if self.is_shareable { self.file.duplicate() } else { Err(Error::InvalidValue) }
    }

    /// Whether it was made to be shared, here.
    pub fn is_shareable(&self) -> bool {
        self.is_shareable
    }

    pub(super) fn file(&self) -> &SharedFile {
        &self.file
    }

    /// Whose memory it is, and what it is for.
    pub fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// A number no other memory of the process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.file.bytes()
    }

    /// Number of its device.
    pub fn device(&self) -> usize {
        self.device
    }
}

impl Purpose {
    /// The name of a file of such memory, by which other processes know it.
    pub(super) fn name(self) -> CString {
        let place = match self.place {
            MemoryPlace::Device => String::new(),
            MemoryPlace::Node(node) => format!("-node{node}"),
        };
        let tiles = if self.tiles { "-tiles" } else { "" };
        CString::new(format!("anywarp{place}{tiles}")).expect("no NUL inside")
    }

    /// What a file of this name is for. What nobody has named is a device's.
    pub(super) fn of_name(name: &str) -> Purpose {
        let name = name.strip_prefix("anywarp").unwrap_or_default();
        let (place, tiles) = match name.strip_suffix("-tiles") {
            Some(place) => (place, true),
            None => (name, false),
        };
        let node = place.strip_prefix("-node").and_then(|node| node.parse().ok());
        Purpose { place: node.map_or(MemoryPlace::Device, MemoryPlace::Node), tiles }
    }
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        if let Some(space) = &self.charged {
            space.devices[self.device].discharge(self.file.bytes());
        }
    }
}

impl AddressSpace {
    /// Sets addresses aside, where the program wishes if they are free there (0: it has no wish). Nothing is there.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a size that is no multiple of [`GRANULARITY`], an alignment that is no power of two, and a wish that is
    /// not aligned.
    pub fn reserve(&self, device: usize, size: u64, align: u64, wish: u64) -> Result<u64> {
        // 0 stands for the least.
        let aligned = align == 0 || align.is_power_of_two();
        if size == 0 || !size.is_multiple_of(GRANULARITY) || !aligned {
            return Err(Error::InvalidValue);
        }
        let align = align.max(GRANULARITY);
        if !wish.is_multiple_of(align) {
            return Err(Error::InvalidValue);
        }
        let mut mappings = self.mappings.lock();
        let start = self.device(device)?.reserve(size, align, wish)?;
        mappings.reservations.insert(start, (size, device));
        Ok(start)
    }

    /// Gives a reservation back.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is none, or something is mapped in it.
    pub fn unreserve(&self, start: u64, size: u64) -> Result<()> {
        let mut mappings = self.mappings.lock();
        let (_, device) =
            *mappings.reservations.get(&start).filter(|(len, _)| *len == size).ok_or(Error::InvalidValue)?;
        if mappings.mapped.range(start..start + size).next().is_some() {
            return Err(Error::InvalidValue);
        }
        mappings.reservations.remove(&start);
        self.devices[device].unreserve(start, size);
        Ok(())
    }

    /// Maps memory into a reservation. It cannot be accessed until [`set_access`](Self::set_access).
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a range that is not in a reservation, mapped already, or not in the memory.
    pub fn map(&self, start: u64, size: u64, offset: u64, memory: Arc<PhysicalMemory>) -> Result<()> {
        let whole = [start, size, offset].iter().all(|n| n.is_multiple_of(GRANULARITY)) && size > 0;
        let end = start.checked_add(size).filter(|_| whole).ok_or(Error::InvalidValue)?;
        if offset.checked_add(size).is_none_or(|end| end > memory.size()) {
            return Err(Error::InvalidValue);
        }
        let mut mappings = self.mappings.lock();
        let reserved = mappings.reservations.range(..=start).next_back();
        let (_, &(_, device)) =
            reserved.filter(|(base, (len, _))| end <= **base + len).ok_or(Error::InvalidValue)?;
        let before = mappings.mapped.range(..end).next_back();
        if before.is_some_and(|(base, mapped)| base + mapped.len > start) {
            return Err(Error::InvalidValue);
        }
        let memory_device = memory.device;
        let none = protection(Access::None);
        self.devices[device]
            .with_range(start, |range| range.map_file(start, size, &memory.file, offset, none))?;
        let accessors = BTreeMap::new();
        mappings.mapped.insert(start, Mapped { len: size, device, memory, accessors });
        self.insert_mapped(start, size, memory_device).map_err(|_| Error::InvalidValue)
    }

    /// Says who may do what with mapped memory; others keep what they may do. Work that may do less then fails:
    /// [`Platform::set_access`](crate::Platform::set_access) has it done before.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless the range begins with a mapping and ends with one, none of them in part. There may be gaps, as on an
    /// H200.
    pub fn set_access(&self, start: u64, size: u64, given: &[(Accessor, Access)]) -> Result<()> {
        let mut mappings = self.mappings.lock();
        for base in mappings.whole(start, size)? {
            let mapped = mappings.mapped.get_mut(&base).expect("found just now");
            mapped.accessors.extend(given.iter().copied());
            let allowed = protection(mapped.access());
            self.devices[mapped.device].with_range(base, |range| range.protect(base, mapped.len, allowed))?;
        }
        Ok(())
    }

    /// Whether [`set_access`](Self::set_access) would take something from somebody that work under way may be doing.
    ///
    /// # Errors
    /// As for [`set_access`](Self::set_access).
    pub(crate) fn takes_access(&self, start: u64, size: u64, given: &[(Accessor, Access)]) -> Result<bool> {
        let mappings = self.mappings.lock();
        let is_less = |base: &u64| {
            let mapped = &mappings.mapped[base];
            let mut accessors = mapped.accessors.clone();
            accessors.extend(given.iter().copied());
            most(&accessors) < mapped.access()
        };
        Ok(mappings.whole(start, size)?.iter().any(is_less))
    }

    /// Whether what a copy or a fill does in memory of this allocation's kind is allowed there.
    pub(super) fn check_access(
        &self,
        allocation: &Allocation,
        start: u64,
        len: u64,
        writes: bool,
    ) -> Result<()> {
        let is_allowed = allocation.kind != Kind::Mapped || self.allows(start, len, writes);
        if is_allowed { Ok(()) } else { Err(Error::InvalidValue) }
    }

    /// Whether the program lets a range be read, and written if that is asked for. What it has not mapped itself it does.
    pub(super) fn allows(&self, start: u64, len: u64, writes: bool) -> bool {
        let mappings = self.mappings.lock();
        let needed = if writes { Access::ReadWrite } else { Access::Read };
        let first = mappings.mapped.range(..=start).next_back().map_or(start, |(base, _)| *base);
        let touched = mappings.mapped.range(first..start.saturating_add(len.max(1)));
        touched
            .filter(|(base, mapped)| *base + mapped.len > start)
            .all(|(_, mapped)| mapped.access() >= needed)
    }

    /// What is known of the mapping at an address.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where nothing is mapped.
    pub fn mapping(&self, address: u64) -> Result<Mapping> {
        let mappings = self.mappings.lock();
        let found = mappings.mapped.range(..=address).next_back();
        let (&base, mapped) =
            found.filter(|(base, mapped)| address - **base < mapped.len).ok_or(Error::InvalidValue)?;
        let reserved = mappings.reservations.range(..=address).next_back();
        let (&start, &(len, _)) = reserved.ok_or(Error::InvalidValue)?;
        Ok(Mapping {
            reserved: start..start + len,
            mapped: base..base + mapped.len,
            access: mapped.access(),
            accessors: mapped.accessors.clone(),
            memory: mapped.memory.clone(),
        })
    }

    /// Takes what is mapped in a range out of its reservations. There may be gaps, and nothing.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a range that is not in one reservation or several side by side, and for one with a part of a mapping.
    pub fn unmap(&self, start: u64, size: u64) -> Result<()> {
        let mut mappings = self.mappings.lock();
        for base in mappings.within(start, size)? {
            let mapped = mappings.mapped.remove(&base).expect("found just now");
            self.allocations.lock().remove(&base);
            self.devices[mapped.device].with_range(base, |range| range.decommit(base, mapped.len))?;
        }
        Ok(())
    }

    /// Makes an allocation one that other processes can open. No work may be using it meanwhile.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless device memory begins there.
    pub fn share(&self, address: u64) -> Result<SharedHandle> {
        let found = self.find(address).filter(|found| found.base == address && found.kind == Kind::Device);
        let found = found.ok_or(Error::InvalidValue)?;
        let placement = found.placement.ok_or(Error::InvalidValue)?;
        let shared = self.devices[found.device].heap_at(address).lock().share(placement, found.id)?;
        Ok(SharedHandle { process: std::process::id(), shared, size: found.size, id: found.id })
    }

    /// Maps an allocation of another process. One that the device has mapped already counts once more.
    ///
    /// # Errors
    /// [`Error::InvalidContext`] for one of this process, [`Error::InvalidValue`] if it is not there.
    pub fn open_shared(&self, device: usize, handle: &SharedHandle) -> Result<u64> {
        if handle.process == std::process::id() {
            return Err(Error::InvalidContext);
        }
        let mut mappings = self.mappings.lock();
        let same = |opened: &Opened| opened.device == device && opened.handle == *handle;
        if let Some((address, opened)) = mappings.opened.iter_mut().find(|(_, opened)| same(opened)) {
            opened.times += 1;
            return Ok(*address);
        }
        let Shared { descriptor, identity, offset, len: bytes, ticket } = handle.shared;
        let file = SharedFile::of_process(handle.process, descriptor)?;
        let end = offset.checked_add(handle.size).ok_or(Error::InvalidValue)?;
        if handle.size == 0 || end > bytes || bytes > file.bytes() || bytes % PAGE != 0 {
            return Err(Error::InvalidValue);
        }
        // It may have been freed since, and its place, or that of the whole file, be another's.
        if file.identity()? != identity || ticket < bytes || file.word(ticket) != Some(handle.id) {
            return Err(Error::InvalidValue);
        }
        let len = bytes.checked_next_multiple_of(GRANULARITY).ok_or(Error::InvalidValue)?;
        let mut heap = self.device(device)?.own.heap.lock();
        let start = heap.take_addresses(len, GRANULARITY)?;
        if let Err(error) = heap.map_shared(start, bytes, &file, 0, Access::ReadWrite) {
            heap.give_addresses(start, len);
            return Err(error);
        }
        drop(heap);
        let address = start + offset;
        self.insert_mapped(address, handle.size, device).map_err(|_| Error::InvalidValue)?;
        mappings.opened.insert(address, Opened { handle: *handle, start, len, device, times: 1 });
        Ok(address)
    }

    /// Takes back what [`open_shared`](Self::open_shared) did once: the last time, the allocation is no longer mapped.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it did nothing here.
    pub fn close_shared(&self, address: u64) -> Result<()> {
        let mut mappings = self.mappings.lock();
        let opened = mappings.opened.get_mut(&address).ok_or(Error::InvalidValue)?;
        opened.times -= 1;
        if opened.times > 0 {
            return Ok(());
        }
        let Opened { start, len, device, .. } = *opened;
        mappings.opened.remove(&address);
        self.allocations.lock().remove(&address);
        let mut heap = self.devices[device].own.heap.lock();
        heap.unmap_shared(start, len)?;
        heap.give_addresses(start, len);
        Ok(())
    }

    fn insert_mapped(&self, base: u64, size: u64, device: usize) -> std::result::Result<(), Allocation> {
        let (kind, owner) = (Kind::Mapped, ContextId(0));
        self.insert(Allocation::new(base, size, kind, owner, device))
    }
}

impl DeviceMemory {
    /// Finds addresses for a reservation. One that would leave few of the device's for its memory lies apart.
    fn reserve(&self, size: u64, align: u64, wish: u64) -> Result<u64> {
        let own = self.own.addresses.end - self.own.addresses.start;
        {
            let mut heap = self.own.heap.lock();
            if wish != 0 && heap.take_addresses_at(wish, size) {
                return Ok(wish);
            }
            if size <= own / 8
                && let Ok(start) = heap.take_addresses(size, align)
            {
                return Ok(start);
            }
        }
        self.apart.lock().reserve(size, align)
    }

    /// Takes a reservation back, in which nothing is mapped.
    fn unreserve(&self, start: u64, size: u64) {
        if !self.apart.lock().unreserve(start) {
            self.own.heap.lock().give_addresses(start, size);
        }
    }

    /// Does something with the range that a reservation lies in, by an address in it.
    fn with_range<T>(&self, address: u64, act: impl FnOnce(&AddressRange) -> T) -> T {
        let apart = self.apart.lock();
        if let Some(range) = apart.of(address) {
            return act(range);
        }
        drop(apart);
        act(self.own.heap.lock().range())
    }
}

impl Mappings {
    /// The starts of the mappings in a range of reservations side by side, none of which goes beyond it.
    fn within(&self, start: u64, size: u64) -> Result<Vec<u64>> {
        let end = start.checked_add(size).filter(|end| *end > start).ok_or(Error::InvalidValue)?;
        let (mut reserved, mut reached) = (self.reservations.range(..end).rev(), end);
        while reached > start {
            let (base, (len, _)) = reserved.next().ok_or(Error::InvalidValue)?;
            if base + len < reached {
                return Err(Error::InvalidValue);
            }
            reached = *base;
        }
        let before = self.mapped.range(..start).next_back();
        let is_cut = |(base, mapped): (&u64, &Mapped)| base + mapped.len > start;
        let mut found = Vec::new();
        for (base, mapped) in self.mapped.range(start..end) {
            if base + mapped.len > end {
                return Err(Error::InvalidValue);
            }
            found.push(*base);
        }
        if before.is_some_and(is_cut) { Err(Error::InvalidValue) } else { Ok(found) }
    }

    /// The starts of the mappings of a range, the first at its start, the last up to its end.
    fn whole(&self, start: u64, size: u64) -> Result<Vec<u64>> {
        let end = start.checked_add(size).filter(|end| *end > start).ok_or(Error::InvalidValue)?;
        let found: Vec<u64> = self.mapped.range(start..end).map(|(base, _)| *base).collect();
        let is_whole = found.first() == Some(&start)
            && found.last().is_some_and(|last| last + self.mapped[last].len == end);
        if is_whole { Ok(found) } else { Err(Error::InvalidValue) }
    }
}

#[cfg(test)]
#[cfg(not(miri))] // reserved address space
mod tests {
    use super::*;

    const DEVICE: Accessor = Accessor::Device(0);

    fn word(address: u64) -> Option<u32> {
        // SAFETY: memory of the test's.
        unsafe { guard::load(address) }.ok()
    }

    #[test]
    fn everyone_has_the_access_that_was_given() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let g = GRANULARITY;
        let start = space.reserve(0, 2 * g, 0, 0).unwrap();
        let memory = PhysicalMemory::create(&space, 0, 2 * g, false, Purpose::default()).unwrap();
        space.map(start, g, 0, memory.clone()).unwrap();
        space.map(start + g, g, g, memory).unwrap();
        assert!(!space.allows(start, 1, false));
        space.set_access(start, g, &[(DEVICE, Access::Read)]).unwrap();
        assert!(space.allows(start, g, false) && !space.allows(start, 1, true));
        assert!(!space.allows(start + g - 1, 2, false), "the second part has none");
        space.set_access(start, g, &[(Accessor::Host, Access::ReadWrite)]).unwrap();
        assert!(space.allows(start + g - 1, 1, true), "the most that anybody may do");
        assert_eq!(
            space.takes_access(start, g, &[(DEVICE, Access::None)]),
            Ok(false),
            "the host keeps its own"
        );
        let of_host = [(Accessor::Host, Access::None)];
        assert_eq!(space.takes_access(start, g, &of_host), Ok(true));
        assert_eq!(space.takes_access(start, g / 2, &of_host), Err(Error::InvalidValue));
        space.set_access(start, g, &of_host).unwrap();
        let mapping = space.mapping(start).unwrap();
        assert_eq!((mapping.access, mapping.accessors[&DEVICE]), (Access::Read, Access::Read));
        assert!(space.allows(start + 2 * g, g, true), "nobody's business");
    }

    #[test]
    fn memory_is_mapped_where_the_program_says() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let g = GRANULARITY;
        let start = space.reserve(0, 4 * g, 0, 0).unwrap();
        let memory = PhysicalMemory::create(&space, 0, 2 * g, true, Purpose::default()).unwrap();
        assert!(space.info(0).unwrap().0 <= (64 << 20) - 2 * g);
        space.map(start, g, 0, memory.clone()).unwrap();
        space.map(start + g, g, g, memory.clone()).unwrap();
        assert_eq!(space.map(start, g, 0, memory.clone()), Err(Error::InvalidValue), "mapped already");
        assert_eq!(space.map(start + 2 * g, g, 2 * g, memory.clone()), Err(Error::InvalidValue));
        assert_eq!(space.map(start + 4 * g, g, 0, memory.clone()), Err(Error::InvalidValue));
        assert_eq!(word(start), None, "no access yet");
        assert_eq!(space.set_access(start, g / 2, &[(DEVICE, Access::Read)]), Err(Error::InvalidValue));
        space.set_access(start, 2 * g, &[(DEVICE, Access::ReadWrite)]).unwrap();
        // SAFETY: as above.
        unsafe { guard::store(start + g, 7_u32).unwrap() };
        assert!(space.covers(start, 2 * g) && !space.covers(start, 2 * g + 1));
        space.map(start + 3 * g, g, g, memory.clone()).unwrap();
        for (from, len) in [(0, 3), (2, 2), (2, 1), (0, 5)] {
            let range = (start + from * g, len * g);
            assert_eq!(
                space.set_access(range.0, range.1, &[(DEVICE, Access::Read)]),
                Err(Error::InvalidValue)
            );
        }
        space.set_access(start, 4 * g, &[(DEVICE, Access::ReadWrite)]).expect("a gap does no harm");
        space.set_access(start + 3 * g, g, &[(DEVICE, Access::Read)]).unwrap();
        assert_eq!(word(start + 3 * g), Some(7), "the same memory");
        // SAFETY: as above.
        assert!(unsafe { guard::store(start + 3 * g, 8_u32) }.is_err());
        let mapping = space.mapping(start + 3 * g + 5).unwrap();
        assert_eq!((mapping.access, mapping.memory.id()), (Access::Read, memory.id()));
        assert_eq!((mapping.reserved, mapping.mapped), (start..start + 4 * g, start + 3 * g..start + 4 * g));
        drop(mapping.memory);
        assert_eq!(space.unreserve(start, 4 * g), Err(Error::InvalidValue));
        assert_eq!(space.reserve(0, g, 0, start + 4 * g + 1), Err(Error::InvalidValue));
        let behind = space.reserve(0, g, 0, start + 4 * g).unwrap();
        assert_eq!(behind, start + 4 * g);
        space.unmap(start + 2 * g, 3 * g).expect("the reservations are side by side");
        assert_eq!(space.unmap(start + 2 * g, 4 * g), Err(Error::InvalidValue));
        let elsewhere = space.reserve(0, g, 0, start + 4 * g).unwrap();
        assert!(elsewhere >= behind + g || elsewhere + g <= start);
        space.unreserve(behind, g).unwrap();
        space.unreserve(elsewhere, g).unwrap();
        assert_eq!(space.unmap(start, 5 * g), Err(Error::InvalidValue));
        space.unmap(start, 2 * g).unwrap();
        assert_eq!(word(start), None);
        space.unreserve(start, 4 * g).unwrap();
        let copy = PhysicalMemory::import(0, memory.export().unwrap()).unwrap();
        assert_eq!(copy.size(), 2 * g);
        drop((memory, copy));
        assert_eq!(space.devices[0].used.load(std::sync::atomic::Ordering::Relaxed), 0);
    }

    #[test]
    fn reservations_may_be_larger_than_the_range_of_their_device() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        let (g, large) = (GRANULARITY, 8 << 40);
        let start = space.reserve(0, large, 0, 0).unwrap();
        let memory = PhysicalMemory::create(&space, 0, g, false, Purpose::default()).unwrap();
        for place in [start, start + large - g] {
            space.map(place, g, 0, memory.clone()).unwrap();
            space.set_access(place, g, &[(DEVICE, Access::ReadWrite)]).unwrap();
        }
        // SAFETY: as above.
        unsafe { guard::store(start, 7_u32).unwrap() };
        assert_eq!(word(start + large - g), Some(7));
        assert!(space.is_device_address(start + g), "where nothing is mapped too");
        assert_eq!(space.unreserve(start, large), Err(Error::InvalidValue));
        space.unmap(start, large).unwrap();
        assert_eq!(word(start), None);
        space.unreserve(start, large).unwrap();
        assert!(!space.is_device_address(start + g));
        // Nor do large ones leave too few addresses for memory.
        let bytes = space.devices[0].own.heap.lock().range().bytes();
        let most = space.reserve(0, bytes - (32 << 20), 0, 0).unwrap();
        let address = space.allocate(0, ContextId(1), 48 << 20, Kind::Device).unwrap();
        space.free(address, |_| true).unwrap();
        space.unreserve(most, bytes - (32 << 20)).unwrap();
        assert_eq!(space.reserve(0, 1 << 60, 0, 0), Err(Error::OutOfMemory));
    }

    #[test]
    fn another_process_learns_what_memory_is_for() {
        let space = Arc::new(AddressSpace::new(&[64 << 20]).unwrap());
        for place in [MemoryPlace::Device, MemoryPlace::Node(0), MemoryPlace::Node(3)] {
            for tiles in [false, true] {
                let purpose = Purpose { place, tiles };
                let memory = PhysicalMemory::create(&space, 0, GRANULARITY, true, purpose).unwrap();
                let is_counted = space.devices[0].used.load(Ordering::Relaxed) > 0;
                assert_eq!(is_counted, place == MemoryPlace::Device);
                let copy = PhysicalMemory::import(0, memory.export().unwrap()).unwrap();
                assert_eq!((memory.purpose(), copy.purpose()), (purpose, purpose));
            }
        }
        assert_eq!(space.devices[0].used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn an_allocation_keeps_its_content_when_it_is_shared() {
        let space = AddressSpace::new(&[64 << 20]).unwrap();
        for size in [1000, 3 << 20] {
            let address = space.allocate(0, ContextId(1), size, Kind::Device).unwrap();
            // SAFETY: as above.
            unsafe { guard::store(address + 500, 0xabcd_u32).unwrap() };
            let handle = space.share(address).unwrap();
            assert_eq!(space.share(address), Ok(handle));
            assert_eq!(word(address + 500), Some(0xabcd));
            assert_eq!(space.open_shared(0, &handle), Err(Error::InvalidContext));
            // As another process would see it.
            let SharedHandle { process, shared: Shared { descriptor, offset, len, ticket, .. }, id, .. } =
                handle;
            let file = SharedFile::of_process(process, descriptor).unwrap();
            assert_eq!(file.word(ticket), Some(id));
            let mapped = space.reserve(0, 16 << 20, 0, 0).unwrap();
            let mut heap = space.devices[0].own.heap.lock();
            heap.map_shared(mapped, len, &file, 0, Access::ReadWrite).unwrap();
            assert_eq!(word(mapped + offset + 500), Some(0xabcd));
            // SAFETY: as above.
            unsafe { guard::store(mapped + offset + 500, 1_u32).unwrap() };
            assert_eq!(word(address + 500), Some(1));
            heap.unmap_shared(mapped, 16 << 20).unwrap();
            drop(heap);
            space.free(address, |_| true).unwrap();
            assert_eq!(file.word(ticket), Some(0), "gone");
            space.unreserve(mapped, 16 << 20).unwrap();
        }
    }
}
