//! Batches of copies, prefetches and discards. Both APIs lay the descriptions out alike.

use crate::api::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Copies `count` pieces of memory, in any order. Attribute `i` counts from piece `attrsIdxs[i]` on.
#[entry_point(ptsz)]
fn cudaMemcpyBatchAsync(
    default: DefaultStream,
    dsts: *const *mut c_void,
    srcs: *const *const c_void,
    sizes: *const usize,
    count: usize,
    attrs: *mut cudaMemcpyAttributes,
    attrsIdxs: *mut usize,
    numAttrs: usize,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    // The driver reads the lists only.
    let (to, from, sizes) = (dsts.cast_mut().cast(), srcs.cast_mut().cast(), sizes.cast_mut());
    let stream = resolve(default, stream);
    call!(cuMemcpyBatchAsync_v2(to, from, sizes, count, attrs, attrsIdxs, numAttrs, stream))
}

/// Copies `numOps` boxes, in any order.
#[entry_point(ptsz)]
fn cudaMemcpy3DBatchAsync(
    default: DefaultStream,
    numOps: usize,
    opList: *mut cudaMemcpy3DBatchOp,
    flags: u64,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemcpy3DBatchAsync_v2(numOps, opList, flags, resolve(default, stream)))
}

/// Moves ranges to where they are going to be used. Location `i` counts from range `prefetchLocIdxs[i]` on.
#[entry_point(ptsz)]
fn cudaMemPrefetchBatchAsync(
    default: DefaultStream,
    dptrs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    prefetchLocs: *mut cudaMemLocation,
    prefetchLocIdxs: *mut usize,
    numPrefetchLocs: usize,
    flags: u64,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let (pointers, places, stream) = (dptrs.cast(), prefetchLocs.cast(), resolve(default, stream));
    call!(cuMemPrefetchBatchAsync(
        pointers,
        sizes,
        count,
        places,
        prefetchLocIdxs,
        numPrefetchLocs,
        flags,
        stream
    ))
}

/// Gives up what ranges hold.
#[entry_point(ptsz)]
fn cudaMemDiscardBatchAsync(
    default: DefaultStream,
    dptrs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    flags: u64,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuMemDiscardBatchAsync(dptrs.cast(), sizes, count, flags, resolve(default, stream)))
}

/// Gives up what ranges hold and moves them to where they are going to be used.
#[entry_point(ptsz)]
fn cudaMemDiscardAndPrefetchBatchAsync(
    default: DefaultStream,
    dptrs: *mut *mut c_void,
    sizes: *mut usize,
    count: usize,
    prefetchLocs: *mut cudaMemLocation,
    prefetchLocIdxs: *mut usize,
    numPrefetchLocs: usize,
    flags: u64,
    stream: cudaStream_t,
) -> CudaResult {
    context::ensure_current()?;
    let (pointers, places, stream) = (dptrs.cast(), prefetchLocs.cast(), resolve(default, stream));
    call!(cuMemDiscardAndPrefetchBatchAsync(
        pointers,
        sizes,
        count,
        places,
        prefetchLocIdxs,
        numPrefetchLocs,
        flags,
        stream
    ))
}
