//! Memory management: allocation, and host memory that the device knows.

use super::common::*;

fn info() -> (usize, usize) {
    let (mut free, mut total) = (0, 0);
    cu!(cuMemGetInfo_v2(&mut free, &mut total));
    (free, total)
}

pub fn sizes_are_checked() {
    new_context();
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&mut pointer, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(null_mut(), 16));
    for size in [1 << 50, usize::MAX, usize::MAX - 4096] {
        fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut pointer, size));
    }
    let (free, total) = info();
    assert!(0 < free && free <= total, "{free} of {total}");
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut pointer, total + 1));
    // A failure leaves no trace.
    let pointer = alloc(1);
    cu!(cuMemFree_v2(pointer));
}

/// Programs look at the address instead of the code.
pub fn what_cannot_be_allocated_is_null() {
    new_context();
    let mut pointer = CUdeviceptr(0x77);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(&mut pointer, 0));
    assert_eq!(pointer.0, 0);
    pointer.0 = 0x77;
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut pointer, 1 << 50));
    assert_eq!(pointer.0, 0);
}

/// Programs that fill a device are told when it is full.
pub fn more_than_is_free_is_refused() {
    new_context();
    let (free, total) = info();
    let more = free + ((total - free) / 2).max(64 << 20);
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(&mut CUdeviceptr(0), more));
}

pub fn an_address_is_freed_once() {
    new_context();
    let pointer = alloc(100);
    for wrong in [CUdeviceptr(pointer.0 + 4), CUdeviceptr(0x1234), CUdeviceptr(u64::MAX)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(wrong));
    }
    // Null is nothing to free, and no current context is needed: the address tells.
    cu!(cuMemFree_v2(CUdeviceptr(0)); cuCtxPopCurrent_v2(null_mut()); cuMemFree_v2(pointer));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    let local = 0u32;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(CUdeviceptr(&raw const local as u64)));
}

pub fn freed_memory_can_be_had_again() {
    new_context();
    let (_, total) = info();
    let size = (total / 4).min(64 << 20);
    for _ in 0..(total / size).min(64) * 2 {
        let pointer = alloc(size);
        cu!(cuMemFree_v2(pointer));
    }
}

pub fn allocations_are_apart_and_aligned() {
    new_context();
    let (first, second) = (alloc(1), alloc(1));
    assert!(first.0.is_multiple_of(256) && second.0.is_multiple_of(256));
    assert_eq!(first.0.abs_diff(second.0), 512);
    // The driver knows sizes to the byte.
    let (mut base, mut size) = (CUdeviceptr(0), 0);
    cu!(cuMemGetAddressRange_v2(&mut base, &mut size, first));
    assert_eq!((base, size), (first, 1));
}

pub fn an_address_leads_to_its_range() {
    new_context();
    let pointer = alloc(1000);
    let (mut base, mut size) = (CUdeviceptr(0), 0);
    cu!(cuMemGetAddressRange_v2(&mut base, &mut size, CUdeviceptr(pointer.0 + 999)));
    assert_eq!((base, size), (pointer, 1000));
    (base, size) = (CUdeviceptr(0), 0);
    cu!(cuMemGetAddressRange_v2(&mut base, null_mut(), pointer); cuMemGetAddressRange_v2(null_mut(), &mut size, pointer));
    assert_eq!((base, size), (pointer, 1000));
    fails!(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&mut base, &mut size, CUdeviceptr(0x1234)));
    // Nothing is asked.
    cu!(cuMemGetAddressRange_v2(null_mut(), null_mut(), CUdeviceptr(0x1234)));
    cu!(cuMemFree_v2(pointer));
    fails!(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(&mut base, &mut size, pointer));
}

pub fn rows_are_pitched() {
    new_context();
    let (mut pointer, mut pitch) = (CUdeviceptr(0), 0);
    for (width, expected) in [(1, 512), (100, 512), (512, 512), (513, 1024)] {
        for element in [4, 8, 16] {
            cu!(cuMemAllocPitch_v2(&mut pointer, &mut pitch, width, 3, element));
            assert_eq!(pitch, expected, "rows of {width}");
            cu!(cuMemsetD8_v2(pointer, 1, pitch * 3); cuMemFree_v2(pointer));
        }
    }
    for element in [0, 1, 2, 3, 5, 32] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&mut pointer, &mut pitch, 100, 4, element));
        assert_eq!(pitch, 0, "elements of {element}");
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(null_mut(), &mut pitch, 100, 4, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(&mut pointer, null_mut(), 100, 4, 4));
    for (width, height) in [(1 << 40, 1 << 40), (usize::MAX, 1), (100, usize::MAX)] {
        // SAFETY: places for the answers.
        let code = unsafe { cuMemAllocPitch_v2(&mut pointer, &mut pitch, width, height, 4) };
        assert!([CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_OUT_OF_MEMORY].contains(&code), "{code:?}");
    }
}

pub fn managed_memory_is_the_hosts_too() {
    new_context();
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&mut pointer, 16, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&mut pointer, 16, CU_MEM_ATTACH_SINGLE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&mut pointer, 16, 77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(&mut pointer, 0, CU_MEM_ATTACH_GLOBAL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(null_mut(), 16, CU_MEM_ATTACH_GLOBAL));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAllocManaged(&mut pointer, 1 << 50, CU_MEM_ATTACH_GLOBAL));
    for flags in [CU_MEM_ATTACH_GLOBAL, CU_MEM_ATTACH_HOST] {
        cu!(cuMemAllocManaged(&mut pointer, 16, flags));
        // SAFETY: managed memory is the host's too, and no kernel runs.
        unsafe { (pointer.0 as *mut u32).write(5) };
        assert_eq!(read::<u32>(pointer, 1), [5]);
        cu!(cuMemsetD32_v2(pointer, 6, 1); cuCtxSynchronize());
        // SAFETY: likewise.
        assert_eq!(unsafe { (pointer.0 as *const u32).read() }, 6);
        cu!(cuMemFree_v2(pointer));
    }
}

pub fn pinned_memory_is_mapped() {
    new_context();
    let (mut host, mut device, mut flags) = (null_mut(), CUdeviceptr(0), 99);
    for wanted in 0..8 {
        cu!(
            cuMemHostAlloc(&mut host, 64, wanted);
            cuMemHostGetDevicePointer_v2(&mut device, host, 0);
            cuMemsetD8_v2(device, 3, 64);
            cuMemHostGetFlags(&mut flags, host);
        );
        // SAFETY: 64 bytes were allocated and set.
        assert_eq!(unsafe { std::slice::from_raw_parts(host.cast::<u8>(), 64) }, [3; 64]);
        // With unified addresses all of it is mapped.
        assert_eq!(flags & wanted, wanted);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&mut device, host, 1));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(null_mut(), host, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(null_mut(), host));
        cu!(cuMemFreeHost(host));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));
    }
    cu!(cuMemAllocHost_v2(&mut host, 64); cuMemHostGetFlags(&mut flags, host); cuMemFreeHost(host));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(&mut host, 64, 8));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostAlloc(null_mut(), 64, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocHost_v2(null_mut(), 64));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&mut host, 1 << 50, 0));
}

pub fn no_host_memory_is_null() {
    new_context();
    let mut host = std::ptr::dangling_mut();
    cu!(cuMemHostAlloc(&mut host, 0, 0));
    assert!(host.is_null());
    host = std::ptr::dangling_mut();
    cu!(cuMemAllocHost_v2(&mut host, 0));
    assert!(host.is_null());
}

pub fn what_is_no_pinned_memory_is_refused() {
    new_context();
    let (mut device, mut flags, mut local) = (CUdeviceptr(0), 0, 0u32);
    let local = (&raw mut local).cast();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(local));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer_v2(&mut device, local, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetFlags(&mut flags, local));
    // Managed memory has the flags of memory that is mapped.
    let mut managed = CUdeviceptr(0);
    cu!(
        cuMemAllocManaged(&mut managed, 64, CU_MEM_ATTACH_GLOBAL);
        cuMemHostGetFlags(&mut flags, managed.0 as *mut c_void);
        cuMemFree_v2(managed);
    );
    assert_eq!(flags, CU_MEMHOSTALLOC_DEVICEMAP);
    // What the other allocator made is not its to free.
    let pointer = alloc(64);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pointer.0 as *mut c_void));
    cu!(cuMemFree_v2(pointer));
    let mut host = null_mut();
    cu!(cuMemAllocHost_v2(&mut host, 64));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(CUdeviceptr(host as u64)));
    cu!(cuMemFreeHost(host));
}

/// Whole pages, as registration may demand.
#[repr(align(4096))]
struct Pages([u8; 16384]);

pub fn host_memory_is_registered_once() {
    new_context();
    let mut pages = Box::new(Pages([0; 16384]));
    let start = (&raw mut *pages).cast::<c_void>();
    let (mut device, mut flags) = (CUdeviceptr(0), 99);
    for wanted in [0, CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP] {
        cu!(
            cuMemHostRegister_v2(start, 16384, wanted);
            cuMemHostGetDevicePointer_v2(&mut device, start, 0);
            cuMemHostGetFlags(&mut flags, start);
            cuMemsetD8_v2(device, 9, 16384);
        );
        assert_eq!(pages.0, [9; 16384]);
        fails!(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(start, 16384, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(start));
        cu!(cuMemHostUnregister(start));
        fails!(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(start));
        pages.0 = [0; 16384];
    }
    cu!(
        cuMemHostRegister_v2(start, 16384, CU_MEMHOSTREGISTER_READ_ONLY);
        cuMemHostGetFlags(&mut flags, start);
        cuMemHostUnregister(start);
    );
    assert_eq!(flags, CU_MEMHOSTALLOC_DEVICEMAP, "that it is only read is none of these");
    cu!(cuMemHostRegister(start, 16384, 0); cuMemHostUnregister(start));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(start, 16384, 77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(start, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(null_mut(), 16384, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(start, 16384, CU_MEMHOSTREGISTER_IOMEMORY));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister(null_mut()));
}

pub fn host_memory_that_is_registered_can_be_accessed() {
    new_context();
    let page = |access| {
        // SAFETY: a mapping of the test's own.
        let start =
            unsafe { libc::mmap(null_mut(), 4096, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        start
    };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(page(libc::PROT_NONE), 4096, 0));
    let read_only = page(libc::PROT_READ);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostRegister_v2(read_only, 4096, 0));
    cu!(
        cuMemHostRegister_v2(read_only, 4096, CU_MEMHOSTREGISTER_READ_ONLY);
        cuMemHostUnregister(read_only);
    );
}

pub fn host_memory_that_is_freed_meanwhile_is_waited_for() {
    new_context();
    let mut host = null_mut();
    let (device, s) = (alloc(1 << 20), stream(CU_STREAM_NON_BLOCKING));
    for round in 0..50 {
        cu!(
            cuMemAllocHost_v2(&mut host, 1 << 20);
            cuMemsetD8Async(device, round, 1 << 20, s);
            cuMemcpyDtoHAsync_v2(host, device, 1 << 20, s);
            cuMemFreeHost(host);
        );
    }
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u8>(device, 4), [49; 4]);
}

pub fn memory_goes_with_its_context() {
    let first = new_context();
    let (mine, other) = (alloc(64), create_context());
    let theirs = alloc(64);
    // One address space: memory of another context can be used and freed.
    cu!(cuMemsetD8_v2(mine, 1, 64); cuMemcpyDtoD_v2(theirs, mine, 64));
    assert_eq!(read::<u8>(theirs, 64), [1; 64]);
    cu!(cuCtxDestroy_v2(first));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(mine));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(mine, 1, 64));
    assert_eq!(current(), other);
    cu!(cuMemFree_v2(theirs));
}

pub fn notifications_are_registered_and_taken_back() {
    unsafe extern "C" fn told(_: *mut CUasyncNotificationInfo, _: *mut c_void, _: CUasyncCallbackHandle) {}
    init();
    let mut handle = CUasyncCallbackHandle::NULL;
    // SAFETY: a place for the handle, and a function that lives for ever.
    let code = unsafe { cuDeviceRegisterAsyncNotification(0, Some(told), null_mut(), &mut handle) };
    if code == CUDA_ERROR_NOT_SUPPORTED {
        skip("the device sends no notifications");
    }
    assert_eq!(code, CUDA_SUCCESS);
    assert!(!handle.is_null());
    cu!(cuDeviceUnregisterAsyncNotification(0, handle));
    if !ours_only("NVIDIA's driver crashes at null") {
        return;
    }
    fails!(
        CUDA_ERROR_INVALID_DEVICE,
        cuDeviceRegisterAsyncNotification(99, Some(told), null_mut(), &mut handle)
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceRegisterAsyncNotification(0, None, null_mut(), &mut handle));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuDeviceRegisterAsyncNotification(0, Some(told), null_mut(), null_mut())
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(0, handle));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDeviceUnregisterAsyncNotification(0, CUasyncCallbackHandle::NULL));
}
