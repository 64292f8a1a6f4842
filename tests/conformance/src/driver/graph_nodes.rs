//! Graph management: nodes of any kind, nodes that allocate, attributes, shared objects, pictures.

use std::mem::{MaybeUninit, zeroed};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, ThreadId};

use super::common::*;

/// A description of a node without anything in it.
fn params(r#type: CUgraphNodeType) -> CUgraphNodeParams {
    // SAFETY: numbers and a union of them, for which zero is a value.
    let params: CUgraphNodeParams = unsafe { zeroed() };
    CUgraphNodeParams { r#type, ..params }
}

fn add(graph: CUgraph, after: &[CUgraphNode], params: &mut CUgraphNodeParams) -> CUgraphNode {
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddNode_v2(&mut node, graph, after.as_ptr(), null(), after.len(), params));
    let mut kind = CUgraphNodeType(99);
    cu!(cuGraphNodeGetType(node, &mut kind));
    assert_eq!(kind, params.r#type);
    node
}

fn memset(pointer: CUdeviceptr, value: u32, count: usize) -> CUgraphNodeParams {
    let mut node = params(CU_GRAPH_NODE_TYPE_MEMSET);
    node.params.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
        dst: pointer,
        pitch: 0,
        value,
        elementSize: 4,
        width: count,
        height: 1,
        ctx: CUcontext::NULL,
    };
    node
}

fn host(function: unsafe extern "C" fn(*mut c_void), datum: &AtomicU32) -> CUgraphNodeParams {
    let mut node = params(CU_GRAPH_NODE_TYPE_HOST);
    node.params.host = CUDA_HOST_NODE_PARAMS { r#fn: Some(function), userData: arg(datum) };
    node
}

unsafe extern "C" fn count(datum: *mut c_void) {
    // SAFETY: the test's counter.
    unsafe { &*datum.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

pub fn nodes_of_every_kind_by_one_function() {
    new_context();
    let (pointer, second, calls) = (alloc(64), alloc(64), AtomicU32::new(0));
    let main = graph();
    let empty = add(main, &[], &mut params(CU_GRAPH_NODE_TYPE_EMPTY));
    let set = add(main, &[empty], &mut memset(pointer, 7, 16));
    let (by, poke) = (pointer, kernel(c"poke"));
    let mut arguments = [arg(&by)];
    let mut launched = params(CU_GRAPH_NODE_TYPE_KERNEL);
    launched.params.kernel = one_thread(poke, &mut arguments);
    let launched = add(main, &[set], &mut launched);
    let mut copied = params(CU_GRAPH_NODE_TYPE_MEMCPY);
    // SAFETY: as above.
    let mut copy: CUDA_MEMCPY3D = unsafe { zeroed() };
    (copy.srcMemoryType, copy.srcDevice) = (CU_MEMORYTYPE_DEVICE, pointer);
    (copy.dstMemoryType, copy.dstDevice) = (CU_MEMORYTYPE_DEVICE, second);
    (copy.WidthInBytes, copy.Height, copy.Depth) = (64, 1, 1);
    let mut context = current();
    copied.params.memcpy =
        CUDA_MEMCPY_NODE_PARAMS { flags: 0, reserved: 0, copyCtx: context, copyParams: copy };
    let copied = add(main, &[launched], &mut copied);
    let called = add(main, &[copied], &mut host(count, &calls));
    let (mut event, mut record) = (CUevent::NULL, params(CU_GRAPH_NODE_TYPE_EVENT_RECORD));
    cu!(cuEventCreate(&mut event, 0));
    record.params.event = event;
    let recorded = add(main, &[called], &mut record);
    let mut wait = params(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    wait.params.event = event;
    add(main, &[recorded], &mut wait);
    let executable = instantiate(main);
    launch_graph(executable);
    let mut expected = vec![7u32; 16];
    expected[0] = 1;
    assert_eq!(read::<u32>(second, 16), expected);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    // A graph as a node, which is a copy of it.
    let outer = graph();
    let mut child = params(CU_GRAPH_NODE_TYPE_GRAPH);
    let ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    child.params.graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: main, ownership };
    let node = add(outer, &[], &mut child);
    // SAFETY: the member that the type names.
    assert_eq!(unsafe { child.params.graph }.graph, main);
    let mut inner = CUgraph::NULL;
    cu!(cuGraphChildGraphNodeGetGraph(node, &mut inner));
    assert!(!inner.is_null() && inner != main);
    launch_graph(instantiate(outer));
    assert_eq!(calls.load(Ordering::SeqCst), 2);
    // The older function does the same.
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddNode(&mut node, main, &launched, 1, &mut memset(pointer, 9, 16)));
    let _ = &mut context;
}

pub fn what_a_node_does_can_be_exchanged() {
    new_context();
    let (pointer, calls, others) = (alloc(64), AtomicU32::new(0), AtomicU32::new(0));
    let main = graph();
    let set = add(main, &[], &mut memset(pointer, 1, 16));
    let called = add(main, &[set], &mut host(count, &calls));
    let executable = instantiate(main);
    cu!(cuGraphExecNodeSetParams(executable, set, &mut memset(pointer, 2, 16)));
    cu!(cuGraphExecNodeSetParams(executable, called, &mut host(count, &others)));
    launch_graph(executable);
    assert_eq!(read::<u32>(pointer, 16), [2; 16]);
    assert_eq!((calls.load(Ordering::SeqCst), others.load(Ordering::SeqCst)), (0, 1));
    cu!(cuGraphNodeSetParams(set, &mut memset(pointer, 3, 8)));
    launch_graph(instantiate(main));
    assert_eq!(read::<u32>(pointer, 16), [[3; 8], [2; 8]].concat());
    let mut described = MaybeUninit::uninit();
    cu!(cuGraphMemsetNodeGetParams(set, described.as_mut_ptr()));
    // SAFETY: the call wrote it.
    let described: CUDA_MEMSET_NODE_PARAMS = unsafe { described.assume_init() };
    assert_eq!((described.value, described.width), (3, 8));
    // A node of another kind it does not become.
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(set, &mut host(count, &calls)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(executable, set, &mut host(count, &calls)));
}

pub fn a_graph_within_a_graph_can_be_exchanged() {
    new_context();
    let pointer = alloc(64);
    let fill = |value| {
        let inner = graph();
        let first = add(inner, &[], &mut memset(pointer, value, 8));
        add(inner, &[first], &mut memset(CUdeviceptr(pointer.0 + 32), value + 1, 8));
        inner
    };
    let outer = graph();
    let before = add(outer, &[], &mut params(CU_GRAPH_NODE_TYPE_EMPTY));
    let mut node = CUgraphNode::NULL;
    cu!(cuGraphAddChildGraphNode(&mut node, outer, &before, 1, fill(10)));
    let executable = instantiate(outer);
    cu!(cuGraphExecChildGraphNodeSetParams(executable, node, fill(20)));
    launch_graph(executable);
    assert_eq!(read::<u32>(pointer, 16), [[20; 8], [21; 8]].concat());
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphExecChildGraphNodeSetParams(executable, before, fill(30)));
    let short = graph();
    add(short, &[], &mut memset(pointer, 1, 8));
    let code = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    fails!(code, cuGraphExecChildGraphNodeSetParams(executable, node, short));
}

fn allocation(bytes: usize) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut node: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { zeroed() };
    node.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    node.poolProps.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    node.bytesize = bytes;
    node
}

pub fn a_graph_allocates_and_frees() {
    new_context();
    let (main, result) = (graph(), alloc(64));
    let (mut node, mut memory) = (CUgraphNode::NULL, allocation(64));
    cu!(cuGraphAddMemAllocNode(&mut node, main, null(), 0, &mut memory));
    assert_ne!(memory.dptr.0, 0);
    // Which context the memory is of, the address does not tell before the graph has run.
    let mut set = memset(memory.dptr, 5, 16);
    set.params.memset.ctx = current();
    let set = add(main, &[node], &mut set);
    let mut copied = params(CU_GRAPH_NODE_TYPE_MEMCPY);
    // SAFETY: as above.
    let mut copy: CUDA_MEMCPY3D = unsafe { zeroed() };
    (copy.srcMemoryType, copy.srcDevice) = (CU_MEMORYTYPE_DEVICE, memory.dptr);
    (copy.dstMemoryType, copy.dstDevice) = (CU_MEMORYTYPE_DEVICE, result);
    (copy.WidthInBytes, copy.Height, copy.Depth) = (64, 1, 1);
    let context = current();
    copied.params.memcpy =
        CUDA_MEMCPY_NODE_PARAMS { flags: 0, reserved: 0, copyCtx: context, copyParams: copy };
    let copied = add(main, &[set], &mut copied);
    let mut free = params(CU_GRAPH_NODE_TYPE_MEM_FREE);
    free.params.free = memory.dptr;
    add(main, &[copied], &mut free);
    let executable = instantiate(main);
    // There is one executable graph at a time, and neither a copy nor fewer nodes.
    let (mut second, mut copy, mut child, outer) =
        (CUgraphExec::NULL, CUgraph::NULL, CUgraphNode::NULL, graph());
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&mut second, main, 0));
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut wishes: CUDA_GRAPH_INSTANTIATE_PARAMS = unsafe { zeroed() };
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithParams(&mut second, main, &mut wishes));
    assert_eq!(wishes.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&mut copy, main));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphAddChildGraphNode(&mut child, outer, null(), 0, main));
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(node));
    for _ in 0..3 {
        cu!(cuMemsetD8_v2(result, 0, 64));
        launch_graph(executable);
        assert_eq!(read::<u32>(result, 16), [5; 16]);
    }
    cu!(cuGraphExecDestroy(executable));
    launch_graph(instantiate(main));
    let mut described = MaybeUninit::uninit();
    cu!(cuGraphMemAllocNodeGetParams(node, described.as_mut_ptr()));
    // SAFETY: the call wrote it.
    let described: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { described.assume_init() };
    assert_eq!((described.dptr, described.bytesize), (memory.dptr, 64));
    // By the function for nodes of every kind too.
    let (other, mut any) = (graph(), params(CU_GRAPH_NODE_TYPE_MEM_ALLOC));
    any.params.alloc = allocation(4096);
    add(other, &[], &mut any);
    // SAFETY: the member that the type names.
    assert_ne!(unsafe { any.params.alloc }.dptr.0, 0);
    // What a launch has not freed is in the way of the next one.
    let left = instantiate(other);
    launch_graph(left);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(left, CUstream::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemAllocNode(&mut node, main, null(), 0, &mut allocation(0)));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuGraphAddMemAllocNode(null_mut(), main, null(), 0, &mut allocation(64))
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphMemAllocNodeGetParams(set, &mut allocation(0)));
}

/// One thread that does nothing.
fn one_idle_thread() -> CUDA_KERNEL_NODE_PARAMS {
    one_thread(kernel(c"nothing"), &mut [])
}

pub fn attributes_of_a_kernel_node() {
    new_context();
    let main = graph();
    let add_kernel = || {
        let mut node = params(CU_GRAPH_NODE_TYPE_KERNEL);
        node.params.kernel = one_idle_thread();
        add(main, &[], &mut node)
    };
    let (first, second) = (add_kernel(), add_kernel());
    let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
    value.bytes[0] = 1;
    cu!(cuGraphKernelNodeSetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    let mut found = CUlaunchAttributeValue { bytes: [0; 64] };
    cu!(cuGraphKernelNodeGetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &mut found));
    assert_eq!(found.word(0), 1);
    cu!(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &mut found));
    assert_eq!(found.word(0), 0);
    cu!(cuGraphKernelNodeCopyAttributes(second, first));
    cu!(cuGraphKernelNodeGetAttribute(second, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &mut found));
    assert_eq!(found.word(0), 1);
    let empty = add(main, &[], &mut params(CU_GRAPH_NODE_TYPE_EMPTY));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeCopyAttributes(empty, first));
    if ours_only("NVIDIA's driver writes to null") {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuGraphKernelNodeGetAttribute(first, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, null_mut())
        );
    }
}

pub fn attributes_of_launches_and_streams_are_not_those_of_nodes() {
    new_context();
    let main = graph();
    let mut node = params(CU_GRAPH_NODE_TYPE_KERNEL);
    node.params.kernel = one_idle_thread();
    let node = add(main, &[], &mut node);
    let value_of = |first: u32| {
        let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
        value.bytes[..4].copy_from_slice(&first.to_ne_bytes());
        value
    };
    let mut found = value_of(9);
    for attribute in [
        CU_LAUNCH_ATTRIBUTE_IGNORE,
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    ] {
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(node, attribute, &value_of(1)));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeGetAttribute(node, attribute, &mut found));
    }
    cu!(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &mut found));
    assert_eq!(found.bytes[..2], [0, 1]);
    // Priorities are brought into the range that there is.
    let (mut least, mut greatest) = (9, 9);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    for (wanted, told) in [(1, least), (least, least), (greatest, greatest), (-1000, greatest)] {
        cu!(
            cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value_of(wanted as u32));
            cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &mut found);
        );
        assert_eq!(found.word(0) as i32, told);
    }
    // The greatest value that each hint may have.
    for (attribute, greatest) in [
        (CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 3),
        (CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1),
        (CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
    ] {
        cu!(cuGraphKernelNodeSetAttribute(node, attribute, &value_of(greatest)));
        let more = value_of(greatest + 1);
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphKernelNodeSetAttribute(node, attribute, &more));
    }
}

pub fn nodes_of_captured_launches_have_what_those_prefer() {
    new_context();
    let (function, s) = (kernel(c"poke"), stream(CU_STREAM_NON_BLOCKING));
    let (mut least, mut greatest) = (9, 9);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    for (id, given, told) in [
        (CU_LAUNCH_ATTRIBUTE_PRIORITY, greatest as u32, greatest as u32),
        (CU_LAUNCH_ATTRIBUTE_PRIORITY, 1, least as u32),
        (CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, 0x0203, 0x0203),
        (CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, 1, 1),
        (CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, 50),
    ] {
        let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
        value.bytes[..4].copy_from_slice(&given.to_ne_bytes());
        let mut attributes = [CUlaunchAttribute { id, pad: [0; 4], value }];
        let (p, mut graph, mut node, mut count) = (alloc(4), CUgraph::NULL, CUgraphNode::NULL, 1);
        let config = one_thread_in(s, &mut attributes);
        cu!(
            cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
            cuLaunchKernelEx(&config, function, [arg(&p)].as_mut_ptr(), null_mut());
            cuStreamEndCapture(s, &mut graph);
            cuGraphGetNodes(graph, &mut node, &mut count);
            cuGraphKernelNodeGetAttribute(node, id, &mut value);
        );
        assert_eq!((count, value.word(0)), (1, told), "{id:?}");
        cu!(cuGraphDestroy(graph));
    }
}

pub fn nodes_of_captured_launches_have_the_priority_of_the_stream() {
    new_context();
    let (function, p) = (kernel(c"poke"), alloc(4));
    let (mut least, mut greatest) = (9, 9);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    for of_stream in [least, greatest] {
        // Where the launch names one, it has that.
        for (named, told) in [(None, of_stream), (Some(least), least), (Some(greatest), greatest)] {
            let (mut s, mut graph, mut node, mut count) =
                (CUstream::NULL, CUgraph::NULL, CUgraphNode::NULL, 1);
            let mut value = CUlaunchAttributeValue { bytes: [0; 64] };
            value.bytes[..4].copy_from_slice(&named.unwrap_or_default().to_ne_bytes());
            let mut attributes = [CUlaunchAttribute { id: CU_LAUNCH_ATTRIBUTE_PRIORITY, pad: [0; 4], value }];
            let given = usize::from(named.is_some());
            cu!(cuStreamCreateWithPriority(&mut s, CU_STREAM_NON_BLOCKING, of_stream));
            let config = one_thread_in(s, &mut attributes[..given]);
            cu!(
                cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
                cuLaunchKernelEx(&config, function, [arg(&p)].as_mut_ptr(), null_mut());
                cuStreamEndCapture(s, &mut graph);
                cuGraphGetNodes(graph, &mut node, &mut count);
                cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &mut value);
            );
            assert_eq!(value.word(0) as i32, told, "{of_stream} {named:?}");
            cu!(cuGraphDestroy(graph); cuStreamDestroy_v2(s));
        }
    }
}

pub fn flags_say_how_a_graph_is_made_ready() {
    new_context();
    let main = graph();
    let mut executable = CUgraphExec::NULL;
    let upload = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
    // Where there is no stream, nothing is uploaded in one.
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithFlags(&mut executable, main, upload));
    let all = upload
        | CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
        | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    let with = |flags| CUDA_GRAPH_INSTANTIATE_PARAMS {
        flags,
        hUploadStream: CUstream::NULL,
        hErrNode_out: CUgraphNode::NULL,
        result_out: CUDA_GRAPH_INSTANTIATE_SUCCESS,
    };
    let (mut params, mut flags) = (with(all), 0);
    cu!(
        cuGraphInstantiateWithParams(&mut executable, main, &mut params);
        cuGraphExecGetFlags(executable, &mut flags);
    );
    // What is told is what matters afterwards.
    assert_eq!(flags, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    let mut params = with(1 << 20);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiateWithParams(&mut executable, main, &mut params));
    assert_eq!(params.result_out, CUDA_GRAPH_INSTANTIATE_ERROR);
}

/// Waits until an object's end has been counted.
fn object(ended: &AtomicU32, references: u32) -> CUuserObject {
    let mut object = CUuserObject::NULL;
    let flags = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
    cu!(cuUserObjectCreate(&mut object, arg(ended), Some(count), references, flags));
    object
}

pub fn an_object_ends_with_its_last_reference() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    new_context();
    let first = object(&ENDED, 2);
    cu!(cuUserObjectRetain(first, 1); cuUserObjectRelease(first, 2));
    assert_eq!(ENDED.load(Ordering::SeqCst), 0);
    cu!(cuUserObjectRelease(first, 1));
    assert_eq!(ENDED.load(Ordering::SeqCst), 1);
    // A graph takes over the program's reference, and keeps it.
    let (second, main) = (object(&ENDED, 1), graph());
    cu!(cuGraphRetainUserObject(main, second, 1, CU_GRAPH_USER_OBJECT_MOVE));
    assert_eq!(ENDED.load(Ordering::SeqCst), 1);
    cu!(cuGraphDestroy(main));
    assert_eq!(ENDED.load(Ordering::SeqCst), 2);
    // So does a graph made ready from it, and a copy.
    let (third, main) = (object(&ENDED, 1), graph());
    cu!(cuGraphRetainUserObject(main, third, 2, 0); cuUserObjectRelease(third, 1));
    let executable = instantiate(main);
    let mut copy = CUgraph::NULL;
    cu!(cuGraphClone(&mut copy, main); cuGraphDestroy(main); cuGraphDestroy(copy));
    launch_graph(executable);
    assert_eq!(ENDED.load(Ordering::SeqCst), 2);
    cu!(cuGraphExecDestroy(executable));
    // What has launched it may hold it a moment longer.
    while ENDED.load(Ordering::SeqCst) < 3 {
        thread::yield_now();
    }
    // A graph may let go before its end.
    let (fourth, main) = (object(&ENDED, 1), graph());
    cu!(cuGraphRetainUserObject(main, fourth, 3, 0));
    cu!(cuUserObjectRelease(fourth, 1); cuGraphReleaseUserObject(main, fourth, 2));
    assert_eq!(ENDED.load(Ordering::SeqCst), 3);
    cu!(cuGraphReleaseUserObject(main, fourth, 1));
    assert_eq!(ENDED.load(Ordering::SeqCst), 4);
}

pub fn an_event_keeps_nothing_of_a_capture_that_is_over() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    new_context();
    let (origin, forked, pointer) = (stream(0), stream(0), alloc(4));
    let (apart, together) = (event(CU_EVENT_DISABLE_TIMING), event(CU_EVENT_DISABLE_TIMING));
    cu!(
        cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_RELAXED);
        cuEventRecord(apart, origin);
        cuStreamWaitEvent(forked, apart, 0);
        cuMemsetD32Async(pointer, 1, 1, forked);
        cuEventRecord(together, forked);
        cuStreamWaitEvent(origin, together, 0);
    );
    let mut main = CUgraph::NULL;
    cu!(cuStreamEndCapture(origin, &mut main));
    cu!(cuGraphRetainUserObject(main, object(&ENDED, 1), 1, CU_GRAPH_USER_OBJECT_MOVE));
    cu!(cuGraphDestroy(main));
    assert_eq!(ENDED.load(Ordering::SeqCst), 1);
    fails!(CUDA_ERROR_INVALID_VALUE, cuStreamWaitEvent(forked, together, 0));
    cu!(cuEventRecord(together, forked); cuEventSynchronize(together));
}

pub fn objects_end_where_they_are_let_go() {
    static THREADS: Mutex<Vec<ThreadId>> = Mutex::new(Vec::new());
    unsafe extern "C" fn note(_: *mut c_void) {
        THREADS.lock().unwrap().push(thread::current().id());
    }
    new_context();
    for _ in 0..100 {
        let mut object = CUuserObject::NULL;
        let flags = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
        cu!(cuUserObjectCreate(&mut object, null_mut(), Some(note), 1, flags); cuUserObjectRelease(object, 1));
    }
    let threads = THREADS.lock().unwrap();
    assert_eq!(*threads, [thread::current().id(); 100]);
}

pub fn objects_and_counts_that_are_wrong_are_refused() {
    static ENDED: AtomicU32 = AtomicU32::new(0);
    new_context();
    let (object, main) = (object(&ENDED, 1), graph());
    let mut place = CUuserObject::NULL;
    let flags = CU_USER_OBJECT_NO_DESTRUCTOR_SYNC;
    fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(null_mut(), null_mut(), Some(count), 1, flags));
    fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&mut place, null_mut(), None, 1, flags));
    fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&mut place, null_mut(), Some(count), 0, flags));
    fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectCreate(&mut place, null_mut(), Some(count), 1, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(main, object, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(main, object, 1, 2));
    if ours_only("not tried: more references given up than held, and what is no object") {
        fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 2));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphReleaseUserObject(main, object, 1));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphRetainUserObject(main, object, 2, CU_GRAPH_USER_OBJECT_MOVE));
        fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(CUuserObject::NULL, 1));
        cu!(cuUserObjectRelease(object, 1));
        assert_eq!(ENDED.load(Ordering::SeqCst), 1);
        fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectRelease(object, 1));
        fails!(CUDA_ERROR_INVALID_VALUE, cuUserObjectRetain(object, 1));
    }
}

pub fn a_graph_is_drawn() {
    new_context();
    let (main, pointer) = (graph(), alloc(64));
    let set = add(main, &[], &mut memset(pointer, 1, 16));
    add(main, &[set], &mut params(CU_GRAPH_NODE_TYPE_EMPTY));
    let path = std::env::temp_dir().join(format!("conformance-graph-{}.dot", std::process::id()));
    let name = CString::new(path.to_str().expect("a plain path")).expect("no NUL");
    cu!(cuGraphDebugDotPrint(main, name.as_ptr(), 0));
    let text = std::fs::read_to_string(&path).expect("the file is there");
    std::fs::remove_file(&path).expect("it can be removed");
    assert!(text.starts_with("digraph") && text.trim_end().ends_with('}'), "{text}");
    assert_eq!(text.matches("->").count(), 1, "{text}");
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphDebugDotPrint(main, null(), 0));
}

pub fn descriptions_that_are_wrong_are_refused() {
    new_context();
    let (main, mut node) = (graph(), CUgraphNode::NULL);
    let mut empty = params(CU_GRAPH_NODE_TYPE_EMPTY);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&mut node, main, null(), null(), 0, null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(null_mut(), main, null(), null(), 0, &mut empty));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&mut node, main, null(), null(), 1, &mut empty));
    let mut unknown = params(CUgraphNodeType(77));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode_v2(&mut node, main, null(), null(), 0, &mut unknown));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(CUgraphNode::NULL, &mut empty));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(CUgraphExec::NULL, node, &mut empty));
}
