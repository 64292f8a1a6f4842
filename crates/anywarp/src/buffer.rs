//! Device memory.

use crate::context::free;
use crate::{Context, Error, Result};
use bytemuck::Pod;
use device::memory::{Fill, Side, Transfer};
use std::marker::PhantomData;

/// Elements in device memory, freed when the buffer is dropped (which waits for work that may use them).
pub struct Buffer<T: Pod> {
    /// 0 for no elements.
    address: u64,
    len: usize,
    context: Context,
    elements: PhantomData<T>,
}

impl<T: Pod> Buffer<T> {
    /// Memory whose contents are whatever was there.
    pub(crate) fn allocate(context: &Context, len: usize) -> Result<Buffer<T>> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(Error::OutOfMemory)? as u64;
        let address = match bytes {
            0 => 0,
            _ => context.inner().allocate(bytes).map_err(|error| context.error(error))?,
        };
        Ok(Buffer { address, len, context: context.clone(), elements: PhantomData })
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
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits for all work of the context, then copies the elements to the host.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut elements = vec![T::zeroed(); self.len];
        self.copy_to(&mut elements)?;
        Ok(elements)
    }

    /// Waits for all work of the context, then copies the elements to as many on the host.
    pub fn copy_to(&self, elements: &mut [T]) -> Result<()> {
        self.check_len(elements.len())?;
        self.context.synchronize()?;
        Buffer::read(&self.context, self.address, elements)
    }

    /// Waits for all work of the context, then copies as many elements from the host.
    pub fn copy_from(&mut self, elements: &[T]) -> Result<()> {
        self.check_len(elements.len())?;
        self.context.synchronize()?;
        Buffer::write(&self.context, self.address, elements)
    }

    /// Waits for all work of the context, then sets every byte to zero.
    pub fn clear(&mut self) -> Result<()> {
        if self.address == 0 {
            return Ok(());
        }
        self.context.synchronize()?;
        let fill = Fill::linear(self.address, 0, 1, (self.len * size_of::<T>()) as u64);
        let stream = self.context.inner().legacy_stream();
        let done = stream.fill(fill).and_then(|()| stream.synchronize());
        done.map_err(|error| self.context.error(error))
    }

    fn check_len(&self, len: usize) -> Result<()> {
        if len == self.len {
            return Ok(());
        }
        Err(Error::Arguments(format!("the buffer has {} elements, the host's slice {len}", self.len)))
    }

    /// Copies from device memory.
    pub(crate) fn read(context: &Context, address: u64, elements: &mut [T]) -> Result<()> {
        let bytes = size_of_val(elements) as u64;
        // SAFETY: the slice is borrowed for writing until the copy is done, and any bytes make a `T`.
        let host = unsafe { Side::any(elements.as_mut_ptr() as u64) };
        copy(context, Transfer::linear(host, Side::device(address), bytes))
    }

    /// Copies to device memory.
    pub(crate) fn write(context: &Context, address: u64, elements: &[T]) -> Result<()> {
        let bytes = size_of_val(elements) as u64;
        // SAFETY: the slice is borrowed until the copy is done, which only reads it.
        let host = unsafe { Side::any(elements.as_ptr() as u64) };
        copy(context, Transfer::linear(Side::device(address), host, bytes))
    }
}

fn copy(context: &Context, transfer: Transfer) -> Result<()> {
    if transfer.is_empty() {
        return Ok(());
    }
    context.inner().legacy_stream().copy_and_wait(transfer).map_err(|error| context.error(error))
}

impl<T: Pod> Drop for Buffer<T> {
    fn drop(&mut self) {
        if self.address != 0 {
            free(self.address);
        }
    }
}
