//! Parts of a device: streams whose kernels run on some of its multiprocessors, by a part of the worker threads that is as large.
//!
//! All parts are of the device's primary context: its memory and modules are theirs. Which threads run a kernel of a part is left
//! open, how many is not, unless its blocks wait for each other.

use std::sync::{Arc, Weak};

use crate::attributes::Attributes;
use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;
use crate::registry::Registry;
use crate::stream::{Completion, StreamKind};
use crate::{Context, Error, Event, Result, Stream};

/// A part of a device.
pub struct Partition {
    id: u64,
    context: Weak<Context>,
    processors: u32,
    state: RankedMutex<State>,
}

#[derive(Default)]
struct State {
    streams: Vec<Weak<Stream>>,
    default: Option<Arc<Stream>>,
    /// What all that is queued later waits for, in streams yet to be made too.
    awaited: Vec<Arc<Completion>>,
    ended: bool,
}

impl Partition {
    /// So many multiprocessors for streams of a context.
    pub fn new(context: &Arc<Context>, processors: u32) -> Arc<Partition> {
        let ContextId(id) = Registry::new_id();
        let state = RankedMutex::new(Rank::Context, State::default());
        Arc::new(Partition { id, context: Arc::downgrade(context), processors, state })
    }

    /// A number no other part of a device, and no context, has in this process.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How many multiprocessors it has.
    pub fn processors(&self) -> u32 {
        self.processors
    }

    /// How many of a device's threads are its share, at least one.
    pub(crate) fn threads(&self, device: &Attributes) -> u32 {
        (self.processors * device.threads).div_ceil(device.multiprocessors).max(1)
    }

    /// Its context.
    ///
    /// # Errors
    /// [`Error::ContextIsDestroyed`] after its end.
    pub fn context(&self) -> Result<Arc<Context>> {
        if self.state.lock().ended {
            return Err(Error::ContextIsDestroyed);
        }
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    /// Makes a stream. Priorities out of range are brought into it.
    pub fn create_stream(self: &Arc<Partition>, kind: StreamKind, priority: i32) -> Result<Arc<Stream>> {
        let context = self.context()?;
        let stream = context.create_stream_in(kind, priority, Some(self.clone()))?;
        let mut state = self.state.lock();
        state.streams.retain(|stream| stream.strong_count() > 0);
        state.streams.push(Arc::downgrade(&stream));
        state.awaited.retain(|awaited| !awaited.is_finished());
        let awaited = state.awaited.clone();
        drop(state);
        if !awaited.is_empty() {
            stream.wait_all(awaited)?;
        }
        Ok(stream)
    }

    /// The stream of those who name none.
    pub fn default_stream(self: &Arc<Partition>) -> Result<Arc<Stream>> {
        self.context()?;
        if let Some(stream) = &self.state.lock().default {
            return Ok(stream.clone());
        }
        let made = self.create_stream(StreamKind::Blocking, 0)?;
        // Another thread may have been quicker.
        Ok(self.state.lock().default.get_or_insert(made).clone())
    }

    /// From now on the event stands for all that has been queued in streams of this part.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] for an event of another context, [`Error::StreamCaptureUnsupported`] while a stream captures, whose
    /// capture is then spoiled.
    pub fn record(&self, event: &Event) -> Result<()> {
        let context = self.context()?;
        if !Arc::ptr_eq(&context, &event.context()?) {
            return Err(Error::InvalidHandle);
        }
        context.check()?;
        let streams = self.streams()?;
        event.record_all(&context, streams.iter().filter_map(|stream| stream.last()).collect())
    }

    /// What is queued from now on in streams of this part waits for what the event stands for.
    ///
    /// # Errors
    /// [`Error::StreamCaptureUnsupported`] for an event of a capture in progress, and while a stream captures; the captures are then
    /// spoiled.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.context()?.check()?;
        if let Some(point) = event.captured()? {
            let _ = point.refuse();
            return Err(Error::StreamCaptureUnsupported);
        }
        let streams = self.streams()?;
        if let Some(pending) = event.pending() {
            self.state.lock().awaited.push(pending);
        }
        streams.iter().try_for_each(|stream| stream.wait_event(event))
    }

    /// Ends the part; the second time it is no part any more. What is queued goes on.
    ///
    /// # Errors
    /// [`Error::ContextIsDestroyed`] the second time.
    pub fn end(&self) -> Result<()> {
        let mut state = self.state.lock();
        if std::mem::replace(&mut state.ended, true) {
            return Err(Error::ContextIsDestroyed);
        }
        let default = state.default.take();
        drop(state);
        // Outside the lock: what a stream holds takes locks of its own.
        drop(default);
        Ok(())
    }

    /// Its streams, none of which captures.
    fn streams(&self) -> Result<Vec<Arc<Stream>>> {
        let streams: Vec<_> = self.state.lock().streams.iter().filter_map(Weak::upgrade).collect();
        streams.iter().try_for_each(|stream| stream.check_not_capturing())?;
        Ok(streams)
    }
}
