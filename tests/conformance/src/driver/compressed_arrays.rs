//! Memory management: arrays of compressed texels, and of texels packed in words.

use super::common::*;

fn array(format: CUarray_format, channels: u32, width: usize, height: usize) -> CUarray {
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &array_descriptor([width, height, 0], format, channels, 0)));
    array
}

/// Compressed formats, their channels and the bytes of a block.
const COMPRESSED: [(CUarray_format, u32, usize); 14] = [
    (CU_AD_FORMAT_BC1_UNORM, 4, 8),
    (CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8),
    (CU_AD_FORMAT_BC2_UNORM, 4, 16),
    (CU_AD_FORMAT_BC2_UNORM_SRGB, 4, 16),
    (CU_AD_FORMAT_BC3_UNORM, 4, 16),
    (CU_AD_FORMAT_BC3_UNORM_SRGB, 4, 16),
    (CU_AD_FORMAT_BC4_UNORM, 1, 8),
    (CU_AD_FORMAT_BC4_SNORM, 1, 8),
    (CU_AD_FORMAT_BC5_UNORM, 2, 16),
    (CU_AD_FORMAT_BC5_SNORM, 2, 16),
    (CU_AD_FORMAT_BC6H_UF16, 3, 16),
    (CU_AD_FORMAT_BC6H_SF16, 3, 16),
    (CU_AD_FORMAT_BC7_UNORM, 4, 16),
    (CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 16),
];

pub fn compressed_arrays_have_two_dimensions_or_more() {
    new_context();
    let (layered, cube) = (CUDA_ARRAY3D_LAYERED, CUDA_ARRAY3D_CUBEMAP);
    for (format, channels, _) in COMPRESSED {
        let created = |channels, extent, flags| {
            let mut array = CUarray::NULL;
            // SAFETY: pointers to both.
            let code =
                unsafe { cuArray3DCreate_v2(&mut array, &array_descriptor(extent, format, channels, flags)) };
            if code == CUDA_SUCCESS {
                cu!(cuArrayDestroy(array));
            }
            code
        };
        for count in 1..=4 {
            let code = if count == channels { CUDA_SUCCESS } else { CUDA_ERROR_INVALID_VALUE };
            assert_eq!(created(count, [64, 64, 0], 0), code, "{format:?} x {count}");
        }
        for (extent, flags, code) in [
            ([64, 0, 0], 0, CUDA_ERROR_INVALID_VALUE),
            ([64, 0, 3], layered, CUDA_ERROR_INVALID_VALUE),
            ([64, 64, 0], CUDA_ARRAY3D_SURFACE_LDST, CUDA_ERROR_NOT_SUPPORTED),
            ([64, 64, 0], CUDA_ARRAY3D_TEXTURE_GATHER, CUDA_SUCCESS),
            ([64, 64, 4], 0, CUDA_SUCCESS),
            ([64, 64, 3], layered, CUDA_SUCCESS),
            ([64, 64, 6], cube, CUDA_SUCCESS),
            ([64, 64, 12], cube | layered, CUDA_SUCCESS),
            ([61, 62, 0], 0, CUDA_SUCCESS),
            ([1, 1, 0], 0, CUDA_SUCCESS),
        ] {
            assert_eq!(created(channels, extent, flags), code, "{format:?} {extent:?} {flags:#x}");
        }
    }
    let mut back = array_descriptor([0; 3], CU_AD_FORMAT_FLOAT, 1, 9);
    let (made, mut plane) = (array(CU_AD_FORMAT_BC7_UNORM, 4, 61, 30), CUarray::NULL);
    cu!(cuArray3DGetDescriptor_v2(&mut back, made));
    let told = (back.Width, back.Height, back.Depth, back.Format, back.NumChannels, back.Flags);
    assert_eq!(told, (61, 30, 0, CU_AD_FORMAT_BC7_UNORM, 4, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuArrayGetPlane(&mut plane, made, 0));
}

/// A copy of rows between host memory and the beginning of an array.
fn rows(array: CUarray, host: *mut c_void, width: usize, height: usize, into: bool) -> CUDA_MEMCPY2D {
    let side = |of_host| if of_host { CU_MEMORYTYPE_HOST } else { CU_MEMORYTYPE_ARRAY };
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: side(into),
        srcHost: host,
        srcDevice: CUdeviceptr(0),
        srcArray: array,
        srcPitch: width,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: side(!into),
        dstHost: host,
        dstDevice: CUdeviceptr(0),
        dstArray: array,
        dstPitch: width,
        WidthInBytes: width,
        Height: height,
    }
}

fn fill(array: CUarray, bytes: &[u8], height: usize) {
    let host = bytes.as_ptr().cast_mut().cast();
    cu!(cuMemcpy2D_v2(&rows(array, host, bytes.len() / height, height, true)));
}

pub fn rows_of_blocks_are_copied() {
    new_context();
    for (format, channels, bytes) in COMPRESSED {
        let array = array(format, channels, 61, 62);
        // Sixteen blocks in a row, sixteen rows.
        let all: Vec<u8> = (0..256 * bytes).map(|index| ((index * 7) >> 3) as u8).collect();
        fill(array, &all, 16);
        let mut back = vec![0u8; all.len()];
        let host = back.as_mut_ptr().cast();
        cu!(cuMemcpy2D_v2(&rows(array, host, 16 * bytes, 16, false)));
        assert!(back == all, "{format:?}");
        for (width, height) in [(bytes / 2, 1), (3 * bytes / 2, 1), (17 * bytes, 1), (bytes, 17)] {
            fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy2D_v2(&rows(array, host, width, height, false)));
        }
        let mut two = vec![0u8; 2 * bytes];
        cu!(cuMemcpyAtoH_v2(two.as_mut_ptr().cast(), array, 3 * bytes, 2 * bytes));
        assert_eq!(two, all[3 * bytes..5 * bytes]);
        cu!(cuArrayDestroy(array));
    }
}

/// Reads a texture of two dimensions at two numbers for each thread.
const READER: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 object, .param .u64 places, .param .u64 results)
{
    .reg .b32 %r<2>;
    .reg .f32 %f<6>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [object];
    ld.param.u64 %rd1, [places];
    ld.param.u64 %rd2, [results];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %rd3, %r0, 8;
    add.u64 %rd1, %rd1, %rd3;
    mul.wide.u32 %rd3, %r0, 16;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.v2.f32 {%f0, %f1}, [%rd1];
    tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd0, {%f0, %f1}];
    st.global.v4.f32 [%rd2], {%f2, %f3, %f4, %f5};
    ret;
}
";

fn read_at(object: CUtexObject, places: &[[f32; 2]]) -> Vec<[f32; 4]> {
    let (at, results) = (alloc_with(places), alloc(16 * places.len()));
    let kernel = function(load(READER), c"read");
    let arguments = &mut [arg(&object), arg(&at), arg(&results)];
    assert_eq!(launch(kernel, 1, places.len() as u32, CUstream::NULL, arguments), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    read(results, places.len())
}

/// The code of making a texture of an array, and the texture.
fn texture(
    array: CUarray,
    flags: u32,
    filter: CUfilter_mode,
    view: Option<&CUDA_RESOURCE_VIEW_DESC>,
) -> (CUresult, CUtexObject) {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hArray = array;
    let resource = CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_ARRAY, res, flags: 0 };
    let desc = CUDA_TEXTURE_DESC { filterMode: filter, flags, ..plain_texture() };
    let (mut object, view) = (0, view.map_or(null(), std::ptr::from_ref));
    // SAFETY: descriptions, and a place for the object.
    (unsafe { cuTexObjectCreate(&mut object, &resource, &desc, view) }, object)
}

/// A format, its channels, the integer for 1, a block, and its first, seventh and last texel as an H100 decodes them.
type Answer = (CUarray_format, u32, u32, &'static [u8], [[u32; 4]; 3]);

#[rustfmt::skip]
const ANSWERS: [Answer; 6] = [
    (CU_AD_FORMAT_BC1_UNORM, 4, 255, &[0xde, 0xfb, 0x75, 0x09, 0x2c, 0xae, 0x57, 0x73], [[255, 121, 247, 255], [173, 97, 222, 255], [8, 44, 173, 255]]),
    (CU_AD_FORMAT_BC2_UNORM, 4, 255, &[0x16, 0x27, 0x13, 0x09, 0x75, 0x18, 0x34, 0xbb, 0x21, 0x4b, 0xcd, 0x7b, 0xc7, 0xd8, 0x5e, 0x10], [[107, 115, 74, 102], [123, 121, 107, 153], [74, 101, 8, 187]]),
    (CU_AD_FORMAT_BC3_UNORM, 4, 255, &[0x23, 0xc4, 0xae, 0x20, 0x77, 0x42, 0xf0, 0xc8, 0x61, 0xc5, 0xe9, 0xef, 0x11, 0xf8, 0x99, 0x49], [[239, 255, 74, 0], [225, 230, 52, 166], [239, 255, 74, 0]]),
    (CU_AD_FORMAT_BC4_UNORM, 1, 65535, &[0xff, 0x10, 0x88, 0xc6, 0xfa, 0x88, 0xc6, 0xfa], [[65535, 0, 0, 0], [21320, 0, 0, 0], [12716, 0, 0, 0]]),
    (CU_AD_FORMAT_BC5_UNORM, 2, 65535, &[0xde, 0xfb, 0x75, 0x09, 0x2c, 0xae, 0x57, 0x73, 0x52, 0x27, 0x7a, 0x10, 0x2a, 0x43, 0xf8, 0x3d], [[63115, 19526, 0, 0], [59838, 19526, 0, 0], [59838, 10023, 0, 0]]),
    (CU_AD_FORMAT_BC7_UNORM, 4, 255, &[0x30, 0xb1, 0xa1, 0x12, 0xef, 0x9f, 0x1e, 0xc2, 0xce, 0xe6, 0x05, 0x6d, 0x38, 0xd1, 0x7e, 0x12], [[230, 58, 156, 129], [179, 49, 173, 118], [255, 41, 189, 107]]),
];

pub fn kernels_read_compressed_texels() {
    new_context();
    for (format, channels, one, block, expected) in ANSWERS {
        // The block in the middle of nine.
        let (array, bytes) = (array(format, channels, 12, 12), block.len());
        let mut all = vec![0u8; 9 * bytes];
        all[4 * bytes..5 * bytes].copy_from_slice(block);
        fill(array, &all, 3);
        let (code, object) = texture(array, 0, CU_TR_FILTER_MODE_POINT, None);
        assert_eq!(code, CUDA_SUCCESS);
        let told = read_at(object, &[[4.5, 4.5], [6.5, 5.5], [7.5, 7.5]]);
        for (told, expected) in told.iter().zip(expected) {
            let mut expected = expected.map(|value| (f64::from(value) / f64::from(one)) as f32);
            if channels < 4 {
                expected[3] = 1.0;
            }
            assert_eq!(*told, expected, "{format:?}");
        }
        cu!(cuTexObjectDestroy(object); cuArrayDestroy(array));
    }
}

pub fn compressed_texels_are_filtered_and_srgb() {
    new_context();
    // One block of red, 16 of 31, and one of black.
    let (red, black) = ([0, 0x80, 0, 0x80, 0, 0, 0, 0], [0u8; 8]);
    let linear = array(CU_AD_FORMAT_BC1_UNORM, 4, 8, 4);
    let curved = array(CU_AD_FORMAT_BC1_UNORM_SRGB, 4, 8, 4);
    for array in [linear, curved] {
        fill(array, &[red, black].concat(), 1);
    }
    let (point, between) = (CU_TR_FILTER_MODE_POINT, CU_TR_FILTER_MODE_LINEAR);
    // 16 of 31 is 132 of 255; half of it has 16 bits.
    let (_, object) = texture(linear, 0, between, None);
    let told = read_at(object, &[[3.5, 1.5], [4.0, 1.5], [4.5, 1.5]]);
    let reds: Vec<_> = told.iter().map(|texel| (texel[0] * 65535.0).round()).collect();
    assert_eq!(reds, [33924.0, 16962.0, 0.0]);
    for array in [linear, curved] {
        let (code, object) = texture(array, CU_TRSF_SRGB, point, None);
        assert_eq!(code, CUDA_SUCCESS);
        let told = read_at(object, &[[0.5, 0.5]]);
        assert_eq!(told, [[0.230_468_75, 0.0, 0.0, 1.0]]);
    }
    assert_eq!(texture(curved, 0, point, None).0, CUDA_ERROR_INVALID_VALUE);
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hArray = linear;
    let (mut surface, resource) = (0, CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_ARRAY, res, flags: 0 });
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&mut surface, &resource));
}

pub fn integers_are_seen_as_compressed() {
    new_context();
    let seen = |format, width, height| CUDA_RESOURCE_VIEW_DESC {
        format,
        width,
        height,
        depth: 0,
        firstMipmapLevel: 0,
        lastMipmapLevel: 0,
        firstLayer: 0,
        lastLayer: 0,
        reserved: [0; 16],
    };
    let small =
        [CU_RES_VIEW_FORMAT_UNSIGNED_BC1, CU_RES_VIEW_FORMAT_UNSIGNED_BC4, CU_RES_VIEW_FORMAT_SIGNED_BC4];
    let large = [
        CU_RES_VIEW_FORMAT_UNSIGNED_BC2,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC3,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC5,
        CU_RES_VIEW_FORMAT_SIGNED_BC5,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC6H,
        CU_RES_VIEW_FORMAT_SIGNED_BC6H,
        CU_RES_VIEW_FORMAT_UNSIGNED_BC7,
    ];
    for (format, channels, fitting) in [
        (CU_AD_FORMAT_UNSIGNED_INT32, 2, &small[..]),
        (CU_AD_FORMAT_UNSIGNED_INT32, 4, &large[..]),
        (CU_AD_FORMAT_SIGNED_INT32, 2, &[]),
        (CU_AD_FORMAT_FLOAT, 4, &[]),
        (CU_AD_FORMAT_UNSIGNED_INT16, 4, &[]),
        (CU_AD_FORMAT_BC1_UNORM, 4, &[]),
    ] {
        let array = array(format, channels, 16, 8);
        for view in small.iter().chain(&large) {
            let code = if fitting.contains(view) { CUDA_SUCCESS } else { CUDA_ERROR_INVALID_VALUE };
            let made = |width, height| {
                texture(array, 0, CU_TR_FILTER_MODE_POINT, Some(&seen(*view, width, height))).0
            };
            assert_eq!(made(64, 32), code, "{format:?} x {channels} as {view:?}");
            assert_eq!([made(16, 8), made(60, 32)], [CUDA_ERROR_INVALID_VALUE; 2]);
        }
    }
    // The same block in each of four places.
    let (_, _, one, block, expected) = ANSWERS[0];
    let array = array(CU_AD_FORMAT_UNSIGNED_INT32, 2, 2, 2);
    fill(array, &block.repeat(4), 2);
    let view = seen(CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 8, 8);
    let (code, object) = texture(array, 0, CU_TR_FILTER_MODE_POINT, Some(&view));
    assert_eq!(code, CUDA_SUCCESS);
    let last = expected[2].map(|value| (f64::from(value) / f64::from(one)) as f32);
    assert_eq!(read_at(object, &[[3.5, 3.5], [7.5, 3.5], [3.5, 7.5], [7.5, 7.5]]), [last; 4]);
}

pub fn compressed_arrays_have_levels() {
    new_context();
    let mut mipmapped = CUmipmappedArray::NULL;
    let descriptor = array_descriptor([12, 8, 0], CU_AD_FORMAT_BC1_UNORM, 4, 0);
    cu!(cuMipmappedArrayCreate(&mut mipmapped, &descriptor, 9));
    let sizes = [(12, 8), (6, 4), (3, 2), (1, 1)];
    for (number, (width, height)) in sizes.into_iter().enumerate() {
        let (mut level, mut back) = (CUarray::NULL, descriptor);
        cu!(cuMipmappedArrayGetLevel(&mut level, mipmapped, number as u32); cuArray3DGetDescriptor_v2(&mut back, level));
        assert_eq!((back.Width, back.Height), (width, height));
        let (columns, rows): (usize, usize) = (width.div_ceil(4), height.div_ceil(4));
        // Each level of one grey: all bits of red and blue, of green, or none.
        let colour = [0xf81f_u16, 0x07e0, 0, 0xffff][number].to_le_bytes();
        let block = [colour[0], colour[1], colour[0], colour[1], 0, 0, 0, 0];
        fill(level, &block.repeat(columns * rows), rows);
        let (code, object) = texture(level, 0, CU_TR_FILTER_MODE_POINT, None);
        assert_eq!(code, CUDA_SUCCESS);
        let last = [width as f32 - 0.5, height as f32 - 0.5];
        let expected = [[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0], [1.0; 4]][number];
        assert_eq!(read_at(object, &[[0.5, 0.5], last]), [expected; 2]);
        cu!(cuTexObjectDestroy(object));
    }
    let mut none = CUarray::NULL;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMipmappedArrayGetLevel(&mut none, mipmapped, 4));
    cu!(cuMipmappedArrayDestroy(mipmapped));
}

pub fn words_of_three_tens_and_two() {
    new_context();
    let array = array(CU_AD_FORMAT_UNORM_INT_101010_2, 4, 2, 2);
    let texels = [0x3ff0_1400_u32, 0x7fe0_4801, 0x3bfd_1440, 0x7bed_4841];
    fill(array, &texels.map(u32::to_le_bytes).concat(), 2);
    let (code, object) = texture(array, 0, CU_TR_FILTER_MODE_POINT, None);
    assert_eq!(code, CUDA_SUCCESS);
    let part = |value: f32| value / 1023.0;
    let told = read_at(object, &[[0.5, 0.5], [1.5, 1.5]]);
    let expected = [[0.0, part(5.0), 1.0, 0.0], [part(65.0), part(850.0), part(958.0), 1.0 / 3.0]];
    assert_eq!(told, expected);
    // What an H100 makes of the four.
    let (_, object) = texture(array, 0, CU_TR_FILTER_MODE_LINEAR, None);
    let told = read_at(object, &[[0.5625, 0.53125]])[0].map(|value| (value * 65535.0).round());
    assert_eq!(told, [132.0, 2038.0, 65403.0, 1365.0]);
}
