//! Memory management: copies into, out of and between arrays.

use super::common::*;

fn make(descriptor: CUDA_ARRAY3D_DESCRIPTOR) -> CUarray {
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &descriptor));
    array
}

/// An array of one row of bytes.
fn row(width: usize) -> CUarray {
    make(array_descriptor([width, 0, 0], CU_AD_FORMAT_UNSIGNED_INT8, 1, 0))
}

fn row_of(array: CUarray, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    cu!(cuMemcpyAtoH_v2(bytes.as_mut_ptr().cast(), array, 0, len));
    bytes
}

pub fn every_copy_of_a_row_reaches_the_array() {
    new_context();
    let (a, b, p, s) = (row(32), row(32), alloc(32), CUstream::NULL);
    let host: Vec<u8> = (0..32).map(|index| index + 100).collect();
    let from = |offset: usize| host[offset..].as_ptr().cast::<c_void>();
    cu!(
        cuMemcpyHtoA_v2(a, 0, from(0), 8);
        cuMemcpyHtoA_v2_ptds(a, 8, from(8), 8);
        cuMemcpyHtoAAsync_v2(a, 16, from(16), 8, s);
        cuMemcpyHtoAAsync_v2_ptsz(a, 24, from(24), 8, s);
        cuCtxSynchronize();
    );
    assert_eq!(row_of(a, 32), host);
    cu!(
        cuMemcpyAtoA_v2(b, 0, a, 16, 16);
        cuMemcpyAtoA_v2_ptds(b, 16, a, 0, 16);
        cuCtxSynchronize();
    );
    assert_eq!(row_of(b, 32), [&host[16..], &host[..16]].concat());
    cu!(
        cuMemcpyAtoD_v2(p, a, 4, 16);
        cuMemcpyAtoD_v2_ptds(CUdeviceptr(p.0 + 16), a, 8, 16);
        cuCtxSynchronize();
    );
    assert_eq!(read::<u8>(p, 32), [&host[4..20], &host[8..24]].concat());
    cu!(
        cuMemcpyDtoA_v2(b, 16, p, 16);
        cuMemcpyDtoA_v2_ptds(b, 0, CUdeviceptr(p.0 + 16), 16);
        cuCtxSynchronize();
    );
    assert_eq!(row_of(b, 32), [&host[8..24], &host[4..20]].concat());
    let mut back = [0u8; 32];
    let mut to = |offset: usize| back[offset..].as_mut_ptr().cast::<c_void>();
    cu!(
        cuMemcpyAtoH_v2(to(0), a, 24, 8);
        cuMemcpyAtoH_v2_ptds(to(8), a, 16, 8);
        cuMemcpyAtoHAsync_v2(to(16), a, 8, 8, s);
        cuMemcpyAtoHAsync_v2_ptsz(to(24), a, 0, 8, s);
        cuCtxSynchronize();
    );
    assert_eq!(back[..], [&host[24..], &host[16..24], &host[8..16], &host[..8]].concat());
}

pub fn the_first_version_copies_rows_too() {
    new_context();
    let (a, b, s) = (row(16), row(16), CUstream::NULL);
    let host: Vec<u8> = (0..16).map(|index| index + 50).collect();
    let from = |offset: usize| host[offset..].as_ptr().cast::<c_void>();
    let mut p = 0;
    let first = "NVIDIA's driver refuses functions of the first version";
    fails!(differs(first, CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT), cuMemAlloc(&mut p, 16));
    if !is_ours() {
        return;
    }
    cu!(
        cuMemcpyHtoA(a, 0, from(0), 8);
        cuMemcpyHtoAAsync(a, 8, from(8), 8, s);
        cuMemcpyAtoA(b, 0, a, 0, 16);
        cuMemcpyAtoD(p, b, 0, 16);
        cuMemcpyDtoA(b, 8, p, 8);
        cuCtxSynchronize();
    );
    let mut back = [0u8; 16];
    let (first, second) = back.split_at_mut(8);
    cu!(
        cuMemcpyAtoH(first.as_mut_ptr().cast(), b, 8, 8);
        cuMemcpyAtoHAsync(second.as_mut_ptr().cast(), b, 0, 8, s);
        cuCtxSynchronize();
    );
    assert_eq!(back[..], [&host[..8], &host[..8]].concat());
}

pub fn rows_lie_inside_the_array() {
    new_context();
    let floats = make(array_descriptor([8, 0, 0], CU_AD_FORMAT_FLOAT, 1, 0));
    let (bytes, p, mut host) = (row(32), alloc(64), [0u8; 64]);
    let to = host.as_mut_ptr().cast::<c_void>();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(to, floats, 0, 36));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(floats, 32, to, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoA_v2(floats, 16, p, 20));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoD_v2(p, floats, 16, 20));
    // Bytes are copied, whatever texels they make up; of more than one row only the first can be named so.
    cu!(
        cuMemcpyHtoA_v2(floats, 2, to, 4);
        cuMemcpyHtoA_v2(floats, 0, to, 6);
        cuMemcpyHtoA_v2(floats, 0, to, 0);
        cuMemcpyAtoA_v2(bytes, 0, floats, 0, 4);
    );
    let plane = make(array_descriptor([8, 4, 0], CU_AD_FORMAT_FLOAT, 1, 0));
    cu!(cuMemcpyHtoA_v2(plane, 0, to, 32));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(plane, 0, to, 64));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(plane, 32, to, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(CUarray::NULL, 0, to, 4));
    if !ours_only("NVIDIA's driver does not check all of it") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(floats, usize::MAX - 3, to, 8));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(null_mut(), floats, 0, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(floats, 0, null(), 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoA_v2(floats, 0, CUdeviceptr(0x10), 4));
    cu!(cuArrayDestroy(floats));
    for gone in [floats, CUarray::NULL, CUarray(0x1230)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoH_v2(to, gone, 0, 4));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoHAsync_v2(to, gone, 0, 4, CUstream::NULL));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoA_v2(gone, 0, to, 4));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoAAsync_v2(gone, 0, to, 4, CUstream::NULL));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoA_v2(gone, 0, bytes, 0, 4));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoA_v2(bytes, 0, gone, 0, 4));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyAtoD_v2(p, gone, 0, 4));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoA_v2(gone, 0, p, 4));
    }
}

fn plane() -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CU_MEMORYTYPE_ARRAY,
        srcHost: null(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        srcPitch: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CU_MEMORYTYPE_ARRAY,
        dstHost: null_mut(),
        dstDevice: CUdeviceptr(0),
        dstArray: CUarray::NULL,
        dstPitch: 0,
        WidthInBytes: 0,
        Height: 0,
    }
}

fn solid() -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CU_MEMORYTYPE_ARRAY,
        srcHost: null(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        reserved0: null_mut(),
        srcPitch: 0,
        srcHeight: 0,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CU_MEMORYTYPE_ARRAY,
        dstHost: null_mut(),
        dstDevice: CUdeviceptr(0),
        dstArray: CUarray::NULL,
        reserved1: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: 0,
        Height: 0,
        Depth: 0,
    }
}

/// All of an array of 16-bit numbers. Without pitch and height, what is in memory is packed.
fn all<const N: usize>(array: CUarray, [width, height, depth]: [usize; 3]) -> [u16; N] {
    let mut numbers = [0; N];
    let copy = CUDA_MEMCPY3D {
        srcArray: array,
        dstMemoryType: CU_MEMORYTYPE_HOST,
        dstHost: numbers.as_mut_ptr().cast(),
        dstPitch: 2 * width,
        dstHeight: height,
        WidthInBytes: 2 * width,
        Height: height,
        Depth: depth,
        ..solid()
    };
    assert_eq!(N, width * height * depth);
    cu!(cuMemcpy3D_v2(&copy));
    numbers
}

fn shorts(extent: [usize; 3], flags: u32) -> CUarray {
    make(array_descriptor(extent, CU_AD_FORMAT_UNSIGNED_INT16, 1, flags))
}

pub fn every_copy_of_a_plane_reaches_the_array() {
    new_context();
    let (host, s) = (Vec::from_iter(0..60u16), CUstream::NULL);
    let array = shorts([4, 3, 0], 0);
    // From rows of ten, two bytes and one row in, to all of the array.
    let into = CUDA_MEMCPY2D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcPitch: 20,
        srcXInBytes: 2,
        srcY: 1,
        dstArray: array,
        WidthInBytes: 8,
        Height: 3,
        ..plane()
    };
    let expected = [11, 12, 13, 14, 21, 22, 23, 24, 31, 32, 33, 34];
    let check = |copy: &dyn Fn()| {
        let zeros = [0u16; 12];
        let clear =
            CUDA_MEMCPY2D { srcHost: zeros.as_ptr().cast(), srcPitch: 8, srcXInBytes: 0, srcY: 0, ..into };
        cu!(cuMemcpy2D_v2(&clear));
        copy();
        cu!(cuCtxSynchronize());
        assert_eq!(all(array, [4, 3, 1]), expected);
    };
    check(&|| cu!(cuMemcpy2D_v2(&into)));
    check(&|| cu!(cuMemcpy2D_v2_ptds(&into)));
    check(&|| cu!(cuMemcpy2DUnaligned_v2(&into)));
    check(&|| cu!(cuMemcpy2DUnaligned_v2_ptds(&into)));
    check(&|| cu!(cuMemcpy2DAsync_v2(&into, s)));
    check(&|| cu!(cuMemcpy2DAsync_v2_ptsz(&into, s)));
    // A part of one array to a part of another.
    let other = shorts([5, 2, 0], 0);
    let zeros = [0u16; 10];
    let clear = CUDA_MEMCPY2D {
        srcHost: zeros.as_ptr().cast(),
        srcXInBytes: 0,
        srcY: 0,
        srcPitch: 0,
        dstArray: other,
        WidthInBytes: 10,
        Height: 2,
        ..into
    };
    let between = CUDA_MEMCPY2D {
        srcArray: array,
        srcXInBytes: 2,
        srcY: 1,
        dstArray: other,
        dstXInBytes: 4,
        WidthInBytes: 6,
        Height: 2,
        ..plane()
    };
    cu!(cuMemcpy2D_v2(&clear); cuMemcpy2D_v2(&between));
    assert_eq!(all(other, [5, 2, 1]), [0, 0, 22, 23, 24, 0, 0, 32, 33, 34]);
    // And out of it, to memory of the device.
    let p = alloc_with(&[0u16; 40]);
    let out = CUDA_MEMCPY2D {
        srcArray: other,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstDevice: p,
        dstPitch: 40,
        dstXInBytes: 2,
        WidthInBytes: 10,
        Height: 2,
        ..plane()
    };
    cu!(cuMemcpy2D_v2(&out); cuCtxSynchronize());
    let rows = read::<u16>(p, 40);
    assert_eq!((&rows[..6], &rows[20..26]), (&[0, 0, 0, 22, 23, 24][..], &[0, 0, 0, 32, 33, 34][..]));
}

pub fn every_copy_of_a_box_reaches_the_array() {
    let context = new_context();
    let (host, s) = (Vec::from_iter(0..120u16), CUstream::NULL);
    // Layers are slices too.
    for flags in [0, CUDA_ARRAY3D_LAYERED] {
        let array = shorts([3, 2, 4], flags);
        let into = CUDA_MEMCPY3D {
            srcMemoryType: CU_MEMORYTYPE_HOST,
            srcHost: host.as_ptr().cast(),
            srcPitch: 10,
            srcHeight: 4,
            srcXInBytes: 4,
            srcY: 1,
            srcZ: 1,
            dstArray: array,
            dstXInBytes: 2,
            dstZ: 1,
            WidthInBytes: 4,
            Height: 2,
            Depth: 2,
            ..solid()
        };
        let zeros = [0u16; 24];
        let clear = CUDA_MEMCPY3D {
            srcMemoryType: CU_MEMORYTYPE_HOST,
            srcHost: zeros.as_ptr().cast(),
            srcPitch: 6,
            srcHeight: 2,
            dstArray: array,
            WidthInBytes: 6,
            Height: 2,
            Depth: 4,
            ..solid()
        };
        let peer = CUDA_MEMCPY3D_PEER {
            srcXInBytes: into.srcXInBytes,
            srcY: into.srcY,
            srcZ: into.srcZ,
            srcLOD: 0,
            srcMemoryType: into.srcMemoryType,
            srcHost: into.srcHost,
            srcDevice: CUdeviceptr(0),
            srcArray: CUarray::NULL,
            srcContext: context,
            srcPitch: into.srcPitch,
            srcHeight: into.srcHeight,
            dstXInBytes: into.dstXInBytes,
            dstY: into.dstY,
            dstZ: into.dstZ,
            dstLOD: 0,
            dstMemoryType: CU_MEMORYTYPE_ARRAY,
            dstHost: null_mut(),
            dstDevice: CUdeviceptr(0),
            dstArray: array,
            dstContext: context,
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: into.WidthInBytes,
            Height: into.Height,
            Depth: into.Depth,
        };
        let mut expected = [0; 24];
        (expected[7], expected[8], expected[10], expected[11]) = (27, 28, 32, 33);
        (expected[13], expected[14], expected[16], expected[17]) = (47, 48, 52, 53);
        let check = |copy: &dyn Fn()| {
            cu!(cuMemcpy3D_v2(&clear));
            copy();
            cu!(cuCtxSynchronize());
            assert_eq!(all(array, [3, 2, 4]), expected);
        };
        check(&|| cu!(cuMemcpy3D_v2(&into)));
        check(&|| cu!(cuMemcpy3D_v2_ptds(&into)));
        check(&|| cu!(cuMemcpy3DAsync_v2(&into, s)));
        check(&|| cu!(cuMemcpy3DAsync_v2_ptsz(&into, s)));
        check(&|| cu!(cuMemcpy3DPeer(&peer)));
        check(&|| cu!(cuMemcpy3DPeer_ptds(&peer)));
        check(&|| cu!(cuMemcpy3DPeerAsync(&peer, s)));
        check(&|| cu!(cuMemcpy3DPeerAsync_ptsz(&peer, s)));
    }
    // Rows of layers have no height.
    let layers = shorts([4, 0, 3], CUDA_ARRAY3D_LAYERED);
    let into = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcPitch: 10,
        srcHeight: 1,
        dstArray: layers,
        WidthInBytes: 8,
        Height: 1,
        Depth: 3,
        ..solid()
    };
    cu!(cuMemcpy3D_v2(&into));
    assert_eq!(all(layers, [4, 1, 3]), [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]);
}

pub fn without_a_pitch_or_a_height_memory_is_packed() {
    new_context();
    let (host, array) = (Vec::from_iter(0..60u16), shorts([4, 3, 2], 0));
    let into = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        dstArray: array,
        WidthInBytes: 8,
        Height: 3,
        Depth: 2,
        ..solid()
    };
    cu!(cuMemcpy3D_v2(&into));
    assert_eq!(all::<24>(array, [4, 3, 2])[..], host[..24]);
    // Slices of as many rows as are copied.
    cu!(cuMemcpy3D_v2(&CUDA_MEMCPY3D { srcPitch: 10, ..into }));
    assert_eq!(all::<24>(array, [4, 3, 2])[9..14], [11, 12, 13, 15, 16]);
    // Rows up to the last byte that is copied.
    let flat = shorts([4, 3, 0], 0);
    let into = CUDA_MEMCPY2D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcXInBytes: 2,
        srcY: 1,
        dstArray: flat,
        WidthInBytes: 8,
        Height: 3,
        ..plane()
    };
    cu!(cuMemcpy2D_v2(&into));
    assert_eq!(all(flat, [4, 3, 1]), [6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19]);
}

pub fn levels_and_faces_are_apart() {
    new_context();
    let mut array = CUmipmappedArray::NULL;
    let cube = array_descriptor([4, 4, 6], CU_AD_FORMAT_UNSIGNED_INT16, 1, CUDA_ARRAY3D_CUBEMAP);
    cu!(cuMipmappedArrayCreate(&mut array, &cube, 3));
    let mut levels = Vec::new();
    for (number, size) in [(0, 4usize), (1, 2), (2, 1)] {
        let mut level = CUarray::NULL;
        cu!(cuMipmappedArrayGetLevel(&mut level, array, number));
        let texels = Vec::from_iter((0..6 * size * size).map(|index| 1000 * number as u16 + index as u16));
        let into = CUDA_MEMCPY3D {
            srcMemoryType: CU_MEMORYTYPE_HOST,
            srcHost: texels.as_ptr().cast(),
            srcPitch: 2 * size,
            srcHeight: size,
            dstArray: level,
            WidthInBytes: 2 * size,
            Height: size,
            Depth: 6,
            ..solid()
        };
        cu!(cuMemcpy3D_v2(&into));
        levels.push((level, texels));
    }
    assert_eq!(all::<96>(levels[0].0, [4, 4, 6])[..], levels[0].1);
    assert_eq!(all::<24>(levels[1].0, [2, 2, 6])[..], levels[1].1);
    assert_eq!(all::<6>(levels[2].0, [1, 1, 6])[..], levels[2].1);
}

pub fn boxes_lie_inside_the_array() {
    new_context();
    let (host, array) = ([0u8; 4096], shorts([8, 4, 2], 0));
    let good = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcPitch: 32,
        srcHeight: 16,
        dstArray: array,
        WidthInBytes: 16,
        Height: 4,
        Depth: 2,
        ..solid()
    };
    cu!(cuMemcpy3D_v2(&good));
    let wrong = |change: fn(&mut CUDA_MEMCPY3D)| {
        let mut copy = good;
        change(&mut copy);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&copy));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DAsync_v2(&copy, CUstream::NULL));
    };
    wrong(|copy| copy.WidthInBytes = 18);
    wrong(|copy| copy.Height = 5);
    wrong(|copy| copy.Depth = 3);
    wrong(|copy| copy.dstXInBytes = 2);
    wrong(|copy| copy.dstY = 1);
    wrong(|copy| copy.dstZ = 1);
    wrong(|copy| copy.dstLOD = 1);
    wrong(|copy| copy.dstArray = CUarray::NULL);
    wrong(|copy| copy.srcHeight = 3);
    wrong(|copy| copy.srcPitch = 15);
    cu!(cuMemcpy3D_v2(&CUDA_MEMCPY3D { Depth: 0, ..good }));
    if !ours_only("NVIDIA's driver does not check all of it") {
        return;
    }
    wrong(|copy| copy.dstXInBytes = usize::MAX - 1);
    wrong(|copy| copy.dstZ = usize::MAX);
    cu!(cuArrayDestroy(array));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D_v2(&good));
}

pub fn copies_with_arrays_keep_the_order_of_their_stream() {
    new_context();
    let (a, b, stream) = (row(16), row(16), stream(CU_STREAM_NON_BLOCKING));
    let mut pinned = null_mut();
    cu!(cuMemAllocHost_v2(&mut pinned, 48));
    // SAFETY: pinned memory of 48 bytes, which the streams use in the order of this test.
    let bytes = unsafe { std::slice::from_raw_parts_mut(pinned.cast::<u8>(), 48) };
    bytes.fill(7);
    let at = |offset| pinned.wrapping_byte_add(offset);
    cu!(cuMemcpyHtoA_v2(a, 0, at(0), 16); cuMemcpyHtoA_v2(b, 0, at(0), 16));
    let gate = Gate::new();
    gate.hold(stream);
    let between = CUDA_MEMCPY2D { srcArray: a, dstArray: b, WidthInBytes: 16, Height: 1, ..plane() };
    cu!(
        cuMemcpyHtoAAsync_v2(a, 0, at(16), 16, stream);
        cuMemcpy2DAsync_v2(&between, stream);
        cuMemcpyAtoHAsync_v2(at(32), b, 0, 16, stream);
    );
    // Not before the gate is open, when other numbers lie there.
    bytes[16..32].fill(9);
    assert_eq!(bytes[32..], [7; 16]);
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(bytes[32..], [9; 16]);
}

fn operand_of(array: CUarray, x: usize, y: usize) -> CUmemcpy3DOperand {
    let array = CUmemcpy3DArray { array, offset: CUoffset3D { x, y, z: 0 } };
    CUmemcpy3DOperand { r#type: CU_MEMCPY_OPERAND_TYPE_ARRAY, op: CUmemcpy3DPlace { array } }
}

fn operand_at(ptr: CUdeviceptr, row: usize) -> CUmemcpy3DOperand {
    let hint = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_INVALID, id: 0 };
    let ptr = CUmemcpy3DMemory { ptr, rowLength: row, layerHeight: 0, locHint: hint };
    CUmemcpy3DOperand { r#type: CU_MEMCPY_OPERAND_TYPE_POINTER, op: CUmemcpy3DPlace { ptr } }
}

pub fn batches_count_in_texels() {
    new_context();
    let stream = stream(CU_STREAM_NON_BLOCKING);
    let (array, other, bytes) = (shorts([6, 4, 0], 0), shorts([6, 4, 0], 0), row(64));
    let p = alloc_with(&Vec::from_iter(0..40u16));
    let copy = |src, dst, [width, height]: [usize; 2]| CUDA_MEMCPY3D_BATCH_OP {
        src,
        dst,
        extent: CUextent3D { width, height, depth: 1 },
        srcAccessOrder: CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        flags: 0,
    };
    let batch = |copy: CUDA_MEMCPY3D_BATCH_OP| {
        let mut list = [copy];
        // SAFETY: a list of one; memory and arrays live until the stream is done.
        unsafe { cuMemcpy3DBatchAsync_v2(1, list.as_mut_ptr(), 0, stream) }
    };
    for copy in [
        copy(operand_at(p, 10), operand_of(array, 0, 0), [6, 4]),
        copy(operand_of(array, 0, 0), operand_of(other, 0, 0), [6, 4]),
        copy(operand_of(array, 1, 2), operand_of(other, 3, 0), [3, 2]),
    ] {
        assert_eq!(batch(copy), CUDA_SUCCESS);
    }
    cu!(cuStreamSynchronize(stream));
    let expected =
        [0, 1, 2, 21, 22, 23, 10, 11, 12, 31, 32, 33, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35];
    assert_eq!(all(other, [6, 4, 1]), expected);
    for wrong in [
        copy(operand_at(p, 10), operand_of(array, 1, 0), [6, 4]),
        copy(operand_of(array, 0, 0), operand_of(bytes, 0, 0), [2, 1]),
        copy(operand_at(p, 3), operand_of(array, 0, 0), [6, 4]),
    ] {
        assert_eq!(batch(wrong), CUDA_ERROR_INVALID_VALUE);
    }
}

pub fn nodes_of_graphs_copy_arrays() {
    let context = new_context();
    let (array, other) = (shorts([4, 2, 0], 0), shorts([4, 2, 0], 0));
    let host: [u16; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
    let into = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        srcPitch: 8,
        srcHeight: 2,
        dstArray: array,
        WidthInBytes: 8,
        Height: 2,
        Depth: 1,
        ..solid()
    };
    let on = CUDA_MEMCPY3D { srcMemoryType: CU_MEMORYTYPE_ARRAY, srcArray: array, dstArray: other, ..into };
    let (mut graph, mut nodes, mut executable) = (CUgraph::NULL, [CUgraphNode::NULL; 2], CUgraphExec::NULL);
    let [first, second] = &mut nodes;
    cu!(
        cuGraphCreate(&mut graph, 0);
        cuGraphAddMemcpyNode(first, graph, null(), 0, &into, context);
        cuGraphAddMemcpyNode(second, graph, first, 1, &on, context);
        cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        cuGraphLaunch(executable, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!(all(other, [4, 2, 1]), host);
    let mut told = solid();
    cu!(cuGraphMemcpyNodeGetParams(nodes[1], &mut told));
    assert_eq!((told.srcArray, told.dstArray, told.WidthInBytes), (array, other, 8));
    assert_eq!((told.srcMemoryType, told.dstMemoryType), (CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_ARRAY));
}

pub fn a_captured_copy_tells_its_arrays() {
    new_context();
    let (array, stream) = (shorts([4, 2, 3], 0), stream(CU_STREAM_NON_BLOCKING));
    let p = alloc_with(&[5u16, 6, 7, 8]);
    let copy = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcDevice: p,
        srcPitch: 4,
        srcHeight: 2,
        dstArray: array,
        dstXInBytes: 2,
        dstZ: 2,
        WidthInBytes: 4,
        Height: 2,
        Depth: 1,
        ..solid()
    };
    let (mut graph, mut node, mut count) = (CUgraph::NULL, CUgraphNode::NULL, 1);
    cu!(
        cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
        cuMemcpy3DAsync_v2(&copy, stream);
        cuStreamEndCapture(stream, &mut graph);
        cuGraphGetNodes(graph, &mut node, &mut count);
    );
    let mut told = solid();
    cu!(cuGraphMemcpyNodeGetParams(node, &mut told));
    assert_eq!((told.dstMemoryType, told.dstArray), (CU_MEMORYTYPE_ARRAY, array));
    assert_eq!((told.dstXInBytes, told.dstY, told.dstZ), (2, 0, 2));
    let zeros = [0u16; 24];
    let clear = CUDA_MEMCPY3D {
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: zeros.as_ptr().cast(),
        srcPitch: 8,
        dstXInBytes: 0,
        dstZ: 0,
        WidthInBytes: 8,
        Depth: 3,
        ..copy
    };
    let mut executable = CUgraphExec::NULL;
    cu!(
        cuMemcpy3D_v2(&clear);
        cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        cuGraphLaunch(executable, stream);
        cuStreamSynchronize(stream);
    );
    let texels = all::<24>(array, [4, 2, 3]);
    assert_eq!(texels[16..], [0, 5, 6, 0, 0, 7, 8, 0]);
    assert_eq!(texels[..16], [0; 16]);
}
