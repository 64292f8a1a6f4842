//! What a thread's addresses mean.

use kernel_abi::{BlockFrame, FaultKind, LaunchFrame};
use simt_ir::bulk::{self, BulkFault};
use simt_ir::{Access, AtomicOp, Order, Space, Type, eval};

/// A bad access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// How it is bad.
    pub kind: FaultKind,
    /// Where.
    pub address: u64,
}

/// The address windows of one thread.
#[derive(Clone, Copy)]
pub struct Windows<'a> {
    launch: &'a LaunchFrame,
    param_bytes: u64,
    shared: u64,
    local: u64,
}

impl<'a> Windows<'a> {
    /// The windows of thread `linear` of the block that `frame` is about.
    pub fn new(launch: &'a LaunchFrame, frame: &BlockFrame, param_bytes: u32, linear: u32) -> Windows<'a> {
        Windows {
            launch,
            param_bytes: param_bytes.into(),
            shared: frame.shared as u64,
            local: frame.local as u64 + u64::from(linear) * u64::from(launch.local_bytes),
        }
    }

    /// First host address and size of a window.
    pub fn window(&self, space: Space) -> (u64, u64) {
        match space {
            Space::Shared => (self.shared, self.launch.shared_bytes.into()),
            Space::Local => (self.local, self.launch.local_bytes.into()),
            Space::Param => (self.launch.params as u64, self.param_bytes),
            Space::Generic | Space::Global | Space::Const => (0, u64::MAX),
        }
    }

    /// Whether a generic address lies in a window. Global is what is in no other; that of parameters is a part of it, as PTX has it.
    pub fn is_in(&self, space: Space, address: u64) -> bool {
        let inside = |space| {
            let (start, size) = self.window(space);
            address.wrapping_sub(start) < size
        };
        match space {
            Space::Generic => true,
            Space::Global => !inside(Space::Shared) && !inside(Space::Local),
            // Constants lie in device memory here; no address is known to be one.
            Space::Const => false,
            space => inside(space),
        }
    }

    /// The host address of an access of `bytes` bytes at operand `address` of type `ty`.
    pub fn resolve(&self, access: &Access, ty: Type, address: u64, bytes: u64) -> Result<u64, BadAccess> {
        let mut at = address.wrapping_add(access.offset as u64);
        if ty == Type::I32 {
            at &= u64::from(u32::MAX);
        }
        let (start, size) = self.window(access.space);
        let host = start.wrapping_add(at);
        if !access.anywhere && !at.is_multiple_of(bytes) {
            return Err(BadAccess { kind: FaultKind::Misaligned, address: host });
        }
        if at.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(BadAccess { kind: FaultKind::IllegalAddress, address: host });
        }
        Ok(host)
    }
}

fn bad(fault: guard::Fault) -> BadAccess {
    BadAccess { kind: FaultKind::IllegalAddress, address: fault.address }
}

/// Reads one value of device memory.
pub fn load(ty: Type, address: u64) -> Result<u64, BadAccess> {
    // SAFETY: addresses a kernel uses are device memory, or memory the program gave to the device; what is not mapped is
    // reported. Races are the kernel's.
    unsafe {
        match ty.bytes() {
            1 => guard::load::<u8>(address).map(u64::from),
            2 => guard::load::<u16>(address).map(u64::from),
            4 => guard::load::<u32>(address).map(u64::from),
            _ => guard::load::<u64>(address),
        }
    }
    .map_err(bad)
}

/// Writes one value of device memory.
pub fn store(ty: Type, address: u64, value: u64) -> Result<(), BadAccess> {
    // SAFETY: as for `load`.
    unsafe {
        match ty.bytes() {
            1 => guard::store(address, value as u8),
            2 => guard::store(address, value as u16),
            4 => guard::store(address, value as u32),
            _ => guard::store(address, value),
        }
    }
    .map_err(bad)
}

/// Whether an access of two words is atomic as a whole.
pub fn is_whole(access: &Access, ty: Type) -> bool {
    access.order != Order::Weak && access.lanes == 2 && ty.bytes() == 8
}

/// Reads 16 bytes at once.
pub fn load_pair(address: u64) -> Result<[u64; 2], BadAccess> {
    // SAFETY: as for `load`.
    unsafe { guard::load_u128(address) }.map(halves).map_err(bad)
}

/// Replaces the 16 bytes at once if they equal `expected`; returns what they were.
pub fn cas_pair(address: u64, expected: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], BadAccess> {
    // SAFETY: as for `load`.
    unsafe { guard::compare_exchange_u128(address, whole(expected), whole(new)) }.map(halves).map_err(bad)
}

/// Replaces the 16 bytes at once; returns what they were.
pub fn exchange_pair(address: u64, new: [u64; 2]) -> Result<[u64; 2], BadAccess> {
    let mut expected = load_pair(address)?;
    loop {
        let seen = cas_pair(address, expected, new)?;
        if seen == expected {
            return Ok(seen);
        }
        expected = seen;
    }
}

fn whole([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

fn halves(whole: u128) -> [u64; 2] {
    [whole as u64, (whole >> 64) as u64]
}

fn compare_exchange(ty: Type, address: u64, expected: u64, new: u64) -> Result<u64, BadAccess> {
    // SAFETY: as for `load`.
    unsafe {
        match ty.bytes() {
            1 => guard::compare_exchange(address, expected as u8, new as u8).map(u64::from),
            2 => guard::compare_exchange(address, expected as u16, new as u16).map(u64::from),
            4 => guard::compare_exchange(address, expected as u32, new as u32).map(u64::from),
            _ => guard::compare_exchange(address, expected, new),
        }
    }
    .map_err(bad)
}

/// Replaces the value if it equals `expected`; returns what it was.
pub fn atomic_cas(ty: Type, address: u64, expected: u64, new: u64) -> Result<u64, BadAccess> {
    compare_exchange(ty, address, expected, new)
}

/// Replaces the value by `op(value, operand)`; returns what it was.
pub fn atomic(op: AtomicOp, ty: Type, address: u64, operand: u64) -> Result<u64, BadAccess> {
    update(ty, address, |old| eval::atomic(op, ty, old, operand))
}

/// Replaces the value by what `new` makes of it; returns what it was.
pub fn update(ty: Type, address: u64, new: impl Fn(u64) -> u64) -> Result<u64, BadAccess> {
    let mut old = load(ty, address)?;
    loop {
        let seen = compare_exchange(ty, address, old, new(old))?;
        if seen == old {
            return Ok(old);
        }
        old = seen;
    }
}

/// What an ordered access needs around it on the host.
pub fn fence_for(order: Order) {
    match order {
        Order::Weak | Order::Volatile | Order::Relaxed => {}
        Order::Acquire | Order::Release | Order::AcqRel | Order::SeqCst => {
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        }
    }
}

/// Memory as bulk copies see it.
pub struct BulkMemory {
    /// The block's shared window.
    pub frame: *const BlockFrame,
}

fn bulk_fault(bad: BadAccess) -> BulkFault {
    BulkFault::IllegalAddress(bad.address)
}

impl bulk::Memory for BulkMemory {
    fn copy(&mut self, to: u64, from: u64, bytes: u64) -> Result<(), BulkFault> {
        // SAFETY: as for `load`.
        unsafe { guard::copy(to, from, bytes) }.map_err(|fault| bulk_fault(bad(fault)))
    }

    fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), BulkFault> {
        self.copy(bytes.as_mut_ptr() as u64, from, bytes.len() as u64)
    }

    fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), BulkFault> {
        self.copy(to, bytes.as_ptr() as u64, bytes.len() as u64)
    }

    fn update(&mut self, at: u64, ty: Type, new: &dyn Fn(u64) -> u64) -> Result<(), BulkFault> {
        update(ty, at, new).map(drop).map_err(bulk_fault)
    }

    fn in_block(&mut self, address: u64, rank: u32) -> Result<u64, BulkFault> {
        // SAFETY: the frame is valid while the block runs.
        unsafe { kernel_abi::bulk::in_block(self.frame, address, rank) }
            .ok_or(BulkFault::IllegalInstruction(address))
    }

    fn in_cluster(&mut self, address: u64) -> Result<u64, BulkFault> {
        // SAFETY: as above.
        unsafe { kernel_abi::bulk::in_cluster(self.frame, address) }
            .ok_or(BulkFault::IllegalInstruction(address))
    }
}
