//! Contexts: the stack of each thread, life and death, and what is set for one.

use super::common::*;

fn pop() -> CUcontext {
    let mut context = CUcontext::NULL;
    cu!(cuCtxPopCurrent_v2(&mut context));
    context
}

fn version_of(context: CUcontext) -> CUresult {
    let mut version = 0;
    // SAFETY: a place for the answer.
    unsafe { cuCtxGetApiVersion(context, &mut version) }
}

pub fn every_version_of_create_makes_one_and_pushes_it() {
    init();
    let mut made = [CUcontext::NULL; 3];
    cu!(cuCtxCreate_v2(&mut made[0], 0, 0));
    assert_eq!(current(), made[0]);
    cu!(cuCtxCreate_v3(&mut made[1], null_mut(), 0, 0, 0));
    assert_eq!(current(), made[1]);
    cu!(cuCtxCreate_v4(&mut made[2], null_mut(), 0, 0));
    for context in made.into_iter().rev() {
        alloc(16);
        assert_eq!(current(), context);
        assert_eq!(pop(), context);
    }
    assert_eq!(current(), CUcontext::NULL);
    cu!(cuCtxDestroy(made[0]); cuCtxDestroy_v2(made[1]); cuCtxDestroy_v2(made[2]));
}

pub fn the_first_version_of_create_makes_one_too() {
    init();
    let mut context = CUcontext::NULL;
    cu!(cuCtxCreate(&mut context, 0, 0));
    assert_eq!(current(), context);
    cu!(cuCtxSynchronize(); cuCtxDestroy(context));
}

pub fn create_refuses_bad_arguments() {
    init();
    let mut context = CUcontext::NULL;
    fails!(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v4(&mut context, null_mut(), 0, 99));
    fails!(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate_v2(&mut context, 0, -1));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v4(&mut context, null_mut(), 0xffff_0000, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(&mut context, 3, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v4(null_mut(), null_mut(), 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v3(null_mut(), null_mut(), 0, 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate_v2(null_mut(), 0, 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxCreate(null_mut(), 0, 0));
    assert_eq!(current(), CUcontext::NULL);
}

pub fn affinity_to_multiprocessors_is_refused_without_mps() {
    init();
    let (mut context, mut supported) = (CUcontext::NULL, 0);
    cu!(cuDeviceGetExecAffinitySupport(&mut supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    // SAFETY: a structure of numbers.
    let mut affinity: CUexecAffinityParam = unsafe { std::mem::zeroed() };
    affinity.smCount = 1;
    if supported == 0 {
        fails!(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxCreate_v3(&mut context, &mut affinity, 1, 0, 0));
    }
    create_context();
    affinity.smCount = 0;
    cu!(cuCtxGetExecAffinity(&mut affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    assert_eq!(affinity.smCount as i32, attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetExecAffinity(null_mut(), CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    fails!(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, cuCtxGetExecAffinity(&mut affinity, CUexecAffinityType(99)));
}

pub fn contexts_stack_up_on_each_thread() {
    let a = new_context();
    let b = create_context();
    assert_ne!(a, b);
    assert_eq!(current(), b);
    let mut popped = CUcontext::NULL;
    cu!(cuCtxPopCurrent(&mut popped));
    assert_eq!(popped, b);
    assert_eq!(current(), a);
    cu!(cuCtxPushCurrent(b));
    assert_eq!(current(), b);
    cu!(cuCtxPushCurrent_v2(a));
    assert_eq!((pop(), pop(), pop()), (a, b, a));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent_v2(&mut popped));
    cu!(cuCtxPushCurrent_v2(a); cuCtxPopCurrent_v2(null_mut()));
    assert_eq!(current(), CUcontext::NULL);
}

pub fn set_current_replaces_the_top() {
    let a = new_context();
    let b = create_context();
    cu!(cuCtxSetCurrent(a));
    assert_eq!((pop(), pop()), (a, a));
    cu!(cuCtxSetCurrent(b));
    assert_eq!(current(), b);
    cu!(cuCtxSetCurrent(CUcontext::NULL));
    assert_eq!(current(), CUcontext::NULL);
    cu!(cuCtxSetCurrent(CUcontext::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetCurrent(null_mut()));
}

pub fn a_context_floats_between_threads() {
    let context = new_context();
    let pointer = alloc(16);
    assert_eq!(pop(), context);
    std::thread::spawn(move || {
        assert_eq!(current(), CUcontext::NULL);
        cu!(cuCtxPushCurrent_v2(context); cuMemsetD8_v2(pointer, 1, 16));
        assert_eq!(read::<u8>(pointer, 16), [1; 16]);
    })
    .join()
    .expect("the thread's answers");
    assert_eq!(current(), CUcontext::NULL);
}

pub fn several_threads_may_share_one() {
    let context = new_context();
    let threads: Vec<_> = (0..4_u8)
        .map(|number| {
            std::thread::spawn(move || {
                cu!(cuCtxSetCurrent(context));
                let pointer = alloc(64);
                cu!(cuMemsetD8_v2(pointer, number, 64); cuCtxSynchronize());
                assert_eq!(read::<u8>(pointer, 64), [number; 64]);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("the thread's answers"));
}

pub fn without_a_context_little_works() {
    const NONE: CUresult = CUDA_ERROR_INVALID_CONTEXT;
    init();
    assert_eq!(current(), CUcontext::NULL);
    let (mut number, mut size, mut other) = (0_u32, 0, 0);
    let (mut pointer, mut host, mut device) = (CUdeviceptr(0), null_mut(), 0);
    let (mut context, mut module) = (CUcontext::NULL, CUmodule::NULL);
    let (mut stream, mut event) = (CUstream::NULL, CUevent::NULL);
    fails!(NONE, cuMemAlloc_v2(&mut pointer, 4));
    cu!(cuMemFree_v2(CUdeviceptr(0)));
    fails!(NONE, cuMemGetInfo_v2(&mut size, &mut other));
    fails!(NONE, cuMemHostAlloc(&mut host, 4, 0));
    fails!(NONE, cuModuleLoadData(&mut module, c".version 8.0".as_ptr().cast()));
    fails!(NONE, cuStreamCreate(&mut stream, 0));
    fails!(NONE, cuStreamSynchronize(CUstream::NULL));
    fails!(NONE, cuEventCreate(&mut event, 0));
    fails!(NONE, cuCtxSynchronize());
    fails!(NONE, cuCtxGetDevice(&mut device));
    fails!(NONE, cuCtxPopCurrent_v2(&mut context));
    fails!(NONE, cuCtxGetFlags(&mut number));
    fails!(NONE, cuCtxGetLimit(&mut size, CU_LIMIT_STACK_SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxPushCurrent_v2(CUcontext::NULL));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxDestroy_v2(CUcontext::NULL));
    let mut kind = CUmemorytype(0);
    let on_host = 0_u32;
    fails!(
        CUDA_ERROR_INVALID_VALUE,
        cuPointerGetAttribute(
            (&raw mut kind).cast(),
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            CUdeviceptr(&raw const on_host as u64)
        )
    );
}

pub fn memory_of_one_is_reached_from_another() {
    let a = new_context();
    create_context();
    let pointer = alloc(16);
    pop();
    assert_eq!(current(), a);
    cu!(cuMemsetD8_v2(pointer, 7, 16));
    assert_eq!(read::<u8>(pointer, 16), [7; 16]);
    cu!(cuMemFree_v2(pointer));
}

pub fn a_destroyed_context_stays_where_it_is_not_on_top() {
    let a = new_context();
    let b = create_context();
    assert_eq!(pop(), b);
    cu!(cuCtxDestroy_v2(b));
    assert_eq!(current(), a);
    if ours_only("NVIDIA's driver reads what it has freed: it answers by chance, or crashes") {
        fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(b));
        cu!(cuCtxPushCurrent_v2(b); cuCtxSetCurrent(b));
        assert_eq!(current(), b);
        cu!(cuCtxDestroy_v2(a));
        assert_eq!(current(), b);
        let (mut pointer, mut device) = (CUdeviceptr(0), -1);
        fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut pointer, 16));
        fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize());
        cu!(cuCtxGetDevice(&mut device));
        assert_eq!(device, 0);
        assert_eq!(version_of(b), CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(pop(), b);
        assert_eq!(current(), a);
    }
}

pub fn destroying_the_top_takes_it_off() {
    let a = new_context();
    let b = create_context();
    cu!(cuCtxDestroy_v2(b));
    assert_eq!(current(), a);
    alloc(16);
    cu!(cuCtxDestroy_v2(a));
    assert_eq!(current(), CUcontext::NULL);
}

pub fn a_context_takes_its_objects_along() {
    let keeper = new_context();
    let (mut before, mut after, mut total) = (0, 0, 0);
    let context = create_context();
    cu!(cuCtxSetCurrent(keeper); cuMemGetInfo_v2(&mut before, &mut total); cuCtxSetCurrent(context));
    let pointer = alloc(256 << 20);
    let module = load(KERNELS);
    function(module, c"nothing");
    let mut event = CUevent::NULL;
    cu!(cuEventCreate(&mut event, 0));
    let stream = stream(0);
    cu!(cuCtxDestroy_v2(context); cuCtxSetCurrent(keeper); cuMemGetInfo_v2(&mut after, &mut total));
    // Other processes use memory too.
    assert!(after + (128 << 20) >= before, "{before} bytes were free, and now {after}");
    fails!(CUDA_ERROR_INVALID_VALUE, cuMemFree_v2(pointer));
    if ours_only("NVIDIA's driver crashes at objects of a destroyed context") {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
        fails!(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload(module));
    }
}

pub fn destroying_waits_for_work() {
    let keeper = new_context();
    let mut host = null_mut();
    cu!(cuMemHostAlloc(&mut host, 4, CU_MEMHOSTALLOC_PORTABLE));
    let context = create_context();
    let source = alloc_with(&[5_u32; 1 << 20]);
    cu!(cuMemcpyDtoHAsync_v2(host, source, 4, CUstream::NULL); cuCtxDestroy_v2(context));
    // SAFETY: four bytes of memory that is still there.
    assert_eq!(unsafe { host.cast::<u32>().read() }, 5);
    assert_eq!(current(), keeper);
}

pub fn attach_and_detach_count_uses() {
    let context = new_context();
    let mut attached = CUcontext::NULL;
    cu!(cuCtxAttach(&mut attached, 0));
    assert_eq!(attached, context);
    cu!(cuCtxDetach(context));
    alloc(16);
    cu!(cuCtxDetach(context));
    assert_eq!(current(), CUcontext::NULL);
    assert_eq!(version_of(context), CUDA_ERROR_INVALID_CONTEXT);
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxAttach(&mut attached, 0));
    new_context();
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(null_mut(), 0));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxAttach(&mut attached, 1));
}

pub fn flags_are_told_and_changed() {
    init();
    let flags_of_current = || {
        let mut flags = 0;
        cu!(cuCtxGetFlags(&mut flags));
        flags
    };
    for flags in [
        CU_CTX_SCHED_AUTO,
        CU_CTX_SCHED_SPIN,
        CU_CTX_SCHED_YIELD,
        CU_CTX_SCHED_BLOCKING_SYNC,
        CU_CTX_SCHED_SPIN | CU_CTX_MAP_HOST,
        CU_CTX_SCHED_SPIN | CU_CTX_LMEM_RESIZE_TO_MAX,
        CU_CTX_SCHED_YIELD | CU_CTX_SYNC_MEMOPS,
    ] {
        let mut context = CUcontext::NULL;
        cu!(cuCtxCreate_v4(&mut context, null_mut(), flags, 0));
        assert_eq!(flags_of_current(), flags);
        cu!(cuCtxDestroy_v2(context));
    }
    new_context();
    cu!(cuCtxSetFlags(CU_CTX_SCHED_BLOCKING_SYNC));
    assert_eq!(flags_of_current() & CU_CTX_SCHED_MASK, CU_CTX_SCHED_BLOCKING_SYNC);
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(3));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetFlags(3 | CU_CTX_COREDUMP_ENABLE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetFlags(null_mut()));
}

pub fn identities_are_different() {
    let a = new_context();
    let b = create_context();
    let (mut ids, mut of_current) = ([0, 0], 0);
    cu!(cuCtxGetId(a, &mut ids[0]); cuCtxGetId(b, &mut ids[1]); cuCtxGetId(CUcontext::NULL, &mut of_current));
    assert_ne!(ids[0], ids[1]);
    assert_eq!(of_current, ids[1]);
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetId(a, null_mut()));
    cu!(cuCtxDestroy_v2(a));
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetId(a, &mut ids[0]));
}

pub fn the_version_of_a_context_is_the_second_interface() {
    let context = new_context();
    let mut version = 0;
    cu!(cuCtxGetApiVersion(context, &mut version));
    assert_eq!(version, 3020);
    version = 0;
    cu!(cuCtxGetApiVersion(CUcontext::NULL, &mut version));
    assert_eq!(version, 3020);
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetApiVersion(context, null_mut()));
}

pub fn devices_of_contexts() {
    let context = new_context();
    let mut device = -1;
    cu!(cuCtxGetDevice(&mut device));
    assert_eq!(device, 0);
    pop();
    device = -1;
    cu!(cuCtxGetDevice_v2(&mut device, context));
    assert_eq!(device, 0);
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice_v2(&mut device, CUcontext::NULL));
    cu!(cuCtxPushCurrent_v2(context));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetDevice(null_mut()));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetDevice_v2(null_mut(), context));
    device = -1;
    cu!(cuCtxGetDevice_v2(&mut device, CUcontext::NULL));
    assert_eq!(device, 0);
}

/// Adds one to the module's counter so often that the work takes a while.
fn count_up(function: CUfunction) {
    let one = 1_u32;
    for _ in 0..8 {
        assert_eq!(launch(function, 64, 128, CUstream::NULL, &mut [arg(&one)]), CUDA_SUCCESS);
    }
}

pub fn synchronizing_waits_for_the_named_context() {
    let a = new_context();
    let module = load(KERNELS);
    let mut counter = CUdeviceptr(0);
    cu!(cuModuleGetGlobal_v2(&mut counter, null_mut(), module, c"counter".as_ptr()));
    count_up(function(module, c"bump"));
    cu!(cuCtxSynchronize());
    assert_eq!(read::<u32>(counter, 1), [7 + 8 * 64 * 128]);
    count_up(function(module, c"bump"));
    create_context();
    cu!(cuCtxSynchronize_v2(a));
    cu!(cuCtxSynchronize_v2(CUcontext::NULL));
    assert_eq!(read::<u32>(counter, 1), [7 + 16 * 64 * 128]);
    pop();
    cu!(cuCtxDestroy_v2(a));
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize_v2(a));
}

fn limit(limit: CUlimit) -> usize {
    let mut value = usize::MAX;
    cu!(cuCtxGetLimit(&mut value, limit));
    value
}

pub fn limits_begin_as_documented() {
    new_context();
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 1024);
    assert_eq!(limit(CU_LIMIT_PRINTF_FIFO_SIZE), 8650752);
    assert_eq!(limit(CU_LIMIT_MALLOC_HEAP_SIZE), 8 << 20);
    assert_eq!(limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT), 2048);
    assert_eq!(limit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY), 64);
    assert_eq!(limit(CU_LIMIT_SHMEM_SIZE), 227 << 10);
    assert_eq!(limit(CU_LIMIT_CIG_ENABLED), 0);
    let mut value = 0;
    fails!(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&mut value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
    fails!(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxGetLimit(&mut value, CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(&mut value, CUlimit(99)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetLimit(null_mut(), CU_LIMIT_STACK_SIZE));
}

pub fn limits_are_set_for_one_context() {
    let a = new_context();
    fails!(CUDA_ERROR_NOT_PERMITTED, cuCtxSetLimit(CU_LIMIT_SHMEM_SIZE, 1000));
    fails!(CUDA_ERROR_NOT_PERMITTED, cuCtxSetLimit(CU_LIMIT_CIG_ENABLED, 1));
    cu!(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1000));
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 1008);
    cu!(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 4096);
    for (wanted, printf, heap) in [
        (0, 512 << 10, 4 << 20),
        (600_000, 600_064, 4 << 20),
        (5_000_000, 5_000_192, 5_046_272),
        (32 << 20, 32 << 20, 32 << 20),
    ] {
        cu!(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, wanted); cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, wanted));
        assert_eq!(
            (limit(CU_LIMIT_PRINTF_FIFO_SIZE), limit(CU_LIMIT_MALLOC_HEAP_SIZE)),
            (printf, heap),
            "{wanted}"
        );
    }
    create_context();
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 1024);
    cu!(cuCtxSetCurrent(a));
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 4096);
}

pub fn limits_have_limits() {
    new_context();
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 30));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1 << 40));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CUlimit(99), 1));
    fails!(CUDA_ERROR_UNSUPPORTED_LIMIT, cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 4));
    assert_eq!(limit(CU_LIMIT_STACK_SIZE), 1024);
    // What is too much here becomes the most that there is.
    cu!(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 40));
    assert_eq!(limit(CU_LIMIT_PRINTF_FIFO_SIZE), 2 << 30);
    cu!(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1 << 40));
    assert!((1 << 16..1 << 24).contains(&limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT)));
}

pub fn cache_preferences_are_kept() {
    new_context();
    let config = || {
        let mut config = CUfunc_cache(99);
        cu!(cuCtxGetCacheConfig(&mut config));
        config
    };
    assert_eq!(config(), CU_FUNC_CACHE_PREFER_NONE);
    for wanted in [CU_FUNC_CACHE_PREFER_SHARED, CU_FUNC_CACHE_PREFER_L1, CU_FUNC_CACHE_PREFER_EQUAL] {
        cu!(cuCtxSetCacheConfig(wanted));
        assert_eq!(config(), wanted);
    }
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetCacheConfig(CUfunc_cache(99)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetCacheConfig(null_mut()));
}

pub fn bank_sizes_are_accepted() {
    new_context();
    let mut config = CUsharedconfig(99);
    cu!(cuCtxGetSharedMemConfig(&mut config));
    assert_eq!(config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
    cu!(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE));
    cu!(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxSetSharedMemConfig(CUsharedconfig(99)));
    fails!(CUDA_ERROR_INVALID_VALUE, cuCtxGetSharedMemConfig(null_mut()));
}

pub fn priorities_of_streams_reach_from_0_to_minus_5() {
    new_context();
    let (mut least, mut greatest) = (9, 9);
    cu!(cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
    assert_eq!((least, greatest), (0, -5));
    cu!(cuCtxGetStreamPriorityRange(null_mut(), null_mut()));
}

pub fn cache_lines_can_be_reset() {
    new_context();
    cu!(cuCtxResetPersistingL2Cache());
    pop();
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxResetPersistingL2Cache());
}

pub fn an_event_marks_all_work_of_a_context() {
    let context = new_context();
    let module = load(KERNELS);
    let mut counter = CUdeviceptr(0);
    cu!(cuModuleGetGlobal_v2(&mut counter, null_mut(), module, c"counter".as_ptr()));
    let bump = function(module, c"bump");
    let (one, mut event) = (1_u32, CUevent::NULL);
    cu!(cuEventCreate(&mut event, CU_EVENT_DISABLE_TIMING));
    for stream in [stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_DEFAULT)] {
        assert_eq!(launch(bump, 64, 128, stream, &mut [arg(&one)]), CUDA_SUCCESS);
    }
    cu!(cuCtxRecordEvent(context, event); cuEventSynchronize(event));
    assert_eq!(read::<u32>(counter, 1), [7 + 2 * 64 * 128]);
    fails!(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(context, CUevent::NULL));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxRecordEvent(CUcontext::NULL, event));
}

pub fn all_work_of_a_context_waits_for_an_event() {
    let context = new_context();
    let module = load(KERNELS);
    let (before, after) = (stream(CU_STREAM_NON_BLOCKING), stream(CU_STREAM_NON_BLOCKING));
    let mut counter = CUdeviceptr(0);
    cu!(cuModuleGetGlobal_v2(&mut counter, null_mut(), module, c"counter".as_ptr()));
    let bump = function(module, c"bump");
    let (one, mut event, mut host) = (1_u32, CUevent::NULL, null_mut());
    cu!(cuEventCreate(&mut event, CU_EVENT_DISABLE_TIMING); cuMemHostAlloc(&mut host, 4, 0));
    for _ in 0..8 {
        assert_eq!(launch(bump, 64, 128, before, &mut [arg(&one)]), CUDA_SUCCESS);
    }
    cu!(cuEventRecord(event, before); cuCtxWaitEvent(context, event));
    cu!(cuMemcpyDtoHAsync_v2(host, counter, 4, after); cuStreamSynchronize(after));
    // SAFETY: four bytes that the copy has filled.
    assert_eq!(unsafe { host.cast::<u32>().read() }, 7 + 8 * 64 * 128);
    fails!(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(context, CUevent::NULL));
    fails!(CUDA_ERROR_INVALID_CONTEXT, cuCtxWaitEvent(CUcontext::NULL, event));
}
