//! Copies of three-dimensional boxes.

use crate::api::prelude::*;
use crate::context;
use crate::copy::{describe_3d, describe_3d_peer};
use crate::streams::resolve;

/// Copies a box between memories and arrays.
#[entry_point(ptds)]
fn cudaMemcpy3D(default: DefaultStream, p: In<cudaMemcpy3DParms>) -> CudaResult {
    context::ensure_current()?;
    let parameters = p.get()?;
    match (describe_3d(&parameters)?, default) {
        (None, _) => Ok(()),
        (Some(description), DefaultStream::Legacy) => call!(cuMemcpy3D_v2(&description)),
        (Some(description), DefaultStream::PerThread) => call!(cuMemcpy3D_v2_ptds(&description)),
    }
}

/// Copies a box in stream order.
#[entry_point(ptsz)]
fn cudaMemcpy3DAsync(default: DefaultStream, p: In<cudaMemcpy3DParms>, stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    let parameters = p.get()?;
    let Some(description) = describe_3d(&parameters)? else { return Ok(()) };
    call!(cuMemcpy3DAsync_v2(&description, resolve(default, stream)))
}

/// Copies a box from one device to another.
#[entry_point(ptds)]
fn cudaMemcpy3DPeer(default: DefaultStream, p: In<cudaMemcpy3DPeerParms>) -> CudaResult {
    match (describe_peer(p)?, default) {
        (None, _) => Ok(()),
        (Some(description), DefaultStream::Legacy) => call!(cuMemcpy3DPeer(&description)),
        (Some(description), DefaultStream::PerThread) => call!(cuMemcpy3DPeer_ptds(&description)),
    }
}

/// Copies a box from one device to another in stream order.
#[entry_point(ptsz)]
fn cudaMemcpy3DPeerAsync(
    default: DefaultStream,
    p: In<cudaMemcpy3DPeerParms>,
    stream: cudaStream_t,
) -> CudaResult {
    let Some(description) = describe_peer(p)? else { return Ok(()) };
    call!(cuMemcpy3DPeerAsync(&description, resolve(default, stream)))
}

fn describe_peer(parameters: In<cudaMemcpy3DPeerParms>) -> CudaResult<Option<CUDA_MEMCPY3D_PEER>> {
    context::ensure_current()?;
    let parameters = parameters.get()?;
    let (from, to) = (context::primary(parameters.srcDevice)?, context::primary(parameters.dstDevice)?);
    describe_3d_peer(&parameters, from, to)
}
