//! Memory management: arrays. Texture objects and surface objects.

use super::common::*;

const UP: cudaMemcpyKind = cudaMemcpyHostToDevice;
const DOWN: cudaMemcpyKind = cudaMemcpyDeviceToHost;
const ACROSS: cudaMemcpyKind = cudaMemcpyDeviceToDevice;

/// Channels of 16 bits.
const SHORTS: cudaChannelFormatDesc =
    cudaChannelFormatDesc { x: 16, y: 0, z: 0, w: 0, f: cudaChannelFormatKindUnsigned };

fn extent(width: usize, height: usize, depth: usize) -> cudaExtent {
    cudaExtent { width, height, depth }
}

/// An array of rows of 16-bit numbers, all zero.
fn plane(width: usize, height: usize) -> cudaArray_t {
    let mut array = cudaArray_t::NULL;
    let zeros = vec![0u16; width * height];
    cuda!(
        cudaMallocArray(&mut array, &SHORTS, width, height, 0);
        cudaMemcpy2DToArray(array, 0, 0, source(&zeros), 2 * width, 2 * width, height, UP);
    );
    array
}

fn source(numbers: &[u16]) -> *const c_void {
    numbers.as_ptr().cast()
}

/// All of an array.
fn all<const N: usize>(array: cudaArray_t, width: usize) -> [u16; N] {
    let mut numbers = [0; N];
    let (to, from) = (numbers.as_mut_ptr().cast(), cudaArray_const_t(array.0));
    cuda!(cudaMemcpy2DFromArray(to, 2 * width, from, 0, 0, 2 * width, N / width, DOWN));
    numbers
}

pub fn an_array_tells_its_channels_extent_and_flags() {
    let float2 = cudaChannelFormatDesc { x: 32, y: 32, z: 0, w: 0, f: cudaChannelFormatKindFloat };
    let (mut array, mut levels) = (cudaArray_t::NULL, cudaMipmappedArray_t::NULL);
    let mut told = (SHORTS, extent(9, 9, 9), 9);
    cuda!(
        cudaMallocArray(&mut array, &float2, 7, 5, cudaArraySurfaceLoadStore);
        cudaArrayGetInfo(&mut told.0, &mut told.1, &mut told.2, array);
    );
    assert_eq!((told.0, told.1.width, told.1.height, told.1.depth), (float2, 7, 5, 0));
    assert_eq!(told.2, cudaArraySurfaceLoadStore);
    let mut channels = SHORTS;
    cuda!(cudaGetChannelDesc(&mut channels, cudaArray_const_t(array.0)); cudaFreeArray(array));
    assert_eq!(channels, float2);
    cuda!(
        cudaMalloc3DArray(&mut array, &SHORTS, extent(7, 5, 3), cudaArrayLayered);
        cudaArrayGetInfo(null_mut(), &mut told.1, &mut told.2, array);
        cudaFreeArray(array);
    );
    assert_eq!((told.1.width, told.1.height, told.1.depth, told.2), (7, 5, 3, cudaArrayLayered));
    cuda!(
        cudaMallocMipmappedArray(&mut levels, &SHORTS, extent(16, 4, 0), 3, 0);
        cudaGetMipmappedArrayLevel(&mut array, cudaMipmappedArray_const_t(levels.0), 2);
        cudaArrayGetInfo(null_mut(), &mut told.1, null_mut(), array);
    );
    assert_eq!((told.1.width, told.1.height, told.1.depth), (4, 1, 0));
    let const_levels = cudaMipmappedArray_const_t(levels.0);
    fails!(cudaErrorInvalidValue, cudaGetMipmappedArrayLevel(&mut array, const_levels, 3));
    // Neither planar, nor sparse, nor without memory.
    let mut needs = cudaArrayMemoryRequirements { size: 0, alignment: 0, reserved: [0; 4] };
    fails!(cudaErrorInvalidValue, cudaMipmappedArrayGetMemoryRequirements(&mut needs, levels, 0));
    let mut flat = plane(4, 4);
    fails!(cudaErrorInvalidValue, cudaArrayGetMemoryRequirements(&mut needs, flat, 0));
    fails!(cudaErrorInvalidValue, cudaArrayGetPlane(&mut array, flat, 0));
    cuda!(cudaFreeMipmappedArray(levels); cudaFreeArray(flat));
    // Null is nothing to free.
    flat = cudaArray_t::NULL;
    cuda!(cudaFreeArray(flat); cudaFreeMipmappedArray(cudaMipmappedArray_t::NULL));
    let three = cudaChannelFormatDesc { x: 8, y: 8, z: 8, ..SHORTS };
    fails!(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&mut array, &three, 4, 4, 0));
    let video = cudaChannelFormatDesc { f: cudaChannelFormatKindNV12, ..three };
    fails!(cudaErrorInvalidValue, cudaMallocArray(&mut array, &video, 4, 4, 0));
    fails!(cudaErrorInvalidValue, cudaMallocArray(null_mut(), &SHORTS, 4, 4, 0));
    fails!(cudaErrorInvalidValue, cudaMalloc3DArray(&mut array, &SHORTS, extent(4, 0, 4), 0));
}

pub fn every_copy_of_rows_reaches_the_array() {
    let numbers = Vec::from_iter(0..40u16);
    let (array, other) = (plane(4, 3), plane(4, 3));
    let part = [0, 0, 0, 0, 0, 11, 12, 13, 0, 21, 22, 23];
    let check = |copy: &dyn Fn(cudaArray_t)| {
        let zeros = [0u16; 12];
        cuda!(cudaMemcpy2DToArray(array, 0, 0, source(&zeros), 8, 8, 3, UP));
        copy(array);
        cuda!(cudaDeviceSynchronize());
        assert_eq!(all(array, 4), part);
    };
    let from = source(&numbers[11..]);
    check(&|array| cuda!(cudaMemcpy2DToArray(array, 2, 1, from, 20, 6, 2, UP)));
    check(&|array| cuda!(cudaMemcpy2DToArray_ptds(array, 2, 1, from, 20, 6, 2, UP)));
    check(&|array| cuda!(cudaMemcpy2DToArrayAsync(array, 2, 1, from, 20, 6, 2, UP, DEFAULT)));
    check(&|array| cuda!(cudaMemcpy2DToArrayAsync_ptsz(array, 2, 1, from, 20, 6, 2, UP, DEFAULT)));
    let const_array = cudaArray_const_t(array.0);
    cuda!(cudaMemcpy2DArrayToArray(other, 0, 1, const_array, 2, 1, 6, 2, ACROSS));
    assert_eq!(all(other, 4), [0, 0, 0, 0, 11, 12, 13, 0, 21, 22, 23, 0]);
    cuda!(cudaMemcpy2DArrayToArray_ptds(other, 2, 0, const_array, 0, 1, 6, 1, ACROSS); cudaDeviceSynchronize());
    assert_eq!(all(other, 4), [0, 0, 11, 12, 11, 12, 13, 0, 21, 22, 23, 0]);
    let back = |copy: &dyn Fn(*mut c_void)| {
        let mut rows = [0u16; 10];
        copy(rows.as_mut_ptr().cast());
        cuda!(cudaDeviceSynchronize());
        assert_eq!(rows, [11, 12, 13, 0, 0, 21, 22, 23, 0, 0]);
    };
    back(&|to| cuda!(cudaMemcpy2DFromArray(to, 10, const_array, 2, 1, 6, 2, DOWN)));
    back(&|to| cuda!(cudaMemcpy2DFromArray_ptds(to, 10, const_array, 2, 1, 6, 2, DOWN)));
    back(&|to| cuda!(cudaMemcpy2DFromArrayAsync(to, 10, const_array, 2, 1, 6, 2, DOWN, DEFAULT)));
    back(&|to| cuda!(cudaMemcpy2DFromArrayAsync_ptsz(to, 10, const_array, 2, 1, 6, 2, DOWN, DEFAULT)));
    fails!(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 2, 0, from, 20, 8, 1, UP));
    fails!(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, 2, from, 20, 8, 2, UP));
    fails!(cudaErrorInvalidPitchValue, cudaMemcpy2DToArray(array, 0, 0, from, 7, 8, 2, UP));
    // A single row has a pitch of its length at least, or none.
    fails!(cudaErrorInvalidValue, cudaMemcpy2DToArray(array, 0, 0, from, 7, 8, 1, UP));
    cuda!(cudaMemcpy2DToArray(array, 0, 0, from, 0, 8, 1, UP));
    fails!(cudaErrorInvalidMemcpyDirection, cudaMemcpy2DToArray(array, 0, 0, from, 8, 8, 1, DOWN));
}

pub fn bytes_go_on_in_the_next_row() {
    let numbers = Vec::from_iter(1..40u16);
    let expected = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 0, 0];
    let (from, zeros) = (source(&numbers), [0u16; 12]);
    let array = plane(4, 3);
    let check = |copy: &dyn Fn()| {
        cuda!(cudaMemcpy2DToArray(array, 0, 0, source(&zeros), 8, 8, 3, UP));
        copy();
        cuda!(cudaDeviceSynchronize());
        assert_eq!(all(array, 4), expected);
    };
    check(&|| cuda!(cudaMemcpyToArray(array, 6, 0, from, 14, UP)));
    check(&|| cuda!(cudaMemcpyToArray_ptds(array, 6, 0, from, 14, UP)));
    check(&|| cuda!(cudaMemcpyToArrayAsync(array, 6, 0, from, 14, UP, DEFAULT)));
    check(&|| cuda!(cudaMemcpyToArrayAsync_ptsz(array, 6, 0, from, 14, UP, DEFAULT)));
    let const_array = cudaArray_const_t(array.0);
    let back = |copy: &dyn Fn(*mut c_void)| {
        let mut bytes = [0u16; 7];
        copy(bytes.as_mut_ptr().cast());
        cuda!(cudaDeviceSynchronize());
        assert_eq!(bytes, [1, 2, 3, 4, 5, 6, 7]);
    };
    back(&|to| cuda!(cudaMemcpyFromArray(to, const_array, 6, 0, 14, DOWN)));
    back(&|to| cuda!(cudaMemcpyFromArray_ptds(to, const_array, 6, 0, 14, DOWN)));
    back(&|to| cuda!(cudaMemcpyFromArrayAsync(to, const_array, 6, 0, 14, DOWN, DEFAULT)));
    back(&|to| cuda!(cudaMemcpyFromArrayAsync_ptsz(to, const_array, 6, 0, 14, DOWN, DEFAULT)));
    let other = plane(4, 3);
    cuda!(cudaMemcpyArrayToArray(other, 0, 1, const_array, 6, 0, 10, ACROSS); cudaDeviceSynchronize());
    assert_eq!(all(other, 4), [0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
    cuda!(cudaMemcpyArrayToArray_ptds(other, 0, 0, const_array, 0, 1, 4, ACROSS); cudaDeviceSynchronize());
    assert_eq!(all(other, 4), [2, 3, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0]);
}

pub fn boxes_count_in_texels() {
    let mut array = cudaArray_t::NULL;
    let zeros = [0u16; 24];
    cuda!(cudaMalloc3DArray(&mut array, &SHORTS, extent(3, 2, 4), 0));
    // Memory of the host that devices know, for copies between them.
    let mut pinned = null_mut();
    cuda!(cudaMallocHost(&mut pinned, 240));
    // SAFETY: 240 bytes, which are this test's alone.
    let numbers = unsafe { std::slice::from_raw_parts_mut(pinned.cast::<u16>(), 120) };
    numbers.iter_mut().zip(0..).for_each(|(number, index)| *number = index);
    let packed = |ptr: *const u16, width, height| cudaPitchedPtr {
        ptr: ptr.cast_mut().cast(),
        pitch: 2 * width,
        xsize: width,
        ysize: height,
    };
    let start = cudaPos { x: 0, y: 0, z: 0 };
    let into = cudaMemcpy3DParms {
        srcArray: cudaArray_t::NULL,
        srcPos: start,
        srcPtr: packed(zeros.as_ptr(), 3, 2),
        dstArray: array,
        dstPos: start,
        dstPtr: packed(null(), 0, 0),
        extent: extent(3, 2, 4),
        kind: UP,
    };
    let part = cudaMemcpy3DParms {
        srcPtr: packed(numbers.as_ptr(), 5, 4),
        dstPos: cudaPos { x: 1, y: 0, z: 2 },
        extent: extent(2, 2, 2),
        ..into
    };
    let peer = cudaMemcpy3DPeerParms {
        srcArray: part.srcArray,
        srcPos: part.srcPos,
        srcPtr: part.srcPtr,
        srcDevice: 0,
        dstArray: part.dstArray,
        dstPos: part.dstPos,
        dstPtr: part.dstPtr,
        dstDevice: 0,
        extent: part.extent,
    };
    let check = |copy: &dyn Fn()| {
        let mut back = [9u16; 24];
        cuda!(cudaMemcpy3D(&into));
        copy();
        let out = cudaMemcpy3DParms {
            srcArray: array,
            srcPtr: packed(null(), 0, 0),
            dstArray: cudaArray_t::NULL,
            dstPtr: packed(back.as_mut_ptr(), 3, 2),
            kind: DOWN,
            ..into
        };
        cuda!(cudaDeviceSynchronize(); cudaMemcpy3D(&out));
        assert_eq!(back[..12], [0; 12]);
        assert_eq!(back[12..], [0, 0, 1, 0, 5, 6, 0, 20, 21, 0, 25, 26]);
    };
    // Rows that overlap: the runtime takes the pitch for one in elements, and is asked before the array's end is.
    let origin = cudaPos { x: 0, y: 0, z: 0 };
    let tight = |pitch, width| cudaMemcpy3DParms {
        srcPtr: cudaPitchedPtr { pitch, ..packed(zeros.as_ptr(), 2, 2) },
        srcPos: origin,
        dstPos: origin,
        extent: extent(width, 2, 2),
        ..part
    };
    for (pitch, width, code) in [
        (1, 2, cudaErrorInvalidPitchValue),
        (2, 2, cudaErrorInvalidValue),
        (3, 3, cudaErrorInvalidValue),
        (6, 200, cudaErrorInvalidPitchValue),
        (200, 200, cudaErrorInvalidValue),
    ] {
        fails!(code, cudaMemcpy3D(&tight(pitch, width)));
    }
    check(&|| cuda!(cudaMemcpy3D(&part)));
    check(&|| cuda!(cudaMemcpy3D_ptds(&part)));
    check(&|| cuda!(cudaMemcpy3DAsync(&part, DEFAULT)));
    check(&|| cuda!(cudaMemcpy3DAsync_ptsz(&part, DEFAULT)));
    check(&|| cuda!(cudaMemcpy3DPeer(&peer)));
    check(&|| cuda!(cudaMemcpy3DPeer_ptds(&peer)));
    check(&|| cuda!(cudaMemcpy3DPeerAsync(&peer, DEFAULT)));
    check(&|| cuda!(cudaMemcpy3DPeerAsync_ptsz(&peer, DEFAULT)));
    let far = cudaMemcpy3DParms { dstPos: cudaPos { x: 2, y: 0, z: 0 }, ..part };
    fails!(cudaErrorInvalidValue, cudaMemcpy3D(&far));
    // An array is not the host's: that is asked only of the source.
    let kinds = |from: &cudaMemcpy3DParms, codes: [cudaError_t; 5]| {
        let kinds = [cudaMemcpyHostToHost, UP, DOWN, ACROSS, cudaMemcpyDefault];
        for (kind, code) in kinds.into_iter().zip(codes) {
            fails!(code, cudaMemcpy3D(&cudaMemcpy3DParms { kind, ..*from }));
        }
    };
    let (good, bad) = (cudaSuccess, cudaErrorInvalidValue);
    kinds(&into, [good, good, bad, bad, good]);
    kinds(&cudaMemcpy3DParms { srcPtr: packed(numbers.as_ptr(), 3, 2), ..into }, [good; 5]);
    let out = cudaMemcpy3DParms {
        srcArray: array,
        srcPtr: packed(null(), 0, 0),
        dstArray: cudaArray_t::NULL,
        dstPtr: packed(numbers.as_ptr(), 3, 2),
        ..into
    };
    kinds(&out, [bad, bad, good, good, good]);
}

fn of_array(array: cudaArray_t) -> cudaResourceDesc {
    let mut res = cudaResource { reserved: [0; 32] };
    res.array = array;
    cudaResourceDesc { resType: cudaResourceTypeArray, res, flags: 0 }
}

fn clamped() -> cudaTextureDesc {
    cudaTextureDesc {
        addressMode: [cudaAddressModeClamp; 3],
        filterMode: cudaFilterModePoint,
        readMode: cudaReadModeElementType,
        sRGB: 0,
        borderColor: [1.0, 2.0, 3.0, 4.0],
        normalizedCoords: 1,
        maxAnisotropy: 2,
        mipmapFilterMode: cudaFilterModeLinear,
        mipmapLevelBias: 0.5,
        minMipmapLevelClamp: 1.0,
        maxMipmapLevelClamp: 2.0,
        disableTrilinearOptimization: 0,
        seamlessCubemap: 0,
    }
}

pub fn texture_and_surface_objects_tell_what_they_were_made_of() {
    let (array, texture) = (plane(8, 8), clamped());
    let view = cudaResourceViewDesc {
        format: cudaResViewFormatSignedShort1,
        width: 8,
        height: 8,
        depth: 0,
        firstMipmapLevel: 0,
        lastMipmapLevel: 0,
        firstLayer: 0,
        lastLayer: 0,
        reserved: [0; 16],
    };
    let (mut object, mut surface) = (0, 0);
    cuda!(
        cudaCreateTextureObject(&mut object, &of_array(array), &texture, &view);
        cudaCreateSurfaceObject(&mut surface, &of_array(array));
    );
    let (mut resource, mut told) = (of_array(cudaArray_t::NULL), cudaTextureDesc { sRGB: 7, ..texture });
    let mut told_view = cudaResourceViewDesc { width: 0, height: 0, ..view };
    cuda!(
        cudaGetTextureObjectResourceDesc(&mut resource, object);
        cudaGetTextureObjectTextureDesc(&mut told, object);
        cudaGetTextureObjectResourceViewDesc(&mut told_view, object);
    );
    // SAFETY: the type is an array's.
    assert_eq!((resource.resType, unsafe { resource.res.array }), (cudaResourceTypeArray, array));
    if !ours_only("NVIDIA's driver does not tell the color of the border") {
        told.borderColor = texture.borderColor;
    }
    assert_eq!(format!("{told:?}"), format!("{texture:?}"));
    assert_eq!((told_view.format, told_view.width, told_view.height), (view.format, 8, 8));
    resource = of_array(cudaArray_t::NULL);
    cuda!(cudaGetSurfaceObjectResourceDesc(&mut resource, surface));
    // SAFETY: as above.
    assert_eq!(unsafe { resource.res.array }, array);
    cuda!(cudaDestroyTextureObject(object); cudaDestroySurfaceObject(surface));
    fails!(cudaErrorInvalidValue, cudaGetTextureObjectResourceDesc(&mut resource, object));
    let unknown = cudaResourceDesc { resType: cudaResourceType(9), ..of_array(array) };
    fails!(cudaErrorInvalidValue, cudaCreateTextureObject(&mut object, &unknown, &texture, null()));
    let how = null();
    fails!(
        cudaErrorInvalidResourceHandle,
        cudaCreateTextureObject(&mut object, &of_array(array), how, null())
    );
}

pub fn cuda_12_describes_resources_without_flags() {
    let array = plane(8, 8);
    let resource =
        cudaResourceDesc_cuda12 { resType: cudaResourceTypeArray, res: cudaResource_cuda12 { array } };
    let (mut object, mut surface, mut back) = (0, 0, resource);
    cuda!(
        cudaCreateTextureObject_cuda12(&mut object, &resource, &clamped(), null());
        cudaCreateSurfaceObject_cuda12(&mut surface, &resource);
    );
    for read in [true, false] {
        back.resType = cudaResourceTypeLinear;
        if read {
            cuda!(cudaGetTextureObjectResourceDesc_cuda12(&mut back, object));
        } else {
            cuda!(cudaGetSurfaceObjectResourceDesc_cuda12(&mut back, surface));
        }
        // SAFETY: the type is an array's.
        assert_eq!((back.resType, unsafe { back.res.array }), (cudaResourceTypeArray, array));
    }
    cuda!(cudaDestroyTextureObject(object); cudaDestroySurfaceObject(surface));
}
