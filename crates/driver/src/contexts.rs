//! Contexts behind their handles.

use crate::error::CuResult;
use crate::handle::{BadHandle, Kind, Table};
use crate::platform::{device, platform};
use crate::{arrays, coredump, modules, stack, streams, texture_objects, texture_references};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::ContextId;
use device::{ContextFlags, Partition, Scheduling};
use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

static CONTEXTS: Table<Context> = Table::new(Kind::Context);

/// The devices of destroyed contexts, which programs may still ask for.
static DESTROYED: Mutex<BTreeMap<usize, CUdevice>> = Mutex::new(BTreeMap::new());

/// A context as programs know it.
pub struct Context {
    /// Its handle.
    pub handle: CUcontext,
    /// The device's context.
    pub context: Arc<device::Context>,
    /// The part of the device that it is limited to, if it is a green context's.
    partition: Option<Arc<Partition>>,
    /// Uses by `cuCtxCreate` and `cuCtxAttach`.
    uses: AtomicU32,
    /// Contexts to whose memory it has asked for access. All memory is accessible, but programs count on the answers.
    peers: Mutex<HashSet<CUcontext>>,
}

impl Deref for Context {
    type Target = Arc<device::Context>;

    fn deref(&self) -> &Self::Target {
        &self.context
    }
}

/// The current context. It may have failed, or be a primary context that is not active: its functions tell.
pub fn current() -> CuResult<Arc<Context>> {
    find(stack::top().ok_or(CUDA_ERROR_INVALID_CONTEXT)?)
}

/// The current context, if it can be used.
pub fn usable() -> CuResult<Arc<Context>> {
    let context = current()?;
    context.check()?;
    Ok(context)
}

/// The context of a handle.
pub fn find(handle: CUcontext) -> CuResult<Arc<Context>> {
    CONTEXTS.get(handle.0).map_err(|bad| match bad {
        BadHandle::Stale => CUDA_ERROR_CONTEXT_IS_DESTROYED.into(),
        BadHandle::Foreign => CUDA_ERROR_INVALID_CONTEXT.into(),
    })
}

/// The context of a handle; null stands for the current one.
pub fn named_or_current(handle: CUcontext) -> CuResult<Arc<Context>> {
    if handle.is_null() { current() } else { find(handle) }
}

/// Whether this is or was a context's handle: a destroyed context may be made current.
pub fn check_handle(handle: CUcontext) -> CuResult {
    match CONTEXTS.map(handle.0, |_| ()) {
        Err(BadHandle::Foreign) => Err(CUDA_ERROR_INVALID_CONTEXT.into()),
        _ => Ok(()),
    }
}

thread_local! {
    /// The context whose device this thread asked for last, and the device: it stays what it is, for no handle is used twice.
    static LAST_DEVICE: Cell<(CUcontext, CUdevice)> = const { Cell::new((CUcontext::NULL, 0)) };
}

/// The device of a context, even of one that is destroyed. Programs ask all the time.
pub fn device_of(handle: CUcontext) -> CuResult<CUdevice> {
    let (last, device) = LAST_DEVICE.get();
    if last == handle && !handle.is_null() {
        return Ok(device);
    }
    let destroyed = locked(&DESTROYED).get(&handle.0).copied();
    let device = match destroyed {
        Some(device) => device,
        None => find(handle)?.device() as CUdevice,
    };
    LAST_DEVICE.set((handle, device));
    Ok(device)
}

/// The handle of the context that owns something; null if it is gone.
pub fn handle_of(id: ContextId) -> CUcontext {
    let found = CONTEXTS.find_all(|context| context.id() == id && context.partition.is_none());
    found.first().map_or(CUcontext::NULL, |(handle, _)| CUcontext(*handle))
}

/// Makes a context.
pub fn create(ordinal: CUdevice, flags: u32) -> CuResult<CUcontext> {
    let device = device(ordinal)?;
    let flags = read_flags(flags)?;
    let context = device.create_context(flags)?;
    let id = context.id();
    let handle = insert(context, None)?;
    coredump::heed_flags(id, flags);
    Ok(handle)
}

/// Gives a device's primary context another handle, as which it is limited to a part of the device.
pub fn insert_green(context: Arc<device::Context>, partition: Arc<Partition>) -> CuResult<CUcontext> {
    insert(context, Some(partition))
}

/// Makes the handle of a green context stale.
pub fn forget_green(handle: CUcontext) {
    if let Ok(context) = CONTEXTS.remove(handle.0) {
        remember_destroyed(handle, &context);
    }
}

fn remember_destroyed(handle: CUcontext, context: &Context) {
    let device = context.device() as CUdevice;
    locked(&DESTROYED).insert(handle.0, device);
}

fn insert(context: Arc<device::Context>, partition: Option<Arc<Partition>>) -> CuResult<CUcontext> {
    coredump::of_context(context.id());
    let make = |handle| {
        let (uses, peers) = (AtomicU32::new(1), Mutex::new(HashSet::new()));
        Arc::new(Context { handle: CUcontext(handle), context, partition, uses, peers })
    };
    CONTEXTS.insert_with(make).map(CUcontext).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
}

/// Destroys a context with all it owns, and takes it off the calling thread's stack if it is at the top.
pub fn destroy(handle: CUcontext) -> CuResult {
    if handle.is_null() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // A context destroyed before is no context any more.
    let context = CONTEXTS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_CONTEXT)?;
    context.destroy()?;
    forget_objects(&context);
    remember_destroyed(handle, &context);
    // Another thread may have been quicker.
    let _ = CONTEXTS.remove(handle.0);
    if stack::top() == Some(handle) {
        stack::pop();
    }
    Ok(())
}

/// Makes the handles of a context's objects stale, and ends all access of peers that it had a part in.
fn forget_objects(context: &Context) {
    let owner = context.id();
    coredump::forget(owner);
    streams::forget(owner);
    modules::forget(owner);
    arrays::forget(owner);
    texture_objects::forget(owner);
    texture_references::forget(owner);
    context.peers().clear();
    for (_, other) in CONTEXTS.find_all(|other| other.peers().contains(&context.handle)) {
        other.peers().remove(&context.handle);
    }
}

impl Context {
    /// The part of the device that it is limited to, if it is a green context's.
    pub fn partition(&self) -> Option<&Arc<Partition>> {
        self.partition.as_ref()
    }

    /// How many multiprocessors it may use.
    pub fn processors(&self) -> u32 {
        self.partition.as_ref().map_or(self.attributes().multiprocessors, |partition| partition.processors())
    }

    /// Adds a use.
    pub fn attach(&self) {
        self.uses.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes back a use; whether it was the last.
    pub fn detach(&self) -> bool {
        self.uses.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Allows access to a peer's memory.
    pub fn enable_peer(&self, peer: &Context) -> CuResult {
        self.check()?;
        peer.check()?;
        if self.device() == peer.device() {
            return Err(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED.into());
        }
        let added = self.peers().insert(peer.handle);
        if added { Ok(()) } else { Err(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED.into()) }
    }

    /// Takes the access back.
    pub fn disable_peer(&self, peer: &Context) -> CuResult {
        self.check()?;
        let removed = self.peers().remove(&peer.handle);
        if removed { Ok(()) } else { Err(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED.into()) }
    }

    fn peers(&self) -> MutexGuard<'_, HashSet<CUcontext>> {
        locked(&self.peers)
    }
}

/// A device's primary context, whose handle never changes.
pub struct Primary {
    device: &'static Arc<device::Device>,
    handle: CUcontext,
}

/// The primary context of a device.
pub fn primary(ordinal: CUdevice) -> CuResult<&'static Primary> {
    static PRIMARIES: OnceLock<CuResult<Vec<Primary>>> = OnceLock::new();
    device(ordinal)?;
    let make = || {
        let devices = platform()?.devices().iter();
        devices
            .map(|device| Ok(Primary { device, handle: insert(device.primary().context().clone(), None)? }))
            .collect()
    };
    match PRIMARIES.get_or_init(make) {
        Ok(primaries) => Ok(&primaries[ordinal as usize]),
        Err(failure) => Err(*failure),
    }
}

impl Primary {
    /// Activates it if it is not active.
    pub fn retain(&self) -> CuResult<CUcontext> {
        self.device.primary().retain()?;
        Ok(self.handle)
    }

    /// The last release destroys all it owns.
    pub fn release(&self) -> CuResult {
        let primary = self.device.primary();
        primary.release()?;
        if !primary.is_active() {
            forget_objects(&*find(self.handle)?);
        }
        Ok(())
    }

    /// Destroys all it owns.
    pub fn reset(&self) -> CuResult {
        self.device.primary().reset()?;
        forget_objects(&*find(self.handle)?);
        Ok(())
    }

    /// Whether it is retained.
    pub fn is_active(&self) -> bool {
        self.device.primary().is_active()
    }

    /// Its flags, as they have been set.
    pub fn flags(&self) -> u32 {
        write_flags(self.device.primary().flags())
    }

    /// Sets its flags.
    pub fn set_flags(&self, flags: u32) -> CuResult {
        let flags = read_flags(flags)?;
        self.device.primary().set_flags(flags)?;
        coredump::heed_flags(self.device.primary().context().id(), flags);
        Ok(())
    }
}

/// A context's flags from the manual's bits.
pub fn read_flags(flags: u32) -> CuResult<ContextFlags> {
    if flags & !CU_CTX_FLAGS_MASK != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let scheduling = match flags & CU_CTX_SCHED_MASK {
        CU_CTX_SCHED_AUTO => Scheduling::Auto,
        CU_CTX_SCHED_SPIN => Scheduling::Spin,
        CU_CTX_SCHED_YIELD => Scheduling::Yield,
        CU_CTX_SCHED_BLOCKING_SYNC => Scheduling::BlockingSync,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    // Nobody listens at the pipe that users would trigger a report by.
    if flags & CU_CTX_USER_COREDUMP_ENABLE != 0 {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    Ok(ContextFlags {
        scheduling,
        map_host: flags & CU_CTX_MAP_HOST != 0,
        local_memory_resize_to_max: flags & CU_CTX_LMEM_RESIZE_TO_MAX != 0,
        sync_memory_operations: flags & CU_CTX_SYNC_MEMOPS != 0,
        reports_failures: flags & CU_CTX_COREDUMP_ENABLE != 0,
    })
}

/// The manual's bits for flags, as they have been set. Host memory is always mapped.
pub fn write_flags(flags: ContextFlags) -> u32 {
    let scheduling = match flags.scheduling {
        Scheduling::Auto => CU_CTX_SCHED_AUTO,
        Scheduling::Spin => CU_CTX_SCHED_SPIN,
        Scheduling::Yield => CU_CTX_SCHED_YIELD,
        Scheduling::BlockingSync => CU_CTX_SCHED_BLOCKING_SYNC,
    };
    let bit = |on: bool, bit: u32| if on { bit } else { 0 };
    scheduling
        | bit(flags.map_host, CU_CTX_MAP_HOST)
        | bit(flags.local_memory_resize_to_max, CU_CTX_LMEM_RESIZE_TO_MAX)
        | bit(flags.sync_memory_operations, CU_CTX_SYNC_MEMOPS)
        | bit(flags.reports_failures, CU_CTX_COREDUMP_ENABLE)
}
