//! Memory: allocation, copies, sets, what is known of an address.

mod common;
use common::*;

fn attribute<T: Default>(which: CUpointer_attribute, pointer: CUdeviceptr) -> T {
    let mut value = T::default();
    cu!(cuPointerGetAttribute((&raw mut value).cast(), which, pointer));
    value
}

#[test]
fn allocations_are_checked_and_freed_once() {
    let context = new_context();
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(out(&mut pointer), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc_v2(nowhere(), 16));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc_v2(out(&mut pointer), 1 << 50));
    let pointer = alloc(100);
    assert_eq!(pointer.0 % 256, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(CUdeviceptr(pointer.0 + 4)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(CUdeviceptr(0x1234)));
    // Freeing needs no current context, and null is nothing to free.
    cu!(cuCtxPopCurrent_v2(nowhere()); cuMemFree_v2(CUdeviceptr(0)); cuMemFree_v2(pointer));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn an_allocation_ends_where_it_ends() {
    let context = new_context();
    let (pointer, bytes) = (alloc(1000), [7u8; 1000]);
    cu!(cuMemcpyHtoD_v2(pointer, bytes.as_ptr().cast(), 1000));
    assert_eq!(read::<u8>(pointer, 1000), bytes);
    let (mut base, mut size) = (CUdeviceptr(0), 0);
    cu!(cuMemGetAddressRange_v2(out(&mut base), out(&mut size), CUdeviceptr(pointer.0 + 500)));
    assert_eq!((base, size), (pointer, 1000));
    fails!(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange_v2(out(&mut base), out(&mut size), CUdeviceptr(64)));
    let far = vec![0u8; 4 << 20];
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(pointer, far.as_ptr().cast(), far.len()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(pointer, 0, far.len()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(pointer, null(), 16));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(CUdeviceptr(0), bytes.as_ptr().cast(), 16));
    cu!(cuMemcpyHtoD_v2(CUdeviceptr(0), null(), 0));
    assert_eq!(read::<u8>(pointer, 1000), bytes);
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn sets_fill_units_rows_and_nothing_else() {
    let context = new_context();
    let pointer = alloc_with(&[0u32; 16]);
    cu!(
        cuMemsetD32_v2(CUdeviceptr(pointer.0 + 4), 0x0102_0304, 2);
        cuMemsetD16_v2(CUdeviceptr(pointer.0 + 12), 0xabcd, 1);
        cuMemsetD8_v2(CUdeviceptr(pointer.0 + 15), 0xee, 1);
        cuMemsetD32_v2(pointer, 9, 0);
        // Two rows of three bytes, 16 bytes apart.
        cuMemsetD2D8_v2(CUdeviceptr(pointer.0 + 16), 16, 0x11, 3, 2);
    );
    let expected = [0, 0x0102_0304, 0x0102_0304, 0xee00_abcd, 0x0011_1111, 0, 0, 0, 0x0011_1111, 0];
    assert_eq!(read::<u32>(pointer, 10), expected);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(CUdeviceptr(pointer.0 + 2), 0, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2(CUdeviceptr(pointer.0 + 1), 0, 1));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn rows_are_pitched_and_boxes_copied() {
    let context = new_context();
    let (mut pointer, mut pitch) = (CUdeviceptr(0), 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch_v2(out(&mut pointer), out(&mut pitch), 100, 4, 3));
    cu!(cuMemAllocPitch_v2(out(&mut pointer), out(&mut pitch), 100, 4, 4));
    assert_eq!(pitch, 512);
    let host: Vec<u8> = (0..100).collect();
    let copy = CUDA_MEMCPY2D {
        srcXInBytes: 2,
        srcY: 1,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        srcPitch: 10,
        dstXInBytes: 3,
        dstY: 2,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: pointer,
        dstArray: CUarray::NULL,
        dstPitch: pitch,
        WidthInBytes: 4,
        Height: 2,
    };
    cu!(cuMemsetD8_v2(pointer, 0xff, pitch * 4); cuMemcpy2D_v2(by_ref(&copy)));
    let device = read::<u8>(pointer, pitch * 4);
    assert_eq!(device[2 * pitch + 2..2 * pitch + 8], [0xff, 12, 13, 14, 15, 0xff]);
    assert_eq!(device[3 * pitch + 3..3 * pitch + 7], [22, 23, 24, 25]);
    assert_eq!(device.iter().filter(|byte| **byte != 0xff).count(), 8);
    let wrong = CUDA_MEMCPY2D { dstPitch: 6, ..copy };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(by_ref(&wrong)));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn host_memory_is_allocated_registered_and_mapped() {
    let context = new_context();
    let (mut host, mut device) = (null_mut(), CUdeviceptr(0));
    cu!(
        cuMemHostAlloc(out(&mut host), 64, CU_MEMHOSTALLOC_DEVICEMAP);
        cuMemHostGetDevicePointer_v2(out(&mut device), host, 0);
        cuMemsetD8_v2(device, 3, 64);
    );
    // SAFETY: 64 bytes were allocated and set.
    assert_eq!(unsafe { std::slice::from_raw_parts(host.cast::<u8>(), 64) }, [3; 64]);
    assert_eq!(attribute::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device), CU_MEMORYTYPE_HOST.0);
    let mut flags = 0;
    cu!(cuMemHostGetFlags(out(&mut flags), host); cuMemFreeHost(host));
    assert_eq!(flags & CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(host));

    let mut page = vec![0u8; 8192];
    let start = page.as_mut_ptr().cast();
    cu!(cuMemHostRegister_v2(start, 8192, 0));
    fails!(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister_v2(start, 8192, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostUnregister((start as usize + 64) as *mut c_void));
    cu!(cuMemHostUnregister(start));
    fails!(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(start));
    cu!(cuCtxDestroy_v2(context));
}

#[test]
fn addresses_tell_what_they_are() {
    let context = new_context();
    let pointer = alloc(256);
    let middle = CUdeviceptr(pointer.0 + 100);
    assert_eq!(attribute::<usize>(CU_POINTER_ATTRIBUTE_CONTEXT, middle), context.0);
    assert_eq!(attribute::<u32>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, middle), CU_MEMORYTYPE_DEVICE.0);
    assert_eq!(attribute::<u64>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, middle), pointer.0);
    assert_eq!(attribute::<usize>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, middle), 256);
    assert_eq!(attribute::<u32>(CU_POINTER_ATTRIBUTE_IS_MANAGED, middle), 0);
    let local = 0u32;
    let local_address = CUdeviceptr(&raw const local as u64);
    let mut kind = 0u32;
    let place = (&raw mut kind).cast();
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(place, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, local_address)
    );
    let mut managed = CUdeviceptr(0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocManaged(out(&mut managed), 16, 0));
    cu!(cuMemAllocManaged(out(&mut managed), 16, CU_MEM_ATTACH_GLOBAL));
    assert_eq!(attribute::<u32>(CU_POINTER_ATTRIBUTE_IS_MANAGED, managed), 1);
    // SAFETY: managed memory is the host's too.
    unsafe { (managed.0 as *mut u32).write(5) };
    assert_eq!(read::<u32>(managed, 1), [5]);
    cu!(cuCtxDestroy_v2(context));
}
