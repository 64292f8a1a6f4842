//! Parts of device memory.

use crate::{Context, Error, Result};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// Elements of device memory, borrowed to be read: what `&[T]` is for the host's.
///
/// It cannot outlive the memory:
///
/// ```compile_fail,E0505
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// let buffer = context.zeroed::<u32>(8)?;
/// let half = buffer.slice(..4)?;
/// drop(buffer);
/// half.to_vec()?; // the memory would be gone
/// # Ok::<(), anywarp::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, T: Pod> {
    address: u64,
    len: usize,
    context: &'a Context,
    elements: PhantomData<&'a [T]>,
}

/// Elements of device memory, borrowed to be written: what `&mut [T]` is for the host's.
///
/// No element is in two of them:
///
/// ```compile_fail,E0499
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// let mut buffer = context.zeroed::<u32>(8)?;
/// let mut one = buffer.slice_mut(..5)?;
/// let mut other = buffer.slice_mut(3..)?; // overlaps: split_at_mut gives two that do not
/// one.clear()?;
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct ViewMut<'a, T: Pod> {
    view: View<'a, T>,
    elements: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> View<'a, T> {
    pub(crate) fn new(address: u64, len: usize, context: &'a Context) -> View<'a, T> {
        View { address, len, context, elements: PhantomData }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address, as kernels see it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its context.
    pub fn context(&self) -> &'a Context {
        self.context
    }

    /// Some of the elements.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for a range that is not within them.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<View<'a, T>> {
        let (start, end) = resolve(range, self.len)?;
        Ok(View::new(self.address + (start * size_of::<T>()) as u64, end - start, self.context))
    }

    /// Waits for all work of the context, then copies the elements to the host.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::zeroed(); self.len];
        self.copy_to(&mut elements)?;
        Ok(elements)
    }

    /// Waits for all work of the context, then copies the elements to as many on the host.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths.
    pub fn copy_to(&self, elements: &mut [T]) -> Result<()> {
        self.check_len(elements.len())?;
        self.context.read(self.address, elements)
    }

    pub(crate) fn bytes(&self) -> usize {
        // As many bytes have been allocated.
        self.len * size_of::<T>()
    }

    pub(crate) fn check_len(&self, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        let here = self.len;
        Err(Error::arguments(format!("the device's memory has {here} elements, the other side {len}")))
    }
}

impl<'a, T: Pod> ViewMut<'a, T> {
    pub(crate) fn new(address: u64, len: usize, context: &'a Context) -> ViewMut<'a, T> {
        ViewMut { view: View::new(address, len, context), elements: PhantomData }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.view.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.view.is_empty()
    }

    /// The address, as kernels see it.
    pub fn address(&self) -> u64 {
        self.view.address
    }

    /// Its context.
    pub fn context(&self) -> &'a Context {
        self.view.context
    }

    /// The same elements, to be read.
    pub fn as_view(&self) -> View<'_, T> {
        self.view
    }

    /// The same elements, for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { view: self.view, elements: PhantomData }
    }

    /// Some of the elements.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for a range that is not within them.
    pub fn slice_mut(self, range: impl RangeBounds<usize>) -> Result<ViewMut<'a, T>> {
        Ok(ViewMut { view: self.view.slice(range)?, elements: PhantomData })
    }

    /// The first `middle` elements, and the others.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) if there are not as many.
    pub fn split_at_mut(self, middle: usize) -> Result<(ViewMut<'a, T>, ViewMut<'a, T>)> {
        let (first, second) = (self.view.slice(..middle)?, self.view.slice(middle..)?);
        Ok((ViewMut { view: first, elements: PhantomData }, ViewMut { view: second, elements: PhantomData }))
    }

    /// Waits for all work of the context, then copies as many elements from the host.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths.
    pub fn copy_from(&mut self, elements: &[T]) -> Result<()> {
        self.check_len(elements.len())?;
        self.view.context.write(self.view.address, elements)
    }

    /// Waits for all work of the context, then sets every element to a value.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.view.context.synchronize()?;
        if matches!(size_of::<T>(), 1 | 2 | 4) {
            let stream = self.view.context.default_stream();
            stream.fill(self.reborrow(), value)?;
            return stream.synchronize();
        }
        // A piece at a time: as much memory again on the host could be too much.
        const PIECE: usize = 1 << 16;
        let values = vec![value; self.len().min(PIECE)];
        for start in (0..self.len()).step_by(PIECE) {
            let part = self.view.slice(start..self.len().min(start + PIECE))?;
            self.view.context.write(part.address, &values[..part.len])?;
        }
        Ok(())
    }

    /// Waits for all work of the context, then sets every byte to zero.
    pub fn clear(&mut self) -> Result<()> {
        if self.bytes() == 0 {
            return Ok(());
        }
        self.view.context.synchronize()?;
        let stream = self.view.context.default_stream();
        stream.raw().fill(self.address(), 0, 1, self.bytes())?;
        stream.synchronize()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.view.bytes()
    }

    pub(crate) fn check_len(&self, len: usize) -> Result<()> {
        self.view.check_len(len)
    }
}

impl<'a, T: Pod> From<&'a View<'_, T>> for View<'a, T> {
    fn from(view: &'a View<'_, T>) -> View<'a, T> {
        *view
    }
}

impl<'a, T: Pod> From<&'a ViewMut<'_, T>> for View<'a, T> {
    fn from(view: &'a ViewMut<'_, T>) -> View<'a, T> {
        view.view
    }
}

impl<'a, T: Pod> From<&'a mut ViewMut<'_, T>> for ViewMut<'a, T> {
    fn from(view: &'a mut ViewMut<'_, T>) -> ViewMut<'a, T> {
        ViewMut { view: view.view, elements: PhantomData }
    }
}

/// First element, and the one after the last.
fn resolve(range: impl RangeBounds<usize>, len: usize) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(start) => Some(*start),
        Bound::Excluded(before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.checked_add(1),
        Bound::Excluded(end) => Some(*end),
        Bound::Unbounded => Some(len),
    };
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= len => Ok((start, end)),
        _ => Err(Error::arguments(format!("the range is not within {len} elements"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_within_the_elements() {
        assert_eq!(resolve(.., 5).unwrap(), (0, 5));
        assert_eq!(resolve(2..=3, 5).unwrap(), (2, 4));
        assert_eq!(resolve(5..5, 5).unwrap(), (5, 5));
        for bad in [std::ops::Range { start: 3, end: 2 }, 0..6, 6..6] {
            assert!(resolve(bad.clone(), 5).is_err(), "{bad:?}");
        }
        assert!(resolve(0..=usize::MAX, 5).is_err());
    }
}
