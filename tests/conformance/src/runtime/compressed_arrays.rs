//! Memory management: arrays of compressed texels, and of texels packed in words.

use super::common::*;

const UP: cudaMemcpyKind = cudaMemcpyHostToDevice;
const DOWN: cudaMemcpyKind = cudaMemcpyDeviceToHost;

const fn channels(bits: [i32; 4], f: cudaChannelFormatKind) -> cudaChannelFormatDesc {
    let [x, y, z, w] = bits;
    cudaChannelFormatDesc { x, y, z, w, f }
}

/// Compressed formats and the bytes of a block.
const COMPRESSED: [(cudaChannelFormatDesc, usize); 14] = [
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed1), 8),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed1SRGB), 8),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed2), 16),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed2SRGB), 16),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed3), 16),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed3SRGB), 16),
    (channels([8, 0, 0, 0], cudaChannelFormatKindUnsignedBlockCompressed4), 8),
    (channels([8, 0, 0, 0], cudaChannelFormatKindSignedBlockCompressed4), 8),
    (channels([8, 8, 0, 0], cudaChannelFormatKindUnsignedBlockCompressed5), 16),
    (channels([8, 8, 0, 0], cudaChannelFormatKindSignedBlockCompressed5), 16),
    (channels([16, 16, 16, 0], cudaChannelFormatKindUnsignedBlockCompressed6H), 16),
    (channels([16, 16, 16, 0], cudaChannelFormatKindSignedBlockCompressed6H), 16),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed7), 16),
    (channels([8; 4], cudaChannelFormatKindUnsignedBlockCompressed7SRGB), 16),
];

const WORD: cudaChannelFormatDesc = channels([10, 10, 10, 2], cudaChannelFormatKindUnsignedNormalized1010102);

fn array(channels: &cudaChannelFormatDesc, width: usize, height: usize) -> cudaArray_t {
    let mut array = cudaArray_t::NULL;
    cuda!(cudaMallocArray(&mut array, channels, width, height, 0));
    array
}

pub fn compressed_arrays_tell_their_channels() {
    for channels in COMPRESSED.iter().map(|(channels, _)| channels).chain([&WORD]) {
        let array = array(channels, 64, 32);
        let (mut told, mut again, mut extent) = (
            cudaChannelFormatDesc { x: 0, ..*channels },
            cudaChannelFormatDesc { x: 0, ..*channels },
            cudaExtent { width: 0, height: 0, depth: 9 },
        );
        cuda!(
            cudaArrayGetInfo(&mut told, &mut extent, null_mut(), array);
            cudaGetChannelDesc(&mut again, cudaArray_const_t(array.0));
        );
        assert_eq!((told, again), (*channels, *channels));
        assert_eq!((extent.width, extent.height, extent.depth), (64, 32, 0));
        cuda!(cudaFreeArray(array));
    }
    // One dimension is too few, and compressed texels are only read.
    let (block, mut none) = (&COMPRESSED[0].0, cudaArray_t::NULL);
    fails!(cudaErrorInvalidValue, cudaMallocArray(&mut none, block, 64, 0, 0));
    fails!(cudaErrorNotSupported, cudaMallocArray(&mut none, block, 64, 64, cudaArraySurfaceLoadStore));
}

pub fn rows_of_blocks_are_copied() {
    for (channels, bytes) in &COMPRESSED {
        let array = array(channels, 61, 62);
        // Sixteen blocks in a row, sixteen rows.
        let all: Vec<u8> = (0..256 * bytes).map(|index| ((index * 7) >> 3) as u8).collect();
        let row = 16 * bytes;
        cuda!(cudaMemcpy2DToArray(array, 0, 0, all.as_ptr().cast(), row, row, 16, UP));
        let (mut back, from) = (vec![0u8; all.len()], cudaArray_const_t(array.0));
        cuda!(cudaMemcpy2DFromArray(back.as_mut_ptr().cast(), row, from, 0, 0, row, 16, DOWN));
        assert!(back == all, "{channels:?}");
        // Two blocks of the third row.
        let mut two = vec![0u8; 2 * bytes];
        let place = two.as_mut_ptr().cast();
        cuda!(cudaMemcpy2DFromArray(place, 2 * bytes, from, 3 * bytes, 2, 2 * bytes, 1, DOWN));
        assert_eq!(two, all[2 * row + 3 * bytes..][..2 * bytes]);
        for (width, height) in [(bytes / 2, 1), (17 * bytes, 1), (*bytes, 17)] {
            fails!(
                cudaErrorInvalidValue,
                cudaMemcpy2DFromArray(place, row + bytes, from, 0, 0, width, height, DOWN)
            );
        }
        cuda!(cudaFreeArray(array));
    }
}

pub fn boxes_of_blocks_are_copied() {
    for (channels, bytes) in [&COMPRESSED[0], &COMPRESSED[12]] {
        let (array, all) =
            (array(channels, 15, 16), Vec::from_iter((0..16 * bytes).map(|index| index as u8)));
        let copy = |array, from: *const u8, into: *mut u8, kind| {
            let pointer = |ptr: *mut u8| cudaPitchedPtr {
                ptr: ptr.cast(),
                pitch: 4 * bytes,
                xsize: 4 * bytes,
                ysize: 4,
            };
            let is_up = kind == UP;
            cudaMemcpy3DParms {
                srcArray: if is_up { cudaArray_t::NULL } else { array },
                srcPos: cudaPos { x: 0, y: 0, z: 0 },
                srcPtr: pointer(from.cast_mut()),
                dstArray: if is_up { array } else { cudaArray_t::NULL },
                dstPos: cudaPos { x: 0, y: 0, z: 0 },
                dstPtr: pointer(into),
                extent: cudaExtent { width: 15, height: 16, depth: 1 },
                kind,
            }
        };
        let mut back = vec![0u8; all.len()];
        cuda!(
            cudaMemcpy3D(&copy(array, all.as_ptr(), null_mut(), UP));
            cudaMemcpy3D(&copy(array, null(), back.as_mut_ptr(), DOWN));
        );
        assert_eq!(back, all, "{channels:?}: an element is a texel");
        // The third block of the second row.
        let mut one = vec![0u8; 4 * bytes];
        let inner = cudaMemcpy3DParms {
            srcPos: cudaPos { x: 8, y: 4, z: 0 },
            extent: cudaExtent { width: 4, height: 4, depth: 1 },
            ..copy(array, null(), one.as_mut_ptr(), DOWN)
        };
        cuda!(cudaMemcpy3D(&inner));
        assert_eq!(one[..*bytes], all[6 * bytes..7 * bytes]);
        assert!(one[*bytes..].iter().all(|byte| *byte == 0));
    }
}

/// Reads a texture at the middle of a texel of each thread.
const READER: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry read(.param .u64 object, .param .u64 results)
{
    .reg .b32 %r<2>;
    .reg .f32 %f<6>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [object];
    ld.param.u64 %rd1, [results];
    mov.u32 %r0, %tid.x;
    cvt.rn.f32.u32 %f0, %r0;
    add.f32 %f0, %f0, 0f3f000000;
    mov.f32 %f1, 0f3f000000;
    mul.wide.u32 %rd2, %r0, 16;
    add.u64 %rd1, %rd1, %rd2;
    tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd0, {%f0, %f1}];
    st.global.v4.f32 [%rd1], {%f2, %f3, %f4, %f5};
    ret;
}
";

/// The code of making a texture of an array, and the texture.
fn texture(array: cudaArray_t, read: cudaTextureReadMode, srgb: i32) -> (cudaError_t, cudaTextureObject_t) {
    filtered(array, read, srgb, cudaFilterModePoint)
}

/// Likewise, filtered so.
fn filtered(
    array: cudaArray_t,
    read: cudaTextureReadMode,
    srgb: i32,
    filter: cudaTextureFilterMode,
) -> (cudaError_t, cudaTextureObject_t) {
    let mut res = cudaResource { reserved: [0; 32] };
    res.array = array;
    let resource = cudaResourceDesc { resType: cudaResourceTypeArray, res, flags: 0 };
    let reading = cudaTextureDesc {
        addressMode: [cudaAddressModeClamp; 3],
        filterMode: filter,
        readMode: read,
        sRGB: srgb,
        borderColor: [0.0; 4],
        normalizedCoords: 0,
        maxAnisotropy: 0,
        mipmapFilterMode: cudaFilterModePoint,
        mipmapLevelBias: 0.0,
        minMipmapLevelClamp: 0.0,
        maxMipmapLevelClamp: 0.0,
        disableTrilinearOptimization: 0,
        seamlessCubemap: 0,
    };
    let mut object = 0;
    // SAFETY: descriptions, and a place for the object.
    (unsafe { cudaCreateTextureObject(&mut object, &resource, &reading, null()) }, object)
}

fn first_texels(object: cudaTextureObject_t) -> Vec<[f32; 4]> {
    let results = malloc(16 * 4);
    let kernel = as_function(kernel_of(library(READER), c"read"));
    assert_eq!(launch(kernel, 1, 4, DEFAULT, &mut [arg(&object), arg(&results)]), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    read(results, 4)
}

pub fn kernels_read_compressed_texels() {
    // A block as an H100 decodes it: its first texel is the second of its colours.
    let block = [0xde_u8, 0xfb, 0x75, 0x09, 0x2c, 0xae, 0x57, 0x73];
    let (linear, curved) = (array(&COMPRESSED[0].0, 4, 4), array(&COMPRESSED[1].0, 4, 4));
    for array in [linear, curved] {
        cuda!(cudaMemcpy2DToArray(array, 0, 0, block.as_ptr().cast(), 8, 8, 1, UP));
    }
    let (code, object) = texture(linear, cudaReadModeNormalizedFloat, 0);
    assert_eq!(code, cudaSuccess);
    let expected = [255.0, 121.0, 247.0, 255.0].map(|value: f64| (value / 255.0) as f32);
    assert_eq!(first_texels(object)[0], expected);
    let (code, object) = texture(curved, cudaReadModeNormalizedFloat, 1);
    assert_eq!(code, cudaSuccess);
    let told = first_texels(object)[0];
    assert_eq!((told[0], told[3]), (1.0, 1.0));
    assert!(told[1] < 0.25, "{told:?}: the middle is darker");
    assert_eq!(texture(curved, cudaReadModeNormalizedFloat, 0).0, cudaErrorInvalidValue);
}

pub fn what_a_format_cannot_be_read_as() {
    use cudaChannelFormatKind as Kind;
    let channel = |bits: i32, kind: Kind| cudaChannelFormatDesc { x: bits, y: 0, z: 0, w: 0, f: kind };
    let (signed, unsigned, float) =
        (cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat);
    let (whole, part) = (cudaReadModeElementType, cudaReadModeNormalizedFloat);
    let no_norm = cudaErrorInvalidNormSetting;
    // Of each format, the codes as integers, between integers, and as fractions of one.
    let cases = [
        (channel(8, unsigned), [cudaSuccess, cudaErrorInvalidFilterSetting, cudaSuccess]),
        (channel(16, signed), [cudaSuccess, cudaErrorInvalidFilterSetting, cudaSuccess]),
        (channel(32, signed), [cudaSuccess, cudaErrorInvalidFilterSetting, cudaErrorInvalidNormSetting]),
        (channel(32, float), [cudaSuccess, cudaSuccess, cudaErrorInvalidNormSetting]),
        (channel(16, float), [cudaSuccess, cudaSuccess, cudaErrorInvalidNormSetting]),
        (channel(8, cudaChannelFormatKindUnsignedNormalized8X1), [no_norm, no_norm, cudaSuccess]),
        (channel(16, cudaChannelFormatKindSignedNormalized16X1), [no_norm, no_norm, cudaSuccess]),
    ];
    for (format, codes) in cases {
        let array = array(&format, 8, 8);
        let told = [(whole, cudaFilterModePoint), (whole, cudaFilterModeLinear), (part, cudaFilterModePoint)]
            .map(|(read, filter)| filtered(array, read, 0, filter).0);
        assert_eq!(told, codes, "{} bits of {:?}", format.x, format.f);
    }
    // Between numbers that are no fractions there is nothing, as what they may be read.
    let words = array(&channel(32, signed), 8, 8);
    assert_eq!(filtered(words, part, 0, cudaFilterModeLinear).0, cudaErrorInvalidFilterSetting);
    assert_eq!(filtered(cudaArray_t::NULL, whole, 0, cudaFilterModePoint).0, cudaErrorInvalidResourceHandle);
}

pub fn words_of_three_tens_and_two() {
    let array = array(&WORD, 4, 1);
    let texels = [0x3ff_u32, 0x3ff << 10, 0x3ff << 20, 3 << 30];
    cuda!(cudaMemcpy2DToArray(array, 0, 0, texels.as_ptr().cast(), 16, 16, 1, UP));
    assert_eq!(texture(array, cudaReadModeNormalizedFloat, 0).0, cudaErrorInvalidNormSetting);
    let (code, object) = texture(array, cudaReadModeElementType, 0);
    assert_eq!(code, cudaSuccess);
    let one_of = |at| std::array::from_fn(|index| if index == at { 1.0 } else { 0.0 });
    assert_eq!(first_texels(object), Vec::from_iter((0..4).map(one_of)));
}
