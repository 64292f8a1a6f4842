//! Handles and callbacks; most are the driver's own.

use super::cudaError_t;
use crate::driver::*;
use core::ffi::c_void;

c_handles! {
    /// An array for textures and surfaces.
    cudaArray_t;
    /// The same, not to be written.
    cudaArray_const_t;
    /// An array with mipmap levels.
    cudaMipmappedArray_t;
    /// The same, not to be written.
    cudaMipmappedArray_const_t;
}

/// A stream.
pub type cudaStream_t = CUstream;
/// An event.
pub type cudaEvent_t = CUevent;
/// A graph.
pub type cudaGraph_t = CUgraph;
/// A node of a graph.
pub type cudaGraphNode_t = CUgraphNode;
/// A graph made ready for launching.
pub type cudaGraphExec_t = CUgraphExec;
/// An object whose lifetime graphs share.
pub type cudaUserObject_t = CUuserObject;
/// A kernel of a module.
pub type cudaFunction_t = CUfunction;
/// A kernel of a library.
pub type cudaKernel_t = CUkernel;
/// A library.
pub type cudaLibrary_t = CUlibrary;
/// A memory pool.
pub type cudaMemPool_t = CUmemoryPool;
/// Memory made by another API.
pub type cudaExternalMemory_t = CUexternalMemory;
/// A semaphore made by another API.
pub type cudaExternalSemaphore_t = CUexternalSemaphore;
/// A resource of a graphics API.
pub type cudaGraphicsResource_t = CUgraphicsResource;
/// A texture object.
pub type cudaTextureObject_t = CUtexObject;
/// A surface object.
pub type cudaSurfaceObject_t = CUsurfObject;
/// A universally unique identifier.
pub type cudaUUID_t = CUuuid;
/// What another process needs to open an allocation.
pub type cudaIpcMemHandle_t = CUipcMemHandle;
/// What another process needs to open an event.
pub type cudaIpcEventHandle_t = CUipcEventHandle;
/// Names one attribute of a launch, a stream or a graph node.
pub type cudaLaunchAttributeID = CUlaunchAttributeID;
/// A launch attribute's value.
pub type cudaLaunchAttributeValue = CUlaunchAttributeValue;
/// One attribute of a launch.
pub type cudaLaunchAttribute = CUlaunchAttribute;

/// How copies of a batch are made.
pub type cudaMemcpyAttributes = CUmemcpyAttributes;
/// One copy of a batch of boxes.
pub type cudaMemcpy3DBatchOp = CUDA_MEMCPY3D_BATCH_OP;
/// What another process needs to reach an allocation of a shared memory pool.
pub type cudaMemPoolPtrExportData = CUmemPoolPtrExportData;
/// The memory that an array needs.
pub type cudaArrayMemoryRequirements = CUDA_ARRAY_MEMORY_REQUIREMENTS;
/// How a sparse array is divided into tiles.
pub type cudaArraySparseProperties = CUDA_ARRAY_SPARSE_PROPERTIES;
/// An atomic operation.
pub type cudaAtomicOperation = CUatomicOperation;
/// A registered asynchronous callback.
pub type cudaAsyncCallbackHandle_t = CUasyncCallbackHandle;
/// Called with a notification, the caller's datum and the registration.
pub type cudaAsyncCallback = CUasyncCallback;
/// A place in the log of errors.
pub type cudaLogIterator = CUlogIterator;
/// Called with the caller's datum and a message of the log of errors.
pub type cudaLogsCallback_t = CUlogsCallback;
/// A registered function that is told of messages.
pub type cudaLogsCallbackHandle = CUlogsCallbackHandle;

/// Called on a stream's behalf with the stream, its state and the caller's datum.
pub type cudaStreamCallback_t = Option<unsafe extern "C" fn(cudaStream_t, cudaError_t, *mut c_void)>;
/// Called on a stream's behalf with the caller's datum.
pub type cudaHostFn_t = Option<unsafe extern "C" fn(*mut c_void)>;
