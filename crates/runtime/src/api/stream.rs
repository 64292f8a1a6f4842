//! Stream management.

use super::prelude::*;
use crate::context;
use crate::streams::resolve;

/// Makes a stream that takes turns with the legacy default stream.
#[entry_point]
fn cudaStreamCreate(pStream: Out<cudaStream_t>) -> CudaResult {
    context::ensure_current()?;
    let stream = pStream.check()?;
    call!(cuStreamCreate(stream.as_ptr(), cudaStreamDefault))
}

/// Makes a stream. The driver's flags have the same numbers.
#[entry_point]
fn cudaStreamCreateWithFlags(pStream: Out<cudaStream_t>, flags: u32) -> CudaResult {
    context::ensure_current()?;
    let stream = pStream.check()?;
    call!(cuStreamCreate(stream.as_ptr(), flags))
}

/// Makes a stream with a priority: smaller numbers go first.
#[entry_point]
fn cudaStreamCreateWithPriority(pStream: Out<cudaStream_t>, flags: u32, priority: i32) -> CudaResult {
    context::ensure_current()?;
    let stream = pStream.check()?;
    call!(cuStreamCreateWithPriority(stream.as_ptr(), flags, priority))
}

/// Destroys a stream, when its work is done.
#[entry_point]
fn cudaStreamDestroy(stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamDestroy_v2(stream))
}

/// Whether the stream's work is done.
#[entry_point(ptsz)]
fn cudaStreamQuery(default: DefaultStream, stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamQuery(resolve(default, stream)))
}

/// Waits until the stream's work is done.
#[entry_point(ptsz)]
fn cudaStreamSynchronize(default: DefaultStream, stream: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamSynchronize(resolve(default, stream)))
}

/// Has later work of the stream wait for the event.
#[entry_point(ptsz)]
fn cudaStreamWaitEvent(
    default: DefaultStream,
    stream: cudaStream_t,
    event: cudaEvent_t,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamWaitEvent(resolve(default, stream), event, flags))
}

/// Has the host function called, with the stream and its state, when the work before it is done.
#[entry_point(ptsz)]
fn cudaStreamAddCallback(
    default: DefaultStream,
    stream: cudaStream_t,
    callback: cudaStreamCallback_t,
    userData: *mut c_void,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    // SAFETY: the types differ in the name of the code that the callback gets: a number of 32 bits in both.
    let callback = unsafe { std::mem::transmute::<cudaStreamCallback_t, CUstreamCallback>(callback) };
    call!(cuStreamAddCallback(resolve(default, stream), callback, userData, flags))
}

/// Ties managed memory to the stream.
#[entry_point(ptsz)]
fn cudaStreamAttachMemAsync(
    default: DefaultStream,
    stream: cudaStream_t,
    devPtr: *mut c_void,
    length: usize,
    flags: u32,
) -> CudaResult {
    context::ensure_current()?;
    let pointer = crate::copy::device_pointer(devPtr);
    call!(cuStreamAttachMemAsync(resolve(default, stream), pointer, length, flags))
}

/// The flags that the stream was made with.
#[entry_point(ptsz)]
fn cudaStreamGetFlags(default: DefaultStream, hStream: cudaStream_t, flags: Out<u32>) -> CudaResult {
    context::ensure_current()?;
    let flags = flags.check()?;
    call!(cuStreamGetFlags(resolve(default, hStream), flags.as_ptr()))
}

/// The stream's priority.
#[entry_point(ptsz)]
fn cudaStreamGetPriority(default: DefaultStream, hStream: cudaStream_t, priority: Out<i32>) -> CudaResult {
    context::ensure_current()?;
    let priority = priority.check()?;
    call!(cuStreamGetPriority(resolve(default, hStream), priority.as_ptr()))
}

/// A number that no other stream of the process has or had.
#[entry_point(ptsz)]
fn cudaStreamGetId(default: DefaultStream, hStream: cudaStream_t, streamId: Out<u64>) -> CudaResult {
    context::ensure_current()?;
    let id = streamId.check()?;
    call!(cuStreamGetId(resolve(default, hStream), id.as_ptr()))
}

/// The stream's device.
#[entry_point(ptsz)]
fn cudaStreamGetDevice(default: DefaultStream, hStream: cudaStream_t, device: Out<i32>) -> CudaResult {
    context::ensure_current()?;
    let device = device.check()?;
    call!(cuStreamGetDevice(resolve(default, hStream), device.as_ptr()))
}

/// Gives one stream another's attributes.
#[entry_point(ptsz)]
fn cudaStreamCopyAttributes(default: DefaultStream, dst: cudaStream_t, src: cudaStream_t) -> CudaResult {
    context::ensure_current()?;
    call!(cuStreamCopyAttributes(resolve(default, dst), resolve(default, src)))
}

/// One of the stream's attributes.
#[entry_point(ptsz)]
fn cudaStreamGetAttribute(
    default: DefaultStream,
    hStream: cudaStream_t,
    attr: cudaLaunchAttributeID,
    value_out: Out<cudaLaunchAttributeValue>,
) -> CudaResult {
    context::ensure_current()?;
    let value = value_out.check()?;
    call!(cuStreamGetAttribute(resolve(default, hStream), attr, value.as_ptr()))
}

/// Sets one of the stream's attributes.
#[entry_point(ptsz)]
fn cudaStreamSetAttribute(
    default: DefaultStream,
    hStream: cudaStream_t,
    attr: cudaLaunchAttributeID,
    value: In<cudaLaunchAttributeValue>,
) -> CudaResult {
    context::ensure_current()?;
    let value = value.get()?;
    call!(cuStreamSetAttribute(resolve(default, hStream), attr, &value))
}
