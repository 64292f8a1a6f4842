//! Events.

use crate::driver;
use crate::{Context, Result, Stream};
use std::time::Duration;

/// A point in a stream, to wait for and to measure between.
///
/// ```
/// # let context = anywarp::Device::get(0)?.create_context()?;
/// let stream = context.create_stream()?;
/// let (begin, end) = (context.create_event()?, context.create_event()?);
/// begin.record(&stream)?;
/// let mut buffer = context.zeroed::<u32>(1 << 16)?;
/// stream.fill(&mut buffer, 7)?;
/// end.record(&stream)?;
/// end.synchronize()?;
/// println!("{:?}", end.elapsed_since(&begin)?);
/// # Ok::<(), anywarp::Error>(())
/// ```
pub struct Event<'c> {
    raw: Box<dyn driver::Event>,
    context: &'c Context,
}

/// What an event is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventOptions {
    /// It keeps the time, as it does by default.
    pub timing: bool,
    /// Threads that wait for it sleep: a hint.
    pub blocking: bool,
}

impl Default for EventOptions {
    fn default() -> EventOptions {
        EventOptions { timing: true, blocking: false }
    }
}

impl EventOptions {
    /// The same, keeping the time or not.
    pub fn with_timing(self, timing: bool) -> EventOptions {
        EventOptions { timing, ..self }
    }

    /// The same, with threads that wait asleep or as the context says.
    pub fn with_blocking(self, blocking: bool) -> EventOptions {
        EventOptions { blocking, ..self }
    }
}

impl<'c> Event<'c> {
    pub(crate) fn new(raw: Box<dyn driver::Event>, context: &'c Context) -> Event<'c> {
        Event { raw, context }
    }

    pub(crate) fn raw(&self) -> &dyn driver::Event {
        &*self.raw
    }

    /// Its context.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// From now on it stands for all that has been queued in the stream.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) for a stream of another context.
    pub fn record(&self, stream: &Stream<'_>) -> Result<()> {
        self.context.check_same(stream.context(), "the stream")?;
        self.raw.record(stream.raw())
    }

    /// Waits until what it stands for is done. An event that was never recorded stands for nothing.
    ///
    /// # Errors
    /// [`Fault`](crate::ErrorKind::Fault) if a kernel of the context has failed.
    pub fn synchronize(&self) -> Result<()> {
        self.raw.synchronize()
    }

    /// Whether what it stands for is done.
    ///
    /// # Errors
    /// As for [`synchronize`](Self::synchronize).
    pub fn is_done(&self) -> Result<bool> {
        self.raw.is_done()
    }

    /// The time from an earlier event to this one; zero if this one came first.
    ///
    /// # Errors
    /// [`Arguments`](crate::ErrorKind::Arguments) (code 400) if one was never recorded or keeps no time;
    /// [`Other`](crate::ErrorKind::Other) (code 600) if one is not done.
    pub fn elapsed_since(&self, earlier: &Event<'_>) -> Result<Duration> {
        self.context.check_same(earlier.context, "the earlier event")?;
        let milliseconds = self.raw.elapsed_since(earlier.raw())?;
        Ok(Duration::try_from_secs_f32(milliseconds / 1e3).unwrap_or(Duration::ZERO))
    }
}
