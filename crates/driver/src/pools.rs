//! Memory pools behind their handles.

use crate::contexts;
use crate::error::CuResult;
use crate::handle::{Kind, Table};
use crate::platform::{device, platform};
use cuda_abi::driver::*;
use cuda_abi::shim::locked;
use device::memory::{MemoryPlace, Pool, PoolId, PoolKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

static POOLS: Table<Known> = Table::new(Kind::MemoryPool);

/// A pool that has a handle.
struct Known {
    pool: Arc<Pool>,
    sort: Sort,
}

/// The pool of a handle.
pub fn find(handle: CUmemoryPool) -> CuResult<Arc<Pool>> {
    Ok(known(handle)?.pool.clone())
}

/// The pool of a handle, of which everything is known.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for one that is not this process's, too.
pub fn find_own(handle: CUmemoryPool) -> CuResult<Arc<Pool>> {
    let pool = find(handle)?;
    if platform()?.memory().is_imported(&pool) { Err(CUDA_ERROR_INVALID_VALUE.into()) } else { Ok(pool) }
}

fn known(handle: CUmemoryPool) -> CuResult<Arc<Known>> {
    POOLS.get(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE.into())
}

/// The handle of a pool of this sort of memory; a new one the first time.
pub fn handle_of(pool: &Arc<Pool>, sort: Sort) -> CuResult<CUmemoryPool> {
    let found = POOLS.find_all(|known| known.pool.id() == pool.id());
    match found.first() {
        Some((handle, _)) => Ok(CUmemoryPool(*handle)),
        None => {
            let known = Arc::new(Known { pool: pool.clone(), sort });
            POOLS.insert(known).map(CUmemoryPool).ok_or(CUDA_ERROR_OUT_OF_MEMORY.into())
        }
    }
}

/// The pool of an allocation and its handle, unless it is gone.
pub fn of_id(id: PoolId) -> Option<(CUmemoryPool, Arc<Pool>)> {
    let found = POOLS.find_all(|known| known.pool.id() == id).pop();
    found.map(|(handle, known)| (CUmemoryPool(handle), known.pool.clone()))
}

/// The handle of an allocation's pool; null if that is gone.
pub fn handle_of_id(id: PoolId) -> CuResult<CUmemoryPool> {
    if let Some((handle, _)) = of_id(id) {
        return Ok(handle);
    }
    // Those that devices come with have no handle before somebody asks.
    let defaults = platform()?.devices().iter().map(|device| (device.ordinal(), device.default_pool()));
    let found = defaults.into_iter().find(|(_, pool)| pool.id() == id);
    found.map_or(Ok(CUmemoryPool::NULL), |(ordinal, pool)| handle_of(pool, Sort::Device(ordinal as CUdevice)))
}

/// Memory that stream-ordered allocations come from: each sort has pools of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Of a device.
    Device(CUdevice),
    /// Of the host, wherever that has it or at a node.
    Host(Option<i32>),
    /// Managed, as near to this place as may be.
    Managed(Nearest),
}

/// Where managed memory is wanted: all places are one here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Nearest {
    /// Nowhere in particular.
    Anywhere,
    /// At a device.
    Device(CUdevice),
    /// At the host.
    Host,
    /// At a node of the host.
    Node(i32),
    /// At the node of the thread that asks.
    OwnNode,
}

impl Sort {
    /// What a place and a type stand for.
    ///
    /// # Errors
    /// [`CUDA_ERROR_INVALID_VALUE`] where there is no such memory.
    pub fn of(location: CUmemLocation, kind: CUmemAllocationType) -> CuResult<Sort> {
        let (place, id) = (location.r#type, location.id);
        let is_there = match place {
            CU_MEM_LOCATION_TYPE_DEVICE => device(id).is_ok(),
            CU_MEM_LOCATION_TYPE_HOST_NUMA => is_node(id),
            _ => true,
        };
        let sort = match (kind, place) {
            _ if !is_there => None,
            (CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE) => Some(Sort::Device(id)),
            (CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST) => Some(Sort::Host(None)),
            (CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA) => Some(Sort::Host(Some(id))),
            (CU_MEM_ALLOCATION_TYPE_MANAGED, _) => nearest(place, id).map(Sort::Managed),
            _ => None,
        };
        sort.ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }

    /// The device that its pools are made at, and what memory they hand out.
    fn pools(self) -> (CUdevice, PoolKind) {
        match self {
            Sort::Device(id) => (id, PoolKind::Device),
            Sort::Host(_) => (0, PoolKind::Host),
            Sort::Managed(Nearest::Device(id)) => (id, PoolKind::Managed),
            Sort::Managed(_) => (0, PoolKind::Managed),
        }
    }
}

fn nearest(place: CUmemLocationType, id: i32) -> Option<Nearest> {
    match place {
        CU_MEM_LOCATION_TYPE_NONE => Some(Nearest::Anywhere),
        CU_MEM_LOCATION_TYPE_DEVICE => Some(Nearest::Device(id)),
        CU_MEM_LOCATION_TYPE_HOST => Some(Nearest::Host),
        CU_MEM_LOCATION_TYPE_HOST_NUMA => Some(Nearest::Node(id)),
        CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Some(Nearest::OwnNode),
        _ => None,
    }
}

/// Whether the machine has a node of this number; one that tells of none is one.
pub fn is_node(id: i32) -> bool {
    id == 0 || (id > 0 && Path::new(&format!("/sys/devices/system/node/node{id}")).exists())
}

/// The pools of host and managed memory that programs find there; those of device memory are their devices'.
static SORTED: Mutex<Vec<Sorted>> = Mutex::new(Vec::new());

/// The pools of a sort.
struct Sorted {
    sort: Sort,
    default: Arc<Pool>,
    current: Arc<Pool>,
}

/// Calls a function with the pools of a sort, which are made where there are none.
fn with_sort<T>(sort: Sort, act: impl FnOnce(&mut Sorted) -> T) -> CuResult<T> {
    let mut all = locked(&SORTED);
    let known = all.iter().position(|known| known.sort == sort);
    let index = match known {
        Some(index) => index,
        None => {
            let (ordinal, kind) = sort.pools();
            let default = device(ordinal)?.create_pool(kind, 0);
            all.push(Sorted { sort, current: default.clone(), default });
            all.len() - 1
        }
    };
    Ok(act(&mut all[index]))
}

/// The pool that a sort of memory comes with.
pub fn default_of(sort: Sort) -> CuResult<CUmemoryPool> {
    let pool = match sort {
        Sort::Device(id) => device(id)?.default_pool().clone(),
        _ => with_sort(sort, |pools| pools.default.clone())?,
    };
    handle_of(&pool, sort)
}

/// The pool of a sort of memory that was set last.
pub fn current_of(sort: Sort) -> CuResult<CUmemoryPool> {
    let pool = match sort {
        Sort::Device(id) => device(id)?.current_pool(),
        _ => with_sort(sort, |pools| pools.current.clone())?,
    };
    handle_of(&pool, sort)
}

/// Sets the pool of a sort of memory.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for a pool of another sort.
pub fn set_current_of(sort: Sort, handle: CUmemoryPool) -> CuResult {
    let known = known(handle)?;
    if known.sort != sort {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    match sort {
        Sort::Device(id) => Ok(device(id)?.set_current_pool(known.pool.clone())?),
        _ => with_sort(sort, |pools| pools.current = known.pool.clone()),
    }
}

/// Sets what a device allocates from: its own memory, or managed memory that is wanted at it.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for a pool of another device or of the host.
pub fn set_current_of_device(ordinal: CUdevice, handle: CUmemoryPool) -> CuResult {
    let managed = Sort::Managed(Nearest::Device(ordinal));
    let is_managed = known(handle)?.sort == managed;
    set_current_of(if is_managed { managed } else { Sort::Device(ordinal) }, handle)
}

/// Makes a pool, in this process or, of a device's or a node's memory, for sharing by descriptors.
pub fn create(props: &CUmemPoolProps) -> CuResult<CUmemoryPool> {
    // What it will be used for makes no difference here. Managed memory is what is told apart first, by places that there are not.
    if props.reserved.iter().any(|byte| *byte != 0) {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let (managed, place) = (props.allocType == CU_MEM_ALLOCATION_TYPE_MANAGED, props.location.r#type);
    let types = CUmemAllocationHandleType(props.handleTypes);
    if managed && types == CU_MEM_HANDLE_TYPE_NONE && place.name().is_none() {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    let sort = match Sort::of(props.location, props.allocType)? {
        // A pool is not for whichever thread asks next.
        Sort::Managed(Nearest::OwnNode) => Sort::Managed(Nearest::Node(0)),
        sort => sort,
    };
    let (ordinal, kind) = sort.pools();
    let device = device(ordinal)?;
    if props.maxSize > MOST_ADDRESSES {
        return Err(CUDA_ERROR_OUT_OF_MEMORY.into());
    }
    let pool = match (types, kind) {
        (CU_MEM_HANDLE_TYPE_NONE, _) => device.create_pool(kind, props.maxSize as u64),
        (CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, _) => {
            let place = match sort {
                Sort::Device(_) => MemoryPlace::Device,
                Sort::Host(Some(node)) => MemoryPlace::Node(node as u32),
                // Host memory is shared where its node is said, and managed memory never.
                Sort::Host(None) | Sort::Managed(_) => return Err(CUDA_ERROR_INVALID_VALUE.into()),
            };
            device.create_shared_pool(place, props.maxSize as u64)?
        }
        // Other machines' processes know memory of devices and nodes where that is supported.
        (CU_MEM_HANDLE_TYPE_FABRIC, _) if matches!(sort, Sort::Device(_) | Sort::Host(Some(_))) => {
            return Err(CUDA_ERROR_NOT_SUPPORTED.into());
        }
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    handle_of(&pool, sort)
}

/// Bytes that a process has addresses for, and a pool no more than that.
const MOST_ADDRESSES: usize = 1 << 47;

/// Opens another process's pool on the current device.
pub fn import(descriptor: OwnedFd) -> CuResult<CUmemoryPool> {
    let ordinal = contexts::current().map_or(0, |context| context.device()) as CUdevice;
    // What is no pool of ours gets the answer that it gets on an H200.
    let pool = device(ordinal)?.import_pool(descriptor).map_err(|_| CUDA_ERROR_UNKNOWN)?;
    let sort = if pool.kind() == PoolKind::Host { Sort::Host(Some(0)) } else { Sort::Device(ordinal) };
    handle_of(&pool, sort)
}

/// Makes a pool's handle stale; its allocations stay. What it was the pool of goes back to the one it came with.
///
/// # Errors
/// [`CUDA_ERROR_INVALID_VALUE`] for pools that are there by themselves, and for another process's of which there are allocations.
pub fn destroy(handle: CUmemoryPool) -> CuResult {
    let Known { pool, sort } = &*known(handle)?;
    let is_default = match *sort {
        Sort::Device(id) => {
            let device = device(id)?;
            let is_default = device.default_pool().id() == pool.id();
            if !is_default && device.current_pool().id() == pool.id() {
                device.set_current_pool(device.default_pool().clone())?;
            }
            is_default
        }
        _ => with_sort(*sort, |pools| {
            if pools.current.id() == pool.id() {
                pools.current = pools.default.clone();
            }
            pools.default.id() == pool.id()
        })?,
    };
    if is_default {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    platform()?.memory().close_shared_pool(pool)?;
    POOLS.remove(handle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    Ok(())
}

/// Gives one place access to a pool, or takes it back.
///
/// # Errors
/// As NVIDIA's driver answers: [`CUDA_ERROR_NOT_SUPPORTED`] for access that only reads, for the host's to device memory, and
/// for taking host memory from the host; [`CUDA_ERROR_INVALID_DEVICE`] for no device, and for taking memory from its own.
pub fn set_access(pool: &Pool, desc: &CUmemAccessDesc, is_checked_only: bool) -> CuResult {
    let (location, kind) = (desc.location, pool.kind());
    let access = || match CUmemAccess_flags(desc.flags) {
        CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Ok(true),
        CU_MEM_ACCESS_FLAGS_PROT_NONE => Ok(false),
        _ => Err(CUDA_ERROR_INVALID_VALUE),
    };
    if CUmemAccess_flags(desc.flags) == CU_MEM_ACCESS_FLAGS_PROT_READ {
        return Err(CUDA_ERROR_NOT_SUPPORTED.into());
    }
    match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => {
            let ordinal = device(location.id)?.ordinal();
            let access = access()?;
            if !access && kind == PoolKind::Device && ordinal == pool.device() {
                return Err(CUDA_ERROR_INVALID_DEVICE.into());
            }
            if !is_checked_only {
                pool.access().set_device(ordinal, access);
            }
        }
        _ if kind == PoolKind::Device => return Err(CUDA_ERROR_NOT_SUPPORTED.into()),
        CU_MEM_LOCATION_TYPE_HOST | CU_MEM_LOCATION_TYPE_HOST_NUMA => {
            let access = access()?;
            if !access && kind == PoolKind::Host {
                return Err(CUDA_ERROR_NOT_SUPPORTED.into());
            }
            if !is_checked_only {
                pool.access().set_host(access);
            }
        }
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    Ok(())
}

/// Whether a place has been given access to a pool.
pub fn has_access(pool: &Pool, location: CUmemLocation) -> CuResult<bool> {
    match location.r#type {
        CU_MEM_LOCATION_TYPE_DEVICE => {
            let device = device(location.id).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
            Ok(pool.access().of_device(device.ordinal()))
        }
        CU_MEM_LOCATION_TYPE_HOST | CU_MEM_LOCATION_TYPE_HOST_NUMA => Ok(pool.access().of_host()),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}
