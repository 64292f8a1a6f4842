//! Streams.

use crate::driver::{self, Place};
use crate::scope::Wait;
use crate::{Context, Error, Event, Result, Scope, View, ViewMut};
use bytemuck::Pod;

/// A queue of work, done in its order.
///
/// Dropping it lets the work that is queued come to its end.
pub struct Stream<'c> {
    raw: Box<dyn driver::Stream>,
    context: &'c Context,
}

/// What a stream is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamOptions {
    /// Its work runs beside that of the default stream, as it does by default; otherwise each waits for the other.
    pub non_blocking: bool,
    /// 0 by default, and lower for more urgent work; brought into the
    /// [range](crate::Context::stream_priorities) that the device has.
    pub priority: i32,
}

impl Default for StreamOptions {
    fn default() -> StreamOptions {
        StreamOptions { non_blocking: true, priority: 0 }
    }
}

impl StreamOptions {
    /// The same, beside the default stream or in order with it.
    pub fn with_non_blocking(self, non_blocking: bool) -> StreamOptions {
        StreamOptions { non_blocking, ..self }
    }

    /// The same with another priority.
    pub fn with_priority(self, priority: i32) -> StreamOptions {
        StreamOptions { priority, ..self }
    }
}

impl<'c> Stream<'c> {
    pub(crate) fn new(raw: Box<dyn driver::Stream>, context: &'c Context) -> Stream<'c> {
        Stream { raw, context }
    }

    pub(crate) fn raw(&self) -> &dyn driver::Stream {
        &*self.raw
    }

    /// Its context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// How urgent its work is: 0, or lower for more urgent work.
    pub fn priority(&self) -> Result<i32> {
        self.raw.priority()
    }

    /// Waits until all its work is done. Over the embedded platform the waiting thread does it where no other does.
    ///
    /// # Errors
    /// [`Fault`](crate::ErrorKind::Fault) if a kernel of the context has failed.
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize()
    }

    /// Whether all its work is done.
    ///
    /// # Errors
    /// As for [`synchronize`](Self::synchronize).
    pub fn is_done(&self) -> Result<bool> {
        self.raw.is_done()
    }

    /// Work queued from now on waits for what the event stands for now.
    pub fn wait_for(&self, event: &Event<'_>) -> Result<()> {
        self.context.check_same(event.context(), "the event")?;
        self.raw.wait_for(event.raw())
    }

    /// Calls a function of the host when all work queued so far is done; work queued later waits for it. It is not called
    /// if a kernel of the context has failed. A panic in it is reported by the panic hook and goes no further.
    ///
    /// CUDA cannot be used in the function: everything there is [`NotPermitted`](crate::ErrorKind::NotPermitted), and what
    /// is dropped there is not freed before its context ends.
    ///
    /// ```
    /// # let context = anywarp::Device::get(0)?.create_context()?;
    /// let stream = context.create_stream()?;
    /// let (send, receive) = std::sync::mpsc::channel();
    /// stream.call(move || send.send("done").unwrap())?;
    /// stream.synchronize()?;
    /// assert_eq!(receive.try_recv(), Ok("done"));
    /// # Ok::<(), anywarp::Error>(())
    /// ```
    pub fn call(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        self.call_with_status(|status| {
            if status.is_ok() {
                function();
            }
        })
    }

    /// As [`call`](Self::call), for a function that is called in any case and told whether the work before has failed.
    pub fn call_with_status(&self, function: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.raw.call_back(Box::new(function))
    }

    /// Queues a copy within the device's memory. The two may not overlap.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths or other contexts.
    pub fn copy<'a, 'b, T: Pod>(
        &self,
        to: impl Into<ViewMut<'a, T>>,
        from: impl Into<View<'b, T>>,
    ) -> Result<()> {
        let (to, from) = (to.into(), from.into());
        self.context.check_same(to.context(), "the destination")?;
        self.context.check_same(from.context(), "the source")?;
        to.check_len(from.len())?;
        match from.bytes() {
            0 => Ok(()),
            // SAFETY: there is no host memory in it; device memory is not freed before the stream's work is done.
            bytes => unsafe {
                self.raw.copy(Place::Device(to.address()), Place::Device(from.address()), bytes)
            },
        }
    }

    /// Queues the setting of all elements to a value, of 1, 2 or 4 bytes, or of equal bytes.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for other elements or another context.
    pub fn fill<'a, T: Pod>(&self, to: impl Into<ViewMut<'a, T>>, value: T) -> Result<()> {
        let to = to.into();
        self.context.check_same(to.context(), "the memory")?;
        let element = bytemuck::bytes_of(&value);
        if to.bytes() == 0 {
            return Ok(());
        }
        let (bytes, size) = match element {
            [first, rest @ ..] if rest.iter().all(|byte| byte == first) => (&element[..1], 1),
            _ => (element, element.len()),
        };
        let mut word = [0; 4];
        let Some(place) = word.get_mut(..size).filter(|_| matches!(size, 1 | 2 | 4)) else {
            return Err(Error::arguments(format!("elements of {size} bytes cannot be filled")));
        };
        place.copy_from_slice(bytes);
        self.raw.fill(to.address(), u32::from_le_bytes(word), size, to.bytes() / size)
    }

    /// Queues a copy of host memory that the copy takes along: it is dropped when the copy is done.
    ///
    /// ```
    /// # let context = anywarp::Device::get(0)?.create_context()?;
    /// let stream = context.create_stream()?;
    /// let mut buffer = context.zeroed::<u32>(3)?;
    /// stream.upload(&mut buffer, vec![1, 2, 3])?;
    /// assert_eq!(buffer.to_vec()?, [1, 2, 3]);
    /// # Ok::<(), anywarp::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for different lengths or another context.
    pub fn upload<'a, T: Pod + Send>(&self, to: impl Into<ViewMut<'a, T>>, elements: Vec<T>) -> Result<()> {
        let to = to.into();
        self.context.check_same(to.context(), "the memory")?;
        to.check_len(elements.len())?;
        if to.bytes() == 0 {
            return Ok(());
        }
        let host = Place::Host(elements.as_ptr().expose_provenance() as u64);
        // SAFETY: the elements live until the copy is done: only the callback behind it drops them.
        unsafe { self.raw.copy(Place::Device(to.address()), host, to.bytes())? };
        let elements = KeepUntil(Some(elements));
        self.raw.call_back(Box::new(move |_| drop(elements.take())))
    }

    /// Queues copies between device memory and *borrowed* host memory: `work` is given a [`Scope`] that can, and this
    /// returns only when everything in the stream is done, whether `work` succeeds, fails or panics.
    ///
    /// ```
    /// # let context = anywarp::Device::get(0)?.create_context()?;
    /// let stream = context.create_stream()?;
    /// let mut buffer = context.zeroed::<u32>(4)?;
    /// let (input, mut output) = ([1, 2, 3, 4], [0; 4]);
    /// stream.scope(|scope| {
    ///     scope.copy_from_host(&mut buffer, &input)?;
    ///     scope.copy_to_host(&mut output, &buffer)
    /// })?;
    /// assert_eq!(output, input);
    /// # Ok::<(), anywarp::Error>(())
    /// ```
    ///
    /// Inside the scope the host memory of a copy cannot be used otherwise:
    ///
    /// ```compile_fail,E0506
    /// # let context = anywarp::Device::get(0)?.create_context()?;
    /// # let stream = context.create_stream()?;
    /// # let buffer = context.zeroed::<u32>(4)?;
    /// let mut output = [0; 4];
    /// stream.scope(|scope| {
    ///     scope.copy_to_host(&mut output, &buffer)?;
    ///     output[0] = 1; // the copy may still be under way
    ///     Ok(())
    /// })?;
    /// # Ok::<(), anywarp::Error>(())
    /// ```
    ///
    /// nor can it be memory that ends before the scope does:
    ///
    /// ```compile_fail,E0597
    /// # let context = anywarp::Device::get(0)?.create_context()?;
    /// # let stream = context.create_stream()?;
    /// # let mut buffer = context.zeroed::<u32>(4)?;
    /// stream.scope(|scope| {
    ///     let input = [1, 2, 3, 4];
    ///     scope.copy_from_host(&mut buffer, &input) // `input` ends before the copy
    /// })?;
    /// # Ok::<(), anywarp::Error>(())
    /// ```
    ///
    /// # Errors
    /// That of `work`; else [`Fault`](crate::ErrorKind::Fault) if a kernel of the context has failed.
    pub fn scope<'env, R>(
        &self,
        work: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> Result<R>,
    ) -> Result<R> {
        let waits = Wait(self);
        let scope = Scope::new(self);
        let outcome = work(&scope)?;
        drop(waits);
        self.synchronize()?;
        Ok(outcome)
    }
}

/// Host memory of a copy in flight. If the callback that frees it cannot be queued, or is dropped uncalled, the copy may still
/// run: then the memory stays.
struct KeepUntil<T>(Option<T>);

impl<T> KeepUntil<T> {
    fn take(mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for KeepUntil<T> {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}
