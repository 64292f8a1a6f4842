//! Work that kernels give to the device: launches from kernels, their streams and events.
//!
//! What a grid launches belongs to it ([`Nested`]) and begins at once, in queues that no host code knows: one for each block's
//! default stream, one for each stream that a thread made, one for each launch that is not in any order. The grid ends when all
//! of that has ended and what it left for its end (the tail stream) has run; only then does the command that launched it
//! finish. See the chapter on dynamic parallelism in CUDA's programming guide; a kernel cannot wait for what it launches.

mod calls;
mod codes;
mod updates;

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use calls::{quiet_runtime, runtime};

use crate::callbacks::Services;
use crate::executor::{Grid, GridParts, Ready};
use crate::graph::launched::GraphLaunch;
use crate::launch::Launch;
use crate::limits::{self, Limit};
use crate::lock::{Rank, RankedGuard, RankedMutex};
use crate::module::Kernel;
use crate::stream::{Completion, Pushed, Queue, Start, Work};
use crate::{Context, Function};
use codes::Code;

/// What the blocks of one grid have launched.
pub(crate) struct Nested {
    /// The kernel of the grid.
    ready: Arc<Ready>,
    /// 0 for a grid that the host launched.
    depth: u32,
    /// The launch of a graph that the grid is of, if kernels of it may launch graphs.
    graph: Option<Arc<GraphLaunch>>,
    /// Nothing until a block launches something, as few do.
    state: RankedMutex<Option<Box<State>>>,
}

#[derive(Default)]
struct State {
    /// Memory for parameters that a thread is about to fill, by its address.
    buffers: HashMap<u64, Buffer>,
    queues: HashMap<StreamKey, Arc<Queue>>,
    /// What events were recorded behind; nothing for those that were not, or behind nothing.
    events: HashMap<u64, Option<Arc<Completion>>>,
    /// Names the streams and events that threads make.
    last_handle: u64,
    begun: Vec<Arc<Completion>>,
    tail: Vec<Later>,
    /// The last error of each thread that has one.
    errors: HashMap<ThreadId, Code>,
}

/// A thread of the grid: its block and its number in it.
type ThreadId = (u64, u32);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StreamKey {
    /// The default stream of a block.
    OfBlock(u64),
    /// One that a thread has made.
    Made(u64),
}

/// Parameters that a kernel writes, aligned as those of a launch are.
#[repr(align(64))]
#[derive(Default)]
struct ParameterLine([AtomicU64; 8]);

/// Where a launch goes.
enum Destination {
    InOrder(Arc<Queue>),
    /// When the grid has ended.
    Tail,
}

struct Buffer {
    memory: Box<[ParameterLine]>,
    /// What is to be launched, if that is known already.
    call: Option<Call>,
}

struct Call {
    kernel: Arc<Kernel>,
    launch: Launch,
}

/// What is left to do when the blocks of a grid have ended.
pub(crate) struct Remainder {
    /// To be waited for.
    pub(crate) begun: Vec<Arc<Completion>>,
    /// To be run then, in order.
    pub(crate) tail: Vec<Later>,
}

/// What runs when the grid that asked for it has ended.
pub(crate) enum Later {
    Grid(Box<(GridParts, Services)>),
    Task(Task),
}

/// A copy or a fill.
type Task = Box<dyn FnOnce() -> crate::Result<()> + Send>;

impl Later {
    /// As a command of the queue that the grid was in.
    pub(crate) fn into_work(self, queue: &Arc<Queue>) -> Work {
        match self {
            Later::Grid(grid) => {
                let (parts, services) = *grid;
                let completion = Completion::new(Arc::downgrade(queue));
                Work::Grid(Grid::new(parts, queue.clone(), services, completion))
            }
            Later::Task(task) => Work::Task(task),
        }
    }
}

impl Nested {
    /// For a grid of a kernel, launched by the host (0) or by a grid.
    pub(crate) fn new(ready: Arc<Ready>, depth: u32) -> Nested {
        Nested { ready, depth, graph: None, state: RankedMutex::new(Rank::Nested, None) }
    }

    /// The grid is of a launch of a graph.
    pub(crate) fn join(&mut self, graph: Arc<GraphLaunch>) {
        self.graph = Some(graph);
    }

    /// What `%current_graph_exec` says.
    pub(crate) fn graph_handle(&self) -> u64 {
        self.graph.as_ref().map_or(0, |graph| graph.handle())
    }

    /// Launches a graph at once, or leaves it for the end of the one that the grid is of.
    fn launch_graph(&self, graph: u64, stream: u64) -> Result<(), Code> {
        const TAIL: u64 = 0x0100_0000_0000_0000;
        const FIRE_AND_FORGET: u64 = 0x0200_0000_0000_0000;
        const FIRE_AND_FORGET_AS_SIBLING: u64 = 0x0300_0000_0000_0000;
        let own = self.graph.as_ref().ok_or(Code::INVALID_VALUE)?;
        let context = self.context()?;
        let executable = context.launchable_graph(graph).filter(|graph| graph.is_uploaded());
        let executable = executable.ok_or(Code::INVALID_VALUE)?;
        match stream {
            TAIL if own.add_tail(graph, executable.clone()) => Ok(()),
            // A graph that is running begins again when it has ended, not beside itself.
            FIRE_AND_FORGET | FIRE_AND_FORGET_AS_SIBLING if graph != own.handle() => {
                let queue = new_queue(&context);
                let end = Completion::new(Arc::downgrade(&queue));
                if !executable.take(&end) {
                    return Err(Code::INVALID_VALUE);
                }
                self.begin_until(end, &queue, Vec::new(), executable.work(Arc::downgrade(&context)))
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }

    fn state(&self) -> Opened<'_> {
        let mut guard = self.state.lock();
        guard.get_or_insert_default();
        Opened(guard)
    }

    /// The kernel of the grid.
    pub(crate) fn ready(&self) -> &Ready {
        &self.ready
    }

    /// The blocks have ended: what they have launched, if anything is left of it.
    pub(crate) fn take_remainder(&self) -> Option<Remainder> {
        let mut state = self.state.lock();
        let state = state.as_mut()?;
        state.begun.retain(|completion| !completion.is_finished());
        if state.begun.is_empty() && state.tail.is_empty() {
            return None;
        }
        Some(Remainder { begun: std::mem::take(&mut state.begun), tail: std::mem::take(&mut state.tail) })
    }

    fn context(&self) -> Result<Arc<Context>, Code> {
        self.ready.context.upgrade().ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// The kernel whose address a kernel took.
    fn kernel(&self, token: u64) -> Result<Arc<Kernel>, Code> {
        let module = self.ready.module.upgrade().ok_or(Code::INVALID_DEVICE_FUNCTION)?;
        module.code().kernel_of_token(token).ok_or(Code::INVALID_DEVICE_FUNCTION)
    }

    fn function(&self, kernel: &Arc<Kernel>) -> Result<Function, Code> {
        let module = self.ready.module.upgrade().ok_or(Code::INVALID_DEVICE_FUNCTION)?;
        Ok(Function::new(&module, kernel.clone()))
    }

    /// Memory for the parameters of a launch that is possible.
    fn parameter_buffer(&self, kernel: u64, launch: Launch) -> Result<u64, Code> {
        let kernel = self.kernel(kernel)?;
        self.function(&kernel)?.check_launch(&launch).map_err(|_| Code::INVALID_CONFIGURATION)?;
        let bytes = kernel.entry().param_bytes.into();
        self.add_buffer(bytes, Some(Call { kernel, launch }))
    }

    fn add_buffer(&self, bytes: u64, call: Option<Call>) -> Result<u64, Code> {
        if bytes > limits::MAX_PARAMS.into() {
            return Err(Code::INVALID_VALUE);
        }
        let lines = bytes.div_ceil(64).max(1);
        let memory: Box<[_]> = (0..lines).map(|_| ParameterLine::default()).collect();
        // A kernel writes to it.
        let address = memory.as_ptr().expose_provenance() as u64;
        self.state().buffers.insert(address, Buffer { memory, call });
        Ok(address)
    }

    /// Launches what a buffer was asked for, or `call`.
    fn launch(&self, buffer: u64, call: Option<Call>, stream: u64, block: u64) -> Result<(), Code> {
        let buffer = self.state().buffers.remove(&buffer).ok_or(Code::INVALID_VALUE)?;
        let call = call.or(buffer.call).ok_or(Code::INVALID_VALUE)?;
        let context = self.context()?;
        let destination = self.destination(&context, stream, block)?;
        let depth = match destination {
            // Nobody waits for the launching grid any more when this one runs.
            Destination::Tail => self.depth,
            Destination::InOrder(_) => self.depth + 1,
        };
        // Each of the grids that this one is within is outstanding. Those beside it are not counted: they may all have to wait
        // until the blocks that launch them have run, and a GPU would have run them meanwhile.
        if u64::from(depth) > context.limit(Limit::DevRuntimePendingLaunchCount)? {
            return Err(Code::LAUNCH_PENDING_COUNT_EXCEEDED);
        }
        let param_bytes = call.kernel.entry().param_bytes as usize;
        let words = buffer.memory.iter().flat_map(|line| &line.0);
        let mut params: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        params.truncate(param_bytes);
        let module = self.ready.module.upgrade().ok_or(Code::INVALID_DEVICE_FUNCTION)?;
        let function = Function::new(&module, call.kernel);
        let (parts, services) = function.prepare(&context, &module, &call.launch, &params, depth)?;
        match destination {
            Destination::Tail => self.state().tail.push(Later::Grid(Box::new((parts, services)))),
            Destination::InOrder(queue) => {
                let make = |completion: &Arc<Completion>| {
                    Work::Grid(Grid::new(parts, queue.clone(), services, completion.clone()))
                };
                self.begin(&queue, Vec::new(), make)?;
            }
        }
        Ok(())
    }

    /// Queues work that begins behind `waits`.
    fn begin(
        &self,
        queue: &Arc<Queue>,
        waits: Vec<Arc<Completion>>,
        work: impl FnOnce(&Arc<Completion>) -> Work,
    ) -> Result<(), Code> {
        let completion = Completion::new(Arc::downgrade(queue));
        let work = work(&completion);
        self.begin_until(completion, queue, waits, work)
    }

    /// Likewise, with an end that there is already.
    fn begin_until(
        &self,
        completion: Arc<Completion>,
        queue: &Arc<Queue>,
        waits: Vec<Arc<Completion>>,
        work: Work,
    ) -> Result<(), Code> {
        let mut work = Some(work);
        {
            let mut state = self.state();
            // Now and then, so that a grid that launches much does not remember all of it.
            if state.begun.len() == state.begun.capacity() {
                state.begun.retain(|completion| !completion.is_finished());
            }
            state.begun.push(completion.clone());
        }
        let pushed = queue.push(waits, &mut work, completion, Start::InQueue);
        if pushed.map_err(|_| Code::CONTEXT_IS_DESTROYED)? == Pushed::MustSchedule {
            queue.schedule();
        }
        Ok(())
    }

    fn destination(&self, context: &Context, stream: u64, block: u64) -> Result<Destination, Code> {
        const LEGACY: u64 = 1;
        const PER_THREAD: u64 = 2;
        const TAIL: u64 = 3;
        const FIRE_AND_FORGET: u64 = 4;
        let queue = || new_queue(context);
        Ok(match stream {
            TAIL => Destination::Tail,
            FIRE_AND_FORGET => Destination::InOrder(queue()),
            0 | LEGACY | PER_THREAD => {
                let key = StreamKey::OfBlock(block);
                Destination::InOrder(self.state().queues.entry(key).or_insert_with(queue).clone())
            }
            made => {
                let found = self.state().queues.get(&StreamKey::Made(made)).cloned();
                Destination::InOrder(found.ok_or(Code::INVALID_VALUE)?)
            }
        })
    }

    /// Leaves a copy or a fill to a stream.
    fn submit(&self, context: &Context, stream: u64, block: u64, task: Task) -> Result<(), Code> {
        match self.destination(context, stream, block)? {
            Destination::Tail => {
                self.state().tail.push(Later::Task(task));
                Ok(())
            }
            Destination::InOrder(queue) => self.begin(&queue, Vec::new(), |_| Work::Task(task)),
        }
    }

    /// The queue of a stream that events are recorded in and waited for.
    fn queue(&self, context: &Context, stream: u64, block: u64) -> Result<Arc<Queue>, Code> {
        match self.destination(context, stream, block)? {
            Destination::InOrder(queue) => Ok(queue),
            Destination::Tail => Err(Code::INVALID_VALUE),
        }
    }

    fn make_stream(&self) -> Result<u64, Code> {
        let queue = new_queue(&*self.context()?);
        let handle = self.next_handle();
        self.state().queues.insert(StreamKey::Made(handle), queue);
        Ok(handle)
    }

    /// What is in the stream still runs.
    fn destroy_stream(&self, stream: u64) -> Result<(), Code> {
        let removed = self.state().queues.remove(&StreamKey::Made(stream));
        removed.map(drop).ok_or(Code::INVALID_VALUE)
    }

    fn make_event(&self) -> u64 {
        let handle = self.next_handle();
        self.state().events.insert(handle, None);
        handle
    }

    fn destroy_event(&self, event: u64) -> Result<(), Code> {
        self.state().events.remove(&event).map(drop).ok_or(Code::INVALID_RESOURCE_HANDLE)
    }

    fn record(&self, event: u64, stream: u64, block: u64) -> Result<(), Code> {
        let last = self.queue(&*self.context()?, stream, block)?.last();
        let mut state = self.state();
        *state.events.get_mut(&event).ok_or(Code::INVALID_RESOURCE_HANDLE)? = last;
        Ok(())
    }

    fn wait_event(&self, stream: u64, event: u64, block: u64) -> Result<(), Code> {
        let queue = self.queue(&*self.context()?, stream, block)?;
        let recorded = self.state().events.get(&event).cloned().ok_or(Code::INVALID_RESOURCE_HANDLE)?;
        match recorded {
            Some(completion) => self.begin(&queue, vec![completion], |_| Work::Nothing),
            None => Ok(()),
        }
    }

    fn next_handle(&self) -> u64 {
        // Above the numbers that name streams of their own.
        const FIRST: u64 = 0x1000;
        let mut state = self.state();
        state.last_handle = state.last_handle.max(FIRST) + 1;
        state.last_handle
    }

    fn note_error(&self, thread: ThreadId, code: Code) {
        self.state().errors.insert(thread, code);
    }

    /// The last error of a thread, which is forgotten if `take` says so.
    fn last_error(&self, thread: ThreadId, take: bool) -> Code {
        let mut state = self.state();
        let found = if take { state.errors.remove(&thread) } else { state.errors.get(&thread).copied() };
        found.unwrap_or(Code::SUCCESS)
    }
}

/// The state, locked, which is there.
struct Opened<'a>(RankedGuard<'a, Option<Box<State>>>);

impl Deref for Opened<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.0.as_ref().expect("made when it was locked")
    }
}

impl DerefMut for Opened<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.0.as_mut().expect("made when it was locked")
    }
}

/// A queue that no host code knows.
fn new_queue(context: &Context) -> Arc<Queue> {
    Queue::new(context.hardware().executor.clone(), context.domain().clone(), 0)
}
