//! Streams and events.

use crate::{Context, Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// A queue of work, done in its order.
#[derive(Clone)]
pub struct Stream {
    stream: Arc<device::Stream>,
    /// Kept alive; absent in the stream that the context itself owns.
    context: Option<Context>,
}

impl Stream {
    pub(crate) fn new(stream: Arc<device::Stream>, context: Option<Context>) -> Stream {
        Stream { stream, context }
    }

    pub(crate) fn inner(&self) -> &device::Stream {
        &self.stream
    }

    /// Waits until all its work is done, and does it where no other thread does.
    pub fn synchronize(&self) -> Result<()> {
        self.stream.synchronize().map_err(|error| self.error(error))
    }

    /// Whether all its work is done.
    pub fn is_done(&self) -> Result<bool> {
        match self.stream.query() {
            Ok(()) => Ok(true),
            Err(device::Error::NotReady) => Ok(false),
            Err(error) => Err(self.error(error)),
        }
    }

    /// Work queued from now on waits for the event.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        self.stream.wait_event(&event.event).map_err(|error| self.error(error))
    }

    /// Calls a function of the host when all work queued so far is done; work queued later waits for it.
    pub fn call(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        self.stream.host_function_once(function).map_err(|error| self.error(error))
    }

    fn error(&self, error: device::Error) -> Error {
        match &self.context {
            Some(context) => context.error(error),
            None => Error::new(error),
        }
    }
}

/// A point in a stream, to wait for and to measure between.
#[derive(Clone)]
pub struct Event {
    event: Arc<device::Event>,
    context: Context,
}

impl Event {
    pub(crate) fn new(event: Arc<device::Event>, context: Context) -> Event {
        Event { event, context }
    }

    /// From now on it stands for all that has been queued in the stream.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.event.record(stream.inner()).map_err(|error| self.context.error(error))
    }

    /// Waits until what it stands for is done.
    pub fn synchronize(&self) -> Result<()> {
        self.event.synchronize().map_err(|error| self.context.error(error))
    }

    /// The time from an earlier event to this one; both must be recorded and done.
    pub fn elapsed_since(&self, earlier: &Event) -> Result<Duration> {
        let milliseconds =
            earlier.event.elapsed_until(&self.event).map_err(|error| self.context.error(error))?;
        Ok(Duration::from_secs_f32(milliseconds.max(0.0) / 1e3))
    }
}
