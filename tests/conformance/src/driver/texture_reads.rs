//! Texture and surface objects as kernels see them: every kind of array and of memory, views, levels and layers.

use super::common::*;

/// A kernel that reads a texture object at four numbers for each thread, and writes what it read. The numbers are in `%f0` to
/// `%f3`, as integers in `%r0` to `%r3`.
fn reader(name: &str, instruction: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 object, .param .u64 places, .param .u64 results)
{{
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .f32 %g<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd0, [object];
    ld.param.u64 %rd1, [places];
    ld.param.u64 %rd2, [results];
    mov.u32 %r4, %tid.x;
    mul.wide.u32 %rd3, %r4, 16;
    add.u64 %rd1, %rd1, %rd3;
    add.u64 %rd2, %rd2, %rd3;
    ld.global.v4.f32 {{%f0, %f1, %f2, %f3}}, [%rd1];
    cvt.rzi.s32.f32 %r0, %f0;
    cvt.rzi.s32.f32 %r1, %f1;
    cvt.rzi.s32.f32 %r2, %f2;
    {instruction};
    st.global.v4.f32 [%rd2], {{%g0, %g1, %g2, %g3}};
    ret;
}}
"
    )
}

fn kernels() -> CUmodule {
    let to = "{%g0, %g1, %g2, %g3}";
    let mut text = ".version 8.0\n.target sm_80\n.address_size 64\n".to_owned();
    for (name, instruction) in [
        ("d1", format!("tex.1d.v4.f32.f32 {to}, [%rd0, {{%f0}}]")),
        ("d2", format!("tex.2d.v4.f32.f32 {to}, [%rd0, {{%f0, %f1}}]")),
        ("d3", format!("tex.3d.v4.f32.f32 {to}, [%rd0, {{%f0, %f1, %f2, %f2}}]")),
        ("layers1", format!("tex.a1d.v4.f32.f32 {to}, [%rd0, {{%r0, %f1}}]")),
        ("layers2", format!("tex.a2d.v4.f32.f32 {to}, [%rd0, {{%r0, %f1, %f2, %f2}}]")),
        ("cube", format!("tex.cube.v4.f32.f32 {to}, [%rd0, {{%f0, %f1, %f2, %f2}}]")),
        ("cubes", format!("tex.acube.v4.f32.f32 {to}, [%rd0, {{%r0, %f1, %f2, %f3}}]")),
        ("linear", format!("tex.1d.v4.f32.s32 {to}, [%rd0, {{%r0}}]")),
        ("gathered", format!("tld4.r.2d.v4.f32.f32 {to}, [%rd0, {{%f0, %f1}}]")),
        ("level", format!("tex.level.2d.v4.f32.f32 {to}, [%rd0, {{%f0, %f1}}], %f2")),
        (
            "stored",
            "shl.b32 %r0, %r0, 2;\n    suld.b.2d.b32.trap {%r3}, [%rd0, {%r0, %r1}];\n    \
             mov.b32 %g0, %r3;\n    mov.f32 %g1, 0f00000000;\n    mov.f32 %g2, %g1;\n    mov.f32 %g3, %g1"
                .to_owned(),
        ),
        (
            "store",
            "shl.b32 %r0, %r0, 2;\n    mov.b32 %r3, %f2;\n    \
             sust.b.2d.b32.trap [%rd0, {%r0, %r1}], {%r3};\n    \
             mov.f32 %g0, 0f00000000;\n    mov.f32 %g1, %g0;\n    mov.f32 %g2, %g0;\n    mov.f32 %g3, %g0"
                .to_owned(),
        ),
    ] {
        text += &reader(name, &instruction);
    }
    load(&text)
}

/// What a kernel makes of an object at some places.
fn read_at(kernel: CUfunction, object: u64, places: &[[f32; 4]]) -> Vec<[f32; 4]> {
    let (at, results) = (alloc_with(places), alloc(size_of_val(places)));
    let block = places.len() as u32;
    let code = launch(kernel, 1, block, CUstream::NULL, &mut [arg(&object), arg(&at), arg(&results)]);
    assert_eq!(code, CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    read(results, places.len())
}

/// The first channel alone.
fn firsts(results: &[[f32; 4]]) -> Vec<f32> {
    results.iter().map(|result| result[0]).collect()
}

/// Fills an array of floats with 0, 1, 2, … from `first` on.
fn fill(array: CUarray, first: usize) {
    let mut descriptor = describe([0; 3], 0);
    cu!(cuArray3DGetDescriptor_v2(&mut descriptor, array));
    let [width, height, depth] =
        [descriptor.Width, descriptor.Height, descriptor.Depth].map(|count| count.max(1));
    let texels = Vec::from_iter((0..width * height * depth).map(|index| (first + index) as f32));
    let into = CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: CU_MEMORYTYPE_HOST,
        srcHost: texels.as_ptr().cast(),
        srcDevice: CUdeviceptr(0),
        srcArray: CUarray::NULL,
        reserved0: null_mut(),
        srcPitch: 4 * width,
        srcHeight: height,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: CU_MEMORYTYPE_ARRAY,
        dstHost: null_mut(),
        dstDevice: CUdeviceptr(0),
        dstArray: array,
        reserved1: null_mut(),
        dstPitch: 0,
        dstHeight: 0,
        WidthInBytes: 4 * width,
        Height: height,
        Depth: depth,
    };
    cu!(cuMemcpy3D_v2(&into));
}

fn describe(extent: [usize; 3], flags: u32) -> CUDA_ARRAY3D_DESCRIPTOR {
    array_descriptor(extent, CU_AD_FORMAT_FLOAT, 1, flags)
}

/// An array of floats 0, 1, 2, …
fn array(extent: [usize; 3], flags: u32) -> CUarray {
    let mut array = CUarray::NULL;
    cu!(cuArray3DCreate_v2(&mut array, &describe(extent, flags)));
    fill(array, 0);
    array
}

fn of_array(array: CUarray) -> CUDA_RESOURCE_DESC {
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hArray = array;
    CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_ARRAY, res, flags: 0 }
}

/// A texture read point by point, in texels or from 0 to 1.
fn texture(
    resource: &CUDA_RESOURCE_DESC,
    normalized: bool,
    view: Option<&CUDA_RESOURCE_VIEW_DESC>,
) -> CUtexObject {
    let flags = if normalized { CU_TRSF_NORMALIZED_COORDINATES } else { 0 };
    let desc = CUDA_TEXTURE_DESC { flags, maxMipmapLevelClamp: 99.0, ..plain_texture() };
    let (mut object, view) = (0, view.map_or(null(), std::ptr::from_ref));
    cu!(cuTexObjectCreate(&mut object, resource, &desc, view));
    object
}

pub fn signed_bytes_are_gathered_as_fractions_of_16_bits() {
    new_context();
    let descriptor = array_descriptor([8, 1, 0], CU_AD_FORMAT_SIGNED_INT8, 1, CUDA_ARRAY3D_TEXTURE_GATHER);
    let (bytes, mut array) = ([0_i8, 32, 64, 127, -32, -116, -127, -128], CUarray::NULL);
    cu!(
        cuArray3DCreate_v2(&mut array, &descriptor);
        cuMemcpyHtoA_v2(array, 0, bytes.as_ptr().cast(), 8);
    );
    let module = kernels();
    let at = |name, places: [[f32; 4]; 8]| {
        let results = read_at(function(module, name), texture(&of_array(array), false, None), &places);
        results.into_iter().map(|texel| texel[if name == c"gathered" { 3 } else { 0 }]).collect::<Vec<_>>()
    };
    let fraction = |value: i32, most: i32| (f64::from(value) / f64::from(most)) as f32;
    let wide = [0, 8256, 16513, 32767, -8256, -29929, -32767, -32767].map(|value| fraction(value, 32767));
    // The last of the four texels is the one at the place.
    let between = std::array::from_fn(|index| [index as f32 + 1.0, 0.5, 0.0, 0.0]);
    assert_eq!(at(c"gathered", between), wide);
    let inside = std::array::from_fn(|index| [index as f32 + 0.5, 0.5, 0.0, 0.0]);
    let narrow = bytes.map(|value| fraction(i32::from(value).max(-127), 127));
    assert_eq!(at(c"d2", inside), narrow);
}

pub fn every_kind_of_array_is_read_where_it_was_written() {
    new_context();
    let module = kernels();
    let read = |name, array, normalized, places: &[[f32; 4]]| {
        let object = texture(&of_array(array), normalized, None);
        let results = firsts(&read_at(function(module, name), object, places));
        cu!(cuTexObjectDestroy(object); cuArrayDestroy(array));
        results
    };
    let row = array([7, 0, 0], 0);
    assert_eq!(
        read(c"d1", row, false, &[[0.5, 0., 0., 0.], [6.5, 0., 0., 0.], [9., 0., 0., 0.]]),
        [0., 6., 6.]
    );
    let plane = array([7, 5, 0], 0);
    let places = [[0.5, 0.5, 0., 0.], [3.5, 2.5, 0., 0.], [6.5, 4.5, 0., 0.], [-1., 9., 0., 0.]];
    assert_eq!(read(c"d2", plane, false, &places), [0., 17., 34., 28.]);
    let solid = array([4, 3, 5], 0);
    let places = [[1.5, 2.5, 3.5, 0.], [3.5, 0.5, 4.5, 0.]];
    assert_eq!(read(c"d3", solid, false, &places), [45., 51.]);
    let rows = array([6, 0, 3], CUDA_ARRAY3D_LAYERED);
    let places = [[0., 2.5, 0., 0.], [2., 5.5, 0., 0.], [7., 0.5, 0., 0.]];
    assert_eq!(read(c"layers1", rows, false, &places), [2., 17., 12.]);
    let planes = array([4, 3, 5], CUDA_ARRAY3D_LAYERED);
    let places = [[0., 1.5, 2.5, 0.], [4., 3.5, 0.5, 0.]];
    assert_eq!(read(c"layers2", planes, false, &places), [9., 51.]);
    // The middles of the faces, towards +x, -x, +y, -y, +z, -z: of 3 × 3 texels each, the fifth.
    let directions = [
        [1., 0., 0., 0.],
        [-1., 0., 0., 0.],
        [0., 1., 0., 0.],
        [0., -1., 0., 0.],
        [0., 0., 1., 0.],
        [0., 0., -1., 0.],
    ];
    let cube = array([3, 3, 6], CUDA_ARRAY3D_CUBEMAP);
    assert_eq!(read(c"cube", cube, true, &directions), [4., 13., 22., 31., 40., 49.]);
    let cubes = array([3, 3, 12], CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED);
    let second = directions.map(|[x, y, z, _]| [1., x, y, z]);
    assert_eq!(read(c"cubes", cubes, true, &second), [58., 67., 76., 85., 94., 103.]);
}

pub fn memory_is_read_in_rows_and_by_index() {
    new_context();
    let module = kernels();
    let texels = Vec::from_iter((0..512).map(|index| index as f32));
    let p = alloc_with(&texels);
    let mut linear = CUDA_RESOURCE { reserved: [0; 32] };
    linear.linear =
        CUDA_RESOURCE_LINEAR { devPtr: p, format: CU_AD_FORMAT_FLOAT, numChannels: 2, sizeInBytes: 80 };
    let linear = CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_LINEAR, res: linear, flags: 0 };
    let object = texture(&linear, false, None);
    let results =
        read_at(function(module, c"linear"), object, &[[0.; 4], [9., 0., 0., 0.], [10., 0., 0., 0.]]);
    // Pairs of floats; behind the last there is zero.
    let pairs: Vec<_> = results.iter().map(|result| [result[0], result[1]]).collect();
    assert_eq!(pairs, [[0., 1.], [18., 19.], [0., 0.]]);
    let mut rows = CUDA_RESOURCE { reserved: [0; 32] };
    rows.pitch2D = CUDA_RESOURCE_PITCH2D {
        devPtr: p,
        format: CU_AD_FORMAT_FLOAT,
        numChannels: 1,
        width: 20,
        height: 10,
        pitchInBytes: 96,
    };
    let rows = CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_PITCH2D, res: rows, flags: 0 };
    let object = texture(&rows, false, None);
    let places = [[2.5, 3.5, 0., 0.], [19.5, 9.5, 0., 0.], [50., 50., 0., 0.]];
    assert_eq!(firsts(&read_at(function(module, c"d2"), object, &places)), [74., 235., 235.]);
}

fn whole(extent: [usize; 3]) -> CUDA_RESOURCE_VIEW_DESC {
    CUDA_RESOURCE_VIEW_DESC {
        format: CU_RES_VIEW_FORMAT_FLOAT_1X32,
        width: extent[0],
        height: extent[1],
        depth: extent[2],
        firstMipmapLevel: 0,
        lastMipmapLevel: 0,
        firstLayer: 0,
        lastLayer: 0,
        reserved: [0; 16],
    }
}

pub fn views_shift_layers_and_levels() {
    new_context();
    let module = kernels();
    let planes = array([4, 3, 5], CUDA_ARRAY3D_LAYERED);
    let view = CUDA_RESOURCE_VIEW_DESC { firstLayer: 1, lastLayer: 3, ..whole([4, 3, 5]) };
    let object = texture(&of_array(planes), false, Some(&view));
    let places = [[0., 0.5, 0.5, 0.], [2., 0.5, 0.5, 0.], [9., 0.5, 0.5, 0.]];
    assert_eq!(firsts(&read_at(function(module, c"layers2"), object, &places)), [12., 36., 36.]);
    let mut levels = CUmipmappedArray::NULL;
    cu!(cuMipmappedArrayCreate(&mut levels, &describe([8, 8, 0], 0), 4));
    for number in 0..4 {
        let mut level = CUarray::NULL;
        cu!(cuMipmappedArrayGetLevel(&mut level, levels, number));
        fill(level, 1000 * number as usize);
    }
    let mut res = CUDA_RESOURCE { reserved: [0; 32] };
    res.hMipmappedArray = levels;
    let resource = CUDA_RESOURCE_DESC { resType: CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, res, flags: 0 };
    let places = [[0., 0., 0., 0.], [0.99, 0.99, 1., 0.], [0.6, 0., 2., 0.], [0., 0., 9., 0.]];
    let kernel = function(module, c"level");
    let object = texture(&resource, true, None);
    assert_eq!(firsts(&read_at(kernel, object, &places)), [0., 1015., 2001., 3000.]);
    // Where there are levels, coordinates go from 0 to 1, said or not.
    let object = texture(&resource, false, None);
    assert_eq!(firsts(&read_at(kernel, object, &places)), [0., 1015., 2001., 3000.]);
    let view = CUDA_RESOURCE_VIEW_DESC { firstMipmapLevel: 1, lastMipmapLevel: 2, ..whole([8, 8, 0]) };
    let object = texture(&resource, true, Some(&view));
    assert_eq!(firsts(&read_at(kernel, object, &places)), [1000., 2003., 2001., 2000.]);
}

pub fn surfaces_are_read_and_written() {
    new_context();
    let module = kernels();
    let array = array([7, 5, 0], CUDA_ARRAY3D_SURFACE_LDST);
    let mut surface = 0;
    cu!(cuSurfObjectCreate(&mut surface, &of_array(array)));
    read_at(function(module, c"store"), surface, &[[3., 2., 99.5, 0.], [6., 4., -7., 0.]]);
    let places = [[3., 2., 0., 0.], [4., 2., 0., 0.], [6., 4., 0., 0.]];
    assert_eq!(firsts(&read_at(function(module, c"stored"), surface, &places)), [99.5, 18., -7.]);
    let object = texture(&of_array(array), false, None);
    let places = [[3.5, 2.5, 0., 0.], [6.5, 4.5, 0., 0.]];
    assert_eq!(firsts(&read_at(function(module, c"d2"), object, &places)), [99.5, -7.]);
}

pub fn an_object_may_be_destroyed_behind_a_launch() {
    new_context();
    let (kernel, stream) = (function(kernels(), c"d2"), stream(CU_STREAM_NON_BLOCKING));
    let array = array([7, 5, 0], 0);
    let object = texture(&of_array(array), false, None);
    let (places, results) = (alloc_with(&[[3.5f32, 2.5, 0., 0.]]), alloc(16));
    // Loaded before anything waits: NVIDIA's driver loads at the first launch, and waits for all streams.
    read_at(kernel, object, &[[0.; 4]]);
    let gate = Gate::new();
    gate.hold(stream);
    let code = launch(kernel, 1, 1, stream, &mut [arg(&object), arg(&places), arg(&results)]);
    assert_eq!(code, CUDA_SUCCESS);
    cu!(cuTexObjectDestroy(object));
    gate.open();
    cu!(cuStreamSynchronize(stream));
    assert_eq!(read::<f32>(results, 1), [17.]);
}
