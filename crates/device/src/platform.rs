//! All devices of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kernel_abi::KernelBackend;

use crate::device::Device;
use crate::memory::{
    Access, Accessor, AddressSpace, Allocation, ArrayMemory, ContextId, Kind, PhysicalMemory, Purpose,
    SharedHandle,
};
use crate::registry::Registry;
use crate::usage::{self, Usage};
use crate::{Context, Error, Options, Result};

/// The devices, and what they have in common.
pub struct Platform {
    devices: Vec<Arc<Device>>,
    space: Arc<AddressSpace>,
    registry: Arc<Registry>,
    options: Options,
}

static FORKED: AtomicBool = AtomicBool::new(false);

impl Platform {
    /// Makes the devices that the options ask for; kernels are compiled by `backend`.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if none is visible, [`Error::InvalidDevice`] if one is to be visible twice, [`Error::NotInitialized`] in a process forked from one with a platform.
    pub fn new(options: Options, backend: Arc<dyn KernelBackend>) -> Result<Platform> {
        Platform::check_process()?;
        watch_forks();
        let visible: Vec<usize> = match &options.visible {
            Some(visible) => visible.clone(),
            None => (0..options.devices).collect(),
        };
        if visible.is_empty() {
            return Err(Error::NoDevice);
        }
        if (1..visible.len()).any(|index| visible[..index].contains(&visible[index])) {
            return Err(Error::InvalidDevice);
        }
        let folder = options.shared_folder.as_deref();
        let usage = visible.iter().map(|&physical| Usage::of_device(folder, physical));
        let memory = usage.map(|usage| (options.memory_of_device(), usage)).collect();
        let mut space = AddressSpace::counted(memory)?;
        // A number that somebody gave is a promise: most programs touch less than they allocate.
        if options.memory.is_none() {
            space.end_with_machine();
        }
        let space = Arc::new(space);
        let registry = Arc::new(Registry::default());
        let devices = visible.iter().enumerate().map(|(ordinal, &physical)| {
            Arc::new(Device::new(
                ordinal,
                physical,
                &options,
                space.clone(),
                registry.clone(),
                backend.clone(),
            ))
        });
        Ok(Platform { devices: devices.collect(), space, registry, options })
    }

    /// [`Error::NotInitialized`] in a process that was forked from one with a platform: its threads do not exist there.
    pub fn check_process() -> Result<()> {
        if FORKED.load(Ordering::Relaxed) { Err(Error::NotInitialized) } else { Ok(()) }
    }

    /// The visible devices, by ordinal.
    pub fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// The device of this number.
    ///
    /// # Errors
    /// [`Error::InvalidDevice`] if there is none.
    pub fn device(&self, ordinal: usize) -> Result<&Arc<Device>> {
        self.devices.get(ordinal).ok_or(Error::InvalidDevice)
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// All memory that the devices know.
    pub fn memory(&self) -> &AddressSpace {
        &self.space
    }

    /// The context that owns an allocation, unless it is gone.
    pub fn owner_of(&self, allocation: &Allocation) -> Option<Arc<Context>> {
        self.registry.find(allocation.owner)
    }

    /// Frees device memory, once all work of its context is done. Null is ignored.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where no allocation of device memory begins; the owner's failure.
    pub fn free(&self, address: u64) -> Result<()> {
        let is_pooled = |kind| matches!(kind, Kind::Pooled | Kind::PooledHost);
        let accept =
            |kind| is_pooled(kind) || matches!(kind, Kind::Device | Kind::Managed { .. } | Kind::External);
        if self.space.find(address).is_some_and(|found| found.base == address && found.kind == Kind::Graph) {
            return self.free_of_graph(address);
        }
        self.free_if(address, accept)
    }

    /// Frees host memory that the device allocated. Null is ignored.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where no such memory begins; the owner's failure.
    pub fn free_host(&self, address: u64) -> Result<()> {
        self.free_if(address, |kind| matches!(kind, Kind::Pinned { .. }))
    }

    /// Frees an array, once all work of its context is done.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if it has been freed; the owner's failure.
    pub fn free_array(&self, array: &ArrayMemory) -> Result<()> {
        if let Some(owner) = self.registry.find(array.owner()) {
            owner.settle()?;
        }
        self.space.free_array(array)
    }

    /// Takes registered host memory back.
    ///
    /// # Errors
    /// [`Error::HostMemoryNotRegistered`] where no such memory begins.
    pub fn unregister_host(&self, address: u64) -> Result<()> {
        crate::graph::check_unsafe_call()?;
        if let Some(owner) = self.space.find(address).and_then(|found| self.owner_of(&found)) {
            owner.settle()?;
        }
        self.space.unregister(address)
    }

    /// Names the allocation that an address lies in, so that other processes can open it, once all work of its device is done:
    /// small ones of several contexts lie side by side, and what they lie in moves.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless it is device memory; the owner's failure.
    pub fn share(&self, address: u64) -> Result<SharedHandle> {
        let found = self.space.find(address).ok_or(Error::InvalidValue)?;
        if let Some(owner) = self.owner_of(&found) {
            owner.drain()?;
        }
        self.drain(found.device);
        self.space.share(found.base)
    }

    /// Says who may do what with mapped memory. Where that is less than before, the work that is under way is done first, which
    /// may be using it.
    ///
    /// # Errors
    /// As for [`AddressSpace::set_access`].
    pub fn set_access(&self, start: u64, size: u64, given: &[(Accessor, Access)]) -> Result<()> {
        if self.space.takes_access(start, size, given)? {
            (0..self.devices.len()).for_each(|device| self.drain(device));
        }
        self.space.set_access(start, size, given)
    }

    /// Waits for all work of a device. What is wrong with its contexts is not the caller's business.
    fn drain(&self, device: usize) {
        for context in self.registry.of_device(device) {
            let _ = context.drain();
        }
    }

    /// Makes memory without an address, for this process alone or for sharing.
    pub fn create_memory(
        &self,
        device: usize,
        size: u64,
        shareable: bool,
        purpose: Purpose,
    ) -> Result<Arc<PhysicalMemory>> {
        PhysicalMemory::create(&self.space, device, size, shareable, purpose)
    }

    /// Frees what a launch of a graph has allocated, once all work of its context is done.
    fn free_of_graph(&self, address: u64) -> Result<()> {
        let owner = self.space.find(address).and_then(|found| self.owner_of(&found));
        owner.map(|owner| owner.settle()).transpose()?;
        if self.space.free_graph_memory(address)? {
            self.space.free(address, |allocation| allocation.kind == Kind::Graph)?;
        }
        Ok(())
    }

    fn free_if(&self, address: u64, accept: impl Fn(Kind) -> bool) -> Result<()> {
        if address == 0 {
            return Ok(());
        }
        // What belongs to no context is a library's, and goes with it.
        let is_freed = |found: &Allocation| {
            found.base == address && accept(found.kind) && found.owner != ContextId::NONE
        };
        let found = self.space.find(address).filter(is_freed);
        let found = found.ok_or(Error::InvalidValue)?;
        // Work that uses the memory may be queued; the program may free it right after the launch.
        if let Some(owner) = self.owner_of(&found) {
            owner.settle()?;
        }
        self.space.free(address, |allocation| allocation.id == found.id).map(drop)
    }
}

/// Has children of this process know that they are.
fn watch_forks() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
        usage::forget_in_child();
    }
    ONCE.call_once(|| {
        // SAFETY: the handler stores to atomics and closes a descriptor, which is allowed in a child of a process with threads. If it cannot be
        // registered, children go unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
