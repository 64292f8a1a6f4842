//! Every function of the Driver API that takes a handle, with what is none: see [`crate::every_handle`].

use super::common::*;
use crate::every_handle::{Bad, Case, Objects, findings};

/// Memory that texture references, modules and libraries of these tests are made from: besides the kernels, one reference of each kind.
fn program() -> CString {
    CString::new(format!("{KERNELS}\n.global .texref plane;\n.global .surfref surface;\n"))
        .expect("no NUL inside")
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn no_listener(_: *mut c_void, _: CUlogLevel, _: *mut c_char, _: usize) {}

unsafe extern "C" fn not_told(_: *mut CUasyncNotificationInfo, _: *mut c_void, _: CUasyncCallbackHandle) {}

/// A file of the operating system's, for memory.
fn file() -> i32 {
    // SAFETY: a name that ends in NUL; the descriptor is this function's.
    unsafe {
        let descriptor = libc::memfd_create(c"test".as_ptr(), 0);
        assert_eq!(libc::ftruncate(descriptor, 1 << 16), 0);
        descriptor
    }
}

/// An object of each kind, in the current context.
fn one_of_each() -> Vec<(&'static str, u64)> {
    let ptx = program();
    let data = ptx.as_ptr().cast::<c_void>();
    let (mut module, mut function, mut library, mut kernel) =
        (CUmodule::NULL, CUfunction::NULL, CUlibrary::NULL, CUkernel::NULL);
    let (mut texture, mut surface) = (CUtexref::NULL, CUsurfref::NULL);
    cu!(
        cuModuleLoadData(&mut module, data);
        cuModuleGetFunction(&mut function, module, c"nothing".as_ptr());
        cuModuleGetTexRef(&mut texture, module, c"plane".as_ptr());
        cuModuleGetSurfRef(&mut surface, module, c"surface".as_ptr());
        cuLibraryLoadData(&mut library, data, null_mut(), null_mut(), 0, null_mut(), null_mut(), 0);
        cuLibraryGetKernel(&mut kernel, library, c"nothing".as_ptr());
    );

    let (mut graph, mut node, mut executable) = (CUgraph::NULL, CUgraphNode::NULL, CUgraphExec::NULL);
    let (mut object, mut link) = (CUuserObject::NULL, CUlinkState::NULL);
    cu!(
        cuGraphCreate(&mut graph, 0);
        cuGraphAddEmptyNode(&mut node, graph, null(), 0);
        cuGraphInstantiateWithFlags(&mut executable, graph, 0);
        cuUserObjectCreate(&mut object, null_mut(), Some(nothing), 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
        cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link);
    );

    // SAFETY: numbers, for which zero is a value.
    let mut props: CUmemPoolProps = unsafe { std::mem::zeroed() };
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = CUmemLocation { r#type: CU_MEM_LOCATION_TYPE_DEVICE, id: 0 };
    let (mut pool, mut physical, mut granule) = (CUmemoryPool::NULL, 0, 0);
    cu!(
        cuMemPoolCreate(&mut pool, &props);
        cuMemGetAllocationGranularity(&mut granule, &allocation_prop(), CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        cuMemCreate(&mut physical, granule, &allocation_prop(), 0);
    );

    let layout = array_descriptor([8, 4, 0], CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
    let (mut array, mut levels) = (CUarray::NULL, CUmipmappedArray::NULL);
    cu!(cuArray3DCreate_v2(&mut array, &layout); cuMipmappedArrayCreate(&mut levels, &layout, 2));
    // SAFETY: numbers and null, for which zero is a value.
    let mut resource: CUDA_RESOURCE_DESC = unsafe { std::mem::zeroed() };
    resource.resType = CU_RESOURCE_TYPE_ARRAY;
    resource.res.hArray = array;
    let (mut texture_object, mut surface_object) = (0, 0);
    cu!(
        cuTexObjectCreate(&mut texture_object, &resource, &plain_texture(), null());
        cuSurfObjectCreate(&mut surface_object, &resource);
    );

    let (mut memory, mut semaphore) = (CUexternalMemory::NULL, CUexternalSemaphore::NULL);
    let memory_desc = CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
        r#type: CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD,
        handle: CUexternalHandle { fd: file() },
        size: 1 << 16,
        flags: 0,
        reserved: [0; 16],
    };
    // SAFETY: the descriptor is new.
    let counter = unsafe { libc::eventfd(0, 0) };
    let semaphore_desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC {
        r#type: CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD,
        handle: CUexternalHandle { fd: counter },
        flags: 0,
        reserved: [0; 16],
    };
    cu!(
        cuImportExternalMemory(&mut memory, &memory_desc);
        cuImportExternalSemaphore(&mut semaphore, &semaphore_desc);
    );

    // SAFETY: zeros are a resource of no type.
    let mut processors: CUdevResource = unsafe { std::mem::zeroed() };
    let (mut description, mut green) = (CUdevResourceDesc::NULL, CUgreenCtx::NULL);
    let (mut notified, mut told) = (CUasyncCallbackHandle::NULL, CUlogsCallbackHandle::NULL);
    cu!(
        cuDeviceGetDevResource(0, &mut processors, CU_DEV_RESOURCE_TYPE_SM);
        cuDevResourceGenerateDesc(&mut description, &mut processors, 1);
        cuGreenCtxCreate(&mut green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
        cuDeviceRegisterAsyncNotification(0, Some(not_told), null_mut(), &mut notified);
        cuLogsRegisterCallback(Some(no_listener), null_mut(), &mut told);
    );

    vec![
        ("CUcontext", current().0 as u64),
        ("CUmodule", module.0 as u64),
        ("CUfunction", function.0 as u64),
        ("CUlibrary", library.0 as u64),
        ("CUkernel", kernel.0 as u64),
        ("CUtexref", texture.0 as u64),
        ("CUsurfref", surface.0 as u64),
        ("CUstream", stream(CU_STREAM_NON_BLOCKING).0 as u64),
        ("CUevent", event(CU_EVENT_DISABLE_TIMING).0 as u64),
        ("CUgraph", graph.0 as u64),
        ("CUgraphNode", node.0 as u64),
        ("CUgraphExec", executable.0 as u64),
        ("CUuserObject", object.0 as u64),
        ("CUlinkState", link.0 as u64),
        ("CUmemoryPool", pool.0 as u64),
        ("CUmemGenericAllocationHandle", physical),
        ("CUarray", array.0 as u64),
        ("CUmipmappedArray", levels.0 as u64),
        ("CUtexObject", texture_object),
        ("CUsurfObject", surface_object),
        ("CUexternalMemory", memory.0 as u64),
        ("CUexternalSemaphore", semaphore.0 as u64),
        ("CUdevResourceDesc", description.0 as u64),
        ("CUgreenCtx", green.0 as u64),
        ("CUasyncCallbackHandle", notified.0 as u64),
        ("CUlogsCallbackHandle", told.0 as u64),
    ]
}

/// Two of each kind, of which one is gone: some by themselves, some with what they belong to.
pub fn objects() -> Objects {
    create_context();
    let gone = one_of_each();
    let of = |kind: &str| gone.iter().find(|(of, _)| *of == kind).expect("one of each").1 as usize;
    cu!(
        cuTexObjectDestroy(of("CUtexObject") as u64);
        cuSurfObjectDestroy(of("CUsurfObject") as u64);
        cuArrayDestroy(CUarray(of("CUarray")));
        cuMipmappedArrayDestroy(CUmipmappedArray(of("CUmipmappedArray")));
        cuGraphExecDestroy(CUgraphExec(of("CUgraphExec")));
        cuGraphDestroy(CUgraph(of("CUgraph")));
        cuUserObjectRelease(CUuserObject(of("CUuserObject")), 1);
        cuLinkDestroy(CUlinkState(of("CUlinkState")));
        cuMemPoolDestroy(CUmemoryPool(of("CUmemoryPool")));
        cuMemRelease(of("CUmemGenericAllocationHandle") as u64);
        cuDestroyExternalMemory(CUexternalMemory(of("CUexternalMemory")));
        cuDestroyExternalSemaphore(CUexternalSemaphore(of("CUexternalSemaphore")));
        cuGreenCtxDestroy(CUgreenCtx(of("CUgreenCtx")));
        cuDeviceUnregisterAsyncNotification(0, CUasyncCallbackHandle(of("CUasyncCallbackHandle")));
        cuLogsUnregisterCallback(CUlogsCallbackHandle(of("CUlogsCallbackHandle")));
        cuLibraryUnload(CUlibrary(of("CUlibrary")));
        cuModuleUnload(CUmodule(of("CUmodule")));
        cuStreamDestroy_v2(CUstream(of("CUstream")));
        cuEventDestroy_v2(CUevent(of("CUevent")));
        cuCtxDestroy_v2(CUcontext(of("CUcontext")));
    );
    // A description of multiprocessors is never destroyed.
    let gone = gone.into_iter().filter(|(kind, _)| *kind != "CUdevResourceDesc").collect();
    create_context();
    Objects { live: one_of_each(), gone, memory: alloc(1 << 16).0 }
}

/// Ends what [`objects`] has made, as far as it is still there.
pub fn end(objects: &Objects) {
    let of = |kind: &str| objects.live.iter().find(|(of, _)| *of == kind).expect("one of each").1 as usize;
    // SAFETY: no pointers.
    unsafe {
        cuLogsUnregisterCallback(CUlogsCallbackHandle(of("CUlogsCallbackHandle")));
        cuDeviceUnregisterAsyncNotification(0, CUasyncCallbackHandle(of("CUasyncCallbackHandle")));
        cuCtxDestroy_v2(CUcontext(of("CUcontext")));
        cuCtxSetCurrent(CUcontext::NULL);
    }
}

pub fn what_is_no_handle_is_refused_by_every_function() {
    if !ours_only("NVIDIA's driver follows the handle") {
        return;
    }
    set_env("ANYWARP_THREADS", "2");
    init();
    let found = findings(super::functions::TAKING_HANDLES, objects, end, expected);
    assert!(found.is_empty(), "{} answers:\n{}", found.len(), found.join("\n"));
}

fn expected(Case { function, kind, bad, .. }: Case) -> u32 {
    let code = match (kind, bad) {
        // A context that is gone may be made current, and has a device; to be destroyed it would have to be one.
        ("CUcontext", Bad::Gone) => match function {
            "cuCtxPushCurrent" | "cuCtxPushCurrent_v2" | "cuCtxSetCurrent" | "cuCtxGetDevice_v2" => {
                CUDA_SUCCESS
            }
            "cuCtxDestroy" | "cuCtxDestroy_v2" | "cuCtxDetach" | "cuCtxGetApiVersion" => {
                CUDA_ERROR_INVALID_CONTEXT
            }
            _ => CUDA_ERROR_CONTEXT_IS_DESTROYED,
        },
        ("CUgreenCtx", Bad::Gone) => CUDA_ERROR_CONTEXT_IS_DESTROYED,
        ("CUcontext" | "CUgreenCtx", _) => CUDA_ERROR_INVALID_CONTEXT,
        // What is not there need not be destroyed.
        ("CUtexObject" | "CUsurfObject", _) if function.ends_with("Destroy") => CUDA_SUCCESS,
        // Copies answer for arrays as they do for addresses.
        ("CUarray", _) if function.starts_with("cuMemcpy") => CUDA_ERROR_INVALID_VALUE,
        ("CUgraph" | "CUgraphNode" | "CUgraphExec" | "CUuserObject", _)
        | ("CUmemoryPool" | "CUmemGenericAllocationHandle", _)
        | ("CUtexObject" | "CUsurfObject" | "CUasyncCallbackHandle" | "CUlogsCallbackHandle", _) => {
            CUDA_ERROR_INVALID_VALUE
        }
        _ => CUDA_ERROR_INVALID_HANDLE,
    };
    code.0
}
