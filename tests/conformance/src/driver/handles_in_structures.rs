//! Handles that reach a function inside a structure or a list, and are none of the kind that belongs there: as
//! [`super::every_handle`] for those that are arguments themselves.

use super::common::*;
use super::every_handle::{end, objects};
use crate::every_handle::{Bad, Objects, bad_handles};

/// A place of a handle in what a function is given.
struct Place {
    /// The function and the member.
    name: &'static str,
    /// The kind of handle that belongs there.
    kind: &'static str,
    /// What a handle of another kind is answered with.
    code: CUresult,
    /// Calls the function with all as it should be but for this handle.
    call: fn(&Objects, u64) -> CUresult,
}

const fn place(
    name: &'static str,
    kind: &'static str,
    code: CUresult,
    call: fn(&Objects, u64) -> CUresult,
) -> Place {
    Place { name, kind, code, call }
}

/// A structure of numbers and null pointers.
fn zeroed<T>() -> T {
    // SAFETY: the structures of this file are made of numbers, pointers and unions of them, for which zero is a value.
    unsafe { std::mem::zeroed() }
}

/// The live object of a kind.
fn live(objects: &Objects, kind: &str) -> usize {
    objects.live.iter().find(|(of, _)| *of == kind).expect("one of each").1 as usize
}

fn graph(objects: &Objects) -> CUgraph {
    CUgraph(live(objects, "CUgraph"))
}

fn live_stream(objects: &Objects) -> CUstream {
    CUstream(live(objects, "CUstream"))
}

/// One thread of a kernel, which these name.
fn one_named_thread(function: u64, kernel: u64, context: u64) -> CUDA_KERNEL_NODE_PARAMS {
    CUDA_KERNEL_NODE_PARAMS {
        kern: CUkernel(kernel as usize),
        ctx: CUcontext(context as usize),
        ..one_thread(CUfunction(function as usize), &mut [])
    }
}

/// Four bytes from memory to an array, or from an array to memory.
fn copy(objects: &Objects, source: Option<u64>, destination: Option<u64>) -> CUDA_MEMCPY3D {
    let mut copy: CUDA_MEMCPY3D = zeroed();
    (copy.srcMemoryType, copy.srcDevice) = (CU_MEMORYTYPE_DEVICE, CUdeviceptr(objects.memory));
    (copy.dstMemoryType, copy.dstDevice) = (CU_MEMORYTYPE_DEVICE, CUdeviceptr(objects.memory));
    if let Some(array) = source {
        (copy.srcMemoryType, copy.srcArray) = (CU_MEMORYTYPE_ARRAY, CUarray(array as usize));
    }
    if let Some(array) = destination {
        (copy.dstMemoryType, copy.dstArray) = (CU_MEMORYTYPE_ARRAY, CUarray(array as usize));
    }
    (copy.WidthInBytes, copy.Height, copy.Depth) = (4, 1, 1);
    copy
}

fn plane_copy(objects: &Objects, source: Option<u64>, destination: Option<u64>) -> CUDA_MEMCPY2D {
    let from = copy(objects, source, destination);
    CUDA_MEMCPY2D {
        srcMemoryType: from.srcMemoryType,
        srcDevice: from.srcDevice,
        srcArray: from.srcArray,
        dstMemoryType: from.dstMemoryType,
        dstDevice: from.dstDevice,
        dstArray: from.dstArray,
        WidthInBytes: 4,
        Height: 1,
        ..zeroed()
    }
}

fn peer_copy(objects: &Objects, source: u64, destination: u64, array: Option<u64>) -> CUDA_MEMCPY3D_PEER {
    let from = copy(objects, array, None);
    CUDA_MEMCPY3D_PEER {
        srcMemoryType: from.srcMemoryType,
        srcDevice: from.srcDevice,
        srcArray: from.srcArray,
        srcContext: CUcontext(source as usize),
        dstMemoryType: from.dstMemoryType,
        dstDevice: from.dstDevice,
        dstContext: CUcontext(destination as usize),
        WidthInBytes: 4,
        Height: 1,
        Depth: 1,
        ..zeroed()
    }
}

/// A word set to zero.
fn fill(objects: &Objects) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS {
        dst: CUdeviceptr(objects.memory),
        elementSize: 4,
        width: 1,
        height: 1,
        ..zeroed()
    }
}

/// Adds a node of any type.
fn add(objects: &Objects, of: CUgraphNodeType, params: CUgraphNodeParamsUnion) -> CUresult {
    let (mut node, mut all) = (CUgraphNode::NULL, zeroed::<CUgraphNodeParams>());
    (all.r#type, all.params) = (of, params);
    // SAFETY: the structure that the type demands; handles in it the library must look up.
    unsafe { cuGraphAddNode_v2(&mut node, graph(objects), null(), null(), 0, &mut all) }
}

/// Launches a kernel of one thread with an attribute that holds an event.
fn launch_with(objects: &Objects, id: CUlaunchAttributeID, event: u64) -> CUresult {
    let mut attribute: CUlaunchAttribute = zeroed();
    attribute.id = id;
    attribute.value.bytes[..8].copy_from_slice(&event.to_ne_bytes());
    launch_in(objects, live(objects, "CUstream") as u64, &mut [attribute])
}

fn launch_in(objects: &Objects, stream: u64, attributes: &mut [CUlaunchAttribute]) -> CUresult {
    let config = one_thread_in(CUstream(stream as usize), attributes);
    // SAFETY: a configuration that lives through the call; the kernel has no parameters.
    unsafe { cuLaunchKernelEx(&config, CUfunction(live(objects, "CUfunction")), null_mut(), null_mut()) }
}

/// A launch of the deprecated call for several devices.
fn launch_list(function: u64, stream: u64) -> CUresult {
    let mut launch = CUDA_LAUNCH_PARAMS {
        function: CUfunction(function as usize),
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        hStream: CUstream(stream as usize),
        kernelParams: null_mut(),
    };
    // SAFETY: one launch; the kernel has no parameters.
    unsafe { cuLaunchCooperativeKernelMultiDevice(&mut launch, 1, 0) }
}

/// A copy in a batch, from an array to memory.
fn batched(objects: &Objects, array: u64) -> CUresult {
    let mut copy: CUDA_MEMCPY3D_BATCH_OP = zeroed();
    copy.src.r#type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
    copy.src.op.array = CUmemcpy3DArray { array: CUarray(array as usize), offset: zeroed() };
    copy.dst.r#type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    copy.dst.op.ptr = CUmemcpy3DMemory {
        ptr: CUdeviceptr(objects.memory),
        rowLength: 0,
        layerHeight: 0,
        locHint: zeroed(),
    };
    copy.extent = CUextent3D { width: 1, height: 1, depth: 1 };
    copy.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    // SAFETY: one operation.
    unsafe { cuMemcpy3DBatchAsync_v2(1, &mut copy, 0, live_stream(objects)) }
}

/// A texture object of a resource, destroyed at once.
fn texture(resource: CUDA_RESOURCE_DESC) -> CUresult {
    let mut object = 0;
    // SAFETY: descriptions that live through the call.
    unsafe {
        let code = cuTexObjectCreate(&mut object, &resource, &plain_texture(), null());
        if code == CUDA_SUCCESS {
            cuTexObjectDestroy(object);
        }
        code
    }
}

fn array_resource(array: u64) -> CUDA_RESOURCE_DESC {
    let mut resource: CUDA_RESOURCE_DESC = zeroed();
    (resource.resType, resource.res.hArray) = (CU_RESOURCE_TYPE_ARRAY, CUarray(array as usize));
    resource
}

fn mipmap_resource(levels: u64) -> CUDA_RESOURCE_DESC {
    let mut resource: CUDA_RESOURCE_DESC = zeroed();
    resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
    resource.res.hMipmappedArray = CUmipmappedArray(levels as usize);
    resource
}

/// One semaphore in a list.
fn signalled(semaphore: u64, call: impl Fn(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) -> CUresult) -> CUresult {
    let (mut list, params) = (CUexternalSemaphore(semaphore as usize), zeroed());
    call(CUDA_EXT_SEM_SIGNAL_NODE_PARAMS { extSemArray: &mut list, paramsArray: &params, numExtSems: 1 })
}

fn awaited(semaphore: u64, call: impl Fn(CUDA_EXT_SEM_WAIT_NODE_PARAMS) -> CUresult) -> CUresult {
    let (mut list, params) = (CUexternalSemaphore(semaphore as usize), zeroed());
    call(CUDA_EXT_SEM_WAIT_NODE_PARAMS { extSemArray: &mut list, paramsArray: &params, numExtSems: 1 })
}

/// A batch of one store.
fn stores(
    objects: &Objects,
    context: u64,
    call: impl Fn(CUDA_BATCH_MEM_OP_NODE_PARAMS) -> CUresult,
) -> CUresult {
    let mut store: CUstreamBatchMemOpParams = zeroed();
    (store.operation, store.address) = (CU_STREAM_MEM_OP_WRITE_VALUE_32, CUdeviceptr(objects.memory));
    call(CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: CUcontext(context as usize),
        count: 1,
        paramArray: &mut store,
        flags: 0,
    })
}

/// Adds a node by one of the functions that add a node of one type.
macro_rules! added {
    ($objects:expr, $function:ident($($argument:expr),*)) => {{
        let mut node = CUgraphNode::NULL;
        // SAFETY: parameters that live through the call; handles in them the library must look up.
        unsafe { $function(&mut node, graph($objects), $($argument),*) }
    }};
}

const HANDLE: CUresult = CUDA_ERROR_INVALID_HANDLE;
const VALUE: CUresult = CUDA_ERROR_INVALID_VALUE;
const CONTEXT: CUresult = CUDA_ERROR_INVALID_CONTEXT;

const PLACES: &[Place] = &[
    place("cuGraphAddKernelNode, func", "CUfunction", HANDLE, |all, bad| {
        added!(all, cuGraphAddKernelNode_v2(null(), 0, &one_named_thread(bad, 0, 0)))
    }),
    place("cuGraphAddKernelNode, kern", "CUkernel", HANDLE, |all, bad| {
        added!(all, cuGraphAddKernelNode_v2(null(), 0, &one_named_thread(0, bad, 0)))
    }),
    place("cuGraphAddKernelNode, ctx", "CUcontext", CONTEXT, |all, bad| {
        let kernel = live(all, "CUkernel") as u64;
        added!(all, cuGraphAddKernelNode_v2(null(), 0, &one_named_thread(0, kernel, bad)))
    }),
    place("cuGraphAddNode, kernel.func", "CUfunction", HANDLE, |all, bad| {
        add(all, CU_GRAPH_NODE_TYPE_KERNEL, CUgraphNodeParamsUnion { kernel: one_named_thread(bad, 0, 0) })
    }),
    place("cuGraphAddNode, memcpy.copyCtx", "CUcontext", CONTEXT, |all, bad| {
        let memcpy = CUDA_MEMCPY_NODE_PARAMS {
            flags: 0,
            reserved: 0,
            copyCtx: CUcontext(bad as usize),
            copyParams: copy(all, None, None),
        };
        add(all, CU_GRAPH_NODE_TYPE_MEMCPY, CUgraphNodeParamsUnion { memcpy })
    }),
    place("cuGraphAddNode, memset.ctx", "CUcontext", CONTEXT, |all, bad| {
        let fill = fill(all);
        let memset = CUDA_MEMSET_NODE_PARAMS_v2 {
            dst: fill.dst,
            elementSize: fill.elementSize,
            width: fill.width,
            height: fill.height,
            ctx: CUcontext(bad as usize),
            ..zeroed()
        };
        add(all, CU_GRAPH_NODE_TYPE_MEMSET, CUgraphNodeParamsUnion { memset })
    }),
    place("cuGraphAddNode, graph.graph", "CUgraph", VALUE, |all, bad| {
        let mut child = CUgraph(bad as usize);
        if bad == live(all, "CUgraph") as u64 {
            // A graph cannot be its own child.
            cu!(cuGraphClone(&mut child, graph(all)));
        }
        let ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
        let graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: child, ownership };
        add(all, CU_GRAPH_NODE_TYPE_GRAPH, CUgraphNodeParamsUnion { graph })
    }),
    place("cuGraphAddNode, eventRecord.event", "CUevent", HANDLE, |all, bad| {
        let event = CUevent(bad as usize);
        add(all, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CUgraphNodeParamsUnion { event })
    }),
    place("cuGraphAddNode, eventWait.event", "CUevent", HANDLE, |all, bad| {
        let event = CUevent(bad as usize);
        add(all, CU_GRAPH_NODE_TYPE_WAIT_EVENT, CUgraphNodeParamsUnion { event })
    }),
    place("cuGraphAddMemcpyNode, srcArray", "CUarray", VALUE, |all, bad| {
        added!(all, cuGraphAddMemcpyNode(null(), 0, &copy(all, Some(bad), None), current()))
    }),
    place("cuGraphAddMemcpyNode, dstArray", "CUarray", VALUE, |all, bad| {
        added!(all, cuGraphAddMemcpyNode(null(), 0, &copy(all, None, Some(bad)), current()))
    }),
    place("cuGraphAddEmptyNode, dependencies", "CUgraphNode", VALUE, |all, bad| {
        added!(all, cuGraphAddEmptyNode(&CUgraphNode(bad as usize), 1))
    }),
    place(
        "cuGraphAddExternalSemaphoresSignalNode, extSemArray",
        "CUexternalSemaphore",
        HANDLE,
        |all, bad| {
            signalled(bad, |params| added!(all, cuGraphAddExternalSemaphoresSignalNode(null(), 0, &params)))
        },
    ),
    place("cuGraphAddExternalSemaphoresWaitNode, extSemArray", "CUexternalSemaphore", HANDLE, |all, bad| {
        awaited(bad, |params| added!(all, cuGraphAddExternalSemaphoresWaitNode(null(), 0, &params)))
    }),
    place("cuSignalExternalSemaphoresAsync, extSemArray", "CUexternalSemaphore", HANDLE, |all, bad| {
        signalled(bad, |params| {
            // SAFETY: lists of one.
            unsafe {
                cuSignalExternalSemaphoresAsync(params.extSemArray, params.paramsArray, 1, live_stream(all))
            }
        })
    }),
    place("cuGraphAddBatchMemOpNode, ctx", "CUcontext", CONTEXT, |all, bad| {
        stores(all, bad, |params| added!(all, cuGraphAddBatchMemOpNode(null(), 0, &params)))
    }),
    place("cuGraphInstantiateWithParams, hUploadStream", "CUstream", HANDLE, |all, bad| {
        let mut params: CUDA_GRAPH_INSTANTIATE_PARAMS = zeroed();
        params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
        params.hUploadStream = CUstream(bad as usize);
        let mut executable = CUgraphExec::NULL;
        // SAFETY: parameters that live through the call.
        unsafe { cuGraphInstantiateWithParams(&mut executable, graph(all), &mut params) }
    }),
    place(
        "cuMemcpy2D, srcArray",
        "CUarray",
        VALUE,
        // SAFETY: a description that lives through the call.
        |all, bad| unsafe { cuMemcpy2D_v2(&plane_copy(all, Some(bad), None)) },
    ),
    place(
        "cuMemcpy2D, dstArray",
        "CUarray",
        VALUE,
        // SAFETY: as above.
        |all, bad| unsafe { cuMemcpy2D_v2(&plane_copy(all, None, Some(bad))) },
    ),
    place(
        "cuMemcpy3D, srcArray",
        "CUarray",
        VALUE,
        // SAFETY: as above.
        |all, bad| unsafe { cuMemcpy3D_v2(&copy(all, Some(bad), None)) },
    ),
    place(
        "cuMemcpy3D, dstArray",
        "CUarray",
        VALUE,
        // SAFETY: as above.
        |all, bad| unsafe { cuMemcpy3D_v2(&copy(all, None, Some(bad))) },
    ),
    place(
        "cuMemcpy3DPeer, srcContext",
        "CUcontext",
        CONTEXT,
        // SAFETY: as above.
        |all, bad| unsafe { cuMemcpy3DPeer(&peer_copy(all, bad, current().0 as u64, None)) },
    ),
    place(
        "cuMemcpy3DPeer, dstContext",
        "CUcontext",
        CONTEXT,
        // SAFETY: as above.
        |all, bad| unsafe { cuMemcpy3DPeer(&peer_copy(all, current().0 as u64, bad, None)) },
    ),
    place("cuMemcpy3DPeer, srcArray", "CUarray", VALUE, |all, bad| {
        let context = current().0 as u64;
        // SAFETY: as above.
        unsafe { cuMemcpy3DPeer(&peer_copy(all, context, context, Some(bad))) }
    }),
    place("cuMemcpy3DBatchAsync, src.op.array.array", "CUarray", VALUE, batched),
    place("cuTexObjectCreate, hArray", "CUarray", VALUE, |_, bad| texture(array_resource(bad))),
    place("cuTexObjectCreate, hMipmappedArray", "CUmipmappedArray", VALUE, |_, bad| {
        texture(mipmap_resource(bad))
    }),
    place("cuSurfObjectCreate, hArray", "CUarray", VALUE, |_, bad| {
        let mut object = 0;
        // SAFETY: a description that lives through the call.
        unsafe { cuSurfObjectCreate(&mut object, &array_resource(bad)) }
    }),
    place("cuLaunchKernelEx, hStream", "CUstream", HANDLE, |all, bad| launch_in(all, bad, &mut [])),
    place("cuLaunchKernelEx, programmaticEvent.event", "CUevent", HANDLE, |all, bad| {
        launch_with(all, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, bad)
    }),
    place("cuLaunchKernelEx, launchCompletionEvent.event", "CUevent", HANDLE, |all, bad| {
        launch_with(all, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, bad)
    }),
    place("cuLaunchCooperativeKernelMultiDevice, function", "CUfunction", HANDLE, |all, bad| {
        launch_list(bad, live(all, "CUstream") as u64)
    }),
    place("cuLaunchCooperativeKernelMultiDevice, hStream", "CUstream", HANDLE, |all, bad| {
        launch_list(live(all, "CUfunction") as u64, bad)
    }),
];

pub fn what_is_no_handle_in_a_structure_is_refused() {
    if !ours_only("NVIDIA's driver follows the handle") {
        return;
    }
    set_env("ANYWARP_THREADS", "2");
    init();
    let mut found = Vec::new();
    for place in PLACES {
        let objects = objects();
        for (bad, handle) in bad_handles(place.kind, &objects) {
            let code = (place.call)(&objects, handle);
            if code != expected(place, bad) {
                found.push(format!("{}, {bad:?}: {code:?}, not {:?}", place.name, expected(place, bad)));
            }
        }
        // Nothing else was wrong with the call.
        let good = (place.call)(&objects, live(&objects, place.kind) as u64);
        if good != CUDA_SUCCESS {
            found.push(format!("{}, as it should be: {good:?}", place.name));
        }
        cu!(cuCtxSynchronize());
        end(&objects);
    }
    assert!(found.is_empty(), "{} answers:\n{}", found.len(), found.join("\n"));
}

fn expected(place: &Place, bad: Bad) -> CUresult {
    match (place.kind, bad) {
        ("CUcontext", Bad::Gone) => CUDA_ERROR_CONTEXT_IS_DESTROYED,
        _ => place.code,
    }
}
