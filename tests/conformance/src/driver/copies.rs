//! Memory management: copies.

use super::common::*;

/// Bytes 1, 2, 3, …
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index + 1) as u8).collect()
}

pub fn every_copy_of_a_row_moves_its_bytes() {
    let context = new_context();
    let (host, s) = (bytes(64), CUstream::NULL);
    let (a, b) = (alloc(64), alloc(64));
    let from = |offset: usize| host[offset..].as_ptr().cast::<c_void>();
    let at = |p: CUdeviceptr, offset: u64| CUdeviceptr(p.0 + offset);
    let unified = |offset: usize| CUdeviceptr(from(offset) as u64);
    cu!(
        cuMemsetD8_v2(a, 0, 64);
        cuMemcpyHtoD_v2(a, from(0), 4);
        cuMemcpyHtoD_v2_ptds(at(a, 4), from(4), 4);
        cuMemcpyHtoDAsync_v2(at(a, 8), from(8), 4, s);
        cuMemcpyHtoDAsync_v2_ptsz(at(a, 12), from(12), 4, s);
        cuMemcpy(at(a, 16), unified(16), 4);
        cuMemcpy_ptds(at(a, 20), unified(20), 4);
        cuMemcpyAsync(at(a, 24), unified(24), 4, s);
        cuMemcpyAsync_ptsz(at(a, 28), unified(28), 4, s);
        cuCtxSynchronize();
    );
    assert_eq!(read::<u8>(a, 32), host[..32]);
    cu!(
        cuMemsetD8_v2(b, 0, 64);
        cuMemcpyDtoD_v2(b, a, 4);
        cuMemcpyDtoD_v2_ptds(at(b, 4), at(a, 4), 4);
        cuMemcpyDtoDAsync_v2(at(b, 8), at(a, 8), 4, s);
        cuMemcpyDtoDAsync_v2_ptsz(at(b, 12), at(a, 12), 4, s);
        cuMemcpyPeer(at(b, 16), context, at(a, 16), context, 4);
        cuMemcpyPeer_ptds(at(b, 20), context, at(a, 20), context, 4);
        cuMemcpyPeerAsync(at(b, 24), context, at(a, 24), context, 4, s);
        cuMemcpyPeerAsync_ptsz(at(b, 28), context, at(a, 28), context, 4, s);
        cuCtxSynchronize();
    );
    let mut back = [0u8; 32];
    let mut to = |offset: usize| back[offset..].as_mut_ptr().cast::<c_void>();
    cu!(
        cuMemcpyDtoH_v2(to(0), b, 8);
        cuMemcpyDtoH_v2_ptds(to(8), at(b, 8), 8);
        cuMemcpyDtoHAsync_v2(to(16), at(b, 16), 8, s);
        cuMemcpyDtoHAsync_v2_ptsz(to(24), at(b, 24), 8, s);
        cuCtxSynchronize();
    );
    assert_eq!(back, host[..32]);
}

pub fn host_to_host_is_a_copy_too() {
    new_context();
    let (from, mut to) = (bytes(100), vec![0u8; 100]);
    let addresses = (CUdeviceptr(to.as_mut_ptr() as u64), CUdeviceptr(from.as_ptr() as u64));
    cu!(cuMemcpy(addresses.0, addresses.1, 100));
    assert_eq!(to, from);
    to.fill(0);
    cu!(cuMemcpyAsync(addresses.0, addresses.1, 100, CUstream::NULL); cuCtxSynchronize());
    assert_eq!(to, from);
}

pub fn ends_are_checked() {
    new_context();
    const SIZE: usize = 2 << 20;
    let (p, far) = (alloc(SIZE), vec![0u8; 2 * SIZE]);
    let mut small = [0u8; 64];
    let (host, place) = (far.as_ptr().cast::<c_void>(), small.as_mut_ptr().cast::<c_void>());
    let s = stream(CU_STREAM_DEFAULT);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, host, SIZE + 4096));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(CUdeviceptr(p.0 + SIZE as u64 - 8), host, 16));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync_v2(p, host, SIZE + 4096, s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(p, CUdeviceptr(p.0 + 64), SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoDAsync_v2(p, CUdeviceptr(p.0 + 64), SIZE, s));
    for size in [usize::MAX, usize::MAX / 2, 1 << 48] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, host, size));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(place, p, size));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(p, p, size));
    }
    for wrong in [CUdeviceptr(0), CUdeviceptr(0x1234)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(wrong, host, 16));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(place, wrong, 16));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoHAsync_v2(place, wrong, 16, s));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoD_v2(p, wrong, 16));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, null(), 16));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(null_mut(), p, 16));
    cu!(cuMemcpyHtoD_v2(CUdeviceptr(0), null(), 0); cuMemcpyDtoH_v2(null_mut(), CUdeviceptr(0), 0));
    cu!(cuMemFree_v2(p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, host, 16));
}

pub fn memory_that_is_not_there_is_an_error() {
    new_context();
    let p = alloc_with(&[7u8; 64]);
    if ours_only("NVIDIA's driver crashes") {
        let nowhere = 0x10 as *mut c_void;
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD_v2(p, nowhere, 16));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH_v2(nowhere, p, 16));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoDAsync_v2(p, nowhere, 16, CUstream::NULL));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoHAsync_v2(nowhere, p, 16, CUstream::NULL));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoDAsync_v2(p, nowhere, 16, CUstream(0x5678)));
        assert_eq!(read::<u8>(p, 64), [7; 64]);
    }
}

pub fn pageable_memory_is_free_when_the_call_returns() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let p = alloc(4 << 20);
    for size in [64, 1000, 65536, 65537, 4 << 20] {
        let mut host = vec![5u8; size];
        cu!(cuMemcpyHtoDAsync_v2(p, host.as_ptr().cast(), size, s));
        host.fill(6);
        cu!(cuStreamSynchronize(s));
        assert_eq!(read::<u8>(p, size), vec![5; size], "{size} bytes");
        let mut back = vec![0u8; size];
        // Likewise the other way: the bytes are there when the call returns.
        cu!(cuMemcpyDtoHAsync_v2(back.as_mut_ptr().cast(), p, size, s));
        assert_eq!(back, vec![5; size], "{size} bytes");
    }
}

pub fn pinned_memory_is_read_in_the_stream() {
    new_context();
    let (s, gate) = (stream(CU_STREAM_NON_BLOCKING), Gate::new());
    let (p, mut host) = (alloc_with(&[0u32; 1]), null_mut());
    cu!(cuMemHostAlloc(&mut host, 4, 0));
    // SAFETY: four bytes of the test's; the stream is held before it reads them.
    unsafe { host.cast::<u32>().write(1) };
    gate.hold(s);
    cu!(cuMemcpyHtoDAsync_v2(p, host, 4, s));
    // SAFETY: likewise.
    unsafe { host.cast::<u32>().write(2) };
    gate.open();
    cu!(cuStreamSynchronize(s));
    assert_eq!(read::<u32>(p, 1), [2]);
}

pub fn synchronous_memory_operations_wait() {
    new_context();
    let (a, b) = (alloc_with(&[1u32; 4]), alloc_with(&[2u32; 4]));
    let (one, s) = (1u32, stream(CU_STREAM_DEFAULT));
    cu!(cuPointerSetAttribute((&raw const one).cast(), CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, b));
    let gate = Gate::new();
    gate.hold(s);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        gate.open();
    });
    // The copy comes behind the held stream, and the call ends when it is done.
    cu!(cuMemcpyDtoD_v2(b, a, 16); cuStreamQuery(s); cuStreamQuery(CUstream::NULL));
    opener.join().unwrap();
    assert_eq!(read::<u32>(b, 4), [1; 4]);
}

fn copy_2d() -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: null(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: CUdeviceptr(0),
        dstArray: CUarray::NULL,
        dstPitch: 0,
        WidthInBytes: 0,
        Height: 0,
    }
}

pub fn every_copy_of_a_plane_moves_its_rows() {
    new_context();
    let (host, p, s) = (bytes(100), alloc(64 * 10), CUstream::NULL);
    cu!(cuMemsetD8_v2(p, 0xff, 640));
    // Two rows of three bytes, from column 2 and row 1 of rows of ten, to column 3 of two rows of 64 bytes.
    let to_row = |row| CUDA_MEMCPY2D {
        srcHost: host.as_ptr().cast(),
        srcXInBytes: 2,
        srcY: 1,
        srcPitch: 10,
        dstDevice: p,
        dstXInBytes: 3,
        dstY: row,
        dstPitch: 64,
        WidthInBytes: 3,
        Height: 2,
        ..copy_2d()
    };
    let mut unified = to_row(6);
    unified.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
    unified.srcDevice = CUdeviceptr(host.as_ptr() as u64);
    unified.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    cu!(
        cuMemcpy2D_v2(&to_row(0));
        cuMemcpy2D_v2_ptds(&to_row(2));
        cuMemcpy2DUnaligned_v2(&to_row(4));
        cuMemcpy2DUnaligned_v2_ptds(&unified);
        cuMemcpy2DAsync_v2(&to_row(8), s);
        cuCtxSynchronize();
    );
    let device = read::<u8>(p, 640);
    for (index, byte) in device.iter().enumerate() {
        let (y, x) = (index / 64, index % 64);
        let expected = if (3..6).contains(&x) { host[(1 + y % 2) * 10 + x - 1] } else { 0xff };
        assert_eq!(*byte, expected, "row {y}, byte {x}");
    }
    // Back, from one pitch to another.
    let mut back = [0u8; 40];
    let mut out = CUDA_MEMCPY2D {
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcDevice: p,
        srcXInBytes: 3,
        srcPitch: 64,
        dstMemoryType: CU_MEMORYTYPE_HOST,
        dstHost: back.as_mut_ptr().cast(),
        dstPitch: 20,
        WidthInBytes: 3,
        Height: 2,
        ..copy_2d()
    };
    cu!(cuMemcpy2DAsync_v2_ptsz(&out, s); cuCtxSynchronize());
    assert_eq!((&back[..4], &back[20..24]), (&[13, 14, 15, 0][..], &[23, 24, 25, 0][..]));
    out.Height = 0;
    cu!(cuMemcpy2D_v2(&out));
}

pub fn planes_are_checked() {
    new_context();
    let (host, p) = (bytes(100), alloc(640));
    let good = CUDA_MEMCPY2D {
        srcHost: host.as_ptr().cast(),
        srcPitch: 10,
        dstDevice: p,
        dstPitch: 64,
        WidthInBytes: 10,
        Height: 10,
        ..copy_2d()
    };
    cu!(cuMemcpy2D_v2(&good));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned_v2(null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(null(), CUstream::NULL));
    let wrong = |change: fn(&mut CUDA_MEMCPY2D)| {
        let mut copy = good;
        change(&mut copy);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&copy));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned_v2(&copy));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DAsync_v2(&copy, CUstream::NULL));
    };
    wrong(|copy| copy.dstPitch = 9);
    wrong(|copy| copy.srcPitch = 9);
    // A single row needs none, but no wrong one.
    let row = CUDA_MEMCPY2D { Height: 1, srcPitch: 0, dstPitch: 0, ..good };
    cu!(cuMemcpy2D_v2(&row));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&CUDA_MEMCPY2D { srcPitch: 9, ..row }));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2DUnaligned_v2(&CUDA_MEMCPY2D { dstPitch: 9, ..row }));
    let shifted = CUDA_MEMCPY2D { srcXInBytes: 1, srcPitch: 10, ..row };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&shifted));
    if !ours_only("NVIDIA's driver does not check all of it") {
        return;
    }
    wrong(|copy| copy.dstXInBytes = 60);
    wrong(|copy| copy.dstY = 1 << 20);
    wrong(|copy| copy.Height = 1 << 20);
    wrong(|copy| copy.Height = usize::MAX);
    wrong(|copy| copy.WidthInBytes = usize::MAX);
    wrong(|copy| copy.dstXInBytes = usize::MAX);
    wrong(|copy| copy.dstY = usize::MAX);
    wrong(|copy| copy.dstPitch = usize::MAX);
    wrong(|copy| copy.dstDevice = CUdeviceptr(0));
    wrong(|copy| copy.srcHost = null());
    wrong(|copy| copy.srcMemoryType = CUmemorytype(9));
    wrong(|copy| copy.dstMemoryType = CUmemorytype(0));
}

pub(super) fn copy_3d(host: &[u8], device: CUdeviceptr) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 1,
        srcY: 1,
        srcZ: 1,
        srcLOD: 0,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        reserved0: null_mut(),
        srcPitch: 5,
        srcHeight: 4,
        dstXInBytes: 2,
        dstY: 1,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstHost: null_mut(),
        dstDevice: device,
        dstArray: CUarray::NULL,
        reserved1: null_mut(),
        dstPitch: 8,
        dstHeight: 3,
        WidthInBytes: 3,
        Height: 2,
        Depth: 2,
    }
}

/// What [`copy_3d`] leaves in 48 bytes of 0xff.
fn after_copy_3d(host: &[u8]) -> Vec<u8> {
    let inside = |z: usize, y: usize, x: usize| z < 2 && (1..3).contains(&y) && (2..5).contains(&x);
    let byte = |index: usize| {
        let (z, y, x) = (index / 24, index % 24 / 8, index % 8);
        if inside(z, y, x) { host[(z + 1) * 20 + y * 5 + x - 1] } else { 0xff }
    };
    (0..48).map(byte).collect()
}

pub fn every_copy_of_a_box_moves_its_slices() {
    let context = new_context();
    let (host, p, s) = (bytes(60), alloc(48), CUstream::NULL);
    let copy = copy_3d(&host, p);
    let peer = CUDA_MEMCPY3D_PEER {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcZ: copy.srcZ,
        srcLOD: 0,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        srcContext: context,
        srcPitch: copy.srcPitch,
        srcHeight: copy.srcHeight,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstZ: copy.dstZ,
        dstLOD: 0,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        dstContext: context,
        dstPitch: copy.dstPitch,
        dstHeight: copy.dstHeight,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: copy.Depth,
    };
    let check = || {
        cu!(cuCtxSynchronize());
        assert_eq!(read::<u8>(p, 48), after_copy_3d(&host));
        cu!(cuMemsetD8_v2(p, 0xff, 48); cuCtxSynchronize());
    };
    cu!(cuMemsetD8_v2(p, 0xff, 48); cuMemcpy3D_v2(&copy));
    check();
    cu!(cuMemcpy3D_v2_ptds(&copy));
    check();
    cu!(cuMemcpy3DAsync_v2(&copy, s));
    check();
    cu!(cuMemcpy3DAsync_v2_ptsz(&copy, s));
    check();
    cu!(cuMemcpy3DPeer(&peer));
    check();
    cu!(cuMemcpy3DPeer_ptds(&peer));
    check();
    cu!(cuMemcpy3DPeerAsync(&peer, s));
    check();
    cu!(cuMemcpy3DPeerAsync_ptsz(&peer, s));
    check();
}

pub fn boxes_are_checked() {
    new_context();
    let (host, p) = (bytes(60), alloc(48));
    let good = copy_3d(&host, p);
    cu!(cuMemcpy3D_v2(&good));
    if !ours_only("NVIDIA's driver crashes at null") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync_v2(null(), CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeer(null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DPeerAsync(null(), CUstream::NULL));
    let wrong = |change: fn(&mut CUDA_MEMCPY3D)| {
        let mut copy = good;
        change(&mut copy);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&copy));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync_v2(&copy, CUstream::NULL));
    };
    wrong(|copy| copy.dstPitch = 4);
    wrong(|copy| copy.dstHeight = 2);
    wrong(|copy| copy.srcHeight = 2);
    wrong(|copy| copy.Depth = 1 << 20);
    wrong(|copy| copy.Depth = usize::MAX);
    wrong(|copy| copy.dstZ = usize::MAX / 24);
    wrong(|copy| copy.Height = usize::MAX);
    wrong(|copy| copy.dstHeight = usize::MAX / 2);
    wrong(|copy| copy.dstMemoryType = CUmemorytype(7));
}

pub fn peers_are_contexts() {
    let first = new_context();
    let a = alloc_with(&[3u32; 8]);
    let second = create_context();
    let b = alloc(32);
    cu!(cuMemcpyPeer(b, second, a, first, 32); cuCtxSynchronize());
    assert_eq!(read::<u32>(b, 8), [3; 8]);
    // No context is the current one.
    let c = alloc(32);
    cu!(cuMemcpyPeer(c, CUcontext::NULL, b, second, 32); cuCtxSynchronize());
    assert_eq!(read::<u32>(c, 8), [3; 8]);
    if ours_only("a GPU driver follows a handle that is none") {
        let none = CUcontext(0x1234);
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeer(b, none, a, first, 32));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuMemcpyPeerAsync(b, second, a, none, 32, CUstream::NULL));
    }
}

pub fn overlapping_copies_within_a_device_end() {
    new_context();
    // What such a copy leaves is undefined; it neither faults nor hangs.
    let p = alloc_with(&bytes(100));
    cu!(cuMemcpyDtoD_v2(CUdeviceptr(p.0 + 8), p, 64); cuMemcpyDtoD_v2(p, CUdeviceptr(p.0 + 8), 64); cuCtxSynchronize());
    assert_eq!(read::<u8>(p, 100)[72..], bytes(100)[72..]);
}
