//! The entry points over a mock of the driver.

mod contexts;
mod cuda11;
mod cuda12;
mod errors;
mod forwarding;
mod launches;
mod memory;
mod resources;

use std::ffi::{CStr, c_void};
use std::ptr;

use cuda_abi::args::Out;
use cuda_abi::runtime::dim3;

use crate::api::compiler::*;
use crate::mock_driver;

/// Begins a test: the mock is in place, and no call is remembered.
fn begin() {
    mock_driver::install();
    mock_driver::calls();
}

/// A fat binary that registers like one of the compiler's.
struct Registered {
    handle: *mut *mut c_void,
}

impl Registered {
    fn new() -> Self {
        // SAFETY: the mock does not look into the wrapper.
        Self { handle: unsafe { __cudaRegisterFatBinary(ptr::without_provenance_mut(0x1000)) } }
    }

    fn kernel<T>(self, host_function: &T, name: &CStr) -> Self {
        let (none, host) = (ptr::null_mut(), ptr::from_ref(host_function).cast());
        // SAFETY: the handle is a registered binary's and the name a text.
        unsafe {
            __cudaRegisterFunction(
                self.handle,
                host,
                none,
                name.as_ptr(),
                -1,
                none.cast(),
                none.cast(),
                none.cast(),
                none.cast(),
                none.cast(),
            );
        }
        self
    }

    fn variable<T>(self, shadow: &T, name: &CStr) -> Self {
        let host = ptr::from_ref(shadow).cast_mut().cast();
        // SAFETY: the handle is a registered binary's and the name a text.
        unsafe {
            __cudaRegisterVar(self.handle, host, ptr::null_mut(), name.as_ptr(), 0, size_of::<T>(), 0, 0)
        };
        self
    }

    fn managed(self, pointer: *mut *mut c_void, name: &CStr) -> Self {
        // SAFETY: the handle is a registered binary's, the pointer variable outlives it and the name is a text.
        unsafe { __cudaRegisterManagedVar(self.handle, pointer, ptr::null_mut(), name.as_ptr(), 0, 8, 0, 0) };
        self
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: the handle came from __cudaRegisterFatBinary.
        unsafe { __cudaUnregisterFatBinary(self.handle) };
    }
}

fn size(x: u32, y: u32, z: u32) -> dim3 {
    dim3 { x, y, z }
}

/// A place for a result.
fn out<T>(place: &mut T) -> Out<T> {
    // SAFETY: valid for writing, and every test keeps the place while the call runs.
    unsafe { Out::new(place) }
}

/// The address by which programs name what they registered.
fn address<T>(thing: &T) -> *const c_void {
    ptr::from_ref(thing).cast()
}
