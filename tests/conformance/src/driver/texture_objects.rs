//! Texture object management, surface object management.

use super::common::*;

const FLOAT: CUarray_format = CU_AD_FORMAT_FLOAT;

/// An array of 8 × 8 texels, or of 8 × 8 × `depth`.
fn array(depth: usize, format: CUarray_format, channels: u32, flags: u32) -> CUarray {
    let descriptor = array_descriptor([8, 8, depth], format, channels, flags);
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &descriptor));
    array
}

fn floats() -> CUarray {
    array(0, FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST)
}

fn mipmapped(levels: u32) -> CUmipmappedArray {
    let descriptor =
        CUDA_ARRAY3D_DESCRIPTOR { Width: 16, Height: 16, Depth: 0, Format: FLOAT, NumChannels: 1, Flags: 0 };
    let mut array = CUmipmappedArray::NULL;
    cu!(cuMipmappedArrayCreate(&mut array, &descriptor, levels));
    array
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hArray = array;
    CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_ARRAY, res, flags: 0 }
}

fn of_mipmapped(array: CUmipmappedArray) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hMipmappedArray = array;
    CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, res, flags: 0 }
}

fn of_linear(
    address: CUdeviceptr,
    format: CUarray_format,
    channels: u32,
    bytes: usize,
) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.linear = CUDA_RESOURCE_LINEAR { devPtr: address, format, numChannels: channels, sizeInBytes: bytes };
    CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_LINEAR, res, flags: 0 }
}

fn of_rows(address: CUdeviceptr, width: usize, height: usize, pitch: usize) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.pitch2D = CUDA_RESOURCE_PITCH2D {
        devPtr: address,
        format: FLOAT,
        numChannels: 1,
        width,
        height,
        pitchInBytes: pitch,
    };
    CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_PITCH2D, res, flags: 0 }
}

fn whole(format: CUresourceViewFormat, size: usize, depth: usize) -> CUDA_RESOURCE_VIEW_DESC {
    CUDA_RESOURCE_VIEW_DESC {
        format,
        width: size,
        height: size,
        depth,
        firstMipmapLevel: 0,
        lastMipmapLevel: 0,
        firstLayer: 0,
        lastLayer: 0,
        reserved: [0; 16],
    }
}

/// The code of making a texture object, which is destroyed again.
fn made(
    resource: &CUDA_RESOURCE_DESC,
    texture: &CUDA_TEXTURE_DESC,
    view: Option<&CUDA_RESOURCE_VIEW_DESC>,
) -> CUresult {
    let mut object = 0;
    let view = view.map_or(null(), std::ptr::from_ref);
    // SAFETY: pointers to all of them, the view's or null.
    let code = unsafe { cuTexObjectCreate(&mut object, resource, texture, view) };
    if code == CUDA_SUCCESS {
        cu!(cuTexObjectDestroy(object));
    }
    code
}

pub fn a_texture_object_tells_what_it_was_made_of() {
    new_context();
    let array = floats();
    let texture = CUDA_TEXTURE_DESC {
        addressMode: [CU_TR_ADDRESS_MODE_WRAP, CU_TR_ADDRESS_MODE_MIRROR, CU_TR_ADDRESS_MODE_BORDER],
        filterMode: CU_TR_FILTER_MODE_LINEAR,
        flags: CU_TRSF_NORMALIZED_COORDINATES,
        maxAnisotropy: 4,
        mipmapFilterMode: CU_TR_FILTER_MODE_LINEAR,
        mipmapLevelBias: 0.5,
        minMipmapLevelClamp: 1.0,
        maxMipmapLevelClamp: 2.0,
        borderColor: [1.0, 2.0, 3.0, 4.0],
        ..plain_texture()
    };
    let view = whole(CU_RES_VIEW_FORMAT_UINT_1X32, 8, 0);
    let point = CUDA_TEXTURE_DESC { filterMode: CU_TR_FILTER_MODE_POINT, ..texture };
    let (mut object, mut viewed) = (0, 0);
    cu!(
        cuTexObjectCreate(&mut object, &of_array(array), &texture, null());
        cuTexObjectCreate(&mut viewed, &of_array(array), &point, &view);
    );
    assert!(object != 0 && viewed != 0 && object != viewed);
    let (mut resource, mut told) = (of_array(CUarray::NULL), plain_texture());
    let mut told_view = whole(CU_RES_VIEW_FORMAT_NONE, 0, 9);
    cu!(
        cuTexObjectGetResourceDesc(&mut resource, object);
        cuTexObjectGetTextureDesc(&mut told, object);
        cuTexObjectGetResourceViewDesc(&mut told_view, viewed);
    );
    // SAFETY: the type is an array's.
    assert_eq!((resource.resType, unsafe { resource.res.hArray }), (CU_RESOURCE_TYPE_ARRAY, array));
    assert_eq!(told.addressMode, texture.addressMode);
    assert_eq!((told.filterMode, told.mipmapFilterMode), (texture.filterMode, texture.mipmapFilterMode));
    assert_eq!((told.flags, told.maxAnisotropy, told.mipmapLevelBias), (texture.flags, 4, 0.5));
    assert_eq!((told.minMipmapLevelClamp, told.maxMipmapLevelClamp), (1.0, 2.0));
    if ours_only("NVIDIA's driver does not tell the color of the border") {
        assert_eq!(told.borderColor, texture.borderColor);
    }
    assert_eq!((told_view.format, told_view.width, told_view.height), (view.format, 8, 8));
    // One that was made without a view tells of none.
    cu!(cuTexObjectGetResourceViewDesc(&mut told_view, object));
    cu!(cuTexObjectDestroy(object); cuTexObjectDestroy(viewed));
}

pub fn memory_of_every_kind_becomes_a_texture() {
    new_context();
    let p = alloc(64 * 64);
    let normalized = CUDA_TEXTURE_DESC { flags: CU_TRSF_NORMALIZED_COORDINATES, ..plain_texture() };
    for (resource, texture) in [
        (of_array(floats()), plain_texture()),
        (of_array(array(8, FLOAT, 1, 0)), plain_texture()),
        (of_array(array(3, FLOAT, 4, CUDA_ARRAY3D_LAYERED)), plain_texture()),
        (of_array(array(6, CU_AD_FORMAT_HALF, 2, CUDA_ARRAY3D_CUBEMAP)), normalized),
        (of_mipmapped(mipmapped(5)), normalized),
        (of_linear(p, FLOAT, 1, 4096), plain_texture()),
        (of_rows(p, 16, 64, 64), plain_texture()),
    ] {
        let (mut object, mut back) = (0, of_linear(CUdeviceptr(1), FLOAT, 1, 1));
        cu!(
            cuTexObjectCreate(&mut object, &resource, &texture, null());
            cuTexObjectGetResourceDesc(&mut back, object);
            cuTexObjectDestroy(object);
        );
        assert_eq!(back.resType, resource.resType);
    }
}

pub fn pointers_and_handles_are_checked() {
    new_context();
    let (good, texture, mut object) = (of_array(floats()), plain_texture(), 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(null_mut(), &good, &texture, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&mut object, null(), &texture, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&mut object, &good, null(), null()));
    cu!(cuTexObjectCreate(&mut object, &good, &texture, null()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(null_mut(), object));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetTextureDesc(null_mut(), object));
    let (mut resource, mut told, mut surface) = (good, texture, 0);
    let mut view = whole(CU_RES_VIEW_FORMAT_NONE, 0, 0);
    cu!(cuSurfObjectCreate(&mut surface, &good));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&mut resource, surface));
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&mut resource, object));
    cu!(cuTexObjectDestroy(object); cuSurfObjectDestroy(surface));
    for gone in [object, 0] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&mut resource, gone));
        // What is not there need not be destroyed.
        cu!(cuTexObjectDestroy(gone); cuSurfObjectDestroy(gone));
    }
    if !ours_only("NVIDIA's driver does not check all of it") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceViewDesc(null_mut(), object));
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(null_mut(), &good));
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&mut surface, null()));
    for gone in [object, surface, 0, 0x7777_0000] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetTextureDesc(&mut told, gone));
        fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceViewDesc(&mut view, gone));
        fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&mut resource, gone));
    }
    // A surface is no texture, and stays.
    cu!(
        cuSurfObjectCreate(&mut surface, &good);
        cuTexObjectDestroy(surface);
        cuSurfObjectGetResourceDesc(&mut resource, surface);
    );
}

pub fn resources_are_checked() {
    new_context();
    let (texture, array) = (plain_texture(), floats());
    let refused = |resource: CUDA_RESOURCE_DESC| {
        assert_eq!(made(&resource, &texture, None), CUDA_ERROR_INVALID_VALUE);
    };
    refused(CUDA_RESOURCE_DESC { resType: CUresourcetype(4), ..of_array(array) });
    refused(of_array(CUarray::NULL));
    let p = alloc(1 << 20);
    let at = |offset| CUdeviceptr(p.0 + offset);
    refused(of_linear(at(4), FLOAT, 1, 400));
    refused(of_linear(p, FLOAT, 3, 400));
    refused(of_linear(p, CUarray_format(7), 1, 400));
    refused(of_linear(CUdeviceptr(0), FLOAT, 1, 400));
    refused(of_rows(at(4), 16, 4, 64));
    refused(of_rows(at(256), 16, 4, 64));
    refused(of_rows(p, 15, 4, 60));
    refused(of_rows(p, 12, 4, 48));
    refused(of_rows(CUdeviceptr(0), 16, 4, 64));
    let high = attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) as usize;
    refused(of_rows(p, 4, high + 1, 32));
    let wide = attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) as usize;
    refused(of_rows(p, wide + 1, 1, (4 * (wide + 1)).next_multiple_of(32)));
    refused(CUDA_RESOURCE_DESC { flags: 1, ..of_array(array) });
    // How far memory reaches is the program's word, to the byte or not.
    for bytes in [0, 3, 401, 1 << 30] {
        assert_eq!(made(&of_linear(p, FLOAT, 1, bytes), &texture, None), CUDA_SUCCESS, "{bytes}");
    }
    for bytes in [1 << 33, usize::MAX] {
        refused(of_linear(p, FLOAT, 1, bytes));
    }
    for rows in [of_rows(p, 17, 4, 64), of_rows(p, 4, 1, 0), of_rows(p, 16, 65000, 128)] {
        assert_eq!(made(&rows, &texture, None), CUDA_SUCCESS);
    }
    // One of nothing can be made.
    for rows in [of_rows(p, 0, 4, 64), of_rows(p, 16, 0, 64), of_rows(p, 0, 0, 0)] {
        assert_eq!(made(&rows, &texture, None), CUDA_SUCCESS);
    }
    if !ours_only("NVIDIA's driver follows handles of what is gone") {
        return;
    }
    cu!(cuArrayDestroy(array));
    refused(of_array(array));
}

pub fn ways_to_read_are_checked() {
    new_context();
    let (floats, bytes) = (floats(), array(0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0));
    let read = |array, change: &dyn Fn(&mut CUDA_TEXTURE_DESC)| {
        let mut texture = plain_texture();
        change(&mut texture);
        made(&of_array(array), &texture, None)
    };
    assert_eq!(read(floats, &|t| t.addressMode = [CU_TR_ADDRESS_MODE_WRAP; 3]), CUDA_SUCCESS);
    assert_eq!(read(floats, &|t| t.maxAnisotropy = 99), CUDA_SUCCESS);
    assert_eq!(read(floats, &|t| t.filterMode = CU_TR_FILTER_MODE_LINEAR), CUDA_SUCCESS);
    assert_eq!(read(bytes, &|t| t.filterMode = CU_TR_FILTER_MODE_LINEAR), CUDA_SUCCESS);
    assert_eq!(read(bytes, &|t| t.flags = CU_TRSF_READ_AS_INTEGER), CUDA_SUCCESS);
    let integers = |t: &mut CUDA_TEXTURE_DESC| {
        (t.filterMode, t.flags) = (CU_TR_FILTER_MODE_LINEAR, CU_TRSF_READ_AS_INTEGER);
    };
    assert_eq!(read(bytes, &integers), CUDA_SUCCESS);
    assert_eq!(read(floats, &|t| t.addressMode[2] = CUaddress_mode(9)), CUDA_SUCCESS, "there is no z");
    assert_eq!(read(floats, &|t| t.mipmapLevelBias = f32::NAN), CUDA_SUCCESS);
    assert_eq!(made(&of_mipmapped(mipmapped(2)), &plain_texture(), None), CUDA_SUCCESS);
    assert_eq!(read(floats, &|t| t.addressMode[0] = CUaddress_mode(4)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(read(floats, &|t| t.filterMode = CUfilter_mode(2)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(read(floats, &|t| t.mipmapFilterMode = CUfilter_mode(2)), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(read(floats, &|t| t.flags = 0x80), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(read(floats, &|t| t.flags = CU_TRSF_SEAMLESS_CUBEMAP), CUDA_ERROR_INVALID_VALUE);
    // It is told again as it was given.
    let (mut object, mut told) = (0, plain_texture());
    let wide = CUDA_TEXTURE_DESC { maxAnisotropy: 1000, ..plain_texture() };
    cu!(
        cuTexObjectCreate(&mut object, &of_array(floats), &wide, null());
        cuTexObjectGetTextureDesc(&mut told, object);
    );
    assert_eq!(told.maxAnisotropy, 1000);
}

pub fn views_are_checked() {
    new_context();
    let (flat, layers) = (floats(), array(5, FLOAT, 1, CUDA_ARRAY3D_LAYERED));
    let same = whole(CU_RES_VIEW_FORMAT_FLOAT_1X32, 8, 0);
    let seen = |array, view| made(&of_array(array), &plain_texture(), Some(&view));
    assert_eq!(seen(flat, same), CUDA_SUCCESS);
    assert_eq!(
        seen(flat, CUDA_RESOURCE_VIEW_DESC { format: CU_RES_VIEW_FORMAT_UINT_1X32, ..same }),
        CUDA_SUCCESS
    );
    let some = CUDA_RESOURCE_VIEW_DESC { depth: 5, firstLayer: 1, lastLayer: 3, ..same };
    assert_eq!(seen(layers, some), CUDA_SUCCESS);
    let p = alloc(4096);
    assert_eq!(made(&of_linear(p, FLOAT, 1, 4096), &plain_texture(), Some(&same)), CUDA_SUCCESS);
    for wrong in [
        CUDA_RESOURCE_VIEW_DESC { width: 4, ..same },
        CUDA_RESOURCE_VIEW_DESC { height: 0, ..same },
        CUDA_RESOURCE_VIEW_DESC { depth: 1, ..same },
        CUDA_RESOURCE_VIEW_DESC { lastMipmapLevel: 1, ..same },
        CUDA_RESOURCE_VIEW_DESC { lastLayer: 1, ..same },
        CUDA_RESOURCE_VIEW_DESC { format: CU_RES_VIEW_FORMAT_NONE, ..same },
        CUDA_RESOURCE_VIEW_DESC { format: CU_RES_VIEW_FORMAT_UINT_1X16, ..same },
        CUDA_RESOURCE_VIEW_DESC { format: CUresourceViewFormat(99), ..same },
    ] {
        assert_eq!(seen(flat, wrong), CUDA_ERROR_INVALID_VALUE, "{wrong:?}");
    }
    let other = CUDA_RESOURCE_VIEW_DESC { format: CU_RES_VIEW_FORMAT_FLOAT_2X16, ..same };
    assert_eq!(seen(flat, other), CUDA_SUCCESS, "as many bits");
    let normalized = CUDA_TEXTURE_DESC { flags: CU_TRSF_NORMALIZED_COORDINATES, ..plain_texture() };
    let levels = of_mipmapped(mipmapped(5));
    // From the first to the last, or to the end if that comes first.
    for (first, last, code) in [
        (0, 0, CUDA_SUCCESS),
        (1, 3, CUDA_SUCCESS),
        (0, 4, CUDA_SUCCESS),
        (0, 5, CUDA_SUCCESS),
        (3, 1, CUDA_ERROR_INVALID_VALUE),
    ] {
        let view = CUDA_RESOURCE_VIEW_DESC {
            width: 16,
            height: 16,
            firstMipmapLevel: first,
            lastMipmapLevel: last,
            ..same
        };
        assert_eq!(made(&levels, &normalized, Some(&view)), code, "levels {first} to {last}");
        let view = CUDA_RESOURCE_VIEW_DESC { firstLayer: first, lastLayer: last, ..some };
        assert_eq!(seen(layers, view), code, "layers {first} to {last}");
    }
    let shallow = CUDA_RESOURCE_VIEW_DESC { depth: 3, ..some };
    assert_eq!(seen(layers, shallow), CUDA_ERROR_INVALID_VALUE, "as many layers as there are");
    if !ours_only("what NVIDIA's driver makes of layers that there are not is not known") {
        return;
    }
    for (first, last) in [(5, 5), (u32::MAX, u32::MAX)] {
        let view = CUDA_RESOURCE_VIEW_DESC { firstLayer: first, lastLayer: last, ..some };
        assert_eq!(seen(layers, view), CUDA_ERROR_INVALID_VALUE, "{first} to {last}");
    }
}

pub fn surfaces_are_of_arrays() {
    new_context();
    let (array, mut surface, mut back) = (floats(), 0, of_array(CUarray::NULL));
    cu!(
        cuSurfObjectCreate(&mut surface, &of_array(array));
        cuSurfObjectGetResourceDesc(&mut back, surface);
    );
    // SAFETY: the type is an array's.
    assert_eq!((back.resType, unsafe { back.res.hArray }), (CU_RESOURCE_TYPE_ARRAY, array));
    cu!(cuSurfObjectDestroy(surface));
    // One that was not made for surfaces will do.
    cu!(cuSurfObjectCreate(&mut surface, &of_array(self::array(0, FLOAT, 1, 0))));
    cu!(cuSurfObjectDestroy(surface));
    // A level of a mipmapped array is an array.
    let (levels, mut level) = (mipmapped(3), CUarray::NULL);
    cu!(
        cuMipmappedArrayGetLevel(&mut level, levels, 2);
        cuSurfObjectCreate(&mut surface, &of_array(level));
        cuSurfObjectDestroy(surface);
    );
    let p = alloc(4096);
    for wrong in [of_linear(p, FLOAT, 1, 4096), of_rows(p, 16, 4, 64), of_mipmapped(levels)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&mut surface, &wrong));
    }
}

pub fn objects_go_with_their_context() {
    let context = new_context();
    let (mut texture, mut surface) = (0, 0);
    cu!(
        cuTexObjectCreate(&mut texture, &of_array(floats()), &plain_texture(), null());
        cuSurfObjectCreate(&mut surface, &of_array(floats()));
        cuCtxDestroy_v2(context);
    );
    let mut back = of_array(CUarray::NULL);
    if ours_only("NVIDIA's driver does not check handles") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectGetResourceDesc(&mut back, texture));
        fails!(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&mut back, surface));
    }
    let array = of_array(CUarray(16));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuTexObjectCreate(&mut texture, &array, &plain_texture(), null()));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuSurfObjectCreate(&mut surface, &array));
}
