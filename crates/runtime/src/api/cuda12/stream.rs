//! Events and the capture of streams.

use crate::api::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Milliseconds between two recordings.
#[entry_point]
fn cudaEventElapsedTime_cuda12(ms: Out<f32>, start: cudaEvent_t, end: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    let ms = ms.check()?;
    call!(cuEventElapsedTime(ms.as_ptr(), start, end))
}

/// Whether the stream is being captured, and the capture's number, which may be unwanted.
#[entry_point(ptsz)]
fn cudaStreamGetCaptureInfo_cuda12(
    default: DefaultStream,
    stream: cudaStream_t,
    pCaptureStatus: Out<cudaStreamCaptureStatus>,
    pId: *mut u64,
) -> CudaResult {
    context::ensure_current()?;
    let status = pCaptureStatus.check()?;
    call!(cuStreamGetCaptureInfo(resolve(default, stream), status.as_ptr().cast(), pId))
}

/// All about the stream's capture but the data of edges; all results but the status may be unwanted.
#[entry_point(ptsz)]
fn cudaStreamGetCaptureInfo_v2(
    default: DefaultStream,
    stream: cudaStream_t,
    captureStatus_out: Out<cudaStreamCaptureStatus>,
    id_out: *mut u64,
    graph_out: *mut cudaGraph_t,
    dependencies_out: *mut *const cudaGraphNode_t,
    numDependencies_out: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    let status = captureStatus_out.check()?;
    call!(cuStreamGetCaptureInfo_v2(
        resolve(default, stream),
        status.as_ptr().cast(),
        id_out,
        graph_out,
        dependencies_out,
        numDependencies_out
    ))
}

/// Changes what the stream's next node waits for.
#[entry_point(ptsz)]
fn cudaStreamUpdateCaptureDependencies_cuda12(
    default: DefaultStream,
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    numDependencies: usize,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamUpdateCaptureDependencies(resolve(default, stream), dependencies, numDependencies, flags))
}
