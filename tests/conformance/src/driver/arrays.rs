//! Memory management: arrays and mipmapped arrays.

use super::common::*;

const FLOAT: CUarray_format = CU_AD_FORMAT_FLOAT;

fn in_space(extent: [usize; 3], flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    array_descriptor(extent, FLOAT, 1, flags)
}

/// The code of creating an array, which is destroyed again.
fn created(descriptor: &CUDA_ARRAY3D_DESCRIPTOR) -> CUresult {
    let mut array = CUarray::NULL;
    // SAFETY: pointers to both.
    let code = unsafe { cuArray3DCreate_v2(&mut array, descriptor) };
    if code == CUDA_SUCCESS {
        cu!(cuArrayDestroy(array));
    }
    code
}

fn array(extent: [usize; 3], flags: u32) -> CUarray {
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &in_space(extent, flags)));
    array
}

fn described(array: CUarray) -> CUDA_ARRAY3D_DESCRIPTOR {
    let mut descriptor = in_space([0; 3], u32::MAX);
    cu!(cuArray3DGetDescriptor_v2(&mut descriptor, array));
    descriptor
}

fn same(a: &CUDA_ARRAY3D_DESCRIPTOR, b: &CUDA_ARRAY3D_DESCRIPTOR) -> bool {
    let numbers = |d: &CUDA_ARRAY3D_DESCRIPTOR| {
        (d.Width, d.Height, d.Depth, d.Format, d.NumChannels, d.Flags & !CUDA_ARRAY3D_DEFERRED_MAPPING)
    };
    numbers(a) == numbers(b)
}

pub fn an_array_tells_what_it_was_made_as() {
    new_context();
    let flat =
        CUDA_ARRAY_DESCRIPTOR { Width: 21, Height: 6, Format: CU_AD_FORMAT_SIGNED_INT16, NumChannels: 2 };
    let (mut array, mut back) = (CUarray::NULL, flat);
    cu!(cuArrayCreate_v2(&mut array, &flat));
    (back.Width, back.Height, back.NumChannels) = (0, 0, 0);
    cu!(cuArrayGetDescriptor_v2(&mut back, array));
    assert_eq!((back.Width, back.Height, back.Format, back.NumChannels), (21, 6, flat.Format, 2));
    let expected = CUDA_ARRAY3D_DESCRIPTOR { Format: flat.Format, NumChannels: 2, ..in_space([21, 6, 0], 0) };
    assert!(same(&described(array), &expected));
    cu!(cuArrayDestroy(array));
    for (extent, flags) in [
        ([7, 0, 0], 0),
        ([7, 5, 0], CUDA_ARRAY3D_SURFACE_LDST),
        ([7, 5, 3], 0),
        ([7, 0, 3], CUDA_ARRAY3D_LAYERED),
        ([7, 5, 3], CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST),
        ([8, 8, 6], CUDA_ARRAY3D_CUBEMAP),
        ([8, 8, 12], CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED),
        ([9, 9, 0], CUDA_ARRAY3D_TEXTURE_GATHER),
    ] {
        let made = self::array(extent, flags);
        assert!(same(&described(made), &in_space(extent, flags)), "{:?}", described(made));
        cu!(cuArrayGetDescriptor_v2(&mut back, made));
        assert_eq!((back.Width, back.Height), (extent[0], extent[1]));
        cu!(cuArrayDestroy(made));
    }
}

pub fn the_first_version_makes_the_same_arrays() {
    new_context();
    let flat = CUDA_ARRAY_DESCRIPTOR_v1 { Width: 21, Height: 6, Format: CU_AD_FORMAT_HALF, NumChannels: 4 };
    let (mut array, mut back) = (CUarray::NULL, CUDA_ARRAY_DESCRIPTOR_v1 { Width: 0, Height: 0, ..flat });
    let first = "NVIDIA's driver refuses functions of the first version";
    fails!(differs(first, CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT), cuArrayCreate(&mut array, &flat));
    if !is_ours() {
        return;
    }
    cu!(cuArrayGetDescriptor(&mut back, array));
    assert_eq!((back.Width, back.Height, back.Format, back.NumChannels), (21, 6, CU_AD_FORMAT_HALF, 4));
    cu!(cuArrayDestroy(array));
    let solid = CUDA_ARRAY3D_DESCRIPTOR_v1 {
        Width: 4,
        Height: 5,
        Depth: 6,
        Format: FLOAT,
        NumChannels: 1,
        Flags: CUDA_ARRAY3D_SURFACE_LDST,
    };
    let mut back = CUDA_ARRAY3D_DESCRIPTOR_v1 { Width: 0, Height: 0, Depth: 0, ..solid };
    cu!(cuArray3DCreate(&mut array, &solid); cuArray3DGetDescriptor(&mut back, array));
    assert_eq!((back.Width, back.Height, back.Depth), (4, 5, 6));
    cu!(cuArrayDestroy(array));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(null_mut(), &flat));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayCreate(&mut array, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(null_mut(), &solid));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate(&mut array, null()));
}

pub fn formats_have_one_two_or_four_channels() {
    new_context();
    let with = |format, channels| CUDA_ARRAY3D_DESCRIPTOR {
        Format: format,
        NumChannels: channels,
        ..in_space([16, 16, 0], 0)
    };
    for format in [
        CU_AD_FORMAT_UNSIGNED_INT8,
        CU_AD_FORMAT_UNSIGNED_INT16,
        CU_AD_FORMAT_UNSIGNED_INT32,
        CU_AD_FORMAT_SIGNED_INT8,
        CU_AD_FORMAT_SIGNED_INT16,
        CU_AD_FORMAT_SIGNED_INT32,
        CU_AD_FORMAT_HALF,
        CU_AD_FORMAT_FLOAT,
    ] {
        for (channels, code) in [
            (0, CUDA_ERROR_INVALID_VALUE),
            (1, CUDA_SUCCESS),
            (2, CUDA_SUCCESS),
            (3, CUDA_ERROR_INVALID_VALUE),
            (4, CUDA_SUCCESS),
            (5, CUDA_ERROR_INVALID_VALUE),
        ] {
            assert_eq!(created(&with(format, channels)), code, "{format:?} × {channels}");
        }
    }
    for (format, channels) in [
        (CU_AD_FORMAT_UNORM_INT8X1, 1),
        (CU_AD_FORMAT_UNORM_INT8X2, 2),
        (CU_AD_FORMAT_UNORM_INT8X4, 4),
        (CU_AD_FORMAT_UNORM_INT16X1, 1),
        (CU_AD_FORMAT_UNORM_INT16X2, 2),
        (CU_AD_FORMAT_UNORM_INT16X4, 4),
        (CU_AD_FORMAT_SNORM_INT8X1, 1),
        (CU_AD_FORMAT_SNORM_INT8X2, 2),
        (CU_AD_FORMAT_SNORM_INT8X4, 4),
        (CU_AD_FORMAT_SNORM_INT16X1, 1),
        (CU_AD_FORMAT_SNORM_INT16X2, 2),
        (CU_AD_FORMAT_SNORM_INT16X4, 4),
    ] {
        assert_eq!(created(&with(format, channels)), CUDA_SUCCESS, "{format:?}");
    }
    assert_eq!(created(&with(CUarray_format(0x777), 1)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(created(&with(CU_AD_FORMAT_NV12, 3)), CUDA_ERROR_INVALID_VALUE);
    // Formats of video are those of arrays that other APIs make.
    for format in [CU_AD_FORMAT_P010, CU_AD_FORMAT_YUY2, CU_AD_FORMAT_Y410, CU_AD_FORMAT_Y444_PLANAR8] {
        for channels in 1..=4 {
            assert_eq!(created(&with(format, channels)), CUDA_ERROR_INVALID_VALUE, "{format:?}");
        }
    }
}

pub fn extents_and_flags_fit_each_other() {
    new_context();
    const LAYERED: u32 = CUDA_ARRAY3D_LAYERED;
    const CUBE: u32 = CUDA_ARRAY3D_CUBEMAP;
    const GATHER: u32 = CUDA_ARRAY3D_TEXTURE_GATHER;
    for (extent, flags) in [
        ([0, 0, 0], 0),
        ([0, 4, 0], 0),
        ([4, 0, 4], 0),
        ([4, 5, 6], CUBE),
        ([4, 4, 5], CUBE),
        ([4, 4, 12], CUBE),
        ([4, 4, 13], CUBE | LAYERED),
        ([4, 4, 4], GATHER),
        ([4, 4, 0], CUDA_ARRAY3D_DEPTH_TEXTURE),
        ([4, 4, 0], CUDA_ARRAY3D_COLOR_ATTACHMENT),
        ([4, 4, 0], 1 << 20),
    ] {
        assert_eq!(created(&in_space(extent, flags)), CUDA_ERROR_INVALID_VALUE, "{extent:?} {flags:#x}");
    }
    for flags in [CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING] {
        assert_eq!(created(&in_space([256, 256, 0], flags)), CUDA_SUCCESS);
    }
}

pub fn arrays_are_as_large_as_the_device_says() {
    new_context();
    let limit = |limit| attribute(limit) as usize;
    let width = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH);
    let height = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT);
    let depth = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE);
    let narrow = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE);
    let layers = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS);
    let cubes = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS);
    let surface = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH);
    let gathered = limit(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH);
    let cube = CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED;
    for (extent, flags) in [
        ([width, 0, 0], 0),
        ([4, height, 0], 0),
        ([2, 2, depth], 0),
        ([4, 4, layers], CUDA_ARRAY3D_LAYERED),
        ([4, 4, cubes], cube),
        ([surface, 0, 0], CUDA_ARRAY3D_SURFACE_LDST),
        ([gathered, 4, 0], CUDA_ARRAY3D_TEXTURE_GATHER),
    ] {
        assert_eq!(created(&in_space(extent, flags)), CUDA_SUCCESS, "{extent:?} {flags:#x}");
    }
    for (extent, flags) in [
        ([width + 1, 0, 0], 0),
        ([4, height + 1, 0], 0),
        ([2, 2, depth + 1], 0),
        ([narrow + 1, 2, depth], 0),
        ([4, 4, layers + 1], CUDA_ARRAY3D_LAYERED),
        ([4, 4, cubes + 6], cube),
        ([gathered + 1, 4, 0], CUDA_ARRAY3D_TEXTURE_GATHER),
        ([usize::MAX, usize::MAX, 0], 0),
    ] {
        assert_eq!(created(&in_space(extent, flags)), CUDA_ERROR_INVALID_VALUE, "{extent:?} {flags:#x}");
    }
}

pub fn arrays_use_memory_and_give_it_back() {
    new_context();
    let unused = || {
        let mut unused = 0;
        cu!(cuMemGetInfo_v2(&mut unused, null_mut()));
        unused
    };
    // What is available to the device may be less than its own count; much is asked for at once.
    let mut arrays = Vec::new();
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR { NumChannels: 4, ..in_space([16384, 4096, 0], 0) };
    loop {
        let mut array = CUarray::NULL;
        // SAFETY: pointers to both.
        match unsafe { cuArray3DCreate_v2(&mut array, &descriptor) } {
            CUDA_SUCCESS => arrays.push(array),
            code => {
                assert_eq!(code, CUDA_ERROR_OUT_OF_MEMORY);
                break;
            }
        }
        assert!(arrays.len() < 100_000, "memory has no end");
    }
    let used_up = unused();
    assert!(used_up < 1 << 30, "room for another");
    for array in arrays {
        cu!(cuArrayDestroy(array));
    }
    cu!(cuArrayDestroy(array([16384, 4096, 0], 0)));
}

pub fn handles_of_arrays_are_checked() {
    new_context();
    let good = array([8, 8, 0], 0);
    let descriptor = in_space([8, 8, 0], 0);
    let flat = CUDA_ARRAY_DESCRIPTOR { Width: 8, Height: 8, Format: FLOAT, NumChannels: 1 };
    let mut plane = CUarray::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(null_mut(), &flat));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayCreate_v2(&mut plane, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(null_mut(), &descriptor));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArray3DCreate_v2(&mut plane, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetDescriptor_v2(null_mut(), good));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArray3DGetDescriptor_v2(null_mut(), good));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(CUarray::NULL));
    // Neither planar nor sparse nor without memory.
    let mut needs = CUDA_ARRAY_MEMORY_REQUIREMENTS { size: 0, alignment: 0, reserved: [0; 4] };
    let mut tiles = CUDA_ARRAY_SPARSE_PROPERTIES {
        tileExtent: [0; 3],
        miptailFirstLevel: 0,
        miptailSize: 0,
        flags: 0,
        reserved: [0; 4],
    };
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&mut plane, good, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(null_mut(), good, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&mut needs, good, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(null_mut(), good, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&mut tiles, good));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(null_mut(), good));
    let levels = mipmapped([8, 8, 0], 2, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetMemoryRequirements(&mut needs, levels, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetSparseProperties(&mut tiles, levels));
    const NULL: CUarray = CUarray::NULL;
    let (mut back, mut flat_back) = (descriptor, flat);
    fails!(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&mut back, NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor_v2(&mut flat_back, NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayGetPlane(&mut plane, NULL, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetMemoryRequirements(&mut needs, NULL, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetSparseProperties(&mut tiles, NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&mut plane, CUmipmappedArray::NULL, 0));
    cu!(cuMipmappedArrayDestroy(levels); cuArrayDestroy(good));
    if !ours_only("NVIDIA's driver follows handles of what is gone") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(good));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(levels));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayGetLevel(&mut plane, levels, 0));
    for gone in [good, CUarray(0x1234)] {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuArray3DGetDescriptor_v2(&mut back, gone));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayGetDescriptor_v2(&mut flat_back, gone));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayGetPlane(&mut plane, gone, 0));
    }
}

pub fn arrays_go_with_their_context() {
    let context = new_context();
    let (left, levels) = (array([64, 64, 0], 0), mipmapped([64, 64, 0], 3, 0));
    cu!(cuCtxDestroy_v2(context));
    if ours_only("NVIDIA's driver follows handles of what is gone") {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuArrayDestroy(left));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(levels));
    }
    let mut array = CUarray::NULL;
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuArray3DCreate_v2(&mut array, &in_space([4, 4, 0], 0)));
}

fn mipmapped(extent: [usize; 3], levels: u32, flags: u32) -> CUmipmappedArray {
    let mut array = CUmipmappedArray::NULL;
    cu!(cuMipmappedArrayCreate(&mut array, &in_space(extent, flags), levels));
    array
}

pub fn levels_halve_down_to_one_texel() {
    new_context();
    let level = |array, number| {
        let mut level = CUarray::NULL;
        cu!(cuMipmappedArrayGetLevel(&mut level, array, number));
        level
    };
    for (extent, flags, halved) in [
        ([16, 4, 0], 0, [[16, 4, 0], [8, 2, 0], [4, 1, 0], [2, 1, 0], [1, 1, 0]]),
        ([16, 0, 0], 0, [[16, 0, 0], [8, 0, 0], [4, 0, 0], [2, 0, 0], [1, 0, 0]]),
        ([5, 4, 16], 0, [[5, 4, 16], [2, 2, 8], [1, 1, 4], [1, 1, 2], [1, 1, 1]]),
        (
            [16, 4, 3],
            CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST,
            [[16, 4, 3], [8, 2, 3], [4, 1, 3], [2, 1, 3], [1, 1, 3]],
        ),
    ] {
        // As many as there can be, however many are asked for.
        let array = mipmapped(extent, 100, flags);
        for (number, expected) in halved.into_iter().enumerate() {
            let told = described(level(array, number as u32));
            assert!(same(&told, &in_space(expected, flags)), "{number}: {told:?}");
        }
        let mut none = CUarray::NULL;
        fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&mut none, array, 5));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(null_mut(), array, 0));
        cu!(cuMipmappedArrayDestroy(array));
    }
    let one = mipmapped([16, 16, 0], 0, 0);
    level(one, 0);
    let mut none = CUarray::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&mut none, one, 1));
    let too_wide = attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH) as usize + 1;
    let mut array = CUmipmappedArray::NULL;
    let descriptor = in_space([too_wide, 1, 0], 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&mut array, &descriptor, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(&mut array, null(), 1));
    let good = in_space([4, 4, 0], 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayCreate(null_mut(), &good, 1));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuMipmappedArrayDestroy(CUmipmappedArray::NULL));
    // A level goes with the array that it is of, whatever else is done to it.
    let kept = level(one, 0);
    cu!(cuArrayDestroy(kept); cuMipmappedArrayDestroy(one));
}
