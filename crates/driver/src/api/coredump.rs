//! Core dumps: whether a failing kernel leaves a report, where, and what else happens then. The report is a text that people
//! read (`crate::coredump`).

use crate::contexts;
use crate::coredump::{self, Value};
use crate::error::CuResult;
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use entry_macros::entry_point;
use std::ffi::c_void;

/// Of the current context.
#[entry_point]
unsafe fn cuCoredumpGetAttribute(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: Out<usize>,
) -> CuResult {
    attrib.name().ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let context = contexts::usable()?;
    // SAFETY: the caller's contract.
    unsafe { get(coredump::of_context(context.id()).get_of_context(attrib), value, size) }
}

/// Of contexts that are yet to be made; also before the driver is initialised.
#[entry_point(before_init)]
unsafe fn cuCoredumpGetAttributeGlobal(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: Out<usize>,
) -> CuResult {
    // SAFETY: the caller's contract.
    unsafe { get(coredump::global().get(attrib), value, size) }
}

/// Of the current context.
#[entry_point]
unsafe fn cuCoredumpSetAttribute(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: Out<usize>,
) -> CuResult {
    let context = contexts::usable()?;
    // SAFETY: the caller's contract.
    let Some(value) = (unsafe { read(value, size)? }) else { return Ok(()) };
    coredump::change_context(context.id(), |settings| settings.set_of_context(attrib, value))
}

/// Of contexts that are yet to be made; also before the driver is initialised.
#[entry_point(before_init)]
unsafe fn cuCoredumpSetAttributeGlobal(
    attrib: CUcoredumpSettings,
    value: *mut c_void,
    size: Out<usize>,
) -> CuResult {
    // SAFETY: the caller's contract.
    let Some(value) = (unsafe { read(value, size)? }) else { return Ok(()) };
    coredump::change_global(|settings| settings.set(attrib, value))
}

/// Writes a setting of exactly this size; a text fills all the room it gets, with NULs behind it. Without a place for it, says
/// how much room it needs.
///
/// # Safety
/// Where they are not null, `size` is a number, and `value` is as many bytes.
unsafe fn get(content: CuResult<Value>, value: *mut c_void, size: Out<usize>) -> CuResult {
    size.check()?;
    let content = content?;
    if value.is_null() {
        size.set(content.room())?;
        return Ok(());
    }
    // SAFETY: the caller's contract.
    let room = unsafe { size.as_ptr().read_unaligned() };
    let (bytes, fills) = match &content {
        Value::Truth(truth) => (vec![u8::from(*truth)], false),
        Value::Flags(flags) => (flags.to_ne_bytes().to_vec(), false),
        Value::Text(text) => (text.clone().into_bytes(), true),
    };
    if !fills && room != bytes.len() {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    for at in 0..room {
        // SAFETY: a byte of those that there is room for.
        unsafe { value.cast::<u8>().add(at).write(bytes.get(at).copied().unwrap_or(0)) };
    }
    Ok(())
}

/// The bytes that a setting is to be; `None` without any, which changes nothing.
///
/// # Safety
/// As for [`get`].
unsafe fn read<'a>(value: *mut c_void, size: Out<usize>) -> CuResult<Option<&'a [u8]>> {
    // SAFETY: the caller's contract.
    let len = unsafe { size.check()?.as_ptr().read_unaligned() };
    if value.is_null() {
        return Ok(None);
    }
    // No setting is longer, and what is too long needs not be looked at.
    // SAFETY: the caller's contract.
    Ok(Some(unsafe { std::slice::from_raw_parts(value.cast::<u8>(), len.min(coredump::MAX_TEXT + 1)) }))
}
