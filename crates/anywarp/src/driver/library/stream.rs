//! Streams and events of a loaded driver.

use super::super::callback::{self, Callback};
use super::super::{Place, own};
use super::context::Inner;
use super::{call, check, pointer};
use crate::{Error, EventOptions, Result, StreamOptions};
use cuda_abi::driver::*;
use std::any::Any;
use std::ffi::c_void;
use std::sync::Arc;

pub struct Stream {
    pub inner: Arc<Inner>,
    pub handle: CUstream,
}

impl Stream {
    pub fn new(inner: &Arc<Inner>, options: StreamOptions) -> Result<Stream> {
        let _current = inner.enter()?;
        let flags = if options.non_blocking { CU_STREAM_NON_BLOCKING } else { CU_STREAM_DEFAULT };
        let mut handle = CUstream::NULL;
        call!(inner.library, cuStreamCreateWithPriority(&mut handle, flags, options.priority))?;
        Ok(Stream { inner: inner.clone(), handle })
    }

    pub fn legacy(inner: &Arc<Inner>) -> Stream {
        Stream { inner: inner.clone(), handle: CU_STREAM_LEGACY }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.handle == CU_STREAM_LEGACY {
            return;
        }
        // The driver lets the work that is queued come to its end.
        if let Ok(_current) = self.inner.enter() {
            let _ = call!(self.inner.library, cuStreamDestroy_v2(self.handle));
        }
    }
}

impl super::super::Stream for Stream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn priority(&self) -> Result<i32> {
        let _current = self.inner.enter()?;
        let mut priority = 0;
        call!(self.inner.library, cuStreamGetPriority(self.handle, &mut priority))?;
        Ok(priority)
    }

    fn synchronize(&self) -> Result<()> {
        let _current = self.inner.enter()?;
        call!(self.inner.library, cuStreamSynchronize(self.handle))
    }

    fn wait(&self) {
        // A callback has queued nothing that could run, and the stream waits for it. Where the context has failed, nothing
        // runs any more: that is when the driver reports it.
        if let Ok(_current) = self.inner.enter() {
            let waited = call!(self.inner.library, cuStreamSynchronize(self.handle));
            if waited.is_err() {
                let _ = call!(self.inner.library, cuCtxSynchronize());
            }
        }
    }

    fn is_done(&self) -> Result<bool> {
        let _current = self.inner.enter()?;
        done(call!(self.inner.library, cuStreamQuery(self.handle)))
    }

    fn wait_for(&self, event: &dyn super::super::Event) -> Result<()> {
        let event: &Event = own(event.as_any())?;
        let _current = self.inner.enter()?;
        call!(self.inner.library, cuStreamWaitEvent(self.handle, event.handle, CU_EVENT_WAIT_DEFAULT))
    }

    fn call_back(&self, callback: Callback) -> Result<()> {
        let _current = self.inner.enter()?;
        let data = Box::into_raw(Box::new(callback));
        // This kind of callback is called after a failure too, so that what it owns does not stay behind.
        let added = call!(
            self.inner.library,
            cuStreamAddCallback(self.handle, Some(trampoline), data.cast::<c_void>(), 0)
        );
        added.inspect_err(|_| {
            // SAFETY: the driver has refused it, and so does not call it.
            drop(unsafe { Box::from_raw(data) });
        })
    }

    unsafe fn copy(&self, to: Place, from: Place, bytes: usize) -> Result<()> {
        let _current = self.inner.enter()?;
        let (library, stream) = (&self.inner.library, self.handle);
        // The caller lends host memory until the copy is done.
        match (to, from) {
            (Place::Device(to), Place::Host(from)) => {
                call!(library, cuMemcpyHtoDAsync_v2(CUdeviceptr(to), pointer(from), bytes, stream))
            }
            (Place::Host(to), Place::Device(from)) => {
                call!(library, cuMemcpyDtoHAsync_v2(pointer(to), CUdeviceptr(from), bytes, stream))
            }
            (Place::Device(to) | Place::Host(to), Place::Device(from) | Place::Host(from)) => {
                call!(library, cuMemcpyDtoDAsync_v2(CUdeviceptr(to), CUdeviceptr(from), bytes, stream))
            }
        }
    }

    fn fill(&self, address: u64, value: u32, element: usize, count: usize) -> Result<()> {
        let _current = self.inner.enter()?;
        let (library, stream, address) = (&self.inner.library, self.handle, CUdeviceptr(address));
        match element {
            1 => call!(library, cuMemsetD8Async(address, value as u8, count, stream)),
            2 => call!(library, cuMemsetD16Async(address, value as u16, count, stream)),
            4 => call!(library, cuMemsetD32Async(address, value, count, stream)),
            _ => Err(Error::arguments(format!("elements of {element} bytes cannot be filled"))),
        }
    }
}

/// Calls back what a stream was given.
///
/// # Safety
/// The datum is what `call_back` has given the driver, and comes once.
unsafe extern "C" fn trampoline(_: CUstream, status: CUresult, data: *mut c_void) {
    // SAFETY: the driver hands over, once, what `call_back` made of a box.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    callback::run(*callback, check(status));
}

pub struct Event {
    inner: Arc<Inner>,
    handle: CUevent,
}

impl Event {
    pub fn new(inner: &Arc<Inner>, options: EventOptions) -> Result<Event> {
        let _current = inner.enter()?;
        let mut flags = CU_EVENT_DEFAULT;
        if options.blocking {
            flags |= CU_EVENT_BLOCKING_SYNC;
        }
        if !options.timing {
            flags |= CU_EVENT_DISABLE_TIMING;
        }
        let mut handle = CUevent::NULL;
        call!(inner.library, cuEventCreate(&mut handle, flags))?;
        Ok(Event { inner: inner.clone(), handle })
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.inner.enter() {
            let _ = call!(self.inner.library, cuEventDestroy_v2(self.handle));
        }
    }
}

impl super::super::Event for Event {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn record(&self, stream: &dyn super::super::Stream) -> Result<()> {
        let stream: &Stream = own(stream.as_any())?;
        let _current = self.inner.enter()?;
        call!(self.inner.library, cuEventRecord(self.handle, stream.handle))
    }

    fn synchronize(&self) -> Result<()> {
        let _current = self.inner.enter()?;
        call!(self.inner.library, cuEventSynchronize(self.handle))
    }

    fn is_done(&self) -> Result<bool> {
        let _current = self.inner.enter()?;
        done(call!(self.inner.library, cuEventQuery(self.handle)))
    }

    fn elapsed_since(&self, earlier: &dyn super::super::Event) -> Result<f32> {
        let earlier: &Event = own(earlier.as_any())?;
        let _current = self.inner.enter()?;
        let mut milliseconds = 0.0;
        call!(self.inner.library, cuEventElapsedTime(&mut milliseconds, earlier.handle, self.handle))?;
        Ok(milliseconds)
    }
}

fn done(state: Result<()>) -> Result<bool> {
    match state {
        Ok(()) => Ok(true),
        Err(error) if error.code() == CUDA_ERROR_NOT_READY.0 => Ok(false),
        Err(error) => Err(error),
    }
}
