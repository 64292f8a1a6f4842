//! Memory management: setting memory to a value.

use super::common::*;

pub fn every_set_writes_its_elements_and_nothing_else() {
    new_context();
    let (p, s) = (alloc_with(&[0u32; 24]), CUstream::NULL);
    let at = |offset| CUdeviceptr(p.0 + offset);
    cu!(
        cuMemsetD8_v2(at(0), 0x11, 1);
        cuMemsetD8_v2_ptds(at(2), 0x12, 1);
        cuMemsetD8Async(at(4), 0x13, 3, s);
        cuMemsetD8Async_ptsz(at(8), 0x14, 4, s);
        cuMemsetD16_v2(at(12), 0x1516, 1);
        cuMemsetD16_v2_ptds(at(16), 0x1718, 2);
        cuMemsetD16Async(at(22), 0x191a, 1, s);
        cuMemsetD16Async_ptsz(at(24), 0x1b1c, 2, s);
        cuMemsetD32_v2(at(28), 0x1d1e_1f20, 1);
        cuMemsetD32_v2_ptds(at(36), 0x2122_2324, 1);
        cuMemsetD32Async(at(44), 0x2526_2728, 2, s);
        cuMemsetD32Async_ptsz(at(52), 0x292a_2b2c, 1, s);
        cuCtxSynchronize();
    );
    let expected = [
        0x0012_0011,
        0x0013_1313,
        0x1414_1414,
        0x0000_1516,
        0x1718_1718,
        0x191a_0000,
        0x1b1c_1b1c,
        0x1d1e_1f20,
        0,
        0x2122_2324,
        0,
        0x2526_2728,
        0x2526_2728,
        0x292a_2b2c,
        0,
    ];
    assert_eq!(read::<u32>(p, 15), expected);
}

pub fn every_set_of_rows_leaves_what_is_between() {
    new_context();
    let (p, s) = (alloc(12 * 64), CUstream::NULL);
    let at = |row: u64| CUdeviceptr(p.0 + 64 * row);
    // Three elements in each of two rows, 32 bytes apart.
    cu!(
        cuMemsetD8_v2(p, 0xff, 12 * 64);
        cuMemsetD2D8_v2(at(0), 32, 1, 3, 2);
        cuMemsetD2D8_v2_ptds(at(1), 32, 2, 3, 2);
        cuMemsetD2D8Async(at(2), 32, 3, 3, 2, s);
        cuMemsetD2D8Async_ptsz(at(3), 32, 4, 3, 2, s);
        cuMemsetD2D16_v2(at(4), 32, 5, 3, 2);
        cuMemsetD2D16_v2_ptds(at(5), 32, 6, 3, 2);
        cuMemsetD2D16Async(at(6), 32, 7, 3, 2, s);
        cuMemsetD2D16Async_ptsz(at(7), 32, 8, 3, 2, s);
        cuMemsetD2D32_v2(at(8), 32, 9, 3, 2);
        cuMemsetD2D32_v2_ptds(at(9), 32, 10, 3, 2);
        cuMemsetD2D32Async(at(10), 32, 11, 3, 2, s);
        cuMemsetD2D32Async_ptsz(at(11), 32, 12, 3, 2, s);
        cuCtxSynchronize();
    );
    for (index, byte) in read::<u8>(p, 12 * 64).into_iter().enumerate() {
        let (kind, x) = (index / 64, index % 32);
        let element = [1, 2, 4][kind / 4];
        let expected = match x < 3 * element {
            true if x % element == 0 => kind as u8 + 1,
            true => 0,
            false => 0xff,
        };
        assert_eq!(byte, expected, "row {kind}, byte {x}");
    }
}

pub fn bounds_and_alignment_are_checked() {
    new_context();
    const SIZE: usize = 2 << 20;
    let p = alloc(SIZE);
    let at = |offset| CUdeviceptr(p.0 + offset);
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(at(2), 0, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD16_v2(at(1), 0, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32Async(at(1), 0, 1, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(p, 0, 3 * SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(p, 0, SIZE));
    for count in [usize::MAX, usize::MAX / 4 + 1, usize::MAX / 2] {
        if ours_only("NVIDIA's driver says that it has set them") {
            fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(p, 0, count));
            fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD32_v2(p, 0, count));
        }
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(CUdeviceptr(0), 0, 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD8_v2(CUdeviceptr(0x1234), 0, 1));
    cu!(cuMemsetD8_v2(p, 0, 0); cuMemsetD32_v2(p, 9, 0); cuMemsetD8_v2(p, 1, SIZE));
    if !ours_only("what NVIDIA's driver makes of such rows is not known") {
        return;
    }
    // Rows that overlap, and numbers that overflow.
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8_v2(p, 8, 0, 9, 2));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32_v2(p, 1024, 0, 4, SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D8_v2(p, usize::MAX / 2, 0, 4, 4));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemsetD2D32_v2(p, 64, 0, usize::MAX / 2, 2));
    cu!(cuMemsetD2D8_v2(p, 8, 0, 0, 2); cuMemsetD2D8_v2(p, 8, 0, 2, 0));
    assert_eq!(read::<u8>(p, 16), [1; 16], "nothing refused was done");
    if ours_only("a GPU driver follows the handle of a stream that is none") {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuMemsetD8Async(p, 0, 1, CUstream(0x1234)));
    }
}

pub fn a_set_does_not_wait_for_the_device() {
    new_context();
    let (gate, s) = (Gate::new(), stream(CU_STREAM_DEFAULT));
    let p = alloc_with(&[0u32; 4]);
    gate.hold(s);
    // The legacy stream waits for the held one, but the calls do not.
    cu!(cuMemsetD8_v2(p, 1, 16); cuMemsetD2D8_v2(p, 8, 2, 4, 2); cuMemcpyDtoD_v2(CUdeviceptr(p.0 + 4), p, 4));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(CUstream::NULL));
    gate.open();
    assert_eq!(read::<u32>(p, 4), [0x0202_0202, 0x0202_0202, 0x0202_0202, 0x0101_0101]);
}
