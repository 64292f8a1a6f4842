//! Arguments that say nothing: no object, no name, no room, nothing to do. What an H200 answered (driver 580.159, 2026-11-30).

use super::common::*;

pub fn lists_of_a_graph_have_room() {
    new_context();
    let main = graph();
    let (mut first, mut second) = (CUgraphNode::NULL, CUgraphNode::NULL);
    cu!(cuGraphAddEmptyNode(&mut first, main, null(), 0); cuGraphAddEmptyNode(&mut second, main, &first, 1));
    let (mut room, mut others) = ([CUgraphNode::NULL; 2], [CUgraphNode::NULL; 2]);
    let (nodes, ends) = (room.as_mut_ptr(), others.as_mut_ptr());
    // SAFETY: numbers, for which zero is a value.
    let mut data: CUgraphEdgeData = unsafe { std::mem::zeroed() };
    let mut none = 0;
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(main, nodes, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetRootNodes(main, nodes, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges(main, nodes, ends, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges_v2(main, nodes, ends, &mut data, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependencies(second, nodes, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependencies_v2(second, nodes, &mut data, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependentNodes(first, nodes, &mut none));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeGetDependentNodes_v2(first, nodes, &mut data, &mut none));
    // A graph of nothing has no list either.
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetNodes(graph(), nodes, &mut none));
    let mut count = 1;
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphGetEdges_v2(main, null_mut(), null_mut(), &mut data, &mut count));
    count = 1;
    cu!(cuGraphGetNodes(main, nodes, &mut count));
    assert_eq!(count, 1);
}

pub fn no_function_has_no_name_and_no_parameters() {
    new_context();
    let (mut name, mut size, mut blocks) = (null(), 0, 0);
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetName(&mut name, CUfunction::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuKernelGetName(&mut name, CUkernel::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(CUfunction::NULL, 0, &mut size, &mut size));
    fails!(
        CUDA_ERROR_INVALID_HANDLE,
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks, CUfunction::NULL, 0, 0)
    );
}

pub fn an_empty_name_is_no_name() {
    new_context();
    let module = load(KERNELS);
    let image = CString::new(KERNELS).expect("no NUL inside");
    let data = image.as_ptr().cast();
    let (mut library, mut address, mut size) = (CUlibrary::NULL, CUdeviceptr(0), 0);
    cu!(cuLibraryLoadData(&mut library, data, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0));
    let (mut texture, mut surface, mut kernel) = (CUtexref::NULL, CUsurfref::NULL, CUkernel::NULL);
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetTexRef(&mut texture, module, c"".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleGetSurfRef(&mut surface, module, c"".as_ptr()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryGetManaged(&mut address, &mut size, library, c"".as_ptr()));
    fails!(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&mut kernel, library, c"".as_ptr()));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLibraryLoadFromFile(
            &mut library,
            c"".as_ptr(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0
        )
    );
    let mut link = CUlinkState::NULL;
    cu!(cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, c"".as_ptr(), 0, null_mut(), null_mut())
    );
}

pub fn functions_are_listed_somewhere() {
    new_context();
    let module = load(KERNELS);
    let image = CString::new(KERNELS).expect("no NUL inside");
    let mut library = CUlibrary::NULL;
    let data = image.as_ptr().cast();
    cu!(cuLibraryLoadData(&mut library, data, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuModuleEnumerateFunctions(null_mut(), 0, module));
    fails!(CUDA_ERROR_INVALID_VALUE, cuLibraryEnumerateKernels(null_mut(), 0, library));
}

pub fn nothing_is_asked_about_no_pointer() {
    new_context();
    let p = alloc(64);
    let (mut attribute, mut place) = (CU_POINTER_ATTRIBUTE_MEMORY_TYPE, null_mut());
    fails!(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttributes(0, &mut attribute, &mut place, p));
}

pub fn no_external_object_is_a_wrong_value() {
    new_context();
    let s = stream(CU_STREAM_NON_BLOCKING);
    // SAFETY: numbers, for which zero is a value.
    let (wanted, signal, wait): (
        CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    ) = unsafe { std::mem::zeroed() };
    let (mut p, mut none) = (CUdeviceptr(0), CUexternalSemaphore::NULL);
    fails!(CUDA_ERROR_INVALID_VALUE, cuDestroyExternalMemory(CUexternalMemory::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDestroyExternalSemaphore(none));
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuExternalMemoryGetMappedBuffer(&mut p, CUexternalMemory::NULL, &wanted)
    );
    fails!(CUDA_ERROR_INVALID_VALUE, cuSignalExternalSemaphoresAsync(&mut none, &signal, 0, s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuWaitExternalSemaphoresAsync(&mut none, &wait, 0, s));
    fails!(CUDA_ERROR_INVALID_VALUE, cuWaitExternalSemaphoresAsync(&mut none, &wait, 1, s));
    // A node may be for none.
    // SAFETY: as above.
    let (signal, wait): (CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS) =
        unsafe { std::mem::zeroed() };
    let (main, mut node) = (graph(), CUgraphNode::NULL);
    cu!(
        cuGraphAddExternalSemaphoresSignalNode(&mut node, main, null(), 0, &signal);
        cuGraphAddExternalSemaphoresWaitNode(&mut node, main, null(), 0, &wait);
    );
}

/// A copy of some bytes between two places of the same memory.
fn copy(p: CUdeviceptr) -> CUDA_MEMCPY3D {
    // SAFETY: numbers and null, for which zero is a value.
    let mut copy: CUDA_MEMCPY3D = unsafe { std::mem::zeroed() };
    (copy.srcMemoryType, copy.dstMemoryType) = (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
    (copy.srcDevice, copy.dstDevice) = (p, CUdeviceptr(p.0 + 512));
    (copy.WidthInBytes, copy.Height, copy.Depth) = (16, 1, 1);
    copy
}

pub fn a_node_copies_something() {
    let (context, p, main, mut node) = (new_context(), alloc(1024), graph(), CUgraphNode::NULL);
    cu!(cuGraphAddMemcpyNode(&mut node, main, null(), 0, &copy(p), context));
    let executable = instantiate(main);
    for empty in 0..3 {
        let mut wanted = copy(p);
        *[&mut wanted.WidthInBytes, &mut wanted.Height, &mut wanted.Depth][empty] = 0;
        let mut other = CUgraphNode::NULL;
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddMemcpyNode(&mut other, main, null(), 0, &wanted, context));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphMemcpyNodeSetParams(node, &wanted));
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphExecMemcpyNodeSetParams(executable, node, &wanted, context));
        // A call may have nothing to do.
        cu!(cuMemcpy3D_v2(&wanted));
    }
}

pub fn what_parameters_of_nodes_do_not_use_is_zero() {
    new_context();
    let (main, kernel, mut node) = (graph(), kernel(c"nothing"), CUgraphNode::NULL);
    // SAFETY: numbers and null, for which zero is a value.
    let mut params: CUgraphNodeParams = unsafe { std::mem::zeroed() };
    params.r#type = CU_GRAPH_NODE_TYPE_KERNEL;
    params.params.kernel = one_thread(kernel, &mut []);
    cu!(cuGraphAddNode(&mut node, main, null(), 0, &mut params));
    let executable = instantiate(main);
    cu!(cuGraphNodeSetParams(node, &mut params); cuGraphExecNodeSetParams(executable, node, &mut params));
    params.reserved0[1] = 1;
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphNodeSetParams(node, &mut params));
    fails!(CUDA_ERROR_INVALID_VALUE, cuGraphExecNodeSetParams(executable, node, &mut params));
    params.reserved0[1] = 0;
    // Of a host function, what a kernel's parameters have behind it; of a copy, its flags.
    for other in [CU_GRAPH_NODE_TYPE_HOST, CU_GRAPH_NODE_TYPE_MEMCPY] {
        params.r#type = other;
        fails!(CUDA_ERROR_INVALID_VALUE, cuGraphAddNode(&mut node, main, null(), 0, &mut params));
    }
}

pub fn an_update_may_go_untold() {
    new_context();
    let (main, mut node) = (graph(), CUgraphNode::NULL);
    cu!(cuGraphAddEmptyNode(&mut node, main, null(), 0));
    let executable = instantiate(main);
    cu!(cuGraphExecUpdate_v2(executable, main, null_mut()));
}

pub fn copies_between_contexts_need_name_none() {
    let (context, p) = (new_context(), alloc_with(&[7u32; 256]));
    // SAFETY: numbers and null, for which zero is a value.
    let mut wanted: CUDA_MEMCPY3D_PEER = unsafe { std::mem::zeroed() };
    (wanted.srcMemoryType, wanted.dstMemoryType) = (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE);
    (wanted.srcDevice, wanted.dstDevice) = (p, CUdeviceptr(p.0 + 512));
    (wanted.WidthInBytes, wanted.Height, wanted.Depth) = (16, 1, 1);
    cu!(cuMemcpy3DPeer(&wanted));
    wanted.srcContext = context;
    cu!(cuMemcpy3DPeer(&wanted));
    (wanted.srcContext, wanted.dstContext) = (CUcontext::NULL, context);
    cu!(cuMemcpy3DPeer(&wanted));
}

pub fn too_much_memory_is_too_large_a_cooperative_launch() {
    new_context();
    let nothing = kernel(c"nothing");
    for bytes in [(48 << 10) + 1, 300_000] {
        fails!(
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
            cuLaunchCooperativeKernel(nothing, 1, 1, 1, 1, 1, 1, bytes, CUstream::NULL, null_mut())
        );
        fails!(
            CUDA_ERROR_INVALID_VALUE,
            cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, bytes, CUstream::NULL, null_mut(), null_mut())
        );
    }
}

pub fn what_is_reserved_is_zero() {
    new_context();
    let layout = array_descriptor([8, 4, 0], CU_AD_FORMAT_FLOAT, 1, 0);
    let (mut array, mut texture) = (CUarray::NULL, 0);
    cu!(cuArray3DCreate_v2(&mut array, &layout));
    // SAFETY: numbers and null, for which zero is a value.
    let mut resource: CUDA_RESOURCE_DESC = unsafe { std::mem::zeroed() };
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.hArray = array;
    let mut wanted = plain_texture();
    wanted.reserved[11] = 1;
    fails!(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&mut texture, &resource, &wanted, null()));
    let (mut memory, mut size, mut prop) = (0, 0, allocation_prop());
    cu!(cuMemGetAllocationGranularity(&mut size, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    prop.compressionType = 2;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut memory, size, &prop, 0));
    prop = allocation_prop();
    prop.reserved[0] = 1;
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemCreate(&mut memory, size, &prop, 0));
}

pub fn flags_of_a_primary_context() {
    init();
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_MAP_HOST));
    cu!(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_YIELD));
    let mut context = CUcontext::NULL;
    cu!(cuDevicePrimaryCtxRetain(&mut context, 0));
    fails!(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
    fails!(CUDA_ERROR_INVALID_VALUE, cuDevicePrimaryCtxSetFlags(0, CU_CTX_MAP_HOST));
    cu!(cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_SPIN));
}

pub fn nobody_is_given_access_to_a_pool() {
    new_context();
    let mut pool = CUmemoryPool::NULL;
    cu!(cuDeviceGetDefaultMemPool(&mut pool, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemPoolSetAccess(pool, null(), 0));
}

pub fn blocks_are_no_deeper_than_the_device_takes() {
    new_context();
    let nothing = kernel(c"nothing");
    cu!(cuFuncSetBlockShape(nothing, 1, 1, 64));
    fails!(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(nothing, 1, 1, 65));
}

pub fn allocations_of_graphs_are_of_a_known_sort() {
    new_context();
    // SAFETY: numbers and null, for which zero is a value.
    let mut wanted: CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.poolProps.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    wanted.bytesize = 64;
    let (main, mut node) = (graph(), CUgraphNode::NULL);
    let mut add = |wanted: &mut CUDA_MEM_ALLOC_NODE_PARAMS| {
        // SAFETY: places of this test, and a list of none.
        unsafe { cuGraphAddMemAllocNode(&mut node, main, null(), 0, wanted) }
    };
    {
        let mut wanted = wanted;
        assert_eq!(add(&mut wanted), CUDA_SUCCESS);
    }
    for (types, code) in
        [(1, CUDA_ERROR_NOT_SUPPORTED), (8, CUDA_ERROR_NOT_SUPPORTED), (2, CUDA_ERROR_INVALID_VALUE)]
    {
        let mut wanted = wanted;
        wanted.poolProps.handleTypes = types;
        assert_eq!(add(&mut wanted), code, "handles {types}");
    }
    for (place, code) in [
        (CU_MEM_LOCATION_TYPE_HOST, CUDA_ERROR_NOT_SUPPORTED),
        (CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, CUDA_ERROR_INVALID_VALUE),
        (CUmemLocationType(0), CUDA_ERROR_INVALID_VALUE),
    ] {
        let mut wanted = wanted;
        wanted.poolProps.location.r#type = place;
        assert_eq!(add(&mut wanted), code, "{place:?}");
    }
    wanted.poolProps.reserved[0] = 1;
    assert_eq!(add(&mut wanted), CUDA_ERROR_INVALID_VALUE);
}

pub fn clusters_are_of_grids_that_there_are() {
    new_context();
    let (mut clusters, nothing) = (0, kernel(c"nothing"));
    let mut wanted = one_thread_in(CUstream::NULL, &mut []);
    cu!(cuOccupancyMaxActiveClusters(&mut clusters, nothing, &wanted));
    wanted.gridDimX = u32::MAX;
    fails!(CUDA_ERROR_INVALID_VALUE, cuOccupancyMaxActiveClusters(&mut clusters, nothing, &wanted));
}
