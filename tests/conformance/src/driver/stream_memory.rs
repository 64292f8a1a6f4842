//! Stream memory operations.

use super::common::*;

fn operation(
    operation: CUstreamBatchMemOpType,
    address: CUdeviceptr,
    value64: u64,
    flags: u32,
) -> CUstreamBatchMemOpParams {
    CUstreamBatchMemOpParams {
        operation,
        barrierFlags: 0,
        address,
        value64,
        flags,
        alias: CUdeviceptr(0),
        pad: 0,
    }
}

pub fn every_write_stores_its_word() {
    new_context();
    let (p, s) = (alloc_with(&[0u32; 16]), stream(CU_STREAM_NON_BLOCKING));
    let at = |word: u64| CUdeviceptr(p.0 + 4 * word);
    let wide = |n: u64| n << 32 | (n + 1);
    if ours_only("NVIDIA's has the first versions switched off") {
        cu!(
            cuStreamWriteValue32(s, at(0), 1, 0);
            cuStreamWriteValue32_ptsz(s, at(1), 2, 0);
            cuStreamWriteValue64(s, at(4), wide(5), 0);
            cuStreamWriteValue64_ptsz(s, at(6), wide(7), 0);
        );
    } else {
        let first = [1u32, 2, 0, 0, 6, 5, 8, 7];
        // The bytes may arrive later than the call returns.
        cu!(cuMemcpyHtoD_v2(p, first.as_ptr().cast(), 32); cuCtxSynchronize());
    }
    cu!(
        cuStreamWriteValue32_v2(s, at(2), 3, 0);
        cuStreamWriteValue32_v2_ptsz(s, at(3), 4, CU_STREAM_WRITE_VALUE_DEFAULT);
        cuStreamWriteValue64_v2(s, at(8), wide(9), 0);
        cuStreamWriteValue64_v2_ptsz(s, at(10), wide(11), 0);
        cuStreamSynchronize(s);
    );
    assert_eq!(read::<u32>(p, 12), [1, 2, 3, 4, 6, 5, 8, 7, 10, 9, 12, 11]);
    // Only the first version leaves the barrier out.
    let without = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(s, at(2), 9, without));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64_v2(s, at(8), 9, without));
}

pub fn every_wait_waits_for_its_condition() {
    new_context();
    let (p, s, writing) = (alloc(64), stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let word = |value: u32| cu!(cuMemsetD32_v2(p, value, 2); cuCtxSynchronize());
    // Before, after, the value, and how they compare; the last counts around.
    let (geq, eq, and, nor) = (
        CU_STREAM_WAIT_VALUE_GEQ,
        CU_STREAM_WAIT_VALUE_EQ,
        CU_STREAM_WAIT_VALUE_AND,
        CU_STREAM_WAIT_VALUE_NOR,
    );
    let cases = [
        (4, 5, 5, geq),
        (4, 9, 5, geq),
        (8, 5, 5, eq),
        (8, 6, 2, and),
        (u32::MAX, 0xffff_fffe, 0xffff_fffe, nor),
        (u32::MAX - 1, 1, 0, geq),
    ];
    for (before, after, value, how) in cases {
        word(before);
        cu!(cuStreamWaitValue32_v2(s, p, value, how));
        fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
        cu!(cuStreamWriteValue32_v2(writing, p, after, 0); cuStreamSynchronize(s));
    }
    word(7);
    let long = 7 | 7 << 32;
    // All variants of what is true already.
    if ours_only("NVIDIA's has the first versions switched off") {
        cu!(
            cuStreamWaitValue32(s, p, 7, eq);
            cuStreamWaitValue32_ptsz(s, p, 7, eq);
            cuStreamWaitValue64(s, p, long, eq);
            cuStreamWaitValue64_ptsz(s, p, long, eq);
        );
    }
    cu!(
        cuStreamWaitValue32_v2_ptsz(s, p, 7, eq);
        cuStreamWaitValue64_v2(s, p, long, eq);
        cuStreamWaitValue64_v2_ptsz(s, p, long, eq);
        cuStreamSynchronize(s);
    );
    cu!(cuStreamWaitValue64_v2(s, p, long + 1, geq));
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    cu!(cuStreamWriteValue64_v2(writing, p, long + 2, 0); cuStreamSynchronize(s));
}

pub fn the_host_gives_a_signal() {
    new_context();
    let (s, mut host, p) = (stream(CU_STREAM_NON_BLOCKING), null_mut(), alloc_with(&[0u32; 1]));
    cu!(cuMemHostAlloc(&mut host, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    // SAFETY: four bytes of the test's, used as an atomic word by both sides.
    let word = unsafe { &*host.cast::<std::sync::atomic::AtomicU32>() };
    word.store(0, std::sync::atomic::Ordering::SeqCst);
    let address = CUdeviceptr(host as u64);
    cu!(
        cuStreamWaitValue32_v2(s, address, 1, CU_STREAM_WAIT_VALUE_EQ);
        cuMemsetD32Async(p, 5, 1, s);
        cuStreamWriteValue32_v2(s, address, 2, 0);
    );
    fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
    word.store(1, std::sync::atomic::Ordering::SeqCst);
    while word.load(std::sync::atomic::Ordering::SeqCst) != 2 {
        std::thread::yield_now();
    }
    cu!(cuStreamSynchronize(s));
    assert_eq!(read::<u32>(p, 1), [5]);
}

pub fn words_are_checked() {
    new_context();
    let (p, s) = (alloc(64), stream(CU_STREAM_NON_BLOCKING));
    for address in [CUdeviceptr(p.0 + 1), CUdeviceptr(p.0 + 2), CUdeviceptr(0), CUdeviceptr(0x1230)] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(s, address, 1, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32_v2(s, address, 1, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64_v2(s, address, 1, 0));
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue64_v2(s, address, 1, 0));
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue64_v2(s, CUdeviceptr(p.0 + 4), 1, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitValue32_v2(s, p, 1, 77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWriteValue32_v2(s, p, 1, 77));
    cu!(cuStreamQuery(s));
}

pub fn every_batch_does_all_its_operations() {
    new_context();
    let (p, s, writing) =
        (alloc_with(&[0u32; 8]), stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let at = |word: u64| CUdeviceptr(p.0 + 4 * word);
    let mut operations = [
        operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, at(0), 0xffff_0000_0000_0001, 0),
        operation(CU_STREAM_MEM_OP_WRITE_VALUE_64, at(2), 2 | 3 << 32, 0),
        operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, at(4), 9, CU_STREAM_WAIT_VALUE_EQ),
        operation(CU_STREAM_MEM_OP_WAIT_VALUE_64, at(4), 9, CU_STREAM_WAIT_VALUE_AND),
        operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, at(6), 4, 0),
    ];
    let ops = operations.as_mut_ptr();
    let reset = || cu!(cuMemsetD32_v2(p, 0, 8); cuCtxSynchronize());
    let check = || {
        fails!(CUDA_ERROR_NOT_READY, cuStreamQuery(s));
        cu!(cuStreamWriteValue32_v2(writing, at(4), 9, 0); cuStreamSynchronize(s));
        assert_eq!(read::<u32>(p, 8), [1, 0, 2, 3, 9, 0, 4, 0]);
        reset();
    };
    if ours_only("NVIDIA's has the first versions switched off") {
        cu!(cuStreamBatchMemOp(s, 5, ops, 0));
        check();
        cu!(cuStreamBatchMemOp_ptsz(s, 5, ops, 0));
        check();
    }
    cu!(cuStreamBatchMemOp_v2(s, 5, ops, 0));
    check();
    cu!(cuStreamBatchMemOp_v2_ptsz(s, 5, ops, 0));
    check();
    // A barrier is an operation of the second variant.
    operations[1].operation = CU_STREAM_MEM_OP_BARRIER;
    operations[2].operation = CU_STREAM_MEM_OP_BARRIER;
    operations[2].barrierFlags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    operations[3] = operations[0];
    cu!(cuStreamBatchMemOp_v2(s, 5, operations.as_mut_ptr(), 0); cuStreamSynchronize(s));
    assert_eq!(read::<u32>(p, 8), [1, 0, 0, 0, 0, 0, 4, 0]);
}

pub fn a_wrong_batch_does_nothing() {
    new_context();
    let (p, s) = (alloc_with(&[0u32; 8]), stream(CU_STREAM_NON_BLOCKING));
    let write = operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, p, 1, 0);
    let mut good = [write; 256];
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(s, 2, good.as_mut_ptr(), 1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(s, 257, good.as_mut_ptr(), 0));
    for wrong in [
        operation(CUstreamBatchMemOpType(99), p, 1, 0),
        operation(CU_STREAM_MEM_OP_WRITE_VALUE_32, CUdeviceptr(p.0 + 1), 1, 0),
        operation(CU_STREAM_MEM_OP_WAIT_VALUE_32, p, 1, 77),
        operation(CU_STREAM_MEM_OP_WRITE_VALUE_64, CUdeviceptr(p.0 + 4), 1, 0),
    ] {
        let mut operations = [write, wrong];
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2(s, 2, operations.as_mut_ptr(), 0));
    }
    if attribute(CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES) == 0 {
        let mut operations = [write, operation(CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, CUdeviceptr(0), 0, 0)];
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuStreamBatchMemOp_v2(s, 2, operations.as_mut_ptr(), 0));
        let flags = CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH;
        fails!(CUDA_ERROR_NOT_SUPPORTED, cuStreamWaitValue32_v2(s, p, 0, flags));
    }
    cu!(cuStreamSynchronize(s));
    assert_eq!(read::<u32>(p, 8), [0; 8]);
    if ours_only("NVIDIA's driver may follow null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp(s, 1, null_mut(), 0));
    }
}
