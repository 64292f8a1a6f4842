use cuda_abi::runtime::*;

use super::*;
use crate::api::device::*;
use crate::api::error::*;
use crate::api::memory::allocate::*;
use crate::api::stream::cudaStreamQuery;
use crate::api::version::*;

fn peek() -> cudaError_t {
    // SAFETY: no pointers.
    unsafe { cudaPeekAtLastError() }
}

fn take() -> cudaError_t {
    // SAFETY: no pointers.
    unsafe { cudaGetLastError() }
}

fn set_device(device: i32) -> cudaError_t {
    // SAFETY: no pointers.
    unsafe { cudaSetDevice(device) }
}

#[test]
fn a_failure_stays_until_it_is_taken_or_another_comes() {
    begin();
    assert_eq!(take(), cudaSuccess);
    assert_eq!(set_device(99), cudaErrorInvalidDevice);
    assert_eq!(set_device(0), cudaSuccess);
    assert_eq!((peek(), peek()), (cudaErrorInvalidDevice, cudaErrorInvalidDevice));
    let null = ptr::null_mut();
    // SAFETY: null is noticed.
    assert_eq!(unsafe { cudaMalloc(Out::new(null), 16) }, cudaErrorInvalidValue);
    assert_eq!((take(), take()), (cudaErrorInvalidValue, cudaSuccess));
}

#[test]
fn a_failure_belongs_to_its_thread() {
    begin();
    assert_eq!(set_device(-1), cudaErrorInvalidDevice);
    std::thread::spawn(|| assert_eq!(peek(), cudaSuccess)).join().unwrap();
    assert_eq!(take(), cudaErrorInvalidDevice);
}

#[test]
fn not_ready_is_no_failure() {
    begin();
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaStreamQuery(cudaStream_t::NULL) }, cudaErrorNotReady);
    assert_eq!(peek(), cudaSuccess);
}

#[test]
fn codes_of_the_driver_come_through() {
    begin();
    mock_driver::fail_next("cuCtxSynchronize", cuda_abi::driver::CUDA_ERROR_ILLEGAL_ADDRESS);
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaDeviceSynchronize() }, cudaErrorIllegalAddress);
    assert_eq!((take(), take()), (cudaErrorIllegalAddress, cudaSuccess));
}

#[test]
fn a_function_that_the_driver_lacks_needs_a_newer_one() {
    begin();
    // The mock has no limits.
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaDeviceSetLimit(cudaLimitStackSize, 1024) }, cudaErrorCallRequiresNewerDriver);
    assert_eq!(take(), cudaErrorCallRequiresNewerDriver);
}

#[test]
fn a_function_that_is_missing_here_says_so() {
    begin();
    unsafe extern "C" {
        fn cudaGraphicsGLRegisterBuffer() -> u32;
    }
    // SAFETY: a stub looks at no argument.
    assert_eq!(unsafe { cudaGraphicsGLRegisterBuffer() }, cudaErrorNotSupported.0);
    assert_eq!(take(), cudaErrorNotSupported);
}

#[test]
fn codes_have_names_and_texts() {
    let text = |pointer| {
        // SAFETY: the functions give texts that live for ever.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap()
    };
    // SAFETY: no pointers.
    unsafe {
        assert_eq!(text(cudaGetErrorName(cudaErrorMemoryAllocation)), "cudaErrorMemoryAllocation");
        assert_eq!(text(cudaGetErrorString(cudaErrorMemoryAllocation)), "out of memory");
        assert_eq!(text(cudaGetErrorName(cudaError_t(54321))), "unrecognized error code");
        assert_eq!(text(cudaGetErrorString(cudaError_t(54321))), "unrecognized error code");
    }
}

#[test]
fn versions() {
    begin();
    let (mut driver, mut runtime) = (0, 0);
    // SAFETY: the results have their places.
    unsafe {
        assert_eq!(cudaDriverGetVersion(out(&mut driver)), cudaSuccess);
        assert_eq!(cudaRuntimeGetVersion(out(&mut runtime)), cudaSuccess);
    }
    assert_eq!((driver, runtime), (13000, 13000));
}
