//! Virtual memory management: arrays that get their memory tile by tile, or later.

use super::common::*;

const FLOAT: CUarray_format = CU_AD_FORMAT_FLOAT;
const TILE: usize = 64 << 10;
const SPARSE: u32 = CUDA_ARRAY3D_SPARSE;

/// An array of floats.
fn array(extent: [usize; 3], flags: u32) -> CUarray {
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &array_descriptor(extent, FLOAT, 1, flags)));
    array
}

fn mipmapped(extent: [usize; 3], levels: u32, flags: u32) -> CUmipmappedArray {
    let mut array = CUmipmappedArray::NULL;
    cu!(cuMipmappedArrayCreate(&mut array, &array_descriptor(extent, FLOAT, 1, flags), levels));
    array
}

fn no_properties() -> CUDA_ARRAY_SPARSE_PROPERTIES {
    CUDA_ARRAY_SPARSE_PROPERTIES {
        tileExtent: [0; 3],
        miptailFirstLevel: 99,
        miptailSize: 0,
        flags: 0,
        reserved: [0; 4],
    }
}

fn properties(array: CUarray) -> CUDA_ARRAY_SPARSE_PROPERTIES {
    let mut properties = no_properties();
    cu!(cuArrayGetSparseProperties(&mut properties, array));
    properties
}

fn properties_of_levels(array: CUmipmappedArray) -> CUDA_ARRAY_SPARSE_PROPERTIES {
    let mut properties = no_properties();
    cu!(cuMipmappedArrayGetSparseProperties(&mut properties, array));
    properties
}

fn for_tiles() -> CUmemAllocationProp {
    CUmemAllocationProp {
        usage: CU_MEM_CREATE_USAGE_TILE_POOL,
        requestedHandleTypes: CU_MEM_HANDLE_TYPE_NONE,
        ..allocation_prop()
    }
}

/// Memory for tiles.
fn pool(bytes: usize) -> CUmemGenericAllocationHandle {
    let mut handle = 0;
    cu!(cuMemCreate(&mut handle, bytes, &for_tiles(), 0));
    handle
}

const NOTHING: CUarrayMapInfo_sparseLevel = CUarrayMapInfo_sparseLevel {
    level: 0,
    layer: 0,
    offsetX: 0,
    offsetY: 0,
    offsetZ: 0,
    extentWidth: 0,
    extentHeight: 0,
    extentDepth: 0,
};

/// A box of texels of a level.
fn part(level: u32, layer: u32, offset: [u32; 3], extent: [u32; 3]) -> CUarrayMapInfo_sparseLevel {
    let ([x, y, z], [width, height, depth]) = (offset, extent);
    CUarrayMapInfo_sparseLevel {
        level,
        layer,
        offsetX: x,
        offsetY: y,
        offsetZ: z,
        extentWidth: width,
        extentHeight: height,
        extentDepth: depth,
    }
}

/// Gives a part of an array memory.
fn gives(
    array: CUarray,
    part: CUarrayMapInfo_sparseLevel,
    memory: CUmemGenericAllocationHandle,
    offset: usize,
) -> CUarrayMapInfo {
    CUarrayMapInfo {
        resourceType: CU_RESOURCE_TYPE_ARRAY,
        resource: CUarrayMapInfo_resource { array },
        subresourceType: CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
        subresource: CUarrayMapInfo_subresource { sparseLevel: part },
        memOperationType: CU_MEM_OPERATION_TYPE_MAP,
        memHandleType: CU_MEM_HANDLE_TYPE_GENERIC,
        memHandle: memory,
        offset: offset as u64,
        deviceBitMask: 1,
        flags: 0,
        reserved: [0; 2],
    }
}

/// Takes it back.
fn takes(array: CUarray, part: CUarrayMapInfo_sparseLevel) -> CUarrayMapInfo {
    CUarrayMapInfo { memOperationType: CU_MEM_OPERATION_TYPE_UNMAP, ..gives(array, part, 0, 0) }
}

fn change(mut changes: Vec<CUarrayMapInfo>) -> CUresult {
    // SAFETY: as many changes as are counted.
    unsafe { cuMemMapArrayAsync(changes.as_mut_ptr(), changes.len() as u32, CUstream::NULL) }
}

fn copy(array: CUarray, host: *mut c_void, at: [usize; 3], size: [usize; 3], into: bool) {
    let side = |of_host| if of_host { CU_MEMORYTYPE_HOST } else { CU_MEMORYTYPE_ARRAY };
    let place = |of_host: bool, axis: usize| if of_host { 0 } else { at[axis] };
    // SAFETY: plain numbers and pointers.
    let mut copy: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
    (copy.srcMemoryType, copy.srcHost, copy.srcArray) = (side(into), host, array);
    (copy.srcXInBytes, copy.srcY, copy.srcZ) = (4 * place(into, 0), place(into, 1), place(into, 2));
    (copy.dstMemoryType, copy.dstHost, copy.dstArray) = (side(!into), host, array);
    (copy.dstXInBytes, copy.dstY, copy.dstZ) = (4 * place(!into, 0), place(!into, 1), place(!into, 2));
    (copy.WidthInBytes, copy.Height, copy.Depth) = (4 * size[0], size[1], size[2]);
    (copy.srcPitch, copy.dstPitch) = (4 * size[0], 4 * size[0]);
    (copy.srcHeight, copy.dstHeight) = (size[1], size[1]);
    cu!(cuMemcpy3D_v2(&copy));
}

/// Writes consecutive numbers.
fn write(array: CUarray, at: [usize; 3], size: [usize; 3], first: u32) {
    let count = size.iter().product::<usize>() as u32;
    let mut numbers = Vec::from_iter((first..first + count).map(|number| number as f32));
    copy(array, numbers.as_mut_ptr().cast(), at, size, true);
}

fn content(array: CUarray, at: [usize; 3], size: [usize; 3]) -> Vec<f32> {
    let mut numbers = vec![-1.0; size.iter().product()];
    copy(array, numbers.as_mut_ptr().cast(), at, size, false);
    numbers
}

fn needs_sparse_arrays() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED) == 0 {
        skip("there are no sparse arrays");
    }
}

pub fn sparse_arrays_are_divided_into_tiles() {
    needs_sparse_arrays();
    for (format, channels, flat, deep) in [
        (CU_AD_FORMAT_UNSIGNED_INT8, 1, [256, 256, 1], [64, 32, 32]),
        (CU_AD_FORMAT_UNSIGNED_INT16, 1, [256, 128, 1], [32, 32, 32]),
        (CU_AD_FORMAT_UNSIGNED_INT8, 4, [128, 128, 1], [32, 32, 16]),
        (FLOAT, 1, [128, 128, 1], [32, 32, 16]),
        (FLOAT, 2, [128, 64, 1], [32, 16, 16]),
        (FLOAT, 4, [64, 64, 1], [16, 16, 16]),
    ] {
        for (extent, flags, tile) in [
            ([1024, 1024, 0], SPARSE, flat),
            ([1024, 512, 3], SPARSE | CUDA_ARRAY3D_LAYERED, flat),
            ([128, 128, 128], SPARSE, deep),
            ([512, 512, 0], SPARSE | CUDA_ARRAY3D_TEXTURE_GATHER, flat),
        ] {
            let mut array = CUarray::NULL;
            cu!(cuArray3DCreate_v2(&mut array, &array_descriptor(extent, format, channels, flags)));
            assert_eq!(properties(array).tileExtent, tile, "{format:?} x {channels} {extent:?}");
            cu!(cuArrayDestroy(array));
        }
    }
    let mut back = array_descriptor([0; 3], FLOAT, 9, 0);
    cu!(cuArray3DGetDescriptor_v2(&mut back, array([512, 512, 0], SPARSE)));
    assert_eq!(back.Flags & SPARSE, SPARSE);
    // Others are not.
    let (mut told, plain) = (no_properties(), array([512, 512, 0], 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&mut told, plain));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(null_mut(), array([512, 512, 0], SPARSE)));
    let mut none = CUarray::NULL;
    for (extent, flags) in [
        ([512, 0, 0], SPARSE),
        ([512, 0, 4], SPARSE | CUDA_ARRAY3D_LAYERED),
        ([512, 512, 6], SPARSE | CUDA_ARRAY3D_CUBEMAP),
        ([512, 512, 0], SPARSE | CUDA_ARRAY3D_SURFACE_LDST),
        ([512, 512, 0], SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING),
    ] {
        let wrong = array_descriptor(extent, FLOAT, 1, flags);
        fails!(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(&mut none, &wrong));
    }
}

pub fn tails_are_as_large_as_an_h100s() {
    needs_sparse_arrays();
    let told = |told: CUDA_ARRAY_SPARSE_PROPERTIES| {
        (told.miptailFirstLevel, told.miptailSize as usize / TILE, told.flags)
    };
    for (extent, alone, three, all) in [
        ([1024, 1024, 0], (1, 0, 0), (3, 0, 0), (4, 1, 0)),
        ([1000, 700, 0], (1, 0, 0), (3, 0, 0), (3, 2, 0)),
        ([64, 64, 0], (0, 1, 1), (0, 1, 1), (0, 1, 1)),
        ([256, 256, 256], (1, 0, 0), (3, 0, 0), (4, 1, 0)),
    ] {
        for (levels, expected) in [(1, alone), (3, three), (20, all)] {
            let array = mipmapped(extent, levels, SPARSE);
            assert_eq!(told(properties_of_levels(array)), expected, "{extent:?} {levels}");
            cu!(cuMipmappedArrayDestroy(array));
        }
    }
    let layered = mipmapped([1024, 512, 2], 20, SPARSE | CUDA_ARRAY3D_LAYERED);
    assert_eq!(told(properties_of_levels(layered)), (3, 1, 0));
    // Without levels there is no first; what is smaller than a tile is a tail all the same.
    assert_eq!(told(properties(array([1024, 1024, 0], SPARSE))), (0, 0, 0));
    assert_eq!(told(properties(array([100, 50, 0], SPARSE))), (0, 1, 1));
}

pub fn memory_for_tiles_is_for_nothing_else() {
    needs_sparse_arrays();
    let (memory, mut place, mut none) = (pool(2 << 20), CUdeviceptr(0), 0);
    cu!(cuMemAddressReserve(&mut place, 2 << 20, 0, CUdeviceptr(0), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemMap(place, 2 << 20, 0, memory, 0));
    let shared =
        CUmemAllocationProp { requestedHandleTypes: CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, ..for_tiles() };
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut none, 2 << 20, &shared, 0));
    cu!(cuMemRelease(memory));
}

pub fn what_has_no_memory_is_zero() {
    needs_sparse_arrays();
    let array = array([512, 512, 0], SPARSE);
    assert_eq!(content(array, [0; 3], [512, 4, 1]), [0.0; 2048]);
    write(array, [0; 3], [512, 4, 1], 1);
    assert_eq!(content(array, [0; 3], [512, 4, 1]), [0.0; 2048]);
}

pub fn tiles_have_the_memory_that_they_are_given() {
    needs_sparse_arrays();
    let (memory, first, second) = (pool(2 << 20), array([512, 512, 0], SPARSE), array([512, 512, 0], SPARSE));
    // Two by two tiles, of which each is another part of the memory.
    let square = gives(first, part(0, 0, [128, 0, 0], [256, 256, 1]), memory, TILE);
    assert_eq!(change(vec![square]), CUDA_SUCCESS);
    for (number, [x, y]) in [[128, 0], [256, 0], [128, 128], [256, 128]].into_iter().enumerate() {
        write(first, [x, y, 0], [128, 128, 1], 20_000 * number as u32 + 1);
    }
    // Beside it there is nothing.
    assert_eq!(content(first, [384, 0, 0], [128, 4, 1]), [0.0; 512]);
    let across = content(first, [120, 127, 0], [16, 2, 1]);
    assert_eq!(across[..8], [0.0; 8]);
    assert_eq!(across[8], (127 * 128 + 1) as f32);
    assert_eq!(across[24], 40_001.0, "the third tile's first");
    // The same parts elsewhere, in another order, and one of them twice.
    let places = [[0, 0, 0], [128, 0, 0], [256, 384, 0], [384, 384, 0]];
    let parts = [4, 2, 3, 3];
    let changes = places
        .iter()
        .zip(parts)
        .map(|(place, number)| gives(second, part(0, 0, *place, [128, 128, 1]), memory, TILE * number));
    assert_eq!(change(changes.collect()), CUDA_SUCCESS);
    for ([x, y, _], number) in places.into_iter().zip(parts) {
        let first = content(second, [x as usize, y as usize, 0], [128, 1, 1])[0];
        assert_eq!(first, (20_000 * (number - 1) + 1) as f32);
    }
    write(second, [256, 384, 0], [4, 1, 1], 7);
    assert_eq!(content(second, [384, 384, 0], [4, 1, 1]), [7.0, 8.0, 9.0, 10.0]);
    // Memory is there as long as it is mapped, and what is taken back is zero.
    cu!(cuMemRelease(memory));
    assert_eq!(content(first, [128, 128, 0], [4, 1, 1]), [7.0, 8.0, 9.0, 10.0]);
    assert_eq!(change(vec![takes(first, part(0, 0, [128, 128, 0], [128, 128, 1]))]), CUDA_SUCCESS);
    assert_eq!(content(first, [128, 128, 0], [4, 1, 1]), [0.0; 4]);
    assert_eq!(content(second, [256, 384, 0], [1, 1, 1]), [7.0]);
    cu!(cuArrayDestroy(first); cuArrayDestroy(second));
}

pub fn parts_may_end_where_the_array_does() {
    needs_sparse_arrays();
    let (memory, odd) = (pool(2 << 20), array([300, 200, 0], SPARSE));
    let all = gives(odd, part(0, 0, [0; 3], [300, 200, 1]), memory, 0);
    assert_eq!(change(vec![all]), CUDA_SUCCESS);
    write(odd, [0; 3], [300, 200, 1], 1);
    let all = content(odd, [0; 3], [300, 200, 1]);
    assert!(all.iter().zip(1..).all(|(number, expected)| *number == expected as f32));
    let corner = takes(odd, part(0, 0, [256, 128, 0], [44, 72, 1]));
    assert_eq!(change(vec![corner]), CUDA_SUCCESS);
    assert_eq!(content(odd, [255, 128, 0], [2, 1, 1]), [(128 * 300 + 256) as f32, 0.0]);
}

pub fn tiles_of_space_have_depth() {
    needs_sparse_arrays();
    let (memory, space) = (pool(2 << 20), array([64, 64, 64], SPARSE));
    let middle = gives(space, part(0, 0, [32, 32, 16], [32, 32, 32]), memory, 0);
    assert_eq!(change(vec![middle]), CUDA_SUCCESS);
    write(space, [0, 40, 20], [64, 2, 20], 1);
    let told = content(space, [0, 40, 20], [64, 2, 20]);
    for (index, number) in told.into_iter().enumerate() {
        let expected = if index % 64 >= 32 { index as f32 + 1.0 } else { 0.0 };
        assert_eq!(number, expected, "{index}");
    }
}

pub fn layers_have_tiles_of_their_own() {
    needs_sparse_arrays();
    let (memory, layered) = (pool(2 << 20), array([256, 128, 3], SPARSE | CUDA_ARRAY3D_LAYERED));
    let changes = [2, 1]
        .map(|layer| gives(layered, part(0, layer, [0; 3], [128, 128, 1]), memory, TILE * layer as usize));
    assert_eq!(change(changes.to_vec()), CUDA_SUCCESS);
    write(layered, [126, 5, 0], [4, 1, 3], 1);
    let told = content(layered, [126, 5, 0], [4, 1, 3]);
    assert_eq!(told, [0.0, 0.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0, 9.0, 10.0, 0.0, 0.0]);
    for (layer, z, depth) in [(3, 0, 1), (0, 0, 3), (0, 1, 1)] {
        let wrong = gives(layered, part(0, layer, [0, 0, z], [128, 128, depth]), memory, 0);
        assert_eq!(change(vec![wrong]), CUDA_ERROR_INVALID_VALUE, "{layer} {z} {depth}");
    }
}

fn of_levels(array: CUmipmappedArray, info: CUarrayMapInfo) -> CUarrayMapInfo {
    let resource = CUarrayMapInfo_resource { mipmap: array };
    CUarrayMapInfo { resourceType: CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, resource, ..info }
}

fn of_tail(info: CUarrayMapInfo, layer: u32, offset: u64, size: u64) -> CUarrayMapInfo {
    let miptail = CUarrayMapInfo_miptail { layer, offset, size };
    CUarrayMapInfo {
        subresourceType: CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
        subresource: CUarrayMapInfo_subresource { miptail },
        ..info
    }
}

pub fn small_levels_share_a_tail() {
    needs_sparse_arrays();
    let (memory, levels) = (pool(4 << 20), mipmapped([512, 512, 0], 10, SPARSE));
    let told = properties_of_levels(levels);
    let level = |number| {
        let mut level = CUarray::NULL;
        cu!(cuMipmappedArrayGetLevel(&mut level, levels, number));
        level
    };
    assert!((1..=3).contains(&told.miptailFirstLevel) && told.miptailSize.is_multiple_of(TILE as u64));
    let second = gives(CUarray::NULL, part(1, 0, [128, 128, 0], [128, 128, 1]), memory, 0);
    let tail = of_tail(second, 0, 0, told.miptailSize);
    let tail = of_levels(levels, CUarrayMapInfo { offset: 1 << 20, ..tail });
    if told.miptailFirstLevel > 1 {
        assert_eq!(change(vec![of_levels(levels, second)]), CUDA_SUCCESS);
        write(level(1), [127, 128, 0], [2, 1, 1], 5);
        assert_eq!(content(level(1), [127, 128, 0], [2, 1, 1]), [0.0, 6.0]);
    }
    let in_tail = || (told.miptailFirstLevel..10).map(|number| (number, 512 >> number as usize));
    for (number, side) in in_tail() {
        write(level(number), [0; 3], [side, side, 1], 1);
        assert!(content(level(number), [0; 3], [side, side, 1]).iter().all(|number| *number == 0.0));
    }
    assert_eq!(change(vec![tail]), CUDA_SUCCESS);
    for (number, side) in in_tail() {
        write(level(number), [0; 3], [side, side, 1], 1000 * number);
    }
    for (number, side) in in_tail() {
        let told = content(level(number), [0; 3], [side, side, 1]);
        let expected = Vec::from_iter((1000 * number..).take(side * side).map(|number| number as f32));
        assert!(told == expected, "{number}");
    }
    let gone = CUarrayMapInfo { memOperationType: CU_MEM_OPERATION_TYPE_UNMAP, memHandle: 0, ..tail };
    assert_eq!(change(vec![gone]), CUDA_SUCCESS);
    assert_eq!(content(level(9), [0; 3], [1, 1, 1]), [0.0]);
    // What is in the tail is not mapped by tiles, and a level is no array of its own.
    let size = told.miptailSize;
    let last = gives(CUarray::NULL, part(9, 0, [0; 3], [1, 1, 1]), memory, 0);
    for wrong in [
        of_levels(levels, last),
        CUarrayMapInfo { resource: CUarrayMapInfo_resource { array: level(0) }, ..second },
        of_tail(tail, 1, 0, size),
        of_tail(tail, 0, size, TILE as u64),
        of_tail(tail, 0, 1, size),
        of_tail(tail, 0, 0, size + TILE as u64),
    ] {
        assert_eq!(change(vec![wrong]), CUDA_ERROR_INVALID_VALUE);
    }
    cu!(cuMipmappedArrayDestroy(levels));
}

pub fn mappings_are_checked() {
    needs_sparse_arrays();
    let (memory, sparse, tile) = (pool(2 << 20), array([512, 512, 0], SPARSE), [128, 128, 1]);
    let good = gives(sparse, part(0, 0, [0; 3], tile), memory, 0);
    let at = |part| CUarrayMapInfo { subresource: CUarrayMapInfo_subresource { sparseLevel: part }, ..good };
    for (number, wrong) in [
        CUarrayMapInfo { deviceBitMask: 0, ..good },
        CUarrayMapInfo { deviceBitMask: 1 << 31, ..good },
        CUarrayMapInfo { flags: 1, ..good },
        CUarrayMapInfo { reserved: [0, 1], ..good },
        CUarrayMapInfo { resourceType: CU_RESOURCE_TYPE_LINEAR, ..good },
        CUarrayMapInfo { subresourceType: CUarraySparseSubresourceType(2), ..good },
        CUarrayMapInfo { memOperationType: CUmemOperationType(0), ..good },
        CUarrayMapInfo { memOperationType: CUmemOperationType(3), ..good },
        CUarrayMapInfo { memHandleType: CUmemHandleType(1), ..good },
        CUarrayMapInfo { offset: 4096, ..good },
        CUarrayMapInfo { offset: 2 << 20, ..good },
        at(part(1, 0, [0; 3], tile)),
        at(part(0, 1, [0; 3], tile)),
        at(part(0, 0, [64, 0, 0], tile)),
        at(part(0, 0, [0, 64, 0], tile)),
        at(part(0, 0, [0, 0, 1], tile)),
        at(part(0, 0, [512, 0, 0], tile)),
        at(part(0, 0, [0; 3], [64, 128, 1])),
        at(part(0, 0, [0; 3], [128, 64, 1])),
        at(part(0, 0, [0; 3], [640, 128, 1])),
        at(part(0, 0, [0; 3], [128, 128, 2])),
        gives(array([500, 300, 0], SPARSE), part(0, 0, [384, 256, 0], tile), memory, 0),
        gives(array([512, 512, 0], 0), part(0, 0, [0; 3], tile), memory, 0),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(change(vec![wrong]), CUDA_ERROR_INVALID_VALUE, "{number}");
    }
    // Memory that is not for tiles.
    let mut plain = 0;
    cu!(cuMemCreate(&mut plain, 2 << 20, &allocation_prop(), 0));
    assert_eq!(change(vec![CUarrayMapInfo { memHandle: plain, ..good }]), CUDA_ERROR_INVALID_VALUE);
    // The first of two is not made where the second cannot be.
    let two = vec![good, CUarrayMapInfo { flags: 1, ..good }];
    assert_eq!(change(two), CUDA_ERROR_INVALID_VALUE);
    write(sparse, [0; 3], [4, 1, 1], 1);
    assert_eq!(content(sparse, [0; 3], [4, 1, 1]), [0.0; 4]);
    // The stream of a capture cannot take it.
    let (own, mut graph, mut one) = (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL, [good]);
    cu!(cuStreamBeginCapture_v2(own, CU_STREAM_CAPTURE_MODE_RELAXED));
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemMapArrayAsync(one.as_mut_ptr(), 1, own));
    fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(own, &mut graph));
    cu!(cuMemMapArrayAsync_ptsz(one.as_mut_ptr(), 1, own); cuStreamSynchronize(own));
    if ours_only("NVIDIA's driver may follow null and handles that are none") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemMapArrayAsync(null_mut(), 1, CUstream::NULL));
        assert_eq!(change(vec![CUarrayMapInfo { memHandle: 0, ..good }]), CUDA_ERROR_INVALID_VALUE);
        cu!(cuArrayDestroy(sparse));
        assert_eq!(change(vec![good]), CUDA_ERROR_INVALID_HANDLE);
    }
}

/// Reads a texel for each thread.
const READER: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 texture, .param .u64 results)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<5>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [results];
    mov.u32 %r0, %tid.x;
    mov.u32 %r2, %ctaid.x;
    tex.2d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r0, %r2}];
    mul.lo.u32 %r1, %r2, 512;
    add.u32 %r1, %r1, %r0;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd2, %rd2, %rd3;
    st.global.f32 [%rd2], %f1;
    ret;
}
";

pub fn kernels_see_what_is_mapped() {
    needs_sparse_arrays();
    let (memory, sparse) = (pool(2 << 20), array([512, 256, 0], SPARSE));
    assert_eq!(
        change(vec![gives(sparse, part(0, 0, [128, 128, 0], [256, 128, 1]), memory, 0)]),
        CUDA_SUCCESS
    );
    write(sparse, [0; 3], [512, 256, 1], 1);
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hArray = sparse;
    let resource = CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_ARRAY, res, flags: 0 };
    let mut texture = 0;
    cu!(cuTexObjectCreate(&mut texture, &resource, &plain_texture(), null()));
    let (reader, results) = (function(load(READER), c"read"), alloc(4 * 512 * 256));
    let told = || {
        assert_eq!(
            launch(reader, 256, 512, CUstream::NULL, &mut [arg(&texture), arg(&results)]),
            CUDA_SUCCESS
        );
        cu!(cuCtxSynchronize());
        read::<f32>(results, 512 * 256)
    };
    for (index, seen) in told().into_iter().enumerate() {
        let is_mapped = (128..384).contains(&(index % 512)) && index / 512 >= 128;
        assert_eq!(seen, if is_mapped { index as f32 + 1.0 } else { 0.0 }, "{index}");
    }
    // The object sees what is mapped later, and no more what is taken back.
    let changes = vec![
        takes(sparse, part(0, 0, [128, 128, 0], [256, 128, 1])),
        gives(sparse, part(0, 0, [0; 3], [128, 128, 1]), memory, TILE),
    ];
    assert_eq!(change(changes), CUDA_SUCCESS);
    let told = told();
    // The second tile of before.
    assert_eq!(told[..2], [(128 * 512 + 257) as f32, (128 * 512 + 258) as f32]);
    assert_eq!([told[128 * 512 + 128], told[128]], [0.0; 2]);
}

fn needs_deferred_arrays() {
    new_context();
    if attribute(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED) == 0 {
        skip("there are no arrays whose memory is deferred");
    }
}

pub fn deferred_arrays_tell_what_they_need() {
    needs_deferred_arrays();
    let (mut needs, mut tiles) =
        (CUDA_ARRAY_MEMORY_REQUIREMENTS { size: 0, alignment: 0, reserved: [0; 4] }, no_properties());
    for (extent, flags) in [([1000, 0, 0], 0), ([512, 500, 0], 0), ([64, 64, 4], 1), ([64, 64, 64], 0)] {
        let deferred = array(extent, CUDA_ARRAY3D_DEFERRED_MAPPING | flags);
        cu!(cuArrayGetMemoryRequirements(&mut needs, deferred, 0));
        let texels: usize = extent.iter().map(|count| (*count).max(1)).product();
        assert!(needs.size >= 4 * texels && needs.alignment.is_power_of_two(), "{extent:?} {needs:?}");
        fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&mut tiles, deferred));
        fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(null_mut(), deferred, 0));
        cu!(cuArrayDestroy(deferred));
    }
    let levels = mipmapped([256, 256, 0], 9, CUDA_ARRAY3D_DEFERRED_MAPPING);
    cu!(cuMipmappedArrayGetMemoryRequirements(&mut needs, levels, 0));
    assert!(needs.size > 4 * 256 * 256);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetSparseProperties(&mut tiles, levels));
    cu!(cuMipmappedArrayDestroy(levels));
}

pub fn deferred_arrays_get_all_their_memory_at_once() {
    needs_deferred_arrays();
    let (deferred, mut plain) = (array([512, 500, 0], CUDA_ARRAY3D_DEFERRED_MAPPING), 0);
    cu!(cuMemCreate(&mut plain, 4 << 20, &allocation_prop(), 0));
    let all = part(0, 0, [0; 3], [512, 500, 1]);
    let why = "NVIDIA's driver maps no memory of this kind to such arrays";
    let code = differs(why, CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE);
    assert_eq!(change(vec![gives(deferred, all, plain, 0)]), code);
    if code != CUDA_SUCCESS {
        return;
    }
    write(deferred, [0; 3], [512, 500, 1], 1);
    let told = content(deferred, [0; 3], [512, 500, 1]);
    assert!(told.iter().zip(1..).all(|(number, expected)| *number == expected as f32));
    for wrong in [part(1, 0, [0; 3], [512, 500, 1]), part(0, 1, [0; 3], [512, 500, 1]), NOTHING] {
        assert_eq!(change(vec![gives(deferred, wrong, plain, 0)]), CUDA_ERROR_INVALID_VALUE);
    }
}
