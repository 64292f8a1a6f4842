//! Finding the driver's functions.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuda_abi::driver::CUresult;
use cuda_abi::runtime::{
    CudaResult, cudaError_t, cudaErrorCallRequiresNewerDriver, cudaErrorInsufficientDriver,
};

/// The address of one driver function, looked up at the first call.
pub struct Symbol {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Symbol {
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The function's address. Fails if there is no driver, or one without this function.
    pub fn address(&self) -> CudaResult<*mut c_void> {
        // A data race is harmless: every thread finds the same address.
        let address = self.address.load(Ordering::Relaxed);
        if !address.is_null() {
            return Ok(address);
        }
        let address = resolve(self.name)?;
        self.address.store(address, Ordering::Relaxed);
        Ok(address)
    }
}

/// A driver's code as a result.
pub fn check(code: CUresult) -> CudaResult {
    match cudaError_t::from(code) {
        cudaError_t(0) => Ok(()),
        code => Err(code),
    }
}

#[cfg(not(any(test, fuzzing)))]
fn resolve(name: &CStr) -> CudaResult<*mut c_void> {
    resolve_in_libcuda(name)
}

/// Finds a driver function for tests.
#[cfg(any(test, fuzzing))]
pub type Resolver = fn(&CStr) -> *mut c_void;

#[cfg(any(test, fuzzing))]
static RESOLVER: OnceLock<Resolver> = OnceLock::new();

/// Puts another driver in the place of `libcuda.so.1`, for tests. Its addresses are kept, so only once.
#[cfg(any(test, fuzzing))]
pub fn replace_resolver(resolver: Resolver) {
    RESOLVER.get_or_init(|| resolver);
}

#[cfg(any(test, fuzzing))]
fn resolve(name: &CStr) -> CudaResult<*mut c_void> {
    match RESOLVER.get() {
        None => resolve_in_libcuda(name),
        Some(resolver) => found(resolver(name)),
    }
}

fn resolve_in_libcuda(name: &CStr) -> CudaResult<*mut c_void> {
    /// The handle of the loaded library as a number; zero if there is none. Never closed.
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| {
        // SAFETY: the library's name ends in NUL. Its constructors run, as for every program that uses CUDA.
        unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) as usize }
    });
    if library == 0 {
        return Err(cudaErrorInsufficientDriver);
    }
    // SAFETY: the handle came from dlopen and stays open; the name ends in NUL.
    found(unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) })
}

fn found(address: *mut c_void) -> CudaResult<*mut c_void> {
    if address.is_null() { Err(cudaErrorCallRequiresNewerDriver) } else { Ok(address) }
}
