//! Streams: work in order.

mod bulk;
mod completion;
mod copies;
mod freed;
mod queue;
mod settings;
mod words;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

pub use completion::Completion;
pub use copies::SourceAccess;
use queue::Help;
pub use queue::in_host_function;
pub(crate) use queue::{Pushed, Queue, Start, Work, describe_panic};
pub use settings::{AccessProperty, AccessWindow, StreamSettings};
pub use words::{Condition, Width, WordOperation};

use bulk::Bulk;
pub(crate) use freed::Freed;

use crate::context::Context;
use crate::graph;
use crate::graph::capture::{self, CaptureSlot};
use crate::graph::{CaptureInfo, CaptureMode, CaptureStatus, ExecutableGraph, Graph, Operation, Tip};
use crate::lock::{Rank, RankedMutex};
use crate::memory::{Advice, Allocation, Kind, Place, Pool, PoolKind, Reuse};
use crate::{Error, Event, Partition, Result, semaphore};

/// Bytes up to which a copy or a fill is made by the thread that submits it, if nothing is before it in its stream: handing it to
/// another takes longer.
const AT_ONCE: u64 = 64 << 10;

/// How a stream's work is ordered with that of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// The default stream: its work waits for all blocking streams, and theirs for it.
    Legacy,
    /// The default stream of one thread: blocking.
    PerThread,
    /// In order with the legacy default stream.
    Blocking,
    /// On its own.
    NonBlocking,
}

/// A stream of a context.
pub struct Stream {
    id: u64,
    kind: StreamKind,
    queue: Arc<Queue>,
    context: Weak<Context>,
    capture: Arc<CaptureSlot>,
    /// The part of the device that its kernels run on, if it is one.
    partition: Option<Arc<Partition>>,
    settings: RankedMutex<StreamSettings>,
}

impl Stream {
    pub(crate) fn new(
        context: &Arc<Context>,
        kind: StreamKind,
        priority: i32,
        partition: Option<Arc<Partition>>,
    ) -> Arc<Stream> {
        // As NVIDIA's driver numbers them: each context takes seven, of which the second is the legacy default stream's, and the first context
        // begins with the sixth number.
        const OF_CONTEXT: u64 = 7;
        static LAST_ID: AtomicU64 = AtomicU64::new(5);
        let executor = context.hardware().executor.clone();
        let threads = partition.as_ref().map(|partition| partition.threads(&context.hardware().attributes));
        let queue = Queue::with_threads(executor, context.domain().clone(), priority, threads);
        context.add_queue(&queue, kind);
        let id = match kind {
            StreamKind::Legacy => LAST_ID.fetch_add(OF_CONTEXT, Ordering::Relaxed) + 2,
            _ => LAST_ID.fetch_add(1, Ordering::Relaxed) + 1,
        };
        let capture = CaptureSlot::new(matches!(kind, StreamKind::Blocking | StreamKind::PerThread));
        // The device has one domain of fences: both kinds of access are of it.
        let settings = RankedMutex::new(Rank::Context, StreamSettings::default());
        Arc::new(Stream { id, kind, queue, context: Arc::downgrade(context), capture, partition, settings })
    }

    /// The part of the device that its kernels run on, if it is one.
    pub fn partition(&self) -> Option<&Arc<Partition>> {
        self.partition.as_ref()
    }

    /// A number no other stream of the process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it is ordered with others.
    pub fn kind(&self) -> StreamKind {
        self.kind
    }

    /// Its context.
    ///
    /// # Errors
    /// [`Error::ContextIsDestroyed`] if that is gone.
    pub fn context(&self) -> Result<Arc<Context>> {
        self.context.upgrade().ok_or(Error::ContextIsDestroyed)
    }

    /// Waits until all work is done, doing it where no other thread does, and writes out what kernels have printed.
    ///
    /// # Errors
    /// Those of [`Context::check`].
    pub fn synchronize(&self) -> Result<()> {
        let context = self.context()?;
        context.check_before_waiting()?;
        self.check_not_captured(&context)?;
        capture::check_unsafe_call()?;
        self.ends(&context).iter().for_each(|end| end.wait());
        context.release_unused_memory();
        context.domain().output.flush();
        self.notice(&context)
    }

    /// [`Error::NotReady`] while work is left.
    pub fn query(&self) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        self.check_not_captured(&context)?;
        capture::check_unsafe_call()?;
        if self.ends(&context).is_empty() { self.notice(&context) } else { Err(Error::NotReady) }
    }

    /// What has come of the work, which is over: a fault is noticed if it ended any of it.
    fn notice(&self, context: &Context) -> Result<()> {
        if !context.has_failed() {
            return context.check();
        }
        let own = self.queue.last_end();
        let newest = match self.kind {
            StreamKind::Legacy => own.max(context.last_end_in_order()),
            _ => own,
        };
        newest.map_or_else(|| context.check(), |end| context.notice_at(end))
    }

    /// The ends of what is not over yet: in the legacy default stream also of what there is in the streams that are in order with it, which
    /// whatever comes next in it would wait for.
    fn ends(&self, context: &Context) -> Vec<Arc<Completion>> {
        let own = self.last().into_iter();
        match self.kind {
            StreamKind::Legacy => context.in_order(self.kind, |others| own.chain(others).collect()),
            _ => own.collect(),
        }
    }

    /// Queues a function of the program. It is not called once the context has failed.
    pub fn host_function(&self, function: impl Fn() + Send + Sync + 'static) -> Result<()> {
        self.perform(Operation::Host(Arc::new(function)))
    }

    /// As [`host_function`](Self::host_function), for a function that can be called once only and so not be captured.
    pub fn host_function_once(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        self.check_not_capturing()?;
        self.run_host(move |status| {
            if status.is_ok() {
                function()
            }
        })
    }

    /// Queues a function of the program that is told whether the context has failed.
    pub fn callback(&self, function: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.check_not_capturing()?;
        self.run_host(function)
    }

    fn run_host(&self, function: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.submit(Vec::new(), Work::Host(Box::new(function))).map(drop)
    }

    /// What is queued from now on waits for what the event stands for. An event that was never recorded stands for
    /// nothing.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.context()?.check()?;
        let captured = event.captured().map_err(|over| self.capture.refuse(over))?;
        if self.kind == StreamKind::Legacy {
            capture::check_legacy(self.context()?.id())?;
        }
        if let Some(point) = captured {
            return if self.kind == StreamKind::Legacy { Ok(()) } else { self.capture.join(&point) };
        }
        if self.is_capturing() {
            let outside = event.was_recorded();
            return if outside { Err(self.capture.refuse(Error::StreamCaptureIsolation)) } else { Ok(()) };
        }
        match (event.pending(), event.pending_elsewhere()) {
            (Some(pending), _) => self.wait_completion(pending),
            (None, Some(wait)) => self.mark(wait).map(drop),
            (None, None) => Ok(()),
        }
    }

    /// As [`wait_event`](Self::wait_event), but a stream that captures gets a node that waits for what the event stands for
    /// whenever the graph runs.
    ///
    /// # Errors
    /// [`Error::IllegalState`] for a stream that does not capture.
    pub fn wait_event_in_graph(&self, event: &Arc<Event>) -> Result<()> {
        if !self.is_capturing() {
            return Err(Error::IllegalState);
        }
        self.perform(Operation::Wait(event.clone()))
    }

    /// Allocates memory for use by what is queued from now on.
    pub fn allocate(&self, size: u64) -> Result<u64> {
        let context = self.context()?;
        if !self.is_capturing() {
            self.check_not_captured(&context)?;
            capture::check_unsafe_call()?;
            return self.allocate_pooled(&context, &context.hardware().current_pool(), size);
        }
        let (graph, tips) = self.capture.graph()?;
        let (node, address) = graph.add_allocation(&context, size, &graph::ids(&tips))?;
        graph.set_captured_starts(node, &tips)?;
        self.capture.update_dependencies(&[Tip::end(node)], true)?;
        Ok(address)
    }

    /// As [`allocate`](Self::allocate), from a pool, which may be another device's. A capture takes memory of the graph's own.
    ///
    /// # Errors
    /// In a capture, [`Error::InvalidValue`] for a pool of another device and [`Error::NotSupported`] for one of the host or
    /// of managed memory.
    pub fn allocate_from(&self, pool: &Pool, size: u64) -> Result<u64> {
        let context = self.context()?;
        if !self.is_capturing() {
            self.check_not_captured(&context)?;
            capture::check_unsafe_call()?;
            return self.allocate_pooled(&context, pool, size);
        }
        match pool.kind() {
            PoolKind::Device if pool.device() == context.device() => self.allocate(size),
            PoolKind::Device => Err(Error::InvalidValue),
            _ => Err(Error::NotSupported("a graph that allocates memory of the host, or managed".to_owned())),
        }
    }

    /// Memory of a pool: of what the stream is about to free if that does, or there is no other, and then of what other streams are.
    fn allocate_pooled(&self, context: &Context, pool: &Pool, size: u64) -> Result<u64> {
        context.check()?;
        let (space, most) = (context.memory(), size.saturating_mul(2));
        let take = |stream, sizes| context.freed().take(space, stream, pool.id(), sizes);
        if let Some(own) = take(Some(self.id), size..=most) {
            return Ok(own.allocation.base);
        }
        match context.allocate_pooled(pool, size) {
            Err(Error::OutOfMemory) => {}
            result => return result,
        }
        if let Some(own) = take(Some(self.id), size..=u64::MAX) {
            return Ok(own.allocation.base);
        }
        for own in context.freed().of_stream(self.id, pool.id()) {
            if space.write_off(&own)
                && let Ok(address) = context.allocate_pooled(pool, size)
            {
                return Ok(address);
            }
        }
        let others = pool.allows(Reuse::AllowInternalDependencies);
        let other = others.then(|| take(None, size..=u64::MAX)).flatten().ok_or(Error::OutOfMemory)?;
        let address = other.allocation.base;
        if let Some(end) = other.end {
            self.wait_completion(end).inspect_err(|_| drop(space.free(address, |_| true)))?;
        }
        Ok(address)
    }

    /// Queues the freeing of memory.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] where no device memory begins.
    pub fn free(&self, address: u64) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        let space = context.memory().clone();
        let found = space
            .find(address)
            .filter(|found| found.base == address)
            .filter(|found| found.pool.is_some() || matches!(found.kind, Kind::Device | Kind::Graph));
        let allocation = found.ok_or(Error::InvalidValue)?;
        let Allocation { id, kind, .. } = allocation;
        if self.is_capturing() {
            // A graph frees what graphs have allocated.
            if kind != Kind::Graph {
                return Err(Error::InvalidValue);
            }
            return self.capture.add(Operation::Free { address });
        }
        self.check_not_captured(&context)?;
        capture::check_unsafe_call()?;
        // What a graph has allocated goes with the graph, unless that has gone before.
        if kind == Kind::Graph && !space.free_graph_memory(address)? {
            return Ok(());
        }
        let freed = context.freed().clone();
        let callback = move |_| {
            freed.remove(id);
            // Otherwise the stream has allocated it again, or somebody has freed it.
            let _ = space.free(address, |allocation| allocation.id == id);
        };
        let make = |_| Work::Callback(Box::new(callback));
        if allocation.pool.is_some() && allocation.owner == context.id() {
            context.freed().add(self.id, allocation);
        }
        let queued = self.submit_with(&context, Vec::new(), make, Start::AtOnce);
        match queued {
            Ok(end) => context.freed().set_end(id, end),
            Err(error) => {
                context.freed().remove(id);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Says which streams will use managed memory, or memory of the program: all may, so nothing changes.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a part of an allocation (0 stands for all), and for other memory.
    pub fn attach(&self, address: u64, len: u64) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        self.check_not_capturing()?;
        match context.memory().find(address) {
            Some(found) if found.base != address || (len != 0 && len != found.size) => {
                Err(Error::InvalidValue)
            }
            Some(found) => context.memory().check_movable(address, found.size),
            None => context.memory().check_movable(address, len),
        }
    }

    /// Asks for managed memory, or memory of the program, to be moved when the stream gets there. All processors share the
    /// machine's memory: only the wish is noted.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a range that is empty or not of one piece of such memory.
    pub fn prefetch(&self, address: u64, len: u64, place: Place) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        self.check_not_capturing()?;
        context.memory().advise(address, len, Advice::Prefetched(place))
    }

    /// Queues the giving up of what is in managed memory, or memory of the program.
    ///
    /// # Errors
    /// As for [`prefetch`](Self::prefetch).
    pub fn discard(&self, address: u64, len: u64) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        self.check_not_capturing()?;
        context.memory().check_movable(address, len)?;
        let space = context.memory().clone();
        let task = move || {
            // Memory that is gone by then has nothing to give up.
            let _ = space.discard(address, len);
            Ok(())
        };
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }

    /// Whether what is queued becomes nodes of a graph.
    pub fn is_capturing(&self) -> bool {
        self.capture.is_active()
    }

    /// Whether the stream captures, and what.
    ///
    /// # Errors
    /// [`Error::StreamCaptureImplicit`] for the legacy default stream while a stream that waits for it captures, which goes on.
    pub fn capture_status(&self) -> Result<(CaptureStatus, Option<CaptureInfo>)> {
        if self.kind == StreamKind::Legacy && capture::is_legacy_held(self.context()?.id()) {
            return Err(Error::StreamCaptureImplicit);
        }
        Ok(self.capture.status())
    }

    /// From now on what is queued becomes nodes of `graph` behind `dependencies`: of a new graph for most uses.
    ///
    /// # Errors
    /// [`Error::StreamCaptureUnsupported`] for the legacy default stream, [`Error::IllegalState`] if it captures already.
    pub fn begin_capture(&self, mode: CaptureMode, graph: Arc<Graph>, dependencies: &[Tip]) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        if self.kind == StreamKind::Legacy {
            return Err(Error::StreamCaptureUnsupported);
        }
        if !graph.has_all(&graph::ids(dependencies)) {
            return Err(Error::InvalidValue);
        }
        self.capture.begin(context.id(), mode, graph, dependencies.to_vec())
    }

    /// Ends the capture that began in this stream; answers its graph.
    ///
    /// # Errors
    /// [`Error::IllegalState`] without a capture, [`Error::StreamCaptureUnmatched`] if it did not begin here, which spoils it,
    /// [`Error::StreamCaptureWrongThread`], [`Error::StreamCaptureInvalidated`], [`Error::StreamCaptureUnjoined`]. The last
    /// three end the capture.
    pub fn end_capture(&self) -> Result<Arc<Graph>> {
        self.context()?.check()?;
        self.capture.end()
    }

    /// Sets or extends what the next captured node depends on.
    pub fn update_capture_dependencies(&self, tips: &[Tip], replace: bool) -> Result<()> {
        self.capture.update_dependencies(tips, replace)
    }

    /// If the stream captures, the kernel that it has captured last begins when those that it depends on let it.
    pub fn let_captured_kernel_begin_early(&self) -> Result<()> {
        if self.is_capturing() { self.capture.let_newest_begin_early() } else { Ok(()) }
    }

    /// Queues an operation, or adds it to the graph that is being captured.
    pub fn perform(&self, operation: Operation) -> Result<()> {
        if self.is_capturing() { self.capture.add(operation) } else { self.run_operation(operation) }
    }

    /// The end of the newest command, if it is not over.
    pub fn last(&self) -> Option<Arc<Completion>> {
        self.queue.last()
    }

    /// What was asked of the stream cannot be part of its capture, if it has one, which ends with that.
    pub fn refuse_capture(&self, error: Error) -> Error {
        self.capture.refuse(error)
    }

    /// Queues an operation.
    pub(crate) fn run_operation(&self, operation: Operation) -> Result<()> {
        let task = |task: Box<dyn FnOnce() -> Result<()> + Send>| {
            self.submit(Vec::new(), Work::Task(task)).map(drop)
        };
        match operation {
            Operation::Empty | Operation::Allocate { .. } | Operation::Free { .. } => Ok(()),
            // SAFETY: whoever made the call vouched for it.
            Operation::Kernel(call) => unsafe {
                call.function.launch_now(self, &call.launch, &call.params, Start::InQueue)
            },
            Operation::Copy(transfer) => self.submit_bulk(transfer.bytes(), Bulk::Copy(transfer)),
            Operation::Fill(fill) => self.submit_bulk(fill.bytes(), Bulk::Fill(fill)),
            Operation::Host(function) => self.run_host(move |status| {
                if status.is_ok() {
                    function()
                }
            }),
            Operation::Record(event) => event.record(self),
            Operation::Wait(event) => self.wait_event(&event),
            Operation::Words(words) => words.iter().try_for_each(|word| task(Box::new(word.task()))),
            Operation::Signal(semaphores) => task(Box::new(move || semaphore::signal(&semaphores))),
            Operation::AwaitSemaphores(semaphores) => task(Box::new(move || semaphore::wait(&semaphores))),
            Operation::Child(graph) => ExecutableGraph::new(&graph).launch(self),
            Operation::Conditional(_) => Err(Error::IllegalState),
        }
    }

    /// What is queued from now on waits for commands.
    pub fn wait_all(&self, completions: Vec<Arc<Completion>>) -> Result<()> {
        self.submit(completions, Work::Nothing).map(drop)
    }

    /// What is queued from now on waits for a command.
    pub(crate) fn wait_completion(&self, completion: Arc<Completion>) -> Result<()> {
        self.submit(vec![completion], Work::Nothing).map(drop)
    }

    /// Queues something to be done whatever happens before; answers its end.
    pub(crate) fn mark(&self, done: impl FnOnce() + Send + 'static) -> Result<Arc<Completion>> {
        self.submit(Vec::new(), Work::Callback(Box::new(|_| done())))
    }

    /// The end of all that has been queued: a command behind it, or nothing if it is over.
    pub(crate) fn end(&self) -> Result<Option<Arc<Completion>>> {
        let context = self.context()?;
        context.check()?;
        if self.kind == StreamKind::Legacy {
            capture::check_legacy(context.id())?;
        }
        let is_over = context.in_order(self.kind, |waits| Ok(waits.is_empty() && self.queue.is_over()?))?;
        if is_over {
            return Ok(None);
        }
        self.submit_with(&context, Vec::new(), |_| Work::Nothing, Start::InQueue).map(Some)
    }

    /// Whether it is one of this context.
    pub(crate) fn is_of(&self, context: &Weak<Context>) -> bool {
        Weak::ptr_eq(&self.context, context)
    }

    /// What the stream captures now, for an event.
    pub(crate) fn capture_slot(&self) -> &Arc<CaptureSlot> {
        &self.capture
    }

    /// Refuses to ask or wait for the end of what is captured, in this stream or in one that the legacy default stream waits for.
    fn check_not_captured(&self, context: &Context) -> Result<()> {
        if self.kind == StreamKind::Legacy {
            return capture::check_legacy(context.id());
        }
        self.check_not_capturing()
    }

    /// Refuses what cannot become a node of a graph.
    pub fn check_not_capturing(&self) -> Result<()> {
        if self.is_capturing() { Err(self.capture.refuse(Error::StreamCaptureUnsupported)) } else { Ok(()) }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Queues a command behind `waits`.
    pub(crate) fn submit(&self, waits: Vec<Arc<Completion>>, work: Work) -> Result<Arc<Completion>> {
        self.submit_with(&*self.context()?, waits, |_| work, Start::InQueue)
    }

    fn submit_bulk(&self, bytes: Option<u64>, bulk: Bulk) -> Result<()> {
        let context = self.context()?;
        let make = self.bulk_work(&context, bulk, None);
        self.submit_with(&context, Vec::new(), make, start_of(bytes)).map(drop)
    }

    /// Queues a command that touches so many bytes, if they can be counted, and does nothing else.
    pub(crate) fn submit_sized(&self, bytes: Option<u64>, work: Work) -> Result<()> {
        self.submit_with(&*self.context()?, Vec::new(), |_| work, start_of(bytes)).map(drop)
    }

    /// Queues a command and waits for it. The thread runs what is ready itself: no worker is woken for it.
    fn submit_and_wait(
        &self,
        context: &Context,
        make: impl FnOnce(Arc<Completion>) -> Work,
        start: Start,
    ) -> Result<()> {
        let (completion, pushed, work) = self.enqueue(context, Vec::new(), make, start)?;
        match (pushed, work) {
            (Pushed::MustRun, Some(work)) => self.queue.run_at_once(work, &completion),
            (Pushed::Done | Pushed::MustRun, _) => {}
            (Pushed::MustSchedule, _) => {
                let helped = Queue::help(&completion) == Help::Given;
                if !(helped && completion.is_finished()) {
                    self.queue.schedule();
                }
            }
        }
        completion.wait();
        Ok(())
    }

    /// Queues a command that knows its own end. `context` is the stream's.
    pub(crate) fn submit_with(
        &self,
        context: &Context,
        waits: Vec<Arc<Completion>>,
        make: impl FnOnce(Arc<Completion>) -> Work,
        start: Start,
    ) -> Result<Arc<Completion>> {
        let (completion, pushed, work) = self.enqueue(context, waits, make, start)?;
        match (pushed, work) {
            (Pushed::MustRun, Some(work)) => self.queue.run_at_once(work, &completion),
            (Pushed::Done | Pushed::MustRun, _) => {}
            (Pushed::MustSchedule, _) => self.queue.schedule(),
        }
        Ok(completion)
    }

    /// Appends a command to the queue; says what is left to do, with what.
    fn enqueue(
        &self,
        context: &Context,
        waits: Vec<Arc<Completion>>,
        make: impl FnOnce(Arc<Completion>) -> Work,
        start: Start,
    ) -> Result<(Arc<Completion>, Pushed, Option<Work>)> {
        context.check()?;
        if self.kind == StreamKind::Legacy {
            capture::check_legacy(context.id())?;
        }
        let completion = Completion::new(Arc::downgrade(&self.queue));
        let mut work = Some(make(completion.clone()));
        let pushed = context.in_order(self.kind, |mut all| {
            all.extend(waits);
            self.queue.push(all, &mut work, completion.clone(), start)
        });
        // What was refused is dropped here, outside the locks.
        Ok((completion, pushed?, work))
    }
}

/// Where a command may begin that touches so many bytes and does nothing else.
fn start_of(bytes: Option<u64>) -> Start {
    if bytes.is_some_and(|bytes| bytes <= AT_ONCE) { Start::AtOnce } else { Start::InQueue }
}
