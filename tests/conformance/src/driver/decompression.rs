//! Memory management: compressed memory.

use super::common::*;

/// Where the parts of a test's memory begin.
const TO: u64 = 4096;
const LENGTH: u64 = 8192;

/// Which formats the device knows; a test of others ends here.
fn formats() -> i32 {
    let mut formats = 0;
    cu!(cuDeviceGetAttribute(&mut formats, CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0));
    formats
}

fn piece(
    memory: CUdeviceptr,
    algo: CUmemDecompressAlgorithm,
    bytes: usize,
    room: usize,
) -> CUmemDecompressParams {
    CUmemDecompressParams {
        srcNumBytes: bytes,
        dstNumBytes: room,
        dstActBytes: (memory.0 + LENGTH) as *mut u32,
        src: memory.0 as *const c_void,
        dst: (memory.0 + TO) as *mut c_void,
        algo,
        padding: [0; 20],
    }
}

/// Puts data into new memory that has room for its content.
fn packed(data: &[u8]) -> CUdeviceptr {
    let memory = alloc(LENGTH as usize + 4);
    cu!(cuMemsetD8_v2(memory, 0x55, LENGTH as usize + 4));
    cu!(cuMemcpyHtoD_v2(memory, data.as_ptr().cast(), data.len()));
    memory
}

fn content(memory: CUdeviceptr) -> Vec<u8> {
    let [len] = read::<u32>(CUdeviceptr(memory.0 + LENGTH), 1)[..] else { unreachable!("one number") };
    read(CUdeviceptr(memory.0 + TO), len as usize)
}

pub fn each_format_is_unpacked() {
    new_context();
    if formats() == 0 {
        skip("the device unpacks nothing");
    }
    let all = [
        // A stored block.
        (CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE, vec![1, 3, 0, 0xfc, 0xff, b'x', b'y', b'z'], b"xyz".to_vec()),
        // Its length, four literals, and eight bytes from four before.
        (
            CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY,
            vec![12, 12, b'a', b'b', b'c', b'd', 17, 4],
            b"abcdabcdabcd".to_vec(),
        ),
        // Five literals.
        (CU_MEM_DECOMPRESS_ALGORITHM_LZ4, b"\x50hello".to_vec(), b"hello".to_vec()),
    ];
    let memories: Vec<_> = all.iter().map(|(_, data, _)| packed(data)).collect();
    let mut pieces: Vec<_> = all
        .iter()
        .zip(&memories)
        .map(|((algo, data, _), memory)| piece(*memory, *algo, data.len(), 64))
        .collect();
    let mut wrong = 0;
    cu!(cuMemBatchDecompressAsync(pieces.as_mut_ptr(), 3, 0, &mut wrong, CUstream::NULL); cuCtxSynchronize());
    for (memory, (_, _, wanted)) in memories.iter().zip(&all) {
        assert_eq!(content(*memory), *wanted);
    }
    // The length of the content need not be known, nor a stream for all threads be meant.
    pieces[2].dstNumBytes = 0;
    cu!(cuMemsetD8_v2(memories[2], 0, TO as usize * 2 + 4));
    cu!(cuMemcpyHtoD_v2(memories[2], all[2].1.as_ptr().cast(), all[2].1.len()));
    cu!(cuMemBatchDecompressAsync_ptsz(&mut pieces[2], 1, 0, null_mut(), CUstream::NULL); cuCtxSynchronize());
    assert_eq!(content(memories[2]), b"hello");
}

pub fn what_is_wrong_is_told_before_anything_is_done() {
    new_context();
    let memory = packed(b"\x50hello");
    let good = piece(memory, CU_MEM_DECOMPRESS_ALGORITHM_LZ4, 6, 64);
    let mut index = 77;
    if formats() == 0 {
        let mut good = good;
        fails!(
            CUDA_ERROR_NOT_SUPPORTED,
            cuMemBatchDecompressAsync(&mut good, 1, 0, &mut index, CUstream::NULL)
        );
        fails!(
            CUDA_ERROR_NOT_SUPPORTED,
            cuMemBatchDecompressAsync(null_mut(), 0, 1, &mut index, CUstream::NULL)
        );
        return;
    }
    const WRONG: CUresult = CUDA_ERROR_INVALID_VALUE;
    for bad in [
        CUmemDecompressParams { algo: CU_MEM_DECOMPRESS_UNSUPPORTED, ..good },
        CUmemDecompressParams { src: null(), ..good },
        CUmemDecompressParams { dst: null_mut(), ..good },
        CUmemDecompressParams { dstActBytes: null_mut(), ..good },
        CUmemDecompressParams { srcNumBytes: 1 << 30, ..good },
        CUmemDecompressParams { dstNumBytes: 1 << 30, ..good },
    ] {
        let mut pieces = [good, bad];
        fails!(WRONG, cuMemBatchDecompressAsync(pieces.as_mut_ptr(), 2, 0, &mut index, CUstream::NULL));
        assert_eq!(index, 1);
    }
    let mut good = good;
    fails!(WRONG, cuMemBatchDecompressAsync(&mut good, 0, 0, &mut index, CUstream::NULL));
    assert_eq!(index, usize::MAX);
    fails!(WRONG, cuMemBatchDecompressAsync(&mut good, 1, 1, &mut index, CUstream::NULL));
    fails!(WRONG, cuMemBatchDecompressAsync(null_mut(), 1, 0, &mut index, CUstream::NULL));
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u8>(CUdeviceptr(memory.0 + TO), 5), [0x55; 5], "nothing was done");
}

pub fn what_is_no_such_data_fails_the_context() {
    if !is_ours() {
        skip("what a GPU with such an engine answers is not known");
    }
    new_context();
    let memory = packed(&[0xff; 8]);
    let mut bad = piece(memory, CU_MEM_DECOMPRESS_ALGORITHM_LZ4, 8, 64);
    cu!(cuMemBatchDecompressAsync(&mut bad, 1, 0, null_mut(), CUstream::NULL));
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}
