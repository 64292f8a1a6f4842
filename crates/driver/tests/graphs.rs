//! Graphs and stream capture.
//!
//! Captures concern the whole process, so there is one test.

mod common;
use common::*;
use std::sync::atomic::{AtomicU32, Ordering};

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn count(amount: *mut c_void) {
    CALLS.fetch_add(amount as u32, Ordering::SeqCst);
}

/// `vecadd` of one block.
fn add_params(function: CUfunction, arguments: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        func: function,
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 64,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: null_mut(),
        kern: CUkernel::NULL,
        ctx: CUcontext::NULL,
    }
}

#[test]
fn graphs() {
    let context = new_context();
    let add = function(load(KERNELS), "vecadd");
    let n = 64u32;
    let (a, b, c) = (alloc_with(&[1.0f32; 64]), alloc_with(&[2.0f32; 64]), alloc(256));

    let mut graph = CUgraph::NULL;
    cu!(cuGraphCreate(out(&mut graph), 0));
    let clear = CUDA_MEMSET_NODE_PARAMS { dst: c, pitch: 0, value: 0, elementSize: 4, width: 64, height: 1 };
    let (mut first, mut second, mut third) = (CUgraphNode::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
    cu!(cuGraphAddMemsetNode(out(&mut first), graph, no_array(), 0, by_ref(&clear), context));
    let mut arguments = [arg(&a), arg(&b), arg(&c), arg(&n)];
    let params = add_params(add, &mut arguments);
    cu!(cuGraphAddKernelNode_v2(out(&mut second), graph, array(&mut [first]), 1, by_ref(&params)));
    let call = CUDA_HOST_NODE_PARAMS { r#fn: Some(count), userData: std::ptr::without_provenance_mut(3) };
    cu!(cuGraphAddHostNode(out(&mut third), graph, array(&mut [second]), 1, by_ref(&call)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddEmptyNode(nowhere(), graph, no_array(), 0));

    let (mut number, mut nodes) = (0usize, [CUgraphNode(1); 5]);
    cu!(cuGraphGetNodes(graph, no_array(), out(&mut number)));
    assert_eq!(number, 3);
    number = 5;
    cu!(cuGraphGetNodes(graph, array(&mut nodes), out(&mut number)));
    assert_eq!((number, nodes), (3, [first, second, third, CUgraphNode::NULL, CUgraphNode::NULL]));
    let mut kind = CU_GRAPH_NODE_TYPE_EMPTY;
    cu!(cuGraphNodeGetType(second, out(&mut kind)));
    assert_eq!(kind, CU_GRAPH_NODE_TYPE_KERNEL);
    // SAFETY: numbers, null pointers and handles only.
    let mut told: CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
    cu!(cuGraphKernelNodeGetParams_v2(second, out(&mut told)));
    assert_eq!((told.func, told.blockDimX), (add, 64));
    // SAFETY: the fourth parameter is a 32-bit number.
    assert_eq!(unsafe { told.kernelParams.add(3).read().cast::<u32>().read() }, n);

    let mut executable = CUgraphExec::NULL;
    cu!(cuGraphInstantiateWithFlags(out(&mut executable), graph, 0));
    let flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(out(&mut executable), graph, flags));
    for _ in 0..4 {
        cu!(cuGraphLaunch(executable, CUstream::NULL));
    }
    cu!(cuCtxSynchronize());
    assert_eq!(read::<f32>(c, 64), [3.0; 64]);
    assert_eq!(CALLS.swap(0, Ordering::SeqCst), 12);
    let mut twice = [arg(&b), arg(&b), arg(&c), arg(&n)];
    let params = add_params(add, &mut twice);
    cu!(cuGraphExecKernelNodeSetParams_v2(executable, second, by_ref(&params)));
    // Host functions are never left out, as an H100's driver has it; kernels are.
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetEnabled(executable, third, 0));
    for (enabled, sum) in [(0, 0.0), (1, 4.0)] {
        cu!(cuGraphNodeSetEnabled(executable, second, enabled); cuGraphLaunch(executable, CUstream::NULL));
        cu!(cuCtxSynchronize());
        assert_eq!((read::<f32>(c, 64), CALLS.swap(0, Ordering::SeqCst)), (vec![sum; 64], 3));
    }
    cu!(cuGraphExecDestroy(executable); cuGraphDestroy(graph));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(graph, no_array(), out(&mut number)));

    let mut stream = CUstream::NULL;
    cu!(cuStreamCreate(out(&mut stream), CU_STREAM_NON_BLOCKING));
    cu!(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    let mut status = CU_STREAM_CAPTURE_STATUS_NONE;
    cu!(cuStreamIsCapturing(stream, out(&mut status)));
    assert_eq!(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    cu!(cuMemsetD32Async(c, 0, 64, stream));
    assert_eq!(launch(add, 1, 64, stream, &mut arguments), CUDA_SUCCESS);
    let (mut id, mut graph, mut tips, mut number) = (0, CUgraph::NULL, null(), 0);
    cu!(cuStreamGetCaptureInfo_v2(
        stream,
        out(&mut status),
        out(&mut id),
        out(&mut graph),
        out(&mut tips),
        out(&mut number)
    ));
    assert_eq!(number, 1);
    // SAFETY: the driver keeps one node there.
    let tip = unsafe { tips.read() };
    cu!(cuGraphNodeGetType(tip, out(&mut kind)));
    assert_eq!(kind, CU_GRAPH_NODE_TYPE_KERNEL);
    let mut captured = CUgraph::NULL;
    cu!(cuStreamEndCapture(stream, out(&mut captured)));
    assert_eq!(captured, graph);
    assert_eq!(read::<f32>(c, 64), [4.0; 64], "nothing ran");
    cu!(cuGraphInstantiateWithFlags(out(&mut executable), captured, 0); cuGraphLaunch(executable, stream));
    cu!(cuStreamSynchronize(stream));
    assert_eq!(read::<f32>(c, 64), [3.0; 64]);

    cu!(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc_v2(out(&mut pointer), 4));
    fails!(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, out(&mut captured)));
    assert_eq!(captured, CUgraph::NULL);
    cu!(cuStreamDestroy_v2(stream); cuCtxDestroy_v2(context));
}
