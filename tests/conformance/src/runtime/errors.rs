//! Error handling: the thread's last error, and faults.

use super::common::*;

pub fn a_failure_stays_until_it_is_taken_or_replaced() {
    assert_eq!(last_error(), cudaSuccess);
    fails!(cudaErrorInvalidDevice, cudaSetDevice(99));
    assert_eq!((peek(), peek()), (cudaErrorInvalidDevice, cudaErrorInvalidDevice));
    assert_eq!((last_error(), last_error()), (cudaErrorInvalidDevice, cudaSuccess));
    fails!(cudaErrorInvalidDevice, cudaSetDevice(-1));
    let mut device = 0;
    cuda!(cudaGetDevice(&mut device));
    assert_eq!(last_error(), cudaErrorInvalidDevice, "kept over a good call");
    fails!(cudaErrorInvalidDevice, cudaSetDevice(98));
    fails!(cudaErrorInvalidValue, cudaMalloc(null_mut(), 64));
    assert_eq!(last_error(), cudaErrorInvalidValue, "the later of two");
}

pub fn a_failure_belongs_to_its_thread() {
    fails!(cudaErrorInvalidDevice, cudaSetDevice(99));
    std::thread::spawn(|| assert_eq!(last_error(), cudaSuccess)).join().expect("the other thread agrees");
    assert_eq!(last_error(), cudaErrorInvalidDevice);
}

pub fn failures_of_the_driver_and_not_ready_are_no_last_errors() {
    cuda!(cudaFree(null_mut()));
    let mut pointer = driver::CUdeviceptr(0);
    fails!(driver::CUDA_ERROR_OUT_OF_MEMORY, driver_alloc(&mut pointer, 1 << 50));
    assert_eq!(last_error(), cudaSuccess);

    unsafe extern "C" fn wait(gate: *mut c_void) {
        // SAFETY: the test's gate lives until the stream is done.
        let gate = unsafe { &*gate.cast::<std::sync::atomic::AtomicBool>() };
        while !gate.load(std::sync::atomic::Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
    let gate = std::sync::atomic::AtomicBool::new(false);
    let (stream, event) = (stream(), event());
    cuda!(cudaLaunchHostFunc(stream, Some(wait), arg(&gate)); cudaEventRecord(event, stream));
    fails!(cudaErrorNotReady, cudaEventQuery(event));
    fails!(cudaErrorNotReady, cudaStreamQuery(stream));
    assert_eq!(last_error(), cudaSuccess);
    gate.store(true, std::sync::atomic::Ordering::Release);
    cuda!(cudaStreamSynchronize(stream); cudaEventQuery(event));
}

use driver::cuMemAlloc_v2 as driver_alloc;

pub fn codes_have_names_and_descriptions() {
    // SAFETY: no pointers.
    let texts = |code| unsafe { (text_of(cudaGetErrorName(code)), text_of(cudaGetErrorString(code))) };
    let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    assert_eq!(texts(cudaSuccess), pair("cudaSuccess", "no error"));
    assert_eq!(texts(cudaErrorMemoryAllocation), pair("cudaErrorMemoryAllocation", "out of memory"));
    let unknown = "unrecognized error code";
    for code in [-1i32 as u32, 54321, 998, 12345] {
        assert_eq!(texts(cudaError_t(code)), pair(unknown, unknown), "{code}");
    }
    for (name, code) in cudaError_t::NAMES {
        assert_eq!(texts(*code).0, *name);
    }
}

pub fn a_fault_stays() {
    let pointer = malloc(64);
    assert_eq!(fault(), cudaSuccess);
    assert_eq!(peek(), cudaSuccess);
    fails!(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    assert_eq!((last_error(), last_error()), (cudaErrorIllegalAddress, cudaSuccess));
    let mut other = null_mut();
    fails!(cudaErrorIllegalAddress, cudaMalloc(&mut other, 64));
    fails!(cudaErrorIllegalAddress, cudaFree(pointer));
    fails!(cudaErrorIllegalAddress, cudaStreamCreate(&mut cudaStream_t::default()));
    fails!(cudaErrorIllegalAddress, cudaMemset(pointer, 0, 64));
    fails!(cudaErrorIllegalAddress, cudaFree(null_mut()));
    fails!(cudaErrorIllegalAddress, cudaFreeHost(null_mut()));
    fails!(cudaErrorIllegalAddress, cudaCtxResetPersistingL2Cache());
    cuda!(cudaGetDeviceFlags(&mut 0));
    let (mut device, mut count) = (-1, 0);
    cuda!(cudaGetDevice(&mut device); cudaGetDeviceCount(&mut count); cudaSetDevice(0));
    assert_eq!(attribute(cudaDevAttrWarpSize), 32);
    let _ = last_error();
    fails!(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    assert_eq!(last_error(), cudaErrorIllegalAddress);
}

pub fn a_reset_after_a_fault() {
    assert_eq!(fault(), cudaSuccess);
    fails!(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    cuda!(cudaDeviceReset());
    assert_eq!(last_error(), cudaErrorIllegalAddress);
    let mut pointer = null_mut();
    let code = differs("a reset recovers from a fault", cudaSuccess, cudaErrorDevicesUnavailable);
    fails!(code, cudaMalloc(&mut pointer, 64));
    fails!(code, cudaSetDevice(0));
    if is_ours() {
        assert_eq!(launch(kernel(c"nothing"), 1, 1, DEFAULT, &mut []), cudaSuccess);
        cuda!(cudaDeviceSynchronize());
    }
}

pub fn a_trap_is_a_launch_failure() {
    let stop =
        library(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry stop() { trap; ret; }");
    assert_eq!(launch(as_function(kernel_of(stop, c"stop")), 1, 1, DEFAULT, &mut []), cudaSuccess);
    fails!(cudaErrorLaunchFailure, cudaDeviceSynchronize());
    fails!(cudaErrorLaunchFailure, cudaMalloc(&mut null_mut(), 64));
}

pub fn another_thread_meets_the_fault_too() {
    assert_eq!(fault(), cudaSuccess);
    fails!(cudaErrorIllegalAddress, cudaDeviceSynchronize());
    let other = std::thread::spawn(|| {
        assert_eq!(last_error(), cudaSuccess);
        fails!(cudaErrorIllegalAddress, cudaMalloc(&mut null_mut(), 64));
        assert_eq!(last_error(), cudaErrorIllegalAddress);
    });
    other.join().expect("the other thread agrees");
}
