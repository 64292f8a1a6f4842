//! Graph management.

use std::mem::zeroed;
use std::sync::atomic::{AtomicU32, Ordering};

use super::common::driver::{
    CU_GRAPH_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_TYPE_SWITCH, CU_GRAPH_NODE_TYPE_CONDITIONAL,
    CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_HOST,
    CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE,
    CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CUdeviceptr,
};
use super::common::*;

const UP: cudaMemcpyKind = cudaMemcpyHostToDevice;
const DOWN: cudaMemcpyKind = cudaMemcpyDeviceToHost;
const ACROSS: cudaMemcpyKind = cudaMemcpyDeviceToDevice;

fn graph() -> cudaGraph_t {
    let mut graph = cudaGraph_t::NULL;
    cuda!(cudaGraphCreate(&mut graph, 0));
    graph
}

fn executable(graph: cudaGraph_t) -> cudaGraphExec_t {
    let mut executable = cudaGraphExec_t::NULL;
    cuda!(cudaGraphInstantiate(&mut executable, graph, 0));
    executable
}

fn run(executable: cudaGraphExec_t) {
    cuda!(cudaGraphLaunch(executable, DEFAULT); cudaDeviceSynchronize());
}

fn empty(graph: cudaGraph_t, after: &[cudaGraphNode_t]) -> cudaGraphNode_t {
    let mut node = cudaGraphNode_t::NULL;
    cuda!(cudaGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()));
    node
}

fn fill(pointer: *mut c_void, value: u32, count: usize) -> cudaMemsetParams {
    let dst = CUdeviceptr(pointer.addr() as u64);
    cudaMemsetParams { dst, pitch: 0, value, elementSize: 4, width: count, height: 1 }
}

unsafe extern "C" fn count(datum: *mut c_void) {
    // SAFETY: the test's counter.
    unsafe { &*datum.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

fn calls(counter: &AtomicU32) -> cudaHostNodeParams {
    cudaHostNodeParams { r#fn: Some(count), userData: arg(counter) }
}

fn increment(by: &mut [*mut c_void], kernel: *const c_void) -> cudaKernelNodeParams {
    cudaKernelNodeParams {
        func: kernel.cast_mut(),
        gridDim: size(1),
        blockDim: size(1),
        sharedMemBytes: 0,
        kernelParams: by.as_mut_ptr(),
        extra: null_mut(),
    }
}

fn box_copy(dst: *mut c_void, src: *mut c_void, bytes: usize) -> cudaMemcpy3DParms {
    let row = |ptr| cudaPitchedPtr { ptr, pitch: bytes, xsize: bytes, ysize: 1 };
    let start = cudaPos { x: 0, y: 0, z: 0 };
    cudaMemcpy3DParms {
        srcArray: cudaArray_t::NULL,
        srcPos: start,
        srcPtr: row(src),
        dstArray: cudaArray_t::NULL,
        dstPos: start,
        dstPtr: row(dst),
        extent: cudaExtent { width: bytes, height: 1, depth: 1 },
        kind: ACROSS,
    }
}

pub fn nodes_and_edges() {
    let main = graph();
    let (a, b) = (empty(main, &[]), empty(main, &[]));
    let c = empty(main, &[a]);
    cuda!(cudaGraphAddDependencies(main, &b, &c, null(), 1));
    let mut number = 0;
    cuda!(cudaGraphGetNodes(main, null_mut(), &mut number));
    assert_eq!(number, 3);
    cuda!(cudaGraphGetEdges(main, null_mut(), null_mut(), null_mut(), &mut number));
    assert_eq!(number, 2);
    let mut found = [cudaGraphNode_t::NULL; 4];
    number = 4;
    cuda!(cudaGraphGetRootNodes(main, found.as_mut_ptr(), &mut number));
    assert_eq!((number, found.contains(&a), found.contains(&b), found.contains(&c)), (2, true, true, false));
    number = 4;
    cuda!(cudaGraphNodeGetDependencies(c, found.as_mut_ptr(), null_mut(), &mut number));
    assert_eq!(number, 2);
    number = 4;
    cuda!(cudaGraphNodeGetDependentNodes(a, found.as_mut_ptr(), null_mut(), &mut number));
    assert_eq!((number, found[0]), (1, c));
    cuda!(cudaGraphRemoveDependencies(main, &b, &c, null(), 1));
    cuda!(cudaGraphGetEdges(main, null_mut(), null_mut(), null_mut(), &mut number));
    assert_eq!(number, 1);
    let (mut copy, mut of_copy, mut kind) =
        (cudaGraph_t::NULL, cudaGraphNode_t::NULL, driver::CUgraphNodeType(99));
    cuda!(cudaGraphClone(&mut copy, main); cudaGraphNodeFindInClone(&mut of_copy, c, copy));
    cuda!(cudaGraphNodeGetType(of_copy, &mut kind));
    assert_eq!(kind, CU_GRAPH_NODE_TYPE_EMPTY);
    cuda!(cudaGraphDestroyNode(b); cudaGraphGetNodes(main, null_mut(), &mut number));
    assert_eq!(number, 2);
    let path = std::env::temp_dir().join(format!("conformance-runtime-graph-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().expect("a plain path")).expect("no NUL");
    cuda!(cudaGraphDebugDotPrint(main, name.as_ptr(), 0));
    std::fs::remove_file(&path).expect("the picture is there");
    cuda!(cudaGraphDestroy(copy); cudaGraphDestroy(main));
    fails!(cudaErrorInvalidValue, cudaGraphCreate(null_mut(), 0));
    fails!(cudaErrorInvalidValue, cudaGraphCreate(&mut copy, 1));
    if ours_only("NVIDIA's driver crashes on a destroyed graph") {
        fails!(cudaErrorInvalidValue, cudaGraphDestroy(main));
        fails!(cudaErrorInvalidValue, cudaGraphClone(&mut copy, main));
        fails!(cudaErrorInvalidValue, cudaGraphDestroyNode(b));
    }
}

pub fn kernel_nodes() {
    let library = library(KERNELS);
    let bump = as_function(kernel_of(library, c"bump"));
    let (mut counter, main, mut node) = (null_mut(), graph(), cudaGraphNode_t::NULL);
    cuda!(cudaLibraryGetGlobal(&mut counter, null_mut(), library, c"counter".as_ptr()));
    let (one, ten, hundred) = (1u32, 10u32, 100u32);
    cuda!(cudaGraphAddKernelNode(&mut node, main, null(), 0, &increment(&mut [arg(&one)], bump)));
    let first = executable(main);
    run(first);
    assert_eq!(read::<u32>(counter, 1), [8]);
    cuda!(cudaGraphExecKernelNodeSetParams(first, node, &increment(&mut [arg(&ten)], bump)));
    run(first);
    assert_eq!(read::<u32>(counter, 1), [18]);
    cuda!(cudaGraphKernelNodeSetParams(node, &increment(&mut [arg(&hundred)], bump)));
    run(executable(main));
    assert_eq!(read::<u32>(counter, 1), [118]);
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut described: cudaKernelNodeParams = unsafe { zeroed() };
    let (no_host_function, code) =
        ("NVIDIA's runtime tells host functions only", cudaErrorInvalidDeviceFunction);
    fails!(
        runtime_differs(no_host_function, cudaSuccess, code),
        cudaGraphKernelNodeGetParams(node, &mut described)
    );
    if our_runtime_only(no_host_function) {
        assert_eq!((described.gridDim.x, described.blockDim.x), (1, 1));
        // SAFETY: the driver's copies of the parameters.
        assert_eq!(unsafe { (*described.kernelParams).cast::<u32>().read() }, 100);
    }
    let (mut enabled, mut value) = (9, cudaLaunchAttributeValue { bytes: [0; 64] });
    cuda!(cudaGraphNodeGetEnabled(first, node, &mut enabled));
    assert_eq!(enabled, 1);
    cuda!(cudaGraphNodeSetEnabled(first, node, 0));
    run(first);
    assert_eq!(read::<u32>(counter, 1), [118]);
    value.bytes[0] = 1;
    let cooperative = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cuda!(cudaGraphKernelNodeSetAttribute(node, cooperative, &value));
    let mut other = cudaGraphNode_t::NULL;
    cuda!(cudaGraphAddKernelNode(&mut other, main, &node, 1, &increment(&mut [arg(&one)], bump)));
    cuda!(cudaGraphKernelNodeCopyAttributes(other, node));
    value.bytes[0] = 0;
    cuda!(cudaGraphKernelNodeGetAttribute(other, cooperative, &mut value));
    assert_eq!(value.word(0), 1);
    run(executable(main));
    assert_eq!(read::<u32>(counter, 1), [219]);
    fails!(
        cudaErrorInvalidDeviceFunction,
        cudaGraphAddKernelNode(&mut node, main, null(), 0, &increment(&mut [arg(&one)], null()))
    );
    fails!(cudaErrorInvalidValue, cudaGraphAddKernelNode(&mut node, main, null(), 0, null()));
}

pub fn nodes_that_copy_and_fill() {
    let (first, second, third) = (malloc(64), malloc(64), malloc(64));
    let (main, mut set, mut copy, mut row) =
        (graph(), cudaGraphNode_t::NULL, cudaGraphNode_t::NULL, cudaGraphNode_t::NULL);
    cuda!(cudaGraphAddMemsetNode(&mut set, main, null(), 0, &fill(first, 1, 16)));
    cuda!(cudaGraphAddMemcpyNode(&mut copy, main, &set, 1, &box_copy(second, first, 64)));
    cuda!(cudaGraphAddMemcpyNode1D(&mut row, main, &copy, 1, third, second, 32, ACROSS));
    cuda!(cudaMemset(third, 0, 64); cudaDeviceSynchronize());
    let ready = executable(main);
    run(ready);
    assert_eq!(read::<u32>(third, 16), [[1; 8], [0; 8]].concat());
    cuda!(cudaGraphExecMemsetNodeSetParams(ready, set, &fill(first, 2, 16)));
    cuda!(cudaGraphExecMemcpyNodeSetParams(ready, copy, &box_copy(second, first, 32)));
    // What is memory of the device's stays such.
    let mut here = [0u32; 8];
    fails!(
        cudaErrorInvalidValue,
        cudaGraphExecMemcpyNodeSetParams1D(
            ready,
            row,
            here.as_mut_ptr().cast(),
            second,
            32,
            cudaMemcpyDefault
        )
    );
    // Where nothing was said of it, it may be any.
    let (either, mut free) = (graph(), cudaGraphNode_t::NULL);
    cuda!(cudaGraphAddMemcpyNode1D(&mut free, either, null(), 0, third, second, 32, cudaMemcpyDefault));
    let ready_for_either = executable(either);
    let to = here.as_mut_ptr().cast();
    cuda!(cudaGraphExecMemcpyNodeSetParams1D(ready_for_either, free, to, second, 32, cudaMemcpyDefault));
    cuda!(cudaGraphExecMemcpyNodeSetParams1D(ready, row, third, second, 64, ACROSS));
    run(ready);
    assert_eq!(read::<u32>(third, 16), [[2; 8], [1; 8]].concat());
    cuda!(cudaGraphMemsetNodeSetParams(set, &fill(first, 3, 4)));
    cuda!(cudaGraphMemcpyNodeSetParams(copy, &box_copy(second, first, 16)));
    cuda!(cudaGraphMemcpyNodeSetParams1D(row, third, second, 16, ACROSS));
    run(executable(main));
    assert_eq!(read::<u32>(third, 4), [3; 4]);
    let mut described = fill(null_mut(), 0, 0);
    cuda!(cudaGraphMemsetNodeGetParams(set, &mut described));
    assert_eq!((described.value, described.width), (3, 4));
    let mut described = box_copy(null_mut(), null_mut(), 0);
    cuda!(cudaGraphMemcpyNodeGetParams(copy, &mut described));
    assert_eq!((described.extent.width, described.dstPtr.ptr, described.srcPtr.ptr), (16, second, first));
    cuda!(cudaGraphMemcpyNodeGetParams(row, &mut described));
    assert_eq!((described.extent.width, described.dstPtr.pitch, described.srcPtr.pitch), (16, 0, 0));
    let mut info = cudaGraphExecUpdateResultInfo {
        result: driver::CUgraphExecUpdateResult(99),
        errorNode: cudaGraphNode_t::NULL,
        errorFromNode: cudaGraphNode_t::NULL,
    };
    cuda!(cudaGraphExecUpdate(ready, main, &mut info));
    assert_eq!(info.result.0, 0);
    fails!(cudaErrorGraphExecUpdateFailure, cudaGraphExecUpdate(ready, graph(), &mut info));
    assert_ne!(info.result.0, 0);
    fails!(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&mut set, main, null(), 0, null()));
    fails!(cudaErrorInvalidValue, cudaGraphAddMemsetNode(&mut set, main, null(), 0, &fill(first, 1, 0)));
    fails!(cudaErrorInvalidValue, cudaGraphAddMemcpyNode(&mut set, main, null(), 0, null()));
}

pub fn nodes_for_hosts_events_and_graphs() {
    let (first, second) = (AtomicU32::new(0), AtomicU32::new(0));
    let (main, mut node) = (graph(), cudaGraphNode_t::NULL);
    cuda!(cudaGraphAddHostNode(&mut node, main, null(), 0, &calls(&first)));
    let ready = executable(main);
    run(ready);
    cuda!(cudaGraphExecHostNodeSetParams(ready, node, &calls(&second)));
    run(ready);
    assert_eq!((first.load(Ordering::SeqCst), second.load(Ordering::SeqCst)), (1, 1));
    cuda!(cudaGraphHostNodeSetParams(node, &calls(&second)));
    let mut described = calls(&first);
    cuda!(cudaGraphHostNodeGetParams(node, &mut described));
    assert_eq!(described.userData, arg(&second));

    let (mut record, mut wait, mut found) = (cudaGraphNode_t::NULL, cudaGraphNode_t::NULL, cudaEvent_t::NULL);
    let (one, other) = (event(), event());
    cuda!(cudaGraphAddEventRecordNode(&mut record, main, &node, 1, one));
    cuda!(cudaGraphAddEventWaitNode(&mut wait, main, &record, 1, one));
    cuda!(cudaGraphEventRecordNodeGetEvent(record, &mut found));
    assert_eq!(found, one);
    cuda!(cudaGraphEventRecordNodeSetEvent(record, other); cudaGraphEventWaitNodeSetEvent(wait, other));
    cuda!(cudaGraphEventWaitNodeGetEvent(wait, &mut found));
    assert_eq!(found, other);
    let ready = executable(main);
    cuda!(cudaGraphExecEventRecordNodeSetEvent(ready, record, one); cudaGraphExecEventWaitNodeSetEvent(ready, wait, one));
    run(ready);
    cuda!(cudaEventQuery(one));

    let (outer, mut child, mut inside) = (graph(), cudaGraphNode_t::NULL, cudaGraph_t::NULL);
    cuda!(cudaGraphAddChildGraphNode(&mut child, outer, null(), 0, main));
    cuda!(cudaGraphChildGraphNodeGetGraph(child, &mut inside));
    assert!(inside != main && !inside.is_null());
    let ready = executable(outer);
    let before = second.load(Ordering::SeqCst);
    cuda!(cudaGraphExecChildGraphNodeSetParams(ready, child, main));
    run(ready);
    assert_eq!(second.load(Ordering::SeqCst), before + 1);
}

pub fn nodes_that_allocate() {
    let (main, mut node) = (graph(), cudaGraphNode_t::NULL);
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut memory: cudaMemAllocNodeParams = unsafe { zeroed() };
    memory.poolProps.allocType = driver::CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.poolProps.location = driver::CUmemLocation { r#type: driver::CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    memory.bytesize = 64;
    cuda!(cudaGraphAddMemAllocNode(&mut node, main, null(), 0, &mut memory));
    let pointer: *mut c_void = std::ptr::with_exposed_provenance_mut(memory.dptr.0 as usize);
    let (mut set, mut free, mut row, result) = (node, node, node, malloc(64));
    cuda!(cudaGraphAddMemsetNode(&mut set, main, &node, 1, &fill(pointer, 4, 16)));
    cuda!(cudaGraphAddMemcpyNode1D(&mut row, main, &set, 1, result, pointer, 64, ACROSS));
    cuda!(cudaGraphAddMemFreeNode(&mut free, main, &row, 1, pointer));
    run(executable(main));
    assert_eq!(read::<u32>(result, 16), [4; 16]);
    let mut described = memory;
    described.bytesize = 0;
    cuda!(cudaGraphMemAllocNodeGetParams(node, &mut described));
    assert_eq!((described.bytesize, described.dptr), (64, memory.dptr));
    let mut freed: *mut c_void = null_mut();
    cuda!(cudaGraphMemFreeNodeGetParams(free, (&raw mut freed).cast()));
    assert_eq!(freed, pointer);
}

/// A description of a node without anything in it.
fn any(r#type: cudaGraphNodeType) -> cudaGraphNodeParams {
    // SAFETY: numbers and a union of them, for which zero is a value.
    let params: cudaGraphNodeParams = unsafe { zeroed() };
    cudaGraphNodeParams { r#type, ..params }
}

pub fn nodes_of_every_kind_by_one_function() {
    let (main, counter, first, second) = (graph(), AtomicU32::new(0), malloc(64), malloc(64));
    let mut last = cudaGraphNode_t::NULL;
    let mut add = |params: &mut cudaGraphNodeParams| {
        let (before, mut node, mut kind) = (last, cudaGraphNode_t::NULL, driver::CUgraphNodeType(99));
        let after = usize::from(!before.is_null());
        cuda!(cudaGraphAddNode(&mut node, main, &before, null(), after, params); cudaGraphNodeGetType(node, &mut kind));
        assert_eq!(kind, params.r#type);
        last = node;
        node
    };
    let mut odd = any(CU_GRAPH_NODE_TYPE_EMPTY);
    // SAFETY: numbers.
    unsafe { odd.params.reserved1[28] = 7 };
    let mut none = cudaGraphNode_t::NULL;
    fails!(cudaErrorInvalidValue, cudaGraphAddNode(&mut none, main, null(), null(), 0, &mut odd));
    let mut set = any(CU_GRAPH_NODE_TYPE_MEMSET);
    set.params.memset = fill(first, 6, 16);
    let set_node = add(&mut set);
    let mut copy = any(CU_GRAPH_NODE_TYPE_MEMCPY);
    copy.params.memcpy =
        cudaMemcpyNodeParams { flags: 0, reserved: [0; 3], copyParams: box_copy(second, first, 64) };
    add(&mut copy);
    let (address, poke) = (second, kernel(c"poke"));
    let mut arguments = [arg(&address)];
    let mut launch = any(CU_GRAPH_NODE_TYPE_KERNEL);
    launch.params.kernel = increment(&mut arguments, poke);
    add(&mut launch);
    let mut host = any(CU_GRAPH_NODE_TYPE_HOST);
    host.params.host = calls(&counter);
    add(&mut host);
    let mut record = any(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    record.params.event = event();
    add(&mut record);
    let mut memory = any(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut wanted: cudaMemAllocNodeParams = unsafe { zeroed() };
    wanted.poolProps.allocType = driver::CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location = driver::CUmemLocation { r#type: driver::CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    wanted.bytesize = 256;
    memory.params.alloc = wanted;
    add(&mut memory);
    // SAFETY: the member that the type names.
    let allocated = unsafe { memory.params.alloc }.dptr;
    assert_ne!(allocated.0, 0);
    let mut free = any(CU_GRAPH_NODE_TYPE_MEM_FREE);
    free.params.free = allocated;
    add(&mut free);
    let ready = executable(main);
    run(ready);
    let mut expected = vec![6u32; 16];
    expected[0] = 1;
    assert_eq!((read::<u32>(second, 16), counter.load(Ordering::SeqCst)), (expected, 1));
    set.params.memset = fill(first, 8, 16);
    cuda!(cudaGraphExecNodeSetParams(ready, set_node, &mut set));
    run(ready);
    assert_eq!(read::<u32>(second, 16)[1..], [8; 15]);
    set.params.memset = fill(first, 9, 16);
    cuda!(cudaGraphNodeSetParams(set_node, &mut set));
    // With a node that allocates there is one executable graph at a time.
    fails!(cudaErrorNotSupported, cudaGraphInstantiate(&mut cudaGraphExec_t::default(), main, 0));
    cuda!(cudaGraphExecDestroy(ready));
    let ready = executable(main);
    run(ready);
    assert_eq!(read::<u32>(second, 16)[1..], [9; 15]);
    fails!(cudaErrorInvalidValue, cudaGraphNodeSetParams(set_node, null_mut()));
    fails!(cudaErrorInvalidValue, cudaGraphNodeSetParams(set_node, &mut host));
    fails!(cudaErrorInvalidValue, cudaGraphExecNodeSetParams(ready, set_node, null_mut()));
}

pub fn ways_to_make_ready_and_launch() {
    let (main, counter, stream) = (graph(), AtomicU32::new(0), stream());
    let mut node = cudaGraphNode_t::NULL;
    cuda!(cudaGraphAddHostNode(&mut node, main, null(), 0, &calls(&counter)));
    let (mut ready, mut flags) = (cudaGraphExec_t::NULL, 9);
    cuda!(cudaGraphInstantiateWithFlags(&mut ready, main, 0); cudaGraphExecGetFlags(ready, &mut flags));
    assert_eq!(flags, 0);
    cuda!(cudaGraphUpload(ready, stream); cudaGraphUpload_ptsz(ready, DEFAULT));
    cuda!(cudaGraphLaunch(ready, stream); cudaGraphLaunch_ptsz(ready, DEFAULT); cudaDeviceSynchronize());
    assert_eq!(counter.load(Ordering::SeqCst), 2);
    // SAFETY: numbers, for which zero is a value.
    let mut params: cudaGraphInstantiateParams = unsafe { zeroed() };
    cuda!(cudaGraphInstantiateWithParams(&mut ready, main, &mut params));
    run(ready);
    cuda!(cudaGraphInstantiateWithParams_ptsz(&mut ready, main, &mut params));
    run(ready);
    assert_eq!(counter.load(Ordering::SeqCst), 4);
    cuda!(cudaGraphExecDestroy(ready));
    fails!(cudaErrorInvalidValue, cudaGraphInstantiate(null_mut(), main, 0));
    if ours_only("NVIDIA's driver crashes on an executable graph that was destroyed") {
        fails!(cudaErrorInvalidValue, cudaGraphLaunch(ready, DEFAULT));
        fails!(cudaErrorInvalidValue, cudaGraphExecDestroy(ready));
    }
}

pub fn objects_shared_by_graphs() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    let (main, mut object) = (graph(), cudaUserObject_t::NULL);
    cuda!(cudaUserObjectCreate(
        &mut object,
        arg(&ENDED),
        Some(count),
        1,
        driver::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
    ));
    cuda!(cudaUserObjectRetain(object, 2); cudaUserObjectRelease(object, 2));
    cuda!(cudaGraphRetainUserObject(main, object, 2, 0); cudaUserObjectRelease(object, 1));
    cuda!(cudaGraphReleaseUserObject(main, object, 1));
    assert_eq!(ENDED.load(Ordering::SeqCst), 0);
    cuda!(cudaGraphDestroy(main));
    while ENDED.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    fails!(cudaErrorInvalidValue, cudaUserObjectCreate(null_mut(), null_mut(), Some(count), 1, 1));
}

pub fn streams_are_captured() {
    let (stream, pointer) = (stream(), malloc(64));
    let (mut status, mut id, mut main) = (cudaStreamCaptureStatus(9), 0, cudaGraph_t::NULL);
    fails!(cudaErrorStreamCaptureUnsupported, cudaStreamBeginCapture(DEFAULT, cudaStreamCaptureModeGlobal));
    cuda!(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); cudaStreamIsCapturing(stream, &mut status));
    assert_eq!(status, cudaStreamCaptureStatusActive);
    cuda!(cudaMemsetAsync(pointer, 3, 64, stream));
    let (mut tips, mut number) = (null(), 0);
    cuda!(cudaStreamGetCaptureInfo(
        stream,
        &mut status,
        &mut id,
        &mut main,
        &mut tips,
        null_mut(),
        &mut number
    ));
    assert_eq!(number, 1);
    // SAFETY: as many nodes as the call says, until the capture goes on.
    let tip = unsafe { tips.read() };
    let mut more = empty(main, &[tip]);
    cuda!(cudaStreamUpdateCaptureDependencies(stream, &mut more, null(), 1, 1));
    cuda!(cudaStreamEndCapture(stream, &mut main));
    let mut nodes = 0;
    cuda!(cudaGraphGetNodes(main, null_mut(), &mut nodes));
    assert_eq!(nodes, 2);
    cuda!(cudaMemset(pointer, 0, 64); cudaDeviceSynchronize());
    run(executable(main));
    assert_eq!(read::<u8>(pointer, 64), [3; 64]);
    // Into a graph that is there already.
    cuda!(cudaStreamBeginCaptureToGraph(stream, main, &tip, null(), 1, cudaStreamCaptureModeRelaxed));
    cuda!(cudaMemsetAsync(pointer, 4, 32, stream));
    let mut again = cudaGraph_t::NULL;
    cuda!(cudaStreamEndCapture(stream, &mut again); cudaGraphGetNodes(main, null_mut(), &mut nodes));
    assert_eq!((again, nodes), (main, 3));
    run(executable(main));
    assert_eq!(read::<u8>(pointer, 64), [[4; 32], [3; 32]].concat());
    fails!(cudaErrorIllegalState, cudaStreamEndCapture(stream, &mut again));
    // Nobody needs to take the graph.
    cuda!(
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
        cudaStreamEndCapture(stream, null_mut());
        cudaStreamQuery(stream);
    );
}

pub fn the_threads_own_stream_is_captured() {
    let (pointer, mut status, mut id, mut main) =
        (malloc(64), cudaStreamCaptureStatus(9), 0, cudaGraph_t::NULL);
    let relaxed = cudaStreamCaptureModeRelaxed;
    cuda!(cudaStreamBeginCapture_ptsz(DEFAULT, relaxed); cudaStreamIsCapturing_ptsz(DEFAULT, &mut status));
    assert_eq!(status, cudaStreamCaptureStatusActive);
    cuda!(cudaMemsetAsync_ptsz(pointer, 3, 64, DEFAULT));
    let mut number = 0;
    let mut tips = null();
    cuda!(cudaStreamGetCaptureInfo_ptsz(
        DEFAULT,
        &mut status,
        &mut id,
        &mut main,
        &mut tips,
        null_mut(),
        &mut number
    ));
    // SAFETY: as many nodes as the call says.
    let (of_capture, tip) = (main, unsafe { tips.read() });
    let mut more = empty(of_capture, &[tip]);
    cuda!(cudaStreamUpdateCaptureDependencies_ptsz(DEFAULT, &mut more, null(), 1, 1));
    cuda!(cudaStreamEndCapture_ptsz(DEFAULT, &mut main));
    cuda!(cudaStreamBeginCaptureToGraph_ptsz(DEFAULT, main, &tip, null(), 1, relaxed));
    cuda!(cudaStreamEndCapture_ptsz(DEFAULT, &mut main));
    run(executable(main));
    assert_eq!(read::<u8>(pointer, 64), [3; 64]);
}

pub fn what_a_capture_forbids_spoils_it() {
    let (captured, mut main, nothing) = (stream(), graph(), kernel(c"nothing"));
    cuda!(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    fails!(cudaErrorStreamCaptureUnsupported, cudaMalloc(&mut null_mut(), 64));
    fails!(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(captured));
    fails!(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(captured, &mut main));
    assert!(main.is_null());
    fails!(cudaErrorIllegalState, cudaStreamEndCapture(captured, &mut main));
    cuda!(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    assert_eq!(launch(nothing, 1, 1, DEFAULT, &mut []), cudaErrorStreamCaptureImplicit);
    fails!(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(captured, &mut main));
    // Not even nothing is freed.
    cuda!(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal));
    fails!(cudaErrorStreamCaptureUnsupported, cudaFreeHost(null_mut()));
    fails!(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(captured, &mut main));
    let mut mode = cudaStreamCaptureModeRelaxed;
    cuda!(cudaThreadExchangeStreamCaptureMode(&mut mode));
    assert_eq!(mode, cudaStreamCaptureModeGlobal);
    cuda!(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed); cudaMalloc(&mut null_mut(), 64));
    cuda!(cudaStreamEndCapture(captured, &mut main));
    if our_runtime_only("NVIDIA's driver follows null, and its runtime passes it on") {
        fails!(cudaErrorInvalidValue, cudaThreadExchangeStreamCaptureMode(null_mut()));
    }
}

pub fn attributes_of_streams() {
    let (first, second) = (stream(), stream());
    let policy = driver::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    let mut value = cudaLaunchAttributeValue { bytes: [0; 64] };
    value.bytes[0] = 3;
    cuda!(cudaStreamSetAttribute(first, policy, &value); cudaStreamCopyAttributes(second, first));
    value.bytes[0] = 0;
    cuda!(cudaStreamGetAttribute(second, policy, &mut value));
    assert_eq!(value.word(0), 3);
    cuda!(cudaStreamSetAttribute_ptsz(DEFAULT, policy, &value); cudaStreamGetAttribute_ptsz(DEFAULT, policy, &mut value));
    assert_eq!(value.word(0), 3);
    cuda!(cudaStreamCopyAttributes_ptsz(first, second));
    if our_runtime_only("NVIDIA's runtime follows null") {
        fails!(cudaErrorInvalidValue, cudaStreamGetAttribute(first, policy, null_mut()));
        fails!(cudaErrorInvalidValue, cudaStreamSetAttribute(first, policy, null()));
    }
}

static COUNTER: [u32; 4] = [0; 4];

pub fn copies_to_and_from_variables() {
    let variables = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .b8 table[16];";
    let symbol: *const c_void = std::ptr::from_ref(&COUNTER).cast();
    let _binary = super::compiler_interface::one_variable(variables, &COUNTER, c"table");
    let (device, main) = (malloc_with(&[1u32, 2, 3, 4]), graph());
    let (mut into, mut out, result) = (cudaGraphNode_t::NULL, cudaGraphNode_t::NULL, malloc(16));
    cuda!(cudaGraphAddMemcpyNodeToSymbol(&mut into, main, null(), 0, symbol, device, 16, 0, ACROSS));
    cuda!(cudaGraphAddMemcpyNodeFromSymbol(&mut out, main, &into, 1, result, symbol, 16, 0, ACROSS));
    let ready = executable(main);
    run(ready);
    assert_eq!(read::<u32>(result, 4), [1, 2, 3, 4]);
    cuda!(cudaGraphExecMemcpyNodeSetParamsToSymbol(ready, into, symbol, device, 8, 8, ACROSS));
    cuda!(cudaGraphExecMemcpyNodeSetParamsFromSymbol(ready, out, result, symbol, 8, 8, ACROSS));
    run(ready);
    assert_eq!(read::<u32>(result, 4), [1, 2, 3, 4], "the same two come back");
    cuda!(cudaGraphMemcpyNodeSetParamsToSymbol(into, symbol, device, 4, 12, ACROSS));
    cuda!(cudaGraphMemcpyNodeSetParamsFromSymbol(out, result, symbol, 4, 12, ACROSS));
    run(executable(main));
    assert_eq!(read::<u32>(result, 4), [1, 2, 3, 4]);
    let mut symbols = [0u32; 4];
    cuda!(cudaMemcpyFromSymbol(symbols.as_mut_ptr().cast(), symbol, 16, 0, DOWN));
    assert_eq!(symbols, [1, 2, 1, 1]);
    fails!(
        cudaErrorInvalidSymbol,
        cudaGraphAddMemcpyNodeToSymbol(&mut into, main, null(), 0, null(), device, 4, 0, UP)
    );
    fails!(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParamsToSymbol(into, symbol, device, 8, 12, ACROSS));
}

pub fn a_conditional_node_chooses() {
    let (words, main) = (malloc_with(&[0_u32; 2]), graph());
    let (mut handle, mut node) = (0, cudaGraphNode_t::NULL);
    cuda!(cudaGraphConditionalHandleCreate(&mut handle, main, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    let (size, kind) = (2, CU_GRAPH_COND_TYPE_SWITCH);
    // SAFETY: zeros are a description.
    let mut params: cudaGraphNodeParams = unsafe { zeroed() };
    params.r#type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.params.conditional =
        cudaConditionalNodeParams { handle, r#type: kind, size, phGraph_out: null_mut() };
    cuda!(cudaGraphAddNode(&mut node, main, null(), null(), 0, &mut params));
    // SAFETY: the library has given an array of as many graphs.
    let bodies = unsafe { std::slice::from_raw_parts(params.params.conditional.phGraph_out, 2) };
    for (body, value) in bodies.iter().zip([5, 6]) {
        cuda!(cudaGraphAddMemsetNode(&mut node, *body, null(), 0, &fill(words, value, 2)));
    }
    run(executable(main));
    assert_eq!(read::<u32>(words, 2), [6, 6]);
    fails!(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(null_mut(), main, 1, 0));
    fails!(cudaErrorInvalidValue, cudaGraphConditionalHandleCreate(&mut handle, main, 1, 2));
}
