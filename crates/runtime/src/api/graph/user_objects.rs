//! Objects whose lifetime graphs share.

use crate::api::prelude::*;
use crate::context;

/// Makes an object that is destroyed by a call of `destroy` when nobody holds it any more.
#[entry_point]
fn cudaUserObjectCreate(
    object_out: Out<cudaUserObject_t>,
    ptr: *mut c_void,
    destroy: cudaHostFn_t,
    initialRefcount: u32,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    let object = object_out.check()?;
    call!(cuUserObjectCreate(object.as_ptr(), ptr, destroy, initialRefcount, flags))
}

/// Holds an object `count` times more.
#[entry_point]
fn cudaUserObjectRetain(object: cudaUserObject_t, count: u32) -> CudaResult {
    context::ensure_current()?;
    call!(cuUserObjectRetain(object, count))
}

/// Lets go of an object `count` times.
#[entry_point]
fn cudaUserObjectRelease(object: cudaUserObject_t, count: u32) -> CudaResult {
    context::ensure_current()?;
    call!(cuUserObjectRelease(object, count))
}

/// Has a graph hold an object.
#[entry_point]
fn cudaGraphRetainUserObject(
    graph: cudaGraph_t,
    object: cudaUserObject_t,
    count: u32,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphRetainUserObject(graph, object, count, flags))
}

/// Has a graph let go of an object.
#[entry_point]
fn cudaGraphReleaseUserObject(graph: cudaGraph_t, object: cudaUserObject_t, count: u32) -> CudaResult {
    context::ensure_current()?;
    call!(cuGraphReleaseUserObject(graph, object, count))
}
