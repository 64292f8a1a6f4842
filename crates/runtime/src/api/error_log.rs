//! Error log management. The log is the driver's, and so are places in it.

use super::prelude::*;
use crate::context;

/// Has a function called with each message that is logged from now on.
#[entry_point]
fn cudaLogsRegisterCallback(
    callbackFunc: cudaLogsCallback_t,
    userData: *mut c_void,
    callback_out: Out<cudaLogsCallbackHandle>,
) -> CudaResult {
    context::initialize()?;
    call!(cuLogsRegisterCallback(callbackFunc, userData, callback_out.as_ptr()))
}

/// Ends that.
#[entry_point]
fn cudaLogsUnregisterCallback(callback: cudaLogsCallbackHandle) -> CudaResult {
    context::initialize()?;
    call!(cuLogsUnregisterCallback(callback))
}

/// The end of the log: what is logged from now on comes after it.
#[entry_point]
fn cudaLogsCurrent(iterator_out: Out<cudaLogIterator>, flags: u32) -> CudaResult {
    context::initialize()?;
    let iterator = iterator_out.check()?;
    call!(cuLogsCurrent(iterator.as_ptr(), flags))
}

/// Appends the messages from a place on, or all, to a file; the place moves to the log's end.
#[entry_point]
fn cudaLogsDumpToFile(iterator: *mut cudaLogIterator, pathToFile: Text, flags: u32) -> CudaResult {
    context::initialize()?;
    call!(cuLogsDumpToFile(iterator, pathToFile.get()?.as_ptr(), flags))
}

/// Writes the messages from a place on, or all, into a buffer of `size` bytes, which becomes the bytes used.
#[entry_point]
fn cudaLogsDumpToMemory(
    iterator: *mut cudaLogIterator,
    buffer: *mut c_char,
    size: *mut usize,
    flags: u32,
) -> CudaResult {
    context::initialize()?;
    call!(cuLogsDumpToMemory(iterator, buffer, size, flags))
}
