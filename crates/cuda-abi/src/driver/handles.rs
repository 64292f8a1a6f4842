//! Handles, addresses and callbacks.

use super::CUresult;
use core::ffi::c_void;
use core::fmt;

c_handles! {
    /// A context.
    CUcontext;
    /// A module: code and variables loaded into one context.
    CUmodule;
    /// A kernel of a module. Launch and occupancy functions take a [`CUkernel`] in its place.
    CUfunction;
    /// A library: code loaded into every context on demand.
    CUlibrary;
    /// A kernel of a library.
    CUkernel;
    /// A stream; see [`CU_STREAM_LEGACY`](super::CU_STREAM_LEGACY) and
    /// [`CU_STREAM_PER_THREAD`](super::CU_STREAM_PER_THREAD) for the two that are always there.
    CUstream;
    /// An event.
    CUevent;
    /// A one-, two- or three-dimensional array for textures and surfaces.
    CUarray;
    /// An array with mipmap levels.
    CUmipmappedArray;
    /// A texture reference.
    CUtexref;
    /// A surface reference.
    CUsurfref;
    /// A pending invocation of the linker.
    CUlinkState;
    /// A graph.
    CUgraph;
    /// A node of a graph.
    CUgraphNode;
    /// A graph made ready for launching.
    CUgraphExec;
    /// An object whose lifetime graphs share.
    CUuserObject;
    /// A memory pool.
    CUmemoryPool;
    /// Memory made by another API.
    CUexternalMemory;
    /// A semaphore made by another API.
    CUexternalSemaphore;
    /// A resource of a graphics API.
    CUgraphicsResource;
    /// A context limited to some multiprocessors.
    CUgreenCtx;
    /// A description of multiprocessors for a [`CUgreenCtx`].
    CUdevResourceDesc;
    /// A registered asynchronous callback.
    CUasyncCallbackHandle;
}

/// A device's ordinal.
pub type CUdevice = i32;
/// A physical allocation of the virtual memory functions.
pub type CUmemGenericAllocationHandle = u64;
/// A texture object.
pub type CUtexObject = u64;
/// A surface object.
pub type CUsurfObject = u64;

/// Names one attribute of a stream.
pub type CUstreamAttrID = super::CUlaunchAttributeID;
/// A stream attribute's value.
pub type CUstreamAttrValue = super::CUlaunchAttributeValue;

/// An address in the device's address space, which is also the process's own.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CUdeviceptr(pub u64);

impl fmt::Debug for CUdeviceptr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Called on a stream's behalf with the stream, its state and the caller's datum.
pub type CUstreamCallback = Option<unsafe extern "C" fn(CUstream, CUresult, *mut c_void)>;
/// Called on a stream's behalf with the caller's datum.
pub type CUhostFn = Option<unsafe extern "C" fn(*mut c_void)>;
/// Tells the dynamic shared memory, in bytes, that a block of so many threads needs.
pub type CUoccupancyB2DSize = Option<unsafe extern "C" fn(i32) -> usize>;
