//! Faults of kernels: what they leave behind.

use super::common::*;

const FAULTS: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry poke(.param .u64 address)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [address];
    st.global.u32 [%rd1], 1;
    ret;
}
.visible .entry stop()
{
    trap;
    ret;
}
.visible .entry call(.param .u64 address)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [address];
function: .callprototype _ ();
    call %rd1, (), function;
    ret;
}
";

fn poke(address: u64) -> CUresult {
    launch(function(load(FAULTS), c"poke"), 1, 1, CUstream::NULL, &mut [arg(&address)])
}

pub fn an_illegal_address_sticks_to_the_context() {
    const BROKEN: CUresult = CUDA_ERROR_ILLEGAL_ADDRESS;
    new_context();
    let (pointer, stream, mut event) = (alloc(16), stream(0), CUevent::NULL);
    cu!(cuEventCreate(&mut event, 0));
    let nothing = kernel(c"nothing");
    assert_eq!(poke(16), CUDA_SUCCESS);
    fails!(BROKEN, cuCtxSynchronize());
    fails!(BROKEN, cuCtxSynchronize());
    let (mut other, mut module, mut size, mut total) = (CUdeviceptr(0), CUmodule::NULL, 0, 0);
    fails!(BROKEN, cuMemAlloc_v2(&mut other, 16));
    fails!(BROKEN, cuMemFree_v2(pointer));
    fails!(BROKEN, cuMemFree_v2(CUdeviceptr(0)));
    fails!(BROKEN, cuMemFree_v2(CUdeviceptr(64)));
    cu!(cuCtxGetFlags(&mut 0));
    assert_eq!(launch(nothing, 1, 1, CUstream::NULL, &mut []), BROKEN);
    fails!(BROKEN, cuStreamQuery(stream));
    fails!(BROKEN, cuEventRecord(event, stream));
    fails!(BROKEN, cuEventQuery(event));
    fails!(BROKEN, cuMemGetInfo_v2(&mut size, &mut total));
    let (mut flags, mut status) = (0, CUstreamCaptureStatus(0));
    fails!(BROKEN, cuStreamGetFlags(stream, &mut flags));
    fails!(BROKEN, cuStreamIsCapturing(stream, &mut status));
    let (mut graph, mut executable) = (CUgraph::NULL, CUgraphExec::NULL);
    cu!(cuGraphCreate(&mut graph, 0));
    fails!(BROKEN, cuGraphInstantiateWithFlags(&mut executable, graph, 0));
    let image = CString::new(KERNELS).expect("no NUL inside");
    fails!(BROKEN, cuModuleLoadData(&mut module, image.as_ptr().cast()));
    // Handles go all the same.
    fails!(BROKEN, cuEventDestroy_v2(event));
    if ours_only("NVIDIA's driver reads what it has freed: it answers by chance, or crashes") {
        fails!(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy_v2(event));
    }
    fails!(BROKEN, cuStreamDestroy_v2(stream));
    // What needs no healthy context goes on working.
    let (context, mut count, mut device) = (current(), 0, -1);
    cu!(cuDeviceGetCount(&mut count); cuCtxGetDevice(&mut device));
    cu!(cuCtxSetCurrent(CUcontext::NULL); cuCtxPushCurrent_v2(context); cuCtxDestroy_v2(context));
    assert_eq!(current(), CUcontext::NULL);
}

/// Launches what fails, its code on the device before, and has `calls` be the next. What they answer counts only while a GPU has not told its
/// driver yet.
fn behind_a_fault<R>(calls: impl FnOnce() -> R) -> (R, bool) {
    let poke = function(load(FAULTS), c"poke");
    assert_eq!(launch(poke, 1, 1, CUstream::NULL, &mut [arg(&alloc(16).0)]), CUDA_SUCCESS);
    cu!(cuCtxSynchronize());
    let begin = std::time::Instant::now();
    assert_eq!(launch(poke, 1, 1, CUstream::NULL, &mut [arg(&16_u64)]), CUDA_SUCCESS);
    (calls(), begin.elapsed().as_millis() < 90)
}

/// Calls that answer nothing of a fault before them.
fn tell_nothing(calls: impl FnOnce() -> Vec<CUresult>) {
    let (codes, in_time) = behind_a_fault(calls);
    if !in_time && codes.iter().any(|code| *code != CUDA_SUCCESS) {
        skip("the machine took too long");
    }
    assert_eq!(codes, vec![CUDA_SUCCESS; codes.len()]);
}

pub fn a_fault_comes_to_light_where_somebody_waits() {
    const BROKEN: CUresult = CUDA_ERROR_ILLEGAL_ADDRESS;
    unsafe extern "C" fn done(_: *mut c_void) {}
    new_context();
    let (pointer, other) = (alloc(16), stream(CU_STREAM_NON_BLOCKING));
    let nothing = kernel(c"nothing");
    let (mut before, mut event, mut late) = (CUevent::NULL, CUevent::NULL, CUevent::NULL);
    cu!(cuEventCreate(&mut before, 0); cuEventCreate(&mut event, 0); cuEventRecord(before, other));
    cu!(cuStreamSynchronize(other));
    tell_nothing(|| {
        let (mut made, mut more, legacy) = (CUstream::NULL, CUdeviceptr(0), CUstream::NULL);
        // SAFETY: objects and places are the test's.
        unsafe {
            vec![
                // Questions about what was over before, and waits for it.
                cuStreamQuery(other),
                cuStreamSynchronize(other),
                cuEventQuery(before),
                cuEventSynchronize(before),
                // What is queued behind the fault.
                cuEventRecord(event, legacy),
                cuEventCreate(&mut late, 0),
                cuStreamCreate(&mut made, 0),
                cuLaunchHostFunc(legacy, Some(done), null_mut()),
                launch(nothing, 1, 1, legacy, &mut []),
                // What needs nothing of the device.
                cuMemAlloc_v2(&mut more, 16),
                cuEventDestroy_v2(before),
                cuCtxGetLimit(&mut 0, CU_LIMIT_STACK_SIZE),
                cuMemGetInfo_v2(&mut 0, &mut 0),
                cuMemsetD8Async(pointer, 0, 4, other),
                cuStreamWaitEvent(other, event, 0),
            ]
        }
    });
    fails!(BROKEN, cuEventSynchronize(event));
    fails!(BROKEN, cuEventQuery(late));
    fails!(BROKEN, cuStreamSynchronize(other));
}

fn notices(call: impl FnOnce() -> CUresult) {
    assert_eq!(behind_a_fault(call).0, CUDA_ERROR_ILLEGAL_ADDRESS);
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemGetInfo_v2(&mut 0, &mut 0));
}

pub fn copies_to_the_host_tell_of_a_fault() {
    new_context();
    let (pointer, mut place) = (alloc(16), [0_u8; 4]);
    // SAFETY: both places are the test's.
    notices(|| unsafe { cuMemcpyDtoH_v2(place.as_mut_ptr().cast(), pointer, 4) });
}

pub fn freeing_tells_of_a_fault() {
    new_context();
    let pointer = alloc(16);
    // SAFETY: the memory is the test's.
    notices(|| unsafe { cuMemFree_v2(pointer) });
}

pub fn a_copy_on_the_device_does_not_tell_of_a_fault() {
    new_context();
    let (from, to) = (alloc(16), alloc(16));
    // SAFETY: the memory is the test's.
    tell_nothing(|| unsafe { vec![cuMemcpyDtoD_v2(to, from, 16), cuMemsetD8_v2(to, 0, 16)] });
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

pub fn everybody_knows_of_a_fault_after_a_while() {
    new_context();
    let _ = behind_a_fault(|| ());
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut event = CUevent::NULL;
    // There it may take longer, and who only makes events may never hear of it.
    if is_ours() {
        fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuEventCreate(&mut event, 0));
    }
    fails!(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(CUstream::NULL));
}

pub fn a_trap_sticks_too() {
    new_context();
    assert_eq!(launch(function(load(FAULTS), c"stop"), 1, 1, CUstream::NULL, &mut []), CUDA_SUCCESS);
    fails!(CUDA_ERROR_LAUNCH_FAILED, cuCtxSynchronize());
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_LAUNCH_FAILED, cuMemAlloc_v2(&mut pointer, 16));
}

fn call(address: u64) -> CUresult {
    new_context();
    call_here(address)
}

fn call_here(address: u64) -> CUresult {
    let call = function(load(FAULTS), c"call");
    assert_eq!(launch(call, 1, 1, CUstream::NULL, &mut [arg(&address)]), CUDA_SUCCESS);
    // SAFETY: the context is the test's.
    unsafe { cuCtxSynchronize() }
}

pub fn there_is_no_function_at_null() {
    assert_eq!(call(0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn there_is_no_function_beyond_all_memory() {
    assert_eq!(call(0x7fff_ffff_ffff_0000), CUDA_ERROR_INVALID_PC);
}

pub fn there_is_no_function_between_instructions() {
    assert_eq!(call(0x1234), CUDA_ERROR_INVALID_PC);
}

pub fn data_is_no_function() {
    new_context();
    assert_eq!(call_here(alloc_with(&[0_u64; 64]).0), CUDA_ERROR_ILLEGAL_ADDRESS);
}

pub fn a_misaligned_address_sticks_too() {
    new_context();
    let pointer = alloc(16);
    assert_eq!(poke(pointer.0 + 1), CUDA_SUCCESS);
    fails!(CUDA_ERROR_MISALIGNED_ADDRESS, cuCtxSynchronize());
    let mut other = CUdeviceptr(0);
    fails!(CUDA_ERROR_MISALIGNED_ADDRESS, cuMemAlloc_v2(&mut other, 16));
}

pub fn a_reset_primary_context_is_new() {
    const BROKEN: CUresult = CUDA_ERROR_ILLEGAL_ADDRESS;
    const WHY: &str = "a reset ends the fault with its context";
    init();
    let mut context = CUcontext::NULL;
    cu!(cuDevicePrimaryCtxRetain(&mut context, 0); cuCtxSetCurrent(context));
    assert_eq!(poke(16), CUDA_SUCCESS);
    fails!(BROKEN, cuCtxSynchronize());
    cu!(cuDevicePrimaryCtxReset_v2(0));
    let mut pointer = CUdeviceptr(0);
    fails!(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&mut pointer, 16));
    fails!(differs(WHY, CUDA_SUCCESS, BROKEN), cuDevicePrimaryCtxRetain(&mut context, 0));
    fails!(differs(WHY, CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED), cuMemAlloc_v2(&mut pointer, 16));
    fails!(differs(WHY, CUDA_SUCCESS, BROKEN), cuCtxCreate_v4(&mut context, null_mut(), 0, 0));
    fails!(differs(WHY, CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED), cuMemAlloc_v2(&mut pointer, 16));
}

pub fn a_fault_is_its_own_contexts() {
    const WHY: &str = "a fault ends its own context only";
    const BROKEN: CUresult = CUDA_ERROR_ILLEGAL_ADDRESS;
    let a = new_context();
    let b = create_context();
    assert_eq!(poke(16), CUDA_SUCCESS);
    fails!(BROKEN, cuCtxSynchronize());
    cu!(cuCtxSetCurrent(a));
    let mut pointer = CUdeviceptr(0);
    fails!(differs(WHY, CUDA_SUCCESS, BROKEN), cuMemAlloc_v2(&mut pointer, 16));
    fails!(differs(WHY, CUDA_SUCCESS, BROKEN), cuCtxSynchronize());
    cu!(cuCtxDestroy_v2(b));
    fails!(differs(WHY, CUDA_SUCCESS, BROKEN), cuMemAlloc_v2(&mut pointer, 16));
}
