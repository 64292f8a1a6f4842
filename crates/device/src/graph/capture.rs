//! Capture: what is queued in a stream becomes nodes of a graph instead of being run.
//!
//! A capture begins in one stream and spreads: a stream that waits for an event recorded in it takes part. Before it ends, all
//! of it must have been joined to where it began. What would need the captured work to run is refused and spoils the capture.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread::ThreadId;

use super::{EdgeStart, Graph, Operation, Tip, ids};
use crate::lock::{Rank, RankedMutex};
use crate::memory::ContextId;
use crate::{Error, Result};

/// Which calls that could disturb a capture are refused meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaptureMode {
    /// Those of all threads.
    #[default]
    Global,
    /// Those of the capturing thread.
    ThreadLocal,
    /// None.
    Relaxed,
}

/// Whether a stream captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureStatus {
    /// No.
    None,
    /// Yes.
    Active,
    /// It did; the capture is spoiled and has not been ended.
    Invalidated,
}

/// What is known about a stream's capture.
#[derive(Clone)]
pub struct CaptureInfo {
    /// Unique in the process.
    pub id: u64,
    /// The graph being made.
    pub graph: Arc<Graph>,
    /// What the stream's next node will depend on.
    pub dependencies: Vec<Tip>,
}

/// A capture in progress.
pub(crate) struct Capture {
    id: u64,
    graph: Arc<Graph>,
    mode: CaptureMode,
    thread: ThreadId,
    context: ContextId,
    spoiled: AtomicBool,
    /// Of the streams that take part.
    slots: RankedMutex<Vec<Weak<CaptureSlot>>>,
}

/// A stream's part in a capture.
pub(crate) struct CaptureSlot {
    /// Whether there is one, to be looked at without the lock.
    active: AtomicBool,
    /// The stream is in order with the legacy default stream.
    is_blocking: bool,
    part: RankedMutex<Option<Part>>,
}

#[derive(Clone)]
pub(crate) struct Part {
    capture: Arc<Capture>,
    tips: Vec<Tip>,
    is_origin: bool,
}

/// What an event recorded in a capture stands for. The event may live on for long: what the graph holds ends with the graph.
#[derive(Clone)]
pub(crate) struct CapturedPoint {
    capture: Weak<Capture>,
    tips: Vec<Tip>,
}

impl CaptureSlot {
    pub(crate) fn new(is_blocking: bool) -> Arc<CaptureSlot> {
        let part = RankedMutex::new(Rank::CaptureSlot, None);
        Arc::new(CaptureSlot { active: AtomicBool::new(false), is_blocking, part })
    }

    /// Whether the stream captures.
    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire)
    }

    pub(crate) fn begin(
        self: &Arc<CaptureSlot>,
        context: ContextId,
        mode: CaptureMode,
        graph: Arc<Graph>,
        tips: Vec<Tip>,
    ) -> Result<()> {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let mut part = self.part.lock();
        if part.is_some() {
            return Err(Error::IllegalState);
        }
        let capture = Arc::new(Capture {
            id: LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
            graph,
            mode,
            thread: std::thread::current().id(),
            context,
            spoiled: AtomicBool::new(false),
            slots: RankedMutex::new(Rank::Capture, vec![Arc::downgrade(self)]),
        });
        *part = Some(Part { capture: capture.clone(), tips, is_origin: true });
        self.active.store(true, Ordering::Release);
        drop(part);
        ACTIVE.lock().push(capture);
        ACTIVE_COUNT.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Ends the capture that began here.
    pub(crate) fn end(&self) -> Result<Arc<Graph>> {
        let part = {
            let mut part = self.part.lock();
            if let Some(forked) = part.as_ref().filter(|part| !part.is_origin) {
                forked.capture.spoil();
                return Err(Error::StreamCaptureUnmatched);
            }
            // Of two threads one ends it.
            part.take().ok_or(Error::IllegalState)?
        };
        let capture = &part.capture;
        let is_foreign =
            capture.mode != CaptureMode::Relaxed && capture.thread != std::thread::current().id();
        let slots: Vec<_> = capture.slots.lock().iter().filter_map(Weak::upgrade).collect();
        let mut joined = true;
        for slot in slots {
            let other = slot.part.lock().take();
            slot.active.store(false, Ordering::Release);
            let tips = other.map(|other| other.tips).unwrap_or_default();
            joined &= capture.graph.covers(&ids(&part.tips), &ids(&tips));
        }
        ACTIVE.lock().retain(|active| !Arc::ptr_eq(active, capture));
        ACTIVE_COUNT.fetch_sub(1, Ordering::Release);
        if capture.is_spoiled() {
            return Err(Error::StreamCaptureInvalidated);
        }
        if is_foreign {
            return Err(Error::StreamCaptureWrongThread);
        }
        if !joined {
            return Err(Error::StreamCaptureUnjoined);
        }
        Ok(capture.graph.clone())
    }

    pub(crate) fn status(&self) -> (CaptureStatus, Option<CaptureInfo>) {
        let Some(part) = self.part.lock().clone() else { return (CaptureStatus::None, None) };
        let info =
            CaptureInfo { id: part.capture.id, graph: part.capture.graph.clone(), dependencies: part.tips };
        let spoiled = part.capture.is_spoiled();
        (if spoiled { CaptureStatus::Invalidated } else { CaptureStatus::Active }, Some(info))
    }

    /// Adds a node behind what the stream has captured.
    pub(crate) fn add(&self, operation: Operation) -> Result<()> {
        let mut part = self.part.lock();
        let part = part.as_mut().ok_or(Error::IllegalState)?;
        part.capture.check()?;
        let node = part.capture.graph.add_captured(operation, &part.tips)?;
        part.tips = vec![Tip::end(node)];
        Ok(())
    }

    /// The newest node is a kernel, which begins when the kernels that it depends on let it.
    pub(crate) fn let_newest_begin_early(&self) -> Result<()> {
        let part = self.part.lock();
        let part = part.as_ref().ok_or(Error::IllegalState)?;
        part.tips.iter().try_for_each(|tip| part.capture.graph.let_begin_early(tip.node))
    }

    /// Sets or extends what the next node depends on.
    pub(crate) fn update_dependencies(&self, tips: &[Tip], replace: bool) -> Result<()> {
        let mut part = self.part.lock();
        let part = part.as_mut().ok_or(Error::IllegalState)?;
        part.capture.check()?;
        if !part.capture.graph.has_all(&ids(tips)) {
            return Err(Error::InvalidValue);
        }
        if replace {
            part.tips.clear();
        }
        part.wait_for(tips);
        Ok(())
    }

    /// The graph of the capture.
    pub(crate) fn graph(&self) -> Result<(Arc<Graph>, Vec<Tip>)> {
        let part = self.part.lock().clone().ok_or(Error::IllegalState)?;
        part.capture.check()?;
        Ok((part.capture.graph.clone(), part.tips))
    }

    /// What an event recorded now stands for.
    pub(crate) fn point(&self) -> Result<CapturedPoint> {
        let part = self.part.lock().clone().ok_or(Error::IllegalState)?;
        part.capture.check()?;
        Ok(CapturedPoint { capture: Arc::downgrade(&part.capture), tips: part.tips })
    }

    /// What an event stands for that the kernel captured last records on its way.
    pub(crate) fn point_within(&self, start: EdgeStart) -> Result<CapturedPoint> {
        let mut point = self.point()?;
        point.tips.iter_mut().for_each(|tip| tip.start = start);
        Ok(point)
    }

    /// The stream waits for a point of a capture, and takes part in it from now on.
    pub(crate) fn join(self: &Arc<CaptureSlot>, point: &CapturedPoint) -> Result<()> {
        // Between the question whether it goes on and this call it may have ended.
        let capture = point.capture.upgrade().ok_or(Error::InvalidValue)?;
        capture.check()?;
        let mut slot = self.part.lock();
        match &mut *slot {
            Some(part) if Arc::ptr_eq(&part.capture, &capture) => {
                part.wait_for(&point.tips);
            }
            Some(part) => {
                part.capture.spoil();
                capture.spoil();
                return Err(Error::StreamCaptureMerge);
            }
            None => {
                *slot = Some(Part { capture: capture.clone(), tips: point.tips.clone(), is_origin: false });
                self.active.store(true, Ordering::Release);
                drop(slot);
                capture.slots.lock().push(Arc::downgrade(self));
            }
        }
        Ok(())
    }

    /// Something that a capture cannot contain was asked of the stream.
    pub(crate) fn refuse(&self, error: Error) -> Error {
        if let Some(part) = &*self.part.lock() {
            part.capture.spoil();
        }
        error
    }
}

impl Part {
    /// The next node depends on these too, on each for as long as anybody asks.
    fn wait_for(&mut self, tips: &[Tip]) {
        for tip in tips {
            match self.tips.iter_mut().find(|known| known.node == tip.node) {
                Some(known) => known.start = known.start.max(tip.start),
                None => self.tips.push(*tip),
            }
        }
    }
}

impl Drop for CaptureSlot {
    fn drop(&mut self) {
        // The stream is gone: nobody can end the capture any more.
        let part = self.part.lock().take();
        if let Some(part) = part.filter(|part| part.is_origin) {
            ACTIVE.lock().retain(|active| !Arc::ptr_eq(active, &part.capture));
            ACTIVE_COUNT.fetch_sub(1, Ordering::Release);
        }
    }
}

impl CapturedPoint {
    /// Whether the capture goes on and is not spoiled.
    pub(crate) fn is_usable(&self) -> bool {
        let capture = self.capture.upgrade();
        capture.is_some_and(|capture| !capture.is_spoiled() && capture.is_current())
    }

    /// Whether the capture is still going on.
    pub(crate) fn is_current(&self) -> bool {
        self.capture.upgrade().is_some_and(|capture| capture.is_current())
    }

    /// The event was waited for as if it had been recorded in earnest.
    pub(crate) fn refuse(&self) -> Error {
        if let Some(capture) = self.capture.upgrade() {
            capture.spoil();
        }
        Error::CapturedEvent
    }
}

impl Capture {
    fn spoil(&self) {
        self.spoiled.store(true, Ordering::Release);
    }

    fn is_spoiled(&self) -> bool {
        self.spoiled.load(Ordering::Acquire)
    }

    /// Whether it is still going on.
    fn is_current(&self) -> bool {
        ACTIVE.lock().iter().any(|active| std::ptr::eq(&**active, self))
    }

    fn check(&self) -> Result<()> {
        if self.is_spoiled() { Err(Error::StreamCaptureInvalidated) } else { Ok(()) }
    }

    fn holds_legacy(&self, context: ContextId) -> bool {
        self.context == context && self.has_blocking_stream()
    }

    fn has_blocking_stream(&self) -> bool {
        self.slots.lock().iter().any(|slot| slot.upgrade().is_some_and(|slot| slot.is_blocking))
    }
}

/// Captures in progress, of the whole process.
static ACTIVE: RankedMutex<Vec<Arc<Capture>>> = RankedMutex::new(Rank::Captures, Vec::new());
static ACTIVE_COUNT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD_MODE: Cell<CaptureMode> = const { Cell::new(CaptureMode::Global) };
}

/// Sets how the calling thread's calls are checked against captures; answers how they were.
pub fn exchange_thread_mode(mode: CaptureMode) -> CaptureMode {
    THREAD_MODE.replace(mode)
}

/// Called before what could disturb a capture: allocation, and waiting or asking for work.
///
/// # Errors
/// [`Error::StreamCaptureUnsupported`] if a capture forbids it to this thread; the capture is then spoiled.
pub fn check_unsafe_call() -> Result<()> {
    if ACTIVE_COUNT.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let (me, my_mode) = (std::thread::current().id(), THREAD_MODE.get());
    let forbids = |capture: &&Arc<Capture>| match (my_mode, capture.mode) {
        (CaptureMode::Relaxed, _) | (_, CaptureMode::Relaxed) => false,
        (CaptureMode::Global, CaptureMode::Global) => true,
        _ => capture.thread == me,
    };
    spoil_where(forbids, Error::StreamCaptureUnsupported)
}

/// Called before all work of a context is waited for.
pub(crate) fn check_context(context: ContextId) -> Result<()> {
    if ACTIVE_COUNT.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    spoil_where(|capture| capture.context == context, Error::StreamCaptureUnsupported)
}

/// Called before work is queued in the legacy default stream of a context.
pub(crate) fn check_legacy(context: ContextId) -> Result<()> {
    if ACTIVE_COUNT.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    spoil_where(|capture| capture.holds_legacy(context), Error::StreamCaptureImplicit)
}

/// Whether work in the legacy default stream of a context would depend on what is captured.
pub(crate) fn is_legacy_held(context: ContextId) -> bool {
    ACTIVE_COUNT.load(Ordering::Acquire) != 0
        && ACTIVE.lock().iter().any(|capture| capture.holds_legacy(context))
}

/// Whether what is captured now becomes part of the graph.
pub fn is_captured_into(graph: &Graph) -> bool {
    ACTIVE_COUNT.load(Ordering::Acquire) != 0
        && ACTIVE.lock().iter().any(|capture| std::ptr::eq(&*capture.graph, graph))
}

fn spoil_where(condition: impl Fn(&&Arc<Capture>) -> bool, error: Error) -> Result<()> {
    let active = ACTIVE.lock();
    let mut outcome = Ok(());
    for capture in active.iter().filter(condition) {
        capture.spoil();
        outcome = Err(error.clone());
    }
    outcome
}
