//! Contexts: what a program has on a device, and what ends with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use crate::callbacks::{DeviceHeap, Output};
use crate::device::Hardware;
use crate::domain::Domain;
use crate::fault::{FaultReport, Health};
use crate::graph::capture;
use crate::graph::launched::Launchable;
use crate::limits::{self, Limit, Limits};
use crate::lock::{Rank, RankedMutex};
use crate::memory::{AddressSpace, ArrayLayout, ArrayMemory, ContextId, Kind, Pool};
use crate::module::Module;
use crate::registry::Registry;
use crate::stream::{Completion, Freed, Queue, Stream, StreamKind};
use crate::threads::{self, ThreadNumber};
use crate::{Error, Event, Partition, Result, attributes::Attributes, texture};

/// How a waiting thread waits. A hint: threads help, spin briefly and sleep in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduling {
    /// As the device likes.
    #[default]
    Auto,
    /// Spin.
    Spin,
    /// Give the core to others.
    Yield,
    /// Sleep.
    BlockingSync,
}

/// What a context is made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextFlags {
    /// How threads wait.
    pub scheduling: Scheduling,
    /// Pinned memory may be mapped: it always is.
    pub map_host: bool,
    /// Local memory keeps its size after a launch.
    pub local_memory_resize_to_max: bool,
    /// Synchronous copies also wait on the device's side.
    pub sync_memory_operations: bool,
    /// A kernel that fails leaves a report: whoever hears of faults sees to it.
    pub reports_failures: bool,
}

/// The preferred split of cache and shared memory: kept, without effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheConfig {
    /// None.
    #[default]
    PreferNone,
    /// More shared memory.
    PreferShared,
    /// More cache.
    PreferL1,
    /// Half and half.
    PreferEqual,
}

/// The preferred width of shared memory banks: kept, without effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedConfig {
    /// The device's own.
    #[default]
    Default,
    /// Four bytes.
    FourBytes,
    /// Eight bytes.
    EightBytes,
}

/// A context.
pub struct Context {
    hardware: Arc<Hardware>,
    id: ContextId,
    is_primary: bool,
    alive: AtomicBool,
    domain: Arc<Domain>,
    settings: RankedMutex<Settings>,
    /// Taken while a command is submitted whose order with those of other streams matters.
    submission: RankedMutex<Queues>,
    legacy: OnceLock<Arc<Stream>>,
    per_thread: RankedMutex<HashMap<ThreadNumber, Arc<Stream>>>,
    modules: RankedMutex<Vec<Arc<Module>>>,
    /// What its streams are about to free.
    freed: Arc<Freed>,
    /// Graphs that kernels may launch, by what they know them by.
    launchable: RankedMutex<HashMap<u64, Weak<dyn Launchable>>>,
}

struct Settings {
    flags: ContextFlags,
    limits: Limits,
    cache: CacheConfig,
    shared: SharedConfig,
}

/// The queues of all streams that have not been dropped.
#[derive(Default)]
struct Queues {
    blocking: Vec<Weak<Queue>>,
    others: Vec<Weak<Queue>>,
    /// What all that is queued later waits for, in streams yet to be made too.
    awaited: Vec<Arc<Completion>>,
}

impl Queues {
    fn all(&self) -> impl Iterator<Item = Arc<Queue>> {
        self.blocking.iter().chain(&self.others).filter_map(Weak::upgrade)
    }
}

impl Context {
    pub(crate) fn new(hardware: Arc<Hardware>, flags: ContextFlags, is_primary: bool) -> Arc<Context> {
        let id = Registry::new_id();
        let limits = Limits::of(hardware.attributes.multiprocessor());
        let limit = |limit| limits.get(limit).unwrap_or(0);
        let heap =
            DeviceHeap::new(hardware.space.clone(), hardware.ordinal, id, limit(Limit::MallocHeapSize));
        let domain = Arc::new(Domain {
            health: Health::new(hardware.options.report_faults, id),
            output: Output::new(limit(Limit::PrintfFifoSize)),
            heap,
            memory: hardware.space.clone(),
            usage: hardware.space.usage(hardware.ordinal),
        });
        let context = Arc::new(Context {
            id,
            is_primary,
            alive: AtomicBool::new(!is_primary),
            domain,
            settings: RankedMutex::new(
                Rank::Context,
                Settings { flags, limits, cache: CacheConfig::default(), shared: SharedConfig::default() },
            ),
            submission: RankedMutex::new(Rank::Submission, Queues::default()),
            legacy: OnceLock::new(),
            per_thread: RankedMutex::new(Rank::Context, HashMap::new()),
            modules: RankedMutex::new(Rank::Context, Vec::new()),
            freed: Arc::new(Freed::new()),
            launchable: RankedMutex::new(Rank::Graph, HashMap::new()),
            hardware,
        });
        let legacy = Stream::new(&context, StreamKind::Legacy, 0, None);
        assert!(context.legacy.set(legacy).is_ok(), "a new context has no streams");
        context.hardware.registry.add(&context);
        if !is_primary {
            context.domain.usage.add_context();
        }
        context
    }

    /// Its identity, which owns its memory.
    pub fn id(&self) -> ContextId {
        self.id
    }

    /// Whether it is its device's primary context.
    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    /// Number of its device.
    pub fn device(&self) -> usize {
        self.hardware.ordinal
    }

    /// What its device is and can.
    pub fn attributes(&self) -> &Attributes {
        &self.hardware.attributes
    }

    /// Whether it can still be used: [`Error::ContextIsDestroyed`] or, once that has been [noticed](Health), [`Error::Fault`] if not.
    pub fn check(&self) -> Result<()> {
        if !self.alive.load(Ordering::Acquire) {
            return Err(Error::ContextIsDestroyed);
        }
        self.domain.health.check()
    }

    /// As [`check`](Self::check), for who waited for all work, or needs the device at once: a fault is noticed now.
    pub(crate) fn notice(&self) -> Result<()> {
        self.check()?;
        self.domain.health.notice()
    }

    /// As [`check`](Self::check), for who waited for, or asks about, what ended `at` that time on the device's clock.
    pub(crate) fn notice_at(&self, at: u64) -> Result<()> {
        self.check()?;
        self.domain.health.notice_at(at)
    }

    /// Whether a kernel has failed, noticed or not.
    pub(crate) fn has_failed(&self) -> bool {
        self.domain.health.has_failed()
    }

    /// As [`check`](Self::check), for what waits: what kernels had printed before one failed is written out too.
    pub(crate) fn check_before_waiting(&self) -> Result<()> {
        self.check().inspect_err(|_| self.domain.output.flush())
    }

    /// Whether it has not been destroyed; a failed context is alive.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// What made it fail, if it has.
    pub fn fault(&self) -> Option<FaultReport> {
        self.domain.health.report()
    }

    /// Destroys the context and everything in it, after the work that is queued.
    ///
    /// # Errors
    /// [`Error::InvalidContext`] for the primary context, [`Error::ContextIsDestroyed`] the second time.
    pub fn destroy(&self) -> Result<()> {
        if self.is_primary {
            return Err(Error::InvalidContext);
        }
        if self.deactivate() { Ok(()) } else { Err(Error::ContextIsDestroyed) }
    }

    /// Waits for all work of the context, and writes out what kernels have printed.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn synchronize(&self) -> Result<()> {
        self.finish_work()?;
        self.domain.health.notice()
    }

    /// As [`synchronize`](Self::synchronize), for who does not ask what has come of the work.
    pub(crate) fn finish_work(&self) -> Result<()> {
        self.check_before_waiting()?;
        capture::check_context(self.id)?;
        capture::check_unsafe_call()?;
        self.wait_for_all();
        self.release_unused_memory();
        Ok(())
    }

    /// What pools do when somebody has waited for the device.
    pub(crate) fn release_unused_memory(&self) {
        self.hardware.space.release_unused();
    }

    /// Waits for all work, as what changes memory does. Unlike [`synchronize`](Self::synchronize), this does not ask
    /// for the end of captured work, so that a relaxed capture may go on.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub(crate) fn settle(&self) -> Result<()> {
        self.check()?;
        capture::check_unsafe_call()?;
        self.wait_for_all();
        self.domain.health.notice()
    }

    /// Waits for all work, whatever this thread captures and whatever has come of it.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub(crate) fn drain(&self) -> Result<()> {
        self.check()?;
        self.wait_for_all();
        Ok(())
    }

    /// The value of a limit.
    pub fn limit(&self, limit: Limit) -> Result<u64> {
        self.check()?;
        self.settings.lock().limits.get(limit)
    }

    /// Sets a limit; the device may round it.
    pub fn set_limit(&self, limit: Limit, value: u64) -> Result<()> {
        self.check()?;
        let mut limits = self.settings.lock().limits;
        limits.set(limit, value)?;
        let value = limits.get(limit)?;
        match limit {
            Limit::MallocHeapSize if !self.domain.heap.set_limit(value) => return Err(Error::InvalidValue),
            Limit::PrintfFifoSize if !self.domain.output.set_limit(value) => return Err(Error::InvalidValue),
            _ => {}
        }
        self.settings.lock().limits = limits;
        Ok(())
    }

    /// Has kernels know a graph by a handle that is no other's.
    pub(crate) fn add_launchable_graph(&self, handle: u64, graph: Weak<dyn Launchable>) {
        let mut known = self.launchable.lock();
        known.retain(|_, graph| graph.strong_count() > 0);
        known.insert(handle, graph);
    }

    /// The graph that kernels know by a handle.
    pub(crate) fn launchable_graph(&self, handle: u64) -> Option<Arc<dyn Launchable>> {
        self.launchable.lock().get(&handle)?.upgrade()
    }

    /// Whether kernels know any graph.
    pub(crate) fn has_launchable_graphs(&self) -> bool {
        self.launchable.lock().values().any(|graph| graph.strong_count() > 0)
    }

    /// What it was made with, or set to since.
    pub fn flags(&self) -> Result<ContextFlags> {
        if !self.is_alive() {
            return Err(Error::ContextIsDestroyed);
        }
        Ok(self.flags_if_inactive())
    }

    /// Changes the flags.
    pub fn set_flags(&self, flags: ContextFlags) -> Result<()> {
        self.check()?;
        self.set_flags_if_inactive(flags);
        Ok(())
    }

    /// The preferred cache split.
    pub fn cache_config(&self) -> Result<CacheConfig> {
        self.check()?;
        Ok(self.settings.lock().cache)
    }

    /// Sets the preferred cache split.
    pub fn set_cache_config(&self, config: CacheConfig) -> Result<()> {
        self.check()?;
        self.settings.lock().cache = config;
        Ok(())
    }

    /// The preferred width of shared memory banks.
    pub fn shared_config(&self) -> Result<SharedConfig> {
        self.check()?;
        Ok(self.settings.lock().shared)
    }

    /// Sets the preferred width of shared memory banks.
    pub fn set_shared_config(&self, config: SharedConfig) -> Result<()> {
        self.check()?;
        self.settings.lock().shared = config;
        Ok(())
    }

    /// The default stream, in order with all blocking streams.
    pub fn legacy_stream(&self) -> &Arc<Stream> {
        self.legacy.get().expect("set when the context was made")
    }

    /// The default stream of the calling thread.
    pub fn per_thread_stream(self: &Arc<Context>) -> Arc<Stream> {
        let thread = threads::number();
        let mut streams = self.per_thread.lock();
        if let Some(stream) = streams.get(&thread) {
            return stream.clone();
        }
        let stream = Stream::new(self, StreamKind::PerThread, 0, None);
        streams.insert(thread, stream.clone());
        drop(streams);
        threads::on_exit(self);
        stream
    }

    /// A thread has ended: its default stream goes, and what is queued there still runs.
    pub(crate) fn forget_thread(&self, thread: ThreadNumber) {
        // Dropped outside the lock: what a stream holds takes locks of its own.
        let stream = self.per_thread.lock().remove(&thread);
        drop(stream);
    }

    /// Makes a stream. Priorities out of range are brought into it.
    pub fn create_stream(self: &Arc<Context>, kind: StreamKind, priority: i32) -> Result<Arc<Stream>> {
        self.create_stream_in(kind, priority, None)
    }

    /// Makes a stream of a part of the device.
    pub(crate) fn create_stream_in(
        self: &Arc<Context>,
        kind: StreamKind,
        priority: i32,
        partition: Option<Arc<Partition>>,
    ) -> Result<Arc<Stream>> {
        self.check()?;
        let (least, greatest) = limits::PRIORITIES;
        Ok(Stream::new(self, kind, priority.clamp(greatest, least), partition))
    }

    /// Allocates device memory.
    pub fn allocate(&self, size: u64) -> Result<u64> {
        self.allocate_as(size, Kind::Device)
    }

    /// Allocates device memory, or host memory, at an address that fits 32 bits.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] where no such addresses are left.
    pub fn allocate_low(&self, size: u64, kind: Kind) -> Result<u64> {
        self.check()?;
        capture::check_unsafe_call()?;
        self.unless_ended(self.hardware.space.allocate_low(self.hardware.ordinal, self.id, size, kind)?)
    }

    /// Allocates rows of `width` bytes so that each is aligned well; answers address and pitch.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for an element size other than 4, 8 and 16, or an empty area.
    pub fn allocate_pitched(&self, width: u64, height: u64, element: u32) -> Result<(u64, u64)> {
        let (size, pitch) = Context::pitched(width, height, element)?;
        Ok((self.allocate(size)?, pitch))
    }

    /// Bytes and pitch of rows of `width` bytes so that each is aligned well.
    ///
    /// # Errors
    /// As for [`allocate_pitched`](Self::allocate_pitched).
    pub fn pitched(width: u64, height: u64, element: u32) -> Result<(u64, u64)> {
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(Error::InvalidValue);
        }
        let pitch = width.checked_next_multiple_of(crate::memory::GRANULE).ok_or(Error::InvalidValue)?;
        Ok((pitch.checked_mul(height).ok_or(Error::OutOfMemory)?, pitch))
    }

    /// Allocates an array for textures and surfaces.
    ///
    /// # Errors
    /// As for [`AddressSpace::allocate_array`].
    pub fn allocate_array(&self, layout: &ArrayLayout) -> Result<ArrayMemory> {
        self.check()?;
        capture::check_unsafe_call()?;
        self.hardware.space.allocate_array(self.hardware.ordinal, self.id, layout)
    }

    /// Allocates managed memory.
    pub fn allocate_managed(&self, size: u64, attach_host: bool) -> Result<u64> {
        self.allocate_as(size, Kind::Managed { attach_host })
    }

    /// Allocates host memory; 0 bytes are no error and give null.
    pub fn allocate_host(&self, size: u64, flags: u32) -> Result<u64> {
        if size == 0 {
            return self.check().map(|()| 0);
        }
        self.allocate_as(size, Kind::Pinned { flags })
    }

    /// Makes host memory of the program known to the device.
    pub fn register_host(&self, address: u64, size: u64, flags: u32, needs_writes: bool) -> Result<()> {
        self.check()?;
        capture::check_unsafe_call()?;
        self.hardware.space.register(self.hardware.ordinal, self.id, address, size, (flags, needs_writes))?;
        self.unless_ended(address).map(drop)
    }

    /// Free and total bytes of the device's memory.
    pub fn memory_info(&self) -> Result<(u64, u64)> {
        self.check()?;
        self.hardware.space.info(self.hardware.ordinal)
    }

    /// All memory that devices know.
    pub fn memory(&self) -> &Arc<AddressSpace> {
        &self.hardware.space
    }

    pub(crate) fn allocate_as(&self, size: u64, kind: Kind) -> Result<u64> {
        self.check()?;
        if kind != Kind::Pooled && kind != Kind::Variable {
            capture::check_unsafe_call()?;
        }
        self.unless_ended(self.hardware.space.allocate(self.hardware.ordinal, self.id, size, kind)?)
    }

    /// An allocation that was just made. If another thread has ended the context since it was asked for, it goes where all of
    /// the context's memory went.
    fn unless_ended(&self, address: u64) -> Result<u64> {
        if self.is_alive() {
            return Ok(address);
        }
        self.hardware.space.free_if_owned(address, self.id);
        Err(Error::ContextIsDestroyed)
    }

    pub(crate) fn allocate_pooled(&self, pool: &Pool, size: u64) -> Result<u64> {
        self.check()?;
        let (space, kind) = (&self.hardware.space, pool.allocations());
        self.unless_ended(space.allocate_in(Some(pool.id()), pool.device(), self.id, size, kind)?)
    }

    /// Memory for a node of a graph.
    pub(crate) fn allocate_for_graph(&self, size: u64) -> Result<u64> {
        self.check()?;
        let (space, ordinal) = (&self.hardware.space, self.hardware.ordinal);
        self.unless_ended(space.allocate_for_graph(ordinal, self.id, size)?)
    }

    pub(crate) fn freed(&self) -> &Arc<Freed> {
        &self.freed
    }

    pub(crate) fn hardware(&self) -> &Arc<Hardware> {
        &self.hardware
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    pub(crate) fn flags_if_inactive(&self) -> ContextFlags {
        self.settings.lock().flags
    }

    pub(crate) fn set_flags_if_inactive(&self, flags: ContextFlags) {
        self.settings.lock().flags = flags;
    }

    pub(crate) fn add_module(&self, module: Arc<Module>) {
        self.modules.lock().push(module);
    }

    /// Takes a module out; false if it is not there.
    pub(crate) fn remove_module(&self, module: &Module) -> bool {
        let mut modules = self.modules.lock();
        let before = modules.len();
        modules.retain(|known| !std::ptr::eq(Arc::as_ptr(known), module));
        modules.len() < before
    }

    /// Adds a stream's queue to those that are waited for.
    pub(crate) fn add_queue(&self, queue: &Arc<Queue>, kind: StreamKind) {
        let mut queues = self.submission.lock();
        let list = match kind {
            StreamKind::Blocking | StreamKind::PerThread => &mut queues.blocking,
            StreamKind::NonBlocking | StreamKind::Legacy => &mut queues.others,
        };
        // Looked through when it is full only, so that a stream among many costs no more than one among few.
        if list.len() == list.capacity() {
            list.retain(|queue| queue.strong_count() > 0);
            list.reserve(list.len() + 1);
        }
        list.push(Arc::downgrade(queue));
        // The context has ended since it was asked for the stream, and closes no queue any more.
        if !self.is_alive() && kind != StreamKind::Legacy {
            queue.close(true);
        }
        queues.awaited.retain(|awaited| !awaited.is_finished());
        let must_schedule = !queues.awaited.is_empty() && queue.wait_for(queues.awaited.clone());
        drop(queues);
        if must_schedule {
            queue.schedule();
        }
    }

    /// What is queued from now on in any stream of the context waits for what the event stands for.
    ///
    /// # Errors
    /// Those of [`check`](Self::check); [`Error::StreamCaptureUnsupported`] while a stream of the context captures.
    pub fn wait_event(&self, event: &Event) -> Result<()> {
        self.check()?;
        capture::check_context(self.id)?;
        let Some(pending) = event.pending() else { return Ok(()) };
        let mut queues = self.submission.lock();
        queues.awaited.retain(|awaited| !awaited.is_finished());
        queues.awaited.push(pending.clone());
        let scheduled: Vec<_> = queues.all().filter(|queue| queue.wait_for(vec![pending.clone()])).collect();
        drop(queues);
        scheduled.iter().for_each(Queue::schedule);
        Ok(())
    }

    /// The ends of all that is queued and not over.
    pub(crate) fn unfinished(&self) -> Vec<Arc<Completion>> {
        self.submission.lock().all().filter_map(|queue| queue.last()).collect()
    }

    /// When the newest command ended of those that one of the legacy default stream waits for.
    pub(crate) fn last_end_in_order(&self) -> Option<u64> {
        let queues = self.submission.lock();
        queues.blocking.iter().filter_map(|queue| queue.upgrade()?.last_end()).max()
    }

    /// Runs `submit` with what a command of such a stream waits for besides its own stream; no other stream of the context
    /// can submit in between.
    pub(crate) fn in_order<R>(&self, kind: StreamKind, submit: impl FnOnce(Vec<Arc<Completion>>) -> R) -> R {
        match kind {
            StreamKind::NonBlocking => submit(Vec::new()),
            StreamKind::Blocking | StreamKind::PerThread => {
                let _order = self.submission.lock();
                submit(self.legacy_stream().queue().last().into_iter().collect())
            }
            StreamKind::Legacy => {
                let queues = self.submission.lock();
                submit(queues.blocking.iter().filter_map(|queue| queue.upgrade()?.last()).collect())
            }
        }
    }

    /// Makes the primary context usable.
    pub(crate) fn activate(&self) {
        self.legacy_stream().queue().close(false);
        if !self.alive.swap(true, Ordering::AcqRel) {
            self.domain.usage.add_context();
        }
    }

    /// Ends everything in the context; false if it had ended before. A failure ends with it.
    pub(crate) fn deactivate(&self) -> bool {
        if !self.alive.swap(false, Ordering::AcqRel) {
            return false;
        }
        self.domain.usage.remove_context();
        // A thread that saw the context alive may be about to submit: not after what comes next.
        self.close_queues();
        self.wait_for_all();
        let modules = std::mem::take(&mut *self.modules.lock());
        for module in &modules {
            module.mark_unloaded();
        }
        // Streams end outside the lock: what they hold takes locks of its own.
        let streams = std::mem::take(&mut *self.per_thread.lock());
        drop(streams);
        texture::destroy_owned(self.id);
        self.hardware.space.free_owned(self.id);
        let limits = Limits::of(self.hardware.attributes.multiprocessor());
        self.domain.heap.reset(limits.get(Limit::MallocHeapSize).unwrap_or(0));
        self.domain.output.reset(limits.get(Limit::PrintfFifoSize).unwrap_or(0));
        let mut settings = self.settings.lock();
        settings.limits = limits;
        settings.cache = CacheConfig::default();
        settings.shared = SharedConfig::default();
        drop(settings);
        self.domain.health.reset();
        true
    }

    fn close_queues(&self) {
        let queues = self.submission.lock();
        for queue in queues.blocking.iter().chain(&queues.others).filter_map(Weak::upgrade) {
            queue.close(true);
        }
    }

    fn wait_for_all(&self) {
        for completion in self.unfinished() {
            completion.wait();
        }
        self.domain.output.flush();
    }
}
