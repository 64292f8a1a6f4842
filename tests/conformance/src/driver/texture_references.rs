//! Texture reference management, surface reference management (both deprecated).

use super::common::*;

const FLOAT: CUarray_format = CU_AD_FORMAT_FLOAT;

const REFERENCES: &str = ".version 7.0
.target sm_70
.address_size 64
.global .texref plane;
.global .texref row;
.global .surfref surface;
.global .u32 number;
.visible .entry add(.param .u64 results)
{
    .reg .b32 %r<6>;
    .reg .f32 %f<10>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd0, [results];
    mov.u32 %r0, %tid.x;
    cvt.rn.f32.u32 %f0, %r0;
    add.f32 %f0, %f0, 0f3F000000;
    mov.f32 %f1, 0f3FC00000;
    tex.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [plane, {%f0, %f1}];
    tex.1d.v4.f32.s32 {%f6, %f7, %f8, %f9}, [row, {%r0}];
    add.f32 %f2, %f2, %f6;
    mul.wide.u32 %rd1, %r0, 4;
    add.u64 %rd0, %rd0, %rd1;
    st.global.f32 [%rd0], %f2;
    ret;
}
.visible .entry store()
{
    .reg .b32 %r<4>;
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    mov.u32 %r2, 0;
    sust.b.2d.b32.trap [surface, {%r1, %r2}], {%r0};
    ret;
}
";

/// An array of 4 × 2 texels.
fn array(format: CUarray_format, flags: u32) -> CUarray {
    let descriptor = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 4,
        Height: 2,
        Depth: 0,
        Format: format,
        NumChannels: 1,
        Flags: flags,
    };
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &descriptor));
    array
}

fn plane() -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D {
        srcXInBytes: 0,
        srcY: 0,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: null(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        srcPitch: 16,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: CU_MEMORYTYPE_ARRAY,
        dstHost: null_mut(),
        dstDevice: CUdeviceptr(0),
        dstArray: CUarray::NULL,
        dstPitch: 16,
        WidthInBytes: 16,
        Height: 2,
    }
}

fn texture(module: CUmodule, name: &CStr) -> CUtexref {
    let mut reference = CUtexref::NULL;
    cu!(cuModuleGetTexRef(&mut reference, module, name.as_ptr()));
    reference
}

fn made() -> CUtexref {
    new_context();
    let mut reference = CUtexref::NULL;
    cu!(cuTexRefCreate(&mut reference));
    reference
}

pub fn kernels_read_what_references_are_bound_to() {
    new_context();
    let module = load(REFERENCES);
    let (flat, row) = (texture(module, c"plane"), texture(module, c"row"));
    assert_ne!(flat, row);
    assert_eq!(texture(module, c"plane"), flat, "the same each time");
    let (floats, texels) = (array(FLOAT, 0), [0f32, 1., 2., 3., 10., 11., 12., 13.]);
    let p = alloc_with(&[100f32, 200., 300., 400.]);
    let kernel = function(module, c"add");
    let results = alloc(16);
    let run = || {
        assert_eq!(launch(kernel, 1, 4, CUstream::NULL, &mut [arg(&results)]), CUDA_SUCCESS);
        read::<f32>(results, 4)
    };
    let mut offset = 99;
    cu!(
        cuMemcpy2D_v2(&CUDA_MEMCPY2D { srcHost: texels.as_ptr().cast(), dstArray: floats, ..plane() });
        cuTexRefSetArray(flat, floats, CU_TRSA_OVERRIDE_FORMAT);
        cuTexRefSetFormat(row, FLOAT, 1);
        cuTexRefSetAddress_v2(&mut offset, row, p, 16);
        cuParamSetTexRef(kernel, CU_PARAM_TR_DEFAULT, flat);
    );
    assert_eq!(offset, 0);
    assert_eq!(run(), [110., 211., 312., 413.]);
    // Rows of memory in the array's place: the second row begins at the pitch.
    let rows = alloc_with(&Vec::from_iter((0..16).map(|index| index as f32)));
    let descriptor = CUDA_ARRAY_DESCRIPTOR { Width: 4, Height: 2, Format: FLOAT, NumChannels: 1 };
    cu!(cuTexRefSetAddress2D_v3(flat, &descriptor, rows, 32));
    assert_eq!(run(), [108., 209., 310., 411.]);
    cu!(cuTexRefSetAddress2D_v2(flat, &descriptor, rows, 32));
    assert_eq!(run(), [108., 209., 310., 411.]);
    // A level of detail of a mipmapped array is one as well.
    let mut levels = CUmipmappedArray::NULL;
    let mipmapped =
        CUDA_ARRAY3D_DESCRIPTOR { Width: 4, Height: 2, Depth: 0, Format: FLOAT, NumChannels: 1, Flags: 0 };
    let mut level = CUarray::NULL;
    cu!(
        cuMipmappedArrayCreate(&mut levels, &mipmapped, 2);
        cuMipmappedArrayGetLevel(&mut level, levels, 0);
        cuMemcpy2D_v2(&CUDA_MEMCPY2D { srcHost: texels.as_ptr().cast(), dstArray: level, ..plane() });
        cuTexRefSetArray(flat, level, CU_TRSA_OVERRIDE_FORMAT);
    );
    assert_eq!(run(), [110., 211., 312., 413.]);
    // Coordinates from 0 to 1: all but the first are beyond the end, and the first is in its middle.
    cu!(cuTexRefSetFlags(flat, CU_TRSF_NORMALIZED_COORDINATES));
    assert_eq!(run(), [112., 213., 313., 413.]);
}

pub fn kernels_write_what_surface_references_are_bound_to() {
    new_context();
    let module = load(REFERENCES);
    let (mut surface, mut again, mut told) = (CUsurfref::NULL, CUsurfref::NULL, CUarray::NULL);
    cu!(
        cuModuleGetSurfRef(&mut surface, module, c"surface".as_ptr());
        cuModuleGetSurfRef(&mut again, module, c"surface".as_ptr());
    );
    assert_eq!(surface, again);
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfRefGetArray(&mut told, surface));
    let (plain, integers) = (array(FLOAT, 0), array(CU_AD_FORMAT_UNSIGNED_INT32, CUDA_ARRAY3D_SURFACE_LDST));
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfRefSetArray(surface, plain, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuSurfRefSetArray(surface, integers, 1));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuSurfRefSetArray(surface, CUarray::NULL, 0));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuSurfRefGetArray(&mut told, CUsurfref::NULL));
    cu!(cuSurfRefSetArray(surface, integers, 0); cuSurfRefGetArray(&mut told, surface));
    assert_eq!(told, integers);
    assert_eq!(launch(function(module, c"store"), 1, 4, CUstream::NULL, &mut []), CUDA_SUCCESS);
    let mut row = [9u32; 4];
    cu!(cuMemcpyAtoH_v2(row.as_mut_ptr().cast(), integers, 0, 16));
    assert_eq!(row, [0, 1, 2, 3]);
}

pub fn references_are_found_by_name_and_kind() {
    new_context();
    let module = load(REFERENCES);
    let (mut texture, mut surface) = (CUtexref::NULL, CUsurfref::NULL);
    for name in [c"nobody", c"surface", c"number"] {
        fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetTexRef(&mut texture, module, name.as_ptr()));
    }
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetSurfRef(&mut surface, module, c"plane".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(null_mut(), module, c"plane".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(&mut texture, module, null()));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleGetTexRef(&mut texture, CUmodule::NULL, c"plane".as_ptr()));
    if !ours_only("what NVIDIA's driver does with handles of what is gone is not known") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetSurfRef(null_mut(), module, c"surface".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetSurfRef(&mut surface, module, null()));
    let (kernel, plane) = (function(module, c"add"), self::texture(module, c"plane"));
    fails!(CUDA_ERROR_INVALID_VALUE, cuParamSetTexRef(kernel, 0, plane));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuParamSetTexRef(kernel, CU_PARAM_TR_DEFAULT, CUtexref::NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuParamSetTexRef(CUfunction::NULL, CU_PARAM_TR_DEFAULT, plane));
    // A module's own goes with the module.
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefDestroy(plane));
    cu!(cuModuleUnload(module));
    let mut flags = 0;
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&mut flags, plane));
}

pub fn what_is_set_is_told() {
    let t = made();
    let (mut format, mut channels, mut flags) = (CUarray_format(99), 99, 99);
    let (mut mode, mut filter, mut mip_filter) = (CUaddress_mode(99), CUfilter_mode(99), CUfilter_mode(99));
    let (mut bias, mut least, mut most, mut anisotropy) = (9f32, 9f32, 9f32, 9);
    let mut border = [9f32; 4];
    cu!(
        cuTexRefGetFormat(&mut format, &mut channels, t);
        cuTexRefGetFlags(&mut flags, t);
        cuTexRefGetFilterMode(&mut filter, t);
        cuTexRefGetMipmapFilterMode(&mut mip_filter, t);
        cuTexRefGetMipmapLevelBias(&mut bias, t);
        cuTexRefGetMipmapLevelClamp(&mut least, &mut most, t);
        cuTexRefGetMaxAnisotropy(&mut anisotropy, t);
        cuTexRefGetBorderColor(border.as_mut_ptr(), t);
    );
    assert_eq!((format, channels, flags, anisotropy), (FLOAT, 1, 0, 0));
    assert_eq!((filter, mip_filter), (CU_TR_FILTER_MODE_POINT, CU_TR_FILTER_MODE_POINT));
    assert_eq!((bias, least, most, border), (0., 0., 0., [0.; 4]));
    for dim in 0..3 {
        cu!(cuTexRefGetAddressMode(&mut mode, t, dim));
        assert_eq!(mode, CU_TR_ADDRESS_MODE_CLAMP);
    }
    let colour = [1f32, 2., 3., 4.];
    cu!(
        cuTexRefSetFormat(t, CU_AD_FORMAT_SIGNED_INT16, 2);
        cuTexRefSetFlags(t, CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_READ_AS_INTEGER);
        cuTexRefSetAddressMode(t, 1, CU_TR_ADDRESS_MODE_MIRROR);
        cuTexRefSetFilterMode(t, CU_TR_FILTER_MODE_LINEAR);
        cuTexRefSetMipmapFilterMode(t, CU_TR_FILTER_MODE_LINEAR);
        cuTexRefSetMipmapLevelBias(t, 0.5);
        cuTexRefSetMipmapLevelClamp(t, 1.5, 2.5);
        cuTexRefSetMaxAnisotropy(t, 99);
        cuTexRefSetBorderColor(t, colour.as_ptr().cast_mut());
        cuTexRefGetFormat(&mut format, &mut channels, t);
        cuTexRefGetFlags(&mut flags, t);
        cuTexRefGetAddressMode(&mut mode, t, 1);
        cuTexRefGetFilterMode(&mut filter, t);
        cuTexRefGetMipmapFilterMode(&mut mip_filter, t);
        cuTexRefGetMipmapLevelBias(&mut bias, t);
        cuTexRefGetMipmapLevelClamp(&mut least, &mut most, t);
        cuTexRefGetMaxAnisotropy(&mut anisotropy, t);
        cuTexRefGetBorderColor(border.as_mut_ptr(), t);
    );
    assert_eq!((format, channels, flags, anisotropy), (CU_AD_FORMAT_SIGNED_INT16, 2, 3, 99));
    assert_eq!((mode, filter), (CU_TR_ADDRESS_MODE_MIRROR, CU_TR_FILTER_MODE_LINEAR));
    assert_eq!((mip_filter, bias, least, most), (CU_TR_FILTER_MODE_LINEAR, 0.5, 1.5, 2.5));
    assert_eq!(border, colour);
    cu!(cuTexRefGetFormat(null_mut(), null_mut(), t); cuTexRefDestroy(t));
}

pub fn a_reference_tells_what_it_is_bound_to() {
    let t = made();
    let (mut address, mut told, mut told_levels) = (CUdeviceptr(9), CUarray::NULL, CUmipmappedArray::NULL);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddress_v2(&mut address, t));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&mut told, t));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetMipmappedArray(&mut told_levels, t));
    let (p, mut offset) = (alloc(4096), 99);
    cu!(cuTexRefSetAddress_v2(&mut offset, t, p, 64); cuTexRefGetAddress_v2(&mut address, t));
    assert_eq!((offset, address), (0, p));
    // What lies behind an aligned address is told, if there is a place for it.
    cu!(cuTexRefSetAddress_v2(&mut offset, t, CUdeviceptr(p.0 + 520), 64));
    assert_eq!(offset, 8);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress_v2(null_mut(), t, CUdeviceptr(p.0 + 16), 64));
    cu!(cuTexRefSetAddress_v2(null_mut(), t, p, 64); cuTexRefSetAddress_v2(&mut offset, t, CUdeviceptr(0), 0));
    let descriptor = CUDA_ARRAY_DESCRIPTOR { Width: 8, Height: 8, Format: FLOAT, NumChannels: 1 };
    cu!(cuTexRefSetAddress2D_v3(t, &descriptor, p, 64); cuTexRefGetAddress_v2(&mut address, t));
    assert_eq!(address, p);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(t, &descriptor, CUdeviceptr(p.0 + 4), 64));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(t, &descriptor, p, 36));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(t, &descriptor, p, 16));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D_v3(t, null(), p, 64));
    let floats = array(FLOAT, 0);
    cu!(cuTexRefSetArray(t, floats, CU_TRSA_OVERRIDE_FORMAT); cuTexRefGetArray(&mut told, t));
    assert_eq!(told, floats);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddress_v2(&mut address, t));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetArray(t, floats, 2));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetArray(t, CUarray::NULL, 1));
    let mipmapped =
        CUDA_ARRAY3D_DESCRIPTOR { Width: 8, Height: 8, Depth: 0, Format: FLOAT, NumChannels: 1, Flags: 0 };
    let mut levels = CUmipmappedArray::NULL;
    cu!(
        cuMipmappedArrayCreate(&mut levels, &mipmapped, 3);
        cuTexRefSetMipmappedArray(t, levels, CU_TRSA_OVERRIDE_FORMAT);
        cuTexRefGetMipmappedArray(&mut told_levels, t);
    );
    assert_eq!(told_levels, levels);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetArray(&mut told, t));
}

pub fn the_first_version_binds_low_memory() {
    let t = made();
    let (mut low, mut offset, mut address) = (0, 99, 9);
    let descriptor = CUDA_ARRAY_DESCRIPTOR_v1 { Width: 8, Height: 8, Format: FLOAT, NumChannels: 1 };
    let first = "NVIDIA's driver refuses functions of the first version";
    fails!(differs(first, CUDA_SUCCESS, CUDA_ERROR_INVALID_CONTEXT), cuMemAlloc(&mut low, 4096));
    if !is_ours() {
        return;
    }
    cu!(
        cuTexRefSetAddress(&mut offset, t, low, 64);
        cuTexRefGetAddress(&mut address, t);
    );
    assert_eq!((offset, address), (0, low));
    cu!(cuTexRefSetAddress2D(t, &descriptor, low, 64));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(t, &descriptor, low + 4, 64));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddress2D(t, null(), low, 64));
}

pub fn settings_are_checked() {
    let t = made();
    const CLAMP: CUaddress_mode = CU_TR_ADDRESS_MODE_CLAMP;
    let (mut mode, mut flags) = (CLAMP, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefCreate(null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(t, FLOAT, 3));
    for dim in [-1, 3] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(t, dim, CLAMP));
        fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetAddressMode(&mut mode, t, dim));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetMipmapFilterMode(t, CUfilter_mode(9)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(t, CU_TRSF_SEAMLESS_CUBEMAP));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFlags(t, 0x80));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetBorderColor(t, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetFlags(null_mut(), t));
    cu!(cuTexRefSetMipmapLevelBias(t, f32::NAN); cuTexRefSetMipmapLevelClamp(t, 3., 1.));
    const NULL: CUtexref = CUtexref::NULL;
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefGetFlags(&mut flags, NULL));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetFlags(NULL, 1));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefDestroy(NULL));
    if !ours_only("NVIDIA's driver takes numbers that mean nothing") {
        return;
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(t, FLOAT, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(t, FLOAT, -1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFormat(t, CUarray_format(7), 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetAddressMode(t, 0, CUaddress_mode(9)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefSetFilterMode(t, CUfilter_mode(9)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexRefGetBorderColor(null_mut(), t));
    cu!(cuTexRefDestroy(t));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefDestroy(t));
    fails!(CUDA_ERROR_INVALID_HANDLE, cuTexRefSetMaxAnisotropy(t, 1));
}

pub fn a_reference_is_no_variable() {
    new_context();
    let module = load(".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .texref plane;\n");
    let (mut address, mut size) = (CUdeviceptr(0), 0);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuModuleGetGlobal_v2(&mut address, &mut size, module, c"plane".as_ptr())
    );
    fails!(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal_v2(&mut address, &mut size, module, c"other".as_ptr()));
}
