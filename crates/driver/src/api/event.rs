//! Event management.

use crate::error::CuResult;
use crate::streams::{self, find, find_event};
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use entry_macros::entry_point;

#[entry_point]
fn cuEventCreate(phEvent: Out<CUevent>, Flags: u32) -> CuResult {
    phEvent.check()?.set(streams::create_event(Flags)?)?;
    Ok(())
}

#[entry_point]
fn cuEventDestroy(hEvent: CUevent) -> CuResult {
    streams::destroy_event(hEvent)
}

#[entry_point]
fn cuEventDestroy_v2(hEvent: CUevent) -> CuResult {
    streams::destroy_event(hEvent)
}

#[entry_point(ptsz)]
fn cuEventRecord(default: DefaultStream, hEvent: CUevent, hStream: CUstream) -> CuResult {
    find_event(hEvent)?.record(&*find(hStream, default)?)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuEventRecordWithFlags(
    default: DefaultStream,
    hEvent: CUevent,
    hStream: CUstream,
    flags: u32,
) -> CuResult {
    let event = find_event(hEvent)?;
    let stream = find(hStream, default)?;
    match flags {
        CU_EVENT_RECORD_DEFAULT => event.record(&stream)?,
        // Makes a node of a graph; without a capture there is none.
        CU_EVENT_RECORD_EXTERNAL => event.record_in_graph(&stream)?,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    Ok(())
}

#[entry_point]
fn cuEventQuery(hEvent: CUevent) -> CuResult {
    find_event(hEvent)?.query()?;
    Ok(())
}

#[entry_point]
fn cuEventSynchronize(hEvent: CUevent) -> CuResult {
    find_event(hEvent)?.synchronize()?;
    Ok(())
}

#[entry_point]
fn cuEventElapsedTime(pMilliseconds: Out<f32>, hStart: CUevent, hEnd: CUevent) -> CuResult {
    elapsed(pMilliseconds, hStart, hEnd)
}

#[entry_point]
fn cuEventElapsedTime_v2(pMilliseconds: Out<f32>, hStart: CUevent, hEnd: CUevent) -> CuResult {
    elapsed(pMilliseconds, hStart, hEnd)
}

fn elapsed(place: Out<f32>, start: CUevent, end: CUevent) -> CuResult {
    place.check()?;
    let (start, end) = (find_event(start)?, find_event(end)?);
    place.set(start.elapsed_until(&end)?)?;
    Ok(())
}
