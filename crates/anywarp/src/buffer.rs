//! Device memory.

use crate::driver::MemoryKind;
use crate::{Context, Result, View, ViewMut};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// Elements in device memory, freed when the buffer is dropped, which waits for work that may use them.
///
/// What reads or writes it from the host waits for all work of the context first. For copies beside the host's work see
/// [`Stream`](crate::Stream).
///
/// ```
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// let mut buffer = context.buffer_from(&[1_u32, 2, 3, 4])?;
/// buffer.slice_mut(1..3)?.fill(9)?;
/// assert_eq!(buffer.to_vec()?, [1, 9, 9, 4]);
/// let (mut first, mut second) = buffer.view_mut().split_at_mut(2)?;
/// first.copy_from(&[5, 6])?;
/// second.clear()?;
/// assert_eq!(buffer.to_vec()?, [5, 6, 0, 0]);
/// assert!(buffer.slice(3..9).is_err());
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct Buffer<'c, T: Pod> {
    /// 0 for no bytes.
    address: u64,
    len: usize,
    context: &'c Context,
    elements: PhantomData<T>,
}

impl<'c, T: Pod> Buffer<'c, T> {
    pub(crate) fn allocate(context: &'c Context, len: usize) -> Result<Buffer<'c, T>> {
        let address = context.allocate_bytes::<T>(MemoryKind::Device, len)?;
        Ok(Buffer { address, len, context, elements: PhantomData })
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address, as kernels see it; 0 for no bytes.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// All elements, to be read.
    pub fn view(&self) -> View<'_, T> {
        View::new(self.address, self.len, self.context)
    }

    /// All elements, to be written.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        ViewMut::new(self.address, self.len, self.context)
    }

    /// Some elements, to be read.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for a range that is not within the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<View<'_, T>> {
        self.view().slice(range)
    }

    /// Some elements, to be written.
    ///
    /// # Errors
    /// As for [`slice`](Self::slice).
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<ViewMut<'_, T>> {
        self.view_mut().slice_mut(range)
    }

    /// Waits for all work of the context, then copies the elements to the host.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// Waits for all work of the context, then copies the elements to as many on the host.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths.
    pub fn copy_to(&self, elements: &mut [T]) -> Result<()> {
        self.view().copy_to(elements)
    }

    /// Waits for all work of the context, then copies as many elements from the host.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths.
    pub fn copy_from(&mut self, elements: &[T]) -> Result<()> {
        self.view_mut().copy_from(elements)
    }

    /// Waits for all work of the context, then sets every element to a value.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.view_mut().fill(value)
    }

    /// Waits for all work of the context, then sets every byte to zero.
    pub fn clear(&mut self) -> Result<()> {
        self.view_mut().clear()
    }
}

impl<T: Pod> Drop for Buffer<'_, T> {
    fn drop(&mut self) {
        if self.address != 0 {
            self.context.raw().free(MemoryKind::Device, self.address);
        }
    }
}

impl<'a, T: Pod> From<&'a Buffer<'_, T>> for View<'a, T> {
    fn from(buffer: &'a Buffer<'_, T>) -> View<'a, T> {
        buffer.view()
    }
}

impl<'a, T: Pod> From<&'a mut Buffer<'_, T>> for ViewMut<'a, T> {
    fn from(buffer: &'a mut Buffer<'_, T>) -> ViewMut<'a, T> {
        buffer.view_mut()
    }
}
