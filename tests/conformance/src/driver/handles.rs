//! Bad sizes, pointers and handles of memory, streams and events, as a recorded driver 580 answers them.

use super::common::*;

const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;
const NO_HANDLE: CUresult = CUDA_ERROR_INVALID_HANDLE;

pub fn sizes_and_pointers_of_allocations() {
    new_context();
    let mut pointer = CUdeviceptr(0);
    fails!(BAD, cuMemAlloc_v2(&mut pointer, 0));
    fails!(BAD, cuMemAlloc_v2(null_mut(), 4));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut pointer, 1 << 50));
    cu!(cuMemFree_v2(CUdeviceptr(0)));
    fails!(BAD, cuMemFree_v2(CUdeviceptr(0x1234)));
    let pointer = alloc(2 << 20);
    fails!(BAD, cuMemFree_v2(CUdeviceptr(pointer.0 + 4)));
    cu!(cuMemFree_v2(pointer));
    fails!(BAD, cuMemFree_v2(pointer));
    let (mut pitched, mut pitch) = (CUdeviceptr(0), 0);
    fails!(BAD, cuMemAllocPitch_v2(&mut pitched, &mut pitch, 100, 2, 3));
    fails!(BAD, cuMemAllocManaged(&mut pitched, 4, 0));
    fails!(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&mut pitched, &mut pitch, CUdeviceptr(0x1234)));
}

pub fn copies_and_sets_stay_within_allocations() {
    new_context();
    let pointer = alloc(2 << 20);
    let end = CUdeviceptr(pointer.0 + (2 << 20) - 8);
    let mut host = vec![0_u8; 8 << 20];
    let data = host.as_mut_ptr().cast::<c_void>();
    fails!(BAD, cuMemcpyHtoD_v2(pointer, data, (2 << 20) + 1));
    fails!(BAD, cuMemcpyDtoH_v2(data, pointer, 8 << 20));
    fails!(BAD, cuMemcpyHtoD_v2(end, data, 16));
    fails!(BAD, cuMemsetD8_v2(pointer, 0, (2 << 20) + 1));
    fails!(BAD, cuMemcpyHtoD_v2(pointer, null(), 16));
    fails!(BAD, cuMemcpyHtoD_v2(CUdeviceptr(0), data, 16));
    cu!(cuMemcpyHtoD_v2(CUdeviceptr(0), null(), 0));
    fails!(BAD, cuMemcpyDtoH_v2(data, CUdeviceptr(0x1234), 16));
    fails!(BAD, cuMemsetD32_v2(CUdeviceptr(pointer.0 + 2), 0, 1));
    fails!(BAD, cuMemsetD16_v2(CUdeviceptr(pointer.0 + 1), 0, 1));
    cu!(cuMemsetD32_v2(pointer, 0, 0));
    let (from, to) = (data as u64, data as u64 + (4 << 20));
    cu!(cuMemcpy(CUdeviceptr(to), CUdeviceptr(from), 16));
}

pub fn host_memory_that_is_not_the_devices() {
    new_context();
    let mut host = null_mut();
    cu!(cuMemHostAlloc(&mut host, 0, 0));
    assert!(host.is_null());
    fails!(BAD, cuMemAllocHost_v2(null_mut(), 4));
    fails!(BAD, cuMemFreeHost(std::ptr::without_provenance_mut(0x1234)));
    let mut memory = vec![0_u8; 1 << 16];
    let start = memory.as_mut_ptr().cast();
    fails!(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(start));
    cu!(cuMemHostRegister_v2(start, 1 << 16, 0));
    fails!(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(start, 1 << 16, 0));
    cu!(cuMemHostUnregister(start));
}

pub fn handles_of_streams() {
    new_context();
    let mut stream = CUstream::NULL;
    fails!(BAD, cuStreamCreate(&mut stream, 77));
    fails!(BAD, cuStreamCreate(null_mut(), 0));
    fails!(NO_HANDLE, cuStreamDestroy_v2(CUstream::NULL));
    fails!(NO_HANDLE, cuStreamDestroy_v2(CU_STREAM_LEGACY));
    cu!(cuStreamQuery(CUstream::NULL));
    let mut priority = 7;
    cu!(cuStreamCreateWithPriority(&mut stream, 0, 99); cuStreamGetPriority(stream, &mut priority));
    assert_eq!(priority, 0);
    cu!(cuStreamQuery(stream); cuStreamDestroy_v2(stream));
    if ours_only("NVIDIA's driver crashes at a destroyed stream") {
        fails!(NO_HANDLE, cuStreamQuery(stream));
        fails!(NO_HANDLE, cuStreamDestroy_v2(stream));
    }
}

pub fn handles_of_events() {
    new_context();
    let (mut start, mut end, mut time) = (CUevent::NULL, CUevent::NULL, 0.0);
    fails!(BAD, cuEventCreate(&mut start, 99));
    fails!(BAD, cuEventCreate(&mut start, CU_EVENT_INTERPROCESS));
    cu!(cuEventCreate(&mut start, 0); cuEventCreate(&mut end, 0));
    cu!(cuEventQuery(start); cuEventSynchronize(start));
    fails!(NO_HANDLE, cuEventElapsedTime(&mut time, start, end));
    cu!(cuEventRecord(start, CUstream::NULL); cuCtxSynchronize());
    fails!(NO_HANDLE, cuEventElapsedTime(&mut time, start, end));
    cu!(cuEventDestroy_v2(end); cuEventCreate(&mut end, CU_EVENT_DISABLE_TIMING));
    cu!(cuEventRecord(end, CUstream::NULL); cuCtxSynchronize());
    fails!(NO_HANDLE, cuEventElapsedTime(&mut time, start, end));
    fails!(NO_HANDLE, cuEventDestroy_v2(CUevent::NULL));
    fails!(NO_HANDLE, cuEventQuery(CUevent::NULL));
    fails!(NO_HANDLE, cuEventRecord(CUevent::NULL, CUstream::NULL));
    cu!(cuEventDestroy_v2(end));
    if ours_only("NVIDIA's driver crashes at a destroyed event") {
        fails!(NO_HANDLE, cuEventQuery(end));
        fails!(NO_HANDLE, cuEventDestroy_v2(end));
    }
}

pub fn what_runs_is_not_ready() {
    extern "C" fn stand(gate: *mut c_void) {
        // SAFETY: the test's gate, which lives until the stream is done.
        let gate = unsafe { &*gate.cast::<std::sync::atomic::AtomicBool>() };
        while !gate.load(std::sync::atomic::Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
    new_context();
    let gate = std::sync::atomic::AtomicBool::new(false);
    let (stream, mut start, mut end, mut time) =
        (stream(CU_STREAM_NON_BLOCKING), CUevent::NULL, CUevent::NULL, 0.0);
    cu!(cuEventCreate(&mut start, 0); cuEventCreate(&mut end, 0); cuEventRecord(start, stream));
    cu!(cuLaunchHostFunc(stream, Some(stand), (&raw const gate).cast_mut().cast()); cuEventRecord(end, stream));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(stream));
    fails!(CUDA_ERROR_NOT_READY, cuEventQuery(end));
    fails!(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&mut time, start, end));
    gate.store(true, std::sync::atomic::Ordering::Release);
    cu!(cuStreamSynchronize(stream); cuStreamQuery(stream); cuEventQuery(end));
    cu!(cuEventElapsedTime(&mut time, start, end));
    assert!(time >= 0.0, "{time}");
}
