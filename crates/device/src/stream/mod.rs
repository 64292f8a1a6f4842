//! Streams: work in order.

mod completion;
mod queue;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use completion::Completion;
pub use queue::in_host_function;
pub(crate) use queue::{Queue, Work, describe_panic};

use crate::context::Context;
use crate::graph::capture::{self, CaptureSlot};
use crate::graph::{CaptureInfo, CaptureMode, CaptureStatus, ExecutableGraph, Graph, NodeId, Operation};
use crate::lock::{Rank, RankedMutex};
use crate::memory::{Fill, Kind, Pool, Side, Transfer};
use crate::{Error, Event, Result};

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
    priority: i32,
    queue: Arc<Queue>,
    context: Weak<Context>,
    capture: Arc<CaptureSlot>,
}

/// A comparison of a word of memory with a value, for [`Stream::wait_value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The word has reached the value, counting around.
    GreaterOrEqual,
    /// They are equal.
    Equal,
    /// They have a bit in common.
    And,
    /// Some bit is set in neither.
    Nor,
}

/// Width of a word for [`Stream::wait_value`] and [`Stream::write_value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 4 bytes.
    Bits32,
    /// 8 bytes.
    Bits64,
}

impl Stream {
    pub(crate) fn new(context: &Arc<Context>, kind: StreamKind, priority: i32) -> Arc<Stream> {
        static LAST_ID: AtomicU64 = AtomicU64::new(0);
        let executor = context.hardware().executor.clone();
        let queue = Queue::new(executor, context.domain().clone(), priority);
        context.add_queue(&queue, kind);
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        let capture = CaptureSlot::new(matches!(kind, StreamKind::Blocking | StreamKind::PerThread));
        Arc::new(Stream { id, kind, priority, queue, context: Arc::downgrade(context), capture })
    }

    /// A number no other stream of the process has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// How it is ordered with others.
    pub fn kind(&self) -> StreamKind {
        self.kind
    }

    /// 0, or below for more urgent streams.
    pub fn priority(&self) -> i32 {
        self.priority
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
        context.check()?;
        self.check_not_capturing()?;
        capture::check_unsafe_call()?;
        if let Some(last) = self.last() {
            last.wait();
        }
        context.domain().output.flush();
        context.check()
    }

    /// [`Error::NotReady`] while work is left.
    pub fn query(&self) -> Result<()> {
        self.context()?.check()?;
        self.check_not_capturing()?;
        capture::check_unsafe_call()?;
        match self.last() {
            Some(_) => Err(Error::NotReady),
            None => self.context()?.check(),
        }
    }

    /// Queues a copy. Where one end is memory that the device does not know, the copy may be over when this returns; the
    /// program may then use that memory again.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if an end is not in the memory it should be in.
    pub fn copy(&self, transfer: Transfer) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        let pageable = transfer.check(context.memory())?;
        if self.is_capturing() {
            return self.capture.add(Operation::Copy(transfer));
        }
        if transfer.is_empty() {
            return Ok(());
        }
        if !pageable.from && !pageable.to {
            return self.run_operation(Operation::Copy(transfer));
        }
        match transfer.bytes() {
            Some(bytes @ 0..=STAGED) if !pageable.to && transfer.is_linear() => {
                let mut staged = vec![0_u8; bytes as usize];
                // SAFETY: the buffer is ours until the copy has run.
                let buffer = unsafe { Side::any(staged.as_mut_ptr() as u64) };
                Transfer::linear(buffer, transfer.from.start, bytes).run()?;
                let task = move || {
                    let staged = staged;
                    // SAFETY: as above.
                    let buffer = unsafe { Side::any(staged.as_ptr() as u64) };
                    Transfer::linear(transfer.to.start, buffer, bytes).run()
                };
                self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
            }
            _ => self.copy_and_wait(transfer),
        }
    }

    /// Queues a copy and waits for it.
    ///
    /// # Errors
    /// Also [`Error::InvalidValue`] if memory of the program at one end is not there.
    pub fn copy_and_wait(&self, transfer: Transfer) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        self.check_not_capturing()?;
        transfer.check(context.memory())?;
        if transfer.is_empty() {
            return Ok(());
        }
        let outcome = Arc::new(RankedMutex::new(Rank::Output, Ok(())));
        let slot = outcome.clone();
        // What is wrong with the program's memory is the caller's error and not the context's.
        let task = move || {
            let result = transfer.run();
            *slot.lock() = result;
            Ok(())
        };
        self.submit_and_wait(Work::Task(Box::new(task)))?;
        context.check()?;
        outcome.lock().clone()
    }

    /// Queues a fill.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if it is not all in memory the device knows, or misaligned.
    pub fn fill(&self, fill: Fill) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        fill.check(context.memory())?;
        self.perform(Operation::Fill(fill))
    }

    /// Queues a function of the program. It is not called once the context has failed.
    pub fn host_function(&self, function: impl Fn() + Send + Sync + 'static) -> Result<()> {
        self.perform(Operation::Host(Arc::new(function)))
    }

    /// As [`host_function`](Self::host_function), for a function that can be called once only and so not be captured.
    pub fn host_function_once(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        self.check_not_capturing()?;
        let task = move || {
            queue::run_host_function(function);
            Ok(())
        };
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }

    /// Queues a function of the program that is told whether the context has failed.
    pub fn callback(&self, function: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        self.check_not_capturing()?;
        let callback = move |status| queue::run_host_function(move || function(status));
        self.submit(Vec::new(), Work::Callback(Box::new(callback))).map(drop)
    }

    /// What is queued from now on waits for what the event stands for. An event that was never recorded stands for
    /// nothing.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.context()?.check()?;
        if let Some(point) = event.captured() {
            if self.kind == StreamKind::Legacy {
                return capture::check_legacy(self.context()?.id());
            }
            return self.capture.join(&point);
        }
        if self.is_capturing() {
            let outside = event.was_recorded();
            return if outside { Err(self.capture.refuse(Error::StreamCaptureIsolation)) } else { Ok(()) };
        }
        event.pending().map_or(Ok(()), |pending| self.wait_completion(pending))
    }

    /// What is queued from now on waits until the word satisfies the condition.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for an address that is not aligned to the word or not known to the device.
    pub fn wait_value(&self, address: u64, width: Width, value: u64, condition: Condition) -> Result<()> {
        self.check_word(address, width)?;
        self.perform(Operation::WaitValue { address, width, value, condition })
    }

    fn run_wait_value(&self, address: u64, width: Width, value: u64, condition: Condition) -> Result<()> {
        let task = move || {
            let mut tries = 0_u32;
            while !condition.holds(load(address, width)?, value, width) {
                tries = tries.saturating_add(1);
                match tries {
                    0..100 => std::hint::spin_loop(),
                    100..1000 => std::thread::yield_now(),
                    _ => std::thread::sleep(Duration::from_micros(50)),
                }
            }
            Ok(())
        };
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }

    /// Queues the store of a word.
    ///
    /// # Errors
    /// As for [`wait_value`](Self::wait_value).
    pub fn write_value(&self, address: u64, width: Width, value: u64) -> Result<()> {
        self.check_word(address, width)?;
        self.perform(Operation::WriteValue { address, width, value })
    }

    /// Allocates memory for use by what is queued from now on.
    pub fn allocate(&self, size: u64) -> Result<u64> {
        let context = self.context()?;
        if !self.is_capturing() {
            return context.allocate_pooled(&context.hardware().current_pool(), size);
        }
        let (graph, tips) = self.capture.graph()?;
        let (node, address) = graph.add_allocation(&context, size, &tips)?;
        self.capture.update_dependencies(&[node], true)?;
        Ok(address)
    }

    /// As [`allocate`](Self::allocate), from a pool. A capture takes memory of the graph's own.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a pool of another device.
    pub fn allocate_from(&self, pool: &Pool, size: u64) -> Result<u64> {
        let context = self.context()?;
        if pool.device() != context.device() {
            return Err(Error::InvalidValue);
        }
        if self.is_capturing() { self.allocate(size) } else { context.allocate_pooled(pool, size) }
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
            .filter(|found| found.base == address && matches!(found.kind, Kind::Device | Kind::Pooled));
        let id = found.ok_or(Error::InvalidValue)?.id;
        if self.is_capturing() {
            return self.capture.add(Operation::Free { address });
        }
        let callback = move |_| drop(space.free(address, |allocation| allocation.id == id));
        self.submit(Vec::new(), Work::Callback(Box::new(callback))).map(drop)
    }

    /// Whether what is queued becomes nodes of a graph.
    pub fn is_capturing(&self) -> bool {
        self.capture.is_active()
    }

    /// Whether the stream captures, and what.
    pub fn capture_status(&self) -> (CaptureStatus, Option<CaptureInfo>) {
        self.capture.status()
    }

    /// From now on what is queued becomes nodes of `graph` behind `dependencies`: of a new graph for most uses.
    ///
    /// # Errors
    /// [`Error::StreamCaptureUnsupported`] for the legacy default stream, [`Error::IllegalState`] if it captures already.
    pub fn begin_capture(&self, mode: CaptureMode, graph: Arc<Graph>, dependencies: &[NodeId]) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        if self.kind == StreamKind::Legacy {
            return Err(Error::StreamCaptureUnsupported);
        }
        let known = graph.nodes();
        if dependencies.iter().any(|node| !known.contains(node)) {
            return Err(Error::InvalidValue);
        }
        self.capture.begin(context.id(), mode, graph, dependencies.to_vec())
    }

    /// Ends the capture that began in this stream; answers its graph.
    ///
    /// # Errors
    /// [`Error::IllegalState`] without a capture, [`Error::StreamCaptureUnmatched`] if it did not begin here,
    /// [`Error::StreamCaptureWrongThread`], [`Error::StreamCaptureInvalidated`], [`Error::StreamCaptureUnjoined`]. The last
    /// two end the capture.
    pub fn end_capture(&self) -> Result<Arc<Graph>> {
        self.context()?.check()?;
        self.capture.end()
    }

    /// Sets or extends what the next captured node depends on.
    pub fn update_capture_dependencies(&self, nodes: &[NodeId], replace: bool) -> Result<()> {
        self.capture.update_dependencies(nodes, replace)
    }

    /// Queues an operation, or adds it to the graph that is being captured.
    pub fn perform(&self, operation: Operation) -> Result<()> {
        if self.is_capturing() { self.capture.add(operation) } else { self.run_operation(operation) }
    }

    /// The end of the newest command, if it is not over.
    pub fn last(&self) -> Option<Arc<Completion>> {
        self.queue.last()
    }

    /// Queues an operation.
    pub(crate) fn run_operation(&self, operation: Operation) -> Result<()> {
        let task = |task: Box<dyn FnOnce() -> Result<()> + Send>| {
            self.submit(Vec::new(), Work::Task(task)).map(drop)
        };
        match operation {
            Operation::Empty | Operation::Allocate { .. } | Operation::Free { .. } => Ok(()),
            // SAFETY: whoever made the call vouched for it.
            Operation::Kernel(call) => unsafe { call.function.launch_now(self, &call.launch, &call.params) },
            Operation::Copy(transfer) => task(Box::new(move || transfer.run())),
            Operation::Fill(fill) => task(Box::new(move || fill.run())),
            Operation::Host(function) => task(Box::new(move || {
                queue::run_host_function(|| function());
                Ok(())
            })),
            Operation::Record(event) => event.record(self),
            Operation::Wait(event) => self.wait_event(&event),
            Operation::WaitValue { address, width, value, condition } => {
                self.run_wait_value(address, width, value, condition)
            }
            Operation::WriteValue { address, width, value } => {
                task(Box::new(move || store(address, width, value)))
            }
            Operation::Child(graph) => ExecutableGraph::new(&graph).launch(self),
        }
    }

    /// What is queued from now on waits for a command.
    pub(crate) fn wait_completion(&self, completion: Arc<Completion>) -> Result<()> {
        self.submit(vec![completion], Work::Nothing).map(drop)
    }

    /// Queues something to be done whatever happens before; answers its end.
    pub(crate) fn mark(&self, done: impl FnOnce() + Send + 'static) -> Result<Arc<Completion>> {
        self.submit(Vec::new(), Work::Callback(Box::new(|_| done())))
    }

    /// What the stream captures now, for an event.
    pub(crate) fn capture_slot(&self) -> &Arc<CaptureSlot> {
        &self.capture
    }

    fn check_not_capturing(&self) -> Result<()> {
        if self.is_capturing() { Err(self.capture.refuse(Error::StreamCaptureUnsupported)) } else { Ok(()) }
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Queues a command behind `waits`.
    pub(crate) fn submit(&self, waits: Vec<Arc<Completion>>, work: Work) -> Result<Arc<Completion>> {
        self.submit_with(waits, |_| work)
    }

    /// Queues a command and waits for it. The thread runs what is ready itself: no worker is woken for it.
    fn submit_and_wait(&self, work: Work) -> Result<()> {
        let (completion, must_schedule) = self.enqueue(Vec::new(), |_| work)?;
        let helped = Queue::help(&completion);
        if must_schedule && !(helped && completion.is_finished()) {
            self.queue.schedule();
        }
        completion.wait();
        Ok(())
    }

    /// Queues a command that knows its own end.
    pub(crate) fn submit_with(
        &self,
        waits: Vec<Arc<Completion>>,
        make: impl FnOnce(Arc<Completion>) -> Work,
    ) -> Result<Arc<Completion>> {
        let (completion, must_schedule) = self.enqueue(waits, make)?;
        if must_schedule {
            self.queue.schedule();
        }
        Ok(completion)
    }

    /// Appends a command to the queue; says whether that must be scheduled.
    fn enqueue(
        &self,
        waits: Vec<Arc<Completion>>,
        make: impl FnOnce(Arc<Completion>) -> Work,
    ) -> Result<(Arc<Completion>, bool)> {
        let context = self.context()?;
        context.check()?;
        if self.kind == StreamKind::Legacy {
            capture::check_legacy(context.id())?;
        }
        let completion = Completion::new(Arc::downgrade(&self.queue));
        let work = make(completion.clone());
        let must_schedule = context.in_order(self.kind, |mut all| {
            all.extend(waits);
            self.queue.push(all, work, completion.clone())
        });
        Ok((completion, must_schedule))
    }

    fn check_word(&self, address: u64, width: Width) -> Result<()> {
        let context = self.context()?;
        context.check()?;
        let size = width.bytes();
        let known = context.memory().find(address).is_some_and(|found| found.end() - address >= size);
        if known && address.is_multiple_of(size) { Ok(()) } else { Err(Error::InvalidValue) }
    }
}

/// Largest copy from memory the device does not know that is made when it is queued rather than waited for.
const STAGED: u64 = 64 << 10;

impl Width {
    fn bytes(self) -> u64 {
        match self {
            Width::Bits32 => 4,
            Width::Bits64 => 8,
        }
    }
}

impl Condition {
    fn holds(self, word: u64, value: u64, width: Width) -> bool {
        let narrow = width == Width::Bits32;
        match self {
            Condition::GreaterOrEqual if narrow => (word as u32).wrapping_sub(value as u32) as i32 >= 0,
            Condition::GreaterOrEqual => word.wrapping_sub(value) as i64 >= 0,
            Condition::Equal if narrow => word as u32 == value as u32,
            Condition::Equal => word == value,
            Condition::And => word & value != 0,
            Condition::Nor if narrow => !(word | value) as u32 != 0,
            Condition::Nor => !(word | value) != 0,
        }
    }
}

fn load(address: u64, width: Width) -> Result<u64> {
    // SAFETY: memory known to the device, which holds no host object; what is gone is a fault.
    unsafe {
        match width {
            Width::Bits32 => guard::load::<u32>(address).map(u64::from),
            Width::Bits64 => guard::load::<u64>(address),
        }
    }
    .map_err(|_| Error::InvalidValue)
}

fn store(address: u64, width: Width, value: u64) -> Result<()> {
    // SAFETY: as for `load`.
    unsafe {
        match width {
            Width::Bits32 => guard::store(address, value as u32),
            Width::Bits64 => guard::store(address, value),
        }
    }
    .map_err(|_| Error::InvalidValue)
}
