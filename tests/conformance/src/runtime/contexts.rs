//! Initialisation, and the contexts that the runtime makes and uses.

use super::common::driver::*;
use super::common::*;

pub fn the_first_call_that_needs_a_context_makes_one() {
    let mut context = CUcontext::NULL;
    fails!(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent(&mut context));
    let (mut count, mut device) = (0, -1);
    cuda!(cudaGetDeviceCount(&mut count));
    assert!(count > 0);
    assert!(current().is_null(), "after cudaGetDeviceCount");
    cuda!(cudaGetDevice(&mut device));
    assert_eq!(device, 0);
    assert!(current().is_null(), "after cudaGetDevice");
    let mut properties = std::mem::MaybeUninit::uninit();
    cuda!(cudaGetDeviceProperties(properties.as_mut_ptr(), 0));
    assert!(current().is_null(), "after cudaGetDeviceProperties");
    assert_eq!(last_error(), cudaSuccess);
    assert!(current().is_null(), "after cudaGetLastError");
    cuda!(cudaSetDevice(0));
    assert!(!current().is_null(), "after cudaSetDevice");
    cuda!(cudaFree(null_mut()));

    let mut primary = CUcontext::NULL;
    cu!(cuDevicePrimaryCtxRetain(&mut primary, 0));
    assert_eq!(current(), primary);
    let mut version = 0;
    cu!(cuCtxGetApiVersion(primary, &mut version));
    assert_eq!(version, 3020);
    let primary = primary.0;
    let other = std::thread::spawn(move || {
        assert!(current().is_null(), "in a new thread");
        let pointer = malloc(64);
        assert_eq!(current().0, primary);
        cuda!(cudaFree(pointer));
    });
    other.join().expect("the other thread agrees");
}

pub fn freeing_nothing_makes_the_context() {
    cuda!(cudaFree(null_mut()));
    assert!(!current().is_null());
    assert!(primary_is_active());
}

pub fn a_reset_ends_the_primary_context_and_the_next_call_begins_another() {
    cuda!(cudaFree(null_mut()));
    let pointer = malloc(64);
    cuda!(cudaDeviceReset());
    assert!(!primary_is_active());
    assert!(!current().is_null(), "the thread still has the old context");
    cuda!(cudaFree(malloc(64)));
    assert!(primary_is_active());
    // The driver that gave this answer no longer knows the pointer, and may have given the address out again.
    let _ = pointer;
    let vecadd = kernel(c"nothing");
    assert_eq!(launch(vecadd, 1, 32, DEFAULT, &mut []), cudaSuccess);
    cuda!(cudaDeviceSynchronize());
    for _ in 0..3 {
        cuda!(cudaDeviceReset());
    }
    assert!(!primary_is_active());
}

/// What was made before a reset is no more, and using it does no harm to what was made after it.
pub fn what_was_made_before_a_reset_is_refused() {
    if !our_runtime_only("handles of before a reset are followed") || !ours_only("as above") {
        return;
    }
    let (pointer, stream, event) = (malloc(1 << 20), stream(), event());
    let (mut graph, mut executable) = (cudaGraph_t::NULL, cudaGraphExec_t::NULL);
    cuda!(cudaGraphCreate(&mut graph, 0); cudaGraphInstantiate(&mut executable, graph, 0));
    let mut pinned = null_mut();
    cuda!(cudaMallocHost(&mut pinned, 4096));
    cuda!(cudaDeviceReset());
    let after = malloc_with(&[1_u32, 2]);
    let refused = |what: &str, code: cudaError_t| {
        let gone = [cudaErrorInvalidResourceHandle, cudaErrorInvalidValue, cudaErrorContextIsDestroyed];
        assert!(gone.contains(&code), "{what}: {code:?}");
    };
    // SAFETY: handles and addresses that are looked up before anything is done with them.
    unsafe {
        if after != pointer {
            refused("memory", cudaFree(pointer));
            refused("fill", cudaMemset(pointer, 0, 1 << 20));
        }
        refused("host memory", cudaFreeHost(pinned));
        refused("stream", cudaStreamSynchronize(stream));
        refused("work in it", cudaMemsetAsync(after, 0, 8, stream));
        refused("its end", cudaStreamDestroy(stream));
        refused("event", cudaEventRecord(event, DEFAULT));
        refused("its end", cudaEventDestroy(event));
        refused("a graph's launch", cudaGraphLaunch(executable, stream));
    }
    assert_eq!(read::<u32>(after, 2), [1, 2]);
    cuda!(cudaFree(after); cudaDeviceSynchronize());
}

pub fn a_reset_leaves_other_contexts_alone() {
    cu!(cuInit(0));
    let mut own = CUcontext::NULL;
    cu!(cuCtxCreate_v4(&mut own, null_mut(), 0, 0));
    let mut of_driver = CUdeviceptr(0);
    cu!(cuMemAlloc_v2(&mut of_driver, 64));
    let of_runtime = malloc(64);
    cuda!(cudaDeviceReset());
    assert_eq!(current(), own);
    cu!(cuMemsetD8_v2(of_driver, 1, 64));
    cu!(cuMemsetD8_v2(CUdeviceptr(of_runtime.addr() as u64), 1, 64));
    assert!(!primary_is_active(), "nothing was in the primary context");
    cuda!(cudaFree(malloc(64)));
    assert_eq!(current(), own);
}

pub fn a_context_of_the_program_is_used() {
    cu!(cuInit(0));
    let (mut first, mut second) = (CUcontext::NULL, CUcontext::NULL);
    cu!(cuCtxCreate_v4(&mut first, null_mut(), 0, 0));
    cu!(cuCtxCreate_v4(&mut second, null_mut(), 0, 0));
    let pointer = malloc(64);
    let mut owner = CUcontext::NULL;
    let at = CUdeviceptr(pointer.addr() as u64);
    cu!(cuPointerGetAttribute((&raw mut owner).cast(), CU_POINTER_ATTRIBUTE_CONTEXT, at));
    assert_eq!(owner, second);
    assert!(!primary_is_active());
    cuda!(cudaSetDevice(0));
    assert!(primary_is_active());
    assert!(current() != first && current() != second);
    // The top of the stack was replaced, not what is below.
    let mut popped = CUcontext::NULL;
    cu!(cuCtxPopCurrent_v2(&mut popped));
    assert_eq!(current(), first);
    cu!(cuCtxPopCurrent_v2(&mut popped));
    assert!(current().is_null());
    cuda!(cudaFree(null_mut()));
    assert!(!current().is_null());
}

pub fn a_destroyed_context_makes_the_device_uninitialised() {
    cu!(cuInit(0));
    let mut own = CUcontext::NULL;
    cu!(cuCtxCreate_v4(&mut own, null_mut(), 0, 0));
    let below = own;
    let mut top = CUcontext::NULL;
    cu!(cuCtxCreate_v4(&mut top, null_mut(), 0, 0));
    cu!(cuCtxDestroy_v2(below));
    cu!(cuCtxDestroy_v2(top));
    let mut pointer = null_mut();
    fails!(cudaErrorDeviceUninitialized, cudaMalloc(&mut pointer, 64));
    assert_eq!(last_error(), cudaErrorDeviceUninitialized);
    let mut popped = CUcontext::NULL;
    cu!(cuCtxPopCurrent_v2(&mut popped));
    cuda!(cudaMalloc(&mut pointer, 64));
    assert!(primary_is_active());
}

pub fn threads_that_begin_at_once_share_the_context() {
    let start = std::sync::Barrier::new(16);
    let contexts: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let pointer = malloc_with(&[1u32, 2, 3]);
                    assert_eq!(read::<u32>(pointer, 3), [1, 2, 3]);
                    cuda!(cudaFree(pointer));
                    current().0
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    });
    assert!(contexts.iter().all(|&context| context == contexts[0]), "{contexts:x?}");
    // One retention for all.
    cuda!(cudaDeviceReset());
    let retained_anew = runtime_differs("NVIDIA's runtime retains what it has reset at once", false, true);
    assert_eq!(primary_is_active(), retained_anew);
}

pub fn a_forked_process_gets_an_error_from_every_call_but_how_many_devices_there_are() {
    let pointer = malloc(64);
    // SAFETY: the child calls the library under test, and leaves without running the parent's handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: results have their places, and the pointer is the parent's allocation.
        let codes = unsafe {
            [
                cudaMalloc(&mut null_mut(), 64),
                cudaMemset(pointer, 0, 64),
                cudaFree(pointer),
                cudaDeviceSynchronize(),
                cudaSetDevice(0),
            ]
        };
        let mut count = 0;
        // SAFETY: the result has its place.
        let counted = unsafe { cudaGetDeviceCount(&mut count) };
        let wrong = codes.iter().any(|&code| code != cudaErrorInitializationError)
            || counted != cudaSuccess
            || count == 0;
        if wrong {
            eprintln!("{codes:?}, {counted:?}: {count}");
        }
        // SAFETY: ends the child.
        unsafe { libc::_exit(wrong.into()) };
    }
    let mut status = 0;
    // SAFETY: the child is this test's.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child got other answers");
    cuda!(cudaFree(pointer));
}

pub fn calls_at_exit_do_no_harm() {
    extern "C" fn at_exit() {
        let mut pointer = null_mut();
        // SAFETY: the result has its place, and null and unknown pointers are noticed.
        unsafe {
            cudaMalloc(&mut pointer, 64);
            cudaFree(pointer);
            cudaDeviceSynchronize();
            cudaStreamSynchronize(DEFAULT);
            cudaDeviceReset();
            cudaFree(pointer);
            cudaGetLastError();
        }
    }
    // Before the libraries' own handlers, and so run after them.
    // SAFETY: the handler unwinds nowhere.
    unsafe { libc::atexit(at_exit) };
    assert_eq!(launch(kernel(c"nothing"), 1, 32, DEFAULT, &mut []), cudaSuccess);
    // And after them: run before.
    // SAFETY: as above.
    unsafe { libc::atexit(at_exit) };
}

pub fn no_device_is_visible() {
    set_env("CUDA_VISIBLE_DEVICES", "");
    let mut count = -1;
    fails!(cudaErrorNoDevice, cudaGetDeviceCount(&mut count));
    assert_eq!(count, -1);
    fails!(CUDA_ERROR_NO_DEVICE, cuInit(0));
    fails!(cudaErrorNoDevice, cudaMalloc(&mut null_mut(), 64));
    fails!(cudaErrorNoDevice, cudaSetDevice(0));
    fails!(cudaErrorNoDevice, cudaDeviceReset());
}
