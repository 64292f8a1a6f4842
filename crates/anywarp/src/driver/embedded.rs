//! The device that is part of this crate.

use super::callback::{self, Callback};
use super::{DeviceInfo, MemoryKind, Place, own};
use crate::arguments::{Declared, Parameter};
use crate::{ContextOptions, DeviceLimits, Error, EventOptions, FunctionAttributes, Image, JitOptions};
use crate::{LaunchConfig, Limit, Result, Scheduling, StreamOptions};
use cuda_abi::driver::{CUDA_ERROR_INVALID_DEVICE, CUDA_VERSION};
use device::memory::{Fill, Side, Transfer};
use device::module::{Code, FunctionAttribute, Input, ParamClass, from_bytes, texts_of};
use device::occupancy::{BlockShape, best_block_size, blocks_per_multiprocessor};
use device::{Launch, Platform, limits};
use platform::WithoutCompiler;
use std::any::Any;
use std::sync::{Arc, OnceLock};

/// The devices of this process, made when first asked for and never dropped.
pub fn driver() -> Result<Arc<dyn super::Driver>> {
    static PLATFORM: OnceLock<device::Result<Platform>> = OnceLock::new();
    let made = PLATFORM.get_or_init(|| platform::from_environment(WithoutCompiler::Interpret));
    match made {
        Ok(platform) => Ok(Arc::new(Driver { platform })),
        Err(error) => Err(error.clone().into()),
    }
}

impl From<device::Error> for Error {
    fn from(error: device::Error) -> Error {
        use device::Error as E;
        let code = platform::code(&error);
        match error {
            E::InvalidImage(log)
            | E::InvalidPtx(log)
            | E::UnsupportedPtxVersion(log)
            | E::InvalidSource(log) => Error::new(code, log),
            error => Error::new(code, error.to_string()),
        }
    }
}

struct Driver {
    platform: &'static Platform,
}

impl super::Driver for Driver {
    fn version(&self) -> Result<u32> {
        Ok(CUDA_VERSION as u32)
    }

    fn devices(&self) -> Result<usize> {
        Ok(self.platform.devices().len())
    }

    fn device(&self, ordinal: usize) -> Result<Arc<dyn super::Device>> {
        let devices = self.platform.devices().len();
        let missing = || Error::new(CUDA_ERROR_INVALID_DEVICE, format!("device {ordinal} of {devices}"));
        let device = self.platform.device(ordinal).map_err(|_| missing())?.clone();
        let attributes = device.attributes();
        let info = DeviceInfo {
            ordinal,
            name: attributes.name.clone(),
            compute_capability: attributes.compute_capability,
            multiprocessors: attributes.multiprocessors,
            total_memory: attributes.total_memory,
            limits: DeviceLimits {
                block: limits::MAX_BLOCK,
                threads_per_block: limits::MAX_THREADS_PER_BLOCK,
                grid: limits::MAX_GRID,
                shared_per_block: attributes.multiprocessor().shared_per_block,
                parameters: limits::MAX_PARAMS,
            },
        };
        Ok(Arc::new(Device { platform: self.platform, device, info }))
    }
}

struct Device {
    platform: &'static Platform,
    device: Arc<device::Device>,
    info: DeviceInfo,
}

impl Device {
    fn context(&self, context: Arc<device::Context>, is_primary: bool) -> Box<dyn super::Context> {
        let device = self.device.clone();
        Box::new(Context(Arc::new(Inner { platform: self.platform, device, context, is_primary })))
    }
}

impl super::Device for Device {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn create_context(&self, options: ContextOptions) -> Result<Box<dyn super::Context>> {
        callback::check()?;
        let scheduling = match options.scheduling {
            Scheduling::Auto => device::Scheduling::Auto,
            Scheduling::Spin => device::Scheduling::Spin,
            Scheduling::Yield => device::Scheduling::Yield,
            Scheduling::Block => device::Scheduling::BlockingSync,
        };
        let flags = device::ContextFlags { scheduling, map_host: true, ..Default::default() };
        Ok(self.context(self.device.create_context(flags)?, false))
    }

    fn primary_context(&self) -> Result<Box<dyn super::Context>> {
        callback::check()?;
        Ok(self.context(self.device.primary().retain()?, true))
    }
}

struct Context(Arc<Inner>);

struct Inner {
    platform: &'static Platform,
    device: Arc<device::Device>,
    context: Arc<device::Context>,
    is_primary: bool,
}

impl Inner {
    /// Does something in the context; an error says all that is known about a kernel's failure.
    fn run<T>(&self, operation: impl FnOnce(&Arc<device::Context>) -> device::Result<T>) -> Result<T> {
        callback::check()?;
        operation(&self.context).map_err(|error| self.error(error))
    }

    fn error(&self, error: device::Error) -> Error {
        match (&error, self.context.fault()) {
            (device::Error::Fault(_), Some(report)) => Error::new(platform::code(&error), report.to_string()),
            _ => error.into(),
        }
    }
}

impl super::Context for Context {
    fn id(&self) -> (usize, u64) {
        (std::ptr::from_ref(self.0.platform).addr(), self.0.context.id().0)
    }

    fn end(&self) -> Result<()> {
        self.0.run(|context| match self.0.is_primary {
            true => self.0.device.primary().release(),
            false => context.destroy(),
        })
    }

    fn synchronize(&self) -> Result<()> {
        self.0.run(|context| context.synchronize())
    }

    fn limit(&self, limit: Limit) -> Result<u64> {
        self.0.run(|context| context.limit(limit_of(limit)))
    }

    fn set_limit(&self, limit: Limit, value: u64) -> Result<()> {
        self.0.run(|context| context.set_limit(limit_of(limit), value))
    }

    fn memory_info(&self) -> Result<(u64, u64)> {
        self.0.run(|context| context.memory_info())
    }

    fn stream_priorities(&self) -> Result<(i32, i32)> {
        Ok(limits::PRIORITIES)
    }

    fn load(&self, images: &[(&str, Image<'_>)], _: &JitOptions) -> Result<(Box<dyn super::Module>, String)> {
        let (major, minor) = self.0.context.attributes().compute_capability;
        let mut sm = major * 10 + minor;
        let mut texts = Vec::new();
        for (name, image) in images {
            match image {
                Image::Ptx(text) => texts.push((*name, (*text).to_owned())),
                Image::Fatbin(bytes) => {
                    let found = texts_of(&from_bytes(bytes)?, sm)?;
                    sm = sm.max(found.sm);
                    texts.extend(found.texts.into_iter().map(|text| (*name, text)));
                }
            }
        }
        let inputs: Vec<Input<'_>> = texts.iter().map(|(name, text)| Input { name, text }).collect();
        let module = self.0.run(|context| device::Module::load(context, Code::from_inputs(&inputs, sm)?))?;
        let kernels = module.code().kernels().len();
        let log = format!("{kernels} kernels for sm_{sm}; each is compiled at its first launch\n");
        Ok((Box::new(Module { module, inner: self.0.clone() }), log))
    }

    fn create_stream(&self, options: StreamOptions) -> Result<Box<dyn super::Stream>> {
        let kind = match options.non_blocking {
            true => device::StreamKind::NonBlocking,
            false => device::StreamKind::Blocking,
        };
        let stream = self.0.run(|context| context.create_stream(kind, options.priority))?;
        Ok(Box::new(Stream { stream, inner: self.0.clone() }))
    }

    fn default_stream(&self) -> Box<dyn super::Stream> {
        Box::new(Stream { stream: self.0.context.legacy_stream().clone(), inner: self.0.clone() })
    }

    fn create_event(&self, options: EventOptions) -> Result<Box<dyn super::Event>> {
        let flags = device::EventFlags {
            blocking_sync: options.blocking,
            disable_timing: !options.timing,
            interprocess: false,
        };
        let event = self.0.run(|context| device::Event::new(context, flags))?;
        Ok(Box::new(Event { event, inner: self.0.clone() }))
    }

    fn allocate(&self, kind: MemoryKind, bytes: usize) -> Result<u64> {
        let bytes = bytes as u64;
        self.0.run(|context| match kind {
            MemoryKind::Device => context.allocate(bytes),
            MemoryKind::Pinned => context.allocate_host(bytes, 0),
            MemoryKind::Managed => context.allocate_managed(bytes, false),
        })
    }

    fn free(&self, kind: MemoryKind, address: u64) {
        // In a callback it would wait for itself; a context that has failed frees its memory when it ends.
        let _ = self.0.run(|_| match kind {
            MemoryKind::Device | MemoryKind::Managed => self.0.platform.free(address),
            MemoryKind::Pinned => self.0.platform.free_host(address),
        });
    }

    unsafe fn copy(&self, to: Place, from: Place, bytes: usize) -> Result<()> {
        // SAFETY: the caller's contract.
        let transfer = unsafe { transfer(to, from, bytes) };
        self.0.run(|context| context.legacy_stream().copy_and_wait(transfer))
    }
}

fn limit_of(limit: Limit) -> device::Limit {
    match limit {
        Limit::StackSize => device::Limit::StackSize,
        Limit::PrintfBuffer => device::Limit::PrintfFifoSize,
        Limit::MallocHeap => device::Limit::MallocHeapSize,
    }
}

/// # Safety
/// As for [`Context::copy`](super::Context::copy), until the transfer is done.
unsafe fn transfer(to: Place, from: Place, bytes: usize) -> Transfer {
    let side = |place| match place {
        Place::Device(address) => Side::device(address),
        // SAFETY: the caller's contract.
        Place::Host(address) => unsafe { Side::any(address) },
    };
    Transfer::linear(side(to), side(from), bytes as u64)
}

struct Module {
    module: Arc<device::Module>,
    inner: Arc<Inner>,
}

impl super::Module for Module {
    fn function(&self, name: &str) -> Result<Box<dyn super::Function>> {
        let function = self.inner.run(|_| self.module.function(name))?;
        Ok(Box::new(Function { function, inner: self.inner.clone() }))
    }

    fn function_names(&self) -> Result<Vec<String>> {
        Ok(self.module.code().kernels().iter().map(|kernel| kernel.name().to_string()).collect())
    }

    fn variable(&self, name: &str) -> Result<(u64, usize)> {
        let global = self.inner.run(|_| self.module.global(name))?;
        Ok((global.address, global.size as usize))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // What a failing context has left to say, it has said to the operations before.
        let _ = self.inner.run(|_| self.module.unload());
    }
}

struct Function {
    function: Arc<device::Function>,
    inner: Arc<Inner>,
}

impl Function {
    fn attribute(&self, attribute: FunctionAttribute) -> Result<u32> {
        self.inner.run(|_| self.function.attribute(attribute))
    }
}

/// A kernel's parameters as its PTX declares them.
pub fn parameters(entry: &ptx::lower::Entry) -> Vec<Parameter> {
    let parameter = |param: &ptx::lower::EntryParam| Parameter {
        offset: param.offset as usize,
        size: param.size as usize,
        declared: match param.class {
            ParamClass::Integer => Declared::Integer,
            ParamClass::Float => Declared::Float,
            ParamClass::Bits => Declared::Bits,
        },
    };
    entry.params.iter().map(parameter).collect()
}

impl super::Function for Function {
    fn parameters(&self) -> Result<Vec<Parameter>> {
        Ok(parameters(self.function.kernel().entry()))
    }

    fn attributes(&self) -> Result<FunctionAttributes> {
        let version = |value: u32| (value / 10, value % 10);
        Ok(FunctionAttributes {
            max_threads_per_block: self.attribute(FunctionAttribute::MaxThreadsPerBlock)?,
            shared_bytes: self.attribute(FunctionAttribute::SharedSize)?,
            constant_bytes: self.attribute(FunctionAttribute::ConstSize)?,
            local_bytes: self.attribute(FunctionAttribute::LocalSize)?,
            registers: self.attribute(FunctionAttribute::Registers)?,
            ptx_version: version(self.attribute(FunctionAttribute::PtxVersion)?),
            binary_version: version(self.attribute(FunctionAttribute::BinaryVersion)?),
            max_dynamic_shared: self.attribute(FunctionAttribute::MaxDynamicSharedSize)?,
        })
    }

    fn set_max_dynamic_shared(&self, bytes: u32) -> Result<()> {
        self.inner.run(|_| self.function.set_max_dynamic_shared(bytes))
    }

    fn blocks_per_multiprocessor(&self, threads: u32, dynamic_shared: u32) -> Result<u32> {
        let fixed = self.attribute(FunctionAttribute::SharedSize)?;
        let most = self.attribute(FunctionAttribute::MaxDynamicSharedSize)?;
        if dynamic_shared > most {
            return Ok(0);
        }
        let of = self.inner.context.attributes().multiprocessor();
        Ok(blocks_per_multiprocessor(
            of,
            BlockShape { threads, shared: fixed.saturating_add(dynamic_shared) },
        ))
    }

    fn best_block(&self, dynamic_shared: u32) -> Result<(u32, u32)> {
        let fixed = self.attribute(FunctionAttribute::SharedSize)?;
        let attributes = self.inner.context.attributes();
        let (of, multiprocessors) = (attributes.multiprocessor(), attributes.multiprocessors);
        let most = self.function.kernel().declared_max_threads();
        Ok(best_block_size(of, fixed, most, multiprocessors, |_| dynamic_shared.into()))
    }

    unsafe fn launch(
        &self,
        stream: &dyn super::Stream,
        config: &LaunchConfig,
        _: &[Parameter],
        bytes: &mut [u8],
    ) -> Result<()> {
        let stream: &Stream = own(stream.as_any())?;
        let LaunchConfig { grid, block, shared, cooperative } = *config;
        let launch = Launch { grid, block, dynamic_shared: shared, cooperative, cluster: None };
        // SAFETY: the caller vouches for what the kernel does.
        self.inner.run(|_| unsafe { self.function.launch(&stream.stream, &launch, bytes) })
    }
}

struct Stream {
    stream: Arc<device::Stream>,
    inner: Arc<Inner>,
}

impl super::Stream for Stream {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn priority(&self) -> Result<i32> {
        Ok(self.stream.priority())
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.run(|_| self.stream.synchronize())
    }

    fn wait(&self) {
        // A callback has queued nothing that could run, and the stream waits for it.
        if !callback::is_inside()
            && let Some(last) = self.stream.last()
        {
            last.wait();
        }
    }

    fn is_done(&self) -> Result<bool> {
        self.inner.run(|_| done(self.stream.query()))
    }

    fn wait_for(&self, event: &dyn super::Event) -> Result<()> {
        let event: &Event = own(event.as_any())?;
        self.inner.run(|_| self.stream.wait_event(&event.event))
    }

    fn call_back(&self, callback: Callback) -> Result<()> {
        let inner = Arc::downgrade(&self.inner);
        let call = move |status: device::Result<()>| {
            let error = |error: device::Error| match inner.upgrade() {
                Some(inner) => inner.error(error),
                None => error.into(),
            };
            callback::run(callback, status.map_err(error));
        };
        self.inner.run(|_| self.stream.callback(call))
    }

    unsafe fn copy(&self, to: Place, from: Place, bytes: usize) -> Result<()> {
        // SAFETY: the caller's contract.
        let transfer = unsafe { transfer(to, from, bytes) };
        self.inner.run(|_| self.stream.copy(transfer))
    }

    fn fill(&self, address: u64, value: u32, element: usize, count: usize) -> Result<()> {
        let fill = Fill::linear(address, value, element as u32, count as u64);
        self.inner.run(|_| self.stream.fill(fill))
    }
}

struct Event {
    event: Arc<device::Event>,
    inner: Arc<Inner>,
}

impl super::Event for Event {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn record(&self, stream: &dyn super::Stream) -> Result<()> {
        let stream: &Stream = own(stream.as_any())?;
        self.inner.run(|_| self.event.record(&stream.stream))
    }

    fn synchronize(&self) -> Result<()> {
        self.inner.run(|_| self.event.synchronize())
    }

    fn is_done(&self) -> Result<bool> {
        self.inner.run(|_| done(self.event.query()))
    }

    fn elapsed_since(&self, earlier: &dyn super::Event) -> Result<f32> {
        let earlier: &Event = own(earlier.as_any())?;
        self.inner.run(|_| earlier.event.elapsed_until(&self.event))
    }
}

fn done(state: device::Result<()>) -> device::Result<bool> {
    match state {
        Ok(()) => Ok(true),
        Err(device::Error::NotReady) => Ok(false),
        Err(error) => Err(error),
    }
}
