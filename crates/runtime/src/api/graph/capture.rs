//! Capturing a stream's work into a graph.

use crate::api::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Begins to capture the stream's work into a new graph.
#[entry_point(ptsz)]
fn cudaStreamBeginCapture(
    default: DefaultStream,
    stream: cudaStream_t,
    mode: cudaStreamCaptureMode,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamBeginCapture_v2(resolve(default, stream), CUstreamCaptureMode(mode.0)))
}

/// Begins to capture the stream's work into a graph that is there, after some of its nodes.
#[entry_point(ptsz)]
fn cudaStreamBeginCaptureToGraph(
    default: DefaultStream,
    stream: cudaStream_t,
    graph: cudaGraph_t,
    dependencies: *const cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    mode: cudaStreamCaptureMode,
) -> CudaResult {
    context::ensure_current()?;
    let (stream, mode) = (resolve(default, stream), CUstreamCaptureMode(mode.0));
    call!(cuStreamBeginCaptureToGraph(stream, graph, dependencies, dependencyData, numDependencies, mode))
}

/// Ends the capture and gives its graph.
#[entry_point(ptsz)]
fn cudaStreamEndCapture(
    default: DefaultStream,
    stream: cudaStream_t,
    pGraph: Out<cudaGraph_t>,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamEndCapture(resolve(default, stream), pGraph.as_ptr()))
}

/// Whether the stream is being captured.
#[entry_point(ptsz)]
fn cudaStreamIsCapturing(
    default: DefaultStream,
    stream: cudaStream_t,
    pCaptureStatus: Out<cudaStreamCaptureStatus>,
) -> CudaResult {
    context::ensure_current()?;
    let status = pCaptureStatus.check()?;
    call!(cuStreamIsCapturing(resolve(default, stream), status.as_ptr().cast()))
}

/// Everything about the stream's capture; all results but the status may be unwanted.
#[entry_point(ptsz)]
fn cudaStreamGetCaptureInfo(
    default: DefaultStream,
    stream: cudaStream_t,
    captureStatus_out: Out<cudaStreamCaptureStatus>,
    id_out: *mut u64,
    graph_out: *mut cudaGraph_t,
    dependencies_out: *mut *const cudaGraphNode_t,
    edgeData_out: *mut *const cudaGraphEdgeData,
    numDependencies_out: *mut usize,
) -> CudaResult {
    context::ensure_current()?;
    let status = captureStatus_out.check()?;
    call!(cuStreamGetCaptureInfo_v3(
        resolve(default, stream),
        status.as_ptr().cast(),
        id_out,
        graph_out,
        dependencies_out,
        edgeData_out,
        numDependencies_out
    ))
}

/// Changes what the stream's next node waits for.
#[entry_point(ptsz)]
fn cudaStreamUpdateCaptureDependencies(
    default: DefaultStream,
    stream: cudaStream_t,
    dependencies: *mut cudaGraphNode_t,
    dependencyData: *const cudaGraphEdgeData,
    numDependencies: usize,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    let stream = resolve(default, stream);
    call!(cuStreamUpdateCaptureDependencies_v2(stream, dependencies, dependencyData, numDependencies, flags))
}

/// Swaps the thread's capture mode.
#[entry_point]
fn cudaThreadExchangeStreamCaptureMode(mode: Out<cudaStreamCaptureMode>) -> CudaResult {
    context::initialize()?;
    let mode = mode.check()?;
    call!(cuThreadExchangeStreamCaptureMode(mode.as_ptr().cast()))
}
