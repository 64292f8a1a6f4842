//! Events: points in a stream, to wait for and to measure between.

mod shared;

use std::sync::{Arc, Weak};

use shared::SharedEvent;
pub use shared::SharedEventHandle;

use crate::clock;
use crate::graph::capture::{self, CapturedPoint};
use crate::graph::{EdgeStart, Operation};
use crate::lock::{Rank, RankedMutex};
use crate::stream::{Completion, StreamKind, Work};
use crate::{Context, Error, Result, Stream};

/// What an event is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFlags {
    /// Threads that wait should sleep: a hint.
    pub blocking_sync: bool,
    /// No time is measured.
    pub disable_timing: bool,
    /// For other processes too; such an event has no time.
    pub interprocess: bool,
}

/// An event of a context.
pub struct Event {
    flags: EventFlags,
    context: Weak<Context>,
    recorded: RankedMutex<Recorded>,
    /// Of one between processes.
    shared: Option<Arc<SharedEvent>>,
}

/// What an event stands for.
#[derive(Clone)]
enum Recorded {
    Nothing,
    /// All was over when it was recorded, at this time.
    Over(u64),
    Command(Arc<Completion>),
    Captured(CapturedPoint),
}

impl Event {
    /// Makes an event.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for one between processes with timing.
    pub fn new(context: &Arc<Context>, flags: EventFlags) -> Result<Arc<Event>> {
        context.check()?;
        if flags.interprocess && !flags.disable_timing {
            return Err(Error::InvalidValue);
        }
        let shared = if flags.interprocess { Some(SharedEvent::create()?) } else { None };
        Ok(Event::make(context, flags, shared))
    }

    /// Another process's event, in a context of this one.
    ///
    /// # Errors
    /// [`Error::InvalidContext`] for one of this process, [`Error::InvalidValue`] if it is not there.
    pub fn open(context: &Arc<Context>, handle: &SharedEventHandle) -> Result<Arc<Event>> {
        context.check()?;
        let flags = EventFlags { disable_timing: true, interprocess: true, ..EventFlags::default() };
        Ok(Event::make(context, flags, Some(SharedEvent::open(handle)?)))
    }

    fn make(context: &Arc<Context>, flags: EventFlags, shared: Option<Arc<SharedEvent>>) -> Arc<Event> {
        let recorded = RankedMutex::new(Rank::Event, Recorded::Nothing);
        Arc::new(Event { flags, context: Arc::downgrade(context), recorded, shared })
    }

    /// What other processes open it by.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] for one that was not made for that.
    pub fn share(&self) -> Result<SharedEventHandle> {
        self.context()?.check()?;
        self.shared.as_ref().ok_or(Error::InvalidHandle)?.handle()
    }

    /// What it was made with.
    pub fn flags(&self) -> EventFlags {
        self.flags
    }

    /// Its context.
    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    /// From now on the event stands for all that has been queued in the stream.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if they are of different contexts.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.check_context(stream)?;
        let recorded = if stream.is_capturing() {
            Recorded::Captured(stream.capture_slot().point()?)
        } else if let Some(shared) = &self.shared {
            let (number, done) = (shared.record(), shared.clone());
            let queued = stream.mark(move || done.finish(number));
            // Where nothing is queued there is nothing to wait for.
            Recorded::Command(queued.inspect_err(|_| shared.finish(number))?)
        } else {
            match stream.end()? {
                Some(command) => Recorded::Command(command),
                // Whether it was before a failure must be told apart.
                None if self.flags.disable_timing && !stream.context()?.has_failed() => Recorded::Over(0),
                None => Recorded::Over(clock::now()),
            }
        };
        // What it stood for ends outside the lock: a capture takes locks of its own.
        let before = std::mem::replace(&mut *self.recorded.lock(), recorded);
        drop(before);
        Ok(())
    }

    /// As [`record`](Self::record), but a stream that captures gets a node that records the event whenever the graph runs.
    ///
    /// # Errors
    /// [`Error::IllegalState`] for a stream that does not capture.
    pub fn record_in_graph(self: &Arc<Event>, stream: &Stream) -> Result<()> {
        if !stream.is_capturing() {
            return Err(Error::IllegalState);
        }
        self.check_context(stream)?;
        stream.perform(Operation::Record(self.clone()))
    }

    /// As [`record`](Self::record) of what a kernel, the last thing queued in the stream, records on its way. What waits for the event
    /// in a capture waits for that part of the kernel; outside, for all of it.
    pub fn record_within_kernel(&self, stream: &Stream, start: EdgeStart) -> Result<()> {
        if !stream.is_capturing() {
            return self.record(stream);
        }
        self.check_context(stream)?;
        let point = stream.capture_slot().point_within(start)?;
        let before = std::mem::replace(&mut *self.recorded.lock(), Recorded::Captured(point));
        drop(before);
        Ok(())
    }

    fn check_context(&self, stream: &Stream) -> Result<()> {
        if stream.is_of(&self.context) {
            return Ok(());
        }
        stream.context()?;
        Err(Error::InvalidHandle)
    }

    /// From now on the event stands for all that has been queued in its context, in whatever stream.
    ///
    /// # Errors
    /// Those of [`Context::check`]; [`Error::StreamCaptureUnsupported`] while a stream of the context captures.
    pub fn record_context(&self) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        capture::check_context(context.id())?;
        // A stream of its own joins the others.
        self.record_all(&context, context.unfinished())
    }

    /// From now on the event stands for these ends of commands in its context.
    pub(crate) fn record_all(&self, context: &Arc<Context>, ends: Vec<Arc<Completion>>) -> Result<()> {
        let joined = context.create_stream(StreamKind::NonBlocking, 0)?;
        *self.recorded.lock() = Recorded::Command(joined.submit(ends, Work::Nothing)?);
        Ok(())
    }

    /// [`Error::NotReady`] until what it stands for is done. An event that was never recorded stands for nothing.
    pub fn query(&self) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        let is_pending = self.check_not_captured()?;
        capture::check_unsafe_call()?;
        if is_pending || self.pending_elsewhere().is_some() {
            return Err(Error::NotReady);
        }
        self.notice(&context)
    }

    /// Waits until what it stands for is done, and writes out what kernels have printed.
    pub fn synchronize(&self) -> Result<()> {
        let context = self.context()?;
        context.check_before_waiting()?;
        self.check_not_captured()?;
        capture::check_unsafe_call()?;
        if let Some(pending) = self.pending() {
            pending.wait();
        }
        if let Some(wait) = self.pending_elsewhere() {
            wait();
        }
        context.release_unused_memory();
        context.domain().output.flush();
        self.notice(&context)
    }

    /// What has come of what it stands for, which is over: a fault is noticed if it ended any of that.
    fn notice(&self, context: &Context) -> Result<()> {
        let end = match &*self.recorded.lock() {
            Recorded::Command(command) => command.finished_at(),
            Recorded::Over(time) => Some(*time),
            _ => None,
        };
        end.map_or_else(|| context.check(), |end| context.notice_at(end))
    }

    /// Milliseconds from this event to a later one.
    ///
    /// # Errors
    /// [`Error::InvalidHandle`] if one has no time or was never recorded, [`Error::NotReady`] if one is not done.
    pub fn elapsed_until(&self, end: &Event) -> Result<f32> {
        let context = self.context()?;
        context.check()?;
        if !Arc::ptr_eq(&context, &end.context()?) {
            return Err(Error::InvalidHandle);
        }
        let (start, end) = (self.time()?, end.time()?);
        let (start, end) = (start.ok_or(Error::NotReady)?, end.ok_or(Error::NotReady)?);
        Ok((end as i64).wrapping_sub(start as i64) as f32 / 1e6)
    }

    /// What it stands for, if that is not done.
    pub(crate) fn pending(&self) -> Option<Arc<Completion>> {
        match &*self.recorded.lock() {
            Recorded::Command(command) if !command.is_finished() => Some(command.clone()),
            _ => None,
        }
    }

    /// What waits for the newest record, if another process made that and it is not over.
    pub(crate) fn pending_elsewhere(&self) -> Option<impl FnOnce() + Send + 'static> {
        let shared = self.shared.as_ref()?;
        let record = shared.pending()?;
        let shared = shared.clone();
        Some(move || shared.wait(record))
    }

    /// The point of a capture in progress that it stands for.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if that capture is over, or spoiled.
    pub(crate) fn captured(&self) -> Result<Option<CapturedPoint>> {
        let point = match &*self.recorded.lock() {
            Recorded::Captured(point) => point.clone(),
            _ => return Ok(None),
        };
        if point.is_usable() { Ok(Some(point)) } else { Err(Error::InvalidValue) }
    }

    /// Whether it stands for a command, over or not.
    pub(crate) fn was_recorded(&self) -> bool {
        matches!(&*self.recorded.lock(), Recorded::Command(_) | Recorded::Over(_))
    }

    /// Whether it can be asked about or waited for, and there is something to wait for. After a capture that it was recorded in, or
    /// once that is spoiled, it stands for nothing.
    fn check_not_captured(&self) -> Result<bool> {
        // What is asked about the capture takes locks of its own.
        let point = match &*self.recorded.lock() {
            Recorded::Captured(point) => point.clone(),
            Recorded::Command(command) => return Ok(!command.is_finished()),
            Recorded::Nothing | Recorded::Over(_) => return Ok(false),
        };
        if point.is_usable() { Err(point.refuse()) } else { Err(Error::InvalidValue) }
    }

    fn time(&self) -> Result<Option<u64>> {
        let point = match &*self.recorded.lock() {
            Recorded::Captured(point) => Some(point.clone()),
            _ => None,
        };
        // Nobody waits, so the capture goes on.
        if let Some(point) = point {
            return Err(if point.is_current() { Error::CapturedEvent } else { Error::InvalidValue });
        }
        if self.flags.disable_timing {
            return Err(Error::InvalidHandle);
        }
        match &*self.recorded.lock() {
            Recorded::Command(command) => Ok(command.finished_at()),
            Recorded::Over(time) => Ok(Some(*time)),
            _ => Err(Error::InvalidHandle),
        }
    }
}
