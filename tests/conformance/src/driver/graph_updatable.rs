//! Graph management: kernel nodes that kernels change, as the host makes them. What kernels do with them is in `tests/programs`.

use super::common::*;

const UPDATABLE: CUlaunchAttributeID = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;

fn wanted(updatable: u32) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
    value.bytes[..4].copy_from_slice(&updatable.to_ne_bytes());
    value
}

/// What kernels know a node by; 0 if they do not.
fn known(value: &CUlaunchAttributeValue) -> u64 {
    u64::from(value.word(2)) | u64::from(value.word(3)) << 32
}

fn kernel_node(graph: CUgraph) -> CUgraphNode {
    let (mut node, params) = (CUgraphNode::NULL, nothing());
    cu!(cuGraphAddKernelNode_v2(&mut node, graph, null(), 0, &params));
    node
}

fn nothing() -> CUDA_KERNEL_NODE_PARAMS {
    // SAFETY: zeros are a description.
    let mut params: CUDA_KERNEL_NODE_PARAMS = unsafe { std::mem::zeroed() };
    params.func = kernel(c"nothing");
    [params.gridDimX, params.gridDimY, params.gridDimZ] = [1; 3];
    [params.blockDimX, params.blockDimY, params.blockDimZ] = [1; 3];
    params
}

fn told(node: CUgraphNode) -> CUlaunchAttributeValue {
    let mut value = wanted(9);
    cu!(cuGraphKernelNodeGetAttribute(node, UPDATABLE, &mut value));
    value
}

pub fn a_node_stays_what_kernels_change() {
    new_context();
    let mut main = CUgraph::NULL;
    cu!(cuGraphCreate(&mut main, 0));
    let (node, other, value) = (kernel_node(main), kernel_node(main), wanted(1));
    assert_eq!((told(node).word(0), known(&told(node))), (0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(node, UPDATABLE, &wanted(2)));
    cu!(cuGraphKernelNodeSetAttribute(node, UPDATABLE, &value));
    assert_ne!(known(&value), 0, "what it is known by is written where the value is");
    assert_eq!(told(node).bytes[..16], value.bytes[..16]);
    let unsupported = CUDA_ERROR_NOT_SUPPORTED;
    fails!(unsupported, cuGraphKernelNodeSetAttribute(node, UPDATABLE, &wanted(0)));
    fails!(unsupported, cuGraphKernelNodeCopyAttributes(node, other));
    fails!(unsupported, cuGraphKernelNodeCopyAttributes(other, node));
    fails!(unsupported, cuGraphDestroyNode(node));
    fails!(unsupported, cuGraphClone(&mut CUgraph(0), main));
    // What it does is set as ever, and it can still be changed.
    let mut executable = CUgraphExec::NULL;
    cu!(
        cuGraphKernelNodeSetParams_v2(node, &nothing());
        cuGraphInstantiateWithFlags(&mut executable, main, 0);
        cuGraphExecKernelNodeSetParams_v2(executable, node, &nothing());
        cuGraphNodeSetEnabled(executable, node, 0);
        cuGraphLaunch(executable, CUstream::NULL);
        cuGraphNodeSetEnabled(executable, node, 1);
        cuGraphLaunch(executable, CUstream::NULL);
        cuCtxSynchronize();
    );
    assert_eq!(known(&told(node)), known(&value));
    // There is one executable graph with it, which no other graph's nodes go to.
    fails!(unsupported, cuGraphInstantiateWithFlags(&mut CUgraphExec(0), main, 0));
    // SAFETY: zeros are an answer.
    let mut result = unsafe { std::mem::zeroed() };
    fails!(unsupported, cuGraphExecUpdate_v2(executable, main, &mut result));
}

pub fn launches_in_captures_are_changed() {
    new_context();
    let (s, function) = (stream(CU_STREAM_NON_BLOCKING), kernel(c"nothing"));
    let mut attributes = [CUlaunchAttribute { id: UPDATABLE, pad: [0; 4], value: wanted(1) }];
    let config = one_thread_in(s, &mut attributes);
    let mut none: [*mut c_void; 1] = [null_mut()];
    let mut go = || {
        // SAFETY: the attribute lives through the call, and the kernel takes nothing.
        unsafe { cuLaunchKernelEx(&config, function, none.as_mut_ptr(), null_mut()) }
    };
    assert_eq!(go(), CUDA_ERROR_NOT_SUPPORTED, "there is no node");
    let (mut graph, mut node, mut count) = (CUgraph::NULL, CUgraphNode::NULL, 1);
    cu!(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_eq!(go(), CUDA_SUCCESS);
    cu!(cuStreamEndCapture(s, &mut graph); cuGraphGetNodes(graph, &mut node, &mut count));
    assert_ne!(known(&told(node)), 0);
    assert_eq!(known(&attributes[0].value), known(&told(node)));
}
