//! Tensor map object management, and what copies make of the maps.

use super::common::*;

/// What a tiled map is made from. The strides are as many as there are sizes, of which the last is not one of the tensor's.
#[derive(Clone)]
struct Tiled {
    data_type: CUtensorMapDataType,
    address: u64,
    sizes: Vec<u64>,
    strides: Vec<u64>,
    extents: Vec<u32>,
    steps: Vec<u32>,
    interleave: u32,
    swizzle: u32,
    promotion: u32,
    fill: u32,
}

const U16: CUtensorMapDataType = CU_TENSOR_MAP_DATA_TYPE_UINT16;
/// An address that maps are content with.
const SOMEWHERE: u64 = 0x7f00_0000_0000;
const EMPTY: CUtensorMap = CUtensorMap { opaque: [0; 16] };

/// 64 × 64 elements of 16 bits, in boxes of 8 × 8.
fn square() -> Tiled {
    Tiled {
        data_type: U16,
        address: SOMEWHERE,
        sizes: vec![64, 64],
        strides: vec![128, 0],
        extents: vec![8, 8],
        steps: vec![1, 1],
        interleave: 0,
        swizzle: 0,
        promotion: 0,
        fill: 0,
    }
}

impl Tiled {
    fn encode(&self, map: *mut CUtensorMap) -> CUresult {
        self.encode_rank(map, self.sizes.len() as u32)
    }

    fn encode_rank(&self, map: *mut CUtensorMap, rank: u32) -> CUresult {
        // SAFETY: as many elements as the rank says are there, or the library must notice.
        unsafe {
            cuTensorMapEncodeTiled(
                map,
                self.data_type,
                rank,
                self.address as *mut c_void,
                self.sizes.as_ptr(),
                self.strides.as_ptr(),
                self.extents.as_ptr(),
                self.steps.as_ptr(),
                CUtensorMapInterleave(self.interleave),
                CUtensorMapSwizzle(self.swizzle),
                CUtensorMapL2promotion(self.promotion),
                CUtensorMapFloatOOBfill(self.fill),
            )
        }
    }

    fn map(&self) -> CUtensorMap {
        let mut map = EMPTY;
        assert_eq!(self.encode(&mut map), CUDA_SUCCESS);
        map
    }
}

#[track_caller]
fn accepted(change: impl FnOnce(&mut Tiled), expected: CUresult) {
    let mut tiled = square();
    change(&mut tiled);
    assert_eq!(tiled.encode(&mut EMPTY.clone()), expected);
}

pub fn tiled_maps_are_checked() {
    new_context();
    let good = |change: fn(&mut Tiled)| accepted(change, CUDA_SUCCESS);
    let bad = |change: fn(&mut Tiled)| accepted(change, CUDA_ERROR_INVALID_VALUE);
    good(|_| ());
    good(|t| t.address = 0);
    good(|t| t.address += 16);
    bad(|t| t.address += 8);
    bad(|t| t.address = 1 << 63);
    for number in 13..17 {
        let mut other = square();
        other.data_type = CUtensorMapDataType(number);
        (other.sizes[0], other.extents[0]) = (256, 128);
        assert_eq!(other.encode(&mut EMPTY.clone()), CUDA_ERROR_INVALID_VALUE, "type {number}");
    }
    good(|t| t.sizes[1] = 1 << 32);
    bad(|t| t.sizes[1] = (1 << 32) + 1);
    bad(|t| t.sizes[0] = 0);
    good(|t| t.sizes[0] = 63);
    // A stride may be nothing, or less than a row.
    good(|t| t.strides[0] = 0);
    good(|t| t.strides[0] = 16);
    good(|t| t.strides[0] = (1 << 40) - 16);
    bad(|t| t.strides[0] = 1 << 40);
    bad(|t| t.strides[0] = 136);
    bad(|t| t.extents[1] = 0);
    good(|t| t.extents[1] = 256);
    bad(|t| t.extents[1] = 257);
    bad(|t| t.extents[0] = 4);
    good(|t| t.extents[0] = 256);
    good(|t| t.steps[1] = 8);
    bad(|t| t.steps[1] = 9);
    bad(|t| t.steps[1] = 0);
    // The first one means nothing, and must make sense.
    bad(|t| t.steps[0] = 0);
    bad(|t| t.steps[0] = 9);
    bad(|t| t.interleave = 1);
    bad(|t| t.interleave = 3);
    bad(|t| t.swizzle = 4);
    bad(|t| (t.swizzle, t.extents[0]) = (1, 24));
    good(|t| (t.swizzle, t.extents[0]) = (1, 16));
    good(|t| (t.swizzle, t.extents[0]) = (3, 64));
    bad(|t| (t.swizzle, t.extents[0]) = (3, 72));
    good(|t| t.promotion = 3);
    bad(|t| t.promotion = 4);
    // A box must fit in shared memory.
    good(|t| t.extents = vec![256, 256]);
    bad(|t| (t.extents, t.data_type) = (vec![256, 256], CU_TENSOR_MAP_DATA_TYPE_UINT32));
    // Only floats can be NaN.
    bad(|t| t.fill = 1);
    good(|t| (t.fill, t.data_type) = (1, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
    bad(|t| (t.fill, t.data_type) = (2, CU_TENSOR_MAP_DATA_TYPE_FLOAT16));
    for rank in [0, 6] {
        let mut other = square();
        (other.sizes, other.strides) = (vec![8; 6], vec![16; 6]);
        (other.extents, other.steps) = (vec![8; 6], vec![1; 6]);
        assert_eq!(other.encode_rank(&mut EMPTY.clone(), rank), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(square().encode(null_mut()), CUDA_ERROR_INVALID_VALUE);
}

pub fn channels_in_slices() {
    new_context();
    let volume = |change: fn(&mut Tiled)| {
        let mut tiled = square();
        (tiled.sizes, tiled.strides) = (vec![16, 8, 8], vec![32, 256, 0]);
        (tiled.extents, tiled.steps) = (vec![16, 2, 2], vec![1; 3]);
        (tiled.interleave, tiled.swizzle) = (2, 1);
        change(&mut tiled);
        tiled.encode(&mut EMPTY.clone())
    };
    assert_eq!(volume(|_| ()), CUDA_SUCCESS);
    // Whatever the manual says of slices of 32 bytes.
    assert_eq!(volume(|t| t.swizzle = 0), CUDA_SUCCESS);
    assert_eq!(volume(|t| (t.interleave, t.swizzle) = (1, 3)), CUDA_SUCCESS);
    // Of the slices' own dimension one is moved, but any number is taken.
    assert_eq!(volume(|t| t.extents = vec![8, 5, 2]), CUDA_SUCCESS);
    assert_eq!(volume(|t| t.address += 16), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(volume(|t| t.strides = vec![48, 480, 0]), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(volume(|t| t.extents[0] = 12), CUDA_ERROR_INVALID_VALUE);
}

pub fn slices_of_channels_come_pixel_by_pixel() {
    new_context();
    let kernel = function(load(KERNELS), c"slices");
    let (numbers, out) = (counting(), alloc(1024));
    for (interleave, swizzle) in [(1, 0), (2, 0), (2, 1)] {
        // Five rows of pixels, four slices of channels, images of 3200 bytes.
        let units = 8 << interleave;
        let mut tiled = square();
        (tiled.address, tiled.interleave, tiled.swizzle) = (numbers.0, interleave, swizzle);
        (tiled.sizes, tiled.strides) = (vec![160 / units, 5, 4, 2], vec![160, 800, 3200, 0]);
        (tiled.extents, tiled.steps) = (vec![8, 3, 4, 1], vec![1; 4]);
        let (map, start) = (tiled.map(), [2i32, -1, 3, 1]);
        let bytes = 24 * units as u32;
        let [w, h, c, n] = &start;
        run(kernel, 256, &mut [arg(&map), arg(w), arg(h), arg(c), arg(n), arg(&bytes), arg(&out)]);
        cu!(cuCtxSynchronize());
        let mut expected = [POISON; 512];
        for at in 0..12 * units as u32 {
            let (slice, byte) = (at * 2 / units as u32, at * 2 % units as u32);
            let (x, y) = (2 + slice as i32 % 8, slice as i32 / 8 - 1);
            let inside = x < 160 / units as i32 && y >= 0;
            let from = 3200 + 3 * 800 + 160 * y + units as i32 * x + byte as i32;
            let to = if swizzle == 0 { 2 * at } else { (2 * at) ^ ((at >> 6 & 1) << 4) };
            expected[to as usize / 2] = if inside { from as u16 / 2 } else { 0 };
        }
        assert_eq!(read::<u16>(out, 512), expected, "slices {interleave}, swizzle {swizzle}");
    }
}

pub fn maps_of_wide_columns_are_made() {
    new_context();
    let encode = |rank: u32, lower: i32, upper: i32, mode: u32| {
        let (sizes, strides, steps) = ([64u64, 16, 16, 4, 2], [128u64, 2048, 32768, 65536, 0], [1u32; 5]);
        // SAFETY: as many elements as the rank says are there, or the library must notice.
        unsafe {
            cuTensorMapEncodeIm2colWide(
                &mut EMPTY.clone(),
                U16,
                rank,
                SOMEWHERE as *mut c_void,
                sizes.as_ptr(),
                strides.as_ptr(),
                lower,
                upper,
                64,
                64,
                steps.as_ptr(),
                CU_TENSOR_MAP_INTERLEAVE_NONE,
                CUtensorMapIm2ColWideMode(mode),
                CU_TENSOR_MAP_SWIZZLE_128B,
                CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
    };
    assert_eq!(encode(4, -1, 0, 0), CUDA_SUCCESS);
    assert_eq!(encode(4, -128, 0, 1), CUDA_SUCCESS);
    for (rank, lower, upper, mode) in
        [(4, -1, 0, 2), (2, -1, 0, 0), (6, -1, 0, 0), (4, -129, 0, 0), (4, 0, 128, 0), (4, 16, 0, 0)]
    {
        assert_eq!(
            encode(rank, lower, upper, mode),
            CUDA_ERROR_INVALID_VALUE,
            "{rank} {lower} {upper} {mode}"
        );
    }
}

pub fn maps_have_the_bits_that_the_hardware_reads() {
    new_context();
    let tiled = Tiled {
        data_type: CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
        address: 0xcc38_7e8d_3e80,
        sizes: vec![92030, 908_452, 1, 95_654_151, 1_290_352],
        strides: vec![8_057_480_640, 512, 2816, 1408],
        extents: vec![16, 3, 3, 3, 3],
        steps: vec![4, 4, 8, 8, 5],
        interleave: 0,
        swizzle: 3,
        promotion: 2,
        fill: 1,
    };
    let expected = [
        0xcc38_7e8d_3e80,
        0x1e04_365c_0004_e4c0,
        0xb0_0000_0020,
        0x58,
        0xd_dca3_0001_677d,
        0x5b3_9106_0000_0000,
        0xf00_4fdb_0013_b06f,
        0x202_0202,
        0,
        0x400,
    ];
    assert_eq!(tiled.map().opaque[..10], expected);
    assert_eq!(tiled.map().opaque[10..], [0; 6]);
}

pub fn no_list_may_be_missing() {
    new_context();
    let (longs, words) = ([64u64, 128], [8u32, 8]);
    for missing in 0..4 {
        let long = |at: usize| if missing == at { null() } else { longs.as_ptr() };
        let word = |at: usize| if missing == at { null() } else { words.as_ptr() };
        for rank in [1, 2] {
            fails!(
                CUDA_ERROR_INVALID_VALUE,
                cuTensorMapEncodeTiled(
                    &mut EMPTY.clone(),
                    U16,
                    rank,
                    SOMEWHERE as *mut c_void,
                    long(0),
                    long(1),
                    word(2),
                    word(3),
                    CU_TENSOR_MAP_INTERLEAVE_NONE,
                    CU_TENSOR_MAP_SWIZZLE_NONE,
                    CU_TENSOR_MAP_L2_PROMOTION_NONE,
                    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
                )
            );
        }
    }
}

pub fn a_context_is_needed() {
    new_context();
    let mut map = square().map();
    cu!(cuCtxSetCurrent(CUcontext::NULL));
    assert_eq!(square().encode(&mut map), CUDA_ERROR_INVALID_CONTEXT);
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuTensorMapReplaceAddress(&mut map, SOMEWHERE as *mut c_void));
}

const KERNELS: &str = "
.version 8.6
.target sm_90
.address_size 64
.shared .align 1024 .b8 space[8192];
.shared .align 8 .b64 barrier;

// Elements of a box as they come to lie in shared memory.
.visible .entry fetch(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u32 bytes, .param .u64 out)
{
    .reg .pred %p, %done;
    .reg .b32 %t, %x, %y, %bytes, %at, %v, %first;
    .reg .b64 %map, %out, %off;
    mov.u32 %t, %tid.x;
    mov.u32 %first, space;
    mad.lo.u32 %at, %t, 4, %first;
    mov.b32 %v, 0xeeeeeeee;
    st.shared.b32 [%at], %v;
    setp.ne.u32 %p, %t, 0;
    @%p bra READY;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
READY:
    fence.proxy.async;
    bar.sync 0;
    @%p bra WAIT;
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    ld.param.u32 %bytes, [bytes];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    prefetch.tensormap [%map];
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], %bytes;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%first], [%map, {%x, %y}], [barrier];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [barrier], 0;
    @!%done bra WAIT;
    ld.shared.b32 %v, [%at];
    ld.param.u64 %out, [out];
    mul.wide.u32 %off, %t, 4;
    add.u64 %out, %out, %off;
    st.global.b32 [%out], %v;
    ret;
}

// A box of slices of channels.
.visible .entry slices(.param .align 64 .b8 map[128], .param .u32 w, .param .u32 h, .param .u32 c, .param .u32 n, .param .u32 bytes, .param .u64 out)
{
    .reg .pred %p, %done;
    .reg .b32 %t, %w, %h, %c, %n, %bytes, %at, %v, %first;
    .reg .b64 %map, %out, %off;
    mov.u32 %t, %tid.x;
    mov.u32 %first, space;
    mad.lo.u32 %at, %t, 4, %first;
    mov.b32 %v, 0xeeeeeeee;
    st.shared.b32 [%at], %v;
    setp.ne.u32 %p, %t, 0;
    @%p bra READY;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
READY:
    fence.proxy.async;
    bar.sync 0;
    @%p bra WAIT;
    ld.param.u32 %w, [w];
    ld.param.u32 %h, [h];
    ld.param.u32 %c, [c];
    ld.param.u32 %n, [n];
    ld.param.u32 %bytes, [bytes];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], %bytes;
    cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%first], [%map, {%w, %h, %c, %n}], [barrier];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [barrier], 0;
    @!%done bra WAIT;
    ld.shared.b32 %v, [%at];
    ld.param.u64 %out, [out];
    mul.wide.u32 %off, %t, 4;
    add.u64 %out, %out, %off;
    st.global.b32 [%out], %v;
    ret;
}

// Numbers from 1 on into a box.
.visible .entry put(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 y, .param .u32 sum)
{
    .reg .pred %p;
    .reg .b32 %t, %x, %y, %at, %v, %first;
    .reg .b64 %map;
    mov.u32 %t, %tid.x;
    mov.u32 %first, space;
    mad.lo.u32 %at, %t, 4, %first;
    add.u32 %v, %t, 1;
    st.shared.b32 [%at], %v;
    fence.proxy.async;
    bar.sync 0;
    setp.ne.u32 %p, %t, 0;
    @%p ret;
    ld.param.u32 %x, [x];
    ld.param.u32 %y, [y];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    ld.param.u32 %v, [sum];
    setp.ne.u32 %p, %v, 0;
    @!%p cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {%x, %y}], [%first];
    @%p cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%map, {%x, %y}], [%first];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}

// 24 pixels of eight channels, from within a box of pixels.
.visible .entry column(.param .align 64 .b8 map[128], .param .u32 x, .param .u32 n, .param .u32 shift, .param .u64 out)
{
    .reg .pred %p, %done;
    .reg .b16 %shift;
    .reg .b32 %t, %x, %n, %at, %v, %first, %zero;
    .reg .b64 %map, %out, %off;
    mov.u32 %t, %tid.x;
    mov.u32 %first, space;
    mov.u32 %zero, 0;
    mad.lo.u32 %at, %t, 4, %first;
    setp.ne.u32 %p, %t, 0;
    @%p bra READY;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
READY:
    fence.proxy.async;
    bar.sync 0;
    @%p bra WAIT;
    ld.param.u32 %x, [x];
    ld.param.u32 %n, [n];
    ld.param.u16 %shift, [shift];
    mov.b64 %map, map;
    cvta.param.u64 %map, %map;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 384;
    cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%first], [%map, {%zero, %x, %n}], [barrier], {%shift};
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %done, [barrier], 0;
    @!%done bra WAIT;
    ld.shared.b32 %v, [%at];
    ld.param.u64 %out, [out];
    mul.wide.u32 %off, %t, 4;
    add.u64 %out, %out, %off;
    st.global.b32 [%out], %v;
    ret;
}
";

/// 64 × 64 numbers of 16 bits, counting up, in device memory.
fn counting() -> CUdeviceptr {
    alloc_with(&(0..4096u16).collect::<Vec<u16>>())
}

/// Launches a block.
fn run(kernel: CUfunction, threads: u32, arguments: &mut [*mut c_void]) {
    assert_eq!(launch(kernel, 1, threads, CUstream::NULL, arguments), CUDA_SUCCESS);
}

/// The first 1024 bytes of shared memory after a box has come.
fn fetched(map: &CUtensorMap, x: u32, y: u32, bytes: u32) -> Vec<u16> {
    let kernel = function(load(KERNELS), c"fetch");
    let out = alloc(1024);
    run(kernel, 256, &mut [arg(map), arg(&x), arg(&y), arg(&bytes), arg(&out)]);
    cu!(cuCtxSynchronize());
    read(out, 512)
}

const POISON: u16 = 0xeeee;

pub fn a_box_comes_row_by_row_and_zeros_are_outside() {
    new_context();
    let mut tiled = square();
    (tiled.address, tiled.extents) = (counting().0, vec![16, 4]);
    let got = fetched(&tiled.map(), 56, 62, 128);
    for (at, value) in got[..64].iter().enumerate() {
        let (x, y) = (56 + at as u16 % 16, 62 + at as u16 / 16);
        assert_eq!(*value, if x < 64 && y < 64 { 64 * y + x } else { 0 }, "{at}");
    }
    assert_eq!(got[64..], [POISON; 448]);
}

/// What a copy of a box from (x, y) ends with; the box is of 16 × 4.
fn end_of_fetch(x: i32, y: i32) -> CUresult {
    new_context();
    let mut tiled = square();
    (tiled.address, tiled.extents) = (counting().0, vec![16, 4]);
    let kernel = function(load(KERNELS), c"fetch");
    let (map, bytes, out) = (tiled.map(), 128u32, alloc(1024));
    run(kernel, 256, &mut [arg(&map), arg(&x), arg(&y), arg(&bytes), arg(&out)]);
    // SAFETY: no argument.
    unsafe { cuCtxSynchronize() }
}

pub fn a_box_may_begin_before_the_tensor() {
    new_context();
    let mut tiled = square();
    (tiled.address, tiled.extents) = (counting().0, vec![16, 4]);
    let got = fetched(&tiled.map(), -8i32 as u32, -1i32 as u32, 128);
    for (at, value) in (0i32..).zip(&got[..64]) {
        let (x, y) = (at % 16 - 8, at / 16 - 1);
        assert_eq!(i32::from(*value), if x >= 0 && y >= 0 { 64 * y + x } else { 0 }, "{at}");
    }
}

pub fn a_box_begins_at_a_unit_of_16_bytes() {
    assert_eq!(end_of_fetch(4, 0), CUDA_ERROR_ILLEGAL_INSTRUCTION);
}

pub fn nan_marks_what_is_outside() {
    new_context();
    let mut tiled = square();
    (tiled.address, tiled.extents) = (counting().0, vec![8, 4]);
    (tiled.fill, tiled.data_type) = (1, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
    assert_eq!(fetched(&tiled.map(), 64, 0, 64)[..32], [0x7ff7; 32]);
}

pub fn numbers_are_rounded_to_tf32() {
    new_context();
    let bits =
        [0x3f80_1000u32, 0x3f80_3000, 0x807f_ffff, 0x7f7f_ffff, 0xff80_1fff, 0x8000_0000, 0x3f80_1fff, 1];
    let tiled = Tiled {
        data_type: CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
        address: alloc_with(&bits).0,
        sizes: vec![8, 1],
        strides: vec![32, 0],
        extents: vec![8, 1],
        ..square()
    };
    let got = fetched(&tiled.map(), 0, 0, 32);
    let got: Vec<u32> =
        got[..16].chunks(2).map(|half| u32::from(half[1]) << 16 | u32::from(half[0])).collect();
    let rounded =
        [0x3f80_0000, 0x3f80_4000, 0x8080_0000, 0x7f80_0000, 0x7fff_e000, 0x8000_0000, 0x3f80_2000, 0];
    assert_eq!(got, rounded);
}

pub fn rows_are_permuted_by_where_they_lie() {
    new_context();
    for swizzle in 1..4u32 {
        let span = 16 << swizzle;
        let mut tiled = square();
        (tiled.address, tiled.swizzle) = (counting().0, swizzle);
        // A whole span to a row, and half of one, which leaves gaps.
        for row in [span, span / 2] {
            tiled.extents = vec![row / 2, 1024 / span];
            let got = fetched(&tiled.map(), 8, 3, row * (1024 / span));
            let mut expected = [POISON; 512];
            for y in 0..1024 / span {
                for x in 0..row / 2 {
                    let at = span * y + 2 * x;
                    let at = at ^ (at >> 7 & (span / 16 - 1)) << 4;
                    expected[at as usize / 2] = if x < 56 { (64 * (3 + y) + 8 + x) as u16 } else { 0 };
                }
            }
            assert_eq!(got, expected, "{span} bytes, rows of {row}");
        }
    }
}

pub fn steps_leave_rows_out() {
    new_context();
    let mut tiled = square();
    (tiled.address, tiled.extents, tiled.steps) = (counting().0, vec![8, 9], vec![1, 4]);
    // Rows 4, 8 and 12.
    let got = fetched(&tiled.map(), 16, 4, 48);
    let expected: Vec<u16> = (0..24).map(|at| 64 * (4 + 4 * (at / 8)) + 16 + at % 8).collect();
    assert_eq!(got[..24], expected);
    assert_eq!(got[24], POISON);
}

fn put(map: &CUtensorMap, x: u32, y: u32, sum: u32) {
    let kernel = function(load(KERNELS), c"put");
    run(kernel, 32, &mut [arg(map), arg(&x), arg(&y), arg(&sum)]);
    cu!(cuCtxSynchronize());
}

pub fn a_box_goes_back_but_for_what_is_outside() {
    new_context();
    let words = alloc_with(&[1000u32; 64]);
    let tiled = Tiled {
        data_type: CU_TENSOR_MAP_DATA_TYPE_UINT32,
        address: words.0,
        sizes: vec![8, 8],
        strides: vec![32, 0],
        extents: vec![8, 4],
        ..square()
    };
    put(&tiled.map(), 4, 6, 0);
    put(&tiled.map(), 0, 5, 1);
    let mut expected = [1000u32; 64];
    for (at, word) in (1u32..).zip(0..32) {
        let (x, y) = (word % 8, word / 8);
        if x < 4 && y < 2 {
            expected[8 * (6 + y) + 4 + x] = at;
        }
    }
    for (at, word) in (1u32..).zip(0..24) {
        expected[40 + word] += at;
    }
    assert_eq!(read::<u32>(words, 64), expected);
}

pub fn the_last_unit_of_a_row_is_written_whole() {
    new_context();
    let words = alloc_with(&[1000u32; 16]);
    let tiled = Tiled {
        data_type: CU_TENSOR_MAP_DATA_TYPE_UINT32,
        address: words.0,
        sizes: vec![5, 1],
        strides: vec![32, 0],
        extents: vec![16, 1],
        ..square()
    };
    put(&tiled.map(), 0, 0, 0);
    let mut expected = [1000u32; 16];
    for (at, word) in (1u32..).zip(&mut expected[..8]) {
        *word = at;
    }
    assert_eq!(read::<u32>(words, 16), expected);
}

pub fn nothing_is_written_before_the_tensor() {
    new_context();
    let words = alloc_with(&[1000u32; 64]);
    let tiled = Tiled {
        data_type: CU_TENSOR_MAP_DATA_TYPE_UINT32,
        address: words.0,
        sizes: vec![8, 8],
        strides: vec![32, 0],
        extents: vec![8, 4],
        ..square()
    };
    let (map, x, y, sum) = (tiled.map(), 0u32, -1i32, 0u32);
    run(function(load(KERNELS), c"put"), 32, &mut [arg(&map), arg(&x), arg(&y), arg(&sum)]);
    fails!(CUDA_ERROR_ILLEGAL_INSTRUCTION, cuCtxSynchronize());
}

pub fn pixels_come_by_the_column() {
    new_context();
    // Three rows of ten pixels of eight channels; the box of pixels reaches one beyond on either side, less the filter's three.
    let pixels = alloc_with(&(0..240u16).collect::<Vec<u16>>());
    let mut map = EMPTY;
    let (sizes, strides, steps) = ([8u64, 10, 3], [16u64, 160, 0], [1u32; 3]);
    cu!(cuTensorMapEncodeIm2col(
        &mut map,
        U16,
        3,
        pixels.0 as *mut c_void,
        sizes.as_ptr(),
        strides.as_ptr(),
        &-1,
        &-1,
        8,
        24,
        steps.as_ptr(),
        CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    ));
    let kernel = function(load(KERNELS), c"column");
    let out = alloc(384);
    for (start, first, shift) in [(-1i32, 0u32, 0u32), (-1, 0, 2), (4, 1, 1)] {
        run(kernel, 96, &mut [arg(&map), arg(&start), arg(&first), arg(&shift), arg(&out)]);
        cu!(cuCtxSynchronize());
        let mut expected = Vec::new();
        let (mut x, mut n) = (start, first);
        for _ in 0..24 {
            let at = x + shift as i32;
            let inside = (0..10).contains(&at) && n < 3;
            expected.extend((0..8).map(|c| if inside { (80 * n as u16) + 8 * at as u16 + c } else { 0 }));
            x += 1;
            if x > 8 {
                (x, n) = (-1, n + 1);
            }
        }
        assert_eq!(read::<u16>(out, 192), expected, "from {start} in row {first}, {shift} on");
    }
}

pub fn maps_of_columns_are_checked() {
    new_context();
    let encode = |rank: u32, lower: [i32; 3], upper: [i32; 3], channels: u32, pixels: u32| {
        let (sizes, strides, steps) =
            ([16u64, 8, 8, 8, 4, 4], [32u64, 256, 2048, 16384, 65536, 0], [1u32; 6]);
        // SAFETY: as many elements as the rank says are there, or the library must notice.
        unsafe {
            cuTensorMapEncodeIm2col(
                &mut EMPTY.clone(),
                U16,
                rank,
                SOMEWHERE as *mut c_void,
                sizes.as_ptr(),
                strides.as_ptr(),
                lower.as_ptr(),
                upper.as_ptr(),
                channels,
                pixels,
                steps.as_ptr(),
                CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_NONE,
                CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
    };
    assert_eq!(encode(4, [-1; 3], [-1; 3], 8, 16), CUDA_SUCCESS);
    for rank in [0, 1, 2, 6] {
        assert_eq!(encode(rank, [-1; 3], [-1; 3], 8, 16), CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(encode(4, [-129, 0, 0], [0; 3], 8, 16), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(encode(4, [0; 3], [128, 0, 0], 8, 16), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(encode(5, [-17, 0, 0], [0; 3], 8, 16), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(encode(4, [0; 3], [0; 3], 264, 16), CUDA_ERROR_INVALID_VALUE);
    assert_eq!(encode(4, [0; 3], [0; 3], 8, 1025), CUDA_ERROR_INVALID_VALUE);
}

pub fn a_map_can_be_moved() {
    new_context();
    let mut tiled = square();
    tiled.address = counting().0;
    let mut map = tiled.map();
    cu!(cuTensorMapReplaceAddress(&mut map, (tiled.address + 128) as *mut c_void));
    assert_eq!(fetched(&map, 0, 0, 128)[..8], [64, 65, 66, 67, 68, 69, 70, 71]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&mut map, (tiled.address + 8) as *mut c_void));
    fails!(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(&mut map, null_mut()));
    if ours_only("NVIDIA's driver crashes") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuTensorMapReplaceAddress(null_mut(), SOMEWHERE as *mut c_void));
    }
}

pub fn what_is_no_map_is_an_illegal_instruction() {
    new_context();
    let kernel = function(load(KERNELS), c"fetch");
    let (map, zero, out) = (CUtensorMap { opaque: [0x5a5a_5a5a_5a5a_5a5a; 16] }, 0u32, alloc(1024));
    run(kernel, 256, &mut [arg(&map), arg(&zero), arg(&zero), arg(&zero), arg(&out)]);
    fails!(CUDA_ERROR_ILLEGAL_INSTRUCTION, cuCtxSynchronize());
}
