use std::sync::Barrier;

use cuda_abi::driver::CUcontext;
use cuda_abi::runtime::*;

use super::*;
use crate::api::device::*;
use crate::api::memory::allocate::*;
use crate::context;

/// Any call that needs a context.
fn use_context() {
    // SAFETY: null may be freed.
    assert_eq!(unsafe { cudaFree(ptr::null_mut()) }, cudaSuccess);
}

fn set_device(device: i32) {
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaSetDevice(device) }, cudaSuccess);
}

fn device() -> i32 {
    let mut device = -1;
    // SAFETY: the result has its place.
    assert_eq!(unsafe { cudaGetDevice(out(&mut device)) }, cudaSuccess);
    device
}

#[test]
fn questions_about_devices_make_no_context() {
    begin();
    let mut count = 0;
    // SAFETY: the result has its place.
    assert_eq!(unsafe { cudaGetDeviceCount(out(&mut count)) }, cudaSuccess);
    assert_eq!((count, device()), (mock_driver::DEVICES, 0));
    assert_eq!(mock_driver::current(), CUcontext::NULL);
}

#[test]
fn a_context_of_the_program_is_used_as_it_is() {
    begin();
    let own = CUcontext(0x302);
    mock_driver::make_current(own);
    use_context();
    assert_eq!(mock_driver::current(), own);
    assert_eq!(device(), 2);
    set_device(1);
    assert_eq!(mock_driver::current(), mock_driver::primary(1));
    assert_eq!(device(), 1);
}

#[test]
fn threads_that_come_first_together_share_one_retention() {
    begin();
    const THREADS: usize = 16;
    const DEVICE: i32 = 3;
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                set_device(DEVICE);
                use_context();
                assert_eq!(mock_driver::current(), mock_driver::primary(DEVICE));
            });
        }
    });
    assert_eq!(mock_driver::retentions(DEVICE), 1);
}

/// The only test that touches device 2's primary context.
#[test]
fn after_a_reset_every_thread_gets_a_retained_context() {
    begin();
    const DEVICE: i32 = 2;
    set_device(DEVICE);
    use_context();
    assert_eq!(mock_driver::retentions(DEVICE), 1);
    let (reset, used) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            set_device(DEVICE);
            reset.wait();
            used.wait();
            // The other thread's use came first.
            use_context();
            assert_eq!(mock_driver::retentions(DEVICE), 1);
        });
        reset.wait();
        // SAFETY: no pointers.
        assert_eq!(unsafe { cudaDeviceReset() }, cudaSuccess);
        assert_eq!(mock_driver::current(), mock_driver::primary(DEVICE));
        assert_eq!(mock_driver::retentions(DEVICE), 0);
        use_context();
        assert_eq!(mock_driver::retentions(DEVICE), 1);
        used.wait();
    });
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaDeviceReset() }, cudaSuccess);
    // SAFETY: no pointers. A device that is not in use is reset as well.
    assert_eq!(unsafe { cudaDeviceReset() }, cudaSuccess);
    set_device(DEVICE);
    assert_eq!(mock_driver::retentions(DEVICE), 1);
}

fn allocate() -> cudaError_t {
    let mut pointer = ptr::null_mut();
    // SAFETY: the result has its place.
    unsafe { cudaMalloc(out(&mut pointer), 16) }
}

#[test]
fn a_primary_context_that_the_program_reset_is_retained_again() {
    begin();
    const DEVICE: i32 = 4;
    set_device(DEVICE);
    assert_eq!(allocate(), cudaSuccess);
    mock_driver::reset_primary(DEVICE);
    assert_eq!(allocate(), cudaSuccess);
    assert_eq!(mock_driver::retentions(DEVICE), 1);
    assert_eq!(mock_driver::current(), mock_driver::primary(DEVICE));
}

#[test]
fn a_retention_of_the_program_outlives_a_reset() {
    begin();
    const DEVICE: i32 = 5;
    let mut context = CUcontext::NULL;
    crate::driver::call!(cuDevicePrimaryCtxRetain(&mut context, DEVICE)).unwrap();
    mock_driver::make_current(mock_driver::primary(DEVICE));
    assert_eq!(allocate(), cudaSuccess);
    // SAFETY: no pointers.
    assert_eq!(unsafe { cudaDeviceReset() }, cudaSuccess);
    assert_eq!(mock_driver::retentions(DEVICE), 1);
    assert_eq!(allocate(), cudaSuccess);
    assert_eq!(mock_driver::retentions(DEVICE), 2);
}

#[test]
fn in_a_destroyed_context_the_device_is_uninitialised() {
    begin();
    mock_driver::make_current(mock_driver::DESTROYED);
    assert_eq!(allocate(), cudaErrorDeviceUninitialized);
    assert_eq!(mock_driver::current(), mock_driver::DESTROYED);
}

#[test]
fn a_device_is_initialised_without_becoming_current() {
    begin();
    // SAFETY: no pointers.
    unsafe {
        assert_eq!(cudaInitDevice(1, 0, 0), cudaSuccess);
        assert_eq!(cudaInitDevice(99, 0, 0), cudaErrorInvalidDevice);
    }
    assert_eq!(mock_driver::current(), CUcontext::NULL);
    assert_eq!(context::primary(1), Ok(mock_driver::primary(1)));
}
