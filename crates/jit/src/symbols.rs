//! What generated code may call in the host.

use std::ffi::{c_int, c_void};

use kernel_abi::BlockFrame;

use crate::bulk::bulk;
use crate::late::late;
use crate::matrix::absent_lanes;

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: c_int, length: usize) -> *mut c_void;
    fn fma(a: f64, b: f64, c: f64) -> f64;
}

/// Exact arithmetic needs the host's floating-point environment.
///
/// # Safety
/// As for [`kernel_abi::soft::anywarp_soft`].
unsafe extern "C" fn soft(code: u32, lanes: u32, values: *mut u64) {
    // SAFETY: the caller's contract.
    guard::unguarded(|| unsafe { kernel_abi::soft::anywarp_soft(code, lanes, values) });
}

/// As [`soft`].
///
/// # Safety
/// As for [`kernel_abi::matrix::anywarp_matrix`].
unsafe extern "C" fn matrix(code: u64, memory: *mut u8) {
    // SAFETY: the caller's contract.
    guard::unguarded(|| unsafe { kernel_abi::matrix::anywarp_matrix(code, memory) });
}

/// Records a fault of a lane and ends the guarded call. That is not in each kernel's own code, where it would have to be
/// compiled each time.
///
/// # Safety
/// Called by generated code, which owns nothing, with its block's frame.
unsafe extern "C" fn raise(frame: *mut BlockFrame, kind: u32, lane: u32, address: u64, ptx_line: u32) -> ! {
    // SAFETY: the caller's contract.
    unsafe {
        let fault = &raw mut (*frame).fault;
        (*fault).kind = kind;
        (*fault).lane = lane;
        (*fault).address = address;
        (*fault).ptx_line = ptx_line;
        guard::guarded_exit(1)
    }
}

/// The address of a host function by the name generated code uses. These are all: an object that needs another one does not
/// load.
pub fn host_symbol(name: &str) -> Option<u64> {
    let address = match name {
        kernel_abi::soft::SOFT_SYMBOL => soft as *const (),
        kernel_abi::matrix::MATRIX_SYMBOL => matrix as *const (),
        kernel_abi::matrix::ABSENT_SYMBOL => absent_lanes as *const (),
        kernel_abi::bulk::BULK_SYMBOL => bulk as *const (),
        kernel_abi::late::LATE_SYMBOL => late as *const (),
        kernel_abi::RAISE_SYMBOL => raise as *const (),
        "anywarp_guarded_exit" => guard::guarded_exit as *const (),
        // LLVM calls these for what instructions cannot do well.
        "memcpy" => memcpy as *const (),
        "memmove" => memmove as *const (),
        "memset" => memset as *const (),
        "fma" => fma as *const (),
        _ => return None,
    };
    Some(address as u64)
}
