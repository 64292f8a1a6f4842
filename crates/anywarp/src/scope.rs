//! Copies of borrowed host memory.

use crate::driver::Place;
use crate::{Error, Result, Stream, View, ViewMut};
use bytemuck::Pod;
use std::marker::PhantomData;

/// Where copies can be queued that borrow host memory: see [`Stream::scope`].
///
/// As with [`std::thread::scope`], what is borrowed stays so for `'scope`, which ends after the work that borrows it.
pub struct Scope<'scope, 'env: 'scope> {
    stream: &'scope Stream<'scope>,
    /// Neither lifetime may shrink, or memory could be used before the scope is over.
    invariant: PhantomData<(&'scope mut &'scope (), &'env mut &'env ())>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn new(stream: &'scope Stream<'scope>) -> Scope<'scope, 'env> {
        Scope { stream, invariant: PhantomData }
    }

    /// The stream that the copies are queued in. Launches between them belong there too.
    pub fn stream(&self) -> &Stream<'scope> {
        self.stream
    }

    /// Queues a copy to the device's memory, and returns. From [pinned](crate::PinnedBuffer) memory it runs beside the host;
    /// other memory may be copied before this returns.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths or another context.
    pub fn copy_from_host<'a, T: Pod>(
        &'scope self,
        to: impl Into<ViewMut<'a, T>>,
        from: &'scope [T],
    ) -> Result<()> {
        let to = to.into();
        self.stream.context().check_same(to.context(), "the memory")?;
        to.check_len(from.len())?;
        let host = Place::Host(from.as_ptr().expose_provenance() as u64);
        match size_of_val(from) {
            0 => Ok(()),
            // SAFETY: the slice is borrowed until the scope is over, which waits for the copy.
            bytes => unsafe { self.stream.raw().copy(Place::Device(to.address()), host, bytes) },
        }
    }

    /// Queues a copy from the device's memory, and returns.
    ///
    /// # Errors
    /// As for [`copy_from_host`](Self::copy_from_host).
    pub fn copy_to_host<'a, T: Pod>(
        &'scope self,
        to: &'scope mut [T],
        from: impl Into<View<'a, T>>,
    ) -> Result<()> {
        let from = from.into();
        self.stream.context().check_same(from.context(), "the memory")?;
        if to.len() != from.len() {
            let (there, here) = (from.len(), to.len());
            return Err(Error::arguments(format!("the device has {there} elements, the host {here}")));
        }
        let host = Place::Host(to.as_mut_ptr().expose_provenance() as u64);
        match size_of_val(to) {
            0 => Ok(()),
            // SAFETY: the slice is borrowed for writing until the scope is over, which waits for the copy; any bytes make a
            // `T`.
            bytes => unsafe { self.stream.raw().copy(host, Place::Device(from.address()), bytes) },
        }
    }
}

/// Waits when dropped until nothing of a stream runs any more.
pub(crate) struct Wait<'a>(pub &'a Stream<'a>);

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.0.raw().wait();
    }
}
