//! Error log management. None of these functions needs an initialised driver. No flags are defined, and any are taken, as
//! NVIDIA's driver does.

use crate::error::CuResult;
use crate::log;
use cuda_abi::args::{Array, Out, Text};
use cuda_abi::driver::*;
use device::Platform;
use entry_macros::entry_point;
use std::ffi::{OsStr, c_char, c_void};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Has a function called with each message that is logged from now on. The handle may be unwanted.
#[entry_point(before_init)]
fn cuLogsRegisterCallback(
    callbackFunc: CUlogsCallback,
    userData: *mut c_void,
    callback_out: Out<CUlogsCallbackHandle>,
) -> CuResult {
    Platform::check_process()?;
    let function = callbackFunc.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    callback_out.set_if_wanted(log::listen(function, userData));
    Ok(())
}

/// Ends that.
#[entry_point(before_init)]
fn cuLogsUnregisterCallback(callback: CUlogsCallbackHandle) -> CuResult {
    Platform::check_process()?;
    if log::ignore(callback) { Ok(()) } else { Err(CUDA_ERROR_INVALID_VALUE.into()) }
}

/// The end of the log: what is logged from now on comes after it.
#[entry_point(before_init)]
fn cuLogsCurrent(iterator_out: Out<CUlogIterator>, _flags: u32) -> CuResult {
    Platform::check_process()?;
    iterator_out.check()?.set(log::end())?;
    Ok(())
}

/// Appends the messages from a place on, or all, to a file. The place moves to the end of the log.
#[entry_point(before_init)]
fn cuLogsDumpToFile(iterator: Array<CUlogIterator>, pathToFile: Text, _flags: u32) -> CuResult {
    Platform::check_process()?;
    let path = OsStr::from_bytes(pathToFile.get()?.to_bytes());
    let from = from(iterator)?;
    let (lines, lost, end) = log::read(from);
    let text = log::text(&lines, lost, usize::MAX).unwrap_or_default();
    let file = File::options().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(&text)).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    move_to(iterator, end)
}

/// Writes the messages from a place on, or all, into a buffer of `size` bytes, with a NUL at the end; nothing, not even
/// that, if there is no message. The place moves to the end of the log, and `size` becomes the number of bytes before the
/// NUL. What is old goes first if room is short.
#[entry_point(before_init)]
unsafe fn cuLogsDumpToMemory(
    iterator: Array<CUlogIterator>,
    buffer: *mut c_char,
    size: Array<usize>,
    _flags: u32,
) -> CuResult {
    Platform::check_process()?;
    let room = size.get(0)?;
    if buffer.is_null() || room == 0 {
        size.set(0, 0)?;
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let from = from(iterator)?;
    let (lines, lost, end) = log::read(from);
    let text = log::text(&lines, lost, room - 1);
    let bytes = text.as_deref().unwrap_or_default();
    if !bytes.is_empty() {
        // SAFETY: the caller's buffer has `room` bytes; the text and its NUL are no more.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len());
            buffer.add(bytes.len()).write(0);
        }
    }
    size.set(0, bytes.len())?;
    // Not even the newest message fits.
    text.as_ref().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    move_to(iterator, end)
}

fn from(iterator: Array<CUlogIterator>) -> CuResult<Option<u32>> {
    if iterator.is_null() { Ok(None) } else { Ok(Some(iterator.get(0)?)) }
}

fn move_to(iterator: Array<CUlogIterator>, end: u32) -> CuResult {
    if !iterator.is_null() {
        iterator.set(0, end)?;
    }
    Ok(())
}
