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
use crate::lock::{Rank, RankedMutex};
use crate::memory::{Fill, Kind, Side, Transfer};
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
        Arc::new(Stream { id, kind, priority, queue, context: Arc::downgrade(context) })
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
        if let Some(last) = self.last() {
            last.wait();
        }
        context.domain().output.flush();
        context.check()
    }

    /// [`Error::NotReady`] while work is left.
    pub fn query(&self) -> Result<()> {
        self.context()?.check()?;
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
        if transfer.is_empty() {
            return Ok(());
        }
        if !pageable.from && !pageable.to {
            return self.submit(Vec::new(), Work::Task(Box::new(move || transfer.run()))).map(drop);
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
        self.submit(Vec::new(), Work::Task(Box::new(move || fill.run()))).map(drop)
    }

    /// Queues a function of the program. It is not called once the context has failed.
    pub fn host_function(&self, function: impl FnOnce() + Send + 'static) -> Result<()> {
        let task = move || {
            queue::run_host_function(function);
            Ok(())
        };
        self.submit(Vec::new(), Work::Task(Box::new(task))).map(drop)
    }

    /// Queues a function of the program that is told whether the context has failed.
    pub fn callback(&self, function: impl FnOnce(Result<()>) + Send + 'static) -> Result<()> {
        let callback = move |status| queue::run_host_function(move || function(status));
        self.submit(Vec::new(), Work::Callback(Box::new(callback))).map(drop)
    }

    /// What is queued from now on waits for what the event stands for. An event that was never recorded stands for
    /// nothing.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        match event.pending() {
            Some(pending) => self.submit(vec![pending], Work::Nothing).map(drop),
            None => self.context()?.check(),
        }
    }

    /// What is queued from now on waits until the word satisfies the condition.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for an address that is not aligned to the word or not known to the device.
    pub fn wait_value(&self, address: u64, width: Width, value: u64, condition: Condition) -> Result<()> {
        self.check_word(address, width)?;
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
        self.submit(Vec::new(), Work::Task(Box::new(move || store(address, width, value)))).map(drop)
    }

    /// Allocates memory for use by what is queued from now on.
    pub fn allocate(&self, size: u64) -> Result<u64> {
        self.context()?.allocate_as(size, Kind::Pooled)
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
        let callback = move |_| drop(space.free(address, |allocation| allocation.id == id));
        self.submit(Vec::new(), Work::Callback(Box::new(callback))).map(drop)
    }

    /// The end of the newest command, if it is not over.
    pub fn last(&self) -> Option<Arc<Completion>> {
        self.queue.last()
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
