//! Contexts of a loaded driver.

use super::super::{MemoryKind, Place, callback};
use super::module::load;
use super::stream::{Event, Stream};
use super::{Library, call, pointer};
use crate::{EventOptions, Image, JitOptions, Limit, Result, StreamOptions};
use cuda_abi::driver::*;
use std::sync::Arc;

pub struct Context(Arc<Inner>);

/// What the objects of a context share.
pub struct Inner {
    pub library: Arc<Library>,
    pub handle: CUcontext,
    device: CUdevice,
    is_primary: bool,
}

/// The context is the thread's current one while this lives; then what was current before is so again.
pub struct Current<'a>(&'a Inner);

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let _ = call!(self.0.library, cuCtxPopCurrent_v2(std::ptr::null_mut()));
    }
}

impl Inner {
    /// Makes the context current.
    pub fn enter(&self) -> Result<Current<'_>> {
        callback::check()?;
        call!(self.library, cuCtxPushCurrent_v2(self.handle))?;
        Ok(Current(self))
    }

    /// The device's compute capability as in `sm_90`.
    pub fn sm(&self) -> Result<u32> {
        let number = |attribute| {
            let mut value = 0;
            call!(self.library, cuDeviceGetAttribute(&mut value, attribute, self.device))?;
            Ok::<u32, crate::Error>(u32::try_from(value).unwrap_or(0))
        };
        let major = number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        Ok(major * 10 + number(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?)
    }
}

impl Context {
    pub fn new(library: Arc<Library>, handle: CUcontext, device: CUdevice, is_primary: bool) -> Context {
        Context(Arc::new(Inner { library, handle, device, is_primary }))
    }
}

impl super::super::Context for Context {
    fn id(&self) -> (usize, u64) {
        (Arc::as_ptr(&self.0.library).addr(), self.0.handle.0 as u64)
    }

    fn end(&self) -> Result<()> {
        callback::check()?;
        match self.0.is_primary {
            true => call!(self.0.library, cuDevicePrimaryCtxRelease_v2(self.0.device)),
            false => call!(self.0.library, cuCtxDestroy_v2(self.0.handle)),
        }
    }

    fn synchronize(&self) -> Result<()> {
        let _current = self.0.enter()?;
        call!(self.0.library, cuCtxSynchronize())
    }

    fn limit(&self, limit: Limit) -> Result<u64> {
        let _current = self.0.enter()?;
        let mut value = 0;
        call!(self.0.library, cuCtxGetLimit(&mut value, limit_of(limit)))?;
        Ok(value as u64)
    }

    fn set_limit(&self, limit: Limit, value: u64) -> Result<()> {
        let _current = self.0.enter()?;
        call!(self.0.library, cuCtxSetLimit(limit_of(limit), value as usize))
    }

    fn memory_info(&self) -> Result<(u64, u64)> {
        let _current = self.0.enter()?;
        let (mut free, mut total) = (0, 0);
        call!(self.0.library, cuMemGetInfo_v2(&mut free, &mut total))?;
        Ok((free as u64, total as u64))
    }

    fn stream_priorities(&self) -> Result<(i32, i32)> {
        let _current = self.0.enter()?;
        let (mut least, mut greatest) = (0, 0);
        call!(self.0.library, cuCtxGetStreamPriorityRange(&mut least, &mut greatest))?;
        Ok((least, greatest))
    }

    fn load(
        &self,
        images: &[(&str, Image<'_>)],
        options: &JitOptions,
    ) -> Result<(Box<dyn super::super::Module>, String)> {
        let (module, log) = load(&self.0, images, options)?;
        Ok((Box::new(module), log))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Box<dyn super::super::Stream>> {
        Ok(Box::new(Stream::new(&self.0, options)?))
    }

    fn default_stream(&self) -> Box<dyn super::super::Stream> {
        Box::new(Stream::legacy(&self.0))
    }

    fn create_event(&self, options: EventOptions) -> Result<Box<dyn super::super::Event>> {
        Ok(Box::new(Event::new(&self.0, options)?))
    }

    fn allocate(&self, kind: MemoryKind, bytes: usize) -> Result<u64> {
        let _current = self.0.enter()?;
        let (mut device, mut host) = (CUdeviceptr::default(), std::ptr::null_mut());
        match kind {
            MemoryKind::Device => call!(self.0.library, cuMemAlloc_v2(&mut device, bytes))?,
            MemoryKind::Managed => {
                call!(self.0.library, cuMemAllocManaged(&mut device, bytes, CU_MEM_ATTACH_GLOBAL))?;
            }
            MemoryKind::Pinned => {
                let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
                call!(self.0.library, cuMemHostAlloc(&mut host, bytes, flags))?;
                // In one address space with the host, as on every 64-bit system, the device's address is the same.
                device = CUdeviceptr(host.expose_provenance() as u64);
            }
        }
        Ok(device.0)
    }

    fn free(&self, kind: MemoryKind, address: u64) {
        let Ok(_current) = self.0.enter() else { return };
        // What a failing context has left to say, it has said to the operations before.
        let _ = call!(self.0.library, cuCtxSynchronize());
        let _ = match kind {
            MemoryKind::Device | MemoryKind::Managed => {
                call!(self.0.library, cuMemFree_v2(CUdeviceptr(address)))
            }
            MemoryKind::Pinned => call!(self.0.library, cuMemFreeHost(pointer(address))),
        };
    }

    unsafe fn copy(&self, to: Place, from: Place, bytes: usize) -> Result<()> {
        let _current = self.0.enter()?;
        // The caller lends host memory for the time of the copy.
        match (to, from) {
            (Place::Device(to), Place::Host(from)) => {
                call!(self.0.library, cuMemcpyHtoD_v2(CUdeviceptr(to), pointer(from), bytes))?;
                // The driver may return once it has read the bytes, and streams that do not block do not wait for it.
                call!(self.0.library, cuStreamSynchronize(CUstream::NULL))
            }
            (Place::Host(to), Place::Device(from)) => {
                call!(self.0.library, cuMemcpyDtoH_v2(pointer(to), CUdeviceptr(from), bytes))
            }
            (Place::Device(to) | Place::Host(to), Place::Device(from) | Place::Host(from)) => {
                call!(self.0.library, cuMemcpyDtoD_v2(CUdeviceptr(to), CUdeviceptr(from), bytes))?;
                // Between two places on the device the driver need not wait.
                call!(self.0.library, cuCtxSynchronize())
            }
        }
    }
}

fn limit_of(limit: Limit) -> CUlimit {
    match limit {
        Limit::StackSize => CU_LIMIT_STACK_SIZE,
        Limit::PrintfBuffer => CU_LIMIT_PRINTF_FIFO_SIZE,
        Limit::MallocHeap => CU_LIMIT_MALLOC_HEAP_SIZE,
    }
}
