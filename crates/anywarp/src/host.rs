//! Memory that host and device both reach.

use crate::driver::MemoryKind;
use crate::{Context, Error, Result};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Memory at an address that is good on both sides.
struct Shared<'c, T: Pod> {
    start: NonNull<T>,
    len: usize,
    kind: MemoryKind,
    context: &'c Context,
    elements: PhantomData<T>,
}

// SAFETY: it owns its elements, as a box does, and refers to a context, which threads share.
unsafe impl<T: Pod + Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for Shared<'_, T> {}

impl<'c, T: Pod> Shared<'c, T> {
    fn allocate(context: &'c Context, kind: MemoryKind, len: usize) -> Result<Shared<'c, T>> {
        let address = context.allocate_bytes::<T>(kind, len)?;
        if !address.is_multiple_of(align_of::<T>() as u64) {
            context.raw().free(kind, address);
            let align = align_of::<T>();
            return Err(Error::arguments(format!("the driver's memory is not aligned to {align} bytes")));
        }
        let start = std::ptr::with_exposed_provenance_mut::<T>(address as usize);
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        // SAFETY: `len` elements have been allocated there, at an address that is aligned for them, and nobody else knows of
        // them. Nothing is written where there are no bytes.
        unsafe { start.write_bytes(0, len) };
        Ok(Shared { start, len, kind, context, elements: PhantomData })
    }

    fn address(&self) -> u64 {
        if self.len * size_of::<T>() == 0 { 0 } else { self.start.addr().get() as u64 }
    }

    fn elements(&self) -> &[T] {
        // SAFETY: `len` elements, which were set when allocated, live as long as `self`. Kernels do not write them
        // meanwhile, by the contract of their launch.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn elements_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> Drop for Shared<'_, T> {
    fn drop(&mut self) {
        if self.address() != 0 {
            self.context.raw().free(self.kind, self.address());
        }
    }
}

/// Host memory that the device reaches too. Copies from and to it run beside the host's work, and kernels can be given it.
///
/// It is a slice of the host's:
///
/// ```
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// let (stream, mut buffer) = (context.create_stream()?, context.zeroed::<u32>(4)?);
/// let mut staging = context.pinned::<u32>(4)?;
/// staging.copy_from_slice(&[1, 2, 3, 4]);
/// stream.scope(|scope| scope.copy_from_host(&mut buffer, &staging))?;
/// staging.fill(0); // the copy is over with the scope
/// assert_eq!(buffer.to_vec()?, [1, 2, 3, 4]);
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct PinnedBuffer<'c, T: Pod>(Shared<'c, T>);

impl<'c, T: Pod> PinnedBuffer<'c, T> {
    pub(crate) fn allocate(context: &'c Context, len: usize) -> Result<PinnedBuffer<'c, T>> {
        Shared::allocate(context, MemoryKind::Pinned, len).map(PinnedBuffer)
    }

    /// The address, as kernels see it; 0 for no bytes.
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Its context.
    pub fn context(&self) -> &'c Context {
        self.0.context
    }
}

impl<T: Pod> Deref for PinnedBuffer<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0.elements()
    }
}

impl<T: Pod> DerefMut for PinnedBuffer<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0.elements_mut()
    }
}

/// Memory that host and device take turns with, without copies.
///
/// ```
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// let mut values = context.managed::<u32>(4)?;
/// values.write()?.copy_from_slice(&[1, 2, 3, 4]);
/// // … kernels that are launched here see and change them …
/// assert_eq!(values.read()?, [1, 2, 3, 4]);
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct ManagedBuffer<'c, T: Pod>(Shared<'c, T>);

impl<'c, T: Pod> ManagedBuffer<'c, T> {
    pub(crate) fn allocate(context: &'c Context, len: usize) -> Result<ManagedBuffer<'c, T>> {
        Shared::allocate(context, MemoryKind::Managed, len).map(ManagedBuffer)
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The address, as kernels see it; 0 for no bytes.
    pub fn address(&self) -> u64 {
        self.0.address()
    }

    /// Its context.
    pub fn context(&self) -> &'c Context {
        self.0.context
    }

    /// Waits for all work of the context; then it is the host's turn to read.
    ///
    /// # Errors
    /// [`Fault`](crate::ErrorKind::Fault) if a kernel of the context has failed.
    pub fn read(&self) -> Result<&[T]> {
        self.0.context.synchronize()?;
        Ok(self.0.elements())
    }

    /// Waits for all work of the context; then it is the host's turn to write.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn write(&mut self) -> Result<&mut [T]> {
        self.0.context.synchronize()?;
        Ok(self.0.elements_mut())
    }
}
