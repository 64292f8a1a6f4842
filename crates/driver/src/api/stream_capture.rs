//! Stream management: capture.

use super::graph_edges::{data_of, no_data, read_tips};
use crate::error::CuResult;
use crate::graphs::{self, node_handle};
use crate::streams::find;
use cuda_abi::args::{Array, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::{DefaultStream, locked};
use device::graph::{CaptureMode, CaptureStatus, EdgeStart, Graph, exchange_thread_mode};
use entry_macros::entry_point;
use std::sync::Mutex;

#[entry_point(ptsz)]
fn cuStreamBeginCapture(default: DefaultStream, hStream: CUstream) -> CuResult {
    find(hStream, default)?.begin_capture(CaptureMode::Global, Graph::new(), &[])?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamBeginCapture_v2(default: DefaultStream, hStream: CUstream, mode: CUstreamCaptureMode) -> CuResult {
    find(hStream, default)?.begin_capture(read_mode(mode)?, Graph::new(), &[])?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamBeginCaptureToGraph(
    default: DefaultStream,
    hStream: CUstream,
    hGraph: CUgraph,
    dependencies: Array<CUgraphNode>,
    dependencyData: Array<CUgraphEdgeData>,
    numDependencies: usize,
    mode: CUstreamCaptureMode,
) -> CuResult {
    let graph = graphs::find(hGraph)?;
    if device::graph::is_captured_into(&graph) {
        return Err(CUDA_ERROR_ILLEGAL_STATE.into());
    }
    let tips = read_tips(&graph, dependencies, dependencyData, numDependencies)?;
    find(hStream, default)?.begin_capture(read_mode(mode)?, graph, &tips)?;
    Ok(())
}

/// Where the capture is spoiled, the place for the graph gets null. Without a place the graph is gone, as on an H200.
#[entry_point(ptsz)]
fn cuStreamEndCapture(default: DefaultStream, hStream: CUstream, phGraph: Out<CUgraph>) -> CuResult {
    phGraph.set_if_wanted(CUgraph::NULL);
    let graph = find(hStream, default)?.end_capture()?;
    if !phGraph.is_null() {
        phGraph.set(graphs::handle_of(&graph)?)?;
    }
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamIsCapturing(
    default: DefaultStream,
    hStream: CUstream,
    captureStatus: Out<CUstreamCaptureStatus>,
) -> CuResult {
    captureStatus.check()?;
    let stream = find(hStream, default)?;
    stream.context()?.check()?;
    let (status, _) = stream.capture_status()?;
    captureStatus.set(status_code(status))?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetCaptureInfo(
    default: DefaultStream,
    hStream: CUstream,
    captureStatus_out: Out<CUstreamCaptureStatus>,
    id_out: Out<u64>,
) -> CuResult {
    captureStatus_out.check()?;
    let (status, info) = find(hStream, default)?.capture_status()?;
    captureStatus_out.set(status_code(status))?;
    if let Some(info) = info {
        id_out.set_if_wanted(info.id);
    }
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetCaptureInfo_v2(
    default: DefaultStream,
    hStream: CUstream,
    captureStatus_out: Out<CUstreamCaptureStatus>,
    id_out: Out<u64>,
    graph_out: Out<CUgraph>,
    dependencies_out: Out<*const CUgraphNode>,
    numDependencies_out: Out<usize>,
) -> CuResult {
    let outputs = Outputs { status: captureStatus_out, id: id_out, graph: graph_out };
    // SAFETY: null is allowed.
    let no_data = unsafe { Out::new(std::ptr::null_mut()) };
    capture_info(default, hStream, outputs, dependencies_out, no_data, numDependencies_out)
}

#[entry_point(ptsz)]
fn cuStreamGetCaptureInfo_v3(
    default: DefaultStream,
    hStream: CUstream,
    captureStatus_out: Out<CUstreamCaptureStatus>,
    id_out: Out<u64>,
    graph_out: Out<CUgraph>,
    dependencies_out: Out<*const CUgraphNode>,
    edgeData_out: Out<*const CUgraphEdgeData>,
    numDependencies_out: Out<usize>,
) -> CuResult {
    let outputs = Outputs { status: captureStatus_out, id: id_out, graph: graph_out };
    capture_info(default, hStream, outputs, dependencies_out, edgeData_out, numDependencies_out)
}

struct Outputs {
    status: Out<CUstreamCaptureStatus>,
    id: Out<u64>,
    graph: Out<CUgraph>,
}

fn capture_info(
    default: DefaultStream,
    stream: CUstream,
    outputs: Outputs,
    dependencies: Out<*const CUgraphNode>,
    data: Out<*const CUgraphEdgeData>,
    count: Out<usize>,
) -> CuResult {
    outputs.status.check()?;
    let (status, info) = find(stream, default)?.capture_status()?;
    outputs.status.set(status_code(status))?;
    let Some(info) = info.filter(|_| status == CaptureStatus::Active) else { return Ok(()) };
    outputs.id.set_if_wanted(info.id);
    outputs.graph.set_if_wanted(graphs::handle_of(&info.graph)?);
    let tips = &info.dependencies;
    let is_lossy =
        !dependencies.is_null() && data.is_null() && tips.iter().any(|tip| tip.start != EdgeStart::End);
    if is_lossy {
        return Err(CUDA_ERROR_LOSSY_QUERY.into());
    }
    let answer = Answer {
        nodes: tips.iter().map(|tip| node_handle(&info.graph, tip.node)).collect::<CuResult<_>>()?,
        data: tips.iter().map(|tip| data_of(tip.start)).collect(),
    };
    count.set_if_wanted(tips.len());
    let (nodes, starts) = keep(answer);
    dependencies.set_if_wanted(nodes);
    data.set_if_wanted(starts);
    Ok(())
}

/// Arrays that a program was given.
struct Answer {
    nodes: Vec<CUgraphNode>,
    data: Vec<CUgraphEdgeData>,
}

/// Keeps an answer for as long as the manual promises: until the capture goes on. The last few captures' are kept.
fn keep(answer: Answer) -> (*const CUgraphNode, *const CUgraphEdgeData) {
    static KEPT: Mutex<Vec<Answer>> = Mutex::new(Vec::new());
    const MOST: usize = 64;
    let mut kept = locked(&KEPT);
    if kept.len() == MOST {
        kept.remove(0);
    }
    let pointers = (answer.nodes.as_ptr(), answer.data.as_ptr());
    kept.push(answer);
    pointers
}

#[entry_point(ptsz)]
fn cuStreamUpdateCaptureDependencies(
    default: DefaultStream,
    hStream: CUstream,
    dependencies: Array<CUgraphNode>,
    numDependencies: usize,
    flags: u32,
) -> CuResult {
    update(default, hStream, dependencies, no_data(), numDependencies, flags)
}

#[entry_point(ptsz)]
fn cuStreamUpdateCaptureDependencies_v2(
    default: DefaultStream,
    hStream: CUstream,
    dependencies: Array<CUgraphNode>,
    dependencyData: Array<CUgraphEdgeData>,
    numDependencies: usize,
    flags: u32,
) -> CuResult {
    update(default, hStream, dependencies, dependencyData, numDependencies, flags)
}

fn update(
    default: DefaultStream,
    stream: CUstream,
    nodes: Array<CUgraphNode>,
    data: Array<CUgraphEdgeData>,
    count: usize,
    flags: u32,
) -> CuResult {
    // CU_STREAM_ADD_CAPTURE_DEPENDENCIES and CU_STREAM_SET_CAPTURE_DEPENDENCIES.
    let replace = match flags {
        0 => false,
        1 => true,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    };
    let stream = find(stream, default)?;
    let (_, info) = stream.capture_status()?;
    let graph = info.ok_or(CUDA_ERROR_ILLEGAL_STATE)?.graph;
    stream.update_capture_dependencies(&read_tips(&graph, nodes, data, count)?, replace)?;
    Ok(())
}

#[entry_point]
fn cuThreadExchangeStreamCaptureMode(mode: Out<CUstreamCaptureMode>) -> CuResult {
    let pointer = mode.check()?.as_ptr();
    // SAFETY: the manual wants a place that holds the new mode and gets the old one.
    let new = read_mode(unsafe { pointer.read_unaligned() })?;
    mode.set(match exchange_thread_mode(new) {
        CaptureMode::Global => CU_STREAM_CAPTURE_MODE_GLOBAL,
        CaptureMode::ThreadLocal => CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CaptureMode::Relaxed => CU_STREAM_CAPTURE_MODE_RELAXED,
    })?;
    Ok(())
}

fn read_mode(mode: CUstreamCaptureMode) -> CuResult<CaptureMode> {
    match mode {
        CU_STREAM_CAPTURE_MODE_GLOBAL => Ok(CaptureMode::Global),
        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL => Ok(CaptureMode::ThreadLocal),
        CU_STREAM_CAPTURE_MODE_RELAXED => Ok(CaptureMode::Relaxed),
        _ => Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
}

fn status_code(status: CaptureStatus) -> CUstreamCaptureStatus {
    match status {
        CaptureStatus::None => CU_STREAM_CAPTURE_STATUS_NONE,
        CaptureStatus::Active => CU_STREAM_CAPTURE_STATUS_ACTIVE,
        CaptureStatus::Invalidated => CU_STREAM_CAPTURE_STATUS_INVALIDATED,
    }
}
