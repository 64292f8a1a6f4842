//! Stream management.

use crate::contexts;
use crate::error::CuResult;
use crate::graphs;
use crate::green;
use crate::streams::{self, find};
use cuda_abi::args::Out;
use cuda_abi::driver::*;
use cuda_abi::shim::DefaultStream;
use device::StreamKind;
use entry_macros::entry_point;
use std::ffi::c_void;

#[entry_point]
fn cuStreamCreate(phStream: Out<CUstream>, Flags: u32) -> CuResult {
    phStream.check()?.set(streams::create(Flags, 0)?)?;
    Ok(())
}

/// A priority out of range becomes the nearest in it.
#[entry_point]
fn cuStreamCreateWithPriority(phStream: Out<CUstream>, flags: u32, priority: i32) -> CuResult {
    phStream.check()?.set(streams::create(flags, priority)?)?;
    Ok(())
}

#[entry_point]
fn cuStreamDestroy(hStream: CUstream) -> CuResult {
    streams::destroy(hStream)
}

/// Work in the stream goes on.
#[entry_point]
fn cuStreamDestroy_v2(hStream: CUstream) -> CuResult {
    streams::destroy(hStream)
}

#[entry_point(ptsz)]
fn cuStreamSynchronize(default: DefaultStream, hStream: CUstream) -> CuResult {
    find(hStream, default)?.synchronize()?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamQuery(default: DefaultStream, hStream: CUstream) -> CuResult {
    find(hStream, default)?.query()?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamWaitEvent(default: DefaultStream, hStream: CUstream, hEvent: CUevent, Flags: u32) -> CuResult {
    let event = streams::find_event(hEvent)?;
    let stream = find(hStream, default)?;
    match Flags {
        CU_EVENT_WAIT_DEFAULT => stream.wait_event(&event)?,
        // Makes a node of a graph; without a capture there is none.
        CU_EVENT_WAIT_EXTERNAL => stream.wait_event_in_graph(&event)?,
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetPriority(default: DefaultStream, hStream: CUstream, priority: Out<i32>) -> CuResult {
    priority.check()?.set(find(hStream, default)?.priority())?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetFlags(default: DefaultStream, hStream: CUstream, flags: Out<u32>) -> CuResult {
    let stream = find(hStream, default)?;
    stream.context()?.check()?;
    flags.check()?.set(streams::flags(&stream))?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetId(default: DefaultStream, hStream: CUstream, streamId: Out<u64>) -> CuResult {
    streamId.check()?.set(find(hStream, default)?.id())?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetCtx(default: DefaultStream, hStream: CUstream, pctx: Out<CUcontext>) -> CuResult {
    pctx.check()?.set(green::context_of(&*find(hStream, default)?)?)?;
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetCtx_v2(
    default: DefaultStream,
    hStream: CUstream,
    pCtx: Out<CUcontext>,
    pGreenCtx: Out<CUgreenCtx>,
) -> CuResult {
    let stream = find(hStream, default)?;
    pCtx.check()?.set(contexts::handle_of(stream.context()?.id()))?;
    pGreenCtx.set_if_wanted(green::handle_of(&stream)?);
    Ok(())
}

#[entry_point(ptsz)]
fn cuStreamGetDevice(default: DefaultStream, hStream: CUstream, device: Out<CUdevice>) -> CuResult {
    device.check()?.set(find(hStream, default)?.context()?.device() as CUdevice)?;
    Ok(())
}

/// Managed memory is accessible to every stream and to the host at all times, whatever it is attached to; so is memory of the
/// program. Of managed memory a whole allocation is attached.
#[entry_point(ptsz)]
fn cuStreamAttachMemAsync(
    default: DefaultStream,
    hStream: CUstream,
    dptr: CUdeviceptr,
    length: usize,
    flags: u32,
) -> CuResult {
    let stream = find(hStream, default)?;
    match flags {
        CU_MEM_ATTACH_GLOBAL | CU_MEM_ATTACH_HOST => {}
        // The legacy default stream is all streams, and so no single one.
        CU_MEM_ATTACH_SINGLE if stream.kind() != StreamKind::Legacy => {}
        _ => return Err(CUDA_ERROR_INVALID_VALUE.into()),
    }
    stream.attach(dptr.0, length as u64)?;
    Ok(())
}

/// The function runs when the work before it is done, and work after it waits; it must not call the driver.
#[entry_point(ptsz)]
unsafe fn cuLaunchHostFunc(
    default: DefaultStream,
    hStream: CUstream,
    r#fn: CUhostFn,
    userData: *mut c_void,
) -> CuResult {
    let function = r#fn.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let user_data = userData as usize;
    let stream = find(hStream, default)?;
    stream.host_function(move || {
        // SAFETY: the program gave the function with its argument to be called so.
        unsafe { function(user_data as *mut c_void) }
    })?;
    graphs::describe_captured_host(&stream, CUDA_HOST_NODE_PARAMS { r#fn, userData })
}

/// As `cuLaunchHostFunc`, but called whatever happened before, and told of it.
#[entry_point(ptsz)]
unsafe fn cuStreamAddCallback(
    default: DefaultStream,
    hStream: CUstream,
    callback: CUstreamCallback,
    userData: *mut c_void,
    flags: u32,
) -> CuResult {
    let callback = callback.ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if flags != 0 {
        return Err(CUDA_ERROR_INVALID_VALUE.into());
    }
    let user_data = userData as usize;
    find(hStream, default)?.callback(move |outcome| {
        let code = outcome.map_or_else(|error| crate::error::code(&error), |()| CUDA_SUCCESS);
        // SAFETY: the program gave the function with its argument to be called so.
        unsafe { callback(hStream, code, user_data as *mut c_void) }
    })?;
    Ok(())
}
