//! Graph management: the memory that nodes allocate.

use super::common::*;

const BYTES: usize = 4 << 20;
const USED: CUgraphMem_attribute = CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
const USED_HIGH: CUgraphMem_attribute = CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
const RESERVED: CUgraphMem_attribute = CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT;
const RESERVED_HIGH: CUgraphMem_attribute = CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;

fn get(attribute: CUgraphMem_attribute) -> u64 {
    let mut value = u64::MAX;
    cu!(cuDeviceGetGraphMemAttribute(0, attribute, (&raw mut value).cast()));
    value
}

/// An allocation of so many bytes.
fn params(bytes: usize) -> CUDA_MEM_ALLOC_NODE_PARAMS {
    // SAFETY: zeros are a description.
    let mut params: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    params.bytesize = bytes;
    params
}

/// A graph that allocates memory and fills it; and the memory.
fn graph() -> (CUgraph, CUgraphNode, CUdeviceptr) {
    let (mut graph, mut node, mut filled) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
    let mut params = params(BYTES);
    cu!(cuGraphCreate(&mut graph, 0); cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params));
    let fill = CUDA_MEMSET_NODE_PARAMS {
        dst: params.dptr,
        pitch: 0,
        value: 7,
        elementSize: 1,
        width: BYTES,
        height: 1,
    };
    cu!(cuGraphAddMemsetNode(&mut filled, graph, &node, 1, &fill, current()));
    (graph, filled, params.dptr)
}

fn instantiate(graph: CUgraph, flags: u64) -> CUgraphExec {
    let (mut executable, mut told) = (CUgraphExec::NULL, 99);
    cu!(cuGraphInstantiateWithFlags(&mut executable, graph, flags); cuGraphExecGetFlags(executable, &mut told));
    assert_eq!(told, flags);
    executable
}

pub fn a_graph_that_allocates_keeps_its_edges() {
    new_context();
    let (graph, filled, _) = graph();
    let (mut after, mut other) = (CUgraphNode::NULL, CUgraphNode::NULL);
    cu!(cuGraphAddEmptyNode(&mut after, graph, &filled, 1); cuGraphAddEmptyNode(&mut other, graph, null(), 0));
    let unsupported = CUDA_ERROR_NOT_SUPPORTED;
    fails!(unsupported, cuGraphRemoveDependencies_v2(graph, &filled, &after, null(), 1));
    fails!(unsupported, cuGraphRemoveDependencies_v2(graph, &other, &after, null(), 1));
    cu!(cuGraphAddDependencies_v2(graph, &other, &after, null(), 1));
}

pub fn what_a_launch_allocates_is_in_use_until_it_is_freed() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    assert_eq!(get(USED), 0);
    let (graph, _, p) = graph();
    let executable = instantiate(graph, 0);
    for round in 0..3 {
        cu!(cuGraphLaunch(executable, s); cuStreamSynchronize(s));
        assert!(get(USED) >= BYTES as u64 && get(USED_HIGH) >= get(USED), "{round}");
        assert!(get(RESERVED) >= get(USED) && get(RESERVED_HIGH) >= get(RESERVED), "{round}");
        assert_eq!(read::<u8>(CUdeviceptr(p.0 + BYTES as u64 - 1), 1), [7]);
        // It is not allocated a second time.
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, s));
        match round {
            0 => cu!(cuMemFreeAsync(p, s); cuStreamSynchronize(s)),
            _ => cu!(cuMemFree_v2(p)),
        }
    }
    // It stays with the graph until it is trimmed.
    assert!(get(USED) >= BYTES as u64);
    cu!(cuDeviceGraphMemTrim(0));
    assert_eq!((get(USED), get(RESERVED)), (0, 0));
    assert!(get(USED_HIGH) >= BYTES as u64 && get(RESERVED_HIGH) >= BYTES as u64);
    let mut zero = 0_u64;
    for high in [USED_HIGH, RESERVED_HIGH] {
        cu!(cuDeviceSetGraphMemAttribute(0, high, (&raw mut zero).cast()));
        assert_eq!(get(high), 0);
    }
    // Memory that was trimmed comes back.
    cu!(cuGraphLaunch(executable, s); cuStreamSynchronize(s));
    assert_eq!(read::<u8>(p, 1), [7]);
    cu!(cuMemFree_v2(p));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
}

pub fn a_graph_that_frees_what_it_allocates_leaves_nothing_in_use() {
    new_context();
    let (graph, filled, p) = graph();
    let mut freed = CUgraphNode::NULL;
    cu!(cuGraphAddMemFreeNode(&mut freed, graph, &filled, 1, p));
    // Nothing but the whole of what a graph allocates, and once is all.
    let (other, within) = (alloc(64), CUdeviceptr(p.0 + 64));
    for address in [other, within] {
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuGraphAddMemFreeNode(&mut CUgraphNode(0), graph, &filled, 1, address)
        );
    }
    cu!(cuMemFree_v2(other));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&mut CUgraphNode(0), graph, &freed, 1, p));
    let executable = instantiate(graph, 0);
    for _ in 0..3 {
        cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
    assert!(get(USED_HIGH) >= BYTES as u64 && get(RESERVED) >= BYTES as u64);
    cu!(cuGraphExecDestroy(executable); cuGraphDestroy(graph); cuDeviceGraphMemTrim(0));
    assert_eq!(get(RESERVED), 0);
}

pub fn memory_is_told_in_units_of_32_mib() {
    new_context();
    const UNIT: u64 = 32 << 20;
    let told = || [USED, USED_HIGH, RESERVED, RESERVED_HIGH].map(get);
    // An allocation takes what is left, or as many units as it needs; what they add up to is used.
    for (bytes, used, reserved) in [(1, 1, 1), (31 << 20, 2, 2), (33 << 20, 3, 4), (100 << 20, 7, 8)] {
        let (mut graph, mut first, mut second) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
        let mut params = params(bytes);
        cu!(cuGraphCreate(&mut graph, 0); cuGraphAddMemAllocNode(&mut first, graph, null(), 0, &mut params));
        let a = params.dptr;
        cu!(cuGraphAddMemAllocNode(&mut second, graph, &first, 1, &mut params));
        let executable = instantiate(graph, 0);
        cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
        let expected = [used, used, reserved, reserved].map(|units| units * UNIT);
        assert_eq!(told(), expected, "{bytes}");
        cu!(cuMemFree_v2(a); cuMemFree_v2(params.dptr));
        assert_eq!(told(), expected, "{bytes}, freed");
        cu!(cuDeviceGraphMemTrim(0));
        assert_eq!(told(), [0, used * UNIT, 0, reserved * UNIT], "{bytes}, trimmed");
        // It stays when the graph goes, too.
        cu!(cuGraphLaunch(executable, CUstream::NULL); cuMemFree_v2(a); cuMemFree_v2(params.dptr));
        cu!(cuGraphExecDestroy(executable); cuGraphDestroy(graph));
        assert_eq!(told(), expected, "{bytes}, its graph is gone");
        cu!(cuDeviceGraphMemTrim(0));
        let mut zero = 0_u64;
        for high in [USED_HIGH, RESERVED_HIGH] {
            cu!(cuDeviceSetGraphMemAttribute(0, high, (&raw mut zero).cast()));
        }
    }
}

pub fn what_an_executable_leaves_allocated_is_not_freed_in_its_graph() {
    new_context();
    let (graph, filled, p) = graph();
    let executable = instantiate(graph, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&mut CUgraphNode(0), graph, &filled, 1, p));
    // Nor when that is gone; what came later is.
    cu!(cuGraphExecDestroy(executable));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemFreeNode(&mut CUgraphNode(0), graph, &filled, 1, p));
    let executable = instantiate(graph, 0);
    let (mut later, mut node) = (params(64), CUgraphNode::NULL);
    cu!(
        cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut later);
        cuGraphAddMemFreeNode(&mut CUgraphNode(0), graph, &node, 1, later.dptr);
    );
    // In another graph it is.
    let (mut other, mut node) = (CUgraph::NULL, CUgraphNode::NULL);
    cu!(
        cuGraphCreate(&mut other, 0);
        cuGraphAddMemFreeNode(&mut node, other, null(), 0, p);
        cuGraphLaunch(executable, CUstream::NULL);
        cuGraphLaunch(instantiate(other, 0), CUstream::NULL);
        cuCtxSynchronize();
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(p));
}

pub fn launches_may_use_again_what_was_left_allocated() {
    new_context();
    let (graph, _, p) = graph();
    let executable = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    for _ in 0..3 {
        cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(read::<u8>(p, 1), [7]);
    }
    cu!(cuMemFree_v2(p));
}

pub fn what_is_allocated_outlives_its_graph() {
    new_context();
    let (graph, _, p) = graph();
    let executable = instantiate(graph, 0);
    cu!(
        cuGraphLaunch(executable, CUstream::NULL);
        cuGraphExecDestroy(executable);
        cuGraphDestroy(graph);
        cuCtxSynchronize();
    );
    assert_eq!(read::<u8>(p, 1), [7]);
    // What is in use is not trimmed.
    cu!(cuDeviceGraphMemTrim(0));
    assert!(get(USED) >= BYTES as u64);
    assert_eq!(read::<u8>(p, 1), [7]);
    cu!(cuMemFree_v2(p); cuDeviceGraphMemTrim(0));
    assert_eq!(get(USED), 0);
}

/// Adds nodes that allocate so many bytes, fill them and free them, behind another.
fn add_turn(graph: CUgraph, before: &[CUgraphNode], bytes: usize) -> (CUgraphNode, CUdeviceptr) {
    let (mut allocated, mut filled, mut freed) = (CUgraphNode::NULL, CUgraphNode::NULL, CUgraphNode::NULL);
    let mut params = params(bytes);
    cu!(cuGraphAddMemAllocNode(&mut allocated, graph, before.as_ptr(), before.len(), &mut params));
    let fill = CUDA_MEMSET_NODE_PARAMS {
        dst: params.dptr,
        pitch: 0,
        value: 7,
        elementSize: 1,
        width: bytes,
        height: 1,
    };
    cu!(
        cuGraphAddMemsetNode(&mut filled, graph, &allocated, 1, &fill, current());
        cuGraphAddMemFreeNode(&mut freed, graph, &filled, 1, params.dptr);
    );
    (freed, params.dptr)
}

pub fn what_is_freed_is_allocated_again_behind_that() {
    new_context();
    let mut graph = CUgraph::NULL;
    cu!(cuGraphCreate(&mut graph, 0));
    let (mut last, first) = add_turn(graph, &[], 40 << 20);
    for _ in 0..20 {
        let (freed, again) = add_turn(graph, &[last], 40 << 20);
        assert_eq!(again, first);
        last = freed;
    }
    let mut behind = CUgraphNode::NULL;
    cu!(cuGraphAddEmptyNode(&mut behind, graph, &last, 1));
    let mut left = params(40 << 20);
    cu!(cuGraphAddMemAllocNode(&mut last, graph, &behind, 1, &mut left));
    assert_eq!(left.dptr, first, "however far behind");
    // Larger, beside it, or once more it is other memory.
    for (before, bytes) in [(vec![behind], 41 << 20), (vec![], 40 << 20), (vec![behind], 40 << 20)] {
        assert_ne!(add_turn(graph, &before, bytes).1, first);
    }
    let executable = instantiate(graph, 0);
    for _ in 0..2 {
        cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
        assert_eq!(read::<u8>(first, 1), [7], "the last allocation is in use");
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphLaunch(executable, CUstream::NULL));
        cu!(cuMemFree_v2(first));
    }
    assert!(get(RESERVED) <= 256 << 20);
}

pub fn memory_that_is_not_in_use_is_nowhere() {
    new_context();
    let (graph, _, p) = graph();
    let executable = instantiate(graph, 0);
    let (mut kind, mut base, mut size) = (0_u32, CUdeviceptr(0), 0);
    let mut is_there = || {
        let attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        // SAFETY: places for the answers.
        let (type_of, range) = unsafe {
            (
                cuPointerGetAttribute((&raw mut kind).cast(), attribute, p),
                cuMemGetAddressRange_v2(&mut base, &mut size, p),
            )
        };
        let gone = (CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_FOUND);
        assert!([(CUDA_SUCCESS, CUDA_SUCCESS), gone].contains(&(type_of, range)), "{type_of:?} {range:?}");
        range == CUDA_SUCCESS
    };
    assert!(!is_there());
    for _ in 0..2 {
        cu!(cuGraphLaunch(executable, CUstream::NULL); cuCtxSynchronize());
        assert!(is_there());
        cu!(cuMemFree_v2(p));
        assert!(!is_there());
    }
}

pub fn what_can_be_asked_of_an_allocation() {
    new_context();
    let (mut graph, mut node) = (CUgraph::NULL, CUgraphNode::NULL);
    cu!(cuGraphCreate(&mut graph, 0));
    let mut refused = |code: CUresult, mut params: CUDA_MEM_ALLOC_NODE_PARAMS| {
        fails!(code, cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut params));
    };
    let mut elsewhere = params(64);
    elsewhere.poolProps.location.id = 99;
    refused(CUDA_ERROR_INVALID_VALUE, elsewhere);
    let mut of_host = params(64);
    of_host.poolProps.location.r#type = CU_MEM_LOCATION_TYPE_HOST;
    refused(CUDA_ERROR_NOT_SUPPORTED, of_host);
    for flags in [CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READ] {
        let access = CUmemAccessDesc { location: params(64).poolProps.location, flags: flags.0 };
        refused(
            CUDA_ERROR_NOT_SUPPORTED,
            CUDA_MEM_ALLOC_NODE_PARAMS { accessDescs: &access, accessDescCount: 1, ..params(64) },
        );
    }
    // Those of captures are told as well.
    let (s, mut captured, mut count, mut p) =
        (stream(CU_STREAM_NON_BLOCKING), CUgraph::NULL, 1, CUdeviceptr(0));
    let mut told = params(0);
    cu!(
        cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
        cuMemAllocAsync(&mut p, 4000, s);
        cuStreamEndCapture(s, &mut captured);
        cuGraphGetNodes(captured, &mut node, &mut count);
        cuGraphMemAllocNodeGetParams(node, &mut told);
    );
    // Of no descriptions it is nothing where they are.
    told.accessDescs = null();
    let expected = CUDA_MEM_ALLOC_NODE_PARAMS { dptr: p, ..params(4000) };
    assert_eq!(format!("{told:?}"), format!("{expected:?}"));
}

pub fn an_updated_executable_is_another_graphs() {
    new_context();
    let [(first, filled, p), (second, other_filled, q)] = [graph(), graph()];
    let mut freed = CUgraphNode::NULL;
    cu!(
        cuGraphAddMemFreeNode(&mut freed, first, &filled, 1, p);
        cuGraphAddMemFreeNode(&mut freed, second, &other_filled, 1, q);
    );
    let (executable, mut another) = (instantiate(first, 0), CUgraphExec::NULL);
    fails!(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&mut another, first, 0));
    // SAFETY: zeros are an answer.
    let mut result = unsafe { std::mem::zeroed() };
    const WHY: &str = "there a fill cannot be given memory that a graph is yet to allocate, and a kernel can; here either can";
    let code = differs(WHY, CUDA_SUCCESS, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    fails!(code, cuGraphExecUpdate_v2(executable, second, &mut result));
    let free = differs(WHY, CUDA_SUCCESS, CUDA_ERROR_NOT_SUPPORTED);
    fails!(free, cuGraphInstantiateWithFlags(&mut another, first, 0));
    if code == CUDA_SUCCESS {
        cu!(cuGraphLaunch(another, CUstream::NULL); cuCtxSynchronize());
    }
}

pub fn what_cannot_be_asked_about_memory_of_graphs() {
    new_context();
    let (mut zero, mut five) = (0_u64, 5_u64);
    let place: *mut c_void = (&raw mut zero).cast();
    let (invalid, unknown) = (CUDA_ERROR_INVALID_VALUE, CUgraphMem_attribute(9));
    fails!(invalid, cuDeviceGetGraphMemAttribute(0, unknown, place));
    fails!(invalid, cuDeviceSetGraphMemAttribute(0, unknown, place));
    for current in [USED, RESERVED] {
        fails!(invalid, cuDeviceSetGraphMemAttribute(0, current, place));
    }
    fails!(invalid, cuDeviceSetGraphMemAttribute(0, USED_HIGH, (&raw mut five).cast()));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetGraphMemAttribute(99, USED, place));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceSetGraphMemAttribute(99, USED_HIGH, place));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuDeviceGraphMemTrim(99));
    fails!(invalid, cuDeviceGetGraphMemAttribute(0, USED, null_mut()));
    if ours_only("NVIDIA's driver may follow null") {
        fails!(invalid, cuDeviceSetGraphMemAttribute(0, USED_HIGH, null_mut()));
    }
}
