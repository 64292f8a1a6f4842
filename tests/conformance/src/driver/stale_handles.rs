//! Handles of another kind, of what is gone, and destroyed twice. NVIDIA's driver follows most of them into memory; ours
//! knows its own.

use super::common::*;

const NO_HANDLE: CUresult = CUDA_ERROR_INVALID_HANDLE;
/// How functions of graphs, and of memory pools, say it.
const BAD: CUresult = CUDA_ERROR_INVALID_VALUE;

/// A handle of each kind, all of them alive.
struct Handles {
    context: CUcontext,
    module: CUmodule,
    function: CUfunction,
    library: CUlibrary,
    kernel: CUkernel,
    stream: CUstream,
    event: CUevent,
    graph: CUgraph,
    node: CUgraphNode,
    executable: CUgraphExec,
    link: CUlinkState,
    pool: CUmemoryPool,
}

fn handles() -> Handles {
    let context = new_context();
    let module = load(KERNELS);
    let (mut library, mut kernel, mut pool) = (CUlibrary::NULL, CUkernel::NULL, CUmemoryPool::NULL);
    let (mut graph, mut node, mut executable) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphExec::NULL);
    let mut link = CUlinkState::NULL;
    let ptx = CString::new(KERNELS).expect("no NUL inside");
    // SAFETY: numbers, for which zero is a value.
    let mut props: CUmemPoolProps = unsafe { std::mem::zeroed() };
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    cu!(
        cuLibraryLoadData(
            &mut library,
            ptx.as_ptr().cast(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0
        );
        cuLibraryGetKernel(&mut kernel, library, c"nothing".as_ptr());
        cuGraphCreate(&mut graph, 0);
        cuGraphAddEmptyNode(&mut node, graph, null(), 0);
        cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link);
        cuMemPoolCreate(&mut pool, &props);
    );
    let (stream, event) = (stream(CU_STREAM_NON_BLOCKING), event(CU_EVENT_DEFAULT));
    let function = function(module, c"nothing");
    Handles { context, module, function, library, kernel, stream, event, graph, node, executable, link, pool }
}

impl Handles {
    /// All but one, as what a program could take for that one by mistake.
    fn others(&self, own: usize) -> impl Iterator<Item = usize> {
        let all = [
            self.context.0,
            self.module.0,
            self.function.0,
            self.library.0,
            self.kernel.0,
            self.stream.0,
            self.event.0,
            self.graph.0,
            self.node.0,
            self.executable.0,
            self.link.0,
            self.pool.0,
        ];
        all.into_iter().filter(move |handle| *handle != own)
    }
}

pub fn a_handle_of_another_kind_is_refused() {
    if !ours_only("NVIDIA's driver follows the handle") {
        return;
    }
    let all = handles();
    let (mut number, mut size, mut time) = (0, 0, 0.0);
    let mut place = CUdeviceptr(0);
    for wrong in all.others(all.stream.0) {
        let stream = CUstream(wrong);
        fails!(NO_HANDLE, cuStreamSynchronize(stream));
        fails!(NO_HANDLE, cuStreamQuery(stream));
        fails!(NO_HANDLE, cuEventRecord(all.event, stream));
        fails!(NO_HANDLE, cuMemsetD8Async(CUdeviceptr(0), 0, 0, stream));
        fails!(NO_HANDLE, cuStreamDestroy_v2(stream));
        assert_eq!(launch(all.function, 1, 1, stream, &mut []), NO_HANDLE);
    }
    for wrong in all.others(all.event.0) {
        let event = CUevent(wrong);
        fails!(NO_HANDLE, cuEventQuery(event));
        fails!(NO_HANDLE, cuEventRecord(event, all.stream));
        fails!(NO_HANDLE, cuStreamWaitEvent(all.stream, event, 0));
        fails!(NO_HANDLE, cuEventElapsedTime(&mut time, all.event, event));
        fails!(NO_HANDLE, cuEventDestroy_v2(event));
    }
    for wrong in all.others(all.module.0) {
        let (module, mut found) = (CUmodule(wrong), CUfunction::NULL);
        fails!(NO_HANDLE, cuModuleGetFunction(&mut found, module, c"nothing".as_ptr()));
        fails!(NO_HANDLE, cuModuleGetGlobal_v2(&mut place, &mut size, module, c"x".as_ptr()));
        fails!(NO_HANDLE, cuModuleUnload(module));
    }
    // A library's kernel stands for its function.
    for wrong in all.others(all.function.0).filter(|handle| *handle != all.kernel.0) {
        let function = CUfunction(wrong);
        fails!(NO_HANDLE, cuFuncGetAttribute(&mut number, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
        assert_eq!(launch(function, 1, 1, all.stream, &mut []), NO_HANDLE);
    }
    for wrong in all.others(all.library.0) {
        let (library, mut found) = (CUlibrary(wrong), CUkernel::NULL);
        fails!(NO_HANDLE, cuLibraryGetKernel(&mut found, library, c"nothing".as_ptr()));
        fails!(NO_HANDLE, cuLibraryUnload(library));
    }
    for wrong in all.others(all.kernel.0) {
        let mut found = CUfunction::NULL;
        fails!(NO_HANDLE, cuKernelGetFunction(&mut found, CUkernel(wrong)));
    }
    for wrong in all.others(all.link.0) {
        fails!(NO_HANDLE, cuLinkDestroy(CUlinkState(wrong)));
    }
    for wrong in all.others(all.graph.0) {
        let (graph, mut node, mut executable) = (CUgraph(wrong), CUgraphNode::NULL, CUgraphExec::NULL);
        fails!(BAD, cuGraphAddEmptyNode(&mut node, graph, null(), 0));
        fails!(BAD, cuGraphInstantiateWithFlags(&mut executable, graph, 0));
        fails!(BAD, cuGraphDestroy(graph));
    }
    for wrong in all.others(all.node.0) {
        let mut kind = CU_GRAPH_NODE_TYPE_EMPTY;
        fails!(BAD, cuGraphNodeGetType(CUgraphNode(wrong), &mut kind));
        fails!(BAD, cuGraphDestroyNode(CUgraphNode(wrong)));
    }
    for wrong in all.others(all.executable.0) {
        fails!(BAD, cuGraphLaunch(CUgraphExec(wrong), all.stream));
        fails!(BAD, cuGraphExecDestroy(CUgraphExec(wrong)));
    }
    for wrong in all.others(all.pool.0) {
        let pool = CUmemoryPool(wrong);
        fails!(BAD, cuMemAllocFromPoolAsync(&mut place, 64, pool, all.stream));
        fails!(BAD, cuMemPoolDestroy(pool));
    }
    for wrong in all.others(all.context.0) {
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(CUcontext(wrong)));
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(CUcontext(wrong)));
    }
    // Nothing of that did anything to what is there.
    cu!(cuGraphLaunch(all.executable, all.stream); cuStreamSynchronize(all.stream));
    assert_eq!(launch(all.function, 1, 1, all.stream, &mut []), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
}

pub fn everything_is_destroyed_once() {
    if !ours_only("NVIDIA's driver follows the handle") {
        return;
    }
    let all = handles();
    cu!(
        cuGraphExecDestroy(all.executable);
        cuGraphDestroyNode(all.node);
        cuGraphDestroy(all.graph);
        cuMemPoolDestroy(all.pool);
        cuLinkDestroy(all.link);
        cuLibraryUnload(all.library);
        cuModuleUnload(all.module);
        cuEventDestroy_v2(all.event);
        cuStreamDestroy_v2(all.stream);
    );
    fails!(BAD, cuGraphExecDestroy(all.executable));
    fails!(BAD, cuGraphDestroyNode(all.node));
    fails!(BAD, cuGraphDestroy(all.graph));
    fails!(BAD, cuMemPoolDestroy(all.pool));
    fails!(NO_HANDLE, cuLinkDestroy(all.link));
    fails!(NO_HANDLE, cuLibraryUnload(all.library));
    fails!(NO_HANDLE, cuModuleUnload(all.module));
    fails!(NO_HANDLE, cuEventDestroy_v2(all.event));
    fails!(NO_HANDLE, cuStreamDestroy_v2(all.stream));
    let mut found = CUfunction::NULL;
    fails!(NO_HANDLE, cuKernelGetFunction(&mut found, all.kernel));
    assert_eq!(launch(all.function, 1, 1, CUstream::NULL, &mut []), NO_HANDLE);
    cu!(cuCtxSynchronize(); cuCtxDestroy_v2(all.context));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(all.context));
}

/// What was made in a context is refused in every function once that is gone, in whatever context is current.
pub fn what_goes_with_a_context_is_refused() {
    if !ours_only("NVIDIA's driver follows the handle") {
        return;
    }
    let all = handles();
    let (pointer, mut time) = (alloc(64), 0.0);
    cu!(cuCtxDestroy_v2(all.context));
    create_context();
    assert!(launch(all.function, 1, 1, CUstream::NULL, &mut []) != CUDA_SUCCESS);
    let refused = |what: &str, code: CUresult| {
        let gone = [NO_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT];
        assert!(gone.contains(&code), "{what}: {code:?}");
    };
    let mut found = CUfunction::NULL;
    // SAFETY: handles that the driver looks up, and places for answers.
    unsafe {
        refused("stream", cuStreamSynchronize(all.stream));
        refused("stream of a record", cuEventRecord(event(CU_EVENT_DEFAULT), all.stream));
        refused("event of a record", cuEventRecord(all.event, CUstream::NULL));
        refused("elapsed", cuEventElapsedTime(&mut time, all.event, all.event));
        refused("module", cuModuleGetFunction(&mut found, all.module, c"nothing".as_ptr()));
        refused("unload", cuModuleUnload(all.module));
    }
    fails!(BAD, cuMemFree_v2(pointer));
    fails!(BAD, cuMemsetD8_v2(pointer, 0, 64));
    // A library belongs to no context.
    cu!(cuKernelGetFunction(&mut found, all.kernel));
    assert_eq!(launch(found, 1, 1, CUstream::NULL, &mut []), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
}
