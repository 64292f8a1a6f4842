//! Functions that are the driver's own: what reaches the driver, and that null for a result does not.

use cuda_abi::args::{In, Text};
use cuda_abi::driver::*;
use cuda_abi::runtime::*;

use super::*;
use crate::api::device::*;
use crate::api::driver_entry_points::*;
use crate::api::error_log::*;
use crate::api::graph::any_node::*;
use crate::api::graph::memory::*;
use crate::api::memory::array::*;
use crate::api::memory::batch::*;
use crate::api::pool::*;

/// The call ends well and is `$driver(…)`, with these arguments.
macro_rules! forwards {
    ($call:expr => $driver:literal) => {{
        // SAFETY: the driver of the tests looks at no pointer, and results have their places.
        assert_eq!(unsafe { $call }, cudaSuccess);
        assert_eq!(mock_driver::last_call(), format!($driver));
    }};
}

/// The call ends with this code, and the driver learns nothing of it.
macro_rules! refuses {
    ($code:ident, $call:expr) => {{
        let _ = mock_driver::last_call();
        // SAFETY: nothing that is not null is looked at.
        assert_eq!(unsafe { $call }, $code);
        assert!(!mock_driver::last_call().contains('('), "the driver was called");
    }};
}

fn begin_in_context() {
    begin();
    mock_driver::make_current(CUcontext(0x200));
}

fn at<T>(address: usize) -> *mut T {
    ptr::without_provenance_mut(address)
}

/// No place for a result.
fn nowhere<T>() -> Out<T> {
    // SAFETY: null is noticed.
    unsafe { Out::new(ptr::null_mut()) }
}

/// A place that nobody writes to.
fn place<T>(address: usize) -> Out<T> {
    // SAFETY: the driver of the tests writes nothing.
    unsafe { Out::new(at(address)) }
}

const STREAM: cudaStream_t = CUstream(0x700);
const NONE: cudaStream_t = CUstream(0);

#[test]
fn batches() {
    begin_in_context();
    forwards!(
        cudaMemcpyBatchAsync(at(0x10), at(0x20), at(0x30), 4, at(0x40), at(0x50), 6, STREAM)
        => "cuMemcpyBatchAsync_v2(0x10, 0x20, 0x30, 4, 0x40, 0x50, 6, 0x700)"
    );
    forwards!(
        cudaMemcpyBatchAsync(at(0x10), at(0x20), at(0x30), 4, at(0x40), at(0x50), 6, NONE)
        => "cuMemcpyBatchAsync_v2(0x10, 0x20, 0x30, 4, 0x40, 0x50, 6, 0x0)"
    );
    forwards!(
        cudaMemcpyBatchAsync_ptsz(at(0x10), at(0x20), at(0x30), 4, at(0x40), at(0x50), 6, NONE)
        => "cuMemcpyBatchAsync_v2(0x10, 0x20, 0x30, 4, 0x40, 0x50, 6, 0x2)"
    );
    forwards!(cudaMemcpy3DBatchAsync(3, at(0x10), 5, STREAM) => "cuMemcpy3DBatchAsync_v2(3, 0x10, 5, 0x700)");
    forwards!(cudaMemcpy3DBatchAsync_ptsz(3, at(0x10), 5, NONE) => "cuMemcpy3DBatchAsync_v2(3, 0x10, 5, 0x2)");
    forwards!(
        cudaMemPrefetchBatchAsync(at(0x10), at(0x20), 3, at(0x40), at(0x50), 6, 7, STREAM)
        => "cuMemPrefetchBatchAsync(0x10, 0x20, 3, 0x40, 0x50, 6, 7, 0x700)"
    );
    forwards!(
        cudaMemPrefetchBatchAsync_ptsz(at(0x10), at(0x20), 3, at(0x40), at(0x50), 6, 7, NONE)
        => "cuMemPrefetchBatchAsync(0x10, 0x20, 3, 0x40, 0x50, 6, 7, 0x2)"
    );
    forwards!(
        cudaMemDiscardBatchAsync(at(0x10), at(0x20), 3, 4, STREAM)
        => "cuMemDiscardBatchAsync(0x10, 0x20, 3, 4, 0x700)"
    );
    forwards!(
        cudaMemDiscardBatchAsync_ptsz(at(0x10), at(0x20), 3, 4, NONE)
        => "cuMemDiscardBatchAsync(0x10, 0x20, 3, 4, 0x2)"
    );
    forwards!(
        cudaMemDiscardAndPrefetchBatchAsync(at(0x10), at(0x20), 3, at(0x40), at(0x50), 6, 7, STREAM)
        => "cuMemDiscardAndPrefetchBatchAsync(0x10, 0x20, 3, 0x40, 0x50, 6, 7, 0x700)"
    );
    forwards!(
        cudaMemDiscardAndPrefetchBatchAsync_ptsz(at(0x10), at(0x20), 3, at(0x40), at(0x50), 6, 7, NONE)
        => "cuMemDiscardAndPrefetchBatchAsync(0x10, 0x20, 3, 0x40, 0x50, 6, 7, 0x2)"
    );
}

#[test]
fn a_batch_needs_a_context() {
    begin();
    // SAFETY: the driver of the tests looks at no pointer.
    let code = unsafe { cudaMemDiscardBatchAsync(at(0x10), at(0x20), 3, 4, STREAM) };
    assert_eq!(code, cudaSuccess);
    assert_eq!(mock_driver::current(), mock_driver::primary(0));
}

#[test]
fn arrays() {
    begin_in_context();
    let (array, mipmap) = (cudaArray_t(0xA0), cudaMipmappedArray_t(0xB0));
    forwards!(cudaArrayGetPlane(place(0x10), array, 2) => "cuArrayGetPlane(0x10, 0xa0, 2)");
    refuses!(cudaErrorInvalidValue, cudaArrayGetPlane(nowhere(), array, 2));
    forwards!(
        cudaArrayGetMemoryRequirements(place(0x10), array, 3) => "cuArrayGetMemoryRequirements(0x10, 0xa0, 3)"
    );
    refuses!(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(nowhere(), array, 3));
    forwards!(
        cudaMipmappedArrayGetMemoryRequirements(place(0x10), mipmap, 3)
        => "cuMipmappedArrayGetMemoryRequirements(0x10, 0xb0, 3)"
    );
    refuses!(cudaErrorInvalidValue, cudaMipmappedArrayGetMemoryRequirements(nowhere(), mipmap, 3));
    forwards!(cudaArrayGetSparseProperties(place(0x10), array) => "cuArrayGetSparseProperties(0x10, 0xa0)");
    refuses!(cudaErrorInvalidValue, cudaArrayGetSparseProperties(nowhere(), array));
    forwards!(
        cudaMipmappedArrayGetSparseProperties(place(0x10), mipmap)
        => "cuMipmappedArrayGetSparseProperties(0x10, 0xb0)"
    );
    refuses!(cudaErrorInvalidValue, cudaMipmappedArrayGetSparseProperties(nowhere(), mipmap));
}

#[test]
fn questions_about_devices() {
    begin_in_context();
    forwards!(
        cudaDeviceFlushGPUDirectRDMAWrites(
            cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
            cudaFlushGPUDirectRDMAWritesToAllDevices
        ) => "cuFlushGPUDirectRDMAWrites({CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX:?}, \
              {CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES:?})"
    );
    forwards!(
        cudaDeviceGetHostAtomicCapabilities(at(0x10), at(0x20), 3, 1)
        => "cuDeviceGetHostAtomicCapabilities(0x10, 0x20, 3, 1)"
    );
    refuses!(cudaErrorInvalidDevice, cudaDeviceGetHostAtomicCapabilities(at(0x10), at(0x20), 3, 99));
    forwards!(
        cudaDeviceGetP2PAtomicCapabilities(at(0x10), at(0x20), 3, 1, 2)
        => "cuDeviceGetP2PAtomicCapabilities(0x10, 0x20, 3, 1, 2)"
    );
    refuses!(cudaErrorInvalidDevice, cudaDeviceGetP2PAtomicCapabilities(at(0x10), at(0x20), 3, 1, -1));
    forwards!(cudaDeviceGetNvSciSyncAttributes(at(0x10), 1, 2) => "cuDeviceGetNvSciSyncAttributes(0x10, 1, 2)");
    refuses!(cudaErrorInvalidDevice, cudaDeviceGetNvSciSyncAttributes(at(0x10), 99, 2));
    forwards!(
        cudaDeviceRegisterAsyncNotification(1, None, at(0x20), place(0x30))
        => "cuDeviceRegisterAsyncNotification(1, None, 0x20, 0x30)"
    );
    refuses!(cudaErrorInvalidValue, cudaDeviceRegisterAsyncNotification(1, None, at(0x20), nowhere()));
    refuses!(cudaErrorInvalidDevice, cudaDeviceRegisterAsyncNotification(99, None, at(0x20), place(0x30)));
    let registration = CUasyncCallbackHandle(0x40);
    forwards!(
        cudaDeviceUnregisterAsyncNotification(1, registration) => "cuDeviceUnregisterAsyncNotification(1, 0x40)"
    );
    refuses!(cudaErrorInvalidDevice, cudaDeviceUnregisterAsyncNotification(99, registration));
}

#[test]
fn pools_of_places_and_of_other_processes() {
    begin();
    let (pool, kind) = (CUmemoryPool(0xA0), cudaMemAllocationTypePinned);
    forwards!(
        cudaMemGetDefaultMemPool(place(0x10), at(0x20), kind)
        => "cuMemGetDefaultMemPool(0x10, 0x20, {CU_MEM_ALLOCATION_TYPE_PINNED:?})"
    );
    refuses!(cudaErrorInvalidValue, cudaMemGetDefaultMemPool(nowhere(), at(0x20), kind));
    forwards!(
        cudaMemGetMemPool(place(0x10), at(0x20), kind)
        => "cuMemGetMemPool(0x10, 0x20, {CU_MEM_ALLOCATION_TYPE_PINNED:?})"
    );
    refuses!(cudaErrorInvalidValue, cudaMemGetMemPool(nowhere(), at(0x20), kind));
    forwards!(
        cudaMemSetMemPool(at(0x20), kind, pool) => "cuMemSetMemPool(0x20, {CU_MEM_ALLOCATION_TYPE_PINNED:?}, 0xa0)"
    );
    let by_descriptor = cudaMemHandleTypePosixFileDescriptor;
    forwards!(
        cudaMemPoolExportToShareableHandle(at(0x10), pool, by_descriptor, 3)
        => "cuMemPoolExportToShareableHandle(0x10, 0xa0, {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR:?}, 3)"
    );
    forwards!(
        cudaMemPoolImportFromShareableHandle(place(0x10), at(0x20), by_descriptor, 3)
        => "cuMemPoolImportFromShareableHandle(0x10, 0x20, {CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR:?}, 3)"
    );
    refuses!(
        cudaErrorInvalidValue,
        cudaMemPoolImportFromShareableHandle(nowhere(), at(0x20), by_descriptor, 3)
    );
    forwards!(cudaMemPoolExportPointer(place(0x10), at(0x20)) => "cuMemPoolExportPointer(0x10, 0x20)");
    refuses!(cudaErrorInvalidValue, cudaMemPoolExportPointer(nowhere(), at(0x20)));
    // None of these needs a context. What is imported is that of one.
    assert_eq!(mock_driver::current(), CUcontext::NULL);
    forwards!(
        cudaMemPoolImportPointer(place(0x10), pool, at(0x20)) => "cuMemPoolImportPointer(0x10, 0xa0, 0x20)"
    );
    assert_ne!(mock_driver::current(), CUcontext::NULL);
    refuses!(cudaErrorInvalidValue, cudaMemPoolImportPointer(nowhere(), pool, at(0x20)));
}

#[test]
fn the_error_log() {
    begin();
    let path = c"log.txt";
    // SAFETY: the text lives through the test, and null is noticed.
    let (path_text, no_text) = unsafe { (Text::new(path.as_ptr()), Text::new(ptr::null())) };
    let address = path.as_ptr();
    forwards!(
        cudaLogsRegisterCallback(None, at(0x20), place(0x30)) => "cuLogsRegisterCallback(None, 0x20, 0x30)"
    );
    forwards!(cudaLogsUnregisterCallback(CUlogsCallbackHandle(0x40)) => "cuLogsUnregisterCallback(0x40)");
    forwards!(cudaLogsCurrent(place(0x10), 2) => "cuLogsCurrent(0x10, 2)");
    refuses!(cudaErrorInvalidValue, cudaLogsCurrent(nowhere(), 0));
    forwards!(cudaLogsDumpToFile(at(0x10), path_text, 2) => "cuLogsDumpToFile(0x10, {address:?}, 2)");
    refuses!(cudaErrorInvalidValue, cudaLogsDumpToFile(at(0x10), no_text, 0));
    forwards!(
        cudaLogsDumpToMemory(at(0x10), at(0x20), at(0x30), 2) => "cuLogsDumpToMemory(0x10, 0x20, 0x30, 2)"
    );
}

#[test]
fn tables_that_are_not_in_the_manual() {
    begin();
    let id = CUuuid { bytes: [7; 16] };
    // SAFETY: the identifier lives through the test, and null is noticed.
    let (known, none) = unsafe { (In::new(&id), In::new(ptr::null())) };
    // SAFETY: as above.
    assert_eq!(unsafe { cudaGetExportTable(place(0x10), known) }, cudaSuccess);
    assert!(mock_driver::last_call().starts_with("cuGetExportTable(0x10, 0x"));
    refuses!(cudaErrorInvalidValue, cudaGetExportTable(place(0x10), none));
    refuses!(cudaErrorInvalidValue, cudaGetExportTable(nowhere(), known));
}

#[test]
fn memory_of_graphs() {
    begin();
    let used = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
    forwards!(cudaDeviceGraphMemTrim(1) => "cuDeviceGraphMemTrim(1)");
    forwards!(
        cudaDeviceGetGraphMemAttribute(1, used, at(0x10)) => "cuDeviceGetGraphMemAttribute(1, {used:?}, 0x10)"
    );
    forwards!(
        cudaDeviceSetGraphMemAttribute(1, used, at(0x10)) => "cuDeviceSetGraphMemAttribute(1, {used:?}, 0x10)"
    );
    refuses!(cudaErrorInvalidDevice, cudaDeviceGraphMemTrim(99));
    refuses!(cudaErrorInvalidDevice, cudaDeviceGetGraphMemAttribute(-1, used, at(0x10)));
    refuses!(cudaErrorInvalidDevice, cudaDeviceSetGraphMemAttribute(99, used, at(0x10)));
}

#[test]
fn a_node_of_any_kind_as_cuda_12_adds_it() {
    begin_in_context();
    // SAFETY: numbers and a union of them, for which zero is a value.
    let mut params: cudaGraphNodeParams = unsafe { std::mem::zeroed() };
    params.r#type = CU_GRAPH_NODE_TYPE_EMPTY;
    let graph = CUgraph(0x20);
    // SAFETY: the description lives through the test, and the driver of the tests looks at no pointer.
    let code = unsafe { cudaGraphAddNode_cuda12(place(0x10), graph, at(0x30), 4, array_of(&mut params)) };
    assert_eq!(code, cudaSuccess);
    assert!(mock_driver::last_call().starts_with("cuGraphAddNode(0x10, 0x20, 0x30, 4, 0x"));
    refuses!(
        cudaErrorInvalidValue,
        cudaGraphAddNode_cuda12(nowhere(), graph, at(0x30), 4, array_of(&mut params))
    );
}

fn array_of<T: Copy>(value: &mut T) -> cuda_abi::args::Array<T> {
    // SAFETY: one element, which lives through the call.
    unsafe { cuda_abi::args::Array::new(value) }
}
