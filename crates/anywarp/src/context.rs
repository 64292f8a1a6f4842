//! Contexts and modules.

use crate::platform::platform;
use crate::{Buffer, Error, Event, Function, Result, Stream};
use bytemuck::Pod;
use device::module::{Code, Input};
use std::path::Path;
use std::sync::Arc;

/// A context: the owner of memory, modules, streams and events, and where a kernel's failure stays.
///
/// Clones are the same context; `==` says whether two are.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    context: Arc<device::Context>,
    default_stream: Stream,
    /// The device whose primary context this is, which counts its users.
    primary_of: Option<Arc<device::Device>>,
}

impl Context {
    pub(crate) fn own(context: Arc<device::Context>) -> Context {
        Context::new(context, None)
    }

    pub(crate) fn primary(context: Arc<device::Context>, device: Arc<device::Device>) -> Context {
        Context::new(context, Some(device))
    }

    fn new(context: Arc<device::Context>, primary_of: Option<Arc<device::Device>>) -> Context {
        // It does not keep the context alive, which owns it.
        let default_stream = Stream::new(context.legacy_stream().clone(), None);
        Context(Arc::new(Inner { context, default_stream, primary_of }))
    }

    pub(crate) fn inner(&self) -> &Arc<device::Context> {
        &self.0.context
    }

    /// Loads PTX. Errors name every place that is wrong; kernels are compiled when first launched.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module> {
        self.load_linked(&[("ptx", ptx)])
    }

    /// Loads PTX from a file.
    pub fn load_ptx_file(&self, path: impl AsRef<Path>) -> Result<Module> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| Error::Device(format!("{}: {error}", path.display())))?;
        self.load_linked(&[(&path.to_string_lossy(), &text)])
    }

    /// Links several PTX texts, each with a name for messages, and loads the result.
    pub fn load_linked(&self, texts: &[(&str, &str)]) -> Result<Module> {
        let inputs: Vec<Input<'_>> = texts.iter().map(|&(name, text)| Input { name, text }).collect();
        let (major, minor) = self.inner().attributes().compute_capability;
        let code = Code::from_inputs(&inputs, major * 10 + minor).map_err(Error::new)?;
        let module = device::Module::load(self.inner(), code).map_err(|error| self.error(error))?;
        Ok(Module { module, context: self.clone() })
    }

    /// A buffer with copies of these elements.
    pub fn buffer_from<T: Pod>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let mut buffer = Buffer::allocate(self, elements.len())?;
        buffer.copy_from(elements)?;
        Ok(buffer)
    }

    /// A buffer of elements whose bytes are all zero.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<T>> {
        let mut buffer = Buffer::allocate(self, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// A stream whose work runs beside that of other streams.
    pub fn create_stream(&self) -> Result<Stream> {
        let stream = self.inner().create_stream(device::StreamKind::NonBlocking, 0);
        Ok(Stream::new(stream.map_err(|error| self.error(error))?, Some(self.clone())))
    }

    /// The stream that is always there.
    pub fn default_stream(&self) -> &Stream {
        &self.0.default_stream
    }

    /// An event that keeps the time.
    pub fn create_event(&self) -> Result<Event> {
        let event = device::Event::new(self.inner(), device::EventFlags::default());
        Ok(Event::new(event.map_err(|error| self.error(error))?, self.clone()))
    }

    /// Waits until all work in all streams of the context is done.
    pub fn synchronize(&self) -> Result<()> {
        self.inner().synchronize().map_err(|error| self.error(error))
    }

    /// Free bytes of the device's memory.
    pub fn free_memory(&self) -> Result<u64> {
        self.inner().memory_info().map(|(free, _)| free).map_err(|error| self.error(error))
    }

    /// An error with all that is known about a kernel's failure.
    pub(crate) fn error(&self, error: device::Error) -> Error {
        match (&error, self.inner().fault()) {
            (device::Error::Fault(_), Some(report)) => Error::Fault(report.to_string()),
            _ => Error::new(error),
        }
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Context) -> bool {
        Arc::ptr_eq(self.inner(), other.inner())
    }
}

impl Eq for Context {}

impl Drop for Inner {
    fn drop(&mut self) {
        // What a failing context has left to say, it has said to the operations before.
        let _ = match &self.primary_of {
            Some(device) => device.primary().release(),
            None => self.context.destroy(),
        };
    }
}

/// Frees memory of a context, after its work.
pub(crate) fn free(address: u64) {
    if let Ok(platform) = platform() {
        // A context that has failed still frees its memory when it ends.
        let _ = platform.free(address);
    }
}

/// PTX loaded into a context.
#[derive(Clone)]
pub struct Module {
    module: Arc<device::Module>,
    context: Context,
}

impl Module {
    /// The kernel of this name.
    pub fn function(&self, name: &str) -> Result<Function> {
        let function = self.module.function(name).map_err(|error| self.error(error, name))?;
        Ok(Function::new(function, self.clone()))
    }

    /// The names of all kernels, in the order of the text.
    pub fn function_names(&self) -> Vec<String> {
        self.module.code().kernels().iter().map(|kernel| kernel.name().to_string()).collect()
    }

    /// A copy of a variable of module scope.
    pub fn read_variable<T: Pod>(&self, name: &str) -> Result<T> {
        let address = self.variable(name, size_of::<T>())?;
        self.context.synchronize()?;
        let mut value = T::zeroed();
        Buffer::read(&self.context, address, std::slice::from_mut(&mut value))?;
        Ok(value)
    }

    /// Sets a variable of module scope, for kernels launched from now on.
    pub fn write_variable<T: Pod>(&self, name: &str, value: T) -> Result<()> {
        let address = self.variable(name, size_of::<T>())?;
        self.context.synchronize()?;
        Buffer::write(&self.context, address, &[value])
    }

    fn variable(&self, name: &str, size: usize) -> Result<u64> {
        let global = self.module.global(name).map_err(|error| self.error(error, name))?;
        if global.size != size as u64 {
            return Err(Error::Arguments(format!("{name} has {} bytes, not {size}", global.size)));
        }
        Ok(global.address)
    }

    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    fn error(&self, error: device::Error, name: &str) -> Error {
        match error {
            device::Error::NotFound => Error::NotFound(name.to_owned()),
            other => self.context.error(other),
        }
    }
}
