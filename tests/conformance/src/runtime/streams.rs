//! Streams and events.

use super::common::*;

/// Work that ends when the gate is opened.
fn wait_behind(gate: &std::sync::atomic::AtomicBool, stream: cudaStream_t) {
    unsafe extern "C" fn wait(gate: *mut c_void) {
        // SAFETY: the test's gate lives until the stream is done.
        let gate = unsafe { &*gate.cast::<std::sync::atomic::AtomicBool>() };
        while !gate.load(std::sync::atomic::Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
    cuda!(cudaLaunchHostFunc(stream, Some(wait), arg(gate)));
}

fn open(gate: &std::sync::atomic::AtomicBool) {
    gate.store(true, std::sync::atomic::Ordering::Release);
}

fn closed() -> std::sync::atomic::AtomicBool {
    std::sync::atomic::AtomicBool::new(false)
}

pub fn a_streams_properties() {
    let (mut first, mut second) = (cudaStream_t::NULL, cudaStream_t::NULL);
    cuda!(cudaStreamCreateWithFlags(&mut first, cudaStreamNonBlocking));
    cuda!(cudaStreamCreateWithPriority(&mut second, cudaStreamDefault, -2));
    let (mut flags, mut priority, mut device, mut id, mut other) = (9, 9, 9, 0, 0);
    cuda!(cudaStreamGetFlags(first, &mut flags); cudaStreamGetPriority(second, &mut priority));
    assert_eq!((flags, priority), (cudaStreamNonBlocking, -2));
    cuda!(cudaStreamGetDevice(second, &mut device); cudaStreamGetId(first, &mut id); cudaStreamGetId(second, &mut other));
    assert_eq!(device, 0);
    assert_ne!(id, other);
    // The thread's own default stream is not the legacy one.
    cuda!(cudaStreamGetId(DEFAULT, &mut id); cudaStreamGetId_ptsz(DEFAULT, &mut other));
    assert_ne!(id, other);
    cuda!(cudaStreamGetId(cudaStreamPerThread, &mut id));
    assert_eq!(id, other);
    cuda!(cudaStreamGetFlags_ptsz(DEFAULT, &mut flags); cudaStreamGetPriority_ptsz(DEFAULT, &mut priority));
    cuda!(cudaStreamGetDevice_ptsz(DEFAULT, &mut device));
    assert_eq!((flags, priority, device), (0, 0, 0));
    if our_runtime_only("NVIDIA's runtime writes to null") {
        fails!(cudaErrorInvalidValue, cudaStreamGetDevice(second, null_mut()));
    }
    fails!(cudaErrorInvalidValue, cudaStreamGetId(second, null_mut()));
    fails!(cudaErrorInvalidValue, cudaStreamCreate(null_mut()));
    fails!(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&mut first, 77));
    cuda!(cudaStreamDestroy(second));
    if ours_only("NVIDIA's driver crashes on a destroyed stream") {
        fails!(cudaErrorInvalidResourceHandle, cudaStreamDestroy(second));
        fails!(cudaErrorInvalidResourceHandle, cudaStreamQuery(second));
        fails!(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(garbage_stream()));
    }
    fails!(cudaErrorInvalidResourceHandle, cudaStreamDestroy(DEFAULT));
}

fn garbage_stream() -> cudaStream_t {
    driver::CUstream(0x1234_5670)
}

pub fn queries_and_waits() {
    let (stream, gate) = (stream(), closed());
    wait_behind(&gate, stream);
    fails!(cudaErrorNotReady, cudaStreamQuery(stream));
    cuda!(cudaStreamQuery_ptsz(DEFAULT));
    let (event, second) = (event(), {
        let mut second = cudaStream_t::NULL;
        cuda!(cudaStreamCreateWithFlags(&mut second, cudaStreamNonBlocking));
        second
    });
    cuda!(cudaEventRecord(event, stream); cudaStreamWaitEvent(second, event, 0));
    fails!(cudaErrorNotReady, cudaEventQuery(event));
    fails!(cudaErrorNotReady, cudaStreamQuery(second));
    cuda!(cudaStreamWaitEvent_ptsz(DEFAULT, event, 0));
    fails!(cudaErrorNotReady, cudaStreamQuery_ptsz(DEFAULT));
    open(&gate);
    cuda!(cudaStreamSynchronize(second); cudaEventSynchronize(event); cudaStreamSynchronize_ptsz(DEFAULT));
    cuda!(cudaStreamQuery(stream); cudaEventQuery(event));
    fails!(cudaErrorInvalidValue, cudaStreamWaitEvent(second, event, 9));
}

pub fn the_two_default_streams() {
    let (gate, mut free) = (closed(), cudaStream_t::NULL);
    cuda!(cudaStreamCreateWithFlags(&mut free, cudaStreamNonBlocking));
    let blocking = stream();
    wait_behind(&gate, DEFAULT);
    fails!(cudaErrorNotReady, cudaStreamQuery(DEFAULT));
    fails!(cudaErrorNotReady, cudaStreamQuery(cudaStreamLegacy));
    cuda!(cudaStreamQuery(free));
    // The thread's own stream waits for the legacy one, like every blocking stream.
    let event = event();
    cuda!(cudaEventRecord_ptsz(event, DEFAULT));
    fails!(cudaErrorNotReady, cudaEventQuery(event));
    cuda!(cudaEventRecord(event, blocking));
    fails!(cudaErrorNotReady, cudaEventQuery(event));
    cuda!(cudaEventRecord(event, free); cudaStreamSynchronize(free); cudaEventQuery(event));
    open(&gate);
    cuda!(cudaDeviceSynchronize());
}

pub fn callbacks_get_the_stream_and_its_state() {
    unsafe extern "C" fn note(stream: cudaStream_t, code: cudaError_t, place: *mut c_void) {
        // SAFETY: the test's place lives until the stream is done.
        unsafe { place.cast::<(usize, cudaError_t)>().write((stream.0, code)) };
    }
    let stream = stream();
    let mut seen = (0usize, cudaErrorUnknown);
    let place: *mut c_void = (&raw mut seen).cast();
    cuda!(cudaStreamAddCallback(stream, Some(note), place, 0); cudaStreamSynchronize(stream));
    // SAFETY: the stream is done.
    assert_eq!(unsafe { place.cast::<(usize, cudaError_t)>().read() }, (stream.0, cudaSuccess));
    cuda!(cudaStreamAddCallback_ptsz(DEFAULT, Some(note), place, 0); cudaStreamSynchronize_ptsz(DEFAULT));
    // SAFETY: as above.
    assert_ne!(unsafe { place.cast::<(usize, cudaError_t)>().read() }.0, stream.0);
    fails!(cudaErrorInvalidValue, cudaStreamAddCallback(stream, None, place, 0));
    fails!(cudaErrorInvalidValue, cudaStreamAddCallback(stream, Some(note), place, 1));
}

pub fn managed_memory_is_attached_to_a_stream() {
    let (stream, mut shared) = (stream(), null_mut());
    cuda!(cudaMallocManaged(&mut shared, 4096, cudaMemAttachGlobal));
    cuda!(cudaStreamAttachMemAsync(stream, shared, 0, cudaMemAttachSingle); cudaStreamSynchronize(stream));
    cuda!(cudaStreamAttachMemAsync_ptsz(DEFAULT, shared, 0, cudaMemAttachGlobal); cudaStreamSynchronize_ptsz(DEFAULT));
    fails!(cudaErrorInvalidValue, cudaStreamAttachMemAsync(stream, shared, 0, 99));
    cuda!(cudaFree(shared));
}

pub fn events_keep_the_time_and_refuse_what_they_cannot_tell() {
    let (first, second, mut untimed) = (event(), event(), cudaEvent_t::NULL);
    cuda!(cudaEventCreateWithFlags(&mut untimed, cudaEventDisableTiming));
    let mut time = -1.0;
    cuda!(cudaEventQuery(first); cudaEventSynchronize(first));
    fails!(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&mut time, first, second));
    cuda!(cudaEventRecord(first, DEFAULT); cudaEventRecordWithFlags(second, DEFAULT, cudaEventRecordDefault));
    cuda!(cudaEventSynchronize(second); cudaEventElapsedTime(&mut time, first, second));
    assert!(time >= 0.0);
    cuda!(cudaEventRecordWithFlags_ptsz(second, DEFAULT, cudaEventRecordDefault); cudaEventSynchronize(second));
    cuda!(cudaEventRecord(untimed, DEFAULT); cudaEventSynchronize(untimed));
    fails!(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&mut time, first, untimed));
    fails!(cudaErrorInvalidValue, cudaEventElapsedTime(null_mut(), first, second));
    fails!(cudaErrorInvalidValue, cudaEventRecordWithFlags(first, DEFAULT, 9));
    fails!(cudaErrorInvalidValue, cudaEventCreateWithFlags(&mut untimed, 99));
    fails!(cudaErrorInvalidValue, cudaEventCreate(null_mut()));
    for call in [cudaEventQuery, cudaEventSynchronize, cudaEventDestroy] {
        // SAFETY: null is noticed.
        assert_eq!(unsafe { call(cudaEvent_t::NULL) }, cudaErrorInvalidResourceHandle);
    }
    cuda!(cudaEventDestroy(second));
    if ours_only("NVIDIA's driver crashes on a destroyed event") {
        fails!(cudaErrorInvalidResourceHandle, cudaEventDestroy(second));
        fails!(cudaErrorInvalidResourceHandle, cudaEventRecord(second, DEFAULT));
        fails!(cudaErrorInvalidResourceHandle, cudaEventRecord(first, garbage_stream()));
        fails!(cudaErrorInvalidResourceHandle, cudaStreamWaitEvent(DEFAULT, second, 0));
    }
}

pub fn priorities_have_a_range() {
    let (mut least, mut greatest) = (9, 9);
    cuda!(cudaDeviceGetStreamPriorityRange(&mut least, &mut greatest));
    assert!(least == 0 && greatest < 0, "{least} {greatest}");
    let (mut stream, mut priority) = (cudaStream_t::NULL, 9);
    cuda!(cudaStreamCreateWithPriority(&mut stream, 0, greatest - 10); cudaStreamGetPriority(stream, &mut priority));
    assert_eq!(priority, greatest);
    cuda!(cudaStreamCreateWithPriority(&mut stream, 0, least + 10); cudaStreamGetPriority(stream, &mut priority));
    assert_eq!(priority, least);
    cuda!(cudaDeviceGetStreamPriorityRange(null_mut(), null_mut()));
}

pub fn streams_are_numbered_behind_those_of_the_context() {
    let (mut default, mut first, mut second) = (0, 0, 0);
    cuda!(cudaStreamGetId(DEFAULT, &mut default));
    cuda!(cudaStreamGetId(stream(), &mut first); cudaStreamGetId(cudaStreamPerThread, &mut second));
    assert_eq!((default, first, second), (7, 13, 14));
}

pub fn profiling_and_the_cache_are_no_errors() {
    cuda!(cudaProfilerStart(); cudaProfilerStop(); cudaCtxResetPersistingL2Cache());
}
