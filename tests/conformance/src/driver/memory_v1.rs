//! Memory management as it was before version 3.2, with device pointers of 32 bits.

use super::common::*;

/// Whether the driver knows how to; NVIDIA's wants a context of that time too.
fn allocate(bytes: u32) -> CUdeviceptr_v1 {
    new_context();
    let mut pointer = 0;
    // SAFETY: a place for the pointer.
    let code = unsafe { cuMemAlloc(&mut pointer, bytes) };
    if !is_ours() && code != CUDA_SUCCESS {
        skip(&format!("the driver has no memory of 32 bits: {code:?}"));
    }
    assert_eq!(code, CUDA_SUCCESS);
    pointer
}

fn content<T: Copy + Default>(pointer: CUdeviceptr_v1, count: usize) -> Vec<T> {
    read(CUdeviceptr(pointer.into()), count)
}

pub fn allocations_have_addresses_that_fit() {
    let p = allocate(1000);
    let (mut base, mut size, mut free, mut total) = (0, 0, 0, 0);
    cu!(
        cuMemGetAddressRange(&mut base, &mut size, p + 500);
        cuMemGetInfo(&mut free, &mut total);
        cuMemFree(p);
        cuMemFree(0);
    );
    assert_eq!((base, size), (p, 1000));
    assert!(0 < free && free <= total);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree(p));
    fails!(CUDA_ERROR_NOT_FOUND, cuMemGetAddressRange(&mut base, &mut size, p));
    let (mut pitched, mut pitch) = (0, 0);
    cu!(cuMemAllocPitch(&mut pitched, &mut pitch, 513, 3, 4); cuMemsetD8(pitched, 1, pitch * 3); cuMemFree(pitched));
    assert_eq!(pitch, 1024);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&mut pitched, &mut pitch, 513, 3, 5));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(null_mut(), &mut pitch, 513, 3, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocPitch(&mut pitched, null_mut(), 513, 3, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&mut pitched, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(null_mut(), 16));
    fails!(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&mut pitched, u32::MAX));
}

pub fn copies_and_sets_take_such_addresses() {
    let p = allocate(64);
    let (host, mut back, s) = ([1u32, 2, 3, 4], [0u32; 4], stream(CU_STREAM_DEFAULT));
    let (from, to) = (host.as_ptr().cast::<c_void>(), back.as_mut_ptr().cast::<c_void>());
    cu!(
        cuMemsetD32(p, 9, 16);
        cuMemcpyHtoD(p, from, 8);
        cuMemcpyHtoDAsync(p + 8, from.wrapping_byte_add(8), 8, s);
        cuMemcpyDtoD(p + 16, p, 8);
        cuCtxSynchronize();
        cuMemcpyDtoDAsync(p + 24, p + 8, 8, s);
        cuStreamSynchronize(s);
        cuMemcpyDtoH(to, p + 16, 8);
        cuMemcpyDtoHAsync(to.wrapping_byte_add(8), p + 24, 8, s);
        cuStreamSynchronize(s);
    );
    assert_eq!((back, content::<u32>(p, 9)), (host, vec![1, 2, 3, 4, 1, 2, 3, 4, 9]));
    cu!(
        cuMemsetD8(p, 0xa, 3);
        cuMemsetD16(p + 4, 0xb0c, 1);
        cuMemsetD2D8(p + 32, 8, 0xd, 3, 2);
        cuMemsetD2D16(p + 48, 8, 0xe0f, 1, 2);
    );
    let expected =
        [0x000a_0a0a, 0x0b0c, 3, 4, 1, 2, 3, 4, 0x000d_0d0d, 9, 0x000d_0d0d, 9, 0x0e0f, 9, 0x0e0f, 9];
    assert_eq!(content::<u32>(p, 16), expected);
    cu!(cuMemsetD2D32(p, 8, 7, 1, 2));
    assert_eq!(content::<u32>(p, 4), [7, 0x0b0c, 7, 4]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(p + 2, 0, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD(0x1234, from, 8));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(to, p, u32::MAX));
}

pub fn planes_and_boxes_take_such_addresses() {
    let p = allocate(64);
    let host: Vec<u8> = (1..=64).collect();
    let s = stream(CU_STREAM_DEFAULT);
    let plane = |row| CUDA_MEMCPY2D_v1 {
        srcXInBytes: 1,
        srcY: 1,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcDevice: 0,
        srcArray: CUarray::NULL,
        srcPitch: 8,
        dstXInBytes: 2,
        dstY: row,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: p,
        dstArray: CUarray::NULL,
        dstPitch: 8,
        WidthInBytes: 3,
        Height: 1,
    };
    cu!(
        cuMemsetD8(p, 0, 64);
        cuMemcpy2D(&plane(0));
        cuMemcpy2DUnaligned(&plane(1));
        cuMemcpy2DAsync(&plane(2), s);
        cuCtxSynchronize();
    );
    assert_eq!(content::<u8>(p, 32), [[0, 0, 10, 11, 12, 0, 0, 0].repeat(3), vec![0; 8]].concat());
    let boxed = CUDA_MEMCPY3D_v1 {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 1,
        srcLOD: 0,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcDevice: 0,
        srcArray: CUarray::NULL,
        reserved0: null_mut(),
        srcPitch: 4,
        srcHeight: 4,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: p,
        dstArray: CUarray::NULL,
        reserved1: null_mut(),
        dstPitch: 4,
        dstHeight: 2,
        WidthInBytes: 2,
        Height: 2,
        Depth: 2,
    };
    for round in 0..2 {
        cu!(cuMemsetD8(p, 0, 64));
        match round {
            0 => cu!(cuMemcpy3D(&boxed)),
            _ => cu!(cuMemcpy3DAsync(&boxed, s)),
        }
        cu!(cuCtxSynchronize());
        assert_eq!(content::<u8>(p, 16), [17, 18, 0, 0, 21, 22, 0, 0, 33, 34, 0, 0, 37, 38, 0, 0]);
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D(&CUDA_MEMCPY2D_v1 { dstPitch: 2, ..plane(1) }));
}

pub fn host_memory_is_mapped_at_such_addresses() {
    allocate(64);
    let (mut host, mut device) = (null_mut(), 0);
    cu!(
        cuMemAllocHost(&mut host, 64);
        cuMemHostGetDevicePointer(&mut device, host, 0);
        cuMemsetD32(device, 5, 16);
        cuCtxSynchronize();
    );
    // SAFETY: 64 bytes were allocated and set.
    assert_eq!(unsafe { std::slice::from_raw_parts(host.cast::<u32>(), 16) }, [5; 16]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(&mut device, host, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemHostGetDevicePointer(null_mut(), host, 0));
    cu!(cuMemFreeHost(host));
    cu!(cuMemAllocHost(&mut host, 0));
    assert!(host.is_null());
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemAllocHost(null_mut(), 64));
}
