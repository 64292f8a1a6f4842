//! Variables of the device code, by their shadow in the program.

use std::ptr;

use super::copy::{copy, copy_in_order};
use crate::api::prelude::*;
use crate::copy::check_kind_with_device;
use crate::streams::resolve;
use crate::{context, registry};

/// A variable's address in the current context.
#[entry_point]
fn cudaGetSymbolAddress(devPtr: Out<*mut c_void>, symbol: *const c_void) -> CudaResult {
    context::ensure_current()?;
    let pointer = devPtr.check()?;
    let (address, _) = registry::variable(symbol.addr())?.address()?;
    pointer.set(ptr::with_exposed_provenance_mut(address.0 as usize))?;
    Ok(())
}

/// A variable's size in bytes.
#[entry_point]
fn cudaGetSymbolSize(size: Out<usize>, symbol: *const c_void) -> CudaResult {
    context::ensure_current()?;
    let size = size.check()?;
    let (_, bytes) = registry::variable(symbol.addr())?.address()?;
    size.set(bytes)?;
    Ok(())
}

/// Copies bytes into a variable, `offset` bytes from its beginning.
#[entry_point(ptds)]
fn cudaMemcpyToSymbol(
    default: DefaultStream,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let dst = place(symbol, offset, count)?;
    check_kind_with_device(kind, cudaMemcpyHostToDevice)?;
    copy(default, dst, src, count, kind)
}

/// Copies bytes into a variable in stream order.
#[entry_point(ptsz)]
fn cudaMemcpyToSymbolAsync(
    default: DefaultStream,
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    let dst = place(symbol, offset, count)?;
    check_kind_with_device(kind, cudaMemcpyHostToDevice)?;
    copy_in_order(dst, src, count, kind, resolve(default, stream))
}

/// Copies bytes out of a variable, from `offset` bytes after its beginning.
#[entry_point(ptds)]
fn cudaMemcpyFromSymbol(
    default: DefaultStream,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> CudaResult {
    let src = place(symbol, offset, count)?;
    check_kind_with_device(kind, cudaMemcpyDeviceToHost)?;
    copy(default, dst, src, count, kind)
}

/// Copies bytes out of a variable in stream order.
#[entry_point(ptsz)]
fn cudaMemcpyFromSymbolAsync(
    default: DefaultStream,
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> CudaResult {
    let src = place(symbol, offset, count)?;
    check_kind_with_device(kind, cudaMemcpyDeviceToHost)?;
    copy_in_order(dst, src, count, kind, resolve(default, stream))
}

/// The address of `count` bytes of a variable; null if there are none.
pub(in crate::api) fn place(symbol: *const c_void, offset: usize, count: usize) -> CudaResult<*mut c_void> {
    context::ensure_current()?;
    let (address, size) = registry::variable(symbol.addr())?.address()?;
    if count == 0 {
        return Ok(ptr::null_mut());
    }
    if offset.checked_add(count).is_none_or(|end| end > size) {
        return Err(cudaErrorInvalidValue);
    }
    Ok(ptr::with_exposed_provenance_mut(address.0 as usize + offset))
}
