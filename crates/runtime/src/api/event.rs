//! Event management.

use super::prelude::*;
use crate::{context, streams};

/// Makes an event that keeps the time.
#[entry_point]
fn cudaEventCreate(event: Out<cudaEvent_t>) -> CudaResult {
    create(event, cudaEventDefault)
}

/// Makes an event. The driver's flags have the same numbers.
#[entry_point]
fn cudaEventCreateWithFlags(event: Out<cudaEvent_t>, flags: u32) -> CudaResult {
    create(event, flags)
}

/// Destroys an event, when the work before it is done.
#[entry_point]
fn cudaEventDestroy(event: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuEventDestroy_v2(event))
}

/// The time between two events, in milliseconds.
#[entry_point]
fn cudaEventElapsedTime(ms: Out<f32>, start: cudaEvent_t, end: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    let ms = ms.check()?;
    call!(cuEventElapsedTime_v2(ms.as_ptr(), start, end))
}

/// Whether the work before the event is done.
#[entry_point]
fn cudaEventQuery(event: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuEventQuery(event))
}

/// Records the event in a stream.
#[entry_point(ptsz)]
fn cudaEventRecord(default: DefaultStream, event: cudaEvent_t, stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuEventRecord(event, streams::resolve(default, stream)))
}

/// Records the event in a stream.
#[entry_point(ptsz)]
fn cudaEventRecordWithFlags(
    default: DefaultStream,
    event: cudaEvent_t,
    stream: cudaStream_t,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuEventRecordWithFlags(event, streams::resolve(default, stream), flags))
}

/// Waits until the work before the event is done.
#[entry_point]
fn cudaEventSynchronize(event: cudaEvent_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuEventSynchronize(event))
}

fn create(event: Out<cudaEvent_t>, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let event = event.check()?;
    call!(cuEventCreate(event.as_ptr(), flags))
}
