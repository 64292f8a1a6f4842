//! Memory management: batches of copies.

use super::common::*;

const STREAM_ORDER: CUmemcpyAttributes = CUmemcpyAttributes {
    srcAccessOrder: CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
    srcLocHint: CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_INVALID, id: 0 },
    dstLocHint: CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_INVALID, id: 0 },
    flags: CU_MEMCPY_FLAG_DEFAULT,
};

/// The arrays of a batch.
struct Batch {
    to: Vec<CUdeviceptr>,
    from: Vec<CUdeviceptr>,
    sizes: Vec<usize>,
    attributes: Vec<CUmemcpyAttributes>,
    firsts: Vec<usize>,
}

impl Batch {
    fn new(copies: &[(CUdeviceptr, CUdeviceptr, usize)]) -> Batch {
        Batch {
            to: copies.iter().map(|copy| copy.0).collect(),
            from: copies.iter().map(|copy| copy.1).collect(),
            sizes: copies.iter().map(|copy| copy.2).collect(),
            attributes: vec![STREAM_ORDER],
            firsts: vec![0],
        }
    }

    fn run(&mut self, stream: CUstream) -> CUresult {
        let (count, attributes) = (self.to.len(), self.attributes.len());
        let (to, from, sizes) = (self.to.as_mut_ptr(), self.from.as_mut_ptr(), self.sizes.as_mut_ptr());
        let (values, firsts) = (self.attributes.as_mut_ptr(), self.firsts.as_mut_ptr());
        // SAFETY: arrays of as many elements.
        unsafe { cuMemcpyBatchAsync_v2(to, from, sizes, count, values, firsts, attributes, stream) }
    }
}

pub fn a_batch_makes_all_its_copies() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (a, b, host) = (alloc_with(&[1u32, 2, 3, 4]), alloc_with(&[0u32; 4]), [5u32, 6]);
    let at = |p: CUdeviceptr, word: u64| CUdeviceptr(p.0 + 4 * word);
    let copies = [(at(b, 3), a, 4), (b, at(a, 1), 8), (at(b, 2), CUdeviceptr(host.as_ptr() as u64), 4)];
    let mut batch = Batch::new(&copies);
    batch.attributes.push(CUmemcpyAttributes {
        srcAccessOrder: CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
        flags: CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE,
        ..STREAM_ORDER
    });
    batch.firsts.push(2);
    assert_eq!(batch.run(s), CUDA_SUCCESS);
    cu!(cuStreamSynchronize(s));
    assert_eq!(read::<u32>(b, 4), [2, 3, 5, 1]);
    let (to, from, sizes) = (batch.to.as_mut_ptr(), batch.from.as_mut_ptr(), batch.sizes.as_mut_ptr());
    let (values, firsts, mut failed) = (batch.attributes.as_mut_ptr(), batch.firsts.as_mut_ptr(), 7);
    cu!(
        cuMemsetD8Async(b, 0, 16, s);
        cuMemcpyBatchAsync(to, from, sizes, 3, values, firsts, 2, &mut failed, s);
        cuStreamSynchronize(s);
    );
    assert_eq!(read::<u32>(b, 4), [2, 3, 5, 1]);
    if !ours_only(
        "for the variants stream 0 is the thread's own, which may have batches; NVIDIA's refuses it",
    ) {
        return;
    }
    cu!(
        cuMemsetD8_v2(b, 0, 16);
        cuCtxSynchronize();
        cuMemcpyBatchAsync_ptsz(to, from, sizes, 3, values, firsts, 2, &mut failed, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!(read::<u32>(b, 4), [2, 3, 5, 1]);
    cu!(
        cuMemsetD8_v2(b, 0, 16);
        cuCtxSynchronize();
        cuMemcpyBatchAsync_v2_ptsz(to, from, sizes, 3, values, firsts, 2, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!(read::<u32>(b, 4), [2, 3, 5, 1]);
}

pub fn a_source_may_be_gone_after_the_call() {
    new_context();
    let (s, gate, p) = (stream(CU_STREAM_NON_BLOCKING), Gate::new(), alloc(64));
    gate.hold(s);
    let mut ephemeral = [7u8; 64];
    let mut batch = Batch::new(&[(p, CUdeviceptr(ephemeral.as_mut_ptr() as u64), 64)]);
    batch.attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
    assert_eq!(batch.run(s), CUDA_SUCCESS);
    ephemeral.fill(0);
    gate.open();
    cu!(cuStreamSynchronize(s));
    assert_eq!(read::<u8>(p, 64), [7; 64]);
}

pub fn a_wrong_batch_does_nothing() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let (a, b) = (alloc_with(&[1u32; 4]), alloc_with(&[0u32; 4]));
    let good = [(b, a, 4), (CUdeviceptr(b.0 + 4), a, 4)];
    let wrong = |change: fn(&mut Batch)| {
        let mut batch = Batch::new(&good);
        change(&mut batch);
        assert_eq!(batch.run(s), CUDA_ERROR_INVALID_VALUE);
    };
    wrong(|batch| batch.attributes.clear());
    wrong(|batch| batch.firsts[0] = 1);
    wrong(|batch| {
        batch.attributes = vec![STREAM_ORDER; 2];
        batch.firsts = vec![0, 0];
    });
    wrong(|batch| {
        batch.attributes = vec![STREAM_ORDER; 2];
        batch.firsts = vec![0, 2];
    });
    wrong(|batch| {
        batch.attributes = vec![STREAM_ORDER; 3];
        batch.firsts = vec![0, 1, 2];
    });
    wrong(|batch| batch.attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
    wrong(|batch| batch.attributes[0].srcAccessOrder = CUmemcpySrcAccessOrder(9));
    wrong(|batch| batch.attributes[0].flags = 77);
    wrong(|batch| {
        batch.attributes[0].srcLocHint = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 99 }
    });
    wrong(|batch| batch.attributes[0].srcLocHint = CUmemLocation { r#type: CUmemLocationType(77), id: 0 });
    wrong(|batch| batch.to[1] = CUdeviceptr(0));
    wrong(|batch| batch.sizes[1] = 1 << 40);
    wrong(|batch| batch.to.clear());
    assert_eq!(Batch::new(&good).run(CUstream::NULL), CUDA_ERROR_INVALID_VALUE, "the legacy stream");
    assert_eq!(Batch::new(&good).run(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_VALUE, "the legacy stream");
    cu!(cuStreamSynchronize(s));
    if ours_only("NVIDIA's driver makes the copies before the wrong one") {
        assert_eq!(read::<u32>(b, 4), [0; 4]);
    }
    // The first variant tells which copy is wrong.
    let mut batch = Batch::new(&good);
    batch.to[1] = CUdeviceptr(0);
    let (to, from, sizes) = (batch.to.as_mut_ptr(), batch.from.as_mut_ptr(), batch.sizes.as_mut_ptr());
    let (values, firsts, mut failed) = (batch.attributes.as_mut_ptr(), batch.firsts.as_mut_ptr(), 7);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyBatchAsync(to, from, sizes, 2, values, firsts, 1, &mut failed, s)
    );
    assert_eq!(failed, 1);
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuMemcpyBatchAsync(to, from, sizes, 2, values, firsts, 0, &mut failed, s)
    );
    assert_eq!(failed, usize::MAX);
    if ours_only("NVIDIA's driver may follow null") {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuMemcpyBatchAsync_v2(null_mut(), from, sizes, 2, values, firsts, 1, s)
        );
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(to, from, sizes, 2, values, null_mut(), 1, s));
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpyBatchAsync_v2(to, from, sizes, 2, null_mut(), firsts, 1, s));
    }
}

fn operand(ptr: CUdeviceptr, row: usize, layer: usize) -> CUmemcpy3DOperand {
    let hint = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_INVALID, id: 0 };
    let memory = CUmemcpy3DMemory { ptr, rowLength: row, layerHeight: layer, locHint: hint };
    CUmemcpy3DOperand { r#type: CU_MEMCPY_OPERAND_TYPE_POINTER, op: CUmemcpy3DPlace { ptr: memory } }
}

fn boxed(to: CUmemcpy3DOperand, from: CUmemcpy3DOperand, extent: [usize; 3]) -> CUDA_MEMCPY3D_BATCH_OP {
    CUDA_MEMCPY3D_BATCH_OP {
        src: from,
        dst: to,
        extent: CUextent3D { width: extent[0], height: extent[1], depth: extent[2] },
        srcAccessOrder: CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        flags: 0,
    }
}

pub fn a_batch_of_boxes_makes_all_its_copies() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    let source: Vec<u8> = (0..64).collect();
    let (a, b) = (alloc_with(&source), alloc(128));
    let mut operations = [
        // 2 × 2 × 2 bytes out of rows of 8 and layers of 4, packed.
        boxed(operand(b, 0, 0), operand(CUdeviceptr(a.0 + 9), 8, 4), [2, 2, 2]),
        // A row.
        boxed(operand(CUdeviceptr(b.0 + 64), 16, 4), operand(a, 0, 0), [5, 1, 1]),
    ];
    let mut failed = 7;
    let ops = operations.as_mut_ptr();
    let check = || {
        cu!(cuCtxSynchronize());
        let after = read::<u8>(b, 128);
        assert_eq!(after[..9], [9, 10, 17, 18, 41, 42, 49, 50, 0xff]);
        assert_eq!(after[64..70], [0, 1, 2, 3, 4, 0xff]);
        cu!(cuMemsetD8_v2(b, 0xff, 128); cuCtxSynchronize());
    };
    cu!(cuMemsetD8_v2(b, 0xff, 128); cuCtxSynchronize(); cuMemcpy3DBatchAsync_v2(2, ops, 0, s));
    check();
    cu!(cuMemcpy3DBatchAsync(2, ops, &mut failed, 0, s));
    check();
    if ours_only("for the variants stream 0 is the thread's own, which may have batches; NVIDIA's refuses it")
    {
        cu!(cuMemcpy3DBatchAsync_v2_ptsz(2, ops, 0, CUstream::NULL));
        check();
        cu!(cuMemcpy3DBatchAsync_ptsz(2, ops, &mut failed, 0, CUstream::NULL));
        check();
    }
    let mut wrong_and_told = |told: usize, change: fn(&mut CUDA_MEMCPY3D_BATCH_OP)| {
        let before = operations[1];
        change(&mut operations[1]);
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, operations.as_mut_ptr(), 0, s));
        failed = 7;
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync(2, operations.as_mut_ptr(), &mut failed, 0, s));
        assert_eq!(failed, told);
        operations[1] = before;
    };
    let late =
        differs("NVIDIA's driver finds a size beyond all memory too late to tell whose it is", 1, usize::MAX);
    wrong_and_told(late, |operation| operation.extent.depth = 1 << 40);
    let mut wrong = |change: fn(&mut CUDA_MEMCPY3D_BATCH_OP)| wrong_and_told(1, change);
    wrong(|operation| operation.extent.width = 0);
    wrong(|operation| operation.extent.height = 0);
    wrong(|operation| operation.extent.depth = 0);
    wrong(|operation| operation.extent.width = 17);
    wrong(|operation| operation.extent.height = 5);
    wrong(|operation| operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
    wrong(|operation| operation.src.r#type = CUmemcpy3DOperandType(9));
    let ops = operations.as_mut_ptr();
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, ops, 1, s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(0, ops, 0, s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, ops, 0, CUstream::NULL));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuMemcpy3DBatchAsync_v2(2, null_mut(), 0, s));
    }
    cu!(cuCtxSynchronize());
    if ours_only("NVIDIA's driver makes the copies before the wrong one") {
        assert_eq!(read::<u8>(b, 128), [0xff; 128], "nothing refused was done");
    }
}
