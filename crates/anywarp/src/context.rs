//! Contexts.

use crate::driver::{self, MemoryKind, Place};
use crate::{Buffer, Device, Error, Event, EventOptions, Image, JitOptions, ManagedBuffer, Module};
use crate::{PinnedBuffer, Result, Stream, StreamOptions};
use bytemuck::Pod;
use cuda_abi::driver::CUDA_ERROR_FILE_NOT_FOUND;
use std::path::Path;

/// A context: the owner of memory, modules, streams and events, and where a kernel's failure stays.
///
/// What it owns borrows it, so that nothing of it is left when it ends:
///
/// ```compile_fail,E0505
/// # use anywarp::Device;
/// let context = Device::get(0)?.create_context()?;
/// let buffer = context.zeroed::<u32>(4)?;
/// drop(context);
/// buffer.to_vec()?; // the buffer's memory would be gone
/// # Ok::<(), anywarp::Error>(())
/// ```
///
/// Nor can anything of it leave the scope that it lives in:
///
/// ```compile_fail,E0515
/// # use anywarp::{Device, Result, Stream};
/// fn stream<'a>() -> Result<Stream<'a>> {
///     let context = Device::get(0)?.create_context()?;
///     context.create_stream() // refers to a context that ends here
/// }
/// ```
///
/// A context that shall last as long as the process can be [leaked](Context::leak); those of the
/// [`runtime`](crate::runtime) are.
pub struct Context {
    raw: Box<dyn driver::Context>,
    device: Device,
    /// Ended by hand.
    is_over: bool,
}

impl Context {
    pub(crate) fn new(raw: Box<dyn driver::Context>, device: Device) -> Context {
        Context { raw, device, is_over: false }
    }

    pub(crate) fn raw(&self) -> &dyn driver::Context {
        &*self.raw
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Whether two values stand for the same context, as all do that [`Device::primary_context`] answers for one device.
    pub fn is_same(&self, other: &Context) -> bool {
        self.raw.id() == other.raw.id()
    }

    /// Loads PTX. Over the embedded platform, kernels are compiled when they are first launched.
    ///
    /// # Errors
    /// [`Ptx`](crate::ErrorKind::Ptx), with a message that names every place that is wrong or not supported, with its line.
    pub fn load_ptx(&self, ptx: &str) -> Result<Module<'_>> {
        self.load_with(&[("PTX", Image::Ptx(ptx))], &JitOptions::default())
    }

    /// Loads PTX from a file.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound) if the file cannot be read, and as for [`load_ptx`](Self::load_ptx).
    pub fn load_ptx_file(&self, path: impl AsRef<Path>) -> Result<Module<'_>> {
        let path = path.as_ref();
        let unreadable =
            |error| Error::new(CUDA_ERROR_FILE_NOT_FOUND, format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        self.load_with(&[(&path.to_string_lossy(), Image::Ptx(&text))], &JitOptions::default())
    }

    /// Loads a fat binary, as `nvcc -fatbin` writes it: the part that suits the device best.
    ///
    /// # Errors
    /// [`Ptx`](crate::ErrorKind::Ptx) if it is damaged (code 200) or has nothing for the device (209), and as for
    /// [`load_ptx`](Self::load_ptx).
    pub fn load_fatbin(&self, bytes: &[u8]) -> Result<Module<'_>> {
        self.load_with(&[("fat binary", Image::Fatbin(bytes))], &JitOptions::default())
    }

    /// Loads an image, or links several into one module: each finds the functions and variables of the others. Every image
    /// has a name, for messages.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for no image; as for [`load_ptx`](Self::load_ptx) and
    /// [`load_fatbin`](Self::load_fatbin); and [`Ptx`](crate::ErrorKind::Ptx) if names are defined twice or nowhere.
    pub fn load_with(&self, images: &[(&str, Image<'_>)], options: &JitOptions) -> Result<Module<'_>> {
        if images.is_empty() {
            return Err(Error::arguments("there is no image to load"));
        }
        let (module, log) = self.raw.load(images, options)?;
        Ok(Module::new(module, self, log))
    }

    /// Device memory for `len` elements, with whatever is there.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn allocate<T: Pod>(&self, len: usize) -> Result<Buffer<'_, T>> {
        Buffer::allocate(self, len)
    }

    /// Device memory for `len` elements, all bytes zero.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<Buffer<'_, T>> {
        let mut buffer = Buffer::allocate(self, len)?;
        buffer.clear()?;
        Ok(buffer)
    }

    /// Device memory with copies of these elements.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn buffer_from<T: Pod>(&self, elements: &[T]) -> Result<Buffer<'_, T>> {
        let mut buffer = Buffer::allocate(self, elements.len())?;
        buffer.copy_from(elements)?;
        Ok(buffer)
    }

    /// Host memory that the device reaches too, for `len` elements, all bytes zero.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedBuffer<'_, T>> {
        PinnedBuffer::allocate(self, len)
    }

    /// Memory for `len` elements that host and device take turns with, all bytes zero.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn managed<T: Pod>(&self, len: usize) -> Result<ManagedBuffer<'_, T>> {
        ManagedBuffer::allocate(self, len)
    }

    /// A stream whose work runs beside that of all other streams, the default stream included.
    pub fn create_stream(&self) -> Result<Stream<'_>> {
        self.create_stream_with(StreamOptions::default())
    }

    /// The same, with options.
    pub fn create_stream_with(&self, options: StreamOptions) -> Result<Stream<'_>> {
        Ok(Stream::new(self.raw.create_stream(options)?, self))
    }

    /// The stream that is always there. Its work is in order with that of all streams that are not
    /// [non-blocking](StreamOptions::non_blocking).
    pub fn default_stream(&self) -> Stream<'_> {
        Stream::new(self.raw.default_stream(), self)
    }

    /// The least and the most urgent priority of a stream; lower numbers are more urgent.
    pub fn stream_priorities(&self) -> Result<(i32, i32)> {
        self.raw.stream_priorities()
    }

    /// An event that keeps the time.
    pub fn create_event(&self) -> Result<Event<'_>> {
        self.create_event_with(EventOptions::default())
    }

    /// The same, with options.
    pub fn create_event_with(&self, options: EventOptions) -> Result<Event<'_>> {
        Ok(Event::new(self.raw.create_event(options)?, self))
    }

    /// Waits until all work in all streams of the context is done, and writes out what kernels have printed.
    ///
    /// # Errors
    /// [`Fault`](crate::ErrorKind::Fault) if a kernel of the context has failed.
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize()
    }

    /// Free and total bytes of the device's memory.
    pub fn memory_info(&self) -> Result<(u64, u64)> {
        self.raw.memory_info()
    }

    /// The value of a limit, in bytes.
    pub fn limit(&self, limit: Limit) -> Result<u64> {
        self.raw.limit(limit)
    }

    /// Sets a limit in bytes, for launches from now on; the driver may round it up.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) if it is too large, or if the heap of kernels is in use already.
    pub fn set_limit(&self, limit: Limit, bytes: u64) -> Result<()> {
        self.raw.set_limit(limit, bytes)
    }

    /// Ends the context, as dropping it does, and says what dropping cannot: whether that went well.
    pub fn destroy(mut self) -> Result<()> {
        self.is_over = true;
        self.raw.end()
    }

    /// Makes the context last as long as the process, so that what it owns can be kept anywhere.
    pub fn leak(self) -> &'static Context {
        Box::leak(Box::new(self))
    }

    pub(crate) fn allocate_bytes<T>(&self, kind: MemoryKind, len: usize) -> Result<u64> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| isize::try_from(*bytes).is_ok());
        match bytes.ok_or_else(Error::out_of_memory)? {
            0 => Ok(0),
            bytes => self.raw.allocate(kind, bytes),
        }
    }

    /// Waits for all work of the context, then copies from device memory.
    pub(crate) fn read<T: Pod>(&self, address: u64, elements: &mut [T]) -> Result<()> {
        let bytes = size_of_val(elements);
        if bytes == 0 {
            return Ok(());
        }
        self.synchronize()?;
        let host = Place::Host(elements.as_mut_ptr().expose_provenance() as u64);
        // SAFETY: the slice is borrowed for writing until the copy is done, and any bytes make a `T`.
        unsafe { self.raw.copy(host, Place::Device(address), bytes) }
    }

    /// Waits for all work of the context, then copies to device memory.
    pub(crate) fn write<T: Pod>(&self, address: u64, elements: &[T]) -> Result<()> {
        let bytes = size_of_val(elements);
        if bytes == 0 {
            return Ok(());
        }
        self.synchronize()?;
        let host = Place::Host(elements.as_ptr().expose_provenance() as u64);
        // SAFETY: the slice is borrowed until the copy is done, which only reads it.
        unsafe { self.raw.copy(Place::Device(address), host, bytes) }
    }

    /// An error unless the other context is this one.
    pub(crate) fn check_same(&self, other: &Context, what: &str) -> Result<()> {
        if self.is_same(other) {
            Ok(())
        } else {
            Err(Error::arguments(format!("{what} is of another context")))
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.is_over {
            // What a failing context has left to say, it has said to the operations before.
            let _ = self.raw.end();
        }
    }
}

/// What a context can be told to provide for its kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Bytes of stack of each thread, for kernels whose depth of calls is not known.
    StackSize,
    /// Bytes of what kernels print between two synchronisations; the oldest is lost when there is more.
    PrintfBuffer,
    /// Bytes of the heap that kernels allocate from.
    MallocHeap,
}
