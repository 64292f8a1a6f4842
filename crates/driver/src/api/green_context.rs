//! Green contexts: parts of a device's multiprocessors.

use crate::contexts::{self, Context};
use crate::error::CuResult;
use crate::green::{self, Processors};
use crate::stack;
use crate::streams::{self, find};
use cuda_abi::args::{Array, In, Out};
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::StreamKind;
use entry_macros::entry_point;
use std::sync::Arc;

#[entry_point]
fn cuDeviceGetDevResource(
    device: CUdevice,
    resource: Out<CUdevResource>,
    r#type: CUdevResourceType,
) -> CuResult {
    resource.check()?;
    let processors = Processors::of_device(device)?;
    check_type(r#type)?;
    resource.set(processors.write())?;
    Ok(())
}

/// A primary context, and one that was made by itself, has all of its device's.
#[entry_point]
fn cuCtxGetDevResource(hCtx: CUcontext, resource: Out<CUdevResource>, r#type: CUdevResourceType) -> CuResult {
    resource.check()?;
    let context = contexts::find(hCtx)?;
    check_type(r#type)?;
    resource.set(of_context(&context)?.write())?;
    Ok(())
}

#[entry_point]
fn cuGreenCtxGetDevResource(
    hCtx: CUgreenCtx,
    resource: Out<CUdevResource>,
    r#type: CUdevResourceType,
) -> CuResult {
    resource.check()?;
    let green = green::find(hCtx)?;
    check_type(r#type)?;
    resource.set(green.processors.write())?;
    Ok(())
}

/// Of CUDA 13.1: those of the stream's context.
#[entry_point]
fn cuStreamGetDevResource(
    hStream: CUstream,
    resource: Out<CUdevResource>,
    r#type: CUdevResourceType,
) -> CuResult {
    resource.check()?;
    let context = green::context_of(&*find(hStream, DefaultStream::Legacy)?)?;
    check_type(r#type)?;
    resource.set(of_context(&*contexts::find(context)?)?.write())?;
    Ok(())
}

/// The multiprocessors of a context: its part, or the device's.
fn of_context(context: &Context) -> CuResult<Processors> {
    match context.partition() {
        Some(partition) => Ok(green::of_partition(partition)?.processors),
        None => Processors::of_device(context.device() as CUdevice),
    }
}

fn check_type(wanted: CUdevResourceType) -> CuResult {
    if wanted == CU_DEV_RESOURCE_TYPE_SM { Ok(()) } else { Err(CUDA_ERROR_INVALID_RESOURCE_TYPE.into()) }
}

/// Without an array only the number of parts is told. What the flags ask for is so anyway: multiprocessors are alike, and
/// clusters of any size run on one. Together they contradict each other.
#[entry_point]
fn cuDevSmResourceSplitByCount(
    result: Array<CUdevResource>,
    nbGroups: Out<u32>,
    input: In<CUdevResource>,
    remaining: Out<CUdevResource>,
    useFlags: u32,
    minCount: u32,
) -> CuResult {
    const BOTH: u32 =
        CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING | CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE;
    let place = nbGroups.check()?.as_ptr();
    let all = Processors::read(&input.get()?)?;
    if useFlags & BOTH == BOTH {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    // SAFETY: not null; the manual wants the array's length in it.
    let room = if result.is_null() { u32::MAX } else { unsafe { place.read_unaligned() } };
    let (parts, rest) = all.split(minCount, room)?;
    if !result.is_null() {
        for (index, part) in parts.iter().enumerate() {
            result.set(index, part.write())?;
        }
    }
    remaining.set_if_wanted(rest.write());
    nbGroups.set(parts.len() as u32)?;
    Ok(())
}

#[entry_point]
fn cuDevResourceGenerateDesc(
    phDesc: Out<CUdevResourceDesc>,
    resources: Array<CUdevResource>,
    nbResources: u32,
) -> CuResult {
    phDesc.check()?;
    let read = |index| Processors::read(&resources.get(index)?);
    let parts = (0..nbResources as usize).map(read).collect::<CuResult<Vec<_>>>()?;
    phDesc.set(green::describe(&parts)?)?;
    Ok(())
}

#[entry_point]
fn cuGreenCtxCreate(phCtx: Out<CUgreenCtx>, desc: CUdevResourceDesc, dev: CUdevice, flags: u32) -> CuResult {
    phCtx.check()?;
    // The flag says what there always is, and must be there.
    if flags != CU_GREEN_CTX_DEFAULT_STREAM {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    phCtx.set(green::create(desc, dev)?)?;
    Ok(())
}

#[entry_point]
fn cuGreenCtxDestroy(hCtx: CUgreenCtx) -> CuResult {
    green::destroy(hCtx)
}

#[entry_point]
fn cuCtxFromGreenCtx(pContext: Out<CUcontext>, hCtx: CUgreenCtx) -> CuResult {
    pContext.check()?.set(green::find(hCtx)?.context())?;
    Ok(())
}

/// Null stands for the green context that is current.
#[entry_point]
fn cuGreenCtxGetId(greenCtx: CUgreenCtx, greenCtxId: Out<u64>) -> CuResult {
    greenCtxId.check()?;
    let green = if greenCtx.is_null() { current()? } else { green::find(greenCtx)? };
    greenCtxId.set(green.partition.id())?;
    Ok(())
}

fn current() -> CuResult<Arc<green::GreenContext>> {
    let context = contexts::find(stack::top().ok_or(CUDA_ERROR_INVALID_CONTEXT)?)?;
    green::of_partition(context.partition().ok_or(CUDA_ERROR_INVALID_CONTEXT)?)
}

/// The event stands for the work of all streams of the green context. Both must be of the same primary context.
#[entry_point]
fn cuGreenCtxRecordEvent(hCtx: CUgreenCtx, hEvent: CUevent) -> CuResult {
    let (green, event) = (green::find(hCtx)?, streams::find_event(hEvent)?);
    green.partition.record(&event)?;
    Ok(())
}

#[entry_point]
fn cuGreenCtxWaitEvent(hCtx: CUgreenCtx, hEvent: CUevent) -> CuResult {
    let (green, event) = (green::find(hCtx)?, streams::find_event(hEvent)?);
    green.partition.wait_event(&event)?;
    Ok(())
}

/// Only streams that do not wait for the default stream can be had.
#[entry_point]
fn cuGreenCtxStreamCreate(
    phStream: Out<CUstream>,
    greenCtx: CUgreenCtx,
    flags: u32,
    priority: i32,
) -> CuResult {
    phStream.check()?;
    let green = green::find(greenCtx)?;
    if flags != CU_STREAM_NON_BLOCKING {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let context = contexts::find(green.context())?;
    phStream.set(streams::create_in(&context, StreamKind::NonBlocking, priority)?)?;
    Ok(())
}

/// Null for a stream of a whole device.
#[entry_point]
fn cuStreamGetGreenCtx(hStream: CUstream, phCtx: Out<CUgreenCtx>) -> CuResult {
    phCtx.check()?;
    phCtx.set(green::handle_of(&*find(hStream, DefaultStream::Legacy)?)?)?;
    Ok(())
}
